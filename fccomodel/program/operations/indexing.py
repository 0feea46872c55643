"""Entries of arrays, members of families, rows of a table's scores; and their transposes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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
    grid,
    in_order,
    python,
    shape_text,
    union,
)
from fccomodel.program.operations.sources import arange, variable

ADJOINT = "it is made of adjoints"


def keys(writer: Writer, fixed: Iterable[int | None], moving: Iterable[Val], axes: Axes) -> list[str]:
    """Index texts: known positions, and between them those of values."""
    queue = iter(moving)
    return [str(k) if k is not None else writer.ref(next(queue), axes, 0) for k in fixed]


class TakeEntry(Op):
    """Entries of an array: at known positions, and where ``fixed`` has None at those of the further
    arguments."""

    name, arguments, attributes = "entry", ("array", "positions..."), {"fixed": tuple[int | None, ...]}

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """The dims at known positions go."""
        return args[0].event[len(attrs["fixed"]) :]

    def fault(self, val: Val) -> str:
        """A fault if the positions do not fit the dims or the arguments."""
        if len(val.attrs["fixed"]) > len(val.args[0].event):
            return "more positions than dims"
        if val.attrs["fixed"].count(None) == len(val.args) - 1:
            return ""
        return "its positions are not as many as its arguments"

    def text(self, writer: Writer, val: Val) -> str:
        """The array, indexed."""
        base, *moving = val.args
        index = keys(writer, val.attrs["fixed"], moving, val.axes)
        if not base.axes:
            return f"{writer.ref(base)}[{', '.join(index)}]"
        if not moving:
            return f"{writer.ref(base)}[..., {', '.join(index + [':'] * len(val.event))}]"
        return f"{writer.ref(base)}[{', '.join([grid(a, val.axes) for a in base.axes] + index)}]"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Give the adjoint to the entry of the argument, or of the variable."""
        base, *moving = val.args
        if base.op is variable:
            to.pull(base.attrs["name"], val, adjoint)
            return
        axes = in_order([*base.axes, *union([adjoint, *moving])])
        to.give(
            base,
            to.graph.make(entry_t, [adjoint, *moving], axes=axes, event=base.event, fixed=val.attrs["fixed"]),
        )

    def pulled(self, source: Val) -> tuple[Val, ...]:
        """The positions."""
        return source.args[1:]

    def contribution(self, writer: Writer, pull: Pull) -> str:
        """A flat vector of zeros with the adjoint at the entries."""
        start, stop, shape = writer.layout[pull.variable]
        source, axes = pull.source, pull.source.axes
        index = keys(writer, source.attrs["fixed"], source.args[1:], axes)
        whole = (
            not source.event or pull.adjoint.event != source.event
        )  # of a sum of entries the adjoint is one number
        if axes and whole:
            adjoint = writer.expanded(pull.adjoint, axes, source.event)
        else:
            adjoint = writer.ref(pull.adjoint)
        if python(pull.adjoint) and not axes:
            adjoint = f"w.new_full((), {writer.ref(pull.adjoint)})"
        if len(shape) == 1:
            flat = ""
        else:
            flat = f".reshape({stop - start})"
        return f"spread({shape}, ({', '.join(index)},), {adjoint}){flat}"


class EntryT(Op):
    """The array that is zero but for the entries at some positions, which are the adjoint."""

    name, arguments = "entry_t", ("adjoint", "positions...")
    attributes = {"axes": tuple[Axis, ...], "event": Event, "fixed": tuple[int | None, ...]}
    changing = True
    constant = ADJOINT

    def fault(self, val: Val) -> str:
        """A fault if an argument has axes that the value lacks."""
        if {*union(val.args)} <= {*val.axes}:
            return ""
        return "an argument has axes that it lacks"

    def text(self, writer: Writer, val: Val) -> str:
        """Zeros, with the adjoint added at the entries."""
        adjoint, *moving = val.args
        index = [grid(a, val.axes) for a in val.axes] + keys(writer, val.attrs["fixed"], moving, val.axes)
        return spread_text(writer, val, index, adjoint, val.axes, len(val.event) - len(val.attrs["fixed"]))


class Pick(Op):
    """Members of a family that lies along the axes ``over``: known ones, and where ``fixed`` has None
    those of the arguments."""

    name, arguments = "pick", ("family", "members...")
    attributes = {"over": tuple[Axis, ...], "fixed": tuple[int | None, ...]}

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the arguments take the place of ``over``."""
        axes_left = (a for a in args[0].axes if a not in attrs["over"])
        return in_order([*axes_left, *union(args[1:])])

    def fault(self, val: Val) -> str:
        """A fault if the family's axes or the number of members do not fit."""
        if not {*val.attrs["over"]} <= {*val.args[0].axes}:
            return "the family does not lie along its axes"
        if val.attrs["fixed"].count(None) == len(val.args) - 1:
            return ""
        return "its members are not as many as its arguments"

    def text(self, writer: Writer, val: Val) -> str:
        """The family, indexed along its axes."""
        base, *moving = val.args
        index = chosen(writer, base.axes, val.attrs, moving, val.axes)
        return f"{writer.ref(base)}[{', '.join(index)}]"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Add the adjoint to the picked members."""
        base = val.args[0]
        extra = {"axes": base.axes, "event": base.event, "extra": val.axes}
        to.give(base, to.graph.make(unpick, [adjoint, *val.args[1:]], **val.attrs, **extra))


class Unpick(Op):
    """The family that is zero but for some members, which are the adjoint; ``extra``: the axes of the
    adjoint."""

    name, arguments = "unpick", ("adjoint", "members...")
    attributes = {**Pick.attributes, "axes": tuple[Axis, ...], "event": Event, "extra": tuple[Axis, ...]}
    changing = True
    constant = ADJOINT

    def text(self, writer: Writer, val: Val) -> str:
        """Zeros, with the adjoint added at the members."""
        adjoint, *moving = val.args
        index = chosen(writer, val.axes, val.attrs, moving, val.attrs["extra"])
        return spread_text(writer, val, index, adjoint, val.attrs["extra"], len(val.event))


def chosen(
    writer: Writer, base: Axes, attrs: Mapping[str, Any], moving: list[Val], target: Axes
) -> list[str]:
    """Index texts for every axis of a family: its members, and everything along other axes."""
    members = dict(zip(attrs["over"], keys(writer, attrs["fixed"], moving, target), strict=True))
    return [members[a] if a in members else grid(a, target) for a in base]


def spread_text(writer: Writer, val: Val, index: list[str], adjoint: Val, axes: Axes, event: int) -> str:
    """An adjoint at these places of an array of zeros."""
    if python(adjoint):
        text = f"w.new_full((), {writer.ref(adjoint)})"
    else:
        text = writer.ref(adjoint, axes, event)
    return f"spread({shape_text(val.axes, val.event)}, ({', '.join(index)},), {text})"


class TakeValue(Op):
    """Rows of a computed array."""

    name, arguments = "take_val", ("array", "rows")

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the rows."""
        return args[1].axes

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """The event of the array without its first dim, the dim of the rows."""
        return args[0].event[1:]

    def fault(self, val: Val) -> str:
        """A fault unless the first argument is a table without axes."""
        if val.args[0].axes or not val.args[0].event:
            return "it takes rows of a number, or of what has axes"
        return ""

    def text(self, writer: Writer, val: Val) -> str:
        """The array, indexed by the ids."""
        whole, index = val.args
        every = index.op is arange and index.axes[0].size == whole.event[0]
        return writer.ref(whole) + ("" if every else f"[{writer.ref(index)}]")

    def stem(self, val: Val) -> str:
        """``s`` with the names of the axes."""
        return f"s{along(val.axes)}"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Add the adjoint to the rows that were taken."""
        whole, index = val.args
        to.give(whole, to.graph.make(scatter_val, [adjoint, index], event=whole.event, onto=val.axes))


class ScatterValue(Op):
    """Sums of adjoints, that lie along ``onto``, at the rows they belong to."""

    name, arguments, attributes = (
        "scatter_val",
        ("adjoint", "rows"),
        {"event": Event, "onto": tuple[Axis, ...]},
    )
    changing = True
    constant = ADJOINT

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """No axes: the result is a whole table."""
        return ()

    def text(self, writer: Writer, val: Val) -> str:
        """The adjoints, added up in the rows they belong to."""
        adjoint, index = val.args
        axes, n, event = val.attrs["onto"], val.event[0], val.event[1:]
        values = writer.expanded(adjoint, axes, event)
        if index.op is arange and index.axes[0].size == n:
            return values
        if len(axes) == 1:
            flat, rows = ("", "")
        else:
            flat, rows = (".reshape(-1)", f".reshape({', '.join(map(str, (-1, *event)))})")
        return (
            f"w.new_zeros({', '.join(map(str, val.event))}).index_add_(0, {writer.ref(index)}{flat}, "
            f"{values}{rows})"
        )


class Within(Op):
    """The part along ``axis`` of a value along ``whole``: at known ``places``, which may be a run, in
    an array of the data."""

    name, arguments = "within", ("whole",)
    attributes = {"whole": Axis, "axis": Axis, "start": int, "places": str}
    inline = True

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the argument, with the part in place of the whole axis."""
        return in_order(attrs["axis"] if a is attrs["whole"] else a for a in args[0].axes)

    def fault(self, val: Val) -> str:
        """A fault unless the argument lies along the whole axis alone."""
        if val.args[0].axes == (val.attrs["whole"],):
            return ""
        return "its argument lies along other axes"

    def text(self, writer: Writer, val: Val) -> str:
        """The value, indexed along the axis."""
        return f"{writer.ref(val.args[0])}[{places(val.attrs)}]"

    def stem(self, val: Val) -> str:
        """``s`` with the names of the axes."""
        return f"s{along(val.axes)}"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Add the adjoint to the part of the argument."""
        (whole,) = val.args
        to.give(whole, to.graph.make(beyond, [adjoint], **val.attrs, event=whole.event))


class Beyond(Op):
    """An adjoint along ``axis`` at its places along ``whole``, zero elsewhere."""

    name, arguments, attributes = "beyond", ("adjoint",), {**Within.attributes, "event": Event}
    changing = True
    constant = ADJOINT

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The whole axis."""
        return (attrs["whole"],)

    def text(self, writer: Writer, val: Val) -> str:
        """Zeros, with the adjoint at the places."""
        (adjoint,), attrs, event = val.args, val.attrs, val.event
        values = writer.expanded(adjoint, (attrs["axis"],), event)
        if not attrs["places"]:
            after = attrs["whole"].size - attrs["start"] - attrs["axis"].size
            return f"torch.nn.functional.pad({values}, {(0, 0) * len(event) + (attrs['start'], after)})"
        return f"w.new_zeros({shape_text(val.axes, event)}).index_copy_(0, data.{attrs['places']}, {values})"


def places(attrs: Mapping[str, Any]) -> str:
    """The index text of a part of an axis."""
    start, stop = attrs["start"], attrs["start"] + attrs["axis"].size
    if attrs["places"]:
        return f"data.{attrs['places']}"
    return f"{start or ''}:{stop if stop < attrs['whole'].size else ''}"


entry = TakeEntry()
entry_t = EntryT()
pick = Pick()
unpick = Unpick()
take_val = TakeValue()
scatter_val = ScatterValue()
within = Within()
beyond = Beyond()
