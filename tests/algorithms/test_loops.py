"""The loops as ordinary functions: a problem made by hand, no program; and schedules by what they change."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fccomodel import algorithms
from fccomodel.algorithms.runtime.finish import ending, finish
from fccomodel.algorithms.runtime.loops import block_loop, progress, vector_loop
from fccomodel.algorithms.runtime.loops.schedules import SCHEDULES, Decay, Practical, Schedule, Theory
from fccomodel.algorithms.runtime.loops.settings import BlockSettings, LoopSettings, VectorSettings
from fccomodel.algorithms.runtime.loops.solver import BlockSolver, VectorSolver
from fccomodel.algorithms.runtime.loops.vector_oracle import linearised
from fccomodel.core.work import to_the_end

CURVATURE = torch.tensor([1.0, 4.0])
CENTRE = torch.tensor([3.0, -1.0])
#: of the minimum over w_1 <= 2
OPTIMUM = torch.tensor([2.0, -1.0], dtype=torch.float64)


def whole(data: Any, w: torch.Tensor, c: Any, h: Any) -> torch.Tensor:
    """1/2 sum_k a_k (w_k - m_k)^2."""
    return 0.5 * (CURVATURE.to(w) * (w - CENTRE.to(w)).square()).sum()


def project(w: torch.Tensor, step: Any) -> None:
    w[0].clamp_(max=2.0)


def gradient(
    data: Any, w: torch.Tensor, w_prev: torch.Tensor, u: Any, c: Any, batch: Any, h: Any
) -> torch.Tensor:
    """Its slope, with noise of mean 0."""
    return CURVATURE.to(w) * (w - CENTRE.to(w)) + 0.1 * batch[0].to(w)


def common(schedule: Schedule) -> dict[str, Any]:
    def namespace(tensors: Any, device: str, dtype: torch.dtype) -> Any:
        return SimpleNamespace(device=torch.device(device), dtype=dtype, waiting={})

    return {
        "schedule": schedule,
        "as_namespace": namespace,
        "prepare": lambda data: data,
        "prepare_full": lambda data: data,
        "start": lambda rng, device, dtype: torch.zeros(2, dtype=dtype),
        "centres": lambda device, dtype: SimpleNamespace(),
        "draw": lambda data, rng, T: [torch.randn((T, 2), generator=rng)],
        "project": project,
        "evaluate": lambda data, w: (whole(data, w, None, None), {}),
        "blocks": lambda data, w: {},
        "all_blocks": lambda data, w: {},
        "whole": whole,
        "regulariser": lambda w: 0.0,
        "own": 2,
    }


def block_solver(pace: str = "practical", **more: Any) -> BlockSolver:
    """Plain steps, as an algorithm would declare them."""
    record = algorithms.all()["bsgd"]
    functions = record.functions("plain", pace)
    schedule = SCHEDULES[pace](
        **{name: functions.pop(name) for name in ("falling", "next_stage") if name in functions}
    )
    settings: dict[str, Any] = {"eta": 0.1, "stage": 50, **more}
    return BlockSolver(
        **common(schedule),
        **functions,
        settings=lambda: BlockSettings(**settings),
        solve=block_loop.solve,
        finish=finish.finish,
        one_pass=finish.one_pass,
        gradient=gradient,
        buffers=lambda device, dtype: SimpleNamespace(),
        tol=1e-9,
    )


def vector_solver(algorithm: str) -> VectorSolver:
    """phi(F(w)) with F(w) = w and its noise, phi the quadratic."""
    record = algorithms.all()[algorithm]
    settings = {name: value for name, value in record.hyper.items() if name != "inner_batch"}
    made = dataclasses.make_dataclass(
        "Own", [(n, float, v) for n, v in settings.items()], bases=(VectorSettings,), kw_only=True
    )
    return VectorSolver(
        **common(Practical()),
        **record.functions(next(iter(record.steps)), "practical"),
        settings=made,
        solve=vector_loop.solve,
        inner=lambda data, w, batch, h: w + 0.1 * batch[0].to(w),
        inner_full=lambda data, w, h: w + 0.0,
        outer=lambda data, w, u, c, h: whole(data, u, c, h),
        components=2,
        samples=2,
        rows=20,
    )


@pytest.mark.parametrize("pace", SCHEDULES)
def test_the_loop_over_blocks(pace: str) -> None:
    solver = block_solver(pace)
    with torch.no_grad():
        found = solver.solve(solver, {}, seed=1, iterations=2000, seconds=None)
    assert found.iterations <= 2000 and float((found.w - OPTIMUM).norm()) <= 2e-2


def test_the_finish_ends_at_the_optimum() -> None:
    solver = block_solver(eta=0.0)
    with torch.no_grad():
        found = ending.solve_then_finish(solver, {}, iterations=20, way="finish")
    assert found.status == "converged" and float((found.w - OPTIMUM).norm()) <= 1e-8
    assert found.eta == pytest.approx(1 / float(CURVATURE.max()), rel=1e-3), (
        "a step of 0 is the inverse of the smoothness"
    )


@pytest.mark.parametrize("algorithm", ["apg", "civr", "vrsc_pg"])
def test_the_loop_over_vectors(algorithm: str) -> None:
    solver = vector_solver(algorithm)
    with torch.no_grad():
        found = solver.solve(solver, {}, seed=1, iterations=2000, seconds=None)
    assert float((found.w - OPTIMUM).norm()) <= 2e-2 and found.epsilon <= 5e-2


def test_a_run_repeats() -> None:
    solver = block_solver()
    with torch.no_grad():
        first, again = (solver.solve(solver, {}, seed=3, iterations=150, seconds=None) for _ in range(2))
    assert torch.equal(first.w, again.w)


def test_decay_returns_its_last_iterate() -> None:
    """Its steps are a tenth of the first from half of the budget on, a hundredth from three quarters."""
    seen: list[tuple[float, torch.Tensor]] = []

    def watched(state: Any, G: torch.Tensor, h: BlockSettings) -> float:
        state.w.sub_(G, alpha=h.eta)
        seen.append((h.eta, state.w.clone()))
        return h.eta

    solver = dataclasses.replace(block_solver("decay"), update=watched)
    with torch.no_grad():
        found = solver.solve(solver, {}, iterations=100, seconds=None)
    tried, seen = seen[:-100], seen[-100:]  # a few before, by which a step is priced
    assert len(tried) < 10 and [eta for eta, _ in seen] == pytest.approx(
        [0.1] * 50 + [0.01] * 25 + [0.001] * 25
    )
    last = seen[-1][1].clone()
    project(last, 0.0)
    assert torch.equal(found.w, last.double())


# ---------------------------------------------------------------------------------------- schedules
def test_a_look_that_is_left_leaves_decay_its_last_iterate() -> None:
    """Ctrl-C in a look: the answer is where the steps ended, not where they were at the look before."""
    seen: list[torch.Tensor] = []
    asked: list[bool] = []

    def watched(state: Any, G: torch.Tensor, h: BlockSettings) -> float:
        state.w.sub_(G, alpha=h.eta)
        seen.append(state.w.clone())
        return h.eta

    def evaluate(data: Any, w: torch.Tensor) -> Any:
        if len(seen) > 150:
            asked.append(True)
        return whole(data, w, None, None), {}

    solver = dataclasses.replace(block_solver("decay"), update=watched, evaluate=evaluate)
    with torch.no_grad():
        found = solver.solve(solver, {}, iterations=400, seconds=None, stop=lambda: bool(asked), dear=-1.0)
    last = seen[-1].clone()
    project(last, 0.0)
    assert found.status == "interrupted" and len(seen) < 400 and torch.equal(found.w, last.double())


def test_a_finish_that_is_left_has_the_error_of_its_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that is left before its point is kept has not converged."""
    w = torch.ones(2, dtype=torch.float64)
    monkeypatch.setattr(finish, "panoc", lambda *_: (torch.zeros(2, dtype=torch.float64), 0.0, 0.1))
    monkeypatch.setattr(finish, "summary", lambda value: value)
    monkeypatch.setattr(finish, "shift_centres", lambda *_: ({}, False, 0.0))
    now = SimpleNamespace(w=w, best=w, value=(1.0, 0.0, 0.0), step=0.1, inner=None, pairs=[])
    now.error, now.off, now.shifts, now.enough = math.inf, math.inf, {}, 1.0
    h = SimpleNamespace(weight=1.0, rho=1.0)
    solver = SimpleNamespace(evaluate=lambda *_: (0.0, 0.0, 0.0), nonconvex=False, attained=True, resume=None)
    full = SimpleNamespace(data={}, h=h, count=SimpleNamespace(passes=0), tol=1e-6, solver=solver, c=None)
    full.at = full.prox = full.keep = full.limit = None
    full.endless = lambda: False
    assert not to_the_end(lambda: finish.next_round(now, full), lambda: True)
    assert now.best is w and now.error == math.inf
    now.inner = None
    assert to_the_end(lambda: finish.next_round(now, full), lambda: False)
    assert not now.best.any() and now.error == 0.0


def test_what_schedules_change() -> None:
    h, used = BlockSettings(stage=40, eta=0.5), []
    practical = Practical(falling=lambda h, share: share, next_stage=lambda *given: used.append(given))
    assert (practical.adapts, Theory().adapts, Decay().adapts) == (True, False, False)
    assert (practical.within(h, 0.5, 0.5), practical.within(h, 0.0, 0.0)) == (0.5, 0.02)
    assert practical.within(dataclasses.replace(h, annealed=True), 0.5, 0.5) == pytest.approx(0.275)
    assert practical.within(dataclasses.replace(h, once=True), 0.5, 0.5) == pytest.approx(0.505)
    assert Theory().within(h, 0.5, 0.5) is Decay().within(h, 0.5, 0.5) is h
    assert [practical.length(h, 90, 100), Theory().length(h, 0, None), Decay().length(h, 0, 5000)] == [
        10,
        40,
        100,
    ]
    assert [schedule.averages(10, 40) for schedule in (practical, Theory(), Decay())] == [False, True, False]
    practical.after(h, True, 0.1)
    Theory().after(h, True, 0.1)
    assert used == [(h, True, 0.1)] and h == BlockSettings(stage=40, eta=0.5)
    practical.move(h, 0.5, 0.9)
    assert h.eta == 0.5
    Decay().move(h, 0.5, 0.9)
    assert h.eta == pytest.approx(0.005)


def test_a_theorem_names_what_changes_between_its_stages() -> None:
    """SOX-boost halves its steps after every stage, in practice after those that gain nothing; HSCG
    begins but once."""
    boost, hscg, sox = (algorithms.all()[name] for name in ("sox_boost", "hscg", "sox"))
    for gained in (True, False):
        h: Any = BlockSettings(peak=0.2, stage=30, longest=50, gamma=0.4)
        h.beta = 0.1
        boost.functions("momentum", "theory")["next_stage"](h, gained, 0.0)
        assert (h.peak, h.stage, h.gamma, h.beta) == (0.1, 60, 0.2, 0.05)
    h.stage = 30
    boost.functions("momentum", "practical")["next_stage"](h, True, 0.0)
    assert (h.peak, h.stage) == (0.1, 30)
    boost.functions("momentum", "practical")["next_stage"](h, False, 0.0)
    assert (h.peak, h.stage) == (0.05, 50)
    assert "next_stage" not in sox.functions("momentum", "theory") and "falling" not in sox.functions(
        "momentum", "decay"
    )
    assert hscg.functions("constant", "theory")["begin"] is not hscg.begin
    assert hscg.functions("constant", "decay")["begin"] is hscg.begin


def test_smoothing_parameters_of_settings() -> None:
    h = LoopSettings(lam_inner=0.3)
    h.smooth("y1", 0.5)
    h.smooth("y2", 2.0)
    wide = h.smoothed(lambda lam: 10 * lam)
    assert (wide.smoothing("y1"), wide.smoothing("y2"), wide.lam_inner) == (5.0, 20.0, 0.3)
    assert (h.smoothing("y1"), h.steep) == (0.5, math.inf)


def test_constants_among_inner_functions_have_a_derivative() -> None:
    found = linearised(lambda w: torch.ones(2, dtype=w.dtype), torch.zeros(3))
    assert found.pull(torch.ones(2)).tolist() == [0.0] * 3 and found.push(torch.ones(3)).tolist() == [0.0] * 2
    assert found.matrix().tolist() == [[0.0] * 3] * 2


def test_progress_hears_of_steps_between_stages():
    told = []
    run = SimpleNamespace(history=[], value=(2.0, 0.0, 0.5), count=7)
    heard = progress.hearing(told.append, every=0.0)
    heard(run)
    run.history, run.count = [{"stage": 1, "kkt": 0.1, "iteration": 7}], 9
    heard(run)
    assert told[0] == {"stage": 0, "iteration": 7, "objective": 2.0, "violation": 0.5}
    assert told[1] == {"stage": 1, "iteration": 9, "objective": 2.0, "violation": 0.5, "kkt": 0.1}
    assert progress.hearing(None) is None


def test_progress_hears_nothing_within_its_rhythm():
    told = []
    progress.hearing(told.append, every=1e9)(SimpleNamespace(history=[], value=(0, 0, 0), count=1))
    assert told == []


# ------------------------------------------------------------------------------- memory that runs out
def test_steps_without_memory_end_at_the_best_point() -> None:
    """An array that finds no room ends the run; what its looks found stays, and before any it is an error."""
    looks: list[float] = []

    def evaluate(data: Any, w: torch.Tensor) -> Any:
        looks.append(float(whole(data, w, None, None)))
        if len(looks) > most:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")
        return whole(data, w, None, None), {}

    solver = dataclasses.replace(block_solver(), evaluate=evaluate)
    most = 20
    with torch.no_grad():
        found = solver.solve(solver, {}, iterations=4000, seconds=None)
        assert (found.status, found.reason) == ("stopped", "memory ran out") and 0 < found.iterations < 4000
        assert float(whole({}, found.w, None, None)) == pytest.approx(min(looks[:most]), rel=1e-6)
        looks, most = [], 0
        with pytest.raises(RuntimeError, match="allocate memory"):
            solver.solve(solver, {}, iterations=4000, seconds=None)


def test_a_stage_after_steps_without_memory_leaves_their_point() -> None:
    work = progress.Work()

    def task() -> None:
        raise MemoryError

    assert not progress.completed(task, lambda: False, work) and work.short
    outcome = SimpleNamespace(status="stopped", reason="the budget is used up", timed=False)
    progress.cut_short(outcome, None, work)
    assert (outcome.status, outcome.reason, outcome.timed) == ("stopped", "memory ran out", False)
    with pytest.raises(RuntimeError, match="another"):
        progress.completed(lambda: next(failing()), lambda: False, work)


def failing() -> Any:
    """A generator that fails, not for lack of memory."""
    raise RuntimeError("another")
    yield


def test_a_jacobian_by_columns_is_that_by_rows() -> None:
    """More than eight values of fewer variables: the columns."""
    x = torch.randn((12, 3), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    w = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)
    at = linearised(lambda v: (x @ v).exp() + (x.square() @ v), w)
    expected = (x @ w).exp()[:, None] * x + x.square()
    assert torch.allclose(at.matrix(), expected, rtol=1e-14)
    assert torch.allclose(torch.stack([at.pull(s) for s in torch.eye(12, dtype=w.dtype)]), expected)
