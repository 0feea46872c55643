"""Portfolios: risk, reward, and what trading and regulation ask of them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from books.model import Model, maximum, minimum, returns, tail

HEAD = "set A; data R : table(r: real[A]);"
LONG = f"{HEAD} var x[A] in simplex(A);"


def long_only(d: int) -> tuple[cp.Variable, list]:
    x = cp.Variable(d)
    return x, [x >= 0, cp.sum(x) == 1]


def markowitz() -> Model:
    """Least variance at a mean return (Boyd, Vandenberghe, Convex Optimization, 2004, section 4.4.1)."""
    r = returns(1000, 30, 1)
    x, long = long_only(30)
    target = round(float(np.quantile(r.mean(0), 0.7)), 3)
    text = (
        f"{LONG} minimize risk: variance[z ~ R] dot(z.r, x); subject to income: E[z ~ R] dot(z.r, x) "
        f">= {target};"
    )
    problem = minimum(cp.quad_form(x, np.cov(r.T, bias=True)), *long, r.mean(0) @ x >= target)
    return Model(text=text, data={"R": {"r": r}}, problem=problem)


def turnover() -> Model:
    """Mean and variance with bounded trades (Cornuejols, Tutuncu, Optimization Methods in Finance,
    2006, section 8.1)."""
    r = returns(1000, 30, 2)
    prev = np.full(30, 1 / 30)
    x, long = long_only(30)
    text = (
        f"{LONG} data prev : real[A];"
        "minimize cost: variance[z ~ R] dot(z.r, x) - 2 * E[z ~ R] dot(z.r, x);"
        "subject to trades: norm1(x - prev) <= 0.5;"
    )
    cost = cp.quad_form(x, np.cov(r.T, bias=True)) - 2 * r.mean(0) @ x
    return Model(
        text=text, data={"R": {"r": r}, "prev": prev}, problem=minimum(cost, *long, cp.norm1(x - prev) <= 0.5)
    )


def transaction_costs() -> Model:
    """Costs of spread and of impact, a power 3/2 (Boyd et al., Multi-Period Trading via Convex
    Optimization, 2017)."""
    r = returns(1000, 25, 3)
    prev = np.random.default_rng(3).dirichlet(np.ones(25))
    x, long = long_only(25)
    text = (
        f"{LONG} data prev : real[A]; param gamma >= 0 default 0.1;"
        "maximize utility: E[z ~ R] dot(z.r, x) - gamma * variance[z ~ R] dot(z.r, x)"
        " - 0.005 * norm1(x - prev) - 0.02 * sum[a in A] abs(x[a] - prev[a])^1.5;"
    )
    costs = 0.005 * cp.norm1(x - prev) + 0.02 * cp.sum(cp.power(cp.abs(x - prev), 1.5))
    utility = r.mean(0) @ x - 0.1 * cp.quad_form(x, np.cov(r.T, bias=True)) - costs
    return Model(text=text, data={"R": {"r": r}, "prev": prev}, problem=maximum(utility, *long))


def leverage() -> Model:
    """Short sales up to a leverage (Lobo, Fazel, Boyd, Portfolio optimization with linear and fixed
    transaction costs, 2007)."""
    r = returns(800, 20, 4)
    x = cp.Variable(20)
    text = (
        f"{HEAD} var x[A]; maximize E[z ~ R] dot(z.r, x); subject to"
        " all: sum(x) == 1; leverage: norm1(x) <= 1.6; risk: sqrt(variance[z ~ R] dot(z.r, x)) <= 1;"
    )
    root = np.linalg.cholesky(np.cov(r.T, bias=True)).T
    problem = maximum(r.mean(0) @ x, cp.sum(x) == 1, cp.norm1(x) <= 1.6, cp.norm(root @ x) <= 1)
    return Model(text=text, data={"R": {"r": r}}, problem=problem)


def tracking() -> Model:
    """An index followed in mean square by what may be held (Cornuejols, Tutuncu, 2006, section 11.2)."""
    r = returns(1500, 40, 5)
    index = r @ np.random.default_rng(5).dirichlet(np.ones(40))
    x = cp.Variable(40)
    text = (
        "set A; data R : table(r: real[A], index: real); var x[A] >= 0, <= 0.05;"
        "minimize error: E[z ~ R] (dot(z.r, x) - z.index)^2;"
        "subject to all: sum(x) == 1; active: sum[a in A] abs(x[a] - 1 / 40) <= 0.3;"
    )
    error = cp.sum_squares(r @ x - index) / 1500
    problem = minimum(error, x >= 0, x <= 0.05, cp.sum(x) == 1, cp.norm1(x - 1 / 40) <= 0.3)
    return Model(text=text, data={"R": {"r": r, "index": index}}, problem=problem)


def absolute_tracking() -> Model:
    """An index followed in mean absolute error (Rudolf, Wolter, Zimmermann, 1999)."""
    r = returns(1200, 15, 6)
    index = r @ np.random.default_rng(6).dirichlet(np.ones(15)) + 0.3 * np.random.default_rng(7).normal(
        size=1200
    )
    x, long = long_only(15)
    text = (
        "set A; data R : table(r: real[A], index: real); var x[A] in simplex(A);"
        "minimize error: E[z ~ R] abs(dot(z.r, x) - z.index);"
    )
    return Model(
        text=text,
        data={"R": {"r": r, "index": index}},
        problem=minimum(cp.norm1(r @ x - index) / 1200, *long),
    )


def absolute_deviation() -> Model:
    """Mean absolute deviation as the risk (Konno, Yamazaki, 1991)."""
    r = returns(750, 25, 8)
    x, long = long_only(25)
    target = round(float(np.quantile(r.mean(0), 0.6)), 3)
    text = (
        f"{LONG} let m = E[z ~ R] dot(z.r, x);"
        f"minimize risk: E[z ~ R] abs(dot(z.r, x) - m); subject to income: m >= {target};"
    )
    problem = minimum(cp.norm1((r - r.mean(0)) @ x) / 750, *long, r.mean(0) @ x >= target)
    return Model(text=text, data={"R": {"r": r}}, problem=problem)


def conditional_value_at_risk() -> Model:
    """Least CVaR at a mean return (Rockafellar, Uryasev, Optimization of conditional value-at-risk, 2000)."""
    r = returns(2000, 20, 9)
    x, long = long_only(20)
    target = round(float(np.quantile(r.mean(0), 0.6)), 3)
    text = (
        f"{LONG} minimize risk: cvar(tail = 0.05)[z ~ R] -dot(z.r, x); subject to income: E[z ~ R] "
        f"dot(z.r, x) >= {target};"
    )
    return Model(
        text=text, data={"R": {"r": r}}, problem=minimum(tail(-r @ x, 0.05), *long, r.mean(0) @ x >= target)
    )


def cvar_and_turnover() -> Model:
    """Highest return under a bound of CVaR, with a bound on trades (Krokhmal, Palmquist, Uryasev, 2002)."""
    r = returns(1000, 20, 10)
    prev = np.full(20, 1 / 20)
    x, long = long_only(20)
    text = (
        f"{LONG} data prev : real[A]; maximize E[z ~ R] dot(z.r, x);"
        "subject to tail: cvar(tail = 0.1)[z ~ R] -dot(z.r, x) <= 2; trades: norm1(x - prev) <= 0.6;"
    )
    problem = maximum(r.mean(0) @ x, *long, tail(-r @ x, 0.1) <= 2, cp.norm1(x - prev) <= 0.6)
    return Model(text=text, data={"R": {"r": r}, "prev": prev}, problem=problem)


def semideviation() -> Model:
    """Mean and upper semideviation of first order (Shapiro, Dentcheva, Ruszczynski, Stochastic
    Programming, 2009, 6.2.2)."""
    r = returns(2000, 20, 11)
    x, long = long_only(20)
    text = f"{LONG} let m = E[z ~ R] dot(z.r, x); minimize -m + 0.5 * E[z ~ R] pos(m - dot(z.r, x));"
    return Model(
        text=text,
        data={"R": {"r": r}},
        problem=minimum(-r.mean(0) @ x + 0.5 * cp.sum(cp.pos((r.mean(0) - r) @ x)) / 2000, *long),
    )


def semideviation_of_order_two() -> Model:
    """Mean and semideviation of second order (Shapiro, Dentcheva, Ruszczynski, 2009, example 6.20)."""
    r = returns(1000, 15, 12)
    x, long = long_only(15)
    text = f"{LONG} let m = E[z ~ R] dot(z.r, x); minimize -m + 0.8 * sqrt(E[z ~ R] pos(m - dot(z.r, x))^2);"
    risk = cp.norm(cp.pos((r.mean(0) - r) @ x)) / 1000**0.5
    return Model(text=text, data={"R": {"r": r}}, problem=minimum(-r.mean(0) @ x + 0.8 * risk, *long))


def downside() -> Model:
    """Variance below a target (Markowitz, Portfolio Selection, 1959, chapter 9)."""
    r = returns(1500, 25, 13)
    x, long = long_only(25)
    text = f"{LONG} minimize E[z ~ R] pos(0.1 - dot(z.r, x))^2; subject to spread: norminf(x) <= 0.15;"
    problem = minimum(cp.sum_squares(cp.pos(0.1 - r @ x)) / 1500, *long, cp.norm_inf(x) <= 0.15)
    return Model(text=text, data={"R": {"r": r}}, problem=problem)


def growth() -> Model:
    """The log-optimal portfolio (Cover, Thomas, Elements of Information Theory, 2006, section 16.2)."""
    r = returns(1000, 12, 14) * 3
    x, long = long_only(12)
    text = f"{LONG} maximize E[z ~ R] log(1 + dot(z.r, x) / 100);"
    return Model(
        text=text, data={"R": {"r": r}}, problem=maximum(cp.sum(cp.log(1 + r @ x / 100)) / 1000, *long)
    )


def exponential_utility() -> Model:
    """The certainty equivalent of an exponential utility (Follmer, Schied, Stochastic Finance, 2011,
    example 4.13)."""
    r = returns(800, 15, 15)
    x, long = long_only(15)
    text = f"{LONG} minimize 2 * log(E[z ~ R] exp(-dot(z.r, x) / 2));"
    problem = minimum(2 * (cp.log_sum_exp(-r @ x / 2) - np.log(800)), *long)
    return Model(text=text, data={"R": {"r": r}}, problem=problem)


def risk_parity() -> Model:
    """Equal contributions to the risk (Spinu, An algorithm for computing risk parity weights, 2013)."""
    r = returns(1000, 20, 16)
    x = cp.Variable(20)
    text = f"{HEAD} var x[A] >= 0; minimize 0.5 * variance[z ~ R] dot(z.r, x) - mean[a in A] log(x[a]);"
    problem = minimum(0.5 * cp.quad_form(x, np.cov(r.T, bias=True)) - cp.sum(cp.log(x)) / 20)
    return Model(text=text, data={"R": {"r": r}}, problem=problem)


def uncertain_means() -> Model:
    """The worst mean in an ellipsoid (Goldfarb, Iyengar, Robust portfolio selection problems, 2003)."""
    r = returns(500, 15, 17)
    mean, root = r.mean(0), np.linalg.cholesky(np.cov(r.T) / 500).T
    x, long = long_only(15)
    text = (
        "set A; data m : real[A]; data L : real[A, A]; data S : real[A, A]; var x[A] in simplex(A);"
        "maximize dot(m, x) - 2 * norm2(L @ x); subject to risk: dot(x, S @ x) <= 1.5;"
    )
    S = np.cov(r.T)
    problem = maximum(mean @ x - 2 * cp.norm(root @ x), *long, cp.quad_form(x, S) <= 1.5)
    return Model(text=text, data={"m": mean, "L": root, "S": S}, problem=problem)


def loss_risk() -> Model:
    """A bound on the probability of a loss, of normal returns (Boyd, Vandenberghe, 2004, section 4.4.2)."""
    r = returns(600, 15, 18) + 0.4
    x = cp.Variable(15)
    text = (
        f"{HEAD} var x[A] >= -0.1; maximize E[z ~ R] dot(z.r, x); subject to all: sum(x) == 1;"
        " loss: 1.645 * sqrt(variance[z ~ R] dot(z.r, x)) <= E[z ~ R] dot(z.r, x) + 1.2;"
    )
    root = np.linalg.cholesky(np.cov(r.T, bias=True)).T
    problem = maximum(
        r.mean(0) @ x, x >= -0.1, cp.sum(x) == 1, 1.645 * cp.norm(root @ x) <= r.mean(0) @ x + 1.2
    )
    return Model(text=text, data={"R": {"r": r}}, problem=problem)


def factors() -> Model:
    """A factor model of the risk, limits of sectors and of exposures (Grinold, Kahn, Active Portfolio
    Management, 2000)."""
    random = np.random.default_rng(19)
    F, own, gain = random.normal(size=(5, 60)), random.uniform(0.1, 0.5, 60), random.uniform(0, 1, 60)
    sector = np.arange(60) % 4
    x, long = long_only(60)
    text = (
        "set A; set S; dim k; data F : real[k, A]; data own : real[A]; data gain : real[A]; data member "
        ": real[S, A];"
        "var x[A] in simplex(A);"
        "maximize dot(gain, x) - 0.5 * (sumsq(F @ x) + sum[a in A] own[a] * x[a]^2);"
        "subject to sector[s in S]: dot(member[s], x) <= 0.3; market: abs(sum[a in A] F[1, a] * x[a]) <= "
        "0.05;"
    )
    member = (sector == np.arange(4)[:, None]).astype(float)
    value = gain @ x - 0.5 * (cp.sum_squares(F @ x) + cp.sum(cp.multiply(own, cp.square(x))))
    problem = maximum(value, *long, member @ x <= 0.3, cp.abs(F[0] @ x) <= 0.05)
    return Model(text=text, data={"F": F, "own": own, "gain": gain, "member": member}, problem=problem)


def worst_day() -> Model:
    """The portfolio whose worst day is the best (Young, A minimax portfolio selection rule, 1998)."""
    r = returns(1500, 20, 20)
    x, long = long_only(20)
    text = f"{LONG} maximize min[z in R] dot(z.r, x); subject to income: E[z ~ R] dot(z.r, x) >= 0.04;"
    problem = maximum(cp.min(r @ x), *long, r.mean(0) @ x >= 0.04)
    return Model(text=text, data={"R": {"r": r}}, problem=problem)


MODELS = [
    markowitz, turnover, transaction_costs, leverage, tracking, absolute_tracking, absolute_deviation, conditional_value_at_risk,
    cvar_and_turnover, semideviation, semideviation_of_order_two, downside, growth, exponential_utility, risk_parity,
    uncertain_means, loss_risk, factors, worst_day,
]  # fmt: skip
