"""Weights of a family's members that one polytope couples: the dual of OOA (alexr-2025, appendix F)."""

from fccomodel.algorithms.estimators.plug_in import gradient_by, needs_previous, track
from fccomodel.library.sets.capped_simplex import project_capped_simplex

__all__ = ["couple", "gradient_by", "needs_previous", "track"]


def couple(q, members, index, t, tau, alpha):
    """q_i <- q_i + t_i / (n tau) for the sampled members alone, then onto {0 <= q <= 1 / (alpha n),
    sum q = 1}; their q.

    So n q_i, the y_i of ALEXR in [0, 1 / alpha], moves by t_i / tau, whatever the number n of members.
    """
    q[index] = q[index] + t / (tau * q[members].numel())
    q[members] = project_capped_simplex(q[members], alpha)
    return q[index]
