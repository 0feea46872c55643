"""Algorithms as a comparison names them: ``sox``, or with options ``sox(gamma=0.1, inner_batch=4)``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fccomodel.app.stored.comparison import errors
from fccomodel.core import options
from fccomodel.core.diagnostics import refuse

#: Options that all runs of a comparison share, or that it sets itself.
OF_ALL = ("algorithm", "seed", "budget", "device", *options.ABOUT_NEW_ROWS)
#: A variant as text: a name, and perhaps options in parentheses.
WRITTEN = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class ComparedVariant:
    """An algorithm with the options that hold for it alone."""

    algorithm: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def label(self) -> str:
        """The name of the variant in tables and curves."""
        inside = ", ".join(f"{name}={_written(value)}" for name, value in self.options)
        if inside:
            return f"{self.algorithm}({inside})"
        return self.algorithm


def split(text: str) -> list[str]:
    """The nonempty parts between commas that are outside parentheses."""
    parts = re.split(r",(?![^()]*\))", text)
    return [part.strip() for part in parts if part.strip()]


def read(names: Iterable[str]) -> dict[str, ComparedVariant]:
    """Variants by their labels, each once. Refuses a text not of the form ``name(option=value, ..)``."""
    variants = [_read(name) for name in names]
    return {variant.label: variant for variant in variants}


def _read(text: str) -> ComparedVariant:
    """The variant that a text names."""
    match = WRITTEN.fullmatch(text)
    if match is None:
        refuse(errors.not_a_variant(text))
    values: dict[str, Any] = {}
    for part in split(match[2] or ""):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (equals and name.isidentifier() and value) or name in values:
            refuse(errors.not_a_variant(text))
        if name in OF_ALL:
            refuse(errors.of_all_runs(name, text))
        values[name] = options.check_value(name, options.value_of(value), text)
    return ComparedVariant(algorithm=match[1], options=tuple(values.items()))


def _written(value: Any) -> str:
    """An option's value as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value)
