"""Every assumption of a theorem, decided on models that meet it and on models that break it; and what
follows for the choice."""

from __future__ import annotations

import dataclasses
import re
from functools import cache

import numpy as np
import pytest

import fccomodel
from fccomodel import algorithms, pipeline, structure
from fccomodel.core.source import Source
from fccomodel.normal_form import normalise
from fccomodel.plan import assumptions
from fccomodel.plan.assumptions import Finding, Setting

HEAD = (
    "dim d;\nset K = {0, 1, 2};\ndata D : table(x: real[d], y: real, g: {0, 1, 2});\ndata F : "
    "table(x: real[d]);\n"
)
LOSS = "square(dot(w, z.x) - z.y)"
RISK = f"(E[z ~ D | z.g == k] {LOSS})"
SMOOTH = f"var w[d];\nminimize mean[k in K] square{RISK};"
MEAN = f"var w[d];\nminimize E[z ~ D] {LOSS};"
WORST = f"var w[d];\nminimize max[k in K] {RISK};"
BEST = f"var w[d];\nminimize min[k in K] {RISK};"
BOUNDED = f"var w[d];\nminimize E[z ~ D] {LOSS};\nsubject to c: E[z ~ D | z.g == 0] {LOSS} <= 1;"
FALLING = f"var w[d];\nminimize mean[k in K] exp(-{RISK});"
HINGE = "var w[d];\nminimize E[z ~ D] pos(1 - dot(w, z.x));"
RELU = (
    "net s : real[d] -> real;\nvar w = params(s);\nminimize mean[k in K] square(E[z ~ D | z.g == k] "
    "s(w; z.x));"
)
NOISE = "var t >= -1, <= 1;\nminimize square(E[z ~ normal(0, 1)] (t - z));"
RIDGE = f"var w[d];\nminimize E[z ~ D] {LOSS} + 0.5 * sumsq(w);"
DRAWN = "var w[d];\nminimize E[a ~ normal(0, 1)] square(E[z ~ D] (dot(w, z.x) - a));"
PAIR = "var w[d];\nminimize max(E[z ~ D | z.g == 0] dot(w, z.x), E[z ~ D | z.g == 1] dot(w, z.x));"
#: assumption -> (a model that meets it, how far that is known, a model that does not, words of what it lacks)
CASES = {
    "unconstrained": (SMOOTH, "proved", BOUNDED, "constraints: c"),
    "constrained": (BOUNDED, "proved", SMOOTH, "no constraint"),
    "unregularised": (RIDGE, "proved", f"var w[d];\nminimize E[z ~ D] {LOSS} + norm1(w);", "norm1(w) has kinks"),
    "whole space": (SMOOTH, "proved", SMOOTH.replace("w[d]", "w[d] in simplex", 1), "in a simple set, simplex"),
    "quadratic dual": (SMOOTH, "proved", SMOOTH.replace("square", "exp", 1), "with dual steps by psi = f*"),
    "regular constraints": (SMOOTH, "proved", BOUNDED.replace("c: E", "c[k in K]: E").replace("z.g == 0", "z.g == k")
                            .replace("w[d]", "w[2]", 1).replace("dot(w, z.x)", "w[1] * z.x[1]"), "3 constraints of 2 numbers"),
    "strictly feasible": (SMOOTH, "proved", BOUNDED.replace("<= 1", "== 1"), "is an equation"),
    "heavy penalty": (SMOOTH, "proved", None, ""),
    "convex": (SMOOTH, "proved", FALLING, "not convex"),
    "strongly convex": (RIDGE, "proved", MEAN, "no squared norm of w"),
    "smooth": (MEAN, "bounded from data", WORST, "max has kinks"),
    "prox regulariser": (RIDGE, "proved", f"var w[d];\nminimize E[z ~ D] {LOSS} + norminf(w - 1);", "norminf"),
    "bounded domain": (SMOOTH.replace("w[d]", "w[d] in ball(2)", 1), "proved", SMOOTH, "w is unbounded"),
    "separable steps": (SMOOTH, "proved", SMOOTH.replace("w[d]", "w[d] in simplex", 1), "simplex"),
    "outer smooth": (MEAN, "proved", WORST, "max has kinks"),
    "outer prox": (WORST, "proved", BEST, "is not weakly convex"),
    "outer weakly convex": (WORST, "proved", BEST, "not weakly convex"),
    "outer convex": (WORST, "proved", BEST, "not convex"),
    "outer monotone": (WORST, "proved", FALLING, "decreasing"),
    "outer always monotone": (WORST, "proved", "var w[d];\nminimize square(E[z ~ D] dot(w, z.x));", "not non-decreasing"),
    "outer Lipschitz": (WORST, "proved", None, ""),
    "conjugate prox": (SMOOTH, "proved", f"var w[d];\nminimize (E[z ~ D] {LOSS}) * (E[z ~ D] dot(w, z.x));", "several"),
    "maxima": (WORST, "proved", "var w[d];\nminimize abs(E[z ~ D] dot(w, z.x)) + sumsq(w);", "no maximum"),
    "bounded divergence": (MEAN, "proved", None, ""),
    "kinkless inner": (SMOOTH, "bounded from data", HINGE, "not smooth as it is"),
    "inner smooth": (SMOOTH, "bounded from data", RELU, "s"),
    "smooth samples": (SMOOTH, "bounded from data", RELU, "s"),
    "independent inner": (MEAN, "proved", SMOOTH.replace("mean[k in K]", "mean[i in D]").replace("z.g == k", "z.y > i.y - 9"),
                          "30 inner functions of 3 numbers"),
    "inner convex": (SMOOTH, "proved", "var w[d];\nminimize square(E[z ~ D] sigmoid(dot(w, z.x)));", "sigmoid"),
    "inner Lipschitz": (HINGE, "bounded from data", RELU, "s"),
    "inner weakly convex": (HINGE, "proved", RELU, "s"),
    "weakly monotone": (SMOOTH, "bounded from data", RELU, "s"),
    "bounded variance": (HINGE, "assumed", None, ""),
    "finite sum": (SMOOTH, "proved", NOISE, "normal"),
    "two levels": (SMOOTH, "proved",
                   f"var w[d];\nminimize square(E[a ~ D] log(1 + E[z ~ D] {LOSS.replace('z.y', 'a.y')}));", "inside the tracked"),
    "tracked blocks": (SMOOTH, "proved", DRAWN, "met once"),
    "scalar inner": (SMOOTH, "proved", PAIR, "has 2 expectations"),
    "plain expectations": (BOUNDED, "proved", SMOOTH, "a nonlinear function of expectations"),
    "shared inner": (SMOOTH, "bounded from data",
                     DRAWN, "drawn from a distribution"),
    "linear coupling": (WORST, "proved", SMOOTH, "not a maximum"),
    "blocks partition rows": (SMOOTH, "proved",
                              "var w[d];\nminimize mean[a in D] square(E[z ~ D] (dot(w, z.x) - a.y));", "same rows"),
}  # fmt: skip


@cache
def setting(text: str, data: bool = True, penalty: str | None = "smoothed_hinge") -> Setting:
    compiled = pipeline.compile_model(Source(text=HEAD + text, name="m"))
    bound = None
    if data:
        rng = np.random.default_rng(0)
        columns = {"x": rng.normal(size=(30, 3)), "y": rng.normal(size=30), "g": np.arange(30) % 3.0}
        nets = {"s": "mlp(4, activation=relu)"} if "net s" in text else {}
        bound = pipeline.bind(
            compiled, pipeline.Binding(data={"D": columns, "F": {"x": columns["x"]}}, nets=nets)
        )
    analysis = structure.analyse(compiled.problem, bound)
    return Setting(normal=normalise(compiled.problem, bound), analysis=analysis, bound=bound, penalty=penalty)


def decide(name: str, text: str, **given: object) -> Finding:
    return assumptions.ALL[name].decide(setting(text, **given))  # type: ignore[arg-type]


def test_every_assumption_has_a_case() -> None:
    assert CASES.keys() == assumptions.ALL.keys()


@pytest.mark.parametrize("name", CASES)
def test_where_it_holds(name: str) -> None:
    text, standing, _, _ = CASES[name]
    found = decide(name, text)
    assert found.holds and found.why, found
    assert str(found.standing) == standing, found


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[2]])
def test_where_it_does_not(name: str) -> None:
    _, _, text, words = CASES[name]
    assert text is not None
    found = decide(name, text)
    assert not found.holds and words in found.why, found


def test_samples_are_not_smooth_where_their_mean_is() -> None:
    """The kink lies under a density, which a mean passes over and STORM's differences of one sample do
    not."""
    text = "var t >= -1, <= 1;\nminimize square(E[e ~ normal(0, 1)] abs(t - e));"
    of_mean, of_samples = (decide(name, text) for name in ("inner smooth", "smooth samples"))
    assert of_mean.holds
    assert (
        not of_samples.holds and "abs(t - e)" in of_samples.why and "Moreau envelopes" in of_samples.practice
    )
    asking = {name for name, a in algorithms.all().items() if "smooth samples" in a.requires}
    assert asking == {"ascvrg", "civr", "hscg", "hscg_entropy", "hscg_restarts", "msvr", "vrsc_pg"}


def test_a_vector_of_expectations_needs_one_that_the_variables_decide() -> None:
    constant = "var w[d];\nminimize E[z ~ D] z.y + sumsq(w);"
    assert not decide("shared inner", constant).holds
    assert decide("shared inner", constant.replace("z.y", "z.y * w[1]")).holds
    smoothed_by_row = (
        "var w[d];\nminimize w[1];\nsubject to cvar(tail = 0.1)[z ~ D] max[k in K] (z.y - k * w[2]) <= 0;"
    )
    assert not decide("shared inner", smoothed_by_row).holds


def test_a_penalty_decides_what_the_outer_function_is() -> None:
    assert not decide("outer smooth", BOUNDED).holds
    assert decide("outer smooth", BOUNDED, penalty="squared_hinge").holds
    assert decide("outer smooth", BOUNDED, penalty="lagrangian").holds
    assert decide("outer smooth", BOUNDED, penalty=None).holds, (
        "constraints are not part of a form that takes none"
    )


def test_the_sign_of_a_plain_expectation_belongs_to_its_inner_function() -> None:
    concave = "var w[d];\nmaximize E[z ~ D] log(1 + exp(dot(w, z.x)));"
    assert decide("outer monotone", concave).holds and not decide("inner convex", concave).holds
    assert decide("inner convex", "var w[d];\nmaximize E[z ~ D] -log(1 + exp(dot(w, z.x)));").holds


def test_smoothness_on_a_bounded_range_counts_and_is_labelled() -> None:
    found = decide("outer smooth", "var w[d];\nminimize log(E[z ~ D] exp(dot(w, z.x)));")
    assert found.holds and str(found.standing) == "assumed" and assumptions.RANGE in found.why


@pytest.mark.parametrize("name", ["outer Lipschitz", "outer smooth"])
def test_what_is_below_a_root_is_taken_to_stay_away_from_0(name: str) -> None:
    text = "var w[d];\nminimize sqrt({} + E[z ~ D] square(dot(w, z.x)));"
    found = decide(name, text.format("0"))
    assert str(found.standing) == "assumed" and assumptions.RANGE in found.why
    assert str(decide(name, text.format("1")).standing) == "proved"
    assert not decide(
        "outer smooth", "var w[d];\nminimize abs(sqrt(E[z ~ D] square(dot(w, z.x))) - 1);"
    ).holds


def test_what_the_user_assumes_is_labelled() -> None:
    found = decide("inner smooth", RELU.replace("real;", "real assume smooth;", 1))
    assert (
        found.holds and str(found.standing) == "assumed" and "the model assumes that s is smooth" in found.why
    )


def test_a_net_that_is_not_bound_is_taken_on_trust() -> None:
    found = decide("inner smooth", RELU, data=False)
    assert found.holds and str(found.standing) == "assumed" and "not bound yet" in found.why


def test_without_data_nothing_is_bounded_from_it() -> None:
    for name in assumptions.ALL:
        assert str(decide(name, SMOOTH, data=False).standing) != "bounded from data"


def test_kinks_inside_an_expectation_are_smoothed_without_a_theorem() -> None:
    """No theorem of the papers has an envelope inside an expectation: g is smooth, or weakly convex
    (sonex-alexr2-2025, Assumption 3.2), or convex (alexr-2025, Assumption 2)."""
    found = decide("inner smooth", HINGE)
    assert not found.holds and found.met and "has a kink" in found.why and "no theorem" in found.practice


@pytest.mark.parametrize(
    "text",
    [
        f"var w[d];\nminimize sqrt(1 + E[z ~ D] {LOSS});\nsubject to c: norm1(w) + sum(w) <= 1;",
        f"var w[d];\nminimize sqrt(1 + cvar(tail = 0.5)[k in K] {RISK});",
    ],
)
def test_kinks_that_stand_in_no_expectation_are_smoothed_too(text: str) -> None:
    record = algorithms.all()["sonex"]
    found = {name: decide(name, text) for name in record.requires if name not in record.beyond}
    assert not [f.why for f in found.values() if not f.met]


def test_a_maximum_over_rows_has_kinks() -> None:
    text = "var w[d];\nminimize max[z in D] square(dot(w, z.x) - z.y);"
    assert not decide("outer smooth", text).holds and "max" in decide("outer smooth", text).why
    assert decide("outer prox", text).holds and not decide("prox regulariser", text).holds


# ------------------------------------------------------------------------------ after a replacement
#: a member of an expectation with a kink -> whether it is smooth once its kinks are replaced
REPLACED = {
    "pos(u)": True,
    "2 - abs(u)": True,
    "sqrt(1 + abs(u))": True,
    "log(1 + abs(u))": True,
    "sigmoid(max(u, 1 - u))": True,
    "exp(abs(u))": True,
    "abs(square(u) - 1) + abs(u)": True,
    "sqrt(abs(u))": False,
    "abs(u)^0.5": False,
    "entr(pos(u))": False,
    "1 / abs(u)": False,
    "sqrt(max(0, 1 - u))": False,
    "sqrt(norm2(w * z.x))": False,
    "log(max(u, 1 - u))": False,
    "sqrt(0.2 + abs(0.2 - abs(u)))": True,
}


@pytest.mark.parametrize("member", REPLACED)
def test_what_is_smooth_once_its_kinks_are_replaced(member: str) -> None:
    body = re.sub(r"\bu\b", "dot(w, z.x)", member)
    found = decide("inner smooth", f"var w[d];\nminimize E[z ~ D] ({body});", data=False)
    assert not found.holds and found.met == REPLACED[member], found
    assert found.met or "not even once" in found.why


def test_a_function_of_an_envelope_is_not_said_to_have_an_exact_prox() -> None:
    """What is run of exp(abs(E g)) is exp of an envelope: smooth, and no Moreau envelope itself, of
    which theorems speak."""
    found = decide(
        "outer prox", "var w[d];\nminimize mean[k in K] exp(abs(E[z ~ D | z.g == k] dot(w, z.x)));"
    )
    assert not found.holds and found.met and "not the Moreau envelope" in found.why
    bent = decide("outer prox", BEST)
    assert not bent.holds and bent.met and "not weakly convex" in bent.why and "smooth once min" in bent.why
    rough = decide("outer prox", BEST.replace(RISK, f"sqrt({RISK})"))
    assert not rough.met and "not even once" in rough.why
    exact = decide("outer prox", "var w[d];\nminimize mean[k in K] abs(E[z ~ D | z.g == k] dot(w, z.x));")
    assert exact.holds and "its prox is exact" in exact.why


def test_the_weight_of_the_penalty_is_checked_against_what_it_must_be_at_least() -> None:
    """sonex-alexr2-2025, Proposition 5.2: rho > m (C_g + 1) / delta of a mean over m penalties, so
    (C_g + 1) / delta of each; delta, a least singular value, is at most the norm of any
    constraint's gradient."""
    text = (
        "var w[d];\nminimize E[z ~ D] square(dot(w, z.x));\nsubject to c: 0.1 * w[1] + 1 <= 0; e: 2 "
        "* w[2] <= 0;"
    )
    few, many = (dataclasses.replace(setting(text), rho=rho) for rho in (29.0, 31.0))
    low, high = (assumptions.ALL["heavy penalty"].decide(one) for one in (few, many))
    assert not low.holds and low.practice and "rho = 29 is not above 30" in low.why
    assert high.holds and str(high.standing) == "assumed" and "rho = 31" in high.why and "delta" in high.why


FAMILIES = {
    "max[k in {0, 1, 2} | k != 1] (RISK)": True,
    "topk(k = 2)[k in {0, 1, 2}] (2 * RISK)": True,
    "max[k in {0, 1, 2}] (RISK + max(w[1], w[2]))": True,
    "max(0.1, RISK)": False,
    "max(0.1, max[k in {0, 1}] (RISK))": False,
    "max[k in {0, 1}] max(RISK, 0.1)": False,
    "max[k in {0, 1}] max[j in {1, 2}] (RISK + E[z ~ D | z.g == j] dot(w, z.x))": False,
    "max[k in {0, 1}, j in {1, 2}] (RISK + E[z ~ D | z.g == j] dot(w, z.x))": False,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_those_of_one_family(family):
    """What is admitted can be emitted: it is known before whether an algorithm has a form for the model."""
    risk = "E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)".replace("k", "k" if "k in" in family else "0")
    head = "dim d; data D : table(x: real[d], y: real, g: {0, 1, 2}); var w[d]; minimize "
    data = {"x": np.random.default_rng(0).normal(size=(30, 3)), "y": np.ones(30), "g": np.arange(30) % 3.0}
    problem = fccomodel.compile(head + family.replace("RISK", risk) + " + 0.05 * sumsq(w);").bind(D=data)
    if FAMILIES[family]:
        assert pipeline.emit(problem.plan(algorithm="ooa")).text
    else:
        with pytest.raises(fccomodel.FccoError, match="F0604"):
            problem.plan(algorithm="ooa")
    assert pipeline.emit(problem.plan()).text


#: Constraints of x and y, and what two of them are: an equation, parallel, or nothing of the kind.
PAIRS = {
    "c: x^2 + y <= 0; d: -x^2 - y <= 0": "equation",
    "c: 2 * (x + y) <= 1; d: -x - y <= -0.5": "equation",
    "c: exp(x) + y <= 1; d: exp(x) >= 1 - y": "equation",
    "c[k in 1 .. 3]: k * x + y <= 1; d[j in 1 .. 3]: j * x >= 1 - y": "equation",
    "c: 2 * h <= 0; d: h >= 0": "equation",
    "c: twice(x, y) <= 0; d: -h / 7 <= 0": "equation",
    "c: 0 <= x + y <= 1": "parallel",
    "c: x + y <= 1; d: 2 * x + 2 * y <= 5": "parallel",
    "c: x^2 + y <= 1; d: x + y <= 1": "",
    "c: x + y <= 1; d: x - y <= 1": "",
}


@pytest.mark.parametrize("constraints", PAIRS)
def test_inequalities_that_are_multiples_of_one_another_are_not_regular(constraints: str) -> None:
    head = "var x; var y; def twice(u, v) = 2 * (u^2 + v - 1); let h = x^2 + y - 1; "
    text = f"{head}minimize (x - 1)^2 + y^2; subject to {constraints};"
    compiled = pipeline.compile_model(Source(text=text, name="m"))
    bound = pipeline.bind(compiled, pipeline.Binding())
    analysis = structure.analyse(compiled.problem, bound)
    made = Setting(normal=normalise(compiled.problem, bound), analysis=analysis, bound=bound)
    regular = assumptions.ALL["regular constraints"].decide(made)
    strict = assumptions.ALL["strictly feasible"].decide(made)
    assert regular.holds == (not PAIRS[constraints]), regular
    assert strict.holds == (PAIRS[constraints] != "equation"), strict
