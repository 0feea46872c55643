"""Registries without a list: a concept is a record in a file of its package, and is found there."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Record = TypeVar("Record", bound=_Named)


def records(package: str, kind: type[Record]) -> Mapping[str, Record]:
    """The records of a kind that the public modules of a package hold, by their names, in alphabetical
    order."""
    files = pkgutil.iter_modules(importlib.import_module(package).__path__)
    modules = [file.name for file in files if not file.ispkg and not file.name.startswith("_")]
    values = [
        value for name in modules for value in vars(importlib.import_module(f"{package}.{name}")).values()
    ]
    by_name = {value.name: value for value in values if isinstance(value, kind)}
    return MappingProxyType(dict(sorted(by_name.items())))
