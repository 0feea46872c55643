"""What a record of JSON-like values looks like: predicates, put together of smaller ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

#: Whether a value is as it should be.
Fits = Callable[[Any], bool]


def anything(value: Any) -> bool:
    """Whatever there is."""
    return True


def text(value: Any) -> bool:
    """Whether it is a text."""
    return isinstance(value, str)


def number(value: Any) -> bool:
    """Whether it is a finite number of a size that a float has."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def count(value: Any) -> bool:
    """Whether it is a whole number, 0 or more, of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def flag(value: Any) -> bool:
    """Whether it is a truth value."""
    return isinstance(value, bool)


def one_of(*values: Any) -> Fits:
    """One of some values, of the same type."""
    return lambda value: any(type(value) is type(other) and value == other for other in values)


def either(*forms: Fits) -> Fits:
    """As one of several forms."""
    return lambda value: any(fits(value) for fits in forms)


def maybe(fits: Fits) -> Fits:
    """None, or as it should be."""
    return lambda value: value is None or fits(value)


def several(fits: Fits) -> Fits:
    """A list of such values."""
    return lambda value: isinstance(value, list | tuple) and all(map(fits, value))


def by_name(fits: Fits) -> Fits:
    """A mapping from texts to such values."""
    return lambda value: (
        isinstance(value, Mapping) and all(isinstance(key, str) and fits(item) for key, item in value.items())
    )


def record(needed: Mapping[str, Fits], optional: Mapping[str, Fits] | None = None) -> Fits:
    """A mapping with such entries, of which the optional ones may be left out; it may have others."""
    return lambda value: isinstance(value, Mapping) and not misfits(value, needed, optional)


def misfits(
    value: Mapping[str, Any], needed: Mapping[str, Fits], optional: Mapping[str, Fits] | None = None
) -> list[str]:
    """The entries of a mapping that are missing, or are not as they should be."""
    absent = [name for name in needed if name not in value]
    wrong = [
        name
        for name, fits in {**needed, **(optional or {})}.items()
        if name in value and not fits(value[name])
    ]
    return absent + wrong


def nested_numbers(value: Any) -> bool:
    """Whether it is a number, or a list of numbers, or of such lists; at most as deep as an array has
    axes."""
    return _numbers(value, 32)


def _numbers(value: Any, depth: int) -> bool:
    if isinstance(value, list | tuple):
        return depth > 0 and all(_numbers(item, depth - 1) for item in value)
    return number(value)
