"""Is there a better point where the conditions cannot tell? A few steps are tried, each with its value
and its constraints.

A step along a direction of descent that promises a gain to first order, and makes half of it, was
worth taking; where it does not, curvature leaves less than that on the line (for a quadratic
function, gain/2 at most). Steps go along the gradient and, of few entries, along each by itself, so
that the variables' scales do not matter; and to the origin, whose value is among the scales.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import Meter
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import elements
from fccomodel.report.point.recording import Recorder
from fccomodel.report.point.system import Array, System, functions, norm

#: Entries of the variables that are tried one by one.
ENTRIES = 50
#: How far from the origin a feasible point is looked for, each distance thrice.
FAR = (0.0, 0.1, 0.1, 0.1, 1.0, 1.0, 1.0, 10.0, 10.0, 10.0)
#: So many kinks are left to either side, by steps of these lengths relative to 1 + |w|, of which
#: the shorter gains this share of the longer's at least where the slope is not 0, and the longer
#: that share of a gain that counts; how near to its kink a function is, relative to its terms; a
#: longer step that gains more is doubled so often.
KINKS, LENGTHS, LINEAR, FALL, TIED, DOUBLED = 40, (1e-3, 1e-4), 0.05, 1e-2, 1e-6, 10
#: The share of a promised gain that a step must make; the violation that its end may have where the
#: point has less.
SHARE, ALLOWED = 0.5, 1e-9


@dataclass(frozen=True, kw_only=True)
class Better:
    """A feasible ``point`` whose objective is better by ``gain``, and ``where`` it is.

    saddle   it lies along a direction of which first-order conditions know nothing
    pole     it is near a zero of this expression
    endless  nearer to that zero the objective falls on and on
    """

    gain: float
    where: str
    point: Mapping[str, np.ndarray]
    saddle: bool = False
    pole: ir.Expr | None = None
    endless: bool = False


def better(system: System, slope: Array, gain: float, meter: Meter) -> Better | None:
    """A point that is better by at least half of ``gain``, by steps along the Lagrangian's gradient
    ``slope``; None where none is found with the work left."""
    for step, where, promised in _steps(system, system.tangent(slope), gain):
        if 2 * system.forward_s > meter.left:
            return None
        meter.spend(2 * system.forward_s)
        found = gain_of(system, step)
        if found is not None and found >= SHARE * promised:
            return Better(gain=found, where=where, point=arrays(moved(system, step)))
    return _beside_kinks(system, gain, meter)


def _beside_kinks(system: System, gain: float, meter: Meter) -> Better | None:
    """A step to a side of a kink that is bent downwards: along it the objective falls at once,
    whatever cancels at the kink."""
    size = norm(torch.cat([value.reshape(-1) for value in system.point.values()]).numpy())
    for way in _ways(system):
        if 2 * len(LENGTHS) * system.forward_s > meter.left:
            return None
        for step in (way, -way):
            meter.spend(len(LENGTHS) * system.forward_s)
            longer, shorter = (length * (1 + size) * step for length in LENGTHS)
            far, near = gain_of(system, longer), gain_of(system, shorter)
            if far is not None and near is not None and far >= FALL * gain and near >= LINEAR * far:
                gain, longer = _extended(system, longer, far, meter)
                return Better(gain=gain, where="beside a kink", point=arrays(moved(system, longer)))
    return None


def _extended(system: System, step: Array, gain: float, meter: Meter) -> tuple[float, Array]:
    """A step doubled for as long as it gains more."""
    for _ in range(DOUBLED):
        if system.forward_s > meter.left:
            break
        meter.spend(system.forward_s)
        more = gain_of(system, 2 * step)
        if more is None or more <= gain:
            break
        gain, step = more, 2 * step
    return gain, step


def _ways(system: System) -> Iterator[Array]:
    """Of each kink that is bent downwards, and at which the point is: the direction in which two of
    its terms part, less what the variables' sets hold."""
    tried = 0
    for k, instance in system.concave():
        record = system.records[k]
        terms = record.terms.detach().numpy()[instance : instance + 1]
        if record.weights.margin(record.kink.sign * terms)[0] > TIED * (1 + np.abs(terms).max()):
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
        if tried >= KINKS:
            return


def somewhere_feasible(bound: Bound, seed: int = 0) -> bool:
    """A point that meets all constraints is among a few: the origin and random points around it, in
    the variables' sets."""
    random = np.random.default_rng(seed)
    for far in FAR:
        point = {}
        for name, variable in bound.problem.variables.items():
            shape = elements.shape(bound, (f"params({variable.net})",) if variable.net else variable.shape)
            point[name] = torch.from_numpy(np.array(far * random.standard_normal(shape)))
            for simple, args in (Evaluator(bound, {}).simple_set(declared) for declared in variable.sets):
                point[name] = simple.project(point[name], *simple.prepare(*args))
        try:
            with torch.no_grad():
                _, values, _, equal = functions(Evaluator(bound, point, seed=seed))
        except FccoError:
            continue
        if bool(torch.isfinite(values).all()) and violation(values.numpy(), equal) <= ALLOWED:
            return True
    return False


def violation(values: Array, equal: Sequence[bool]) -> float:
    return float(np.where(np.array(equal, dtype=bool), np.abs(values), values).max(initial=0.0))


def _steps(system: System, slope: Array, gain: float) -> Iterator[tuple[Array, str, float]]:
    """Steps, their names, and the gains that they promise."""
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
            -torch.cat([value.reshape(-1) for value in system.point.values()]).numpy(),
            "at the origin",
            gain,
        )


def entry(system: System, k: int) -> str:
    for name, value in system.point.items():
        if k < value.numel():
            if value.dim():
                places = [str(int(i) + 1) for i in np.unravel_index(k, tuple(value.shape))]
            else:
                places = []
            if places:
                return f"`{name}[{', '.join(places)}]`"
            return f"`{name}`"
        k -= value.numel()
    raise AssertionError(k)


def moved(system: System, step: Array) -> dict[str, torch.Tensor]:
    """The point after a step, in the variables' sets."""
    point = {}
    for name, part in system.split(step).items():
        end = system.point[name] + part
        for simple, args in system.sets_of(name):
            end = simple.project(end, *simple.prepare(*args))
        point[name] = end
    return point


def arrays(point: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in point.items()}


def gain_of(system: System, step: Array) -> float | None:
    """What a step makes better; None where it leads out of the constraints or the functions' domains."""
    try:
        with torch.no_grad():
            f, c = system.evaluate(moved(system, step), Recorder({}))[:2]
    except FccoError:
        return None
    values = c.numpy()
    allowed = max([ALLOWED, *system.violations])
    if (
        not np.isfinite(float(f))
        or not np.isfinite(values).all()
        or violation(values, system.equal) > allowed
    ):
        return None
    return system.sign * system.objective - float(f)
