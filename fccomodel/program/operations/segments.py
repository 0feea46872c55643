"""Means and sums over rows that lie flat, each knowing the cell of the parents' axes that it belongs to."""

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
    in_order,
    python,
    shape_text,
    sizes,
)
from fccomodel.program.operations.sources import array_data


def permuted(order: Axes, wanted: Axes, event: int) -> str:
    """The text that turns axes in one order, before event dims, into another order."""
    if order == wanted:
        return ""
    places = [order.index(a) for a in wanted] + list(range(len(order), len(order) + event))
    return f".permute({', '.join(map(str, places))})"


class Segment(Op):
    """The mean or sum (``how``) of the rows along ``axis`` in each cell of ``parents``; arrays of the
    data: the rows' ``cells``, and how many rows a cell has, ``sizes``."""

    name, arguments = "segment", ("rows",)
    attributes = {"axis": Axis, "how": str, "cells": str, "sizes": str, "parents": tuple[Axis, ...]}
    prefix = ""

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the cells, and those of the argument without the rows' axis."""
        return in_order([*attrs["parents"], *(a for a in args[0].axes if a is not attrs["axis"])])

    def stem(self, val: Val) -> str:
        """The name ``g1``."""
        return "g1"

    def text(self, writer: Writer, val: Val) -> str:
        """The call that reduces the rows of each cell."""
        (arg,), attrs = val.args, val.attrs
        if attrs["axis"] not in arg.axes:
            return self.alike(writer, val)
        dim = arg.axes.index(attrs["axis"])
        cells = f"data.{attrs['cells']}, data.{attrs['sizes']}, {sizes(attrs['parents'])}"
        text = f"{self.prefix}by_segment({writer.ref(arg)}, {dim}, {cells}, {attrs['how']!r})"
        order = (*arg.axes[:dim], *attrs["parents"], *arg.axes[dim + 1 :])
        return text + permuted(order, val.axes, len(val.event))

    def alike(self, writer: Writer, val: Val) -> str:
        """All rows of a cell are alike. A sum is of floating-point numbers, which have a mean."""
        text = writer.ref(val.args[0])
        if val.attrs["how"] == "mean":
            return text
        return f"{text} * data.{val.attrs['sizes']}.to(data.dtype)"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Rows get the adjoint of their segment."""
        (arg,), g = val.args, to.graph
        if val.attrs["axis"] in arg.axes:
            to.give(arg, g.make(unsegment, [adjoint], **self.back(val)))
        elif val.attrs["how"] == "mean":
            to.give(arg, adjoint)
        else:
            lengths = g.make(array_data, key=val.attrs["sizes"], event=())
            to.give(arg, g.apply("mul", adjoint, lengths))

    def back(self, val: Val) -> dict[str, Any]:
        """The arguments of the transpose."""
        (arg,) = val.args
        return {**val.attrs, "axes": arg.axes, "event": arg.event, "onto": val.axes}


class LogSegment(Segment):
    """The mean or sum of the rows in each cell, of numbers that are known by their logarithms."""

    name, prefix = "log_segment", "log_"

    def alike(self, writer: Writer, val: Val) -> str:
        """The text for an argument that is the same for all rows of a cell."""
        text = writer.ref(val.args[0])
        if val.attrs["how"] == "mean":
            return text
        return f"{text} + data.{val.attrs['sizes']}.to(data.dtype).log()"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Rows by their share in their segment."""
        (arg,), g = val.args, to.graph
        if val.attrs["axis"] not in arg.axes:
            to.give(arg, adjoint)
            return
        mine = g.make(unsegment, [adjoint], **self.back(val))
        whole = g.make(unsegment, [val], **{**self.back(val), "how": "sum"})
        weight = g.apply("exp", g.apply("sub", arg, whole))
        to.give(arg, g.apply("mul", mine, weight))


class Unsegment(Op):
    """Every row gets the value of its segment, which lies along ``onto``: divided by their number for
    a mean."""

    name, arguments = "unsegment", ("adjoint",)
    attributes = {**Segment.attributes, "axes": tuple[Axis, ...], "event": Event, "onto": tuple[Axis, ...]}
    changing = True
    constant = "it is made of adjoints"

    def fault(self, val: Val) -> str:
        """A fault if the value lacks the rows' axis."""
        if val.attrs["axis"] in val.axes:
            return ""
        return "it lacks the rows' axis"

    def text(self, writer: Writer, val: Val) -> str:
        """The adjoint of each row's cell, divided by the cell's size for a mean."""
        (adjoint,), attrs = val.args, val.attrs
        onto, event = attrs["onto"], len(val.event)
        dim = val.axes.index(attrs["axis"])
        others = tuple(a for a in val.axes if a is not attrs["axis"])
        text = writer.ref(adjoint, onto, event)
        if python(adjoint):
            text = writer.filled(shape_text(onto, val.event), text)
        elif adjoint.axes != onto:
            text = f"{text}.expand({shape_text(onto, val.event)})"
        text += permuted(onto, (*others[:dim], *attrs["parents"], *others[dim:]), event)
        cells = f"data.{attrs['cells']}, data.{attrs['sizes']}, {attrs['how']!r}"
        return f"unsegment({text}, {dim}, {len(attrs['parents'])}, {cells})"


segment = Segment()
log_segment = LogSegment()
unsegment = Unsegment()
