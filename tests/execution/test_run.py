"""Running emitted text: budgets, interruption, the best point, the driver's own arithmetic."""

from __future__ import annotations

import os
import signal
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fccomodel import pipeline
from fccomodel import report as judging
from fccomodel.algorithms.estimators import moving_average, msvr, msvr_current
from fccomodel.algorithms.runtime.loops import progress, steps
from fccomodel.algorithms.runtime.loops.settings import BlockSettings
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.execution import run
from fccomodel.program import emit
from fccomodel.program.lower import lower

TEXT = """dim d;
data D : table(x: real[d], y: real);
var w[d];
minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.1 * sumsq(w);
subject to c: E[z ~ D] square(dot(w, z.x)) <= 0.2;
"""


def program(text: str = TEXT, **options: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    compiled = pipeline.compile_model(Source(text=text, name="m"))
    data = {"D": {"x": rng.normal(size=(50, 3)), "y": np.sign(rng.normal(size=50))}}
    bound = pipeline.bind(compiled, pipeline.Binding(data=data))
    chosen = pipeline.decide(
        pipeline.analyse(compiled.problem, bound), {k: (v, "command line") for k, v in options.items()}
    )
    return emit.emit(lower(compiled.problem, bound, chosen)), bound


def test_a_budget_of_iterations_is_kept() -> None:
    made, bound = program()
    assert run.run(made, bound, run.RunSettings(iterations=333)).iterations == 333


def test_a_budget_of_seconds_is_kept() -> None:
    made, bound = program()
    found = run.run(made, bound, run.RunSettings(seconds=1e-3))
    assert found.wall_s < 5 and found.stopped == "the time limit was reached" and found.timed


def test_progress_is_of_the_best_point() -> None:
    made, bound = program()
    seen: list[run.Progress] = []
    found = run.run(made, bound, run.RunSettings(iterations=3000), progress=seen.append)
    assert [p.stage for p in seen] == list(range(1, len(seen) + 1))
    merits = [entry["merit"] for entry in found.history]
    assert np.isfinite(merits).all() and merits[-1] <= merits[0]
    assert all(p.steps_per_second > 0 for p in seen)


def test_an_interrupt_ends_with_the_best_point() -> None:
    made, bound = program(patience=10**9)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    found = run.run(made, bound, run.RunSettings(seconds=60))
    assert found.interrupted and np.isfinite(found.variables["w"]).all()


def test_an_interrupt_of_the_report_ends_its_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The point of the run is there, with what is known of it; nothing goes on from it."""
    gradients, asked = judging.gradients, []

    def interrupted(*given: Any) -> Any:
        asked.append(signal.raise_signal(signal.SIGINT))
        return gradients(*given)

    monkeypatch.setattr(judging, "gradients", interrupted)
    rng = np.random.default_rng(0)
    data = {"D": {"x": rng.normal(size=(50, 3)), "y": np.sign(rng.normal(size=50))}}
    compiled = pipeline.compile_model(Source(text=TEXT.replace("log1pexp(", "pos(1 "), name="m"))
    found = pipeline.solve(
        pipeline.plan(compiled, pipeline.Binding(data=data), {"budget": ("5s", "command line")})
    )
    assert len(asked) == 1 and found.solution.interrupted and judging.CUT in found.report.notes
    assert np.isfinite(found.solution.variables["w"]).all()


def test_nothing_finite_is_an_error() -> None:
    made, bound = program(
        "dim d;\ndata D : table(x: real[d], y: real);\nvar w[d];\nminimize E[z ~ D] log(dot(w, z.x));"
    )
    with pytest.raises(FccoError) as caught:
        run.run(made, bound, run.RunSettings(iterations=50))
    assert caught.value.diagnostics[0].code == "F0711"


@pytest.mark.parametrize(("algorithm", "step"), [("sox", "momentum"), ("civr", "recursive")])
def test_iterates_that_overflow_are_noted(algorithm: str, step: str) -> None:
    made, bound = program("dim d;\ndata D : table(x: real[d], y: real);\nvar w[d];\nminimize (E[z ~ D] "
                          "(dot(w, z.x) - z.y)^2)^2;",
                          algorithm=algorithm, step=step, eta=1e6)  # fmt: skip
    found = run.run(made, bound, run.RunSettings(iterations=2000))
    assert any(note.startswith("iterates were not finite by step") for note in found.notes)
    assert np.isfinite(found.variables["w"]).all()


@pytest.mark.parametrize(("algorithm", "step"), [("sox", "momentum"), ("civr", "recursive")])
def test_a_fixed_schedule_that_diverges_is_an_error_that_says_so(algorithm: str, step: str) -> None:
    made, bound = program("dim d;\ndata D : table(x: real[d], y: real);\nvar w[d];\nminimize (E[z ~ D] "
                          "(dot(w, z.x) - z.y)^2)^2;",
                          algorithm=algorithm, step=step, eta=1e6, schedule="decay", budget="2000it")  # fmt: skip
    with pytest.raises(FccoError, match="steps diverged"):
        run.run(made, bound, run.RunSettings(iterations=2000))


def test_moving_average_returns_the_previous_estimate() -> None:
    u, h = torch.tensor([float("nan"), 1.0, 5.0]), SimpleNamespace(gamma=0.25)
    old = moving_average.track(u, (torch.tensor([0, 1]),), torch.tensor([2.0, 3.0]), h)
    assert old.tolist() == [2.0, 1.0]
    assert u.tolist() == [2.0, 1.5, 5.0]


@pytest.mark.parametrize("estimator", [msvr, msvr_current], ids=["msvr", "msvr_current"])
def test_msvr_adds_the_difference_on_one_batch(estimator: ModuleType) -> None:
    u, h = torch.tensor([float("nan"), 1.0, 5.0]), SimpleNamespace(gamma=0.25, gamma_prime=0.5)
    taken = estimator.track(u, (torch.tensor([1]),), torch.tensor([3.0]), torch.tensor([2.0]), h)
    assert u[1:].tolist() == [0.75 * 1 + 0.25 * 3 + 0.5 * (3 - 2), 5.0]
    assert taken.tolist() == [1.0 if estimator is msvr else float(u[1])]


def test_momentum_step() -> None:
    state = SimpleNamespace(w=torch.tensor([1.0, 2.0]), v=torch.tensor([0.5, 0.0]), s=torch.zeros(2))
    h = SimpleNamespace(beta=0.1, eta=0.2)
    assert steps.momentum_step(state, torch.tensor([1.0, -1.0]), h) == 0.2
    np.testing.assert_allclose(state.v, [0.55, -0.1], rtol=1e-6)
    np.testing.assert_allclose(state.w, [1 - 0.2 * 0.55, 2 + 0.2 * 0.1], rtol=1e-6)


def test_adam_step() -> None:
    state = SimpleNamespace(w=torch.zeros(2), v=torch.zeros(2), s=torch.tensor([4.0, 0.0]))
    h = SimpleNamespace(beta=0.1, beta_prime=0.01, eps=1e-8, eta=0.2)
    g = np.array([1.0, -3.0])
    step = steps.adam_step(state, torch.tensor(g, dtype=torch.float32), h)
    s = 0.99 * np.array([4.0, 0.0]) + 0.01 * g * g
    np.testing.assert_allclose(step, 0.2 / (np.sqrt(s) + 1e-8), rtol=1e-6)
    np.testing.assert_allclose(state.w, -step.numpy() * 0.1 * g, rtol=1e-6)


def test_swept_adam_step_is_the_same() -> None:
    start, h = (
        torch.linspace(-1.0, 1.0, 50, dtype=torch.float64),
        SimpleNamespace(beta=0.1, beta_prime=0.01, eps=1e-8, eta=0.2),
    )
    one, other = (SimpleNamespace(w=start.clone()) for _ in range(2))
    steps.begin(one, h), steps.begin_late(other, h)
    for G in (start + 0.3, torch.tensor(2.0, dtype=torch.float64).expand(50), start):
        steps.adam_step(one, G, h), steps.swept_adam_step(other, G, h)
        for name in "wvs":
            torch.testing.assert_close(getattr(one, name), getattr(other, name), rtol=1e-14, atol=1e-15)


def test_merit_is_the_exact_penalty() -> None:
    values = (torch.tensor(1.5), {"a": ("le", torch.tensor([0.2, -1.0])), "b": ("eq", torch.tensor(-0.1))})
    point = progress.summary(values)
    assert point == pytest.approx((1.5, 0.3, 0.2))
    assert progress.merit(point, 10.0) == pytest.approx(1.5 + 10 * 0.3)
    assert progress.merit(progress.summary((torch.tensor(float("nan")), {})), 1.0) == float("inf")


def test_smoothness_finds_the_largest_eigenvalue() -> None:
    matrix = torch.diag(torch.tensor([1.0, 3.0, 10.0], dtype=torch.float64))
    found = progress.smoothness(lambda w: matrix @ w + 1.0, torch.zeros(3, dtype=torch.float64))
    assert found == pytest.approx(10.0, rel=1e-2)


def test_batches_grow_near_the_end() -> None:
    """Where stages gain nothing and windows are at their longest, w moves by the mean gradient of two
    batches, then of four."""
    h, state = BlockSettings(peak=1.0, gamma=0.05, stage=10, longest=10), SimpleNamespace(met=0)

    def given(*gradients: float) -> list[float | None]:
        found = [steps.together(state, torch.tensor([G]), h) for G in gradients]
        return [None if G is None else float(G) for G in found]

    assert given(1.0, 2.0) == [1.0, 2.0]
    steps.slow_down(h, gained=True)
    assert h.together == 1 and h.peak == 1.0
    steps.slow_down(h, gained=False)
    assert h.together == 2 and h.peak == 0.8
    assert given(1.0, 4.0) == [None, 2.5]
    steps.slow_down(h, gained=False)
    assert given(*map(float, range(8))) == [None, None, None, 1.5, None, None, None, 5.5]
    early = BlockSettings(peak=1.0, gamma=0.2, stage=10, longest=10)
    steps.slow_down(early, gained=False)
    assert early.together == 1 and early.peak == 0.6
