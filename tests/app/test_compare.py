"""Comparisons: the same budget for all, values of the problem as written, tuning, processes, files."""

from __future__ import annotations

import csv
import dataclasses
import json

import numpy as np
import pytest
from support.places import EXAMPLES

import fccomodel
from fccomodel import algorithms, plan
from fccomodel.app import cli
from fccomodel.app.stored import comparison
from fccomodel.app.stored.comparison import plots, tuning, variants
from fccomodel.app.stored.comparison.holdout import hold_out
from fccomodel.app.stored.comparison.runs import Bench, Job, JobOutcome, Task, Workers, score
from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError

NEYMAN = ["compare", str(EXAMPLES / "neyman_pearson.fcco"), "--bind", str(EXAMPLES / "neyman_pearson.toml")]
MODEL = """model groups;
dim d;
set G;
data D : table(x: real[d], y: {0, 1}, g: G);
var w[d];
let wrong[k in G] = prob[z ~ D | z.g == k] ((2 * z.y - 1) * dot(w, z.x) <= 0);
let worst = max[k in G] wrong[k];
minimize risk: logmeanexp(theta = 0.5)[k in G] (E[z ~ D | z.g == k] log1pexp((1 - 2 * z.y) * dot(w, z.x))) + 0.01 * sumsq(w);
"""


@pytest.fixture(scope="module")
def frame():
    import pandas

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = (x[:, 0] + 0.8 * rng.normal(size=300) > 0).astype(int)
    columns = {f"x{k}": x[:, k] for k in range(3)} | {"y": y, "g": np.array(list("abc"))[np.arange(300) % 3]}
    return pandas.DataFrame(columns | {"part": np.where(np.arange(300) % 5 == 4, "val", "train")})


@pytest.fixture(scope="module")
def problem(frame):
    spec = {"D": {"x": {"columns": ["x0", "x1", "x2"]}, "y": {"column": "y"}, "g": {"column": "g"}}}
    return fccomodel.compile(MODEL).bind(spec=spec, D=frame)


def risk(w, frame):
    x, sign = frame[["x0", "x1", "x2"]].to_numpy(), 2 * frame.y.to_numpy() - 1
    losses = np.logaddexp(0, -sign * (x @ w))
    means = np.array([losses[frame.g == k].mean() for k in "abc"])
    return 0.5 * np.log(np.mean(np.exp(means / 0.5))) + 0.01 * w @ w


# ----------------------------------------------------------------------------------------- the runs
def test_values_are_those_of_the_problem_on_all_rows(problem, frame):
    found = fccomodel.compare(
        problem,
        algorithms=["sox", "sonex"],
        seeds=[3],
        budget="4000oracles",
        inner_batch=8,
        test="part == 'val'",
        show=["worst"],
    )
    assert [run.job.algorithm for run in found.runs] == ["sox", "sonex"] and not found.refused
    for run in found.runs:
        again = problem.solve(
            algorithm=run.job.algorithm, seed=3, budget="4000oracles", inner_batch=8, show=["worst"]
        )
        w = again.variables["w"]
        assert run.objective == pytest.approx(risk(w, frame)) and run.kkt == pytest.approx(
            again.report.epsilon
        )
        assert 2000 < run.oracles <= 4000
        assert run.test["objective"] == pytest.approx(risk(w, frame[frame.part == "val"]))
        assert run.values["worst"] == again.values["worst"]
    text = str(found)
    assert "where part == 'val'" in text and "worst" in text and max(map(len, text.splitlines())) <= 80


def test_a_refused_algorithm_is_a_row_with_what_it_lacks(tmp_path, capsys):
    arguments = ["--algorithms", "sox,sonex", "--seeds", "1", "--budget", "20it", "--jobs", "1", "--quiet"]
    assert cli.main([*NEYMAN, *arguments, "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "needs a" in out and "sox" in out and err == ""
    record = json.loads((tmp_path / "compare.json").read_text())
    assert record["refused"].keys() == {"sox"}
    assert record["summary"]["sonex"].keys() >= {"objective", "violation", "KKT", "oracles"}
    assert [entry["violation"] for entry in record["runs"][0]["history"]]
    with open(tmp_path / "compare.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1 and float(rows[0]["objective"]) == record["runs"][0]["objective"]


def test_processes_give_the_same_numbers(problem):
    given = {
        "algorithms": ["sox", "sonex"],
        "seeds": 1,
        "budget": "200it",
        "inner_batch": 8,
        "show": ["wrong"],
    }
    one, two = (fccomodel.compare(problem, jobs=jobs, **given) for jobs in (1, 2))
    timeless = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in found.rows] for found in (one, two)
    ]
    assert timeless[0] == timeless[1] and len(timeless[0]) == 2


def test_what_cannot_be_sent_to_processes_is_refused(problem):
    binding = dataclasses.replace(problem.binding, samplers={"mine": lambda: 0})
    task = Task(source=problem.compiled.source, binding=binding, chosen={})
    with pytest.raises(FccoError, match="F0812"):
        Workers(Bench(task, problem.compiled, problem.bound), 2)


def test_an_interruption_keeps_what_is_done(problem):
    def stop(step):
        raise KeyboardInterrupt

    found = fccomodel.compare(problem, algorithms=["sox"], seeds=3, budget="20it", progress=stop)
    assert found.interrupted and len(found.runs) == 1 and "Interrupted" in str(found)


def test_an_interruption_while_tuning_keeps_the_best_so_far(problem, monkeypatch):
    grid = {"eta": tuple(np.geomspace(1e-6, 0.05, 9)), "gamma": (0.1, 0.5)}
    known = {"sox": dataclasses.replace(algorithms.get("sox"), grid=grid)}
    monkeypatch.setattr(algorithms, "all", lambda: known)
    monkeypatch.setattr(tuning, "LARGEST_WHOLE_GRID", 8)

    def stop(step):
        if step.done == 11:
            raise KeyboardInterrupt

    found = fccomodel.compare(
        problem, algorithms=["sox"], seeds=3, budget="3it", tune=True, inner_batch=4, progress=stop
    )
    assert found.interrupted and not found.runs and len(found.trials) == 11
    assert dict(found.chosen["sox"]).keys() <= {"eta"} and "Interrupted while tuning, after 11 trials" in str(
        found
    )


def test_progress_knows_how_many_runs_there_will_be(problem, monkeypatch):
    grid = {"eta": tuple(np.geomspace(1e-3, 0.05, 8)), "gamma": (0.1, 0.5)}
    known = {"sox": dataclasses.replace(algorithms.get("sox"), grid=grid)}
    monkeypatch.setattr(algorithms, "all", lambda: known)
    monkeypatch.setattr(tuning, "LARGEST_WHOLE_GRID", 8)
    totals = []
    given = {"algorithms": ["sox"], "seeds": 2, "budget": "2it", "tune": True, "inner_batch": 4}
    fccomodel.compare(problem, progress=lambda step: totals.append((step.done, step.total)), **given)
    assert totals[0] == (1, 13) and totals[-1] == (13, 13)


def test_columns_are_whole_at_80_columns():
    name = "squared_hinge_sox"
    found = made("minimize", (name, 0.123456789, -1.23e-4), (name, 0.2, 0.1), reference=0.143684)
    assert "…" not in str(found) and max(map(len, str(found).splitlines())) <= 80


def test_all_algorithms_have_the_first_seed_before_the_second(problem):
    seen = []
    given = {"algorithms": ["sox", "bsgd"], "seeds": 2, "budget": "20it"}
    fccomodel.compare(
        problem, progress=lambda step: seen.append((step.run.job.seed, step.run.job.algorithm)), **given
    )
    assert seen == [(0, "sox"), (0, "bsgd"), (1, "sox"), (1, "bsgd")]


def test_seeds_without_effect_are_told(problem):
    given = {"algorithms": ["sox"], "seeds": 2, "budget": "20it"}
    assert "seeds make no difference" in str(fccomodel.compare(problem, **given))
    assert "seeds make no difference" not in str(fccomodel.compare(problem, inner_batch=4, **given))


def test_few_steps_are_told(problem):
    assert "20it are 20 steps of sox" in str(
        fccomodel.compare(problem, algorithms=["sox"], seeds=1, budget="20it")
    )


def test_a_wrong_condition_is_an_error_before_the_first_run(problem):
    with pytest.raises(FccoError, match="F0509"):
        fccomodel.compare(problem, algorithms=["sox"], budget="20it", test="none == 'val'")
    with pytest.raises(FccoError, match="F0509"):
        fccomodel.compare(problem, algorithms=["sox"], budget="20it", tune=True, validation="none == 'val'")


def test_an_unknown_algorithm_or_let_is_an_error(problem):
    with pytest.raises(FccoError, match="F0603"):
        fccomodel.compare(problem, algorithms=["soxx"], budget="10it")
    with pytest.raises(FccoError, match="F0805"):
        fccomodel.compare(problem, algorithms=["sox"], budget="10it", show=["none"])


# ----------------------------------------------------------------------------------------- variants
def test_variants_of_an_algorithm_run_side_by_side(problem):
    names = ["sox(gamma=0.9)", "sox(gamma=0.1, inner_batch=4)"]
    found = fccomodel.compare(problem, algorithms=[names[0], *names], seeds=1, budget="60it", inner_batch=8)
    assert found.algorithms == tuple(names) and [run.job.algorithm for run in found.runs] == names
    for name, own in zip(
        names, ({"gamma": 0.9, "inner_batch": 8}, {"gamma": 0.1, "inner_batch": 4}), strict=True
    ):
        again = problem.solve(algorithm="sox", seed=0, budget="60it", polish=False, **own)
        assert found.of(name)[0].objective == again.objective
    text = str(found)
    assert "gamma=0.9" in text and "…" not in text and max(map(len, text.splitlines())) <= 80


def test_tuning_leaves_what_a_variant_sets(problem, monkeypatch):
    known = {
        "sox": dataclasses.replace(algorithms.get("sox"), grid={"eta": (0.01, 0.05), "gamma": (0.1, 0.5)})
    }
    monkeypatch.setattr(algorithms, "all", lambda: known)
    found = fccomodel.compare(
        problem, algorithms=["sox(gamma=0.9)"], seeds=1, budget="3it", tune=True, inner_batch=4
    )
    assert {name for run in found.trials for name, _ in run.job.hyper} == {"eta"}


def test_variants_are_read_as_they_are_written():
    text = "sox, sox(gamma=0.1,inner_batch=4),alexr( schedule = theory )"
    assert variants.split(text) == ["sox", "sox(gamma=0.1,inner_batch=4)", "alexr( schedule = theory )"]
    read = variants.read(variants.split(text))
    assert list(read) == ["sox", "sox(gamma=0.1, inner_batch=4)", "alexr(schedule=theory)"]
    assert read["sox(gamma=0.1, inner_batch=4)"].options == (("gamma", 0.1), ("inner_batch", 4))


@pytest.mark.parametrize(
    "name",
    [
        "sox(gamma)",
        "sox(gamma=0.1",
        "sox(gamma=0.1)x",
        "sox(gamma=0.1,gamma=0.2)",
        "sox(seed=1)",
        "sox(gamma=2)",
    ],
)
def test_what_is_no_variant_is_refused(problem, name):
    with pytest.raises(FccoError, match="F08|F06|F05"):
        fccomodel.compare(problem, algorithms=[name], budget="10it")


def test_an_unknown_option_of_a_variant_is_refused(problem):
    with pytest.raises(FccoError, match="gama"):
        fccomodel.compare(problem, algorithms=["sox(gama=0.1)"], budget="10it")


def test_plain_sgd_is_biased_on_the_lecture_s_example():
    model = fccomodel.compile(EXAMPLES / "lectures" / "bias.fcco").bind()
    found = fccomodel.compare(model, algorithms=["bsgd", "sox(gamma=0.1)"], seeds=1, budget="3000it")
    plain, tracked = (found.of(name)[0].objective for name in found.algorithms)
    assert 0.2 < plain < 0.3 and tracked < 0.02


# ------------------------------------------------------------------------------------------- tuning
def test_tuning_takes_the_better_step_size(problem, monkeypatch):
    known = {"sox": dataclasses.replace(algorithms.get("sox"), grid={"eta": (1e-6, 0.05)})}
    monkeypatch.setattr(algorithms, "all", lambda: known)
    found = fccomodel.compare(problem, algorithms=["sox"], seeds=1, budget="300it", tune=True, eta=1e-8)
    held = [run.objective for run in found.trials]
    assert found.chosen == {"sox": (("eta", 0.05),)} and held[2] < held[0]
    assert f"eta 0.05 ({held[2]:.6g} on held-out rows, by default {held[0]:.6g})" in " ".join(
        str(found).split()
    )
    assert [run.job.hyper for run in found.trials] == [(), (("eta", 1e-6),), (("eta", 0.05),)]
    assert found.runs[0].job.hyper == (("eta", 0.05),)


def test_trials_do_not_see_the_rows_that_judge_them(problem, frame, monkeypatch):
    known = {"sox": dataclasses.replace(algorithms.get("sox"), grid={})}
    monkeypatch.setattr(algorithms, "all", lambda: known)
    given = {"algorithms": ["sox"], "seeds": 1, "budget": "200it"}
    found = fccomodel.compare(problem, tune=True, validation="part == 'val'", **given)
    inside = fccomodel.compile(MODEL).bind(spec=problem.binding.spec, D=frame[frame.part == "train"])
    w = inside.solve(algorithm="sox", budget="200it", seed=0).variables["w"]
    assert found.trials[0].objective == pytest.approx(risk(w, frame[frame.part == "val"]), rel=1e-6)


def test_large_grids_are_searched_name_by_name():
    best = {"a": 3.0, "b": 1.0, "c": 2.0}
    grid = {name: tuple(float(v) for v in range(5)) for name in best}
    asked = []

    def execute(jobs, later):
        asked.extend(jobs)
        return [
            JobOutcome(
                job=job, objective=sum((dict(job.hyper).get(n, 9.0) - v) ** 2 for n, v in best.items())
            )
            for job in jobs
        ]

    found: dict[str, tuning.Hyper] = {}
    tuning.tune({"x": grid}, 0, execute, lambda run: (0.0, run.objective), found)
    assert dict(found["x"]) == best and len(asked) == 1 + 3 * 5


def test_feasible_points_come_first():
    def rank(objective, violation, sense="minimize"):
        return score(
            JobOutcome(job=Job(algorithm="x", seed=0), objective=objective, violation=violation), sense, 1e-3
        )

    assert rank(5.0, 1e-4) < rank(1.0, 0.1) < rank(1.0, 0.2) and rank(1.0, 0.0) < rank(2.0, 1e-3)
    assert rank(2.0, 0.0, "maximize") < rank(1.0, 0.0, "maximize")
    assert score(JobOutcome(job=Job(algorithm="x", seed=0), error="F0711"), "minimize", 1e-3) > rank(1.0, 1e9)


@pytest.mark.parametrize("name", sorted(algorithms.all()))
def test_grids_hold_values_that_the_options_take(name):
    for option, values in algorithms.get(name).grid.items():
        assert option in plan.OPTIONS and len(values) > 1
        assert [options.check_value(option, value, "grid") for value in values] == list(values)


# ------------------------------------------------------------------------------------ held-out rows
def test_held_out_rows_keep_the_groups(problem):
    inside, held = hold_out(problem.bound, 0.2, seed=1)
    a, b, whole = (part.tables["D"] for part in (inside, held, problem.bound))
    assert a.n + b.n == whole.n == inside.dims["D"] + held.dims["D"]
    rows = np.concatenate([a.columns["x"], b.columns["x"]])
    assert np.array_equal(np.sort(rows, axis=0), np.sort(whole.columns["x"], axis=0))
    for group in range(3):
        for label in (0, 1):
            count = [int(((t.columns["g"] == group) & (t.columns["y"] == label)).sum()) for t in (b, whole)]
            assert count[0] == round(0.2 * count[1])


def test_rows_with_a_variable_each_are_not_held_out():
    model = fccomodel.compile("data D : table(x: real); var t[D]; minimize mean[z in D] (t[z] - z.x) ^ 2;")
    with pytest.raises(FccoError, match="F0811"):
        hold_out(model.bind(D={"x": np.arange(5.0)}).bound)


# ------------------------------------------------------------------------------------------- record
def made(
    sense: str, *values: tuple[str, float, float], reference: float | None = None
) -> comparison.Comparison:
    runs = tuple(
        JobOutcome(
            job=Job(algorithm=name, seed=k), objective=f, violation=c, kkt=0.1, oracles=10.0, seconds=1.0
        )
        for k, (name, f, c) in enumerate(values)
    )
    names = tuple(dict.fromkeys(name for name, _, _ in values))
    return comparison.Comparison(
        model="m", sense=sense, constrained=True, algorithms=names, seeds=(0, 1), runs=runs, budget="1it", tolerance=1e-3,
        reference=reference,
    )  # fmt: skip


def test_the_best_objective_is_that_of_a_feasible_algorithm():
    found = made("minimize", ("a", 1.0, 0.5), ("b", 2.0, 0.0), ("c", 3.0, 0.0))
    assert found.best("objective") == {"b"} and found.best("violation") == {"b", "c"}
    assert made("maximize", ("a", 1.0, 0.0), ("b", 2.0, 0.0)).best("objective") == {"b"}


def test_none_is_best_where_all_are_alike():
    assert made("minimize", ("a", 1.0, 0.0), ("b", 1.0, 0.0)).best("objective") == set()


def test_an_error_is_told_once_with_its_seeds():
    runs = tuple(JobOutcome(job=Job(algorithm="a", seed=k), error="F0711: no") for k in range(3))
    text = str(dataclasses.replace(made("minimize"), algorithms=("a",), runs=runs))
    assert text.count("F0711") == 1 and "a, seeds 0, 1, 2" in text


def test_means_deviations_and_gaps():
    found = made("maximize", ("a", 1.0, 0.0), ("a", 2.0, 0.0), reference=2.5)
    assert found.mean("a", found.columns["objective"]) == (1.5, pytest.approx(0.5**0.5))
    assert found.mean("a", found.columns["gap"]) == (1.0, pytest.approx(0.5**0.5))
    assert found.to_pandas().shape[0] == 2 and "&lt;= 0.001" in found._repr_html_()


def test_curves(tmp_path, problem):
    pytest.importorskip("matplotlib")
    found = fccomodel.compare(problem, algorithms=["sox"], seeds=2, budget="600it", reference=0.1)
    assert {row["seed"] for row in found.curves} == {0, 1}
    assert all(np.diff([row["oracles"] for row in found.curves if row["seed"] == 0]) > 0)
    found.save(tmp_path, plot=True)
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"
    drawn = (tmp_path / "curves.svg").read_text()
    assert "|objective - optimum|" in drawn and "KKT residual" in drawn and "median of 2 seeds" in drawn


def test_without_a_reference_curves_are_measured_from_the_best_feasible_value():
    stages = ({"oracles": 1.0, "seconds": 0.1, "objective": 0.5, "violation": 0.5, "kkt": None},)
    found = made("minimize", ("a", 1.0, 0.0), ("a", 1.2, 0.0), ("b", 0.7, 0.2))
    runs = tuple(dataclasses.replace(run, history=stages) for run in found.runs)
    assert plots.best_value(dataclasses.replace(found, runs=runs)) == (1.0, "best found")
    assert plots.best_value(dataclasses.replace(found, reference=0.9)) == (0.9, "optimum")


# ------------------------------------------------------------------------------------- command line
@pytest.mark.parametrize(
    "arguments",
    [
        ["--seeds", "few"],
        ["--seeds", "0"],
        ["--validation", "1.5", "--tune"],
        ["--plot"],
        ["--budget", "10calls"],
    ],
)
def test_bad_arguments_are_refused(arguments, capsys):
    assert cli.main([*NEYMAN, "--algorithms", "sonex", "--quiet", *arguments]) == 2
    assert "F08" in capsys.readouterr().err
