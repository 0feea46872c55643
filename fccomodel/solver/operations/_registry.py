"""Finds every operation: each public module of this package is a file of operations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fccomodel.core.registry import records
from fccomodel.solver.operations._base import Op


@cache
def all() -> Mapping[str, Op]:
    """Every operation by its name, in alphabetical order."""
    return records("fccomodel.solver.operations", Op)
