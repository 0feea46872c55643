"""A check that arguments of atoms, reductions, sets and distributions lie in their domains.

Arguments made of data and parameters alone are checked here: first by the ranges of the data, then by
their values at every element that the binders and conditions around them leave. Arguments that depend
on variables or on draws are left to the analysis.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, FccoError, refuse
from fccomodel.core.rewrite import conjunction, conjuncts, substitute
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn
from fccomodel.evaluation import errors, memory
from fccomodel.evaluation.memory import remember
from fccomodel.evaluation.sets import elements, members
from fccomodel.evaluation.sets.members import Members
from fccomodel.library import atoms, distributions, domains, reductions, sets
from fccomodel.library.atoms import Domain, Interval, enclosing
from fccomodel.library.domains import Use
from fccomodel.library.ranges import REALS, Ranges, declared

MAX_COMBINATIONS = 1 << 22  # combinations of the elements of several binders that are tried one by one


def check(bound: Bound) -> None:
    """Raise F0533 for every argument outside of its domain, F0532 for sets without points."""
    faults = _judge(bound).faults
    if faults:
        refuse(*faults, source=bound.problem.source)


def verified(bound: Bound, use: Use, argument: int) -> bool:
    """Whether an argument made of data and parameters is known to lie in its domain.

    It is checked at all places of the problem. A use outside of the problem is checked at all elements.
    """
    judge = _judge(bound)
    key = use.asks, use.args
    if key not in judge.doubted:
        binders = dict.fromkeys(b for a in use.args for b in ir.free_binders(a))
        judge.doubted[key] = judge(use, Place(binders=tuple(binders)))
    return argument not in judge.doubted[key]


def _judge(bound: Bound) -> Judge:
    return remember(bound, "domains", lambda: Judge(bound).run())


# -------------------------------------------------------------------------------------- occurrences
@dataclass(frozen=True, eq=False, kw_only=True)
class Place:
    """The place of an expression: the binders around it, and the conditions that hold there.

    stand_for  inside a family of lets: the arguments of its use by the family's binders, each an
               element of a binder around the use or a number
    """

    binders: tuple[ir.Binder, ...] = ()
    conditions: tuple[ir.Expr, ...] = ()
    stand_for: Mapping[ir.Binder, ir.Expr] = field(default_factory=dict)

    def inside(self, binders: Sequence[ir.Binder], conditions: Sequence[ir.Expr] = ()) -> Place:
        """The place inside of further binders and conditions."""
        return replace(self, binders=(*self.binders, *binders), conditions=(*self.conditions, *conditions))

    def meant(self, arg: ir.Expr) -> ir.Expr:
        """An argument of a let in terms of the binders around."""
        if isinstance(arg, ir.Element):
            return self.stand_for.get(arg.binder, arg)
        return arg

    def free(self, expr: ir.Expr) -> set[ir.Binder]:
        """The binders around that an expression depends on."""
        meant = [self.meant(ir.Element(binder=b)) for b in ir.free_binders(expr)]
        return {e.binder for e in meant if isinstance(e, ir.Element)}

    def outside(self, bound: Bound, condition: ir.Expr) -> ir.Expr | None:
        """A condition in terms of the binders around, or None.

        It is None if an element of another set stands for one of the condition's binders.
        """
        inner = {b: self.stand_for[b] for b in ir.free_binders(condition) if b in self.stand_for}
        for binder, e in inner.items():
            if isinstance(e, ir.Element) and e.binder.domain is not binder.domain:
                return None
            if isinstance(e, ir.Const):
                inner[binder] = ir.Const(value=float(elements.values(bound, binder.domain)[int(e.value)]))
        if inner:
            return substitute(condition, inner)
        return condition


OUTSIDE = Place()


def occurrences(problem: ir.Problem) -> Iterator[tuple[Use, Place]]:
    """All uses of values in a problem that have a domain, each with its place."""
    for variable in problem.variables.values():
        for domain in variable.sets:
            yield from ((use, OUTSIDE) for use in domains.of_domain(domain))
    yield from _Walk(problem).run()


@dataclass(eq=False)
class _Walk:
    """A walk over every node at each of its places. Unused lets are visited at all their members."""

    problem: ir.Problem
    stack: list[tuple[ir.Expr, Place]] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    opened: set[ir.Set] = field(default_factory=set)
    used: dict[tuple[Any, ...], Place] = field(default_factory=dict)  # places of lets' bodies, by use

    def run(self) -> Iterator[tuple[Use, Place]]:
        """The uses in the problem."""
        problem = self.problem
        self.stack.append((problem.objective.expr, OUTSIDE))
        for c in problem.constraints:
            self.stack.append((c.body, self.bound(c.binders, c.condition, OUTSIDE)))
        for index_set in problem.sets.values():
            self.of_set(index_set)
        yield from self.visited()
        for let in reversed(list(problem.lets.values())):
            if all(key[0] is not let for key in self.used):
                self.stack.append((let.body, self.bound(let.binders, let.condition, OUTSIDE)))
                yield from self.visited()

    def visited(self) -> Iterator[tuple[Use, Place]]:
        """The uses in the expressions on the stack and below them."""
        while self.stack:
            node, place = self.stack.pop()
            if (id(node), id(place)) not in self.seen:
                self.seen.add((id(node), id(place)))
                yield from self.visit(node, place)

    def let(self, ref: ir.LetRef, place: Place) -> None:
        """Push the body of a let at the place of a use; the same use at one place counts once."""
        args = tuple(place.meant(arg) for arg in ref.args)
        values = [arg.binder if isinstance(arg, ir.Element) else getattr(arg, "value", arg) for arg in args]
        key = (ref.let, *values, *([place.binders, place.conditions] if args else []))
        if key not in self.used:
            stand_for = dict(zip(ref.let.binders, args, strict=True))
            if args:
                self.used[key] = replace(place, stand_for={**place.stand_for, **stand_for})
            else:
                self.used[key] = Place()
        self.stack.append((ref.let.body, self.used[key]))

    def of_set(self, index_set: ir.Set) -> None:
        """Push the condition of a set of rows at every row, or the numbers of a value set."""
        if index_set in self.opened:
            return
        self.opened.add(index_set)
        if isinstance(index_set, ir.RowSet) and index_set.row is not None:
            self.condition(index_set.where, Place(binders=(index_set.row,)))
        if isinstance(index_set, ir.ValueSet):
            parts = index_set.items or (index_set.low, index_set.high, index_set.step)
            self.stack.extend((part, OUTSIDE) for part in parts if part is not None)

    def condition(self, condition: ir.Expr | None, place: Place) -> Place:
        """Push each conjunct of a condition where those before it hold; the place where all hold."""
        for part in conjuncts(condition):
            self.stack.append((part, place))
            place = place.inside((), (part,))
        return place

    def bound(self, binders: Sequence[ir.Binder], condition: ir.Expr | None, place: Place) -> Place:
        """The place inside of binders and a condition on them; their sets and the condition are pushed."""
        for binder in binders:
            self.of_set(binder.domain)
            if isinstance(binder.domain, ir.Distribution | ir.VectorSet):
                self.stack.extend((arg, place) for arg in binder.domain.args)
            place = place.inside((binder,))
        return self.condition(condition, place)

    def visit(self, node: ir.Expr, place: Place) -> Iterator[tuple[Use, Place]]:
        """The uses of a node; its children are pushed."""
        match node:
            case ir.Reduce():
                kind = reductions.of(node)
                inner = self.bound(node.binders, node.condition, place)
                yield from ((use, place) for use in domains.of_options(kind, node.options))
                yield from ((use, inner) for use in domains.of_elements(kind, node.body))
                for k, binder in enumerate(node.binders):
                    before = place.inside(node.binders[:k])
                    yield from ((use, before) for use in domains.of_domain(binder.domain))
                self.stack.append((node.body, inner))
                self.stack.extend((option, place) for option in node.options.values())
                return
            case ir.Exists():
                self.bound((node.binder,), node.condition, place)
                return
            case ir.LetRef():
                self.let(node, place)
            case ir.Apply():
                yield from ((use, place) for use in domains.uses(node))
        self.stack.extend((child, place) for child in node.children)


# ------------------------------------------------------------------------------------------ judging
class Judge(memory.Owned):
    """Checks uses on the bound data.

    doubted  for each use, the numbers of the arguments that are not known to lie in their domains
    faults   the errors found
    """

    def __init__(self, bound: Bound):
        self.owner = weakref.ref(bound)
        self.ranges = Ranges(lambda node: _range(self.bound, node))
        self.doubted: dict[tuple[Domain, tuple[ir.Expr, ...]], frozenset[int]] = {}
        self.faults: list[Diagnostic] = []

    def run(self) -> Judge:
        """Check every use in the problem."""
        for use, place in occurrences(self.bound.problem):
            if use.asks.limited:
                key = use.asks, use.args
                self.doubted[key] = self(use, place) | self.doubted.get(key, frozenset())
        distinct = dict.fromkeys(self.faults)
        self.faults = sorted(distinct, key=lambda fault: fault.span.start if fault.span else -1)
        return self

    def __call__(self, use: Use, place: Place) -> frozenset[int]:
        """The numbers of the arguments that are not known to lie in their domains."""
        asked = use.asks.asked(len(use.args))
        where = [self.ranges(arg) if k in asked else REALS for k, arg in enumerate(use.args)]
        doubted = frozenset(fault.argument for fault in use.asks.doubts(where, use.names))
        if not doubted and use.asks.amiss is atoms.nothing:
            return doubted
        decided = [self.decided(arg) for arg in use.args]
        open_ = frozenset(k for k in doubted if not decided[k])
        if doubted == open_ and (use.asks.amiss is atoms.nothing or not any(decided)):
            return open_
        verdict = self.judged(use, decided, place)
        if isinstance(verdict, Diagnostic):
            self.faults.append(verdict)
        if verdict is True:
            return open_
        return doubted

    def judged(self, use: Use, decided: Sequence[bool], place: Place) -> bool | Diagnostic | None:
        """True, an error about the arguments that data decide, or None if there are too many combinations.

        First only the binders that the arguments depend on are tried. The others are needed only if a
        value is outside.
        """
        own = {b for arg, ok in zip(use.args, decided, strict=True) if ok for b in place.free(arg)}
        verdict, everything = self.tried(use, decided, place, own)
        if verdict is not True and not everything:
            undrawn = {b for b in place.binders if not domains.drawn(b)}
            verdict, everything = self.tried(use, decided, place, undrawn)
        if verdict is True or everything:
            return verdict
        return None

    def tried(
        self, use: Use, decided: Sequence[bool], place: Place, wanted: Collection[ir.Binder]
    ) -> tuple[bool | Diagnostic | None, bool]:
        """The verdict at the elements of some binders, and whether all conditions could be used.

        The elements satisfy the conditions that are about these binders alone.
        """
        outside = (place.outside(self.bound, c) for c in place.conditions)
        conditions = [c for c in outside if c is not None and set(ir.free_binders(c)) <= set(wanted)]
        binders = tuple(b for b in place.binders if b in wanted)
        return self.at(use, decided, place, binders, conditions), len(conditions) == len(place.conditions)

    def at(
        self,
        use: Use,
        decided: Sequence[bool],
        place: Place,
        binders: Sequence[ir.Binder],
        conditions: Sequence[ir.Expr],
    ) -> bool | Diagnostic | None:
        """The verdict at the elements of these binders that satisfy the conditions."""
        try:
            sizes = [len(elements.ids(self.bound, b.domain)) for b in binders]
            if len(binders) > 1 and math.prod(sizes) > MAX_COMBINATIONS:
                return None
            at = members.members(self.bound, binders, conjunction(conditions))
            if not len(at):
                return True
            wanted: Collection[int] = range(len(use.args))
            if use.asks.amiss is atoms.nothing:
                wanted = use.asks.asked(len(use.args))
            values = [
                self.values(arg, at, place) if ok and k in wanted else None
                for k, (arg, ok) in enumerate(zip(use.args, decided, strict=True))
            ]
            broken = use.asks.broken(values, use.names)
            if broken is not None:
                cells = self.cells(use.args[broken.argument], place, at, broken.case)
                return errors.outside(self.bound.problem, use, broken, cells)
            return self.fitting(use, values)
        except FccoError:  # an argument without a value is reported where it is evaluated
            return None

    def values(self, arg: ir.Expr, at: Members, place: Place) -> np.ndarray:
        """An argument's values at the members, one after the other."""
        from fccomodel.evaluation.interpret import Evaluator

        evaluator, env = Evaluator(self.bound, {}), dict(at.env)
        for binder, e in place.stand_for.items():
            if isinstance(e, ir.Const) or isinstance(e, ir.Element) and e.binder in at.env:
                env[binder] = evaluator.member(binder, e, at.env)
        return at.over(evaluator.value(arg, env)).numpy()

    def cells(self, arg: ir.Expr, place: Place, at: Members, case: int) -> list[str]:
        """The elements of the binders in one case, in words: ``i = b``, ``z = row 3 of D``."""
        own = {
            e.binder: b.name
            for b in ir.free_binders(arg)
            if isinstance(e := place.stand_for.get(b), ir.Element)
        }
        words = []
        for binder, ids in zip(at.binders, at.ids, strict=True):
            element = elements.name_of(self.bound, binder.domain, int(ids[case]))
            if isinstance(binder.domain, ir.RowSet):
                element = f"row {element} of {binder.domain.table}"
            words.append(f"{own.get(binder, binder.name)} = {element}")
        return words

    def fitting(self, use: Use, values: Sequence[np.ndarray | None]) -> bool | Diagnostic:
        """True, or an error if the arguments do not fit together in some case."""
        if use.asks.amiss is atoms.nothing:
            return True
        shape = elements.shape(self.bound, use.shape)
        cases = zip(*({id(v): v for v in values if v is not None}.values()), strict=True)
        first = {tuple(x.tobytes() for x in case): k for k, case in reversed(list(enumerate(cases)))}
        for k in first.values():
            reason = use.asks.amiss(shape, *(None if v is None else _plain(v[k]) for v in values))
            if reason:
                return errors.unfit(self.bound.problem, use, reason)
        return True

    # --------------------------------------------------------------------------------- known values
    def decided(self, arg: ir.Expr) -> bool:
        """Whether bound data and parameters decide the argument's value."""
        return domains.by_data(arg) and all(self._known(node) for node in ir.walk(arg))

    def _known(self, node: ir.Expr) -> bool:
        match node:
            case ir.Param(name=name):
                return name in self.bound.params or name in self.bound.arrays
            case ir.Size(dim=dim):
                return isinstance(dim, int) or dim in self.bound.dims
            case ir.Column(binder=binder) | ir.Element(binder=binder):
                return self._listed(binder.domain)
            case ir.Reduce(binders=binders):
                return all(self._listed(b.domain) for b in binders)
        return True

    def _listed(self, domain: ir.Set) -> bool:
        """Whether the elements of a set are known."""
        match domain:
            case ir.RowSet(table=table):
                return table in self.bound.tables
            case ir.LabelSet(name=name, labels=None):
                return name in self.bound.labels
            case ir.ValueSet() as numbers:
                parts = numbers.items or (numbers.low, numbers.high, numbers.step)
                return all(self.decided(part) for part in parts if part is not None)
        return True


def _plain(value: np.ndarray) -> Any:
    """An array as a number or a tensor."""
    if np.ndim(value):
        return elements.as_tensor(value)
    return float(value)


# ------------------------------------------------------------------------------------------- ranges
def _range(bound: Bound, node: ir.Expr) -> Interval:
    """The range of the entries of a leaf: of the bound data, else as declared."""
    match node:
        case ir.Param(name=name):
            known = bound.params if name in bound.params else bound.arrays
            if name in known:
                return remember(bound, ("hull", name), lambda: enclosing(np.asarray(known[name], float)))
            if name in bound.problem.params:
                return declared(bound.problem.params[name])
            return REALS
        case ir.Column(binder=binder, name=str(name)) if isinstance(binder.domain, ir.RowSet):
            table = bound.tables.get(binder.domain.table)
            if table is None or name not in table.columns or drawn(table.columns[name]):
                return REALS
            return remember(bound, ("hull", table.name, name), lambda: enclosing(table.columns[name]))
        case ir.Column(binder=binder) | ir.Element(binder=binder):
            return _of_set(bound, binder.domain)
    return REALS


def _of_set(bound: Bound, domain: ir.Set) -> Interval:
    """The range of the draws of a distribution, or of the entries of a set's vectors."""
    if not isinstance(domain, ir.Distribution | ir.VectorSet):
        return REALS
    ends = [Ranges(lambda node: _range(bound, node))(arg) for arg in domain.args]
    if isinstance(domain, ir.Distribution):
        drawn = distributions.get(domain.family)
        if drawn is None:
            return REALS
        return drawn.range(*ends)
    return sets.all()[domain.family].entries(*ends)
