"""A report is linear in rows and in constraints: counts of passes, and entries held."""

import importlib
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import report
from fccomodel.report.kkt import lagrangian
from fccomodel.report.point.system import System

BENCH = Path(__file__).parents[1] / "bench"
SIZES = (4_000, 40_000)
#: So many variables have their Hessian by columns, and their gradients by row.
FEW = 400


@pytest.fixture(scope="module")
def models():
    sys.path.insert(0, str(BENCH))
    try:
        return importlib.import_module("report").MODELS
    finally:
        sys.path.remove(str(BENCH))
        sys.modules.pop("report")


@pytest.fixture
def counted(monkeypatch):
    counts = {"evaluations": 0, "gradients": 0}
    evaluate, grad = System.evaluate, torch.autograd.grad

    def evaluated(*args, **options):
        counts["evaluations"] += 1
        return evaluate(*args, **options)

    def differentiated(*args, **options):
        counts["gradients"] += 1
        return grad(*args, **options)

    monkeypatch.setattr(System, "evaluate", evaluated)
    monkeypatch.setattr(torch.autograd, "grad", differentiated)
    return counts


NAMES = (
    "semideviation",
    "median",
    "all_at_their_kinks",
    "tail",
    "family",
    "kinked_family",
    "active_bounds",
    "sparse",
)


def test_all_models_are_tested(models):
    assert set(NAMES) == set(models)


@pytest.mark.parametrize("name", NAMES)
def test_passes_do_not_grow_with_rows_or_constraints(name, models, counted):
    """Optima are recognised by a few passes over all rows, and some for each of few variables, in
    memory of the data's order."""
    for n in SIZES:
        text, data, point = models[name](n)
        made = fccomodel.compile(text).bind(**data).bound
        size = sum(
            a.nbytes
            for value in data.values()
            for a in (value.values() if isinstance(value, dict) else (value,))
        )
        if n == SIZES[0]:
            report.report(made, point)  # what is imported on the way is not counted
        counted.update(evaluations=0, gradients=0)
        tracemalloc.start()
        found = report.report(made, point)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.epsilon < 1e-6 and found.verdict.startswith("Solved to high accuracy")
        few = entries if (entries := sum(value.size for value in point.values())) <= FEW else 0
        assert counted["evaluations"] <= 20 + few and counted["gradients"] <= 150 + 3 * few, counted
        assert peak < 20 * size + (1 << 25)


def test_derivatives_along_many_directions_at_once(monkeypatch):
    """A chain of kinks has a column for each entry: one pass for many of them, with the same numbers."""
    n = 60
    text = (
        "dim n; data y : real[n]; var b[n]; minimize sumsq(b - y) + sum[i in n | i < n] abs(b[i + 1] - b[i]);"
    )
    bound = fccomodel.compile(text).bind(data={"y": np.arange(n) % 7.0}).bound
    system = System(bound, {"b": np.zeros(n)})
    single = [system.push(np.eye(1, n, j)[0])[1] for j in range(n)]
    passes, pushed = [], system._pushed
    monkeypatch.setattr(
        system, "_pushed", lambda directions: passes.append(len(directions)) or pushed(directions)
    )
    for j, (_, terms) in system.columns():
        for mine, other in zip(terms, single[j], strict=True):
            np.testing.assert_allclose(mine, other)
    assert passes == [n]


def test_hessians_take_no_pass_for_each_variable(monkeypatch):
    """Curvature along a mixed quadratic is found from one evaluation, whatever the number of variables."""
    passes, evaluator = [], lagrangian.Evaluator
    monkeypatch.setattr(
        lagrangian, "Evaluator", lambda *given, **more: passes.append(1) or evaluator(*given, **more)
    )
    counts = []
    for d in (4, 24):
        declared = " ".join(f"var x{k} >= 0;" for k in range(d))
        squares = " + ".join(f"square(x{k} - 0.5 * x{(k + 1) % d}) - {1 + k % 3} * x{k}" for k in range(d))
        made = fccomodel.compile(f"{declared} minimize {squares};").bind().bound
        passes.clear()
        A = np.eye(d) - 0.5 * np.roll(np.eye(d), 1, axis=1)
        x = np.linalg.solve(2 * A.T @ A, 1 + np.arange(d) % 3)
        found = report.report(made, {f"x{k}": np.array(v + 0.01) for k, v in enumerate(x)})
        off = float(((A @ np.full(d, 0.01)) ** 2).sum())
        assert found.gap.value == pytest.approx(off, rel=1e-6)
        counts.append(len(passes))
    assert counts[0] == counts[1] > 0
