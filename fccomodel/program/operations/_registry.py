"""Finds every operation: each public module of this package is a file of operations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fccomodel.core.registry import records
from fccomodel.program.operations.base import Op


@cache
def all() -> Mapping[str, Op]:
    """Every operation by its name, in alphabetical order."""
    return records("fccomodel.program.operations", Op)
