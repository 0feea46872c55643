"""The section with the functions that fetch rows which are drawn: the file beside a program has none."""

from __future__ import annotations

from typing import Any

import numpy as np

from fccomodel.core.quoting import literal, shorten
from fccomodel.data.drawn import DrawnColumn, drawn
from fccomodel.evaluation.sets.mapped import FetchedRows
from fccomodel.program.emit.carried import source
from fccomodel.program.emit.page import function
from fccomodel.program.lower import Lowered

HEAD = "# ---- rows that are drawn: they are not in DATA_FILE; change what fetches them here"


def keys(lowered: Lowered) -> list[str]:
    """The keys of the arrays whose rows are drawn."""
    return [key for key, array in lowered.data.items() if drawn(array)]


def text(lowered: Lowered) -> list[str]:
    """The functions, and the one that puts them in the place of arrays; none for other programs."""
    if not keys(lowered):
        return []
    columns: dict[str, DrawnColumn] = {key: lowered.data[key] for key in keys(lowered)}  # type: ignore
    lines = ["return {"]
    for key, column in columns.items():
        lines.append(f"    {literal(key)}: FetchedRows(fetch_{key}, {column.shape}),")
    about = "What stands in for the arrays of these rows."
    return [
        f"{HEAD}\n{source(FetchedRows)}",
        *(_fetch(key, column) for key, column in columns.items()),
        function("fetched_rows", about, [*lines, "}"], ""),
    ]


def _fetch(key: str, column: DrawnColumn) -> str:
    """The function that fetches the rows of one column: from its file, or to be written."""
    kind = f"[n, {', '.join(map(str, column.part.event))}]"
    about = f"Rows {kind} by their numbers, from {shorten(column.source.what, 60)}."
    path = column.source.path(column.name)
    if path is not None and not column.changing and _in_order(column):
        lines = [
            "import numpy",
            "",
            f'rows = numpy.load({literal(str(path))}, mmap_mode="r")',
            "return torch.from_numpy(rows[numbers.numpy()])",
        ]
        return function(f"fetch_{key}", about, lines, "numbers, seed")
    what = f"return the rows of {key} with these numbers, transformed where a seed is given"
    words = f"error[F0539] rows: {key} is not in this program: write fetch_{key} in it, or solve in Python"
    lines = [f"# here: {what}", f"raise SystemExit({literal(words)})"]
    return function(f"fetch_{key}", about, lines, "numbers, seed")


def changing(column: Any) -> bool:
    """Whether steps may see a row of a column otherwise each time they draw it."""
    return column.changing


def _in_order(column: DrawnColumn) -> bool:
    """Whether a column has the rows of its source, all of them, in order."""
    return np.array_equal(column.at, np.arange(len(column)))
