"""Concatenation of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data import errors as drawn_errors
from fccomodel.data.sources.base import RawColumn, RawTable


def joined(raw_tables: Sequence[RawTable], origin: str) -> RawTable:
    """The rows of several tables, one table after another, with the columns that all of them have."""
    first = raw_tables[0]
    if part := next((raw for raw in raw_tables if raw.drawn), None):
        refuse(drawn_errors.joined_rows(part.origin))
    names = [name for name in first.names if all(name in raw.numeric for raw in raw_tables)]

    def parts(name: str) -> Iterator[RawColumn]:
        """The parts of a column, table after table."""
        for raw in raw_tables:
            yield from raw.parts(name) if raw.parts is not None else [raw.load(name)]

    return RawTable(
        origin=origin,
        n=sum(raw.n for raw in raw_tables),
        numeric={name: all(raw.numeric[name] for raw in raw_tables) for name in names},
        load=lambda name: _column([raw.load(name) for raw in raw_tables]),
        vectors=frozenset(name for name in names if any(name in raw.vectors for raw in raw_tables)),
        hidden=frozenset(name for name in names if any(name in raw.hidden for raw in raw_tables)),
        parts=parts,
    )


def _column(parts: Sequence[RawColumn]) -> RawColumn:
    """Columns joined into one; unusable if they do not agree."""
    if unusable_part := next((part for part in parts if part.unusable), None):
        return unusable_part
    if all(part.categories is None for part in parts):
        shapes = {part.values.shape[1:] for part in parts}
        if len(shapes) > 1:
            return RawColumn(
                values=parts[0].values,
                unusable=f"the members' rows have shapes {', '.join(map(str, sorted(shapes)))}",
            )
        return RawColumn(values=np.concatenate([part.values for part in parts]), dtype=parts[0].dtype)
    if any(part.categories is None for part in parts):
        return RawColumn(
            values=parts[0].values, unusable="it is text for some members and numbers for others"
        )
    categories: dict[str, int] = {}
    codes = []
    for part in parts:
        positions = [categories.setdefault(text, len(categories)) for text in part.categories or ()]
        codes.append(np.array([*positions, -1])[part.values])
    return RawColumn(values=np.concatenate(codes), categories=tuple(categories), dtype=parts[0].dtype)
