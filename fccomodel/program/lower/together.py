"""Rewrites steps with fewer operations, after derivatives are known.

- Rows of one table in several minibatches are read together, so that one product gives all their scores,
  or one call of a net all its outputs.
- Values that an estimator needs at two iterates are computed for both at once, along an axis of length 2.
- A square is computed from its root if the step has the root too.
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

#: Operations that work with one more axis.
ALONG = (entrywise, mean_axes, sum_axes, log_mean_axes, shares)
#: Calls of torch that an operation needs, if it needs more than one.
CALLS: Mapping[Op, int] = {log_mean_axes: 4}
#: Cost of stacking the values at two iterates, in calls of torch.
STACKING = 1.5
#: Cost of taking one of two stacked values, in calls of torch.
UNSTACKING = 0.5


@dataclass(frozen=True, eq=False)
class JointRows:
    """Rows of one table that are read together: ``parts`` one after another along ``axis``."""

    parts: tuple[Val, ...]
    axis: Axis

    def start(self, axis: Axis) -> int:
        """The place at which the rows of one part's axis begin."""
        axes = [part.axes[0] for part in self.parts]
        return sum(before.size for before in axes[: axes.index(axis)])


@dataclass(eq=False)
class Together:
    """The rewriting of steps.

    steps     the steps to rewrite
    graph     the new graph
    rows      rows that are read together, by the id of each part
    twins     for some values, by their ids, the value at the previous iterate
    paired    values that are computed for both iterates, by their ids
    earlier   these values, by the ids of their twins
    atoms     values of scalar atoms, by the atom and its arguments
    made      the new value for each old one, by the old id
    both      the new value at both iterates for each paired one, by the old id
    """

    steps: BlockSteps
    graph: Graph = field(default_factory=Graph)
    rows: dict[int, JointRows] = field(default_factory=dict)
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
        while True:
            earlier = [v for i, v in self.steps.before.items() if i in self.needed]
            missing = [v for v in earlier if v.id not in self.needed]
            if not missing:
                break
            self.needed |= below(missing)
        self.atoms = {(v.attrs["atom"], v.args): v for v in self.needed.values() if v.op is entrywise}
        self.choose_rows()
        self.choose_pairs()

    # ------------------------------------------------------------------------------------- choosing
    def choose_pairs(self) -> None:
        """Choose the values that are computed for both iterates, if this saves calls of torch."""
        for i, earlier in self.steps.before.items():
            if i in self.needed:
                self.twins |= dict(twins(self.needed[i].args[0], earlier))
        paired = {
            i: self.needed[i] for i in self.twins if i in self.needed and self.can_be_paired(self.needed[i])
        }
        for val in list(paired.values()):
            root = self.root(val)
            if root is not None:
                paired[root.id] = root
        saved = sum(CALLS.get(val.op, 1) for i, val in paired.items() if i in self.twins)
        if saved > STACKING * self.count_stacked(paired) + UNSTACKING * self.count_unstacked(paired):
            self.paired = paired
            self.earlier = {self.twins[i].id: val for i, val in paired.items() if i in self.twins}

    def count_stacked(self, paired: Mapping[int, Val]) -> int:
        """The number of values that must be stacked as arguments of paired values."""
        stacked = set()
        for val in paired.values():
            for arg in val.args:
                if arg.id in self.twins and arg.id not in paired:
                    stacked.add(self.stacked_key(arg))
        return len(stacked)

    def count_unstacked(self, paired: Mapping[int, Val]) -> int:
        """The number of paired values that are needed at a single iterate too."""
        earlier = {twin.id for twin in self.twins.values()}
        needed_alone = {pull.adjoint.id for pull in self.steps.pulls}
        for i, val in self.needed.items():
            if i not in paired and i not in earlier and val.op is not score:
                needed_alone |= {arg.id for arg in val.args}
        return sum(i in needed_alone for i in paired)

    def stacked_key(self, val: Val) -> Any:
        """The identity of a stacked value. Outputs of a net for rows read together are one value."""
        if val.op is net:
            rows = self.rows.get(weights_and_rows(val)[1].id)
            if rows is not None:
                return rows.axis
        return val.id

    def root(self, val: Val) -> Val | None:
        """The value whose square this is, if the steps have it."""
        if val.op is entrywise:
            return self.atoms.get((roots().get(val.attrs["atom"]), val.args))
        return None

    def can_be_paired(self, val: Val) -> bool:
        """Whether one operation can compute a value at both iterates."""
        if val.op is score:
            return len(val.args[0].axes) == 1 and val.args[0].id not in self.twins
        return val.op in ALONG and all(len(a.event) == len(val.event) or not a.event for a in val.args)

    def choose_rows(self) -> None:
        """Choose the rows that are read together.

        They are rows of one table, each part along an axis of its own, known from the draws, and
        multiplied by the same weights or put into the same nets.
        """
        users: dict[int, list[Val]] = {}
        for val in self.needed.values():
            for arg in val.args:
                users.setdefault(arg.id, []).append(val)
        groups: dict[Any, list[Val]] = {}
        for _, val in sorted(self.needed.items()):
            is_vector = val.op in (take, fetch) and val.event and not val.static and len(val.axes) == 1
            if not is_vector or not is_sampled(val.args[0]):
                continue
            factors = frozenset(
                (user.op, weights_and_rows(user)[0].id)
                for user in users.get(val.id, ())
                if user.op in (score, net) and len(user.args) == 2
            )
            if factors and len(factors) == len(users[val.id]):
                groups.setdefault((val.attrs["key"], val.event, factors), []).append(val)
        for parts in groups.values():
            on_own_axes = len(parts) > 1 and len({part.axes for part in parts}) == len(parts)
            if on_own_axes and self.have_common_gradient(parts):
                size = sum(part.axes[0].size for part in parts)
                axis = self.graph.axis(self.steps.state.unique("rows"), size, "sample")
                self.rows |= {part.id: JointRows(tuple(parts), axis) for part in parts}

    def have_common_gradient(self, parts: list[Val]) -> bool:
        """Whether the gradient of each weight vector or net comes from all parts, or from none."""
        sources: dict[Any, set[int]] = {}
        for pull in self.steps.pulls:
            if pull.source.op in (score, net):
                weights, rows = weights_and_rows(pull.source)
                sources.setdefault((pull.source.op, weights.id), set()).add(rows.id)
        ids = {part.id for part in parts}
        return all(ids <= rows or not ids & rows for rows in sources.values())

    # --------------------------------------------------------------------------------------- making
    def run(self) -> BlockSteps:
        """The steps of the new graph."""
        for val in self.ordered():
            self.make(val)
        old = self.steps.state
        state = replace(
            old,
            graph=self.graph,
            draws=[self.made[v.id] for v in old.draws],
            spans={self.with_comment(i).id: node for i, node in old.spans.items() if i in self.made},
            sampled={self.made[i].id: count for i, count in old.sampled.items() if i in self.made},
        )
        before = {self.made[i].id: self.made[v.id] for i, v in self.steps.before.items() if i in self.made}
        return replace(self.steps, state=state, pulls=[*self.pulls()], before=before)

    def with_comment(self, i: int) -> Val:
        """The new value that the comment of an old one belongs to."""
        if i in self.paired:
            return self.both.get(i, self.made[i])
        return self.made[i]

    def ordered(self) -> list[Val]:
        """All needed values, each after the values that it is made from."""
        order: dict[int, Val] = {}
        for i in sorted(self.needed):
            stack = [(self.needed[i], False)]
            while stack:
                val, ready = stack.pop()
                if ready:
                    order.setdefault(val.id, val)
                elif val.id not in order:
                    stack.append((val, True))
                    stack.extend((v, False) for v in reversed([*self.needed_first(val)]))
        return list(order.values())

    def needed_first(self, val: Val) -> Iterator[Val]:
        """The old values whose new values must be made before the new value of ``val``."""
        if val.id in self.earlier:
            yield self.earlier[val.id]
            return
        for arg in val.args:
            yield arg
            if val.id in self.paired and arg.id in self.twins and arg.id not in self.paired:
                yield self.twins[arg.id]
        if val.id in self.rows:
            yield from (part.args[0] for part in self.rows[val.id].parts)
        through = val.attrs.get("through")
        if through is not None:
            yield through

    def make(self, val: Val) -> None:
        """Make the new value of an old one."""
        if val.id in self.earlier:
            both = self.both[self.earlier[val.id].id]
            self.made[val.id] = self.graph.make(at, [both], axis=self.iterate, place=1)
        elif val.id in self.paired:
            both = self.built(val, [self.pair(arg) for arg in val.args])
            self.both[val.id] = both
            self.made[val.id] = self.graph.make(at, [both], axis=self.iterate, place=0)
        else:
            self.made[val.id] = self.built(val, [self.made[arg.id] for arg in val.args])

    def pair(self, val: Val) -> Val:
        """A value at both iterates, or the value itself if it does not depend on the iterate."""
        if val.id in self.both or val.id not in self.twins:
            return self.both.get(val.id, self.made[val.id])
        now, before = self.made[val.id], self.made[self.twins[val.id].id]
        if now.op is part:  # stack the wholes, then take the part
            whole = self.graph.make(iterates, [now.args[0], before.args[0]], axis=self.iterate)
            return self.graph.make(part, [whole], **now.attrs)
        return self.graph.make(iterates, [now, before], axis=self.iterate)

    def built(self, val: Val, args: list[Val]) -> Val:
        """The operation of an old value, with new arguments."""
        rows = self.rows.get(val.id)
        if rows is not None:
            return self.cut(self.read(rows), rows, val.axes[0])
        if val.op in (score, net):
            _, factor = weights_and_rows(val)
            rows = self.rows.get(factor.id)
            if rows is not None:
                return self.cut(self.whole(val, rows, args), rows, factor.axes[0])
        root = self.root(val)
        if root is not None:
            new_root = self.graph.make(entrywise, args, **root.attrs)
            return self.graph.make(entrywise, [new_root], atom="square")
        attrs = {k: self.made[v.id] if isinstance(v, Val) else v for k, v in val.attrs.items()}
        value = self.graph.make(val.op, args, **attrs)
        value.formula = val.formula
        return value

    def whole(self, val: Val, rows: JointRows, args: list[Val]) -> Val:
        """The scores, or the outputs of a net, for all rows that are read together."""
        x = self.read(rows)
        if val.op is net:
            return self.graph.make(val.op, [args[0], x], **val.attrs)
        return self.graph.make(val.op, [x, args[1]], **val.attrs)

    def read(self, rows: JointRows) -> Val:
        """All rows that are read together."""
        ids = [self.made[part.args[0].id] for part in rows.parts]
        axes = tuple(part.axes[0] for part in rows.parts)
        all_ids = self.graph.make(joined, ids, parts=axes, onto=rows.axis, event=())
        return self.graph.make(rows.parts[0].op, [all_ids], **rows.parts[0].attrs)

    def cut(self, whole: Val, rows: JointRows, axis: Axis) -> Val:
        """The part of a value that belongs to one of the axes."""
        return self.graph.make(part, [whole], axis=rows.axis, onto=axis, start=rows.start(axis))

    def pulls(self) -> Iterator[Pull]:
        """Contributions to the gradient. Those of rows read together are one contribution."""
        groups: dict[Any, list[Pull]] = {}
        for pull in self.steps.pulls:
            rows = None
            if pull.source.op in (score, net):
                weights, factor = weights_and_rows(pull.source)
                rows = self.rows.get(factor.id)
            if rows is None:
                adjoint = self.made[pull.adjoint.id]
                yield replace(pull, source=self.alone(pull.source), adjoint=adjoint)
            else:
                groups.setdefault((pull.source.op, weights.id, rows.axis), []).append(pull)
        for group in groups.values():
            one = group[0].source
            rows = self.rows[weights_and_rows(one)[1].id]
            by_axis: dict[Axis, Val] = {}
            for pull in group:
                axis = weights_and_rows(pull.source)[1].axes[0]
                adjoint = self.made[pull.adjoint.id]
                if axis in by_axis:
                    by_axis[axis] = self.graph.apply("add", by_axis[axis], adjoint)
                else:
                    by_axis[axis] = adjoint
            axes = tuple(part.axes[0] for part in rows.parts)
            adjoints = [by_axis[axis] for axis in axes]
            adjoint = self.graph.make(joined, adjoints, parts=axes, onto=rows.axis, event=one.event)
            source = self.whole(one, rows, [self.made[arg.id] for arg in one.args])
            yield replace(group[0], source=source, adjoint=adjoint)

    def alone(self, source: Val) -> Val:
        """The source of a contribution to the gradient, at the present iterate alone."""
        args = [self.made[a.id] for a in source.args]
        if source.id in self.paired:
            return self.built(source, args)
        return self.made[source.id]


def together(steps: BlockSteps) -> BlockSteps:
    """The steps with fewer operations and equal results."""
    state = replace(steps.state, names=dict(steps.state.names))
    return Together(replace(steps, state=state)).run()


def weights_and_rows(val: Val) -> tuple[Val, Val]:
    """The weights and the rows of a score, or the parameters and the rows of a net."""
    if val.op is net:
        return val.args[0], val.args[1]
    return val.args[1], val.args[0]


def is_sampled(ids: Val) -> bool:
    """Whether ids are draws, or looked up in arrays at draws."""
    while ids.op is take and not ids.event:
        (ids,) = ids.args
    return ids.op in (draw, draw_strata)


def twins(now: Val, earlier: Val) -> Iterable[tuple[int, Val]]:
    """Pairs of a value's id and the value in its place at the previous iterate.

    Both values are made by graphs of the same shape.
    """
    seen = set()
    stack = [(now, earlier)]
    while stack:
        val, twin = stack.pop()
        if val is twin or val.id in seen or val.op is track:
            continue
        seen.add(val.id)
        yield val.id, twin
        stack.extend(zip(val.args, twin.args, strict=True))


@cache
def roots() -> Mapping[str, str]:
    """The names of atoms whose squares are atoms too, by the name of the square."""
    return {a.squared: a.name for a in atoms.all().values() if a.squared and a.squared != "square"}
