"""Proofs that a conic program has no optimum, and programs whose numbers are far from 1."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel import conic, structure
from fccomodel.conic import rays, scaling


def program_of(text: str) -> conic.Conic:
    bound = fccomodel.compile(text).bind().bound
    see = structure.analyse(bound.problem, bound).see
    made = conic.of(bound, lambda expr: see(expr).interval.value)
    assert made is not None
    return made


INFEASIBLE = {
    "integers": "var x; var y; minimize x - 2*y; subject to c: x + y >= 1; d: x + y <= -3;",
    "a cycle": "var x; var y; var z; minimize x^2; subject to c: x - 0.3*y == 1; d: 0.3*y - 0.7*z == 1; "
    "e: 0.7*z - x == 1;",
    "by a hair": "var x; var y; minimize x^2 - 2*y; subject to c: x + y >= 1; d: x + y <= 0.9999999;",
    "in small units": "var x; var y; minimize x; subject to c: 1e-10*x + 1e-10*y >= 10; d: x + y <= 9e10;",
    "a ball": "var x[5]; minimize x[1]; subject to c: norm2(x) <= 1; d: sum(x) >= 2.25;",
    "squares": "var x; var y; minimize x; subject to c: (x - 2)^2 + y^2 <= 1; d: (x + 2)^2 + y^2 <= 1;",
    "exponentials": "var x; minimize x; subject to c: exp(x) + exp(-x) <= 1.9;",
    "powers": "var x; var y; minimize x; subject to c: abs(x)^1.7 + abs(y)^1.7 <= 1; d: x + y >= 3;",
    "weights": "var x[3] in simplex(3); minimize x[1]; subject to c: 0.3*x[1] + 0.7*x[2] + 0.1*x[3] >= 0.8;",
    "where the objective falls for ever too": "var x; var y; minimize -y; subject to c: x >= 1; d: x <= 0;",
}


@pytest.mark.parametrize("text", INFEASIBLE.values(), ids=INFEASIBLE)
def test_what_no_point_meets_is_proved(text: str) -> None:
    made = program_of(text)
    failure = conic.conflict(made) or conic.empty(made)
    assert failure is not None and failure.proved and np.isinf(failure.radius)


FEASIBLE = {
    "var x; var y; minimize x^2 + y^2; subject to c: x + y >= 1e9;": 5e17,
    "var x >= 0; var y >= 0; minimize x + 2*y; subject to c: 1e-10*x + 1e-10*y >= 10;": 1e11,
    "var x; minimize x; subject to c: log(x) >= 30;": np.exp(30),
    "var x; minimize x; subject to c: sqrt(x) >= 1e7;": 1e14,
    "var x; var y; minimize x + y; subject to c: log(x) + log(y) >= 60;": 2 * np.exp(30),
    "var x; var y; minimize x + 2*y; subject to c: x^2 + 4*y^2 <= 1e18;": -(2**0.5) * 1e9,
    "var x; var y; maximize x + y; subject to c: exp(x) + exp(y) <= 2e20;": 40 * np.log(10),
    "var x[3]; minimize sum[i in 1 .. 3] (x[i] - 1e6)^2; subject to c: sum(x) >= 5e6;": 4e12 / 3,
}


@pytest.mark.parametrize("text", FEASIBLE)
def test_feasible_programs_far_from_1_are_solved(text: str) -> None:
    answer = conic.solve(program_of(text))
    assert not isinstance(answer, str) and answer.objective == pytest.approx(FEASIBLE[text], rel=1e-6)


def test_multipliers_of_a_feasible_program_prove_nothing_where_a_point_is_feasible() -> None:
    """Clarabel takes a solution of this program, at 1e9, for a proof that there is none."""
    made = program_of("var x; var y; minimize x^2 + y^2; subject to c: x + y >= 1e9;").program
    found = conic.minimised(made)
    proof = rays.conflict(made, found.z, np.ones(len(made.q), dtype=bool), np.ones(len(made.q)))
    assert found.status == "PrimalInfeasible" and (proof is None or proof.radius < 2**-0.5 * 1e9)


UNBOUNDED = {
    "var x; var y; minimize x - 2*y; subject to c: x + y >= 1; d: x >= -3;": True,
    "var x[3]; maximize 0.3*x[1] + 0.1*x[2]; subject to a: 0.1*x[1] + 0.7*x[2] + 0.3*x[3] == 1;": True,
    "var x; var y; minimize (x - y)^2 - 0.001*(x + y);": True,
    "var x; var y; minimize (x - 2*y)^2 - x;": True,
    "var x[3]; minimize x[1] - 2*x[2]; subject to c: norm2(x) <= 10 + 3*x[3];": True,
    "var x; var y; minimize exp(x) - y;": True,
    "var x; var y; minimize abs(x) - 1.1*x + abs(y);": True,
    "var x; var y; minimize abs(x) - 0.999999*x + abs(y);": False,
    "var x; var y; minimize 1e-9*(x^2 + y^2) - y;": False,
    "var x[3] >= -1e8, <= 1e8; minimize x[1] + x[2] - x[3];": False,
    "var x; var y; minimize x^2 - 1e3*y; subject to c: y^2 <= x + 1e9;": False,
}


@pytest.mark.parametrize("text", UNBOUNDED)
def test_a_ray_is_checked(text: str) -> None:
    made = program_of(text)
    found = conic.minimised(made.program)
    assert rays.falls(made.program, found.x) == UNBOUNDED[text]
    assert (conic.solve(made) == "unbounded") == UNBOUNDED[text]


def test_a_direction_along_which_a_condition_ends_is_no_ray() -> None:
    made = program_of("var x; var y; minimize -x - y; subject to c: x <= 5; d: y <= x;")
    assert not rays.falls(made.program, np.array([1.0, 0.5])) and not rays.falls(
        made.program, np.array([1e-3, 1.0])
    )


@pytest.mark.parametrize("text", FEASIBLE)
def test_units_change_a_program_by_nothing_else(text: str) -> None:
    """Slacks and duals of a scaled program are those of the program, in the cones where they were."""
    made = program_of(text).program
    units = scaling.scaled(made)
    found = conic.minimised(units.program)
    if found.status != "Solved":  # in units around its exponentials it is
        units = scaling.scaled(made, units.point(found.x))
        found = conic.minimised(units.program)
    whole = units.whole(found)
    s = units.program.b - units.program.A @ found.x
    assert units.turn @ (made.b - made.A @ whole.x) == pytest.approx(
        s * units.size, rel=1e-6, abs=1e-6 * units.size
    )
    form = made.P + made.P.T - np.diag(made.P.diagonal())
    slope = form @ whole.x + made.q + made.A.T @ whole.z
    size = np.abs(made.q) + abs(made.A).T @ np.abs(whole.z) + 1e-12
    assert np.abs(slope / size).max() < 1e-6
