"""Chance constraints: their surrogates, the true frequency in the report, what is refused."""

import re

import numpy as np
import pytest
from scipy import stats

import fccomodel as fc
from fccomodel import report
from fccomodel.core.source import Source
from fccomodel.data.bind import bind
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from fccomodel.report.new_rows.chances import interval, on_new_rows

HEAD = "set G; data D : table(x: real[2], g: G); param a >= 0.01, <= 0.9 default 0.2; var w[2] in box(-9, 9); "
ROWS = np.random.default_rng(3).normal(size=(60, 2))
DATA = {"D": {"x": ROWS, "g": np.array(list("ab") * 30)}}


def problem_of(constraint: str):
    source = Source(text=f"{HEAD} minimize sum(w); subject to rare{constraint};")
    return check(parse(source), source)


@pytest.mark.parametrize(
    ("chance", "same"),
    [
        ("prob[z ~ D] (dot(w, z.x) > 1) <= 0.1", "cvar(tail = 0.1)[z ~ D] (dot(w, z.x) - 1) <= 0"),
        ("0.1 >= prob[z ~ D] (dot(w, z.x) > 0)", "cvar(tail = 0.1)[z ~ D] dot(w, z.x) <= 0"),
        ("prob[z ~ D] (dot(w, z.x) <= 1) >= 0.9", "cvar(tail = 0.1)[z ~ D] (dot(w, z.x) - 1) <= 0"),
        ("prob[z ~ D] (not dot(w, z.x) <= 1) <= a", "cvar(tail = a)[z ~ D] (dot(w, z.x) - 1) <= 0"),
        (
            "prob[z ~ D] (dot(w, z.x) <= 1 and w[1] >= z.x[2]) >= 0.9",
            "cvar(tail = 0.1)[z ~ D] max(dot(w, z.x) - 1, z.x[2] - w[1]) <= 0",
        ),
        (
            "prob[z ~ D] (dot(w, z.x) > 1 and w[1] < z.x[2]) <= 0.1",
            "cvar(tail = 0.1)[z ~ D] min(dot(w, z.x) - 1, z.x[2] - w[1]) <= 0",
        ),
    ],
)
def test_the_surrogate_is_the_tail_mean_of_the_excess(chance: str, same: str) -> None:
    point = {"w": np.array([0.4, -0.7])}
    rows = []
    for text in (chance, same):
        bound = bind(problem_of(f": {text}"), data=DATA)
        rows.append(report.report(bound, point).constraints["rare"].value)
    assert rows[0] == pytest.approx(rows[1], rel=1e-12)


FAMILY = "[k in G]: prob[z ~ D | z.g == k] (dot(w, z.x) > 1) <= 0.3 with surrogate = cvar"


def test_the_report_says_how_often_the_event_happens() -> None:
    problem = problem_of(FAMILY)
    assert all(note.code != "F0439" for note in problem.warnings)
    made = report.report(bind(problem, data=DATA), {"w": np.array([1.0, 0.5])})
    count = int((ROWS[::2] @ [1.0, 0.5] > 1).sum())
    words = f"`rare[a]`: its event happens in {count / 30:.3g} of these 30 rows, 0.3 allowed; new rows"
    assert any(note.startswith(words) for note in made.notes)
    assert not any("interval" in note for note in made.notes)  # the rows may be those fitted to


def test_rows_held_out_give_an_interval() -> None:
    bound = bind(problem_of(FAMILY), data=DATA)
    first, _ = on_new_rows(bound, {"w": np.array([1.0, 0.5])}, seed=0)
    count = int((ROWS[::2] @ [1.0, 0.5] > 1).sum())
    law = stats.binomtest(count, 30).proportion_ci(0.95, "exact")
    assert first == (
        f"`rare[a]`: its event happens in {count / 30:.3g} of 30 draws that were not fitted to "
        f"(95% interval of its probability: {law.low:.2g} to {law.high:.2g}), 0.3 allowed"
    )


@pytest.mark.slow
def test_a_solve_with_rows_held_out_has_an_interval_of_each_event() -> None:
    """Twelve weights are fitted to 60 rows of noise; the true probability is known in closed form."""
    text = (
        "dim d; data D: table(x: real[d]); var w[d] in ball(1); maximize E[z ~ D] dot(z.x, w); "
        "subject to c: prob[z ~ D] (dot(z.x, w) < -0.5) <= 0.1 with surrogate = cvar;"
    )
    rows = np.random.default_rng(1).normal(size=(120, 12))
    result = fc.compile(text).bind(D={"x": rows}).solve(seed=0, holdout=0.5)
    truth = stats.norm.cdf(-0.5 / np.linalg.norm(result.variables["w"]))
    (sentence,) = result.heldout.events
    low, high = map(float, re.search(r"probability: (\S+) to (\S+)\)", sentence).groups())
    assert low <= truth <= high
    assert sentence in " ".join(str(result).split())


def test_intervals_are_exact() -> None:
    for count, total in ((0, 10), (3, 10), (10, 10), (17, 400)):
        law = stats.binomtest(count, total).proportion_ci(0.95, "exact")
        assert interval(count, total) == pytest.approx((law.low, law.high), abs=1e-9)


@pytest.mark.slow
def test_a_normal_demand_and_a_smoothed_step() -> None:
    """The tail mean of a normal demand has a closed form; the smoothed step comes near the quantile."""
    text = "var q in box(0, 50) start 14; minimize q; subject to serve: prob[d ~ normal(10, 2)] (d > q) <= 0.05 with "
    z = stats.norm.ppf(0.95)
    tail = fc.compile(f"{text} surrogate = cvar;").bind().solve(budget="1s")
    assert float(tail.variables["q"]) == pytest.approx(10 + 2 * stats.norm.pdf(z) / 0.05, rel=0.02)
    assert any("draws that were not fitted to (95% interval" in note for note in tail.report.notes)
    step = fc.compile(f"{text} surrogate = sigmoid, width = 0.2;").bind().solve(budget="1s")
    assert float(step.variables["q"]) == pytest.approx(10 + 2 * z, rel=0.02)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (": prob[z ~ D] (dot(w, z.x) > 1 and z.x[1] > 0) <= 0.1", "by how much"),
        (": prob[z ~ D] (dot(w, z.x) == 1) <= 0.1", "by how much"),
        (": prob[z ~ D] (dot(w, z.x) > 1) <= 0", "no chance to bound"),
        (": prob[z ~ D] (dot(w, z.x) > 1) >= 0", "no chance to bound"),
        (": prob[z ~ D] (dot(w, z.x) > 1) <= w[1]", "not fixed"),
        (": prob[z ~ D] (dot(w, z.x) > 1) <= 0.1 with surrogate = mean", "no surrogate"),
        (": prob[z ~ D] (dot(w, z.x) > 1) <= 0.1 with surrogate = sigmoid", "needs its width"),
    ],
)
def test_what_is_refused(constraint: str, message: str) -> None:
    with pytest.raises(fc.FccoError, match=message):
        problem_of(constraint)


def test_python_and_latex() -> None:
    m = fc.Model("t")
    m.D = fc.table(x=fc.real)
    m.q = fc.var()
    m.minimize(m.q)
    m.subject_to(serve=fc.prob(z.x > m.q for z in m.D) <= 0.05, using={"surrogate": "cvar"})
    assert "serve: prob[z ~ D] (z.x > q) <= 0.05 with surrogate = cvar;" in str(m)
    assert "CVaR" in fc.compile(str(m)).latex()


def test_a_surrogate_that_cannot_hold_is_no_proof_that_the_probability_cannot() -> None:
    """No portfolio keeps the mean of the worst tenth above a loss that few draws exceed."""
    returns = np.random.default_rng(0).normal(size=(500, 3)) * [0.1, 0.2, 0.05] + [0.05, 0.1, 0.01]
    text = (
        "data D: table(r: real[3]); var x[3] in simplex(3); maximize E[z ~ D] dot(z.r, x); "
        "subject to c: prob[z ~ D] (dot(z.r, x) < -0.05) <= 0.1 with surrogate = cvar;"
    )
    result = fc.compile(text).bind(D={"r": returns}).solve(seed=0)
    assert np.mean(returns @ result.variables["x"] < -0.05) < 0.1
    assert result.status == "infeasible_nearby" and "Infeasible" not in result.report.verdict
    assert "surrogate of the probability in `c`" in result.report.verdict
