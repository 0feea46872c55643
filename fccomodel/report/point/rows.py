"""The gradients of constraints and of the terms of kinks at a point, by the cheaper of two ways: a
backward pass for each gradient, or a forward derivative for every entry of the variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.core.work import Meter
from fccomodel.report import errors
from fccomodel.report.point.pairs import Array, Charge, pairs_of, tensors
from fccomodel.report.point.system import System

#: Entries of the gradients that are held, at most.
MOST_ENTRIES = 10_000_000
#: Passes over the rows that a choice of weights takes at least if the gradients are not held.
CHOICE_PASSES = 50
#: Evaluations that a derivative along a direction takes.
PASSES_OF_A_DIRECTION = 4.0
#: Evaluations that a gradient takes.
PASSES_OF_A_GRADIENT = 3.0
#: Gradients that are so few are always computed; columns that are computed to time many at once.
ALWAYS_COMPUTED = 16


@dataclass(frozen=True, eq=False, kw_only=True)
class Gradients:
    """Quantities that all least squares problems at a point share.

    weighed   the weights of kinks are chosen (else they are those of the largest terms, for want of
              work left)
    c         the gradients of the constraints kept, by row, kinks held fixed; None where only their
              products are known
    terms     by record, the numbers of the terms whose weights are unknown, in order, and their
              gradients by row
    """

    weighed: bool
    c: Array | None = None
    terms: tuple[tuple[Array, Array], ...] = ()


def gradients(system: System, meter: Meter) -> Gradients:
    """The gradients, if they are few enough to be held. If too little work is left, weights are not
    chosen."""
    constraints, records, d = len(system.kept), system.records, system.d
    if not records and not constraints:
        return Gradients(weighed=True, c=np.zeros((0, d)))
    if records and PASSES_OF_A_DIRECTION * system.forward_s > meter.left:
        return _without_weights(system, meter)
    few_constraints = constraints <= ALWAYS_COMPUTED and constraints * d <= MOST_ENTRIES
    if not records and few_constraints and constraints < d:
        meter.spend(constraints * PASSES_OF_A_GRADIENT * system.forward_s)
        return Gradients(weighed=True, c=_finite(system, _by_row(system, [])[0]))
    wanted = _wanted(system)
    count = constraints + sum(map(len, wanted))
    if records and ALWAYS_COMPUTED < count < d:
        foreseen = min(count, CHOICE_PASSES) * PASSES_OF_A_DIRECTION * system.forward_s
        if foreseen > meter.left:
            return _without_weights(system, meter)
    _, push_s = meter.count(lambda: system.push(np.eye(1, d)[0]))
    pass_s = push_s + system.forward_s
    passes: float = count
    if count >= d:
        passes = d / _together(system, meter)
    affordable = count <= ALWAYS_COMPUTED or passes * pass_s < meter.left
    choice_affordable = CHOICE_PASSES * pass_s < meter.left
    weighed = not records or affordable or choice_affordable
    if not weighed:
        wanted = [np.zeros(0, dtype=int) for _ in wanted]
        count = constraints
    unaffordable_terms = weighed and records and not affordable
    if count * d > MOST_ENTRIES or unaffordable_terms:
        return Gradients(weighed=weighed)
    meter.spend(min(count, passes) * pass_s)
    if count < d:
        c, terms = _by_row(system, wanted)
    else:
        c, terms = _by_column(system, wanted)
    for part in (c, *terms):
        _finite(system, part)
    return Gradients(weighed=weighed, c=c, terms=tuple(zip(wanted, terms, strict=True)))


def _finite(system: System, part: Array) -> Array:
    """The gradients; raises F0701 if some are not finite."""
    if not np.isfinite(part).all():
        refuse(errors.gradient(system.problem.objective.span), source=system.problem.source)
    return part


def _without_weights(system: System, meter: Meter) -> Gradients:
    """The gradients of constraints that are few, where even the price of choosing weights of kinks takes
    more work than is left."""
    count = len(system.kept)
    if count > ALWAYS_COMPUTED or count * system.d > MOST_ENTRIES:
        return Gradients(weighed=False)
    meter.spend(count * PASSES_OF_A_GRADIENT * system.forward_s)
    nothing = tuple((np.zeros(0, dtype=int), np.zeros((0, system.d))) for _ in system.records)
    return Gradients(weighed=False, c=_finite(system, _by_row(system, [])[0]), terms=nothing)


def _together(system: System, meter: Meter) -> float:
    """The number of columns that take the work of one if many are computed at once."""

    def some(count: int) -> None:
        """Pull some columns, to measure the cost."""
        for _ in zip(range(count), system.columns(count), strict=False):
            pass

    count = min(ALWAYS_COMPUTED, system.d)
    one_s = meter.count(partial(some, 1))[1]
    all_s = meter.count(partial(some, count))[1]
    return max(1.0, count * one_s / max(all_s, 1e-9))


def _wanted(system: System) -> list[Array]:
    """The numbers of the terms whose weights are unknown, for each record."""
    instances: list[list[Array]] = [[np.zeros(0, dtype=int)] for _ in system.records]
    for pair in pairs_of(system, weighed=True)[0]:
        instances[pair.record].append(pair.numbers.ravel())
    return [np.flatnonzero(np.bincount(np.concatenate(parts))) for parts in instances]


def _by_row(system: System, wanted: Sequence[Array]) -> tuple[Array, list[Array]]:
    """The gradients of the constraints kept and of the wanted terms, by backward passes."""
    c = system.rows(system.c, system.kept)
    terms = zip(system.records, wanted, strict=False)
    return c, [system.rows(record.terms, numbers) for record, numbers in terms]


def _by_column(system: System, wanted: Sequence[Array]) -> tuple[Array, list[Array]]:
    """The gradients by a forward derivative for every entry of the variables."""
    c = np.empty((len(system.kept), system.d))
    rows = [np.empty((len(numbers), system.d)) for numbers in wanted]
    for j, (moved, terms) in system.columns():
        c[:, j] = moved[system.kept]
        for mine, t, numbers in zip(rows, terms, wanted, strict=True):
            mine[:, j] = t.ravel()[numbers]
    return c, rows


def constraint_rows(system: System, shared: Gradients) -> Array | None:
    """The gradients of the constraints kept, by row, with kinks at their largest terms; None if they are
    not held."""
    if shared.c is None:
        return None
    top = [record.top() for record in system.records]
    rows = shared.c.copy()
    held: dict[int, list[Charge]] = {}
    for pair in (p for p in pairs_of(system, weighed=False)[1] if p.function):
        held.setdefault(pair.function - 1, []).append(pair.charge(top[pair.record][pair.instances]))
    if len(held) <= system.d:
        for k, charges in held.items():
            rows[k] += system.pull(tensors(system, charges))
        return rows
    for j, (_, moved) in system.columns():
        for k, charges in held.items():
            rows[k, j] += sum(
                float((weights * moved[record][instances]).sum()) for record, instances, weights in charges
            )
    return rows
