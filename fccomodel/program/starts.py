"""Programs that continue from the end of another program: initial values, and final values for the next
program.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.options import AUTOMATIC
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import members
from fccomodel.library.proximal import Piecewise
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.plan.starts import EndOfRun
from fccomodel.program.lower import BlockSteps, Layout, Lowered, LoweredSteps

#: Names of settings that a run determines, besides the smoothing of each centre.
DETERMINED = ("rho", "weight", "steep", "pass_step")
#: Settings that stages change. A run of a net goes on with them, unless somebody gives others.
OF_STAGES = ("eta", "gamma", "gamma_prime", "stage", "together")
#: Largest number of entries of the pairs of a quasi-Newton method that are kept.
MOST_PAIRED = 1 << 17
#: Penalties allow multipliers that are larger by this factor than those that a run begins with.
ROOM = 4.0


def kept(layout: Layout, final: Any, inside: Collection[str] = ()) -> EndOfRun:
    """The final values of a run for the next run.

    Estimates are kept only if no full passes came after the steps, since they belong to the last step.
    Centres ``inside`` expectations, which each row has, are computed again.
    """
    w = final.w.double().numpy()
    estimates: dict[str, Any] = {}
    moments: dict[str, Any] = {}
    if getattr(final, "u", None) is not None and getattr(final, "way", "") != "finish":
        estimates, moments = vars(final.u), final.moments or {}
    centres = {name: value for name, value in vars(final.c).items() if name not in inside}
    settings = {}
    for name, value in vars(final.h).items():
        if name in (*DETERMINED, *OF_STAGES) or name.startswith("lam_y"):
            settings[name] = float(value)
    settings["eta"] = float(getattr(final.h, "peak", 0.0))  # a stage begins with it
    return EndOfRun(
        variables={name: w[a:b].reshape(shape) for name, (a, b, shape) in layout.items()},
        centres={name: value.cpu().double().numpy() for name, value in centres.items()},
        estimates={name: value.cpu().double().numpy() for name, value in estimates.items()},
        moments={name: value.cpu().double().numpy() for name, value in moments.items()},
        settings={name: value for name, value in settings.items() if math.isfinite(value)},
        pairs=_paired(getattr(final, "pairs", []), w.size),
    )


def _paired(pairs: Sequence[Any], size: int) -> np.ndarray | None:
    """The last pairs of a quasi-Newton method as arrays; None if there are none, or if they are too large."""
    if 2 * size > MOST_PAIRED:
        return None
    pairs = pairs[-(MOST_PAIRED // (2 * max(size, 1))) :]
    if not pairs:
        return None
    return np.stack([[s.cpu().numpy(), y.cpu().numpy()] for s, y, _ in pairs], axis=1)


def first(lowered: LoweredSteps) -> np.ndarray | None:
    """The initial w, or None if no variable has an initial value.

    It is all variables as one vector. Variables without an initial value are 0; nets have the
    parameters of their initialisation.
    """
    start = lowered.plan.start
    if start is None:
        return None
    w = np.zeros(_size(lowered))
    for name, (a, b, _) in lowered.layout.items():
        net = lowered.normal.variables[name].net
        if name in start.values:
            w[a:b] = np.asarray(start.values[name], dtype=float).reshape(-1)
        elif net is not None:
            parameters = lowered.bound.nets[net].parameters()
            arrays = [p.detach().cpu().double().numpy() for p in parameters]
            w[a:b] = np.concatenate([array.reshape(-1) for array in arrays])
    return w


def _size(lowered: LoweredSteps) -> int:
    """The number of entries of w."""
    return max((stop for _, stop, _ in lowered.layout.values()), default=0)


def centres(lowered: Lowered) -> dict[str, np.ndarray]:
    """The initial centres: those that an earlier run kept, or for penalties those of the multipliers."""
    start, shapes = lowered.plan.start, lowered.steps.state.centres
    if start is None or lowered.plan.pace != "practical":
        return {}
    initial: dict[str, np.ndarray] = {}
    if start.multipliers:
        initial = dict(_of_penalties(lowered))
    initial |= {name: value for name, value in start.kept.centres.items() if value.shape == shapes.get(name)}
    return {name: value for name, value in initial.items() if name in shapes}


def estimates(lowered: Lowered) -> dict[str, np.ndarray]:
    """The initial estimates of inner expectations: those that an earlier run kept."""
    start, steps = lowered.plan.start, lowered.steps
    if start is None or lowered.plan.pace != "practical" or not isinstance(steps, BlockSteps):
        return {}
    shapes = {buffer.name: tuple(buffer.shape) for buffer in steps.state.buffers.values()}
    shapes |= {name: steps.state.centres[name] for name in lowered.estimated}
    return {name: value for name, value in start.kept.estimates.items() if value.shape == shapes.get(name)}


def moments(lowered: Lowered) -> dict[str, np.ndarray]:
    """The running means of gradients that an earlier run of a net kept. (Runs without nets are finished
    by full passes, which need none.)"""
    start = lowered.plan.start
    if start is None or lowered.plan.pace != "practical" or not lowered.bound.nets:
        return {}
    return {name: value for name, value in start.kept.moments.items() if value.shape == (_size(lowered),)}


def pairs(lowered: Lowered) -> np.ndarray | None:
    """The pairs of the quasi-Newton method that were kept, if they have as many variables."""
    start = lowered.plan.start
    if start is None or lowered.plan.pace != "practical" or start.kept.pairs is None:
        return None
    if start.kept.pairs.shape[2] == _size(lowered):
        return start.kept.pairs
    return None


def settings(lowered: Lowered) -> dict[str, Any]:
    """The settings that an earlier run determined, or a penalty that is strong enough for the multipliers."""
    start = lowered.plan.start
    if start is None or lowered.plan.pace != "practical":
        return {}
    values = start.kept.settings
    if values and all(f"lam_{s.name}" in values for s in lowered.centred):
        names = {*DETERMINED, *(f"lam_{name}" for name in lowered.steps.state.centres)}
        earlier: dict[str, Any] = {name: value for name, value in values.items() if name in names}
        return {**earlier, **_of_stages(lowered), "kept": True}
    largest = ROOM * max(map(abs, start.multipliers.values()), default=0.0)
    rho = float(lowered.plan.hyper.get("rho", 0.0))
    if rho and largest > rho:
        return {"rho": largest}
    return {}


def _of_stages(lowered: Lowered) -> dict[str, Any]:
    """The settings that the stages of an earlier run of a net came to, without those that somebody
    gives."""
    plan, known = lowered.plan, {}
    if plan.start is None or not lowered.bound.nets:
        return {}
    for name, value in plan.start.kept.settings.items():
        _, origin = plan.options.get(name, (None, AUTOMATIC))
        if name in OF_STAGES and origin == AUTOMATIC and value:
            whole = name in ("stage", "together")
            known[name] = int(value) if whole else value
    return known


def _of_penalties(lowered: Lowered) -> Iterator[tuple[str, np.ndarray]]:
    """The slopes at which penalties have the multipliers of their constraints, by centre; 0 for members
    without a multiplier."""
    assert lowered.plan.start is not None
    for constraint in lowered.normal.reformed.constraints:
        penalty = lowered.normal.penalties.get(constraint.label)
        if isinstance(penalty, Smoothed) and penalty.name in lowered.steps.state.centres:
            places, slopes = _slopes(lowered.bound, constraint, penalty, lowered.plan.start.multipliers)
            array = np.zeros(lowered.steps.state.centres[penalty.name])
            array[places] = slopes
            yield penalty.name, array


def _slopes(
    bound: Bound, constraint: ir.Constraint, penalty: Smoothed, multipliers: Any
) -> tuple[Any, np.ndarray]:
    """The places of a family's members in the array of their centres, and the slopes of these members."""
    family = members.of(bound, constraint)
    binders = dict.fromkeys(b for a in penalty.args for b in ir.free_binders(a))
    places = tuple(family.ids[constraint.binders.index(b)] for b in binders)
    values = np.array([multipliers.get(label, 0.0) for label in family.labels(constraint.label)])
    low, high = -math.inf, math.inf
    if isinstance(penalty.function, Piecewise):
        low, high = penalty.function.graph.slopes
    if low < 0 < high:
        upwards = values >= 0
    else:
        upwards = np.full(values.shape, high > 0)
    below, above = penalty.units
    return places or (...,), np.where(upwards, values * above, values * below)
