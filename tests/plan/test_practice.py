"""Theorems are not said to cover what they do not: what steps add to them is said, and the rest is
refused or another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fccomodel import algorithms, pipeline, plan, structure
from fccomodel.app.shown import explain
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.plan import candidates as considered

HEAD = "dim d;\nset K = {0, 1, 2};\ndata D : table(x: real[d], y: real, g: {0, 1, 2});\n"
LOSS = "square(dot(w, z.x) - z.y)"
RISK = f"(E[z ~ D | z.g == k] {LOSS})"
SMOOTH = f"var w[d];\nminimize mean[k in K] square{RISK};"
NESTED = f"var w[d];\nminimize square(E[a ~ D] log(1 + E[z ~ D] {LOSS.replace('z.y', 'a.y')}));"
DRAWN = "var w[d];\nminimize E[a ~ normal(0, 1)] square(E[z ~ D] (dot(w, z.x) - a));"
SIMPLEX = SMOOTH.replace("w[d]", "w[d] in simplex", 1)
LASSO = SMOOTH[:-1] + " + 0.1 * norm1(w);"
RIDGE = SMOOTH[:-1] + " + 0.1 * sumsq(w);"
BOUNDED = f"var w[d];\nminimize E[z ~ D] {LOSS};\nsubject to c: E[z ~ D | z.g == 0] {LOSS} <= 1;"
#: theorems about f(E g) on all of R^d, without r
BARE = {"sox", "sox_boost", "soap", "moap", "bsgd", "msvr", "sonex", "sonx", "alexr2"}


def candidates(text: str) -> dict[str, considered.Candidate]:
    problem = pipeline.compile_model(Source(text=HEAD + text, name="m")).problem
    return considered.candidates(structure.analyse(problem))


def planned(text: str, **options: Any) -> tuple[plan.Plan, str]:
    """A plan, and its explanation on one line."""
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=(60, 3)), "y": rng.normal(size=60), "g": np.arange(60) % 3.0}
    compiled = pipeline.compile_model(Source(text=HEAD + text, name="m"))
    analysis = structure.analyse(
        compiled.problem, pipeline.bind(compiled, pipeline.Binding(data={"D": columns}))
    )
    made = pipeline.decide(analysis, {k: (v, "command line") for k, v in options.items()})
    return made, " ".join(explain.to_text(analysis, made).split())


@pytest.mark.parametrize(
    ("text", "assumption", "others"),
    [
        (NESTED, "two levels", {"squared_hinge_sox", "icppac", "alexr", "hscg", "civr"}),
        (SIMPLEX, "whole space", {"scgd", "asc_pg", "squared_hinge_sox"}),
        (LASSO, "unregularised", {"scgd", "asc_pg", "nasa", "squared_hinge_sox"}),
        (DRAWN, "tracked blocks", {"squared_hinge_sox", "alexr", "icppac"}),
    ],
)
def test_no_theorem_covers_what_it_is_not_about(text: str, assumption: str, others: set[str]) -> None:
    considered = candidates(text)
    for name in (BARE - {"bsgd"} if assumption == "tracked blocks" else BARE) | others:
        assert not considered[name].covered and assumption in considered[name].broken, name


def test_what_steps_add_runs_unasked_and_is_said() -> None:
    cases = {
        NESTED: "all levels",
        SIMPLEX: "the projection on the simple set",
        LASSO: "the prox of the regulariser",
    }
    for text, words in cases.items():
        made, told = planned(text, algorithm="sox")
        assert not made.unverified and not made.rate
        assert any(words in line for line in made.practice), made.practice
        assert (
            "SOX, beyond sox-2022, Theorem 1, which does not cover all of the model" in told
            and "here" not in made.summary[0]
        )
        assert words in told.partition("Practice adds to the theorem")[2]


def test_a_smooth_regulariser_is_a_part_of_the_function() -> None:
    made, _ = planned(RIDGE, algorithm="sox")
    assert made.findings["unregularised"].holds and made.rate
    assert any("0.1 * sumsq(w): by the prox" in line for line in made.practice)


def test_draws_of_a_distribution_are_for_the_theorem_that_admits_them() -> None:
    """u of a block that is met once tracks nothing: a biased estimate, with the inner batches that its
    theorem asks for."""
    made, told = planned(DRAWN)
    assert made.algorithm == "bsgd" and "inner batches: of one size" in told
    assert any("biased however long the run" in line for line in made.practice)
    with pytest.raises(FccoError, match="met once: nothing tracks it"):
        planned(DRAWN, algorithm="sox")


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        ("sox", "steps: Adam-type; the theorem is about momentum"),
        ("sonex", "steps: Adam-type; sonex-alexr2-2025, Theorem E.6"),
    ],
)
def test_adam_type_steps_are_no_part_of_theorems_about_momentum(algorithm: str, words: str) -> None:
    adam, momentum = (planned(SMOOTH, algorithm=algorithm, step=step)[0] for step in ("adam", "momentum"))
    assert any(words in line for line in adam.practice) and not any(
        "Adam" in line for line in momentum.practice
    )


def test_a_theorems_schedule_is_not_practice() -> None:
    made, _ = planned(SMOOTH, algorithm="sox", schedule="theory")
    assert made.practice == ()


def test_samples_that_depend_on_one_another_are_said() -> None:
    made, _ = planned(SMOOTH, algorithm="sox", inner_batch=4)
    assert {line.partition(":")[0] for line in made.practice} >= {"samples", "inner samples"}
    whole = planned(SMOOTH, algorithm="sox")[0].practice
    assert not any("samples" in line.partition(":")[0] for line in whole), "all are in every step"


@pytest.mark.parametrize("name", ["icppac", "squared_hinge_sox"])
def test_methods_of_constraints_need_some(name: str) -> None:
    considered = candidates(SMOOTH)
    assert not considered[name].admitted and "constrained" in considered[name].lacking
    assert candidates(BOUNDED)[name].covered


def test_hscg_is_about_convex_outer_functions() -> None:
    """hscg-2020, equation (3): phi is a maximum of affine functions less a convex one."""
    considered = candidates(f"var w[d];\nminimize mean[k in K] log(1 + {RISK});")
    assert "outer convex" in considered["hscg"].lacking


@pytest.mark.parametrize("name", ["civr", "nasa", "scgd", "asc_pg", "vrsc_pg"])
def test_vector_methods_declare_lipschitz_functions_and_their_variance(name: str) -> None:
    assert {"outer Lipschitz", "inner Lipschitz", "bounded variance"} <= algorithms.all()[
        name
    ].requires.keys()


@pytest.mark.parametrize("body", ["min(dot(w, z.x), 1)", "(1 - pos(1 - dot(w, z.x)))"])
@pytest.mark.parametrize("weight", ["", " * z.y"])
def test_minima_of_rows_are_smoothed_as_what_they_stand_for_is(body: str, weight: str) -> None:
    """Clipped weights under rewards of both signs: neither weakly convex nor weakly concave."""
    made, _ = planned(f"var w[d];\nmaximize E[z ~ D] {body}{weight};")
    assert not made.unverified


def test_kinks_under_an_exponential_are_smoothed_as_smooth_functions_are_taken() -> None:
    """Losses over a temperature that is a variable, without the factor that makes a perspective of them."""
    made, _ = planned("var w[d]; var t >= 0.5;\nminimize log(E[z ~ D] exp(pos(1 - dot(w, z.x)) / t)) + t;")
    assert not made.unverified


def test_an_explanation_names_no_theorem_where_none_covers() -> None:
    made, told = planned(f"var w[d];\nminimize min[k in K] sqrt({RISK});", unverified=True)
    assert made.unverified and told.count("no theorem covers") == 1
    assert (
        made.promise is not None
        and made.promise.name not in told
        and "iterations" not in told.partition("Rejected")[0]
    )
    assert "no theorem covers the run" in made.summary[0]


def test_what_a_theorem_promises_is_by_what_holds() -> None:
    """alexr-2025: linear in 1 / eps where strongly convex with smooth f; n / (B1 B2) at least; kinks
    of g cost the 1 / B1."""
    convex = f"var w[d];\nminimize max[k in K] {RISK};"
    kinked = "var w[d];\nminimize max[k in K] (E[z ~ D | z.g == k] abs(dot(w, z.x) - z.y));"
    names = [candidates(text)["alexr"].promise.name.partition(", ")[2] for text in (RIDGE, convex, kinked)]
    assert names == ["Theorem 1 (i), up to logarithms", "Theorem 3", "Theorem 2"]


def test_theorems_about_half_squares_do_not_cover_other_dual_steps() -> None:
    """f smooth and merely convex: psi = f*, which Theorem 3 is about where f is quadratic alone; half
    squares are for any."""
    growing = SMOOTH.replace("square(E", "exp(E")
    one, squares = (candidates(growing)[name] for name in ("alexr", "alexr_quadratic"))
    assert growing != SMOOTH and "quadratic dual" in one.beyond and squares.covered
    assert candidates(SMOOTH)["alexr"].covered and candidates(RIDGE)["alexr"].covered
