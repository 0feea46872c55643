"""Verdicts that agree with themselves, and with what is true: points that read as solved are, whatever
the scales."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from test_kkt import FIT, D, X, Y, bound, fit, solved

import fccomodel
from fccomodel import report
from fccomodel.algorithms.runtime.finish import finish
from fccomodel.algorithms.runtime.loops import block_loop, progress, vector_loop
from fccomodel.core.failure import Failure
from fccomodel.core.work import Meter
from fccomodel.pipeline.endings import SPENT
from fccomodel.report.advice import Ending
from fccomodel.report.around.local_search import Better
from fccomodel.report.kkt.active import Qualification
from fccomodel.report.point.system import System
from fccomodel.report.verdicts.grades import BEATEN, Judged
from fccomodel.report.verdicts.sentence import Findings, advice_of

RANDOM = np.random.default_rng(11)


def at(text, *, data=None, **variables):
    made = fccomodel.compile(text).bind(**(data or {})).bound
    return report.report(made, {name: np.asarray(value, float) for name, value in variables.items()})


# -------------------------------------------------------------------------- beyond double precision
HUGE = (0.0, 1.0, 1e100, -1e154, 1.7e308)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "model",
    [
        "var w[d] in simplex(d); maximize E[z ~ D] abs(dot(w, z.x) - z.y) + 1e300 * w[1];",
        "var w[d]; minimize 1e200 * sumsq(w) + w[1]; subject to a: 1e100 * w[1] >= 1; b: norm1(w) <= 1e200;",
        "var w[d]; minimize norm2(w) + 1e10 * norm1(w - 1e9); subject to c: norm1(w) <= 1; e: w[1] == 1e200;",
        "var w[d] >= 0; minimize 1e300 * w[1] - 1e300 * w[2]; subject to c: w[1] + w[2] <= 1e300;",
        "var w[d]; minimize 1e308 * sigmoid(w[1]) - 1e308 * sigmoid(w[2]);",
        "var w[d]; minimize w[1] / (1 + w[2]^2) * 1e308; subject to c: w[1]^2 * w[2] >= 1e300;",
    ],
)
def test_numbers_beyond_those_of_double_precision(model):
    """A coded error, or a report whose residuals are numbers, or infinite and then not solved."""
    data = {"D": {"x": [[1.0, 2.0], [0.5, -1.0], [3.0, 0.1]], "y": [1.0, -1.0, 0.5]}}
    made = fccomodel.compile(f"dim d; data D: table(x: real[d], y: real); {model}").bind(**data).bound
    found = []
    for w in np.array(np.meshgrid(HUGE, HUGE)).T.reshape(-1, 2):
        try:
            found.append(report.report(made, {"w": w}))
        except fccomodel.FccoError as error:
            assert error.diagnostics[0].code == "F0701"
    assert found and not any(np.isnan([*f.relative.values(), f.epsilon, f.residual]).any() for f in found)
    assert all("double precision" in f.advice for f in found if np.isinf(f.epsilon))


# ------------------------------------------------------------------------------------------- scales
def test_an_optimum_far_away():
    text = "var x; minimize (x / 1e6 - 1)^2;"
    far = at(text, x=7.5e5)
    assert far.epsilon < 1e-6 and not far.solved and far.relative["epsilon"] > 0.1
    assert "relative to the problem's scales" in far.verdict
    assert at(text, x=1e6).solved


@pytest.mark.parametrize("factor", [1e-9, 1e-4, 1e5, 1e9])
def test_the_objectives_scale_does_not_decide(factor):
    w, _ = solved(fit)
    text = f"var w[d]; minimize {factor} * {FIT};"
    assert report.report(bound(text), {"w": w}).solved
    assert not report.report(bound(text), {"w": w + 0.3}).solved


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_constraints_scale_does_not_decide(factor):
    w, _ = solved(fit, [lambda c, w: w[0] <= 0.1])
    text = f"var w[d]; minimize {FIT}; subject to c: {factor} * w[1] <= {factor} * 0.1;"
    assert report.report(bound(text), {"w": w}).solved
    assert not report.report(bound(text), {"w": w + 0.1}).solved
    assert report.report(bound(text), {"w": w}).relative["feasibility"] < 1e-6


def test_features_of_different_scales():
    """Small gradients say little where curvature is small: the proved gap takes the grade back."""
    x = RANDOM.normal(size=(200, 3)) * [1e6, 1, 1e-6]
    y = x @ [1e-6, 1, 1e6] + 0.1 * RANDOM.normal(size=200)
    text = "dim d; data D: table(x: real[d], y: real); var w[d]; minimize E[z ~ D] (dot(w, z.x) - z.y)^2;"
    w = np.append(np.linalg.lstsq(x[:, :2], y, rcond=None)[0], 0.0)
    found = at(text, data={"D": {"x": x, "y": y}}, w=w)
    assert found.epsilon < 1e-3 and not found.solved and found.gap.value > 0.2
    assert "the optimum may be up to" in found.verdict
    assert at(text, data={"D": {"x": x, "y": y}}, w=np.linalg.lstsq(x, y, rcond=1e-16)[0]).solved


def test_features_of_different_scales_without_a_proved_gap():
    """A step along one entry is tried where nothing is proved."""
    x = RANDOM.normal(size=(200, 3)) * [1e6, 1, 1e-6]
    y = np.sign(x @ [1e-6, 1, 1e6] + RANDOM.normal(size=200))
    text = (
        "dim d; data D: table(x: real[d], y: real); var w[d]; minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x));"
    )
    problem = fccomodel.compile(text).bind(D={"x": x, "y": y})
    found = report.report(problem.bound, {"w": _logistic(x[:, :2], y, 0.0)})
    assert found.epsilon < 1e-4 and not found.solved and "along `w[3]` is better by" in found.verdict
    assert report.report(problem.bound, {"w": _logistic(x, y, None)}).solved


def _logistic(x, y, last):
    """The optimum by Newton's method in columns of one scale."""
    scale = np.abs(x).mean(0)
    z, w = x / scale * y[:, None], np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(z @ w))
        w = w + np.linalg.solve((z * (p * (1 - p))[:, None]).T @ z, z.T @ p)
    return w / scale if last is None else np.append(w / scale, last)


RATIOS = {
    "inverse": ("var x; minimize 1 / x + x;", 1.0),
    "inverse of a mean": ("dim d; data D: table(a: real); var x; minimize 1 / (E[z ~ D] z.a * x) + x;", 1.0),
    "ratio": ("var x; minimize (x^2 + 1) / x;", 1.0),
}


@pytest.mark.parametrize("name", RATIOS)
def test_a_divisor_that_crosses_zero(name):
    """A local optimum on one side of a pole, with values without bound on the other."""
    text, x = RATIOS[name]
    data = {"D": {"a": np.ones(5)}} if "D" in text else {}
    found = at(text.replace("dim d; ", ""), data=data, x=x)
    assert found.epsilon < 1e-6 and not found.solved and "where a divisor is nearly 0" in found.verdict
    bounded = at(text.replace("dim d; ", "").replace("var x;", "var x >= 0.1;"), data=data, x=x)
    assert bounded.solved


def test_a_gap_of_nothing_is_a_proof():
    """Without an interior there are no multipliers, and the point is optimal all the same."""
    found = at("var x[2]; minimize x[1] + x[2]; subject to c: sumsq(x) <= 0;", x=[0.0, 0.0])
    assert found.epsilon > 0.1 and found.gap.value < 1e-9
    assert (
        found.solved
        and found.verdict.startswith("Solved to high accuracy, by the proved gap")
        and not found.advice
    )


def test_a_cusp():
    """No constraint qualification holds at the optimum 0: points beyond it have large multipliers."""
    text = "var x; var y; minimize x; subject to c: y^2 <= x^3;"
    assert not at(text, x=-0.009, y=0.0).solved


@pytest.mark.parametrize("constraint", ["y^2 <= x^3", "x^3 == 0", "y^2 - (x - 0.001)^3 <= 1e-9"])
def test_what_violations_are_worth_is_not_little(constraint):
    """A violation of 1e-6 with a multiplier of 4000: the point is beyond the optimum by more than
    first-order terms say."""
    found = at(f"var x; var y; minimize x; subject to c: {constraint};", x=-0.009, y=0.0)
    assert found.feasibility < 1e-6 and found.epsilon < 1e-2
    assert not found.solved


def test_an_objective_of_nearly_zero():
    """Its gradient has a scale where its value has none."""
    found = at("var x; var y; minimize x; subject to c: abs(y) <= x; d: x <= y;", x=5e-14, y=5e-14)
    assert found.solved and found.verdict.startswith("Solved to high accuracy")


def test_divisors_without_a_zero():
    """Newton's steps to a zero that is not there end, also where two values are alike."""
    assert at("var x; minimize x / (1 + x^2);", x=-1.0).solved
    assert (
        at("var x; minimize 1 / (2 + cos_like);".replace("cos_like", "(x - 1)^2 - 1"), x=1.0).epsilon < 1e-12
    )


# ------------------------------------------------------------------------------- without a solution
def test_infeasible_only_where_no_point_is_known_to_be_feasible():
    bound = fccomodel.compile("var x; maximize x; subject to c: sigmoid(x) <= 0.999;").bind().bound
    assert any(report.feasible_points(bound, Meter()))
    found = report.failed(
        report.report(bound, {"x": 132.0}), Failure(kind="infeasible"), convex=False, feasible=True
    )
    assert (
        not found.failure
        and found.verdict.startswith("Not solved yet")
        and "elsewhere points meet all" in found.verdict
    )
    apart = fccomodel.compile(
        "var x in simplex(3); minimize x[1]; subject to c: sumsq(x) >= 2;".replace("x in", "x[3] in")
    )
    assert not any(report.feasible_points(apart.bind().bound, Meter()))


def test_constraints_without_a_variable():
    """What the data violate no point meets, whatever else the run finds; what they meet within
    rounding is no alarm."""
    text = "param a default 7; var x; minimize {objective}; subject to fine: a <= 5; low: x <= 1;"
    for objective in ("(x - 3)^2", "(x - 3)^4 - x^2"):
        found = fccomodel.compile(text.format(objective=objective)).bind().solve()
        assert (
            found.outcome.status == "infeasible"
            and found.outcome.solution.failure.fixed
            and found.report.gap is None
        )
        assert found.report.verdict.startswith(
            "Infeasible, proved: fine has no variable, and is violated by 2."
        )
    met = fccomodel.compile(text.format(objective="(x - 3)^2")).bind().with_params(a=5 + 1e-12).solve()
    assert met.outcome.status == "converged"


def test_unbounded_only_where_no_violation_is_needed():
    claimed = Failure(kind="unbounded", along=("x", True))
    found = report.failed(
        at("var x; minimize -x; subject to c: tanh(x) <= 0.9999;", x=1e12), claimed, convex=False
    )
    assert not found.failure and found.verdict.startswith("Not solved yet")


def test_unbounded_only_where_the_point_is_feasible():
    text = "var x; minimize -x; subject to c: log(1 + x^2) <= 20;"
    claimed = Failure(kind="unbounded", along=("x", True))
    found = report.failed(at(text, x=1e12), claimed, convex=False)
    assert (
        not found.failure
        and not found.verdict.startswith("Unbounded")
        and "violated by 3.5e+01" in found.verdict
    )
    free = report.failed(at("var x; minimize -x;", x=1e12), claimed, convex=True)
    assert free.failure == "unbounded" and free.verdict.startswith("Unbounded") and not free.solved


def test_an_origin_far_from_the_data_does_not_make_a_gap_small():
    """The median of 50 integers at 1e15: from 0 the objective falls by 1e15, and a gap of all of it is
    large all the same."""
    t = 1e15 + np.arange(51.0) ** 2
    text = "data D : table(t: real); var m; minimize mean[z in D] abs(z.t - m);"
    found = at(text, data={"D": {"t": t}}, m=1e15 + 400.0)
    assert not found.solved and "proved gap" not in found.verdict, found.verdict


# ---------------------------------------------------------------------------------------- one story
def test_a_violation_within_tolerance_is_no_alarm():
    w, _ = solved(fit, [lambda c, w: c.sum_squares(w) <= 0.5])
    text = f"var w[d]; minimize {FIT}; subject to size: sumsq(w) <= 0.5;"
    slightly = report.report(bound(text), {"w": w * (1 + 1e-6)})
    assert (
        slightly.gap.value < 0
        and str(slightly.gap).startswith("gap <= 0, proved")
        and "violation" in str(slightly.gap)
    )
    largely = report.report(bound(text), {"w": w * 1.1})
    assert str(largely.gap).startswith("the optimum is worse than this by at least")


def test_no_constraint_is_active_only_without_multipliers():
    assert "no constraint" not in str(Qualification(held=("a",)))
    found = report.report(bound(f"var w[d]; minimize {FIT}; subject to a: w[1] <= 0.9;"), {"w": np.zeros(D)})
    assert found.constraints["a"].multiplier > 0.1 and "no constraint is active" not in str(
        found.qualification
    )


CONVERGED = Ending(how="converged", way="passes", tol=1e-6)
#: how a run ended -> words that its advice may not hold there
ENDINGS = {
    "budget of steps": (
        Ending(how="budget", tol=1e-6, sampled=True),
        ("--tol", "--no-polish", "gains nothing"),
    ),
    "budget of whole steps": (Ending(how="budget", tol=1e-6), ("--tol", "batches", "gains nothing")),
    "budget of passes": (
        Ending(how="budget", way="passes", tol=1e-6, sampled=True),
        ("--tol", "batches", "gains nothing"),
    ),
    "interrupted": (Ending(how="interrupted", tol=1e-6, sampled=True), ("--tol", "gains nothing")),
    "stages gain nothing": (Ending(how="stalled", tol=1e-6, sampled=True), ("run longer", "--tol", "passes")),
    "whole stages gain nothing": (
        Ending(how="stalled", tol=1e-6, passes="without --no-polish"),
        ("run longer", "batches"),
    ),
    "rounds gain nothing": (
        Ending(how="stalled", way="passes", sampled=True),
        ("run longer", "batches", "--tol"),
    ),
    "steps converged": (Ending(how="converged", tol=1e-3, sampled=True), ("longer", "batches")),
    "passes converged": (CONVERGED, ("longer", "batches")),
    "passes at rounding": (Ending(how="converged", way="passes", tol=1e-12), ("longer", "batches", "--tol")),
    "interior point": (Ending(how="converged", way="interior", tol=1e-6), ("longer", "batches", "--tol")),
    "nothing ran": (None, ("longer", "batches", "--tol", "run's own")),
}
#: what is missing -> a problem, and a point where it is
LACKING = {
    "stationarity": (f"var w[d]; minimize {FIT};", {"w": np.ones(D)}),
    "feasibility": (f"var w[d]; minimize {FIT}; subject to a: w[1] <= -9;", {"w": np.zeros(D)}),
    "complementarity": ("var w; minimize (w - 3)^2; subject to a: w <= 1;", {"w": np.array(0.7)}),
    "gap": ("var w; minimize (1e-6 * w - 1)^2;", {"w": np.array(0.0)}),
    "a better point": ("var w; minimize log1pexp(-1e-6 * w);", {"w": np.array(0.0)}),
}


@pytest.mark.parametrize("lacking", LACKING)
@pytest.mark.parametrize("name", ENDINGS)
def test_advice_is_possible_where_it_is_given(name, lacking):
    ended, impossible = ENDINGS[name]
    text, point = LACKING[lacking]
    problem = bound(text) if "E[" in text else fccomodel.compile(text).bind().bound
    found = report.report(problem, point, ended=ended)
    assert found.advice and not found.solved
    assert ("Curvature" in found.advice) is (lacking in ("gap", "a better point"))
    assert not [words for words in impossible if words in found.advice], found.advice
    assert "standard" not in found.advice or problem.tables, found.advice


def test_data_that_are_scaled_are_not_to_be_scaled():
    text = "dim d; data D: table(x: real[d], y: real); var v[d]; minimize E[z ~ D] (dot(v, z.x) - z.y)^2;"
    data = {"x": X, "y": Y}
    interior = Ending(how="converged", way="interior")
    for spec, said in (({}, True), ({"D": {"x": {"columns": ["x"], "scale": "standard"}}}, False)):
        made = fccomodel.compile(text).bind(D=data, **({"spec": spec} if spec else {})).bound
        advice = report.report(made, {"v": np.ones(D)}, ended=interior).advice
        assert ("standard" in advice) is said and ("units" in advice) is not said


def test_a_saddle_is_not_a_matter_of_curvature():
    better = Better(gain=1.0, where="along `x`", point={})
    made = fccomodel.compile("var x[2]; minimize x[1] * x[2];").bind().bound
    system = System(made, {"x": np.zeros(2)})
    judged = Judged(grade=BEATEN, better=better)
    parts = dict.fromkeys(("stationarity", "feasibility", "complementarity"), 0.0)
    found = Findings(system=system, rows={}, parts=parts, relative=parts, judged=judged)
    advice = {convex: advice_of(replace(found, convex=convex)) for convex in (True, False)}
    assert "Curvature" in advice[True] and "1e-4 * sumsq(x)" in advice[True]
    assert "saddles" in advice[False] and "Curvature" not in advice[False]


def test_draws_of_the_report_differ_from_the_runs():
    w = {"w": np.ones(D)}
    text = f"var w[d]; minimize {FIT} + E[u ~ normal(0, 1)] square(u * w[1] - 2);"
    assert "draws differ" in report.report(bound(text), w, ended=CONVERGED).advice


@pytest.mark.parametrize("solver", [block_loop, vector_loop, finish])
def test_words_of_a_budget_that_is_used_up_are_the_loops(solver):
    """What ``SPENT`` is compared with."""
    text = inspect.getsource(solver) + inspect.getsource(progress)
    assert all(f'"{words}"' in text for words in SPENT)


def test_status_and_verdict_are_one_word():
    """A run that converged by its own tests at a point that is no solution did not converge."""
    problem = fccomodel.compile("var x; minimize (x - 1)^2;").bind()
    result = problem.solve(budget="2s", seed=0)
    assert result.outcome.status == "converged" == result.json["status"] and result.report.solved
    disputed = replace(
        result.outcome, report=report.report(problem.bound, {"x": np.array(3.0)}, ended=CONVERGED)
    )
    assert disputed.status == "stopped" and disputed.stopped.startswith("by the run's own tests: converged")


def test_stored_multipliers_are_those_reported(tmp_path):
    problem = fccomodel.compile("var x; minimize (x - 3)^2; subject to c: x <= 1;").bind()
    result = problem.solve(budget="2s", seed=0)
    stored = fccomodel.load(result.save(tmp_path / "out"))
    assert (
        stored.multipliers == pytest.approx({"c": result.report.constraints["c"].multiplier})
        and stored.multipliers["c"] > 3
    )


def test_the_origin_may_be_better():
    """A likelihood written as a product is so small everywhere that its slope says nothing, and no
    curvature is known."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    text = "dim d; data D: table(x: real[d]); var w[d]; maximize prod[z in D] sigmoid(dot(w, z.x));"
    found = at(text, data={"D": {"x": x}}, w=[3.0, -3.0])
    assert found.relative["epsilon"] < 1e-6 and not found.solved and "at the origin" in found.verdict


def test_a_gain_by_violation_is_not_excused_by_a_steep_slope() -> None:
    """The objective is 0.17% better than it can be, by a violation of 7e-7."""
    bound = fccomodel.compile("var x; minimize 14700 * x; subject to c: sqrt(x) >= 0.0008026;").bind().bound
    assert report.report(bound, {"x": np.asarray(6.4416676e-07)}).solved
    assert not report.report(bound, {"x": np.asarray(6.4305818e-07)}).solved
