"""The variance-reduced estimator MSVR, used by SONEX and SONX (sonex-alexr2-2025, Algorithm 1)."""

from fccomodel.algorithms.estimators._logs import log_corrected, log_weight
from fccomodel.core.lazy import torch

needs_previous = True
gradient_by = "previous"


def track(u, index, g, g_prev, h):
    """u_i <- (1 - gamma) u_i + gamma g_i(w_t) + gamma' (g_i(w_t) - g_i(w_{t-1})), one batch at both points.

    Returns the *previous* u_i (line 9), which does not share the batch of the gradient.

    At the first visit u_i = g_i.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    u[index] = old + h.gamma * (g - old) + h.gamma_prime * (g - g_prev)
    return old


def track_log(u, index, g, g_prev, h):
    """``track`` where u, g are known by their logarithms: see ``log_corrected``.

    Returns log max(u_i, g_i min(gamma, 0.1)) of the previous u_i: so g_i / u_i, the weight of a
    block's gradient, is bounded; by 10 at least, since corrections make estimates smaller than
    their samples more often than averages are.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    u[index] = log_corrected(old, g, g_prev, h.gamma, h.gamma_prime)
    return torch.maximum(old, g + log_weight(min(h.gamma, 0.1)))
