"""Parquet files, read column by column."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from fccomodel.core import memory
from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import _arrow, errors
from fccomodel.data.sources.base import (
    DataRequest,
    DataSource,
    RawColumn,
    RawTable,
    demand_distinct,
    rows_of_part,
)


def _open(path: Path, request: DataRequest) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, pre_buffer=False)  # a buffer would keep everything that was read
    except (pa.ArrowException, *DAMAGE_ERRORS) as error:
        refuse(errors.not_parquet(path.name, error))
    schema = file.schema_arrow
    demand_distinct(schema.names, path.name)

    unpacked = cache(lambda: _unpacked(file.metadata))

    def load(name: str) -> RawColumn:
        """The whole column; refused if it does not fit the memory."""
        available = memory.available()
        if max(8 * file.metadata.num_rows, unpacked().get(name, 0)) > available:
            refuse(errors.column_too_large(path.name, name, file.metadata.num_rows, available))
        try:
            return _arrow.column(file.read(columns=[name], use_threads=False).column(name))
        except (pa.ArrowException, *DAMAGE_ERRORS) as error:
            refuse(errors.unreadable_column(path.name, name, error))

    def parts(name: str) -> Iterator[RawColumn]:
        """The column, part by part."""
        rows = rows_of_part(_arrow.width(schema.field(name).type))
        try:
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(rows, row_groups=[group], columns=[name], use_threads=False):
                    yield _arrow.column(batch.column(0))
        except (pa.ArrowException, *DAMAGE_ERRORS) as error:
            refuse(errors.unreadable_column(path.name, name, error))

    numeric = {field.name: _arrow.is_numeric(field.type) for field in schema}
    return RawTable(
        origin=str(path),
        n=file.metadata.num_rows,
        numeric=numeric,
        load=load,
        vectors=_arrow.vector_columns(schema),
        hidden=_arrow.hidden_columns(schema),
        parts=parts,
    )


def _unpacked(metadata: Any) -> dict[str, int]:
    """The uncompressed size of each column, in bytes."""
    sizes: dict[str, int] = {}
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name = column.path_in_schema.partition(".")[0]
            sizes[name] = sizes.get(name, 0) + column.total_uncompressed_size
    return sizes


#: Errors that reading a damaged file raises, beside those of Arrow.
DAMAGE_ERRORS = (OSError, ValueError, KeyError, NotImplementedError, TypeError, MemoryError)
SOURCE = DataSource(
    name="parquet", meaning="a parquet file", open=_open, suffixes=(".parquet", ".pq"), needs=("pyarrow",)
)
