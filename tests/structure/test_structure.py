"""Curvature, monotonicity and smoothness of expressions written by hand, and of the models that ship
with the project."""

from __future__ import annotations

import time
from math import sqrt

import numpy as np
import pytest

from fccomodel import structure
from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound, BoundTable
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from fccomodel.library.atoms import Interval
from fccomodel.structure.facts import Facts, Standing

PREAMBLE = """
dim d, m;
set K = {1, 2, 3};
data D : table(x: real[d], y: {-1, 1}, t: real, g: K);
data A : real[d, d];
data S : real[d, d];
data B : real[m, d];
param a >= 0 default 1;
param b > 0 default 1;
param c default 0;
param q >= 1 default 2;
param n <= 0 default -1;
var w[d];
var z[d] >= 0;
var s[K] in simplex(K);
var r[d] in ball(2);
var k[d] in box(-1, 1);
var u;
var v;
var p >= 0;
var h >= -1, <= 1;
var l >= 0.5;
"""


def problem(text: str) -> ir.Problem:
    source = Source(text=text)
    return check(parse(source), source)


def facts(text: str, bound: Bound | None = None) -> Facts:
    """The facts of an expression in the variables and data of the preamble."""
    return structure.analyse(problem(f"{PREAMBLE}\nminimize e: {text};"), bound).objective


#: expression, curvature, continuously differentiable, monotone in ``u`` (or in the variable named)
TABLE = [
    # ---- leaves, sums, multiples
    ("3", "constant", True, "constant"),
    ("a * b + c", "constant", True, "constant"),
    ("E[i ~ D] i.t^2", "constant", True, "constant"),
    ("u", "affine", True, "increasing"),
    ("-u", "affine", True, "decreasing"),
    ("2 * u - 3 * v + c", "affine", True, "increasing"),
    ("c * u", "affine", True, "none"),
    ("n * u", "affine", True, "decreasing"),
    ("u / b", "affine", True, "increasing"),
    ("(u - 1) / -2", "affine", True, "decreasing"),
    ("a * square(u)", "convex", True, "none"),
    ("n * square(u)", "concave", True, "none"),
    ("c * square(u)", "weakly convex", True, "none"),
    ("c * exp(u)", "unknown", True, "none"),
    ("square(u) - square(v)", "weakly convex", True, "none"),
    ("square(u) - abs(v)", "unknown", False, "none"),
    ("abs(u) - square(v)", "weakly convex", False, "none"),
    ("exp(u) - log(l)", "convex", True, "increasing"),
    ("dot(w, w)", "convex", True, "constant"),
    ("sum(w) - 2 * mean(z)", "affine", True, "constant"),
    ("sum(square(w))", "convex", True, "constant"),
    ("E[i ~ D] dot(w, i.x)", "affine", True, "constant"),
    # ---- atoms of an affine argument
    ("abs(u - 1)", "convex", False, "none"),
    ("abs(p)", "affine", True, ("p", "increasing")),
    ("abs(1 + h)", "affine", True, ("h", "increasing")),
    ("pos(u)", "convex", False, "increasing"),
    ("pos(p - 1)", "convex", False, ("p", "increasing")),
    ("pos(-p)", "constant", True, ("p", "constant")),
    ("sqhinge(1 - u)", "convex", True, "decreasing"),
    ("huber(u - v, b)", "convex", True, "none"),
    ("smooth_hinge(u, b)", "convex", True, "increasing"),
    ("pinball(u, 0.9)", "convex", False, "none"),
    ("eps_insensitive(u, 0.1)", "convex", False, "none"),
    ("log1pexp(-u)", "convex", True, "decreasing"),
    ("logsigmoid(u)", "concave", True, "increasing"),
    ("sigmoid(u)", "weakly convex", True, "increasing"),
    ("sigmoid(-p)", "convex", True, ("p", "decreasing")),
    ("tanh(p)", "concave", True, ("p", "increasing")),
    ("scad(u, 3.7, 1)", "weakly convex", False, "none"),
    ("mcp(u, 2, b)", "weakly convex", False, "none"),
    ("entr(l)", "concave", True, ("l", "decreasing")),
    ("sqrt(p)", "concave", False, ("p", "increasing")),
    ("sqrt(l)", "concave", True, ("l", "increasing")),
    ("max(u, v, 0)", "convex", False, "increasing"),
    ("min(u, 2 * v)", "concave", False, "increasing"),
    ("clip(u, -1, 1)", "unknown", False, "increasing"),
    # ---- powers by the sign of the base
    ("u^2", "convex", True, "none"),
    ("u^3", "unknown", True, "increasing"),
    ("p^3", "convex", True, ("p", "increasing")),
    ("p^1.5", "convex", True, ("p", "increasing")),
    ("p^0.5", "concave", False, ("p", "increasing")),
    ("p^q", "convex", True, ("p", "increasing")),
    ("l^-2", "convex", True, ("l", "decreasing")),
    ("1 / l", "convex", True, ("l", "decreasing")),
    ("n / l", "concave", True, ("l", "increasing")),
    ("u / l", "unknown", True, "increasing"),
    ("h^3", "weakly convex", True, ("h", "increasing")),
    # ---- composition
    ("exp(square(u))", "convex", True, "none"),
    ("exp(-log(l))", "convex", True, ("l", "decreasing")),
    ("square(exp(u))", "convex", True, "increasing"),
    ("square(square(u) - 1)", "weakly convex", True, "none"),
    ("sqhinge(square(u) - 1)", "convex", True, "none"),
    ("log(1 + p)", "concave", True, ("p", "increasing")),
    ("-log(1 - h^2 / 2)", "convex", True, ("h", "none")),
    ("abs(square(u) - 1)", "weakly convex", False, "none"),
    ("pos(square(u) - square(v))", "weakly convex", False, "none"),
    ("max(square(u), sigmoid(v))", "weakly convex", False, "none"),
    ("sigmoid(square(h))", "weakly convex", True, ("h", "none")),
    ("sigmoid(square(u))", "weakly convex", True, "none"),
    ("log(1 + square(u))", "weakly convex", True, "none"),
    ("log(1 + abs(u))", "weakly convex", False, "none"),
    ("log(abs(u) + p)", "unknown", False, "none"),
    ("sqrt(1 + square(u))", "convex", True, "none"),
    ("sqrt(square(u) + square(v))", "convex", False, "none"),
    ("sqrt(b + E[i ~ D] square(u - i.t))", "convex", True, "none"),
    ("sqrt(variance[i ~ D] dot(w, i.x))", "convex", False, "constant"),
    ("(abs(u)^3 + abs(v)^3)^(1/3)", "convex", False, "none"),
    ("square(pos(u))", "convex", True, "increasing"),
    ("pos(u)^3", "convex", True, "increasing"),
    ("max(0, u)^2", "convex", True, "increasing"),
    ("norm2(w)^2", "convex", True, "constant"),
    ("square(abs(u))", "convex", True, "none"),
    # ---- products and ratios
    ("u * u", "convex", True, "none"),
    ("u * v", "weakly convex", True, "none"),
    ("u * exp(v)", "unknown", True, "increasing"),
    ("exp(u) * exp(v)", "convex", True, "increasing"),
    ("exp(u) / l", "convex", True, "increasing"),
    ("square(u) / l", "convex", True, "none"),
    ("(square(u) + sumsq(w)) / (l + sqrt(p))", "convex", False, "none"),
    ("sigmoid(u) * sigmoid(v)", "weakly convex", True, "increasing"),
    ("h * tanh(u)", "weakly convex", True, "none"),
    ("dot(w, A @ w)", "weakly convex", True, "constant"),
    ("dot(r, k)", "weakly convex", True, "constant"),
    # ---- log-sum-exp
    ("log(exp(u) + exp(v))", "convex", True, "increasing"),
    ("log(1 + exp(u))", "convex", True, "increasing"),
    ("log1p(exp(-u))", "convex", True, "decreasing"),
    ("log(E[i ~ D] exp(dot(w, i.x)))", "convex", True, "constant"),
    ("log(E[i ~ D] a * exp(square(u)) + b)", "convex", True, "none"),
    ("log(exp(abs(u)) + 1)", "convex", False, "none"),
    ("log(E[i ~ D] log1pexp(dot(w, i.x)))", "unknown", True, "constant"),
    ("logsumexp(w)", "convex", True, "constant"),
    ("logmeanexp(theta = b)[i in K] (u * i)", "convex", True, "increasing"),
    ("log(l * p^0.5 + exp(u))", "unknown", False, "increasing"),
    ("log(sigmoid(u))", "concave", True, "increasing"),
    # ---- reductions
    ("mean[i in K] abs(u - i)", "convex", False, "none"),
    ("E[i ~ D] log1pexp(-i.y * dot(w, i.x))", "convex", True, "constant"),
    ("sum[i in K] i * square(u - i)", "convex", True, "none"),
    ("max[i in K] (i * u)", "convex", False, "increasing"),
    ("min[i in K] (i * u)", "concave", False, "increasing"),
    ("cvar(tail = 0.1)[i ~ D] square(u - i.t)", "convex", False, "none"),
    ("topk(k = 2)[i in K] tanh(i * u)", "weakly convex", False, "increasing"),
    ("variance[i ~ D] dot(w, i.x)", "convex", True, "constant"),
    ("variance[i ~ D] sigmoid(dot(w, i.x))", "weakly convex", True, "constant"),
    ("prob[i ~ D] (dot(w, i.x) > 0)", "unknown", False, "constant"),
    ("E[i ~ D] i.t * dot(w, i.x)^2", "weakly convex", True, "constant"),
    ("E[e ~ normal(0, 1)] square(u + e)", "convex", True, "none"),
    ("E[e ~ normal(0, 1)] tanh(u * e)", "weakly convex", True, "none"),
    ("max[o in simplex(K)] (sum[i in K] o[i] * square(u - i))", "convex", False, "none"),
    ("max[o in simplex(K)] (sum[i in K] o[i] * square(u - i) - b * kl(o, uniform(K)))", "convex", True, "none"),
    ("max[o in simplex(K)] (sum[i in K] o[i] * sigmoid(u - i) - b * chi2(o, uniform(K)))", "weakly convex", True, "increasing"),
    # ---- vectors, sets
    ("norm1(w)", "convex", False, "constant"),
    ("norm1(z)", "affine", True, ("z", "increasing")),
    ("norm2(B @ w)", "convex", False, "constant"),
    ("norminf(w - z)", "convex", False, "constant"),
    ("sumsq(B @ w - 1)", "convex", True, "constant"),
    ("norm2(concat(w, z))", "convex", False, "constant"),
    ("sum(exp(B @ w))", "convex", True, "constant"),
    ("exp(dot(r, B[1, 1] * k))", "weakly convex", True, "constant"),
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_table(row: tuple) -> None:
    text, curvature, smooth, way = row
    leaf, way = way if isinstance(way, tuple) else ("u", way)
    found = facts(text)
    assert (found.curvature, found.smooth, found.monotone(leaf)) == (curvature, smooth, way)


# -------------------------------------------------------------------------- numbers, data, standing
def bound_to(model: ir.Problem, rows: int = 50, size: int = 4) -> Bound:
    """Random data for the preamble's declarations."""
    rng = np.random.default_rng(0)
    columns = {
        "x": rng.normal(size=(rows, size)),
        "y": np.where(rng.random(rows) < 0.5, -1.0, 1.0),
        "t": rng.random(rows),
        "g": rng.integers(1, 4, rows).astype(float),
    }
    params = {"a": 0.5, "b": 2.0, "c": -1.0, "q": 2.0, "n": -3.0}
    root = rng.normal(size=(size, size))
    return Bound(
        problem=model,
        tables={"D": BoundTable(name="D", n=rows, columns=columns)},
        arrays={"A": root @ root.T, "S": abs(root) @ abs(root).T, "B": rng.normal(size=(3, size))},
        params={name: np.float64(value) for name, value in params.items()},
        dims={"d": size, "m": 3},
    )


def bound_facts(text: str) -> tuple[Facts, Bound]:
    model = problem(f"{PREAMBLE}\nminimize e: {text};")
    bound = bound_to(model)
    return structure.analyse(model, bound).objective, bound


def test_constants_become_numbers_with_data() -> None:
    text = "E[i ~ D] log1pexp(-i.y * dot(w, i.x)) + a * sumsq(w)"
    plain = facts(text)
    assert plain.lipschitz_smooth and plain.L == np.inf and plain.gradient.standing == Standing.PROVED
    found, bound = bound_facts(text)
    longest = np.linalg.norm(bound.tables["D"].columns["x"], axis=1).max()
    assert found.L == pytest.approx(longest**2 / 4 + 2 * 0.5)
    assert found.gradient.standing == Standing.BOUNDED
    assert found.below.standing == Standing.PROVED, "convexity needs no data"


def test_data_decide_a_sign() -> None:
    assert facts("c * square(u)").curvature == "weakly convex"
    found, _ = bound_facts("c * square(u)")
    assert found.curvature == "concave" and found.above.standing == Standing.BOUNDED
    found, _ = bound_facts("E[i ~ D] i.t * exp(u)")
    assert found.curvature == "convex" and found.below.standing == Standing.BOUNDED


def test_quadratic_forms() -> None:
    found, bound = bound_facts("dot(w, A @ w)")
    assert found.curvature == "convex" and found.below.rule == "quadratic form"
    assert found.L == pytest.approx(2 * np.linalg.eigvalsh(bound.arrays["A"])[-1])
    assert facts("dot(w, A @ w)").rho == np.inf


@pytest.mark.parametrize("size", ["abs(w)", "-abs(w)", "exp(w)"])
def test_quadratic_forms_of_what_has_one_sign(size: str) -> None:
    assert bound_facts(f"dot({size}, S @ {size})")[0].curvature == "convex"
    assert bound_facts(f"-dot({size}, S @ ({size}))")[0].curvature == "concave"
    assert bound_facts(f"dot({size}, A @ {size})")[0].curvature == "unknown", "entries of both signs"


def test_weak_convexity_by_the_lemma() -> None:
    found, bound = bound_facts("abs(E[i ~ D] sigmoid(dot(w, i.x)) - 0.5)")
    longest = np.linalg.norm(bound.tables["D"].columns["x"], axis=1).max()
    assert found.rho == pytest.approx(longest**2 / (6 * sqrt(3)))
    assert found.C == pytest.approx(longest / 4)
    assert found.L is None
    assert found.below.rule == "weak composition"


def test_self_bounded() -> None:
    found, bound = bound_facts("log(1 + E[i ~ D] sqhinge(1 - dot(w, i.x)))")
    longest = np.linalg.norm(bound.tables["D"].columns["x"], axis=1).max()
    assert found.below.rule == "self-bounded argument"
    exact = 2 * (2 * longest**2) / 4  # 2 L sup u / (1 + u)^2
    assert exact <= found.rho <= 1.1 * exact
    assert found.lipschitz.value.finite


def test_nothing_is_claimed_of_what_is_defined_nowhere() -> None:
    below = make("logsigmoid", make("logsigmoid", ir.Var(name="v")))
    found = structure.facts_of(make("log", below))
    assert not (found.convex or found.lipschitz.value.finite or found.gradient.value.finite)


def test_a_family_costs_as_much_as_one_member() -> None:
    def seconds(members: int) -> float:
        text = f"{PREAMBLE}\nset M = 1 .. {members};\nminimize e: sumsq(w);\nsubject to\n"
        text += "few[o in M]: E[i ~ D] log1pexp(i.y * dot(w, i.x)) - 0.1 * o <= 0;"
        model = problem(text)
        began = time.perf_counter()
        found = structure.analyse(model)
        assert list(found.constraints) == ["few"] and found.constraints["few"].curvature == "convex"
        return time.perf_counter() - began

    few = min(seconds(2) for _ in range(3))
    many = min(seconds(10_000) for _ in range(3))
    assert many < 3 * few + 0.05


def test_deep_sums_do_not_recurse() -> None:
    expr: ir.Expr = ir.Var(name="u")
    for _ in range(4_000):
        expr = ir.Apply(op="add", args=(expr, ir.Apply(op="exp", args=(ir.Var(name="v"),))))
    assert structure.facts_of(expr).curvature == "convex"


# -------------------------------------------------------------------------------------------- holes
def hole(name: str) -> ir.Hole:
    return ir.Hole(name=name)


def apply(op: str, *args: ir.Expr | float) -> ir.Apply:
    return ir.Apply(
        op=op, args=tuple(a if isinstance(a, ir.Expr) else ir.Const(value=float(a)) for a in args)
    )


#: f(u1, u2), intervals, curvature, non-decreasing, C_f, L_f, rho_f, degree of its pieces
U1, U2 = hole("u1"), hole("u2")
INF = float("inf")
OUTER = [
    (
        apply("pos", apply("sub", apply("abs", apply("sub", U1, U2)), 0.1)),
        {},
        "convex",
        False,
        sqrt(2),
        None,
        0.0,
        1,
    ),
    (apply("max", U1, U2, 0), {}, "convex", True, 1.0, None, 0.0, 1),
    (apply("mul", 3, apply("pos", U1)), {}, "convex", True, 3.0, None, 0.0, 1),
    (apply("sqhinge", U1), {}, "convex", True, INF, 2.0, 0.0, 2),
    (apply("sqhinge", U1), {"u1": Interval(-1.0, 3.0)}, "convex", True, 6.0, 2.0, 0.0, 2),
    (apply("log", U1), {"u1": Interval(1.0, INF)}, "concave", True, 1.0, 1.0, 1.0, None),
    (apply("pow", U1, 4), {"u1": Interval(0.0, 2.0)}, "convex", True, 32.0, 48.0, 0.0, None),
    (apply("exp", U1), {}, "convex", True, INF, INF, 0.0, None),
    (apply("scad", U1, 3, 1), {}, "weakly convex", False, 1.0, None, 0.5, 2),
    (apply("neg", apply("square", U1)), {"u1": Interval(0.0, 5.0)}, "concave", False, 10.0, 2.0, 2.0, 2),
    (
        apply("div", U1, U2),
        {"u1": Interval(0.0, 1.0), "u2": Interval(1.0, 2.0)},
        "weakly convex",
        False,
        sqrt(2),
        4.0,
        2.0,
        None,
    ),
    (apply("sub", apply("mul", 2, U1), U2), {}, "affine", False, sqrt(5), 0.0, 0.0, 1),
    (apply("pos", apply("sub", apply("square", U1), 1)), {}, "convex", False, INF, None, 0.0, 2),
]


@pytest.mark.parametrize("row", OUTER, ids=[str(k) for k in range(len(OUTER))])
def test_outer_functions(row: tuple) -> None:
    f, holes, curvature, increasing, C, L, rho, degree = row
    found = structure.facts_of(f, holes=holes)
    assert (found.curvature, found.non_decreasing, found.pieces) == (curvature, increasing, degree)
    assert pytest.approx(C) == found.C
    assert found.L == (None if L is None else pytest.approx(L))
    assert found.rho == pytest.approx(rho)


def test_a_param_may_stand_in_an_outer_function() -> None:
    f = ir.Apply(op="mul", args=(ir.Param(name="alpha"), apply("pos", U1)))
    assert structure.facts_of(f).curvature == "unknown"
    assert structure.facts_of(f, params={"alpha": Interval(0.0, 1.0)}).C == 1.0
    assert structure.facts_of(f, params={"alpha": 0.25}).C == 0.25
    assert (
        structure.facts_of(f, params={"alpha": ir.Parameter(name="alpha", lower=0.0)}).curvature == "convex"
    )


# --------------------------------------------------------------------------------------------- nets
NET = """
dim d;
data D : table(x: real[d], y: {{-1, 1}});
net s : real[d] -> real{assume};
var w = params(s);
maximize auc: E[i ~ D, j ~ D] sigmoid(s(w; i.x) - s(w; j.x));
subject to
gap: abs(E[i ~ D] s(w; i.x)) <= 0.1;
"""


def test_nets() -> None:
    plain = structure.analyse(problem(NET.format(assume="")))
    assert (
        plain.objective.curvature == plain.constraints["gap"].curvature == "unknown"
        and not plain.objective.smooth
    )
    assumed = structure.analyse(problem(NET.format(assume=" assume smooth")))
    assert assumed.objective.curvature == "weakly convex" and assumed.objective.smooth
    assert assumed.objective.below.standing == assumed.objective.differentiable.standing == Standing.ASSUMED
    assert assumed.constraints["gap"].curvature == "weakly convex" and not assumed.constraints["gap"].smooth
    numbers = structure.analyse(problem(NET.format(assume=" assume smooth(3), lipschitz(2)")))
    assert numbers.constraints["gap"].rho == 3.0 and numbers.constraints["gap"].C == 2.0
    convex = structure.analyse(problem(NET.format(assume=" assume convex")))
    assert convex.see(convex.problem.constraints[0].body).curvature == "unknown", "abs of a convex function"


@pytest.mark.parametrize(
    "activation, curvature", [("elu", "weakly convex"), ("silu", "weakly convex"), ("relu", "unknown")]
)
def test_bound_nets(activation: str, curvature: str) -> None:
    import torch

    torch.set_num_threads(1)
    layer = {"elu": torch.nn.ELU, "silu": torch.nn.SiLU, "relu": torch.nn.ReLU}[activation]()
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), layer, torch.nn.Linear(8, 1), torch.nn.Flatten(-2))
    model = problem(NET.format(assume=""))
    found = structure.analyse(model, Bound(problem=model, nets={"s": net}, dims={"d": 4}))
    assert found.objective.curvature == found.constraints["gap"].curvature == curvature
    assert found.objective.smooth == (curvature == "weakly convex")
    assert not found.constraints["gap"].smooth


def test_maximise_reports_what_was_written() -> None:
    found = structure.analyse(problem(f"{PREAMBLE}\nmaximize e: log(l) - square(u);"))
    assert found.objective.curvature == "concave" and found.minimised.curvature == "convex" and found.convex
    assert found.minimised.monotone("l") == "decreasing"


def test_domains_that_are_not_proved_are_said() -> None:
    found = facts("log(E[i ~ D] dot(w, i.x)^2)")
    assert len(found.domain) == 1 and "(0, inf)" in found.domain[0].reason


@pytest.mark.parametrize("value", [-2.0, -0.5, 1 / 3, 0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("base", ["u", "p", "h", "l", "u - v"])
def test_an_exponent_that_is_a_parameter_claims_no_more_than_its_value(base: str, value: float) -> None:
    """What is found of all exponents holds of the one that is given: of whole ones below 0 too, of
    small ones at 0."""
    model = problem(f"{PREAMBLE}\nparam e default {value};\nminimize f: ({base})^e;")
    found = structure.analyse(model, Bound(problem=model, params={"e": np.array(value)})).objective
    written = facts(f"({base})^{value}" if value >= 0 else f"({base})^({value})")
    assert (found.curvature, found.smooth) == (written.curvature, written.smooth)


@pytest.mark.parametrize("text", [
    "sqrt(sum((w - 1)^2))", "(sum(square(2 * w)) / 2)^0.5", "sqrt(mean(w^2) + 1)", "log(1 - -(E[i ~ D] exp(dot(w, i.x))))",
    "log(1 + -(-(E[i ~ D] exp(dot(w, i.x)))))", "log(E[i ~ D] 2 * -(-exp(dot(w, i.x))))",
])  # fmt: skip
def test_norms_and_sums_by_other_words_are_convex(text: str) -> None:
    assert facts(text).curvature == "convex"


def test_geometric_means_over_a_set() -> None:
    """Of three elements, K's: the third root, not the second."""
    found = {
        "s[j])^(1/3)": "concave",
        "s[j] * p)^(1/6)": "concave",
        "s[j])^(1/2)": "unknown",
        "(s[j] - 1))^(1/3)": "unknown",
    }
    assert {text: facts(f"(prod[j in K] {text}").curvature for text in found} == found
