"""More than two levels: a composition or a tail inside a constraint, three nested expectations,
stochastic outer functions."""

from __future__ import annotations

import types

import pytest
import torch

from conformance.problems import COMPOSITIONS, Conformance
from conformance.runs import bound_problem, needs_cvxpy, outcome, planned
from fccomodel.evaluation import interpret
from fccomodel.execution.run.loading import loaded
from fccomodel.program.emit import Program, emit
from fccomodel.program.lower import Lowered, lower

#: estimates kept: (name, blocks) with three blocks and six inner samples a step
LEVELS = {
    "composition_bound": [(5,), ()],  # three of the five groups in a step: their mean is tracked too
    "cvar_bound": [()],  # the mean excess over the threshold
    "composition_and_bound": [(5,), ()],
    "three_levels": [(60,), (4,), ()],
    "stochastic_outer": [(5,)],
}
#: gap and violation that 4,000 steps of three blocks and six inner samples must reach
REACHED = {
    "composition_bound": 0.05, "cvar_bound": 0.05, "composition_and_bound": 1e-2, "three_levels": 2e-3, "stochastic_outer": 0.03,
}  # fmt: skip


def named(problems: tuple[Conformance, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("problem", problems, ids=lambda p: p.name)


def emitted(problem: Conformance, **options: object) -> tuple[Lowered, Program, types.ModuleType]:
    bound = bound_problem(problem)
    lowered = lower(bound.problem, bound, planned(problem, **options))
    program = emit(lowered)
    return lowered, program, loaded(program)


@named(tuple(p for p in COMPOSITIONS if p.name != "cvar_bound"))
def test_whole_batches_give_the_exact_gradient(problem: Conformance) -> None:
    """Of the objective, and of each constraint times its multiplier, at a random point, by autograd of
    the interpreter."""
    lowered, program, solver = emitted(problem, outer_batch=10_000, inner_batch=10_000, algorithm="sonex")
    bound = bound_problem(problem)
    kept = solver.prepare(solver.as_namespace(dict(program.data), "cpu", torch.float64))
    exact = solver.prepare_full(solver.as_namespace(dict(program.data), "cpu", torch.float64))
    w = (
        0.3
        * torch.randn(
            solver.start(None, "cpu", torch.float64).shape, generator=torch.Generator().manual_seed(4)
        ).double()
    )
    h, c = solver.Settings(), solver.centres("cpu", torch.float64)
    batch = [part[0] for part in solver.draw(kept, torch.Generator().manual_seed(0), 1)]
    assert not batch, "everything is seen"
    found = solver.gradient(kept, w, w, solver.buffers("cpu", torch.float64), c, batch, h)
    leaf = w.clone().requires_grad_()
    point = {name: leaf[a:b].reshape(shape) for name, (a, b, shape) in program.layout.items()}
    total = interpret.evaluate(bound, bound.problem.objective.expr, point)
    for prox in lowered.normal.prox:
        assert prox.name == "squared_l2"
        centre = 0.0 if prox.centre is None else interpret.evaluate(bound, prox.centre, {})
        total = total - prox.coefficients["mu"] * (point[prox.variable] - centre).square().sum()
    cells = solver.blocks(exact, w)
    for constraint in bound.problem.constraints:
        name = program.penalties[constraint.label].name
        index, t, slope, _ = cells[name]
        multiplier = slope(t, getattr(c, name)[index if index else (...,)], h)
        total = total + (multiplier * interpret.evaluate(bound, constraint.body, point)).sum()
    (expected,) = torch.autograd.grad(total, leaf)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@named(COMPOSITIONS)
def test_every_level_is_tracked(problem: Conformance) -> None:
    lowered, *_ = emitted(problem, outer_batch=3, inner_batch=6, algorithm="sonex")
    assert sorted(b.shape for b in lowered.steps.state.buffers.values()) == sorted(LEVELS[problem.name])


@needs_cvxpy
@named(COMPOSITIONS)
def test_small_batches_reach_the_optimum(problem: Conformance) -> None:
    found = outcome(problem, "sonex", iterations=4000, outer_batch=3, inner_batch=6)
    assert found.gap <= REACHED[problem.name]
    assert found.violation <= REACHED[problem.name]
