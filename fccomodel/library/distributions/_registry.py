"""Finds every distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from fccomodel.core.registry import records
from fccomodel.library.distributions.base import Distribution


@cache
def all() -> Mapping[str, Distribution]:
    """Every distribution by its name, in alphabetical order."""
    return records("fccomodel.library.distributions", Distribution)


def get(name: str) -> Distribution | None:
    """The distribution of this name, or None for a sampler that is bound from Python."""
    return all().get(name)


@cache
def programs() -> Mapping[str, Callable[..., Any]]:
    """The functions that the texts of draws call, by name."""
    return {one.program.__name__: one.program for one in all().values() if one.program is not None}
