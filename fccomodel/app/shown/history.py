"""The history of a run as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from fccomodel.app import errors
from fccomodel.app.shown.frames import frame
from fccomodel.core.diagnostics import refuse

#: Quantities that a printed history shows, with the widths of their columns.
SHOWN = {"stage": 5, "iteration": 9, "oracles": 12, "objective": 12, "violation": 10, "seconds": 8}
#: Stages that a printed history shows.
SHOWN_STAGES = 20


def _shown(value: Any) -> str:
    """A number in a printed history; nothing where none was recorded."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


class History(list[dict[str, Any]]):
    """The records of a run, one mapping per stage.

    ``history["objective"]`` is a column, ``to_pandas()`` the table.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the recorded quantities."""
        return tuple(dict.fromkeys(name for entry in self for name in entry))

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.columns:
            refuse(errors.no_column_of_history(key, self.columns))
        values = [entry.get(key) for entry in self]
        if all(value is None or isinstance(value, int | float) for value in values):
            values = [np.nan if value is None else value for value in values]
        return np.array(values)

    def __repr__(self) -> str:
        """A line for each stage, the last ones of a long run."""
        lines = ["  ".join(f"{name:>{width}}" for name, width in SHOWN.items())]
        for entry in self[-SHOWN_STAGES:]:
            lines.append("  ".join(f"{_shown(entry.get(name)):>{width}}" for name, width in SHOWN.items()))
        if len(self) > SHOWN_STAGES:
            lines.append(f"the last {SHOWN_STAGES} of {len(self)} stages")
        return "\n".join(lines)

    def to_pandas(self) -> Any:
        """A ``DataFrame`` with a row for each stage. F0529 without pandas."""
        return frame(self, "A table of the run", self.columns)
