"""Solves along values of params: tables, slopes, paths of regularisers, Ctrl-C."""

from __future__ import annotations

import csv
import itertools
import json
import math

import numpy as np
import pytest

import fccomodel as fc
from fccomodel import conic, pipeline
from fccomodel.app import cli, new_rows
from fccomodel.core.diagnostics import FccoError
from fccomodel.execution.run import loading
from fccomodel.plan import choice, ranking

BOUNDED = """
model bounded;
dim d;
data D : table(x: real[d], y: real);
param tau >= 0 default 1;
param mu >= 0 default 0.1;
var w[d];
minimize loss: E[z ~ D] (dot(w, z.x) - z.y)^2 + mu * sumsq(w);
subject to
  size: w[1]^2 + 2 * w[2]^2 <= tau;
"""
LASSO = """
dim d;
data D : table(x: real[d], y: real);
param lam >= 0 default 0.3;
var w[d];
minimize loss: E[z ~ D] (dot(w, z.x) - z.y)^2 / 2 + lam * norm1(w);
"""
INTERCEPT = LASSO.replace("var w[d];", "var w[d];\nvar b;").replace("dot(w, z.x)", "dot(w, z.x) + b")
GROUPS = LASSO.replace("norm1(w)", "group_norm(w, 2)")
SPARSE_GROUPS = LASSO.replace("lam * norm1(w)", "0.1 * norm1(w) + lam * group_norm(w, 2)")


def data(n: int = 60, d: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, d))
    return {"x": x, "y": x @ [1.5, -1.0, 0.0, 0.3][:d] + 0.7 + 0.2 * rng.normal(size=n)}


@pytest.fixture(scope="module")
def problem():
    return fc.compile(BOUNDED).bind(D=data())


@pytest.fixture(scope="module")
def sweep(problem):
    return problem.sweep(tau=[0.5, 0.6, 0.8, 1.0])


def test_slopes_are_the_multipliers_and_the_differences_of_the_optimal_values(problem, sweep):
    assert [row["status"] for row in sweep.rows] == ["converged"] * 4
    for row in sweep.rows:
        assert row["slope tau"] == pytest.approx(-row["multiplier size"], rel=1e-6)
    step = 1e-3
    near = problem.sweep(tau=[0.8 - step, 0.8 + step], tol=1e-9).objectives
    assert sweep.rows[2]["slope tau"] == pytest.approx((near[1] - near[0]) / (2 * step), rel=1e-3)


def test_each_solve_begins_at_the_one_before(sweep, problem):
    first, *others = (result.outcome.solution for result in sweep)
    assert first.iterations > 0 == sum(solution.iterations for solution in others)
    cold = problem.with_params(tau=1.0).solve()
    assert sweep[-1].objective == pytest.approx(cold.objective, rel=1e-6)


def test_a_point_of_a_sweep_redoes_little(problem, monkeypatch):
    """One algorithm is chosen, the programs' common parts are compiled once, the finish goes on with
    the step and the curvature that it had, at most one conic form is made."""
    ranked, compiled, found, forms = [], [], [], []
    monkeypatch.setattr(conic, "of", lambda *args, made=conic.of: forms.append(1) or made(*args))
    monkeypatch.setattr(choice, "rank", lambda *args: ranked.append(1) or ranking.rank(*args))
    begun = pipeline.plan

    def counted(*args, **more):
        compiled.append(loading._compiled_alone.cache_info().misses)
        return begun(*args, **more)

    monkeypatch.setattr(pipeline, "plan", counted)
    for result in problem.sweep(tau=[0.55, 0.65, 0.75, 0.85, 0.95]):
        found.append(result.outcome.solution)
    assert len(ranked) == 1
    assert all(after - before <= 5 for before, after in itertools.pairwise(compiled[2:])), (
        "the second's program resumes"
    )
    assert all(solution.kept.settings["pass_step"] > 0 for solution in found)
    assert sum(solution.passes for solution in found) < 230, (
        "188; 266 without the curvature and the curve, 459 without the step"
    )
    assert len(forms) <= 1, "only the first value may go to the interior-point method"


#: By a param: the rows, the members of a family, a variable's set, the curvature of the objective.
TURNING = """
dim d;
data D : table(x: real[d], y: real);
param t default 0;
param r >= 0 default 1;
param c default 1;
var w[d] in ball(r);
minimize loss: E[z ~ D | z.y > t] (dot(w, z.x) - z.y)^2 + c * sumsq(w);
subject to
  low[k in {1, 2, 3} | k > 2 * t]: w[1] <= 0.4 + k / 10;
"""


@pytest.mark.parametrize(
    ("name", "listed"),
    [("t", [0.0, 0.6]), ("r", [0.3, 2.0]), ("c", [1.0, -4.0])],
    ids=["rows and members", "set", "curvature"],
)
def test_values_that_change_what_is_known(name, listed):
    """What is found for one value is not taken for another: each answer is that of a solve by itself."""
    rows = data()
    sweep = fc.compile(TURNING).bind(D=rows).sweep(**{name: listed})
    for value, result in zip(listed, sweep, strict=True):
        own = fc.compile(TURNING).bind(D=rows, params={name: value}).solve()
        assert result.objective == pytest.approx(own.objective, rel=2e-6, abs=1e-7)
        assert result.outcome.planned.analysis.convex == own.outcome.planned.analysis.convex
        assert len(result.constraints) == len(own.constraints) and result.report.epsilon < 1e-5
    convex = [result.outcome.planned.analysis.convex for result in sweep]
    assert convex == [name != "c" or value >= 0 for value in listed]


def test_a_grid_in_order_and_its_slope_by_another_param(problem):
    grid = problem.sweep(tau=[0.5, 1.0], mu=[0.1, 0.2])
    assert [(row["tau"], row["mu"]) for row in grid.rows] == [(0.5, 0.1), (0.5, 0.2), (1.0, 0.1), (1.0, 0.2)]
    for row, result in zip(grid.rows, grid, strict=True):
        assert row["slope mu"] == pytest.approx(
            float(result.variables["w"] @ result.variables["w"]), rel=1e-5
        )


def test_tables_and_files(sweep, tmp_path):
    assert "slope" in str(sweep) and "<pre" in sweep._repr_html_() and len(sweep) == 4
    assert all(len(line) <= 80 for line in str(sweep).splitlines())
    assert sweep.to_pandas()["tau"].tolist() == [0.5, 0.6, 0.8, 1.0]
    folder = sweep.save(tmp_path / "out")
    assert fc.load(folder / "2").record["objective"] == sweep.rows[1]["objective"]
    assert json.loads((folder / "sweep.json").read_text())["params"] == ["tau"]
    assert len(list(csv.DictReader((folder / "sweep.csv").read_text().splitlines()))) == 4


def test_the_picture(sweep):
    pytest.importorskip("matplotlib")
    axes = sweep.plot().axes[0]
    curve, *tangents = axes.lines
    assert curve.get_xdata().tolist() == sweep.values("tau") and len(tangents) == 4
    x, y = tangents[1].get_data()
    assert (y[1] - y[0]) / (x[1] - x[0]) == pytest.approx(sweep.rows[1]["slope tau"])
    with pytest.raises(FccoError, match="F0805"):
        sweep.plot("mu")


def test_ctrl_c_keeps_what_is_done(problem, monkeypatch):
    solve, calls = new_rows.solve, []

    def interrupted(*args, **more):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return solve(*args, **more)

    monkeypatch.setattr(new_rows, "solve", interrupted)
    kept = problem.sweep(tau=[0.5, 0.6, 0.7, 0.8])
    assert (len(kept), kept.count, kept.interrupted) == (2, 4, True) and "Interrupted" in str(kept)


def test_what_cannot_be_swept(problem):
    for given, code in [({}, "F0805"), ({"tau": []}, "F0805"), ({"tau": [1.0, -1.0]}, "F0520")]:
        with pytest.raises(FccoError, match=code):
            problem.sweep(**given)


# -------------------------------------------------------------------------------------------- paths
def test_a_path_is_that_of_scikit_learn():
    linear = pytest.importorskip("sklearn.linear_model")
    rows = data()
    path = fc.compile(LASSO).bind(D=rows).path(count=6, ratio=0.05)
    alphas, coefficients, _ = linear.lasso_path(
        rows["x"], rows["y"], alphas=np.array(path.values("lam")), tol=1e-10
    )
    assert path.values("lam")[0] == pytest.approx(
        np.abs(rows["x"].T @ rows["y"]).max() / len(rows["y"]), rel=1e-8
    )
    for result, expected in zip(path, coefficients.T, strict=True):
        assert result.variables["w"] == pytest.approx(expected, abs=2e-5)
    assert not path[0].variables["w"].any() and path[1].variables["w"].any()


@pytest.mark.parametrize(
    ("text", "least"),
    [
        (INTERCEPT, lambda g: np.abs(g).max()),
        (GROUPS, lambda g: np.linalg.norm(g.reshape(-1, 2), axis=1).max()),
        (
            SPARSE_GROUPS,
            lambda g: np.linalg.norm(
                (np.sign(g) * np.maximum(np.abs(g) - 0.1, 0)).reshape(-1, 2), axis=1
            ).max(),
        ),
    ],
)
def test_where_zero_is_optimal(text, least):
    rows = data()
    y = rows["y"] - rows["y"].mean() if text is INTERCEPT else rows["y"]
    found = fc.compile(text).bind(D=rows).path("lam", count=1)
    assert found.values("lam") == pytest.approx([least(rows["x"].T @ y / len(y))], rel=1e-5)
    assert np.abs(found[0].variables["w"]).max() < 1e-6 and math.isfinite(found.objectives[0])


def test_paths_that_cannot_be(problem):
    ridge = fc.compile(LASSO.replace("norm1", "sumsq")).bind(D=data())
    for bound, given in [(ridge, {}), (problem, {"param": "tau"}), (problem, {"count": 0})]:
        with pytest.raises(FccoError, match="F0805"):
            bound.path(**given)


# --------------------------------------------------------------------------------- the command line
def test_the_commands(tmp_path, capsys):
    (tmp_path / "m.fcco").write_text(
        "param a >= 0 default 1;\nvar x;\nminimize f: (x - a)^2;\nsubject to c: x <= 0.5;\n"
    )
    model, out = str(tmp_path / "m.fcco"), str(tmp_path / "out")
    assert cli.main(["sweep", model, "--param", "a=1,2", "--json", "-q", "--out", out]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["slope a"] for row in rows] == pytest.approx([1.0, 3.0], abs=1e-4)
    assert cli.main(["solve", model, "--param", "a=2", "--start", f"{out}/2", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["iterations"] == 0
    assert cli.main(["sweep", model, "--param", "a=1"]) == 2 and "F0805" in capsys.readouterr().err


def test_the_table_keeps_its_numbers_whole(problem, sweep):
    shown = str(sweep).splitlines()
    assert any(line.split()[:2] == ["0.5", f"{sweep.rows[0]['objective']:.6g}"] for line in shown)
    names = ["tau", "objective", "slope", "violation", "size", "steps"]
    assert [line.split() for line in shown if "objective" in line] == [names]


def test_a_sweep_over_nothing_names_the_params(problem):
    with pytest.raises(FccoError, match="params are `tau`, `mu`"):
        problem.sweep(taus=[0.5, 0.6])
