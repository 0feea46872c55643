"""The list of every concept that has a file of its own: atoms, regularisers, sets, sources, estimators, algorithms, ..."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Any

PACKAGES = (
    "library.atoms",
    "library.regularisers",
    "library.sets",
    "data.sources",
    "algorithms.estimators",
    "normal.reformulations",
    "algorithms",
)


def concepts(package: str) -> dict[str, str]:
    """Every concept of a package with its meaning in one line, sorted by name."""
    module = importlib.import_module(f"fccomodel.{package}")
    if hasattr(module, "all"):
        found = module.all()
        pairs: Iterable[tuple[str, Any]] = found.items() if isinstance(found, Mapping) else ((item.name, item) for item in found)
    else:
        files = [info.name for info in pkgutil.iter_modules(module.__path__) if not info.ispkg and not info.name.startswith("_")]
        pairs = [(name, importlib.import_module(f"{module.__name__}.{name}")) for name in files]
    return dict(sorted((str(getattr(item, "signature", name)), _meaning(item)) for name, item in pairs))


def _meaning(item: Any) -> str:
    text = getattr(item, "meaning", "") or getattr(item, "formula", "") or getattr(item, "title", "") or item.__doc__ or ""
    return " ".join(str(text).strip().partition("\n")[0].split())


def dump() -> str:
    """All concepts, one per line under the name of their package."""
    lines = []
    for package in PACKAGES:
        listed = (f"  {name:<28} {meaning}".rstrip() for name, meaning in concepts(package).items())
        lines += [package.rpartition(".")[2], *listed, ""]
    return "\n".join(lines)
