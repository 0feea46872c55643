"""Lowers a plan: its steps, and the full passes of its program."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.rewrite import Rewriter, shared
from fccomodel.data.bound import Bound
from fccomodel.data.net_costs import dear, looked_at, part_of
from fccomodel.data.nets import refuse_train_mode
from fccomodel.data.subsets import RandomParts
from fccomodel.evaluation.sets import elements, selections
from fccomodel.library import identities
from fccomodel.library.identities.comonotone import comonotone_tails
from fccomodel.normal_form import reformulations
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.plan import Plan
from fccomodel.program.backward import backward, previous
from fccomodel.program.lower.lowered import (
    BlockSteps,
    Constrained,
    Constraints,
    Exact,
    Layout,
    Lowered,
    SmoothedFunction,
    SmoothedProblem,
    VectorSteps,
)
from fccomodel.program.lower.lowering import Lowering
from fccomodel.program.lower.records import Slot, Way
from fccomodel.program.lower.state import State
from fccomodel.program.lower.vector import Entries, Phi, sampled_phi
from fccomodel.program.operations import Val, union
from fccomodel.program.operations.entrywise import spread
from fccomodel.program.operations.estimates import track
from fccomodel.program.operations.sources import take

#: Largest number of numbers of a pass that can be made hundreds of times.
CHEAP_PASS_NUMBERS = 1 << 24
#: Number of larger passes that must fit into three quarters of the budget if they are to be made.
FEW_PASSES = 6
#: Estimated counted seconds of a pass with its gradient, for each number.
NUMBER_SECONDS = 2e-8
#: The same for each entry of all values along runs of rows, which are read by their indices.
ENTRY_SECONDS = 1e-8
#: Seed of the sample of rows for looks.
SAMPLE_SEED = 0
#: Largest number of centres of a function inside an expectation.
MOST_CENTRES = 1 << 20


def lower(problem: ir.Problem, bound: Bound, plan: Plan) -> Lowered:
    """Lower every value that the functions of a plan's program compute, on bound data.

    An error if no program can compute one of them.
    """
    steps: VectorSteps | BlockSteps
    if plan.algorithm_record.oracle == "vector":
        steps = vector_steps(bound, plan)
    else:
        steps = block_steps(bound, plan)
    lowering = Lowering(State(bound=sampled(bound, plan), full=True, data=steps.state.data))
    lowering.state.thinning.seconds = plan.budget.seconds
    reference = shared(
        reformulations.chain(identities.after(problem, comonotone_tails), {"inner maximum"}).problem
    )
    centred = [s for s in plan.normal.smoothed if s.name in steps.state.centres]
    exact = on_all_rows(lowering, reference, plan, centred)
    refuse_train_mode(problem, bound.nets)
    thrifty = dear(bound)
    whole = None
    if plan.whole and not thrifty:
        whole = smoothed_problem(lowering, plan)
    constrained = None
    if plan.polish and not thrifty:
        constrained = for_restoring(lowering, reference, plan)
    for block in exact.blocks:  # each of its elements has a centre, so that no pass may leave some out
        for ids in block.ids:
            if ids.op is take:
                exact.state.thinning.whole.add(ids.attrs["key"])
    return Lowered(
        problem=problem,
        bound=bound,
        plan=plan,
        layout=laid_out(steps.state, plan),
        steps=steps,
        exact=exact,
        whole=whole,
        constrained=constrained,
    )


def sampled(bound: Bound, plan: Plan) -> Bound:
    """The data with the rows of looks: a fixed sample if nets make a pass over all rows too expensive.

    All rows are taken if a smoothed function has a centre for each row.
    """
    share = looked_at(bound, plan.budget.seconds)
    by_row = any(has_centres_by_row(smoothed) for smoothed in plan.normal.smoothed)
    if share >= 1.0 or by_row:
        return bound
    return part_of(RandomParts(bound=bound, seed=SAMPLE_SEED).of_share(share), bound)


def has_centres_by_row(smoothed: Smoothed) -> bool:
    """Whether a smoothed function depends on rows of outer binders."""
    nodes = list(smoothed.args)
    if smoothed.over is not None:
        nodes.append(smoothed.over)
    return any(isinstance(b.domain, ir.RowSet) for node in nodes for b in ir.free_binders(node))


def laid_out(state: State, plan: Plan) -> Layout:
    """The places of the variables in the flat vector w. All parameters of a net are one variable."""
    layout, start = {}, 0
    for name, variable in plan.normal.variables.items():
        if variable.net is not None:
            shape: tuple[int, ...] = (sum(p.numel() for p in state.bound.nets[variable.net].parameters()),)
        else:
            shape = state.shape(variable.shape)
        layout[name] = (start, start + math.prod(shape), shape)
        start += math.prod(shape)
    return layout


# -------------------------------------------------------------------------------------------- steps
def block_steps(bound: Bound, plan: Plan) -> BlockSteps:
    """The minibatch objective and its gradient, as the algorithm needs them."""
    record, options = plan.algorithm_record, plan.options
    dual = record.outer in ("dual", "conjugate")
    state = State(
        bound=bound,
        full=False,
        batch=plan.batch,
        independent=plan.resamples,
        dual=dual,
        stable=hasattr(record.estimator, "track_log") and not dual,
        coupled="linear coupling" in record.requires,
        sampling=options["sampling"][0],
        inner_sampling=options["inner_sampling"][0],
        strata=plan.strata,
    )
    graph = state.graph
    state.logarithms.scan(plan.normal.objective)
    root = Lowering(state).expr(plan.normal.objective, {}, True)
    pulls = backward(graph, {root: graph.const(1.0)})
    tracks = [val for val in graph.vals if val.op is track] if plan.remembers else []
    before = {val.id: previous(graph, val.args[0]) for val in tracks}
    return BlockSteps(state=state, root=root, pulls=pulls, before=before)


def vector_steps(bound: Bound, plan: Plan) -> VectorSteps:
    """The objective as a function of its expectations."""
    form = State(bound=bound, full=True, stable=False, separated=False, enveloped=True)
    phi, data = Phi(form), form.data
    root = phi.expr(plan.normal.objective)
    steps = Entries(
        State(bound=bound, data=data, full=False, stable=False, batch=plan.batch, centres=form.centres), phi
    )
    full = Entries(State(bound=bound, data=data, full=True, stable=False, separated=False), phi)
    samples = [steps.value(component) for component in phi.components]
    values = [full.value(component) for component in phi.components]
    part = None
    if plan.algorithm_record.samples_outer:
        part = sampled_phi(steps.state, phi, plan.normal.objective)
    return VectorSteps(
        state=steps.state,
        samples=samples,
        full=full.state,
        values=values,
        phi=form,
        root=root,
        components=phi.components,
        part=part,
    )


# -------------------------------------------------------------------------------------- full passes
def on_all_rows(lowering: Lowering, problem: ir.Problem, plan: Plan, centred: Iterable[Smoothed]) -> Exact:
    """The problem itself on all rows, and the plan's smoothed functions with centres."""
    objective = lowering.expr(problem.objective.expr, {}, True)
    if problem.objective.sense == "maximize":
        objective = lowering.state.graph.apply("neg", objective)
    constraints = constraints_of(lowering, problem)
    return Exact(
        state=lowering.state,
        objective=objective,
        constraints=constraints,
        blocks=blocks_of(lowering, plan, centred),
    )


def constraints_of(lowering: Lowering, problem: ir.Problem) -> Constraints:
    """Every constraint in a full pass: a value for each member, 0 for members that a mask leaves out."""
    graph, values = lowering.state.graph, {}
    for constraint in problem.constraints:
        env: Mapping[ir.Binder, Slot] = {}
        masks: list[Val] = []
        if constraint.binders:
            way = Way(body=constraint.body, dense=True)
            ranged = lowering.binders.ranged(constraint.binders, constraint.condition, {}, way)
            env, masks = ranged.env, [p.weight for p in ranged.parts if p.weight is not None]
        value = lowering.expr(constraint.body, env, True)
        for mask in masks:
            value = graph.apply("mul", mask, value)
        axes = union([value, *(slot.ids for slot in env.values())])
        if value.axes != axes:  # every member has a value, whichever binders it depends on
            value = graph.make(spread, [value], axes=axes)
        values[constraint.label] = (constraint.kind, value)
    return values


def blocks_of(lowering: Lowering, plan: Plan, centred: Iterable[Smoothed]) -> list[SmoothedFunction]:
    """Smoothed functions in a full pass, at the elements that occur in the objective."""
    within = selections.taken_by(plan.normal.objective)
    blocks = []
    for smoothed in centred:
        ids, argument, over = lowering.envelopes.block(smoothed, within)
        blocks.append(SmoothedFunction(smoothed=smoothed, ids=ids, argument=argument, over=over))
    return blocks


def smoothed_problem(exact: Lowering, plan: Plan) -> SmoothedProblem | None:
    """The objective with envelopes and penalties; None if no full pass can compute a part of it."""
    lowering = Lowering(State(bound=exact.state.bound, full=True, enveloped=True, data=exact.state.data))
    centred = {s.name: s for s in plan.normal.smoothed if gets_centres(s, lowering.state)}

    def with_centre(node: ir.Expr) -> ir.Expr | None:
        """The function as one with centres; None for other nodes."""
        if isinstance(node, Smoothed) and node.name in centred:
            return replace(node, inner=False)
        return None

    try:
        root = lowering.expr(Rewriter(with_centre)(plan.normal.objective), {}, True)
    except FccoError:
        return None
    inside = {name: lowering.state.centres[name] for name in sorted(centred)}
    objective, sizes = plan.normal.objective, lowering.sizes
    affordable = plan.whole and many_fit(sizes.pairs(objective), plan, sizes.entries_along_runs(objective))
    blocks = blocks_of(exact, plan, centred.values())
    return SmoothedProblem(
        state=lowering.state, root=root, blocks=blocks, inside=inside, affordable=affordable
    )


def a_few_fit(entries: float, plan: Plan) -> bool:
    """Whether a few passes fit into three quarters of a budget in seconds.

    entries   those of all values along runs of rows
    """
    budget = plan.budget.seconds
    return budget is None or FEW_PASSES * ENTRY_SECONDS * entries < 0.75 * budget


def many_fit(numbers: float, plan: Plan, entries: float = 0.0) -> bool:
    """Whether a pass can be made hundreds of times, or a few times in three quarters of the budget.

    numbers   those of the largest value of a pass
    entries   those of all its values along runs of rows
    """
    if not a_few_fit(entries, plan):
        return False
    if numbers <= CHEAP_PASS_NUMBERS:
        return True
    budget = plan.budget.seconds or 0.0  # in counted seconds
    return FEW_PASSES * NUMBER_SECONDS * numbers < 0.75 * budget


def gets_centres(node: Smoothed, state: State) -> bool:
    """Whether a function inside an expectation over rows gets a centre for each row."""
    if not node.inner:
        return False
    binders = dict.fromkeys(b for a in node.args for b in state.free(a))
    if any(isinstance(b.domain, ir.Distribution | ir.VectorSet) for b in binders):
        return False
    return math.prod(len(elements.ids(state.bound, b.domain)) for b in binders) <= MOST_CENTRES


def for_restoring(exact: Lowering, problem: ir.Problem, plan: Plan) -> Constrained | None:
    """The constraints alone; None if there are none, or a pass over them is too expensive."""
    largest = max((exact.sizes.pairs(c.body) for c in problem.constraints), default=math.inf)
    entries = sum(exact.sizes.entries_along_runs(c.body) for c in problem.constraints)
    if largest > CHEAP_PASS_NUMBERS or not a_few_fit(entries, plan):
        return None
    lowering = Lowering(State(bound=exact.state.bound, full=True, data=exact.state.data))
    return Constrained(state=lowering.state, constraints=constraints_of(lowering, problem))
