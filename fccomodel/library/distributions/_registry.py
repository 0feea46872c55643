"""Finds every distribution."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fccomodel.core.registry import records
from fccomodel.library.distributions.base import Distribution


@cache
def all() -> Mapping[str, Distribution]:
    """Every distribution by its name, in alphabetical order."""
    return records("fccomodel.library.distributions", Distribution)


def get(name: str) -> Distribution | None:
    """The distribution of this name, or None for a sampler that is bound from Python."""
    return all().get(name)
