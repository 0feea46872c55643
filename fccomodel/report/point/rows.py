"""The gradients of constraints and of the terms of kinks at a point, by the cheaper of two ways: one
backward pass for each, or one forward derivative for every entry of the variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from fccomodel.core.diagnostics import refuse
from fccomodel.core.work import Meter
from fccomodel.report import errors
from fccomodel.report.point.pairs import Array, Charge, pairs_of, tensors
from fccomodel.report.point.system import System

#: Entries of the gradients that are held at most; passes that a choice of weights without them
#: takes at least, and a few.
MOST_ENTRIES, PASSES, FEW = 10_000_000, 50, 16


@dataclass(frozen=True, eq=False, kw_only=True)
class Gradients:
    """What all least squares problems at a point share.

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
    """The gradients, where they are few enough to be held; weights are not chosen where the work left
    is too little."""
    if not system.records and not len(system.kept):
        return Gradients(weighed=True, c=np.zeros((0, system.d)))
    pass_s = meter.count(lambda: system.push(np.eye(1, system.d)[0]))[1] + system.forward_s
    wanted = _wanted(system)
    size = len(system.kept) + sum(map(len, wanted))
    passes = size if size < system.d else system.d / _together(system, meter)
    soon = size <= FEW or passes * pass_s < meter.left
    weighed = not system.records or soon or PASSES * pass_s < meter.left
    if not weighed:
        wanted, size = [np.zeros(0, dtype=int) for _ in wanted], len(system.kept)
    if size * system.d > MOST_ENTRIES or weighed and system.records and not soon:
        return Gradients(weighed=weighed)
    meter.spend(min(size, passes) * pass_s)
    if size < system.d:
        c, terms = _by_row(system, wanted)
    else:
        c, terms = _by_column(system, wanted)
    if not all(np.isfinite(part).all() for part in (c, *terms)):
        refuse(errors.gradient(system.problem.objective.span), source=system.problem.source)
    return Gradients(weighed=weighed, c=c, terms=tuple(zip(wanted, terms, strict=True)))


def _together(system: System, meter: Meter) -> float:
    """How many columns take the work of one."""

    def some(count: int) -> None:
        for _ in zip(range(count), system.columns(count), strict=False):
            pass

    one, few = (meter.count(partial(some, count))[1] for count in (1, min(FEW, system.d)))
    return max(1.0, min(FEW, system.d) * one / max(few, 1e-9))


def _wanted(system: System) -> list[Array]:
    """By record, the numbers of the terms whose weights are unknown."""
    found: list[list[Array]] = [[np.zeros(0, dtype=int)] for _ in system.records]
    for pair in pairs_of(system, weighed=True)[0]:
        found[pair.record].append(pair.numbers.ravel())
    return [np.flatnonzero(np.bincount(np.concatenate(parts))) for parts in found]


def _by_row(system: System, wanted: Sequence[Array]) -> tuple[Array, list[Array]]:
    def rows(part: torch.Tensor, numbers: Array) -> Array:
        found = np.empty((len(numbers), system.d))
        for row, k in zip(found, numbers, strict=True):
            one = np.zeros(part.numel())
            one[k] = 1.0
            row[:] = system.pull([(part, one.reshape(tuple(part.shape)))])
        return found

    return rows(system.c, system.kept), [
        rows(r.terms, k) for r, k in zip(system.records, wanted, strict=True)
    ]


def _by_column(system: System, wanted: Sequence[Array]) -> tuple[Array, list[Array]]:
    c = np.empty((len(system.kept), system.d))
    rows = [np.empty((len(numbers), system.d)) for numbers in wanted]
    for j, (moved, terms) in system.columns():
        c[:, j] = moved[system.kept]
        for mine, t, numbers in zip(rows, terms, wanted, strict=True):
            mine[:, j] = t.ravel()[numbers]
    return c, rows


def constraint_rows(system: System, shared: Gradients) -> Array | None:
    """The gradients of the constraints kept, by row, kinks at their largest terms; None where they are
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
