"""Finds every regulariser."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from fccomodel.library.regularisers._base import Regulariser


@cache
def all() -> Mapping[str, Regulariser]:
    """Every regulariser by its name, in alphabetical order."""
    import fccomodel.library.regularisers as package

    found: dict[str, Regulariser] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            content = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
            found.update((item.name, item) for item in content.values() if isinstance(item, Regulariser))
    return MappingProxyType(dict(sorted(found.items())))


def get(name: str) -> Regulariser | None:
    """The regulariser of this name, or None."""
    return all().get(name)
