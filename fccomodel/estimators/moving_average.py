"""The exponential moving average of SOX (sox-2022, Algorithm 1)."""

import torch

needs_previous = False


def track(u, index, g, h):
    """u_i <- (1 - gamma) u_i + gamma g_i for the sampled blocks; returns the *previous* u_i (section 3.1).

    At the first visit u_i = g_i.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    u[index] = old + h.gamma * (g - old)
    return old
