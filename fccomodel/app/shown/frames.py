"""Optional packages, and tables as a ``DataFrame`` of pandas."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from fccomodel.app import errors
from fccomodel.core.diagnostics import refuse


def package(name: str, what: str) -> Any:
    """The module ``name``, which is needed to make ``what``. F0529 if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        refuse(errors.no_package(what, error))


def frame(
    rows: Sequence[Mapping[str, Any]], what: str = "A table", columns: Sequence[str] | None = None
) -> Any:
    """A pandas ``DataFrame`` of rows. F0529 without pandas."""
    return package("pandas", what).DataFrame(list(rows), columns=None if columns is None else list(columns))
