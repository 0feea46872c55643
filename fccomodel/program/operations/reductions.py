"""Maxima, products, tails and the like over complete axes; full passes over pairs of rows that form no
pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fccomodel.program.operations.base import (
    Axes,
    Axis,
    Event,
    Op,
    Reverse,
    Val,
    Writer,
    dims,
    in_order,
    number,
    sizes,
    union,
)
from fccomodel.program.operations.segments import permuted
from fccomodel.program.operations.sums import FULL_PASS

Pieces = tuple[tuple[float, ...], ...]


def merged(val: Val, over: Axes) -> Axes:
    """The axes of a reduction's elements, in layout order."""
    return in_order([*val.axes, *over])


class Reduce(Op):
    """A reduction of one of the language's kinds over axes. The last argument is a mask of the entries
    used.
    """

    name, arguments = "reduce", ("elements", "options...")
    attributes = {"kind": str, "over": tuple[Axis, ...], "masked": bool}

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the result, with the axes of a mask and of options."""
        body, *options = args
        all_axes = union([body, *options])
        return tuple(a for a in all_axes if a not in attrs["over"])

    def fault(self, val: Val) -> str:
        """The axes of the reduction must be axes of the elements."""
        if {*val.attrs["over"]} <= {*val.args[0].axes}:
            return ""
        return "its elements do not lie along its axes"

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``reduce_KIND``."""
        body, *options = val.args
        axes, event = merged(val, val.attrs["over"]), len(body.event)
        places = [axes.index(a) for a in val.attrs["over"]]
        if len(places) == 1:
            where = str(places[0])
        else:
            where = str(tuple(places))
        rest = rest_text(writer, options, axes, event, val.attrs["masked"])
        return f"reduce_{val.attrs['kind']}({writer.ref(body, axes, event)}, {where}{rest})"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """The adjoint times the derivative in each element."""
        slope = to.graph.make(reduce_slope, [*val.args, val], **val.attrs)
        to.give(val.args[0], to.graph.apply("mul", adjoint, slope))


class ReduceByCell(Op):
    """A reduction of one of the language's kinds over rows that lie flat, cell after cell.

    first, size   keys of arrays with the first row of each cell, and the number of its rows
    parents       the axes of the cells
    """

    name, arguments = "reduce_by_cell", ("rows", "options...")
    attributes = {"kind": str, "axis": Axis, "first": str, "size": str, "parents": tuple[Axis, ...]}
    constant = FULL_PASS

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the cells."""
        return in_order(attrs["parents"])

    def fault(self, val: Val) -> str:
        """The rows must lie along their axis, and along no other."""
        if val.args[0].axes == (val.attrs["axis"],):
            return ""
        return "its rows do not lie along one axis"

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``reduce_by_cell``."""
        (rows, *options), attrs = val.args, val.attrs
        cells = f"data.{attrs['first']}, data.{attrs['size']}, {sizes(attrs['parents'])}"
        rest = "".join(f", {writer.ref(option)}" for option in options)
        text = f"reduce_by_cell(reduce_{attrs['kind']}, {writer.ref(rows)}, {cells}{rest})"
        return text + permuted(attrs["parents"], val.axes, 0)


class ReduceSlope(Op):
    """The derivative of a reduction in each element; the last argument is its value."""

    name, arguments, attributes = "reduce_slope", ("elements", "options...", "value"), Reduce.attributes
    constant = "it is a derivative itself"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """All axes of the elements: a derivative for each."""
        return args[0].axes

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """False: it is a derivative itself."""
        return False

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``slope_KIND``."""
        body, *options, whole = val.args
        rest = rest_text(writer, options, body.axes, len(body.event), val.attrs["masked"])
        value = writer.ref(whole, body.axes, len(body.event))
        return (
            f"slope_{val.attrs['kind']}({writer.ref(body)}, {value}, {dims(body, val.attrs['over'])}{rest})"
        )


def rest_text(writer: Writer, options: list[Val], axes: Axes, event: int, masked: bool) -> str:
    """The options of a reduction, and its mask."""
    if masked:
        mask = f", mask={writer.ref(options[-1], axes, event)}"
    else:
        mask = ""
    numbers = options[: len(options) - masked]
    written = [writer.ref(o, axes, event) if o.axes else writer.ref(o) for o in numbers]
    return "".join(f", {one}" for one in written) + mask


class PiecewiseMean(Op):
    """The mean over b of a piecewise quadratic function of a + b, for every a, from sorted b."""

    name, arguments, attributes = "piecewise_mean", ("a", "b"), {"pieces": Pieces}
    constant = FULL_PASS

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the first argument."""
        return args[0].axes

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``mean_of_pieces``."""
        return f"mean_of_pieces({', '.join(map(writer.ref, val.args))}, {pieces_text(val)})"


class PiecewiseRuns(Op):
    """The sum of a piecewise quadratic function of a + b over a run of the sorted b, for every a; a run
    has a start and a length."""

    name, arguments, attributes = "piecewise_runs", ("a", "b", "start", "size"), {"pieces": Pieces}
    constant = FULL_PASS

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the argument and of the runs."""
        return union([args[0], args[2]])

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``sum_of_pieces_in_runs``."""
        a, b, start, size = val.args
        texts = (
            writer.ref(a, val.axes),
            writer.ref(b),
            writer.ref(start, val.axes),
            writer.ref(size, val.axes),
        )
        return f"sum_of_pieces_in_runs({', '.join(texts)}, {pieces_text(val)})"


class Cumulated(Op):
    """Cumulative sums of rows, and the sum over no row at the end.

    log     whether they are logarithms of sums of exponentials
    after   whether a sum is over the rows after each row, not up to it
    groups  name of the array with the groups within which rows are summed, if any
    """

    name, arguments = "cumulated", ("rows",)
    attributes = {"event": Event, "log": bool, "after": bool, "groups": str | None}
    constant = FULL_PASS

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """No axes: the result is laid out as the sorted rows are."""
        return ()

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``cumulated``, or of ``log_cumulated``."""
        if val.attrs["groups"]:
            groups = f", data.{val.attrs['groups']}"
        else:
            groups = ""
        return (
            f"{'log_' if val.attrs['log'] else ''}cumulated({writer.ref(val.args[0])}, "
            f"{val.attrs['after']}{groups})"
        )


def pieces_text(val: Val) -> str:
    """The pieces of a piecewise quadratic function: up to where, and its coefficients."""
    texts = (", ".join(map(number, piece)) for piece in val.attrs["pieces"])
    return f"[{', '.join(f'({text})' for text in texts)}]"


reduce = Reduce()
reduce_by_cell = ReduceByCell()
reduce_slope = ReduceSlope()
piecewise_mean = PiecewiseMean()
piecewise_runs = PiecewiseRuns()
cumulated = Cumulated()
