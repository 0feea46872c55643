"""MSVR with the correction's weight as its theorem sets it (sonex-alexr2-2025, Theorem 4.7;
alexr-2025, section 3.2)."""

from fccomodel.algorithms.estimators._logs import log_corrected, log_weight
from fccomodel.core.lazy import torch

needs_previous = True
needs_share = True
gradient_by = "previous"


def track(u, index, g, g_prev, h, share):
    """u_i <- (1 - gamma) u_i + gamma g_i(w_t) + gamma' (g_i(w_t) - g_i(w_{t-1})).

    gamma' = 1 - gamma + (n / B1 - 1) / (1 - gamma); ``share`` is n / B1. One batch at both points.
    Returns the *previous* u_i. At the first visit u_i = g_i(w_{t-1}).
    """
    gamma_prime = 1 - h.gamma + (share - 1) / (1 - h.gamma)
    old = u[index]
    old = torch.where(old.isnan(), g_prev, old)
    u[index] = old + h.gamma * (g - old) + gamma_prime * (g - g_prev)
    return old


def track_log(u, index, g, g_prev, h, share):
    """``track`` where u, g are known by their logarithms: see ``log_corrected``.

    Returns log max(u_i, g_i min(gamma, 0.1)) of the previous u_i: so g_i / u_i, the weight of a
    block's gradient, is bounded; by 10 at least, since corrections make estimates smaller than
    their samples more often than averages are.
    """
    gamma_prime = 1 - h.gamma + (share - 1) / (1 - h.gamma)
    old = u[index]
    old = torch.where(old.isnan(), g_prev, old)
    u[index] = log_corrected(old, g, g_prev, h.gamma, gamma_prime)
    return torch.maximum(old, g + log_weight(min(h.gamma, 0.1)))
