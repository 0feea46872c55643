"""Where data come from: one file per kind, found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import did_you_mean
from fccomodel.data.sources._base import RawColumn, RawTable, Request, Source, refuse

__all__ = ["RawColumn", "RawTable", "Request", "Source", "all", "find_file", "open", "open_array"]


@cache
def all() -> dict[str, Source]:
    """Every source by its name."""
    found: dict[str, Source] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")):
        for value in vars(importlib.import_module(f"{__name__}.{module}")).values():
            if isinstance(value, Source):
                found[value.name] = value
    return found


def open(value: Any, request: Request) -> RawTable:
    """The table behind a path, a text such as ``sklearn:iris``, or a Python object. Raises FccoError F0505 - F0507, F0529."""
    source, value = _find(value, request)
    return _guarded(source, source.open, value, request)


def open_array(value: Any, request: Request) -> np.ndarray:
    """An array without rows, from a file or a Python object: numbers of any shape."""
    source, value = _find(value, request)
    if source.array is None:
        refuse(
            "F0507",
            f"{request.name}: {source.meaning} is not an array",
            fix="give a NumPy array, a tensor, numbers, or an .npz file",
        )
    return np.asarray(_guarded(source, source.array, value, request))


def find_file(text: str | Path, folders: tuple[Path, ...]) -> Path:
    """The file that a path means: absolute, or the first that is there in ``folders``. F0505 where there is none."""
    path = Path(text).expanduser()
    if "\0" in str(text):
        refuse("F0505", "a file's name cannot hold a zero character", fix="write the file's name")
    tried = [path] if path.is_absolute() else [folder / path for folder in folders or (Path(),)]
    for candidate in tried:
        if candidate.is_file():
            return candidate
    folder = next((candidate for candidate in tried if candidate.is_dir()), None)
    if folder is not None:
        refuse("F0505", f"{folder} is a folder, not a file", fix="name a file in it")
    near = [
        name.name for candidate in tried if candidate.parent.is_dir() for name in candidate.parent.iterdir() if name.is_file()
    ]
    where = " or ".join(dict.fromkeys(str(candidate.parent.absolute()) for candidate in tried))
    refuse(
        "F0505",
        f"there is no file {path.name} in {where}",
        reason="a relative path is looked for in --data-dir, beside the binding file, and in the working folder, in this order",
        fix=did_you_mean(path.name, near) or "give the path of a file that is there, or the folder with --data-dir",
    )


def _find(value: Any, request: Request) -> tuple[Source, Any]:
    """The source for a value, and what its ``open`` takes."""
    if isinstance(value, str | Path):
        return _find_by_name(value, request)
    for source in all().values():
        if source.accepts(value):
            return source, value
    refuse(
        "F0507",
        f"{request.name}: a {type(value).__qualname__} is not a table",
        fix="give a DataFrame, a dict of arrays or tensors, a torch Dataset, or a path",
    )


def _find_by_name(value: str | Path, request: Request) -> tuple[Source, Any]:
    scheme, colon, rest = str(value).partition(":")
    schemes = {source.scheme: source for source in all().values() if source.scheme}
    if colon and scheme in schemes:
        return schemes[scheme], rest
    if "://" in str(value):
        refuse(
            "F0507", f"{value} is an address", reason="nothing is downloaded while binding", fix="download it, then give the file"
        )
    if colon and len(scheme) > 1 and "/" not in scheme and "." not in scheme:
        refuse(
            "F0507",
            f"{scheme}: is not a kind of data",
            fix=did_you_mean(scheme, schemes) or f"{', '.join(f'{s}:NAME' for s in sorted(schemes))} or a path are understood",
        )
    by_suffix = {suffix: source for source in all().values() for suffix in source.suffixes}
    path = find_file(value, request.folders)
    name = path.name.lower()
    suffix = max((suffix for suffix in by_suffix if name.endswith(suffix)), key=len, default=None)
    if suffix is None:
        refuse(
            "F0506",
            f"{path.name} ends in none of {', '.join(sorted(by_suffix))}",
            reason="the end of a file's name says how it is read",
            fix="convert it, or read it in Python and bind the arrays",
        )
    return by_suffix[suffix], path


def _guarded(source: Source, function: Any, value: Any, request: Request) -> Any:
    """Call a source's function; a package that is not installed becomes an error with its command."""
    try:
        return function(value, request)
    except ImportError as error:
        package = {"sklearn": "scikit-learn"}.get(error.name or "", error.name or "a package")
        refuse(
            "F0529",
            f"{source.meaning} cannot be read here: {package} is not installed",
            fix=f"pip install {package}    (or bind arrays or an .npz file, which need nothing else)",
        )
