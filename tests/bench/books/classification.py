"""Classes: margins, likelihoods, and what errors and groups may cost."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from books.model import Array, Model, classes, maximum, minimum, tail

HEAD = "dim d; data D : table(x: real[d], y: {-1, 1}); var w[d];"


def support_vectors() -> Model:
    """The support vector machine (Hastie, Tibshirani, Friedman, Elements of Statistical Learning,
    2009, section 12.3)."""
    x, y = classes(3000, 20, 44)
    w, b = cp.Variable(20), cp.Variable()
    text = f"{HEAD} var b; minimize E[z ~ D] hinge(1 - z.y * (dot(w, z.x) + b)) + 0.01 * sumsq(w);"
    problem = minimum(cp.sum(cp.pos(1 - cp.multiply(y, x @ w + b))) / 3000 + 0.01 * cp.sum_squares(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def sparse_support_vectors() -> Model:
    """The linear program with the l1 norm (Zhu, Rosset, Hastie, Tibshirani, 1-norm support vector
    machines, 2003)."""
    x, y = classes(1000, 40, 45)
    w, b = cp.Variable(40), cp.Variable()
    text = f"{HEAD} var b; minimize E[z ~ D] hinge(1 - z.y * (dot(w, z.x) + b)) + 0.02 * norm1(w);"
    problem = minimum(cp.sum(cp.pos(1 - cp.multiply(y, x @ w + b))) / 1000 + 0.02 * cp.norm1(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def hard_margin() -> Model:
    """The plane furthest from two classes that it tells apart (Boyd, Vandenberghe, 2004, section 8.6.1)."""
    random = np.random.default_rng(46)
    x = random.normal(size=(400, 5))
    y = np.where(x[:, 0] - x[:, 1] > 0, 1, -1)
    x[:, :2] += 0.3 * y[:, None] * [1, -1]
    w, b = cp.Variable(5), cp.Variable()
    text = f"{HEAD} var b; minimize 0.5 * sumsq(w); subject to apart[z in D]: z.y * (dot(w, z.x) + b) >= 1;"
    problem = minimum(0.5 * cp.sum_squares(w), cp.multiply(y, x @ w + b) >= 1)
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def one_class() -> Model:
    """The support of a distribution (Scholkopf et al., 2001)."""
    random = np.random.default_rng(47)
    x = np.exp(0.3 * random.normal(size=(1000, 8)))
    w, rho = cp.Variable(8), cp.Variable()
    text = (
        "dim d; data D : table(x: real[d]); var w[d]; var rho;"
        "minimize 0.5 * sumsq(w) - rho + E[z ~ D] pos(rho - dot(w, z.x)) / 0.1;"
    )
    problem = minimum(0.5 * cp.sum_squares(w) - rho + cp.sum(cp.pos(rho - x @ w)) / 100)
    return Model(text=text, data={"D": {"x": x}}, problem=problem)


def several_classes_by_margin() -> Model:
    """The multiclass support vector machine (Crammer, Singer, 2001)."""
    random = np.random.default_rng(48)
    x, c = random.normal(size=(500, 6)), random.integers(0, 4, 500)
    x[:, :4] += 1.5 * np.eye(4)[c]
    W = cp.Variable((4, 6))
    text = (
        "dim d; set C = {0, 1, 2, 3}; data D : table(x: real[d], c: C); data same : real[C, C]; var W[C, d];"
        "minimize E[z ~ D] (max[k in C] (dot(W[k], z.x) + 1 - same[k, z.c]) - dot(W[z.c], z.x)) + 0.01 * "
        "sumsq(W);"
    )
    scores, own = x @ W.T, np.eye(4)[c]
    loss = cp.sum(cp.max(scores + 1 - own, axis=1) - cp.sum(cp.multiply(own, scores), axis=1)) / 500
    return Model(
        text=text,
        data={"D": {"x": x, "c": c}, "same": np.eye(4)},
        problem=minimum(loss + 0.01 * cp.sum_squares(W)),
    )


def several_classes_by_likelihood() -> Model:
    """Multinomial logistic regression, each feature kept or left (Hastie, Tibshirani, Wainwright,
    2015, section 3.3)."""
    random = np.random.default_rng(49)
    x, c = random.normal(size=(500, 12)), random.integers(0, 3, 500)
    x[:, :3] += np.eye(3)[c]
    W = cp.Variable((12, 3))
    text = (
        "dim d; set C = {0, 1, 2}; data D : table(x: real[d], c: C); var W[d, C];"
        "minimize E[z ~ D] (logsumexp(z.x @ W) - (z.x @ W)[z.c]) + 0.05 * sum[i in d] norm2(W[i]);"
    )
    scores = x @ W
    loss = cp.sum(cp.log_sum_exp(scores, axis=1)) / 500 - cp.sum(cp.multiply(np.eye(3)[c], scores)) / 500
    return Model(
        text=text, data={"D": {"x": x, "c": c}}, problem=minimum(loss + 0.05 * cp.sum(cp.norm(W, axis=1)))
    )


def logistic() -> Model:
    """Logistic regression with few weights (Koh, Kim, Boyd, 2007)."""
    x, y = classes(2000, 30, 50)
    w, b = cp.Variable(30), cp.Variable()
    text = f"{HEAD} var b; minimize E[z ~ D] log1pexp(-z.y * (dot(w, z.x) + b)) + 0.02 * norm1(w);"
    problem = minimum(cp.sum(cp.logistic(-cp.multiply(y, x @ w + b))) / 2000 + 0.02 * cp.norm1(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def neyman_pearson() -> Model:
    """Fewest misses at a bound on false alarms, of hinges (Scott, Nowak, 2005; Rigollet, Tong, 2011)."""
    x, y = classes(1500, 10, 51)
    w, b = cp.Variable(10), cp.Variable()
    text = (
        f"{HEAD} var b; minimize misses: E[z ~ D | z.y == 1] hinge(1 - dot(w, z.x) - b) + 0.01 * sumsq(w);"
        "subject to alarms: E[z ~ D | z.y == -1] hinge(1 + dot(w, z.x) + b) <= 0.3;"
    )
    sides = [cp.sum(cp.pos(1 - s * (x[y == s] @ w + b))) / (y == s).sum() for s in (1, -1)]
    return Model(
        text=text,
        data={"D": {"x": x, "y": y}},
        problem=minimum(sides[0] + 0.01 * cp.sum_squares(w), sides[1] <= 0.3),
    )


def fairness_by_covariance() -> Model:
    """Scores without covariance with a group (Zafar, Valera, Gomez Rodriguez, Gummadi, Fairness
    constraints, 2017)."""
    x, y = classes(2000, 10, 52)
    random = np.random.default_rng(52)
    a = (x[:, 0] + x[:, 1] + random.normal(size=2000) > 0).astype(float)
    w, b = cp.Variable(10), cp.Variable()
    text = (
        "dim d; data D : table(x: real[d], y: {-1, 1}, a: {0, 1}); var w[d]; var b; let share = E[z ~ D] z.a;"
        "minimize E[z ~ D] log1pexp(-z.y * (dot(w, z.x) + b));"
        "subject to fair: -0.02 <= E[z ~ D] (z.a - share) * dot(w, z.x) <= 0.02;"
    )
    between = cp.abs((a - a.mean()) @ x @ w / 2000) <= 0.02
    problem = minimum(cp.sum(cp.logistic(-cp.multiply(y, x @ w + b))) / 2000, between)
    return Model(text=text, data={"D": {"x": x, "y": y, "a": a.astype(int)}}, problem=problem)


def equal_risks() -> Model:
    """Risks of all groups within a bound of the whole's (Donini et al., Empirical risk minimization
    under fairness, 2018)."""
    x, y = classes(1200, 6, 53)
    g = np.random.default_rng(53).integers(0, 3, 1200)
    x = x + 0.5 * g[:, None]
    w, b = cp.Variable(6), cp.Variable()
    text = (
        "dim d; set G; data D : table(x: real[d], y: {-1, 1}, g: G); var w[d]; var b;"
        "def loss(z) = log1pexp(-z.y * (dot(w, z.x) + b));"
        "minimize E[z ~ D] loss(z); subject to risk[k in G]: E[z ~ D | z.g == k] loss(z) <= 0.56;"
    )
    losses = cp.logistic(-cp.multiply(y, x @ w + b))
    limits = [cp.sum(losses[g == k]) / (g == k).sum() <= 0.56 for k in range(3)]
    return Model(
        text=text, data={"D": {"x": x, "y": y, "g": g}}, problem=minimum(cp.sum(losses) / 1200, *limits)
    )


def worst_group() -> Model:
    """The worst group's risk (Sagawa et al., Distributionally robust neural networks for group shifts,
    2020)."""
    x, y = classes(2000, 10, 54)
    g = np.random.default_rng(54).integers(0, 5, 2000)
    y = np.where((g == 1) & (np.random.default_rng(55).random(2000) < 0.2), -y, y)
    w = cp.Variable(10)
    text = (
        "dim d; set G; data D : table(x: real[d], y: {-1, 1}, g: G); var w[d];"
        "minimize max[k in G] E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)) + 0.01 * sumsq(w);"
    )
    losses = cp.logistic(-cp.multiply(y, x @ w))
    risks = cp.hstack([cp.sum(losses[g == k]) / (g == k).sum() for k in range(5)])
    problem = minimum(cp.max(risks) + 0.01 * cp.sum_squares(w))
    return Model(text=text, data={"D": {"x": x, "y": y, "g": g}}, problem=problem)


def ranking() -> Model:
    """Hinges of pairs of opposite classes (Joachims, Optimizing search engines using clickthrough
    data, 2002)."""
    x, y = classes(160, 8, 56)
    x1, x0 = x[y == 1], x[y == -1]
    w = cp.Variable(8)
    text = (
        f"{HEAD} set P = {{z in D | z.y == 1}}; set N = {{z in D | z.y == -1}};"
        "minimize E[p ~ P, n ~ N] hinge(1 - dot(w, p.x - n.x)) + 0.02 * sumsq(w);"
    )
    pairs = (x1[:, None] - x0[None]).reshape(-1, 8)
    problem = minimum(cp.sum(cp.pos(1 - pairs @ w)) / len(pairs) + 0.02 * cp.sum_squares(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def partial_ranking() -> Model:
    """The area under a curve at few false alarms: pairs with the worst tenth of the negatives
    (Narasimhan, Agarwal, A structural SVM based approach for optimizing partial AUC, 2013)."""
    x, pairs = _opposite(25, 300, 57)
    w = cp.Variable(6)
    text = (
        "dim d; data D : table(x: real[d], y: {0, 1}); set P = {z in D | z.y == 1}; set N = {z in D | "
        "z.y == 0}; var w[d];"
        "minimize mean[p in P] cvar(tail = 0.1)[n ~ N] sqhinge(1 - dot(w, p.x - n.x)) + 0.02 * sumsq(w);"
    )
    losses = [tail(cp.square(cp.pos(1 - pairs[p] @ w)), 0.1) for p in range(25)]
    return Model(text=text, data={"D": x}, problem=minimum(sum(losses) / 25 + 0.02 * cp.sum_squares(w)))


def two_way_partial_ranking() -> Model:
    """Pairs of the worst positives and the worst negatives (Yang, Xu, Bao, He, Cao, Huang, When all we
    need is a piece of the pie: a generic framework for optimizing two-way partial AUC, 2021)."""
    x, pairs = _opposite(25, 100, 58)
    w = cp.Variable(6)
    text = (
        "dim d; data D : table(x: real[d], y: {0, 1}); set P = {z in D | z.y == 1}; set N = {z in D | "
        "z.y == 0}; var w[d];"
        "minimize cvar(tail = 0.5)[p in P] cvar(tail = 0.2)[n ~ N] sqhinge(1 - dot(w, p.x - n.x)) + 0.02 "
        "* sumsq(w);"
    )
    losses = cp.hstack([tail(cp.square(cp.pos(1 - pairs[p] @ w)), 0.2) for p in range(25)])
    return Model(text=text, data={"D": x}, problem=minimum(tail(losses, 0.5) + 0.02 * cp.sum_squares(w)))


def _opposite(positive: int, negative: int, seed: int) -> tuple[dict[str, Array], Array]:
    """Rows of two classes that overlap, and the differences of each positive one from each negative one."""
    random = np.random.default_rng(seed)
    y = (np.arange(positive + negative) < positive).astype(int)
    x = random.normal(size=(len(y), 6)) + 0.8 * y[:, None]
    return {"x": x, "y": y}, x[:positive, None] - x[None, positive:]


def worst_share() -> Model:
    """The largest losses alone (Fan, Lyu, Ying, Hu, Learning with average top-k loss, 2017)."""
    x, y = classes(1000, 8, 57, noise=0.3)
    w = cp.Variable(8)
    text = f"{HEAD} minimize cvar(tail = 0.2)[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.01 * sumsq(w);"
    problem = minimum(tail(cp.logistic(-cp.multiply(y, x @ w)), 0.2) + 0.01 * cp.sum_squares(w))
    return Model(text=text, data={"D": {"x": x, "y": y}}, problem=problem)


def bradley_terry() -> Model:
    """Strengths from who beat whom (Bradley, Terry, 1952; Boyd, Vandenberghe, 2004, section 7.1)."""
    random = np.random.default_rng(58)
    true = random.normal(size=20)
    pairs = np.array([random.choice(20, 2, replace=False) for _ in range(1500)])
    won = random.random(1500) < 1 / (1 + np.exp(true[pairs[:, 1]] - true[pairs[:, 0]]))
    first, second = np.where(won, pairs[:, 0], pairs[:, 1]), np.where(won, pairs[:, 1], pairs[:, 0])
    s = cp.Variable(20)
    text = (
        "set T = 0 .. 19; data D : table(winner: T, loser: T); var s[T];"
        "maximize E[z ~ D] logsigmoid(s[z.winner] - s[z.loser]); subject to zero: sum(s) == 0;"
    )
    problem = maximum(-cp.sum(cp.logistic(s[second] - s[first])) / 1500, cp.sum(s) == 0)
    return Model(text=text, data={"D": {"winner": first, "loser": second}}, problem=problem)


MODELS = [
    support_vectors, sparse_support_vectors, hard_margin, one_class, several_classes_by_margin, several_classes_by_likelihood,
    logistic, neyman_pearson, fairness_by_covariance, equal_risks, worst_group, ranking, partial_ranking, two_way_partial_ranking,
    worst_share, bradley_terry,
]  # fmt: skip
