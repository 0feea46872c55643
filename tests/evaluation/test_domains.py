"""Values outside of the domains of what takes them: refused when they are bound, whatever they come
from; and no proof of what is perhaps not defined."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel import pipeline
from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation.checks import domains

HEAD = """dim d; set G = {"p", "q"};
data D : table(x: real[d], y: real, s: real, g: G);
data c : real[G];
param a; param b default 1;
"""
RISK = "(dot(w, z.x) - z.y)"
FIT = f"E[z ~ D] {RISK}^2"
S = np.where(np.arange(40) == 7, -1.0, 1.0 + np.arange(40) / 40)


def data(**changes: object) -> dict:
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=(40, 2)), "y": rng.normal(size=40), "s": S, "g": np.resize(["p", "q"], 40)}
    return {"D": {**table, **changes}, "c": {"p": 1.0, "q": -2.0}}


def bound(text: str, a: object = 1.0, **more: object):
    model = text if "var " in text else f"var w[d]; {text}"
    return fccomodel.compile(HEAD + model).bind(data=data(), params={"a": a, **more})


#: what takes the param: in which text, values that are refused and values that are not
PARAMS = [
    (f"minimize E[z ~ D] huber({RISK}, a);", [0, -1], [2]),
    (f"minimize E[z ~ D] pinball({RISK}, a);", [-0.1, 1.5], [0, 0.3]),
    (f"minimize E[z ~ D] eps_insensitive({RISK}, a);", [-1], [0]),
    (f"minimize E[z ~ D] smooth_hinge({RISK}, a);", [0], [0.5]),
    (f"minimize {FIT} + sum[i in d] mcp(w[i], a, 1);", [0], [3]),
    (f"minimize {FIT} + sum[i in d] mcp(w[i], 2, a);", [-1], [0]),
    (f"minimize {FIT} + sum[i in d] scad(w[i], a, 1);", [2], [2.1]),
    (f"minimize {FIT} + group_norm(w, a);", [0.5, 1.5, 4], [1, 2]),
    (f"minimize {FIT} / a;", [0], [-3, 2]),
    (f"minimize {FIT} + sumsq(w) * log(a);", [0, -1], [2]),
    (f"minimize {FIT} + sumsq(w) * (b - 2)^a;", [0.5], [2, 3]),
    (f"minimize {FIT} + sumsq(w) * sqrt(b - a);", [1.5], [1]),
    (f"minimize cvar(tail = a)[z ~ D] {RISK}^2;", [0, 2], [1]),
    (f"minimize topk(k = a)[z in D] {RISK}^2;", [0.5, 2.5], [3]),
    (f"minimize logmeanexp(theta = a)[z ~ D] {RISK}^2;", [0], [2]),
    (f"minimize pmean(p = a)[z ~ D] abs({RISK});", [0.5], [1]),
    (f"minimize E[z ~ D, e ~ uniform(0, a)] (e * {RISK})^2;", [0, -1], [1]),
    (f"minimize E[z ~ D, e ~ exponential(a)] (e * {RISK})^2;", [0], [1]),
    (f"minimize E[z ~ D, e ~ normal(0, a)] (e + {RISK})^2;", [-1], [0]),
    (f"minimize E[z ~ D, e ~ laplace(0, a)] (e + {RISK})^2;", [-1], [0]),
    (f"minimize E[z ~ D, e ~ bernoulli(a)] (e * {RISK})^2;", [-0.5, 1.5], [1]),
    (f"var w[d] in ball(a); minimize {FIT};", [-1], [0, 2]),
    (f"var w[d] in ball1(a); minimize {FIT};", [-1], [2]),
    (f"var w[d] in box(a, 1); minimize {FIT};", [2], [1]),
    (f"var w[d] >= a, <= b; minimize {FIT};", [2], [1]),
    (f"var w[d] in capped_simplex(d, a); minimize {FIT};", [0, 2], [1]),
    ("var w[d]; minimize max[q in capped_simplex(G, a)] (sum[k in G] q[k] * (sumsq(w) + c[k]));", [2], [0.6]),
    (f"let risk = E[z ~ D] huber({RISK}, a); minimize risk + sumsq(w);", [0], [2]),
    (f"minimize {FIT}; subject to E[z ~ D] huber({RISK}, a) <= 100;", [0], [2]),
    (f"let shown = E[z ~ D] pinball({RISK}, a); minimize {FIT};", [2], [1]),
]


@pytest.mark.parametrize(("text", "refused", "allowed"), PARAMS, ids=[text[:60] for text, _, _ in PARAMS])
def test_params(text: str, refused: list, allowed: list) -> None:
    for value in refused:
        with pytest.raises(FccoError) as found:
            bound(text, value)
        (error,) = found.value.diagnostics
        assert error.code in ("F0532", "F0533") and error.span is not None and "`a`" in error.fix
        assert "needs" in error.reason or "groups of" in error.reason
    for value in allowed:
        bound(text, value)


#: data that some element has outside of a domain: the model, and what is said of the first
ROWS = [
    (f"minimize E[z ~ D] huber({RISK}, z.s);", "`z.s` is -1 for z = row 7 of D"),
    (f"minimize E[z ~ D] {RISK}^2 * log(z.s + 1);", "`z.s + 1` is 0 for z = row 7 of D"),
    (f"minimize E[z ~ D | log(z.s) > -1] {RISK}^2;", "`z.s` is -1 for z = row 7 of D"),
    (f"minimize {FIT} + sum[k in G] sqrt(c[k]) * sumsq(w);", "`c[k]` is -2 for k = q"),
    (f'let r[k in G] = E[z ~ D | z.g == k] pinball({RISK}, c[k]); minimize r["p"] + r["q"];', "`c[k]` is -2"),
    (
        "let s[k in G] = sqrt(c[k]); let r[k in G] = s[k] * sumsq(w); minimize sum[j in G] r[j];",
        "`c[k]` is -2 for k = q",
    ),
    (f"let unused[k in G] = log(c[k]) * sumsq(w); minimize {FIT};", "`c[k]` is -2 for k = q"),
    (
        f"minimize {FIT}; subject to t[k in G]: E[z ~ D | z.g == k] huber({RISK}, c[k] + 1) <= 9;",
        "`c[k] + 1` is -1 for k = q",
    ),
    (f"minimize {FIT} + sumsq(w) * log(E[z ~ D] z.s - 5);", "is -3.5"),
    (
        f"minimize E[i ~ D, j ~ D | i.s > j.s] {RISK.replace('z', 'i')}^2 / (j.s - i.s + 0.5);",
        "`j.s - i.s + 0.5` is 0 for",
    ),
    (f"minimize E[z ~ D, e ~ normal(0, z.s)] ({RISK} + e)^2;", "`z.s` is -1 for z = row 7 of D"),
    (f"minimize {FIT} + pmean(p = 2)[z ~ D] z.s;", "`z.s` is -1 for z = row 7 of D"),
]


@pytest.mark.parametrize(("text", "said"), ROWS, ids=[text[:60] for text, _ in ROWS])
def test_data(text: str, said: str) -> None:
    with pytest.raises(FccoError) as found:
        bound(text)
    (error,) = found.value.diagnostics
    assert error.code == "F0533" and said in error.message and error.span is not None and error.fix


#: functions of a matrix of data: the text, a matrix that is refused, what is said, one that is accepted
INDEFINITE, SINGULAR, DEFINITE = [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]
OF_MATRICES = [
    ("matrix_frac(x, S)", INDEFINITE, "the smallest eigenvalue of `S` is -1", DEFINITE),
    (
        "matrix_frac(x, S - eye(2))",
        DEFINITE,
        "the smallest eigenvalue of `S - eye(2)` is 0",
        [[3.0, 1.0], [1.0, 3.0]],
    ),
    ("trace(inv(transpose(S) @ S)) * sumsq(x)", SINGULAR, "smallest", INDEFINITE),
    ("logdet(S) * sumsq(x)", SINGULAR, "the smallest singular value of `S` is", INDEFINITE),
    ("dot(x, inv(S) @ x)", SINGULAR, "the smallest singular value of `S` is", INDEFINITE),
]


@pytest.mark.parametrize(("value", "refused", "said", "accepted"), OF_MATRICES)
def test_matrices_of_data(value: str, refused: list, said: str, accepted: list) -> None:
    model = fccomodel.compile(f"data S : real[2, 2]; var x[2]; minimize {value};")
    with pytest.raises(FccoError) as found:
        model.bind(data={"S": np.array(refused)})
    (error,) = found.value.diagnostics
    assert error.code == "F0533" and said in error.message and error.span is not None and "`S`" in error.fix
    model.bind(data={"S": np.array(accepted)})


def test_matrices_of_rows() -> None:
    text = """data D : table(S: real[2, 2], on: {0, 1}); var x[2];
    minimize mean[z in D] matrix_frac(x, z.S);"""
    rows = {"S": np.array([DEFINITE, DEFINITE, INDEFINITE]), "on": np.array([1, 1, 0])}
    with pytest.raises(FccoError, match="the smallest eigenvalue of `z.S` is -1 for z = row 2 of D"):
        fccomodel.compile(text).bind(data={"D": rows})
    fccomodel.compile(text.replace("z in D]", "z in D | z.on == 1]")).bind(data={"D": rows})


def test_a_matrix_that_is_drawn_promises_nothing() -> None:
    text = "var x[2]; minimize E[e ~ normal(0, 1)] matrix_frac(x, eye(2) + e * eye(2));"
    model = fccomodel.compile(text).bind()
    assert pipeline.analyse(model.compiled.problem, model.bound).objective.curvature == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        f"minimize E[z ~ D | z.s > 0] huber({RISK}, z.s);",
        f"set P = {{z in D | z.s > 0}}; minimize E[z ~ P] huber({RISK}, z.s);",
        f"minimize E[z ~ D | z.s > 0 and log(z.s) > -1] {RISK}^2;",
        f"minimize {FIT} + sum[k in G | c[k] > 0] sqrt(c[k]) * sumsq(w);",
        f"let r[k in G] = E[z ~ D | z.g == k] pinball({RISK}, c[k]); minimize sum[k in G | c[k] > 0] r[k];",
        'let s[k in G] = sqrt(c[k]); let r[k in G] = s[k] * sumsq(w); minimize r["p"] + sum[j in G | '
        f"c[j] > 0] r[j] + {FIT};",
        f"minimize E[i ~ D, j ~ D | i.s > j.s] log(i.s - j.s) * {RISK.replace('z', 'i')}^2;",
        f"minimize E[z ~ D] {RISK}^2 * z.s^2 + E[z ~ D] (z.s + 1.5)^(z.s + 2) * sumsq(w);",
        f"minimize E[z ~ D, e ~ uniform(0.5, 1)] huber({RISK}, e);",
    ],
)
def test_where_a_condition_keeps_to_the_domain(text: str) -> None:
    bound(text)


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(FccoError) as found:
        bound(
            f"var w[d] in ball(a); minimize E[z ~ D] huber({RISK}, z.s) + cvar(tail = a)[z ~ D] {RISK}^2;", -1
        )
    assert [d.code for d in found.value.diagnostics] == ["F0532", "F0533", "F0533"]
    starts = [d.span.start for d in found.value.diagnostics if d.span]
    assert starts == sorted(starts)


# ---------------------------------------------------------------------- what is perhaps not defined
DRAWN = f"minimize E[z ~ D, e ~ normal(0, 1)] huber({RISK}, e) + 0.1 * sumsq(w);"


def curvature(text: str) -> str:
    """Of the objective, with and without data the same."""
    model = bound(text)
    found = [
        pipeline.analyse(model.compiled.problem, data).objective.curvature for data in (model.bound, None)
    ]
    assert "D" not in text or found[0] == found[1] or model.bound.dims["D"] * 40 > domains.MAX_COMBINATIONS
    return found[0]


def test_draws_promise_nothing() -> None:
    assert curvature(DRAWN) == "unknown" and curvature(DRAWN.replace("normal(0", "uniform(0.5")) == "convex"


def test_nothing_is_certified_while_something_is_perhaps_not_defined() -> None:
    gap = bound(DRAWN.replace("0.1", "1")).solve(budget="50it", unverified=True).report.gap
    assert gap.value is None and "`delta` of `huber(u, delta)` needs a value in (0, inf)" in gap.why
    assert (
        bound(f"minimize E[z ~ D] huber({RISK}, a) + sumsq(w);").solve(budget="50it").report.gap.value
        is not None
    )


def test_what_is_too_much_to_try_is_not_taken_for_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interval arithmetic does not see that i.s > j.s makes the difference positive; the pairs, tried
    one by one, do."""
    text = (
        f"minimize E[i ~ D, j ~ D | i.s > j.s] huber({RISK.replace('z', 'i')}, i.s - j.s) + 0.1 * sumsq(w);"
    )
    assert curvature(text) == "convex"
    monkeypatch.setattr(domains, "MAX_COMBINATIONS", 100)
    assert curvature(text) == "unknown"


# ------------------------------------------------------------------------------ params without data
MODEL = f"{HEAD}var w[d]; minimize {FIT} + a * sumsq(w) + b * w[1] + log(b);"


def test_params_without_data_are_used() -> None:
    model = fccomodel.compile(MODEL)
    found = [model.explain(params={"a": value}).json["objective"]["curvature"] for value in (1.0, -1.0)]
    assert (
        found == ["convex", "weakly convex"]
        and model.explain().json["objective"]["curvature"] == "weakly convex"
    )


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"b": 0}, "F0533"),
        ({"nothing": 1}, "F0518"),
        ({"a": "x"}, "F0520"),
        ({"d": 1.5}, "F0520"),
        ({"a": [1, 2]}, "F0520"),
    ],
)
def test_params_without_data_are_checked(params: dict, code: str) -> None:
    with pytest.raises(FccoError) as found:
        fccomodel.compile(MODEL).explain(params=params)
    assert [d.code for d in found.value.diagnostics] == [code]


def test_what_binding_will_check_is_said() -> None:
    said = fccomodel.compile(MODEL.replace("log(b)", "huber(w[1], b)")).explain().json["warnings"]
    assert any("needs a value in (0, inf): `b`, which is checked when it is bound" in s for s in said)


@pytest.mark.parametrize(
    ("places", "index", "inside"),
    [
        ("dim n;", "i + 1", "i <= n - 1"), ("dim n;", "i - 2", "i >= 3"), ("dim n;", "3 * i", None),
        ("set n = 0 .. 1 by 0.25;", "i + 0.25", "i <= 0.75"), ("set n = 0 .. 1 by 0.25;", "i + 0.1", None),
    ],
)  # fmt: skip
def test_an_index_past_the_end_says_what_keeps_it_inside(places: str, index: str, inside: str | None) -> None:
    """The condition, pasted, leaves a model whose rows have an answer."""
    text = f"{places} data y : real[n]; var b[n]; minimize sumsq(b - y) + sum[i in n] (b[{index}] - b[i])^2;"
    with pytest.raises(FccoError) as raised:
        fccomodel.compile(text).bind(data={"y": np.arange(5.0)}).solve(budget="1it")
    (found,) = raised.value.diagnostics
    assert found.code == "F0705" and (inside is None or f"[i in n | {inside}]" in found.fix)
    if inside is not None:
        mended = fccomodel.compile(text.replace("i in n]", f"i in n | {inside}]"))
        mended.bind(data={"y": np.arange(5.0)}).solve(budget="1it")
