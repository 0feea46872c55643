"""The variables at the answer: small ones whole, of long ones the largest entries by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from rich.text import Text

from fccomodel.app.shown.display._layout import number
from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets.coordinates import coordinates

#: Variables that get a line.
SHOWN_VARIABLES = 6
#: A variable of at most this many entries is shown whole.
WHOLE_ENTRIES = 5
#: Of a longer one this many entries are shown, the largest.
LARGEST_ENTRIES = 4


def variable_lines(bound: Bound, point: Mapping[str, np.ndarray]) -> list[Text]:
    """One line a variable."""
    lines = [_line(bound, name, np.asarray(point[name])) for name in bound.problem.variables if name in point]
    return lines[:SHOWN_VARIABLES] + (
        [Text(f"{len(lines) - SHOWN_VARIABLES} more")] if len(lines) > SHOWN_VARIABLES else []
    )


def _line(bound: Bound, name: str, value: np.ndarray) -> Text:
    variable = bound.problem.variables[name]
    head = Text.assemble((name, "bold"), "  ")
    if variable.net is not None:
        return head.append(
            f"{value.size:,} weights of {variable.net}, norm {number(float(np.linalg.norm(value)), 4)}"
        )
    if not value.ndim:
        return head.append(number(float(value), 4))
    names = _names(bound, variable.shape, value.shape)
    flat = value.ravel()
    if flat.size <= WHOLE_ENTRIES:
        shown = range(flat.size)
    else:
        shown = np.argsort(-np.abs(flat), kind="stable")[:LARGEST_ENTRIES].tolist()
    said = ", ".join(f"{names(k)} {number(float(flat[k]), 4)}".strip() for k in shown)
    if flat.size <= WHOLE_ENTRIES:
        return head.append(said)
    zeros = int((flat == 0).sum())
    if zeros:
        rest = f", {zeros:,} are 0"
    else:
        rest = ""
    return head.append(f"{flat.size:,} entries{rest}; largest: {said}")


def _names(bound: Bound, dims: ir.Shape, shape: tuple[int, ...]) -> Callable[[int], str]:
    """The name of an entry by its number."""
    axes = [coordinates(bound, dim) for dim in dims]

    def name(k: int) -> str:
        """The name of entry k."""
        at = np.unravel_index(k, shape)
        if len(at) == 1 and axes[0] is None:
            return f"[{at[0] + 1}]"
        cell = ",".join(str(i + 1) if axis is None else axis[i] for i, axis in zip(at, axes, strict=True))
        if len(at) == 1:
            return cell
        return f"[{cell}]"

    return name
