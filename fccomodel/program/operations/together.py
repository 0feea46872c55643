"""Values that are computed together: at two iterates, or for several minibatches of one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fccomodel.program.operations.base import Axes, Axis, Event, Op, Val, Writer, in_order, sizes

DERIVED = "it is made once derivatives are known"


class Iterates(Op):
    """A value at w and one at the iterate before, along an axis of these two, which lies before all
    others."""

    name, arguments, attributes = "iterates", ("now", "before"), {"axis": Axis}
    constant = DERIVED

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axis of the two iterates and the axes of the values."""
        return in_order([attrs["axis"], *args[0].axes])

    def fault(self, val: Val) -> str:
        """A fault unless both values have the same layout."""
        now, before = val.args
        if now.axes == before.axes and now.event == before.event:
            return ""
        return "they lie along different axes"

    def text(self, writer: Writer, val: Val) -> str:
        """Both values, stacked."""
        return f"torch.stack([{', '.join(map(writer.ref, val.args))}])"

    def stem(self, val: Val) -> str:
        """The value's name with ``both``."""
        return f"{val.args[0].op.stem(val.args[0])}_both"


class At(Op):
    """A value at one of the two iterates."""

    name, arguments, attributes = "at", ("both",), {"axis": Axis, "place": int}
    inline = True
    constant = DERIVED

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the argument without the axis of the iterates."""
        return tuple(a for a in args[0].axes if a is not attrs["axis"])

    def fault(self, val: Val) -> str:
        """A fault if the argument belongs to one iterate."""
        if val.args[0].axes[:1] == (val.attrs["axis"],):
            return ""
        return "its argument is of one iterate"

    def text(self, writer: Writer, val: Val) -> str:
        """The values of one iterate."""
        return f"{writer.ref(val.args[0])}[{val.attrs['place']}]"

    def stem(self, val: Val) -> str:
        """The name of the value."""
        return val.args[0].op.stem(val.args[0])


class Joined(Op):
    """Values along an axis each, one after another ``onto`` one axis."""

    name, arguments = "joined", ("values...",)
    attributes = {"parts": tuple[Axis, ...], "onto": Axis, "event": Event}
    constant = DERIVED

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The joint axis."""
        return (attrs["onto"],)

    def fault(self, val: Val) -> str:
        """A fault if a value lies along another axis than its part."""
        each = zip(val.args, val.attrs["parts"], strict=True)
        if all({*arg.axes} <= {axis} for arg, axis in each):
            return ""
        return "its values lie along other axes"

    def text(self, writer: Writer, val: Val) -> str:
        """The values, one after another."""
        each = zip(val.args, val.attrs["parts"], strict=True)
        values = [writer.expanded(arg, (axis,), val.attrs["event"]) for arg, axis in each]
        return f"torch.cat([{', '.join(values)}])"

    def stem(self, val: Val) -> str:
        """Positions by their axis, adjoints as sums are called."""
        name = val.attrs["onto"].name
        if any(a.varying for a in val.args):
            return f"g_{name}"
        return name


class PartOfAxis(Op):
    """A part of the values along an axis, from ``start`` on, as an axis of its own."""

    name, arguments, attributes = "part", ("joined",), {"axis": Axis, "onto": Axis, "start": int}
    constant = DERIVED

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the argument, with the part in place of the joint axis."""
        return in_order(attrs["onto"] if a is attrs["axis"] else a for a in args[0].axes)

    def fault(self, val: Val) -> str:
        """A fault unless the argument lies along the joint axis."""
        (whole,), axes = val.args, [a for a in val.axes if a is not val.attrs["onto"]]
        left = [a for a in whole.axes if a is not val.attrs["axis"]]
        if val.attrs["axis"] in whole.axes and axes == left:
            return ""
        return "its argument does not lie along its axis"

    def text(self, writer: Writer, val: Val) -> str:
        """The slice of the part."""
        start, axis, (whole,) = val.attrs["start"], val.attrs["axis"], val.args
        (size,), stop = sizes((val.attrs["onto"],)), sizes((axis,))[0]
        place = f"{start or ''}:{'' if start + size == stop else start + size}"
        return f"{writer.ref(whole)}[{', '.join([*[':'] * whole.axes.index(axis), place])}]"

    def stem(self, val: Val) -> str:
        """The name of the argument with the name of the part."""
        return (
            val.args[0].op.stem(val.args[0]).removesuffix(f"_{val.attrs['axis'].name}")
            + f"_{val.attrs['onto'].name}"
        )


iterates = Iterates()
at = At()
joined = Joined()
part = PartOfAxis()
