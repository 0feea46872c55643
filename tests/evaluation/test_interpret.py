"""The interpreter against NumPy: values, gradients by finite differences, and independence of the size
of blocks."""

import importlib
import re
import sys

import numpy as np
import pytest
import torch
from support.places import SHARED

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.data import bind
from fccomodel.data.bound import Bound
from fccomodel.evaluation import interpret
from fccomodel.evaluation.interpret import pairs
from fccomodel.evaluation.interpret.spaces import Runs
from fccomodel.evaluation.kernels import net_rows
from fccomodel.evaluation.sets import elements
from fccomodel.evaluation.sets.axes import Named
from fccomodel.language import check, parse
from fccomodel.library.sets.capped_simplex import project_capped
from fccomodel.numerics import concave_maxima

torch.set_num_threads(1)
RANDOM = np.random.default_rng(1)
N, D = 37, 3
X = RANDOM.normal(size=(N, D))
Y = np.where(np.arange(N) % 3 == 0, 1, -1)
T = RANDOM.integers(0, 9, N).astype(float)
G = np.array(["a", "b", "c", "d"])[RANDOM.integers(0, 4, N)]
C = RANDOM.integers(0, 2, N)
W = RANDOM.normal(size=D) / 2
V = np.array([0.3, -0.2, 0.5, 0.1])
S = X @ W
HEAD = """model m; dim d; set G;
data D : table(x: real[d], y: {-1, 1}, t: real, g: G, c: {0, 1});
set P = {z in D | z.y == 1}; set N = {z in D | z.y == -1}; set L = {-1, 0, 2};
param mu >= 0 default 0.5; param a > 0, <= 1 default 0.3;
var w[d]; var v[G]; var b[L]; var M[d, 2];
"""
POINT = {"w": W, "v": V, "b": np.array([0.2, -0.4, 0.7]), "M": RANDOM.normal(size=(D, 2))}


def bound(text: str, head: str = HEAD, **options) -> Bound:
    source = Source(text=head + text)
    data = {"D": {"x": X, "y": Y, "t": T, "g": G, "c": C}} if "data D" in head else {}
    return bind.bind(check.check(parse.parse(source), source), **({"data": data} | options))


def value(made: Bound, point=POINT, **options) -> float:
    tensors = {name: torch.as_tensor(array) for name, array in point.items()}
    return float(interpret.evaluate(made, made.problem.objective.expr, tensors, **options))


def gradient(made: Bound, name: str = "w", **options) -> np.ndarray:
    tensors = {key: torch.tensor(array, requires_grad=True) for key, array in POINT.items()}
    interpret.evaluate(made, made.problem.objective.expr, tensors, **options).backward()
    return tensors[name].grad.numpy()


def differences(made: Bound, name: str = "w", h: float = 1e-5, **options) -> np.ndarray:
    found = np.zeros_like(POINT[name])
    for k in np.ndindex(found.shape):
        step = np.zeros_like(found)
        step[k] = h
        up, down = ({**POINT, name: POINT[name] + sign * step} for sign in (1, -1))
        found[k] = (value(made, up, **options) - value(made, down, **options)) / (2 * h)
    return found


def softplus(t):
    return np.logaddexp(0, t)


def cvar(values, tail):
    cap, ordered = 1 / (tail * len(values)), np.sort(values)[::-1]
    return float(np.clip(1 - cap * np.arange(len(values)), 0, cap) @ ordered)


def by(*masks):
    return np.logical_and.reduce(masks)


LOSS = softplus(-Y * S)
PAIR = S[None, Y == -1] - S[Y == 1, None]
AFTER = T[None, :] >= T[:, None]
GROUPS = [LOSS[G == k].mean() for k in "abcd"]
EXPONENTIAL = np.exp(S[None, :] - S[:, None])
SAME = (G[None, :] == G[:, None]) & ~np.eye(N, dtype=bool)
LAST = (T[None, :] >= T[:, None]) & (G[None, :] == G[:, None])
CASES = {
    "mean of rows": ("E[z ~ D] log1pexp(-z.y * dot(w, z.x))", LOSS.mean()),
    "constants and params": (
        "mu * sumsq(w) + 2 * norm1(w) + d + log(a)",
        0.5 * W @ W + 2 * abs(W).sum() + 3 + np.log(0.3),
    ),
    "a subset": ("E[z ~ P] dot(w, z.x)^2", (S[Y == 1] ** 2).mean()),
    "a filter": ("E[z ~ D | z.t >= 3 and z.c == 1] exp(dot(w, z.x))", np.exp(S[(T >= 3) & (C == 1)]).mean()),
    "labels in quotes": (
        'E[z ~ D | z.g == "b" or z.g == "d"] dot(w, z.x)',
        S[(G == "b") | (G == "d")].mean(),
    ),
    "variance": ("variance[z ~ D] dot(w, z.x)", S.var()),
    "max and min": ("max[i in P] dot(w, i.x) - min[i in N] dot(w, i.x)", S[Y == 1].max() - S[Y == -1].min()),
    "sum and prod": (
        "prod[i in P] (1 + 0.1 * dot(w, i.x)) + sum[i in N] tanh(dot(w, i.x))",
        (1 + 0.1 * S[Y == 1]).prod() + np.tanh(S[Y == -1]).sum(),
    ),
    "cvar of rows": ("cvar(tail = 0.3)[z ~ D] log1pexp(-z.y * dot(w, z.x))", cvar(LOSS, 0.3)),
    "topk": ("topk(k = 4)[i in D] dot(w, i.x)", np.sort(S)[-4:].mean()),
    "topk of few": ("topk(k = 9)[k in G] v[k]", V.mean()),
    "logmeanexp": ("logmeanexp(theta = 0.2)[z ~ D] dot(w, z.x)", 0.2 * np.log(np.exp(S / 0.2).mean())),
    "pmean": ("pmean(p = 3)[z ~ D] log1pexp(dot(w, z.x))", (softplus(S) ** 3).mean() ** (1 / 3)),
    "pairs": (
        "E[p ~ P, n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x))",
        (np.maximum(0, 1 + PAIR) ** 2).mean(),
    ),
    "composed pairs": (
        "mean[p in P] log(1 + E[n ~ N] exp(dot(w, n.x) - dot(w, p.x)))",
        np.log1p(np.exp(PAIR).mean(1)).mean(),
    ),
    "cvar of means": (
        "cvar(tail = a)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x)))",
        cvar((np.maximum(0, 1 + PAIR) ** 2).mean(1), 0.3),
    ),
    "max of pairs": (
        "mean[p in P] max[n in N] (dot(w, n.x) * dot(w, p.x))",
        (S[None, Y == -1] * S[Y == 1, None]).max(1).mean(),
    ),
    "groups": ("sum[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)))^2", np.square(GROUPS).sum()),
    "worst group": ("max[k in G] E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x))", max(GROUPS)),
    "group variables": (
        "mean[k in G] E[z ~ D | z.g == k] square(dot(w, z.x) - v[k])",
        np.mean([((S[G == k] - v) ** 2).mean() for k, v in zip("abcd", V, strict=True)]),
    ),
    "spread in groups": (
        "sum[k in G] variance[z ~ D | z.g == k] (v[k] * dot(w, z.x))",
        sum((v * S[G == k]).var() for k, v in zip("abcd", V, strict=True)),
    ),
    "risk sets": (
        "mean[i in D] log(E[j ~ D | j.time >= i.time] exp(dot(w, j.x) - dot(w, i.x)))".replace("time", "t"),
        np.log((EXPONENTIAL * AFTER).sum(1) / AFTER.sum(1)).mean(),
    ),
    "others of the group": (
        "mean[i in D] E[j ~ D | j.g == i.g and j != i] square(dot(w, i.x) * dot(w, j.x) - 1)",
        np.mean([((S[i] * S[SAME[i]] - 1) ** 2).mean() for i in range(N)]),
    ),
    "order in a group": (
        "sum[i in P] max[j in D | j.g == i.g and j.t >= i.t] dot(w, j.x)",
        sum(S[LAST[i]].max() for i in range(N) if Y[i] == 1),
    ),
    "a mask": (
        "mean[i in P] logmeanexp(theta = 2)[j ~ D | j.t != i.t] (dot(w, j.x) - dot(w, i.x))",
        np.mean([2 * np.log(np.exp((S[T != T[i]] - S[i]) / 2).mean()) for i in range(N) if Y[i] == 1]),
    ),
    "pairs under a condition": (
        "E[p ~ P, n ~ N | n.g == p.g] tanh(dot(w, n.x) - dot(w, p.x))",
        np.tanh(PAIR)[G[None, Y == -1] == G[Y == 1, None]].mean(),
    ),
    "three binders": (
        "sum[i in P, k in L, j in N | j.t > i.t and k >= 0] (k * dot(w, i.x) * dot(w, j.x))",
        2 * (S[Y == 1, None] * S[None, Y == -1])[T[None, Y == -1] > T[Y == 1, None]].sum(),
    ),
    "cvar in groups": (
        "sum[k in G] cvar(tail = 0.4)[z ~ D | z.g == k] dot(w, z.x)",
        sum(cvar(S[G == k], 0.4) for k in "abcd"),
    ),
    "prod in groups": (
        "sum[k in G] prod[z in D | z.g == k] (dot(w, z.x) + 0.5)",
        sum((S[G == k] + 0.5).prod() for k in "abcd"),
    ),
    "values": ("sum[t in L] b[t] * t", -0.2 + 1.4),
    "fixed entries": ("w[2] * M[1, 2] + b[2]", W[1] * POINT["M"][0, 1] + 0.7),
    "matrices": ("E[z ~ D] sumsq(transpose(M) @ z.x)", ((X @ POINT["M"]) ** 2).sum(1).mean()),
    "vectors": ("norm2(E[z ~ D] (z.x * dot(w, z.x)))", np.linalg.norm((X * S[:, None]).mean(0))),
    "probability": ("prob[z ~ D] (z.t > 3) + sumsq(w)", (T > 3).mean() + W @ W),
    "lets": ("(E[z ~ D] dot(w, z.x))^2 / E[z ~ D] dot(w, z.x)^2", S.mean() ** 2 / (S**2).mean()),
}


def variable_of(text: str) -> str:
    """The variable whose gradient is tested."""
    return next(name for name in "wvbM" if re.search(rf"\b{name}\b", text))


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name):
    text, expected = CASES[name]
    made = bound(f"minimize {text};")
    assert value(made) == pytest.approx(expected, rel=1e-11, abs=1e-13)
    variable = variable_of(text)
    np.testing.assert_allclose(gradient(made, variable), differences(made, variable), rtol=2e-6, atol=2e-8)


@pytest.mark.parametrize("chunk, shortcuts", [(9, True), (9, False), (200, False)])
@pytest.mark.parametrize("name", CASES)
def test_blocks_and_shortcuts_change_nothing(name, chunk, shortcuts):
    made = bound(f"minimize {CASES[name][0]};")
    variable, options = variable_of(CASES[name][0]), {"chunk": chunk, "shortcuts": shortcuts}
    assert value(made, **options) == pytest.approx(value(made), rel=1e-12)
    expected = gradient(made, variable)
    np.testing.assert_allclose(gradient(made, variable, **options), expected, rtol=1e-10, atol=1e-13)
    way = np.random.default_rng(2).normal(size=expected.shape)
    np.testing.assert_allclose(
        along(made, variable, way, **options), (expected * way).sum(), rtol=1e-10, atol=1e-12
    )


def along(made: Bound, name: str, way: np.ndarray, **options) -> float:
    """The derivative along a direction: the gradient of a multiple, differentiated in the multiple."""
    tensors = {key: torch.tensor(array, requires_grad=True) for key, array in POINT.items()}
    multiple = torch.zeros((), dtype=torch.float64, requires_grad=True)
    total = multiple * interpret.evaluate(made, made.problem.objective.expr, tensors, **options)
    (slope,) = torch.autograd.grad(total, tensors[name], create_graph=True)
    return float(torch.autograd.grad((slope * torch.from_numpy(way)).sum(), multiple)[0])


KERNELS = [
    "mean[p in P] square(E[n ~ N] pos(dot(w, n.x) - dot(w, p.x)))",
    "E[p ~ P, n ~ N] abs(dot(w, n.x) - 0.5 + dot(w, p.x))",
    "E[p ~ P, n ~ N] (2 * (1 + dot(w, n.x) - dot(w, p.x))^2 - pos(1 - dot(w, p.x) - dot(w, n.x))^2 / 3)",
    "sum[p in P, n in N] (mu * exp(tanh(dot(w, n.x)) - dot(w, p.x) + mu))",
    "mean[p in P] (E[n ~ N] (p.t * exp(dot(w, n.x) - dot(w, p.x)) + dot(w, n.x)))^2",
    "mean[i in D] log(E[j ~ D | j.t <= i.t] exp(dot(w, j.x) - dot(w, i.x)))",
    "mean[i in D] log(sum[j in D | j.t > i.t - 1] exp(dot(w, j.x)))",
    "mean[i in P] square(E[j ~ D | j.t >= i.t] tanh(dot(w, j.x)))",
    "mean[i in D] log(E[j ~ D | j.g == i.g] (0.1 + exp(dot(w, j.x) - dot(w, i.x)) / (i.t + 1)))",
    "sum[i in D] log(sum[j in D | j.g == i.g and j.t >= i.t] exp(dot(w, j.x) - dot(w, i.x)))",
]


def test_a_run_that_many_share_is_evaluated_once():
    made = bound("minimize mean[i in D, t in L] square(t + E[j ~ D | j.g == i.g] tanh(dot(w, j.x)));")
    means = np.array([np.tanh(S[G == g]).mean() for g in G])
    expected = np.square(means[:, None] + np.array([-1, 0, 2])).mean()
    for chunk in (1 << 21, 9):
        assert value(made, chunk=chunk) == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient(made, chunk=chunk), differences(made), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("text", KERNELS)
def test_closed_forms_of_pairs(text, monkeypatch):
    made = bound(f"minimize {text};")
    used = []
    real = pairs.value
    monkeypatch.setattr(pairs, "value", lambda *args: used.append(real(*args)) or used[-1])
    found = value(made, chunk=40), gradient(made, chunk=40)
    assert any(part is not None for part in used)
    assert found[0] == pytest.approx(value(made), rel=1e-12)
    np.testing.assert_allclose(found[1], gradient(made), rtol=1e-10, atol=1e-13)


def test_products_with_a_zero_have_a_gradient():
    made = bound("minimize prod[i in D] (dot(w, i.x) - mu);", params={"mu": float(S[5])})
    for chunk in (1 << 21, 7):
        others = np.prod([S[i] - S[5] for i in range(N) if i != 5])
        assert abs(value(made, chunk=chunk)) <= 1e-15 * abs(others)
        np.testing.assert_allclose(gradient(made, chunk=chunk), others * X[5], rtol=1e-9)


def test_a_let_family_and_its_members():
    text = """let tpr[c in {0, 1}, t in L] = E[z ~ P | z.c == c] sigmoid(dot(w, z.x) - t);
    minimize sum[t in L] abs(tpr[0, t] - tpr[1, t]) + tpr[1, 2];"""
    rate = {c: [(1 / (1 + np.exp(t - S[(Y == 1) & (C == c)]))).mean() for t in (-1, 0, 2)] for c in (0, 1)}
    made = bound(text)
    assert value(made) == pytest.approx(np.abs(np.subtract(rate[0], rate[1])).sum() + rate[1][2], rel=1e-12)
    np.testing.assert_allclose(gradient(made), differences(made), rtol=1e-6, atol=1e-9)


def test_constraints_are_evaluated_along_their_binders():
    made = bound("minimize 0 * w[1]; subject to cap[k in G, t in L]: E[z ~ D | z.g == k] dot(w, z.x) <= t;")
    (constraint,) = made.problem.constraints
    env = {b: elements.ids(made, b.domain) for b in constraint.binders}
    found = interpret.evaluate(
        made, constraint.body, {name: torch.as_tensor(v) for name, v in POINT.items()}, env
    )
    expected = np.array([S[G == k].mean() for k in "abcd"])[:, None] - np.array([-1, 0, 2])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    one = interpret.evaluate(
        made, constraint.body, {"w": torch.as_tensor(W)}, {b: 1 for b in constraint.binders}
    )
    assert float(one) == pytest.approx(expected[1, 1])


# ------------------------------------------------------------------------------- inner maximisation
K = 4


def inner(text: str) -> Bound:
    return bound(f"minimize max[q in {text};")


def test_kl_robust_is_logmeanexp():
    made = inner("simplex(G)] (sum[k in G] q[k] * (v[k] * w[1]) - mu * kl(q, uniform(G)))")
    risk = V * W[0]
    assert value(made) == pytest.approx(0.5 * np.log(np.exp(risk / 0.5).mean()), rel=1e-12)
    np.testing.assert_allclose(gradient(made), differences(made), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("mu", [0.01, 0.3, 5.0])
def test_chi2_robust_is_its_dual(mu):
    cvxpy = pytest.importorskip("cvxpy")
    made = bound(
        "minimize max[q in simplex(G)] (sum[k in G] q[k] * v[k] - mu * chi2(q, uniform(G))) + 0 * w[1];",
        params={"mu": mu},
    )
    q = cvxpy.Variable(K, nonneg=True)
    problem = cvxpy.Problem(cvxpy.Maximize(q @ V - mu * cvxpy.sum_squares(q - 0.25) * 4), [cvxpy.sum(q) == 1])
    problem.solve(solver="CLARABEL")
    assert value(made) == pytest.approx(problem.value, abs=1e-7)
    np.testing.assert_allclose(gradient(made, "v"), q.value, atol=1e-5)


@pytest.mark.parametrize("penalty", ["- mu * kl(q, uniform(G))", "- mu * chi2(q, uniform(G))", ""])
def test_the_capped_simplex(penalty):
    cvxpy = pytest.importorskip("cvxpy")
    made = bound(
        f"minimize max[q in capped_simplex(G, 0.6)] (dot(q, v) {penalty}) + 0 * w[1];", params={"mu": 0.05}
    )
    q, uniform = cvxpy.Variable(K, nonneg=True), np.full(K, 0.25)
    cost = (
        cvxpy.sum(cvxpy.rel_entr(q, uniform))
        if "kl" in penalty
        else cvxpy.sum_squares(q - 0.25) * 4
        if penalty
        else 0
    )
    problem = cvxpy.Problem(cvxpy.Maximize(q @ V - 0.05 * cost), [cvxpy.sum(q) == 1, q <= 1 / (0.6 * K)])
    problem.solve(solver="CLARABEL")
    assert value(made) == pytest.approx(problem.value, abs=1e-6)


def test_a_concave_body_of_another_form():
    made = inner("simplex(G)] (dot(q, v) - sumsq(q)) + 0 * w[1]")
    half = np.sort(V / 2)[::-1]
    shift = next(t for n in range(K, 0, -1) if (t := (half[:n].sum() - 1) / n) < half[n - 1])
    q = np.maximum(0, V / 2 - shift)  # the projection of v / 2 on the simplex
    assert value(made) == pytest.approx(q @ V - q @ q, abs=1e-12)
    np.testing.assert_allclose(gradient(made, "v"), q, atol=1e-6)


@pytest.mark.parametrize("family, high", [("simplex(G)", 1.0), ("capped_simplex(G, 0.6)", 1 / 2.4)])
@pytest.mark.parametrize(
    "penalty, own",
    [
        ("0.3 * sum(abs(q - 0.25))", lambda cp, q: 0.3 * cp.norm1(q - 0.25)),
        ("norm1(q - 0.2) + 0.1 * sumsq(q)", lambda cp, q: cp.norm1(q - 0.2) + 0.1 * cp.sum_squares(q)),
        ("(sum[k in G] 0.2 * pos(4 * q[k] - 1)^2)", lambda cp, q: 0.2 * cp.sum_squares(cp.pos(4 * q - 1))),
        ("(sum[k in G] max(q[k], 0.4 - q[k]))", lambda cp, q: cp.sum(cp.maximum(q, 0.4 - q))),
        ("2 * norm2(q - 0.25)", lambda cp, q: 2 * cp.norm2(q - 0.25)),
        ("norminf(q) + 0.5 * norm1(q - 0.1)", lambda cp, q: cp.norm_inf(q) + 0.5 * cp.norm1(q - 0.1)),
    ],
    ids=["tv", "kink_and_curve", "one_sided", "max", "norm2", "norminf"],
)
def test_a_concave_body_with_kinks(family, high, penalty, own):
    cvxpy = pytest.importorskip("cvxpy")
    made = bound(f"minimize max[q in {family}] (dot(q, v) - ({penalty})) + 0 * w[1];")
    q = cvxpy.Variable(K, nonneg=True)
    problem = cvxpy.Problem(cvxpy.Maximize(q @ V - own(cvxpy, q)), [cvxpy.sum(q) == 1, q <= high])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert value(made) == pytest.approx(problem.value, abs=1e-9)


@pytest.mark.parametrize("cap", [0.3, 1.0])
def test_the_dual_of_a_sum_of_functions_of_one_entry(cap):
    """Kinks, curvature and linear pieces, for a batch: within 1e-12 of what the tangent plane at the
    answer allows."""
    r, a = torch.as_tensor(RANDOM.normal(size=(20, 6))), torch.as_tensor(RANDOM.uniform(0, 0.5, size=(20, 6)))
    r[0, :] = torch.tensor([0.3, -0.2, 0.5, 0.1, -0.2, -0.2])

    def slope(q):
        bent = (q - a).clamp(min=0)
        return (r * q - 2 * bent**2 - 0.3 * (q - 0.2).abs()).sum(-1), r - 4 * bent - 0.3 * (q - 0.2).sign()

    q = concave_maxima.additive(slope, (20, 6), cap)
    assert float((q.sum(-1) - 1).abs().max()) < 1e-12 and float(q.min()) >= 0 and float(q.max()) <= cap
    for other in RANDOM.dirichlet(np.ones(6), size=2000):
        near = project_capped(q + 0.05 * (torch.as_tensor(other) - q), cap)
        assert bool((slope(near)[0] <= slope(q)[0] + 1e-12).all())


# ------------------------------------------------------------------------------ draws, nets, errors
@pytest.mark.parametrize(
    "family, mean, second",
    [
        ("normal(1, 2)", 1, 5),
        ("uniform(-1, 3)", 1, 1 + 16 / 12),
        ("laplace(1, 2)", 1, 9),
        ("exponential(0.5)", 2, 8),
        ("bernoulli(0.3)", 0.3, 0.3),
    ],
)
def test_draws_have_their_moments(family, mean, second):
    made = (
        bound(f"minimize E[e ~ {family}] e + 0 * w[1];"),
        bound(f"minimize E[e ~ {family}] e^2 + 0 * w[1];"),
    )
    assert value(made[0], draws=200_000) == pytest.approx(mean, abs=0.03)
    assert value(made[1], draws=200_000) == pytest.approx(second, rel=0.03)
    assert value(made[0]) == value(made[0]) != value(made[0], seed=1)


def test_draws_around_rows():
    made = bound("minimize E[z ~ D, e ~ normal(0, 1)[d]] dot(w, z.x + e)^2;")
    assert value(made) == pytest.approx((S**2).mean() + W @ W, rel=0.02)
    np.testing.assert_allclose(gradient(made), differences(made), rtol=1e-6, atol=1e-8)
    nested = bound("minimize mean[i in P] log(E[e ~ normal(0, 1)] exp(e * dot(w, i.x)));")
    assert value(nested) == pytest.approx((S[Y == 1] ** 2 / 2).mean(), rel=0.05)


def test_two_binders_are_independent_and_one_is_one_draw():
    made = bound(
        "minimize (E[e ~ normal(0, 1), f ~ normal(0, 1)] (e * f)) + E[h ~ normal(0, 1)] (h * h) + 0 * w[1];"
    )
    assert value(made, draws=2000) == pytest.approx(1, abs=0.1)


NET = """model m; dim d; data D : table(x: real[d], y: {-1, 1}, t: real, g: {"a", "b", "c", "d"}, c: {0, 1});
net s : real[d] -> real; var w = params(s);
"""


def test_a_net():
    module = torch.nn.Sequential(torch.nn.Linear(D, 5), torch.nn.ELU(), torch.nn.Linear(5, 1))
    made = bound("minimize E[z ~ D] log1pexp(-z.y * s(w; z.x));", NET, nets={"s": module})
    flat = torch.cat([p.detach().reshape(-1) for p in module.parameters()]).double()
    scores = interpret.net_apply(module, flat, torch.as_tensor(X)).squeeze(-1).detach().numpy()
    assert scores.dtype == np.float64
    for chunk in (1 << 21, 50):
        point = flat.clone().requires_grad_(True)
        found = interpret.evaluate(made, made.problem.objective.expr, {"w": point}, chunk=chunk)
        found.backward()
        assert found.item() == pytest.approx(softplus(-Y * scores).mean(), rel=1e-12)
        direction = torch.from_numpy(RANDOM.normal(size=len(flat)))
        up, down = (value(made, {"w": flat + sign * 1e-5 * direction}) for sign in (1, -1))
        assert (direction @ point.grad).item() == pytest.approx((up - down) / 2e-5, rel=1e-6)


def test_empty_groups():
    with pytest.raises(FccoError, match=r"t = 2"):
        value(bound("minimize sum[t in L] E[z ~ D | z.c == t] dot(w, z.x);".replace("L]", "{0, 1, 2}]")))
    dropped = bound("minimize mean[t in {0, 1, 2}] E(empty = drop)[z ~ D | z.c == t] dot(w, z.x);")
    assert value(dropped) == pytest.approx(np.mean([S[C == 0].mean(), S[C == 1].mean()]))
    assert value(bound("minimize sum[t in {0, 1, 2}] sum[z in D | z.c == t] dot(w, z.x);")) == pytest.approx(
        S.sum()
    )


@pytest.mark.parametrize(
    ("start", "size", "order", "sums"),
    [
        ([2, 3], [3, 2], [-1, -1, 0, 1, 2], [7, 6]),
        ([0, 0], [1, 3], [0, 1, 2, -1], [1, 7]),
        ([0, 1], [2, 1], [0, 1, 2], None),
    ],
)
def test_runs_are_summed_at_once_though_some_rows_are_in_none(start, size, order, sums):
    """A patient censored before the first death is in no risk set."""
    runs = Runs(start=np.array(start), size=np.array(size), skip=None, order=np.array(order))
    part = Named(torch.tensor([1.0, 2.0, 4.0]), (0,))
    found = pairs._cumulated(part, runs, torch.cumsum)
    assert (found if found is None else found.tolist()) == sums


def test_a_point_that_does_not_fit():
    made = bound("minimize sumsq(w);")
    with pytest.raises(FccoError, match="asks for"):
        value(made, {"w": np.zeros(7)})
    with pytest.raises(FccoError, match="the point has no `w`"):
        value(made, {})


# ---------------------------------------------------------------------------- the acceptance models
ACCEPT = SHARED / "accept"


@pytest.mark.skipif(not (ACCEPT / "reference.py").exists(), reason="the acceptance models are not here")
@pytest.mark.parametrize(
    "name", ["neyman_pearson", "group_dro_cvar", "mean_variance_l1", "card_form", "cox", "worst_of_losses"]
)
def test_acceptance_models(name, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ACCEPT), *sys.path])
    reference = importlib.import_module("reference")
    source = Source(text=(reference.MODELS / f"{name}.fcco").read_text())
    made = bind.bind(
        check.check(parse.parse(source), source),
        spec=reference.MODELS / f"{name}.toml",
        data_dir=reference.DATA,
    )
    problem = reference.PROBLEMS[name]()
    w = 0.1 * np.random.default_rng(0).normal(size=problem.d)
    objective, constraints = problem.evaluate(w)
    assert value(made, {problem.variable: w}) == pytest.approx(objective, rel=1e-10)
    for constraint in made.problem.constraints:
        env = {b: elements.ids(made, b.domain) for b in constraint.binders}
        found = interpret.evaluate(made, constraint.body, {problem.variable: torch.as_tensor(w)}, env)
        assert found.reshape(-1).tolist() == pytest.approx(list(constraints.values()), rel=1e-10)


def test_a_net_at_many_rows_is_the_net():
    """Value, gradient, and the derivative along a direction."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(D, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
    weights, rows = torch.nn.utils.parameters_to_vector(module.parameters()).detach(), torch.from_numpy(X)
    ways = [torch.randn(x.shape, dtype=torch.float64) for x in (weights, rows)]
    found = []
    for apply, more in ((net_rows.net_apply, ()), (net_rows.NetRows.apply, (5, None))):
        inputs = [x.clone().requires_grad_() for x in (weights, rows)]
        outer = torch.ones(N, 2, dtype=torch.float64, requires_grad=True)
        value = apply(module, *more, *inputs)
        slopes = torch.autograd.grad(value, inputs, outer, create_graph=True)
        total = sum((slope * way).sum() for slope, way in zip(slopes, ways, strict=True))
        found.append(
            [value.detach(), *(slope.detach() for slope in slopes), torch.autograd.grad(total, outer)[0]]
        )
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)
