"""Lowering of reductions: sums, maxima and their envelopes, estimated or in one pass."""
