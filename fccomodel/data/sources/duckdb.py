"""Queries in SQL, which DuckDB answers: over Parquet and CSV files, and its own databases."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors, frame
from fccomodel.data.sources._base import DataSource, RawTable, Request, rows_of_part


def _batches(query: str, request: Request) -> Any:
    """The answer as a stream of batches; files in it are looked for where those of a binding are."""
    import duckdb

    connection = duckdb.connect()
    try:
        folders = ",".join(str(folder.absolute()) for folder in request.folders)
        connection.execute("SET file_search_path = ?", [folders])
        connection.execute("SET preserve_insertion_order = true")
        answer = connection.sql(query)
        return answer.to_arrow_reader(rows_of_part(len(answer.columns)))
    except (duckdb.Error, OSError) as error:
        refuse(errors.not_a_query(query, error))


def _open(query: str, request: Request) -> RawTable:
    return _table(_batches(query, request).read_all(), query, request)


def _parts(query: str, request: Request, texts: frozenset[str]) -> Generator[RawTable]:
    import pyarrow as pa

    reader = _batches(query, request)
    yield _table(reader.schema.empty_table(), query, request)
    for batch in reader:
        yield _table(pa.Table.from_batches([batch]), query, request)


def _table(answer: Any, query: str, request: Request) -> RawTable:
    return frame.from_arrow(answer, f"duckdb:{query}")


SOURCE = DataSource(
    name="duckdb", meaning="a query in SQL (DuckDB)", open=_open, scheme="duckdb", needs=("duckdb", "pyarrow"), stream=_parts
)
