"""Parts of sentences: nodes of the model, numbers and lists of labels as the report writes them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.report.point.system import System

#: Longest text of a node that a sentence quotes as a whole.
QUOTED_CHARACTERS = 40


def quoted(system: System, node: ir.Expr) -> str:
    """The text of a node in the model, with its line."""
    text = system.problem.text(node)
    if node.span is ir.NOWHERE or not text:
        if isinstance(node, ir.Apply):
            return f"`{node.op}`"
        return "a reduction"
    if len(text) > QUOTED_CHARACTERS:
        text = text[: QUOTED_CHARACTERS - 3] + "..."
    return f"`{text}` (line {system.problem.source.place(node.span)[0]})"


def first_of(labels: Sequence[str], most: int) -> str:
    """The first ``most`` labels, and how many others there are."""
    shown = ", ".join(labels[:most])
    if len(labels) > most:
        return f"{shown} and {len(labels) - most} more"
    return shown


def rounded_down(value: float) -> str:
    """The number with two digits, rounded down."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / unit * (1 + 1e-12)) * unit:.1e}"
