"""Checks that need values: domains of functions, and sizes that values decide."""
