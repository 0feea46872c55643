"""The rules for every graph of values: existing operations, used correctly, with values of the stated
shapes.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

from fccomodel.program import operations
from fccomodel.program.graph import Graph
from fccomodel.program.operations import Val, in_order
from fccomodel.program.operations.base import Kind


def verify(graph: Graph) -> list[str]:
    """The faults of a graph, value by value; none if it is well formed."""
    declared = set(operations.all().values())
    faults = []
    for place, val in enumerate(graph.vals):
        wrong = list(_place(graph, place, val)) or (
            list(_use(val)) if val.op in declared else ["there is no such operation"]
        )
        faults += [f"{val.id} {val.op}: {fault}" for fault in wrong or _shape(val)]
    return faults


def _place(graph: Graph, place: int, val: Val) -> Iterator[str]:
    """Values stand in the order of their ids, after their arguments."""
    if val.id != place:
        yield f"it stands at {place}"
    for arg in val.args:
        if not (0 <= arg.id < place and graph.vals[arg.id] is arg):
            yield f"its argument {arg.id} is not a value before it"


def _use(val: Val) -> Iterator[str]:
    """Arguments and attributes are those of the operation."""
    least = sum(not name.endswith("...") for name in val.op.arguments)
    if len(val.args) < least or (len(val.args) > least == len(val.op.arguments)):
        yield f"{len(val.args)} arguments for {', '.join(val.op.arguments) or 'none'}"
    for name in {*val.op.attributes} ^ {*val.attrs}:
        yield (
            f"its attribute {name} is missing"
            if name in val.op.attributes
            else f"it takes no attribute {name}"
        )
    for name, kind in val.op.attributes.items():
        if name in val.attrs and not fits(val.attrs[name], kind):
            yield f"its attribute {name} is {val.attrs[name]!r}"


def _shape(val: Val) -> Iterator[str]:
    """Axes, event dims and what a value depends on follow from its operation."""
    rules = {
        "axes": val.op.axes,
        "event": val.op.event,
        "varying": val.op.varying,
        "static": val.op.static,
    }
    for name, rule in rules.items():
        if getattr(val, name) != (expected := rule(val.args, val.attrs)):
            yield f"{name} {getattr(val, name)}, not {expected}"
    if val.axes != in_order(val.axes):
        yield "its axes are not in layout order"
    if not fits(val.event, tuple[int, ...]) or any(n < 0 for n in val.event):
        yield f"its event dims are {val.event}"
    if val.static and (val.varying or not all(a.static for a in val.args)):
        yield "it is static, and made of what is not"
    if fault := val.op.fault(val):
        yield fault


def fits(value: Any, kind: Kind) -> bool:
    """A value is of a type as annotations write it."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(entry, inner[0]) for entry in value)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, (int, float) if kind is float else kind)
