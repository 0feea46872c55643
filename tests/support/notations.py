"""A model written in Python and read back."""

from __future__ import annotations

from typing import Any

import fccomodel as fc


def goes_both_ways(text: str) -> bool:
    """Whether the Python code that a model is printed as builds the same model."""
    model = fc.Model.parse(text)
    scope: dict[str, Any] = {}
    exec(model.to_python(), scope)
    return str(scope["m"]) == str(model)
