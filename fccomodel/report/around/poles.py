"""A search for better points near poles: zeros of divisors, of arguments of logarithms, and of bases
of negative powers.

Near such a zero a function may fall without end, which optimality conditions at another point do
not show. The search starts from the point and looks for the zero of each such argument along the
argument's own gradient (secant method). For members of families and rows of tables it takes the
arguments nearest to 0. Then it evaluates the objective nearer and nearer to the zero, on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.rewrite import conjunction
from fccomodel.core.work import Meter
from fccomodel.evaluation.checks import domains
from fccomodel.evaluation.checks.domains import ExpressionPlace
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import elements
from fccomodel.evaluation.sets.members import Members, members
from fccomodel.library import domains as asked
from fccomodel.report.around.local_search import Better, arrays, gain_of, moved
from fccomodel.report.point.system import Array, System

#: The atoms that have a pole, or fall without end, if one of their arguments is 0; the number of that
#: argument.
POLES = {"div": 1, "log": 0, "inv": 0, "pow": 0}
#: What the verdict calls these arguments.
CALLED = {
    "div": "a divisor",
    "log": "the argument of a logarithm",
    "inv": "a divisor",
    "pow": "the base of a power",
}
#: Distances from the zero at which the objective is evaluated, relative to the way there.
APPROACHES = (1e-2, 1e-4, 1e-6)
#: Share of the fall before that each approach, 100 times nearer, must fall again if the function
#: falls without end.
LASTING = 0.5
#: Uses in a model that are looked at, at most.
MOST_USES = 20
#: Arguments of one use, at most.
MOST_ARGUMENTS = 3
#: Combinations of elements of a use's binders, at most.
MOST_MEMBERS = 100_000
#: Secant steps towards a zero, at most; an affine argument needs one.
SECANTS = 20
#: Size of an argument that counts as 0, relative to its size at the point.
ZERO = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class _Argument:
    """An argument that may go to 0.

    owner    the name of its atom
    place    where it stands in the model
    at       the members there
    number   of the entry among its values
    """

    owner: str
    expr: ir.Expr
    place: ExpressionPlace
    at: Members
    number: int


def beside(system: System, gain: float, meter: Meter) -> Better | None:
    """A feasible point near a pole whose objective is better by half of ``gain`` at least, or None."""
    for argument in _arguments(system, meter):
        for side in _sides(system, argument, meter):
            falls = []
            for step in side:
                if meter.left < 2 * system.forward_s:
                    return None
                meter.spend(2 * system.forward_s)
                falls.append((gain_of(system, step), step))
            known_falls = [(fall, step) for fall, step in falls if fall is not None]
            if not known_falls or (best := max(known_falls, key=lambda pair: pair[0]))[0] < gain / 2:
                continue
            endless = len(known_falls) == len(APPROACHES) and _lasting([fall for fall, _ in known_falls])
            return Better(
                gain=best[0],
                where=f"where {CALLED[argument.owner]} is nearly 0",
                point=arrays(moved(system, best[1])),
                pole=argument.expr,
                endless=endless,
            )
    return None


def _lasting(falls: list[float]) -> bool:
    """Whether each approach falls by a lasting share of the one before."""
    more = np.diff(falls)
    return bool((more > 0).all()) and all(more[1:] >= LASTING * more[:-1])


def _arguments(system: System, meter: Meter) -> Iterator[_Argument]:
    """The arguments with poles; for each use those nearest to 0."""
    seen: set[tuple[str, int, int]] = set()
    for use, place in domains.occurrences(system.problem):
        if use.kind != "atom" or use.owner not in POLES:
            continue
        expr = use.args[POLES[use.owner]]
        if asked.by_data(expr) or use.owner == "pow" and not _negative(use.args[1]):
            continue
        known = (use.owner, id(expr), id(place)) in seen
        if known or any(asked.drawn(binder) for binder in place.binders):
            continue
        seen.add((use.owner, id(expr), id(place)))
        if len(seen) > MOST_USES or meter.left < system.forward_s:
            return
        meter.spend(system.forward_s)
        yield from _nearest(system, use.owner, expr, place)


def _negative(exponent: ir.Expr) -> bool:
    """Whether a power may have a pole: its exponent is no number that is at least 0."""
    return not (isinstance(exponent, ir.Const) and exponent.value >= 0)


def _nearest(system: System, owner: str, expr: ir.Expr, place: ExpressionPlace) -> Iterator[_Argument]:
    """The entries of an argument that are nearest to 0."""
    own = place.free(expr)
    binders = tuple(binder for binder in place.binders if binder in own)
    conditions = [place.outside(system.bound, condition) for condition in place.conditions]
    own_conditions = [c for c in conditions if c is not None and set(ir.free_binders(c)) <= own]
    try:
        if math.prod(len(elements.ids(system.bound, binder.domain)) for binder in binders) > MOST_MEMBERS:
            return
        at = members(system.bound, binders, conjunction(own_conditions))
        if not len(at):
            return
        values = _values(system, system.point, expr, place, at).reshape(-1)
    except FccoError:  # what has no value here is reported where it is evaluated
        return
    sizes = values.detach().abs().numpy()
    for number in np.argsort(sizes, kind="stable")[:MOST_ARGUMENTS].tolist():
        if np.isfinite(sizes[number]) and sizes[number] > 0:
            yield _Argument(owner=owner, expr=expr, place=place, at=at, number=number)


def _values(
    system: System, point: dict[str, torch.Tensor], expr: ir.Expr, place: ExpressionPlace, at: Members
) -> torch.Tensor:
    """The values of an expression at the members of its place."""
    evaluator, env = Evaluator(system.bound, point, seed=system.seed), dict(at.env)
    for binder, e in place.stand_for.items():
        if isinstance(e, ir.Const) or isinstance(e, ir.Element) and e.binder in at.env:
            env[binder] = evaluator.member(binder, e, at.env)
    return at.over(evaluator.value(expr, env))


def _sides(system: System, argument: _Argument, meter: Meter) -> Iterator[list[Array]]:
    """Two lists of steps, to this side of the argument's zero and to the other side, each step nearer
    than the one before."""
    here, slope = _differentiated(system, argument)
    square = float(slope @ slope)
    if not square or not math.isfinite(square):
        return
    unit, way, value = slope / square, -here, here
    for _ in range(SECANTS):
        if meter.left < system.forward_s:
            return
        meter.spend(system.forward_s)
        there = _value(system, argument, way * unit)
        if there is None or there == value:
            return
        if abs(there) <= ZERO * abs(here):
            break
        if there == here:
            return
        way, value = way - there * (way / (there - here)), there
    else:
        return
    yield [way * (1 - near) * unit for near in APPROACHES]
    yield [way * (1 + near) * unit for near in APPROACHES]


def _differentiated(system: System, argument: _Argument) -> tuple[float, Array]:
    """The argument and its gradient at the point."""
    leaves = {name: value.clone().requires_grad_(True) for name, value in system.point.items()}
    value = _values(system, leaves, argument.expr, argument.place, argument.at).reshape(-1)[argument.number]
    if not value.requires_grad:
        return float(value), np.zeros(system.d)
    gradients = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
    parts = [torch.zeros_like(x) if g is None else g for g, x in zip(gradients, leaves.values(), strict=True)]
    return float(value.detach()), torch.cat([part.reshape(-1) for part in parts]).numpy()


def _value(system: System, argument: _Argument, step: Array) -> float | None:
    """The argument after a step, or None if it has no value."""
    try:
        with torch.no_grad():
            values = _values(system, moved(system, step), argument.expr, argument.place, argument.at)
    except FccoError:
        return None
    value = float(values.reshape(-1)[argument.number])
    if math.isfinite(value):
        return value
    return None
