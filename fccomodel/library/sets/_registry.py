"""Finds every simple set."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fccomodel.core.registry import records
from fccomodel.library.sets.base import SimpleSet


@cache
def all() -> Mapping[str, SimpleSet]:
    """Every set by its name, in alphabetical order."""
    return records("fccomodel.library.sets", SimpleSet)


def get(name: str) -> SimpleSet | None:
    """The set of this name, or None."""
    return all().get(name)
