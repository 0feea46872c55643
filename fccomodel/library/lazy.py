"""Modules that are imported where they are first used: reading what is known of a concept needs none of them."""

from __future__ import annotations

import importlib
from typing import Any


class Lazy:
    """Stands for a module until an attribute of it is asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
