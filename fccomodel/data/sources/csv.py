"""Text files with one row per line and the columns' names in the first."""

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
from fccomodel.data.sources.base import DataSource, RawTable, Request, rows_of_part

#: Bytes that are read at once.
CHUNK = 1 << 20
#: Bytes of the longest line: a million columns with names of 60 characters.
LONGEST_LINE = 1 << 26
#: Bytes of memory that a number takes while its file is read: in the parser, and in its column.
BYTES_OF_CELL = 16


def _open(path: Path, request: Request) -> RawTable:
    with _read(path, request, whole=True) as data:
        whole = data.read()
    return _named(whole, path, request)


def _parts(path: Path, request: Request, texts: frozenset[str]) -> Generator[RawTable]:
    """The rows in parts; a column of ``texts`` is not taken for numbers, whatever its part of the rows
    holds."""
    with _read(path, request, texts) as data:
        rows = rows_of_part(1 << 20)
        while True:
            try:
                part = data.read(rows)
            except StopIteration:
                return
            rows = rows_of_part(len(part.columns))
            yield _named(part, path, request)


class _Bounded(io.RawIOBase):
    """The bytes of a file, which may be packed, as long as no line is longer than any table has and,
    where a ``separator`` is given, all of its cells fit memory."""

    def __init__(self, file: Any, path: Path, separator: str = ""):
        self.file, self.path, self.separator = file, path, separator.encode()
        self.line, self.cells = 0, 0
        self.most = memory.available() // BYTES_OF_CELL

    def readable(self) -> bool:
        """True: it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes. F0506 for a line, or for more cells, than can be held."""
        content = self.file.read(min(len(buffer), CHUNK))
        start = content.rfind(b"\n")
        if start >= 0:
            self.line = len(content) - start - 1
        else:
            self.line = self.line + len(content)
        if self.line > LONGEST_LINE:
            refuse(errors.line_too_long(self.path.name, LONGEST_LINE))
        if self.separator:
            self.cells += content.count(self.separator) + content.count(b"\n")
            if self.cells > self.most:
                refuse(errors.csv_too_large(self.path.name, self.cells, self.most * BYTES_OF_CELL))
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def _read(
    path: Path, request: Request, texts: frozenset[str] = frozenset(), *, whole: bool = False
) -> Iterator[Any]:
    """A reader of the file. ``whole``: all of it is held in memory."""
    import pandas as pd

    separator = _separator(path, request)
    ways: dict[str, Any] = {
        "sep": separator,
        "na_values": request.options.get("na"),
        "dtype": dict.fromkeys(texts, str),
    }
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with (
            opened(path, "rb") as file,
            io.BufferedReader(_Bounded(file, path, separator if whole else "")) as bounded,
            pd.read_csv(bounded, **ways, low_memory=False, iterator=True) as data,
        ):
            yield data
    except pd.errors.EmptyDataError:
        refuse(errors.empty_file(path.name))
    except (pd.errors.ParserError, UnicodeError, OSError, ValueError, EOFError, zlib.error) as error:
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
