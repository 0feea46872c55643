"""Finds every operation: each public module of this package is a file of operations."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from fccomodel.solver.operations._base import Op


@cache
def all() -> Mapping[str, Op]:
    """Every operation by its name, in alphabetical order."""
    import fccomodel.solver.operations as package

    found: dict[str, Op] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            content = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
            found.update((op.name, op) for op in content.values() if isinstance(op, Op))
    return MappingProxyType(dict(sorted(found.items())))
