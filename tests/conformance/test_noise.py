"""Small batches: estimates that average over longer windows as steps fall, smoothing no finer than
their errors; and what few steps on all rows reach where constraints bind hard."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from conformance.problems import ALL
from conformance.runs import needs_cvxpy, outcome, planned
from fccomodel import algorithms, pipeline
from fccomodel.algorithms.runtime.loops import block_loop, progress, steps
from fccomodel.algorithms.runtime.loops.schedules import Practical
from fccomodel.algorithms.runtime.loops.settings import BlockSettings
from fccomodel.core.source import Source
from fccomodel.program import emit
from fccomodel.program.lower import lower

BY_NAME = {p.name: p for p in ALL}
SMALL = {"outer_batch": 3, "inner_batch": 6}
#: gap and violation that 4,000 steps of three blocks and six samples reach
NOISY = {
    "sonex": {
        "worst_group": 5e-3,
        "planted_absolute": 4e-2,
        "two_sided": 3e-2,
        "bounded_group": 5e-3,
        "stochastic_outer": 3e-3,
    },
    "alexr2": {"worst_group": 5e-3, "bounded_group": 5e-3, "absolute": 1e-2},
    "icppac": {"absolute": 1e-2, "cvar_bound": 2e-2, "composition_bound": 5e-2},
}
#: the same in 2,000 steps on all rows
WHOLE = {
    "sonex": {"composition_bound": 1e-3, "two_sided": 1e-3},
    "alexr2": {"two_sided": 1e-3},
    "icppac": {"composition_bound": 1e-4, "composition_and_bound": 1e-4, "bounded_group": 1e-4},
}


def settings(lam_y1: float = 0.1, **given: float) -> Any:
    """Those of a program with a centre y1."""
    h = BlockSettings(**given)  # type: ignore[arg-type]
    h.smooth("y1", lam_y1)
    return h


def cases(reached: dict[str, dict[str, float]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "name, problem, most", [(a, p, most) for a, ps in reached.items() for p, most in ps.items()]
    )


@needs_cvxpy
@cases(NOISY)
def test_small_batches(name: str, problem: str, most: float) -> None:
    found = outcome(BY_NAME[problem], name, iterations=4000, **SMALL)
    assert found.gap <= most and found.violation <= most


@needs_cvxpy
def test_a_stage_that_ran_away_is_taken_back() -> None:
    """Its iterates are finite, and of no use: duals of a smooth f that wait for their visits allow
    shorter steps than the curvature does, and going on from 1e39 no later stage would be back in
    time."""
    assert outcome(BY_NAME["stochastic_outer"], "alexr_quadratic", iterations=2000, **SMALL).gap <= 1e-2


@needs_cvxpy
@cases(WHOLE)
def test_all_rows(name: str, problem: str, most: float) -> None:
    found = outcome(BY_NAME[problem], name, iterations=2000)
    assert found.gap <= most and found.violation <= most


def test_windows_lengthen_as_steps_fall() -> None:
    h = BlockSettings(peak=0.2, eta=0.2, gamma=0.4, gamma_prime=0.6)
    now = steps.falling(h, 0.5)
    assert (now.eta, now.gamma, now.gamma_prime) == (0.1, 0.2, 0.8)
    assert steps.falling(h, 0.02).gamma == pytest.approx(0.04), "a tenth at least"
    assert (h.gamma, h.gamma_prime) == (0.4, 0.6), "the next stage begins with its own"
    h.steady = True
    assert (steps.falling(h, 0.5).eta, steps.falling(h, 0.5).gamma) == (0.1, 0.4), (
        "where blocks with exponentials wait"
    )
    apart = steps.falling(BlockSettings(peak=0.2, gamma=0.4, gamma_prime=0.4), 0.5)
    assert (apart.gamma, apart.gamma_prime) == (0.2, 0.4)


def test_what_falls_within_a_stage_is_the_algorithms() -> None:
    """MSVR's gamma stays: it alone forgets errors of corrections. ConEx's dual step 1 / tau falls with
    the primal one."""
    msvr, icppac = (algorithms.all()[name].falling for name in ("msvr", "icppac"))
    h = BlockSettings(peak=0.2, gamma=0.5, tau=30.0)
    assert msvr(h, 0.5) == dataclasses.replace(h, eta=0.1)
    assert icppac(h, 0.5) == dataclasses.replace(h, eta=0.1, tau=60.0)


@pytest.mark.parametrize("blocks, gamma", [(5, 0.1), (3, 1 / 6), (1, 0.5)])
def test_gamma_follows_from_how_often_blocks_are_visited(blocks: int, gamma: float) -> None:
    for name in ("sonex", "alexr2"):
        hyper = planned(BY_NAME["worst_group"], algorithm=name, outer_batch=blocks).hyper
        assert (hyper["gamma"], hyper["gamma_prime"]) == pytest.approx((gamma, 1 - gamma))


@pytest.mark.parametrize(
    "off, before, lam", [(0.0, 0.3, 0.1), (0.2, 0.3, 0.4), (0.0, 3.0, 0.4), (0.0, 1.5, 0.2)]
)
def test_smoothing_of_penalties(off: float, before: float, lam: float) -> None:
    """A violation of 0.3 that was ``before``, known up to ``off``: lam goes from 0.4 to a quarter
    where the violation does not fall, by what lacks to a tenth where it falls, and not below twice
    the error over the multipliers' size, here 1."""
    t = torch.tensor(0.3, dtype=torch.float64)
    h = settings(rho=10.0, weight=1.0, steep=0.0, lam_y1=0.4)
    c, u = SimpleNamespace(y1=torch.zeros((), dtype=torch.float64)), SimpleNamespace(y1=t + off)
    found = {"y1": ((), t, lambda t, y, h: ((t + h.lam_y1 * y) / h.lam_y1).clamp(0, h.rho), 1.0)}
    solver: Any = SimpleNamespace(blocks=lambda data, w: found, dual=False)
    w = torch.zeros(2, dtype=torch.float64)
    data = SimpleNamespace(dtype=torch.float64)
    progress.move_centres(solver, data, w, c, h, (before, 0.3), lambda w: w, u)
    assert h.lam_y1 == pytest.approx(lam)
    assert float(c.y1) == pytest.approx(0.75)


def test_constraints_share_their_first_smoothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hardly is violated at the start is smoothed as the one that is violated most: slope 0.1
    / lam = rho / 10."""
    found = {
        name: ((), torch.tensor(t, dtype=torch.float64), lambda t, y, h: (t / 1e6).clamp(0, h.rho), 1.0)
        for name, t in {"y1": 3e-4, "y2": 0.1, "y3": -0.2}.items()
    }
    solver: Any = SimpleNamespace(blocks=lambda data, w: found, dual=False, schedule=Practical(), curved=())
    monkeypatch.setattr(progress, "smoothness", lambda G, w, powers: 1.0)
    monkeypatch.setattr(progress, "steepness", lambda *given: 2.0)
    h, c = settings(rho=10.0), SimpleNamespace(**{name: torch.zeros(()) for name in found})
    w = torch.full((4,), 0.5)
    progress.scale_smoothing(solver, None, w, c, h, lambda w: w, torch.float64)
    assert (h.rho, h.lam_y1, h.lam_y2, h.lam_y3) == pytest.approx((10, 0.1, 0.1, 0.1))


def test_multipliers_answer_to_minibatches_of_a_family() -> None:
    """Differences of a family's members are linear: ConEx takes them as they are sampled, as it does
    those written out."""
    text = (
        "dim d; data D : table(x: real[d], y: real, g: {0, 1, 2, 3, 4}); var w[d]; set T = {-1, 0, 1};\n"
        "let rate[c in {0, 1}, t in T] = E[z ~ D | z.g == c] sigmoid(dot(w, z.x) - t);\n"
        "minimize E[z ~ D] square(dot(w, z.x) - z.y); subject to gap[t in T]: abs(rate[0, t] - rate[1, "
        "t]) <= 0.01;"
    )
    bound = pipeline.bind(
        pipeline.compile_model(Source(text=text, name="m")), pipeline.Binding(data=BY_NAME["cvar"].data())
    )
    options = {"algorithm": ("icppac", "test"), "unverified": (True, "test"), "inner_batch": (6, "test")}
    program = emit.emit(
        lower(bound.problem, bound, pipeline.decide(pipeline.analyse(bound.problem, bound), options))
    ).text
    body = program[program.index("def gradient(") : program.index("def evaluate(")]
    assert "extrapolate(" in body and "multiplier(" in body and "track(" not in body


def test_the_first_step_of_a_subgradient_method_is_judged_by_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minibatch has a kink at 0.001, the function its own at 0.5: a first step is not held up by the
    former."""
    monkeypatch.setattr(block_loop, "smoothness", lambda G, w, powers: 1.0)

    def G(w: torch.Tensor) -> torch.Tensor:
        return (w - 1) + 10 * w.sign() * (w.abs() > 0.001)

    def value(w: torch.Tensor) -> float:
        return float((0.5 * (w - 1).square() + 10 * (w.abs() - 0.5).relu()).sum())

    solver: Any = SimpleNamespace(centred=False)
    w = torch.zeros(1, dtype=torch.float64)
    assert block_loop.inverse_smoothness(solver, G, w) <= 0.001
    assert block_loop.inverse_smoothness(solver, G, w, value) == 0.5
    uphill = block_loop.inverse_smoothness(solver, lambda x: x + 1, w, value)
    assert uphill == 1.0, "where a minibatch points uphill its gradient decides"
