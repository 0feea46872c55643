"""Text files with one row per line and the columns' names in the first line."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fccomodel.core import memory
from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors, frame
from fccomodel.data.sources.base import DataRequest, DataSource, RawTable, rows_of_part

#: Bytes that are read at once.
CHUNK = 1 << 20
#: Columns of the first part that is read; the width of the file sets the size of the next ones.
ASSUMED_COLUMNS = 1 << 20
#: Bytes of the longest line: a million columns with names of 60 characters.
LONGEST_LINE = 1 << 26
#: Bytes of memory that a cell takes while its file is read, in the parser and in its column.
BYTES_OF_CELL = 16


def _open(path: Path, request: DataRequest) -> RawTable:
    with _read(path, request, whole=True) as data:
        whole = data.read()
    return _named(whole, path, request)


def _parts(path: Path, request: DataRequest, texts: frozenset[str]) -> Generator[RawTable]:
    """The rows in parts; the columns ``texts`` are read as texts even if a part has only numbers."""
    with _read(path, request, texts) as data:
        rows = rows_of_part(ASSUMED_COLUMNS)
        while True:
            try:
                part = data.read(rows)
            except StopIteration:
                return
            rows = rows_of_part(len(part.columns))
            yield _named(part, path, request)


class _Bounded(io.RawIOBase):
    """The bytes of an open file; reading fails on a line that is too long.

    With a ``separator``, it also fails if the cells of the file do not fit into memory.
    """

    def __init__(self, file: Any, path: Path, separator: str = ""):
        self.file = file
        self.path = path
        self.separator = separator.encode()
        self.line = 0
        self.cells = 0
        self.allowed = memory.available() // BYTES_OF_CELL

    def readable(self) -> bool:
        """Always True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes. Raises FccoError (F0506) for a line, or for cells, too large to hold."""
        content = self.file.read(min(len(buffer), CHUNK))
        start = content.rfind(b"\n")
        self.line = len(content) - start - 1 if start >= 0 else self.line + len(content)
        if self.line > LONGEST_LINE:
            refuse(errors.line_too_long(self.path.name, LONGEST_LINE))
        if self.separator:
            self.cells += content.count(self.separator) + content.count(b"\n")
            if self.cells > self.allowed:
                refuse(errors.csv_too_large(self.path.name, self.cells, self.allowed * BYTES_OF_CELL))
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def _read(
    path: Path, request: DataRequest, texts: frozenset[str] = frozenset(), *, whole: bool = False
) -> Iterator[Any]:
    """pandas' reader of the file; ``whole`` if all of it will be held in memory."""
    import pandas as pd

    separator = _separator(path, request)
    settings: dict[str, Any] = {
        "sep": separator,
        "na_values": request.options.get("na"),
        "dtype": dict.fromkeys(texts, str),
    }
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with (
            opened(path, "rb") as file,
            io.BufferedReader(_Bounded(file, path, separator if whole else "")) as bounded,
            pd.read_csv(bounded, **settings, low_memory=False, iterator=True) as data,
        ):
            yield data
    except pd.errors.EmptyDataError:
        refuse(errors.empty_file(path.name))
    except (pd.errors.ParserError, UnicodeError, OSError, ValueError, EOFError, zlib.error) as error:
        refuse(errors.not_csv(path.name, error))


def _separator(path: Path, request: DataRequest) -> str:
    """The separator that the binding names, or the usual one of the file's suffix."""
    tabs = any(path.name.lower().endswith(end) for end in (".tsv", ".tsv.gz"))
    return str(request.options.get("separator", "\t" if tabs else ","))


def _named(data: Any, path: Path, request: DataRequest) -> RawTable:
    """The rows as a table. Raises FccoError (F0506) if their columns have another separator."""
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
