"""Lowers reductions: means, sums, maxima and their envelopes, in a step or in a full pass."""
