"""Where data come from: one file per kind, found by itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.core.registry import records
from fccomodel.data.sources import errors
from fccomodel.data.sources._base import DataSource, RawColumn, RawTable, Request

__all__ = ["RawColumn", "RawTable", "Request", "DataSource", "all", "find_file", "open", "open_array"]


@cache
def all() -> Mapping[str, DataSource]:
    """Every source by its name, in alphabetical order."""
    return records(__name__, DataSource)


def open(value: Any, request: Request) -> RawTable:
    """The table behind a path, a text such as ``sklearn:iris``, or a Python object. Raises FccoError F0505 - F0507, F0529."""
    source, value = _find(value, request)
    return _guarded(source, source.open, value, request)


def open_array(value: Any, request: Request) -> np.ndarray:
    """An array without rows, from a file or a Python object: numbers of any shape."""
    source, value = _find(value, request)
    if source.array is None:
        refuse(errors.not_an_array(request.name, source.meaning))
    return np.asarray(_guarded(source, source.array, value, request))


def find_file(text: str | Path, folders: tuple[Path, ...]) -> Path:
    """The file that a path means: absolute, or the first that is there in ``folders``. F0505 where there is none."""
    if "\0" in str(text):
        refuse(errors.zero_character())
    try:
        path = Path(text).expanduser()
        tried = [path] if path.is_absolute() else [folder / path for folder in folders or (Path(),)]
        for candidate in tried:
            if candidate.is_file():
                return candidate
        folder = next((candidate for candidate in tried if candidate.is_dir()), None)
    except (OSError, RuntimeError) as error:  # a name too long, a home that is not known
        refuse(errors.unreadable_path(str(text), error))
    if folder is not None:
        refuse(errors.folder_as_file(folder))
    near = [
        file.name for candidate in tried if candidate.parent.is_dir() for file in candidate.parent.iterdir() if file.is_file()
    ]
    refuse(errors.no_file(path.name, [candidate.parent for candidate in tried], near))


def _find(value: Any, request: Request) -> tuple[DataSource, Any]:
    """The source for a value, and what its ``open`` takes."""
    if isinstance(value, str | Path):
        return _find_by_name(value, request)
    for source in all().values():
        if source.accepts(value):
            return source, value
    refuse(errors.not_a_table(request.name, value))


def _find_by_name(value: str | Path, request: Request) -> tuple[DataSource, Any]:
    scheme, colon, rest = str(value).partition(":")
    schemes = {source.scheme: source for source in all().values() if source.scheme}
    if colon and scheme in schemes:
        return schemes[scheme], rest
    if "://" in str(value):
        refuse(errors.address(value))
    if colon and len(scheme) > 1 and "/" not in scheme and "." not in scheme:
        refuse(errors.unknown_scheme(scheme, schemes))
    by_suffix = {suffix: source for source in all().values() for suffix in source.suffixes}
    path = find_file(value, request.folders)
    name = path.name.lower()
    suffix = max((suffix for suffix in by_suffix if name.endswith(suffix)), key=len, default=None)
    if suffix is None:
        refuse(errors.unknown_suffix(path.name, by_suffix))
    return by_suffix[suffix], path


def _guarded(source: DataSource, function: Any, value: Any, request: Request) -> Any:
    """Call a source's function; a package that is not installed becomes an error with its command."""
    try:
        return function(value, request)
    except ImportError as error:
        refuse(errors.not_installed(source.meaning, error))
