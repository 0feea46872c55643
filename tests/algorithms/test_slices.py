"""Slices of a pass beside the same pass at once: gradients, Jacobians, products with vectors; and passes
that are left before their end."""

from __future__ import annotations

import math

import pytest
import torch

from fccomodel.algorithms.runtime.helpers.sweep import sliced
from fccomodel.algorithms.runtime.loops.progress import passes_over
from fccomodel.algorithms.runtime.loops.vector_oracle import linearised
from fccomodel.core.work import Left, counting, priced, to_the_end

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
    now[0] = 4.6
    assert over()
