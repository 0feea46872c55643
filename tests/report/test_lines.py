"""Models with several valleys and flat ways down: a point is not called best while a line through it
leads to a better one, and is called a local solution where nothing proves more."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel import report

LOCAL = "Solved locally to high accuracy"
#: a model, a point where the objective's slope is 0 but that is not best, and the optimum
VALLEYS = {
    "two_valleys": ("var x; minimize (x^2 - 1)^2 + 0.3 * x;", 0.9601497, -0.3054285),
    "in_a_box": ("var x in box(-2, 2); minimize x^5 * (x - 1);", 0.0, -(5**5) / 6**6),
    "order_11": ("var x in box(-1, 2); minimize x^11 / 11 - x^10 / 10;", 0.0, -1 / 10 - 1 / 11),
    "far": ("var x; minimize (x - 30)^2 * (x^2 + 1) / 1000;", None, 0.0),
    "falls": ("var x; var y; maximize -((x^2 - 1)^2 + 0.3 * x + (y - x)^2);", 0.9601497, 0.3054285),
}


def judged(text: str, x: float) -> report.KKTReport:
    bound = fccomodel.compile(text).bind().bound
    point = {name: np.asarray(x) for name in bound.problem.variables}
    return report.report(bound, point)


@pytest.mark.parametrize("name", [name for name, (_, at, _) in VALLEYS.items() if at is not None])
def test_a_valley_elsewhere_is_found(name: str) -> None:
    text, at, _ = VALLEYS[name]
    assert at is not None
    found = judged(text, at)
    assert not found.solved and found.better is not None, found.verdict


@pytest.mark.parametrize("name", VALLEYS)
def test_a_solve_goes_on_from_it(name: str) -> None:
    text, at, optimum = VALLEYS[name]
    start = None if at is None else {n: at for n in ("x", "y") if f"var {n}" in text}
    found = fccomodel.compile(text).bind().solve(seed=0, budget="10s", start=start)
    assert found.objective == pytest.approx(optimum, abs=1e-6), found.report.verdict
    assert found.report.verdict.startswith(("Solved",)), found.report.verdict


def test_what_nothing_proves_to_be_best_is_called_local() -> None:
    text, _, _ = VALLEYS["two_valleys"]
    assert judged(text, -1.0355787).verdict.startswith("Solved locally"), judged(text, -1.0355787)


def test_what_is_convex_or_proved_is_not() -> None:
    assert judged("var x; minimize (x - 1)^4 + x;", 1 - 0.25 ** (1 / 3)).verdict.startswith("Solved to high")
    assert judged("var x; minimize (x^2 - 1)^2;", 1.0).verdict.startswith("Solved to high accuracy")


def test_a_random_polynomial_is_never_called_more_than_local() -> None:
    """Degree 8 to 14: a point is called solved without `locally` only where a gap proves it."""
    rng = np.random.default_rng(3)
    for _ in range(6):
        order = int(rng.integers(8, 15))
        roots = np.concatenate([np.full(3, rng.uniform(-1, 1)), rng.uniform(-1.5, 1.5, order - 4)])
        slope = np.polynomial.polynomial.polyfromroots(roots)
        form = np.polynomial.polynomial.polyint(slope / np.abs(slope).max())
        terms = " + ".join(f"({c:.17g}) * x^{k}" for k, c in enumerate(form) if k)
        at = roots[0]
        found = judged(f"var x in box(-2, 2); minimize {terms};", at)
        sampled = np.polynomial.polynomial.polyval(np.linspace(-2, 2, 4001), form)
        if np.polynomial.polynomial.polyval(at, form) - sampled.min() > 1e-4:
            assert not found.solved, found.verdict
