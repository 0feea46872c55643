"""Lines about the variables at the answer: all entries of a short one, the largest of a long one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from rich.text import Text

from fccomodel.app.shown.display._layout import number
from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets.coordinates import coordinates

#: Largest number of variables with a line.
SHOWN_VARIABLES = 6
#: Largest number of entries of a variable that is shown whole.
WHOLE_ENTRIES = 5
#: Number of entries shown of a longer variable.
LARGEST_ENTRIES = 4


def variable_lines(bound: Bound, point: Mapping[str, np.ndarray]) -> list[Text]:
    """A line for each variable, and the number of the others if there are too many."""
    lines = [_line(bound, name, np.asarray(point[name])) for name in bound.problem.variables if name in point]
    if len(lines) > SHOWN_VARIABLES:
        return [*lines[:SHOWN_VARIABLES], Text(f"{len(lines) - SHOWN_VARIABLES} more")]
    return lines


def _line(bound: Bound, name: str, value: np.ndarray) -> Text:
    """The line of one variable."""
    variable = bound.problem.variables[name]
    head = Text.assemble((name, "bold"), "  ")
    if variable.net is not None:
        return head.append(
            f"{value.size:,} weights of {variable.net}, norm {number(float(np.linalg.norm(value)), 4)}"
        )
    if not value.ndim:
        return head.append(number(float(value), 4))
    name_of = _names(bound, variable.shape, value.shape)
    flat = value.ravel()

    def entry(k: int) -> str:
        """Name and value of entry k."""
        return f"{name_of(k)} {number(float(flat[k]), 4)}".strip()

    if flat.size <= WHOLE_ENTRIES:
        return head.append(", ".join(map(entry, range(flat.size))))
    largest = np.argsort(-np.abs(flat), kind="stable")[:LARGEST_ENTRIES].tolist()
    text = f"{flat.size:,} entries"
    zeros = int((flat == 0).sum())
    if zeros:
        text += f", {zeros:,} are 0"
    return head.append(f"{text}; largest: {', '.join(map(entry, largest))}")


def _names(bound: Bound, dims: ir.Shape, shape: tuple[int, ...]) -> Callable[[int], str]:
    """A function from the number of an entry to its name."""
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
