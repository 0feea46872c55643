"""Curvature, monotonicity and smoothness of expressions written by hand, and of the models that ship with the project."""

from __future__ import annotations

import pytest

from fccomodel import ir, structure
from fccomodel.bound import Bound
from fccomodel.check import check
from fccomodel.parse import parse
from fccomodel.source import Source

PREAMBLE = """
dim d, m;
set K = {1, 2, 3};
data D : table(x: real[d], y: {-1, 1}, t: real, g: K);
data A : real[d, d];
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


def facts(text: str, bound: Bound | None = None) -> structure.Facts:
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
    ("square(square(u) - 1)", "unknown", True, "none"),
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
