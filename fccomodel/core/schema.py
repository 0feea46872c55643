"""Schemas of JSON-like values: predicates that are built from smaller ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

#: A predicate: whether a value has the expected form.
Fits = Callable[[Any], bool]


def anything(value: Any) -> bool:
    """Always True."""
    return True


def text(value: Any) -> bool:
    """Whether the value is a text."""
    return isinstance(value, str)


def number(value: Any) -> bool:
    """Whether the value is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def count(value: Any) -> bool:
    """Whether the value is a whole number from 0 to 2^63 - 1."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def flag(value: Any) -> bool:
    """Whether the value is True or False."""
    return isinstance(value, bool)


def one_of(*values: Any) -> Fits:
    """Whether a value equals one of some values, and has its type."""
    return lambda value: any(type(value) is type(other) and value == other for other in values)


def either(*forms: Fits) -> Fits:
    """Whether a value has one of several forms."""
    return lambda value: any(fits(value) for fits in forms)


def maybe(fits: Fits) -> Fits:
    """Whether a value is None or has a form."""
    return lambda value: value is None or fits(value)


def several(fits: Fits) -> Fits:
    """Whether a value is a list, and each item has a form."""
    return lambda value: isinstance(value, list | tuple) and all(map(fits, value))


def by_name(fits: Fits) -> Fits:
    """Whether a value is a mapping from texts to values of a form."""

    def fits_by_name(value: Any) -> bool:
        """Whether a value is a mapping from names to items that fit."""
        if not isinstance(value, Mapping):
            return False
        return all(isinstance(key, str) and fits(item) for key, item in value.items())

    return fits_by_name


def record(needed: Mapping[str, Fits], optional: Mapping[str, Fits] | None = None) -> Fits:
    """Whether a value is a mapping with these entries; optional ones may be missing, others may exist."""
    return lambda value: isinstance(value, Mapping) and not misfits(value, needed, optional)


def misfits(
    value: Mapping[str, Any], needed: Mapping[str, Fits], optional: Mapping[str, Fits] | None = None
) -> list[str]:
    """The names of the entries of a mapping that are missing, or have a wrong form."""
    forms = {**needed, **(optional or {})}
    absent = [name for name in needed if name not in value]
    wrong = [name for name, fits in forms.items() if name in value and not fits(value[name])]
    return absent + wrong


#: The largest number of axes of an array.
MOST_AXES = 32


def nested_numbers(value: Any) -> bool:
    """Whether the value is a number, or a list of numbers or of such lists, at most MOST_AXES deep."""
    return _numbers(value, MOST_AXES)


def _numbers(value: Any, depth: int) -> bool:
    if isinstance(value, list | tuple):
        return depth > 0 and all(_numbers(item, depth - 1) for item in value)
    return number(value)
