"""Subgradients of kinks inside expectations, chosen row by row: optima of CVXPY read as solved, other
points do not."""

import time
import warnings

import cvxpy as cp
import numpy as np
import pytest
import torch
from test_kkt import bound

import fccomodel
from fccomodel import report
from fccomodel.core.work import Meter
from fccomodel.evaluation.interpret import evaluate
from fccomodel.numerics import min_norm
from fccomodel.report.kinks.weights import WeightSet
from fccomodel.report.kkt import multipliers
from fccomodel.report.kkt.groups import Cone, KinkWeights, Simple, Weighing
from fccomodel.report.kkt.least_squares import Squares

HEAD = "model m; dim d; set G; data D : table(x: real[d], y: real, g: G); var w[d];\n"
N, D = 240, 6
RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(N, D))
SIGNS = np.sign(X @ np.ones(D) / 2 + RANDOM.normal(size=N))
NUMBERS = X @ np.ones(D) + RANDOM.standard_t(2, size=N)
GROUPS = np.array(["a", "b", "c"])[np.arange(N) % 3]
MARGIN = "hinge(1 - z.y * dot(w, z.x))"


def hinges(w):
    return cp.pos(1 - cp.multiply(SIGNS, X @ w))


#: name -> (text, labels, objective in CVXPY, constraints)
PROBLEMS = {
    "svm": (
        f"minimize E[z ~ D] {MARGIN} + 0.01 * sumsq(w);",
        SIGNS,
        lambda w: cp.sum(hinges(w)) / N + 0.01 * cp.sum_squares(w),
        [],
    ),
    "median": (
        "minimize E[z ~ D] abs(w[1] - z.y);",
        NUMBERS,
        lambda w: cp.sum(cp.abs(w[0] - NUMBERS)) / N + cp.sum_squares(w[1:]),
        [],
    ),
    "quantile": (
        "minimize E[z ~ D] pinball(z.y - dot(w, z.x), 0.3);",
        NUMBERS,
        lambda w: cp.sum(0.3 * (NUMBERS - X @ w) + cp.pos(X @ w - NUMBERS)) / N,
        [],
    ),
    "l1 regression": (
        "minimize E[z ~ D] abs(dot(w, z.x) - z.y);",
        NUMBERS,
        lambda w: cp.sum(cp.abs(X @ w - NUMBERS)) / N,
        [],
    ),
    "insensitive": (
        "minimize E[z ~ D] eps_insensitive(dot(w, z.x) - z.y, 0.5);",
        NUMBERS,
        lambda w: cp.sum(cp.pos(cp.abs(X @ w - NUMBERS) - 0.5)) / N,
        [],
    ),
    "groups": (
        f"minimize mean[k in G] E[z ~ D | z.g == k] {MARGIN} + 0.01 * sumsq(w);",
        SIGNS,
        lambda w: cp.sum(hinges(w)) / N + 0.01 * cp.sum_squares(w),
        [],
    ),
    "composed": (
        f"minimize (E[z ~ D] {MARGIN})^2 + 0.01 * sumsq(w);",
        SIGNS,
        lambda w: cp.square(cp.sum(hinges(w)) / N) + 0.01 * cp.sum_squares(w),
        [],
    ),
    "constraint": (
        f"minimize sumsq(w - 1); subject to c: E[z ~ D] {MARGIN} <= 0.6;",
        SIGNS,
        lambda w: cp.sum_squares(w - 1),
        [lambda w: cp.sum(hinges(w)) / N <= 0.6],
    ),
}

RISK = f"E[z ~ D | z.g == k] {MARGIN}"


def risks(w):
    return cp.hstack([cp.sum(hinges(w)[GROUPS == k]) / np.sum(GROUPS == k) for k in "abc"])


def tail(values, share):
    s = cp.Variable()
    return s + cp.sum(cp.pos(values - s)) / (share * values.size)


#: kinks inside terms of other kinks, and ones at which all terms are equal
PROBLEMS |= {
    "all rows tied": (
        "minimize cvar(tail = 0.2)[z ~ D] sqhinge(1 - z.y * dot(w, z.x)) + 3 * norm2(w);",
        SIGNS,
        lambda w: tail(cp.square(hinges(w)), 0.2) + 3 * cp.norm(w),
        [],
    ),
    "all rows at theirs": (
        "minimize E[z ~ D] (square(dot(w, z.x) - z.y) + 2 * norm1(z.y * w));",
        NUMBERS,
        lambda w: cp.sum_squares(X @ w - NUMBERS) / N + 2 * np.abs(NUMBERS).mean() * cp.norm1(w),
        [],
    ),
    "some entries of all rows at theirs": (
        "minimize E[z ~ D] (square(dot(w, z.x) - z.y) + 0.8 * norm1(z.y * w));",
        NUMBERS,
        lambda w: cp.sum_squares(X @ w - NUMBERS) / N + 0.8 * np.abs(NUMBERS).mean() * cp.norm1(w),
        [],
    ),
    "largest below a hinge": (
        "minimize E[z ~ D] hinge(1 + max[k in d | k != 2] (w[k] * z.x[k]) - z.y * dot(w, z.x)) + 0.05 * "
        "sumsq(w);",
        SIGNS,
        lambda w: (
            cp.sum(
                cp.pos(
                    1
                    + cp.max(cp.multiply(X, w[None, :])[:, [0, 2, 3, 4, 5]], axis=1)
                    - cp.multiply(SIGNS, X @ w)
                )
            )
            / N
            + 0.05 * cp.sum_squares(w)
        ),
        [],
    ),
    "one tail below all rows": (
        "minimize E[z ~ D] hinge(1 + cvar(tail = 0.05)[v in D] dot(w, v.x) - 2 * z.y * dot(w, z.x)) + "
        "0.05 * sumsq(w);",
        SIGNS,
        lambda w: (
            cp.sum(cp.pos(1 + tail(X @ w, 0.05) - 2 * cp.multiply(SIGNS, X @ w))) / N
            + 0.05 * cp.sum_squares(w)
        ),
        [],
    ),
    "largest of absolute values": (
        "minimize E[z ~ D] max(abs(dot(w, z.x) - z.y) - min(w[1], w[2] + 1), abs(w[1]), 2 * w[2] - 1);",
        NUMBERS,
        lambda w: (
            cp.sum(
                cp.maximum(cp.abs(X @ w - NUMBERS) - cp.minimum(w[0], w[1] + 1), cp.abs(w[0]), 2 * w[1] - 1)
            )
            / N
        ),
        [],
    ),
    "worst group": (f"minimize max[k in G] {RISK};", SIGNS, lambda w: cp.max(risks(w)), []),
    "worst groups": (
        f"minimize cvar(tail = 0.5)[k in G] {RISK} + 0.01 * norm1(w);",
        SIGNS,
        lambda w: cp.cvar(risks(w), 0.5) + 0.01 * cp.norm1(w),
        [],
    ),
    "group weights": (
        f"minimize max[q in simplex(G)] (sum[k in G] q[k] * {RISK}) + 0.001 * sumsq(w);",
        SIGNS,
        lambda w: cp.max(risks(w)) + 0.001 * cp.sum_squares(w),
        [],
    ),
    "worst group bounded": (
        f"minimize sumsq(w - 1); subject to c: max[k in G] {RISK} <= 0.7;",
        SIGNS,
        lambda w: cp.sum_squares(w - 1),
        [lambda w: cp.max(risks(w)) <= 0.7],
    ),
    "two maxima": (
        "minimize max(abs(w[1] - 1), abs(w[2]) + abs(w[1] + 1), E[z ~ D] abs(w[3] - z.y) - 1) + 0.001 * "
        "sumsq(w);",
        NUMBERS,
        lambda w: (
            cp.maximum(
                cp.abs(w[0] - 1), cp.abs(w[1]) + cp.abs(w[0] + 1), cp.sum(cp.abs(w[2] - NUMBERS)) / N - 1
            )
            + 0.001 * cp.sum_squares(w)
        ),
        [],
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_optima_read_as_solved(name):
    text, labels, objective, constraints = PROBLEMS[name]
    w = cp.Variable(D)
    problem = cp.Problem(cp.Minimize(objective(w)), [made(w) for made in constraints])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    made = bound(text, head=HEAD, data={"D": {"x": X, "y": labels, "g": GROUPS}})
    found = report.report(made, {"w": w.value})
    assert found.epsilon <= 1e-6 and found.verdict.startswith("Solved to high accuracy")
    away = report.report(made, {"w": w.value + 0.03})
    assert away.epsilon > 1e-3
    for at in (found, away):
        if at.gap.value is not None:
            assert at.objective - best <= at.gap.value + 1e-8


TAIL = "cvar(tail = 0.1)[z ~ D] (-dot(w, z.x))"


#: name -> (the variable's set, text, objective in CVXPY, constraints)
SETS = {
    "tail": (
        "in simplex(d)",
        f"minimize {TAIL};",
        lambda w: tail(-X @ w, 0.1),
        [lambda w: w >= 0, lambda w: cp.sum(w) == 1],
    ),
    "tail bounded": (
        "in simplex(d)",
        f"maximize E[z ~ D] z.x[1] * w[1]; subject to c: {TAIL} <= 0.9;",
        lambda w: -np.mean(X[:, 0]) * w[0],
        [lambda w: w >= 0, lambda w: cp.sum(w) == 1, lambda w: tail(-X @ w, 0.1) <= 0.9],
    ),
    "stock": (
        ">= 0, <= 2.5",
        "minimize E[z ~ D] (sum[i in d] (0.3 * w[i] - min(w[i], abs(z.x[i]))));",
        lambda w: 0.3 * cp.sum(w) - cp.sum([cp.sum(cp.minimum(w[i], np.abs(X[:, i]))) for i in range(D)]) / N,
        [lambda w: w >= 0, lambda w: w <= 2.5],
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_optima_on_simple_sets_read_as_solved(name):
    """Linear programs: weights of rows, multipliers and normals of the sets are found together, exactly."""
    domain, text, objective, constraints = SETS[name]
    w = cp.Variable(D)
    problem = cp.Problem(cp.Minimize(objective(w)), [made(w) for made in constraints])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    head = HEAD.replace("var w[d];", f"var w[d] {domain};")
    made = bound(text, head=head, data={"D": {"x": X, "y": NUMBERS, "g": GROUPS}})
    began = time.process_time()
    found = report.report(made, {"w": w.value})
    assert found.epsilon <= 1e-6 and time.process_time() - began < 10
    assert report.report(made, {"w": np.abs(w.value[::-1])}).epsilon > 1e-3


def test_a_subgradient_at_a_distance_is_charged_for_it():
    """At distance t of its kink, |t| has the subgradient q with the error (1 - q) t."""
    made = bound(
        "minimize E[z ~ D] abs(w[1] - z.y);",
        head=HEAD,
        data={"D": {"x": X[:2], "y": [0.0, 2.0], "g": GROUPS[:2]}},
    )
    w = np.zeros(D)
    assert report.report(made, {"w": w}).stationarity < 1e-12  # the median of two numbers
    w[0] = -1e-5
    found = report.report(made, {"w": w})
    assert found.stationarity == pytest.approx(1e-5, rel=1e-2) == found.slack


def test_many_rows_are_quick():
    """100,000 rows: those near a kink are weighed alone."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100_000, 8)), rng.standard_t(2, size=100_000)
    made = bound(
        "minimize E[z ~ D] abs(w[1] - z.y);",
        head=HEAD,
        data={"D": {"x": x, "y": y, "g": np.full(len(y), "a")}},
    )
    began = time.process_time()
    found = report.report(made, {"w": np.r_[np.sort(y)[50_000], np.zeros(7)]})
    assert found.epsilon < 1e-8 and time.process_time() - began < 10


def test_margins_are_distances_to_a_kink():
    t = np.array([[3.0, 1.0, 2.5]])
    assert WeightSet(kind="simplex").margin(t) == pytest.approx([0.5])
    assert WeightSet(kind="simplex", high=0.5).margin(t) == pytest.approx([1.5])
    assert WeightSet(kind="box", low=-1).margin(-t) == pytest.approx([1.0])
    assert WeightSet(kind="cross").margin(-t) == pytest.approx([0.5])
    assert WeightSet(kind="ball").margin(t) == pytest.approx([np.linalg.norm(t)])


def squares(matrix, offset, groups):
    size = matrix.shape[1]
    return Squares(
        matrix=matrix, offset=offset, owner=np.zeros(size, int), rate=np.zeros(size), constant=np.zeros(1),
        diagonal=np.zeros(size), groups=groups,
    )  # fmt: skip


def test_least_squares_under_bounds():
    """min |M z + b| with 0 <= z_j <= 1 and with -z_0 <= z_j <= 2 z_0."""
    rng = np.random.default_rng(1)
    matrix, offset, size = rng.normal(size=(20, 60)), 5 * rng.normal(size=20), 60
    matrix, offset = np.vstack([matrix, np.eye(60)]), np.r_[offset, rng.normal(size=60)]
    box = [Weighing(part=KinkWeights(at=np.arange(size)[None], weights=WeightSet(kind="box")))]
    cone = [
        Cone(
            at=0,
            parts=(KinkWeights(at=np.arange(1, size)[None], weights=WeightSet(kind="box", low=-1, high=2)),),
        )
    ]
    z = cp.Variable(size)
    for groups, within in ((box, [z >= 0, z <= 1]), (cone, [z[0] >= 0, z[1:] <= 2 * z[0], z[1:] >= -z[0]])):
        best = cp.Problem(cp.Minimize(cp.norm(matrix @ z + offset)), within).solve(solver="CLARABEL")
        posed = squares(matrix, offset, groups)
        by_vertices = multipliers._by_vertices(posed, project(groups, size), Meter())
        by_cones = multipliers._by_cones(posed, project(groups, size), Meter())
        for found in (by_vertices, by_cones):
            assert found.exact
            assert np.linalg.norm(matrix @ found.z + offset) == pytest.approx(best, rel=1e-6)
            inside = found.z.copy()
            for group in groups:
                group.project(inside)
            np.testing.assert_allclose(inside, found.z, atol=1e-9)


def nested():
    """A multiplier with the weights of a capped simplex, of a box and, inside the simplex's first
    weight, of two simplexes; the same in the objective; a free multiplier and one alone."""
    inner = KinkWeights(at=np.arange(7, 11).reshape(2, 2), weights=WeightSet(kind="simplex"))
    tail = KinkWeights(
        at=np.arange(1, 5)[None], weights=WeightSet(kind="simplex", high=0.4), inside={1: (inner,)}
    )
    cone = Cone(
        at=0,
        parts=(tail, KinkWeights(at=np.arange(5, 7).reshape(2, 1), weights=WeightSet(kind="box", low=-1))),
    )
    below = KinkWeights(at=np.arange(14, 16).reshape(2, 1), weights=WeightSet(kind="box", low=-0.5))
    worst = Weighing(
        part=KinkWeights(
            at=np.arange(11, 14)[None], weights=WeightSet(kind="simplex"), inside={12: (below,)}
        ),
        scale=2.0,
    )
    return [cone, worst, Simple(at=np.array([16, 17]), free=np.array([True, False]))]


def test_least_squares_over_nested_sets():
    """Against the vertices of the same sets."""
    rng, groups, size = np.random.default_rng(4), nested(), 18
    for _ in range(5):
        posed = squares(
            np.vstack([rng.normal(size=(6, size)), 0.1 * np.eye(size)]), 2 * rng.normal(size=6 + size), groups
        )
        z, exact = min_norm.nearest(
            *posed.stacked(), multipliers._generators(groups, np.zeros(size)), project(groups, size), Meter()
        )
        by_cones = multipliers._by_cones(posed, project(groups, size), Meter())
        assert exact and by_cones.exact
        assert np.linalg.norm(posed.residual(by_cones.z)) == pytest.approx(
            np.linalg.norm(posed.residual(z)), rel=1e-6
        )


def project(groups, size):
    z = np.zeros(size)
    for group in groups:
        group.project(z)
    return z


NET = "(sum[k in H] v[k] * relu(dot(W[k], z.x)))"


@pytest.mark.parametrize(
    "text",
    [
        f"E[z ~ D] pos(1 - z.y * {NET})",
        f"E[z ~ D] min(1, pos(1 - z.y * {NET}))",
        f"E[z ~ D] min(z.y * exp({NET}), z.y * clip(exp({NET}), 0.9, 1.1))",
    ],
)
def test_kinks_inside_those_of_rows_have_subgradients_too(text):
    """At a point made stationary by a linear term, from one choice of all subgradients, no other
    choice is needed."""
    random = np.random.default_rng(3)
    x, y = random.normal(size=(12, 3)), np.sign(random.normal(size=12))
    W, v = random.normal(size=(2, 3)), np.array([0.7, -0.4])
    x[0] -= W[0] * (W[0] @ x[0]) / (W[0] @ W[0])  # a row at the inner kink
    x[1] -= W[1] * (W[1] @ x[1]) / (W[1] @ W[1])
    head = (
        "dim d; set H = {1, 2}; data D : table(x: real[d], y: real); data s : real[H, d]; data t : real[H];"
    )
    whole = f"{head} var W[H, d]; var v[H]; minimize ({text}) - sum[k in H] (dot(s[k], W[k]) + t[k] * v[k]);"
    point = {"W": W, "v": v}

    def slopes(away):
        """The gradient where rows are moved off their kinks to one side."""
        moved = x.copy()
        moved[0] += away * W[0]
        moved[1] -= away * W[1]
        data = {"D": {"x": moved, "y": y}, "s": np.zeros((2, 3)), "t": np.zeros(2)}
        problem = fccomodel.compile(whole).bind(data=data).bound
        leaves = {name: torch.tensor(value, requires_grad=True) for name, value in point.items()}
        value = evaluate(problem, problem.problem.objective.expr, leaves)
        return np.concatenate(
            [g.numpy().ravel() for g in torch.autograd.grad(value, [leaves["W"], leaves["v"]])]
        )

    mixed = 0.3 * slopes(1e-9) + 0.7 * slopes(-1e-9)
    data = {"D": {"x": x, "y": y}, "s": mixed[:6].reshape(2, 3), "t": mixed[6:]}
    found = report.report(fccomodel.compile(whole).bind(data=data).bound, point)
    assert found.stationarity < 1e-6 and not any("one subgradient" in note for note in found.notes)


def test_tail_means_of_groups_have_weights():
    """Each group has a list of its own; the largest of their tail means at its optimum."""
    random = np.random.default_rng(5)
    g, r = np.array(["a"] * 30 + ["b"] * 45), random.normal(size=(75, 4))
    x, t = cp.Variable(4, nonneg=True), cp.Variable(2)
    tails = [
        t[k] + cp.sum(cp.pos(-r[g == name] @ x - t[k])) / (0.2 * (g == name).sum())
        for k, name in enumerate("ab")
    ]
    cp.Problem(cp.Minimize(cp.maximum(*tails)), [cp.sum(x) == 1]).solve(
        solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11
    )
    text = (
        "dim d; set G; data R : table(r: real[d], g: G); var x[d] in simplex(d);"
        "minimize max[k in G] cvar(tail = 0.2)[z ~ R | z.g == k] -dot(z.r, x);"
    )
    found = report.report(
        fccomodel.compile(text).bind(data={"R": {"r": r, "g": g}}).bound, {"x": x.value / x.value.sum()}
    )
    assert found.stationarity < 1e-5 and not any("too many terms" in note for note in found.notes)


@pytest.mark.parametrize("of", ["({})", "pos(1 + {})"])
def test_what_cancels_at_kinks_bent_both_ways_is_no_solution(of):
    """Both are increasing functions of x: 0 is in the sum of their subdifferentials, not in that of
    their sum."""
    text = of.format("relu(z.a * x) - relu(-z.a * x)")
    problem = fccomodel.compile(f"data D : table(a: real); var x; minimize E[z ~ D] {text};").bind(
        data={"D": {"a": np.ones(2)}}
    )
    found = report.report(problem.bound, {"x": np.array(0.0)})
    assert (
        found.stationarity < 1e-9
        and not found.solved
        and found.better is not None
        and float(found.better["x"]) < 0
    )


def test_centres_that_coincide_part():
    """All centres begin at the origin, and the gradients of those that coincide are the same."""
    p = np.random.default_rng(0).normal(size=(200, 2))
    p += 3 * np.eye(4)[np.random.default_rng(0).integers(0, 4, 200)][:, :2]
    text = (
        "set K = 1 .. 3; data D : table(p: real[2]); var c[K, 2]; minimize E[z ~ D] min[k in K] "
        "sumsq(c[k] - z.p);"
    )
    found = fccomodel.compile(text).bind(data={"D": {"p": p}}).solve(seed=0)
    assert found.report.solved and found.objective == pytest.approx(
        1.6101, rel=1e-4
    )  # scikit-learn's, of twenty starts


def test_a_root_of_0_that_no_variable_moves_has_derivative_0():
    """As of the distance of a point to itself, under any metric."""
    text = "data T : table(n: real[2]); var w[2] >= 0; maximize (E[z ~ T] sqrt(dot(w, z.n))) - sum(w);"
    n = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    problem = fccomodel.compile(text).bind(data={"T": {"n": n}})
    found = report.report(problem.bound, {"w": np.full(2, 1 / 36)})
    assert found.stationarity < 1e-12
    with pytest.raises(fccomodel.FccoError, match="F0701"):
        report.report(problem.bound, {"w": np.zeros(2)})


def test_all_tied_terms_have_weights_of_their_own():
    """Of one row with more than 600 ties all are kept; of many rows at most 600 each."""
    half = WeightSet(kind="simplex", high=1 / 500)
    assert half.narrowed(np.zeros((1, 5_000)), 20)[1].shape == (1, 5_000)
    assert half.narrowed(np.zeros((100, 5_000)), 20)[1].shape == (100, 600)
