"""A local search for a better point: a few steps are tried, each with its value and its constraints.

A step along a direction of descent promises a gain to first order. If it makes half of it, it was
worth taking. If it does not, curvature leaves less than that on the line (at most gain/2 for a
quadratic function). Steps go along the gradient, along each entry if these are few, so that the
variables' scales do not matter, and to the origin, whose value is among the scales.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import Meter
from fccomodel.report.point.recording import Recorder
from fccomodel.report.point.system import Array, System, norm

#: Entries of the variables that are tried one by one.
ENTRIES = 50
#: Kinks from which steps to both sides are tried, at most.
MOST_KINKS = 40
#: Lengths of the longer and the shorter step from a kink, relative to 1 + |w|.
LENGTHS = (1e-3, 1e-4)
#: Share of the longer step's gain that the shorter one makes at least if the slope is not 0.
LINEAR_SHARE = 0.05
#: Share of the wanted gain that the longer step must make.
FALL_SHARE = 1e-2
#: Distance from its kink up to which a function is at it, relative to 1 + its terms' mean size.
TIED = 1e-6
#: Doublings of a step that gains, at most.
DOUBLINGS = 10
#: Share of a promised gain that a step must make.
SHARE = 0.5
#: Violation that the end of a step may have; more if the point itself has more.
ALLOWED = 1e-9


@dataclass(frozen=True, kw_only=True)
class Better:
    """A feasible ``point`` whose objective is better by ``gain``, and ``where`` it is.

    saddle   it lies along a direction that first-order conditions do not see
    pole     it is near a zero of this expression; None if there is no such zero
    endless  the objective keeps falling nearer to that zero
    """

    gain: float
    where: str
    point: Mapping[str, np.ndarray]
    saddle: bool = False
    pole: ir.Expr | None = None
    endless: bool = False


def better(system: System, slope: Array, gain: float, meter: Meter) -> Better | None:
    """A point that is better by at least half of ``gain``, or None if none is found with the work left.

    slope   the Lagrangian's gradient, along which steps go
    """
    for step, where, promised in _steps(system, system.tangent(slope), gain):
        if 2 * system.forward_s > meter.left:
            return None
        meter.spend(2 * system.forward_s)
        found = gain_of(system, step)
        if found is not None and found >= SHARE * promised:
            return Better(gain=found, where=where, point=arrays(moved(system, step)))
    return _beside_kinks(system, gain, meter)


def _beside_kinks(system: System, gain: float, meter: Meter) -> Better | None:
    """A step from a kink that bends downwards: the objective falls on a side of it, although the
    subgradients at the kink cancel."""
    size = norm(system.flat)
    for way in _ways(system):
        if 2 * len(LENGTHS) * system.forward_s > meter.left:
            return None
        for step in (way, -way):
            meter.spend(len(LENGTHS) * system.forward_s)
            longer, shorter = (length * (1 + size) * step for length in LENGTHS)
            far, near = gain_of(system, longer), gain_of(system, shorter)
            if far is None or near is None:
                continue
            if far >= FALL_SHARE * gain and near >= LINEAR_SHARE * far:
                gain, longer = _extended(system, longer, far, meter)
                return Better(gain=gain, where="beside a kink", point=arrays(moved(system, longer)))
    return None


def _extended(system: System, step: Array, gain: float, meter: Meter) -> tuple[float, Array]:
    """A step, doubled for as long as it gains more, and its gain."""
    for _ in range(DOUBLINGS):
        if system.forward_s > meter.left:
            break
        meter.spend(system.forward_s)
        more = gain_of(system, 2 * step)
        if more is None or more <= gain:
            break
        gain, step = more, 2 * step
    return gain, step


def _ways(system: System) -> Iterator[Array]:
    """For each kink that bends downwards and that the point is at: the direction in which two of its
    terms part, of length 1, in the tangent space of the variables' sets."""
    tried = 0
    for k, instance in system.concave():
        record = system.records[k]
        terms = record.terms.detach().numpy()[instance : instance + 1]
        margin = record.weights.margin(record.kink.sign * terms)[0]
        if margin > TIED * (1 + np.abs(terms).max()):
            continue
        weights = np.zeros(tuple(record.terms.shape))
        if record.weights.kind == "simplex":
            top = np.argsort(-record.kink.sign * terms[0], kind="stable")
            edge = min(int(1 / record.weights.high), terms.shape[1] - 1)
            weights[instance, top[edge - 1]], weights[instance, top[edge]] = 1.0, -1.0
        else:
            weights[instance, np.abs(terms[0]).argmin()] = 1.0
        way = system.tangent(system.pull([(record.terms, weights)]))
        if (length := norm(way)) > 0:
            yield way / length
            tried += 1
        if tried >= MOST_KINKS:
            return


def violation(values: Array, equal: Sequence[bool]) -> float:
    """The largest violation of a constraint."""
    violations = np.where(np.array(equal, dtype=bool), np.abs(values), values)
    return float(violations.max(initial=0.0))


def _steps(system: System, slope: Array, gain: float) -> Iterator[tuple[Array, str, float]]:
    """Steps, their names, and the gains they promise."""
    square = float(slope @ slope)
    if square > 0:
        yield -gain / square * slope, "along the gradient", gain
    if system.d <= ENTRIES:
        for k in np.flatnonzero(slope):
            step = np.zeros(system.d)
            step[k] = -gain / slope[k]
            yield step, f"along {entry(system, int(k))}", gain
    if any(value.any() for value in system.point.values()):
        yield (
            -system.flat,
            "at the origin",
            gain,
        )


def entry(system: System, k: int) -> str:
    """The name of entry k of all variables, as the model writes it."""
    for name, value in system.point.items():
        if k < value.numel():
            if not value.dim():
                return f"`{name}`"
            places = [str(int(i) + 1) for i in np.unravel_index(k, tuple(value.shape))]
            return f"`{name}[{', '.join(places)}]`"
        k -= value.numel()
    raise AssertionError(k)


def moved(system: System, step: Array) -> dict[str, torch.Tensor]:
    """The point after a step, in the variables' sets."""
    point = {}
    for name, part in system.split(step).items():
        point[name] = system.into_sets(name, system.point[name] + part)
    return point


def arrays(point: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """The point in numpy arrays."""
    return {name: value.numpy() for name, value in point.items()}


def gain_of(system: System, step: Array) -> float | None:
    """The gain of a step, or None if it leads out of the constraints or the functions' domains."""
    try:
        with torch.no_grad():
            f, c = system.evaluate(moved(system, step), Recorder({}))[:2]
    except FccoError:
        return None
    values = c.numpy()
    if not np.isfinite(float(f)) or not np.isfinite(values).all():
        return None
    if violation(values, system.equal) > max([ALLOWED, *system.violations]):
        return None
    return system.sign * system.objective - float(f)
