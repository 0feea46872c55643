"""Values of lets and of the problem at a point, against NumPy; the words of an evaluation."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fccomodel
from fccomodel.app import cli
from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation.values import lets, level, values

MODEL = """model ranking;
dim d;
set G = {"a", "b"};
data D : table(x: real[d], y: {0, 1}, g: G);
var w[d] in box(-5, 5);
let wrong[k in G] = prob[z ~ D | z.g == k] ((2 * z.y - 1) * dot(w, z.x) <= 0);
let worst = max[k in G] wrong[k];
let auc = prob[p ~ D, n ~ D | p.y == 1 and n.y == 0] (dot(w, p.x) > dot(w, n.x));
let centre = E[z ~ D] z.x;
maximize spread: -(E[z ~ D] log1pexp((1 - 2 * z.y) * dot(w, z.x)));
subject to
  level[k in G]: E[z ~ D | z.g == k] dot(w, z.x) <= 0.1;
  length: sumsq(w) == 1;
"""


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    return {
        "x": x,
        "y": (x[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int),
        "g": np.where(np.arange(60) % 3, "a", "b"),
    }


@pytest.fixture(scope="module")
def problem(data):
    return fccomodel.compile(MODEL).bind(D=data)


def test_lets_are_what_their_formulas_say(problem, data):
    w = np.array([0.8, -0.3])
    scores, y, g = data["x"] @ w, data["y"], data["g"]
    wrong = {f"wrong[{k}]": float(np.mean(((2 * y - 1) * scores <= 0)[g == k])) for k in "ab"}
    found = values(
        problem.bound, {"w": w}, lets(problem.compiled.problem, ["wrong", "worst", "auc", "centre"])
    )
    assert found["wrong"] == pytest.approx(wrong) and found["worst"] == pytest.approx(max(wrong.values()))
    assert found["auc"] == pytest.approx(np.mean(scores[y == 1][:, None] > scores[y == 0]))
    assert found["centre"] == pytest.approx(data["x"].mean(0))


def test_objective_and_constraints(problem, data):
    w = np.array([0.8, -0.3])
    scores = data["x"] @ w
    found = level(problem.bound, {"w": w})
    expected = {f"level[{k}]": scores[data["g"] == k].mean() - 0.1 for k in "ab"} | {"length": w @ w - 1}
    assert found.objective == pytest.approx(-np.logaddexp(0, (1 - 2 * data["y"]) * scores).mean())
    assert found.constraints == pytest.approx(expected)
    assert found.violation == pytest.approx(
        max(expected["level[a]"], expected["level[b]"], abs(expected["length"]))
    )


def test_a_name_that_is_no_let(problem):
    with pytest.raises(FccoError, match="Did you mean `auc`"):
        problem.solve(show=["auk"], budget="10it")


def test_solve_and_evaluate_show_them(problem, data, tmp_path, capsys):
    result = problem.solve(show=["auc", "wrong"], budget="60it")
    assert result.values.keys() == {"auc", "wrong"} and "wrong[b]" in str(result)
    assert [entry["objective"] for entry in result.history][-1] < 0  # the model's sense
    result.save(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["values"] == result.values
    half = {name: column[:30] for name, column in data.items()}
    found = fccomodel.evaluate(tmp_path, D=half, show=["auc"])
    scores = half["x"] @ result.variables["w"]
    assert found.shown["auc"] == pytest.approx(
        np.mean(scores[half["y"] == 1][:, None] > scores[half["y"] == 0])
    )
    assert (
        found.report.verdict.startswith("On these rows: an ε-KKT point")
        and "run longer" not in found.report.verdict
    )
    np.savez(tmp_path / "half.npz", **half)
    assert (
        cli.main(
            ["evaluate", str(tmp_path), "--data", f"D={tmp_path / 'half.npz'}", "--show", "auc", "--json"]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["values"] == pytest.approx({"auc": found.shown["auc"]})


def test_a_let_that_is_shown_is_not_called_unused(data, tmp_path, capsys):
    (tmp_path / "m.fcco").write_text(MODEL)
    np.savez(tmp_path / "d.npz", **data)
    arguments = ["solve", str(tmp_path / "m.fcco"), "--data", f"D={tmp_path / 'd.npz'}", "--budget", "5it"]
    assert cli.main([*arguments, "--show", "auc"]) == 0
    told = capsys.readouterr().err
    assert "`centre` is a `let`" in told and "`auc` is a `let`" not in told
