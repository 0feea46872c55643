"""Fits: penalties of residuals and of weights, and shapes that a fit must have."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from books.model import Model, minimum, regression

HEAD = "dim d; data D : table(x: real[d], y: real); var w[d];"
SERIES = "dim n; data y : real[n]; var b[n];"


def quantile() -> Model:
    """The 0.9 quantile (Koenker, Quantile Regression, 2005, chapter 1)."""
    x, y = regression(2000, 10, 21)
    w, b = cp.Variable(10), cp.Variable()
    u = y - x @ w - b
    text = f"{HEAD} var b; minimize E[z ~ D] pinball(z.y - dot(w, z.x) - b, 0.9);"
    return Model(
        text=text,
        data={"D": {"x": x, "y": y}},
        problem=minimum(cp.sum(0.9 * cp.pos(u) + 0.1 * cp.neg(u)) / 2000),
    )


def quantiles_that_do_not_cross() -> Model:
    """Several quantiles at once, in order at every row (Bondell, Reich, Wang, Noncrossing quantile
    regression, 2010)."""
    x, y = regression(300, 4, 22)
    levels = np.array([0.25, 0.5, 0.75])
    w, b = cp.Variable((3, 4)), cp.Variable(3)
    text = (
        "dim d; dim q; data D : table(x: real[d], y: real); data level : real[q]; var w[q, d]; var b[q];"
        "minimize sum[k in q] E[z ~ D] pinball(z.y - dot(w[k], z.x) - b[k], level[k]);"
        "subject to low[z in D]: dot(w[1], z.x) + b[1] <= dot(w[2], z.x) + b[2];"
        " high[z in D]: dot(w[2], z.x) + b[2] <= dot(w[3], z.x) + b[3];"
    )
    u = [y - x @ w[k] - b[k] for k in range(3)]
    fit = sum(
        cp.sum(level * cp.pos(v) + (1 - level) * cp.neg(v)) / 300 for level, v in zip(levels, u, strict=True)
    )
    order = [x @ w[k] + b[k] <= x @ w[k + 1] + b[k + 1] for k in range(2)]
    return Model(text=text, data={"D": {"x": x, "y": y}, "level": levels}, problem=minimum(fit, *order))


def least_absolute() -> Model:
    """Least absolute deviations within a cross-polytope (Boyd, Vandenberghe, 2004, section 6.1.1)."""
    x, y = regression(1000, 20, 23)
    w = cp.Variable(20)
    text = f"{HEAD} minimize E[z ~ D] abs(dot(w, z.x) - z.y); subject to size: norm1(w) <= 8;"
    problem = minimum(cp.norm1(x @ w - y) / 1000, cp.norm1(w) <= 8)
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def huber() -> Model:
    """Huber's loss (Huber, Ronchetti, Robust Statistics, 2009, chapter 7)."""
    x, y = regression(3000, 20, 24, noise=2)
    w = cp.Variable(20)
    text = f"{HEAD} minimize E[z ~ D] huber(dot(w, z.x) - z.y, delta = 1) + 0.01 * sumsq(w);"
    problem = minimum(cp.sum(cp.huber(x @ w - y, 1)) / 6000 + 0.01 * cp.sum_squares(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def lasso() -> Model:
    """The lasso, with more features than rows (Hastie, Tibshirani, Wainwright, Statistical Learning
    with Sparsity, 2015)."""
    x, y = regression(200, 400, 25, sparse=10)
    w = cp.Variable(400)
    text = f"{HEAD} minimize 0.5 * E[z ~ D] (dot(w, z.x) - z.y)^2 + 0.2 * norm1(w);"
    problem = minimum(cp.sum_squares(x @ w - y) / 400 + 0.2 * cp.norm1(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def square_root_lasso() -> Model:
    """The root of the mean square with a penalty that no noise level enters (Belloni, Chernozhukov,
    Wang, 2011)."""
    x, y = regression(300, 60, 26, sparse=8)
    w = cp.Variable(60)
    text = f"{HEAD} minimize sqrt(E[z ~ D] (dot(w, z.x) - z.y)^2) + 0.15 * norm1(w);"
    problem = minimum(cp.norm(x @ w - y) / 300**0.5 + 0.15 * cp.norm1(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def square_root_lasso_that_fits() -> Model:
    """The same, where the weights fit every row."""
    x, y = regression(200, 30, 27, noise=0.0, sparse=5)
    w = cp.Variable(30)
    text = f"{HEAD} minimize sqrt(E[z ~ D] (dot(w, z.x) - z.y)^2) + 0.01 * norm1(w);"
    problem = minimum(cp.norm(x @ w - y) / 200**0.5 + 0.01 * cp.norm1(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def group_lasso() -> Model:
    """Groups of features kept or left together (Yuan, Lin, 2006; Hastie, Tibshirani, Wainwright, 2015,
    section 4.3)."""
    x, y = regression(400, 60, 28, sparse=15)
    w = cp.Variable(60)
    text = f"{HEAD} minimize 0.5 * E[z ~ D] (dot(w, z.x) - z.y)^2 + 0.3 * group_norm(w, 5);"
    groups = cp.sum(cp.norm(cp.reshape(w, (12, 5), order="C"), axis=1))
    return Model(
        text=text,
        data={"D": {"x": x, "y": y}},
        problem=minimum(cp.sum_squares(x @ w - y) / 800 + 0.3 * groups),
    )


def fused_lasso() -> Model:
    """A piecewise constant signal (Tibshirani et al., Sparsity and smoothness via the fused lasso, 2005)."""
    random = np.random.default_rng(29)
    y = np.repeat([0.0, 2.0, -1.0, 0.5, 0.0], 80) + random.normal(size=400)
    b = cp.Variable(400)
    text = (
        f"{SERIES} minimize 0.5 * sum[i in n] (b[i] - y[i])^2 + 0.1 * norm1(b) + 3 * sum[i in n | i < "
        "n] abs(b[i + 1] - b[i]);"
    )
    problem = minimum(0.5 * cp.sum_squares(b - y) + 0.1 * cp.norm1(b) + 3 * cp.norm1(cp.diff(b)))
    return Model(text=text, data={"y": y}, problem=problem)


def trend_filter() -> Model:
    """A piecewise linear trend (Kim, Koh, Boyd, Gorinevsky, l1 trend filtering, 2009)."""
    random = np.random.default_rng(30)
    y = np.interp(np.arange(300), [0, 100, 160, 299], [0, 5, 3, 8]) + random.normal(scale=0.5, size=300)
    b = cp.Variable(300)
    text = (
        f"{SERIES} minimize 0.5 * sum[i in n] (b[i] - y[i])^2"
        " + 20 * sum[i in n | i > 1 and i < n] abs(b[i - 1] - 2 * b[i] + b[i + 1]);"
    )
    problem = minimum(0.5 * cp.sum_squares(b - y) + 20 * cp.norm1(cp.diff(b, 2)))
    return Model(text=text, data={"y": y}, problem=problem)


def smooth_trend() -> Model:
    """A quadratic penalty of second differences (Hodrick, Prescott, 1997; Boyd, Vandenberghe, 2004,
    section 6.3.3)."""
    random = np.random.default_rng(31)
    y = np.sin(np.arange(250) / 30) + random.normal(scale=0.3, size=250)
    b = cp.Variable(250)
    text = (
        f"{SERIES} minimize sumsq(b - y) + 100 * sum[i in n | i > 1 and i < n] (b[i - 1] - 2 * b[i] + "
        "b[i + 1])^2;"
    )
    problem = minimum(cp.sum_squares(b - y) + 100 * cp.sum_squares(cp.diff(b, 2)))
    return Model(text=text, data={"y": y}, problem=problem)


def elastic_net() -> Model:
    """Both penalties, and no negative weight (Zou, Hastie, 2005)."""
    x, y = regression(500, 80, 32, sparse=20)
    w = cp.Variable(80)
    text = (
        "dim d; data D : table(x: real[d], y: real); var w[d] >= 0;"
        "minimize E[z ~ D] (dot(w, z.x) - z.y)^2 + 0.1 * norm1(w) + 0.1 * sumsq(w);"
    )
    problem = minimum(cp.sum_squares(x @ w - y) / 500 + 0.1 * cp.norm1(w) + 0.1 * cp.sum_squares(w), w >= 0)
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def dantzig_selector() -> Model:
    """Small correlations of the residuals with every feature (Candes, Tao, 2007)."""
    x, y = regression(200, 80, 33, sparse=6)
    w = cp.Variable(80)
    text = (
        f"{HEAD} minimize norm1(w); subject to correlations: norminf(E[z ~ D] (dot(w, z.x) - z.y) * "
        "z.x) <= 0.3;"
    )
    problem = minimum(cp.norm1(w), cp.norm_inf(x.T @ (x @ w - y) / 200) <= 0.3)
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def basis_pursuit() -> Model:
    """The least norm of what explains every measurement (Chen, Donoho, Saunders, 1998)."""
    x, y = regression(60, 200, 34, noise=0.0, sparse=8)
    w = cp.Variable(200)
    text = f"{HEAD} minimize norm1(w); subject to fits[z in D]: dot(w, z.x) == z.y;"
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=minimum(cp.norm1(w), x @ w == y))


def basis_pursuit_denoising() -> Model:
    """The least norm within a residual (Boyd, Vandenberghe, 2004, section 6.5.4)."""
    x, y = regression(100, 200, 35, noise=0.1, sparse=8)
    w = cp.Variable(200)
    text = f"{HEAD} minimize norm1(w); subject to fit: sqrt(E[z ~ D] (dot(w, z.x) - z.y)^2) <= 0.2;"
    problem = minimum(cp.norm1(w), cp.norm(x @ w - y) <= 0.2 * 100**0.5)
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def chebyshev_fit() -> Model:
    """A polynomial whose largest error is the least (Boyd, Vandenberghe, 2004, section 6.1.1)."""
    t = np.linspace(-1, 1, 400)
    x, y = np.polynomial.chebyshev.chebvander(t, 8), np.exp(np.abs(t))
    w = cp.Variable(9)
    text = f"{HEAD} minimize max[z in D] abs(dot(w, z.x) - z.y);"
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=minimum(cp.norm_inf(x @ w - y)))


def isotonic() -> Model:
    """A monotone fit (Barlow et al., Statistical Inference under Order Restrictions, 1972)."""
    random = np.random.default_rng(36)
    y = np.log1p(np.arange(400)) + random.normal(size=400)
    b = cp.Variable(400)
    text = (
        f"{SERIES} minimize sum[i in n] (b[i] - y[i])^2; subject to order[i in n | i < n]: b[i] <= b[i + 1];"
    )
    return Model(text=text, data={"y": y}, problem=minimum(cp.sum_squares(b - y), cp.diff(b) >= 0))


def convex_series() -> Model:
    """A convex fit on a line (Hildreth, 1954; Boyd, Vandenberghe, 2004, section 6.5.5)."""
    random = np.random.default_rng(37)
    y = (np.arange(200) / 50 - 2) ** 2 + random.normal(scale=0.5, size=200)
    b = cp.Variable(200)
    text = (
        f"{SERIES} minimize mean[i in n] (b[i] - y[i])^2;"
        "subject to convex[i in n | i > 1 and i < n]: b[i - 1] - 2 * b[i] + b[i + 1] >= 0;"
    )
    return Model(text=text, data={"y": y}, problem=minimum(cp.sum_squares(b - y) / 200, cp.diff(b, 2) >= 0))


def convex_regression() -> Model:
    """A convex function of several variables: at each row a plane below all values (Boyd,
    Vandenberghe, 2004, section 6.5.5)."""
    random = np.random.default_rng(38)
    x = random.uniform(-1, 1, size=(60, 2))
    y = np.square(x).sum(1) + 0.2 * random.normal(size=60)
    f, g = cp.Variable(60), cp.Variable((60, 2))
    text = (
        "dim n; dim d; data x : real[n, d]; data y : real[n]; var f[n]; var g[n, d];"
        "minimize mean[i in n] (f[i] - y[i])^2;"
        "subject to above[i in n, j in n | i != j]: f[i] + dot(g[i], x[j] - x[i]) <= f[j];"
    )
    planes = [f[i] + (x - x[i]) @ g[i] <= f for i in range(60)]
    return Model(text=text, data={"x": x, "y": y}, problem=minimum(cp.sum_squares(f - y) / 60, *planes))


def expectile() -> Model:
    """An expectile (Newey, Powell, Asymmetric least squares, 1987)."""
    x, y = regression(1500, 12, 39)
    w = cp.Variable(12)
    text = f"{HEAD} def u(z) = z.y - dot(w, z.x); minimize E[z ~ D] (0.8 * pos(u(z))^2 + 0.2 * pos(-u(z))^2);"
    u = y - x @ w
    problem = minimum((0.8 * cp.sum_squares(cp.pos(u)) + 0.2 * cp.sum_squares(cp.neg(u))) / 1500)
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def support_vector_regression() -> Model:
    """The loss that does not see small residuals (Vapnik, 1995; Hastie, Tibshirani, Friedman, 2009,
    section 12.3.6)."""
    x, y = regression(1500, 15, 40)
    w, b = cp.Variable(15), cp.Variable()
    text = f"{HEAD} var b; minimize E[z ~ D] eps_insensitive(z.y - dot(w, z.x) - b, 0.5) + 0.05 * sumsq(w);"
    problem = minimum(cp.sum(cp.pos(cp.abs(y - x @ w - b) - 0.5)) / 1500 + 0.05 * cp.sum_squares(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def poisson() -> Model:
    """Counts by a log-linear model, its weights few (Hastie, Tibshirani, Wainwright, 2015, section 3.4)."""
    random = np.random.default_rng(41)
    x = random.normal(size=(800, 12)) / 2
    y = random.poisson(np.exp(0.5 + x @ np.r_[0.8, -0.5, 0.4, np.zeros(9)])).astype(float)
    w, b = cp.Variable(12), cp.Variable()
    text = (
        f"{HEAD} var b; def rate(z) = dot(w, z.x) + b;"
        "minimize E[z ~ D] (exp(rate(z)) - z.y * rate(z)) + 0.05 * norm1(w);"
    )
    s = x @ w + b
    problem = minimum(cp.sum(cp.exp(s) - cp.multiply(y, s)) / 800 + 0.05 * cp.norm1(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def log_barrier_penalty() -> Model:
    """A penalty without a value beyond a residual (Boyd, Vandenberghe, 2004, section 6.1.2)."""
    random = np.random.default_rng(42)
    x = random.normal(size=(300, 6))
    y = x @ random.normal(size=6) + random.uniform(-1, 1, 300)
    w, a = cp.Variable(6), 2.0
    text = f"{HEAD} minimize mean[z in D] -log(1 - ((dot(w, z.x) - z.y) / {a})^2);"
    problem = minimum(-cp.sum(cp.log(1 - cp.square((x @ w - y) / a))) / 300)
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def higher_power() -> Model:
    """The mean fourth power's root (Boyd, Vandenberghe, 2004, section 6.1.1)."""
    x, y = regression(400, 8, 43)
    w = cp.Variable(8)
    text = f"{HEAD} minimize (E[z ~ D] (dot(w, z.x) - z.y)^4)^0.25;"
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=minimum(cp.pnorm(x @ w - y, 4) / 400**0.25))


MODELS = [
    quantile, quantiles_that_do_not_cross, least_absolute, huber, lasso, square_root_lasso, square_root_lasso_that_fits,
    group_lasso, fused_lasso, trend_filter, smooth_trend, elastic_net, dantzig_selector, basis_pursuit, basis_pursuit_denoising,
    chebyshev_fit, isotonic, convex_series, convex_regression, expectile, support_vector_regression, poisson,
    log_barrier_penalty, higher_power,
]  # fmt: skip
