"""Arrow columns as raw columns; shared by parquet files and Arrow tables."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fccomodel.data.sources.base import SPANS, RawColumn, from_array


def is_numeric(kind: Any) -> bool:
    """Numbers, booleans, lists of them, and bytes of fixed size (which become numbers 0 .. 255)."""
    import pyarrow.types as t

    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return is_numeric(kind.value_type)
    return bool(
        t.is_integer(kind)
        or t.is_floating(kind)
        or t.is_boolean(kind)
        or t.is_decimal(kind)
        or t.is_fixed_size_binary(kind)
    )


def vector_columns(schema: Any) -> frozenset[str]:
    """The columns whose rows are lists of numbers, or bytes of fixed size."""
    return frozenset(field.name for field in schema if is_vector(field.type))


def is_vector(kind: Any) -> bool:
    """Lists of numbers, or bytes of fixed size."""
    import pyarrow.types as t

    return bool(t.is_fixed_size_binary(kind) or t.is_nested(kind) and is_numeric(kind))


def width(kind: Any) -> int:
    """Numbers of a row: of lists whose lengths the type does not say, many."""
    import pyarrow.types as t

    if t.is_fixed_size_binary(kind):
        return int(kind.byte_width)
    if t.is_fixed_size_list(kind):
        return int(kind.list_size) * width(kind.value_type)
    if t.is_nested(kind):
        return 1 << 12
    return 1


def hidden_columns(schema: Any) -> frozenset[str]:
    """The columns that ``"*"`` leaves out: an index that pandas stored, and bytes (pictures, but also
    identifiers)."""
    import pyarrow.types as t

    metadata = (schema.metadata or {}).get(b"pandas")
    if metadata:
        index = json.loads(metadata).get("index_columns", [])
    else:
        index = []
    binary = [field.name for field in schema if t.is_fixed_size_binary(field.type)]
    return frozenset(name for name in [*index, *binary] if name in schema.names)


def column(array: Any) -> RawColumn:
    """A chunked Arrow array. Lists of one length and bytes of fixed size become vectors."""
    import pyarrow as pa
    import pyarrow.types as t

    kind, dtype = array.type, str(array.type)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks:
            array = pa.concat_arrays(array.chunks)
        else:
            array = pa.array([], kind)
    if t.is_fixed_size_binary(kind):
        if array.null_count:
            return RawColumn(
                values=np.zeros(0), dtype=dtype, unusable=f"{array.null_count} of its values are missing"
            )
        width = kind.byte_width
        joined = np.frombuffer(array.buffers()[1], np.uint8)[
            array.offset * width : (array.offset + len(array)) * width
        ]
        return RawColumn(values=joined.reshape(len(array), width), dtype=dtype)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return _lists(array, dtype)
    if t.is_dictionary(kind):
        values = array.dictionary.to_pylist()
        codes = array.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
        if any(value is None for value in values):
            codes = np.where(np.array([value is None for value in values] + [False])[codes], -1, codes)
        return RawColumn(values=codes, categories=tuple(str(value) for value in values), dtype=dtype)
    if is_numeric(kind):
        if t.is_decimal(kind) or t.is_float16(kind) or (t.is_boolean(kind) and array.null_count):
            if t.is_boolean(kind):
                array = array.cast(pa.uint8()).cast(pa.float64())
            else:
                array = array.cast(pa.float64())
        return RawColumn(values=array.to_numpy(zero_copy_only=False), dtype=dtype)
    if t.is_timestamp(kind) or t.is_date(kind):
        return from_array(array.to_numpy(zero_copy_only=False), dtype)
    if t.is_time(kind):
        return from_array(
            np.array([None if value is None else str(value) for value in array.to_pylist()], object), dtype
        )
    if t.is_temporal(kind):
        return RawColumn(values=np.zeros(0), dtype=dtype, unusable=SPANS)
    if t.is_string(kind) or t.is_large_string(kind) or str(kind) == "string_view":
        if t.is_string(kind) or t.is_large_string(kind):
            text = array
        else:
            text = array.cast(pa.string())
        return _text(text, dtype)
    return RawColumn(
        values=np.zeros(0), dtype=dtype, unusable=f"values of type {dtype} are neither numbers nor text"
    )


def _text(array: Any, dtype: str) -> RawColumn:
    encoded = array.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return RawColumn(values=codes, categories=tuple(encoded.dictionary.to_pylist()), dtype=dtype)


def _lists(array: Any, dtype: str) -> RawColumn:
    """Lists of one length, possibly of lists, as (n, *shape)."""
    import pyarrow.compute as pc

    if not is_numeric(array.type):
        return RawColumn(values=np.zeros(0), dtype=dtype, unusable="its lists do not hold numbers")
    shape = [len(array)]
    while hasattr(array.type, "value_type"):
        if array.null_count:
            return RawColumn(
                values=np.zeros(0), dtype=dtype, unusable=f"{array.null_count} of its lists are missing"
            )
        sizes = pc.min_max(pc.list_value_length(array)).as_py()
        low, high = sizes["min"] or 0, sizes["max"] or 0
        if low != high:
            return RawColumn(
                values=np.zeros(0),
                dtype=dtype,
                unusable=f"its lists have {low} to {high} values; a vector has one length",
            )
        shape.append(low)
        array = array.flatten()
    inner = column(array)
    return RawColumn(values=inner.values.reshape(shape), dtype=dtype)
