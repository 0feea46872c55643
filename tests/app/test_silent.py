"""Nothing that is asked for is dropped in silence: options, devices, names given twice, values by
label, and the line that runs a solve again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import fccomodel as fc
from fccomodel.app import cli
from fccomodel.core.diagnostics import FccoError

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL, BINDING = str(EXAMPLES / "neyman_pearson.fcco"), str(EXAMPLES / "neyman_pearson.toml")
WEIGHTED = """dim d; set G;
param mu >= 0 default 0.1;
param c[G] default 1;
data D : table(x: real[d], y: {0, 1}, g: G);
var w[d];
minimize mean[k in G] c[k] * (E[z ~ D | z.g == k] log1pexp((1 - 2 * z.y) * dot(w, z.x))) + mu * sumsq(w);
"""


SCORED = """dim d;
data D : table(x: real[d], y: {0, 1});
var w[d];
def score(x) = dot(w, x);
minimize E[z ~ D] log1pexp((1 - 2 * z.y) * score(z.x)) + 0.1 * sumsq(w);
"""


@pytest.fixture(scope="module")
def problem() -> Any:
    return fc.compile(MODEL).bind(spec=BINDING)


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x_0": rng.normal(size=60),
            "x_1": rng.normal(size=60),
            "y": np.arange(60) % 2,
            "g": list("abc") * 20,
        }
    )


def code(run: Any) -> str:
    with pytest.raises(FccoError) as caught:
        run()
    one = caught.value.diagnostics[0]
    assert one.fix, one
    return one.code


# ------------------------------------------------------------------------------------------ options
def doors(problem: Any, tmp_path: Path) -> dict[str, Any]:
    """Every way by which options are given, as a function of them."""
    estimator = fc.FCCOClassifier
    x, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    spec = {"spec": BINDING}
    return {
        "solve": lambda **given: problem.solve(**given),
        "plan": lambda **given: problem.plan(**given),
        "explain": lambda **given: problem.explain(**given),
        "explain without data": lambda **given: fc.compile(MODEL).explain(**given),
        "emit": lambda **given: problem.emit(**given),
        "sweep": lambda **given: problem.sweep(
            tau=[0.06, 0.05], **{k: v for k, v in given.items() if k != "tau"}
        ),
        "compare": lambda **given: fc.compare(problem, algorithms=["sonex"], seeds=1, budget="5it", **given),
        "estimator": lambda **given: estimator(options=given).fit(x, y),
        "model": lambda **given: fc.Model.parse(Path(MODEL).read_text()).bind(**spec).solve(**given),
    }


@pytest.mark.parametrize("door", ["solve", "plan", "explain", "explain without data", "emit", "sweep", "compare",
                                  "estimator", "model"])  # fmt: skip
def test_an_option_of_another_algorithm_is_refused_in_every_door(
    problem: Any, tmp_path: Path, door: str
) -> None:
    assert code(lambda: doors(problem, tmp_path)[door](inner_steps=7)) == "F0606"


@pytest.mark.parametrize("door", ["solve", "plan", "explain", "emit", "compare", "estimator", "model"])
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused_in_every_door(problem: Any, tmp_path: Path, door: str) -> None:
    assert code(lambda: doors(problem, tmp_path)[door](device="cuda")) == "F0809"
    assert code(lambda: doors(problem, tmp_path)[door](device="mps")) == "F0808"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_backend_of_a_gpu_is_refused_without_one(problem: Any) -> None:
    assert code(lambda: problem.solve(backend="cuda-graph")) == "F0818"


def test_an_option_named_like_a_param_says_how_params_are_given(problem: Any) -> None:
    with pytest.raises(FccoError, match=r"with_params\(tau=0.1\)"):
        problem.solve(tau=0.1)


@pytest.mark.parametrize("command", ["solve", "explain", "emit", "compare"])
def test_the_command_line_refuses_it_too(command: str, tmp_path: Path, capsys: Any) -> None:
    more = {"emit": ["-o", str(tmp_path / "s.py")], "compare": ["--algorithms", "sonex"]}.get(command, [])
    assert cli.main([command, MODEL, "--bind", BINDING, *more, "--option", "inner_steps=7"]) == 2
    assert "F0606" in capsys.readouterr().err


def test_the_model_s_own_options_are_refused_too() -> None:
    text = "var x;\nminimize (x - 1)^2;\noptions { inner_steps = 7; }"
    assert code(lambda: fc.compile(text).solve()) == "F0606"


def test_options_of_the_model_s_algorithm_are_said_where_another_is_asked_for() -> None:
    text = "var x;\nminimize (x - 1)^2;\noptions { algorithm = alexr2; inner_steps = 7; }"
    made = fc.compile(text).bind().plan(algorithm="sonex")
    assert [one.name for one in made.plan.unused] == ["inner_steps"]


def test_defaults_of_the_user_that_do_not_apply_are_said(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "fccomodel").mkdir()
    lines = [
        "inner_steps = 7",
        'step = "doubling"',
        'algorithm = "prox_linear"',
        'device = "cuda:31"',
        'backend = "cuda-graph"',
    ]
    (tmp_path / "fccomodel" / "config.toml").write_text("\n".join(lines) + "\n")
    result = fc.compile(MODEL).bind(spec=BINDING).solve(budget="20it")
    assert set(result.json["unused_options"]) == {"inner_steps", "step", "algorithm", "device", "backend"}
    assert result.options["device"] == ("cpu", "automatic") and "inner_steps" not in result.options
    assert "inner_steps = 7 (user configuration) is not used" in " ".join(str(result).split())


def test_what_comparisons_traces_and_programs_would_drop_is_refused(problem: Any) -> None:
    for given in (
        {"seed": 3},
        {"algorithm": "alexr"},
        {"polish": True},
        {"validation": 0.3},
        {"tol": 1e-3},
        {"seeds": "3"},
    ):
        assert code(lambda given=given: fc.compare(problem, algorithms=["sonex"], **{"seeds": 1, "budget": "5it", **given})) in (
            "F0805", "F0606",
        )  # fmt: skip
    assert code(lambda: problem.solve(trace_at=[1], budget="5it")) == "F0805"
    assert code(lambda: problem.emit(population="5s")) == "F0805"
    assert code(lambda: fc.FCCOClassifier(options={"seed": 3}).fit(np.eye(4), [0, 1, 0, 1])) == "F0805"


def test_rows_held_out_are_held_out_of_explanations_too(problem: Any) -> None:
    left = problem.explain(holdout=0.5).explained.analysis.bound
    assert left.tables["D"].n < problem.bound.tables["D"].n


# --------------------------------------------------------------------------------- names and labels
def test_a_name_that_is_given_twice_is_refused(capsys: Any) -> None:
    model = fc.compile(WEIGHTED)
    assert code(lambda: model.bind(D=frame(), data={"D": frame()})) == "F0805"
    assert code(lambda: fc.Model.parse(WEIGHTED).bind(D=frame(), mu=1, params={"mu": 2})) == "F0805"
    answer = model.bind(D=frame()).solve(budget="20it")
    assert code(lambda: fc.evaluate(answer, D=frame(), data={"D": frame()})) == "F0805"
    for twice in (["--param", "tau=1", "--param", "tau=2"], ["--option", "eta=1", "--option", "eta=2"]):
        assert cli.main(["solve", MODEL, "--bind", BINDING, *twice]) == 2
        assert "given twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", [{"b": 2, "a": 1, "c": 3}, pd.Series([2.0, 1.0, 3.0], index=["b", "a", "c"])]
)
def test_values_of_params_go_by_label(given: Any) -> None:
    bound = fc.compile(WEIGHTED).bind(D=frame(), params={"c": given})
    assert bound.bound.params["c"].tolist() == [1, 2, 3]
    assert bound.with_params(c={"a": 4, "c": 6, "b": 5}).bound.params["c"].tolist() == [4, 5, 6]


@pytest.mark.parametrize("given", [{"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3, "e": 4}])
def test_other_labels_are_refused(given: Any) -> None:
    assert code(lambda: fc.compile(WEIGHTED).bind(D=frame(), params={"c": given})) == "F0520"
    assert code(lambda: fc.compile(WEIGHTED).bind(D=frame(), params={"mu": {"a": 1}})) == "F0520"


def test_a_start_is_not_turned_on_its_side() -> None:
    model = fc.compile("var W[2, 3];\nminimize sum[i in 1..2] sum[j in 1..3] (W[i, j] - i)^2;").bind()
    assert code_without_fix(lambda: model.solve(start={"W": np.zeros((3, 2))}, budget="5it")) == "F0712"


def code_without_fix(run: Any) -> str:
    with pytest.raises(FccoError) as caught:
        run()
    return caught.value.diagnostics[0].code


# ---------------------------------------------------------------------------------------- run again
GIVEN = {
    "options": ["--option", "eta=0.02", "--option", "inner_batch=32", "--budget", "200it", "--seed", "3"],
    "param": ["--param", "tau=0.08", "--param", "mu=0.3", "--budget", "5s", "--algorithm", "alexr2"],
    "precision": ["--precision", "float64", "--no-polish", "--budget", "100it", "--option", "inner_batch=16"],
    "holdout": ["--holdout", "0.3", "--budget", "100it", "--backend", "eager"],
}


@pytest.mark.parametrize("name", GIVEN)
def test_the_line_of_a_report_runs_it_again_to_the_same_bits(name: str, tmp_path: Path, capsys: Any) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert cli.main(["solve", MODEL, "--bind", BINDING, *GIVEN[name], "--out", str(first), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    again(record["again"], second)
    one, other = fc.load(first), fc.load(second)
    assert all(np.array_equal(one.variables[key], other.variables[key]) for key in one.variables)
    assert (
        one.record["objective"] == other.record["objective"]
        and one.record["params"] == other.record["params"]
    )


def again(line: str, out: Path) -> None:
    """Run a printed line, with its files elsewhere."""
    words = shlex.split(line)
    assert words[0] == "fccomodel"
    assert cli.main([*words[1:], "--out", str(out), "--quiet"]) == 0


def test_a_start_is_on_the_line(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "first"
    base = ["solve", MODEL, "--bind", BINDING, "--budget", "50it"]
    assert cli.main([*base, "--out", str(folder), "--quiet"]) == 0
    capsys.readouterr()
    assert (
        cli.main(
            [*base, "--start", str(folder), "--param", "tau=0.04", "--json", "--out", str(tmp_path / "a")]
        )
        == 0
    )
    record = json.loads(capsys.readouterr().out)
    assert f"--start {folder}" in record["again"]
    again(record["again"], tmp_path / "b")
    assert np.array_equal(fc.load(tmp_path / "a").variables["w"], fc.load(tmp_path / "b").variables["w"])


def test_the_values_of_params_are_in_the_report_where_they_differ(problem: Any) -> None:
    assert "params" not in str(problem.solve(budget="20it"))
    result = problem.with_params(tau=0.1).solve(budget="20it")
    assert "tau = 0.1 (keyword argument; the model's default is 0.05)" in " ".join(str(result).split())
    assert result.json["param_origins"]["tau"] == {"origin": "keyword argument", "default": 0.05}
    assert "--param tau=0.1" in result.json["again"] and "--param tau=0.1" in " ".join(result.details.split())
    assert ">tau<" in result.html().split('id="params"')[1][:80]


# ----------------------------------------------------------------------------------------- new rows
def test_rows_in_other_units_are_told_of() -> None:
    data = frame()
    spec = {"D": {"x": {"columns": ["x_0", "x_1"], "scale": "standard"}}}
    result = fc.compile(SCORED).bind(D=data, spec=spec).solve(budget="20it")
    with pytest.warns(UserWarning, match="`x_0` is on average more than 20 standard deviations"):
        result.predict(data.assign(x_0=1000 * (1 + data.x_0)))
    judged = fc.evaluate(result, D=data.assign(x_0=1000 * (1 + data.x_0)))
    assert "other units" in " ".join(str(judged).split()) and judged.to_json()["cautions"]


def test_a_sweep_over_what_nothing_uses_is_refused() -> None:
    model = fc.compile("param k >= 0 default 1;\nvar x;\nminimize (x - 1)^2;").bind()
    assert code(lambda: model.sweep(k=[1, 2])) == "F0805"


def test_numbers_of_numpy_are_numbers(problem: Any) -> None:
    made = problem.plan(seed=np.int64(3), inner_batch=np.int64(16), eta=np.float32(0.25))
    assert [made.options[name][0] for name in ("seed", "inner_batch", "eta")] == [3, 16, 0.25]
