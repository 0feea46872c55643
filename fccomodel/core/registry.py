"""Registries without a list: each concept is a record in a module of its package, and is found there."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar


class _Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name under which the record is found."""
        ...


Record = TypeVar("Record", bound=_Named)


def records(package: str, kind: type[Record]) -> Mapping[str, Record]:
    """The records of a class in the public modules of a package, by name in alphabetical order."""
    by_name: dict[str, Record] = {}
    for file in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if file.ispkg or file.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package}.{file.name}")
        by_name |= {value.name: value for value in vars(module).values() if isinstance(value, kind)}
    return MappingProxyType(dict(sorted(by_name.items())))
