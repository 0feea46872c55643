"""Solves that begin at an answer or at given values."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel import pipeline
from fccomodel.app.python import session
from fccomodel.core.diagnostics import FccoError

TEXT = """
dim d;
set G;
data D : table(x: real[d], y: {-1, 1}, g: G);
param tau >= 0 default 0.3;
var w[d];
minimize risk: E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.05 * sumsq(w);
subject to
  group[k in G]: E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)) <= tau + 0.15;
"""


def rows(n: int = 120) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    g = np.where(np.arange(n) % 3 == 0, "a", "b")
    y = np.where(x @ [1.0, -1.0, 0.5] * np.where(g == "a", 0.5, 1.5) + 0.8 * rng.normal(size=n) > 0, 1, -1)
    return {"x": x, "y": y, "g": g}


@pytest.fixture(scope="module")
def problem():
    return fc.compile(TEXT).bind(D=rows())


@pytest.fixture(scope="module")
def answer(problem):
    return problem.solve()


def test_from_its_own_answer_a_solve_costs_a_report(problem, answer):
    again = problem.solve(start=answer)
    solution = again.outcome.solution
    assert (solution.iterations, solution.passes, again.outcome.status) == (0, 0, "converged")
    assert again.report.solved and np.array_equal(again.variables["w"], answer.variables["w"])
    assert "began at the answer" in str(again) and again.json["iterations"] == 0


def test_an_answer_starts_another_value_of_a_param(problem, answer):
    other = problem.with_params(tau=0.29)
    warm, cold = other.solve(start=answer), other.solve()
    assert warm.outcome.solution.iterations == 0 < cold.outcome.solution.iterations
    assert warm.report.solved and warm.objective == pytest.approx(cold.objective, rel=1e-5)
    again = other.solve(start=answer)
    assert np.array_equal(again.variables["w"], warm.variables["w"])
    assert 'INITIAL["net_0_c_' in warm.solver.replace("'", '"') and "kept: bool = True" in warm.solver


def test_an_answer_of_a_model_like_it(problem, answer):
    """Of a model with one constraint less: the multipliers of the others, by label."""
    fewer = fc.compile(problem.compiled.source.text.replace("group[k in G]", 'group[k in G | k == "a"]'))
    started = fewer.bind(D=rows()).solve(start=answer)
    assert started.report.solved and started.outcome.solution.iterations == 0


def test_a_stored_answer(problem, answer, tmp_path):
    answer.save(tmp_path / "out")
    again = problem.solve(start=tmp_path / "out")
    assert again.outcome.solution.passes == 0 and again.report.solved


def test_values_by_name(problem):
    w0 = np.array([0.3, -0.2, 0.1])
    found = problem.solve(start={"w": w0}, budget="1it", polish=False)
    assert found.outcome.planned.plan.start.values["w"].tolist() == w0.tolist()
    assert problem.solve(start={"w": [0.3, -0.2, 0.1]}).report.solved


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"v": 1.0}, "`v`, which is no variable"),
        ({"w": [1.0, 2.0]}, "shape (2,), and the model asks for (3,)"),
        ({"w": [1.0, np.nan, 0.0]}, "not finite"),
        ({"w": ["a", "b", "c"]}, "no array of numbers"),
        ({"w": {"a": 1.0}}, "no array of numbers"),
    ],
)
def test_starts_that_do_not_fit(problem, start, message):
    with pytest.raises(FccoError, match="F0712") as error:
        problem.solve(start=start)
    assert message in str(error.value)


def test_what_is_no_start(problem):
    with pytest.raises(FccoError, match="F0805"):
        problem.solve(start=3)


def test_a_model_edited_by_label(problem, answer):
    """A constraint more, the objective again, a constraint less: the multipliers of the others are
    kept for a start."""
    m = fc.Model.parse(problem.compiled.source.text)
    m.subject_to(size=fc.sumsq(m.w) <= 9)
    m.minimize(risk=fc.E(fc.log1pexp(-z.y * fc.dot(m.w, z.x)) for z in m.D) + 0.05 * fc.sumsq(m.w))
    assert [*m.constraints] == ["group", "size"] and str(m).count("minimize") == 1
    more = m.bind(D=rows()).solve(start=answer)
    assert more.report.solved and more.outcome.solution.iterations == 0
    assert more.outcome.planned.plan.start.multipliers == answer.outcome.solution.multipliers
    del m.constraints["group"]
    fewer = m.bind(D=rows()).solve(start=more)
    assert fewer.report.solved and [*fewer.constraints] == ["size"] and fewer.objective < more.objective


def test_what_did_not_change_is_not_planned_again(problem, monkeypatch):
    """A second solve takes the first one's plan; other options and other values have plans of their
    own; as many are kept."""
    made = []
    plan = pipeline.plan
    monkeypatch.setattr(pipeline, "plan", lambda *args, **more: made.append(1) or plan(*args, **more))
    fresh = problem.with_params(tau=0.31)
    first, second = fresh.plan(seed=0), fresh.plan(seed=0)
    assert second.plan is first.plan and len(made) == 1
    for seed in range(1, 2 * session.PLANS):
        assert fresh.plan(seed=seed).options["seed"][0] == seed
    assert (
        len(fresh._plans) <= session.PLANS and fresh.with_params(tau=0.3).plan(seed=0).plan is not first.plan
    )


# ------------------------------------------------------------------------------------------- networks
NET = """
model m; dim d;
data D : table(x: real[d], y: {0, 1});
set P = {z in D | z.y == 1};
set N = {z in D | z.y == 0};
net s : real[d] -> real;
var w = params(s);
minimize auc: E[p ~ P] log(E[n ~ N] exp(square(max(1 - (s(w; p.x) - s(w; n.x)), 0))));
subject to rate: E[p ~ P] sigmoid(-s(w; p.x)) <= 0.2;
"""


def scorer():
    """The model with a small network, on rows that a product of two columns tells apart."""
    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0.5).astype(int)
    layers = torch.nn.Linear(4, 8), torch.nn.ELU(), torch.nn.Linear(8, 1), torch.nn.Flatten(-2)
    return fc.compile(NET).bind(D={"x": x, "y": y}, nets={"s": torch.nn.Sequential(*layers)})


def test_a_run_of_a_net_goes_on_where_another_ended():
    """Moments, rates and the length of stages are those that the first run ended with."""
    made = scorer()
    how = {"unverified": True, "polish": False}
    first = made.solve(budget="60it", seed=0, **how)
    kept = first.outcome.solution.kept
    assert np.abs(kept.moments["v"]).max() > 0
    assert kept.moments["s"].min() >= 0
    again = made.solve(budget="60it", seed=1, start=first, **how)
    program = again.outcome.program
    assert np.array_equal(program.data["net_0_v"].numpy(), kept.moments["v"])
    assert f"stage: int = {int(kept.settings['stage'])}" in program.text
    assert again.objective < first.objective


def test_a_rate_that_somebody_gives_is_taken():
    made = scorer()
    how = {"unverified": True, "polish": False, "budget": "20it"}
    again = made.solve(**how, start=made.solve(**how), eta=0.001)
    assert "eta: float = 0.001" in again.outcome.program.text
