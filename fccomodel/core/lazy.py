"""torch and sympy, imported when they are first used.

Checking and explaining a model needs no torch, and solving needs no sympy. Modules that such commands
import write ``from fccomodel.core.lazy import torch`` in place of ``import torch``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class Lazy:
    """Stands for a module; an attribute that was read once is kept."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import sympy
    import torch
else:
    sympy, torch = Lazy("sympy"), Lazy("torch")

__all__ = ["Lazy", "sympy", "torch"]
