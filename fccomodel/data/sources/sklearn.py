"""The data sets that come inside scikit-learn (nothing is downloaded)."""

from __future__ import annotations

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors, frame
from fccomodel.data.sources._base import DataSource, RawTable, Request

NAMES = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")


def _open(name: str, request: Request) -> RawTable:
    if name not in NAMES:
        refuse(errors.no_data_set(name, NAMES))
    from sklearn import datasets

    return frame.from_pandas(getattr(datasets, f"load_{name}")(as_frame=True).frame, f"sklearn:{name}")


SOURCE = DataSource(
    name="sklearn", meaning="a data set of scikit-learn", open=_open, scheme="sklearn", needs=("scikit-learn", "pandas")
)
