"""How far the best point of a stage is from the KKT conditions of the problem: shown while a run goes
on, and a reason to end it.

The multipliers y of the constraints are their centres; those of the other smoothed functions are
the slopes at their exact arguments, which are subgradients at arguments shifted by lam |y -
centre|. With them the gradient G of the smoothed objective is that of the Lagrangian. The residual
is the largest of

    |w - prox(w - s G)| / s,    the violation of the constraints,
    |slope(c + y) - y| of the penalties,    the shifts

G comes from a pass over all rows; of pairs that are too many, from passes over random rows; else
from minibatches, where no expectation under a nonlinear function is sampled, which would bias their
mean. From K samples its mean misses G by no more than z s / sqrt(K) with 95% probability, s^2 being
the sum of the variances of its entries (of all normal vectors with this sum, those along a line are
the worst: G. Szekely and N. Bakirov, Extremal probabilities for Gaussian quadratic forms, 2003).
The emitter copies it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from fccomodel.algorithms.runtime.helpers.support import gradient_of
from fccomodel.algorithms.runtime.loops.progress import slope_at, thinned, value_at
from fccomodel.algorithms.runtime.loops.settings import LoopSettings
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.lazy import torch


@dataclass(kw_only=True)
class Watch:
    """The state that ``observe`` keeps from stage to stage; costs are counted seconds.

    tol     the residual to end at; None: no estimate is made
    look    cost of an evaluation of the exact problem
    step    cost of a step
    cost    cost of the last estimate, at first a guess
    spent   cost of all estimates
    z       standard errors by which a mean may be off, with 95% probability
    few     samples for a standard error
    kkt     the last estimate of the residual; ``error`` is how much it may be off
    held    number of stages in a row in which the residual was at most ``tol``
    """

    tol: float | None
    look: float
    step: float
    cost: float
    spent: float = 0.0
    z: float = 1.96
    few: int = 8
    kkt: float | None = None
    error: float | None = None
    held: int = 0


@dataclass(kw_only=True)
class Estimate:
    """An estimate of the KKT residual.

    residual   the estimate
    error      how far it may be off, 0 if it is exact
    enough     whether its samples are enough to tell the error
    count      the number of samples
    """

    residual: float
    error: float
    enough: bool
    count: int


def watching(tol, look, step, few=8):
    """A new watch over the residual, by the counted seconds of a ``look`` and of a ``step``."""
    return Watch(tol=tol, look=look, step=step, cost=few * max(look, step), few=few)


def observe(run, solver: Solver, data, w, worked, minibatches):
    """Estimate the residual at w, and count the stages in a row in which it is at most ``tol`` with 95%
    probability. Returns residual and error for the history.

    No estimate is made if it takes more than 3% of the work so far, in counted seconds (15% if it is likely
    to end the run). ``run.value`` is the summary of the evaluation at w; ``minibatches(w, y, h)`` generates
    gradients with the multipliers y.
    """
    watch = run.watch
    if watch.tol is None or solver.biased:
        return {}
    likely = watch.tol >= 1e-4 or (watch.kkt is not None and watch.kkt - watch.error <= 3 * watch.tol)
    room = (0.15 if likely else 0.03) * worked - watch.spent
    each = watch.step if solver.whole is None else 3 * watch.look
    if watch.cost <= room:
        most = max(room - watch.look, 0.0) / max(each, 1e-9)
        estimate = residual(run, solver, data, w, minibatches, most)
        watch.cost = watch.look + estimate.count * each
        watch.spent += watch.cost
        if math.isfinite(estimate.residual):
            watch.kkt, watch.error = estimate.residual, estimate.error
            if estimate.enough and estimate.residual + estimate.error <= watch.tol:
                watch.held = watch.held + 1
            else:
                watch.held = 0
    return {"kkt": watch.kkt, "kkt_error": watch.error}


def reached(watch):
    """Why a run may end by the residual, in words, or ""."""
    if watch.held < 2:
        return ""
    if watch.error:
        sure = f" +- {watch.error:.1g}"
    else:
        sure = ""
    return (
        f"KKT residual {watch.kkt:.1g}{sure} at most {watch.tol:g}{', 95%' if watch.error else ''}, "
        "two stages running"
    )


def residual(run, solver: Solver, data, w, minibatches, most):
    """The residual at w by at least two and at most ``most`` samples, its error (0 if it is exact), and
    whether the samples are enough to know the error.
    """
    watch, c, value = run.watch, run.c, run.value
    fixed_h = run.h.copy()
    fixed_h.lam_inner = 0.1 * watch.tol
    if solver.whole is None:
        y, shift = multipliers(solver, data, w, c, fixed_h)
        samples: Any = ((G, value[2]) for G in minibatches(w, y, fixing(fixed_h)))
    else:
        with torch.inference_mode(False), torch.no_grad():
            w = w.double().clone()
            centre = SimpleNamespace(**{name: x.double().clone() for name, x in vars(c).items()})
            for name, shape in solver.inside.items():
                setattr(centre, name, torch.zeros(shape, device=w.device, dtype=w.dtype))
                fixed_h.smooth(name, 0.1 * watch.tol)
            y, shift = multipliers(
                solver, some(solver, data, 1) if solver.heavy else data, w, centre, fixed_h
            )
        fixed_h = fixing(fixed_h)
        if solver.heavy:
            samples = passes(solver, data, w, y, fixed_h)
        else:
            samples = [(slope_of(solver, data, w, y, fixed_h), value[2])]
    mean, spread, violations, count = torch.zeros_like(w), 0.0, [], 0
    for G, violation in samples:
        count += 1
        apart = G - mean
        mean = mean + apart / count
        spread += float(apart @ (G - mean))
        violations.append(violation)
        late = count >= max(most, 2)
        if late or (count >= watch.few and count & (count - 1) == 0):  # at powers of two
            estimate = assess(solver, w, mean, spread, violations, shift, watch)
            if (
                late
                or not estimate.residual - estimate.error <= watch.tol < estimate.residual + estimate.error
            ):
                return estimate
    return assess(solver, w, mean, spread, violations, shift, watch)


def assess(solver: Solver, w, G, spread, violations, shift, watch):
    """The residual from the mean G of some samples. ``spread`` is the sum of their squared distances from
    it.
    """
    count = len(violations)
    violation, times = sum(violations) / count, max(count * (count - 1), 1)
    apart = sum((v - violation) ** 2 for v in violations)
    length = float(G.norm())
    step = min(1.0, 1e-3 * (1 + float(w.norm())) / max(length, 1e-300))
    stepped = w - step * G
    solver.project(stepped, step)
    if math.isfinite(length):
        size = max(float((w - stepped).norm()) / step, violation, shift)
    else:
        size = math.inf
    enough = count >= watch.few or (solver.whole is not None and not solver.heavy)
    return Estimate(
        residual=size, error=watch.z * math.sqrt(max(spread, apart) / times), enough=enough, count=count
    )


def multipliers(solver: Solver, data, w, c, h: LoopSettings):
    """The slopes of the smoothed functions at w, for penalties their centres; and how far the centres are
    from being multipliers.
    """
    y, shift = SimpleNamespace(**{name: centre.clone() for name, centre in vars(c).items()}), 0.0
    unit, blocks = h.smoothed(lambda lam: 1.0), solver.blocks if solver.whole is None else solver.all_blocks
    for name, (index, t, slope, bounded) in blocks(data, w.to(data.dtype)).items():
        centre, index = getattr(y, name), index or (...,)
        new = slope_at(t, slope, centre[index], unit if bounded else h)
        if bounded:
            length = 1.0
        else:
            length = h.smoothing(name)
        shift = max(shift, length * float((new - centre[index]).abs().max()))
        if not bounded:
            centre[index] = new
    return y, shift


def fixing(h: LoopSettings):
    """Settings with so wide a smoothing that slopes equal their centres, and so short dual steps that these
    stay.
    """
    fixed = h.smoothed(lambda lam: 1e9)
    fixed.tau = 1e9
    return fixed


def slope_of(solver: Solver, data, w, c, h: LoopSettings):
    """The gradient of the smoothed objective, without prox terms."""
    with torch.inference_mode(False), torch.enable_grad():
        x = w.detach().to(data.dtype, copy=True).requires_grad_()
        return gradient_of(solver.whole(data, x, c, h), x).to(w.dtype)


def some(solver: Solver, data, seed):
    """The data on random rows, in single precision."""
    part = thinned(solver, data, seed)
    for key, x in vars(part).items():
        if torch.is_tensor(x) and x.is_floating_point():
            setattr(part, key, x.float())
    part.dtype = torch.float32
    return solver.prepare_full(part)


def passes(solver: Solver, data, w, c, h: LoopSettings):
    """A generator of gradients by passes over random rows, with the largest violations there."""
    for k in range(64):
        with torch.inference_mode(False), torch.no_grad():
            part = some(solver, data, 2 + k)
            gradient_and_violation = slope_of(solver, part, w, c, h), value_at(solver, part, w)[2]
        yield gradient_and_violation
