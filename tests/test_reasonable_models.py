# ruff: noqa: E501  (a model is easier to read on one line)
"""Models of the kinds that people write: each is covered by some theorem as papers read its
assumptions, and runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fccomodel

HEAD = """dim d; set G; set C = {0, 1, 2}; set Q = 0 .. 5;
data D : table(x: real[d], y: {-1, 1}, g: G, a: {0, 1}, c: C, time: real, event: {0, 1}, t: real, rel: {0, 1, 2, 3}, q: Q);
set P = {z in D | z.y == 1}; set N = {z in D | z.y == -1};
set A; data R : table(r: real[A]);
"""
MODELS = {
    "auc_hinge": "var w[d]; minimize mean[i in P] (E[j ~ N] sqhinge(1 + dot(w, j.x - i.x))) + 0.01*sumsq(w);",
    "ap": "var w[d]; maximize mean[i in P] ((E[j ~ D] (j.y + 1)/2 * sqhinge(1 + dot(w, j.x) - dot(w, "
    "i.x))) / (E[j ~ D] sqhinge(1 + dot(w, j.x) - dot(w, i.x))));",
    "ndcg": "var w[d]; maximize mean[i in D] (2^i.rel - 1) / log(2 + 20 * E[j ~ D | j.q == i.q] "
    "sigmoid(5*(dot(w, j.x) - dot(w, i.x))));",
    "contrastive_norm": "var B[3, d]; def e(x) = (B @ x)/sqrt(sumsq(B @ x) + 1e-3); minimize mean[i in "
    "D] 0.5*log(E[j ~ D | j.c != i.c] exp(dot(e(i.x), e(j.x))/0.5)) - E[i ~ D, j ~ D "
    "| j.c == i.c and j != i] dot(e(i.x), e(j.x));",
    "cox": "var w[d]; set I = {z in D | z.event == 1}; minimize mean[i in I] log(E[j ~ D | j.time >= "
    "i.time] exp(dot(w, j.x) - dot(w, i.x))) + 0.01*norm1(w);",
    "quantile_con": "var w[d]; var b; minimize E[z ~ D] huber(z.t - dot(w, z.x) - b, 1); subject to "
    "cover: E[z ~ D] pinball(z.t - dot(w, z.x) - b, 0.9) <= 1;",
    "cvar_con": "var v[A] in simplex(A); maximize E[z ~ R] dot(z.r, v); subject to tail: "
    "cvar(tail=0.1)[z ~ R] -dot(z.r, v) <= 0.4;",
    "entropic": "var v[A] in simplex(A); minimize logmeanexp(theta=0.5)[z ~ R] (-dot(z.r, v)) + "
    "0.1*sumsq(v);",
    "sharpe": "var v[A] in simplex(A); maximize (E[z ~ R] dot(z.r, v)) / sqrt(variance[z ~ R] dot(z.r, v));",
    "rayleigh_ball": "var w[d] in ball(1); maximize (E[z ~ P] dot(w, z.x)^2) / (0.1 + E[z ~ D] dot(w, "
    "z.x)^2);",
    "mixture": "var p[C] in simplex(C); var m[C, d]; minimize E[z ~ D] -log(sum[k in C] p[k] * "
    "exp(-sumsq(z.x - m[k])/2));",
    "attention_in": "var S[d, d]; var w[d]; minimize mean[i in D] (i.t - (E[j ~ D] exp(dot(i.x, S @ "
    "j.x)/4)*dot(w, j.x))/(E[j ~ D] exp(dot(i.x, S @ j.x)/4)))^2 + 0.01*sumsq(S);",
    "fmeasure": "var w[d]; maximize (2 * E[z ~ D] (z.y + 1)/2 * sigmoid(dot(w, z.x))) / (E[z ~ D] "
    "sigmoid(dot(w, z.x)) + (E[z ~ D] (z.y + 1)/2));",
    "auc_con": "var w[d]; minimize E[p ~ P, q ~ N] log1pexp(dot(w, q.x) - dot(w, p.x)); subject to fair: "
    "abs((E[z ~ D | z.a == 0] dot(w, z.x)) - (E[z ~ D | z.a == 1] dot(w, z.x))) <= 0.05; "
    "size: norm2(w) <= 3;",
    "geomean_sqrt": "var w[d]; maximize sqrt((E[z ~ P] sigmoid(dot(w, z.x))) * (E[z ~ N] sigmoid(-dot(w, "
    "z.x))));",
    "varreg": "var w[d]; minimize (E[z ~ D] log1pexp(-z.y*dot(w, z.x))) + 0.5*sqrt(0.01 + variance[z ~ "
    "D] log1pexp(-z.y*dot(w, z.x)));",
    "kelly_con": "var v[A] in simplex(A); maximize E[z ~ R] log(1 + dot(z.r, v)); subject to draw: (E[z "
    "~ R] (1 + dot(z.r, v))^(-2)) <= 1.1;",
    "mcp_res": "var w[d]; minimize E[z ~ D] mcp(z.t - dot(w, z.x), 2, 1);",
    "tukey": "var w[d]; minimize E[z ~ D] (1 - exp(-square(z.t - dot(w, z.x))/2));",
    "dro_chi2": "var w[d]; let risk[k in G] = E[z ~ D | z.g == k] log1pexp(-z.y*dot(w, z.x)); minimize "
    "max[q in simplex(G)] (sum[k in G] q[k]*risk[k] - 0.5*chi2(q, uniform(G)));",
    "dro_kl": "var w[d]; let risk[k in G] = E[z ~ D | z.g == k] log1pexp(-z.y*dot(w, z.x)); minimize "
    "max[q in simplex(G)] (sum[k in G] q[k]*risk[k] - 0.5*kl(q, uniform(G)));",
    "pinball": "var w[d]; minimize (E[z ~ D] pinball(z.t - dot(w, z.x), 0.8)) + 0.001*sumsq(w);",
    "precision_con": "var w[d]; let tp = E[z ~ D] (z.y+1)/2*sigmoid(dot(w, z.x)); let pp = E[z ~ D] "
    "sigmoid(dot(w, z.x)); maximize tp; subject to prec: tp/pp >= 0.7;",
    "kl_ball": "var q >= 0; var l >= 0.01; minimize 0.1*l + l*log(E[z ~ D] exp((q - 2*min(q, z.time))/l));",
    "minimax": "var w[d]; minimize max[k in G] E[z ~ D | z.g == k] log1pexp(-z.y*dot(w, z.x));",
    "net_multi": "net s : real[d] -> real[C]; var v = params(s); minimize E[z ~ D] (logsumexp(s(v; z.x)) "
    "- s(v; z.x)[z.c]);",
    "kl_soft": "var w[d]; minimize E[z ~ D] kl(softmax(w*z.x), softmax(z.x));",
    "semidev2": "var v[A] in simplex(A); let m = E[z ~ R] dot(z.r, v); minimize -m + 0.5*sqrt(0.0001 + "
    "E[z ~ R] sqhinge(m - dot(z.r, v)));",
    "softmax_ce": "var V[d, C]; minimize E[z ~ D] (logsumexp(z.x @ V) - (z.x @ V)[z.c]) + 0.01*sumsq(V);",
    "matindex": "var B[C, d]; minimize E[z ~ D] square(z.t - dot(B[z.c], z.x)) + 0.01*sumsq(B);",
    "norms_con": "var w[d]; minimize E[z ~ D] log1pexp(-z.y*dot(w, z.x)); subject to l1: norm1(w) <= 1;",
}
RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 3))
DATA = {
    "D": {
        "x": X, "t": X @ [1.0, -1.0, 0.5] + 0.3 * RNG.normal(size=N), "y": np.where(X[:, 0] + RNG.normal(size=N) > 0, 1, -1),
        "g": np.array(["a", "b", "c"])[np.arange(N) % 3], "a": np.arange(N) // 2 % 2, "c": np.arange(N) % 3,
        "time": RNG.exponential(size=N), "event": (RNG.random(N) > 0.3).astype(int), "rel": RNG.integers(0, 4, size=N),
        "q": np.arange(N) % 6,
    },
    "R": {"r": 0.05 + 0.3 * RNG.normal(size=(80, 4))},
}  # fmt: skip


def bound(name: str) -> fccomodel.BoundModel:
    text = f"model {name};\n{HEAD}{MODELS[name]}"
    return fccomodel.compile(text).bind(
        **DATA, nets={"s": "mlp(8, activation=elu)"} if "net s" in text else {}
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_theorem_covers_it(name: str) -> None:
    assert not bound(name).plan().plan.unverified


@pytest.mark.parametrize("name", MODELS)
def test_every_part_has_a_derivation(name: str) -> None:
    explanation = bound(name).explain()
    for part in ("objective", *explanation.json["constraints"]):
        assert explanation.why(part).startswith(f"{part}: ")


@pytest.mark.parametrize("name", ["mixture", "kl_soft", "softmax_ce", "ap"])
def test_it_runs(name: str) -> None:
    result = bound(name).solve(budget="100it")
    assert math.isfinite(result.objective)
    assert all(np.isfinite(value).all() for value in result.variables.values())


def test_what_nothing_covers_is_refused() -> None:
    """A minimum of which a part is not smooth: its kinks point upwards, and no envelope makes the
    whole smooth."""
    text = (
        f"model m;\n{HEAD}var w[d]; minimize min(sqrt(E[z ~ D] square(z.t - dot(w, z.x))), E[z ~ D] "
        "square(dot(w, z.x)));"
    )
    with pytest.raises(fccomodel.FccoError, match="F0605"):
        fccomodel.compile(text).bind(**DATA).plan()


def test_truncated_squares() -> None:
    """A loss that is cut off finds the plane of most rows: least squares of those, and the cut for the
    others."""
    rng = np.random.default_rng(21)
    x = rng.normal(size=(120, 3))
    t = x @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=120)
    t[:15] += 20
    text = (
        "dim d; data D : table(x: real[d], t: real); var w[d]; minimize E[z ~ D] min(square(z.t - "
        "dot(w, z.x)), 4);"
    )
    found = fccomodel.compile(text).bind(D={"x": x, "t": t}).solve(seed=0)
    left = np.linalg.lstsq(x[15:], t[15:], rcond=None)[1][0]
    assert found.objective == pytest.approx((left + 4 * 15) / 120, rel=1e-6)
    assert found.report.verdict.startswith("Solved")
