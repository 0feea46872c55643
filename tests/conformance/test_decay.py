"""schedule = decay: constant steps divided by ten at half and at three quarters of the budget, and the
last iterate."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from conformance.problems import ALL
from conformance.runs import bound_problem, judged, outcome, planned, refusal, solved
from fccomodel import algorithms
from fccomodel.core.diagnostics import FccoError

BY_NAME = {p.name: p for p in ALL}
#: constrained; smooth outer functions; a linear coupling; one expectation; a maximum
PROBLEMS = ("bounded_group", "square_of_mean", "group_cvar", "lasso", "largest_of_three")


@pytest.mark.parametrize("name", sorted(algorithms.all()))
def test_steps_fall_and_the_last_iterate_is_returned(name: str) -> None:
    problem = next(BY_NAME[p] for p in PROBLEMS if not refusal(BY_NAME[p], name))
    steps, stage = (80, {"stage": 5}) if algorithms.all()[name].oracle == "vector" else (400, {})
    found = solved(problem, iterations=steps, algorithm=name, schedule="decay", budget=f"{steps}it", **stage)
    etas = np.array([entry["eta"] for entry in found.history])
    assert etas[-1] == pytest.approx(0.01 * etas[0])
    assert set(np.round(np.log10(etas / etas[0]), 9)) <= {0, -1, -2}
    objective, violation = judged(
        bound_problem(problem), {k: torch.as_tensor(v) for k, v in found.variables.items()}
    )
    assert found.history[-1]["objective"] == pytest.approx(objective, rel=1e-9)
    assert found.history[-1]["violation"] == pytest.approx(max(violation, 0.0), abs=1e-9)


def test_what_is_given_stays_as_it_is() -> None:
    """Step, penalty and smoothing: where the smoothed hinge stays so, the constraint is at lam times
    its multiplier."""
    given = {"eta": 0.05, "rho": 20.0, "lam": 0.02, "step": "momentum"}
    problem = BY_NAME["bounded_group"]
    found = outcome(problem, "sonex", iterations=3000, schedule="decay", budget="3000it", **given)
    assert found.multipliers is not None
    assert found.violation == pytest.approx(0.02 * found.multipliers["one"], rel=0.02)


@pytest.mark.parametrize("budget", ["10s", None])
def test_a_budget_of_time_has_no_steps_to_divide(budget: str | None) -> None:
    with pytest.raises(FccoError, match="F0614") as caught:
        planned(BY_NAME["lasso"], schedule="decay", **({"budget": budget} if budget else {}))
    assert "it" in caught.value.diagnostics[0].fix
