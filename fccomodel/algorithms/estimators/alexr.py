"""The dual updates of ALEXR in terms of inner values (alexr-2025, Algorithm 1, lines 6 and 7)."""

from fccomodel.algorithms.estimators._logs import log_corrected
from fccomodel.core.lazy import torch

needs_previous = True
gradient_by = "new"


def track(u, index, g, g_prev, h):
    """psi = f*: u_i <- (tau u_i + g~_i) / (1 + tau), with y_i = grad f(u_i) (alexr-2025, Lemma 1; its (4)
    swaps the weights).
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    u[index] = new = (h.tau * old + g + h.theta * (g - g_prev)) / (1 + h.tau)
    return new


def track_log(u, index, g, g_prev, h):
    """``track`` where u, g are known by their logarithms: see ``log_corrected``."""
    old = u[index]
    weight = 1 / (1 + h.tau)
    u[index] = new = log_corrected(torch.where(old.isnan(), g, old), g, g_prev, weight, weight * h.theta)
    return new


def extrapolate(g, g_prev, h):
    """psi = half square: g~_i = g_i(w_t) + theta (g_i(w_t) - g_i(w_{t-1})), to which y_i answers."""
    return g + h.theta * (g - g_prev)
