"""The variance-reduced estimator MSVR, used by SONEX and ALEXR2 (sonex-alexr2-2025, Algorithm 1)."""

from fccomodel.algorithms.estimators._logs import log_corrected
from fccomodel.core.lazy import torch

needs_previous = True


def track(u, index, g, g_prev, h):
    """u_i <- (1 - gamma) u_i + gamma g_i(w_t) + gamma' (g_i(w_t) - g_i(w_{t-1})), one batch at both points.

    At the first visit u_i = g_i.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    new = old + h.gamma * (g - old) + h.gamma_prime * (g - g_prev)
    u[index] = new
    return new


def track_log(u, index, g, g_prev, h):
    """``track`` where u, g are known by their logarithms: see ``log_corrected``."""
    old = u[index]
    u[index] = new = log_corrected(torch.where(old.isnan(), g, old), g, g_prev, h.gamma, h.gamma_prime)
    return new
