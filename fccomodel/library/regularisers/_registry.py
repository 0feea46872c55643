"""Finds every regulariser."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fccomodel.core.registry import records
from fccomodel.library.regularisers.base import Regulariser


@cache
def all() -> Mapping[str, Regulariser]:
    """Every regulariser by its name, in alphabetical order."""
    return records("fccomodel.library.regularisers", Regulariser)


def get(name: str) -> Regulariser | None:
    """The regulariser of this name, or None."""
    return all().get(name)
