"""The exponential moving average that is used as soon as it is updated (SOAP; sox-2022, equation (2))."""

from fccomodel.algorithms.estimators._logs import log_average
from fccomodel.core.lazy import torch

needs_previous = False
gradient_by = "new"


def track(u, index, g, h):
    """u_i <- (1 - gamma) u_i + gamma g_i for the sampled blocks; returns the *new* u_i.

    At the first visit u_i = g_i.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    u[index] = new = old + h.gamma * (g - old)
    return new


def track_log(u, index, g, h):
    """``track`` where u and g are known by their logarithms."""
    old = u[index]
    u[index] = new = log_average(torch.where(old.isnan(), g, old), g, h.gamma)
    return new
