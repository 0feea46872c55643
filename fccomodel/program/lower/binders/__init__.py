"""Lowers binders: to the elements that a step samples, or to all elements in a full pass."""
