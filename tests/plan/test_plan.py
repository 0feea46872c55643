"""The choice of algorithm by requirements, options with their origins, and what became of each part of
a model."""

from __future__ import annotations

import sys
from math import isfinite
from typing import Any

import numpy as np
import pytest

from fccomodel import algorithms, pipeline, plan
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.plan import assumptions, rates

HEAD = "dim d;\nset K = {0, 1, 2};\ndata D : table(x: real[d], y: real, g: {0, 1, 2});\n"
LOSS = "square(dot(w, z.x) - z.y)"


def made(text: str, data: bool = False, **options: Any) -> plan.Plan:
    compiled = pipeline.compile_model(Source(text=HEAD + text, name="m"))
    bound = None
    if data:
        rng = np.random.default_rng(0)
        columns = {"x": rng.normal(size=(30, 3)), "y": rng.normal(size=30), "g": np.arange(30) % 3.0}
        bound = pipeline.bind(compiled, pipeline.Binding(data={"D": columns}))
    return pipeline.decide(
        pipeline.analyse(compiled.problem, bound), {k: (v, "command line") for k, v in options.items()}
    )


def code(text: str, **options: Any) -> str:
    with pytest.raises(FccoError) as caught:
        made(text, **options)
    assert all(d.reason and d.fix for d in caught.value.diagnostics)
    (code,) = {d.code for d in caught.value.diagnostics}
    return code


SMOOTH = f"var w[d];\nminimize mean[k in K] square(E[z ~ D | z.g == k] {LOSS});"
WORST = f"var w[d];\nminimize max[k in K] (E[z ~ D | z.g == k] {LOSS});"
BOUNDED = f"var w[d];\nminimize E[z ~ D] {LOSS};\nsubject to c: E[z ~ D | z.g == 0] {LOSS} <= 1;"


def test_a_smooth_composition_takes_the_stronger_guarantee_and_the_better_rate() -> None:
    chosen = made(SMOOTH)
    assert chosen.promise is not None and chosen.promise.gives == "optimum" and chosen.via == ()
    rate = "max(n / (B1 sqrt(B2)), 1 / min(B1, B2)) / eps^5"
    title = chosen.algorithm_record.title
    assert chosen.rejected["sonex"] == [
        f"covered too; {title} has the stronger guarantee: a stationary point, O({rate})"
    ]
    sox = made(SMOOTH, algorithm="sox")
    assert sox.rejected["sonex"] == [f"covered too; SOX has the better rate: a stationary point, O({rate})"]


@pytest.mark.parametrize("text", [WORST, BOUNDED])
def test_a_non_smooth_outer_function_needs_smoothing(text: str) -> None:
    chosen = made(text)
    assert chosen.algorithm_record.outer != "smooth" and chosen.via and made(text, algorithm="sonex").via
    assert any("not smooth" in words or "constraints" in words for words in chosen.rejected["sox"])


def test_the_users_choice_replaces_the_selection_not_the_checks() -> None:
    chosen = made(SMOOTH, algorithm="sonex")
    assert chosen.algorithm == "sonex" and chosen.options["algorithm"] == ("sonex", "command line")
    assert code(BOUNDED, algorithm="sox") == "F0604"
    assert code(SMOOTH, algorithm="sonnex") == "F0603"
    assert code(SMOOTH, step="sgd") == "F0607"
    assert code(SMOOTH, beat=0.1) == "F0606"


def test_options_that_do_not_suit_are_told_at_once() -> None:
    with pytest.raises(FccoError) as caught:
        made(SMOOTH, step="sgd", schedule="decay", budget="60s")
    assert [found.code for found in caught.value.diagnostics] == ["F0614", "F0607"]


def test_every_value_has_an_origin() -> None:
    chosen = made(SMOOTH, algorithm="sox", gamma=0.3)
    assert chosen.options["gamma"] == (0.3, "command line") and chosen.hyper["gamma"] == 0.3
    assert chosen.options["beta"][1] == "automatic"
    assert set(chosen.hyper) <= set(chosen.options)


def test_batches_are_whole_where_that_costs_little() -> None:
    assert made(SMOOTH, data=True).batch is not None
    text = made(f"var w[d];\nminimize E[z ~ D] {LOSS};", data=True)
    binder = next(iter(text.normal.terms)).g and text.normal.objective.binders[0]  # type: ignore[attr-defined]
    assert text.batch(binder, 30, True) is None
    assert text.batch(binder, 10**6, True) == text.options["inner_batch"][0]


@pytest.mark.parametrize(("width", "size"), [(4, 2e-2), (64, 2e-2), (128, 1e-2), (1000, 2e-3)])
def test_steps_of_wide_nets_are_smaller(width: int, size: float) -> None:
    assert first_step("square(s(w; z.x) - 1)", width) == pytest.approx(size)


@pytest.mark.parametrize(
    ("loss", "size"),
    [("sigmoid(s(w; z.x))", 4e-3), ("tanh(s(w; z.x)) + sumsq(z.x)", 4e-3), ("log1pexp(s(w; z.x))", 2e-2),
     ("square(sigmoid(z.x[1]) - s(w; z.x))", 2e-2)],
)  # fmt: skip
def test_steps_of_objectives_that_saturate_are_smaller(loss: str, size: float) -> None:
    assert first_step(loss, 16) == pytest.approx(size)


def first_step(loss: str, width: int) -> float:
    text = "dim d; data D : table(x: real[d]); net s : real[d] -> real; var w = params(s);"
    compiled = pipeline.compile_model(Source(text=f"{text} minimize E[z ~ D] ({loss});", name="m"))
    binding = pipeline.Binding(data={"D": {"x": np.ones((5, 3))}}, nets={"s": f"mlp({width})"})
    analysis = pipeline.analyse(compiled.problem, pipeline.bind(compiled, binding))
    return float(pipeline.decide(analysis, {"algorithm": ("sonex", "command line")}).hyper["eta"])


def test_groups_of_a_net_share_what_a_step_takes() -> None:
    """Each of many groups draws fewer rows, the more there are; what was asked for stays."""
    text = "set G; data D : table(x: real[d], y: {-1, 1}, g: G); net s : real[d] -> real; var w = params(s);"
    loss = "log1pexp(-z.y * s(w; z.x))"
    compiled = pipeline.compile_model(
        Source(
            text=f"dim d; {text} minimize E[z ~ D] {loss}; subject to c[k in G]: E[z ~ D | z.g == k] "
            f"{loss} <= 1;",
            name="m",
        )
    )
    for groups, rows, given in ((1, 128, {}), (16, 32, {}), (60, 16, {}), (16, 100, {"inner_batch": 100})):
        g = np.arange(60_000) % groups
        columns = {"x": np.ones((60_000, 2)), "y": np.sign(g - 0.5 * groups + 0.1), "g": g}
        bound = pipeline.bind(compiled, pipeline.Binding(data={"D": columns}, nets={"s": "mlp(4)"}))
        options = {name: (size, "command line") for name, size in given.items()}
        chosen = pipeline.decide(pipeline.analyse(compiled.problem, bound), options)
        drawn = {b: m.condition is None for t in chosen.normal.terms for m in t.means for b in m.binders}
        sizes = {chosen.batch(binder, 60_000, True) for binder, shared in drawn.items() if not shared}
        assert sizes == {rows} and chosen.options["inner_batch"][0] == given.get("inner_batch", 128)


@pytest.mark.parametrize(
    ("domain", "step"),
    [
        ("var w[d];", "adam"),
        ("var w[d] >= 0;", "adam"),
        ("var w[d] in simplex;", "momentum"),
        ("var w[d] in ball(1);", "adam"),
        ("var w[d] in ball1(1);", "adam"),
    ],
)
def test_adam_only_where_a_projection_in_its_metric_is_known(domain: str, step: str) -> None:
    assert made(f"{domain}\nminimize E[z ~ D] {LOSS};", algorithm="sox").step == step


def test_samples_of_f_are_no_blocks() -> None:
    """sox-2022, appendix E: an expectation around f alone draws its samples; blocks are told apart by
    what the inner one uses."""
    text = "var w[d];\nminimize mean[k in K] E[s ~ D] square((E[z ~ D | z.g == k] dot(w, z.x)) - s.y);"
    chosen = made(text, data=True, algorithm="sox", schedule="theory", inner_batch=4)
    assert chosen.constants is not None and (chosen.constants.n, chosen.constants.B1) == (3, 3)


def test_bounds_that_meet_are_one_box() -> None:
    chosen = made(f"var w[d] >= -1, in box(-2, 3), <= 2;\nminimize E[z ~ D] {LOSS};")
    (domain,) = chosen.normal.variables["w"].sets
    assert [a.value for a in domain.args] == [-1, 2]  # type: ignore[attr-defined]
    (simplex,) = made(f"var w[d] >= 0, in simplex;\nminimize E[z ~ D] {LOSS};").normal.variables["w"].sets
    assert simplex.family == "simplex"


@pytest.mark.parametrize("domain", ["in simplex, >= 0.2", "in ball(1), >= 0"])
def test_projections_are_not_composed(domain: str) -> None:
    assert code(f"var w[d] {domain};\nminimize E[z ~ D] {LOSS};") == "F0611"


@pytest.mark.parametrize(
    ("domain", "term"), [("in simplex", "0.1 * norm2(w)"), ("in ball(1)", "norm1(w)"), (">= 0", "norm2(w)")]
)
def test_a_regulariser_whose_prox_is_unknown_on_the_set_is_smoothed(domain: str, term: str) -> None:
    normal = made(f"var w[d] {domain};\nminimize E[z ~ D] {LOSS} + {term} + 0.1 * sumsq(w);").normal
    assert [p.name for p in normal.prox] == ["squared_l2"]
    assert [(text, how) for text, how, _ in normal.treatment if how == "smoothed"] == [
        (term.split(" * ")[-1], "smoothed")
    ]


def test_treatment_says_what_became_of_each_part() -> None:
    text = (
        f"var w[d] in box(-1, 1);\nminimize E[z ~ D] {LOSS} + 0.1 * norm1(w);\nsubject to c: abs(E[z "
        "~ D] dot(w, z.x)) <= 1;"
    )
    how = {how for _, how, _ in made(text).normal.treatment}
    assert how == {"prox", "projected", "smoothed"}


def test_kinks_inside_expectations_are_smoothed_too() -> None:
    chosen = made("var w[d];\nminimize E[z ~ D] pos(1 - dot(w, z.x));")
    assert "Moreau smoothing inside expectations" in chosen.via


@pytest.mark.parametrize("objective", ["prob[z ~ D] (dot(w, z.x) >= 0.5)", "E[z ~ D] sign(dot(w, z.x))"])
def test_a_step_function_of_the_variables_is_refused(objective: str) -> None:
    assert code(f"var w[d];\nminimize {objective};") == "F0610"


@pytest.mark.parametrize("name", sorted(algorithms.all()))
def test_what_an_algorithm_declares(name: str) -> None:
    record = algorithms.get(name)
    assert record is not None and record.name == name
    assert record.requires and record.rate and record.theorem and record.cite and record.title
    assert set(record.requires) <= set(assumptions.ALL)
    assert all(isfinite(power) for power in rates.order(record.rate))
    assert all(callable(step) for step in record.steps.values())
    assert (record.estimator is None) == (record.oracle == "vector")
    assert record.estimator is None or callable(record.estimator.track)


def test_each_part_of_a_problem_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of algorithms, and of the forms in which they take constraints."""
    analysed, canonical = [], []
    rules = sys.modules["fccomodel.normal_form"]
    block, one_form = assumptions.Setting._block, rules.canonical
    monkeypatch.setattr(assumptions.Setting, "_block", lambda *of: analysed.append(of[1]) or block(*of))
    monkeypatch.setattr(rules, "canonical", lambda *of: canonical.append(of) or one_form(*of))
    chosen = made(BOUNDED.replace(";\nsubject", " + exp(w[1]) + abs(w[2]);\nsubject"), data=True)
    assert len(chosen.rejected) > 5 and analysed.count("objective") == 3
    assert len(canonical) <= 5


def test_nodes_know_their_variables() -> None:
    """Asked of every node of a long sum, each is visited once."""
    text = (
        "var x; var y; let t = exp(y); minimize "
        + " + ".join(f"square(x - {k})" for k in range(400))
        + " + t;"
    )
    problem = pipeline.compile_model(Source(text=text, name="m")).problem
    root = problem.objective.expr
    assert ir.variables_of(root) == {"x", "y"}
    nodes = list(ir.walk(root))
    assert all("_variables" in vars(node) for node in nodes)
    assert all(
        ir.variables_of(n) == {m.name for m in ir.walk(n) if isinstance(m, ir.Var)} for n in nodes[-7:]
    )
