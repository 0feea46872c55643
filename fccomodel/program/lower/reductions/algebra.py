"""Means and sums of numbers, and of numbers that are known by their logarithms: one arithmetic each;
values slice by slice."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from fccomodel.program.graph import Graph, below
from fccomodel.program.lower.records import Segment
from fccomodel.program.operations import Axis, Op, Val
from fccomodel.program.operations.base import python
from fccomodel.program.operations.entrywise import entrywise, masked, number, truth
from fccomodel.program.operations.segments import log_segment, segment
from fccomodel.program.operations.sources import arange
from fccomodel.program.operations.sums import chunked, log_mean_axes, log_mean_raised, raised, swept
from fccomodel.program.operations.sums import shares as of_sum


@dataclass(frozen=True)
class Numbers:
    """What a reduction does with its elements x and plain weights c. A value of the graph is the
    number itself."""

    graph: Graph
    by_segment: ClassVar[Op] = segment

    def times(self, c: Val, x: Val) -> Val:
        """c x"""
        return self.graph.apply("mul", c, x)

    def over(self, x: Val, c: Val) -> Val:
        """x / c"""
        return self.graph.apply("div", x, c)

    def average(self, x: Val, axes: Iterable[Axis]) -> Val:
        """The mean over axes."""
        return self.graph.average(x, axes)

    def total(self, x: Val, axes: Iterable[Axis]) -> Val:
        """The sum over axes; those that x lacks count by their size."""
        return self.graph.total(x, axes)

    def swept(self, x: Val, axis: Axis) -> Val | None:
        """The mean over an axis of slices, where x is numbers along it."""
        if x.axes == (axis,) and not x.event:
            return self.graph.make(swept, [x], axis=axis)
        return None

    def segment(self, x: Val, axis: Axis, segment: Segment, how: str) -> Val:
        """The mean or the sum over the rows of each cell."""
        cells, sizes, parents = segment.cells, segment.sizes, segment.parents
        return self.graph.make(
            self.by_segment, [x], axis=axis, how=how, cells=cells, sizes=sizes, parents=parents
        )


@dataclass(frozen=True)
class Logarithms(Numbers):
    """The same for numbers that are known by their logarithms: a value of the graph is log x. In
    ``full`` passes means under several masks share their exponentials."""

    full: bool = False
    by_segment = log_segment

    def swept(self, x: Val, axis: Axis) -> None:
        """None: logarithms are not swept."""
        return None

    def times(self, c: Val, x: Val) -> Val:
        """log(c x) of x given by its logarithm; -inf where c is false."""
        if c.op is number and truth(c.args[0]):
            return self.graph.make(masked, [x, c])
        return self.graph.apply("add", x, self.graph.apply("log", c))

    def over(self, x: Val, c: Val) -> Val:
        """log(x / c) of x given by its logarithm."""
        return self.graph.apply("sub", x, self.graph.apply("log", c))

    def average(self, x: Val, axes: Iterable[Axis]) -> Val:
        """The logarithm of the mean over axes."""
        have = tuple(a for a in x.axes if a in tuple(axes))
        if not have:
            return x
        if self.full and x.op is masked and len(have) == 1 and shares(*x.args):
            return shared(self.graph, x.args[0], x.args[1].args[0], *have)
        if not self.full and len(have) == 1 and finite(x):
            by = [self.graph.make(of_sum, [x], over=have)]
        else:
            by = []
        return self.graph.make(log_mean_axes, [x, *by], over=have)

    def total(self, x: Val, axes: Iterable[Axis]) -> Val:
        """The logarithm of the sum over axes."""
        axes = tuple(axes)
        return self.times(self.graph.const(math.prod(axis.size for axis in axes)), self.average(x, axes))


def shares(whole: Val, mask: Val) -> bool:
    """Numbers of pairs, and a truth value of each that lies along the same axes."""
    plain = whole.varying and len(whole.axes) > 1 and not whole.event and {*mask.axes} <= {*whole.axes}
    return (
        plain and mask.op is number and bool(mask.axes) and truth(mask.args[0]) and not python(mask.args[0])
    )


def finite(x: Val) -> bool:
    """Nothing in it is minus infinity: no mask, nor the logarithm of what may be 0."""
    return not any(
        v.op is masked or v.op is entrywise and v.attrs["atom"] in ("log", "log1p")
        for v in below([x]).values()
    )


def shared(graph: Graph, whole: Val, mask: Val, axis: Axis) -> Val:
    """log mean exp along an axis under a mask, by exponentials that others have too: rows that are
    left out one for each line have none, and rows of equal values are found without a truth value
    of each pair."""
    parts = conjuncts(mask)
    skips = {part: other for part in parts if (other := skipped(part, axis)) is not None}
    left = [part for part in parts if part not in skips]
    alike = next((part for part in left if told_apart(part, "eq", axis) is not None), None)
    rest = [part for part in left if part is not alike]
    if alike is None:
        masks = []
    else:
        masks = [*alike.args]
    if rest:
        masks.append(reduce(lambda one, other: graph.apply("and", one, other), rest))
    powers = graph.make(raised, [whole, *skips.values()], over=(axis,))
    return graph.make(log_mean_raised, [powers, *masks], over=(axis,), alike=alike is not None)


def conjuncts(mask: Val) -> list[Val]:
    """The truth values that all hold where one does."""
    together = mask.op is entrywise and mask.attrs["atom"] in ("and", "mul")
    if together:
        return [part for arg in mask.args for part in conjuncts(arg)]
    return [mask]


def told_apart(part: Val, atom: str, axis: Axis) -> tuple[Val, Val] | None:
    """What a comparison has along an axis, and what it is compared with, which has not."""
    if (
        part.op is not entrywise
        or part.attrs["atom"] != atom
        or any(arg.event or python(arg) for arg in part.args)
    ):
        return None
    one, other = sorted(part.args, key=lambda arg: axis not in arg.axes)
    if one.axes == (axis,) and axis not in other.axes:
        return (one, other)
    return None


def skipped(part: Val, axis: Axis) -> Val | None:
    """The places along an axis that a comparison leaves out, one for each line."""
    found = told_apart(part, "ne", axis)
    if found is not None and found[0].op is arange:
        return found[1]
    return None


def gathered(graph: Graph, body: Val, axis: Axis, onto: Axis | None = None) -> Val:
    """The values of all slices of an axis together."""
    return graph.make(chunked, [body], axis=axis, onto=onto or graph.whole(axis))


def product(graph: Graph, masks: list[Val]) -> Val | None:
    """What several masks let through; None without one."""
    result = None
    for mask in masks:
        if result is None:
            result = mask
        else:
            result = graph.apply("mul", result, mask)
    return result
