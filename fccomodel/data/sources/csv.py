"""Text files with one row per line and the columns' names in the first."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors, frame
from fccomodel.data.sources._base import DataSource, RawTable, Request, rows_of_part


def _open(path: Path, request: Request) -> RawTable:
    with _read(path, request) as data:
        whole = data.read()
    return _named(whole, path, request)


def _parts(path: Path, request: Request, texts: frozenset[str]) -> Generator[RawTable]:
    """The rows in parts; a column of ``texts`` is not taken for numbers, whatever its part of the rows holds."""
    with _read(path, request, texts) as data:
        rows = rows_of_part(1 << 20)
        while True:
            try:
                part = data.read(rows)
            except StopIteration:
                return
            rows = rows_of_part(len(part.columns))
            yield _named(part, path, request)


@contextmanager
def _read(path: Path, request: Request, texts: frozenset[str] = frozenset()) -> Iterator[Any]:
    """A reader of the file."""
    import pandas as pd

    ways: dict[str, Any] = {"sep": _separator(path, request), "na_values": request.options.get("na")}
    try:
        with pd.read_csv(path, **ways, low_memory=False, iterator=True, dtype=dict.fromkeys(texts, str)) as data:
            yield data
    except pd.errors.EmptyDataError:
        refuse(errors.empty_file(path.name))
    except (pd.errors.ParserError, UnicodeError, OSError, ValueError, EOFError) as error:
        refuse(errors.not_csv(path.name, error))


def _separator(path: Path, request: Request) -> str:
    tabs = any(path.name.lower().endswith(end) for end in (".tsv", ".tsv.gz"))
    return str(request.options.get("separator", "\t" if tabs else ","))


def _named(data: Any, path: Path, request: Request) -> RawTable:
    """The rows under the file's name; F0506 where their columns are separated by something else."""
    if len(data.columns) == 1 and _separator(path, request) == ",":
        likely = next((mark for mark in ";\t|" if mark in str(data.columns[0])), None)
        if likely is not None:
            refuse(errors.other_separator(path.name, str(data.columns[0]), likely, request.name))
    return frame.from_pandas(data, str(path))


SOURCE = DataSource(
    name="csv",
    meaning="a csv file",
    open=_open,
    suffixes=(".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    needs=("pandas",),
    stream=_parts,
)
