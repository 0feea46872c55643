"""Two arithmetics for means and sums: of numbers, and of numbers that are given by their logarithms."""

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
from fccomodel.program.operations.sums import chunked, log_mean_axes, log_mean_raised, raised, shares, swept


@dataclass(frozen=True)
class Numbers:
    """The arithmetic of a reduction, with elements x and weights c. A value of the graph is a number."""

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
        """The sum over axes. An axis that x does not have multiplies by its size."""
        return self.graph.total(x, axes)

    def swept(self, x: Val, axis: Axis) -> Val | None:
        """The mean over an axis of slices, if x has numbers along this axis alone; else None."""
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
    """The arithmetic of numbers that are given by their logarithms. A value of the graph is log x.

    full   whether the pass is a full one, in which means under several masks share their exponentials
    """

    full: bool = False
    by_segment = log_segment

    def swept(self, x: Val, axis: Axis) -> None:
        """None, since logarithms are not swept."""
        return None

    def times(self, c: Val, x: Val) -> Val:
        """log(c x), -inf if c is false."""
        if c.op is number and truth(c.args[0]):
            return self.graph.make(masked, [x, c])
        return self.graph.apply("add", x, self.graph.apply("log", c))

    def over(self, x: Val, c: Val) -> Val:
        """log(x / c)"""
        return self.graph.apply("sub", x, self.graph.apply("log", c))

    def average(self, x: Val, axes: Iterable[Axis]) -> Val:
        """The logarithm of the mean over axes."""
        wanted = tuple(axes)
        over = tuple(axis for axis in x.axes if axis in wanted)
        if not over:
            return x
        if self.full and x.op is masked and len(over) == 1 and may_share(*x.args):
            return shared_log_mean(self.graph, x.args[0], x.args[1].args[0], *over)
        args = [x]
        if not self.full and len(over) == 1 and finite(x):
            args.append(self.graph.make(shares, [x], over=over))
        return self.graph.make(log_mean_axes, args, over=over)

    def total(self, x: Val, axes: Iterable[Axis]) -> Val:
        """The logarithm of the sum over axes."""
        axes = tuple(axes)
        count = self.graph.const(math.prod(axis.size for axis in axes))
        return self.times(count, self.average(x, axes))


def may_share(whole: Val, mask: Val) -> bool:
    """Whether a mean can share exponentials: numbers of pairs, with a truth value for each of them."""
    pairs = whole.varying and len(whole.axes) > 1 and not whole.event
    if not pairs or mask.op is not number or not mask.axes or not {*mask.axes} <= {*whole.axes}:
        return False
    return truth(mask.args[0]) and not python(mask.args[0])


def finite(x: Val) -> bool:
    """Whether no part of a value can be minus infinity, as a mask or a logarithm of 0 can."""
    for val in below([x]).values():
        if val.op is masked or val.op is entrywise and val.attrs["atom"] in ("log", "log1p"):
            return False
    return True


def shared_log_mean(graph: Graph, whole: Val, mask: Val, axis: Axis) -> Val:
    """log mean exp along an axis under a mask, from exponentials that other means use too.

    Two kinds of conditions need no truth value for each pair: places that are left out, one for each
    line, get no exponential; and rows with equal values are found by sorting.
    """
    conditions = conjuncts(mask)
    skips: dict[Val, Val] = {}
    others = []
    for condition in conditions:
        place = skipped(condition, axis)
        if place is not None:
            skips[condition] = place
        else:
            others.append(condition)
    equality = next((c for c in others if sides_of_comparison(c, "eq", axis) is not None), None)
    rest = [condition for condition in others if condition is not equality]
    masks = [] if equality is None else [*equality.args]
    if rest:
        masks.append(reduce(lambda one, other: graph.apply("and", one, other), rest))
    powers = graph.make(raised, [whole, *skips.values()], over=(axis,))
    return graph.make(log_mean_raised, [powers, *masks], over=(axis,), alike=equality is not None)


def conjuncts(mask: Val) -> list[Val]:
    """The truth values whose conjunction a mask is."""
    if mask.op is entrywise and mask.attrs["atom"] in ("and", "mul"):
        return [part for arg in mask.args for part in conjuncts(arg)]
    return [mask]


def sides_of_comparison(condition: Val, atom: str, axis: Axis) -> tuple[Val, Val] | None:
    """The side of a comparison along an axis, and the other side, which does not depend on this axis.

    None for a condition that is no such comparison.
    """
    if condition.op is not entrywise or condition.attrs["atom"] != atom:
        return None
    if any(arg.event or python(arg) for arg in condition.args):
        return None
    one, other = sorted(condition.args, key=lambda arg: axis not in arg.axes)
    if one.axes == (axis,) and axis not in other.axes:
        return one, other
    return None


def skipped(condition: Val, axis: Axis) -> Val | None:
    """The places along an axis that a condition leaves out, one for each line; None for other conditions."""
    sides = sides_of_comparison(condition, "ne", axis)
    if sides is not None and sides[0].op is arange:
        return sides[1]
    return None


def gathered(graph: Graph, body: Val, axis: Axis, onto: Axis | None = None) -> Val:
    """The values of all slices of an axis together."""
    return graph.make(chunked, [body], axis=axis, onto=onto or graph.whole(axis))


def product(graph: Graph, masks: list[Val]) -> Val | None:
    """The conjunction of several masks; None without one."""
    result = None
    for mask in masks:
        if result is None:
            result = mask
        else:
            result = graph.apply("mul", result, mask)
    return result
