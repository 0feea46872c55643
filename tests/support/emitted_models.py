# ruff: noqa: E501  (a model is easier to read on one line)
"""Small models that together use every feature of the language, with generated data; and their
programs as modules."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch

from fccomodel import pipeline, plan
from fccomodel.algorithms.runtime.helpers import support
from fccomodel.core.source import Source
from fccomodel.execution.run.loading import loaded
from fccomodel.library import reductions
from fccomodel.library.proximal import maps
from fccomodel.normal_form import normalise
from fccomodel.plan import choice
from fccomodel.program import emit
from fccomodel.program.emit import Program
from fccomodel.program.emit.sampling import StepDraws
from fccomodel.program.lower import Lowered, lower

torch.set_num_threads(1)
ROWS = 60


def table(n: int = ROWS, seed: int = 0) -> dict[str, Any]:
    """Rows with vectors, classes, times, labels and numbers of a set; every class occurs with every label."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    g = np.array(["north", "south", "west"])[np.arange(n) % 3]
    return {
        "x": x,
        "y": np.where(np.arange(n) % 2 == 0, 1, -1),
        "time": np.round(rng.exponential(size=n) * 3, 1) + x[:, 0] ** 2,
        "g": g,
        "a": (np.arange(n) // 2) % 2,
        "b": 1 + (np.arange(n) // 3) % 3,
        "m": rng.normal(size=(n, 2, 3)),
        "r": rng.normal(size=(n, 4)),
    }


def mlp(width: int = 4, outputs: int = 0, inputs: int = 3) -> torch.nn.Module:
    torch.manual_seed(3)
    last = torch.nn.Linear(width, outputs or 1)
    shape = [] if outputs else [torch.nn.Flatten(0)]
    return torch.nn.Sequential(torch.nn.Linear(inputs, width), torch.nn.Tanh(), last, *shape)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, what is bound to it, and batch sizes small enough that its minibatches are true samples."""

    text: str
    data: Callable[[], Mapping[str, Any]] = lambda: {"D": table()}
    params: Mapping[str, Any] = field(default_factory=dict)
    nets: Callable[[], Mapping[str, Any]] = dict
    options: Mapping[str, Any] = field(default_factory=lambda: {"outer_batch": 5, "inner_batch": 7})
    scale: float = 0.4


HEAD = """
dim d; set G; set K = {1, 2, 3}; set T = -1 .. 1 by 0.5;
data D : table(x: real[d], y: {-1, 1}, time: real, g: G, a: {0, 1}, b: K, m: real[2, d]);
set P = {z in D | z.y == 1}; set N = {z in D | z.y == -1};
var w[d];
"""
NET = HEAD.replace("var w[d];", "net s : real[d] -> real; var v = params(s);")
CASES: dict[str, Case] = {}


def case(name: str, body: str, head: str = HEAD, **given: Any) -> None:
    CASES[name] = Case(text=f"model {name};{head}{body}", **given)


# -------------------------------------------------------------------- one expectation, sums of them
case("logistic", "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.1 * sumsq(w);")
case("sum_of_rows", "minimize sum[z in D] sqhinge(1 - z.y * dot(w, z.x)) / 60;")
case("linear_terms", "minimize E[z ~ P] dot(w, z.x) - 2 * E[z ~ N] dot(w, z.x) + sum(w^4) - 0.3 * sum(w);")
case("probability", "minimize E[z ~ D] log1pexp(dot(w, z.x)) + (prob[z ~ D] (z.time > 2)) * sumsq(w)^2;")
case("condition_static", "minimize E[z ~ D | z.time > 1 and z.y == 1] exp(0.3 * dot(w, z.x)) + sumsq(w);")
case("condition_or", "minimize (E[z ~ D | z.time > 2 or not (z.a == 1)] dot(w, z.x))^2 + sumsq(w)^2;")
case(
    "numbers_beside_labels",
    "minimize sumsq(w); subject to c[k in 1 .. 3]: dot(concat(1, k), concat(w[2], w[1])) <= 2;",
)
case("pairs", "minimize E[p ~ P, n ~ N] sqhinge(1 - dot(w, p.x) + dot(w, n.x));")
case("pairs_swapped", "minimize E[p ~ P] E[n ~ N] sigmoid(dot(w, n.x) - dot(w, p.x)) * p.time;")
case(
    "chosen",
    "minimize E[z ~ D] (if z.time > 1 then log(z.time) * dot(w, z.x)^2 else z.y * dot(w, z.x)) "
    '+ E[z ~ D] (z.g == "north") * exp(0.1 * dot(w, z.x)) + sumsq(w)^2;',
)
case("waves", "minimize E[z ~ D] (sin(dot(w, z.x)) - cos(z.time * w[1]))^2 + 0.1 * sumsq(w);")
case(
    "recursion",
    "let x[z in D, t in 1 .. 4] = if t == 1 then dot(w, z.x) else max(x[z, t - 1], t * w[1]) "
    "- 0.1 * z.time * x[z, t - 1]; let p[k in 1 .. 3, i in d] = if k == 3 then w[i] "
    "else tanh(sum[j in d] p[k + 1, j] * j) + p[k + 1, i]; "
    "minimize E[z ~ D] sum[t in 1 .. 4] x[z, t]^2 + E[z ~ D] dot(p[1, ..], z.x)^2;",
)
case("maximised", "maximize E[p ~ P, n ~ N] sigmoid(dot(w, p.x) - dot(w, n.x)) - 0.01 * sumsq(w)^2;")

# ----------------------------------------------------------------------------- compositions, nested
case("composition", "minimize mean[i in P] log(1 + E[j ~ N] sqhinge(1 + dot(w, j.x) - dot(w, i.x)));")
case("sum_composition", "minimize 0.1 * sum[i in P] (E[j ~ N] exp(dot(w, j.x) - dot(w, i.x)))^2;")
case("risk_set", "minimize mean[i in P] log(E[j ~ D | j.time >= i.time] exp(dot(w, j.x) - dot(w, i.x)));")
case(
    "risk_set_sum",
    "minimize mean[i in P] log(sum[j in D | j.time >= i.time] exp(dot(w, j.x) - dot(w, i.x)));",
)
case(
    "strictly_before",
    "minimize mean[i in {z in D | z.time > 1.0}] log(1 + E[j ~ D | j.time < i.time] exp(dot(w, j.x)));",
)
case("leave_out", "minimize mean[i in D] (E[j ~ D | j != i] tanh(dot(w, j.x) - dot(w, i.x)))^2;")
case(
    "same_group",
    "minimize mean[i in D] log(E[j ~ D | j.g == i.g and j != i] exp(dot(w, j.x) - dot(w, i.x)));",
)
case("group_and_order",
     "minimize mean[i in P] log(E[j ~ D | j.g == i.g and j.time >= i.time] exp(dot(w, j.x) - dot(w, "
     "i.x)));")  # fmt: skip
case("masked", "minimize mean[i in D] log(1 + E[j ~ D | j.time + i.time > 3] exp(dot(w, j.x)));")
case(
    "masked_and_keyed",
    "minimize mean[i in D] log(1 + E[j ~ D | j.a == i.a and abs(j.time - i.time) < 9] exp(dot(w, j.x)));",
)
case(
    "masked_sum",
    "minimize mean[i in D] log(1 + sum[j in D | j.time + i.time > 3 and j != i] exp(dot(w, j.x)) / 60);",
)
case("ratio", "minimize (E[z ~ P] exp(dot(w, z.x))) / (E[z ~ D] exp(0.5 * dot(w, z.x)));")
case(
    "ratio_inside",
    "minimize mean[i in P] log((E[j ~ N] exp(dot(w, j.x))) / (1 + E[j ~ D] exp(dot(w, j.x) - dot(w, i.x))));",
)
case(
    "d1_is_2",
    "minimize mean[k in G] (E[z ~ D | z.g == k and z.a == 0] dot(w, z.x) - E[z ~ D | z.g == k and z.a == "
    "1] dot(w, z.x))^2;",
)
case("three_levels", "minimize log(E[i ~ P] exp(E[j ~ N] sqhinge(1 + dot(w, j.x) - dot(w, i.x))));")
case("three_nested",
     "minimize mean[k in G] (E[i ~ D | i.g == k] log(1 + E[j ~ D | j.time >= i.time] exp(dot(w, j.x) - "
     "dot(w, i.x))))^2;")  # fmt: skip
case(
    "three_nested_sums",
    "minimize mean[i in P] log(E[j ~ N] exp(0.2 * sum[k in K] tanh(E[l ~ D | l.b == k] dot(w, l.x - j.x))));",
)
case(
    "two_outer",
    "minimize mean[i in P, k in K] log(1 + E[j ~ D | j.b == k] exp(dot(w, j.x) - dot(w, i.x) * k));",
)
case(
    "binder_ranges_depend",
    "minimize (E[i ~ D, j ~ D | j.time >= i.time] tanh(dot(w, j.x) - dot(w, i.x)))^2 + sumsq(w)^2;",
)
case(
    "binder_ranges_linear",
    "minimize E[i ~ P, j ~ D | j.g == i.g and j.time > i.time] tanh(dot(w, j.x) - dot(w, i.x));",
)
case(
    "binder_ranges_sum",
    "minimize 0.01 * sum[i in P, j in D | j.g == i.g and j != i] tanh(dot(w, j.x) - dot(w, i.x));",
)
case(
    "binder_three",
    "minimize (E[i ~ P, j ~ D, l ~ N | j.g == i.g and l.time > j.time] tanh(dot(w, j.x - i.x) + dot(w, "
    "l.x)))^2;",
)
case("binder_masked", "minimize (E[i ~ D, j ~ D | i.time + j.time > 3] tanh(dot(w, j.x) - dot(w, i.x)))^2;")
case(
    "binder_and_outer",
    "minimize mean[k in K] (E[i ~ D, j ~ D | i.b == k and j.g == i.g] tanh(dot(w, j.x) - dot(w, i.x) * "
    "k))^2;",
)
case("values_of_sets", "minimize sum[t in T] (E[z ~ P] sigmoid(dot(w, z.x) - t))^2 * t^2;")
case("filtered_values", "minimize sum[t in T | t > 0] (E[z ~ P] sigmoid(dot(w, z.x) - t))^2;")
case("set_family", "set Q[i in P] = {z in D | z.time >= i.time and z.y == -1 or z.a == 1};"
     "minimize mean[i in P] log(E[j ~ Q[i]] exp(dot(w, j.x) - dot(w, i.x)));")  # fmt: skip

# --------------------------------------------------------------------------------------------- lets
case("let_shared", "let r = E[z ~ D] exp(dot(w, z.x)); minimize log(r) + 0.1 * r^2;")
case(
    "let_family",
    "let r[k in G] = E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)); minimize mean[k in G] r[k]^2 + "
    "mean[k in G] exp(r[k]);",
)
case("let_members", "let r[k in K, t in T] = E[z ~ D | z.b == k] sigmoid(dot(w, z.x) - t);"
     "minimize mean[t in T] (r[1, t] - r[3, t])^2 + r[2, 0.5] * r[2, -1];")  # fmt: skip
case("let_label", 'set S = {"north", "south", "west"}; data C : table(x: real[d], s: S);'
                  'let r[k in S] = E[z ~ C | z.s == k] dot(w, z.x); minimize (r["south"] - r["west"])^2 '
                  '+ sum[k in S] exp(r[k]);',
     data=lambda: {"D": table(), "C": {"x": table()["x"], "s": table()["g"]}})  # fmt: skip
case(
    "let_sampled",
    "let r[i in P] = E[j ~ N] exp(dot(w, j.x) - dot(w, i.x)); minimize mean[i in P] (log(r[i]) + 0.2 * "
    "r[i]^2);",
)
case(
    "let_sampled_twice",
    "let r[i in P] = E[j ~ N] exp(dot(w, j.x) - dot(w, i.x)); minimize mean[i in P] log(r[i]) + mean[i "
    "in P] sqrt(1 + r[i]);",
)
case("let_outer_mean", "let c = E[z ~ D] dot(w, z.x); minimize E[z ~ D] (dot(w, z.x) - c)^2 + c^4;")
case("let_vector", "let c = E[z ~ D] z.x * dot(w, z.x); minimize sumsq(c) + norm2(c + 1);")

# ------------------------------------------------------------------------------- kinds of reduction
case("variance", "minimize 0.2 * variance[z ~ D] dot(w, z.x) - E[z ~ D] dot(w, z.x) + 0.01 * norm1(w);")
case("variance_family", "minimize sum[k in G] variance[z ~ D | z.g == k] dot(w, z.x);")
case(
    "cvar_family",
    "minimize cvar(tail = 0.4)[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x))) + 0.1 * sumsq(w);",
)
case("cvar_rows", "minimize cvar(tail = 0.3)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x)));")
case("cvar_plain", "minimize cvar(tail = 0.3)[z ~ D] log1pexp(-z.y * dot(w, z.x));")
case("cvar_two_binders", "minimize cvar(tail = 0.3)[p in P, n in N] sqhinge(1 + dot(w, n.x) - dot(w, p.x));")
case("cvar_members", "minimize sum[k in G] cvar(tail = 0.25)[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x));")
case(
    "cvar_in_constraint",
    "minimize E[z ~ P] log1pexp(-dot(w, z.x)); subject to tail: cvar(tail = 0.5)[z ~ N] log1pexp(dot(w, "
    "z.x)) <= 0.6;",
)
case("topk_family", "minimize topk(k = 2)[k in K] (E[z ~ D | z.b == k] log1pexp(-z.y * dot(w, z.x)));")
case(
    "logmeanexp_family",
    "minimize logmeanexp(theta = 0.5)[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)));",
)
case("logmeanexp_rows", "minimize logmeanexp(theta = 2)[z ~ D] (z.y * dot(w, z.x));")
case(
    "logmeanexp_nested", "minimize mean[i in P] logmeanexp(theta = 0.7)[j in N] (dot(w, j.x) - dot(w, i.x));"
)
case("pmean_family", "minimize pmean(p = 3)[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)));")
case(
    "max_family", "minimize max[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x))) + 0.1 * sumsq(w);"
)
case(
    "max_two",
    "minimize max[k in G, c in {0, 1}] (E[z ~ D | z.g == k and z.a == c] log1pexp(-z.y * dot(w, z.x)));",
)
case(
    "max_of_terms", "minimize max(E[z ~ P] log1pexp(-dot(w, z.x)), E[z ~ N] log1pexp(dot(w, z.x)), sumsq(w));"
)
case(
    "max_per_member",
    "minimize mean[k in K] max(E[z ~ P | z.b == k] log1pexp(-dot(w, z.x)), E[z ~ N | z.b == k] "
    "log1pexp(dot(w, z.x)));",
)
case(
    "max_inside_mean",
    "minimize mean[t in T] max[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x) + t));",
)
case(
    "max_minus_one",
    "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + pos(max[k in G] (E[z ~ D | z.g == k] dot(w, z.x)) "
    "- 0.1);",
)
case("max_inside_expectation", "minimize E[z ~ D] max(dot(w, z.x), 0.5 * dot(w, z.x) + 0.2, -1);")
case("max_rows", "minimize max[z in P] log1pexp(-dot(w, z.x)) + sumsq(w);")
case(
    "min_family", "maximize min[k in G] (E[z ~ D | z.g == k] logsigmoid(z.y * dot(w, z.x))) - 0.1 * sumsq(w);"
)
case("prod_family", "minimize prod[k in K] (1 + E[z ~ D | z.b == k] log1pexp(-z.y * dot(w, z.x)));")
case("smooth_outer_pos", "minimize mean[i in P] pos(E[j ~ N] tanh(dot(w, j.x) - dot(w, i.x)) + 0.1);")
case("inner_hinge", "minimize mean[i in P] log(1 + E[j ~ N] pos(1 + dot(w, j.x) - dot(w, i.x)));")
case(
    "outer_huber",
    "minimize mean[i in P] (abs(E[j ~ N] tanh(dot(w, j.x) - dot(w, i.x))) + pinball(E[j ~ N] dot(w, j.x) "
    "- dot(w, i.x), 0.3));",
)

# ------------------------------------------------------------------------------ robust formulations
ROBUST = "let r[k in G] = E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x));"
case("dro_kl", ROBUST + "minimize max[q in simplex(G)] (sum[k in G] q[k] * r[k] - 0.5 * kl(q, uniform(G)));")
case("dro_simplex", ROBUST + "minimize max[q in simplex(G)] (sum[k in G] q[k] * r[k]);")
case("dro_capped", ROBUST + "minimize max[q in capped_simplex(G, 0.5)] (sum[k in G] q[k] * r[k]);")

# ----------------------------------------------------------------- constraints, simple sets, senses
case(
    "one_constraint",
    "param tau >= 0 default 0.6; minimize E[z ~ N] log1pexp(dot(w, z.x)); subject to misses: E[z ~ P] "
    "log1pexp(-dot(w, z.x)) <= tau;",
)
case(
    "constraint_family",
    "minimize sumsq(w - 1); subject to risk[k in G]: E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)) <= "
    "0.6;",
)
case(
    "constraint_condition",
    "minimize sumsq(w - 1); subject to c[k in K | k > 1]: E[z ~ D | z.b == k] log1pexp(-z.y * dot(w, "
    "z.x)) <= 0.2 * k;",
)
case(
    "constraint_two_indices",
    "minimize sumsq(w - 1); subject to c[k in G, t in T | t > 0]: E[z ~ D | z.g == k] sigmoid(dot(w, "
    "z.x) - t) <= 0.4;",
)
case(
    "constraint_related",
    "minimize sumsq(w - 1); subject to c[j in K, k in K | j < k]: E[z ~ D | z.b == j] dot(w, z.x) - E[z "
    "~ D | z.b == k] dot(w, z.x) <= 0.1;",
)
case(
    "equality",
    "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)); subject to zero: E[z ~ D] dot(w, z.x) == 0.1; "
    "whole: sum(w) == 1;",
)
case("two_sided", "minimize sumsq(w - 1); subject to centre: -0.05 <= E[z ~ D] dot(w, z.x) <= 0.05;")
case("absolute_gap", "let r[c in {0, 1}, t in T] = E[z ~ P | z.a == c] sigmoid(dot(w, z.x) - t);"
                     "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)); subject to gap[t in T]: abs(r[0, "
                     "t] - r[1, t]) <= 0.005;")  # fmt: skip
case(
    "composite_constraint",
    "minimize sumsq(w - 1); subject to c: mean[i in P] log(1 + E[j ~ N] exp(dot(w, j.x) - dot(w, i.x))) "
    "<= 0.6;",
)
case(
    "constraint_per_row",
    "minimize sumsq(w - 1); subject to c[i in P]: E[j ~ N] tanh(dot(w, j.x) - dot(w, i.x)) <= 0.05;",
)
case("deterministic_rows", "minimize sumsq(w - 1); subject to c[i in N]: dot(w, i.x) <= 0.5;")
case("data_of_the_label", "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)); subject to c[k in K]: w[k] <= "
                          "0.1 * k; e: w[2]^2 + w[1] * w[3] <= 1;",
     head=HEAD.replace("var w[d]", "var w[K]").replace("x: real[d]", "x: real[K]"))  # fmt: skip
case("simple_sets", "var q[G] in simplex(G); var t >= 0, <= 2; var b[d] in ball(0.3); var e[2] in box(-1, 1);"
                    "minimize sum[k in G] q[k] * (E[z ~ D | z.g == k] log1pexp(-z.y * dot(b, z.x) + t)) "
                    "+ sumsq(e - 2) + (t - 1)^2 + sumsq(q) + sumsq(w);")  # fmt: skip
case("affine_set", "data A : real[1, d]; data rhs : real[1]; var u[d] in affine(A, rhs) ; minimize E[z ~ "
                   "D] (dot(u, z.x) - z.time)^2 + sumsq(w);",
     data=lambda: {"D": table(), "A": np.ones((1, 3)), "rhs": np.array([1.0])})  # fmt: skip

# ----------------------------------------------------------------------------- vectors and matrices
MATRIX = HEAD.replace("var w[d];", "var A[K, d];")
case(
    "softmax_regression",
    "minimize E[z ~ D] (logsumexp(A @ z.x) - sum[k in K | k == z.b] (A @ z.x)[k]) + 0.1 * norm_fro(A);",
    head=MATRIX,
)
case(
    "matrix_entries",
    "minimize E[z ~ D] sumsq(A @ z.x - 1) + A[1, 2] * A[3, 1] + sum[k in K] (A[k, 1] - k)^2 + sum[k in "
    "K, j in 1 .. d] A[k, j]^4;",
    head=MATRIX,
)
case(
    "matrix_scores",
    "let e[k in K] = E[z ~ D | z.b == k] (logsumexp(A @ z.x) - (A @ z.x)[k]); minimize mean[k in K] "
    "exp(e[k]);",
    head=MATRIX,
)
case(
    "vector_tracked",
    "minimize sumsq(E[z ~ D] z.x * tanh(dot(w, z.x))) + norm2(E[z ~ P] w * dot(w, z.x)^2 + 0.1);",
)
case(
    "vector_tracked_family",
    "minimize mean[k in G] norm2(0.3 + E[z ~ D | z.g == k] z.x * tanh(dot(w, z.x)))^2;",
)
case("vector_tracked_rows", "minimize mean[i in P] logsumexp(E[j ~ N] j.x * tanh(dot(w, j.x - i.x)));")
case(
    "matrix_column",
    "minimize E[z ~ D] log1pexp(-z.y * norm2(z.m @ w + 1)) + mean[i in P] log(1 + sumsq(E[j ~ N] j.m @ "
    "(w * 1.5) - i.m @ w));",
)
case("matrix_tracked", "minimize norm_fro(E[z ~ D] outer(w, z.x) * tanh(dot(w, z.x)) + 1)^2;")
case(
    "norms",
    "minimize E[z ~ D] norm1(w - z.x) + norm2(w - 3) + norminf(w + 2) + sum[k in G] norm2(E[z ~ D | z.g "
    "== k] (w - z.x)) + norminf(E[z ~ P] w * z.x) + norm1(E[z ~ N] w * z.x - 1);",
)
case(
    "gap_of_two",
    "minimize mean[k in G] (pos(abs(E[z ~ P | z.g == k] tanh(dot(w, z.x)) - E[z ~ N | z.g == k] "
    "tanh(dot(w, z.x))) - 0.01) + sumsq(w));",
)
case(
    "weakly_convex",
    "minimize mean[i in P] (scad(E[j ~ N] tanh(dot(w, j.x) - dot(w, i.x)), 3.7, 0.4) + mcp(E[j ~ N] "
    "dot(w, j.x) - dot(w, i.x), 2, 0.5));",
)
case(
    "matrix_norms",
    "minimize norm_nuc(E[z ~ D] outer(w + 1, z.x) * z.y) + norm_fro(E[z ~ P] outer(w, z.x)) + "
    "group_norm(E[z ~ N] w * z.x * z.y, 1);",
)
case(
    "radial",
    "minimize mean[k in G] (pos(norm2(E[z ~ D | z.g == k] w * z.x + 0.2) - 0.1) + huber(norm2(E[z ~ D | "
    "z.g == k] (w - z.x)), 0.3));",
)
case(
    "vector_atoms",
    "minimize E[z ~ D] (kl(softmax(w * z.x), softmax(z.x)) + dot(softmax(w), z.x^2)) + sum(concat(w, "
    "w^2)) + sum(transpose(outer(w, w)) @ w);",
)
case(
    "item_of_expression",
    "minimize E[z ~ D] (w * z.x)[1] * (w * z.x)[3] + (E[z ~ D] w * tanh(dot(w, z.x)))[2]^2;",
)
case(
    "entry_of_a_label",
    "var v[G]; var B[K, d]; minimize E[z ~ D] ((z.time - v[z.g] - (B @ z.x)[z.b])^2 + logsumexp(B @ z.x) "
    "- (B @ z.x)[z.b]) + sumsq(v);",
)
case(
    "row_of_a_matrix",
    "var B[K, d]; minimize E[z ~ D] (sumsq(z.x - B[z.b]) - log(sum[k in K] exp(-sumsq(z.x - B[k])))) + "
    "norm2(B[2] + w);",
)
case(
    "concat_rows",
    "minimize E[z ~ D] sumsq(tanh(concat(w, z.x, z.time, w * z.time))) + log(E[z ~ P] sumsq(concat(w - "
    "z.x, w)));",
)
case(
    "row_variables",
    "var b[P]; minimize mean[i in P] (b[i] - dot(w, i.x) + E[j ~ D] tanh(b[i] * dot(w, j.x)))^2 + sum[i "
    "in P] b[i]^4 / 30;",
)
case(
    "cvar_per_row",
    "minimize mean[i in P] (cvar(tail = 0.4)[k in K] (E[j ~ N | j.b == k] tanh(dot(w, j.x) - dot(w, i.x))));",
)
case(
    "empty_dropped",
    "minimize mean[i in D] log(E(empty = drop)[j ~ D | j.time > 2 * i.time] exp(dot(w, j.x - i.x)));",
)
case(
    "column_element",
    "minimize E[z ~ D] (z.x[1] * w[2] - z.x[2] * w[1])^2 + mean[i in D] tanh(E[j ~ D | j != i] j.x[1] * "
    "w[1] * i.x[3] * w[3]);",
)
case(
    "variables_mixed",
    "var c; var v[2]; minimize E[z ~ D] log1pexp(-z.y * (dot(w, z.x) + c)) + (c - v[1])^2 + (v[1] * v[2] "
    "- 1)^2 + mean[i in P] log(1 + E[j ~ N] exp(c * dot(w, j.x)));",
)
case(
    "matrix_vars_product",
    "var B[d, 2]; minimize E[z ~ D] sumsq(A @ (B @ (transpose(B) @ z.x))) + norm_fro(B - 1)^2;",
    head=MATRIX,
)
case("elementary", "minimize E[z ~ D] (sqrt(1 + dot(w, z.x)^2) + smooth_hinge(dot(w, z.x), 0.5) + "
                   "silu(dot(w, z.x)) + normcdf(dot(w, z.x))"
                   " + erf(dot(w, z.x)) + elu(dot(w, z.x)) + inv(2 + tanh(dot(w, z.x))) + log1p(dot(w, "
                   "z.x)^2) + expm1(0.1 * dot(w, z.x)))"
                   "  + (E[z ~ D] exp(dot(w, z.x)))^1.5 + min(w[1], w[2]) + entr(1 + w[1]^2);")  # fmt: skip

# ----------------------------------------------------------------------- parameters, arrays, tables
case("parameters", "param mu >= 0 default 0.2; param c[d] default 1; data e : real[K]; data s : real;"
                   "minimize mu * E[z ~ D] (dot(w, z.x) - s)^2 + sumsq(w - c) + sum[k in K] e[k] * (E[z "
                   "~ D | z.b == k] dot(w * c, z.x))^2;",
     data=lambda: {"D": table(), "e": np.array([0.3, 1.0, 2.0]), "s": 0.7}, params={"c": [0.1, -0.4, 2.0]})  # fmt: skip
case("portfolio", "minimize 0.2 * variance[z ~ R] dot(z.r, x) - E[z ~ R] dot(z.r, x) + 0.05 * norm1(x) + "
                  "dot(cost, x^2);",
     head="set A; data R : table(r: real[A]); data cost : real[A]; var x[A];",
     data=lambda: {"R": table(), "cost": np.array([1.0, 2, 3, 4])})  # fmt: skip
case("table_family", "minimize mean[k in K] (E[z ~ S[k]] (dot(w, z.x) - z.time)^2)^1.5 + E[z ~ S[2]] "
                     "dot(w, z.x);",
     head="dim d; set K = {1, 2, 5}; data S[k in K] : table(x: real[d], time: real); var w[d];",
     data=lambda: {"S": {str(k): {n: c for n, c in table(20 + k, k).items() if n in ("x", "time")} for k in (1, 2, 5)}})  # fmt: skip
case("two_tables", "minimize mean[i in D] log(1 + E[j ~ C] exp(dot(w, j.x) - dot(w, i.x))) + max[k in G] "
                   "(E[j ~ C | j.g == k] dot(w, j.x));",
     head="dim d; set G; data D : table(x: real[d]); data C : table(x: real[d], g: G); var w[d];",
     data=lambda: {"D": {"x": table()["x"]}, "C": {n: c for n, c in table(33, 5).items() if n in ("x", "g")}})  # fmt: skip
case("subsets_of_sets", "set B = {k in K | k > 1}; set E1 = {k in K | k != 2}; minimize sum[k in B] "
                        "v[k]^2 * (E[z ~ D | z.b == k] dot(w, z.x))^2 + sum[k in E1] v[k] * k + r(1) + "
                        "sumsq(w)^2;",
     head=HEAD + "var v[K]; def r(k) = k * sumsq(v);")  # fmt: skip
case(
    "let_over_other_set",
    "set B = {k in K | k > 1}; let r[k in K] = k * (E[z ~ D | z.b == k] dot(w, z.x)); minimize sum[k in "
    "B] exp(r[k]) + sumsq(w);",
)
case("reserved_names", "minimize mean[u in P] log(1 + E[c ~ N] exp(dot(w, c.x) - dot(w, u.x))) + "
                       "mean[part in P] (E[t ~ D | t != part] tanh(dot(w, t.x)))^2"
                       " + mean[h in N] (E[G1 ~ D | G1.time >= 0 * h.time] tanh(dot(w, G1.x)))^2 + "
                       "(sum[rng in K] rng * (E[batch ~ D | batch.b == rng] dot(w, batch.x)))^2;")  # fmt: skip
case("reserved_variables", "minimize E[z ~ D] (h * dot(u, z.x) - track)^2 + mean[c in P] log(1 + E[w ~ "
                           "N] exp(dot(u, w.x) * torch - dot(u, c.x)));",
     head=HEAD.replace("var w[d];", "var u[d]; var h; var track; var torch; "))  # fmt: skip

# ------------------------------------------------------------------------------------- random draws
case("noise", "minimize E[z ~ D, e ~ normal(0, 0.1)[d]] log1pexp(-z.y * dot(w, z.x + e));")
case("noise_nested", "minimize E[z ~ D] (E[e ~ normal(0, 0.2)] tanh(dot(w, z.x) + e))^2;")
case(
    "noise_composition",
    "minimize log(E[e ~ uniform(0, 1)] exp(e * w[1])) + (E[e ~ exponential(2)] tanh(e * w[2]))^2 + (E[e "
    "~ laplace(0, 1)] tanh(e + w[3]))^2 + sumsq(w)^2;",
)
case(
    "noise_bernoulli",
    "minimize mean[i in P] log(1 + E[j ~ N, e ~ bernoulli(0.7)] exp(e * dot(w, j.x) - dot(w, i.x)));",
)
case("noise_depends", "minimize mean[i in P] (E[e ~ normal(i.time, 0.5)] tanh(e * w[1] - dot(w, i.x)))^2;")
case("outer_draw", "minimize E[e ~ normal(0, 1)] log(1 + E[z ~ D] exp(dot(w, z.x) * e * 0.3));")

# --------------------------------------------------------------------------------------------- nets
TOKENS = NET.replace("b: K,", "b: K, b2: int[2],")


def tokens() -> dict[str, Any]:
    """The usual rows, with two token ids of 0 .. 4 each."""
    return {"D": {**table(), "b2": np.random.default_rng(4).integers(0, 5, size=(ROWS, 2))}}


class Tokens(torch.nn.Module):
    """A score of two tokens, and of a vector if there is one."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding, self.last, self.vector = (
            torch.nn.Embedding(5, 3),
            torch.nn.Linear(3, 1),
            torch.nn.Linear(3, 1),
        )

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Scores (rows,) of (rows, 2) ids, or of vectors and ids."""
        score = self.last(torch.tanh(self.embedding(inputs[-1])).mean(1))
        if len(inputs) > 1:
            score = score + torch.tanh(self.vector(inputs[0]))
        return score.squeeze(-1)


class Two(torch.nn.Module):
    """A score of two vectors, of 3 and 2 numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.both = torch.nn.Linear(5, 1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Scores (rows,)."""
        return torch.tanh(self.both(torch.cat([x, y], -1))).squeeze(-1)


NETS = {"nets": lambda: {"s": mlp()}, "scale": 0.0}
case("net_logistic", "minimize E[z ~ D] log1pexp(-z.y * s(v; z.x)) + 0.01 * sumsq(v);", head=NET, **NETS)
case(
    "net_pairs",
    "maximize E[p ~ P, n ~ N] sigmoid(s(v; p.x) - s(v; n.x)); subject to c: abs(E[z ~ D] s(v; z.x)) <= 0.05;",
    head=NET,
    **NETS,
)
case(
    "net_composition",
    "minimize mean[i in P] log(1 + E[j ~ N] exp(s(v; j.x) - s(v; i.x))) + E[z ~ D | z.a == 1] s(v; z.x)^2;",
    head=NET,
    **NETS,
)
case(
    "net_dependent",
    "minimize mean[i in P] log(E[j ~ D | j.time >= i.time] exp(s(v; j.x) - s(v; i.x)));",
    head=NET,
    **NETS,
)
case(
    "net_of_expression",
    "minimize E[z ~ D, e ~ normal(0, 0.1)[d]] (s(v; z.x + e) - s(v; -z.x))^2;",
    head=NET,
    **NETS,
)
case("net_vector", "minimize E[z ~ D] (logsumexp(s(v; z.x)) - sum[k in K | k == z.b] s(v; z.x)[k]) + "
                   "(E[z ~ P] s(v; z.x)[2])^2;",
     head=NET.replace("real[d] -> real;", "real[d] -> real[3];").replace("set K", "set K"), nets=lambda: {"s": mlp(outputs=3)}, scale=0.0)  # fmt: skip
case(
    "net_and_more",
    "var c; var w[d]; minimize E[z ~ D] log1pexp(-z.y * (s(v; z.x) + dot(w, z.x) + c)) + (E[z ~ N] s(v; "
    "z.x) - c)^2;",
    head=NET,
    **NETS,
)
case("two_nets", "net r : real[d] -> real; var q = params(r); minimize mean[i in P] log(1 + E[j ~ N] "
                 "exp(s(v; j.x) - r(q; i.x))) + E[z ~ D] (r(q; z.x) - s(v; z.x))^2;",
     head=NET, nets=lambda: {"s": mlp(), "r": mlp(2)}, scale=0.0)  # fmt: skip
case("net_of_tokens", "minimize E[z ~ D] log1pexp(-z.y * s(v; z.b2)) + (E[z ~ P] s(v; z.b2))^2;",
     head=TOKENS.replace("real[d] -> real;", "int[2] -> real;"), data=tokens, nets=lambda: {"s": Tokens()}, scale=0.0)  # fmt: skip
case("net_of_two_inputs", "minimize mean[i in P] log(1 + E[j ~ N] exp(s(v; j.x, j.b2) - s(v; i.x, i.b2)));",
     head=TOKENS.replace("real[d] -> real;", "real[d], int[2] -> real;"), data=tokens, nets=lambda: {"s": Tokens()}, scale=0.0)  # fmt: skip
case("net_of_rows_and_draws", "minimize E[z ~ D] (z.y - E[e ~ normal(0, 1)[d]] s(v; e, z.b2))^2;",
     head=TOKENS.replace("real[d] -> real;", "real[d], int[2] -> real;"), data=tokens, nets=lambda: {"s": Tokens()}, scale=0.0)  # fmt: skip
case("frozen_net", "net r : real[d] -> real[2] frozen; net q : real[2] -> real; var a = params(q); minimize mean[i in P] log(1 + E[j ~ N] exp(s(v; j.x) * sum(r(j.x)) - q(a; r(i.x))));",
     head=NET, nets=lambda: {"s": mlp(), "r": mlp(outputs=2), "q": mlp(inputs=2)}, scale=0.0)  # fmt: skip
case("frozen_net_of_draws", "net r : real[d] -> real frozen; minimize E[z ~ D, e ~ normal(0, 1)[d]] (s(v; z.x) - r(z.x + e))^2;",
     head=NET, nets=lambda: {"s": mlp(), "r": mlp()}, scale=0.0)  # fmt: skip
INNER = {"head": NET.replace("real[d] -> real;", "real[2] -> real;"), "scale": 0.0}
ENCODER = "net r : real[d] -> real[2]; var q = params(r); "
case("net_of_net", ENCODER + "minimize E[z ~ D] (z.y - s(v; r(q; z.x)))^2;",
     nets=lambda: {"s": mlp(inputs=2), "r": mlp(outputs=2)}, **INNER)  # fmt: skip
case("net_of_net_nested", ENCODER + "minimize mean[i in P] log(1 + E[j ~ N] exp(s(v; r(q; j.x) - r(q; i.x)) + sum(r(q; j.x))));",
     nets=lambda: {"s": mlp(inputs=2), "r": mlp(outputs=2)}, **INNER)  # fmt: skip
case("frozen_net_of_net", "net f : real[2] -> real[2] frozen; var u[d]; minimize E[z ~ D] sumsq(f(concat(s(v; z.x), dot(u, z.x))));",
     head=NET, nets=lambda: {"s": mlp(), "f": mlp(inputs=2, outputs=2)}, scale=0.0)  # fmt: skip
case("net_of_moved_rows", "var u[d]; minimize E[z ~ D] (z.y - s(v; z.x + u))^2 + sumsq(u);",
     head=NET, nets=lambda: {"s": mlp()}, scale=0.0)  # fmt: skip
case("net_of_two_moving_inputs", "net f : real[d], real[2] -> real; net r : real[d] -> real[2]; var a = params(f); var q = params(r); minimize mean[i in P] log(1 + E[j ~ N] exp(f(a; j.x, r(q; i.x)) - s(v; i.x)));",
     head=NET, nets=lambda: {"s": mlp(), "f": Two(), "r": mlp(outputs=2)}, scale=0.0)  # fmt: skip
case("net_at_a_point", "minimize E[z ~ D] (z.y - s(v; z.x) + s(v; origin))^2;",
     head=NET.replace("net s", "param origin[d]; net s"), params={"origin": np.linspace(-1, 1, 3)}, nets=lambda: {"s": mlp()}, scale=0.0)  # fmt: skip
BESIDE = {"head": NET.replace("real[d] -> real;", "real[4] -> real;").replace("x: real[d]", "x: real[3]"), "nets": lambda: {"s": mlp(inputs=4)}, "scale": 0.0}  # fmt: skip
case("net_beside_draws", "minimize E[z ~ D, e ~ uniform(0, 1)] log1pexp(-z.y * s(v; concat(z.x, e)));", **BESIDE)  # fmt: skip
case("net_of_nested_draws", "minimize E[z ~ D] (z.y - E[e ~ uniform(0, 1)] s(v; concat(z.x, e)))^2;", **BESIDE)  # fmt: skip


# ------------------------------------------------------------------------------------ made programs
@dataclass(frozen=True, eq=False, kw_only=True)
class Made:
    """A case bound, planned and emitted; ``solver`` is the program's text as a module."""

    name: str
    bound: Any
    plan: Any
    lowered: Lowered
    program: Program
    solver: types.ModuleType
    scale: float

    def point(self, seed: int = 0) -> torch.Tensor:
        """A random w, inside the simple sets; near a net's initial parameters."""
        generator = torch.Generator().manual_seed(seed)
        self.solver.as_namespace(dict(self.program.data), "cpu", torch.float64)
        w = self.solver.start(generator, "cpu", torch.float64)
        w += (self.scale or 0.2) * torch.randn(len(w), generator=generator, dtype=torch.float64)
        self.solver.project(w, 0.0)
        return w

    def positions(self, data: Any, rng: torch.Generator, T: int) -> dict[str, torch.Tensor]:
        """What the program's ``draw`` draws from such data and such an rng, before anything is looked
        up by it, by name."""
        samples = StepDraws(self.lowered.steps.state.draws)
        scope: dict[str, Any] = {
            "torch": torch,
            "math": math,
            **vars(maps),
            **vars(support),
            **reductions.programs(),
        }
        exec(samples.text, scope)  # noqa: S102
        return dict(zip(samples.names, scope["draw"](data, rng, T), strict=True))


def settings(solver: Any, **changes: float) -> Any:
    """The settings that a program begins with, some of them changed."""
    h = solver.Settings()
    vars(h).update(changes)
    return h


def compiled(text: str, name: str = "m") -> pipeline.Compiled:
    return pipeline.compile_model(Source(text=text, name=f"{name}.fcco"))


def make(name: str, case: Case | None = None, **options: Any) -> Made:
    """The program of a case; ``options`` replace those of the case."""
    case = case or CASES[name]
    made = compiled(case.text, name)
    bound = pipeline.bind(made, pipeline.Binding(data=case.data(), params=case.params, nets=case.nets()))
    return finish(name, made.problem, bound, {**case.options, **options}, case.scale)


def finish(name: str, problem: Any, bound: Any, options: Mapping[str, Any], scale: float = 0.3) -> Made:
    analysis = pipeline.analyse(problem, bound)
    given = {"unverified": True, "algorithm": tracking(analysis), **options}
    planned = pipeline.decide(analysis, {key: (value, "test") for key, value in given.items()})
    return emitted(name, planned, bound, scale)


def tracking(analysis: Any) -> str:
    """SOX where it covers a problem, else SONEX: what tests of programs with estimates by blocks are
    about."""
    one = choice.candidates(analysis).get("sox")
    return "sox" if one is not None and one.admitted else "sonex"


def with_form(made: Made, **form: Any) -> Made:
    """The same problem in another normal form: ``outer``, ``inner`` and ``penalty`` as algorithms
    declare them."""
    planned = dataclasses.replace(made.plan, normal=normalise(made.bound.problem, made.bound, **form))
    return emitted(made.name, planned, made.bound, made.scale)


def emitted(name: str, planned: plan.Plan, bound: Any, scale: float) -> Made:
    problem = bound.problem
    lowered = lower(problem, bound, planned)
    program = emit.emit(lowered)
    solver = loaded(program)
    return Made(
        name=name, bound=bound, plan=planned, lowered=lowered, program=program, solver=solver, scale=scale
    )


@cache
def made(name: str) -> Made:
    """The program of a case, made once."""
    return make(name)
