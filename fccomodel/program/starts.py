"""Programs that continue from the end of another program: initial values, and final values for the next
program.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import members
from fccomodel.library.proximal import Piecewise
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.plan.starts import Kept
from fccomodel.program.lower import BlockSteps, Layout, Lowered, LoweredSteps

#: names of settings that a run finds, beside the smoothing of each centre
FOUND = ("rho", "weight", "steep", "pass_step")
#: numbers that the pairs of a quasi-Newton method may be, to be kept
MOST_PAIRED = 1 << 17
#: penalties allow so many times the multipliers that a run begins with
ROOM = 4.0


def kept(layout: Layout, final: Any, inside: Collection[str] = ()) -> Kept:
    """The final values of a run for the next run.

    Estimates are kept only if no full passes came after the steps, since they belong to the last step.
    Centres ``inside`` expectations, which each row has, are computed again.
    """
    w, h = final.w.double().numpy(), final.h
    if getattr(final, "u", None) is not None and getattr(final, "way", "") != "finish":
        estimates = vars(final.u)
    else:
        estimates = {}
    found = {name: float(getattr(h, name)) for name in vars(h) if name in FOUND or name.startswith("lam_y")}
    return Kept(
        variables={name: w[a:b].reshape(shape) for name, (a, b, shape) in layout.items()},
        centres={
            name: value.cpu().double().numpy() for name, value in vars(final.c).items() if name not in inside
        },
        estimates={name: value.cpu().double().numpy() for name, value in estimates.items()},
        settings={name: value for name, value in found.items() if math.isfinite(value)},
        pairs=_paired(getattr(final, "pairs", []), w.size),
    )


def _paired(pairs: Sequence[Any], size: int) -> np.ndarray | None:
    """The last pairs as arrays."""
    if 2 * size <= MOST_PAIRED:
        pairs = pairs[-(MOST_PAIRED // (2 * max(size, 1))) :]
    else:
        pairs = []
    if pairs:
        return np.stack([[s.cpu().numpy(), y.cpu().numpy()] for s, y, _ in pairs], axis=1)
    return None


def first(lowered: LoweredSteps) -> np.ndarray | None:
    """The first w, where somebody gave some of it: all variables as one vector, others at zero, nets
    at their initialisation."""
    start, problem = lowered.plan.start, lowered.bound
    if start is None:
        return None
    w = np.zeros(max((stop for _, stop, _ in lowered.layout.values()), default=0))
    for name, (a, b, _) in lowered.layout.items():
        net = lowered.normal.variables[name].net
        if name in start.values:
            w[a:b] = np.asarray(start.values[name], dtype=float).reshape(-1)
        elif net is not None:
            w[a:b] = np.concatenate(
                [p.detach().cpu().double().numpy().reshape(-1) for p in problem.nets[net].parameters()]
            )
    return w


def centres(lowered: Lowered) -> dict[str, np.ndarray]:
    """The first centres: those kept, and for penalties by the multipliers."""
    start, shapes = lowered.plan.start, lowered.steps.state.centres
    if start is None or lowered.plan.pace != "practical":
        return {}
    if start.multipliers:
        by_label = dict(_of_penalties(lowered))
    else:
        by_label = {}
    whole = {name: value for name, value in start.kept.centres.items() if value.shape == shapes.get(name)}
    return {name: value for name, value in {**by_label, **whole}.items() if name in shapes}


def estimates(lowered: Lowered) -> dict[str, np.ndarray]:
    """The first estimates of inner expectations: those kept."""
    start, steps = lowered.plan.start, lowered.steps
    if start is None or lowered.plan.pace != "practical" or not isinstance(steps, BlockSteps):
        return {}
    shapes = {buffer.name: tuple(buffer.shape) for buffer in steps.state.buffers.values()}
    shapes |= {name: steps.state.centres[name] for name in lowered.estimated}
    return {name: value for name, value in start.kept.estimates.items() if value.shape == shapes.get(name)}


def pairs(lowered: Lowered) -> np.ndarray | None:
    """The pairs of the quasi-Newton method that were kept, if they have as many variables."""
    start, length = lowered.plan.start, max((stop for _, stop, _ in lowered.layout.values()), default=0)
    if start is None or lowered.plan.pace != "practical" or start.kept.pairs is None:
        return None
    if start.kept.pairs.shape[2] == length:
        return start.kept.pairs
    return None


def settings(lowered: Lowered) -> dict[str, Any]:
    """Settings that a run found before, or a penalty that is strong enough for the multipliers to
    begin with."""
    start = lowered.plan.start
    if start is None or lowered.plan.pace != "practical":
        return {}
    names, values = lowered.steps.state.centres, start.kept.settings
    if values and all(f"lam_{s.name}" in values for s in lowered.centred):
        known = {f"lam_{name}" for name in names}
        return {
            **{name: value for name, value in values.items() if name in FOUND or name in known},
            "kept": True,
        }
    largest = ROOM * max(map(abs, start.multipliers.values()), default=0.0)
    rho = float(lowered.plan.hyper.get("rho", 0.0))
    if rho and largest > rho:
        return {"rho": largest}
    return {}


def _of_penalties(lowered: Lowered) -> Iterator[tuple[str, np.ndarray]]:
    """By centre, the slopes at which the penalties have the multipliers of their constraints; 0 for
    members without a multiplier.
    """
    assert lowered.plan.start is not None
    for constraint in lowered.normal.reformed.constraints:
        penalty = lowered.normal.penalties.get(constraint.label)
        if isinstance(penalty, Smoothed) and penalty.name in lowered.steps.state.centres:
            slopes = _slopes(lowered.bound, constraint, penalty, lowered.plan.start.multipliers)
            array = np.zeros(lowered.steps.state.centres[penalty.name])
            array[slopes[0]] = slopes[1]
            yield penalty.name, array


def _slopes(
    bound: Bound, constraint: ir.Constraint, penalty: Smoothed, multipliers: Any
) -> tuple[Any, np.ndarray]:
    """The places of a family's members in the array of their centres, and the slopes of these members."""
    family = members.of(bound, constraint)
    order = [
        constraint.binders.index(b)
        for b in dict.fromkeys(b for a in penalty.args for b in ir.free_binders(a))
    ]
    values = np.array([multipliers.get(label, 0.0) for label in family.labels(constraint.label)])
    if isinstance(penalty.function, Piecewise):
        low, high = penalty.function.graph.slopes
    else:
        low, high = (-math.inf, math.inf)
    (below, above), up = penalty.units, values >= 0 if low < 0 < high else np.full(values.shape, high > 0)
    return tuple(family.ids[k] for k in order) or (...,), np.where(up, values * above, values * below)
