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
    key = (use.asks, use.args)
    if key not in judge.doubted:
        binders: dict[ir.Binder, None] = {}
        for arg in use.args:
            binders |= dict.fromkeys(ir.free_binders(arg))
        judge.doubted[key] = judge(use, ExpressionPlace(binders=tuple(binders)))
    return argument not in judge.doubted[key]


def _judge(bound: Bound) -> Judge:
    """The checks of a bound problem's uses, made once."""
    return remember(bound, "domains", lambda: Judge(bound).run())


# -------------------------------------------------------------------------------------- occurrences
@dataclass(frozen=True, eq=False, kw_only=True)
class ExpressionPlace:
    """The place of an expression: the binders around it, and the conditions that hold there.

    stand_for  inside a family of lets: the arguments of its use by the family's binders, each an
               element of a binder around the use or a number
    """

    binders: tuple[ir.Binder, ...] = ()
    conditions: tuple[ir.Expr, ...] = ()
    stand_for: Mapping[ir.Binder, ir.Expr] = field(default_factory=dict)

    def inside(self, binders: Sequence[ir.Binder], conditions: Sequence[ir.Expr] = ()) -> ExpressionPlace:
        """The place inside of further binders and conditions."""
        return replace(
            self,
            binders=(*self.binders, *binders),
            conditions=(*self.conditions, *conditions),
        )

    def meant(self, arg: ir.Expr) -> ir.Expr:
        """An argument of a let in terms of the binders around."""
        if isinstance(arg, ir.Element):
            return self.stand_for.get(arg.binder, arg)
        return arg

    def free(self, expr: ir.Expr) -> set[ir.Binder]:
        """The binders around that an expression depends on."""
        binders = set()
        for binder in ir.free_binders(expr):
            element = self.meant(ir.Element(binder=binder))
            if isinstance(element, ir.Element):
                binders.add(element.binder)
        return binders

    def outside(self, bound: Bound, condition: ir.Expr) -> ir.Expr | None:
        """A condition in terms of the binders around, or None.

        It is None if an element of another set stands for one of the condition's binders.
        """
        replacements: dict[ir.Binder, ir.Expr] = {}
        for binder in ir.free_binders(condition):
            if binder not in self.stand_for:
                continue
            meant = self.stand_for[binder]
            if isinstance(meant, ir.Element) and meant.binder.domain is not binder.domain:
                return None
            if isinstance(meant, ir.Const):
                numbers = elements.values(bound, binder.domain)
                meant = ir.Const(value=float(numbers[int(meant.value)]))
            replacements[binder] = meant
        if replacements:
            return substitute(condition, replacements)
        return condition


OUTSIDE = ExpressionPlace()


def occurrences(problem: ir.Problem) -> Iterator[tuple[Use, ExpressionPlace]]:
    """All uses of values in a problem that have a domain, each with its place."""
    for variable in problem.variables.values():
        for domain in variable.sets:
            yield from ((use, OUTSIDE) for use in domains.of_domain(domain))
    yield from _Walk(problem).run()


@dataclass(eq=False)
class _Walk:
    """A walk over every node at each of its places. Unused lets are visited at all their members."""

    problem: ir.Problem
    stack: list[tuple[ir.Expr, ExpressionPlace]] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    opened: set[ir.Set] = field(default_factory=set)
    used: dict[tuple[Any, ...], ExpressionPlace] = field(
        default_factory=dict
    )  # places of lets' bodies, by use

    def run(self) -> Iterator[tuple[Use, ExpressionPlace]]:
        """The uses in the problem."""
        problem = self.problem
        self.stack.append((problem.objective.expr, OUTSIDE))
        for constraint in problem.constraints:
            place = self.bound(constraint.binders, constraint.condition, OUTSIDE)
            self.stack.append((constraint.body, place))
        for index_set in problem.sets.values():
            self.of_set(index_set)
        yield from self.visited()
        for let in reversed(list(problem.lets.values())):
            is_used = any(key[0] is let for key in self.used)
            if not is_used:
                place = self.bound(let.binders, let.condition, OUTSIDE)
                self.stack.append((let.body, place))
                yield from self.visited()

    def visited(self) -> Iterator[tuple[Use, ExpressionPlace]]:
        """The uses in the expressions on the stack and below them."""
        while self.stack:
            node, place = self.stack.pop()
            key = (id(node), id(place))
            if key not in self.seen:
                self.seen.add(key)
                yield from self.visit(node, place)

    def let(self, ref: ir.LetRef, place: ExpressionPlace) -> None:
        """Push the body of a let at the place of a use; the same use at one place counts once."""
        args = tuple(place.meant(arg) for arg in ref.args)
        values = [arg.binder if isinstance(arg, ir.Element) else getattr(arg, "value", arg) for arg in args]
        key: tuple[Any, ...] = (ref.let, *values)
        if args:
            key = (*key, place.binders, place.conditions)
        if key not in self.used:
            self.used[key] = ExpressionPlace()
            if args:
                stand_for = dict(zip(ref.let.binders, args, strict=True))
                self.used[key] = replace(place, stand_for={**place.stand_for, **stand_for})
        self.stack.append((ref.let.body, self.used[key]))

    def of_set(self, index_set: ir.Set) -> None:
        """Push the condition of a set of rows at every row, or the numbers of a value set."""
        if index_set in self.opened:
            return
        self.opened.add(index_set)
        if isinstance(index_set, ir.RowSet) and index_set.row is not None:
            self.condition(index_set.where, ExpressionPlace(binders=(index_set.row,)))
        if isinstance(index_set, ir.ValueSet):
            parts = index_set.items or (index_set.low, index_set.high, index_set.step)
            self.stack.extend((part, OUTSIDE) for part in parts if part is not None)

    def condition(self, condition: ir.Expr | None, place: ExpressionPlace) -> ExpressionPlace:
        """Push each conjunct of a condition where those before it hold; the place where all hold."""
        for part in conjuncts(condition):
            self.stack.append((part, place))
            place = place.inside((), (part,))
        return place

    def bound(
        self, binders: Sequence[ir.Binder], condition: ir.Expr | None, place: ExpressionPlace
    ) -> ExpressionPlace:
        """The place inside of binders and a condition on them; their sets and the condition are pushed."""
        for binder in binders:
            self.of_set(binder.domain)
            if isinstance(binder.domain, ir.Distribution | ir.VectorSet):
                self.stack.extend((arg, place) for arg in binder.domain.args)
            place = place.inside((binder,))
        return self.condition(condition, place)

    def visit(self, node: ir.Expr, place: ExpressionPlace) -> Iterator[tuple[Use, ExpressionPlace]]:
        """The uses of a node; its children are pushed."""
        match node:
            case ir.Reduce():
                yield from self.reduction(node, place)
                return
            case ir.Exists():
                self.bound((node.binder,), node.condition, place)
                return
            case ir.LetRef():
                self.let(node, place)
            case ir.Apply():
                yield from ((use, place) for use in domains.uses(node))
        self.stack.extend((child, place) for child in node.children)

    def reduction(self, node: ir.Reduce, place: ExpressionPlace) -> Iterator[tuple[Use, ExpressionPlace]]:
        """The uses of a reduction; its body, its options and its conditions are pushed."""
        kind = reductions.of(node)
        inner = self.bound(node.binders, node.condition, place)
        yield from ((use, place) for use in domains.of_options(kind, node.options))
        yield from ((use, inner) for use in domains.of_elements(kind, node.body))
        for k, binder in enumerate(node.binders):
            before = place.inside(node.binders[:k])
            yield from ((use, before) for use in domains.of_domain(binder.domain))
        self.stack.append((node.body, inner))
        self.stack.extend((option, place) for option in node.options.values())


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
                key = (use.asks, use.args)
                before = self.doubted.get(key, frozenset())
                self.doubted[key] = self(use, place) | before
        distinct = dict.fromkeys(self.faults)
        self.faults = sorted(distinct, key=_start)
        return self

    def __call__(self, use: Use, place: ExpressionPlace) -> frozenset[int]:
        """The numbers of the arguments that are not known to lie in their domains."""
        limited = use.asks.asked(len(use.args))
        ranges = [self.ranges(arg) if k in limited else REALS for k, arg in enumerate(use.args)]
        doubted = frozenset(fault.argument for fault in use.asks.doubts(ranges, use.names))
        alone = use.asks.amiss is atoms.nothing  # no condition on several arguments together
        if not doubted and alone:
            return doubted
        decided = [self.decided(arg) for arg in use.args]
        undecided = frozenset(k for k in doubted if not decided[k])
        if doubted == undecided and (alone or not any(decided)):
            return undecided
        verdict = self.judged(use, decided, place)
        if isinstance(verdict, Diagnostic):
            self.faults.append(verdict)
        if verdict is True:
            return undecided
        return doubted

    def judged(self, use: Use, decided: Sequence[bool], place: ExpressionPlace) -> bool | Diagnostic | None:
        """True, an error about the arguments that data decide, or None if there are too many combinations.

        First only the binders that the arguments depend on are tried. The others are needed only if a
        value is outside.
        """
        own: set[ir.Binder] = set()
        for arg, is_decided in zip(use.args, decided, strict=True):
            if is_decided:
                own |= place.free(arg)
        verdict, all_conditions = self.tried(use, decided, place, own)
        if verdict is not True and not all_conditions:
            undrawn = {binder for binder in place.binders if not domains.drawn(binder)}
            verdict, all_conditions = self.tried(use, decided, place, undrawn)
        if verdict is True or all_conditions:
            return verdict
        return None

    def tried(
        self, use: Use, decided: Sequence[bool], place: ExpressionPlace, wanted: Collection[ir.Binder]
    ) -> tuple[bool | Diagnostic | None, bool]:
        """The verdict at the elements of some binders, and whether all conditions could be used.

        The elements satisfy the conditions that are about these binders alone.
        """
        conditions = []
        for condition in place.conditions:
            outside = place.outside(self.bound, condition)
            if outside is not None and set(ir.free_binders(outside)) <= set(wanted):
                conditions.append(outside)
        binders = tuple(binder for binder in place.binders if binder in wanted)
        verdict = self.at(use, decided, place, binders, conditions)
        return verdict, len(conditions) == len(place.conditions)

    def at(
        self,
        use: Use,
        decided: Sequence[bool],
        place: ExpressionPlace,
        binders: Sequence[ir.Binder],
        conditions: Sequence[ir.Expr],
    ) -> bool | Diagnostic | None:
        """The verdict at the elements of these binders that satisfy the conditions."""
        try:
            sizes = [len(elements.ids(self.bound, binder.domain)) for binder in binders]
            if len(binders) > 1 and math.prod(sizes) > MAX_COMBINATIONS:
                return None
            at = members.members(self.bound, binders, conjunction(conditions))
            if not len(at):
                return True
            wanted: Collection[int] = range(len(use.args))
            if use.asks.amiss is atoms.nothing:
                wanted = use.asks.asked(len(use.args))
            values: list[np.ndarray | None] = [None] * len(use.args)
            for k, arg in enumerate(use.args):
                if decided[k] and k in wanted:
                    values[k] = self.values(arg, at, place)
            broken = use.asks.broken(values, use.names)
            if broken is not None:
                cells = self.cells(use.args[broken.argument], place, at, broken.case)
                return errors.outside(self.bound.problem, use, broken, cells)
            return self.fitting(use, values)
        except FccoError:  # an argument without a value is reported where it is evaluated
            return None

    def values(self, arg: ir.Expr, at: Members, place: ExpressionPlace) -> np.ndarray:
        """An argument's values at the members, one after the other."""
        from fccomodel.evaluation.interpret import Evaluator

        evaluator = Evaluator(self.bound, {})
        env = dict(at.env)
        for binder, meant in place.stand_for.items():
            is_member = isinstance(meant, ir.Element) and meant.binder in at.env
            if isinstance(meant, ir.Const) or is_member:
                env[binder] = evaluator.member(binder, meant, at.env)
        return at.over(evaluator.value(arg, env)).numpy()

    def cells(self, arg: ir.Expr, place: ExpressionPlace, at: Members, case: int) -> list[str]:
        """The elements of the binders in one case, in words: ``i = b``, ``z = row 3 of D``."""
        names = {}  # of the binders, as the argument has them
        for inner in ir.free_binders(arg):
            meant = place.stand_for.get(inner)
            if isinstance(meant, ir.Element):
                names[meant.binder] = inner.name
        words = []
        for binder, ids in zip(at.binders, at.ids, strict=True):
            element = elements.name_of(self.bound, binder.domain, int(ids[case]))
            if isinstance(binder.domain, ir.RowSet):
                element = f"row {element} of {binder.domain.table}"
            words.append(f"{names.get(binder, binder.name)} = {element}")
        return words

    def fitting(self, use: Use, values: Sequence[np.ndarray | None]) -> bool | Diagnostic:
        """True, or an error if the arguments do not fit together in some case."""
        if use.asks.amiss is atoms.nothing:
            return True
        shape = elements.shape(self.bound, use.shape)
        arrays = {id(value): value for value in values if value is not None}
        cases = list(enumerate(zip(*arrays.values(), strict=True)))
        first: dict[tuple[bytes, ...], int] = {}  # the first case with these values
        for k, case in reversed(cases):
            first[tuple(x.tobytes() for x in case)] = k
        for k in first.values():
            args = [None if value is None else _plain(value[k]) for value in values]
            reason = use.asks.amiss(shape, *args)
            if reason:
                return errors.unfit(self.bound.problem, use, reason)
        return True

    # --------------------------------------------------------------------------------- known values
    def decided(self, arg: ir.Expr) -> bool:
        """Whether bound data and parameters decide the argument's value."""
        return domains.by_data(arg) and all(self._known(node) for node in ir.walk(arg))

    def _known(self, node: ir.Expr) -> bool:
        """Whether bound data give the value of a leaf, or the elements of a reduction."""
        match node:
            case ir.Param(name=name):
                return name in self.bound.params or name in self.bound.arrays
            case ir.Size(dim=dim):
                return isinstance(dim, int) or dim in self.bound.dims
            case ir.Column(binder=binder) | ir.Element(binder=binder):
                return self._listed(binder.domain)
            case ir.Reduce(binders=binders):
                return all(self._listed(binder.domain) for binder in binders)
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


def _start(fault: Diagnostic) -> int:
    """The place of an error in the source, -1 without one."""
    if fault.span is None:
        return -1
    return fault.span.start


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
            return _of_param(bound, name)
        case ir.Column(binder=binder, name=str(name)) if isinstance(binder.domain, ir.RowSet):
            table = bound.tables.get(binder.domain.table)
            if table is None or name not in table.columns or drawn(table.columns[name]):
                return REALS
            values = table.columns[name]
            return remember(bound, ("hull", table.name, name), lambda: enclosing(values))
        case ir.Column(binder=binder) | ir.Element(binder=binder):
            return _of_set(bound, binder.domain)
    return REALS


def _of_param(bound: Bound, name: str) -> Interval:
    """The range of the entries of a parameter or an array."""
    arrays = bound.params if name in bound.params else bound.arrays
    if name in arrays:
        values = arrays[name]
        return remember(bound, ("hull", name), lambda: enclosing(np.asarray(values, float)))
    if name in bound.problem.params:
        return declared(bound.problem.params[name])
    return REALS


def _of_set(bound: Bound, domain: ir.Set) -> Interval:
    """The range of the draws of a distribution, or of the entries of a set's vectors."""
    if not isinstance(domain, ir.Distribution | ir.VectorSet):
        return REALS
    ranges = Ranges(lambda node: _range(bound, node))
    ends = [ranges(arg) for arg in domain.args]
    if isinstance(domain, ir.VectorSet):
        return sets.all()[domain.family].entries(*ends)
    distribution = distributions.get(domain.family)
    if distribution is None:
        return REALS
    return distribution.range(*ends)
