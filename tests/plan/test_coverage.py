"""Which theorems cover a model, as an audit of the assumptions against the papers found it: model by
model, with the statement.

``covered`` and ``beyond`` name algorithms whose theorem covers the model, and algorithms that run
without one; ``refused`` those that do not run unasked. Words are of the finding that decides. Every
statement is cited from the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

import fccomodel
from fccomodel import pipeline, structure
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.pipeline import choosing
from fccomodel.plan import candidates as considered
from fccomodel.plan.candidates import Candidate

HEAD = "dim d;\nset K = {0, 1, 2};\ndata D : table(x: real[d], y: real, g: {0, 1, 2});\n"
VAR = "var w[d];\n"
BALL = "var w[d] in ball(5);\n"
LOSS = "square(dot(w, z.x) - z.y)"
RISK = f"(E[z ~ D | z.g == k] {LOSS})"
HINGE = "(E[z ~ D | z.g == k] pos(1 - z.y * dot(w, z.x)))"
SCORE = "(E[z ~ D | z.g == k] sigmoid(dot(w, z.x)))"
AFFINE = "(E[z ~ D | z.g == k] dot(w, z.x))"
PHASE = "(E[z ~ D | z.g == k] abs(square(dot(w, z.x)) - z.y))"
LOGISTIC = "(E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)))"
ADVERSARY = f"max[q in simplex(K)] (sum[k in K] q[k] * {LOGISTIC} - 0.5 * "
SMOOTH_ONES = ("sox", "sox_boost", "msvr")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, and what theorems say of it.

    says      assumption -> words of why it does not hold, for the algorithms that lack it
    statement of the paper that decides
    """

    text: str
    statement: str
    covered: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    says: dict[str, str] = field(default_factory=dict)


KINK = {"inner smooth": "has a kink"}
CASES = {
    "a hinge inside, under a smooth function": Case(
        text=f"{VAR}minimize mean[k in K] square{HINGE};",
        statement="sox-2022, Assumption 1 (ii): g is smooth; alexr-2025, Assumption 2: g is convex",
        beyond=("sox", "sonex", "hscg", "msvr", "sox_convex"), covered=("alexr_quadratic",), says=KINK,
    ),
    "a hinge inside, convex": Case(
        text=f"{VAR}minimize E[z ~ D] pos(1 - z.y * dot(w, z.x)) + 0.1 * sumsq(w);",
        statement="sox-2022, Assumption 1 (ii), Algorithm 2; alexr-2025, Theorem 2: g may be non-smooth",
        beyond=(*SMOOTH_ONES, "sonex", "hscg", "apg"), covered=("alexr", "alexr2", "sonx"), says=KINK,
    ),
    "absolute values of squares inside, f non-decreasing": Case(
        text=f"{VAR}minimize max[k in K] {PHASE};",
        statement="sonex-alexr2-2025, Assumption 3.2 (A3): f convex and non-decreasing, g weakly convex; "
                  "(A1), (A2): g smooth",
        beyond=("sonex", "hscg"), covered=("alexr2", "sonx"), refused=("alexr",), says=KINK,
    ),
    "absolute values of squares inside, f not monotone": Case(
        text=f"{VAR}minimize mean[k in K] square({PHASE} - 1);",
        statement="sonex-alexr2-2025, Assumption 3.2: neither (A2), for g has kinks, nor (A3), for f falls",
        beyond=("alexr2", "sonex", "sox", "hscg", "msvr"), refused=("alexr",),
        says={**KINK, "weakly monotone": "not monotone"},
    ),
    "a hinge in the objective, with a constraint": Case(
        text=f"{VAR}minimize E[z ~ D] pos(1 - z.y * dot(w, z.x));\nsubject to c: E[z ~ D] {LOSS} <= 9;",
        statement="sonex-alexr2-2025, Theorem 5.3: SONEX where g_0 .. g_m are smooth, ALEXR2 where they "
                  "are weakly convex",
        beyond=("sonex", "hscg"), covered=("alexr2",), says=KINK,
    ),
    "f that is not weakly convex": Case(
        text=f"{VAR}minimize mean[k in K] min(abs({SCORE} - 0.2), 0.5);",
        statement="sonex-alexr2-2025, Assumption 3.2 (A1): f is weakly convex",
        beyond=("sonex",), refused=("alexr", "hscg", "sonx"), says={"outer prox": "is not weakly convex"},
    ),
    "f that is weakly convex, by an envelope of a part": Case(
        text=f"{VAR}minimize mean[k in K] abs(square{SCORE} - 0.25);",
        statement="sonex-alexr2-2025, (3): what is smoothed is f itself; here it is the absolute value in f",
        beyond=("sonex",), refused=("alexr2", "alexr", "hscg"),
        says={"outer convex": "not convex", "outer prox": "is not the Moreau envelope"},
    ),
    "an equation": Case(
        text=f"{VAR}minimize E[z ~ D] {LOSS};\nsubject to c: E[z ~ D | z.g == 0] {LOSS} == 1;",
        statement="sonex-alexr2-2025, problem (7) has inequalities; as h <= 0 and -h <= 0 Assumption 5.1 "
                  "fails",
        beyond=("sonex", "alexr2", "hscg"), says={"regular constraints": "is an equation"},
    ),
    "more constraints than variables": Case(
        text="var a[2];\nminimize E[z ~ D] square(a[1] * z.x[1] + a[2] - z.y);\n"
        "subject to c[k in K]: E[z ~ D | z.g == k] square(a[1] * z.x[1] + a[2] - z.y) <= 4;",
        statement="sonex-alexr2-2025, Assumption 5.1: the m columns of J in R^{d x m} are independent, "
                  "so that m <= d",
        beyond=("sonex", "alexr2", "hscg"), says={"regular constraints": "3 constraints of 2 numbers"},
    ),
    "constraints that may be independent": Case(
        text=f"{VAR}minimize E[z ~ D] {LOSS};\nsubject to c: E[z ~ D | z.g == 0] {LOSS} <= 1;",
        statement="sonex-alexr2-2025, Assumption 5.1 and Proposition 5.2 (rho > m (C_g + 1) / delta), "
                  "Theorem 5.3",
        covered=("sonex", "alexr2", "hscg"),
    ),
    "squares of affine expectations on a ball": Case(
        text=f"{BALL}minimize mean[k in K] square{AFFINE};",
        statement="sox-2022, Assumption 3: f is monotone, without exception; alexr-2025, Assumption 3: "
                  "only where g is nonlinear",
        covered=("alexr_quadratic",), beyond=("sox_convex", "sox"), says={"outer always monotone": "not non-decreasing"},
    ),
    "squares of affine expectations": Case(
        text=f"{VAR}minimize mean[k in K] square{AFFINE};",
        statement="alexr-2025, footnote 1: f_i is monotone only where g_i is nonlinear", covered=("alexr", "sox", "sonex"),
    ),
    "f that falls, g convex": Case(
        text=f"{VAR}minimize mean[k in K] square({RISK} - 3);",
        statement="alexr-2025, Assumption 3: f is non-decreasing where g is nonlinear", covered=("sox", "sonex"),
        refused=("alexr", "sox_convex"), says={"outer monotone": "not monotone"},
    ),
    "concave f": Case(
        text=f"{VAR}minimize mean[k in K] log(1 + {RISK});",
        statement="hscg-2020, (3): phi is a maximum of affine functions less a convex one", covered=("sox", "sonex"),
        refused=("alexr", "hscg"), says={"outer convex": "not convex"},
    ),
    "merely convex smooth f": Case(
        text=f"{VAR}minimize mean[k in K] exp{RISK};",
        statement="alexr-2025, Theorems 2 and 3: psi is half a square; Theorem 1: any psi, mu > 0", covered=("alexr_quadratic",),
        beyond=("alexr",), says={"quadratic dual": "psi = f*"},
    ),
    "the worst group": Case(
        text=f"{VAR}minimize max[k in K] {RISK};",
        statement="hscg-2020, (3); alexr-2025, Assumptions 2 and 3; sonex-alexr2-2025, (A1), (A2)",
        covered=("alexr", "sonex", "alexr2", "hscg", "hscg_entropy"), refused=("sox",), says={"outer smooth": "has kinks"},
    ),
    "a simple set": Case(
        text=f"var w[d] in simplex;\nminimize mean[k in K] square{RISK};",
        statement="sox-2022, Algorithm 1, line 7, and sonex-alexr2-2025, (1), are on all of R^d; "
                  "alexr-2025, Assumption 1: a set",
        covered=("alexr",), beyond=("sox", "sonex", "alexr2"), says={"whole space": "in a simple set"},
    ),
    "a regulariser with kinks": Case(
        text=f"{VAR}minimize mean[k in K] square{RISK} + 0.1 * norm1(w);",
        statement="sonex-alexr2-2025, (1), and sox-2022 have none; hscg-2020, section 2.1: R with a prox",
        covered=("alexr", "hscg"), beyond=("sox", "sonex", "alexr2"), says={"unregularised": "kinks"},
    ),
    "a regulariser without a prox": Case(
        text=f"{VAR}minimize E[z ~ D] {LOSS} + norminf(w - 1);",
        statement="hscg-2020, section 2.1; Beck and Teboulle 2009: r has a prox", refused=("apg", "ascvrg"),
    ),
    "three levels": Case(
        text=f"{VAR}minimize square(E[a ~ D] log(1 + E[z ~ D] {LOSS.replace('z.y', 'a.y')}));",
        statement="all five papers: two levels", beyond=("sox", "sonex", "alexr2"), refused=("alexr", "hscg"),
        says={"two levels": "inside the tracked expectation"},
    ),
    "a composition in a constraint": Case(
        text=f"{VAR}minimize E[z ~ D] {LOSS};\nsubject to c: mean[k in K] square{RISK} <= 9;",
        statement="sonex-alexr2-2025, (7): constraints are expectations", refused=("alexr",),
    ),
    "draws of a distribution outside": Case(
        text=f"{VAR}minimize E[a ~ normal(0, 1)] square(E[z ~ D] (dot(w, z.x) - a));",
        statement="sox-2022, (1): a finite sum of blocks", covered=("bsgd",), refused=("sox", "sonex", "alexr"),
        says={"tracked blocks": "met once"},
    ),
    "an infinite sum inside": Case(
        text="var t >= -1, <= 1;\nminimize square(E[e ~ normal(0, 1)] (t - e));",
        statement="ascvrg-2021, (1): finite sums", refused=("ascvrg",), says={"finite sum": "normal"},
    ),
    "more inner functions than variables": Case(
        text=f"{VAR}minimize mean[i in D] square(E[z ~ D | z.y > i.y - 9] {LOSS});",
        statement="sonex-alexr2-2025, Assumption 4.3: grad g in R^{n d1 x d} of full rank", refused=("alexr2_final",),
        covered=("alexr2",), says={"independent inner": "numbers have gradients that depend"},
    ),
    # -------------------------------------------------------------------- covered, and once refused
    "penalised weights of groups, as printed": Case(
        text=f"{BALL}minimize {ADVERSARY}mean[k in K] (q[k] - 1)^2);",
        statement="alexr-2025, (7) and (8): its dual is a convex FCCO problem", covered=("alexr_quadratic", "hscg", "apg"),
    ),
    "penalised weights of groups, phi(n q)": Case(
        text=f"{BALL}minimize {ADVERSARY}mean[k in K] (3 * q[k] - 1)^2);",
        statement="alexr-2025, (7): phi of n q_i", covered=("alexr_quadratic", "hscg"),
    ),
    "penalised weights of groups, a sum": Case(
        text=f"{BALL}minimize {ADVERSARY}sum[k in K] (q[k] - 1/3)^2);",
        statement="alexr-2025, (7) and (8), its dual with an affine part", covered=("alexr_quadratic", "hscg"),
    ),
    "penalised weights of groups, chi2": Case(
        text=f"{BALL}minimize {ADVERSARY}chi2(q, uniform(K)));",
        statement="alexr-2025, (7) and (8)", covered=("alexr_quadratic", "hscg"),
    ),
    "weights of groups by KL": Case(
        text=f"{BALL}minimize {ADVERSARY}kl(q, uniform(K)));",
        statement="hscg-2020, (3): phi(u) = max <u, y> - psi(y) with psi = entropy", covered=("hscg", "ascvrg"),
        beyond=("alexr",), says={"quadratic dual": "psi = f*"},
    ),
    "log-mean-exp over groups": Case(
        text=f"{BALL}minimize logmeanexp(theta = 2)[k in K] {LOGISTIC};",
        statement="hscg-2020, (3)", covered=("hscg", "ascvrg"), beyond=("alexr", "sox"),
    ),
    "log-sum-exp over groups, strongly convex": Case(
        text=f"{VAR}minimize log(sum[k in K] exp{LOGISTIC}) + 0.1 * sumsq(w);",
        statement="alexr-2025, Theorem 1: any strongly convex psi, entropy among them, where mu > 0 and "
                  "f is smooth",
        covered=("alexr", "hscg", "sox", "sonex"),
    ),
    "log-sum-exp of one sum": Case(
        text=f"{VAR}minimize log(E[z ~ D] exp(dot(w, z.x)));",
        statement="hscg-2020, (3): phi is convex, and the logarithm of an expectation is concave in it", covered=("sox", "sonex"),
        refused=("hscg", "alexr"), says={"outer convex": "concave"},
    ),
    "the worst of losses of rows": Case(
        text=f"{VAR}minimize max[z in D] {LOSS};",
        statement="sonex-alexr2-2025, (1): f = max has an exact prox, and its arguments are smooth", covered=("sonex", "alexr2"),
    ),
    "the tail mean of groups": Case(
        text=f"{VAR}minimize cvar(tail = 0.5)[k in K] {RISK};",
        statement="alexr-2025, (8) with phi* = [u]_+ / alpha", covered=("alexr", "sonex", "alexr2", "hscg"), refused=("sox",),
    ),
    "a function of an envelope": Case(
        text=f"{VAR}minimize mean[k in K] exp(abs{AFFINE});",
        statement="sonex-alexr2-2025, (3): f_lambda is the Moreau envelope of f", beyond=("sonex", "hscg"),
        says={"outer prox": "is not the Moreau envelope"},
    ),
}  # fmt: skip


@cache
def found(text: str) -> dict[str, Candidate]:
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=(30, 3)), "y": rng.normal(size=30), "g": np.arange(30) % 3.0}
    compiled = pipeline.compile_model(Source(text=HEAD + text, name="m"))
    bound = pipeline.bind(compiled, pipeline.Binding(data={"D": columns}))
    return considered.candidates(structure.analyse(compiled.problem, bound))


@pytest.mark.parametrize("name", CASES)
def test_which_theorems_cover(name: str) -> None:
    case = CASES[name]
    assert case.statement
    all_of = found(case.text)
    for one in case.covered:
        assert all_of[one].covered, (one, all_of[one].broken)
    for one in case.beyond:
        assert all_of[one].admitted and not all_of[one].covered and all_of[one].guarantee == "nothing", (
            one,
            all_of[one].broken,
        )
        assert all_of[one].adds()
    for one in case.refused:
        assert not all_of[one].admitted, one
    broken = [(key, f.why) for one in (*case.beyond, *case.refused) for key, f in all_of[one].broken.items()]
    for assumption, words in case.says.items():
        assert any(key == assumption and words in why for key, why in broken), (assumption, words, broken)


@pytest.mark.parametrize("name", CASES)
def test_no_theorem_with_smooth_g_covers_kinks_inside(name: str) -> None:
    """sox-2022, Assumption 1 (ii); sonex-alexr2-2025, Assumption 3.2 (A1), (A2); hscg-2020, Assumption
    2.1 (a)."""
    all_of = found(CASES[name].text)
    kinked = any(not g.mean.smooth for c in all_of.values() for b in c.setting.blocks for g in b.inner)
    if kinked:
        asking = [c for c in all_of.values() if "inner smooth" in c.record.requires]
        assert asking and not any(c.covered for c in asking)


def test_near_stationarity_is_of_the_smoothed_objective_where_g_has_kinks() -> None:
    """sonex-alexr2-2025, Theorem 4.10 and the caption of Table 1."""
    kinked, smooth = (found(CASES[name].text)["alexr2"] for name in (
        "absolute values of squares inside, f non-decreasing", "the worst group",
    ))  # fmt: skip
    assert kinked.guarantee == "smoothed stationarity" and "F_lambda, not of the problem" in kinked.worth()
    assert smooth.guarantee == "stationarity"


def test_a_sum_that_steps_take_in_part_is_a_level_of_its_own() -> None:
    """alexr-2025, (1): f_i is deterministic. log(sum[k in K] exp(E ..)) is f of all groups only where
    each step has them all."""
    rng = np.random.default_rng(0)
    model = fccomodel.compile(HEAD + CASES["log-sum-exp over groups, strongly convex"].text).bind(
        D={"x": rng.normal(size=(30, 3)), "y": np.ones(30), "g": np.arange(30) % 3.0}
    )
    assert model.plan(algorithm="alexr").plan.guarantee == "optimum"
    with pytest.raises(FccoError, match="steps take 2 of 3 members of the sum"):
        model.plan(algorithm="alexr", outer_batch=2)


def test_theorems_about_penalties_cite_what_makes_them_about_constraints() -> None:
    """hscg-2020 has no constraints: sonex-alexr2-2025, Proposition 5.2, of its penalty."""
    all_of = found(CASES["constraints that may be independent"].text)
    assert "Proposition 5.2" in all_of["hscg"].promise.name and "heavy penalty" in all_of["hscg"].findings
    for name in ("sonex", "alexr2", "hscg", "hscg_restarts", "sonx"):
        assert (
            all_of[name].findings["heavy penalty"].holds
            and "rho = 10" in all_of[name].findings["heavy penalty"].why
        )


@pytest.mark.parametrize(
    "name", ["sox", "sox_boost", "msvr", "sonex", "hscg", "hscg_restarts", "apg", "bsgd", "civr"]
)
def test_a_schedule_by_constants_that_are_infinite_is_refused(name: str) -> None:
    """Kinks inside expectations: L_g is infinite, and no step size of these theorems is positive."""
    text = CASES["a hinge inside, convex"].text
    rng = np.random.default_rng(0)
    model = fccomodel.compile(HEAD + text).bind(
        D={"x": rng.normal(size=(30, 3)), "y": np.ones(30), "g": np.arange(30) % 3.0}
    )
    with pytest.raises(FccoError, match=r"F0613[\s\S]*L_g is infinite"):
        model.plan(algorithm=name, schedule="theory")
    assert "L_g" not in str(
        model.explain(algorithm="alexr", schedule="theory").json["constants"]["L_g"]["value"]
    )


def test_a_conic_model_has_the_theorem_of_the_interior_point_method() -> None:
    """No stochastic algorithm's assumptions hold: exp(1000 x) has no Lipschitz constant on ranges that
    are taken for granted."""
    model = fccomodel.compile("var x;\nminimize exp(1000*(x+1)) + x^2;").bind()
    result = model.solve()
    assert (
        result.report.solved
        and result.json["algorithm"] == "interior_point"
        and result.json["guarantee"] == "optimum"
    )
    assert result.json["answered_by"]["method"] == "interior-point method" and not result.json["unverified"]
    told = str(model.explain())
    assert "interior-point method" in told and "no stochastic algorithm's theorem covers" in " ".join(
        told.split()
    )
    with pytest.raises(FccoError, match="F0605"):
        model.plan(polish=False)


def test_divergences_to_a_point_are_solved_by_the_interior_point_method() -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        p, c = rng.dirichlet(np.ones(4)), rng.normal(size=4)
        model = fccomodel.compile(
            "param r[4] > 0; param c[4]; var q[4] in simplex;\nminimize kl(q, r) + dot(c, q);"
        )
        result = model.bind(params={"r": p, "c": c}).solve()
        best = -np.log(np.sum(p * np.exp(-c)))
        assert result.report.solved and result.objective == pytest.approx(best, abs=1e-6)


def test_what_the_interior_point_method_needs_is_refused_by_name() -> None:
    model = fccomodel.compile("var x;\nminimize (x^2 - 1)^2;").bind()
    with pytest.raises(FccoError, match="F0604"):
        model.plan(algorithm="interior_point")
    problem = pipeline.compile_model(Source(text="var x;\nminimize x^2;", name="m")).problem
    assert choosing.bound_without_data(structure.analyse(problem)) is not None
