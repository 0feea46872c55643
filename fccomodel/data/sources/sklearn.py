"""The data sets that come with scikit-learn; nothing is downloaded.

A file of the package that holds a table as it is, is read directly: importing scikit-learn takes longer
than many a solve.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors, frame
from fccomodel.data.sources.base import DataRequest, DataSource, RawTable, from_array

#: The data sets that can be read.
NAMES = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")

_OF_NUCLEI = (
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave points",
    "symmetry",
    "fractal dimension",
)
_WINE = (
    "alcohol",
    "malic_acid",
    "ash",
    "alcalinity_of_ash",
    "magnesium",
    "total_phenols",
    "flavanoids",
    "nonflavanoid_phenols",
    "proanthocyanins",
    "color_intensity",
    "hue",
    "od280/od315_of_diluted_wines",
    "proline",
)
_CELLS = ("mean {}", "{} error", "worst {}")
#: For each data set: its file, the number of header lines, and the names of its columns but the last.
#: The last column, ``target``, is the class of a row.
FILES: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "breast_cancer": (
        "breast_cancer.csv",
        1,
        tuple(kind.format(what) for kind in _CELLS for what in _OF_NUCLEI),
    ),
    "digits": ("digits.csv.gz", 0, tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8))),
    "iris": (
        "iris.csv",
        1,
        tuple(f"{part} {size} (cm)" for part in ("sepal", "petal") for size in ("length", "width")),
    ),
    "wine": ("wine_data.csv", 1, _WINE),
}


def _open(name: str, request: DataRequest) -> RawTable:
    if name not in NAMES:
        refuse(errors.no_data_set(name, NAMES))
    table = _from_file(name)
    if table is not None:
        return table
    return _from_package(name)


def _from_package(name: str) -> RawTable:
    """The table, loaded by scikit-learn."""
    from sklearn import datasets

    return frame.from_pandas(getattr(datasets, f"load_{name}")(as_frame=True).frame, f"sklearn:{name}")


def _from_file(name: str) -> RawTable | None:
    """The table, read from its file; None if the file is not as expected."""
    spec = find_spec("sklearn") if name in FILES else None
    if spec is None or not spec.submodule_search_locations:
        return None
    file, header, measured = FILES[name]
    path = Path(spec.submodule_search_locations[0], "datasets", "data", file)
    try:
        values = np.loadtxt(path, delimiter=",", skiprows=header, ndmin=2, encoding="utf-8")
    except (OSError, ValueError):
        return None
    if values.shape[1] != len(measured) + 1:
        return None
    columns = dict(zip(measured, values.T, strict=False)) | {"target": values[:, -1].astype(np.int64)}
    return RawTable(
        origin=f"sklearn:{name}",
        n=len(values),
        numeric=dict.fromkeys(columns, True),
        load=lambda column: from_array(np.ascontiguousarray(columns[column])),
    )


SOURCE = DataSource(
    name="sklearn",
    meaning="a data set of scikit-learn",
    open=_open,
    scheme="sklearn",
    needs=("scikit-learn", "pandas"),
)
