"""Estimates: survival, entropy and mixtures, matrices of low rank."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from books.model import Model, maximum, minimum


def proportional_hazards() -> Model:
    """Cox's partial likelihood with an l1 penalty (Hastie, Tibshirani, Wainwright, 2015, section 3.5)."""
    random = np.random.default_rng(59)
    x = random.normal(size=(200, 10))
    time = random.exponential(size=200) * np.exp(-x @ np.r_[1.0, -0.7, 0.5, np.zeros(7)])
    event = (random.random(200) < 0.7).astype(int)
    w = cp.Variable(10)
    text = (
        "dim d; data D : table(x: real[d], time: real, event: {0, 1}); set I = {z in D | z.event == 1}; "
        "var w[d];"
        "minimize mean[i in I] log(E[j ~ D | j.time >= i.time] exp(dot(w, j.x) - dot(w, i.x))) + 0.03 * "
        "norm1(w);"
    )
    rows = np.flatnonzero(event)
    risks = [
        cp.log_sum_exp(x[time >= time[i]] @ w - x[i] @ w) - np.log((time >= time[i]).sum()) for i in rows
    ]
    problem = minimum(sum(risks) / len(rows) + 0.03 * cp.norm1(w))
    return Model(text=text, data={"D": {"x": x, "time": time, "event": event}}, problem=problem)


def largest_entropy() -> Model:
    """The distribution of largest entropy with given moments (Boyd, Vandenberghe, 2004, section 7.2)."""
    points = np.linspace(-1, 1, 100)
    p = cp.Variable(100)
    text = (
        "dim n; data a : real[n]; var p[n] in simplex(n); maximize sum(entr(p)); subject to"
        " mean_: -0.1 <= dot(a, p) <= 0.1; square_: 0.5 <= dot(a^2, p) <= 0.6;"
        " cube: -0.3 <= dot(3 * a^3 - 2 * a, p) <= -0.2; tail: 0.3 <= sum[i in n | a[i] < 0] p[i] <= 0.4;"
    )
    moments = [points, points**2, 3 * points**3 - 2 * points, (points < 0).astype(float)]
    bounds = [(-0.1, 0.1), (0.5, 0.6), (-0.3, -0.2), (0.3, 0.4)]
    limits = [
        limit for m, (lo, hi) in zip(moments, bounds, strict=True) for limit in (m @ p >= lo, m @ p <= hi)
    ]
    return Model(text=text, data={"a": points}, problem=maximum(cp.sum(cp.entr(p)), cp.sum(p) == 1, *limits))


def least_divergence() -> Model:
    """The distribution nearest to another with a given mean (Kullback, Information Theory and
    Statistics, 1959)."""
    random = np.random.default_rng(60)
    prior, a = random.dirichlet(np.ones(200)), random.normal(size=(3, 200))
    p = cp.Variable(200)
    text = (
        "dim n; dim k; data prior : real[n]; data a : real[k, n]; var p[n] in simplex(n);"
        "minimize kl(p, prior); subject to moments: a @ p == 0.2;"
    )
    problem = minimum(cp.sum(cp.rel_entr(p, prior)), cp.sum(p) == 1, a @ p == 0.2)
    return Model(text=text, data={"prior": prior, "a": a}, problem=problem)


def calibration_weights() -> Model:
    """Survey weights that meet known totals and move little (Deville, Sarndal, Calibration estimators,
    1992)."""
    random = np.random.default_rng(61)
    x = np.column_stack([np.ones(500), random.normal(size=(500, 4)) + 0.2])
    total = np.array([1000.0, 0.0, 50.0, 30.0, 80.0])
    w = cp.Variable(500)
    text = (
        "dim n; dim k; data x : real[n, k]; data total : real[k]; var w[n] >= 0.5, <= 6;"
        "minimize sum[i in n] (w[i] - 2)^2 / 2; subject to totals[j in k]: sum[i in n] w[i] * x[i, j] == "
        "total[j];"
    )
    problem = minimum(cp.sum_squares(w - 2) / 2, w >= 0.5, w <= 6, x.T @ w == total)
    return Model(text=text, data={"x": x, "total": total}, problem=problem)


def mixture_weights() -> Model:
    """Weights of known densities by likelihood (Kiefer, Wolfowitz, 1956; Koenker, Mizera, 2014)."""
    random = np.random.default_rng(62)
    y = np.where(random.random(1000) < 0.4, random.normal(-1, 0.5, 1000), random.normal(1, 1, 1000))
    centres = np.linspace(-3, 4, 15)
    density = np.exp(-0.5 * (y[:, None] - centres) ** 2)
    p = cp.Variable(15)
    text = "dim k; data D : table(f: real[k]); var p[k] in simplex(k); maximize E[z ~ D] log(dot(p, z.f));"
    problem = maximum(cp.sum(cp.log(density @ p)) / 1000, p >= 0, cp.sum(p) == 1)
    return Model(text=text, data={"D": {"f": density}}, problem=problem)


def monotone_density() -> Model:
    """The likeliest decreasing histogram (Grenander, 1956; Boyd, Vandenberghe, 2004, section 7.2)."""
    random = np.random.default_rng(63)
    counts = np.histogram(random.exponential(size=800), bins=40, range=(0, 5))[0] + 1.0
    p = cp.Variable(40)
    text = (
        "dim n; data count : real[n]; var p[n] in simplex(n);"
        "maximize (sum[i in n] count[i] * log(p[i])) / sum(count);"
        "subject to decreasing[i in n | i < n]: p[i + 1] <= p[i]; convex[i in n | i > 1 and i < n]:"
        " p[i] <= (p[i - 1] + p[i + 1]) / 2;"
    )
    limits = [cp.sum(p) == 1, cp.diff(p) <= 0, cp.diff(p, 2) >= 0]
    return Model(
        text=text, data={"count": counts}, problem=maximum(counts @ cp.log(p) / counts.sum(), *limits)
    )


def matrix_completion() -> Model:
    """A matrix of low rank from some entries, noisy (Candes, Plan, 2010; Hastie, Tibshirani,
    Wainwright, 2015, section 7.3)."""
    random = np.random.default_rng(64)
    M = random.normal(size=(25, 2)) @ random.normal(size=(2, 20))
    i, j = np.nonzero(random.random((25, 20)) < 0.6)
    v = M[i, j] + 0.1 * random.normal(size=len(i))
    X = cp.Variable((25, 20))
    text = (
        "set I = 0 .. 24; set J = 0 .. 19; data D : table(i: I, j: J, v: real); var X[I, J];"
        "minimize E[z ~ D] (X[z.i, z.j] - z.v)^2 + 0.02 * norm_nuc(X);"
    )
    problem = minimum(cp.sum_squares(X[i, j] - v) / len(i) + 0.02 * cp.normNuc(X))
    return Model(text=text, data={"D": {"i": i, "j": j, "v": v}}, problem=problem)


def exact_matrix_completion() -> Model:
    """The matrix of least nuclear norm with given entries (Candes, Recht, 2009)."""
    random = np.random.default_rng(65)
    M = random.normal(size=(15, 2)) @ random.normal(size=(2, 12))
    i, j = np.nonzero(random.random((15, 12)) < 0.6)
    X = cp.Variable((15, 12))
    text = (
        "set I = 0 .. 14; set J = 0 .. 11; data D : table(i: I, j: J, v: real); var X[I, J];"
        "minimize norm_nuc(X); subject to known[z in D]: X[z.i, z.j] == z.v;"
    )
    return Model(
        text=text,
        data={"D": {"i": i, "j": j, "v": M[i, j]}},
        problem=minimum(cp.normNuc(X), X[i, j] == M[i, j]),
    )


def robust_components() -> Model:
    """A matrix as one of low rank and one of few entries (Candes, Li, Ma, Wright, Robust principal
    component analysis, 2011)."""
    random = np.random.default_rng(66)
    M = random.normal(size=(20, 2)) @ random.normal(size=(2, 15))
    M[random.random(M.shape) < 0.08] += 5
    L = cp.Variable((20, 15))
    text = (
        "dim n; dim m; data M : real[n, m]; var L[n, m];"
        "minimize norm_nuc(L) + 0.25 * sum[i in n, j in m] abs(M[i, j] - L[i, j]);"
    )
    problem = minimum(cp.normNuc(L) + 0.25 * cp.sum(cp.abs(M - L)))
    return Model(text=text, data={"M": M}, problem=problem)


def multitask() -> Model:
    """Regressions of several targets with weights of low rank (Yuan, Ekici, Lu, Monteiro, 2007)."""
    random = np.random.default_rng(67)
    x = random.normal(size=(400, 12))
    y = x @ random.normal(size=(12, 2)) @ random.normal(size=(2, 8)) + random.normal(size=(400, 8))
    B = cp.Variable((12, 8))
    text = (
        "dim d; dim k; data D : table(x: real[d], y: real[k]); var B[d, k];"
        "minimize E[z ~ D] sumsq(z.y - z.x @ B); subject to size: norm_nuc(B) <= 15;"
    )
    problem = minimum(cp.sum_squares(y - x @ B) / 400, cp.normNuc(B) <= 15)
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


MODELS = [
    proportional_hazards, largest_entropy, least_divergence, calibration_weights, mixture_weights, monotone_density,
    matrix_completion, exact_matrix_completion, robust_components, multitask,
]  # fmt: skip
