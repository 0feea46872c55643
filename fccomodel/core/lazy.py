"""A module that is imported when it is first used."""

from __future__ import annotations

import importlib
from typing import Any


class Lazy:
    """Stands for a module, of which most of those who read its importer have no need."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self.name), attribute)
