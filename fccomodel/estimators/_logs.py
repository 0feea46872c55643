"""Estimates that are kept by their logarithms: how they move without overflow, whatever their size."""

import math

import torch


def log_weight(x):
    """log x of a weight x >= 0."""
    return math.log(x) if x > 0 else -math.inf


def log_average(old, g, gamma):
    """log((1 - gamma) e^old + gamma e^g)"""
    return torch.logaddexp(old + log_weight(1 - gamma), g + log_weight(gamma))


def log_corrected(old, g, g_prev, gamma, gamma_prime):
    """The logarithm of gamma e^g + [(1 - gamma) e^old + gamma' (e^g - e^g_prev)]_+.

    What is remembered is cut off at 0: so the estimate stays positive, and e^g is at most 1 / gamma times it.
    """
    kept, change = old + log_weight(1 - gamma), log_weight(gamma_prime) + torch.maximum(g, g_prev)
    change = change + (-torch.expm1(-(g - g_prev).abs())).log()
    lost = torch.where(change < kept, kept + torch.log1p(-(change - kept).clamp(max=0).exp()), -math.inf)
    return torch.logaddexp(torch.where(g < g_prev, lost, torch.logaddexp(kept, change)), g + log_weight(gamma))
