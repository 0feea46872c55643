"""The finish on all rows: optima of problems whose kinks are inside expectations, and problems that
have no solution."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import pipeline
from fccomodel.algorithms.runtime.finish import ending, failure
from fccomodel.algorithms.runtime.finish.panoc import direction, forward_backward, panoc
from fccomodel.algorithms.runtime.finish.restore import least_norm
from fccomodel.execution.run.loading import loaded
from fccomodel.library.regularisers.nuclear import prox_nuclear

HEAD = "model m; dim d; data D : table(x: real[d], y: real); var w[d];\n"
LOGISTIC = "minimize f: E[z ~ D] log1pexp(-z.y * dot(w, z.x));"


def rows(kind: str, n: int = 200, d: int = 3) -> dict[str, np.ndarray]:
    """A table of labels, of numbers with outliers, or of labels that a plane separates."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, d))
    noise = {"labels": rng.normal(size=n), "numbers": rng.standard_t(2, size=n), "separable": np.zeros(n)}[
        kind
    ]
    y = x @ np.ones(d) + noise
    return {"x": x, "y": y if kind == "numbers" else np.sign(y)}


def solved(
    text: str, data: dict[str, np.ndarray] | None = None, budget: str = "60s", **options: object
) -> fccomodel.Result:
    return (
        fccomodel.compile(text)
        .bind(data={} if data is None else {"D": data})
        .solve(seed=0, budget=budget, **options)
    )


def hinges(x: np.ndarray, y: np.ndarray, w: cp.Variable) -> cp.Problem:
    return cp.Problem(
        cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y, x @ w))) / len(y) + 0.01 * cp.sum_squares(w))
    )


def deviations(x: np.ndarray, y: np.ndarray, w: cp.Variable) -> cp.Problem:
    return cp.Problem(cp.Minimize(cp.sum(cp.abs(x @ w - y)) / len(y)))


def misses(x: np.ndarray, y: np.ndarray, w: cp.Variable) -> cp.Problem:
    above, below = x[y > 0] @ w, x[y < 0] @ w
    alarms = cp.sum(cp.pos(1 + below)) / (y < 0).sum() + 0.01 * cp.sum_squares(w)
    return cp.Problem(cp.Minimize(alarms), [cp.sum(cp.pos(1 - above)) / (y > 0).sum() <= 0.6])


@pytest.mark.parametrize(
    ("text", "kind", "reference"),
    [
        ("minimize f: E[z ~ D] hinge(1 - z.y * dot(w, z.x)) + 0.01 * sumsq(w);", "labels", hinges),
        ("minimize f: E[z ~ D] abs(dot(w, z.x) - z.y);", "numbers", deviations),
        (
            "minimize f: E[z ~ D | z.y == -1] hinge(1 + dot(w, z.x)) + 0.01 * sumsq(w);\n"
            "subject to c: E[z ~ D | z.y == 1] hinge(1 - dot(w, z.x)) <= 0.6;",
            "labels",
            misses,
        ),
    ],
)
def test_kinks_inside_expectations(text: str, kind: str, reference: Callable[..., cp.Problem]) -> None:
    data = rows(kind)
    best = reference(data["x"], data["y"], cp.Variable(3)).solve(solver=cp.CLARABEL)
    found = solved(HEAD + text, data)
    assert np.isfinite(best) and abs(found.objective - best) <= 1e-6 * abs(best)
    assert found.report.feasibility <= 1e-6


@pytest.mark.parametrize("loss", ["hinge(1 - {})", "max(0, 1 - {})^2", "exp(-{})"])
def test_losses_of_more_pairs_than_a_pass_can_form(loss: str) -> None:
    pair = loss.format("(dot(w, p.x) - dot(w, n.x))")
    sets = "set P = {z in D | z.y > 0}; set N = {z in D | z.y <= 0};\n"
    found = solved(
        HEAD + sets + f"minimize f: E[p ~ P, n ~ N] {pair} + 0.01 * sumsq(w);", rows("labels", n=9000)
    )
    assert found.outcome.solution.way == "finish"
    assert found.report.epsilon <= 2e-5


def test_long_straight_stretches() -> None:
    """Far from the kink of a Huber function the only curvature is another variable's: steps must grow
    all the same."""
    passes = 0

    def at(w: torch.Tensor) -> tuple[float, torch.Tensor]:
        nonlocal passes
        passes += 1
        t, width = w[0] - 1e4, 1e-2
        slope = (t / width).clamp(-1, 1)
        value = slope * t - width * slope**2 / 2 + 5e-4 * (w[1] - 3) ** 2
        return float(value), torch.stack([slope, 1e-3 * (w[1] - 3)])

    w, residual, _ = panoc(
        at, lambda x, step: 0.0, torch.zeros(2, dtype=torch.float64), 0.01, 1e-8, lambda: passes > 400
    )
    assert residual <= 1e-8, (w, passes)
    assert torch.allclose(w, torch.tensor([1e4, 3.0], dtype=torch.float64), atol=1e-4)


def test_directions_that_are_tried_first_spare_passes() -> None:
    """Rosenbrock's function of twenty numbers, to the same point."""

    def minimised(bold: bool, most: int = 3000) -> tuple[torch.Tensor, int]:
        passes = 0

        def at(w: torch.Tensor) -> tuple[float, torch.Tensor]:
            nonlocal passes
            passes += 1
            x = w.clone().requires_grad_()
            value = (100 * (x[1:] - x[:-1].square()).square() + (1 - x[:-1]).square()).sum()
            return float(value.detach()), torch.autograd.grad(value, x)[0]

        w = torch.zeros(20, dtype=torch.float64)
        return panoc(at, lambda x, step: 0.0, w, 1e-3, 1e-6, lambda: passes >= most, bold=bold)[0], passes

    (safe, many), (bold, few) = minimised(False), minimised(True)
    assert torch.allclose(bold, torch.ones(20, dtype=torch.float64), atol=1e-6) and torch.allclose(
        safe, bold, atol=1e-6
    )
    assert few < 0.7 * many
    assert all(minimised(bold, most)[1] <= most + 2 for bold in (False, True) for most in range(30, 50))


def test_maxima_of_arrays() -> None:
    """Several products of a newsvendor at once: the optimum is a quantile of each demand."""
    demand = np.random.default_rng(0).gamma(3.0, 1.0, (400, 3))
    price, cost = np.array([3.0, 4.0, 5.0]), np.array([1.0, 2.0, 2.0])
    text = (
        "model m; dim d; data S : table(demand: real[d]); data price : real[d]; data cost : real[d]; var "
        "q[d] >= 0;\n"
        "minimize f: dot(cost, q) - E[z ~ S] dot(price, min(q, z.demand)) + 0.1 * E[z ~ S] "
        "sum(max(z.demand - q, 0));"
    )
    found = (
        fccomodel.compile(text)
        .bind(data={"S": {"demand": demand}, "price": price, "cost": cost})
        .solve(seed=0, budget="60s")
    )
    q = cp.Variable(3)
    sold = cp.sum(cp.multiply(np.tile(price, (400, 1)), cp.minimum(cp.vstack([q] * 400), demand))) / 400
    best = cp.Problem(
        cp.Minimize(cost @ q - sold + 0.1 * cp.sum(cp.pos(demand - cp.vstack([q] * 400))) / 400), [q >= 0]
    ).solve()
    assert found.objective == pytest.approx(best, abs=1e-6) and found.report.epsilon <= 1e-6
    assert found.outcome.solution.status == "converged"


def test_unscaled_numbers() -> None:
    """Targets of some hundreds, found from zero: a conditional value at risk of a newsvendor's cost."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    y = 150 + x @ np.array([20.0, -10.0, 5.0, 0.0]) + 40 * rng.standard_t(3, size=300)
    text = (
        "model m; dim d; data D : table(x: real[d], y: real); var w[d]; var b; var t;\n"
        "def over(z) = z.y - dot(w, z.x) - b; def cost(z) = max(2 * over(z), -over(z));\n"
        "minimize risk: t + E[z ~ D] max(0, cost(z) - t) / 0.1 + 0.001 * sumsq(w);\n"
        "subject to short: E[z ~ D] max(0, over(z)) <= 10;"
    )
    w, b, t = cp.Variable(4), cp.Variable(), cp.Variable()
    over = y - x @ w - b
    risk = t + cp.sum(cp.pos(cp.maximum(2 * over, -over) - t)) / 300 / 0.1 + 0.001 * cp.sum_squares(w)
    best = cp.Problem(cp.Minimize(risk), [cp.sum(cp.pos(over)) / 300 <= 10]).solve()
    assert solved(text, {"x": x, "y": y}).objective == pytest.approx(best, rel=1e-4)


def test_an_optimum_is_no_failure() -> None:
    found = solved(HEAD + LOGISTIC, rows("labels"))
    assert found.json["status"] == "converged" and found.json["failure"] is None
    assert found.report.epsilon <= 1e-6


def test_infeasible() -> None:
    text = "subject to a: sumsq(w) + w[1] <= 0.1; b: E[z ~ D] (dot(w, z.x) - z.y)^2 <= 0.2; c: w[1] <= 9;"
    data = rows("separable") | {"y": rows("separable")["x"] @ np.ones(3)}
    found = solved(HEAD + "minimize f: sumsq(w);\n" + text, data)
    w = cp.Variable(3)
    missed = cp.sum_squares(data["x"] @ w - data["y"]) / len(data["y"])
    excess = cp.pos(cp.sum_squares(w) + w[0] - 0.1) ** 2 + cp.pos(missed - 0.2) ** 2
    least = cp.Problem(cp.Minimize(excess)).solve(solver=cp.CLARABEL)
    violations = np.maximum(list(found.constraints.values()), 0)
    assert found.json["status"] == "infeasible" and set(found.json["failure"]["conflict"]) == {"a", "b"}
    assert violations @ violations == pytest.approx(least, rel=1e-5)
    assert (
        found.report.verdict.startswith("Infeasible, proved") and found.outcome.solution.failure.nearest > 1e3
    )
    assert found.report.gap is None


def test_a_set_that_a_constraint_conflicts_with_is_named() -> None:
    text = (
        HEAD + "minimize f: E[z ~ D] (dot(w, z.x) - z.y)^2;\nsubject to a: norm1(w) <= 0.1; b: sum(w) >= 1; "
        "c: w[1] <= 9;"
    )
    found = solved(text, rows("numbers"))
    assert set(found.json["failure"]["conflict"]) == {"a", "b"}
    assert found.report.verdict.startswith("Infeasible, proved: every point")
    assert found.outcome.solution.failure.nearest > 1e9  # infinite, or what rounding leaves of it


def test_infeasible_where_constraints_are_not_convex() -> None:
    found = solved(
        "model m; var w[2];\nminimize f: sumsq(w);\nsubject to a: -sumsq(w) <= -1; b: sumsq(w) <= 0.5;"
    )
    assert found.json["status"] == "infeasible_nearby"
    assert found.report.verdict.startswith("Infeasible near this point")


@pytest.mark.parametrize(
    "text",
    [
        "minimize f: sumsq(w) - 3 * w[1]^2;",
        "minimize f: w[1] - 2 * w[2];\nsubject to a: (w[1] - w[2])^2 <= 1;",
    ],
    ids=["objective", "along the constraint"],
)
def test_unbounded(text: str) -> None:
    found = solved("model m; var w[2];\n" + text)
    assert found.json["status"] == "unbounded" and found.report.verdict.startswith("Unbounded")


def test_a_large_multiplier_is_no_failure() -> None:
    found = solved("model m; var w[2];\nminimize f: w[1] - 200 * w[2];\nsubject to a: sumsq(w) <= 1;")
    assert found.json["status"] == "converged"
    assert found.objective == pytest.approx(-np.hypot(1, 200), rel=1e-6)


def test_a_better_point_elsewhere_is_found_before_no_solution_is_attained() -> None:
    """The descent from -1 ends on the ray where the value falls to -1; the minimum is near -4."""
    found = solved("var x start -1; minimize -(1 / (1 + exp(-x))) - 2 * exp(-square(x + 4));", budget="5s")
    assert found.status == "solved" and found.objective == pytest.approx(-2.018025, abs=1e-6)


def test_a_saddle_of_the_violation_is_left() -> None:
    """At 0 the gradient of the violation is zero, and it is curved downwards along (1, 1)."""
    found = solved("var x >= 0; var y; minimize x; subject to c: x * y == 1e6;", budget="5s")
    x, y = (float(found.variables[name]) for name in "xy")
    assert found.status != "infeasible_nearby" and x * y == pytest.approx(1e6, rel=1e-6)


def test_unattained() -> None:
    found = solved(HEAD + LOGISTIC, rows("separable"))
    assert found.json["status"] == "unattained" and "regulariser" in found.report.advice
    assert found.outcome.solution.failure.along[0].startswith("w[")


@pytest.mark.parametrize("algorithm", [{}, {"algorithm": "sox"}])
def test_unattained_where_some_features_separate(algorithm: dict[str, str]) -> None:
    """Three rows of one class alone have a feature, hidden by a rotation: the optimum is finite in all
    directions but one."""
    data = rows("labels", d=4)
    data["x"][:, 3] = 0.0
    data["x"][np.flatnonzero(data["y"] > 0)[:3], 3] = 1.0
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    found = solved(HEAD + LOGISTIC, data | {"x": data["x"] @ rotation}, budget="120s", **algorithm)
    assert found.json["status"] == "unattained"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (HEAD + "minimize f: E[z ~ D] hinge(1 - z.y * dot(w, z.x));", "converged"),
        (HEAD + "minimize f: E[z ~ D] sqhinge(1 - z.y * dot(w, z.x));", "converged"),
        ("var x; minimize (x^2 + 1) / (x - 3);", "stopped"),
        ("var x; minimize 5 + exp(-x);", "unattained"),
        ("var x; minimize x^2;", "converged"),  # at 0, which has no direction
        ("var x >= 0.1; minimize 1 / x;", "unattained"),
        ("var x; var y; minimize log(exp(-x) + exp(-y) + exp(x - 3 * y));", "unbounded"),
    ],
)
def test_what_falls_for_ever_is_told_from_what_comes_to_an_end(text: str, status: str) -> None:
    data = rows("labels")  # apart, but by little
    score = data["x"] @ np.ones(3)
    data = {"x": data["x"][abs(score) > 0.01], "y": np.sign(score[abs(score) > 0.01])}
    assert solved(text, data if "D" in text else None).json["status"] == status


def test_a_conflict_is_named_early() -> None:
    """Where the stochastic part's violation has not fallen, the finish begins with the constraints alone."""
    text = "subject to a: E[z ~ D | z.y == 1] log1pexp(-dot(w, z.x)) <= 0.2;"
    text += " b: E[z ~ D | z.y == -1] log1pexp(dot(w, z.x)) <= 0.2;"
    found = solved(HEAD + "minimize f: sumsq(w);\n" + text, rows("labels"), budget="120s")
    assert found.json["status"] == "infeasible" and set(found.json["failure"]["conflict"]) == {"a", "b"}
    assert found.json["passes"] < 150


def test_a_penalty_too_weak_is_named() -> None:
    """With a penalty fixed below the multiplier the report says so, and what to ask for."""
    text = HEAD + "minimize f: E[z ~ D] (dot(w, z.x) - z.y)^2;\nsubject to c: sum(w) <= 0;"
    bound = fccomodel.compile(text).bind(data={"D": rows("numbers")})
    weak = bound.solve(seed=0, budget="400it", schedule="decay", rho=0.1)
    assert any("`c`: the solver's multiplier is at the penalty's bound" in note for note in weak.report.notes)
    strong = bound.solve(seed=0, budget="120s")
    assert strong.report.constraints["c"].multiplier > 0.2 and not any(
        "penalty's bound" in note for note in strong.report.notes
    )


def test_a_constraint_that_is_projected_on_has_its_multiplier() -> None:
    """Of a norm's bound the report finds the multiplier; the solver, which projects, has none of its own."""
    data = rows("numbers")
    w = cp.Variable(3)
    limit = cp.norm1(w) <= 1
    best = cp.Problem(cp.Minimize(cp.sum(cp.huber(data["x"] @ w - data["y"])) / 400), [limit]).solve(
        solver=cp.CLARABEL
    )
    text = "minimize f: E[z ~ D] huber(dot(w, z.x) - z.y, delta = 1);\nsubject to c: norm1(w) <= 1;"
    found = solved(HEAD + text, data, algorithm="apg")
    assert (
        found.objective == pytest.approx(best, abs=1e-6) and np.abs(found.variables["w"]).sum() <= 1 + 1e-12
    )
    assert found.report.constraints["c"].multiplier == pytest.approx(float(limit.dual_value), rel=1e-3)
    assert found.report.own is None


def test_a_stored_solver_repeats_the_run(tmp_path: Path) -> None:
    found = solved(HEAD + "minimize f: E[z ~ D] abs(dot(w, z.x) - z.y);", rows("numbers"))
    found.save(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["passes"] > 0
    alone = {**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "solver.py", "--out", "w.pt"],
        cwd=tmp_path,
        env=alone,
        check=True,
        capture_output=True,
    )
    again = torch.load(tmp_path / "w.pt", weights_only=True)["w"].numpy()
    assert np.allclose(again, found.variables["w"], atol=1e-9)


def test_no_polish() -> None:
    found = solved(HEAD + "minimize f: E[z ~ D] abs(dot(w, z.x) - z.y);", rows("numbers"), polish=False)
    assert found.json["passes"] == 0 and found.json["status"] == "stopped"


NET = """
model m; dim d; data D : table(x: real[d], y: {-1, 1}, a: {0, 1}); net s : real[d] -> real; var w = params(s);
minimize f: E[z ~ D] log1pexp(-z.y * s(w; z.x));
subject to parity: abs(E[z ~ D | z.a == 0] sigmoid(s(w; z.x)) - E[z ~ D | z.a == 1] sigmoid(s(w; z.x))) <= 0.0001;
"""


def test_constraints_of_a_net_are_restored() -> None:
    data = rows("labels")
    bound = fccomodel.compile(NET).bind(
        data={"D": data | {"a": (data["x"][:, 0] > 0).astype(int)}}, nets={"s": "mlp(8)"}
    )
    program = pipeline.emit(bound.plan())
    solver = loaded(program)
    with torch.no_grad():
        before = solver.solve(solver.SOLVER, dict(program.data), iterations=150, seconds=None)
        after = solver.solve_then_finish(solver.SOLVER, dict(program.data), iterations=150, way="restore")
        again = solver.solve_then_finish(
            solver.SOLVER, dict(program.data), iterations=150, way="restore", passes=after.passes
        )
    assert before.history[-1]["violation"] > 1e-3 and after.history[-1]["violation"] <= 1e-6
    assert after.history[-1]["merit"] <= before.history[-1]["merit"] + 1e-6
    assert torch.equal(after.w, again.w)


def test_steps_of_a_net_that_fall_over_the_budget_are_repeated() -> None:
    """A run that a person cut is the same again by its steps and those of its budget; the last ones of
    a whole run are a hundredth as long as without."""
    data = rows("labels")
    bound = fccomodel.compile(NET).bind(
        data={"D": data | {"a": (data["x"][:, 0] > 0).astype(int)}}, nets={"s": "mlp(8)"}
    )
    program = pipeline.emit(bound.plan())
    solver = loaded(program)
    calls = itertools.count(1)
    with torch.no_grad():
        cut = solver.solve(
            solver.SOLVER, dict(program.data), iterations=300, seconds=None, stop=lambda: next(calls) >= 250
        )
        again = solver.solve(
            solver.SOLVER, dict(program.data), iterations=cut.iterations, planned=cut.planned, seconds=None
        )
    assert 200 < cut.iterations < 300 and cut.planned == 300 and torch.equal(cut.w, again.w)
    h, within = solver.SOLVER.settings(), solver.SOLVER.schedule.within
    h.peak = h.eta
    assert within(h, 1.0, 1.0).eta == pytest.approx(0.01 * within(h, 1.0, 0.0).eta)


@pytest.mark.parametrize(("price", "way"), [(0.001, "finish"), (0.01, "restore")])
def test_passes_finish_a_net_where_they_take_little(price: float, way: str) -> None:
    """A run of 10 s: 400 of them in a quarter of it."""
    data = rows("labels")
    bound = fccomodel.compile(NET).bind(
        data={"D": data | {"a": (data["x"][:, 0] > 0).astype(int)}}, nets={"s": "mlp(8)"}
    )
    program = pipeline.emit(bound.plan())
    solver = loaded(program)
    exact = solver.prepare_full(solver.as_namespace(dict(program.data), "cpu", torch.float64))
    priced = replace(solver.SOLVER, one_pass=lambda *_: price)
    with torch.no_grad():
        last = solver.allotted(priced, exact, "cpu", 10.0, None)
    assert last.way == way and not solver.SOLVER.direct
    assert last.share < 2 if way == "finish" else last.share > 6


NEIGHBOURS = """
dim d; const k = 2; set G;
data D : table(x: real[d], y: G);
var A[k, d];
maximize mean[i in D] (sum[j in D | j.y == i.y and j != i] exp(-sumsq(A @ (i.x - j.x))))
    / (sum[j in D | j != i] exp(-sumsq(A @ (i.x - j.x))));
"""


@pytest.mark.parametrize(
    ("algorithm", "price", "begins"),
    [({}, 0.003, "passes"), ({}, 0.05, "steps"), ({"algorithm": "bsgd"}, 0.003, "steps")],
)
def test_passes_that_cost_little_more_than_steps_come_first(
    algorithm: dict[str, str], price: float, begins: str
) -> None:
    """Of a smooth problem that is not convex, from beside its stationary start A = 0; not where steps
    were asked for."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    data = {"x": np.eye(3)[y] + 0.4 * rng.normal(size=(60, 3)), "y": y}
    program = pipeline.emit(fccomodel.compile(NEIGHBOURS).bind(data={"D": data}).plan(**algorithm))
    solver = loaded(program)
    record = replace(solver.SOLVER, one_pass=lambda *_: price)
    found = solver.solve_then_finish(record, dict(program.data), seconds=20.0, room=200 * price)
    assert (found.iterations == 0) == (begins == "passes") and found.passes > 0
    assert found.history[-1]["objective"] < found.history[0]["objective"] - 0.1


@pytest.mark.parametrize(("look", "share"), [(0.002, 9.94), (0.02, 9.4), (1.0, 7.0)])
def test_steps_have_all_that_restoring_does_not_take(
    monkeypatch: pytest.MonkeyPatch, look: float, share: float
) -> None:
    monkeypatch.setattr(ending, "one_look", lambda *_: look)
    settings = types.SimpleNamespace(annealed=False)
    solver = types.SimpleNamespace(
        finish=None, restore=print, direct=False, nonconvex=False, settings=lambda: settings
    )
    last = ending.allotted(solver, None, "cpu", 10.0, None)
    assert last.way == "restore" and last.share == pytest.approx(share)


def test_least_norm_steps() -> None:
    rng = np.random.default_rng(0)
    J, values, equal = rng.normal(size=(6, 9)), rng.normal(size=6), np.arange(6) < 2
    d = cp.Variable(9)
    cp.Problem(cp.Minimize(cp.sum_squares(d)), [(values + J @ d)[:2] == 0, (values + J @ d)[2:] <= 0]).solve(
        solver=cp.CLARABEL
    )
    found = least_norm(torch.from_numpy(J), torch.from_numpy(values), torch.from_numpy(equal))
    assert np.allclose(found, d.value, atol=1e-6)


@pytest.mark.parametrize(("entries", "count"), [(31, 40), (5, 12), (200, 40)])
def test_many_short_pairs_give_the_direction_of_the_two_loops(entries, count):
    rng = torch.Generator().manual_seed(entries)
    scale = torch.logspace(0, 4, entries, dtype=torch.float64)
    changes = torch.randn(count, entries, generator=rng, dtype=torch.float64)
    pairs = [(s, scale * s, float(s @ (scale * s))) for s in changes]
    residual = torch.randn(entries, generator=rng, dtype=torch.float64)
    slow, fast = direction(pairs, residual, small=0), direction(pairs, residual)
    assert not torch.equal(slow, fast) and torch.allclose(slow, fast, rtol=1e-9, atol=1e-12)


BOUNDED = {
    "a bound on the way": "var x; minimize exp(-x); subject to c: x <= 100;",
    "a far box": "var x[3] >= -1e8, <= 1e8; minimize 0.3 * x[1] + x[2] - x[3];",
    "a far ball": "var x[3] in ball(1e9); minimize x[1] + x[2] - x[3];",
    "a small square": "var x[2]; minimize 1e-8 * sumsq(x) + x[1] - x[2];",
}


@pytest.mark.parametrize("text", BOUNDED.values(), ids=BOUNDED)
def test_what_is_bounded_is_not_said_to_fall_for_ever(text: str) -> None:
    found = solved(text)
    assert found.json["status"] in ("converged", "stopped") and found.json["failure"] is None


def test_a_fall_is_proved_by_a_ray_or_said_not_to_be() -> None:
    proved = solved("var x; var y; minimize x - 2 * y; subject to c: x + y >= 1; d: x >= -3;").report.verdict
    seen = solved("var x; minimize x^3;").report.verdict
    assert proved.startswith("Unbounded, proved") and seen.startswith(
        "Unbounded as far as was seen, not proved"
    )


def test_a_step_that_rounds_to_zero_proves_nothing() -> None:
    """At w = 1e11 a gradient of 1e-11 moves nothing, and feasible points are at 1e13."""
    found = solved(
        "var x; var y; minimize x^2 + y^2; subject to c: log(x) + 0.5 * sqrt(y) >= 30; d: y <= 1;",
        budget="3s",
    )
    assert not found.report.verdict.startswith("Infeasible")
    assert found.outcome.solution.failure is None or found.outcome.solution.failure.radius < 6e12


def test_an_equation_that_is_not_affine_conflicts_by_its_convex_side() -> None:
    found = solved("var x; var y; minimize x; subject to c: x^2 + y^2 == 1; d: x + y == 3;")
    assert found.json["status"] == "infeasible" and found.report.verdict.startswith("Infeasible, proved")


@pytest.mark.parametrize("size", [np.inf, np.nan, 1e300])
def test_a_step_along_an_infinite_gradient_ends(size: float) -> None:
    """The slope of a root is infinite at 0, where a projection keeps every move at full length."""

    def inside(x: torch.Tensor, step: float) -> float:
        x.clamp_(-1, 1)
        return 0.0

    w = torch.zeros(2, dtype=torch.float64)
    gradient = torch.tensor([size, 1.0], dtype=torch.float64)
    assert forward_backward(lambda x: (0.5, gradient), inside, w, 1.0).step > 0


@pytest.mark.parametrize("missing", ["value", "gradient"])
def test_a_descent_ends_at_its_best_point_where_the_function_is_no_number(missing: str) -> None:
    """(x - 2)^2 beside a nuclear norm, which has no number from 1 on: no step goes there."""
    seen = []

    def at(w: torch.Tensor) -> tuple[float, torch.Tensor]:
        value, gradient = float((w - 2).square().sum()), 2 * (w - 2)
        beyond = bool((w >= 1).any())
        if beyond and missing == "value":
            value = np.nan
        if beyond:
            gradient = gradient * np.nan
        seen.append(w)
        return value, gradient

    def thresholded(x: torch.Tensor, step: float) -> float:
        x.copy_(prox_nuclear(x.view(2, 2), step, 0.1).flatten())
        return 0.1 * float(x.view(2, 2).norm("nuc"))

    start = torch.full((4,), 0.5, dtype=torch.float64)
    w, residual, _ = panoc(at, thresholded, start, 0.3, 1e-9, lambda: len(seen) > 300)
    assert 0.5 < float(w.min()) and float(w.max()) < 1 and residual > 1e-9
    blind = panoc(at, thresholded, torch.ones(4, dtype=torch.float64), 0.3, 1e-9, lambda: False)
    assert torch.allclose(blind[0], torch.ones(4, dtype=torch.float64)) and blind[1] == np.inf


def test_no_way_is_looked_along_from_a_point_beyond_double_precision() -> None:
    """Entries of 1e200, whose length overflows, as where a column holds numbers near 1e-200."""
    full = types.SimpleNamespace(solver=None, data=None, h=None, tol=1e-6)
    far = torch.full((2,), 1e200, dtype=torch.float64)
    assert failure.falls_for_ever(full, far, torch.ones(2, dtype=torch.float64)) is None
