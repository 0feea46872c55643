"""NumPy archives: each array is a column, its first axis the rows."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from fccomodel.data.sources import arrays
from fccomodel.data.sources._base import RawTable, Request, Source, refuse


def _read(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file; a .npy file is one array named by the file. Pickled objects are not loaded."""
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return {path.stem: content}
        with content as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        pickled = "allow_pickle" in text
        refuse(
            "F0506",
            f"{path.name} is no NumPy file, or holds Python objects" if pickled else f"{path.name} cannot be read: {text}",
            reason="objects in NumPy files are pickled, and loading a pickle runs code" if pickled else "",
            fix="store plain arrays with numpy.savez" if pickled else "write the file again, or give the right one",
        )


def _open(path: Path, request: Request) -> RawTable:
    return arrays.from_mapping(_read(path), str(path))


def _array(path: Path, request: Request) -> np.ndarray:
    found = _read(path)
    if request.name in found or len(found) == 1:
        return found.get(request.name, next(iter(found.values())))
    refuse("F0508", f"{path.name} has no array named {request.name}; it has {', '.join(sorted(found))}", fix="rename the array")


SOURCE = Source(name="npz", meaning="a NumPy file", open=_open, suffixes=(".npz", ".npy"), array=_array)
