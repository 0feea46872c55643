"""Estimates that are kept by their logarithms: how they move without overflow, whatever their size."""

import math

from fccomodel.core.lazy import torch


def log_weight(x):
    """log x of a weight x >= 0."""
    if x > 0:
        return math.log(x)
    return -math.inf


def log_average(old, g, gamma):
    """log((1 - gamma) e^old + gamma e^g)"""
    return torch.logaddexp(old + log_weight(1 - gamma), g + log_weight(gamma))


def log_corrected(old, g, g_prev, gamma, gamma_prime):
    """The logarithm of gamma e^g + m, where m = (1 - gamma) e^old + gamma' (e^g - e^g_prev) is what is
    remembered.

    Where the correction would make m negative, m = (1 - gamma) e^old e^(g - g_prev): it falls as
    the batch did. In one step the result falls no further than to the smallest number of its
    precision, from e^g or from what is remembered.
    """
    kept = old + log_weight(1 - gamma)
    top = torch.maximum(kept, g)
    now, remembered = (g - top).exp_(), (kept - top).exp_()
    m = torch.add(remembered, now - (g_prev - top).exp_(), alpha=gamma_prime)
    m = torch.where(m.signbit(), remembered.mul_((g - g_prev).exp_()), m)
    return m.add_(now, alpha=gamma).clamp_(min=torch.finfo(m.dtype).tiny).log_().add_(top)
