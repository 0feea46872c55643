"""Points, games, networks, and linear programs whose optima are degenerate, many, or none."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from books.model import Model, maximum, minimum


def smallest_ball() -> Model:
    """The smallest ball around points (Boyd, Vandenberghe, 2004, section 8.4.1)."""
    p = np.random.default_rng(82).normal(size=(500, 4))
    c = cp.Variable(4)
    text = "dim d; data D : table(x: real[d]); var c[d]; minimize max[z in D] norm2(z.x - c);"
    distances = cp.norm(p - np.ones((500, 1)) @ cp.reshape(c, (1, 4), order="C"), axis=1)
    return Model(text=text, data={"D": {"x": p}}, problem=minimum(cp.max(distances)))


def geometric_median() -> Model:
    """The point of least distances to others (Weber, 1909; Boyd, Vandenberghe, 2004, section 8.7)."""
    p = np.random.default_rng(83).standard_t(2, size=(800, 3))
    c = cp.Variable(3)
    text = "dim d; data D : table(x: real[d]); var c[d]; minimize E[z ~ D] norm2(z.x - c);"
    distances = cp.norm(p - np.ones((800, 1)) @ cp.reshape(c, (1, 3), order="C"), axis=1)
    return Model(text=text, data={"D": {"x": p}}, problem=minimum(cp.sum(distances) / 800))


def placement() -> Model:
    """Places of several plants between fixed ones, by lengths of wires (Boyd, Vandenberghe, 2004,
    section 8.7.3)."""
    random = np.random.default_rng(84)
    fixed = random.uniform(-1, 1, size=(8, 2))
    wires = np.array([(i, j) for i in range(6) for j in range(i)])
    x = cp.Variable((6, 2))
    text = (
        "dim n; dim m; data f : real[m, 2]; data link : real[n, m]; var x[n, 2];"
        "minimize (sum[i in n, j in n | j < i] norm2(x[i] - x[j])) + sum[i in n, k in m] link[i, k] * "
        "norm1(x[i] - f[k]);"
    )
    link = (random.random((6, 8)) < 0.5).astype(float)
    among = sum(cp.norm(x[i] - x[j]) for i, j in wires)
    outside = sum(link[i, k] * cp.norm1(x[i] - fixed[k]) for i in range(6) for k in range(8))
    return Model(text=text, data={"f": fixed, "link": link}, problem=minimum(among + outside))


def chebyshev_centre() -> Model:
    """The largest ball in a polyhedron (Boyd, Vandenberghe, 2004, section 4.3.1)."""
    random = np.random.default_rng(85)
    a, b = random.normal(size=(150, 6)), random.uniform(0.5, 2, 150)
    x, r = cp.Variable(6), cp.Variable()
    text = (
        "dim n; data H : table(a: real[n], b: real); var x[n]; var r;"
        "maximize r; subject to inside[h in H]: dot(h.a, x) + r * norm2(h.a) <= h.b;"
    )
    problem = maximum(r, a @ x + r * np.linalg.norm(a, axis=1) <= b)
    return Model(text=text, data={"H": {"a": a, "b": b}}, problem=problem)


def matrix_game() -> Model:
    """The row player's mixed strategy (von Neumann, 1928; Boyd, Vandenberghe, 2004, section 5.2.5)."""
    P = np.random.default_rng(86).normal(size=(25, 30))
    u = cp.Variable(25)
    text = (
        "set R; set C; data P : real[R, C]; var u[R] in simplex(R); minimize max[c in C] sum[r in R] "
        "P[r, c] * u[r];"
    )
    problem = minimum(cp.max(P.T @ u), u >= 0, cp.sum(u) == 1)
    return Model(text=text, data={"P": P}, problem=problem)


def diet() -> Model:
    """The cheapest diet (Stigler, 1945; Dantzig, Linear Programming and Extensions, 1963, section 27.1)."""
    random = np.random.default_rng(87)
    a, c = random.uniform(0, 1, size=(10, 40)), random.uniform(1, 2, 40)
    x = cp.Variable(40)
    text = (
        "set F; set N; data a : real[N, F]; data c : real[F]; var x[F] >= 0;"
        "minimize sum[f in F] c[f] * x[f]; subject to need[n in N]: sum[f in F] a[n, f] * x[f] >= 1;"
    )
    return Model(text=text, data={"a": a, "c": c}, problem=minimum(c @ x, x >= 0, a @ x >= 1))


def assignment() -> Model:
    """The assignment problem, every vertex of which is degenerate (Kuhn, 1955)."""
    cost = np.random.default_rng(88).integers(1, 20, size=(15, 15)).astype(float)
    p = cp.Variable((15, 15))
    text = (
        "dim n; data c : real[n, n]; var p[n, n] >= 0; minimize sum[i in n, j in n] c[i, j] * p[i, j];"
        "subject to row[i in n]: sum[j in n] p[i, j] == 1; column[j in n]: sum[i in n] p[i, j] == 1;"
    )
    problem = minimum(cp.sum(cp.multiply(cost, p)), p >= 0, cp.sum(p, axis=0) == 1, cp.sum(p, axis=1) == 1)
    return Model(text=text, data={"c": cost}, problem=problem)


def optimal_transport() -> Model:
    """Transport with an entropy (Peyre, Cuturi, Computational Optimal Transport, 2019, chapter 4)."""
    random = np.random.default_rng(89)
    cost = np.square(random.normal(size=(20, 1)) - random.normal(size=25))
    a, b = random.dirichlet(np.ones(20)), random.dirichlet(np.ones(25))
    p = cp.Variable((20, 25))
    text = (
        "dim n; dim m; data c : real[n, m]; data a : real[n]; data b : real[m]; var p[n, m] >= 0;"
        "minimize sum[i in n, j in m] (c[i, j] * p[i, j] - 0.05 * entr(p[i, j]));"
        "subject to out[i in n]: sum[j in m] p[i, j] == a[i]; into[j in m]: sum[i in n] p[i, j] == b[j];"
    )
    value = cp.sum(cp.multiply(cost, p)) - 0.05 * cp.sum(cp.entr(p))
    problem = minimum(value, cp.sum(p, axis=1) == a, cp.sum(p, axis=0) == b)
    return Model(text=text, data={"c": cost, "a": a, "b": b}, problem=problem)


def rate_control() -> Model:
    """Rates of flows that share links (Kelly, Maulloo, Tan, 1998)."""
    random = np.random.default_rng(90)
    uses, capacity = (random.random((12, 30)) < 0.25).astype(float), random.uniform(1, 3, 12)
    uses[0] = 1
    x = cp.Variable(30)
    text = (
        "set L; set F; data R : real[L, F]; data c : real[L]; var x[F] >= 0;"
        "maximize sum[f in F] log(x[f]); subject to link: R @ x <= c;"
    )
    problem = maximum(cp.sum(cp.log(x)), uses @ x <= capacity)
    return Model(text=text, data={"R": uses, "c": capacity}, problem=problem)


def congestion() -> Model:
    """Flows whose delays grow to infinity at the capacities (Bertsekas, Gallager, Data Networks, 1992,
    section 5.4)."""
    random = np.random.default_rng(91)
    edges = [(i, j) for i in range(8) for j in range(8) if i != j and (j - i) % 8 in (1, 2, 3)]
    A = np.zeros((8, len(edges)))
    for k, (i, j) in enumerate(edges):
        A[i, k], A[j, k] = -1, 1
    supply, capacity = np.r_[-2.0, np.zeros(3), 2.0, np.zeros(3)], random.uniform(1, 3, len(edges))
    x = cp.Variable(len(edges))
    text = (
        "set N; set E_; data A : real[N, E_]; data s : real[N]; data c : real[E_]; var x[E_] >= 0;"
        "minimize sum[e in E_] (c[e] / (c[e] - x[e]) - 1);"
        "subject to balance: A @ x == s; below[e in E_]: x[e] <= 0.99 * c[e];"
    )
    delay = cp.sum(cp.multiply(capacity, cp.inv_pos(capacity - x)) - 1)
    problem = minimum(delay, x >= 0, A @ x == supply, x <= 0.99 * capacity)
    return Model(text=text, data={"A": A, "s": supply, "c": capacity}, problem=problem)


def water_filling() -> Model:
    """Power over channels (Boyd, Vandenberghe, 2004, example 5.2)."""
    noise = np.random.default_rng(92).uniform(0.1, 1.5, 50)
    x = cp.Variable(50)
    text = (
        "dim n; data a : real[n]; var x[n] >= 0;"
        "maximize sum[i in n] log(a[i] + x[i]); subject to power: sum(x) <= 10;"
    )
    problem = maximum(cp.sum(cp.log(noise + x)), x >= 0, cp.sum(x) <= 10)
    return Model(text=text, data={"a": noise}, problem=problem)


def many_optima() -> Model:
    """A linear program with a face of optima, redundant and repeated constraints (Bertsimas,
    Tsitsiklis, 1997, chapter 3)."""
    x = cp.Variable(6)
    a = np.array(
        [[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2], [1, 0, 0, 1, 0, 0]]
    )
    b = np.array([2.0, 3, 5, 10, 5])
    text = (
        "dim n; dim m; data a : real[m, n]; data b : real[m]; var x[n] >= 0;"
        "maximize sum(x); subject to row[i in m]: dot(a[i], x) <= b[i]; same: x[1] + x[2] + x[3] == 2;"
    )
    problem = maximum(cp.sum(x), x >= 0, a @ x <= b, x[0] + x[1] + x[2] == 2)
    return Model(text=text, data={"a": a, "b": b}, problem=problem)


def no_feasible_point() -> Model:
    """Supplies below demands: Farkas' certificate (Boyd, Vandenberghe, 2004, section 5.8.3)."""
    cost = np.random.default_rng(93).uniform(1, 2, size=(5, 6))
    p = cp.Variable((5, 6))
    text = (
        "dim n; dim m; data c : real[n, m]; var p[n, m] >= 0; minimize sum[i in n, j in m] c[i, j] * p[i, j];"
        "subject to supply[i in n]: sum[j in m] p[i, j] <= 1; demand[j in m]: sum[i in n] p[i, j] >= 0.9;"
    )
    problem = minimum(cp.sum(cp.multiply(cost, p)), p >= 0, cp.sum(p, axis=1) <= 1, cp.sum(p, axis=0) >= 0.9)
    return Model(text=text, data={"c": cost}, problem=problem)


def no_lower_bound() -> Model:
    """A direction in which a linear program falls for ever (Bertsimas, Tsitsiklis, 1997, section 4.8)."""
    x = cp.Variable(3)
    text = (
        "var x[3]; minimize x[1] - 3 * x[2] + x[3]; subject to a: x[1] - x[2] >= -1; b: x[3] - x[2] "
        ">= -2; c: x[3] >= 0;"
    )
    problem = minimum(x[0] - 3 * x[1] + x[2], x[0] - x[1] >= -1, x[2] - x[1] >= -2, x[2] >= 0)
    return Model(text=text, problem=problem)


def arbitrage() -> Model:
    """A price that no measure explains, so that a riskless gain has no bound (Cornuejols, Tutuncu,
    2006, section 4.1)."""
    payoff = np.array([[1.0, 1, 1], [0.9, 1.0, 1.2], [0.0, 0.1, 0.3], [0.0, 0.0, 0.25]])
    price = np.array([0.98, 1.0, 0.1, 0.12])
    x = cp.Variable(4)
    text = (
        "dim k; data S : table(v: real[k]); data p : real[k]; var x[k];"
        "minimize dot(p, x); subject to safe[s in S]: dot(s.v, x) >= 0;"
    )
    return Model(
        text=text, data={"S": {"v": payoff.T}, "p": price}, problem=minimum(price @ x, payoff.T @ x >= 0)
    )


MODELS = [
    smallest_ball, geometric_median, placement, chebyshev_centre, matrix_game, diet, assignment, optimal_transport, rate_control,
    congestion, water_filling, many_optima, no_feasible_point, no_lower_bound, arbitrage,
]  # fmt: skip
