"""NumPy archives: each array is a column, its first axis the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fccomodel.core.arrays import NotArrays, read
from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import arrays, errors
from fccomodel.data.sources.base import DataRequest, DataSource, RawTable


def _read(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, or the array of an .npy file under the file's name.

    Raises FccoError (F0506) if it is not a NumPy file, or larger than the free memory.
    """
    try:
        return read(path)
    except NotArrays as error:
        refuse(errors.not_npz(path.name, error))


def _open(path: Path, request: DataRequest) -> RawTable:
    return arrays.from_mapping(_read(path), str(path))


def _array(path: Path, request: DataRequest) -> np.ndarray:
    content = _read(path)
    if request.name in content or len(content) == 1:
        return content.get(request.name, next(iter(content.values())))
    refuse(errors.no_array_of_name(path.name, request.name, content))


SOURCE = DataSource(name="npz", meaning="a NumPy file", open=_open, suffixes=(".npz", ".npy"), array=_array)
