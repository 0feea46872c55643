"""The training loop behind ``solve(optimizer=...)``: steps of a criterion by somebody's optimizer.

Looks at all rows, or at a sample of them, take about a tenth of the work. The best point of all looks
is the answer. A run ends with a ``Carried``, from which another goes on to the same numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fccomodel.core import options, process
from fccomodel.core.diagnostics import refuse
from fccomodel.core.work import priced
from fccomodel.data.bound import Bound
from fccomodel.execution.run import Progress
from fccomodel.execution.training.batches import BatchScores, RowBatches
from fccomodel.execution.training.best import BestPoint
from fccomodel.execution.training.carried import Carried, Running
from fccomodel.execution.training.criterion import Criterion, NotFinite
from fccomodel.execution.training.errors import optimizer as errors
from fccomodel.execution.training.keeping import TrainingKeeper
from fccomodel.execution.training.looks import BothLooks, LookPoint
from fccomodel.execution.training.moved import Moved
from fccomodel.execution.training.recipe import Recipe, State
from fccomodel.plan import Plan

#: share of the work that looks take
LOOKS_SHARE = 0.05
#: looks of a run that there is time for, at least: of fewer rows where a pass over all is too dear
LOOKS = 10
#: looks of a run, at most
MOST_LOOKS = 100
#: steps between two looks, at least
LEAST_BETWEEN = 10
#: seconds between two calls of ``progress``
HEARD_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a run.

    iterations  steps, None without a limit
    until       the time of the clock (``time.perf_counter``)
    """

    iterations: int | None = None
    until: float = math.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """The end of a training run.

    modules, variables  the best point: nets in the mode that they were trained in, other variables
    best                its values at the look
    history             entries of looks, as ``Solution.history``
    steps               of this run
    ended, stopped      as in ``Solution``
    notes               sentences for the report
    multipliers         by label, the last of the criterion
    error               what a callback raised
    """

    modules: Mapping[str, torch.nn.Module]
    variables: Mapping[str, torch.Tensor]
    best: LookPoint
    history: list[dict[str, Any]]
    steps: int
    seconds: float
    ended: str
    stopped: str
    notes: tuple[str, ...]
    multipliers: Mapping[str, float]
    carried: Carried
    worked: float = 0.0
    timed: bool = False
    error: Exception | None = None


#: what of the course a run goes on with after a kill
CONTINUED = ("steps", "begun_with", "next_look", "between", "looked_at", "worked")


@dataclass(eq=False, kw_only=True)
class _Course:
    """The course of a run: its steps, and why it ends.

    steps       of this run and those before it, which had ``begun_with`` steps
    next_look   the step of the next look; ``between`` steps lie between two looks
    looked_at   the step of the last look, which took ``look_seconds`` by the clock
    heard       time of the clock at the last call of ``progress``
    reason      why the run ends; "" while it goes on
    ended       in a word, as in ``Solution``; ``timed`` if the clock ended it
    worked      counted seconds
    error       what a callback raised
    """

    steps: int = 0
    begun_with: int = 0
    next_look: int = 0
    between: int = LEAST_BETWEEN
    looked_at: int = -1
    look_seconds: float = 0.0
    heard: float = -math.inf
    reason: str = ""
    ended: str = "stopped"
    timed: bool = False
    worked: float = 0.0
    error: Exception | None = None

    @property
    def done(self) -> int:
        """Steps of this run."""
        return self.steps - self.begun_with


class Loop:
    """A run: nets and variables that an optimizer moves by the criterion's gradient."""

    def __init__(
        self,
        bound: Bound,
        plan: Plan,
        recipe: Recipe,
        *,
        seed: int,
        device: str,
        precision: str,
        limits: Limits,
    ):
        place, dtype = torch.device(device), getattr(torch, options.working(precision))
        self.bound, self.recipe, self.limits, self.seed = bound, recipe, limits, seed
        self.criterion = Criterion(bound, plan, batch=recipe.batch).to(place)
        self.moved = Moved(bound, plan, recipe, self.criterion, place, dtype)
        half = precision == options.HALF
        self.batches = RowBatches(self.criterion, seed)
        self.scores = BatchScores(bound, self.criterion, seed, device=place, dtype=dtype, half=half)
        self.looks = BothLooks(bound, recipe.validation, seed)
        self.best = BestPoint(self.looks, recipe, self.criterion)
        self.running = Running(moved=self.moved, criterion=self.criterion, batches=self.batches)
        self.course, self.step_cost = _Course(), 0.0
        self.earlier: LookPoint | None = None
        self.notes: list[str] = []

    def run(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = bool,
        carried: Carried | None = None,
        keeper: TrainingKeeper | None = None,
    ) -> Trained:
        """Steps until the limits, a callback, or validation end them; F0711 if no look was finite.

        keeper  writes the state as the run goes, and has the one of a run that was killed
        """
        with process.own_randomness():
            torch.manual_seed(self.seed)
            if carried is not None:
                self._go_on(carried)
            with _kept(self.course), _heeding_sigterm(keeper):
                if keeper is not None and keeper.left is not None:
                    self._resume(keeper)
                else:
                    self._set_out()
                while not self.course.reason:
                    self.step()
                    self._between_steps(progress, stop)
                    if keeper is not None:
                        self._keep(keeper)
                if keeper is not None and keeper.terminated:  # while the run was being set out
                    self._keep(keeper)
            with _kept(self.course):
                self._look()
            randomness = torch.get_rng_state()
        return self._ended(randomness)

    # ---------------------------------------------------------------------------------------- its begin
    def _go_on(self, carried: Carried) -> None:
        """Takes over the state of an earlier run, if that was of the same model and algorithm."""
        if not self.running.fits(carried):
            self.notes.append("the start is of other rows or nets: only its weights are taken")
            return
        self.notes += self.running.go_on(carried)
        self.course.steps = self.course.begun_with = carried.steps
        self.earlier = carried.best

    def _keep(self, keeper: TrainingKeeper) -> None:
        """Writes the state of the run if it is time, or if somebody ends it."""
        course = self.course
        if not keeper.is_due and course.ended != "interrupted":
            return
        states = self.running.states()
        now = {name: getattr(course, name) for name in CONTINUED}
        randomness = torch.get_rng_state()
        whole = {"states": states, "course": now, "best": self.best.state(), "randomness": randomness}
        whole["optimizer"] = type(self.moved.optimizer).__qualname__
        keeper.write(whole, course.steps)

    def _resume(self, keeper: TrainingKeeper) -> None:
        """Goes on where a run that was killed had its last checkpoint."""
        assert keeper.left is not None
        state, course = keeper.left, self.course
        carried = Carried(
            optimizer=state["optimizer"],
            states=state["states"],
            best=None,
            randomness=state["randomness"],
            steps=state["course"]["steps"],
        )
        self.notes += self.running.go_on(carried)
        for name, value in state["course"].items():
            setattr(course, name, value)
        self.best.take_over(state["best"])
        self.best.began -= keeper.spent
        self.notes += [f"resumed at step {course.steps:,} from a checkpoint", *filter(None, [keeper.said])]
        _, self.step_cost = priced(self._batch_alone)
        seconds = self.limits.until - time.perf_counter()
        limit = self.limits.iterations
        self._between_looks(seconds / self.step_cost if limit is None else limit)
        if limit is not None and course.done >= limit:
            course.reason = "the budget is used up"

    def _set_out(self) -> None:
        """Prices a step and a look, decides how many steps lie between two looks, and takes the first."""
        course, limit = self.course, self.limits.iterations
        if limit is not None and limit <= 0:
            course.reason = "the budget has no steps"
            self._look()
            return
        _, self.step_cost = priced(self._batch_alone)
        seconds = self.limits.until - time.perf_counter()
        steps = seconds / self.step_cost if limit is None else limit
        course.between = self._between_looks(steps)
        if self.looks.solved_on.share < 1.0:
            share = f"{self.looks.solved_on.share:.0%}"
            self.notes.append(f"looks between steps take {share} of the rows, drawn at random")
        if self.earlier is not None:
            self._seen(*self.moved.at(self.earlier))
        self._look()
        course.next_look = course.steps + course.between

    def _between_looks(self, steps: float) -> int:
        """The steps between two looks, for a run of this many steps.

        Looks take fewer rows if they would take too much of its work, unless the user says how often to
        look.
        """
        if self.recipe.look_every is not None:
            for looks in self.looks.kinds:
                looks.afford(math.inf, *self.moved.weights())
            return self.recipe.look_every
        each = LOOKS_SHARE * self.step_cost * max(steps, 1.0) / LOOKS
        kinds = self.looks.kinds
        for looks in kinds:
            looks.afford(each / len(kinds), *self.moved.weights())
        cost = sum(looks.cost for looks in kinds)
        between = max(cost / (LOOKS_SHARE * self.step_cost), steps / MOST_LOOKS, LEAST_BETWEEN)
        return math.ceil(min(between, 1e9))

    def _batch_alone(self) -> None:
        """The work of a step that moves nothing: to price it."""
        states = self.batches.state_dict()
        self.criterion.eval()
        randomness = torch.get_rng_state()
        buffers = {name: value.clone() for name, value in self.moved.live.named_buffers()}
        self._loss().backward()
        for name, value in self.moved.live.named_buffers():
            value.copy_(buffers[name])
        torch.set_rng_state(randomness)
        self.criterion.train()
        self.moved.optimizer.zero_grad()
        self.batches.load_state_dict(states)

    # -------------------------------------------------------------------------------------------- steps
    def _loss(self) -> torch.Tensor:
        """The loss of the next batch."""
        rows = self.batches.next()
        return self.criterion(rows, **self.scores.of(rows, self.moved.modules, self.course.steps))

    def step(self) -> None:
        """Take one step of the optimizer."""
        self.moved.step(self._loss(), self.criterion.step)
        self.course.steps += 1

    def _between_steps(self, progress: Callable[[Progress], None] | None, stop: Callable[[], bool]) -> None:
        """Call the callback, report progress and look at the point, each at its rhythm. Returns whether the
        run ends.
        """
        course, limit, recipe = self.course, self.limits.iterations, self.recipe
        now, done = time.perf_counter(), course.done
        course.worked += self.step_cost
        if stop():
            course.reason, course.ended = "interrupted", "interrupted"
        elif limit is not None and done >= limit:
            course.reason = "the budget is used up"
        elif now >= self.limits.until - course.look_seconds:
            course.reason, course.timed = "the time limit was reached", True
        if recipe.callback is not None and done % recipe.every == 0:
            self._called(recipe.callback)
        if course.steps >= course.next_look and not course.reason:
            self._look()
            course.next_look = course.steps + course.between
        if progress is not None and now - course.heard >= HEARD_SECONDS:
            course.heard = now
            progress(self._progress(now))

    # -------------------------------------------------------------------------------------------- looks
    def _look(self) -> None:
        """Values at the weights after this step; the best point is kept, and validation may end the run."""
        course, moved = self.course, self.moved
        if course.looked_at == course.steps:
            return
        course.looked_at, began = course.steps, time.perf_counter()
        self._seen(*moved.weights())
        course.look_seconds = time.perf_counter() - began
        course.reason = course.reason or self.best.patience_over()
        if course.reason and moved.averaged:
            self._seen(*moved.weights(averaged=False))
        moved.after_a_look(self.best.metric)

    def _seen(self, modules: Mapping[str, torch.nn.Module], variables: Any) -> None:
        """A look at nets and variables, and its price."""
        point = self.looks.point(modules, variables)
        for looks in self.looks.kinds:
            self.course.worked += looks.cost
        self.best.compare(point, self.course.steps)

    # ------------------------------------------------------------------------------------ what is told
    def _called(self, callback: Callable[[State], Any]) -> None:
        """A call of the callback. What it raises ends the run, which keeps its best point."""
        course = self.course
        try:
            if callback(self.state()) is False:
                course.reason = course.reason or "the callback ended it"
        except Exception as error:
            course.error = error
            course.reason = f"the callback raised {type(error).__name__}: {error}"

    def state(self) -> State:
        """The state of the run, for a callback."""
        moved, best = self.moved, self.best
        return State(
            modules=moved.modules,
            optimizer=moved.optimizer,
            criterion=self.criterion,
            step=self.course.steps,
            seconds=time.perf_counter() - best.began,
            values=self.criterion.values(),
            best=None if best.best is None else best.best.level,
            validation=self.looks.watched,
            look=lambda: self.looks.solved_on.at(*moved.weights()),
        )

    def _progress(self, now: float) -> Progress:
        """The progress of the run, by running values."""
        values, seconds = self.criterion.values(), now - self.best.began
        left = None
        if not math.isinf(self.limits.until):
            left = max(self.limits.until - now, 0.0)
        message = ""
        if self.looks.watched is not None:
            message = f"validation {self.looks.watched:.4g}"
        return Progress(
            stage=len(self.best.history),
            iteration=self.course.steps,
            objective=float(np.mean(values["objective"])),
            violation=values["violation"],
            kkt=None,
            kkt_error=None,
            steps_per_second=self.course.done / max(seconds, 1e-9),
            seconds_left=left,
            message=message,
            constraints=dict(values["constraints"]),
        )

    # ------------------------------------------------------------------------------------------ its end
    def _ended(self, randomness: torch.Tensor) -> Trained:
        """The record of the run; F0711 if no look was finite."""
        course, best = self.course, self.best.best
        if best is None or not self.best.found:
            error = errors.not_finite_from_the_start(self.looks.unseen or course.reason)
            refuse(error, source=self.bound.problem.source)
        modules, variables = self.moved.at(best)
        multipliers = self.criterion.multipliers_by_label()
        return Trained(
            modules=modules,
            variables=variables,
            best=best,
            history=self.best.history,
            steps=course.done,
            seconds=time.perf_counter() - self.best.began,
            ended=course.ended,
            stopped=course.reason,
            notes=tuple(self.notes),
            multipliers=multipliers,
            worked=course.worked,
            timed=course.timed,
            error=course.error,
            carried=self.running.carried(best, randomness, course.steps),
        )


def _heeding_sigterm(keeper: TrainingKeeper | None) -> AbstractContextManager[None]:
    """Lets SIGTERM ask for a last checkpoint, if the run has a folder for it."""
    if keeper is None:
        return nullcontext()
    return keeper.heeding_sigterm()


@contextmanager
def _kept(course: _Course) -> Iterator[None]:
    """Ends a run at its best point when it is interrupted, or when scores are not finite."""
    try:
        yield
    except KeyboardInterrupt:
        course.reason, course.ended = "interrupted", "interrupted"
    except NotFinite:
        course.reason = f"scores were not finite in step {course.steps + 1:,}: try a smaller learning rate"
