"""Texts that stand for a missing value, in tables other than csv files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from fccomodel.data.sources.base import RawColumn, RawTable


def without(raw: RawTable, marks: Sequence[str]) -> RawTable:
    """The table with missing values where a column has one of the marks, as pandas reads csv files.

    A column of texts becomes one of numbers if all its other texts spell numbers.
    """
    if raw.ready:
        return raw

    @cache
    def load(name: str) -> RawColumn:
        """The column with its missing values."""
        column = raw.load(name)
        if column.unusable or column.values.ndim != 1:
            return column
        if column.categories is None:
            return _of_numbers(column, marks)
        return _of_texts(column, column.categories, marks)

    def pieces(name: str) -> Iterator[RawColumn]:
        """The column as one piece."""
        yield load(name)

    numeric = {
        name: kind or (name not in raw.hidden and load(name).categories is None)
        for name, kind in raw.numeric.items()
    }
    return replace(raw, numeric=numeric, load=load, parts=raw.parts and pieces)


def _of_numbers(column: RawColumn, marks: Sequence[str]) -> RawColumn:
    """A column of numbers, NaN where it has a mark that spells a number."""
    numbers = [number for number in map(_number, marks) if number is not None]
    missing = np.isin(column.values, numbers)
    if not missing.any():
        return column
    return replace(column, values=np.where(missing, np.nan, column.values))


def _of_texts(column: RawColumn, categories: Sequence[str], marks: Sequence[str]) -> RawColumn:
    """A column of texts without the marks; of numbers if the other texts spell these."""
    kept = [text for text in categories if text not in marks]
    if len(kept) == len(categories):
        return column
    numbers = [_number(text) for text in kept]
    if kept and None not in numbers:
        by_text = dict(zip(kept, numbers, strict=True))
        values = np.array([*(by_text.get(text, np.nan) for text in categories), np.nan], float)
        return replace(column, values=values[column.values], categories=None)
    places = np.array([*(kept.index(text) if text in kept else -1 for text in categories), -1], np.int64)
    return replace(column, values=places[column.values], categories=tuple(kept))


def _number(text: str) -> float | None:
    """The number that a text spells, or None."""
    try:
        return float(text)
    except ValueError:
        return None
