"""Finds every simple set."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.core.ir import Shape
from fccomodel.core.source import Span
from fccomodel.library import errors
from fccomodel.library.sets._base import SimpleSet


@cache
def all() -> Mapping[str, SimpleSet]:
    """Every set by its name, in alphabetical order."""
    import fccomodel.library.sets as package

    found: dict[str, SimpleSet] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            content = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
            found.update((item.name, item) for item in content.values() if isinstance(item, SimpleSet))
    return MappingProxyType(dict(sorted(found.items())))


def get(name: str) -> SimpleSet | None:
    """The set of this name, or None."""
    return all().get(name)


def check_not_empty(family: str, text: str, shape: Shape, args: tuple[Any, ...], span: Span | None = None) -> None:
    """FccoError F0532 if the set, which the model writes as ``text``, has no points at these values of its arguments."""
    simple = get(family)
    assert simple is not None, family
    reason = simple.empty(shape, *args)
    if reason:
        refuse(errors.empty_set(text, span, reason))
