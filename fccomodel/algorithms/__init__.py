"""Algorithms, one file each, found by themselves."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from fccomodel.algorithms._base import Algorithm, Constants

__all__ = ["Algorithm", "Constants", "all", "get"]


@cache
def all() -> dict[str, Algorithm]:  # noqa: A001 - the registry's verb, as in the other registries
    """Every algorithm by its identifier."""
    found = [
        importlib.import_module(f"{__name__}.{info.name}").algorithm
        for info in pkgutil.iter_modules(__path__)
        if not info.ispkg and not info.name.startswith("_")
    ]
    return {a.name: a for a in sorted(found, key=lambda a: a.name)}


def get(name: str) -> Algorithm | None:
    """The algorithm of this identifier, or None."""
    return all().get(name)
