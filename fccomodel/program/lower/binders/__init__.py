"""Lowering of binders: the elements that a step samples, and those that a full pass goes through."""
