"""Lowers expressions node by node: chooses the class that lowers each kind of node."""

from __future__ import annotations

from typing import Any

from fccomodel.core import ir
from fccomodel.normal_form.penalty import Penalty
from fccomodel.normal_form.separation import PiecewiseMean
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.program import errors
from fccomodel.program.lower.binders.batches import BatchSlots
from fccomodel.program.lower.binders.binders import Binders
from fccomodel.program.lower.binders.noise import NoiseSlots
from fccomodel.program.lower.binders.passes import Passes
from fccomodel.program.lower.binders.runs import RunSlots
from fccomodel.program.lower.binders.segments import Segments
from fccomodel.program.lower.leaves.atoms import Atoms
from fccomodel.program.lower.leaves.cells import Cells
from fccomodel.program.lower.leaves.families import Families
from fccomodel.program.lower.leaves.leaves import Leaves
from fccomodel.program.lower.leaves.rows import Rows
from fccomodel.program.lower.leaves.scores import Scores
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.reductions.envelopes import Envelopes
from fccomodel.program.lower.reductions.estimates import Estimates
from fccomodel.program.lower.reductions.reductions import Reductions
from fccomodel.program.lower.reductions.separated import Separated
from fccomodel.program.lower.reductions.sizes import PairCounts
from fccomodel.program.lower.state import Env, Linear, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.sources import hyper

#: Sums of more terms than this are lowered without recursion.
LONGEST_RECURSION = 32


class Lowering:
    """Lowers the expressions of one problem into one graph.

    state        the settings and results
    batches      the class that chooses samples
    reductions   the class that lowers reductions
    """

    def __init__(
        self,
        state: State,
        *,
        batches: type[BatchSlots] = BatchSlots,
        reductions: type[Reductions] = Reductions,
    ):
        self.state = state
        self.known: dict[tuple[Any, ...], Val] = {}
        self.slots = Slots(state)
        self.leaves = Leaves(state)
        self.cells = cells = Cells(state, self.expr)
        runs = RunSlots(state, self.slots, cells)
        segments = Segments(state, self.slots, cells, runs)
        self.batches = batches(state, self.slots, cells, segments)
        passes = Passes(state, self.slots, cells, segments, runs)
        self.binders = Binders(state, NoiseSlots(state, self.expr), self.batches, passes)
        self.separated = Separated(state, self.slots, cells, self.binders, self.expr)
        self.sizes = PairCounts(state, self.separated, runs)
        estimates = Estimates(state, self.expr)
        self.reductions = reductions(
            state, self.slots, cells, self.binders, self.separated, self.sizes, estimates, self.expr
        )
        self.envelopes = Envelopes(state, self.slots, self.binders, self.sizes, estimates, self.expr)
        self.scores = Scores(state, self.leaves, self.expr)
        self.rows = Rows(state, self.expr)
        self.atoms = Atoms(state, self.scores, self.rows, self.expr)
        self.families = Families(state, self.slots, self.expr)

    def expr(self, node: ir.Expr, env: Env, linear: Linear = True) -> Val:
        """The value of an expression, with the slots of its binders in ``env``."""
        chain = [node]
        while isinstance(chain[-1], ir.Apply) and chain[-1].op in ("add", "sub", "neg"):
            chain.append(chain[-1].args[0])
        if len(chain) > LONGEST_RECURSION:
            # The innermost term first: each node then finds its first argument lowered already.
            for part in reversed(chain[1:]):
                self.once(part, env, linear)
        return self.once(node, env, linear)

    def once(self, node: ir.Expr, env: Env, linear: Linear) -> Val:
        """The value of a node, which is computed once for given slots."""
        free = tuple((b, env[b].ids.id) for b in self.state.free(node) if b in env)
        key = (node, free, linear, self.state.again)
        if key not in self.known:
            self.known[key] = self.node(node, env, linear)
            self.state.spans.setdefault(self.known[key].id, node)
        return self.known[key]

    def node(self, node: ir.Expr, env: Env, linear: Linear) -> Val:
        """The value of a node of any kind, by its stable form if it has one."""
        state = self.state
        stable = state.logarithms.stable(node) if state.stable else None
        if stable is not None:
            is_quotient = getattr(node, "op", "") in ("div", "inv")
            if isinstance(stable, ir.Apply) and is_quotient and not state.full:
                return self.atoms.quotient(stable, env)
            return self.expr(stable, env, linear)
        row_by_row = self.rows.form(node, env)
        if row_by_row is not None:
            return self.expr(row_by_row, env, linear)
        if not node.children and (leaf := self.leaf(node, env)) is not None:
            return leaf
        return self.inner(node, env, linear)

    def leaf(self, node: ir.Expr, env: Env) -> Val | None:
        """The value of a node without parts, or None for another kind of node."""
        match node:
            case ir.Const():
                return self.leaves.constant(node)
            case ir.Size(dim=dim):
                return self.state.graph.const(*self.state.shape((dim,)))
            case ir.Param(name=name):
                return self.leaves.parameter(name)
            case ir.Var():
                return self.leaves.variable(node)
            case ir.Column():
                return self.leaves.column(node, env)
            case ir.Element():
                return self.leaves.element(node, env)
        return None

    def inner(self, node: ir.Expr, env: Env, linear: Linear) -> Val:
        """The value of a node with parts; refuses a node that has no value in a program."""
        match node:
            case ir.Item():
                return self.families.item(node, env, linear)
            case ir.LetRef():
                return self.families.let(node, env, linear)
            case ir.Apply():
                return self.atoms.value(node, env, linear)
            case ir.NetCall():
                return self.scores.net(node, env)
            case ir.Reduce():
                return self.reductions.value(node, env, linear)
            case ir.Exists():
                return self.cells.exists(node, env)
            case PiecewiseMean():
                return self.separated.piecewise_mean(node, env)
            case Smoothed():
                return self.envelopes.value(node, env)
            case Penalty(scale=str(scale)):
                graph = self.state.graph
                factor = graph.make(hyper, name=scale)
                return graph.apply("mul", factor, self.expr(node.function, env, linear))
        self.state.refuse(errors.no_value(self.state.bound.problem, node))
