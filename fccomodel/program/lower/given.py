"""The steps of a plan for batches that somebody else draws: the criterion of a training loop.

The rows of a batch are handed to a step, with weights that make its weighted mean an estimate of the
mean over the table. Every binder over a table takes the whole batch; its set, its keys and its
conditions are weights. So one program serves every batch of at most ``capacity`` rows: rows that
fill it up have weight 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import realising
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.plan import Plan
from fccomodel.program import errors
from fccomodel.program.backward import backward, previous
from fccomodel.program.graph import below
from fccomodel.program.lower.binders.batches import BatchSlots
from fccomodel.program.lower.leaves.scores import Scores
from fccomodel.program.lower.lowered import BlockSteps, Layout, LoweredSteps
from fccomodel.program.lower.lowering import Lowering
from fccomodel.program.lower.records import ReducedBinder, Slot, Way
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Axis, Event, Val
from fccomodel.program.operations.entrywise import number
from fccomodel.program.operations.estimates import track
from fccomodel.program.operations.given import given, given_scores
from fccomodel.program.operations.sources import variable

#: a sum of weights that stands for 0 where something is divided by it
NO_WEIGHT = 1e-30
#: groups of a key, at most, that batches are weighted by
MOST_GROUPS = 256


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreInput:
    """Outputs of ``net`` on a ``column`` of a ``table`` that a step asks for, under ``name``; of a net of
    several inputs ``column`` has the names of all. ``call`` is the first place where they are used."""

    name: str
    net: str
    table: str
    column: str
    event: Event
    call: ir.NetCall

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of each input of the net."""
        return tuple(self.column.split(", "))


@dataclass(eq=False, kw_only=True)
class GivenState(State):
    """A state whose rows are handed to the step.

    capacity    rows of each table in a step
    weights     by axis the weights of a batch's rows for its binder: of mean 1, or all 0 where the
                batch has no row of the set
    partitions  by table: numbers of the sets and groups that each row belongs to
    related     by table: those of the groups inside which rows are paired (``j.q == i.q``)
    scores      outputs of nets that the step asks for, by net, table and column
    axes        the axes made so far, by the binder's name, size and kind
    known       those of another state with the same graph: they are taken again in the same order, so
                that values which both states have are computed once
    """

    capacity: int
    weights: dict[Axis, Val] = field(default_factory=dict)
    partitions: dict[str, list[np.ndarray]] = field(default_factory=dict)
    related: dict[str, list[np.ndarray]] = field(default_factory=dict)
    scores: dict[tuple[str, str, str], ScoreInput] = field(default_factory=dict)
    axes: dict[tuple[str, int, str], list[Axis]] = field(default_factory=dict)
    known: Mapping[tuple[str, int, str], list[Axis]] = field(default_factory=dict)

    def axis(self, binder: ir.Binder, size: int, kind: str, elements: str = "") -> Axis:
        """A known axis for elements of a binder that this state has not taken yet, else a new one."""
        axes = self.axes.setdefault((binder.name, size, kind), [])
        known = self.known.get((binder.name, size, kind), [])
        if len(axes) < len(known):
            axis = known[len(axes)]
        else:
            axis = super().axis(binder, size, kind, elements)
        axes.append(axis)
        return axis

    def partition(self, table: str, codes: np.ndarray) -> None:
        """Notes a partition of a table's rows, once."""
        _note(self.partitions, table, codes)

    def relate(self, table: str, codes: np.ndarray) -> None:
        """Notes the groups inside which rows of a table are paired, once."""
        _note(self.related, table, codes)


def _note(noted: dict[str, list[np.ndarray]], table: str, codes: np.ndarray) -> None:
    """Adds numbers of rows to those of a table, unless they are there."""
    known = noted.setdefault(table, [])
    if not any(np.array_equal(codes, other) for other in known):
        known.append(codes)


class GivenRows(BatchSlots):
    """Slots that take the rows of a batch as they are given; other sets as a whole."""

    state: GivenState

    def slot(
        self, sel: Selection, env: Env, way: Way
    ) -> tuple[Slot, ReducedBinder, Mapping[ir.Binder, Slot]]:
        """The batch of the binder's table, weighted by its set and its condition."""
        state, g, binder, domain = self.state, self.state.graph, sel.binder, sel.binder.domain
        if not isinstance(domain, ir.RowSet):
            return super().slot(sel, env, way)
        if way.whole:
            state.refuse(errors.all_rows_of_a_batch(binder))
        axis = state.axis(binder, state.capacity, "sample")
        ids = g.make(given, name=f"rows_{domain.table}", axes=(axis,), event=())
        members = self.slots.members(sel)
        slot = Slot(
            binder=binder,
            ids=ids,
            pos=ids,
            n=state.total(binder),
            members=members,
            selection=sel if sel.parents else None,
        )
        weight = g.make(given, name=f"weights_{domain.table}", axes=(axis,), event=())
        self.note(sel, members)
        if len(members) < state.total(binder):
            inside = np.zeros(state.total(binder))
            inside[members] = 1.0
            key = state.ship(f"{domain.table}_{binder.name}_members", inside)
            weight = g.apply("mul", weight, state.take(key, ids, ()))
        weight = self.weighted(sel, {**env, binder: slot}, way, axis, weight, len(members))
        state.weights[axis] = weight
        count = g.const(len(members))
        return (
            slot,
            ReducedBinder(binder=binder, axis=axis, weight=weight, count=count, parents=sel.parents),
            {},
        )

    def note(self, sel: Selection, members: np.ndarray) -> None:
        """The set and the groups of a selection, as partitions of the table."""
        state, domain = self.state, sel.binder.domain
        assert isinstance(domain, ir.RowSet)
        total = state.total(sel.binder)
        if 0 < len(members) < total:
            inside = np.zeros(total, dtype=np.int64)
            inside[members] = 1
            state.partition(domain.table, inside)
        for inner, outer in sel.keys:
            codes = realising.key_codes(state.bound, sel.binder, [inner], np.arange(total))
            _, groups = np.unique(codes, return_inverse=True)
            if any(isinstance(binder.domain, ir.RowSet) for binder in ir.free_binders(outer)):
                state.relate(domain.table, groups.reshape(-1))
            if groups.max(initial=0) < MOST_GROUPS:
                state.partition(domain.table, groups.reshape(-1))

    def weighted(self, sel: Selection, env: Env, way: Way, axis: Axis, weight: Val, members: int) -> Val:
        """Weights of mean 1 along an axis for the rows of a selection.

        Where a condition relates binders of one reduction, or a sum has a value over nothing, the
        condition only masks the weights of the whole set.
        """
        g = self.state.graph
        if not sel.parents:
            return self.spread(sel, env, way, axis, weight, g.const(members))
        mask = self.cells.mask(sel, env)
        if way.inside(sel) or way.total:
            return g.apply("mul", mask, self.normalised(weight, axis))
        matching, size = g.apply("mul", mask, weight), g.const(members)
        for other in sel.excludes:
            if env[other].ids.op is given:
                matching = g.apply("mul", matching, self.without(sel, env[other], env[sel.binder]))
        ranges = realising.realise(self.state.bound, sel, empty="keep")
        if ranges.size is not None and not sel.orders and not sel.masks:
            parents = [env[p].ids for p in sel.parents]
            key = self.state.unique(f"{sel.binder.name}_size")
            size = self.state.cells(key, np.maximum(ranges.size, 1).astype(np.float64), parents)
        return self.spread(sel, env, way, axis, matching, size)

    def normalised(self, weight: Val, axis: Axis) -> Val:
        """Weights divided by their mean; all 0 if that is 0."""
        g = self.state.graph
        mean = g.apply("max", g.average(weight, [axis]), g.const(NO_WEIGHT))
        return g.apply("div", weight, mean)

    def spread(self, sel: Selection, env: Env, way: Way, axis: Axis, weight: Val, size: Val) -> Val:
        """Weights of mean 1. Where another binder stands for a row of the same batch, this row has its
        share 1 / n of the set as it is, and the other rows stand for the rest: so a mean over pairs
        from one batch is an unbiased estimate."""
        g, beside = self.state.graph, self.beside(sel, env, way, axis)
        if beside is None:
            return self.normalised(weight, axis)
        same = g.make(number, [g.apply("eq", beside.ids, env[sel.binder].ids)])
        own = g.apply("mul", same, weight)
        weight_of_others = g.apply("sub", weight, own)
        rest = g.apply("mul", weight_of_others, self.without(sel, beside, env[sel.binder]))
        has_own = self.positive(g.total(own, [axis]))
        has_rest = self.positive(g.total(rest, [axis]))
        without = g.apply("sub", g.const(1.0), g.apply("div", g.const(1.0), size))
        one = g.const(1.0)
        share_of_rest = g.apply("mul", has_rest, without)
        share = g.apply("mul", has_own, g.apply("sub", one, share_of_rest))
        others = g.apply("sub", g.const(1.0), share)
        return g.apply(
            "add",
            g.apply("mul", share, self.normalised(own, axis)),
            g.apply("mul", others, self.normalised(rest, axis)),
        )

    def without(self, sel: Selection, left_out: Slot, slot: Slot) -> Val:
        """How a weight changes if a row is left out. Of the N rows of its stratum, n are in the batch; the
        others are n - 1 and represent N - 1 rows.
        """
        g, domain = self.state.graph, sel.binder.domain
        assert isinstance(domain, ir.RowSet)

        def along(name: str, ids: Val) -> Val:
            """A number handed in for each of the rows."""
            return g.make(given, name=f"{name}_{domain.table}", axes=ids.axes, event=())

        alike = g.apply("eq", along("strata", left_out.ids), along("strata", slot.ids))
        more = g.apply("sub", along("others", slot.ids), g.const(1.0))
        one = g.const(1.0)
        added = g.apply("mul", g.make(number, [alike]), more)
        return g.apply("add", one, added)

    def positive(self, value: Val) -> Val:
        """1 where a number is above 0, else 0."""
        g = self.state.graph
        return g.make(number, [g.apply("gt", value, g.const(0.0))])

    def beside(self, sel: Selection, env: Env, way: Way, axis: Axis) -> Slot | None:
        """The first other binder that the body depends on and that can stand for the same row."""
        domain, mine = sel.binder.domain, env[sel.binder].members
        assert isinstance(domain, ir.RowSet) and mine is not None
        for binder in self.state.free(way.body):
            other = env.get(binder)
            if other is None or other.ids.op is not given or axis in other.ids.axes:
                continue
            assert isinstance(binder.domain, ir.RowSet) and other.members is not None
            if binder.domain.table != domain.table or binder in sel.excludes:
                continue
            if len(np.intersect1d(mine, other.members, assume_unique=True)):
                return other
        return None


@dataclass(frozen=True, kw_only=True)
class NetInputs:
    """The inputs of a net on one row: the row's binder, and the text of each input."""

    binder: ir.Binder
    names: tuple[str, ...]


def applied_to(node: ir.NetCall) -> NetInputs | None:
    """The inputs of a net, or None if they are not columns of one row, or outputs of nets of such columns."""
    names, binders = [], set()
    for one in node.inputs:
        if isinstance(one, ir.Column) and one.name is not None:
            names.append(one.name)
            binders.add(one.binder)
        elif isinstance(one, ir.NetCall) and (inner := applied_to(one)) is not None:
            names.append(f"{one.net}({' and '.join(inner.names)})")
            binders.add(inner.binder)
        else:
            return None
    if len(binders) != 1:
        return None
    return NetInputs(binder=binders.pop(), names=tuple(names))


class GivenOutputs(Scores):
    """Outputs of nets that are handed to the step."""

    state: GivenState

    def net(self, node: ir.NetCall, env: Env) -> Val:
        """The scores of a batch's rows, those of a net over nets too; F0826 where a net is applied to
        anything but columns of one row."""
        if node.params is None and not ir.variables_of(node):
            return self.frozen(node, env)
        state, applied = self.state, applied_to(node)
        slot = None if applied is None else env[applied.binder]
        if applied is None or slot is None or slot.ids.op is not given:
            state.refuse(errors.net_of_no_column(node))
        assert isinstance(applied.binder.domain, ir.RowSet)
        key = (node.net, applied.binder.domain.table, ", ".join(applied.names))
        if key not in state.scores:
            name = f"scores_{len(state.scores) + 1}"
            event = state.shape(node.shape)
            state.scores[key] = ScoreInput(
                name=name, net=key[0], table=key[1], column=key[2], event=event, call=node
            )
        scores = state.scores[key]
        return state.graph.make(given_scores, name=scores.name, axes=slot.ids.axes, event=scores.event)


class GivenLowering(Lowering):
    """Lowers expressions for rows and scores that are handed to the step."""

    def __init__(self, state: GivenState):
        super().__init__(state, batches=GivenRows)
        self.scores = GivenOutputs(state, self.leaves, self.expr)


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenSteps(LoweredSteps):
    """The steps of a plan for batches that are handed to it.

    steps     value and gradient of the minimised objective, as the plan's algorithm estimates them
    watched   objective and constraints of the problem as written, from running means
    watching  the state of these
    present   by the id of an estimate: 1 where the batch has what it estimates, else 0
    running   the ids of running means, the estimates of ``watched``
    """

    steps: BlockSteps
    watching: GivenState
    watched: Mapping[str, tuple[str, Val]]
    present: Mapping[int, Val]
    running: frozenset[int]

    @property
    def state(self) -> GivenState:
        """The state of the steps."""
        assert isinstance(self.steps.state, GivenState)
        return self.steps.state

    @property
    def centred(self) -> list[Smoothed]:
        """The smoothed functions that have centres."""
        return [s for s in self.normal.smoothed if s.name in self.steps.state.centres]

    @property
    def scores(self) -> list[ScoreInput]:
        """The outputs of nets that a step asks for."""
        return list(self.state.scores.values())

    @property
    def tables(self) -> list[str]:
        """The tables whose rows a batch has."""
        names = (v.attrs["name"] for v in self.state.graph.vals if v.op is given)
        return sorted({name.removeprefix("rows_") for name in names if name.startswith("rows_")})


def given_steps(problem: ir.Problem, bound: Bound, plan: Plan, capacity: int) -> GivenSteps:
    """The steps of a plan for batches of at most ``capacity`` rows of each table.

    Raises F0826 where the model has no net, uses a net's weights outside of it, or needs all rows in
    every step.
    """
    record = plan.algorithm_record
    dual = record.outer in ("dual", "conjugate")
    state = GivenState(
        bound=bound,
        full=False,
        capacity=capacity,
        dual=dual,
        stable=hasattr(record.estimator, "track_log") and not dual,
        coupled="linear coupling" in record.requires,
    )
    state.logarithms.scan(plan.normal.objective)
    root = GivenLowering(state).expr(plan.normal.objective, {}, True)
    pulls = backward(state.graph, {root: state.graph.const(1.0)})
    tracks = _tracks(state)
    before = {v.id: previous(state.graph, v.args[0]) for v in tracks if plan.remembers}
    if not state.scores:
        state.refuse(errors.criterion_without_net())
    _check_weights(plan, state)
    present = {v.id: presence(state, v) for v in tracks}
    present |= {v.id: presence(state, v) for v in state.graph.vals if v.op.name == "envelope_slope"}
    watching = _beside(state)
    watched = {label: (kind, value) for label, kind, value in _watched(problem, watching)}
    running = [v for v in _tracks(state) if v.id not in present]
    present |= {v.id: presence(watching, v) for v in running}
    steps = BlockSteps(state=state, root=root, pulls=pulls, before=before)
    return GivenSteps(
        problem=problem,
        bound=bound,
        plan=plan,
        layout=_layout(state, plan),
        steps=steps,
        watching=watching,
        watched=watched,
        present=present,
        running=frozenset(v.id for v in running),
    )


def _beside(state: GivenState) -> GivenState:
    """The state of what is watched in the steps of another state: it shares all values that are alike."""
    return GivenState(
        bound=state.bound,
        full=False,
        capacity=state.capacity,
        graph=state.graph,
        data=state.data,
        names=state.names,
        spans=state.spans,
        scores=state.scores,
        known=state.axes,
        running="v",
    )


def _tracks(state: GivenState) -> list[Val]:
    """The estimates in the graph of a state."""
    return [v for v in state.graph.vals if v.op is track]


def _watched(problem: ir.Problem, state: GivenState) -> list[tuple[str, str, Val]]:
    """Label, kind and value of the objective (label "") and of the constraints, all by running means;
    without those that need all rows as they are written."""
    lowering, values = GivenLowering(state), []
    for label, kind, make in _parts(problem, lowering):
        try:
            values.append((label, kind, make()))
        except FccoError:
            continue
    return values


def _parts(problem: ir.Problem, lowering: GivenLowering) -> Iterator[tuple[str, str, Callable[[], Val]]]:
    """Label and kind of the objective and of each constraint, and what gives its value."""

    def of(body: ir.Expr) -> Val:
        """The value of an expression over the rows handed in."""
        lowering.state.logarithms.scan(body)
        return lowering.expr(body, {}, False)

    def of_family(constraint: ir.Constraint) -> Val:
        """The values of the members of a family of constraints."""
        way = Way(body=constraint.body, whole=True, dense=True)
        ranged = lowering.binders.ranged(constraint.binders, constraint.condition, {}, way)
        return lowering.expr(constraint.body, ranged.env, False)

    yield "", "objective", partial(of, problem.objective.expr)
    for constraint in problem.constraints:
        if constraint.binders:
            yield constraint.label, constraint.kind, partial(of_family, constraint)
        else:
            yield constraint.label, constraint.kind, partial(of, constraint.body)


def _check_weights(plan: Plan, state: GivenState) -> None:
    """A net's weights are met only inside the net: its optimizer is not ours."""
    nets = {name for name, var in plan.normal.variables.items() if var.net is not None}
    direct = [v for v in state.graph.vals if v.op is variable and v.attrs["name"] in nets]
    bounded = any(plan.normal.variables[name].sets for name in nets)
    if direct or bounded or any(term.variable in nets for term in plan.normal.prox):
        state.refuse(errors.weights_outside(sorted(nets)))


def _layout(state: GivenState, plan: Plan) -> Layout:
    """The variables beside the nets, one after another."""
    layout, start = {}, 0
    for name, var in plan.normal.variables.items():
        if var.net is None:
            shape = state.shape(var.shape)
            length = int(np.prod(shape, dtype=np.int64))
            layout[name] = (start, start + length, shape)
            start += length
    return layout


def presence(state: GivenState, val: Val) -> Val:
    """1 where a batch has rows of all that a value is made of, else 0: along the value's axes."""
    g, axes = state.graph, {axis for v in below([val]).values() for axis in v.axes}
    present = g.const(1.0)
    for axis in sorted(axes & state.weights.keys(), key=lambda a: a.order):
        weight = state.weights[axis]
        reduced = [a for a in weight.axes if a not in val.axes]
        if reduced:
            whole = g.total(weight, reduced)
        else:
            whole = weight
        here = g.make(number, [g.apply("gt", whole, g.const(0.0))])
        present = g.apply("mul", present, here)
    return present
