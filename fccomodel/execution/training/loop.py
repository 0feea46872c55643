"""The training loop behind ``solve(optimizer=...)``: steps of a criterion by somebody's optimizer.

Looks at all rows, or at a sample of them, take about a tenth of the work. The best point of all looks
is the answer. A run ends with a ``Carried``, from which another goes on to the same numbers.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel

from fccomodel.core import ir, options, process
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.work import priced
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn as is_drawn
from fccomodel.data.nets import IN_TRAIN_MODE
from fccomodel.evaluation.values import Level
from fccomodel.execution.run import Progress
from fccomodel.execution.training import errors
from fccomodel.execution.training.criterion import Criterion, NotFinite
from fccomodel.execution.training.looks import Looks
from fccomodel.execution.training.recipe import Parameters, Recipe, State
from fccomodel.execution.training.samplers import Stream
from fccomodel.plan import Plan
from fccomodel.program.lower.given import applied_to

#: share of the work that looks take
LOOKS_SHARE = 0.1
#: looks of a run that there is time for, at least: of fewer rows where a pass over all is too dear
LOOKS = 10
#: looks of a run, at most
MOST_LOOKS = 100
#: steps between two looks, at least
LEAST_BETWEEN = 10
#: the weight of violations among looks is at least this part of the penalty's ...
PENALTY_SHARE = 0.1
#: ... and so many times the largest multiplier
TIMES_MULTIPLIER = 2.0
#: seconds between two calls of ``progress``
HEARD_SECONDS = 1.0
#: a gain of the watched quantity below this part of it is none
LEAST_GAIN = 1e-4


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When a run ends.

    iterations  steps, None without a limit
    until       the time of the clock (``time.perf_counter``)
    """

    iterations: int | None = None
    until: float = math.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class Point:
    """Weights of all nets and variables at a look, and the values there; ``watched`` on validation rows."""

    state: Mapping[str, torch.Tensor]
    level: Level
    watched: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Carried:
    """All that a run ended with, for another that goes on from it.

    optimizer  name of the optimizer's class
    states     of the live weights, the optimizer, the schedule, the average, the criterion, the batches
    best       the best point
    randomness of torch
    steps      of this run and those before it
    """

    optimizer: str
    states: Mapping[str, Any]
    best: Point
    randomness: torch.Tensor
    steps: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """Where a training run ended.

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
    best: Point
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


@dataclass(eq=False, kw_only=True)
class _Course:
    """What changes in a run: steps, looks, the best point, why it ends."""

    steps: int = 0
    begun_with: int = 0
    next_look: int = 0
    between: int = LEAST_BETWEEN
    best: Point | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    since_gain: int = 0
    heard: float = -math.inf
    reason: str = ""
    ended: str = "stopped"
    timed: bool = False
    error: Exception | None = None
    watched: float | None = None
    merit: float = math.inf
    worked: float = 0.0
    looked_at: int = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class _Batch:
    """The places of a batch's rows by table, and the outputs of nets that are known for them."""

    rows: Mapping[str, np.ndarray]
    outputs: dict[tuple[str, str, tuple[str, ...]], torch.Tensor] = field(default_factory=dict)


def _table(binder: ir.Binder) -> str:
    """The table of a row's binder."""
    assert isinstance(binder.domain, ir.RowSet)
    return binder.domain.table


class Live(torch.nn.Module):
    """Nets and other variables as one module."""

    def __init__(self, modules: Mapping[str, torch.nn.Module], variables: torch.nn.ParameterDict):
        super().__init__()
        self.names = list(modules)
        self.nets = torch.nn.ModuleList(modules.values())
        self.variables = variables

    @property
    def modules_by_name(self) -> dict[str, torch.nn.Module]:
        """The nets by name."""
        return dict(zip(self.names, self.nets, strict=True))


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
        self.bound, self.recipe, self.limits, self.seed = bound, recipe, limits, seed
        self.device, self.dtype = torch.device(device), getattr(torch, options.working(precision))
        self.half = precision == options.HALF
        self.criterion = Criterion(bound, plan, batch=recipe.batch).to(self.device)
        self.modules = {name: self._own(name) for name in self._trained()}
        self.frozen = {name: self._own(name) for name, net in bound.problem.nets.items() if net.frozen}
        self.variables = self.criterion.variables
        self._begin(plan)
        self.live = Live(self.modules, self.variables)
        self.parameters = Parameters(self._named())
        self.optimizer = self._optimizer()
        self.scheduler = recipe.scheduler(self.optimizer) if recipe.scheduler is not None else None
        self.average = None
        if recipe.ema is not None:
            self.average = AveragedModel(self.live, avg_fn=_warmed(recipe.ema))
        self.streams = {
            name: Stream(self.criterion.sampler(seed, table=name)) for name in self.criterion.tables
        }
        self.looks = Looks(bound, seed)
        self.validation: Looks | None = None
        if recipe.validation is not None:
            self.validation = Looks(recipe.validation.bound, seed, watch=recipe.validation.watch)
        self.course, self.step_cost = _Course(), 0.0
        self.earlier: Point | None = None
        self.unseen = ""
        self.began = time.perf_counter()
        self.notes: list[str] = []

    # ------------------------------------------------------------------------------------ what it moves
    def _own(self, name: str) -> torch.nn.Module:
        """A copy of a bound net for steps, in the mode that it was given in."""
        net = copy.deepcopy(self.bound.nets[name])
        random = bool(vars(net).pop(IN_TRAIN_MODE, ()))
        return net.to(self.device, self.dtype).train(random)

    def _trained(self) -> list[str]:
        """The nets that have weights, those whose scores the criterion takes first."""
        variables = self.bound.problem.variables.values()
        return list(dict.fromkeys([*self.criterion.inputs, *(v.net for v in variables if v.net is not None)]))

    def _begin(self, plan: Plan) -> None:
        """The first values of variables, where the plan has a start."""
        start = plan.start.values if plan.start is not None else {}
        for name, variable in self.bound.problem.variables.items():
            if name not in start:
                continue
            value = torch.from_numpy(np.array(start[name], dtype=np.float64))
            with torch.no_grad():
                if variable.net is not None and variable.net in self.modules:
                    _fill(self.modules[variable.net], value)
                elif name in self.variables:
                    self.variables[name].copy_(value.reshape(self.variables[name].shape))

    def _named(self) -> dict[str, torch.nn.Parameter]:
        """All parameters by name."""
        nets = {f"{n}.{name}": p for n, net in self.modules.items() for name, p in net.named_parameters()}
        return {**nets, **{name: value for name, value in self.variables.items()}}

    def _optimizer(self) -> torch.optim.Optimizer:
        """The optimizer of the parameters. Raises F0805 if it is none, or is of others."""
        optimizer = self.recipe.optimizer(self.parameters)
        if not isinstance(optimizer, torch.optim.Optimizer):
            refuse(errors.not_an_optimizer(optimizer))
        known = set(map(id, self.parameters))
        if any(id(p) not in known for group in optimizer.param_groups for p in group["params"]):
            refuse(errors.other_parameters())
        return optimizer

    # ------------------------------------------------------------------------------------------ the run
    def run(
        self,
        *,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = bool,
        carried: Carried | None = None,
    ) -> Trained:
        """Steps until the limits, a callback, or validation end them; F0711 if no look was finite."""
        with process.own_randomness():
            torch.manual_seed(self.seed)
            if carried is not None:
                self._go_on(carried)
            with _kept(self.course):
                self._set_out()
                while not self.course.reason:
                    self.step()
                    self._between_steps(progress, stop)
            with _kept(self.course):
                self._look()
            randomness = torch.get_rng_state()
        return self._ended(randomness)

    def _set_out(self) -> None:
        """The first looks, with a price; how many steps lie between two."""
        course, limit = self.course, self.limits.iterations
        if limit is not None and limit <= 0:
            course.reason = "the budget has no steps"
            self._look()
            return
        _, step = priced(self._batch_alone)
        seconds = self.limits.until - time.perf_counter()
        steps = seconds / step if limit is None else limit
        each = LOOKS_SHARE * step * max(steps, 1.0) / LOOKS
        shared = [looks for looks in (self.looks, self.validation) if looks is not None]
        for looks in shared:
            looks.afford(each / len(shared), *self._looked_at())
        cost = sum(looks.cost for looks in shared)
        between = max(cost / (LOOKS_SHARE * step), steps / MOST_LOOKS, LEAST_BETWEEN)
        course.between = math.ceil(min(between, 1e9))
        self.step_cost = step
        if self.looks.share < 1.0:
            self.notes.append(f"looks between steps take {self.looks.share:.0%} of the rows, drawn at random")
        if self.earlier is not None:
            self._compared(self._point(*self._nets_of(self.earlier)))
        self._look()
        course.next_look = course.steps + course.between

    def _batch_alone(self) -> None:
        """The work of a step that moves nothing: to price it."""
        states = [stream.state_dict() for stream in self.streams.values()]
        self.criterion.eval()
        randomness = torch.get_rng_state()
        buffers = {name: value.clone() for name, value in self.live.named_buffers()}
        self._loss().backward()
        for name, value in self.live.named_buffers():
            value.copy_(buffers[name])
        torch.set_rng_state(randomness)
        self.criterion.train()
        self.optimizer.zero_grad()
        for stream, state in zip(self.streams.values(), states, strict=True):
            stream.load_state_dict(state)

    def _loss(self) -> torch.Tensor:
        """The loss of the next batch."""
        rows = {name: next(stream) for name, stream in self.streams.items()}
        return self.criterion(rows, **self._scores(rows))

    def _scores(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs of the nets for a batch, as the criterion takes them."""
        found: dict[str, Any] = {}
        batch = _Batch(rows={name: self._places(name, part) for name, part in rows.items()})
        for net, asked in self.criterion.inputs.items():
            scores = {self.criterion.key(one): self._outputs(one.call, batch) for one in asked}
            if len(scores) == 1:
                found[net] = next(iter(scores.values()))
            else:
                found[net] = scores
        return found

    def _places(self, table: str, rows: Any) -> np.ndarray:
        """The places of rows in the bound table."""
        return self.criterion.places[table][torch.as_tensor(rows)].numpy()

    def _outputs(self, call: ir.NetCall, batch: _Batch) -> torch.Tensor:
        """The outputs of a net at the rows of a batch, computed once for each batch."""
        applied = applied_to(call)
        assert applied is not None
        key = call.net, _table(applied.binder), applied.names
        if key not in batch.outputs:
            wanted = self.bound.problem.nets[call.net].inputs
            inputs = [
                self._net_input(given, declared.whole, batch)
                for given, declared in zip(call.inputs, wanted, strict=True)
            ]
            module = self.frozen[call.net] if call.net in self.frozen else self.modules[call.net]
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
                batch.outputs[key] = module(*inputs)
        return batch.outputs[key]

    def _net_input(self, given: ir.Expr, whole: bool, batch: _Batch) -> torch.Tensor:
        """An input of a net at the rows of a batch: outputs of another net, or a column; whole numbers as
        int64."""
        if isinstance(given, ir.NetCall):
            return self._outputs(given, batch)
        assert isinstance(given, ir.Column) and given.name is not None
        table = _table(given.binder)
        values = self._fetched(self.bound.tables[table].columns[given.name], batch.rows[table])
        if whole:
            return values.round().to(self.device, torch.int64)
        return values.to(self.device, self.dtype)

    def _fetched(self, column: Any, places: np.ndarray) -> torch.Tensor:
        """Some rows of a column; of one whose rows are drawn, as steps draw them."""
        if is_drawn(column):
            return torch.as_tensor(column[places].fetched(self.seed + self.course.steps))
        return torch.from_numpy(np.ascontiguousarray(column[places]))

    def step(self) -> None:
        """One step of the optimizer."""
        loss = self._loss()
        self.optimizer.zero_grad()
        loss.backward()
        if self.recipe.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.recipe.clip)
        self.optimizer.step()
        self.criterion.step()
        if self.average is not None:
            self.average.update_parameters(self.live)
        if self.scheduler is not None and not _takes_metric(self.scheduler):
            self.scheduler.step()
        self.course.steps += 1

    def _between_steps(self, progress: Callable[[Progress], None] | None, stop: Callable[[], bool]) -> None:
        """After a step: whether the run ends; callback, progress and looks in their rhythm."""
        course, limit, recipe = self.course, self.limits.iterations, self.recipe
        now, done = time.perf_counter(), course.steps - course.begun_with
        course.worked += self.step_cost
        if stop():
            course.reason, course.ended = "interrupted", "interrupted"
        elif limit is not None and done >= limit:
            course.reason = "the budget is used up"
        elif now >= self.limits.until:
            course.reason, course.timed = "the time is used up", True
        if recipe.callback is not None and done % recipe.every == 0:
            self._called(recipe.callback)
        if course.steps >= course.next_look and not course.reason:
            self._look()
            course.next_look = course.steps + course.between
        if progress is not None and now - course.heard >= HEARD_SECONDS:
            course.heard = now
            progress(self._progress(now))

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
        course = self.course
        return State(
            modules=self.modules,
            optimizer=self.optimizer,
            criterion=self.criterion,
            step=course.steps,
            seconds=time.perf_counter() - self.began,
            values=self.criterion.values(),
            best=None if course.best is None else course.best.level,
            validation=course.watched,
            look=lambda: self.looks.at(*self._looked_at()),
        )

    def _progress(self, now: float) -> Progress:
        """How far the run is, by running values."""
        course, seconds = self.course, now - self.began
        found, done = self.criterion.values(), course.steps - course.begun_with
        if math.isinf(self.limits.until):
            left = None
        else:
            left = max(self.limits.until - now, 0.0)
        if course.watched is None:
            message = ""
        else:
            message = f"validation {course.watched:.4g}"
        return Progress(
            stage=len(course.history),
            iteration=course.steps,
            objective=float(np.mean(found["objective"])),
            violation=found["violation"],
            kkt=None,
            kkt_error=None,
            steps_per_second=done / max(seconds, 1e-9),
            seconds_left=left,
            message=message,
            constraints={name: value for name, value in found["constraints"].items()},
        )

    # -------------------------------------------------------------------------------------------- looks
    def _looked_at(self, averaged: bool = True) -> tuple[dict[str, torch.nn.Module], Any]:
        """The nets and variables that a look sees: their average, where there is one."""
        if averaged and self.average is not None and int(self.average.n_averaged):
            live = self.average.module
        else:
            live = self.live
        assert isinstance(live, Live)
        return live.modules_by_name, live.variables

    def _look(self) -> None:
        """The values at these weights; the best point is kept, and validation may end the run."""
        course = self.course
        if course.looked_at == course.steps:
            return
        course.looked_at = course.steps
        self._seen(averaged=True)
        if course.reason and self.average is not None and int(self.average.n_averaged):
            self._seen(averaged=False)
        if self.scheduler is not None and _takes_metric(self.scheduler) and course.history:
            metric = course.watched
            if metric is None:
                metric = course.merit
            elif self.recipe.validation is not None and self.recipe.validation.watch.maximize:
                metric = -metric
            self.scheduler.step(metric)

    def _seen(self, *, averaged: bool) -> None:
        """A look at the average, or at the weights themselves."""
        self._compared(self._point(*self._looked_at(averaged)))

    def _point(self, modules: Mapping[str, torch.nn.Module], variables: Any) -> Point:
        """A look at nets and variables; where a value cannot be computed, it is not a number."""
        course, validation = self.course, self.validation
        try:
            level = self.looks.at(modules, variables)
            if validation is not None:
                course.watched = validation.watched(modules, variables)
        except FccoError as error:
            self.unseen, level = str(error), Level(objective=math.nan)
        course.worked += self.looks.cost
        if validation is not None:
            course.worked += validation.cost
        state = {f"net_{n}.{k}": v for n, net in modules.items() for k, v in net.state_dict().items()}
        state |= {f"variable_{name}": value for name, value in variables.items()}
        state = {name: value.detach().cpu().clone() for name, value in state.items()}
        return Point(state=state, level=level, watched=course.watched)

    def _nets_of(self, point: Point) -> tuple[dict[str, torch.nn.Module], dict[str, torch.Tensor]]:
        """The nets and variables of a point."""
        modules = {}
        for name, net in self.modules.items():
            modules[name], begin = copy.deepcopy(net), f"net_{name}."
            state = {k.removeprefix(begin): v for k, v in point.state.items() if k.startswith(begin)}
            modules[name].load_state_dict(state)
        return modules, {name: point.state[f"variable_{name}"] for name in self.variables}

    def _compared(self, new: Point) -> None:
        """Keeps the better of the best point and a new one; counts looks without a gain."""
        course, weight = self.course, self._weight()
        merit = course.merit = self.looks.merit(new.level, weight)
        if self._better(new, weight):
            course.best, course.since_gain = new, 0
        elif math.isfinite(merit):
            course.since_gain += 1
        assert course.best is not None
        course.history.append(
            {
                "stage": len(course.history) + 1,
                "iteration": course.steps,
                "objective": course.best.level.objective,
                "violation": course.best.level.violation,
                "merit": self.looks.merit(course.best.level, weight),
                "oracles": float(course.steps * self.recipe.batch),
                "seconds": time.perf_counter() - self.began,
                **({} if new.watched is None else {"validation": new.watched}),
            }
        )
        validation = self.recipe.validation
        if validation is not None and validation.patience is not None and not course.reason:
            if course.since_gain >= validation.patience:
                name = validation.watch.name
                course.reason = f"no gain of `{name}` on the validation rows in {course.since_gain} looks"

    def _better(self, new: Point, weight: float) -> bool:
        """Whether a point is better than the best: by the watched quantity, else by its merit."""
        old = self.course.best
        if old is None:
            return True
        validation = self.recipe.validation
        if validation is None or new.watched is None or old.watched is None:
            return self.looks.merit(new.level, weight) < self.looks.merit(old.level, weight)
        if not math.isfinite(new.watched):
            return False
        gain = new.watched - old.watched
        if not validation.watch.maximize:
            gain = -gain
        return not math.isfinite(old.watched) or gain > LEAST_GAIN * abs(old.watched)

    def _weight(self) -> float:
        """The weight of violations: as the penalty's, or by the multipliers."""
        found = self.criterion.multipliers().values()
        largest = max((float(np.max(np.nan_to_num(value))) for value in found), default=0.0)
        rho = float(getattr(self.criterion.settings, "rho", 0.0))
        return max(PENALTY_SHARE * rho, TIMES_MULTIPLIER * largest)

    # ---------------------------------------------------------------------------------- its end, resumed
    def _ended(self, randomness: torch.Tensor) -> Trained:
        """The record of the run; F0711 if no look was finite."""
        course = self.course
        best = course.best
        if best is None or not math.isfinite(self.looks.merit(best.level, 1.0)):
            error = errors.not_finite_from_the_start(self.unseen or course.reason)
            refuse(error, source=self.bound.problem.source)
        modules, variables = self._nets_of(best)
        states: dict[str, Any] = {
            "live": self.live.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "criterion": self.criterion.state_dict(),
            "streams": {name: stream.state_dict() for name, stream in self.streams.items()},
        }
        if self.scheduler is not None:
            states["scheduler"] = self.scheduler.state_dict()
        if self.average is not None:
            states["average"] = self.average.state_dict()
        multipliers = self.criterion.multipliers()
        return Trained(
            modules=modules,
            variables=variables,
            best=best,
            history=course.history,
            steps=course.steps - course.begun_with,
            seconds=time.perf_counter() - self.began,
            ended=course.ended,
            stopped=course.reason,
            notes=tuple(self.notes),
            multipliers={name: float(v) for name, v in multipliers.items() if np.ndim(v) == 0},
            worked=course.worked,
            timed=course.timed,
            error=course.error,
            carried=Carried(
                optimizer=type(self.optimizer).__qualname__,
                states=copy.deepcopy(states),
                best=best,
                randomness=randomness,
                steps=course.steps,
            ),
        )

    def _go_on(self, carried: Carried) -> None:
        """The state of an earlier run of the same model and algorithm."""
        states, course = carried.states, self.course
        if not _alike(self.live, states["live"]) or not _alike(self.criterion, states["criterion"]):
            self.notes.append("the start is of other rows or nets: only its weights are taken")
            return
        self.live.load_state_dict(states["live"])
        self.criterion.load_state_dict(states["criterion"])
        for name, stream in self.streams.items():
            if name in states["streams"]:
                stream.load_state_dict(states["streams"][name])
        torch.set_rng_state(carried.randomness)
        course.steps = course.begun_with = carried.steps
        if type(self.optimizer).__qualname__ != carried.optimizer:
            self.notes.append(
                f"the start was found by {carried.optimizer}: the state of this optimizer begins anew"
            )
        else:
            self._optimizer_goes_on(states["optimizer"], scheduled="scheduler" in states)
        if self.scheduler is not None and "scheduler" in states:
            self.scheduler.load_state_dict(states["scheduler"])
        if self.average is not None and "average" in states:
            self.average.load_state_dict(states["average"])
        self.earlier = carried.best

    def _optimizer_goes_on(self, state: dict[str, Any], *, scheduled: bool) -> None:
        """Moments of an earlier run; also its rates, if a schedule moved them and goes on."""
        state = copy.deepcopy(state)
        if not (scheduled and self.scheduler is not None):
            groups = self.optimizer.state_dict()["param_groups"]
            if [len(g["params"]) for g in groups] == [len(g["params"]) for g in state["param_groups"]]:
                state["param_groups"] = groups
        try:
            self.optimizer.load_state_dict(state)
        except ValueError as error:
            refuse(errors.other_optimizer_state(error), source=self.bound.problem.source)


def _alike(module: torch.nn.Module, state: Mapping[str, Any]) -> bool:
    """Whether a state has the names and shapes of a module's own."""
    own = module.state_dict()
    shapes = [{k: v.shape for k, v in one.items() if isinstance(v, torch.Tensor)} for one in (own, state)]
    return shapes[0] == shapes[1]


def _fill(module: torch.nn.Module, vector: torch.Tensor) -> None:
    """The parameters of a net from one vector."""
    start = 0
    for parameter in module.parameters():
        part = vector[start : start + parameter.numel()]
        parameter.copy_(part.reshape(parameter.shape))
        start += parameter.numel()


def _warmed(decay: float) -> Callable[..., torch.Tensor]:
    """The step of an average whose decay grows to ``decay``: as (1 + t) / (10 + t)."""

    def averaged(old: torch.Tensor, new: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        """The average after one more step."""
        t = float(count)
        return torch.lerp(new, old, min(decay, (1.0 + t) / (10.0 + t)))

    return averaged


def _takes_metric(scheduler: Any) -> bool:
    """Whether a schedule is told a metric at each look."""
    return isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)


@contextmanager
def _kept(course: _Course) -> Iterator[None]:
    """Ctrl-C ends a run at its best point."""
    try:
        yield
    except KeyboardInterrupt:
        course.reason, course.ended = "interrupted", "interrupted"
    except NotFinite:
        course.reason = f"scores were not finite in step {course.steps + 1:,}: try a smaller learning rate"
