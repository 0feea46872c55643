"""Finds every simple set."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.core.ir import Shape
from fccomodel.core.registry import records
from fccomodel.core.source import Span
from fccomodel.library import errors
from fccomodel.library.sets._base import SimpleSet


@cache
def all() -> Mapping[str, SimpleSet]:
    """Every set by its name, in alphabetical order."""
    return records("fccomodel.library.sets", SimpleSet)


def get(name: str) -> SimpleSet | None:
    """The set of this name, or None."""
    return all().get(name)


def check_not_empty(family: str, text: str, shape: Shape, args: tuple[Any, ...], span: Span | None = None) -> None:
    """FccoError F0532 if the set, which the model writes as ``text``, has no points at these values of its arguments."""
    simple = get(family)
    assert simple is not None, family
    reason = simple.empty(shape, *args)
    if reason:
        refuse(errors.empty_set(text, span, reason))
