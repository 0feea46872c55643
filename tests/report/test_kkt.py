"""The KKT report against closed forms, CVXPY and the acceptance reference."""

import importlib
import json
import sys
import warnings

import numpy as np
import pytest
import torch
from support.places import SHARED

from fccomodel import report as kkt
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.core.work import Meter
from fccomodel.data import bind
from fccomodel.data.bound import Bound
from fccomodel.language import check, parse
from fccomodel.library import regularisers
from fccomodel.report.kinks.weights import WeightSet
from fccomodel.report.kkt import groups, optimality
from fccomodel.report.point import pairs
from fccomodel.report.point import rows as rows_of
from fccomodel.report.point import system as kkt_system

torch.set_num_threads(1)
RANDOM = np.random.default_rng(3)
N, D = 60, 4
X = RANDOM.normal(size=(N, D))
Y = X @ np.array([1.0, -0.5, 0.0, 0.2]) + 0.3 * RANDOM.normal(size=N)
G = np.array(["a", "b", "c"])[np.arange(N) % 3]
GRAM, CROSS = X.T @ X / N, X.T @ Y / N
HEAD = "model m; dim d; set G; data D : table(x: real[d], y: real, g: G); param r >= 0 default 0.1;\n"
FIT = "E[z ~ D] square(dot(w, z.x) - z.y)"


def bound(text: str, head: str = HEAD, **options) -> Bound:
    source = Source(text=head + text)
    return bind.bind(
        check.check(parse.parse(source), source), **({"data": {"D": {"x": X, "y": Y, "g": G}}} | options)
    )


def report(text: str, w, multipliers=None, **options) -> kkt.KKTReport:
    return kkt.report(bound(text, **options), {"w": np.asarray(w, float)}, multipliers=multipliers)


def fit_gradient(w: np.ndarray) -> np.ndarray:
    return 2 * (GRAM @ w - CROSS)


def solved(objective, constraints=()):
    """(w, duals) of a problem in CVXPY; ``objective`` and ``constraints`` are functions of (cvxpy, w)."""
    cvxpy = pytest.importorskip("cvxpy")
    w = cvxpy.Variable(D)
    made = [constraint(cvxpy, w) for constraint in constraints]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of accuracy beyond the solver's own standard
        options = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
        cvxpy.Problem(cvxpy.Minimize(objective(cvxpy, w)), made).solve(solver="CLARABEL", **options)
    return w.value, [float(np.atleast_1d(constraint.dual_value)[0]) for constraint in made]


def on_ball(square):
    """The minimiser of the fit with sumsq(w) <= square, and its multiplier: (GRAM + nu I) w = CROSS.

    It is exact to rounding. A conic solver finds such a point only to the root of its accuracy.
    """
    values, vectors = np.linalg.eigh(GRAM)
    along = vectors.T @ CROSS
    low, high = 0.0, np.linalg.norm(CROSS) / np.sqrt(square)
    for _ in range(200):
        nu = (low + high) / 2
        if np.sum((along / (values + nu)) ** 2) > square:
            low = nu
        else:
            high = nu
    return vectors @ (along / (values + nu)), nu


def fit(cvxpy, w):
    return cvxpy.sum_squares(X @ w - Y) / N


# ---------------------------------------------------------------------------------- smooth problems
def test_a_smooth_function():
    w = RANDOM.normal(size=D)
    found = report(f"var w[d]; minimize {FIT};", w)
    assert found.stationarity == found.epsilon == pytest.approx(np.linalg.norm(fit_gradient(w)))
    assert found.objective == pytest.approx(np.mean((X @ w - Y) ** 2))
    best = report(f"var w[d]; minimize {FIT};", np.linalg.solve(GRAM, CROSS))
    assert best.epsilon < 1e-13 and best.verdict.startswith(
        "Solved to high accuracy: an ε-KKT point with ε = "
    )


def test_maximising_reports_the_objective_as_written():
    w = RANDOM.normal(size=D)
    small, large = report(f"var w[d]; minimize {FIT};", w), report(f"var w[d]; maximize 3 - {FIT};", w)
    assert large.objective == pytest.approx(3 - small.objective)
    assert large.stationarity == pytest.approx(small.stationarity)


def test_multipliers_are_the_duals():
    text = (
        f"var w[d]; minimize {FIT}; subject to size: sumsq(w) <= 0.5; first: w[1] >= 0.6; loose: w[2] <= 5;"
    )
    w, duals = solved(
        fit, [lambda c, w: c.sum_squares(w) <= 0.5, lambda c, w: w[0] >= 0.6, lambda c, w: w[1] <= 5]
    )
    found = report(text, w)
    assert found.epsilon < 1e-4  # of that solver's point
    assert [row.multiplier for row in found.constraints.values()] == pytest.approx(duals, abs=1e-4)
    assert found.constraints["loose"].value == pytest.approx(w[1] - 5)
    assert found.own is None


def test_maximising_has_the_multipliers_of_the_minimised_problem():
    w, dual = on_ball(0.5)
    assert solved(fit, [lambda c, w: c.sum_squares(w) <= 0.5])[1][0] == pytest.approx(dual, rel=1e-4)
    found = report(f"var w[d]; maximize -{FIT}; subject to size: sumsq(w) <= 0.5;", w)
    assert found.epsilon < 1e-12
    assert found.constraints["size"].multiplier == pytest.approx(dual, rel=1e-9) and dual > 0.01


def test_the_solver_is_judged_with_its_own_multipliers():
    w, dual = on_ball(0.5)
    text = f"var w[d]; minimize {FIT}; subject to size: sumsq(w) <= 0.5;"
    good, bad = report(text, w, {"size": dual}), report(text, w, {"size": dual + 1})
    assert good.own["stationarity"] < 1e-12
    assert bad.own["stationarity"] == pytest.approx(np.linalg.norm(2 * w), rel=1e-9)
    assert bad.stationarity < 1e-12
    without = report(text, w, {"size": 0.0}).own["stationarity"]
    assert without == pytest.approx(dual * np.linalg.norm(2 * w), rel=1e-9)
    assert report(text, w, {}).own is None


def test_the_best_multipliers_are_no_worse_than_the_solvers_own(monkeypatch):
    """Where a search among many dependent gradients ends early."""
    w, dual = on_ball(0.5)
    search = kkt.optimum

    def early(system, shared, end, multipliers=None, **options):
        return search(system, shared, end, {"size": 0.0} if multipliers is None else multipliers)

    monkeypatch.setattr(kkt, "optimum", early)
    found = report(f"var w[d]; minimize {FIT}; subject to size: sumsq(w) <= 0.5;", w, {"size": dual})
    assert found.epsilon < 1e-12 and found.constraints["size"].multiplier == pytest.approx(dual)


def test_equalities_have_multipliers_of_either_sign():
    text = f"var w[d]; minimize {FIT}; subject to total: sum(w) == 1; pair: w[1] - w[2] == 0.2;"
    w, duals = solved(fit, [lambda c, w: c.sum(w) == 1, lambda c, w: w[0] - w[1] == 0.2])
    found = report(text, w)
    assert found.epsilon < 1e-5
    assert [row.multiplier for row in found.constraints.values()] == pytest.approx(duals, abs=1e-5)
    assert min(duals) < 0
    off = report(text, w - 0.01)
    assert off.feasibility == pytest.approx(0.04) and off.constraints["total"].value == pytest.approx(-0.04)


def test_families_are_labelled_by_their_elements():
    text = (
        f"var w[d]; minimize {FIT}; subject to cap[k in G, t in {{1, 2.5}}]: E[z ~ D | z.g == k] "
        "dot(w, z.x) <= t;"
    )
    found = report(text, np.ones(D))
    assert list(found.constraints) == [f"cap[{k},{t}]" for k in "abc" for t in ("1", "2.5")]
    assert found.constraints["cap[b,2.5]"].value == pytest.approx((X[G == "b"] @ np.ones(D)).mean() - 2.5)
    some = report(text.replace("{1, 2.5}]", "{1, 2.5} | t > 2]"), np.ones(D))
    assert list(some.constraints) == ["cap[a,2.5]", "cap[b,2.5]", "cap[c,2.5]"]


def test_a_violated_constraint():
    found = report(
        f"var w[d]; minimize {FIT}; subject to size: sumsq(w) <= 0.1;", np.linalg.solve(GRAM, CROSS)
    )
    assert found.feasibility == found.epsilon == found.constraints["size"].value > 0
    assert "(size)" in found.verdict and found.advice


# -------------------------------------------------------------------------------------- simple sets
def test_bounds_count_as_normals():
    w, _ = solved(fit, [lambda c, w: w >= 0])
    w = np.where(w < 1e-6, 0, w)
    free = np.linalg.norm(fit_gradient(w))
    assert report(f"var w[d] >= 0; minimize {FIT};", w).epsilon < 1e-5 < 0.1 < free
    assert report(f"var w[d] >= -1; minimize {FIT};", w).stationarity == pytest.approx(free)
    outside = report(f"var w[d] >= 0; minimize 0.01 * {FIT} + 1;", w - 0.5)
    assert outside.feasibility >= 0.5 and "outside its set" in outside.verdict


def test_a_simplex_with_a_constraint():
    text = f"var w[d] in simplex(d); minimize {FIT}; subject to mix: w[1] - w[2] <= 0.3;"
    w, duals = solved(fit, [lambda c, w: w[0] - w[1] <= 0.3, lambda c, w: c.sum(w) == 1, lambda c, w: w >= 0])
    w = np.where(w < 1e-7, 0, w)
    found = report(text, w / w.sum())
    assert (
        found.epsilon < 1e-5
        and found.constraints["mix"].multiplier == pytest.approx(duals[0], abs=1e-4)
        and duals[0] > 0.01
    )


def test_two_sets_at_once():
    text = f"var w[d] in ball(0.8), >= 0; minimize {FIT};"
    w, _ = solved(fit, [lambda c, w: c.norm(w) <= 0.8, lambda c, w: w >= 0])
    w = np.where(w < 1e-6, 0, w)
    assert report(text, w * 0.8 / np.linalg.norm(w)).stationarity < 1e-4


# -------------------------------------------------------------------------------------------- kinks
KINKS = {
    "norm1": ("0.3 * norm1(w)", lambda c, w: 0.3 * c.norm1(w)),
    "norm2 at 0": ("5 * norm2(w)", lambda c, w: 5 * c.norm(w)),
    "norminf": ("0.4 * norminf(w)", lambda c, w: 0.4 * c.norm_inf(w)),
    "pos and abs": ("pos(w[1] - 0.5) + abs(w[2] + 0.1)", lambda c, w: c.pos(w[0] - 0.5) + c.abs(w[1] + 0.1)),
    "pinball": ("pinball(w[1] - 0.5, 0.8)", lambda c, w: 0.8 * (w[0] - 0.5) + c.pos(0.5 - w[0])),
    "insensitive": ("2 * eps_insensitive(w[1] - 0.2, 0.1)", lambda c, w: 2 * c.pos(c.abs(w[0] - 0.2) - 0.1)),
    "worst group": ("max[k in G] E[z ~ D | z.g == k] square(dot(w, z.x) - z.y - 0.5)", None),
    "cvar of groups": ("cvar(tail = 0.5)[k in G] E[z ~ D | z.g == k] square(dot(w, z.x) - z.y + 0.5)", None),
    "topk": ("topk(k = 2)[k in G] E[z ~ D | z.g == k] square(dot(w, z.x) - z.y + 0.5)", None),
    "robust": (
        "max[q in capped_simplex(G, 0.5)] sum[k in G] q[k] * (E[z ~ D | z.g == k] square(dot(w, z.x) - "
        "z.y + 0.5))",
        None,
    ),
    "max of two": ("max(w[1], 2 * w[2], 0.3)", lambda c, w: c.maximum(w[0], 2 * w[1], 0.3)),
    "family": ("mean[i in D] abs(dot(w, i.x) - i.y)", lambda c, w: c.norm1(X @ w - Y) / N),
}


def extra(name):
    """The CVXPY form of a kink over groups."""

    def form(c, w):
        shift = -0.5 if name == "worst group" else 0.5
        risks = c.hstack([c.sum_squares(X[G == k] @ w - Y[G == k] + shift) / (G == k).sum() for k in "abc"])
        if name == "worst group":
            return c.max(risks)
        largest = c.sum_largest(risks, 2)
        return largest / 2 if name == "topk" else (c.max(risks) + largest) / 3

    return form


@pytest.mark.parametrize("name", KINKS)
def test_the_optimum_of_a_non_smooth_function(name):
    text, form = KINKS[name]
    w, _ = solved(lambda c, w: fit(c, w) + (form or extra(name))(c, w))
    found = report(f"var w[d]; minimize {FIT} + {text};", w)
    assert found.residual < 3e-5, found
    away = report(f"var w[d]; minimize {FIT} + {text};", w + 0.05)
    assert away.residual > 1e-2


def test_l1_at_zero_is_exact():
    lam = np.abs(fit_gradient(np.zeros(D))).max()
    at = [
        report(
            f"param l >= 0; var w[d]; minimize {FIT} + l * norm1(w);", np.zeros(D), params={"l": factor * lam}
        )
        for factor in (1.01, 0.9)
    ]
    assert at[0].epsilon < 1e-12
    assert at[1].epsilon == pytest.approx(0.1 * lam, rel=1e-6)


@pytest.mark.parametrize("penalty", ["scad(w[1], 3.7, 0.3)", "mcp(w[1], 2, 0.3)"])
def test_slopes_that_jump(penalty):
    """At 0, a penalty that is not convex holds what its slopes on both sides hold; elsewhere its own
    derivative counts."""
    for pull in (0.25, 0.5):
        found = report(f"var w[d]; minimize {penalty} - {pull} * w[1];", np.zeros(D))
        assert found.residual == pytest.approx(max(pull - 0.3, 0), abs=1e-9)
    assert report(f"var w[d]; minimize {penalty};", np.full(D, 0.2)).residual > 0.02


def test_a_subgradient_may_miss_the_value_by_the_slack():
    found = report("var w[d]; minimize abs(w[1]);", [1e-3, 0, 0, 0])
    # |q| and the slack 1e-3 (1 - q), summed in squares
    assert found.residual == pytest.approx(1e-3, rel=1e-3) and found.slack == pytest.approx(1e-3, rel=1e-3)


CONES = {
    "abs": ("abs(w[1] + w[2]) <= 0.1", lambda c, w: c.abs(w[0] + w[1]) <= 0.1),
    "norm1": ("norm1(w) <= 0.7", lambda c, w: c.norm1(w) <= 0.7),
    "norm2": ("norm2(w) <= 0.7", lambda c, w: c.norm(w) <= 0.7),
    "max": ("max(w[1], w[3], 0.1) <= 0.4", lambda c, w: c.maximum(w[0], w[2], 0.1) <= 0.4),
    "two kinks": ("abs(w[1]) + 2 * abs(w[2]) <= 0.5", lambda c, w: c.abs(w[0]) + 2 * c.abs(w[1]) <= 0.5),
}


@pytest.mark.parametrize("name", CONES)
def test_constraints_with_kinks(name):
    text, form = CONES[name]
    w, (dual,) = solved(fit, [form])
    if name == "norm2":  # |w| has the gradient of sumsq(w) divided by 2 |w|
        w, nu = on_ball(0.7**2)
        assert dual == pytest.approx(2 * nu * 0.7, rel=1e-4)
        dual = 2 * nu * 0.7
    found = report(f"var w[d]; minimize {FIT}; subject to c: {text};", w, {"c": dual})
    assert found.residual < 1e-8
    assert found.constraints["c"].multiplier == pytest.approx(dual, rel=1e-6)
    assert found.own["stationarity"] < 1e-8
    far = report(f"var w[d]; minimize {FIT}; subject to c: {text};", w, {"c": 3 * dual})
    assert far.own["stationarity"] > 0.01


def test_a_nuclear_norm_at_a_matrix_of_low_rank():
    """min |M - A|^2 / 2 + lam |M|_* thresholds the singular values of A; another matrix of that rank
    is not optimal.

    The distance to the subdifferential in closed form is exact. The report searches a subgradient
    by a conic solver, whose own accuracy (1e-8) is all that can be asked of it.
    """
    A = np.random.default_rng(2).normal(size=(5, 4))
    left, size, right = np.linalg.svd(A, full_matrices=False)
    lam = 0.5 * (size[1] + size[2])
    best = (left * np.maximum(size - lam, 0)) @ right
    made = bind.bind(
        check.check(
            parse.parse(
                source := Source(
                    text="model m; dim a; dim b; data A : real[a, b]; param lam; var M[a, b];"
                    "minimize f: 0.5 * sumsq(M - A) + lam * norm_nuc(M);"
                )
            ),
            source,
        ),
        data={"A": A},
        params={"lam": lam},
    )
    distance = regularisers.all()["nuclear"].distance(torch.tensor(A - best), torch.tensor(best), lam)
    assert float(distance) < 1e-12
    assert kkt.report(made, {"M": best}).epsilon < 1e-7
    assert kkt.report(made, {"M": 1.1 * best}).epsilon > 1e-2
    assert kkt.report(made, {"M": best + 0.1 * (left[:, 3:] @ right[3:])}).epsilon > 1e-2


@pytest.mark.parametrize("spare", [0, 20])
def test_weights_of_terms_far_from_the_tail_are_known(spare, monkeypatch):
    """Of a mean of the largest terms only those at the threshold have weights to choose, in f and in a
    constraint."""
    monkeypatch.setattr(pairs, "SPARE", spare)
    loss = "square(dot(w, z.x) - z.y)"

    def tail(cvxpy, w):
        return cvxpy.sum_largest(cvxpy.square(X @ w - Y), 12) / 12

    w, _ = solved(tail)
    assert report(f"var w[d]; minimize f: cvar(tail = 0.2)[z in D] {loss};", w).epsilon < 1e-6
    level = 1.02 * report(f"var w[d]; minimize f: cvar(tail = 0.2)[z in D] {loss};", w).objective
    w, (nu,) = solved(fit, [lambda cvxpy, w: tail(cvxpy, w) <= level])
    found = report(
        f"var w[d]; minimize f: {FIT}; subject to c: cvar(tail = 0.2)[z in D] {loss} <= {level!r};", w
    )
    assert found.epsilon < 1e-6
    assert found.constraints["c"][1] == pytest.approx(nu, rel=1e-4)


def test_minima_are_concave():
    found = report("var w[d]; minimize min(w[1], w[2]) + sumsq(w);", [-0.25, -0.25, 0, 0])
    assert found.residual < 1e-12  # stationary in Clarke's sense: 0 is in the hull of the gradients


TWO_WAYS = {
    "terms": f"minimize {FIT} + cvar(tail = 0.4)[i in D] abs(dot(w, i.x) - i.y) + 0.1 * norm1(w);",
    "constraints": f"minimize {FIT};"
    "subject to c[k in G]: max(E[z ~ D | z.g == k] exp(dot(w, z.x)), 2) <= norm2(w); e: w[1] == 0;",
}


@pytest.mark.parametrize("name", TWO_WAYS)
@pytest.mark.parametrize("twice", [True, False])
def test_gradients_are_the_same_by_row_and_by_column(name, twice):
    """Of an operation that is differentiated once, forward derivatives are differences."""
    system = kkt_system.System(bound(f"var w[d]; {TWO_WAYS[name]}"), {"w": RANDOM.normal(size=D)})
    system._twice = twice
    wanted = rows_of._wanted(system)
    rows, columns = rows_of._by_row(system, wanted), rows_of._by_column(system, wanted)
    for a, b in zip((rows[0], *rows[1]), (columns[0], *columns[1]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12 if twice else 1e-8)
    lagrangian = optimality.Lagrangian(system, True, (), np.zeros(len(system.labels)))
    dense = lagrangian.squares(rows_of.gradients(system, Meter()))
    free = lagrangian.squares(rows_of.Gradients(weighed=True))
    z, direction = RANDOM.normal(size=dense.size), RANDOM.normal(size=D)
    np.testing.assert_allclose(dense.matrix @ z, free.matrix @ z, atol=1e-12)
    np.testing.assert_allclose(
        dense.matrix.T @ direction, free.matrix.T @ direction, atol=1e-12 if twice else 1e-8
    )


def test_without_time_the_report_is_an_upper_bound():
    made = bound(f"var w[d]; minimize {FIT} + cvar(tail = 0.4)[i in D] square(dot(w, i.x) - i.y);")
    w = RANDOM.normal(size=D)
    full, hasty = kkt.report(made, {"w": w}), kkt.report(made, {"w": w}, work=Meter(0.0))
    assert hasty.residual >= full.residual * (1 - 1e-9)
    assert any("want of time" in note for note in hasty.notes)


# --------------------------------------------------------------------------------- notes and errors
def test_what_was_bounded_sampled_and_assumed_is_said():
    bent = report("var w[d]; minimize E[e ~ normal(0, 1)[d]] abs(dot(w, e));", np.zeros(D))
    assert any("inside an expectation" in note and "abs" in note for note in bent.notes)
    drawn = report("var w[d]; minimize E[e ~ normal(0, 1)[d]] dot(w, e)^2;", np.ones(D))
    assert any("20,000 draws" in note and "standard error" in note for note in drawn.notes)
    assert report(f"var w[d]; minimize {FIT};", np.ones(D)).notes == ()


def test_a_net():
    head = HEAD + "net s : real[d] -> real assume smooth; var w = params(s);\n"
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(D, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    made = bound(
        "minimize E[z ~ D] square(s(w; z.x) - z.y); subject to small: E[z ~ D] square(s(w; z.x)) <= 0.01;",
        head,
        nets={"s": module},
    )
    flat = torch.cat([p.detach().reshape(-1) for p in module.parameters()]).double().numpy()
    found = kkt.report(made, {"w": flat}, multipliers={"small": 0.5})
    scores = torch.nn.Sequential.forward(module.double(), torch.as_tensor(X)).squeeze(-1)
    parameters = list(module.parameters())

    def gradient(value):
        return torch.cat(
            [g.reshape(-1) for g in torch.autograd.grad(value, parameters, retain_graph=True)]
        ).numpy()

    first, second = gradient((scores - torch.as_tensor(Y)).square().mean()), gradient(scores.square().mean())
    assert found.own["stationarity"] == pytest.approx(np.linalg.norm(first + 0.5 * second), rel=1e-10)
    column, value = np.append(second, found.constraints["small"].value), np.append(first, 0)
    best = max(0.0, -(column @ value) / (column @ column))
    assert found.constraints["small"].multiplier == pytest.approx(best, abs=1e-8)
    assert any("your assumption" in note for note in found.notes)


@pytest.mark.parametrize(
    "text, w, message",
    [
        ("minimize log(sum(w));", [-1, 0, 0, 0], "the objective is nan"),
        (
            "minimize sum(w); subject to c: E[z ~ D] exp(1000 * dot(w, z.x)) <= 1;",
            [9, 0, 0, 0],
            "constraint `c` is inf",
        ),
        ("minimize sqrt(w[1]);", [0, 0, 0, 0], "the gradient is not finite"),
        ("minimize sum(w);", [np.nan, 0, 0, 0], "`w` is not finite"),
    ],
)
def test_what_is_not_finite_is_an_error(text, w, message):
    with pytest.raises(FccoError, match=message) as caught:
        report(f"var w[d]; {text}", w)
    assert caught.value.diagnostics[0].code == "F0701"


def test_a_missing_variable():
    with pytest.raises(FccoError, match="no `w`"):
        kkt.report(bound(f"var w[d]; minimize {FIT};"), {})


def test_multipliers_at_the_penaltys_bound_are_named():
    text = (
        f"var w[d]; minimize {FIT}; subject to size: sumsq(w) <= 0.5; cap[k in G]: E[z ~ D | z.g == "
        "k] dot(w, z.x) <= 1;"
    )
    own = {"size": 5.0, "cap[a]": 1.995, "cap[b]": 0.1, "cap[c]": 0.0}
    found = kkt.report(bound(text), {"w": np.zeros(D)}, multipliers=own, limits={"size": 10.0, "cap": 2.0})
    assert [note for note in found.notes if "rho=8" in note and note.startswith("`cap[a]`: ")] and len(
        found.notes
    ) == 1
    assert found.exact


def test_the_nearest_point_of_a_cone_of_multipliers_and_weights():
    """z - p is orthogonal to p, and no ray of the cone goes along it."""
    simplex, box = WeightSet(kind="simplex", high=0.5), WeightSet(kind="box", low=-1.0, high=2.0)
    first = groups.KinkWeights(at=np.arange(1, 9).reshape(2, 4), weights=simplex)
    cone = groups.Cone(
        at=0, parts=(first, groups.KinkWeights(at=np.arange(9, 12).reshape(3, 1), weights=box))
    )
    for size in (1e-6, 1.0, 1e6):
        for z in size * RANDOM.normal(size=(50, 12)):
            p = z.copy()
            cone.project(p)
            assert abs((z - p) @ p) <= 1e-10 * z @ z
            assert all(ray @ (z - p) <= 1e-9 * np.linalg.norm(z) for ray in cone.rays(p - z))


@pytest.mark.parametrize("root", [0.0, 1e-9, 0.3, 1.0])
def test_the_root_of_a_function_that_rises(root):
    """Steep, flat, with a jump: to 1e-15 of the interval's length, in no more calls than bisection's
    and four."""
    for f in (
        lambda x: x - root,
        lambda x: (x - root) ** 3,
        lambda x: np.sign(x - root),
        lambda x: np.tanh(1e6 * (x - root)),
    ):
        calls = []
        found = groups._root(lambda x, f=f, calls=calls: (calls.append(x), float(f(x)))[1], 0.0, 1.0)
        assert f(found) == 0 or abs(found - root) <= 1e-15
        assert len(calls) <= 58


def test_the_report_is_plain_data():
    found = report(f"var w[d]; minimize {FIT}; subject to size: sumsq(w) <= 0.5;", np.ones(D), {"size": 1.0})
    record = json.loads(json.dumps(found.to_json()))
    assert record["constraints"]["size"]["value"] == pytest.approx(3.5)
    assert record["epsilon"] == found.epsilon and record["own"]["multipliers"] == {"size": 1.0}


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
    points = [0.1 * np.random.default_rng(0).normal(size=problem.d)]
    if name in ("neyman_pearson", "mean_variance_l1", "card_form"):
        best = reference.minimise(problem, np.zeros(problem.d), 1e-8)
        points += [best, best + 1e-3 * np.random.default_rng(1).normal(size=problem.d)]
    for w in points:
        found, (residual, multipliers, _) = kkt.report(made, {problem.variable: w}), problem.kkt(w)
        assert found.residual == pytest.approx(residual, rel=1e-3)
        assert {label: row.multiplier for label, row in found.constraints.items()} == pytest.approx(
            multipliers, rel=1e-3, abs=1e-6
        )
        assert found.objective == pytest.approx(problem.evaluate(w)[0], rel=1e-10)
