"""Constants estimated by sampling: against exact ones, against the proved bounds, and at a cost that
rows do not change."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from fccomodel import structure
from fccomodel.core import ir
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound, BoundTable
from fccomodel.evaluation.interpret import evaluate
from fccomodel.evaluation.interpret.minibatch import Minibatch
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from fccomodel.structure.estimates.sampling import Probe
from fccomodel.structure.facts import Standing

torch.set_num_threads(1)
MODEL = """
dim d;
set G = {{0, 1, 2}};
data D : table(x: real[d], y: {{-1, 1}}, t: real, g: G);
var w[d]{sets};
minimize e: {objective};
"""


def bound_to(objective: str, rows: int = 400, sets: str = "", size: int = 3) -> Bound:
    source = Source(text=MODEL.format(objective=objective, sets=sets))
    problem = check(parse(source), source)
    rng = np.random.default_rng(0)
    columns = {
        "x": rng.normal(size=(rows, size)),
        "y": np.where(rng.random(rows) < 0.5, -1.0, 1.0),
        "t": rng.random(rows),
        "g": rng.integers(0, 3, rows).astype(float),
    }
    return Bound(
        problem=problem, tables={"D": BoundTable(name="D", n=rows, columns=columns)}, dims={"d": size}
    )


def inner(bound: Bound) -> ir.Reduce:
    """The innermost expectation."""
    return [n for n in ir.walk(bound.problem.objective.expr) if isinstance(n, ir.Reduce)][0]


def test_a_quadratic_has_its_own_constants() -> None:
    bound = bound_to("E[z ~ D] square(dot(w, z.x) - z.t)")
    found = structure.estimate(bound.problem, bound, inner(bound), samples=4000)
    table = bound.tables["D"].columns
    x, t = table["x"], table["t"]
    assert found["gradient"].value.number == pytest.approx(
        2 * np.linalg.eigvalsh(x.T @ x / len(x))[-1], rel=0.1
    )
    far = structure.estimate(
        bound.problem, bound, inner(bound), samples=4000, points=[{"w": np.zeros(3)}], radius=1e-9
    )
    assert far["lipschitz"].value.number == pytest.approx(np.linalg.norm(2 * x.T @ t / len(x)), rel=0.3)
    assert far["value noise"].value.number == pytest.approx(np.var(t**2), rel=0.1)
    slopes = -2 * x * t[:, None]
    assert far["gradient noise"].value.number == pytest.approx(slopes.var(0).sum(), rel=1.0)
    assert all(fact.standing == Standing.ESTIMATED and "within" in fact.reason for fact in found.values())


def test_the_noise_is_right_on_average() -> None:
    bound = bound_to("E[z ~ D] square(dot(w, z.x) - z.t)")
    table = bound.tables["D"].columns
    exact = (2 * table["x"] * table["t"][:, None]).var(0).sum()
    seen = [
        structure.estimate(
            bound.problem, bound, inner(bound), seed=seed, samples=64, points=[{"w": np.zeros(3)}], radius=0.0
        )
        for seed in range(30)
    ]
    assert 0.9 * exact < np.mean([f["gradient noise"].value.number for f in seen]) < 2 * exact, (
        "a maximum over four looks"
    )


@pytest.mark.parametrize(
    "objective",
    [
        "mean[i in D] log1pexp(E[z ~ D | z.g == i.g] log1pexp(-z.y * dot(w, z.x)))",
        "mean[k in G] sqhinge(E[z ~ D | z.g == k and z.t <= 0.8] tanh(dot(w, z.x)))",
        "E[i ~ D] log(E[j ~ D | j.t >= i.t] exp(tanh(dot(w, j.x - i.x))))",
        "mean[i in D] square(E[j ~ D | j != i and dot(i.x, j.x) > 0] sigmoid(dot(w, j.x)))",
    ],
)
def test_estimates_stay_below_what_is_proved(objective: str) -> None:
    bound = bound_to(objective, sets=" in ball(2)")
    nodes = [n for n in ir.walk(bound.problem.objective.expr) if isinstance(n, ir.Reduce)]
    for node in nodes:
        proved = structure.facts_of(node, problem=bound.problem, bound=bound)
        found = structure.estimate(bound.problem, bound, node)
        assert set(found) == {"interval", "lipschitz", "gradient", "value noise", "gradient noise"}
        assert 0 < found["lipschitz"].value.number <= proved.C * (1 + 1e-9)
        assert 0 < found["gradient"].value.number <= proved.gradient.value.number * (1 + 1e-3)
        low, high, *_ = found["interval"].value
        assert proved.interval.value.lo <= low <= high <= proved.interval.value.hi


def test_a_kink_has_no_gradient_constant() -> None:
    bound = bound_to("abs(E[z ~ D] dot(w, z.x) - 1)")
    assert set(structure.estimate(bound.problem, bound, bound.problem.objective.expr)) == {
        "interval",
        "lipschitz",
    }


def test_the_seed_decides() -> None:
    bound = bound_to("E[z ~ D] tanh(dot(w, z.x))")
    values = [
        {k: f.value for k, f in structure.estimate(bound.problem, bound, inner(bound), seed=s).items()}
        for s in (0, 0, 1)
    ]
    assert values[0] == values[1] != values[2]


def test_rows_do_not_change_the_cost() -> None:
    def seconds(rows: int) -> float:
        bound = bound_to("mean[i in D] log(E[j ~ D] exp(sqhinge(1 + dot(w, j.x) - dot(w, i.x))))", rows=rows)
        structure.estimate(
            bound.problem, bound, bound.problem.objective.expr, samples=8
        )  # sorts the rows, once
        began = time.process_time()
        structure.estimate(bound.problem, bound, bound.problem.objective.expr)
        return time.process_time() - began

    few = min(seconds(1_000) for _ in range(3))
    assert min(seconds(300_000) for _ in range(3)) < 3 * few


def test_minibatches_are_unbiased() -> None:
    bound = bound_to("sum[i in D | i.t > 0.3] i.t * (E[j ~ D | j.g == i.g and j != i] sqhinge(dot(w, j.x)))")
    point = {"w": torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)}
    expr = bound.problem.objective.expr
    exact = float(evaluate(bound, expr, point))
    drawn = [float(Minibatch(bound, point, batch=100, seed=seed).value(expr, {}).data) for seed in range(40)]
    assert 0 < np.std(drawn) < 0.3 * exact
    assert abs(np.mean(drawn) - exact) < 4 * np.std(drawn) / np.sqrt(len(drawn))


@pytest.mark.parametrize("size", [1, 3])
def test_points_within_a_radius_are_not_beyond_it(size: int) -> None:
    bound = bound_to("E[z ~ D] square(sum(w) - z.t)", size=size)
    centre = {"w": torch.ones(size, dtype=torch.float64)}
    for seed in range(20):
        probe = Probe(problem=bound.problem, bound=bound, expr=inner(bound), seed=seed, samples=4)
        lengths = [float((point["w"] - centre["w"]).norm()) for point in probe.around([centre], 0.5)]
        assert max(lengths) <= 0.5 * (1 + 1e-12) and lengths[0] == 0.0 and max(lengths) > 0.05
