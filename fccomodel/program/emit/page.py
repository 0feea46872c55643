"""Helpers for all functions of a program: printers, the model's lines as comments, reserved names."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.quoting import attribute, comment
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.program.emit.breaking import WIDTH, broken
from fccomodel.program.emit.printer import FunctionPrinter, PreparedValues
from fccomodel.program.lower import LoweredSteps, State
from fccomodel.program.names import Names


def printer_of(
    lowered: LoweredSteps, state: State, prepared: PreparedValues | None = None, **more: Any
) -> FunctionPrinter:
    """The printer of a function whose values are in the graph of ``state``; what others ``prepared``
    keeps its names."""
    prepared = prepared or PreparedValues()
    names = Names([*taken(lowered), *prepared.taken])
    return FunctionPrinter(
        layout=lowered.layout,
        comments=comments(lowered.problem, state),
        prepared=prepared,
        names=names,
        **more,
    )


def taken(lowered: LoweredSteps) -> list[str]:
    """Names of the model's own parts, which the lines of a function cannot use as names."""
    nets = (f"net_{name}" for name in lowered.bound.nets)
    envelopes = dict.fromkeys([*(s.name for s in lowered.normal.smoothed), "inner"])
    smoothed = (f"{stem}_{name}" for name in envelopes for stem in ("slope", "envelope"))
    data_names = map(attribute, [*lowered.bound.params, *lowered.data])
    return [*(f"G_{name}" for name in lowered.layout), *nets, *smoothed, *data_names]


def comments(problem: ir.Problem, state: State) -> dict[int, str]:
    """The model's line and text of each value, by its id."""
    return {
        i: f"line {problem.source.place(node.span)[0]}: {comment(problem.text(node), 60)}"
        for i, node in state.spans.items()
        if node.span.end > node.span.start and isinstance(node, ir.Reduce | ir.Apply | ir.NetCall | Smoothed)
    }


def function(name: str, about: str, lines: Iterable[str], arguments: str = "data, w") -> str:
    """The text of a function."""
    words = textwrap.wrap(f'"""{about}"""', WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return "\n".join(
        [
            f"def {name}({arguments}):",
            *("    " + line for line in words),
            *(part for line in lines for part in broken(f"    {line}" if line else "")),
        ]
    )


def shaped(shape: tuple[int, ...]) -> str:
    """The text that gives a piece of the flat vector its shape."""
    if len(shape) == 1:
        return ""
    return f".view({', '.join(map(str, shape)) or '()'})"


def as_tensor(array: np.ndarray) -> torch.Tensor:
    """An array as a tensor: float64 numbers, int64 positions."""
    array = np.asarray(array)
    array = np.ascontiguousarray(array if array.dtype.kind == "f" else array.astype(np.int64, copy=False))
    return torch.from_numpy(array if array.flags.writeable else array.copy())
