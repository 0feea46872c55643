"""Runs an emitted program, from its text."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from fccomodel.core import options, process
from fccomodel.core.diagnostics import quoting, refuse
from fccomodel.core.failure import Failure
from fccomodel.core.options import KEYWORD
from fccomodel.data.bound import Bound
from fccomodel.execution import backends, errors, ranks
from fccomodel.execution.checkpoints import Checkpoints
from fccomodel.execution.checkpoints.keeper import Keeper
from fccomodel.execution.run import answers
from fccomodel.execution.run.answers import exact_values, multipliers
from fccomodel.execution.run.loading import loaded
from fccomodel.execution.run.machine import nothing_finite, refuse_size, solved, unjudged
from fccomodel.execution.run.microscope import Microscope, Trace
from fccomodel.plan.starts import EndOfRun, Start
from fccomodel.program import starts
from fccomodel.program.emit import Program

#: A residual to end at that no steps reach.
OUT_OF_REACH = 1e-15

__all__ = ["Checkpoints", "Failure", "Keeper", "Progress", "Solution", "exact_values", "multipliers", "run"]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a run.

    objective, violation  of the best point so far, on the exact problem
    kkt, kkt_error        its KKT residual as last estimated, with the 95% error of the estimate
    passes                passes over all rows that the finish has taken; None before the finish
    constraints           running values by label, left minus right side: of steps by your optimizer
    """

    stage: int
    iteration: int
    objective: float
    violation: float
    kkt: float | None
    kkt_error: float | None
    steps_per_second: float
    seconds_left: float | None
    message: str = ""
    passes: int | None = None
    constraints: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """The end of a run: its point and how it ended.

    variables    the user's variables, float64
    multipliers  by label of the constraints
    limits       by constraint (a family as a whole) the largest multiplier that its penalty allows
    history      for each stage objective (in the model's sense) and violation of the best point so
                 far, oracle calls, seconds
    stopped      why it ended, in words
    ended        ``converged``, ``interrupted`` or ``stopped``
    notes        on the smoothing: its parameter at the end, and how far a block's envelope can differ
    passes       passes over all rows at the end, 0 if there were none
    way          what these passes were: ``finish`` or ``restore``
    moved        whether they changed the point
    interior     iterations of the interior-point method that found the answer, 0 if it did not
    paper        the key of that method's paper
    failure      why there is no solution, if that was found
    timed        the clock ended it, or one of its stages, so that another run may end elsewhere
    worked       its counted seconds
    patience     the largest number of counted seconds that it had, if it had a limit
    planned      the steps of its budget, or those that its last stage was to end at
    kept         what another run can go on from
    trace        what a microscope saw of it
    """

    variables: Mapping[str, np.ndarray]
    multipliers: Mapping[str, float]
    limits: Mapping[str, float]
    history: list[dict[str, Any]]
    iterations: int
    wall_s: float
    stopped: str
    ended: str
    notes: tuple[str, ...] = ()
    passes: int = 0
    way: str = ""
    moved: bool = True
    interior: int = 0
    paper: str = ""
    failure: Failure | None = None
    timed: bool = False
    worked: float = 0.0
    patience: float | None = None
    planned: int | None = None
    kept: EndOfRun = field(default_factory=EndOfRun)
    backend: str = "eager"
    trace: Trace | None = None

    @property
    def status(self) -> str:
        """``infeasible``, ``unbounded`` or ``unattained``; otherwise ``converged``, ``interrupted`` or
        ``stopped``."""
        if self.failure is None:
            return self.ended
        return self.failure.kind

    @property
    def oracles(self) -> float:
        """The number of oracle calls: values g_i(w; xi) that its steps asked for."""
        if self.history:
            return float(self.history[-1]["oracles"])
        return 0.0

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.ended == "interrupted"


def without_steps(
    variables: Mapping[str, np.ndarray], start: Start | None = None, *, stopped: str = ""
) -> Solution:
    """A point as the end of a run that makes no step, with the multipliers of its start."""
    start = start or Start(values={})
    return Solution(
        variables=variables,
        multipliers=start.multipliers,
        limits={},
        history=[],
        iterations=0,
        wall_s=0.0,
        stopped=stopped,
        ended="converged",
        kept=start.kept,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class RunSettings:
    """The resources of a run, and the conditions of its end.

    backend     what runs the steps, or ``auto``, with the origin of that option; a microscope needs
                eager steps
    seconds     seconds of the clock, which ends the run
    iterations  number of steps
    oracles     number of values g_i(w; xi) that steps may ask for
    room        counted seconds that the stages share, ``seconds`` unless given
    patience    counted seconds after which the run ends
    polish      passes over all rows finish the run
    watched     steps alone estimate the KKT residual as well, now and then
    """

    seed: int = 0
    device: str = "cpu"
    precision: str = "float32"
    backend: tuple[Any, str] = ("eager", KEYWORD)
    seconds: float | None = None
    iterations: int | None = None
    oracles: float | None = None
    room: float | None = None
    patience: float | None = None
    polish: bool = False
    watched: bool = False

    @property
    def limited(self) -> bool:
        """Whether there is a budget of seconds, steps or oracle calls."""
        return (self.seconds, self.iterations, self.oracles) != (None, None, None)

    @property
    def foreseen_seconds(self) -> float | None:
        """Counted seconds that the run will take; None if its budget is in steps or oracle calls alone."""
        if self.oracles is not None:
            return None
        return self.room or self.seconds


def run(
    program: Program,
    bound: Bound,
    settings: RunSettings,
    *,
    microscope: Microscope | None = None,
    keeper: Keeper | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Execute the program's text on its data. Ctrl-C ends it with the best point so far.

    microscope  looks at the steps as they go
    keeper      writes the state as the run goes, and has the state to go on from

    In a program of several ranks all but rank 0 end with the run. Raises F0808 if there is no such
    backend, F0818 if it cannot take the steps, F0713 if another rank is lost, F0711 if nothing finite
    was found, and F0704 if the variables or the arrays exceed the memory.
    """
    device, precision = settings.device, options.working(settings.precision)
    backend_asked = backends.check(*settings.backend)
    refuse_size(program, bound, precision)
    if program.shares is not None:
        device = ranks.join(device)
        ranks.waiting(False)
        if backend_asked not in ("auto", "eager"):
            refuse(errors.of_one_process(f"The backend {backend_asked}"), source=bound.problem.source)
    module, dtype = loaded(program), getattr(torch, precision)
    with process.own_randomness(), quoting(bound.problem.source):
        foreseen = {
            "dtype": dtype,
            "iterations": settings.iterations,
            "seconds": settings.foreseen_seconds,
        }
        if microscope is None and program.shares is None:
            chosen = backend_asked
        else:
            chosen = "eager"
        equipped = backends.equip(chosen, module, program, device=device, **foreseen)
    began = time.perf_counter()
    seconds = settings.seconds if settings.limited else module.SECONDS

    def report(entry: Mapping[str, Any]) -> None:
        """Tell how far the run is."""
        if progress is not None:
            told = _progress(entry, module.SIGN, time.perf_counter() - began, seconds)
            progress(told if keeper is None else replace(told, message=keeper.message))

    if microscope is not None:
        microscope.over(module, bound)
    if keeper is not None:
        keeper.of(module, program.data, device, report)
        began -= keeper.spent
    asked = {"seed": settings.seed, "device": device, "dtype": dtype, "seconds": seconds}
    asked |= {"iterations": settings.iterations, "oracles": settings.oracles, "progress": report}
    if settings.polish:
        asked |= {"room": settings.room, "patience": settings.patience}
    elif settings.watched:
        asked |= {"tol": OUT_OF_REACH}
    final = solved(module, program, bound, settings.polish, keeper, **asked)
    if program.shares is not None:
        ranks.done()
    judged = bool(final.history) and np.isfinite(final.history[-1]["merit"])
    if not bool(torch.isfinite(final.w).all()) or not (judged or unjudged(final)):
        raise nothing_finite(bound, module, final)
    values, ended = exact_values(module, program, final), answers.notes(program, module, final)
    return Solution(
        variables=answers.variables(program, bound, final.w),
        kept=starts.kept(program.layout, final, module.SOLVER.inside),
        multipliers=multipliers(program, bound, final, values),
        limits=answers.limits(program, bound, final),
        history=[{**entry, "objective": module.SIGN * entry["objective"]} for entry in final.history],
        iterations=final.iterations,
        passes=getattr(final, "passes", 0),
        way=getattr(final, "way", ""),
        moved=getattr(final, "moved", True),
        failure=answers.failure(bound, program, getattr(final, "failure", None), values),
        wall_s=time.perf_counter() - began,
        stopped=final.reason,
        ended=final.status,
        timed=final.timed,
        worked=final.worked,
        patience=settings.patience,
        planned=final.planned,
        trace=None if microscope is None else microscope.trace(module, program, bound, settings.seed),
        backend=equipped.name,
        notes=(
            *filter(None, (_shared(program), equipped.said)),
            *(keeper.notes if keeper is not None else ()),
            *ended,
        ),
    )


def _shared(program: Program) -> str:
    """A sentence on how ranks share the steps; an empty text in a single process."""
    if program.shares is None:
        return ""
    return f"{ranks.count()} {program.shares.sentence}"


def _progress(entry: Mapping[str, Any], sign: int, elapsed: float, seconds: float | None) -> Progress:
    """An entry of the history in the model's sense, with the speed of the run and the time left."""
    return Progress(
        stage=entry["stage"],
        iteration=entry["iteration"],
        objective=sign * entry["objective"],
        violation=entry["violation"],
        kkt=entry.get("kkt"),
        kkt_error=entry.get("kkt_error"),
        steps_per_second=entry["iteration"] / max(elapsed, 1e-9),
        seconds_left=None if seconds is None else max(0.0, seconds - elapsed),
        passes=entry.get("passes"),
    )
