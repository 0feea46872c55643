"""The moving average of the whole vector g, by a sparse estimate from the sampled blocks, scaled up
(MOAP; sox-2022, (3)).
"""

from fccomodel.algorithms.estimators._logs import log_weight
from fccomodel.core.lazy import torch

needs_previous = False
needs_share = True
gradient_by = "new"


def track(u, index, g, h, share):
    """u_i <- (1 - gamma) u_i + gamma (n / B1) g_i for the sampled blocks, u_i <- (1 - gamma) u_i for
    all others.

    ``share`` is n / B1. At the first visit u_i = g_i.
    """
    u.mul_(1 - h.gamma)
    old = u[index]
    u[index] = new = torch.where(old.isnan(), g, old + h.gamma * share * g)
    return new


def track_log(u, index, g, h, share):
    """``track`` where u and g are known by their logarithms."""
    u.add_(log_weight(1 - h.gamma))
    old = u[index]
    u[index] = new = torch.where(old.isnan(), g, torch.logaddexp(old, g + log_weight(h.gamma * share)))
    return new
