"""The course of a run as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from fccomodel.app import errors
from fccomodel.app.shown.frames import frame
from fccomodel.core.diagnostics import refuse


class History(list[dict[str, Any]]):
    """What was recorded after each stage, a mapping each; ``history["objective"]`` is a column,
    ``to_pandas()`` the table."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of what was recorded."""
        return tuple(dict.fromkeys(name for entry in self for name in entry))

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.columns:
            refuse(errors.no_column_of_history(key, self.columns))
        values = [entry.get(key) for entry in self]
        numbers = all(value is None or isinstance(value, int | float) for value in values)
        if numbers:
            values = [np.nan if value is None else value for value in values]
        return np.array(values)

    def to_pandas(self) -> Any:
        """A ``DataFrame`` with a row for each stage. F0529 without pandas."""
        return frame(self, "A table of the run", self.columns)
