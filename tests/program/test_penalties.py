"""Constraints in each form that algorithms declare: the slope of the minimised function is that of the
original Lagrangian."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.optimize
import torch
from support.emitted_models import CASES, HEAD, Made, make, settings, table, with_form
from test_gradients import check, value_of

import fccomodel
from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation import interpret
from fccomodel.evaluation.sets import members
from fccomodel.execution import run
from fccomodel.normal_form import reformulations
from fccomodel.normal_form.smoothing import Smoothed

FORMS = [r.name for r in reformulations.all() if r.role == "penalty"]
OUTER = {"hinge": "subgradient", "squared_hinge": "smooth", "smoothed_hinge": "moreau", "lagrangian": "dual"}
CONSTRAINED = sorted(name for name, case in CASES.items() if "subject to" in case.text)


@pytest.mark.parametrize("form", [f for f in FORMS if f != "smoothed_hinge"])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_gradient(name: str, form: str) -> None:
    """The emitted gradient is that of the emitted value, by automatic differentiation."""
    check(with_form(made_whole(name), outer=OUTER[form], penalty=form))


def made_whole(name: str) -> Made:
    """The case with all rows in every step, so that no sampling is left."""
    return make(
        name,
        dataclasses.replace(
            CASES[name],
            options={"outer_batch": 1000, "inner_batch": 1000, "unverified": True, "algorithm": "sonex"},
        ),
    )


@pytest.mark.parametrize(
    "name", ["cvar_family", "topk_family", "cvar_two_binders", "cvar_members", "cvar_per_row", "dro_capped"]
)
@pytest.mark.parametrize("outer", ["dual", "subgradient"])
def test_gradient_of_coupled_duals(name: str, outer: str) -> None:
    """The worst of a family as one function of all its members, against central differences of the
    same value."""
    case = with_form(make(name, algorithm="sonex", unverified=True), outer=outer, coupled=True)
    solver = case.solver
    data = solver.prepare(solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    fresh = solver.as_namespace(dict(case.program.data), "cpu", torch.float64)
    value, w = value_of(case, fresh), case.point()
    batch = [part[0] for part in solver.draw(data, torch.Generator().manual_seed(0), 1)]
    places = [part[0] for part in case.positions(fresh, torch.Generator().manual_seed(0), 1).values()]
    h = settings(solver, gamma=1.0, gamma_prime=0.0)
    c = solver.centres("cpu", torch.float64)
    found = solver.gradient(data, w, w, solver.buffers("cpu", torch.float64), c, batch, h)
    for k, step in enumerate(1e-6 * torch.eye(len(w), dtype=torch.float64)):
        slope = (value(fresh, w + step, c, places, h) - value(fresh, w - step, c, places, h)) / 2e-6
        assert float(found[k]) == pytest.approx(float(slope), rel=1e-5, abs=1e-6)


OBJECTIVE = "minimize E[z ~ D] (dot(w, z.x) - 1)^2; "
EXACT = {
    "le": "subject to c: E[z ~ D] log1pexp(-z.y * dot(w, z.x)) <= 0.3;",
    "affine": "subject to c: 3 * (E[z ~ D] dot(w, z.x)) - sum(w) <= -2;",
    "eq": "subject to c: E[z ~ D] dot(w, z.x) == 0.1; d: 1 == 2 * sum(w); e: -(E[z ~ P] exp(dot(w, "
    "z.x))) == -1;",
    "kinked eq": "subject to c: 0.2 - abs(E[z ~ D] dot(w, z.x)) == 0.1;",
    "two-sided": "subject to c: 3 <= E[z ~ D] dot(w, z.x) <= 4;",
    "family": "subject to c[k in G]: E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)) <= 0.3;",
    "condition": "subject to c[k in K | k > 1]: E[z ~ D | z.b == k] exp(dot(w, z.x)) <= 0.2 * k;",
    "two indices": "subject to c[k in G, t in T | t > 0]: E[z ~ D | z.g == k] sigmoid(dot(w, z.x) - t) "
    "== 0.1;",
    "two-sided family": "subject to c[k in G]: 0.1 <= E[z ~ D | z.g == k] dot(w, z.x) <= 0.2;",
    "gap": "subject to c[k in G]: abs(E[z ~ D | z.g == k] dot(w, z.x) - sum(w)) <= 0.01;",
    "scaled gap": "subject to c: 3 * abs(E[z ~ D] dot(w, z.x) - sum(w)) - 0.01 <= 0;",
    "steep above": "subject to c: max(2 * sum(w), 0.5 * sum(w)) <= 0.01; d: max(2 * w[1] - 1, -4 * w[1]) "
    "<= 0.1;",
    "composition": "subject to c: log(E[z ~ D] exp(dot(w, z.x))) <= 0.05;",
    "constant": "subject to c: E[z ~ D] dot(w, z.x) >= 1; d: E[z ~ D] z.time >= 0;",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", EXACT)
def test_the_slope_is_that_of_the_lagrangian(name: str, form: str) -> None:
    """grad f(w) + sum_k nu_k grad c_k(w), nu recovered under the user's names, all of it on the
    problem as written."""
    text = (
        "model m;"
        + next(iter(CASES.values())).text.split(";", 1)[1].split("minimize")[0]
        + OBJECTIVE
        + EXACT[name]
    )
    case = with_form(
        make(
            "m",
            dataclasses.replace(
                CASES["logistic"],
                text=text,
                options={"inner_batch": 1000, "unverified": True, "algorithm": "sonex"},
            ),
        ),
        outer=OUTER[form],
        penalty=form,
    )
    active = 0
    for seed in range(3):
        w = case.point(seed)
        found, slope = settled(case, w)
        nu = run.multipliers(
            case.program, case.bound, found, run.exact_values(case.solver, case.program, found)
        )
        assert slope.numpy() == pytest.approx(lagrangian(case, w, nu), rel=1e-9, abs=1e-9)
        active += max(map(abs, nu.values())) > 1e-3
        kinds = {c.label: c.kind for c in case.bound.problem.constraints}
        assert all(value >= 0 for key, value in nu.items() if kinds[key.split("[")[0]] == "le")
    assert active


def settled(case: Made, w: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """What a run that ended at w would leave, the centres of its penalties moved once; and the
    gradient before that."""
    solver = case.solver
    tensors = dict(case.program.data)
    data = solver.prepare(solver.as_namespace(tensors, "cpu", torch.float64))
    exact = solver.prepare_full(solver.as_namespace(tensors, "cpu", torch.float64))
    h = settings(solver, gamma=1.0, gamma_prime=0.0, rho=3.0)
    u, c = solver.buffers("cpu", torch.float64), solver.centres("cpu", torch.float64)
    batch = [part[0] for part in solver.draw(data, torch.Generator().manual_seed(0), 1)]
    penalties = {s.name for s in case.program.penalties.values() if isinstance(s, Smoothed)}

    def move(penalty: bool) -> None:
        for name, (index, t, slope_of, _) in solver.blocks(exact, w).items():
            if (name in penalties) == penalty:
                centre = getattr(c, name)
                centre[index or (...,)] = slope_of(t, centre[index or (...,)], h)

    for _ in range(100):  # kinks below a penalty: the method of multipliers has ended
        move(penalty=False)
    slope = solver.gradient(data, w, w, u, c, batch, h)
    move(penalty=True)
    return types.SimpleNamespace(w=w, c=c, h=h, exact=exact), slope


def family(bound: Bound, constraint: ir.Constraint) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The members of a family of constraints: labels, and the ids of their elements."""
    own = members.of(bound, constraint)
    ids = [tuple(int(k) for k in cell) for cell in zip(*own.ids, strict=True)] if own.ids else [()]
    return zip(own.labels(constraint.label), ids, strict=True)


def lagrangian(case: Made, w: torch.Tensor, nu: dict[str, float]) -> np.ndarray:
    """The gradient of the original Lagrangian."""
    leaf = w.clone().requires_grad_()
    total = interpret.evaluate(case.bound, case.bound.problem.objective.expr, {"w": leaf})
    for constraint in case.bound.problem.constraints:
        for key, index in family(case.bound, constraint):
            env = dict(zip(constraint.binders, index, strict=True))
            if key in nu:
                total = total + nu[key] * interpret.evaluate(case.bound, constraint.body, {"w": leaf}, env)
    return torch.autograd.grad(total, leaf)[0].numpy()


CONVEX = """minimize E[z ~ D] (dot(w, z.x) - 1)^2 + 0.05 * E[z ~ D] sumsq(z.y * w);
subject to level: E[z ~ D] dot(w, z.x) + 0.5 * sum(w) == 0.4; between: -0.1 <= w[1] - w[2] <= 0.02; family[k in G]: E[z ~ D | z.g == k] sqhinge(dot(w, z.x) + 0.2) <= TAU;
box: abs(w[3] - w[1]) <= 0.03;"""  # noqa: E501


@cache
def by_cvxpy(tau: float) -> tuple[np.ndarray, dict[str, float]]:
    """The solution and the multipliers of the model ``CONVEX``, those of c <= 0 (equality: of c == 0)."""
    rows = table()
    x, g = np.asarray(rows["x"]), np.asarray(rows["g"])
    w = cp.Variable(3)
    t = x @ w
    constraints = {
        "level": cp.sum(t) / len(x) + 0.5 * cp.sum(w) == 0.4,
        "between.lower": -0.1 <= w[0] - w[1],
        "between.upper": w[0] - w[1] <= 0.02,
    }
    constraints |= {
        f"family[{k}]": cp.sum_squares(cp.pos(t[g == k] + 0.2)) / (g == k).sum() <= tau
        for k in ("north", "south", "west")
    }
    constraints["box"] = cp.abs(w[2] - w[0]) <= 0.03
    objective = cp.sum_squares(t - 1) / len(x) + 0.05 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(objective), list(constraints.values())).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_feas=1e-9, tol_gap_rel=1e-9
    )
    return w.value, {key: float(np.ravel(c.dual_value)[0]) for key, c in constraints.items()}


def convex(form: str, tau: float) -> Made:
    text = HEAD + CONVEX.replace("TAU", str(tau))
    options = {"inner_batch": 1000, "unverified": True, "algorithm": "sonex"}
    case = dataclasses.replace(CASES["logistic"], text=f"model m;{text}", options=options)
    return with_form(make("m", case), outer=OUTER[form], penalty=form)


@pytest.mark.parametrize("form", ["smoothed_hinge", "lagrangian"])
def test_multipliers_of_cvxpy_are_a_fixed_point(form: str) -> None:
    """At the solution, with the multipliers as centres: no slope is left, and the centres stay where
    they are."""
    at, nu = by_cvxpy(0.242)
    case, w = convex(form, 0.242), torch.tensor(at)
    solver = case.solver
    data = solver.prepare(solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    exact = solver.prepare_full(solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    h = settings(solver, gamma=1.0, gamma_prime=0.0, rho=10.0)
    c = solver.centres("cpu", torch.float64)
    for constraint in case.bound.problem.constraints:
        penalty = case.program.penalties[constraint.label]
        for key, index in family(case.bound, constraint):
            env, slopes = dict(zip(constraint.binders, index, strict=True)), []
            for expr in (constraint.body, penalty.argument):
                leaf = w.clone().requires_grad_()
                interpret.evaluate(case.bound, expr, {"w": leaf}, env).backward()
                slopes.append(leaf.grad)
            getattr(c, penalty.name)[index or ...] = (
                nu[key] * torch.dot(*slopes) / torch.dot(slopes[1], slopes[1])
            )
    slope = solver.gradient(data, w, w, solver.buffers("cpu", torch.float64), c, [], h)
    assert float(slope.abs().max()) < 1e-5
    for name, (index, t, slope_of, _) in solver.blocks(exact, w).items():
        centre = getattr(c, name)[index or ...]
        assert torch.allclose(slope_of(t, centre, h), centre, atol=1e-5)
    found = run.multipliers(case.program, case.bound, types.SimpleNamespace(w=w, c=c, h=h, exact=exact), {})
    assert found == pytest.approx(nu, abs=1e-5) and sum(abs(v) > 1e-3 for v in found.values()) >= 3


def test_squared_hinge_approaches_the_multipliers() -> None:
    """rho [c]_+ at the minimiser of the penalised function, its distance to CVXPY's multipliers
    falling with rho."""
    start, nu = by_cvxpy(0.25)
    case = convex("squared_hinge", 0.25)
    solver = case.solver
    data = solver.prepare(solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    exact = solver.prepare_full(solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    gaps = []
    for rho in (1e2, 1e3, 1e4):
        h = settings(solver, gamma=1.0, gamma_prime=0.0, rho=rho)

        def slope(at: np.ndarray, h: Any = h) -> np.ndarray:
            w = torch.tensor(at)
            return solver.gradient(data, w, w, solver.buffers("cpu", torch.float64), None, [], h).numpy()

        w = torch.tensor(scipy.optimize.least_squares(slope, start, xtol=1e-15, ftol=1e-15, gtol=1e-15).x)
        found = types.SimpleNamespace(w=w, c=types.SimpleNamespace(), h=h, exact=exact)
        own = run.multipliers(case.program, case.bound, found, run.exact_values(solver, case.program, found))
        gaps.append(max(abs(own[key] - nu[key]) for key in nu))
    assert gaps[2] < 0.01 and gaps[1] < 0.2 * gaps[0] and gaps[2] < 0.2 * gaps[1]


def test_the_hinge_is_exact_above_the_multipliers() -> None:
    """CVXPY's solution minimises objective + rho * violation for rho above its multipliers, and not
    below them."""
    at, nu = by_cvxpy(0.25)
    case = convex("hinge", 0.25)
    value, rng = (
        value_of(case, case.solver.as_namespace(dict(case.program.data), "cpu", torch.float64)),
        np.random.default_rng(0),
    )

    def lowest(rho: float) -> float:
        h = settings(case.solver, rho=rho)
        fresh = case.solver.as_namespace(dict(case.program.data), "cpu", torch.float64)
        value_of(case, fresh)
        points = [at + size * rng.normal(size=3) for size in (1e-4, 1e-3, 1e-2, 0.1) for _ in range(100)]
        here = float(value(fresh, torch.tensor(at), None, [], h))
        return min(float(value(fresh, torch.tensor(p), None, [], h)) for p in points) - here

    largest = max(map(abs, nu.values()))
    assert lowest(1.5 * largest) > -1e-7 and lowest(0.3 * largest) < -1e-5


def test_a_hinge_too_weak_grows() -> None:
    """A multiplier of 40 is above rho = 10, by which the constraint would be violated by 0.7."""
    text = "model m;\ndata D : table(y: real);\nvar b;\nminimize f: E[z ~ D] 20 * square(b - z.y);\n"
    bound = fccomodel.compile(text + "subject to c: E[z ~ D] exp(b * z.y) <= 1;").bind(
        data={"D": {"y": [0.5, 1.5]}}
    )
    found = bound.solve(algorithm="sonx", polish=False, budget="1500it", seed=0)
    assert found.objective == pytest.approx(25, abs=0.05) and found.variables["b"] == pytest.approx(
        0, abs=1e-3
    )
