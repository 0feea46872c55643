"""Parquet files, read column by column."""

from __future__ import annotations

from pathlib import Path

from fccomodel.data.sources import _arrow
from fccomodel.data.sources._base import RawColumn, RawTable, Request, Source, refuse


def _open(path: Path, request: Request) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        refuse(
            "F0506",
            f"{path.name} cannot be read as parquet: {_first_line(error)}",
            fix="write the file again, or give the right one",
        )
    schema = file.schema_arrow
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        refuse(
            "F0506", f"{path.name} has several columns named {twice[0]}", fix="rename them, so that each name means one column"
        )

    def load(name: str) -> RawColumn:
        try:
            return _arrow.column(file.read(columns=[name], use_threads=False).column(name))
        except (pa.ArrowException, OSError) as error:
            refuse("F0506", f"{path.name}: column {name} cannot be read: {_first_line(error)}", fix="write the file again")

    numeric = {field.name: _arrow.is_numeric(field.type) for field in schema}
    return RawTable(
        origin=str(path),
        n=file.metadata.num_rows,
        numeric=numeric,
        load=load,
        vectors=_arrow.vector_columns(schema),
        hidden=_arrow.hidden_columns(schema),
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


SOURCE = Source(name="parquet", meaning="a parquet file", open=_open, suffixes=(".parquet", ".pq"), needs=("pyarrow",))
