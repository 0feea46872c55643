"""Arrow columns as raw columns, for parquet files and Arrow tables."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fccomodel.data.sources.base import SPANS, RawColumn, from_array

#: Numbers that a list is assumed to hold if its type does not say.
LIST_WIDTH = 1 << 12


def is_numeric(kind: Any) -> bool:
    """Whether a type is numbers, booleans, lists of them, or bytes of fixed size (numbers 0 .. 255)."""
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
    """Whether a type is lists of numbers, or bytes of fixed size."""
    import pyarrow.types as t

    return bool(t.is_fixed_size_binary(kind) or (t.is_nested(kind) and is_numeric(kind)))


def width(kind: Any) -> int:
    """Numbers in one row; LIST_WIDTH for lists whose length the type does not say."""
    import pyarrow.types as t

    if t.is_fixed_size_binary(kind):
        return int(kind.byte_width)
    if t.is_fixed_size_list(kind):
        return int(kind.list_size) * width(kind.value_type)
    if t.is_nested(kind):
        return LIST_WIDTH
    return 1


def hidden_columns(schema: Any) -> frozenset[str]:
    """The columns that ``"*"`` leaves out: an index that pandas stored, and bytes.

    Bytes may be pictures, but also identifiers.
    """
    import pyarrow.types as t

    metadata = (schema.metadata or {}).get(b"pandas")
    index = json.loads(metadata).get("index_columns", []) if metadata else []
    binary = [field.name for field in schema if t.is_fixed_size_binary(field.type)]
    return frozenset(name for name in [*index, *binary] if name in schema.names)


def column(array: Any) -> RawColumn:
    """A (chunked) Arrow array as a raw column. Lists of one length and bytes of fixed size are vectors."""
    import pyarrow.types as t

    kind, dtype = array.type, str(array.type)
    array = _whole(array)
    if t.is_fixed_size_binary(kind):
        return _bytes(array, dtype)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return _lists(array, dtype)
    if t.is_dictionary(kind):
        return _dictionary(array, dtype)
    if is_numeric(kind):
        return RawColumn(values=_numbers(array).to_numpy(zero_copy_only=False), dtype=dtype)
    if t.is_temporal(kind):
        return _times(array, dtype)
    if t.is_string(kind) or t.is_large_string(kind) or str(kind) == "string_view":
        return _text(array, dtype)
    return RawColumn(
        values=np.zeros(0), dtype=dtype, unusable=f"values of type {dtype} are neither numbers nor text"
    )


def _whole(array: Any) -> Any:
    """An array in one piece."""
    import pyarrow as pa

    kind = array.type
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # older versions keep several chunks
        return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], kind)
    return array


def _bytes(array: Any, dtype: str) -> RawColumn:
    """Bytes of fixed size as vectors of numbers 0 .. 255."""
    if array.null_count:
        return RawColumn(
            values=np.zeros(0), dtype=dtype, unusable=f"{array.null_count} of its values are missing"
        )
    width = array.type.byte_width
    first, last = array.offset * width, (array.offset + len(array)) * width
    joined = np.frombuffer(array.buffers()[1], np.uint8)[first:last]
    return RawColumn(values=joined.reshape(len(array), width), dtype=dtype)


def _dictionary(array: Any, dtype: str) -> RawColumn:
    """A dictionary-encoded array as positions and texts."""
    import pyarrow as pa

    values = array.dictionary.to_pylist()
    codes = array.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    if any(value is None for value in values):
        missing = np.array([value is None for value in values] + [False])
        codes = np.where(missing[codes], -1, codes)
    return RawColumn(values=codes, categories=tuple(str(value) for value in values), dtype=dtype)


def _numbers(array: Any) -> Any:
    """A numeric array; as float64 if NumPy has no type for it, or truth values are missing."""
    import pyarrow as pa
    import pyarrow.types as t

    kind = array.type
    if t.is_boolean(kind) and array.null_count:
        return array.cast(pa.uint8()).cast(pa.float64())
    if t.is_decimal(kind) or t.is_float16(kind):
        return array.cast(pa.float64())
    return array


def _times(array: Any, dtype: str) -> RawColumn:
    """Times and dates as texts; spans of time cannot be used."""
    import pyarrow.types as t

    if t.is_timestamp(array.type) or t.is_date(array.type):
        return from_array(array.to_numpy(zero_copy_only=False), dtype)
    if t.is_time(array.type):
        texts = [None if value is None else str(value) for value in array.to_pylist()]
        return from_array(np.array(texts, object), dtype)
    return RawColumn(values=np.zeros(0), dtype=dtype, unusable=SPANS)


def _text(array: Any, dtype: str) -> RawColumn:
    """Texts as positions and distinct texts."""
    import pyarrow as pa
    import pyarrow.types as t

    if not t.is_string(array.type) and not t.is_large_string(array.type):
        array = array.cast(pa.string())
    encoded = array.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    return RawColumn(values=codes, categories=tuple(encoded.dictionary.to_pylist()), dtype=dtype)


def _lists(array: Any, dtype: str) -> RawColumn:
    """Lists of one length, possibly nested, as vectors (n, *shape)."""
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
