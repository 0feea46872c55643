"""Constraint extrapolation: the multipliers of ConEx (Boob, Deng and Lan 2023, Algorithm 1), estimates as ALEXR's."""

from fccomodel.estimators.alexr import extrapolate, needs_previous, track

__all__ = ["extrapolate", "multiplier", "needs_previous", "track"]


def multiplier(t, y, lam, low, high, h):
    """argmax over v of v t - max(v low', v high') - lam/2 (v - y)^2, the multiplier v of low' <= t <= high'; [y + t / lam]_+ of t <= 0.

    low' = low + q, high' = high - q: either end of the constraint has the q = ``h.distance`` of the proximal subproblem, in
    the middle at most.
    """
    q = min(h.distance, (high - low) / 2)
    x = t + lam * y
    return ((x - (low + q)) / lam).clamp(max=0) + ((x - (high - q)) / lam).clamp(min=0)
