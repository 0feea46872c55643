"""torch and sympy, imported where they are first used: a text is checked and explained without the
one, solved without the other.

``from fccomodel.core.lazy import torch`` stands for ``import torch`` in rooms that such commands go through.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


class Lazy:
    """Stands for a module; what is read of it is kept."""

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
