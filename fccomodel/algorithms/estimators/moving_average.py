"""The exponential moving average of SOX (sox-2022, Algorithm 1)."""

from fccomodel.algorithms.estimators._logs import log_weight
from fccomodel.core.lazy import torch

needs_previous = False
gradient_by = "previous"


def track(u, index, g, h):
    """u_i <- (1 - gamma) u_i + gamma g_i for the sampled blocks; returns the *previous* u_i (section 3.1).

    At the first visit u_i = g_i.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    u[index] = old + h.gamma * (g - old)
    return old


def track_log(u, index, g, h):
    """``track`` where u and g are known by their logarithms.

    Returns log max(u_i, gamma g_i) of the previous u_i: so g_i / u_i, the weight of a block's
    gradient, is at most 1 / gamma.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    part = g + log_weight(h.gamma)
    u[index] = torch.logaddexp(old + log_weight(1 - h.gamma), part)
    return torch.maximum(old, part)
