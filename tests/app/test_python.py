"""The interface for Python."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import fccomodel
from fccomodel import algorithms

RIDGE = """
model ridge;
dim d;
data D : table(x: real[d], y: real);
param mu >= 0 default 0.1;
var w[d];
minimize loss: E[z ~ D] (dot(w, z.x) - z.y)^2 + mu * sumsq(w);
"""


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3))
    return {"x": x, "y": x @ [1.0, -2.0, 0.5] + 0.1 * random.normal(size=200)}


@pytest.fixture(scope="module")
def model() -> fccomodel.CompiledModel:
    return fccomodel.compile(RIDGE)


@pytest.fixture(scope="module")
def result(model, data) -> fccomodel.Result:
    return model.bind(D=data).solve(seed=0, budget="3000it")


def exact(data, mu=0.1) -> np.ndarray:
    x, y = data["x"], data["y"]
    return np.linalg.solve(x.T @ x / len(y) + mu * np.eye(x.shape[1]), x.T @ y / len(y))


def test_everything_is_exported():
    for name in fccomodel.__all__:
        assert hasattr(fccomodel, name) and name in dir(fccomodel)
    with pytest.raises(AttributeError):
        fccomodel.nothing  # noqa: B018


def test_a_compiled_model(model):
    assert (model.name, repr(model), model.warnings) == ("ridge", "<CompiledModel ridge>", ())
    assert model.explain().json["objective"]["curvature"] == "convex"


def test_errors_are_raised_together():
    with pytest.raises(fccomodel.FccoError) as error:
        fccomodel.compile("model m; dim d; var w[d]; minimize sumsq(v) + nope(w);")
    assert len(error.value.diagnostics) == 2
    assert all(isinstance(d, fccomodel.Diagnostic) for d in error.value.diagnostics)


def test_the_hash_is_of_the_mathematics(model):
    assert (
        fccomodel.compile("# a comment\n" + RIDGE.replace("; ", ";\n") + "options { seed = 4; }").hash
        == model.hash
    )
    assert fccomodel.compile(RIDGE.replace("0.1", "0.2")).hash != model.hash


def test_an_included_file_is_part_of_the_model(tmp_path, model):
    head, tail = RIDGE.split("param")
    (tmp_path / "data.fcco").write_text(head.replace("model ridge;", "# its data"))
    (tmp_path / "ridge.fcco").write_text(f'model ridge;\ninclude "data.fcco";\nparam{tail}')
    joined = fccomodel.compile(tmp_path / "ridge.fcco").compiled
    assert joined.hash == model.hash
    again = fccomodel.compile(joined.text).compiled
    assert again.hash == model.hash and "include" not in joined.text


def test_the_answer_is_the_known_one(result, data):
    assert np.allclose(result.variables["w"], exact(data), atol=5e-3)
    residual = data["x"] @ result.variables["w"] - data["y"]
    assert result.objective == pytest.approx(
        (residual**2).mean() + 0.1 * (result.variables["w"] ** 2).sum(), rel=1e-9
    )
    assert result.constraints == {} and result.report.epsilon < 0.05


def test_a_result_prints_its_report(result):
    text = str(result)
    assert "ridge" in text and "stationarity" in text and max(map(len, text.splitlines())) <= 80
    assert repr(result).startswith("<Result ridge: objective 0.")
    assert algorithms.all()[result.algorithm].title in text and result.options["seed"] == (
        0,
        "keyword argument",
    )
    assert "import torch" in result.solver and result.history


def test_json_is_json(result):
    assert json.loads(json.dumps(result.json, allow_nan=False))["model"] == "ridge"


@pytest.mark.parametrize("kind", ["frame", "tensors", "npz", "csv"])
def test_tables_of_every_kind_give_the_same_problem(kind, model, data, result, tmp_path):
    import pandas as pd

    if kind == "frame":
        table = pd.DataFrame({"x": list(data["x"]), "y": data["y"]})
    elif kind == "tensors":
        table = {name: torch.as_tensor(values) for name, values in data.items()}
    elif kind == "npz":
        table = tmp_path / "d.npz"
        np.savez(table, **data)
    else:
        table = tmp_path / "d.csv"
        pd.DataFrame({f"x{k}": data["x"][:, k] for k in range(3)} | {"y": data["y"]}).to_csv(
            table, index=False
        )
        again = model.bind(
            spec={"D": {"source": str(table), "x": {"columns": ["x0", "x1", "x2"]}, "y": {"column": "y"}}}
        )
        assert again.solve(seed=0, budget="3000it").objective == pytest.approx(result.objective, rel=1e-6)
        return
    again = model.bind(D=table).solve(seed=0, budget="3000it")
    assert again.objective == pytest.approx(result.objective, rel=1e-6)


def test_parameters_change_without_compiling(model, data):
    found = model.bind(D=data, params={"mu": 1.0}).solve(seed=0, budget="3000it")
    assert np.allclose(found.variables["w"], exact(data, 1.0), atol=5e-3)


def test_saved_and_judged_on_other_rows(result, data, tmp_path):
    result.save(tmp_path / "out")
    stored = fccomodel.load(tmp_path / "out")
    assert np.array_equal(stored.variables["w"], result.variables["w"])
    few = {name: values[:50] for name, values in data.items()}
    found = fccomodel.evaluate(stored, D=few)
    residual = few["x"] @ stored.variables["w"] - few["y"]
    assert found.report.objective == pytest.approx(
        (residual**2).mean() + 0.1 * (stored.variables["w"] ** 2).sum(), rel=1e-9
    )
    with pytest.raises(fccomodel.FccoError):
        fccomodel.evaluate(stored)  # the arrays lived in Python alone
    with pytest.raises(fccomodel.FccoError):
        fccomodel.evaluate(stored, D={"x": np.zeros((5, 4)), "y": np.zeros(5)})


def test_emitted_text(model, data, tmp_path):
    problem = model.bind(D=data)
    text = problem.emit(tmp_path / "solver.py")
    assert (tmp_path / "solver.py").read_text() == text and (tmp_path / "data.pt").exists()


def test_progress_is_called(model, data):
    seen = []
    model.bind(D=data).solve(seed=0, budget="2000it", progress=seen.append)
    assert seen and seen[-1].iteration <= 2000 and np.isfinite(seen[-1].objective)


def test_a_net_and_its_scores(tmp_path):
    random = np.random.default_rng(1)
    table = {"x": random.normal(size=(60, 2)), "y": random.normal(size=60)}
    text = """
    model fit;
    dim d;
    data D : table(x: real[d], y: real);
    net s : real[d] -> real;
    var w = params(s);
    minimize loss: E[z ~ D] (s(w; z.x) - z.y)^2;
    """
    module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ELU(), torch.nn.Linear(4, 1))
    result = fccomodel.compile(text).bind(D=table, nets={"s": module}).solve(seed=0, budget="300it")
    assert result.variables["w"].shape == (17,)
    result.save(tmp_path)
    record = json.loads((tmp_path / "result.json").read_text())
    scores = np.load(tmp_path / record["scores_file"])["s"].ravel()
    assert record["objective"] == pytest.approx(((scores - table["y"]) ** 2).mean(), rel=1e-9)


# ------------------------------------------------------------------------ owned, and sent elsewhere
SENT = """dim d; data D : table(x: real[d], y: real); param a[d] default 1; var w[d];
  minimize E[z ~ D] (dot(w, z.x) - z.y)^2 + 0.1 * norm1(w) s.t. c: cvar(tail = 0.1)[z ~ D] abs(dot(w, z.x)) <= 2;"""


def sent() -> tuple[dict, fccomodel.BoundModel]:
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=(60, 2)), "y": np.ones(60)}
    return table, fccomodel.compile(SENT).bind(D=table, params={"a": np.ones(2)})


def test_what_is_bound_is_owned():
    table, bound = sent()
    before = bound.solve(budget="50it").objective
    table["x"][:] = 0
    table["y"][:] = 7
    assert bound.solve(budget="50it").objective == before


@pytest.mark.parametrize("of", [pd.Series, pa.array, lambda y: pa.chunked_array([y])])
def test_columns_of_frames_are_bound_alone(of):
    y = of(np.ones(60))
    table = {"x": sent()[0]["x"], "y": y}
    bound = fccomodel.compile(SENT).bind(D=table, params={"a": of(np.ones(2))}).bound
    assert (bound.tables["D"].columns["y"] == 1).all() and (bound.params["a"] == 1).all()


def test_a_result_at_hand_is_judged_on_other_rows(tmp_path):
    table, bound = sent()
    result = bound.solve(budget="50it")
    result.save(tmp_path / "out")
    other = {"x": np.eye(2), "y": np.zeros(2)}
    at_hand, stored = fccomodel.evaluate(result, D=other), fccomodel.evaluate(tmp_path / "out", D=other)
    assert at_hand.report.objective == stored.report.objective != result.objective
    assert str(at_hand) == str(stored)


def test_results_and_explanations_travel(tmp_path):
    """To another process, where nothing lies at the same place in memory; and as copies."""
    _, bound = sent()
    result, explanation = bound.solve(budget="50it"), bound.explain()
    (tmp_path / "all.pickle").write_bytes(pickle.dumps((result, explanation, bound, bound.compiled)))
    script = (
        "import pickle, sys; r, e, b, c = pickle.loads(open(sys.argv[1], 'rb').read()); "
        "print(r.objective.hex()); print(b.solve(budget='50it').objective.hex()); print(str(e)); "
        "print(e.why('objective'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "all.pickle")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    first, second, rest = done.stdout.split("\n", 2)
    assert first == second == result.objective.hex()
    assert rest.strip() == f"{explanation}\n{explanation.why('objective')}".strip()
    for made in (copy.copy(result), copy.deepcopy(result)):
        assert made.objective == result.objective and str(made) == str(result)


def test_tables_are_prepared_and_bound_at_once(tmp_path):
    text = (
        "dim d; data D : table(x: real[d], y: {-1, 1}); param mu; var w[d]; minimize E[z ~ D] dot(w, "
        "z.x) + mu * sumsq(w);"
    )
    rows = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.5, 0.0, 1.0], "y": [1, -1, 1]})
    given = {
        "spec": {"D": {"x": {"columns": ["a", "b"], "scale": "standard"}}},
        "D": rows,
        "params": {"mu": 0.5},
    }
    memory = fccomodel.compile(text).bind(**given)
    written = fccomodel.compile(text).prepare(tmp_path / "one", dtype="float64", **given)
    again = fccomodel.Model.parse(text).prepare(
        tmp_path / "two", dtype="float64", spec=given["spec"], D=rows, mu=0.5
    )
    later = fccomodel.Model.parse(text).bind(D=tmp_path / "one", mu=0.5)
    for problem in (written, again, later):
        assert problem.bound.params["mu"] == 0.5
        for name, column in memory.bound.tables["D"].columns.items():
            assert np.allclose(problem.bound.tables["D"].columns[name], column, rtol=1e-12, atol=0)
    with pytest.raises(fccomodel.FccoError, match="F0808"):
        fccomodel.compile(text).prepare(tmp_path / "three", dtype="int8", **given)


def test_a_saved_answer_says_that_it_copies_tables_in_files(tmp_path, monkeypatch):
    from fccomodel.data.bind import _prepared

    monkeypatch.setattr(_prepared, "HELD", 0)
    model = fccomodel.compile(
        "dim d; data D : table(x: real[d]); var w[d]; minimize E[z ~ D] dot(w, z.x) + sumsq(w);"
    )
    rows = {"x": np.arange(6.0).reshape(3, 2)}
    for problem, said in ((model.bind(D=rows), False), (model.prepare(tmp_path / "prepared", D=rows), True)):
        problem.solve(budget="3it", polish=False).save(tmp_path / "out")
        notes = fccomodel.load(tmp_path / "out").record["notes"]
        assert any("data.pt has a copy of D, " in note for note in notes) == said
