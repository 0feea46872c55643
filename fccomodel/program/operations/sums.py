"""Means and sums over axes and event dims, of numbers and of numbers that are known by their logarithms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fccomodel.program.operations.base import (
    Axes,
    Axis,
    Builder,
    Event,
    Op,
    Reverse,
    Val,
    Writer,
    dims,
    einsum,
    in_order,
    union,
)

FULL_PASS = "autograd goes through full passes, or nothing does"


class Over(Op):
    """A reduction over axes."""

    arguments: ClassVar[tuple[str, ...]] = ("values",)
    attributes = {"over": tuple[Axis, ...]}

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes that stay."""
        return tuple(a for a in args[0].axes if a not in attrs["over"])

    def fault(self, val: Val) -> str:
        """The axes of the reduction must be axes of the argument."""
        over = val.attrs["over"]
        if over and {*over} <= {*union(val.args)}:
            return ""
        return "its arguments do not lie along its axes"

    def stem(self, val: Val) -> str:
        """``g1``: a mean is the sampled value of an inner function."""
        return "g1"

    def places(self, val: Val) -> str:
        """The dims that go; all of them without a name."""
        (arg,) = val.args
        if len(val.attrs["over"]) == len(arg.axes) and not arg.event:
            return ""
        return dims(arg, val.attrs["over"])


class Mean(Over):
    """The mean over axes."""

    name, inline = "mean_axes", True

    def text(self, writer: Writer, val: Val) -> str:
        """``x.mean(dims)``."""
        return f"{writer.ref(val.args[0])}.mean({self.places(val)})"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Every element has the adjoint over their number."""
        elements = to.graph.size(val.attrs["over"])
        to.give(val.args[0], to.graph.apply("div", adjoint, elements))


class Sum(Over):
    """The sum over axes."""

    name, inline = "sum_axes", True

    def text(self, writer: Writer, val: Val) -> str:
        """``x.sum(dims)``."""
        return f"{writer.ref(val.args[0])}.sum({self.places(val)})"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Every element has the adjoint."""
        to.give(val.args[0], adjoint)


class Shares(Over):
    """The share of each exp(x) in their sum over an axis, where some x is finite."""

    name = "shares"
    constant = "it is a derivative itself"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """All axes of the argument: a share for each element."""
        return args[0].axes

    def fault(self, val: Val) -> str:
        """The shares are along one axis."""
        if len(val.attrs["over"]) != 1:
            return "it is of several axes"
        return super().fault(val)

    def stem(self, val: Val) -> str:
        """``p1``: shares are probabilities."""
        return "p1"

    def text(self, writer: Writer, val: Val) -> str:
        """``x.softmax(dim)``."""
        return f"{writer.ref(val.args[0])}.softmax({dims(val.args[0], val.attrs['over'])})"


class LogMean(Over):
    """log mean exp over axes; ``shares`` of the values are what its derivative is made of."""

    name, arguments = "log_mean_axes", ("values", "shares...")

    def text(self, writer: Writer, val: Val) -> str:
        """``log_mean_exp``, or ``log_mean_by`` if the shares are given."""
        arguments = ", ".join([*map(writer.ref, val.args), dims(val.args[0], val.attrs["over"])])
        return f"{'log_mean_by' if len(val.args) > 1 else 'log_mean_exp'}({arguments})"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Elements by their share in the mean: exp(x - log mean exp x) / n."""
        if len(val.args) > 1:
            to.give(val.args[0], to.graph.apply("mul", adjoint, val.args[1]))
            return
        g, n = to.graph, to.graph.size(val.attrs["over"])
        share = g.apply("exp", g.apply("sub", val.args[0], val))
        to.give(val.args[0], g.apply("mul", g.apply("div", adjoint, n), share))


class Raised(Op):
    """Exponentials along an axis, from which means under different masks are computed.

    ``skips`` are places along the axis that no mean contains.
    """

    name, arguments, attributes = "raised", ("exponents", "skips..."), {"over": tuple[Axis, ...]}
    constant = FULL_PASS

    def fault(self, val: Val) -> str:
        """A fault if a mask lies along an axis that is summed."""
        values, *skips = val.args
        fits = all({*skip.axes} <= {*values.axes} - {*val.attrs["over"]} for skip in skips)
        if fits:
            return ""
        return "what it skips lies along its axis"

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``raised``."""
        values, *skips = val.args
        parts = [
            writer.ref(values),
            dims(values, val.attrs["over"]),
            *(writer.ref(skip, values.axes, 0) for skip in skips),
        ]
        return f"raised({', '.join(parts)})"


class LogMeanRaised(Over):
    """log mean exp over an axis: the sum is over the entries that masks let through, the mean over all
    entries.

    With ``alike``, the first two masks are two values, and entries are used where these are equal.
    """

    name, arguments, attributes = (
        "log_mean_raised",
        ("raised", "masks..."),
        {"over": tuple[Axis, ...], "alike": bool},
    )
    constant = FULL_PASS

    def fault(self, val: Val) -> str:
        """A fault unless the masks lie on the exponentials."""
        values, *masks = val.args
        fits = all({*mask.axes} <= {*values.axes} for mask in masks) and len(masks) <= (
            3 if val.attrs["alike"] else 1
        )
        if values.op is raised and fits:
            return ""
        return "its masks do not lie on its exponentials"

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``log_mean_raised``."""
        values, *masks = val.args
        texts = [writer.ref(mask, values.axes, 0) for mask in masks]
        pair, rest = texts[: 2 * val.attrs["alike"]], texts[2 * val.attrs["alike"] :]
        more = [*rest, *([f"alike=({', '.join(pair)})"] if pair else [])]
        return f"log_mean_raised({', '.join([writer.ref(values), dims(values, val.attrs['over']), *more])})"


class Contract(Over):
    """The sum over axes of outer products, without the products."""

    name, arguments = "contract", ("left", "right")
    constant = FULL_PASS

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of both arguments that stay."""
        return tuple(a for a in union(args) if a not in attrs["over"])

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """The event dims of the left argument, then those of the right."""
        return args[0].event + args[1].event

    def stem(self, val: Val) -> str:
        """``t1``: it is no mean."""
        return "t1"

    def text(self, writer: Writer, val: Val) -> str:
        """A ``torch.einsum`` over the axes."""
        events = tuple(letter if arg.event else "" for letter, arg in zip("yz", val.args, strict=True))
        return einsum(writer, val.args, events, val.axes, "".join(events))


class SumEvent(Op):
    """The sum of all entries."""

    name, arguments = "sum_event", ("array",)
    inline = True

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """None: it is a number."""
        return ()

    def text(self, writer: Writer, val: Val) -> str:
        """``x.sum(...)`` over the event dims."""
        (arg,) = val.args
        return f"{writer.ref(arg)}.sum({'' if not val.axes else tuple(range(-len(arg.event), 0))})"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """Every entry has the adjoint."""
        to.give(val.args[0], adjoint)


class Chunked(Op):
    """The values of all slices of an axis, one after another along the complete axis ``onto``."""

    name, arguments, attributes = "chunked", ("slice",), {"axis": Axis, "onto": Axis}
    constant = FULL_PASS
    silent = "it is a loop"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of a slice, with the complete axis in place of the slice."""
        return in_order([attrs["onto"], *(a for a in args[0].axes if a is not attrs["axis"])])


class Swept(Op):
    """The mean of numbers along an axis, from sums over its slices: one sweep gives its gradient too."""

    name, arguments, attributes = "swept", ("slice",), {"axis": Axis}
    constant = FULL_PASS
    silent = "it is a loop"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """None: it is one number."""
        return ()

    def fault(self, val: Val) -> str:
        """A slice has one number for each element."""
        (arg,) = val.args
        if arg.axes == (val.attrs["axis"],) and not arg.event:
            return ""
        return "its slices are not of numbers along its axis"


def total(g: Builder, val: Val, axes: Axes) -> Val:
    """The sum over axes; those that the value lacks count by their size."""
    times = g.size(tuple(a for a in axes if a not in val.axes))
    have = tuple(a for a in val.axes if a in axes)
    outer, parts = g.parts(val)
    if have and outer == "neg":
        return g.apply("neg", total(g, parts[0], axes))
    if have and outer == "mul" and g.number(parts[0]) is not None:
        return g.apply("mul", parts[0], total(g, parts[1], axes))
    if have and val.op.name == "array" and val.attrs["atom"] == "outer":
        val = g.make(contract, val.args, over=have)
    elif have:
        val = g.make(sum_axes, [val], over=have)
    return g.apply("mul", times, val)


def weighed(g: Builder, val: Val, axes: Axes) -> Val | None:
    """``total`` of vectors times numbers that have more axes, without the products; None for another
    value."""
    if not {*axes} <= {*val.axes} or val.op.name != "ew" or val.attrs["atom"] != "mul" or len(val.event) != 1:
        return None
    number, vector = sorted(val.args, key=lambda arg: len(arg.event))
    if number.event or {*val.axes} == {*vector.axes} or not number.axes:
        return None
    return g.make(contract, [number, vector], over=tuple(a for a in val.axes if a in axes))


def average(g: Builder, val: Val, axes: Axes) -> Val:
    """The mean over axes."""
    have = tuple(a for a in val.axes if a in axes)
    if have:
        return g.make(mean_axes, [val], over=have)
    return val


mean_axes = Mean()
sum_axes = Sum()
shares = Shares()
log_mean_axes = LogMean()
raised = Raised()
log_mean_raised = LogMeanRaised()
contract = Contract()
sum_event = SumEvent()
chunked = Chunked()
swept = Swept()
