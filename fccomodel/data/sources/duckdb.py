"""Queries in SQL, answered by DuckDB: over Parquet, CSV and JSON files, and its own databases.

A query comes from a binding file, which someone else may have written. It must be one SELECT
statement, and its connection can do nothing else: it loads no extension, sees nothing of the Python
program, attaches databases for reading only, and opens only files that the query names in quotes and
that are open to it (see ``_paths``). Settings are locked before the query runs. Data that do not fit
into memory are spilled into a temporary folder.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors, frame
from fccomodel.data.sources._paths import demand_below, find_file, is_pattern, matching, open_to_search
from fccomodel.data.sources.base import DataRequest, DataSource, RawTable, rows_of_part

#: Suffixes of files of rows, each with the function that reads several such files.
READERS = {
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".ndjson": "read_json",
    ".jsonl": "read_json",
}
#: Suffixes of compressed files of rows.
COMPRESSED = (".gz", ".zst")
#: Suffixes of databases.
DATABASES = (".duckdb", ".db", ".ddb")
#: Beginnings of the names of functions whose arguments name files to read.
READING = ("read_", "parquet_", "sniff_csv")
#: Settings of a new connection.
SAFE: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
#: Statements after which a connection reads only allowed files, and its settings cannot change.
LOCKED = (
    "SET python_enable_replacements = false",
    "SET allow_persistent_secrets = false",
    "SET preserve_insertion_order = true",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


@contextmanager
def _answer(query: str, request: DataRequest) -> Iterator[Any]:
    """The answer as a stream of batches, which is read within the block."""
    import duckdb

    with TemporaryDirectory(prefix="fccomodel-duckdb-") as spilled, duckdb.connect(config=SAFE) as connection:
        try:
            text, files = _with_files(connection, query, request)
            _attach(connection, request)
            connection.execute(f"SET temp_directory = {_literal(Path(spilled, 'spill'))}")
            connection.execute(f"SET allowed_paths = [{', '.join(map(_literal, files))}]")
            for setting in LOCKED:
                connection.execute(setting)
            answer = connection.sql(text)
            yield answer.to_arrow_reader(rows_of_part(len(answer.columns)))
        except duckdb.PermissionException as error:
            refuse(errors.query_outside(query, error))
        except (duckdb.Error, OSError, RecursionError) as error:
            refuse(errors.not_a_query(query, error))


def _literal(path: Path) -> str:
    """A path as a text of SQL."""
    quoted = str(path).replace("'", "''")
    return f"'{quoted}'"


def _attach(connection: Any, request: DataRequest) -> None:
    """Attach the databases among ``files``, for reading, each by its name without the end."""
    import duckdb

    for name in request.options.get("files", ()):
        if not name.lower().endswith(DATABASES):
            continue
        path = find_file(name, request.folders)
        alias = path.stem.replace('"', '""')
        try:
            connection.execute(f'ATTACH {_literal(path.resolve())} AS "{alias}" (READ_ONLY)')
        except duckdb.Error as error:
            refuse(errors.not_a_database(path, error))


# ----------------------------------------------------------------------------- the files of a query
def _with_files(connection: Any, query: str, request: DataRequest) -> tuple[str, list[Path]]:
    """The query with full paths in place of its file names, and these files.

    Raises FccoError with F0538 if it is not one SELECT statement, and with F0505 or F0537 for a file
    that does not exist or is not open to the query.
    """
    kinds = [statement.type.name for statement in connection.extract_statements(query)]
    if kinds != ["SELECT"]:
        refuse(errors.not_one_select(query, kinds))
    parsed = json.loads(connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()[0])
    places = open_to_search(request)
    written, files = query.encode(), list[Path]()
    for mention in sorted(_mentions(parsed), key=lambda mention: mention.start, reverse=True):
        name = _text_at(written, mention.start)
        if name is None or not _is_file_name(name[0], mention):
            continue
        text, end = name
        mentioned = _files(text, query, request, places)
        files += mentioned
        written = written[: mention.start] + _as_sql(mentioned, mention, text).encode() + written[end:]
    return written.decode(), files


@dataclass(frozen=True)
class _Mention:
    """A place where a query may name a file.

    start  its offset in bytes
    kind   ``table``, ``argument`` of a reading function, or ``item`` of a list of arguments
    """

    start: int
    kind: str


def _mentions(parsed: Any) -> Iterator[_Mention]:
    """Every place of a parsed query where a file may be named."""
    stack: list[tuple[Any, str]] = [(parsed, "")]
    while stack:
        node, within = stack.pop()
        if isinstance(node, list):
            stack += [(item, within) for item in node]
        if not isinstance(node, Mapping):
            continue
        if within and node.get("class") == "COMPARISON":  # a named argument, such as delim = ';'
            continue
        function = str(node.get("function_name", ""))
        if node.get("type") == "BASE_TABLE":
            yield _Mention(int(node["query_location"]), "table")
        elif within and node.get("class") == "CONSTANT":
            yield _Mention(int(node["query_location"]), within)
        elif function.startswith(READING):
            within = "argument"
        elif within and function == "list_value":
            within = "item"
        stack += [(item, within) for item in node.values()]


def _text_at(query: bytes, start: int) -> tuple[str, int] | None:
    """The quoted text that begins at an offset, and its end; None if there is none."""
    quote = query[start : start + 1]
    if quote not in (b"'", b'"') or not quote:
        return None
    end = start + 1
    while (end := query.find(quote, end)) >= 0:
        if query[end + 1 : end + 2] != quote:
            return query[start + 1 : end].replace(quote * 2, quote).decode(), end + 1
        end += 2
    return None


def _reader(name: str) -> str | None:
    """The function that reads files with a name's suffix, or None if it is not a suffix of files."""
    lower = name.lower()
    for end in COMPRESSED:
        lower = lower.removesuffix(end)
    return next((reader for end, reader in READERS.items() if lower.endswith(end)), None)


def _is_file_name(name: str, mention: _Mention) -> bool:
    """Whether a text names a file: an argument of a reading function does, a table by its suffix."""
    return mention.kind != "table" or _reader(name) is not None


def _files(name: str, query: str, request: DataRequest, places: tuple[Path, ...]) -> list[Path]:
    """The files that a name or a pattern in a query stands for, as full paths with links resolved."""
    if "://" in name:
        refuse(errors.address(name))
    if is_pattern(name):
        return [file.resolve() for file in matching(name, request)]
    file = find_file(name, request.folders)
    demand_below(file, request, places, "the query")
    return [file.resolve()]


def _as_sql(files: list[Path], mention: _Mention, name: str) -> str:
    """The SQL text that replaces a file's name: a table, an item of a list, or an argument."""
    listed = ", ".join(map(_literal, files))
    if mention.kind == "item" or len(files) == 1:
        return listed
    if mention.kind == "argument":
        return f"[{listed}]"
    return f"{_reader(name)}([{listed}])"


# --------------------------------------------------------------------------------------- the source
def _open(query: str, request: DataRequest) -> RawTable:
    with _answer(query, request) as batches:
        return _table(batches.read_all(), query)


def _parts(query: str, request: DataRequest, texts: frozenset[str]) -> Generator[RawTable]:
    import pyarrow as pa

    with _answer(query, request) as batches:
        yield _table(batches.schema.empty_table(), query)
        for batch in batches:
            yield _table(pa.Table.from_batches([batch]), query)


def _table(answer: Any, query: str) -> RawTable:
    return frame.from_arrow(answer, f"duckdb:{query}")


SOURCE = DataSource(
    name="duckdb",
    meaning="a query in SQL (DuckDB)",
    open=_open,
    scheme="duckdb",
    needs=("duckdb", "pyarrow"),
    stream=_parts,
)
