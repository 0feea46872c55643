"""One algorithm on one model, watched: the oracle calls and the counted seconds of its own steps to
accuracies (``choice.py``).

Steps are priced by ``core/work.py`` as they go: the first few, and every so often one more; others
cost what those of as many oracle calls did. So a measurement is the same on a busy machine and on
an idle one.
"""

from __future__ import annotations

import math
import signal
import time
import types
from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from fccomodel import pipeline, report
from fccomodel.algorithms.runtime.loops.progress import thinned, value_at
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import Meter, priced
from fccomodel.execution.run import answers
from fccomodel.program import emit
from fccomodel.program.lower import lower

ACCURACIES = (1e-2, 1e-3)
#: steps that are priced first; then at steps that grow by this
PRICED, RARER = 6, 1.5


class Done(Exception):
    """The run has shown what it was for."""


class Prices:
    """Counted seconds of steps, by how many oracle calls a step makes."""

    def __init__(self) -> None:
        self.known: dict[float, float] = {}
        self.steps, self.next = 0, 0.0

    def of(self, step: Callable[[], Any], calls: Callable[[], float]) -> float:
        """Take a step, and return what it costs; ``calls()``: those so far."""
        before, self.steps = calls(), self.steps + 1
        if self.steps > PRICED and self.steps < self.next:
            step()
            return self.looked_up(calls() - before)
        self.next = max(self.next, RARER * self.steps)
        price = priced(step)[1]
        self.known[calls() - before] = price
        return price

    def looked_up(self, calls: float) -> float:
        """The price of a step of so many calls: that of the next known number, in proportion where
        none has as many."""
        if calls in self.known:
            return self.known[calls]
        numbers = sorted(self.known)
        nearest = numbers[min(bisect(numbers, calls), len(numbers) - 1)]
        return self.known[nearest] * max(calls, 1.0) / max(nearest, 1.0)


@dataclass
class Watch:
    """A run as it goes: counts, the counted seconds of its own steps, and accuracy as it is looked at;
    ``limit``: calls and seconds, both of which end it; ``most`` seconds end it by themselves, and
    thrice as many of the processor's in looks."""

    accuracy: Any
    limit: tuple[float, float]
    most: float
    growth: float
    steps: int = 0
    calls: float = 0.0
    seconds: float = 0.0
    outside: float = 0.0
    before: float | None = None
    opened: bool = False
    next: float = 1.0
    last: float = 0.0
    best: float = math.inf
    reached: dict[float, tuple[float, float]] = field(default_factory=dict)

    def step(self, w: torch.Tensor, calls: float) -> None:
        """After every step."""
        self.steps, self.calls = self.steps + 1, calls
        if self.steps >= self.next:
            self.next = max(self.steps + 1, self.growth * self.steps)
            self.look(w)
        if self.steps % 16 == 0:
            self.judge()

    def stage(self, w: torch.Tensor) -> None:
        """After every stage, of the best point; no more often than iterates are looked at where that
        is dear."""
        if self.growth < 1.3 or self.steps >= self.growth * self.last:
            self.last = self.steps
            self.look(w)
        self.judge()

    def look(self, w: torch.Tensor) -> None:
        now = time.process_time()
        found = self.accuracy(w.detach().cpu())
        self.outside += time.process_time() - now
        self.best = min(self.best, found)
        for wanted in ACCURACIES:
            if found <= wanted:
                self.reached.setdefault(wanted, (self.calls, self.seconds))

    def judge(self) -> None:
        far = self.calls > self.limit[0] and self.seconds > self.limit[1]
        if (
            far
            or self.seconds > self.most
            or self.outside > 3 * self.most
            or len(self.reached) == len(ACCURACIES)
        ):
            raise Done


def watched(module: Any, program: Any, watch: Watch, seed: int) -> None:
    """The program's own run, under watch."""
    solver, prices = module.SOLVER, Prices()
    if hasattr(solver, "advance"):

        def draw(*given):
            batches, price = priced(lambda: module_drawn(*given))
            watch.seconds += price if watch.opened else 0.0  # the first are those that find the step size
            watch.opened = True
            return batches

        def advance(solver, data, state, *rest):
            watch.seconds += prices.of(lambda: module_advance(solver, data, state, *rest), lambda: 0.0)
            watch.step(state.w, (watch.steps + 1) * solver.oracles)

        module_drawn, module_advance = module.drawn, solver.advance
        module.drawn = draw
        solver = replace(solver, advance=advance)
    else:

        def begin(state, F, h):
            watch.before = state.oracles if watch.before is None else watch.before
            watch.seconds += priced(lambda: module_begin(state, F, h))[1]

        def update(state, F, h):
            watch.seconds += prices.of(lambda: module_update(state, F, h), lambda: state.oracles)
            watch.step(state.w, state.oracles - watch.before)

        module_begin, module_update = solver.begin, solver.update
        solver = replace(solver, begin=begin, update=update)

    def observe(of, solver, data, w, *rest):
        watch.stage(w)
        return {}

    def late(number, frame):
        raise Done

    module.observe = observe
    for price in ("step_price", "call_price"):  # by steps that are no part of the run
        setattr(module, price, lambda *given: 1e-5)
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 8 * watch.most)  # steps may take longer than that
    try:
        with module.no_grad():
            module.solve(solver, dict(program.data), seed=seed, seconds=None, iterations=10**7)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def measured(
    problem: Any, analysis: Any, bound: Any, name: str, options: Mapping[str, Any], seed: int, **limits: Any
) -> dict:
    """One algorithm on one model."""
    given = {**options, "algorithm": name, "polish": False}
    plan = pipeline.decide(analysis, {key: (value, "bench") for key, value in given.items()})
    try:
        program = emit.emit(lower(problem, bound, plan))
    except FccoError as error:
        return {"algorithm": name, "failed": str(error)}
    module = types.ModuleType("solver")
    exec(compile(program.text, "solver.py", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    heavy = module.SOLVER.heavy or not analysis.convex
    judge = accuracy(module, program, analysis, bound, limits.pop("optimum"))
    watch = Watch(accuracy=judge, growth=1.5 if heavy else 1.1, **limits)
    try:
        watched(module, program, watch, seed)
    except Done:
        pass
    except (ArithmeticError, RuntimeError, FccoError) as error:
        return {"algorithm": name, "failed": str(error)}
    return {
        "algorithm": name, "reached": {f"{k:g}": v for k, v in watch.reached.items()}, "best": watch.best, "calls": watch.calls,
        "seconds": watch.seconds, "steps": watch.steps,
    }  # fmt: skip


def accuracy(module: Any, program: Any, analysis: Any, bound: Any, optimum: float | None) -> Any:
    """w -> how far it is from a solution."""
    if optimum is None:

        def epsilon(w: torch.Tensor) -> float:
            with torch.inference_mode(False), torch.enable_grad():
                w = w.clone()
                kkt = report.report(
                    bound, answers.variables(program, bound, w.double()), work=Meter(0.5), analysis=analysis
                )
            return float(kkt.relative.get("epsilon", kkt.epsilon))

        return epsilon
    solver = module.SOLVER
    data = solver.as_namespace(dict(program.data), "cpu", torch.float64)
    data = solver.prepare_full(thinned(solver, data, seed=7) if solver.heavy and solver.thin else data)
    start = value_at(solver, data, solver.start(torch.Generator(), "cpu", torch.float64))[0]
    least = module.SIGN * optimum
    scale = max(abs(least), min(1.0, start - least if math.isfinite(start) else 1.0))

    def gap(w: torch.Tensor) -> float:
        objective, _, violation = value_at(solver, data, w.double())
        return max((objective - least) / scale, violation)

    return gap
