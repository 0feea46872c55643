"""Other points of a problem that is not convex, tried before a verdict that there is no solution.
The emitter copies it.
"""

from __future__ import annotations

import math

from fccomodel.algorithms.runtime.finish.failure import excess, least_violation
from fccomodel.algorithms.runtime.finish.panoc import cautious_step, panoc
from fccomodel.algorithms.runtime.helpers.support import gradient_of
from fccomodel.algorithms.runtime.loops.progress import merit, summary
from fccomodel.core.lazy import torch


def around(full, w, ways):
    """Points of the simple sets: from w along the given directions and against them, at distances up to a
    few times 1 + |w|; the mirrored point; points at random around w; and some near zero.
    """
    rng, size = torch.Generator(device=w.device).manual_seed(0), 1 + float(w.norm())
    moves = [(size * far / float(d.norm())) * d for d in ways for far in (-1.0, 1.0, -4.0, 0.1, -0.1)]
    moves.append(-2 * w)
    for far in (1.0, 0.3):
        for _ in range(3):
            way = torch.randn(w.shape, generator=rng, device=w.device, dtype=w.dtype)
            way *= far * size / float(way.norm())
            moves += [way, -way]
    near_zero = [(far / float(d.norm())) * d for d in ways for far in (-1.0, -4.0, 1.0, 4.0)]
    points = [*(w + move for move in moves), torch.zeros_like(w), *near_zero]
    for point in points:
        full.solver.project(point, 0.0)
    return points


def lowest_from(full, start, passes):
    """The point after a descent of the smoothed problem of some ``passes``."""
    count = full.count
    count.value, count.size, last = 0.0, 0.0, count.passes + passes

    def limit():
        """Whether the descent must end here."""
        return full.limit() or count.passes > last

    step = 2 * cautious_step(full.at, start, 2)
    return panoc(full.at, full.prox, start, step, full.tol, limit, bold=True)[0]


def better_elsewhere(full, w, direction, most=3, passes=60):
    """A point with less merit than any seen on the way from w along a direction, or None.

    Descents of some ``passes`` start at the ``most`` best points around w.
    """
    solver, data, h, count = full.solver, full.data, full.h, full.count

    def worth(x):
        """The merit at x."""
        return merit(summary(solver.evaluate(data, x)), h.weight)

    way = direction * ((1 + float(w.norm())) / float(direction.norm()))
    level = min(worth(w + far * way) for far in (0.0, 1.0, 10.0, 1e2, 1e4, 1e6, 1e8, 1e12))
    enough = level - max(full.tol, 1e-9) * (1 + abs(level))
    held = count.value, count.size
    best = None
    for start in sorted(around(full, w, [direction]), key=worth)[:most]:
        if full.late():
            break
        end = lowest_from(full, start, passes)
        reached = worth(end)
        if reached < enough:
            best, enough = end, reached
    count.value, count.size = held
    return best


def start_elsewhere(now, full, failure):
    """Whether the rounds go on from a better point elsewhere, instead of ending with an infimum that no
    point attains. Such points are looked for once.
    """
    unattained = failure is not None and failure["kind"] == "unattained"
    if not unattained or not full.solver.nonconvex or now.elsewhere or full.late():
        return False
    now.elsewhere = True
    point = better_elsewhere(full, now.best, failure["direction"])
    if point is None:
        return False
    now.w, now.best, now.value = point, point, summary(full.solver.evaluate(full.data, point))
    now.error, now.failure, now.inner, now.pairs, now.shifts = math.inf, None, None, [], {}
    now.step, now.enough = cautious_step(full.at, point), max(full.tol, now.enough)
    full.count.value, full.count.size = 0.0, 0.0
    return True


def downward(full, w, most=12):
    """The directions, at most one, in which half the sum of the squared violations is curved downwards at
    w: the shifted power method on differences of gradients.
    """
    rng, length = torch.Generator(device=w.device).manual_seed(1), 1e-4 * (1 + float(w.norm()))

    def violations_gradient(w):
        """The gradient of half the sum of the squared violations; counted as a pass."""
        full.count.passes += 1
        x = w.detach().clone().requires_grad_()
        with torch.enable_grad():
            total = 0.5 * sum(t.square().sum() for t in excess(full.solver, full.data, x).values())
        return gradient_of(total, x)

    def curved(d):
        """The product of the second derivatives with d."""
        return (violations_gradient(w + length * d) - violations_gradient(w - length * d)) / (2 * length)

    d = torch.randn(w.shape, generator=rng, device=w.device, dtype=w.dtype)
    d /= d.norm()
    shift = 0.0
    for _ in range(most):
        product = curved(d)
        shift = max(shift, float(product.norm()))
        d = shift * d - product
        if full.late() or not 0 < float(d.norm()) < math.inf:
            return []
        d /= d.norm()
    return [d] if float(d @ curved(d)) < -1e-6 * shift else []


def least_anywhere(full, w, enough, most=2000):
    """The least violation from w, as ``least_violation`` finds it, or from other points.

    Where constraints are not convex, the point may be a saddle, or a local minimum: descents start along
    the curvature there that is negative and at other points, until ``enough`` violation is left.
    """
    solver, data, limit, count = full.solver, full.data, full.limit, full.count
    least = least_violation(solver, data, w, limit, count, most)
    least.elsewhere = False
    if not solver.nonconvex or least.violation <= enough:
        return least
    for start in around(full, least.w, downward(full, least.w)):
        if limit() or least.violation <= enough:
            break
        other = least_violation(solver, data, start, limit, count, 200)
        if other.violation < 0.9 * least.violation:
            least, least.elsewhere = other, True
    return least
