"""The same steps with fewer operations, once derivatives are known.

Rows of one table that several minibatches take are taken at once, so that one product gives their
scores, or one call of a net its outputs. What an estimator asks for at two iterates is computed for
both by the same operations, along an axis of these two. A square whose root is there is taken of
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from fccomodel.library import atoms
from fccomodel.program.graph import Graph, below
from fccomodel.program.lower.lowered import BlockSteps
from fccomodel.program.operations import Axis, Op, Pull, Val
from fccomodel.program.operations.draws import draw, draw_strata
from fccomodel.program.operations.entrywise import entrywise
from fccomodel.program.operations.estimates import track
from fccomodel.program.operations.scores import net, score
from fccomodel.program.operations.sources import fetch, take
from fccomodel.program.operations.sums import log_mean_axes, mean_axes, shares, sum_axes
from fccomodel.program.operations.together import at, iterates, joined, part

#: operations whose text takes one more axis as it takes others
ALONG = (entrywise, mean_axes, sum_axes, log_mean_axes, shares)
#: calls of torch in the text of an operation, where it has more than one; to stack two values costs
#: one and a half, to take one of the two half of one
CALLS: Mapping[Op, int] = {log_mean_axes: 4}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one table by their ids, ``parts`` after one another along ``axis``."""

    parts: tuple[Val, ...]
    axis: Axis

    def start(self, axis: Axis) -> int:
        """Where those of one axis begin."""
        before = [p.axes[0] for p in self.parts]
        return sum(a.size for a in before[: before.index(axis)])


@dataclass(eq=False)
class Together:
    """Steps on their way.

    rows    those that are taken together, by the id of each part
    twins   values at the iterate
            before, by the ids of others
    paired  values that are computed for both, by their ids
    earlier the same by the ids of
            their twins
    atoms   those of scalar atoms, by the atom and its arguments     made, both   what comes of
            values, at one iterate, at both
    """

    steps: BlockSteps
    graph: Graph = field(default_factory=Graph)
    rows: dict[int, Rows] = field(default_factory=dict)
    twins: dict[int, Val] = field(default_factory=dict)
    paired: dict[int, Val] = field(default_factory=dict)
    earlier: dict[int, Val] = field(default_factory=dict)
    atoms: dict[Any, Val] = field(default_factory=dict)
    made: dict[int, Val] = field(default_factory=dict)
    both: dict[int, Val] = field(default_factory=dict)

    def __post_init__(self) -> None:
        old = self.steps.state.graph
        self.graph.axes, self.graph.wholes = old.axes, dict(old.wholes)
        self.iterate = Axis(name="both", order=0, size=2, kind="all")
        self.needed = below([*self.steps.roots, *self.steps.state.draws])
        while extra := [
            v for i, v in self.steps.before.items() if i in self.needed and v.id not in self.needed
        ]:
            self.needed |= below(extra)
        self.atoms = {(v.attrs["atom"], v.args): v for v in self.needed.values() if v.op is entrywise}
        self.groups()
        self.pairs()

    # ------------------------------------------------------------------------------------- choosing
    def pairs(self) -> None:
        """What is computed for both iterates: as much of the values at the one before as operations
        can, where that saves any."""
        for i, earlier in self.steps.before.items():
            if i in self.needed:
                self.twins |= dict(twins(self.needed[i].args[0], earlier))
        paired = {i: self.needed[i] for i in self.twins if i in self.needed and self.along(self.needed[i])}
        squares = [root for v in paired.values() if (root := self.root(v)) is not None]
        paired |= {v.id: v for v in squares}
        leaves = {
            self.leaf(a) for v in paired.values() for a in v.args if a.id in self.twins and a.id not in paired
        }
        users = [
            v
            for i, v in self.needed.items()
            if i not in paired and i not in {t.id for t in self.twins.values()}
        ]
        asked = {a.id for v in users if v.op is not score for a in v.args} | {
            p.adjoint.id for p in self.steps.pulls
        }
        cuts = sum(i in asked for i in paired)
        saved = sum(CALLS.get(v.op, 1) for i, v in paired.items() if i in self.twins)
        if saved > 1.5 * len(leaves) + 0.5 * cuts:
            self.paired = paired
            self.earlier = {self.twins[i].id: v for i, v in paired.items() if i in self.twins}

    def leaf(self, val: Val) -> Any:
        """What is stacked for a value: outputs of a net for rows that are taken together are one."""
        if val.op is net:
            rows = self.rows.get(met_by(val)[1].id)
        else:
            rows = None
        if rows is None:
            return val.id
        return rows.axis

    def root(self, val: Val) -> Val | None:
        """A value that is there, of which another is the square."""
        if val.op is entrywise:
            return self.atoms.get((roots().get(val.attrs["atom"]), val.args))
        return None

    def along(self, val: Val) -> bool:
        """One operation gives it at both iterates."""
        if val.op is score:
            return len(val.args[0].axes) == 1 and val.args[0].id not in self.twins
        return val.op in ALONG and all(len(a.event) == len(val.event) or not a.event for a in val.args)

    def groups(self) -> None:
        """Which rows are taken together: of one table, each along an axis of its own, known from the
        draws, and met by the same weights or nets."""
        users: dict[int, list[Val]] = {}
        for v in self.needed.values():
            for arg in v.args:
                users.setdefault(arg.id, []).append(v)
        found: dict[Any, list[Val]] = {}
        for v in sorted(self.needed.values(), key=lambda v: v.id):
            if v.op in (take, fetch) and v.event and not v.static and len(v.axes) == 1 and sampled(v.args[0]):
                met = frozenset(
                    (u.op, u.args[0 if u.op is net else 1].id)
                    for u in users.get(v.id, ())
                    if u.op in (score, net)
                )
                if met and len(met) == len(users[v.id]):
                    found.setdefault((v.attrs["key"], v.event, met), []).append(v)
        for parts in found.values():
            if len(parts) > 1 and len({v.axes for v in parts}) == len(parts) and self.pulled(parts):
                axis = self.graph.axis(
                    self.steps.state.unique("rows"), sum(v.axes[0].size for v in parts), "sample"
                )
                self.rows |= {v.id: Rows(tuple(parts), axis) for v in parts}

    def pulled(self, parts: list[Val]) -> bool:
        """The gradient goes through all of them, or none, wherever they are met."""
        met: dict[Any, set[int]] = {}
        for pull in self.steps.pulls:
            if pull.source.op in (score, net):
                weights, rows = met_by(pull.source)
                met.setdefault((pull.source.op, weights.id), set()).add(rows.id)
        ids = {v.id for v in parts}
        return all(ids <= found or not ids & found for found in met.values())

    # --------------------------------------------------------------------------------------- making
    def run(self) -> BlockSteps:
        """The steps of the new graph."""
        for val in self.ordered():
            self.make(val)
        state = replace(
            self.steps.state,
            graph=self.graph,
            draws=[self.made[v.id] for v in self.steps.state.draws],
            spans={self.held(i).id: node for i, node in self.steps.state.spans.items() if i in self.made},
            sampled={
                self.made[i].id: count for i, count in self.steps.state.sampled.items() if i in self.made
            },
        )
        before = {self.made[i].id: self.made[v.id] for i, v in self.steps.before.items() if i in self.made}
        return replace(self.steps, state=state, pulls=[*self.pulls()], before=before)

    def held(self, i: int) -> Val:
        """The value that a comment stands beside."""
        if i in self.paired:
            return self.both.get(i, self.made[i])
        return self.made[i]

    def ordered(self) -> list[Val]:
        """All that is needed, each after what it is made of."""
        found: dict[int, Val] = {}
        for i in sorted(self.needed):
            stack = [(self.needed[i], False)]
            while stack:
                val, ready = stack.pop()
                if ready:
                    found.setdefault(val.id, val)
                elif val.id not in found:
                    stack.append((val, True))
                    stack.extend((v, False) for v in reversed([*self.after(val)]))
        return list(found.values())

    def after(self, val: Val) -> Iterator[Val]:
        """What a value is made after."""
        if val.id in self.earlier:
            yield self.earlier[val.id]
            return
        for arg in val.args:
            yield arg
            if val.id in self.paired and arg.id in self.twins and arg.id not in self.paired:
                yield self.twins[arg.id]
        if val.id in self.rows:
            yield from (p.args[0] for p in self.rows[val.id].parts)
        if (through := val.attrs.get("through")) is not None:
            yield through

    def make(self, val: Val) -> None:
        """A value of the new graph for one of the old."""
        if val.id in self.earlier:
            self.made[val.id] = self.graph.make(
                at, [self.both[self.earlier[val.id].id]], axis=self.iterate, place=1
            )
        elif val.id in self.paired:
            self.both[val.id] = self.built(val, [self.pair(a) for a in val.args])
            self.made[val.id] = self.graph.make(at, [self.both[val.id]], axis=self.iterate, place=0)
        else:
            self.made[val.id] = self.built(val, [self.made[a.id] for a in val.args])

    def pair(self, val: Val) -> Val:
        """A value at both iterates; as it is, where it does not depend on them."""
        if val.id in self.both or val.id not in self.twins:
            return self.both.get(val.id, self.made[val.id])
        now, before = self.made[val.id], self.made[self.twins[val.id].id]
        if now.op is part:  # the whole of both, then the part
            whole = self.graph.make(iterates, [now.args[0], before.args[0]], axis=self.iterate)
            return self.graph.make(part, [whole], **now.attrs)
        return self.graph.make(iterates, [now, before], axis=self.iterate)

    def built(self, val: Val, args: list[Val]) -> Val:
        """The operation of a value at new arguments."""
        attrs = {k: self.made[v.id] if isinstance(v, Val) else v for k, v in val.attrs.items()}
        if (rows := self.rows.get(val.id)) is not None:
            return self.cut(self.taken(rows), rows, val.axes[0])
        if val.op in (score, net) and (rows := self.rows.get(met_by(val)[1].id)) is not None:
            return self.cut(self.whole(val, rows, args), rows, met_by(val)[1].axes[0])
        if (root := self.root(val)) is not None:
            return self.graph.make(entrywise, [self.graph.make(entrywise, args, **root.attrs)], atom="square")
        built = self.graph.make(val.op, args, **attrs)
        built.formula = val.formula
        return built

    def whole(self, val: Val, rows: Rows, args: list[Val]) -> Val:
        """The scores of all rows that are taken together, or the outputs of a net."""
        x = self.taken(rows)
        return self.graph.make(val.op, [args[0], x] if val.op is net else [x, args[1]], **val.attrs)

    def taken(self, rows: Rows) -> Val:
        """All of them."""
        ids = [self.made[p.args[0].id] for p in rows.parts]
        axes = tuple(p.axes[0] for p in rows.parts)
        one = rows.parts[0]
        return self.graph.make(
            one.op, [self.graph.make(joined, ids, parts=axes, onto=rows.axis, event=())], **one.attrs
        )

    def cut(self, whole: Val, rows: Rows, axis: Axis) -> Val:
        """Those of one of the axes."""
        return self.graph.make(part, [whole], axis=rows.axis, onto=axis, start=rows.start(axis))

    def pulls(self) -> Iterator[Pull]:
        """Contributions to the gradient, those of rows that are taken together as one."""
        groups: dict[Any, list[Pull]] = {}
        for pull in self.steps.pulls:
            if pull.source.op in (score, net):
                rows = self.rows.get(met_by(pull.source)[1].id)
            else:
                rows = None
            if rows is None:
                source, adjoint = pull.source, self.made[pull.adjoint.id]
                yield replace(pull, source=self.alone(source), adjoint=adjoint)
            else:
                groups.setdefault((pull.source.op, met_by(pull.source)[0].id, rows.axis), []).append(pull)
        for group in groups.values():
            one = group[0].source
            rows = self.rows[met_by(one)[1].id]
            by_axis: dict[Axis, Val] = {}
            for pull in group:
                axis, adjoint = met_by(pull.source)[1].axes[0], self.made[pull.adjoint.id]
                if axis in by_axis:
                    by_axis[axis] = self.graph.apply("add", by_axis[axis], adjoint)
                else:
                    by_axis[axis] = adjoint
            axes = tuple(p.axes[0] for p in rows.parts)
            adjoint = self.graph.make(
                joined, [by_axis[a] for a in axes], parts=axes, onto=rows.axis, event=one.event
            )
            source = self.whole(one, rows, [self.made[a.id] for a in one.args])
            yield replace(group[0], source=source, adjoint=adjoint)

    def alone(self, source: Val) -> Val:
        """What met a variable, at w alone: its text is that of its arguments."""
        args = [self.made[a.id] for a in source.args]
        if source.id in self.paired:
            return self.built(source, args)
        return self.made[source.id]


def together(steps: BlockSteps) -> BlockSteps:
    """Steps with fewer operations that say the same."""
    state = replace(steps.state, names=dict(steps.state.names))
    return Together(replace(steps, state=state)).run()


def met_by(val: Val) -> tuple[Val, Val]:
    """The weights of a score, or the parameters of a net, and its rows."""
    if val.op is net:
        return (val.args[0], val.args[1])
    return (val.args[1], val.args[0])


def sampled(ids: Val) -> bool:
    """They are draws, or follow from them by looking them up one after another."""
    while ids.op is take and not ids.event:
        (ids,) = ids.args
    return ids.op in (draw, draw_strata)


def twins(now: Val, earlier: Val) -> Iterable[tuple[int, Val]]:
    """Pairs of a value and what stands in its place at the iterate before: graphs of the same shape."""
    seen, stack = set(), [(now, earlier)]
    while stack:
        v, twin = stack.pop()
        if v is twin or v.id in seen or v.op is track:
            continue
        seen.add(v.id)
        yield v.id, twin
        stack.extend(zip(v.args, twin.args, strict=True))


@cache
def roots() -> Mapping[str, str]:
    """By the name of an atom, the one whose square it is."""
    return {a.squared: a.name for a in atoms.all().values() if a.squared and a.squared != "square"}
