"""Evidence that a problem has no solution: constraints that conflict, an objective without a bound,
or an infimum that no point attains. The emitter copies it.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

from fccomodel.algorithms.runtime.finish.panoc import cautious_step, forward_backward, panoc
from fccomodel.algorithms.runtime.helpers.support import gradient_of
from fccomodel.algorithms.runtime.loops.progress import merit, summary
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.lazy import torch


def excess(solver: Solver, data, w):
    """The violation of each constraint, differentiable in w."""
    return {
        label: t if kind == "eq" else t.clamp(min=0)
        for label, (kind, t) in solver.constraint_values(data, w).items()
    }


def least_violation(solver: Solver, data, w, limit, count, most=2000, rounding=1.2e-16):
    """Minimise 1/2 sum_k v_k^2 of the violations v over the simple sets, from w, by at most ``most``
    passes.

    Returns the point x, v there by label, the largest, and how near a feasible point can be where
    constraints are convex: for every y of the simple sets sum_k v_k c_k(y) >= |v|^2 - |g| |y - x|,
    g being the gradient with the nearest normal of the sets, which leaves no feasible point nearer
    than |v|^2 / |g|.
    """

    def at(w):
        """Half the sum of the squared violations at w, and its gradient."""
        count.passes += 1
        x = w.detach().clone().requires_grad_()
        with torch.enable_grad():
            total = 0.5 * sum(t.square().sum() for t in excess(solver, data, x).values())
        return float(total), gradient_of(total, x)

    def prox(x, step):
        """Project x on the simple sets; there is no regulariser."""
        solver.project(x, 0.0)
        return 0.0

    last = count.passes + most
    x, _, step = panoc(at, prox, w, cautious_step(at, w), 1e-10, lambda: limit() or count.passes > last)
    candidate = forward_backward(at, prox, x, step)
    x, blur = candidate.new, rounding * (candidate.w.abs() + candidate.new.abs()) / candidate.step
    inside = (
        candidate.new == candidate.w - candidate.step * candidate.gradient
    )  # no set has moved these entries: no normal there
    normal = torch.where(inside, torch.zeros_like(x), -candidate.move / candidate.step - candidate.gradient)
    gradient = at(x)[1]
    off = gradient.abs() * (100 * rounding) + torch.where(inside, torch.zeros_like(x), blur)
    left = float((gradient + normal).norm() + off.norm())
    weights = {label: t.abs() for label, t in excess(solver, data, x).items()}
    squares = sum(float(t.square().sum()) for t in weights.values())
    worst = max((float(t.max()) for t in weights.values()), default=0.0)
    squares = max(squares - violation_noise(solver, data, x, weights), 0.0)
    return SimpleNamespace(
        w=x, violation=worst, weights=weights, nearest=squares / left if left else math.inf
    )


def violation_noise(solver: Solver, data, w, weights, times=3, rounding=1.2e-16):
    """The rounding error of sum_k v_k c_k(w), measured at points that differ from w by rounding."""
    rng, worst = torch.Generator(device=w.device).manual_seed(0), 0.0
    sums = []
    for _ in range(times):
        x = w * (1 + 2 * rounding * torch.randn(w.shape, generator=rng, device=w.device, dtype=w.dtype))
        values = excess(solver, data, x)
        sums.append(
            sum(
                float((weights[label] * (values[label].abs() - weights[label]).abs()).sum())
                for label in weights
            )
        )
    worst = max(sums, default=0.0)
    return 4 * worst


def stagnant(history):
    """Whether the violation of the best point has not halved over the second half of the stages."""
    violations = [entry["violation"] for entry in history]
    return len(violations) > 3 and violations[-1] > 0.5 * violations[len(violations) // 2]


def conflict(least, enough, far=0.0):
    """The failure that a point of least violation proves, or None.

    There is one if more than ``enough`` violation is left and no feasible point lies within ``far`` times
    the point's size. For convex constraints this holds for all points.
    """
    if least.violation <= enough or least.nearest < far * (1 + float(least.w.norm())):
        return None
    size = float(least.w.norm())
    return {
        "kind": "infeasible",
        "violation": least.violation,
        "weights": least.weights,
        "nearest": least.nearest,
        "size": size,
    }


def within_numbers(solver: Solver, data, w, d):
    """A length t such that w + 10 t d can be represented in double precision: 1 + |w|, or a tenth of it,
    ...
    """
    size, length = 1 + float(w.norm()), float(d.norm())
    while size > 1e-3 and not math.isfinite(summary(solver.evaluate(data, w + d * (10 * size / length)))[0]):
        size *= 0.1
    return size


def allowed_nearby(full, x, value, allowed, way):
    """The point nearest to x that violates the constraints by little, its value, and whether x itself is
    such a point.

    x is returned if no such point is within half of the ``way``.
    """
    if value[2] <= allowed or not math.isfinite(value[2]):
        return x, value, True
    back = least_violation(full.solver, full.data, x, full.limit, full.count).w
    if float((back - x).norm()) < 0.5 * way:
        return back, summary(full.solver.evaluate(full.data, back)), False
    return x, value, False


def falls_for_ever(full, w, d):
    """The kind of decrease from w along d, as far as 100 (1 + |w|), or None.

    The kind is ``unbounded`` if each way that is ten times longer decreases the objective more, and
    ``unattained`` if it decreases it less and no point on the way is as good. None if the objective rises,
    if a constraint or a set ends the way, or if it is too ``late`` to tell.

    A point that violates a constraint is moved to the nearest one that nearly satisfies it. What the rest
    of the violation may be worth, at ``h.weight`` a unit, does not count as a decrease. The variables of
    the model itself must move, not only those that reformulations added.
    """
    solver, data, h, tol, length = full.solver, full.data, full.h, full.tol, float(d.norm())
    if not length > 0 or not math.isfinite(length) or not math.isfinite(float(w.norm())):
        return None
    here, straight = summary(solver.evaluate(data, w)), True
    fallen: list[float] = []
    size = within_numbers(solver, data, w, d)
    for far in (1.0, 3.0, 10.0, 100.0):
        if full.late():
            return None
        way = far * size
        x = w + d * (way / length)
        inside = x.clone()
        solver.project(inside, 0.0)
        allowed = max(tol, here[2]) + 1e-6 * way
        end, value, itself = allowed_nearby(full, x, summary(solver.evaluate(data, x)), allowed, way)
        straight &= itself
        if float((end - w)[: solver.own].norm()) < 0.1 * way:
            return None
        if len(fallen) > 2 and not math.isfinite(value[0]):  # beyond double precision
            break
        fallen.append(here[0] - merit(value, h.weight))
        if (
            value[2] > allowed
            or not torch.allclose(inside, x)
            or not fallen[-1] > 1e-10 * (1e-6 + abs(here[0]))
        ):
            return None
        if fallen[-1] < (1 - 1e-6) * max(fallen) - 1e-12 * abs(here[0]):
            return None
    kind = "unattained"
    if fallen[-1] - fallen[-2] > 1.2 * (
        fallen[-2] - fallen[0]
    ):  # the last tenfold way against the one before
        kind = "unbounded"
    elif straight and levels_off(full, w, w + d * (10 * (1 + float(w.norm())) / length)):
        return None
    if straight:
        return goes_on(full, w, d, kind, fallen[-2:])
    return kind


def goes_on(full, w, d, kind, fallen, further=(1e2, 1e4, 1e6, 1e8, 1e10)):
    """The kind of a decrease that continues along a straight way, on ways longer by the factors
    ``further``: to |w| = 1e12 at least.

    ``fallen`` holds the decreases over the last ways, each ten times longer than the one before. None if
    the objective rises again, or if a constraint or a set ends the way. The kind is ``unattained`` if a way
    that is a hundred times longer brings less than half of the decrease before it.
    """
    solver, data, length, size = full.solver, full.data, float(d.norm()), 1 + float(w.norm())
    here, gain, last = summary(solver.evaluate(data, w)), fallen[1] - fallen[0], fallen[1]
    for far in further:
        if full.late():
            return None
        way = 100.0 * far * size
        x = w + d * (way / length)
        inside = x.clone()
        solver.project(inside, 0.0)
        value = summary(solver.evaluate(data, x))
        if not math.isfinite(value[0]):  # beyond double precision
            break
        if value[2] > max(full.tol, here[2]) + 1e-6 * way or not torch.allclose(inside, x):
            return None
        now = here[0] - merit(value, full.h.weight)
        if now < (1 - 1e-6) * last - 1e-9 * abs(here[0]):
            return None
        if now - last < 0.5 * gain:
            kind = "unattained"
        gain, last = now - last, max(last, now)
    return kind


def levels_off(full, w, end, most=1e-3, least=1e-9, apart=1.5):
    """Whether the decrease from w to ``end`` is over before ``end``, as for a hinge but not for an
    exponential.

    It is over if the place where a share ``most`` of the decrease is left is near the place where a share
    ``least`` is left. True also if rounding hides the decrease, or if it is too ``late`` to tell.
    """
    here = summary(full.solver.evaluate(full.data, w))

    def fall(t):
        """The decrease of the merit after a share t of the way."""
        return here[0] - merit(summary(full.solver.evaluate(full.data, w + t * (end - w))), full.h.weight)

    def place(left):
        """The share of the way after which at most a share ``left`` of the decrease is left."""
        low, high = 0.0, 1.0
        for _ in range(50):
            if full.late():
                break
            middle = (low + high) / 2
            if fall(middle) >= (1 - left) * whole:
                low, high = (low, middle)
            else:
                low, high = (middle, high)
        return high

    whole = fall(1.0)
    if whole - fall(0.5) > least * whole > 0:
        return False
    least = max(least, 3e-15 * abs(here[0]) / max(whole, 1e-300))
    return least > 0.01 * most or place(least) < apart * place(most) or full.late()


def without_end(full, w, further):
    """The failure of an objective that falls for ever along w, or towards a point found ``further`` on; or
    None.
    """
    for d in (further - w, w):
        kind = falls_for_ever(full, w, d)
        if kind:
            end = w + d * (1e12 * (1 + float(w.norm())) / float(d.norm()))
            known = math.isfinite(summary(full.solver.evaluate(full.data, end))[0])
            return {"kind": kind, "direction": d, "far": float(end.norm()) if known else 0.0}
    return None


def drifts(full, w, d, again):
    """The failure of an objective that falls for ever along d while the other variables follow, or None.

    ``again(x)`` moves the other variables to where they belong at x. None also if it is too ``late`` to
    tell.
    """
    solver, data, h, tol = full.solver, full.data, full.h, full.tol
    here, length = summary(solver.evaluate(data, w)), float(d.norm())
    last, ends = merit(here, h.weight) - 1e-10 * (1e-6 + abs(here[0])), []
    if not length > 0:  # no way leads on from the best point: it is zero
        return None
    for far in (1.0, 3.0, 10.0):
        if full.late():
            return None
        way = far * (1 + float(w.norm()))
        x = again(w + d * (way / length))
        value = summary(solver.evaluate(data, x))
        gone = float((x - w)[: solver.own] @ d[: solver.own]) / length
        if not merit(value, h.weight) <= last or value[2] > max(tol, here[2]) or gone < 0.5 * way:
            return None
        last = merit(value, h.weight) + 1e-12 * abs(here[0])
        ends.append(x)
    if levels_off(full, w, ends[0]) or not allowed_further(full, w, ends[-1]):
        return None
    return {"kind": "unattained", "direction": d, "far": float(ends[-1].norm())}


def allowed_further(full, w, end, times=1e4, share=1e-3):
    """Whether sets and constraints allow ``times`` the way from w to ``end``, up to a share of it."""
    solver, way = full.solver, times * float((end - w).norm())
    x = w + times * (end - w)
    inside = x.clone()
    solver.project(inside, 0.0)
    value = summary(solver.evaluate(full.data, inside))
    return float((x - inside).norm()) <= share * way and not share * way < value[2] < math.inf
