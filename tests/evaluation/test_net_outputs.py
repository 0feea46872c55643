"""Outputs of nets are kept while several quantities are computed at one point."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel.data import net_costs, subsets
from fccomodel.evaluation import passes
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.net_outputs import Outputs, anew
from fccomodel.evaluation.values import functions
from fccomodel.report.new_rows.intervals import deviations

N = 60
MODEL = """
model kept; dim d;
data D : table(x: real[d], y: {0, 1});
set P = {z in D | z.y == 1};
set N = {z in D | z.y == 0};
net s : real[d] -> real;
var w = params(s);
minimize gap: E[p ~ P, n ~ N] sqhinge(1 + s(w; n.x) - s(w; p.x));
subject to low: E[z ~ D] sigmoid(s(w; z.x)) <= 0.3;
"""


class Counted(torch.nn.Module):
    """A small net that counts the rows it has seen."""

    rows = 0

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def forward(self, x):
        Counted.rows += len(x)
        return self.layers(x)[:, 0]


@pytest.fixture
def known(monkeypatch):
    """A problem whose net counts as expensive, and a point."""
    monkeypatch.setattr(net_costs, "THRIFTY_PASS", -1.0)
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    net = Counted()
    data = {"D": {"x": rng.normal(size=(N, 3)), "y": rng.integers(2, size=N)}}
    bound = fccomodel.compile(MODEL).bind(**data, nets={"s": net}).bound
    weights = torch.nn.utils.parameters_to_vector(net.parameters()).detach().double().numpy()
    Counted.rows = 0
    return bound, {"w": weights}


def test_all_groups_of_a_jackknife_take_one_pass(known):
    """The values and their errors are those of nets that run anew for each group."""
    bound, point = known
    each = deviations(bound, point)
    assert Counted.rows > 10 * N
    Counted.rows = 0
    with Outputs().used():
        kept = deviations(bound, point)
    assert Counted.rows == N
    np.testing.assert_array_equal(each.values, kept.values)
    np.testing.assert_array_equal(each.errors, kept.errors)


def test_other_weights_and_other_rows_are_run(known):
    """Outputs are found by the values of all weights and by row."""
    bound, point = known
    half = net_costs.part_of(subsets.part(bound, {"D": np.arange(N) % 2 == 0}), bound)
    moved = {"w": point["w"] + 1e-9}
    expected = passes.values(bound, moved)[0]
    Counted.rows = 0
    with Outputs().used():
        passes.values(half, point)
        assert Counted.rows == N // 2
        passes.values(bound, point)
        assert Counted.rows == N // 2 + N
        passes.values(half, point)
        assert Counted.rows == N // 2 + N
        np.testing.assert_array_equal(passes.values(bound, moved)[0], expected)
        with anew():
            passes.values(half, point)
        assert Counted.rows == 3 * N


def test_other_buffers_are_run(known):
    """Outputs are those of the buffers that the net has now, as batch normalisation moves them."""
    bound, point = known
    bound.nets["s"].register_buffer("mean", torch.zeros(1))
    passes.values(bound, point)
    Counted.rows = 0
    with Outputs().used():
        passes.values(bound, point)
        bound.nets["s"].mean += 1.0
        passes.values(bound, point)
    assert Counted.rows == 2 * N


def test_gradients_are_those_of_the_net(known):
    """A gradient through kept outputs runs the net for its backward pass alone."""
    bound, point = known

    def gradient():
        leaf = torch.from_numpy(point["w"]).clone().requires_grad_()
        objective, constraints, *_ = functions(Evaluator(bound, {"w": leaf}))
        return torch.autograd.grad(objective + 3 * constraints.sum(), leaf)[0].numpy()

    expected = gradient()
    with Outputs().used():
        passes.values(bound, point)
        Counted.rows = 0
        found = gradient()
    assert Counted.rows == N
    np.testing.assert_array_equal(found, expected)
