"""MSVR used as soon as it is updated: the dual of ALEXR2, whose gradients have samples of their own
(its Algorithm 2)."""

from fccomodel.algorithms.estimators._logs import log_corrected
from fccomodel.core.lazy import torch

needs_previous = True
gradient_by = "new"


def track(u, index, g, g_prev, h):
    """u_i <- (1 - gamma) u_i + gamma g_i(z_k) + gamma' (g_i(z_k) - g_i(z_{k-1})), one batch at both
    points; the *new* u_i.

    At the first visit u_i = g_i.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    u[index] = new = old + h.gamma * (g - old) + h.gamma_prime * (g - g_prev)
    return new


def track_log(u, index, g, g_prev, h):
    """``track`` where u, g are known by their logarithms: see ``log_corrected``."""
    old = u[index]
    u[index] = new = log_corrected(torch.where(old.isnan(), g, old), g, g_prev, h.gamma, h.gamma_prime)
    return new
