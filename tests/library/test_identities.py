# ruff: noqa: E501  (the pairs read better side by side)
"""Identities: each keeps every value, each is needed, and the canonical form is its own canonical form."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
import torch
from support.emitted_models import CASES

from fccomodel import pipeline
from fccomodel.core import ir
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound
from fccomodel.evaluation import interpret
from fccomodel.evaluation.sets import elements
from fccomodel.library import identities
from fccomodel.library.atoms import Interval
from fccomodel.library.identities import Canonical, Identity, Knowledge, canonical

HEAD = """model m; dim d; set K = {1, 2}; data D : table(x: real[d], y: {-1, 1}, t: real); data c : real[d];
set P = {z in D | z.y == 1}; param mu > 0 default 0.7; param a default -0.3; var w[d]; var v[3]; var A[K, d]; var b;
"""
#: by identity: two ways of writing one objective
PAIRS = {
    "inlined_let": [("E[z ~ D] dot(w, z.x) + 3", "r + 3")],
    "signs": [("b - mu", "-(mu - b)"), ("exp(b - sum(w))", "exp(-(-(b + (-sum(w)))))"), ("exp(b + mu)", "exp(b - (-mu))")],
    "units": [("exp(b) + norm2(w)", "exp(b + 0)^1 + norm2(0 + w)"), ("norm1(w)", "norm1(0 - w)")],
    "products": [("0.5 * exp(b)", "2 * (exp(b) / 4)"), ("exp(-b)", "exp(-1 * b)"), ("exp(mu * b)", "exp(2 * (mu * b) * 0.5)")],
    "square_of_product": [("4 * sumsq(w)", "sum(w / 0.5 * (2 * w))"), ("-(2 * square(b - 1))", "(2 - 2 * b) * (b - 1)"),
                          ("3 * (mu * square(E[z ~ D] b * z.t))", "(mu * (E[z ~ D] b * z.t)) * (3 * (E[u ~ D] b * u.t))"),
                          ("square(b)", "b * b"), ("square(b)", "b^2"), ("sumsq(w - c)", "dot(w - c, w - c)"),
                          ("square(E[z ~ D] exp(b * z.t))", "(E[z ~ D] exp(b * z.t)) * (E[u ~ D] exp(b * "
                                                            "u.t))")],
    "square_of_norm": [("sumsq(w)", "norm2(w)^2"), ("sumsq(A)", "square(norm_fro(A))"), ("square(b)", "abs(b)^2"),
                       ("sqhinge(b)", "pos(b)^2")],
    "root_of_square": [("norm2(w)", "sqrt(sumsq(w))"), ("2 * norm2(w)", "(4 * sumsq(w))^0.5"), ("norm_fro(A)", "sqrt(sumsq(A))"), ("abs(b)", "sqrt(b^2)")],
    "sum_of_entries": [("sumsq(w)", "sum(w^2)"), ("norm1(w - c)", "sum(abs(w - c))"), ("dot(c, w)", "sum(c * w)")],
    "homogeneous_atom": [("2 * norm1(w)", "norm1(-2 * w)"), ("4 * sumsq(w)", "sumsq(-2 * w)"), ("mu^2 * sumsq(w)", "sumsq(mu * w)"),
                         ("abs(a) * abs(b)", "abs(a * b)"), ("mu * max(b, exp(b))", "max(mu * b, mu * exp(b))"),
                         ("2 * norm2(w - c / 2)", "norm2(c - 2 * w)"), ("3 * pos(b)", "pos(3 * b)")],
    "linear_atom": [("6 * dot(c, w)", "dot(2 * c, 3 * w)"), ("-sum(w)", "sum(-w)")],
    "homogeneous_reduction": [("2 * E[z ~ D] exp(b * z.t)", "E[z ~ D] 2 * exp(b * z.t)"),
                              ("log(1 + mu * E[z ~ D] exp(b * z.t))", "log(1 + E[z ~ D] mu * exp(b * z.t))"),
                              ("2 * max[z in D] exp(b * z.t)", "max[z in D] 2 * exp(b * z.t)")],
    "entries": [("sum(w^4)", "sum[i in d] w[i]^4"), ("norminf(w - c)", "max[i in d] abs(w[i] - c[i])"),
                ("sumsq(A)", "sum[k in K, i in d] A[k, i] * A[k, i]"), ("norm1(v)", "abs(v[1]) + abs(v[3]) + abs(v[2])"),
                ("sumsq(w - 1)", "(w[2] - 1)^2 + (w[1] - 1)^2 + (w[3] - 1)^2")],
    "nested_reductions": [("E[z ~ D, u ~ P] exp(b * z.t - u.t)", "E[z ~ D] E[u ~ P] exp(b * z.t - u.t)"),
                          ("sum[z in D, u in P | u.t > z.t] exp(b)", "sum[z in D] sum[u in P | u.t > z.t] exp(b)"),
                          ("max[z in D, k in K] b * z.t * k", "max[z in D] max[k in K] b * z.t * k")],
    "nested_extremes": [("max(b, exp(b), mu)", "max(b, max(exp(b), mu))"), ("min(b, 2 * exp(b), 2)", "min(b, 2 * min(exp(b), 1))")],
    "comonotone_tails": [("cvar(tail = 0.4)[n in P] E[p ~ D] sqhinge(1 - mu * dot(w, p.x - n.x))",
                          "mean[p in D] cvar(tail = 0.4)[n ~ P] sqhinge(1 - mu * dot(w, p.x - n.x))"),
                         ("2 * (topk(k = 2)[n in P] sum[p in D] (exp(dot(w, n.x)) + log1pexp(dot(w, n.x) "
                          "- b * p.t)))",
                          "sum[p in D] (2 * topk(k = 2)[n in P] (exp(dot(w, n.x)) + log1pexp(dot(w, n.x) "
                          "- b * p.t)))"),
                         ("max[n in P] E[p ~ D] (exp(b * p.t) * pos(-dot(w, n.x)) + huber(b * p.t, 1))",
                          "E[p ~ D] max[n in P] (exp(b * p.t) * pos(-dot(w, n.x)) + huber(b * p.t, 1))")],
    "averages": [("E[z ~ D] exp(b * z.t)", "mean[z in D] exp(b * z.t)"),
                 ("mean[z in D] (E[u ~ P] exp(b * z.t - u.t))^2", "E[z ~ D] (E[u ~ P] exp(b * z.t - u.t))^2")],
    "laid open": [("mu * norm1(w) + mu * exp(b)", "mu * (norm1(w) + exp(b))"),
                  ("E[z ~ D] (exp(b * z.t) + z.t * b) + norm1(w)", "E[z ~ D] exp(b * z.t) + E[u ~ D] (u.t * b + norm1(w))"),
                  ("E[z ~ D] exp(b * z.t) - mu * b", "-(E[z ~ D] (mu * b - exp(b * z.t)))")],
}  # fmt: skip
CASES_OF_PAIRS = [(name, *pair) for name, pairs in PAIRS.items() for pair in pairs]
#: values of means over draws are estimated, each by draws of its own
DRAWN = ("noise", "outer_draw")


def compiled(objective: str) -> pipeline.Compiled:
    return pipeline.compile_model(Source(text=f"{HEAD} let r = E[z ~ D] dot(w, z.x);\nminimize {objective};"))


def bound(made: pipeline.Compiled) -> Bound:
    rng = np.random.default_rng(0)
    rows = {
        "x": rng.normal(size=(12, 3)),
        "y": np.where(np.arange(12) % 3 == 0, 1, -1),
        "t": rng.normal(size=12),
    }
    return pipeline.bind(made, pipeline.Binding(data={"D": rows, "c": np.array([0.5, -1.0, 2.0])}))


def point(data: Bound, seed: int) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(seed)
    shapes = {
        name: elements.shape(data, v.shape) for name, v in data.problem.variables.items() if v.net is None
    }
    return {name: torch.tensor(rng.normal(size=shape)) for name, shape in shapes.items()}


def read(problem: ir.Problem, data: Bound | None = None) -> ir.Problem:
    return canonical(problem, None if data is None else lambda dim: elements.size(data, dim))


def value(data: Bound, expr: ir.Expr, at: dict[str, torch.Tensor]) -> float:
    return float(interpret.evaluate(data, expr, at))


@pytest.mark.parametrize(("name", "one", "other"), CASES_OF_PAIRS)
def test_two_ways_of_writing_are_one(name: str, one: str, other: str) -> None:
    made = [compiled(text) for text in (one, other)]
    datas = [bound(c) for c in made]
    forms = [read(c.problem, data).objective.expr for c, data in zip(made, datas, strict=True)]
    for seed in range(3):
        places = [point(data, seed) for data in datas]
        values = [
            value(data, m.problem.objective.expr, at) for data, m, at in zip(datas, made, places, strict=True)
        ]
        values += [value(data, form, at) for data, form, at in zip(datas, forms, places, strict=True)]
        assert values == pytest.approx([values[0]] * 4, rel=1e-12, abs=1e-12, nan_ok=True)
    assert shown(forms[0]) == shown(forms[1])


#: atoms whose arguments may stand in any order
ORDERLESS = ("add", "mul", "max", "min", "dot")


def shown(node: ir.Expr, names: Mapping[ir.Binder, str] = MappingProxyType({})) -> str:
    """An expression's text, whatever the names of its binders and the order of its operands."""
    if isinstance(node, ir.Reduce):
        names = {**names, **{b: f"{b.kind}{len(names) + k}" for k, b in enumerate(node.binders)}}
    parts = [shown(child, names) for child in node.children]
    match node:
        case ir.Apply(op=op):
            return f"{op}({', '.join(sorted(parts) if op in ORDERLESS else parts)})"
        case ir.Reduce(kind=kind, binders=binders):
            return f"{kind}[{', '.join(b.domain.name for b in binders)}]({', '.join(parts)})"
        case ir.Column(binder=binder, name=name):
            return f"{names[binder]}.{name}"
        case ir.Element(binder=binder):
            return names[binder]
        case ir.Const(value=value):
            return f"{value:.12g}"
    return f"{getattr(node, 'name', type(node).__name__)}{parts or ''}"


@pytest.mark.parametrize("name", identities.all())
def test_every_identity_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, some two ways of writing stay two; its formula is there to be read."""
    identity = identities.all()[name]
    assert isinstance(identity, Identity) and "=" in identity.formula
    others = tuple(i for i in identities._canonical._in_order() if i.name != name)
    monkeypatch.setattr(identities._canonical, "_in_order", lambda: others)
    stays = []
    for one, other in PAIRS[name]:
        made = [compiled(text) for text in (one, other)]
        forms = [read(c.problem, bound(c)).objective.expr for c in made]
        stays.append(shown(forms[0]) != shown(forms[1]))
    assert any(stays)


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if not n.startswith(DRAWN) and not c.nets()])
def test_models_keep_their_values(name: str) -> None:
    """Objective and constraints at random points, and of a canonical problem the canonical form is the
    problem itself."""
    case = CASES[name]
    made = pipeline.compile_model(Source(text=case.text))
    data = pipeline.bind(made, pipeline.Binding(data=case.data(), params=case.params))
    problem = read(made.problem, data)
    assert read(problem, data) is problem
    for seed in range(3):
        at = {k: case.scale * v for k, v in point(data, seed).items()}
        for before, after in zip(made.problem.roots, problem.roots, strict=True):
            if before is after or ir.free_binders(before):
                continue
            assert value(data, after, at) == pytest.approx(
                value(data, before, at), rel=1e-12, abs=1e-12, nan_ok=True
            )


@pytest.mark.parametrize(
    "text", ["(E[z ~ D] z.t * b)^2", "abs(E[z ~ D] exp(b * z.t) - 1)", "log(1 + exp(b)) + 0.5 * exp(b)"]
)
def test_what_is_read_keeps_its_place(text: str) -> None:
    """Reports quote the user's text."""
    problem = compiled(text).problem
    assert problem.text(read(problem).objective.expr) == text


@pytest.mark.slow
def test_long_sums_are_read_in_time() -> None:
    """Without recursion."""
    expr = compiled(" + ".join(f"2 * (exp({k} * b) - {k})" for k in range(1200))).problem.objective.expr
    again = Canonical(Knowledge(where=lambda node: Interval(0.0, 9.0))).expr(expr)
    assert len([n for n in ir.walk(again) if isinstance(n, ir.Apply) and n.op == "exp"]) == 1200


def test_tails_of_draws_and_of_other_orders_stay() -> None:
    """Draws have no list; in these the order of the elements goes by z."""
    for text in (
        "mean[z in D] cvar(tail = 0.5)[e ~ normal(0, 1)] pos(b * z.t + e)",
        "mean[z in D] cvar(tail = 0.5)[u in P] pos(z.t * dot(w, u.x))",
        "mean[z in D] cvar(tail = 0.5)[u in P] square(dot(w, z.x - u.x))",
        "mean[z in D] cvar(tail = 0.5)[u in P | u.t >= z.t] exp(dot(w, u.x) + b * z.t)",
        "mean[z in D] cvar(tail = 0.5)[u in P] (exp(dot(w, u.x) - b * z.t) - u.t)",
    ):
        expr = read(compiled(text).problem).objective.expr
        assert isinstance(expr, ir.Reduce) and identities.all()["comonotone_tails"].apply(expr, known) is None
        assert isinstance(expr.body, ir.Reduce) and expr.body.kind == "cvar"


known = Knowledge(where=lambda node: Interval())


def test_draws_stay_apart_where_they_must() -> None:
    """Rows that belong to one another, and empty conditions, are not taken out of their mean."""
    kept = "mean[z in D] (E[u ~ D | u.t >= z.t] exp(b * u.t))"
    problem = compiled(kept).problem
    expr = read(problem).objective.expr
    assert isinstance(expr, ir.Reduce) and isinstance(expr.body, ir.Reduce)
    two = read(
        compiled("E[z ~ D | z.y == 1] exp(b * z.t) + E[z ~ D | z.y == -1] exp(b * z.t)").problem
    ).objective.expr
    assert isinstance(two, ir.Apply) and two.op == "add"
