"""The exponential moving average that is used as soon as it is updated (SOAP; sox-2022, equation (2))."""

import torch

needs_previous = False


def track(u, index, g, h):
    """u_i <- (1 - gamma) u_i + gamma g_i for the sampled blocks; returns the *new* u_i.

    At the first visit u_i = g_i.
    """
    old = u[index]
    old = torch.where(old.isnan(), g, old)
    u[index] = new = old + h.gamma * (g - old)
    return new
