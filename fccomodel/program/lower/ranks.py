"""The steps of a program on several ranks: what each has of them, and where sums go over all.

Every rank makes the same draws and works on its share of some axes: the blocks that it owns, or its
samples of an expectation that all blocks share. A value along such an axis is a rank's own; a sum
over the axis is a *part*, which stays one through whatever is linear; where something else needs
it, it is summed over all ranks. The gradient is made of parts alone, and summed once. No value lies
along two such axes: pairs would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.program import errors
from fccomodel.program.graph import Graph, below
from fccomodel.program.lower.lowered import BlockSteps, Lowered, VectorSteps
from fccomodel.program.lower.records import Share, Shares
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

#: blocks that are so few are estimated by all ranks together, from their shares of the samples
FEW_BLOCKS = 64
#: attributes that name axes which an operation sums over, and those that say where a value lies
SUMS: Mapping[Op, tuple[str, ...]] = {
    mean_axes: ("over",),
    sum_axes: ("over",),
    contract: ("over",),
    scatter_val: ("onto",),
    unpick: ("extra",),
}
LIES = ("axes", "onto")
#: the axis of a draw and of positions is their own
OWN_AXIS = (draw, draw_range, noise, arange)
#: operations that are linear in their first argument, the others being known everywhere
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
    """A size that is known where the program runs, by its ``text``; as a number that of all ranks
    together."""

    text: str

    def __new__(cls, number: int, text: str) -> Length:
        made = super().__new__(cls, number)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return self.text


def over_all_ranks(lowered: Lowered) -> Lowered:
    """The same plan with steps of which every rank has its share. Raises F0616 where there is nothing
    to share."""
    steps = lowered.steps
    if isinstance(steps, VectorSteps):
        roots = [*steps.samples]
    else:
        roots = steps.roots
    found = Placing.of(steps, roots)
    if not found.shares.split:
        refuse(
            errors.nothing_to_share(lowered.plan.algorithm, found.shares.whole), source=lowered.problem.source
        )
    return replace(lowered, steps=found.steps(steps), shares=found.shares)


def _needed(roots: Iterable[Val]) -> list[Val]:
    """The values below, in their order."""
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
    """Why an operation needs all of an axis, or ""."""
    if val.op in (couple, weights) and any(axis in arg.axes for arg in val.args):
        return "weights of its members move together"
    allowed = (*LIES, *SUMS.get(val.op, ()), *(("axis",) if val.op in OWN_AXIS else ()))
    named = [key for key, value in val.attrs.items() if axis in _axes_of(value) and key not in allowed]
    if named:
        return f"{val.op.name} takes all of it"
    return ""


def _together(vals: Iterable[Val]) -> set[tuple[Axis, Axis]]:
    """Pairs of axes that some value lies along, or is summed over together."""
    found = set()
    for val in vals:
        axes = {*val.axes, *(a for value in val.attrs.values() for a in _axes_of(value))}
        found |= {(a, b) for a in axes for b in axes if a is not b}
    return found


@dataclass(eq=False)
class Placing:
    """Steps on their way to those of ranks: ``axes`` are the new ones of those that are split."""

    shares: Shares
    axes: dict[Axis, Axis]
    graph: Graph = field(default_factory=Graph)
    made: dict[int, Val] = field(default_factory=dict)
    parts: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, steps: BlockSteps | VectorSteps, roots: list[Val]) -> Placing:
        """Axes are taken in the order of what they bring, unless they are with one that is split already."""
        vals = _needed(roots)
        index = _indices(vals)
        blocks = {a for positions in index.values() for uses in positions for p in uses for a in p.axes}
        if isinstance(steps, VectorSteps):
            kept = {a for v in roots for a in v.axes}
        else:
            kept = set()
        if isinstance(steps, VectorSteps) and steps.part is not None:
            part = _needed([steps.part])
        else:
            part = []
        kept |= {a for v in part for a in v.axes}
        whole: dict[str, str] = {}
        chosen: list[Axis] = []
        pairs = _together(vals)
        extents = _extents(vals)
        order = sorted(
            {a for v in vals for a in v.axes}, key=lambda a: (*_rank(a, extents[a], a in blocks), a.order)
        )
        for axis in order:
            if axis in kept:
                reason = "it is what phi takes"
            else:
                reason = _reason(vals, axis, index, isinstance(steps, VectorSteps))
            if not reason and any((axis, other) in pairs for other in chosen):
                continue  # the other is split
            if reason:
                whole[axis.name] = reason
            else:
                chosen.append(axis)
        axes = {a: replace(a, size=Length(a.size, _length(a))) for a in chosen}
        whole = {
            n: r
            for n, r in whole.items()
            if not any((a, b) in pairs for a in chosen for b in order if b.name == n)
        }
        split = tuple(Share(axis=axes[a], blocks=a in blocks) for a in chosen)
        return cls(Shares(split=split, whole=whole, owners=_owners(index, set(chosen))), axes)

    def steps(self, steps: BlockSteps | VectorSteps) -> BlockSteps | VectorSteps:
        """The steps with their values placed."""
        for val in steps.state.graph.vals:
            self.made[val.id] = self.placed(val)
        state = self.state(steps.state)
        if isinstance(steps, VectorSteps):
            if steps.part is None:
                part = None
            else:
                part = self.made[steps.part.id]
            return replace(
                steps, state=state, samples=[self.part(self.made[v.id]) for v in steps.samples], part=part
            )
        before = {self.made[i].id: self.known(self.made[v.id]) for i, v in steps.before.items()}
        return replace(steps, state=state, pulls=[*map(self.pulled, steps.pulls)], before=before)

    def state(self, state: State) -> State:
        """With the new graph; what is kept by the ids of values goes with them."""
        return replace(
            state,
            graph=self.graph,
            draws=[self.made[v.id] for v in state.draws],
            spans={self.made[i].id: node for i, node in state.spans.items()},
            sampled={self.made[i].id: count for i, count in state.sampled.items()},
        )

    # --------------------------------------------------------------------------------------- values
    def placed(self, val: Val) -> Val:
        """A value of this rank: whole, its own along split axes, or a part."""
        args, attrs = [self.made[a.id] for a in val.args], {k: self.renamed(v) for k, v in val.attrs.items()}
        if val.op is track:
            attrs |= {"through": None}
        else:
            attrs |= {}
        if val.op is arange and attrs["axis"] in self.axes.values():
            return self.graph.make(own, **attrs)
        parts = [a.id in self.parts for a in args]
        split = any(a in self.axes.values() for arg in args for a in arg.axes)
        if any(parts) and (split or not linear(val, parts)):
            args, parts = [self.known(a) for a in args], [False] * len(args)
        if any(parts) and val.op is entrywise and val.attrs["atom"] in ("add", "sub"):
            args = [self.part(a) for a in args]
        if val.op is mean_axes and self.summing(val):
            new = self.averaged(args, attrs)
        else:
            new = self.graph.make(val.op, args, **attrs)
        if any(parts) or self.summing(val):
            self.parts.add(new.id)
        return new

    def summing(self, val: Val) -> bool:
        """A sum over a split axis."""
        over = {a for key in SUMS.get(val.op, ()) for a in _axes_of(val.attrs[key]) if a not in val.axes}
        if val.op is score_t:
            over |= {a for arg in val.args for a in arg.axes}
        else:
            over |= set()
        return any(a in self.axes for a in over)

    def averaged(self, args: list[Val], attrs: Mapping[str, Any]) -> Val:
        """A mean over what all ranks have together."""
        count = 1
        for axis in attrs["over"]:
            count *= int(axis.size)
        total = self.graph.make(sum_axes, args, over=attrs["over"])
        self.parts.add(total.id)
        return self.graph.apply("div", total, self.graph.const(count))

    def renamed(self, value: Any) -> Any:
        """An attribute with the new axes."""
        if isinstance(value, Axis):
            return self.axes.get(value, value)
        if isinstance(value, tuple):
            return tuple(map(self.renamed, value))
        return value

    def known(self, val: Val) -> Val:
        """A part summed over all ranks."""
        if val.id in self.parts:
            return self.graph.make(over_ranks, [val])
        return val

    def part(self, val: Val) -> Val:
        """What all ranks know, as the part of one."""
        if val.id in self.parts:
            return val
        new = self.graph.make(once, [val])
        self.parts.add(new.id)
        return new

    def pulled(self, pull: Pull) -> Pull:
        """A contribution to a variable's gradient that is a part."""
        source, adjoint = self.made[pull.source.id], self.made[pull.adjoint.id]
        met = [source, *source.op.pulled(source)]
        split = any(a in self.axes.values() for v in met for a in v.axes)
        return replace(pull, source=source, adjoint=self.known(adjoint) if split else self.part(adjoint))


def linear(val: Val, parts: list[bool]) -> bool:
    """An operation of parts, the others being known everywhere, is the sum of that of each."""
    if val.op is entrywise:
        atom = val.attrs["atom"]
        return (
            atom in ("add", "sub", "neg") or sum(parts) == 1 and (atom == "mul" or atom == "div" and parts[0])
        )
    if val.op is score_t:
        return parts == [False, True]
    return val.op in LINEAR and parts[0] and not any(parts[1:])


# ------------------------------------------------------------------------------------------- owners
def _indices(vals: Iterable[Val]) -> dict[str, list[tuple[Val, ...]]]:
    """By the name of an estimate or centre that a step writes, or that smoothing has: the positions
    that it is met at."""
    found: dict[str, list[tuple[Val, ...]]] = {}
    for val in vals:
        if val.op is track and val.attrs["name"]:
            found.setdefault(val.attrs["name"], []).append(val.args[1:])
        elif val.op is envelope_slope and len(val.args) > 1 and val.args[1].op is centre:
            found.setdefault(val.args[1].attrs["name"], []).append(val.args[1].args)
    return found


def _key(position: Val) -> tuple[Op, str | None] | None:
    """How ids follow from places: the draw or all of a set, and the array that it takes them from;
    None: in another way."""
    if position.op is take and position.args:
        inside = position.args[0]
    else:
        inside = position
    if position.op is take:
        key = position.attrs["key"]
    else:
        key = None
    if inside.op in (draw, arange):
        return (inside.op, key)
    return None


def _reason(vals: list[Val], axis: Axis, index: Mapping[str, list[tuple[Val, ...]]], vector: bool) -> str:
    """Why every rank has all of an axis, or ""."""
    for val in vals:
        if reason := _hindrance(val, axis):
            return reason
    for name, uses in index.items():
        met = [[(k, _key(p)) for k, p in enumerate(positions) if axis in p.axes] for positions in uses]
        if any(met) and (
            any(len(one) != 1 for one in met) or len({tuple(one) for one in met}) > 1 or met[0][0][1] is None
        ):
            return f"{name} is kept at places that have no one owner"
    return ""


def _owners(
    index: Mapping[str, list[tuple[Val, ...]]], chosen: set[Axis]
) -> dict[str, tuple[int, str | None]]:
    """Along which dim, and at which ids, estimates and centres are kept by their owners."""
    found: dict[str, tuple[int, str | None]] = {}
    for name, uses in index.items():
        for dim, position in enumerate(uses[0]):
            if chosen & {*position.axes}:
                found[name] = (dim, position.attrs["key"] if position.op is take else None)
    return found


def _extents(vals: Iterable[Val]) -> dict[Axis, int]:
    """How many elements there are along each axis, drawn or not."""
    found = {axis: int(axis.size) for val in vals for axis in val.axes}
    return found | {val.attrs["axis"]: val.attrs["n"] for val in vals if val.op is draw}


def _rank(axis: Axis, extent: int, block: bool) -> tuple[int, int]:
    """The place of an axis among those that ranks may share: many blocks first, then samples, then few
    blocks; of equals the longest first."""
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
