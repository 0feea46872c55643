"""Data frames: pandas, Arrow tables, and objects that export Arrow (polars, DuckDB relations, streams)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fccomodel.data.sources import _arrow
from fccomodel.data.sources.base import (
    DataRequest,
    DataSource,
    RawColumn,
    RawTable,
    as_array,
    demand_distinct,
    from_array,
)


def _is_pandas(value: Any) -> bool:
    """Whether a value is a pandas DataFrame; pandas is not imported."""
    return any(
        base.__module__.partition(".")[0] == "pandas" and base.__name__ == "DataFrame"
        for base in type(value).__mro__
    )


def from_pandas(data: Any, origin: str = "a DataFrame") -> RawTable:
    """A pandas DataFrame as a table; its index is ignored."""
    names = [str(name) for name in data.columns]
    demand_distinct(names, origin)
    series = {name: column for name, (_, column) in zip(names, data.items(), strict=True)}
    return RawTable(
        origin=origin,
        n=len(data),
        numeric={name: _pandas_numeric(column) for name, column in series.items()},
        load=lambda name: _pandas_column(series[name]),
        vectors=frozenset(name for name, column in series.items() if _is_vector(column)),
    )


def _arrow_type(series: Any) -> Any:
    """The Arrow type of a column that pandas stores in Arrow's format, or None."""
    import pandas as pd

    if isinstance(series.dtype, pd.ArrowDtype):
        return series.dtype.pyarrow_dtype
    return None


def _is_vector(series: Any) -> bool:
    """Whether the rows of a column are vectors of numbers."""
    if (kind := _arrow_type(series)) is not None:
        return _arrow.is_vector(kind)
    return series.dtype == object and _holds_vectors(series)


def _pandas_numeric(series: Any) -> bool:
    """Whether a column holds numbers, or vectors of numbers."""
    import pandas as pd

    if (kind := _arrow_type(series)) is not None:
        return _arrow.is_numeric(kind)
    if series.dtype == object:
        kinds = ("integer", "floating", "mixed-integer-float", "boolean", "decimal")
        return pd.api.types.infer_dtype(series, skipna=True) in kinds or _holds_vectors(series)
    types = pd.api.types
    return bool(types.is_numeric_dtype(series.dtype)) and not types.is_complex_dtype(series.dtype)


def _holds_vectors(series: Any) -> bool:
    """Whether the first value of a column of objects is a sequence of numbers."""
    first = next((value for value in series if value is not None), None)
    return isinstance(first, list | tuple | np.ndarray) and as_array(first).dtype.kind in "biuf"


def _pandas_column(series: Any) -> RawColumn:
    """A pandas column as a raw column."""
    import pandas as pd

    dtype = str(series.dtype)
    if _arrow_type(series) is not None:
        import pyarrow as pa

        return _arrow.column(pa.array(series))
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        return from_array(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), dtype)
    if isinstance(series.dtype, pd.CategoricalDtype):
        categories = tuple(str(value) for value in series.cat.categories)
        return RawColumn(values=np.asarray(series.cat.codes, np.int32), categories=categories, dtype=dtype)
    if _pandas_numeric(series) and not isinstance(series.dtype, np.dtype):  # pandas' nullable numbers
        return RawColumn(values=series.to_numpy(dtype=float, na_value=np.nan), dtype=dtype)
    if series.dtype == object:
        return from_array(series.to_numpy(object, copy=True), dtype)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufmM":
        return from_array(series.to_numpy(), dtype)
    if pd.api.types.is_complex_dtype(series.dtype):
        return RawColumn(values=np.zeros(0), dtype=dtype, unusable="its numbers are complex")
    codes, distinct = pd.factorize(series)
    texts = pd.Series(distinct).astype(str)
    return RawColumn(values=np.asarray(codes, np.int32), categories=tuple(texts), dtype=dtype)


def _is_lazy(value: Any) -> bool:
    """Whether a value is a LazyFrame of polars; polars is not imported."""
    return any(
        base.__module__.startswith("polars") and base.__name__ == "LazyFrame" for base in type(value).__mro__
    )


def streams(value: Any) -> bool:
    """Whether a value exports a table in Arrow's format.

    Single columns (a Series, a chunked array) export it too, but are not tables.
    """
    if not hasattr(value, "__arrow_c_stream__"):
        return False
    return hasattr(value, "columns") or not hasattr(value, "to_numpy")


def _accepts(value: Any) -> bool:
    return _is_pandas(value) or _is_lazy(value) or streams(value)


def read(value: Any) -> Any:
    """A query, a relation or a stream as an Arrow table, so that it is read once; other values unchanged."""
    if _is_lazy(value):
        value = value.collect()
    if not streams(value) or _is_pandas(value):
        return value
    import pyarrow as pa

    if isinstance(value, pa.Table):
        return value
    return pa.table(value)


def _open(value: Any, request: DataRequest) -> RawTable:
    if _is_pandas(value):
        return from_pandas(value)
    return from_arrow(read(value), f"a {type(value).__module__.partition('.')[0]} {type(value).__name__}")


def from_arrow(table: Any, origin: str) -> RawTable:
    """An Arrow table as a raw table."""
    demand_distinct(table.column_names, "the table")
    return RawTable(
        origin=origin,
        n=table.num_rows,
        numeric={field.name: _arrow.is_numeric(field.type) for field in table.schema},
        load=lambda name: _arrow.column(table.column(name)),
        vectors=_arrow.vector_columns(table.schema),
        hidden=_arrow.hidden_columns(table.schema),
    )


SOURCE = DataSource(
    name="frame", meaning="a data frame (pandas, polars, Arrow, DuckDB)", open=_open, accepts=_accepts
)
