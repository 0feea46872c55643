"""Where two formulas differ: the smallest parts of the answer in the place of other parts of the key.

Names are compared by ``NamePairing``, sums and products in any order; ``let`` statements are opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from fccomodel.app.grading.names import NamePairing
from fccomodel.core import ir
from fccomodel.core.rewrite import substitute
from fccomodel.core.source import NOWHERE, Span

#: Operations whose operands may stand in any order.
COMMUTATIVE = ("add", "mul", "and", "or", "min", "max", "eq", "ne")
#: How a sign is shown before a term.
SIGNS = {1: "+ ", -1: "- "}
#: Operations that make a sum.
ADDITIVE = ("add", "sub", "neg")
#: Relations by the one that says the same with exchanged sides.
EXCHANGED = {"ge": "le", "gt": "lt"}
#: Pairs of relations that differ in whether equality is allowed.
STRICT = ({"le", "lt"}, {"ge", "gt"})


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One difference.

    kind   what differs, a word of ``KINDS`` in ``difference.py``
    key    the key's part, or None if it has none there
    answer the answer's part, or None if it is missing
    before what stands before them: the signs of terms
    """

    kind: str
    key: Span | None
    answer: Span | None
    before: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Matcher:
    """Compares formulas of the key with formulas of the answer."""

    names: NamePairing
    binders: Mapping[ir.Binder, ir.Binder] = field(default_factory=dict)

    def spots(self, key: ir.Expr, answer: ir.Expr) -> list[Spot]:
        """The smallest differing parts; empty if both are equal as written."""
        key, answer = opened(key), opened(answer)
        if self._are_sums(key, answer):
            return self._terms(key, answer)
        if isinstance(key, ir.Reduce) and isinstance(answer, ir.Reduce):
            return self._reductions(key, answer)
        if isinstance(key, ir.Reduce) != isinstance(answer, ir.Reduce):
            return [Spot(kind="reduction", key=key.span, answer=answer.span)]
        if isinstance(key, ir.Apply) and isinstance(answer, ir.Apply):
            return self._operations(key, answer)
        if type(key) is not type(answer):
            kinds = {type(key), type(answer)}
            kind = "number" if kinds <= {ir.Const, ir.Param, ir.Size} else "formula"
            return [Spot(kind=kind, key=key.span, answer=answer.span)]
        return self._others(key, answer)

    def _others(self, key: ir.Expr, answer: ir.Expr) -> list[Spot]:
        """The differences of two nodes of one class that is neither a reduction nor an operation."""
        if isinstance(key, ir.Item) and isinstance(answer, ir.Item):
            found = self.spots(key.base, answer.base)
            for one, other in zip(key.indices, answer.indices, strict=False):
                if self.spots(one, other):
                    found.append(Spot(kind="index", key=one.span, answer=other.span))
            return found
        kind = self._leaf(key, answer)
        found = [Spot(kind=kind, key=key.span, answer=answer.span)] if kind else []
        if len(key.children) != len(answer.children):
            return [Spot(kind="formula", key=key.span, answer=answer.span)]
        for one, other in zip(key.children, answer.children, strict=True):
            found += self.spots(one, other)
        return found

    def _leaf(self, key: ir.Expr, answer: ir.Expr) -> str:
        """The kind of difference between two leaves of one class, or an empty text."""
        names = self.names
        match key, answer:
            case (ir.Const(), ir.Const()):
                return "" if key.value == answer.value else "number"
            case (ir.Label(), ir.Label()):
                return "" if key.text == answer.text else "label"
            case (ir.Var(), ir.Var()):
                return "" if names.variables.get(key.name) == answer.name else "variable"
            case (ir.Param(), ir.Param()):
                partner = {**names.arrays, **names.params}.get(key.name)
                return "" if partner == answer.name else "param"
            case (ir.Column(), ir.Column()):
                return self._column(key, answer)
            case (ir.Element(), ir.Element()):
                return "" if self._same_binder(key.binder, answer.binder) else "index"
            case (ir.NetCall(), ir.NetCall()):
                return "" if names.nets.get(key.net) == answer.net else "net"
        return ""

    def _column(self, key: ir.Column, answer: ir.Column) -> str:
        """Whether two columns are of different rows, or have different names."""
        if not self._same_binder(key.binder, answer.binder):
            return "index"
        if key.name is None or answer.name is None:
            return "" if key.name == answer.name else "column"
        domain = key.binder.domain
        if not isinstance(domain, ir.RowSet):
            return ""
        partner = self.names.columns.get((domain.table, key.name))
        return "" if partner == answer.name else "column"

    def _same_binder(self, key: ir.Binder, answer: ir.Binder) -> bool:
        return self.binders.get(key) is answer

    # ------------------------------------------------------------------------------- operations
    def _operations(self, key: ir.Apply, answer: ir.Apply) -> list[Spot]:
        """The differences of two operations."""
        ours, theirs = _turned(key), _turned(answer)
        if ours[0] != theirs[0]:
            return self._other_operation(key, answer, ours, theirs)
        if ours[0] in COMMUTATIVE:
            return self._any_order(_flat(key), _flat(answer))
        if len(ours[1]) != len(theirs[1]):
            return [Spot(kind="formula", key=key.span, answer=answer.span)]
        return [s for a, b in zip(ours[1], theirs[1], strict=True) for s in self.spots(a, b)]

    def _other_operation(self, key: ir.Apply, answer: ir.Apply, ours: Turned, theirs: Turned) -> list[Spot]:
        """The difference of two operations that are not the same one."""
        kind = "function"
        if {key.op, answer.op} in STRICT or {ours[0], theirs[0]} in STRICT:
            kind = "strictness"
        elif {ours[0], theirs[0]} <= {"le", "lt", "ge", "gt", "eq", "ne"}:
            kind = "relation"
        return [Spot(kind=kind, key=key.span, answer=answer.span)]

    def _terms(self, key: ir.Expr, answer: ir.Expr) -> list[Spot]:
        """The differences of two sums: terms with another sign first, then the others in pairs."""
        ours, theirs = signed(key), signed(answer)
        for same_sign in (True, False):
            wrong = []
            for one in list(ours):
                partner = next((o for o in theirs if self._is_term(one, o, same_sign=same_sign)), None)
                if partner is not None:
                    signs = (SIGNS[one[0]], SIGNS[partner[0]])
                    wrong.append(Spot(kind="sign", key=one[1].span, answer=partner[1].span, before=signs))
                    ours.remove(one)
                    theirs.remove(partner)
        if 1 in (len(ours), len(theirs)) and len(ours) + len(theirs) > 2:
            if ours and theirs:
                return [*wrong, Spot(kind="formula", key=_all(ours), answer=_all(theirs))]
        return wrong + self._pairs([t for _, t in ours], [t for _, t in theirs], "term")

    def _are_sums(self, key: ir.Expr, answer: ir.Expr) -> bool:
        """Whether two formulas are compared term by term: sums both, or one that has the other as a term."""
        if not (_is_sum(key) or _is_sum(answer)):
            return False
        ours, theirs = signed(key), signed(answer)
        if len(ours) > 1 and len(theirs) > 1 or len(ours) == len(theirs):
            return True
        return any(not self.spots(one, other) for _, one in ours for _, other in theirs)

    def _is_term(self, one: Signed, other: Signed, *, same_sign: bool) -> bool:
        """Whether two terms are equal but for their signs, which are equal or not."""
        return (one[0] == other[0]) == same_sign and not self.spots(one[1], other[1])

    def _any_order(self, ours: list[ir.Expr], theirs: list[ir.Expr]) -> list[Spot]:
        """The differences of two lists of operands whose order does not matter."""
        return self._pairs(*self._unmatched(ours, theirs), "factor")

    def _unmatched(
        self, ours: Sequence[ir.Expr], theirs: Sequence[ir.Expr]
    ) -> tuple[list[ir.Expr], list[ir.Expr]]:
        """The operands of both sides without an equal on the other."""
        left = list(theirs)
        alone = []
        for one in ours:
            partner = next((other for other in left if not self.spots(one, other)), None)
            if partner is None:
                alone.append(one)
            else:
                left.remove(partner)
        return alone, left

    def _pairs(self, ours: list[ir.Expr], theirs: list[ir.Expr], kind: str) -> list[Spot]:
        """The differences of operands, each paired with the most similar one of the other side."""
        found: list[Spot] = []
        theirs = list(theirs)
        for one in ours:
            if not theirs:
                found.append(Spot(kind=f"missing {kind}", key=one.span, answer=None))
                continue
            partner = min(theirs, key=lambda other: self._distance(one, other))
            theirs.remove(partner)
            found += self.spots(one, partner)
        found += [Spot(kind=f"extra {kind}", key=None, answer=other.span) for other in theirs]
        return found

    def _distance(self, one: ir.Expr, other: ir.Expr) -> tuple[bool, bool, int]:
        """How unlike two operands are: their classes, their variables, the number of differences."""
        ours = {self.names.variables.get(name) for name in ir.variables_of(one)}
        differs = type(opened(one)) is not type(opened(other))
        return ours != set(ir.variables_of(other)), differs, len(self.spots(one, other))

    # ------------------------------------------------------------------------------- reductions
    def _reductions(self, key: ir.Reduce, answer: ir.Reduce) -> list[Spot]:
        """The differences of two reductions: kind, options, sets, conditions, body."""
        found: list[Spot] = []
        if _kind(key) != _kind(answer):
            found.append(Spot(kind="reduction", key=key.span, answer=answer.span))
        if len(key.binders) != len(answer.binders):
            return [*found, Spot(kind="sets of the reduction", key=key.span, answer=answer.span)]
        inner, own = self.bound_to(key.binders, answer.binders, (key.condition, answer.condition))
        found += own
        for name, value in key.options.items():
            if name in answer.options and self.spots(value, answer.options[name]):
                found.append(Spot(kind="option", key=value.span, answer=answer.options[name].span))
        return found + inner.spots(key.body, answer.body)

    def bound_to(
        self,
        ours: Sequence[ir.Binder],
        theirs: Sequence[ir.Binder],
        conditions: tuple[ir.Expr | None, ir.Expr | None] = (None, None),
    ) -> tuple[Matcher, list[Spot]]:
        """The matcher inside some binders, and the differences of their sets and conditions."""
        found = []
        pairs = dict(self.binders)
        left = list(theirs)
        for own in ours:
            partner = next((b for b in left if self._same_domain(own, b)), None) or left[0]
            left.remove(partner)
            pairs[own] = partner
        inner = Matcher(self.names, pairs)
        for own in ours:
            found += inner._domains(own, pairs[own])
        one, other = (_all_conditions(b, c) for b, c in zip((ours, theirs), conditions, strict=True))
        rows = {b.domain.row: partner for b, partner in pairs.items() if isinstance(b.domain, ir.RowSet)}
        return inner, found + inner._conditions(one, other, rows)

    def _same_domain(self, key: ir.Binder, answer: ir.Binder) -> bool:
        """Whether two binders range over one set, with equal conditions."""
        inner = Matcher(self.names, {**self.binders, key: answer})
        if inner._domains(key, answer):
            return False
        one, other = _all_conditions([key], None), _all_conditions([answer], None)
        return not inner._conditions(one, other, {})

    def _domains(self, key: ir.Binder, answer: ir.Binder) -> list[Spot]:
        """The differences of the sets of two binders, conditions apart."""
        wrong = [Spot(kind="set", key=key.span, answer=answer.span)]
        match key.domain, answer.domain:
            case (ir.RowSet(table=one), ir.RowSet(table=other)):
                return [] if self.names.tables.get(one) == other else wrong
            case (ir.Distribution() as one, ir.Distribution() as other):
                if one.family != other.family or len(one.args) != len(other.args):
                    return wrong
                pairs = zip(one.args, other.args, strict=True)
                return [s for a, b in pairs for s in self.spots(a, b)]
            case (ir.ValueSet() as one, ir.ValueSet() as other):
                return wrong if self._numbers_differ(one, other) else []
            case (ir.LabelSet(), ir.LabelSet()):
                return []
        return [] if type(key.domain) is type(answer.domain) else wrong

    def _numbers_differ(self, one: ir.ValueSet, other: ir.ValueSet) -> bool:
        """Whether two sets of numbers are written differently."""
        ours = one.items or (one.low, one.high, one.step)
        theirs = other.items or (other.low, other.high, other.step)
        if len(ours) != len(theirs):
            return True
        ends = list(zip(ours, theirs, strict=True))
        for a, b in ends:
            if (a is None) != (b is None) or a is not None and b is not None and self.spots(a, b):
                return True
        return False

    def _conditions(
        self, ours: list[ir.Expr], theirs: list[ir.Expr], rows: Mapping[ir.Binder | None, ir.Binder]
    ) -> list[Spot]:
        """The differences of two lists of conditions."""
        inner = self.with_rows(ours, theirs)
        left_ours, left_theirs = inner._unmatched(ours, theirs)
        found = []
        while left_ours and left_theirs:
            one = left_ours.pop(0)
            other = left_theirs.pop(0)
            spots = inner.spots(one, other)
            precise = [s for s in spots if s.kind in ("strictness", "index", "column", "relation")]
            found += precise or [Spot(kind="condition", key=one.span, answer=other.span)]
        found += [Spot(kind="missing condition", key=one.span, answer=None) for one in left_ours]
        return found + [Spot(kind="extra condition", key=None, answer=other.span) for other in left_theirs]

    def with_rows(self, ours: Iterable[ir.Expr], theirs: Iterable[ir.Expr]) -> Matcher:
        """The matcher that knows the rows of declared sets: such a row is paired with the one of its
        table in the answer's conditions."""
        pairs = dict(self.binders)
        free_ours = {b for c in ours for b in ir.free_binders(c) if b not in pairs}
        free_theirs = {b for c in theirs for b in ir.free_binders(c)}
        for own in free_ours:
            partner = next((b for b in free_theirs if self._one_table(own, b)), None)
            if partner is not None:
                pairs[own] = partner
        return Matcher(self.names, pairs)

    def _one_table(self, key: ir.Binder, answer: ir.Binder) -> bool:
        if not isinstance(key.domain, ir.RowSet) or not isinstance(answer.domain, ir.RowSet):
            return False
        return self.names.tables.get(key.domain.table) == answer.domain.table


#: A term of a sum with its sign.
Signed = tuple[int, ir.Expr]
#: An operation in the form in which relations point one way, and its arguments.
Turned = tuple[str, tuple[ir.Expr, ...]]


def _turned(node: ir.Apply) -> Turned:
    """The operation and its arguments, with ``a >= b`` as ``b <= a``."""
    if node.op in EXCHANGED:
        return EXCHANGED[node.op], node.args[::-1]
    return node.op, node.args


def _flat(node: ir.Apply) -> list[ir.Expr]:
    """The operands of a chain of one operation."""
    operands: list[ir.Expr] = []
    stack: list[ir.Expr] = [node]
    while stack:
        one = opened(stack.pop())
        if isinstance(one, ir.Apply) and one.op == node.op:
            stack.extend(reversed(one.args))
        else:
            operands.append(one)
    return operands


def _all_conditions(binders: Sequence[ir.Binder], condition: ir.Expr | None) -> list[ir.Expr]:
    """The conditions on the elements of some binders, each apart: of their sets, and of the reduction."""
    conditions = [] if condition is None else [condition]
    for binder in binders:
        if isinstance(binder.domain, ir.RowSet) and binder.domain.where is not None:
            where = binder.domain.where
            if binder.domain.row is not None:
                where = substitute(where, {binder.domain.row: ir.Element(binder=binder)})
            conditions.append(where)
    return [part for one in conditions for part in (_flat(one) if _is_and(one) else [one])]


def _all(terms: list[Signed]) -> Span:
    """The smallest place that has all terms."""
    first, *others = (term.span for _, term in terms)
    for span in others:
        first = first | span
    return first


def _is_sum(node: ir.Expr) -> bool:
    return isinstance(node, ir.Apply) and node.op in ADDITIVE


def _is_and(node: ir.Expr) -> TypeGuard[ir.Apply]:
    return isinstance(node, ir.Apply) and node.op == "and"


def _kind(node: ir.Reduce) -> str:
    """The kind of a reduction; a mean and an expectation are the same."""
    return "mean" if node.kind in ("E", "mean") else node.kind


def signed(expr: ir.Expr) -> list[Signed]:
    """The terms of a sum, each with its sign."""
    terms: list[Signed] = []
    stack = [(1, expr)]
    while stack:
        sign, node = stack.pop()
        node = opened(node)
        match node:
            case ir.Apply(op="add", args=args):
                stack.extend((sign, arg) for arg in reversed(args))
            case ir.Apply(op="sub", args=(first, second)):
                stack.extend([(-sign, second), (sign, first)])
            case ir.Apply(op="neg", args=(argument,)):
                stack.append((-sign, argument))
            case _:
                terms.append((sign, node))
    return terms


def opened(node: ir.Expr) -> ir.Expr:
    """The body of a ``let`` in the place of its name; binders of a family become its arguments."""
    while isinstance(node, ir.LetRef):
        body = node.let.body
        if node.let.binders:
            body = substitute(body, dict(zip(node.let.binders, node.args, strict=True)))
        node = body
    return node


def shown(span: Span | None) -> Span | None:
    """The span if it is one of the text."""
    return None if span is None or span == NOWHERE else span
