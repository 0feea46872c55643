"""Algorithms, one file each, found by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fccomodel.algorithms.base import Algorithm, Constants, Theorem, Variant
from fccomodel.core.registry import records

__all__ = ["Algorithm", "Constants", "Theorem", "Variant", "all", "get"]


@cache
def all() -> Mapping[str, Algorithm]:  # noqa: A001 - the registry's verb, as in the other registries
    """Every algorithm by its identifier, in alphabetical order."""
    return records(__name__, Algorithm)


def get(name: str) -> Algorithm | None:
    """The algorithm of this identifier, or None."""
    return all().get(name)
