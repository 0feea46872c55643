"""Kinks at a point, and the convex sets that the weights of their terms are in."""
