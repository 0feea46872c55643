"""Parquet files, read column by column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import _arrow, errors
from fccomodel.data.sources._base import DataSource, RawColumn, RawTable, Request, demand_distinct, rows_of_part


def _open(path: Path, request: Request) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, pre_buffer=False)  # which would keep what is read
    except (pa.ArrowException, OSError) as error:
        refuse(errors.not_parquet(path.name, error))
    schema = file.schema_arrow
    demand_distinct(schema.names, path.name)

    def load(name: str) -> RawColumn:
        try:
            return _arrow.column(file.read(columns=[name], use_threads=False).column(name))
        except (pa.ArrowException, OSError) as error:
            refuse(errors.unreadable_column(path.name, name, error))

    def parts(name: str) -> Iterator[RawColumn]:
        rows = rows_of_part(_arrow.width(schema.field(name).type))
        try:
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(rows, row_groups=[group], columns=[name], use_threads=False):
                    yield _arrow.column(batch.column(0))
        except (pa.ArrowException, OSError) as error:
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


SOURCE = DataSource(name="parquet", meaning="a parquet file", open=_open, suffixes=(".parquet", ".pq"), needs=("pyarrow",))
