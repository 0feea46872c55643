"""Decisions before data are seen: recourse, chance constraints, worst cases of distributions and of
coefficients."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from books.model import Model, classes, maximum, minimum, regression, tail


def newsvendor() -> Model:
    """Orders of several goods within a budget (Shapiro, Dentcheva, Ruszczynski, 2009, section 1.2.1)."""
    random = np.random.default_rng(68)
    demand = random.gamma(4, 5, size=(1000, 8))
    cost, price = random.uniform(1, 3, 8), random.uniform(4, 8, 8)
    q = cp.Variable(8)
    text = (
        "set G; data D : table(d: real[G]); data c : real[G]; data p : real[G]; var q[G] >= 0;"
        "maximize profit: E[z ~ D] (sum[g in G] p[g] * min(q[g], z.d[g])) - dot(c, q);"
        "subject to budget: dot(c, q) <= 250;"
    )
    sold = cp.minimum(np.ones((1000, 1)) @ cp.reshape(q, (1, 8), order="C"), demand)
    problem = maximum(cp.sum(sold @ price) / 1000 - cost @ q, q >= 0, cost @ q <= 250)
    return Model(text=text, data={"D": {"d": demand}, "c": cost, "p": price}, problem=problem)


def averse_newsvendor() -> Model:
    """One good, its order by the mean and the tail of the loss (Gotoh, Takano, Newsvendor solutions
    via CVaR, 2007)."""
    demand = np.random.default_rng(69).gamma(3, 10, size=2000)
    q = cp.Variable()
    text = (
        "data D : table(d: real); var q >= 0; def loss(z) = 3 * q - 8 * min(q, z.d) + 1 * pos(q - z.d);"
        "minimize 0.5 * E[z ~ D] loss(z) + 0.5 * cvar(tail = 0.1)[z ~ D] loss(z);"
    )
    losses = 3 * q - 8 * cp.minimum(q, demand) + cp.pos(q - demand)
    problem = minimum(0.5 * cp.sum(losses) / 2000 + 0.5 * tail(losses, 0.1), q >= 0)
    return Model(text=text, data={"D": {"d": demand}}, problem=problem)


def simple_recourse() -> Model:
    """Production, shortages and surpluses paid for (Birge, Louveaux, Stochastic Programming, 2011,
    section 3.1)."""
    random = np.random.default_rng(70)
    T, cost = random.uniform(0, 1, size=(4, 6)), random.uniform(1, 2, 6)
    demand = random.uniform(5, 15, size=(600, 4))
    x = cp.Variable(6)
    text = (
        "dim n; dim m; data T : real[m, n]; data c : real[n]; data D : table(d: real[m]); var x[n] >= 0, "
        "<= 10;"
        "minimize dot(c, x) + E[z ~ D] (5 * sum(pos(z.d - T @ x)) + 0.5 * sum(pos(T @ x - z.d)));"
    )
    short = demand - np.ones((600, 1)) @ cp.reshape(T @ x, (1, 4), order="C")
    problem = minimum(cost @ x + cp.sum(5 * cp.pos(short) + 0.5 * cp.neg(short)) / 600, x >= 0, x <= 10)
    return Model(text=text, data={"T": T, "c": cost, "D": {"d": demand}}, problem=problem)


def two_stages() -> Model:
    """Capacities now, flows for each demand (Shapiro, Dentcheva, Ruszczynski, 2009, section 1.3.1)."""
    random = np.random.default_rng(71)
    demand, cost, gain = (
        random.uniform(0, 4, size=(60, 5)),
        random.uniform(0.5, 1, 4),
        random.uniform(1, 3, size=(4, 5)),
    )
    cap, flow = cp.Variable(4), [cp.Variable((4, 5), nonneg=True) for _ in range(60)]
    text = (
        "dim f; dim m; dim s; data d : real[s, m]; data c : real[f]; data g : real[f, m]; var cap[f] >= "
        "0; var y[s, f, m] >= 0;"
        "maximize (mean[k in s] sum[i in f, j in m] g[i, j] * y[k, i, j]) - dot(c, cap); subject to"
        " made[k in s, i in f]: sum[j in m] y[k, i, j] <= cap[i]; sold[k in s, j in m]: sum[i in f] y[k, "
        "i, j] <= d[k, j];"
    )
    limits = [cp.sum(y, axis=1) <= cap for y in flow] + [
        cp.sum(y, axis=0) <= row for y, row in zip(flow, demand, strict=True)
    ]
    problem = maximum(sum(cp.sum(cp.multiply(gain, y)) for y in flow) / 60 - cost @ cap, cap >= 0, *limits)
    return Model(text=text, data={"d": demand, "c": cost, "g": gain}, problem=problem)


def chance_by_cvar() -> Model:
    """A chance constraint by CVaR (Nemirovski, Shapiro, Convex approximations of chance constrained
    programs, 2006)."""
    random = np.random.default_rng(72)
    use, gain = random.lognormal(0, 0.4, size=(1500, 10)), random.uniform(1, 2, 10)
    x = cp.Variable(10)
    text = (
        "set G; data D : table(a: real[G]); data c : real[G]; var x[G] >= 0, <= 1; maximize dot(c, x);"
        "subject to enough: cvar(tail = 0.05)[z ~ D] (dot(z.a, x) - 6) <= 0;"
    )
    problem = maximum(gain @ x, x >= 0, x <= 1, tail(use @ x - 6, 0.05) <= 0)
    return Model(text=text, data={"D": {"a": use}, "c": gain}, problem=problem)


def chance_by_exponentials() -> Model:
    """A chance constraint by Bernstein's bound at a fixed scale (Nemirovski, Shapiro, 2006, section 2)."""
    random = np.random.default_rng(73)
    use, gain = random.uniform(0.5, 1.5, size=(500, 8)), random.uniform(1, 2, 8)
    x = cp.Variable(8)
    text = (
        "set G; data D : table(a: real[G]); data c : real[G]; var x[G] >= 0, <= 1; maximize dot(c, x);"
        "subject to enough: log(E[z ~ D] exp(5 * (dot(z.a, x) - 5))) <= log(0.05);"
    )
    bound = cp.log_sum_exp(5 * (use @ x - 5)) - np.log(500) <= np.log(0.05)
    return Model(
        text=text, data={"D": {"a": use}, "c": gain}, problem=maximum(gain @ x, x >= 0, x <= 1, bound)
    )


def joint_service() -> Model:
    """Every resource in the worst scenario but a tail (Rockafellar, Uryasev, 2002)."""
    random = np.random.default_rng(74)
    use, gain = random.lognormal(0, 0.3, size=(300, 3, 6)), random.uniform(1, 2, 6)
    x = cp.Variable(6)
    text = (
        "dim r; dim n; data D : table(a: real[r, n]); data c : real[n]; var x[n] >= 0; maximize dot(c, x);"
        "subject to enough: cvar(tail = 0.1)[z ~ D] (max[k in r] (dot(z.a[k], x) - 4)) <= 0; size: "
        "norm2(x) <= 2.5;"
    )
    worst = cp.max(cp.vstack([use[:, k] @ x - 4 for k in range(3)]), axis=0)
    problem = maximum(gain @ x, x >= 0, tail(worst, 0.1) <= 0, cp.norm(x) <= 2.5)
    return Model(text=text, data={"D": {"a": use}, "c": gain}, problem=problem)


def chi_squared_ball() -> Model:
    """The worst distribution in a chi-squared ball (Duchi, Namkoong, Learning models with uniform
    performance, 2021)."""
    x, y = classes(600, 8, 75)
    w, t = cp.Variable(8), cp.Variable()
    text = (
        "dim d; data D : table(x: real[d], y: {-1, 1}); var w[d]; var t;"
        "minimize sqrt(2 * E[z ~ D] pos(log1pexp(-z.y * dot(w, z.x)) - t)^2) + t + 0.01 * sumsq(w);"
    )
    losses = cp.logistic(-cp.multiply(y, x @ w))
    problem = minimum((2 / 600) ** 0.5 * cp.norm(cp.pos(losses - t)) + t + 0.01 * cp.sum_squares(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def divergence_penalty() -> Model:
    """The worst weights of groups at the price of their divergence (Hu, Hong, 2013; Ben-Tal et al., 2013)."""
    x, y = regression(600, 6, 76)
    g = np.random.default_rng(76).integers(0, 4, 600)
    y = y + g
    w, b = cp.Variable(6), cp.Variable()
    text = (
        "dim d; set G; data D : table(x: real[d], y: real, g: G); var w[d]; var b;"
        "let risk[k in G] = E[z ~ D | z.g == k] (dot(w, z.x) + b - z.y)^2;"
        "minimize max[q in simplex(G)] (sum[k in G] q[k] * risk[k] - 2 * kl(q, uniform(G)));"
    )
    risks = [cp.sum_squares(x[g == k] @ w + b - y[g == k]) / (g == k).sum() for k in range(4)]
    problem = minimum(2 * (cp.log_sum_exp(cp.hstack(risks) / 2) - np.log(4)))
    return Model(text=text, data={"D": {"x": x, "y": y, "g": g}}, problem=problem)


def worst_weights_of_rows() -> Model:
    """The worst weights of rows of at most twice the mean (Levy, Carmon, Duchi, Sidford, 2020)."""
    x, y = regression(400, 5, 77)
    w = cp.Variable(5)
    text = (
        "dim d; data D : table(x: real[d], y: real); var w[d];"
        "minimize max[q in capped_simplex(D, 0.5)] (sum[z in D] q[z] * (dot(w, z.x) - z.y)^2);"
    )
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=minimum(tail(cp.square(x @ w - y), 0.5)))


def wasserstein_ball() -> Model:
    """The worst distribution in a ball of transport (Shafieezadeh-Abadeh, Mohajerin Esfahani, Kuhn, 2015)."""
    x, y = classes(800, 10, 78)
    w = cp.Variable(10)
    text = (
        "dim d; data D : table(x: real[d], y: {-1, 1}); var w[d];"
        "minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.05 * norm2(w);"
    )
    problem = minimum(cp.sum(cp.logistic(-cp.multiply(y, x @ w))) / 800 + 0.05 * cp.norm(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def robust_least_squares() -> Model:
    """The worst matrix in a ball of norms (El Ghaoui, Lebret, 1997; Boyd, Vandenberghe, 2004, section
    6.4.2)."""
    x, y = regression(200, 15, 79)
    w = cp.Variable(15)
    text = (
        "dim n; dim d; data A : real[n, d]; data b : real[n]; var x[d]; minimize norm2(A @ x - b) + "
        "2 * norm2(x);"
    )
    return Model(text=text, data={"A": x, "b": y}, problem=minimum(cp.norm(x @ w - y) + 2 * cp.norm(w)))


def robust_linear_program() -> Model:
    """Coefficients of constraints in ellipsoids (Ben-Tal, El Ghaoui, Nemirovski, Robust Optimization,
    2009, section 1.3)."""
    random = np.random.default_rng(80)
    a, P = random.normal(size=(40, 8)), 0.2 * random.normal(size=(40, 8, 8))
    b, c = random.uniform(1, 2, 40), random.normal(size=8)
    x = cp.Variable(8)
    text = (
        "dim m; dim n; data a : real[m, n]; data P : real[m, n, n]; data b : real[m]; data c : real[n]; "
        "var x[n];"
        "minimize dot(c, x); subject to row[i in m]: dot(a[i], x) + norm2(P[i] @ x) <= b[i];"
    )
    rows = [a[i] @ x + cp.norm(P[i] @ x) <= b[i] for i in range(40)]
    return Model(text=text, data={"a": a, "P": P, "b": b, "c": c}, problem=minimum(c @ x, *rows))


def budget_of_uncertainty() -> Model:
    """At most some coefficients at their worst (Bertsimas, Sim, The price of robustness, 2004)."""
    random = np.random.default_rng(81)
    value, weight, error = random.uniform(1, 2, 20), random.uniform(1, 2, 20), random.uniform(0, 0.4, 20)
    x = cp.Variable(20)
    text = (
        "dim n; data v : real[n]; data a : real[n]; data e : real[n]; var x[n] >= 0, <= 1; maximize "
        "dot(v, x);"
        "subject to weight: dot(a, x) + topk(k = 5)[i in n] 5 * e[i] * x[i] <= 15;"
    )
    worst = cp.sum_largest(cp.multiply(error, x), 5)
    problem = maximum(value @ x, x >= 0, x <= 1, weight @ x + worst <= 15)
    return Model(text=text, data={"v": value, "a": weight, "e": error}, problem=problem)


MODELS = [
    newsvendor, averse_newsvendor, simple_recourse, two_stages, chance_by_cvar, chance_by_exponentials, joint_service,
    chi_squared_ball, divergence_penalty, worst_weights_of_rows, wasserstein_ball, robust_least_squares, robust_linear_program,
    budget_of_uncertainty,
]  # fmt: skip
