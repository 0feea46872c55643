"""Constraint extrapolation: the multipliers of ConEx (Boob, Deng and Lan 2023, Algorithm 1), estimates
as ALEXR's."""

from fccomodel.algorithms.estimators.alexr import extrapolate, gradient_by, needs_previous, track

__all__ = ["extrapolate", "gradient_by", "multiplier", "needs_previous", "track"]


def multiplier(t, y, lam, low, high, h):
    """argmax over v of v t - max(v low', v high') - lam/2 (v - y)^2, the multiplier v of low' <= t <=
    high'; of t <= 0 it is [y + (t + q) / lam]_+.

    low' = low + q, high' = high - q: the proximal subproblem adds q = ``h.distance`` to either end
    of a constraint, up to the middle.
    """
    q = min(h.distance, (high - low) / 2)
    x = t + lam * y
    return ((x - (low + q)) / lam).clamp(max=0) + ((x - (high - q)) / lam).clamp(min=0)
