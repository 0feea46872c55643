"""The operations from which a program's values start: numbers, variables, and arrays of the data.

Positions along an axis, and the rows of an array at positions, are among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fccomodel.core.quoting import attribute
from fccomodel.program.operations.base import (
    Axes,
    Axis,
    Event,
    Op,
    Pull,
    Reverse,
    Val,
    Writer,
    along,
    number,
    python,
)

DATA = "it is known from the data"
#: the name, in a step, of the seed that rows are drawn by
FETCHED = "row_seed"


class Const(Op):
    """A number, or the arithmetic that gave it.

    sizes   the arithmetic if it names numbers of elements: equal numbers of other elements are other values
    """

    name, attributes, defaults = "const", {"value": float, "sizes": str}, {"sizes": ""}
    source = python = True
    constant = DATA

    def text(self, writer: Writer, val: Val) -> str:
        """The number, or its arithmetic in parentheses."""
        if val.formula is None:
            return number(val.attrs["value"])
        text = writer.arithmetic(val.formula)
        if text.isalnum() or text.isidentifier():
            return text
        return f"({text})"


class Param(Op):
    """A parameter of the model that is a number, changed from solve to solve."""

    name, attributes = "param", {"name": str, "value": float}
    source = python = True
    constant = DATA

    def text(self, writer: Writer, val: Val) -> str:
        """``data.NAME``."""
        return f"data.{attribute(val.attrs['name'])}"


class KeptShare(Op):
    """The share of the rows of an array that a pass uses: 1, or less if only some rows are evaluated."""

    name, attributes = "kept_share", {"key": str, "size": int}
    source = python = True
    constant = DATA

    def text(self, writer: Writer, val: Val) -> str:
        """The length of the array over its full number of rows."""
        return f"(len(data.{val.attrs['key']}) / {val.attrs['size']})"


class Hyper(Op):
    """A hyper-parameter of the algorithm."""

    name, attributes = "hyper", {"name": str}
    constant = "it is the algorithm's"

    def text(self, writer: Writer, val: Val) -> str:
        """``h.NAME``."""
        return f"h.{val.attrs['name']}"


class Variable(Op):
    """A decision variable, at the current iterate or, with ``previous``, at the one before it."""

    name, attributes, defaults = "var", {"name": str, "event": Event, "previous": bool}, {"previous": False}
    inline = True

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """Whether it is at the current iterate."""
        return not attrs["previous"]

    def text(self, writer: Writer, val: Val) -> str:
        """A view of the variable's part of the flat vector ``w`` or ``w_prev``."""
        start, stop, shape = writer.layout[val.attrs["name"]]
        vector = "w"
        if val.attrs["previous"]:
            vector = "w_prev"
        whole = len(writer.layout) == 1
        if shape == ():
            return f"{vector}[{start}]"
        if whole:
            text = vector
        else:
            text = f"{vector}[{start}:{stop}]"
        if len(shape) == 1:
            return text
        return f"{text}.view({', '.join(map(str, shape))})"

    def stem(self, val: Val) -> str:
        """The name of the variable, with ``_prev`` for the previous iterate."""
        if val.attrs["previous"]:
            return f"{val.attrs['name']}_prev"
        return val.attrs["name"]

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """The adjoint becomes a part of the gradient."""
        to.pull(val.attrs["name"], val, adjoint)

    def contribution(self, writer: Writer, pull: Pull) -> str:
        """The adjoint as a flat vector."""
        start, stop, shape = writer.layout[pull.variable]
        text = writer.ref(pull.adjoint)
        if python(pull.adjoint):
            return f"w.new_full(({stop - start},), {text})"
        if pull.adjoint.event != shape:
            return f"{text}.expand({stop - start})"
        if len(shape) == 1:
            return text
        return f"{text}.reshape({stop - start})"


class Component(Op):
    """Entries of the vector u of estimates of F, from ``start`` on."""

    name, attributes = "component", {"start": int, "axes": tuple[Axis, ...], "event": Event}
    constant = "autograd goes through it"

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """Whether the derivative passes through it: always, since it is an estimate."""
        return True

    def text(self, writer: Writer, val: Val) -> str:
        """The part of the vector ``u`` that holds the component."""
        shape, start = (*(a.size for a in val.axes), *val.event), val.attrs["start"]
        if not shape:
            return f"u[{start}]"
        length = 1
        for size in shape:
            length *= size
        piece = f"u[{start}:{start + length}]"
        if len(shape) == 1:
            return piece
        return f"{piece}.view({', '.join(map(str, shape))})"


class Array(Op):
    """An array of the data."""

    name, attributes = "array_data", {"key": str, "event": Event}
    source = True
    constant = DATA

    def text(self, writer: Writer, val: Val) -> str:
        """The stored array."""
        return self.kept(val)

    def kept(self, val: Val) -> str:
        """The stored array's name."""
        return f"data.{val.attrs['key']}"


class Along(Op):
    """Positions along an axis."""

    attributes, defaults = {"axis": Axis, "key": str | None}, {"key": None}
    constant = DATA

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axis of the positions."""
        return (attrs["axis"],)


class Arange(Along):
    """All positions along an axis; ``key`` is the name of the array that is read at them."""

    name = "arange"
    source = True

    def text(self, writer: Writer, val: Val) -> str:
        """All positions of the axis."""
        return f"torch.arange({val.attrs['axis'].size}, device=data.device)"

    def stem(self, val: Val) -> str:
        """``all`` with the title of the axis."""
        return f"all_{val.attrs['axis'].title}"


class Chunk(Along):
    """Positions along a slice of an axis.

    ``key`` is the name of the array that is read at them; it has one row per position.
    """

    name = "chunk"
    silent = "it is the argument of a function of the slice"


class Take(Op):
    """Rows of an array of the data."""

    name, arguments, attributes = "take", ("rows",), {"key": str, "event": Event}
    constant = DATA

    def text(self, writer: Writer, val: Val) -> str:
        """The rows of the stored array."""
        array = f"data.{val.attrs['key']}"
        (rows,) = val.args
        if len(rows.axes) == 1:
            return f"{array}.index_select(0, {writer.ref(rows)})"
        return f"{array}[{writer.ref(rows)}]"

    def kept(self, val: Val) -> str:
        """The stored array's name if all its rows are taken, else nothing."""
        if val.args[0].op is arange:
            return f"data.{val.attrs['key']}"
        return ""

    def stem(self, val: Val) -> str:
        """The column's name with the names of the axes."""
        key = val.attrs["key"]
        stem = key.split("_", 1)[-1]
        # A second array of a set with a name of one letter has no name after the underscore.
        if not stem.isidentifier():
            stem = key
        suffix = along(val.axes)
        if not suffix and not val.event:
            suffix = "_"
        return stem + suffix


class Fetch(Op):
    """Rows of a column as a step draws them, transformed anew: of a source that fetches them."""

    name, arguments, attributes = "fetch", ("rows",), {"key": str, "event": Event}
    changing = True
    constant = DATA

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """No variable decides them."""
        return False

    def text(self, writer: Writer, val: Val) -> str:
        """The rows that the source gives for the step's seed."""
        return f"data.{val.attrs['key']}.drawn({writer.ref(val.args[0])}, {FETCHED})"

    def stem(self, val: Val) -> str:
        """The column's name with the names of the axes."""
        return take.stem(val)


class Cell(Op):
    """The numbers of an array of the data at combinations of positions."""

    name, arguments, attributes = "cell", ("ids...",), {"key": str}
    source = True
    constant = DATA

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """No event dims."""
        return ()

    def text(self, writer: Writer, val: Val) -> str:
        """The entry of the stored array for each combination of positions."""
        index = ", ".join(writer.ref(a, val.axes, 0) for a in val.args)
        return f"data.{val.attrs['key']}[{index or '()'}]"


const = Const()
param = Param()
kept_share = KeptShare()
hyper = Hyper()
variable = Variable()
component = Component()
array_data = Array()
arange = Arange()
chunk = Chunk()
take = Take()
fetch = Fetch()
cell = Cell()
