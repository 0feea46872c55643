"""A number that often stands for a missing value is taken as a value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fccomodel.report.cautions._base import Caution, Subject, counted, vectors

#: numbers by which files mark what is missing
CODES = (-9.0, -99.0, -999.0, -9999.0, -99999.0, 99999.0, 999999.0, 1e20, -1e20, 1e30, -1e30)
#: the share of the range of all values that lies between such a number and the others at least
APART = 0.5
#: and the rows that have it
ROWS = 2


def find(subject: Subject) -> Iterator[str]:
    """Entries of vector columns with such a number, far from all others, in several rows."""
    for table, column, values, names in vectors(subject.bound):
        for k in np.flatnonzero(
            np.isin(_raw(table.encoding.get(column), values.min(0)), CODES)
            | np.isin(_raw(table.encoding.get(column), values.max(0)), CODES)
        ):
            code = _code(np.sort(values[:, k]))
            if code is None:
                continue
            value = float(_raw(table.encoding.get(column), np.full(values.shape[1], code[0]))[k])
            yield (
                f"{table.name}.{column}: `{names[k]}` is {value:g} in {counted(code[1], 'row')}, far "
                "from all other values: "
                "it may stand for a missing value."
            )


def _raw(encoding: object, entries: np.ndarray) -> np.ndarray:
    """Values of the entries before they were scaled."""
    if isinstance(encoding, dict):
        scale = encoding.get("scale")
    else:
        scale = None
    if not isinstance(scale, dict):
        return entries
    mean, divisor = (np.asarray(scale[name], float) for name in ("mean", "divisor"))
    raw = entries.astype(float)
    raw[: len(mean)] = raw[: len(mean)] * divisor + mean
    return np.round(raw, 6)


def _code(ascending: np.ndarray) -> tuple[float, int] | None:
    """The value at one end that is apart from the others, and how many rows have it."""
    for ordered in (ascending, ascending[::-1]):
        count = int((ordered == ordered[0]).sum())
        spread = abs(ordered[-1] - ordered[0])
        if ROWS <= count < len(ordered) and abs(ordered[count] - ordered[0]) >= APART * spread > 0:
            return float(ordered[0]), count
    return None


caution = Caution(name="codes for missing values", find=find)
