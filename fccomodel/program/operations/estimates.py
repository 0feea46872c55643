"""Values that a step keeps for the next step: estimates, centres of smoothing, weights of the worst
members of a family.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fccomodel.library.proximal import Proximal
from fccomodel.program.operations.base import (
    Axes,
    Axis,
    Event,
    MoreauEnvelope,
    Op,
    Reverse,
    Val,
    Writer,
    bare,
    number,
    union,
)
from fccomodel.program.operations.envelopes import lam_text
from fccomodel.program.operations.reductions import merged


class Track(Op):
    """The estimate u that a minibatch value moves, for the blocks at some positions.

    With ``log`` the value and the estimate are logarithms. Without a ``name`` it is the extrapolation of
    the value. The derivative passes through ``through``, or else through the value.
    """

    name, arguments = "track", ("value", "positions...")
    attributes, defaults = {"name": str, "through": Val | None, "log": bool}, {"through": None, "log": False}
    changing = True

    def text(self, writer: Writer, val: Val) -> str:
        """The call of the algorithm's estimator."""
        return writer.estimate(val)

    def stem(self, val: Val) -> str:
        """The name of the estimate."""
        return val.attrs["name"] or "g1"

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """The derivative for logarithms: d log u = g/u d log g. The weight is at most e^30, for an estimate
        that is far too small.
        """
        g, through = to.graph, val.attrs["through"] or val.args[0]
        if val.attrs["log"]:
            ratio = g.apply("min", g.apply("sub", through, val), g.const(30.0))
            adjoint = g.apply("mul", adjoint, g.apply("exp", ratio))
        to.give(through, adjoint)


class Centre(Op):
    """The centre of a smoothing at the blocks of some positions."""

    name, arguments, attributes = "centre", ("positions...",), {"name": str, "event": Event}
    changing = True
    constant = "it moves between steps"

    def text(self, writer: Writer, val: Val) -> str:
        """``c.NAME``, at the positions of the blocks."""
        index = ", ".join(writer.ref(p, val.axes, 0) for p in val.args)
        if index:
            return f"c.{val.attrs['name']}[{index}]"
        return f"c.{val.attrs['name']}"

    def stem(self, val: Val) -> str:
        """``c_NAME``."""
        return f"c_{val.attrs['name']}"


class Envelope(Op):
    """The Moreau envelope of a function of an argument, perhaps with a centre.

    over   the axes along which the function takes its numbers, none: entry by entry, or the event dims
    name   of the smoothing parameter
    scale  hyper-parameter that multiplies the function
    ends   the ends of the dual domain, of a block that keeps its y
    """

    name, arguments = "envelope", ("argument", "centre...")
    attributes = {
        "function": Proximal,
        "over": tuple[Axis, ...],
        "name": str,
        "scale": str | None,
        "ends": tuple[float, ...] | None,
    }
    spreads = True

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes that the function does not take as one vector."""
        return tuple(a for a in union(args) if a not in attrs["over"])

    def event(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Event:
        """The event dims of the argument; None if the function takes them as one vector."""
        if attrs["function"].rank:
            return ()
        return args[0].event

    def fault(self, val: Val) -> str:
        """The axes of the function must be axes of the argument."""
        if {*val.attrs["over"]} <= {*val.args[0].axes}:
            return ""
        return "its argument does not lie along its axes"

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``envelope_NAME``."""
        form, argument, centre = self.parts(writer, val, merged(val, val.attrs["over"]))
        return writer.smooth("value", form, argument, centre)

    def parts(self, writer: Writer, val: Val, axes: Axes) -> tuple[MoreauEnvelope, str, str]:
        """The envelope, and the texts of its argument and its centre ("" if it has none)."""
        event = len(val.args[0].event)
        argument, *centres = (writer.ref(arg, axes, event) for arg in val.args)
        form = MoreauEnvelope(
            function=val.attrs["function"],
            name=val.attrs["name"],
            scale=val.attrs["scale"],
            dims=function_dims(val.attrs["function"], val.attrs["over"], axes, event),
            centred=bool(centres),
            damped=writer.dual and bool(centres),
        )
        return form, bare(argument), centres[0] if centres else ""

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """A point of the dual domain, an operation of its own."""
        slope = to.graph.make(envelope_slope, val.args, **val.attrs)
        to.give(val.args[0], to.graph.apply("mul", adjoint, slope))


def function_dims(function: Proximal, over: Axes, axes: Axes, event: int) -> tuple[int, ...]:
    """The dims that a function takes as one vector: some axes, or the event dims; none entry by entry."""
    if over:
        return tuple(axes.index(axis) for axis in over)
    if function.rank:
        return tuple(range(-event, 0))
    return ()


class EnvelopeSlope(Op):
    """The slope of an envelope: a multiplier."""

    name, arguments, attributes = "envelope_slope", Envelope.arguments, Envelope.attributes
    constant = "it is a derivative itself"

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """False: the gradient goes through it once."""
        return False

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``slope_NAME``, or of ``multiplier`` where the block keeps its y."""
        form, argument, centre = envelope.parts(writer, val, val.axes)
        if val.attrs["ends"]:
            ends = ", ".join(map(number, val.attrs["ends"]))
            return f"multiplier({argument}, {centre}, {lam_text(form)}, {ends}, h)"
        return writer.smooth("slope", form, argument, centre)

    def stem(self, val: Val) -> str:
        """``y1``: it is a multiplier."""
        return "y1"


class Couple(Op):
    """The worst of a family as the risks of sampled members, weighted by their q; ``share``: members
    for each that is sampled."""

    name, arguments = "couple", ("risks", "members", "everyone", "alpha")
    attributes = {"name": str, "share": float}
    silent = "a step needs its derivative alone"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """None: it is one number."""
        return ()

    def derivative(self, to: Reverse, val: Val, adjoint: Val) -> None:
        """The weights are its derivative, scaled where members are sampled."""
        g, q = to.graph, to.graph.make(weights, val.args, **val.attrs)
        weight = g.apply("mul", g.const(val.attrs["share"]), q)
        to.give(val.args[0], g.apply("mul", adjoint, weight))


class Weights(Op):
    """The weights q of the sampled members of a family, moved towards those with the largest risks."""

    name, arguments, attributes = "weights", Couple.arguments, Couple.attributes
    changing = True
    constant = "it is a derivative itself"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axes of the risks: a weight for each sampled member."""
        return args[0].axes

    def varying(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> bool:
        """False: the gradient goes through it once."""
        return False

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``couple``, which moves the weights."""
        body, index, everyone, alpha = val.args
        t = writer.ref(body, val.axes, 0)
        return (
            f"couple(c.{val.attrs['name']}, {writer.ref(everyone)}, {writer.ref(index)}, {t}, h.tau, "
            f"{writer.ref(alpha)})"
        )

    def stem(self, val: Val) -> str:
        """The name of the weights."""
        return val.attrs["name"]


track = Track()
centre = Centre()
envelope = Envelope()
envelope_slope = EnvelopeSlope()
couple = Couple()
weights = Weights()
