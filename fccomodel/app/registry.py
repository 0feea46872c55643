"""The list of every concept: atoms, regularisers, sets, sources, estimators, algorithms, ..., the
operations of programs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import fccomodel
from fccomodel.core import diagnostics

_PACKAGE = Path(fccomodel.__file__).parent

PACKAGES = (
    "library.atoms",
    "library.array_functions",
    "library.reductions",
    "library.regularisers",
    "library.sets",
    "library.identities",
    "library.distributions",
    "data.sources",
    "algorithms.estimators",
    "normal_form.reformulations",
    "algorithms",
    "program.operations",
    "execution.backends",
)


def concepts(package: str) -> dict[str, str]:
    """Every concept of a package with its meaning in one line, sorted by name."""
    module = importlib.import_module(f"fccomodel.{package}")
    if hasattr(module, "all"):
        every = module.all()
        pairs: Iterable[tuple[str, Any]]
        if isinstance(every, Mapping):
            pairs = every.items()
        else:
            pairs = ((item.name, item) for item in every)
    else:
        files = [
            info.name
            for info in pkgutil.iter_modules(module.__path__)
            if not info.ispkg and not info.name.startswith("_")
        ]
        pairs = [(name, importlib.import_module(f"{module.__name__}.{name}")) for name in files]
    return dict(sorted((str(getattr(item, "signature", name)), _meaning(item)) for name, item in pairs))


def _meaning(item: Any) -> str:
    text = (
        getattr(item, "meaning", "")
        or getattr(item, "formula", "")
        or getattr(item, "title", "")
        or item.__doc__
        or ""
    )
    return " ".join(str(text).strip().partition("\n\n")[0].split())


def error_modules() -> list[ModuleType]:
    """All modules named ``errors``."""
    paths = sorted(_PACKAGE.rglob("errors.py")) + sorted(_PACKAGE.rglob("errors/[!_]*.py"))
    names = (".".join(("fccomodel", *path.relative_to(_PACKAGE).with_suffix("").parts)) for path in paths)
    return [importlib.import_module(name) for name in names]


def codes() -> dict[str, str]:
    """Every code of an error with its topic, sorted."""
    error_modules()
    return {code.id: code.topic for code in diagnostics.registered()}


def dump() -> str:
    """All concepts, one per line under the name of their package, and the codes of errors."""
    lines = []
    for package in PACKAGES:
        listed = (f"  {name:<28} {meaning}".rstrip() for name, meaning in concepts(package).items())
        lines += [package.rpartition(".")[2], *listed, ""]
    return "\n".join([*lines, "errors", *(f"  {code} {topic}" for code, topic in codes().items()), ""])
