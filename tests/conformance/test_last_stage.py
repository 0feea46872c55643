"""The last stage of ALEXR2 (sonex-alexr2-2025, Corollary 4.11): its steps against NumPy, its budget,
its answer."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from support.emitted_models import Case, Made, make, settings

from conformance.test_blocks import HEAD, KINK, KINKED, Blocks, first, table
from fccomodel import algorithms
from fccomodel.algorithms import Constants

STEPS, START = 9, np.array([0.3, -0.2])
INNER = {"gamma": 0.4, "gamma_prime": 0.3, "inner_eta": 0.05, "nu": 0.2, "lam_y1": 0.9, "finer": 0.5}
#: at most as many inner functions as variables have entries
FEW = (
    "dim d; data D : table(x: real[d], y: {-1, 1}); set P = {z in D | z.y == 1}; set N = {z in D | z.y "
    "== -1}; var w[d];"
    "minimize abs((E[z ~ P] square(1 - dot(w, z.x))) - 0.2) + 0.1 * sumsq(w - 1);"
)


def made(text: str = HEAD + KINKED, schedule: str = "theory", **options: Any) -> Made:
    given = {
        "algorithm": "alexr2_final",
        "step": "momentum",
        "outer_batch": 3,
        "inner_batch": 4,
        "schedule": schedule,
    }
    given |= {"sampling": "epochs", "inner_sampling": "shared"}
    return make("last", Case(text=text, data=table, options={**given, "unverified": True, **options}))


def approached(case: Made, **changes: float) -> tuple[np.ndarray, list[Any]]:
    """z_K of the program's own steps, and their samples."""
    solver = case.solver
    data, again = (
        solver.prepare(solver.as_namespace(dict(case.program.data), "cpu", torch.float64)) for _ in range(2)
    )
    h, c = settings(solver, **{**INNER, **changes}), solver.centres("cpu", torch.float64)
    with torch.no_grad():
        w, never = torch.tensor(START), lambda done: ""
        run = SimpleNamespace(
            state=SimpleNamespace(w=w, w_prev=w.clone()),
            u=solver.SOLVER.buffers(w.device, w.dtype),
            c=c,
            rng=torch.Generator().manual_seed(0),
            count=0,
            ahead=[],
        )
        z, done = solver.approach(solver.SOLVER, data, run, h, STEPS, never)
        parts = case.positions(again, torch.Generator().manual_seed(0), STEPS)
    assert done == STEPS
    return z.numpy(), [part.numpy() for part in parts.values()]


def alexr(parts: list[np.ndarray], slip: str = "") -> np.ndarray:
    """ALEXR(w, K) on F_lam(z) + |z - w|^2 / (2 nu), 1 - theta at a share of the inner loop's (its eta
    and gamma proportional to it): u_i <- (1 - gamma) u_i + gamma (g + theta (g - g_prev)), y_i =
    grad f_lam(u_i), two batches."""
    b, share = Blocks(coupled=True), 1.0 if slip == "as in the inner loop" else INNER["finer"]
    theta = 1 - share * (1 - INNER["gamma_prime"] / INNER["gamma"])
    gamma, eta = share * INNER["gamma"], share * INNER["inner_eta"]
    z, z_prev, nu = START, START, INNER["nu"]
    for i, j, j2 in zip(*parts, strict=True):
        g, g_prev = b.g(z, i, j)[0], b.g(z_prev, i, j)[0]
        J = b.g(z, i, j if slip == "one batch" else j2)[1]
        k = b.cells(i)
        b.u[k] = (1 - gamma) * first(b.u[k], g) + gamma * (g + theta * (g - g_prev))
        G = (np.clip((b.u[k] - KINK) / INNER["lam_y1"], 0, 1) @ J) / b.B1
        pull = 0 if slip == "no pull" else 1 / nu
        z_prev, z = z, (pull * START + z / eta - G) / (pull + 1 / eta)
    return z


def test_its_steps_are_alexrs_at_the_point_found() -> None:
    found, parts = approached(made())
    np.testing.assert_allclose(found, alexr(parts), rtol=1e-9, atol=1e-12)
    for slip in ("one batch", "no pull", "as in the inner loop"):
        assert np.abs(found - alexr(parts, slip)).max() > 1e-5, slip


def test_steps_fall_where_no_theorem_sets_them() -> None:
    constant, parts = approached(made())
    falling, again = approached(made(schedule="practical"), finer=1.0)
    assert (
        all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
        and np.abs(constant - falling).max() > 1e-5
    )


@pytest.mark.parametrize(("last", "before"), [(0, 300), (50, 550)])
def test_it_takes_half_of_the_budget_at_most(last: int, before: int) -> None:
    case, seen = made(FEW, "practical", last=last, polish=False), []
    with torch.no_grad():
        found = case.solver.solve_to_proximal_point(
            case.solver.SOLVER,
            dict(case.program.data),
            seconds=None,
            iterations=600,
            dtype=torch.float64,
            progress=seen.append,
        )
    assert found.iterations == 600 and [entry["iteration"] for entry in seen][-2:] == [before, 600]
    assert seen[-1]["merit"] <= seen[-2]["merit"] + 1e-12, "the better of both"
    assert re.search(r"found = solve_to_proximal_point\(\s*SOLVER,", case.program.text)


def test_it_is_for_models_with_as_many_variables_as_inner_functions() -> None:
    """Assumption 4.3: where inner functions outnumber variables their gradients depend on one another."""
    few = made(FEW, "practical", unverified=False)
    assert few.plan.findings["independent inner"].holds and "Corollary 4.11" in few.plan.promise.name
    assert not made().plan.findings["independent inner"].holds


def test_its_schedule_is_finer_than_that_of_the_inner_loop() -> None:
    """1 - theta falls by eps^2 where noise decides, and K grows by as much: 1 / eps^5, as the whole."""
    theory = algorithms.all()["alexr2_final"].theory
    assert theory is not None
    k = {
        eps: SimpleNamespace(**theory(Constants(n=100, B1=10, B2=5, eps=eps, rho_g=1.0)))
        for eps in (1e-2, 1e-3)
    }
    assert k[1e-2].finer / k[1e-3].finer == pytest.approx(100, rel=0.01)
    assert np.log10(k[1e-3].last / k[1e-2].last) == pytest.approx(5, abs=0.2)
    assert k[1e-2].iterations > k[1e-2].last
