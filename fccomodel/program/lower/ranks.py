"""The steps of a program on several ranks: the share of each rank, and sums over all ranks.

Every rank makes equal draws and works on its share of some axes: the blocks that it owns, or its samples
of an expectation that all blocks share. A value along such an axis is a rank's own. A sum over the axis
is a *part*. Linear operations on a part give a part; before any other operation, a part is summed over
all ranks. The gradient consists of parts and is summed once. No value lies along two such axes, because
pairs of elements of different ranks would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.program import errors
from fccomodel.program.graph import Graph, below
from fccomodel.program.lower.lowered import BlockSteps, Lowered, VectorSteps
from fccomodel.program.lower.records import RankShares, Share
from fccomodel.program.lower.state import State
from fccomodel.program.operations import Axis, Op, Pull, Val
from fccomodel.program.operations.base import Axes
from fccomodel.program.operations.draws import draw, draw_range, noise
from fccomodel.program.operations.entrywise import entrywise, fill, spread
from fccomodel.program.operations.estimates import centre, couple, envelope_slope, track, weights
from fccomodel.program.operations.indexing import (
    beyond,
    entry,
    entry_t,
    pick,
    scatter_val,
    take_val,
    unpick,
    within,
)
from fccomodel.program.operations.ranks import once, over_ranks, own
from fccomodel.program.operations.scores import score_t, table_score_t
from fccomodel.program.operations.segments import segment, unsegment
from fccomodel.program.operations.sources import arange, take
from fccomodel.program.operations.sums import contract, mean_axes, sum_axes, sum_event

#: Up to this many blocks are estimated by all ranks together, each with its share of the samples.
FEW_BLOCKS = 64
#: Attributes of operations that name the axes of a sum.
SUMS: Mapping[Op, tuple[str, ...]] = {
    mean_axes: ("over",),
    sum_axes: ("over",),
    contract: ("over",),
    scatter_val: ("onto",),
    unpick: ("extra",),
}
#: Attributes that name the axes of a value.
VALUE_AXES = ("axes", "onto")
#: Operations that make an axis of their own, named by the attribute ``axis``.
OWN_AXIS = (draw, draw_range, noise, arange)
#: Operations that are linear in their first argument, if all ranks know the other arguments.
LINEAR = (
    mean_axes,
    sum_axes,
    sum_event,
    spread,
    fill,
    scatter_val,
    table_score_t,
    entry,
    entry_t,
    pick,
    unpick,
    within,
    beyond,
    take_val,
    segment,
    unsegment,
    contract,
)


class Length(int):
    """A size that is printed as ``text``, because each rank has its own; its number is that of all ranks."""

    text: str

    def __new__(cls, number: int, text: str) -> Length:
        number_with_text = super().__new__(cls, number)
        number_with_text.text = text
        return number_with_text

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return self.text


def over_all_ranks(lowered: Lowered) -> Lowered:
    """The plan with steps that are shared by several ranks. Raises F0616 if no axis can be shared."""
    steps = lowered.steps
    if isinstance(steps, VectorSteps):
        roots = [*steps.samples]
    else:
        roots = steps.roots
    placing = Placing.of(steps, roots)
    if not placing.shares.split:
        error = errors.nothing_to_share(lowered.plan.algorithm, placing.shares.whole)
        refuse(error, source=lowered.problem.source)
    return replace(lowered, steps=placing.steps(steps), shares=placing.shares)


def _needed(roots: Iterable[Val]) -> list[Val]:
    """The values that some values are made from, and these values, in the order of the graph."""
    return [val for _, val in sorted(below(roots).items())]


# --------------------------------------------------------------------------------------- which axes
def _axes_of(value: Any) -> Axes:
    """The axes in an attribute."""
    if isinstance(value, Axis):
        return (value,)
    if isinstance(value, tuple):
        return tuple(a for a in value if isinstance(a, Axis))
    return ()


def _hindrance(val: Val, axis: Axis) -> str:
    """The reason why an operation needs all elements of an axis; empty if it does not."""
    if val.op in (couple, weights) and any(axis in arg.axes for arg in val.args):
        return "weights of its members move together"
    allowed = [*VALUE_AXES, *SUMS.get(val.op, ())]
    if val.op in OWN_AXIS:
        allowed.append("axis")
    for key, value in val.attrs.items():
        if key not in allowed and axis in _axes_of(value):
            return f"{val.op.name} takes all of it"
    return ""


def _axis_pairs(vals: Iterable[Val]) -> set[tuple[Axis, Axis]]:
    """Pairs of axes that a value lies along, or that an operation sums over together."""
    pairs = set()
    for val in vals:
        axes = {*val.axes}
        for value in val.attrs.values():
            axes.update(_axes_of(value))
        pairs |= {(a, b) for a in axes for b in axes if a is not b}
    return pairs


@dataclass(eq=False)
class Placing:
    """The rewriting of steps for ranks.

    shares   the distribution of the step
    axes     the new axis for each axis that is split
    graph    the new graph
    made     the new value for each old one, by the old id
    parts    the ids of new values that are parts
    """

    shares: RankShares
    axes: dict[Axis, Axis]
    graph: Graph = field(default_factory=Graph)
    made: dict[int, Val] = field(default_factory=dict)
    parts: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, steps: BlockSteps | VectorSteps, roots: list[Val]) -> Placing:
        """Choose the axes to split: those that bring most first, without two axes of one value."""
        vals = _needed(roots)
        index = _indices(vals)
        blocks: set[Axis] = set()
        for uses in index.values():
            for positions in uses:
                for position in positions:
                    blocks.update(position.axes)
        arguments_of_phi: set[Axis] = set()
        if isinstance(steps, VectorSteps):
            sampled_phi = [] if steps.part is None else _needed([steps.part])
            for val in (*roots, *sampled_phi):
                arguments_of_phi.update(val.axes)
        whole: dict[str, str] = {}
        chosen: list[Axis] = []
        pairs = _axis_pairs(vals)
        extents = _extents(vals)
        all_axes = {axis for val in vals for axis in val.axes}
        order = sorted(all_axes, key=lambda axis: (*_rank(axis, extents[axis], axis in blocks), axis.order))
        for axis in order:
            if axis in arguments_of_phi:
                reason = "it is what phi takes"
            else:
                reason = _reason(vals, axis, index)
            if reason:
                whole[axis.name] = reason
            elif not any((axis, other) in pairs for other in chosen):
                chosen.append(axis)
        beside_split = {b.name for a in chosen for b in order if (a, b) in pairs}
        whole = {name: reason for name, reason in whole.items() if name not in beside_split}
        axes = {axis: replace(axis, size=Length(axis.size, _length(axis))) for axis in chosen}
        split = tuple(Share(axis=axes[axis], blocks=axis in blocks) for axis in chosen)
        return cls(RankShares(split=split, whole=whole, owners=_owners(index, set(chosen))), axes)

    def steps(self, steps: BlockSteps | VectorSteps) -> BlockSteps | VectorSteps:
        """The steps of a rank."""
        for val in steps.state.graph.vals:
            self.made[val.id] = self.placed(val)
        state = self.state(steps.state)
        if isinstance(steps, VectorSteps):
            part = None if steps.part is None else self.made[steps.part.id]
            samples = [self.part(self.made[val.id]) for val in steps.samples]
            return replace(steps, state=state, samples=samples, part=part)
        before = {self.made[i].id: self.known(self.made[v.id]) for i, v in steps.before.items()}
        return replace(steps, state=state, pulls=[*map(self.pulled, steps.pulls)], before=before)

    def state(self, state: State) -> State:
        """The state with the new graph, and with the ids of the new values."""
        return replace(
            state,
            graph=self.graph,
            draws=[self.made[v.id] for v in state.draws],
            spans={self.made[i].id: node for i, node in state.spans.items()},
            sampled={self.made[i].id: count for i, count in state.sampled.items()},
        )

    # --------------------------------------------------------------------------------------- values
    def placed(self, val: Val) -> Val:
        """The value on a rank: whole, its own along a split axis, or a part."""
        args = [self.made[arg.id] for arg in val.args]
        attrs = {key: self.renamed(value) for key, value in val.attrs.items()}
        if val.op is track:
            attrs["through"] = None
        if val.op is arange and attrs["axis"] in self.axes.values():
            return self.graph.make(own, **attrs)
        parts = [arg.id in self.parts for arg in args]
        split = any(axis in self.axes.values() for arg in args for axis in arg.axes)
        if any(parts) and (split or not linear(val, parts)):
            args = [self.known(arg) for arg in args]
            parts = [False] * len(args)
        if any(parts) and val.op is entrywise and val.attrs["atom"] in ("add", "sub"):
            args = [self.part(arg) for arg in args]
        if val.op is mean_axes and self.summing(val):
            new = self.averaged(args, attrs)
        else:
            new = self.graph.make(val.op, args, **attrs)
        if any(parts) or self.summing(val):
            self.parts.add(new.id)
        return new

    def summing(self, val: Val) -> bool:
        """Whether an operation sums over a split axis."""
        for key in SUMS.get(val.op, ()):
            if any(axis in self.axes and axis not in val.axes for axis in _axes_of(val.attrs[key])):
                return True
        if val.op is score_t:
            return any(axis in self.axes for arg in val.args for axis in arg.axes)
        return False

    def averaged(self, args: list[Val], attrs: Mapping[str, Any]) -> Val:
        """The part of a rank in a mean over the elements of all ranks."""
        count = 1
        for axis in attrs["over"]:
            count *= int(axis.size)
        total = self.graph.make(sum_axes, args, over=attrs["over"])
        self.parts.add(total.id)
        return self.graph.apply("div", total, self.graph.const(count))

    def renamed(self, value: Any) -> Any:
        """An attribute with new axes in place of split ones."""
        if isinstance(value, Axis):
            return self.axes.get(value, value)
        if isinstance(value, tuple):
            return tuple(map(self.renamed, value))
        return value

    def known(self, val: Val) -> Val:
        """The value, summed over all ranks if it is a part."""
        if val.id in self.parts:
            return self.graph.make(over_ranks, [val])
        return val

    def part(self, val: Val) -> Val:
        """The value as a part. A value that all ranks know becomes the part of a single rank."""
        if val.id in self.parts:
            return val
        new = self.graph.make(once, [val])
        self.parts.add(new.id)
        return new

    def pulled(self, pull: Pull) -> Pull:
        """A contribution to a variable's gradient as a part."""
        source, adjoint = self.made[pull.source.id], self.made[pull.adjoint.id]
        factors = [source, *source.op.pulled(source)]
        split = any(axis in self.axes.values() for factor in factors for axis in factor.axes)
        adjoint = self.known(adjoint) if split else self.part(adjoint)
        return replace(pull, source=source, adjoint=adjoint)


def linear(val: Val, parts: list[bool]) -> bool:
    """Whether an operation is linear in those of its arguments that are parts."""
    if val.op is entrywise:
        atom = val.attrs["atom"]
        if atom in ("add", "sub", "neg"):
            return True
        return sum(parts) == 1 and (atom == "mul" or atom == "div" and parts[0])
    if val.op is score_t:
        return parts == [False, True]
    return val.op in LINEAR and parts[0] and not any(parts[1:])


# ------------------------------------------------------------------------------------------- owners
def _indices(vals: Iterable[Val]) -> dict[str, list[tuple[Val, ...]]]:
    """The positions at which a step reads or writes each estimate and each centre, by name.

    There are as many tuples of positions as uses; a tuple has a position for each dimension.
    """
    index: dict[str, list[tuple[Val, ...]]] = {}
    for val in vals:
        if val.op is track and val.attrs["name"]:
            index.setdefault(val.attrs["name"], []).append(val.args[1:])
        elif val.op is envelope_slope and len(val.args) > 1 and val.args[1].op is centre:
            index.setdefault(val.args[1].attrs["name"], []).append(val.args[1].args)
    return index


def _source(position: Val) -> tuple[Op, str | None] | None:
    """The source of ids: a draw or all elements, and the key of an array in which they are looked up.

    None for ids from another source.
    """
    key = None
    if position.op is take:
        key = position.attrs["key"]
        if position.args:
            position = position.args[0]
    if position.op in (draw, arange):
        return position.op, key
    return None


def _reason(vals: list[Val], axis: Axis, index: Mapping[str, list[tuple[Val, ...]]]) -> str:
    """The reason why every rank needs all of an axis; empty if it can be split."""
    for val in vals:
        hindrance = _hindrance(val, axis)
        if hindrance:
            return hindrance
    for name, uses in index.items():
        dims = []  # for each use, the dimensions along the axis, with the sources of their ids
        for positions in uses:
            dims.append(
                tuple((k, _source(position)) for k, position in enumerate(positions) if axis in position.axes)
            )
        if not any(dims):
            continue
        one_dim = all(len(dim) == 1 for dim in dims)
        if not one_dim or len(set(dims)) > 1 or dims[0][0][1] is None:
            return f"{name} is kept at places that have no one owner"
    return ""


def _owners(
    index: Mapping[str, list[tuple[Val, ...]]], chosen: set[Axis]
) -> dict[str, tuple[int, str | None]]:
    """For each estimate and centre with owners: the dimension of its blocks, and the key of their ids.

    The key is None if the blocks are all ids in order.
    """
    owners: dict[str, tuple[int, str | None]] = {}
    for name, uses in index.items():
        for dim, position in enumerate(uses[0]):
            if chosen & {*position.axes}:
                owners[name] = (dim, position.attrs["key"] if position.op is take else None)
    return owners


def _extents(vals: Iterable[Val]) -> dict[Axis, int]:
    """The number of elements along each axis, including those that are not drawn."""
    vals = list(vals)
    extents = {axis: int(axis.size) for val in vals for axis in val.axes}
    for val in vals:
        if val.op is draw:
            extents[val.attrs["axis"]] = val.attrs["n"]
    return extents


def _rank(axis: Axis, extent: int, block: bool) -> tuple[int, int]:
    """Sort key of axes that may be split: many blocks first, then samples, then few blocks.

    Among equals the longest axis comes first.
    """
    if not block:
        place = 1
    elif extent > FEW_BLOCKS:
        place = 0
    else:
        place = 2
    return place, -int(axis.size)


def _length(axis: Axis) -> str:
    """The text of a rank's number of elements."""
    if axis.kind == "all":
        return f"mine({axis.size})"
    return f"len(own_{axis.name})"
