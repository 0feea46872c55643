"""Certified gaps against the optima of CVXPY: never too small, and small near the optimum."""

import numpy as np
import pytest
from test_kkt import FIT, D, N, X, Y, bound, fit, solved

import fccomodel
from fccomodel import report
from fccomodel.report.certificates import curvature
from fccomodel.report.kkt import lagrangian
from fccomodel.report.point.system import System

SIGNS = np.where(Y > 0, 1.0, -1.0)
LOGISTIC = "E[z ~ D] log1pexp(-z.y * dot(w, z.x))"


def logistic(c, w):
    return c.sum(c.logistic(-c.multiply(Y, X @ w))) / N


#: name -> (text after the variable, objective and constraints in CVXPY, how the gap is proved)
PROBLEMS = {
    "least squares": (f"minimize {FIT};", fit, [], "strong convexity"),
    "ridge": (
        f"minimize {FIT} + 0.1 * sumsq(w);",
        lambda c, w: fit(c, w) + 0.1 * c.sum_squares(w),
        [],
        "strong convexity",
    ),
    "logistic ridge": (
        f"minimize {LOGISTIC} + 0.05 * sumsq(w);",
        lambda c, w: logistic(c, w) + 0.05 * c.sum_squares(w),
        [],
        "strong convexity 0.1",
    ),
    "logistic lasso": (
        f"minimize {LOGISTIC} + 0.02 * norm1(w);",
        lambda c, w: logistic(c, w) + 0.02 * c.norm1(w),
        [],
        "bounded variables",
    ),
    "elastic net": (
        f"minimize {LOGISTIC} + 0.02 * norm1(w) + 0.05 * sumsq(w);",
        lambda c, w: logistic(c, w) + 0.02 * c.norm1(w) + 0.05 * c.sum_squares(w),
        [],
        "strong convexity 0.1",
    ),
    "ball": (
        f"minimize {LOGISTIC}; subject to b: norm2(w) <= 0.5;",
        logistic,
        [lambda c, w: c.norm(w) <= 0.5],
        "bounded",
    ),
    "squared ball": (
        f"minimize {LOGISTIC}; subject to b: sumsq(w) <= 0.25;",
        logistic,
        [lambda c, w: c.sum_squares(w) <= 0.25],
        "strong convexity",
    ),
    "equation": (
        f"minimize {FIT}; subject to e: sum(w) == 1;",
        fit,
        [lambda c, w: c.sum(w) == 1],
        "strong convexity",
    ),
    "inequality": (
        f"minimize sumsq(w) + w[1]; subject to e: {LOGISTIC} <= 0.5;",
        lambda c, w: c.sum_squares(w) + w[0],
        [lambda c, w: logistic(c, w) <= 0.5],
        "strong convexity",
    ),
    "worst group": (
        "minimize max[k in G] E[z ~ D | z.g == k] square(dot(w, z.x) - z.y) + 0.1 * sumsq(w);",
        lambda c, w: (
            c.max(c.hstack([c.sum_squares(X[k::3] @ w - Y[k::3]) * 3 / N for k in range(3)]))
            + 0.1 * c.sum_squares(w)
        ),
        [],
        "strong convexity",
    ),
    "largest squares": (
        "minimize cvar(tail = 0.2)[i in D] square(dot(w, i.x) - i.y);",
        lambda c, w: c.sum_largest(c.square(X @ w - Y), N // 5) / (N // 5),
        [],
        "strong convexity",
    ),
    "worst group alone": (
        "minimize max[k in G] E[z ~ D | z.g == k] square(dot(w, z.x) - z.y);",
        lambda c, w: c.max(c.hstack([c.sum_squares(X[k::3] @ w - Y[k::3]) * 3 / N for k in range(3)])),
        [],
        "strong convexity",
    ),
    "maximise": (
        f"maximize 1 - {FIT} - 0.1 * sumsq(w);",
        lambda c, w: fit(c, w) + 0.1 * c.sum_squares(w) - 1,
        [],
        "strong",
    ),
    "absolute deviations": (
        "minimize mean[i in D] abs(dot(w, i.x) - i.y) + 0.1 * sumsq(w);",
        lambda c, w: c.norm1(X @ w - Y) / N + 0.1 * c.sum_squares(w),
        [],
        "strong convexity 0.2",
    ),
    "least absolute deviations": (
        "minimize 2 * mean[i in D] abs(dot(w, i.x) - i.y) + E[z ~ D] hinge(1 - z.y * dot(w, z.x));",
        lambda c, w: 2 * c.norm1(X @ w - Y) / N + c.sum(c.pos(1 - c.multiply(Y, X @ w))) / N,
        [],
        "bounded variables",
    ),
    "quantile": (
        "minimize E[z ~ D] pinball(z.y - dot(w, z.x), 0.8);",
        lambda c, w: c.sum(0.8 * c.pos(Y - X @ w) + 0.2 * c.neg(Y - X @ w)) / N,
        [],
        "bounded variables",
    ),
    "largest of lines": (
        "minimize E[z ~ D] (max(0.8 * (z.y - dot(w, z.x)) + z.y, 0.2 * (dot(w, z.x) - z.y) - 1, 0) - 5);",
        lambda c, w: c.sum(c.maximum(0.8 * (Y - X @ w) + Y, 0.2 * (X @ w - Y) - 1, 0)) / N - 5,
        [],
        "bounded variables",
    ),
    "logistic": (f"minimize {LOGISTIC};", logistic, [], "near this point"),
    "squared hinge": (
        "minimize E[z ~ D] sqhinge(1 - z.y * dot(w, z.x));",
        lambda c, w: c.sum_squares(c.pos(1 - c.multiply(Y, X @ w))) / N,
        [],
        "near this point",
    ),
    "huber": (
        "minimize E[z ~ D] huber(dot(w, z.x) - z.y, 1);",
        lambda c, w: c.sum(c.huber(X @ w - Y, 1)) / (2 * N),
        [],
        "near this point",
    ),
    "counts": (
        "minimize E[z ~ D] (exp(dot(w, z.x)) - z.y^2 * dot(w, z.x));",
        lambda c, w: (c.sum(c.exp(X @ w)) - Y**2 @ (X @ w)) / N,
        [],
        "near this point",
    ),
    "entropic risk": (
        "minimize log(E[z ~ D] exp(log1pexp(-z.y * dot(w, z.x))));",
        lambda c, w: c.log_sum_exp(c.hstack([np.zeros(N), -c.multiply(Y, X @ w)])) - np.log(N),
        [],
        "near this point",
    ),
    "worst logistic risk": (
        "let risk[k in G] = E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)); minimize max[k in G] risk[k];",
        lambda c, w: c.max(
            c.hstack([c.sum(c.logistic(-c.multiply(Y, X @ w)[k::3])) * 3 / N for k in range(3)])
        ),
        [],
        "near this point",
    ),
    "two risks": (
        f"minimize {LOGISTIC}; subject to c: E[z ~ D] log1pexp(dot(w, z.x)) <= 0.7;",
        logistic,
        [lambda c, w: c.sum(c.logistic(X @ w)) / N <= 0.7],
        "near this point",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_gap_is_never_too_small(name):
    text, objective, constraints, how = PROBLEMS[name]
    best, _ = solved(objective, constraints)
    made = bound(f"var w[d]; {text}")
    sign = 1.0 if made.problem.objective.sense == "minimize" else -1.0
    optimum = sign * report.report(made, {"w": best}).objective
    random = np.random.default_rng(5)
    for size in (0.0, 1e-4, 1e-2, 1.0):
        found = report.report(made, {"w": best + size * random.normal(size=D)})
        assert found.gap is not None
        if found.gap.value is None and "near" in how and size > 1e-2:
            continue  # nothing is known so far from the optimum
        assert found.gap.value is not None, found.gap
        assert sign * found.objective - optimum <= found.gap.value + 1e-8
        assert sign * found.gap.bound <= optimum + 1e-8
        if size == 0:
            assert found.gap.value < 1e-4, found.gap
            assert str(found.gap).startswith(("gap <= ", "the optimum is worse")) and how in found.gap.how


@pytest.mark.parametrize(
    "text, objective, constraints",
    [
        ("var w[d] >= 0; minimize " + FIT, fit, [lambda c, w: w >= 0]),
        (
            "var w[d] in box(-0.2, 0.3); minimize " + LOGISTIC,
            logistic,
            [lambda c, w: c.abs(w - 0.05) <= 0.25],
        ),
        (
            "var w[d] in simplex(d); minimize " + LOGISTIC,
            logistic,
            [lambda c, w: w >= 0, lambda c, w: c.sum(w) == 1],
        ),
        ("var w[d] in ball(0.5); minimize " + LOGISTIC, logistic, [lambda c, w: c.norm(w) <= 0.5]),
    ],
)
def test_simple_sets(text, objective, constraints):
    best, _ = solved(objective, constraints)
    made = bound(text + ";")
    optimum = report.report(made, {"w": best}).objective
    for w in (best, 0.9 * best, best + 0.02):
        found = report.report(made, {"w": w})
        assert found.objective - optimum <= found.gap.value + 1e-7
    assert report.report(made, {"w": best}).gap.value < 1e-3


def test_kinks_inside_an_expectation_make_it_loose_not_wrong():
    best, _ = solved(lambda c, w: c.sum(c.pos(1 - c.multiply(Y, X @ w))) / N + 0.05 * c.sum_squares(w))
    made = bound("var w[d]; minimize E[z ~ D] hinge(1 - z.y * dot(w, z.x)) + 0.05 * sumsq(w);")
    optimum = report.report(made, {"w": best}).objective
    for size in (0.0, 1e-3, 0.1):
        found = report.report(made, {"w": best + size * np.ones(D)})
        assert found.objective - optimum <= found.gap.value + 1e-8


@pytest.mark.parametrize("nu", [1e-2, 1.0, 100.0])
def test_the_level_set_of_an_infeasible_point_holds_no_optimum(nu):
    """Of a norm under a bound on the loss: the optimum is worse than the objective at points that
    violate it."""
    best, _ = solved(lambda c, w: c.norm1(w), [lambda c, w: logistic(c, w) <= 0.6])
    made = bound(f"var w[d]; minimize norm1(w); subject to b: {LOGISTIC} <= 0.6;")
    for scale in (0.0, 1e-3, 0.3, 0.9, 0.9999, 1.0, 1.2):
        found = report.report(made, {"w": scale * best}, multipliers={"b": nu}).gap
        assert found.value >= (scale - 1) * np.abs(best).sum() - 1e-7


def test_why_there_is_none():
    flat = report.report(bound(f"var w[d]; minimize {LOGISTIC};"), {"w": np.zeros(D)}).gap
    assert flat.value == pytest.approx(np.log(2)) and flat.bound == 0 and "no bound on `w`" in str(flat)
    bent = report.report(bound("var w[d]; minimize E[z ~ D] tanh(dot(w, z.x));"), {"w": np.zeros(D)}).gap
    assert bent.value == pytest.approx(1.0) and "the objective is not proved to be convex" in str(bent)
    open_ended = report.report(bound("var w[d]; minimize E[z ~ D] dot(w, z.x)^3;"), {"w": np.zeros(D)}).gap
    assert open_ended.value is None and "not proved to be convex" in str(open_ended)
    assert report.report(bound(f"var w[d]; minimize {FIT};"), {"w": np.zeros(D)}, judging=True).gap is None


# ------------------------------------------------------------------------- unregularised intercepts
HALVES = X[Y > 0], X[Y <= 0]
#: loss of a score -> in CVXPY
LOSSES = {
    "log1pexp(S)": lambda c, s: c.logistic(s),
    "hinge(1 + S)": lambda c, s: c.pos(1 + s),
    "square(1 + S)": lambda c, s: c.square(1 + s),
}


@pytest.mark.parametrize("name", LOSSES)
def test_an_intercept_is_bounded_by_the_losses_of_both_classes(name):
    """Neyman and Pearson's problem: the objective bounds b above, the constraint below, the norms w."""
    c = pytest.importorskip("cvxpy")
    w, b, loss = c.Variable(D), c.Variable(), LOSSES[name]
    false = c.sum(loss(c, HALVES[1] @ w + b)) / len(HALVES[1]) + 0.01 * c.sum_squares(w)
    missed = c.sum(loss(c, -(HALVES[0] @ w) - b)) / len(HALVES[0])
    problem = c.Problem(c.Minimize(false), [missed <= 0.5])
    best = problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    text = f"""var w[d]; var b; minimize E[z ~ D | z.y <= 0] {name} + 0.01 * sumsq(w);
    subject to m: E[z ~ D | z.y > 0] {name.replace("S", "-T")} <= 0.5;"""
    made = bound(text.replace("S", "dot(w, z.x) + b").replace("T", "(dot(w, z.x) + b)"))
    random, near = np.random.default_rng(3), []
    for size in (0.0, 0.0, 1e-6, 1e-3, 0.1, 1.0, 5.0):
        nu = float(problem.constraints[0].dual_value) if size < 0.1 else float(10 ** random.uniform(-2, 2))
        point = {"w": w.value + size * random.normal(size=D), "b": b.value + size * random.normal()}
        found = report.report(made, point, multipliers={"m": nu})
        assert found.objective - best <= found.gap.value + 1e-7, found.gap
        near.append(found.gap.value)
    assert near[0] < 1e-4 and "no bound" not in str(found.gap)


# ----------------------------------------------------------------------------------------- Hessians
def quadratic(variables: int) -> tuple[System, list[lagrangian.Term]]:
    """A fit of so many variables of one number each."""
    names = [f"v{k}" for k in range(variables)]
    sums = " + ".join(f"{name} * z.x[{k % D + 1}]" for k, name in enumerate(names))
    made = bound(
        f"{' '.join(f'var {name};' for name in names)} var w[d]; minimize E[z ~ D] ({sums} + dot(w, z.x) "
        "- z.y)^2;"
    )
    system = System(made, {**dict.fromkeys(names, np.zeros(())), "w": np.zeros(D)}, seed=0)
    root = lagrangian.roots(system, np.zeros(0))[0]
    return system, [(root, root.expr)]


def test_a_hessian_takes_a_few_passes_however_many_variables_there_are(monkeypatch):
    passes, found = [], lagrangian.differentiable_sum
    monkeypatch.setattr(lagrangian, "differentiable_sum", lambda *args: passes.append(1) or found(*args))
    counts = []
    for variables in (2, 20):
        system, terms = quadratic(variables)
        hessian = lagrangian.curvature(system, terms)
        rows = np.column_stack([*(X[:, k % D] for k in range(variables)), X])
        assert hessian == pytest.approx(2 * rows.T @ rows / N, rel=1e-9)
        counts.append(len(passes))
        passes.clear()
    assert counts == [3, 3]


@pytest.mark.slow
def test_a_hessian_that_does_not_depend_on_a_param_is_kept_for_its_other_values(monkeypatch):
    made, found = [], lagrangian.curvature
    monkeypatch.setattr(lagrangian, "curvature", lambda *args: made.append(1) or found(*args))
    weighted = "var w[d]; minimize {}E[z ~ D] square(dot(w, z.x) - z.y) + {}norm1(w);"
    for weights, expected in ((("", "lam * "), 1), (("lam * ", ""), 2)):
        text = f"dim d; data D: table(x: real[d], y: real); param lam >= 0; {weighted.format(*weights)}"
        rows = {"x": X, "y": X[:, 0]}
        swept = fccomodel.compile(text).bind(D=rows, lam=0.5).sweep(lam=[0.5, 0.4])
        assert all(0 <= found_at.gap.value < 1e-6 for found_at in (p.outcome.report for p in swept.points))
        assert len(made) == expected
        made.clear()


@pytest.mark.parametrize(
    "twice", [lambda *_: None, lambda *_: np.eye(2 + D), lambda *_: np.full((2 + D, 2 + D), np.nan)]
)
def test_a_hessian_that_cannot_be_differentiated_or_is_not_one_is_found_by_differences(monkeypatch, twice):
    system, terms = quadratic(2)
    expected = lagrangian.curvature(system, terms)
    monkeypatch.setattr(lagrangian, "_twice", twice)
    assert lagrangian.curvature(system, terms) == pytest.approx(expected, rel=1e-9)


def test_the_hessian_of_draws_is_kept_for_their_seed_alone(monkeypatch):
    """With other draws it is another one, also in a report on the same data."""
    found, kept = [], curvature._of_terms

    def beside(system, terms, weights, spend):
        found.append((kept(system, terms, weights, spend), lagrangian.curvature(system, terms, weights)))
        return found[-1][0]

    monkeypatch.setattr(curvature, "_of_terms", beside)
    posed = bound("var v[2]; minimize E[e ~ normal(0, 1)[2]] square(dot(v, e) - 1);")
    for seed in (0, 5):
        report.report(posed, {"v": np.array([0.1, 0.2])}, seed=seed)
    assert len(found) > 1 and all(np.array_equal(*pair) for pair in found)


def test_a_gap_that_bounds_of_the_variables_make_small_needs_no_hessian(monkeypatch):
    """As at an optimum on the simplex; elsewhere it takes one."""
    asked, found = [], curvature.constant_hessian
    monkeypatch.setattr(curvature, "constant_hessian", lambda *args: asked.append(1) or found(*args))
    posed, constraints = (
        bound(f"var w[d] in simplex(d); minimize {FIT};"),
        [lambda c, w: w >= 0, lambda c, w: c.sum(w) == 1],
    )
    best, _ = solved(fit, constraints)
    at_best = report.report(posed, {"w": np.maximum(best, 0) / np.maximum(best, 0).sum()}).gap
    assert not asked and abs(at_best.value) <= 1e-8 and at_best.how == "bounded variables"
    assert report.report(posed, {"w": np.full(D, 1 / D)}).gap.value > 1e-3 and asked
