"""``problem.criterion()``: a compiled objective in a training loop of one's own."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fccomodel import pipeline
from fccomodel.app.python import starting
from fccomodel.core.diagnostics import refuse
from fccomodel.data.nets import build
from fccomodel.execution.errors import of_one_process
from fccomodel.execution.training import criterion as compiled
from fccomodel.execution.training import errors as refusals
from fccomodel.execution.training.recipe import Recipe, Validation, Watch
from fccomodel.execution.training.samplers import Numbered
from fccomodel.pipeline import training
from fccomodel.program import errors

if TYPE_CHECKING:
    from fccomodel.app.python.session import BoundModel
    from fccomodel.app.python.solved import Result
    from fccomodel.data.bound import Bound
    from fccomodel.report import KKTReport

__all__ = ["Criterion", "Values", "criterion", "numbered"]

#: what steps by another optimizer are taken with where the plan's own algorithm does not fit
INSTEAD = ("sonex", "sox")
#: what a result says of its steps
OWN_STEPS = "steps by your optimizer: no theorem is claimed"
#: algorithms that are biased, and are used only where somebody names them
BIASED = frozenset({"bsgd"})


def numbered(dataset: Any) -> Numbered:
    """A dataset whose items come with their row numbers: ``for rows, (x, y) in loader``."""
    return Numbered(dataset)


@dataclass(frozen=True, kw_only=True)
class Values:
    """The problem as written at some scores: ``objective``, ``constraints`` (left minus right side, by
    label), the largest ``violation``, and over how many ``rows`` of each table."""

    objective: float
    constraints: Mapping[str, float]
    violation: float
    rows: Mapping[str, int] = field(default_factory=dict)


class Criterion(compiled.Criterion):
    """The loss of a training loop of one's own; see ``BoundModel.criterion``.

    Estimates, centres and multipliers are buffers (``state_dict()``); variables of the model beside
    the nets are ``parameters()``. In ``eval()`` mode estimates do not move.
    """

    def __init__(self, model: BoundModel, planned: pipeline.Planned, batch: int):
        super().__init__(planned.bound, planned.plan, batch=batch)
        self.model, self.planned = model, planned

    def extra_repr(self) -> str:
        """The model, the algorithm, the batch size and the nets: what ``print`` shows."""
        nets = ", ".join(self.inputs)
        return f"model={self.bound.problem.name}, algorithm={self.algorithm}, batch={self.batch}, nets={nets}"

    @property
    def algorithm(self) -> str:
        """The algorithm whose gradient this is."""
        return self.plan.algorithm

    def evaluate(
        self,
        loader: Iterable[Any],
        *,
        data: Mapping[str, Any] | None = None,
        inputs: Callable[[Any], Any] | None = None,
        **nets: Any,
    ) -> Values:
        """The objective and the constraints on the rows of a loader, in float64.

        loader   yields row numbers and the rest of a batch: of ``numbered(dataset)``
        data     other tables that the rows are numbers of, for validation: ``{"D": frame}``
        inputs   what of a batch the net takes; unless given the batch, or its first entry
        nets     a module, or any function of the inputs, by the name of the model's net; a module runs
                 in evaluation mode
        """
        if set(nets) != set(self.inputs):
            self._refuse(errors.criterion_scores(list(nets), list(self.inputs)))
        rows, scores = self._pass(loader, inputs or _first, nets)
        bound, point = self._at_scores(rows, scores, data)
        from fccomodel.report.point.system import System

        system = System(bound, point, seed=self.planned.seed)
        constraints = {label: float(value) for label, value in zip(system.labels, system.values, strict=True)}
        violation = max([0.0, *map(float, system.violations)])
        counted = {name: bound.tables[name].n for name in self.tables}
        return Values(
            objective=float(system.objective), constraints=constraints, violation=violation, rows=counted
        )

    def _pass(
        self, loader: Iterable[Any], inputs: Callable[[Any], Any], nets: Mapping[str, Any]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Row numbers and scores of all batches of a loader, each row once, in order."""
        for net, asked in self.inputs.items():
            if len(asked) != 1:
                names = [f"{one.table}.{one.column}" for one in asked]
                self._refuse(errors.criterion_inputs(net, names))
        rows: list[np.ndarray] = []
        scores: dict[str, list[np.ndarray]] = {name: [] for name in nets}
        with torch.no_grad(), _evaluating(nets.values()):
            for numbers, batch in loader:
                numbers = np.asarray(numbers)
                if numbers.ndim > 1 or numbers.dtype.kind not in "iu":
                    table = next(iter(self.inputs.values()))[0].table
                    found = f"the first entry of a batch has shape {numbers.shape} and type {numbers.dtype}"
                    self._refuse(errors.criterion_row_numbers(table, found))
                rows.append(numbers.astype(np.int64).reshape(-1))
                for name, net in nets.items():
                    value = net(_moved(inputs(batch), net))
                    scores[name].append(value.detach().double().cpu().numpy())
        numbers, first = np.unique(np.concatenate(rows), return_index=True)
        return numbers, {
            name: np.concatenate(parts).reshape(-1, *self.inputs[name][0].event)[first]
            for name, parts in scores.items()
        }

    def _at_scores(
        self, rows: np.ndarray, scores: Mapping[str, np.ndarray], data: Mapping[str, Any] | None
    ) -> tuple[Bound, dict[str, np.ndarray]]:
        """The problem on these rows, its nets a list of their scores; and the point that it is seen at."""
        table = next(iter(self.inputs.values()))[0].table
        bound = self._on(rows, table, data)
        nets, tables = {}, dict(bound.tables)
        for name, asked in self.inputs.items():
            column = tables[table].columns[asked[0].column]
            places = np.arange(len(rows), dtype=np.float64)
            wide = np.broadcast_to(places.reshape(-1, *[1] * (column.ndim - 1)), column.shape)
            tables[table] = replace(tables[table], columns={**tables[table].columns, asked[0].column: wide})
            nets[name] = Looked(scores[name])
        dims = {**bound.dims, **{f"params({name})": 0 for name in nets}}
        bound = replace(bound, tables=tables, nets={**bound.nets, **nets}, dims=dims)
        point = {}
        for name, variable in bound.problem.variables.items():
            if variable.net is not None:
                point[name] = np.zeros(0)
            else:
                point[name] = self.variables[name].detach().double().cpu().numpy()
        return bound, point

    def _on(self, rows: np.ndarray, table: str, data: Mapping[str, Any] | None) -> Bound:
        """The problem on some rows of its table, or of another one."""
        numbers = self.bound.tables[table].numbers
        if data is None and np.array_equal(rows, numbers):
            return self.bound
        if data is None:
            outside = np.setdiff1d(rows, numbers)
            if len(outside):
                self._refuse(errors.criterion_rows(table, int(outside[0]), len(numbers)))
        binding = self.model.binding
        encoding = {name: one.encoding for name, one in self.bound.tables.items()}
        if data is not None:
            binding = replace(binding, data={**binding.data, **data})
        return pipeline.bind(
            self.model.compiled, binding, seed=self.planned.seed, encoding=encoding, rows={table: rows}
        )

    def report(self, **nets: torch.nn.Module) -> KKTReport:
        """Constraints, multipliers and the KKT residual of the problem as written over all bound rows,
        at the weights of these modules, in evaluation mode. No theorem is claimed of the steps."""
        from fccomodel import report

        bound, point = self._at(nets)
        return report.report(bound, point, seed=self.planned.seed, analysis=None)

    def result(self, **nets: torch.nn.Module) -> Result:
        """A result as ``solve`` gives it, at the weights of these modules: its report, ``predict``,
        ``module``, ``export``, ``save``."""
        from fccomodel import report
        from fccomodel.app.python.solved import Result
        from fccomodel.execution.run import Solution

        began = time.perf_counter()
        bound, point = self._at(nets)
        kept = {name: bound.nets[name] for name in nets}
        binding = replace(self.planned.binding, nets={**self.planned.binding.nets, **kept})
        plan = self.plan.stepped_by("your optimizer")
        planned = replace(self.planned, bound=bound, binding=binding, plan=plan)
        judged = report.report(bound, point, seed=planned.seed)
        spent = time.perf_counter() - began
        entry = {
            "stage": 1,
            "iteration": self.steps,
            "objective": judged.objective,
            "violation": judged.feasibility,
            "merit": judged.objective,
            "oracles": 0.0,
            "seconds": spent,
        }
        solution = Solution(
            variables=point,
            multipliers={k: float(v) for k, v in self.multipliers().items() if np.ndim(v) == 0},
            limits={},
            history=[entry],
            iterations=self.steps,
            wall_s=spent,
            stopped=OWN_STEPS,
            ended="stopped",
        )
        outcome = pipeline.Outcome(
            planned=planned,
            program=pipeline.emit(planned),
            solution=solution,
            report=judged,
            wall_s=spent,
        )
        return Result(outcome=outcome)

    def _at(self, nets: Mapping[str, torch.nn.Module]) -> tuple[Bound, dict[str, np.ndarray]]:
        """The bound problem with these modules, and the point that they are."""
        if set(nets) != set(self.inputs):
            self._refuse(errors.criterion_scores(list(nets), list(self.inputs)))
        kept, point = {}, {}
        for name, net in nets.items():
            module = copy.deepcopy(net).cpu().eval()
            kept[name], _ = build(self.bound.problem.nets[name], module, self.bound.dims)
        for name, variable in self.bound.problem.variables.items():
            if variable.net is not None:
                parts = [p.detach().reshape(-1) for p in kept[variable.net].parameters()]
                point[name] = torch.cat(parts).double().cpu().numpy()
            else:
                point[name] = self.variables[name].detach().double().cpu().numpy()
        sizes = {f"params({n})": sum(p.numel() for p in net.parameters()) for n, net in kept.items()}
        dims = {**self.bound.dims, **sizes}
        return replace(self.bound, nets={**self.bound.nets, **kept}, dims=dims), point


class Looked(torch.nn.Module):
    """Scores that are known, by the number of their row: in place of a net."""

    def __init__(self, scores: np.ndarray):
        super().__init__()
        self.register_buffer("scores", torch.from_numpy(np.ascontiguousarray(scores)))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """The scores of these rows, whose numbers stand in all their entries."""
        scores = self.scores
        assert isinstance(scores, torch.Tensor)
        return scores[rows.reshape(len(rows), -1)[:, 0].round().long()]


def criterion(model: BoundModel, *, batch: int, algorithm: str | None, **given: Any) -> Criterion:
    """The criterion of a bound model; F0826 where the model or the algorithm has none."""
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        refuse(errors.criterion_batch(batch))
    return Criterion(model, _planned(model, algorithm, **given), batch)


def _planned(model: BoundModel, algorithm: str | None, **given: Any) -> pipeline.Planned:
    """The plan whose gradient an optimizer steps by; F0826 where the algorithm named has none."""
    options = {"unverified": True, **given}
    if algorithm is not None:
        planned = model.plan(algorithm=algorithm, **options)
    else:
        planned = model.plan(**options)
    if algorithm is not None or _fits(planned):
        if not compiled.suitable(planned.plan.algorithm_record):
            refuse(errors.criterion_algorithm(planned.plan.title, _known()))
        return planned
    for name in INSTEAD:
        planned = model.plan(algorithm=name, **options)
        if _fits(planned):
            break
    return planned


# ------------------------------------------------------------------------- solve with an optimizer
def refuse_beside(beside: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """F0805 for keywords of ``solve`` that do not go with those of an optimizer."""
    for name, value in beside.items():
        if value not in (None, False, ()):
            refuse(refusals.not_with_optimizer(name, list(given)))


def trained(
    model: BoundModel,
    given: Mapping[str, Any],
    chosen: Mapping[str, Any],
    start: Any,
    progress: Callable[..., None] | None,
    **how: Any,
) -> pipeline.Outcome:
    """A solve by steps of an optimizer: ``solve(optimizer=..., ...)``.

    given    the keywords about the optimizer
    chosen   the options of the solve
    how      what else ``pipeline.training.trained`` takes

    Raises F0826 where the model has no net, F0805 for values that the keywords do not take.
    """
    if not model.compiled.problem.nets:
        refuse(refusals.loop_without_net([name for name in given if name != "every"]))
    planned = starting.begun(_planned(model, **chosen), start)
    if planned.ranks:
        refuse(of_one_process("A solve with an optimizer of yours"), source=planned.problem.source)
    return training.trained(planned, _recipe(planned, dict(given)), progress, **how)


def _recipe(planned: pipeline.Planned, given: dict[str, Any]) -> Recipe:
    """The keywords about the optimizer as a record."""
    validate, watch, patience = (given.pop(name, None) for name in ("validate", "watch", "patience"))
    if validate is None:
        for name, value in (("watch", watch), ("patience", patience)):
            if value is not None:
                refuse(refusals.without_validation(name))
        return Recipe(**given)
    validation = Validation(
        bound=_validation(planned, validate), watch=Watch.of(watch, planned.problem), patience=patience
    )
    return Recipe(**given, validation=validation)


def _validation(planned: pipeline.Planned, validate: Any) -> Bound:
    """The problem on validation rows, with the scaling and the categories of the rows solved on."""
    if isinstance(validate, str) and validate == "holdout":
        if planned.holdout is None:
            refuse(refusals.nothing_held_out())
        return pipeline.elsewhere(planned)
    if not isinstance(validate, Mapping) or not validate:
        refuse(refusals.not_validation(validate, list(planned.bound.tables)))
    encoding = {name: table.encoding for name, table in planned.bound.tables.items()}
    binding = replace(planned.binding, data={**planned.binding.data, **validate})
    return pipeline.bind(planned.compiled, binding, seed=planned.seed, encoding=encoding)


def _fits(planned: pipeline.Planned) -> bool:
    """Whether a plan's algorithm is unbiased and has a criterion."""
    return planned.plan.algorithm not in BIASED and compiled.suitable(planned.plan.algorithm_record)


def _known() -> list[str]:
    """The algorithms that have a criterion."""
    from fccomodel import algorithms

    return [name for name, record in algorithms.all().items() if compiled.suitable(record)]


def _first(batch: Any) -> Any:
    """What the net takes of a batch: all of it, or its first entry."""
    if isinstance(batch, list | tuple):
        return batch[0]
    return batch


def _moved(value: Any, net: Any) -> Any:
    """An input on the device of the net's weights."""
    if isinstance(net, torch.nn.Module):
        first = next(iter(net.parameters()), None)
    else:
        first = None
    if first is None or not isinstance(value, torch.Tensor):
        return value
    return value.to(first.device)


@contextmanager
def _evaluating(nets: Iterable[Any]) -> Iterator[None]:
    """Modules in evaluation mode; each part of them goes back to the mode that it was in."""
    parts = [part for net in nets if isinstance(net, torch.nn.Module) for part in net.modules()]
    modes = [part.training for part in parts]
    for part in parts:
        part.training = False
    try:
        yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode
