"""From a DataFrame to predictions for new rows, in Python alone; and everything on the way can be
kept, copied and sent."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fccomodel as fc
from fccomodel import E, dot, log1pexp, real, sumsq

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def frame() -> Any:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.normal(50, 10, 120), "dose": rng.normal(3, 1, 120), "ward": rng.choice(["a", "b"], 120)}
    )
    table["ill"] = (table.age / 10 + table.dose + rng.normal(size=120) > 8).map({True: "yes", False: "no"})
    return table


@pytest.fixture(scope="module")
def problem(frame: Any) -> fc.BoundModel:
    m = fc.Model("recall")
    m.d = fc.dim()
    m.G = fc.labels()
    m.D = fc.table(x=real[m.d], y={0, 1}, g=m.G)
    m.tau = fc.param(ge=0, default=0.6)
    m.w = fc.var(m.d)
    D, w = m.D, m.w

    @m.define
    def score(x: Any) -> Any:
        return dot(w, x)

    m.minimize(alarms=E(log1pexp(score(z.x)) for z in D.where(D.y == 0)) + 0.01 * sumsq(w))
    m.subject_to(
        missed=(E(log1pexp(-score(z.x)) for z in D.where((D.y == 1) & (D.g == k))) <= m.tau for k in m.G)
    )
    features = {"columns": ["age", "dose"], "scale": "standard", "intercept": True}
    columns = {"x": features, "y": {"column": "ill", "map": {"no": 0, "yes": 1}}, "g": "ward"}
    return m.bind(D=frame, spec={"D": columns})


@pytest.fixture(scope="module")
def result(problem: fc.BoundModel) -> fc.Result:
    return problem.solve(seed=0, budget="2000it")


def test_solve_plot_report_predict(result: fc.Result, frame: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    assert "missed[a]" in str(result) and result.report.solved
    assert list(result.multipliers["missed"].coords) == ["k"] and result.multipliers["missed"].sel(k="a") >= 0
    assert result.variables["w"].sel(d="age") > 0 > result.variables["w"].sel(d="intercept")
    result.plot().savefig(tmp_path / "run.png")
    assert "missed" in result.html() and (tmp_path / "run.png").stat().st_size > 0
    new = pd.DataFrame({"dose": [1.0, 6.0], "age": [30.0, 80.0]})  # columns in another order, no labels
    assert list(result.predict(new)) == ["no", "yes"]
    again = fc.load(result.save(tmp_path / "out"))
    assert np.array_equal(again.decision_function(new), result.decision_function(new))
    assert (again.predict(frame) == frame.ill).mean() > 0.7


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_everything_travels(
    again: Any, problem: fc.BoundModel, result: fc.Result, frame: Any, tmp_path: Path
) -> None:
    stored = fc.load(result.save(tmp_path / "out"))
    rows = frame[["age", "dose"]][:5]
    for answer in (result, stored):
        assert np.array_equal(again(answer).decision_function(rows), result.decision_function(rows))
    assert (
        again(problem).solve(seed=0, budget="20it").objective
        == problem.solve(seed=0, budget="20it").objective
    )
    assert again(result.history).to_pandas().equals(result.history.to_pandas())
    compared = fc.compare(problem, algorithms=["sonex"], seeds=1, budget="1000oracles")
    assert str(again(compared)) == str(compared)
