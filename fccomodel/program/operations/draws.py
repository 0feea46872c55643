"""Random draws of a step, and the fixed samples of a full pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fccomodel.library import distributions
from fccomodel.program.operations.base import Axes, Axis, Event, Op, Val, Writer, in_order, sizes

RANDOM = "it is random, whatever the variables"


class Draw(Op):
    """Numbers below ``n``, one for each element of a minibatch's axis; ``how``: ``epochs`` or ``iid``."""

    name, attributes = "draw", {"axis": Axis, "n": int, "how": str}
    changing = True
    constant = RANDOM
    silent = "it is an argument of the step"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axis of the drawn rows."""
        return (attrs["axis"],)

    def stem(self, val: Val) -> str:
        """The name of the drawn axis."""
        return val.attrs["axis"].name


class DrawStrata(Op):
    """Places of rows that are sorted by stratum: ``counts`` places among the ``sizes`` rows of each
    stratum. ``how`` is ``epochs`` or ``iid``.
    """

    name = "draw_strata"
    attributes = {"axis": Axis, "sizes": tuple[int, ...], "counts": tuple[int, ...], "how": str}
    changing = True
    constant = RANDOM
    silent = "it is an argument of the step"

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axis of the drawn rows."""
        return (attrs["axis"],)

    def fault(self, val: Val) -> str:
        """A fault if the counts of the strata do not add up to the axis."""
        sizes, counts = val.attrs["sizes"], val.attrs["counts"]
        fits = len(sizes) == len(counts) and sum(counts) == val.attrs["axis"].size
        if fits:
            return ""
        return "its counts do not make up its axis"

    def stem(self, val: Val) -> str:
        """The name of the drawn axis."""
        return val.attrs["axis"].name


class DrawRange(Op):
    """Numbers of the ranges ``start .. start + size``, less one number perhaps, independent along
    ``axes``; ``most``: the longest range."""

    name, arguments = "draw_range", ("start", "size", "skip...")
    attributes = {"axis": Axis, "axes": tuple[Axis, ...], "most": int}
    changing = True
    constant = RANDOM

    def fault(self, val: Val) -> str:
        """A fault if the drawn axis is not among the value's axes."""
        if val.attrs["axis"] in val.axes:
            return ""
        return "its own axis is not among its axes"

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``in_range`` with the start and the size of each range."""
        axis = val.attrs["axis"]
        spread = (*(a for a in val.axes if a is not axis), axis)
        start, size, *skip = (writer.ref(a, spread, 0) for a in val.args)
        return f"in_range({', '.join([start, size, f'r_{axis.name}', *skip])})"

    def stem(self, val: Val) -> str:
        """The name of the drawn axis."""
        return val.attrs["axis"].name


class FixedNoise(Op):
    """The reference's own sample of standard draws, from its seed; ``serial`` tells two alike apart."""

    name = "fixed_noise"
    attributes = {"standard": str, "axes": tuple[Axis, ...], "event": Event, "seed": int, "serial": int}
    source = True
    constant = RANDOM

    def text(self, writer: Writer, val: Val) -> str:
        """The call of ``fixed_noise`` with the shape and the seed."""
        return (
            f"fixed_noise({val.attrs['standard']!r}, {sizes(val.axes, val.event)}, {val.attrs['seed']}, data)"
        )


class GivenSample(Op):
    """The reference's own sample of a sampler from Python, an array of the data along these axes."""

    name = "given_sample"
    attributes = {"key": str, "axes": tuple[Axis, ...], "event": Event}
    source = True
    constant = RANDOM

    def text(self, writer: Writer, val: Val) -> str:
        """The stored sample."""
        return f"data.{val.attrs['key']}"


class Noise(Op):
    """Draws of a distribution with these parameters: of standard ones that the step is given by
    ``name``, or in a full pass of those in the last argument."""

    name, arguments = "noise", ("parameters...",)
    attributes, defaults = {"family": str, "axis": Axis, "event": Event, "name": str}, {"name": ""}
    changing = True
    constant = RANDOM

    def axes(self, args: tuple[Val, ...], attrs: Mapping[str, Any]) -> Axes:
        """The axis of the draws and the axes of the parameters."""
        return in_order([attrs["axis"], *(axis for a in args for axis in a.axes)])

    def text(self, writer: Writer, val: Val) -> str:
        """The family's formula, applied to standard draws."""
        args = [writer.ref(a, val.axes, len(val.event)) for a in val.args]
        if val.attrs["name"]:
            base = f"r_{val.attrs['name']}"
        else:
            base = args.pop()
        return distributions.all()[val.attrs["family"]].torch.format(*args, z=base)


draw = Draw()
draw_strata = DrawStrata()
draw_range = DrawRange()
fixed_noise = FixedNoise()
given_sample = GivenSample()
noise = Noise()
