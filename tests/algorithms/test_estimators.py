"""Estimators: which u_i the gradient takes is what their records say, and what follows where it shares
its samples."""

from __future__ import annotations

import importlib
import math
import pkgutil
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fccomodel.algorithms import estimators
from fccomodel.app.python import session

ALL = [
    importlib.import_module(f"{estimators.__name__}.{info.name}")
    for info in pkgutil.iter_modules(estimators.__path__)
    if not info.name.startswith("_")
]
SETTINGS = SimpleNamespace(gamma=0.4, gamma_prime=0.6, tau=1.5, theta=0.5)
BEFORE, VALUE, VALUE_BEFORE = 2.0, 3.0, 2.5


def moved(estimator: ModuleType, log: bool) -> tuple[float, float]:
    """What gradients take after one visit of a block, and the estimate that is kept."""
    u, index = torch.tensor([BEFORE, BEFORE], dtype=torch.float64), (torch.tensor([1]),)
    g, g_prev = (torch.tensor([x], dtype=torch.float64) for x in (VALUE, VALUE_BEFORE))
    if log:
        u, g, g_prev = u.log(), g.log(), g_prev.log()
    given: list[Any] = [g, g_prev] if estimator.needs_previous else [g]
    share = [1.0] if getattr(estimator, "needs_share", False) else []
    taken = getattr(estimator, "track_log" if log else "track")(u, index, *given, SETTINGS, *share)
    return (math.exp(float(taken)), math.exp(float(u[1]))) if log else (float(taken), float(u[1]))


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: e.__name__.rpartition(".")[2])
@pytest.mark.parametrize("log", [False, True], ids=["plain", "logarithms"])
def test_gradients_take_the_estimate_that_is_declared(estimator: ModuleType, log: bool) -> None:
    if log and not hasattr(estimator, "track_log"):
        pytest.skip("it keeps no logarithms")
    taken, kept = moved(estimator, log)
    if estimator.gradient_by == "previous":
        assert taken == pytest.approx(BEFORE) and kept != pytest.approx(BEFORE)
    else:
        assert estimator.gradient_by == "new" and taken != pytest.approx(BEFORE)
        assert taken == pytest.approx(VALUE if kept == pytest.approx(BEFORE) else kept), (
            "the value itself, where none is kept"
        )


@pytest.mark.parametrize("algorithm", ["sonex", "sonx", "sox", "alexr2"])
@pytest.mark.parametrize("sampling", [{"sampling": "iid"}, {}], ids=["independent", "by default"])
def test_gradients_are_not_biased_by_the_samples_of_their_estimates(
    algorithm: str, sampling: dict[str, str]
) -> None:
    """(E w z.x - 1)^2 on x in {0, 2}, by single samples: a gradient through the sample that moved u
    meets x u(x), whose mean is not that of x times that of u; it ends at w = 0.556. Samples that
    alternate, as passes over two rows do, end at 1.68."""
    model = session.compile("data D : table(x: real);\nvar w;\nminimize square((E[z ~ D] w * z.x) - 1);")
    options: dict[str, Any] = {"gamma": 0.8, "inner_batch": 1, **sampling, "schedule": "decay", "eta": 0.01}
    step = {} if algorithm == "sonx" else {"step": "momentum"}
    found = model.bind(D={"x": np.array([0.0, 2.0])}).solve(
        algorithm=algorithm, budget="12000it", seed=0, **options, **step
    )
    assert float(found.variables["w"]) == pytest.approx(1, abs=0.05)
