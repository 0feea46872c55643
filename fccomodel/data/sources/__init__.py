"""Sources of data: one module per kind of source, found automatically."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.core.registry import records
from fccomodel.data.sources import errors
from fccomodel.data.sources._joined import joined
from fccomodel.data.sources._missing import without
from fccomodel.data.sources._paths import expanded, find_file, holds_images, is_file, is_pattern, matching
from fccomodel.data.sources._spool import Spool
from fccomodel.data.sources.base import DataRequest, DataSource, Drawing, Keyed, RawColumn, RawTable, Ready
from fccomodel.data.sources.folders import MANIFEST

__all__ = [
    "DataSource",
    "Drawing",
    "Keyed",
    "RawColumn",
    "RawTable",
    "Ready",
    "DataRequest",
    "Spool",
    "all",
    "find_file",
    "joined",
    "open",
    "open_array",
]


@cache
def all() -> Mapping[str, DataSource]:
    """Every source by its name, in alphabetical order."""
    return records(__name__, DataSource)


def open(value: Any, request: DataRequest) -> RawTable:
    """The table behind a path, a text such as ``sklearn:iris``, or a Python object.

    Raises FccoError with F0505 - F0507 or F0529.
    """
    if isinstance(value, Keyed):
        drawing = replace(request.drawing, keys=value.keys)
        return open(value.value, replace(request, drawing=drawing))
    if files := _matching(value, request):
        return joined([open(file, request) for file in files], str(value))
    source, value = _find(value, request)
    reading = source.open if request.spool is None else partial(request.spool.opened, source)
    table: RawTable = _guarded(source, reading, value, request)
    marks = request.options.get("na", ())
    if marks and source.name != "csv":  # the reader of csv files knows the marks
        return without(table, marks)
    return table


def _matching(value: Any, request: DataRequest) -> list[Path]:
    """The files that match a pattern such as ``part-*.parquet``; [] if the value is no pattern."""
    if not isinstance(value, str | Path) or not is_pattern(value):
        return []
    if str(value).partition(":")[0] in _schemes():
        return []
    return matching(value, request)


def open_array(value: Any, request: DataRequest) -> np.ndarray:
    """An array without rows, from a file or a Python object: numbers of any shape."""
    source, value = _find(value, request)
    if source.array is None:
        refuse(errors.not_an_array(request.name, source.meaning))
    return np.asarray(_guarded(source, source.array, value, request))


def _find(value: Any, request: DataRequest) -> tuple[DataSource, Any]:
    """The source for a value, and the argument for its ``open``."""
    if isinstance(value, str | Path):
        return _find_by_name(value, request)
    for source in all().values():
        if source.accepts(value):
            return source, value
    refuse(errors.not_a_table(request.name, value))


@cache
def _schemes() -> dict[str, DataSource]:
    """The sources that are named by a word before a colon."""
    return {source.scheme: source for source in all().values() if source.scheme}


def _prepared(value: str | Path, request: DataRequest) -> Path | None:
    """The prepared folder that a path names, or None."""
    folders = [folder / expanded(value) for folder in request.folders or (Path(),)]
    return next((folder for folder in folders if is_file(folder / MANIFEST)), None)


def _of_images(value: str | Path, request: DataRequest) -> Path | None:
    """The folder that a path names and that has a folder or an image in it, or None."""
    folders = [folder / expanded(value) for folder in request.folders or (Path(),)]
    return next((folder for folder in folders if holds_images(folder)), None)


def _find_by_name(value: str | Path, request: DataRequest) -> tuple[DataSource, Any]:
    """The source for a path or a text, and the argument for its ``open``."""
    scheme, colon, rest = str(value).partition(":")
    schemes = _schemes()
    if colon and scheme in schemes:
        return schemes[scheme], rest
    if "://" in str(value):
        refuse(errors.address(value))
    if colon and len(scheme) > 1 and "/" not in scheme and "." not in scheme:
        refuse(errors.unknown_scheme(scheme, schemes))
    if (folder := _prepared(value, request)) is not None:
        return all()["prepared"], folder
    if (folder := _of_images(value, request)) is not None:
        return all()["images"], folder
    by_suffix = {suffix: source for source in all().values() for suffix in source.suffixes}
    path = find_file(value, request.folders)
    name = path.name.lower()
    suffix = max((suffix for suffix in by_suffix if name.endswith(suffix)), key=len, default=None)
    if suffix is None:
        refuse(errors.unknown_suffix(path.name, by_suffix))
    return by_suffix[suffix], path


def _guarded(source: DataSource, function: Any, value: Any, request: DataRequest) -> Any:
    """Call a source's function. Raises FccoError (F0529) if its package is not installed."""
    try:
        return function(value, request)
    except ImportError as error:
        refuse(errors.not_installed(source.meaning, error))
