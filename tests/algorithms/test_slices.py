"""Slices of a pass beside the same pass at once: gradients, Jacobians, products with vectors; and passes
that are left before their end."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import pipeline
from fccomodel.algorithms.runtime.helpers.sweep import sliced
from fccomodel.algorithms.runtime.loops.progress import passes_over
from fccomodel.algorithms.runtime.loops.vector_oracle import linearised
from fccomodel.core.work import Left, counting, priced, to_the_end
from fccomodel.execution.run.loading import loaded
from fccomodel.execution.run.machine import unjudged
from fccomodel.program.emit import emit
from fccomodel.program.lower import lower
from fccomodel.program.lower.reductions import envelopes

#: rows of the pass, columns, and slices of it
ROWS, COLUMNS, SLICE = 23, 5, 4


def passes(over):
    """The same values at once and by slices, as functions of w."""
    parts = torch.arange(ROWS).split(SLICE)
    at_once = [torch.arange(ROWS)]
    return [lambda w, cut=cut: sliced(over, cut, 1, w, (w * w).sum()) for cut in (at_once, parts)]


@pytest.fixture
def over():
    """The values of some rows, in columns, by w and its square."""
    x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return lambda part, w, square: torch.stack([(x[part] @ w).exp() * square, (x[part] @ w).sin()])


def test_derivatives_are_those_of_the_pass_at_once(over):
    w = torch.linspace(-0.3, 0.4, COLUMNS, dtype=torch.float64)
    whole, slices = (linearised(lambda x, f=f: f(x).reshape(-1), w) for f in passes(over))
    plain = torch.autograd.functional.jacobian(
        lambda x: over(torch.arange(ROWS), x, (x * x).sum()).reshape(-1), w
    )
    s, d = torch.linspace(-1, 1, 2 * ROWS, dtype=torch.float64), torch.linspace(1, 2, COLUMNS).double()
    for taken in (whole, slices):
        assert torch.allclose(taken.pull(s), plain.T @ s, rtol=1e-13)
        assert torch.allclose(taken.push(d), plain @ d, rtol=1e-13)
        assert torch.allclose(taken.matrix(), plain, rtol=1e-13)


def test_inputs_that_are_constants_have_no_gradient(over):
    w = torch.ones(COLUMNS, dtype=torch.float64, requires_grad=True)
    value = sliced(over, torch.arange(ROWS).split(SLICE), 1, w, torch.tensor(2.0, dtype=torch.float64))
    (found,) = torch.autograd.grad(value.sum(), w)
    (plain,) = torch.autograd.grad(over(torch.arange(ROWS), w, 2.0).sum(), w)
    assert torch.allclose(found, plain, rtol=1e-13)


def test_work_beyond_its_price_is_left():
    made = []

    def work():
        for k in range(100):
            made.append(k)
            torch.ones(1000).exp()

    _, all_of_it = priced(work)
    made.clear()
    assert priced(work, most=all_of_it / 4) == (None, math.inf)
    assert 20 < len(made) < 30
    with pytest.raises(Left), counting(most=all_of_it / 4):
        priced(work)


def test_a_pass_is_left_once_its_time_is_over():
    made = []

    def work():
        x = torch.ones(3, requires_grad=True)
        for k in range(100):
            made.append(k)
            x = x * 2
        torch.autograd.grad(x.sum(), x)

    assert to_the_end(work, lambda: False)
    made.clear()
    assert not to_the_end(work, lambda: len(made) > 10)
    assert len(made) == 11
    assert to_the_end(work, lambda: True, dear=False)


def test_passes_go_on_for_a_grace_after_the_end_was_asked_for(monkeypatch):
    now, asked = [0.0], [False]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    over = passes_over(0.0, lambda: asked[0], 10.0, share=0.1, grace=0.5)
    now[0] = 11.4
    assert not over()
    now[0] = 11.6
    assert over()
    over, now[0], asked[0] = passes_over(0.0, lambda: asked[0], 10.0), 3.0, True
    assert not over()
    asked[0] = False
    now[0] = 3.6
    assert over()


PAIRS = """data D : table(x: real, y: real); var w in box(-2, 2);
minimize mean[i in D] (E[j ~ D] pos(1 - w * (i.x - j.x)))^2 + (w - 1)^2;"""


@pytest.mark.parametrize("algorithm", ["sonex", "hscg"])
def test_a_run_left_before_its_first_look_ends_at_the_start(algorithm):
    """The time of passes is over from the beginning, and a person asks for the end."""
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=60), "y": rng.normal(size=60)}
    planned = fccomodel.compile(PAIRS).bind(data={"D": rows}).plan(algorithm=algorithm, budget="5s")
    program = pipeline.emit(planned)
    module = loaded(program)
    module.passes_over = lambda *_: lambda: True
    with torch.no_grad():
        run = getattr(module, "solve_then_finish", module.solve)
        found = run(module.SOLVER, dict(program.data), seconds=5.0, stop=lambda: True)
    assert not found.iterations and found.status == "interrupted" and unjudged(found)
    assert found.history[-1]["objective"] == math.inf and torch.equal(found.w, torch.zeros(len(found.w)).double())


def test_pairs_that_are_too_many_have_no_centres(monkeypatch):
    """They are smoothed as functions inside expectations are; fewer keep theirs."""
    text = """data D : table(x: real); var w in box(-2, 2);
minimize max[i in D] (max[j in D] abs(w * i.x - j.x) - 1)^2;"""
    problem = fccomodel.compile(text).bind(data={"D": {"x": np.linspace(-1, 1, 30)}})
    planned = problem.plan(algorithm="sonex")
    shapes = lower(planned.problem, planned.bound, planned.plan).steps.state.centres
    assert any(math.prod(shape) == 30 * 30 for shape in shapes.values())
    monkeypatch.setattr(envelopes, "MOST_CENTRES", 899)
    lowered = lower(planned.problem, planned.bound, planned.plan)
    assert all(math.prod(shape) <= 30 for shape in lowered.steps.state.centres.values())
    module = loaded(emit(lowered))
    assert "envelope_inner" in vars(module)


def test_products_of_float32_are_half_as_dear():
    """Products and curved entries cost half, and bytes are half as many; calls cost the same."""
    single, double = (torch.ones(600, 600, dtype=dtype) for dtype in (torch.float32, torch.float64))
    for work in (lambda x: x @ x, torch.exp):
        prices = [priced(lambda x=x, work=work: work(x))[1] for x in (single, double)]
        assert prices[0] == pytest.approx(prices[1] / 2, rel=0.05)
