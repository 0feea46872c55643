"""``problem.criterion()``: a compiled objective in a training loop of one's own."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fccomodel import pipeline
from fccomodel.app.python import starts
from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.rewrite import rewrite_problem
from fccomodel.data.nets import build, unwrapped
from fccomodel.execution.errors import of_one_process
from fccomodel.execution.training import criterion as compiled
from fccomodel.execution.training import joint
from fccomodel.execution.training.errors import criterion as errors
from fccomodel.execution.training.errors import optimizer as refusals
from fccomodel.execution.training.recipe import Recipe, StoppingQuantity, Validation
from fccomodel.execution.training.right_loop import RightLoop
from fccomodel.execution.training.right_rows import Items, Order
from fccomodel.execution.training.samplers import Numbered
from fccomodel.pipeline import training
from fccomodel.program.lower.given import ScoreInput, applied_to

if TYPE_CHECKING:
    from fccomodel.app.python.session import BoundModel
    from fccomodel.app.python.solved import Result
    from fccomodel.app.python.track import Tracker
    from fccomodel.data.bound import Bound
    from fccomodel.execution.run import Checkpoints
    from fccomodel.report import KKTReport

__all__ = ["Criterion", "Values", "criterion", "numbered"]

#: steps between two points on the curves of a tracker
TRACKED_EVERY = 20
#: How the names of columns begin that have the places of rows in a list of scores.
PLACES = "places of scores"
#: What belongs to the optimizer of a loop.
RATES = ("lr", "learning_rate", "weight_decay", "momentum", "eta")
#: Why the run stopped, as a result of such steps says it.
OWN_STEPS = "steps by your optimizer: no theorem is claimed"


def numbered(dataset: Any) -> Numbered:
    """A dataset that yields each item with its row number: ``for rows, (x, y) in loader``."""
    return Numbered(dataset)


@dataclass(frozen=True, kw_only=True)
class Values:
    """The values of the problem as written, for given scores of the nets.

    objective    as the model states it
    constraints  left minus right side, by label
    violation    the largest violation of a constraint; 0 if all hold
    rows         for each table, the number of rows in the values
    """

    objective: float
    constraints: Mapping[str, float]
    violation: float
    rows: Mapping[str, int] = field(default_factory=dict)


class Criterion(compiled.Criterion):
    """The loss for a training loop of your own; see ``BoundModel.criterion``.

    Estimates, centres and multipliers are buffers (``state_dict()``). Variables of the model that are
    no weights of nets are ``parameters()``. In ``eval()`` mode estimates do not move.
    """

    def __init__(
        self,
        model: BoundModel,
        planned: pipeline.Planned,
        batch: int,
        *,
        together: bool = True,
        track: Tracker | None = None,
    ):
        super().__init__(planned.bound, planned.plan, batch=batch, together=together)
        self.track = track
        self.model, self.planned = model, planned
        self.loop = RightLoop(self.variables, int(self.settings.stage), self.bound.problem.source)
        self.orders = {name: Order(self.bound.tables[name].n) for name in self.tables}
        self.latest: dict[str, torch.Tensor] = {}

    def extra_repr(self) -> str:
        """The text of ``print``: the model, the algorithm, the batch size and the nets."""
        nets = ", ".join(self.inputs)
        return f"model={self.bound.problem.name}, algorithm={self.algorithm}, batch={self.batch}, nets={nets}"

    def forward(self, rows: Any, *unnamed: Any, previous: Any = None, **scores: Any) -> torch.Tensor:
        """The loss of a batch (see ``compiled.Criterion``); warns where the loop leaves something out."""
        loss = super().forward(rows, *unnamed, previous=previous, **scores)
        if not self.training:
            self.loop.evaluated(loss)
        elif loss.requires_grad:
            parts = {net: list(s.values()) if isinstance(s, Mapping) else [s] for net, s in scores.items()}
            self.loop.batch(parts)
            for table, ids in self.latest.items():
                self._in_order(table, ids)
        return loss

    def _drawn_rows(self, table: str, ids: torch.Tensor) -> None:
        """Refuses labels in place of row numbers, and keeps the rows."""
        super()._drawn_rows(table, ids)
        self.latest[table] = ids

    def _in_order(self, table: str, ids: torch.Tensor) -> None:
        """Looks at the rows of a batch: are they in the order of the table, or of a part of it?"""
        order = self.orders[table]
        if order.done:
            return
        order.add(ids)
        numbers = self.bound.tables[table].numbers
        if order.runs():
            self.loop.rows_in_order(table, numbers[ids[:3]].tolist())
        missing = order.never_drawn(len(ids))
        if missing is not None:
            first, last = numbers[list(missing)].tolist()
            self.loop.rows_never_drawn(table, first, last, order.drawn)

    def step(self) -> None:
        """After the optimizer's step: what ``step`` of the loss does, and values for the tracker."""
        self.loop.before_step(self.variables)
        super().step()
        self.loop.after_step(self.variables)
        if self.track is not None and self.steps % TRACKED_EVERY == 0 and joint.rank() == 0:
            self.track.log(self.values(), self.steps)

    @property
    def algorithm(self) -> str:
        """The algorithm whose gradient this is."""
        return self.plan.algorithm

    @property
    def _trained(self) -> list[str]:
        """The nets that have weights."""
        return [one.net for one in self.bound.problem.variables.values() if one.net is not None]

    def evaluate(
        self,
        loader: Iterable[Any],
        *,
        data: Mapping[str, Any] | None = None,
        inputs: Callable[[Any], Any] | None = None,
        together: bool = False,
        **nets: Any,
    ) -> Values:
        """The objective and the constraints on the rows of a loader, in float64.

        loader   yields pairs of row numbers and a batch, as a loader of ``numbered(dataset)`` does
        data     tables for validation, ``{"D": frame}``; the row numbers then count their rows. Without it
                 the numbers are bound rows, and a loader of other rows is refused (F0826); ``{}`` says
                 that they are bound rows which the loader transforms
        inputs   function from a batch to the net's input; by default the batch, or its first entry. Of a net
                 on several columns it gives a mapping by column; by default the entries of the batch are the
                 columns of the table, in order or by name
        nets     a module, or any function of the inputs, by the name of the model's net; a module runs
                 in evaluation mode
        together whether every rank of ``torch.distributed`` calls it, each with a part of the rows
        """
        self._named(nets)
        rows, scores = self._pass(loader, inputs, nets, together, bound_rows=data is None)
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
        self,
        loader: Iterable[Any],
        inputs: Callable[[Any], Any] | None,
        nets: Mapping[str, Any],
        together: bool,
        *,
        bound_rows: bool,
    ) -> tuple[np.ndarray, dict[ScoreInput, np.ndarray]]:
        """The row numbers in increasing order, each once, and the scores of these rows.

        Raises F0826 if the rows should be bound rows and are not.
        """
        columns_read = [one for columns in self.inputs.values() for one in columns]
        if len({one.table for one in columns_read}) > 1:
            self._refuse(errors.criterion_evaluates_one_table(sorted({one.table for one in columns_read})))
        rows: list[np.ndarray] = []
        scores: dict[ScoreInput, list[np.ndarray]] = {one: [] for one in columns_read}
        asked = columns_read[0]
        items = Items(self.bound.tables[asked.table], asked.columns)
        with torch.no_grad(), _evaluating(nets.values()):
            for numbers, batch in map(self._pair, loader):
                numbers = np.asarray(numbers)
                if numbers.ndim > 1 or numbers.dtype.kind not in "iu":
                    description = (
                        f"the first entry of a batch has shape {numbers.shape} and type {numbers.dtype}"
                    )
                    self._refuse(errors.criterion_row_numbers(asked.table, description))
                rows.append(numbers.astype(np.int64).reshape(-1))
                items.add(rows[-1], batch, self._inputs(asked, batch, inputs, nets[asked.net])[0])
                for one in columns_read:
                    net = nets[one.net]
                    given = self._inputs(one, batch, inputs, net)
                    value = net(*(_on_device_of(net, each) for each in given))
                    scores[one].append(value.detach().double().cpu().numpy())
        row_numbers = np.concatenate(rows)
        if bound_rows:
            self._bound_rows(row_numbers, items)
        outputs = {one: np.concatenate(batches) for one, batches in scores.items()}
        if together:
            row_numbers = joint.of_all(row_numbers)
            outputs = {one: joint.of_all(values) for one, values in outputs.items()}
        numbers, first = np.unique(row_numbers, return_index=True)
        return numbers, {one: values.reshape(-1, *one.event)[first] for one, values in outputs.items()}

    def _pair(self, of_loader: Any) -> tuple[Any, Any]:
        """Row numbers and a batch; F0826 for loaders that give something else."""
        if isinstance(of_loader, list | tuple) and len(of_loader) == 2:
            return of_loader[0], of_loader[1]
        kind = type(of_loader).__name__
        if isinstance(of_loader, list | tuple):
            kind = f"{kind} of {len(of_loader)}"
        description = f"the loader gives a {kind}, not a pair of row numbers and a batch"
        self._refuse(errors.criterion_row_numbers(self.tables[0], description))
        raise AssertionError("a refusal raises")

    def _inputs(
        self, one: ScoreInput, batch: Any, inputs: Callable[[Any], Any] | None, net: Any = None
    ) -> tuple[Any, ...]:
        """The inputs of a net in a batch, on one of its columns; F0826 if it is not clear which those are.

        If all nets read one column, the input is the batch, its first entry, or what ``inputs`` makes of it.
        Otherwise it is found by the column's name.
        """
        wanted = [other for columns in self.inputs.values() for other in columns]
        read = {other: _columns_below(other) for other in wanted}
        columns = list(dict.fromkeys(name for names in read.values() for name in names))
        if len(columns) == 1:
            return ((inputs or _first)(batch),)
        if inputs is not None:
            given = inputs(batch)
        elif isinstance(batch, list | tuple):
            declared = self.bound.problem.tables[one.table].columns
            given = dict(zip(declared, batch, strict=False))
        else:
            given = batch
        if not isinstance(given, Mapping):
            if inputs is not None and not isinstance(net, torch.nn.Module):
                return (given,)
        elif self.key(one) in given:
            return (given[self.key(one)],)
        elif set(read[one]) <= set(given):
            return tuple(given[name] for name in read[one])
        self._refuse(errors.criterion_columns_of_a_batch(one.net, columns))
        raise AssertionError("a refusal raises")

    def _bound_rows(self, rows: np.ndarray, items: Items) -> None:
        """Raises F0826 unless these are the bound rows with these numbers, as far as it shows."""
        numbers = items.table.numbers
        outside = np.setdiff1d(rows, numbers)
        if len(outside):
            self._refuse(errors.criterion_rows(items.table.name, int(outside[0]), len(numbers)))
        if why := items.others(rows):
            self._refuse(errors.criterion_other_rows(items.table.name, why))

    def _at_scores(
        self, rows: np.ndarray, scores: Mapping[ScoreInput, np.ndarray], data: Mapping[str, Any] | None
    ) -> tuple[Bound, dict[str, np.ndarray]]:
        """The problem on these rows with known scores, and the point at which it is evaluated.

        Each net is replaced by a module that looks its scores up, one column's after the other's. Its input
        is a column of its own, with the places of the rows in this list: formulas may read the net's column
        too.
        """
        table = next(iter(self.inputs.values()))[0].table
        bound = self._on_rows(rows, table, data)
        columns = dict(bound.tables[table].columns)
        for inputs in self.inputs.values():
            for k, one in enumerate(inputs):
                columns[f"{PLACES} {one.name}"] = np.arange(len(rows), dtype=np.float64) + k * len(rows)
        tables = {**bound.tables, table: replace(bound.tables[table], columns=columns)}
        nets: dict[str, Any] = {
            name: KnownScores(np.concatenate([scores[one] for one in inputs]))
            for name, inputs in self.inputs.items()
        }
        dims = {**bound.dims, **{f"params({name})": 0 for name in self._trained}}
        problem = rewrite_problem(bound.problem, partial(_of_places, _names_of_places(list(scores))))
        bound = replace(bound, problem=problem, tables=tables, nets={**bound.nets, **nets}, dims=dims)
        point = {}
        for name, variable in bound.problem.variables.items():
            if variable.net is not None:
                point[name] = np.zeros(0)
            else:
                point[name] = self.variables[name].detach().double().cpu().numpy()
        return bound, point

    def _on_rows(self, rows: np.ndarray, table: str, data: Mapping[str, Any] | None) -> Bound:
        """The problem on some rows of a table, or of the table given in its place in ``data``."""
        if not data and np.array_equal(rows, self.bound.tables[table].numbers):
            return self.bound
        binding = self.model.binding
        encoding = {name: one.encoding for name, one in self.bound.tables.items()}
        if data:
            binding = replace(binding, data={**binding.data, **data})
        return pipeline.bind(
            self.model.compiled, binding, seed=self.planned.seed, encoding=encoding, rows={table: rows}
        )

    def report(self, **nets: torch.nn.Module) -> KKTReport:
        """The report on the problem as written over all bound rows, at the weights of these modules.

        It has constraints, multipliers and the KKT residual. The modules run in evaluation mode on the
        columns that were bound, without what a loader does to them. No theorem is claimed for the steps
        that led here. ``print`` shows it as a table.
        """
        bound, point = self._at(nets)
        return self._judged(bound, point)

    def _judged(self, bound: Bound, point: Mapping[str, np.ndarray]) -> KKTReport:
        """The report at a point. The criterion's own multipliers are tried beside those that fit best."""
        from fccomodel import report

        own = self.multipliers_by_label()
        return report.report(bound, point, multipliers=own, seed=self.planned.seed)

    def result(self, **nets: torch.nn.Module) -> Result:
        """A result like that of ``solve``, at the weights of these modules.

        It has the report, ``predict``, ``module``, ``export`` and ``save``.
        """
        from fccomodel.app.python.solved import Result
        from fccomodel.execution.run import Solution

        began = time.perf_counter()
        bound, point = self._at(nets)
        modules = {name: bound.nets[name] for name in nets}
        binding = replace(self.planned.binding, nets={**self.planned.binding.nets, **modules})
        plan = self.plan.stepped_by("your optimizer")
        planned = replace(self.planned, bound=bound, binding=binding, plan=plan)
        judged = self._judged(bound, point)
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
            multipliers=self.multipliers_by_label(),
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
        """The bound problem with copies of these modules, and the values of all its variables."""
        if set(nets) != set(self._trained):
            self._refuse(errors.criterion_modules(list(nets), self._trained))
        modules = {}
        for name, net in nets.items():
            module = copy.deepcopy(unwrapped(net)).cpu().eval()
            modules[name], _ = build(self.bound.problem.nets[name], module, self.bound.dims)
        point = {}
        for name, variable in self.bound.problem.variables.items():
            if variable.net is not None:
                weights = [p.detach().reshape(-1) for p in modules[variable.net].parameters()]
                point[name] = torch.cat(weights).double().cpu().numpy()
            else:
                point[name] = self.variables[name].detach().double().cpu().numpy()
        dims = dict(self.bound.dims)
        for name, module in modules.items():
            dims[f"params({name})"] = sum(p.numel() for p in module.parameters())
        return replace(self.bound, nets={**self.bound.nets, **modules}, dims=dims), point


def _names_of_places(scores: list[ScoreInput]) -> dict[tuple[str, str], str]:
    """The column of places by net and columns; also where the net's input is the output of a net whose
    input is such a column already."""
    names = {(one.net, one.column): f"{PLACES} {one.name}" for one in scores}
    for one in scores:
        columns = one.column
        for inner in sorted(scores, key=lambda other: -len(other.column)):
            places = [names[inner.net, inner.column]] * len(inner.columns)
            call = f"{inner.net}({' and '.join(inner.columns)})"
            columns = columns.replace(call, f"{inner.net}({' and '.join(places)})")
        names[one.net, columns] = names[one.net, one.column]
    return names


def _of_places(names: Mapping[tuple[str, str], str], node: ir.Expr) -> ir.Expr | None:
    """The call of a net on the places of rows, in place of its call on columns, or on outputs of nets of
    these; None for other nodes. ``names`` has the column of places by net and columns."""
    if not isinstance(node, ir.NetCall) or not ir.variables_of(node):
        return None
    applied = applied_to(node)
    if applied is None:
        return None
    name = names.get((node.net, ", ".join(applied.names)))
    if name is None:
        return None
    column = next(one for one in ir.walk(node) if isinstance(one, ir.Column))
    places = replace(column, name=name, shape=())
    return replace(node, inputs=(places,) * len(node.inputs))


class KnownScores(torch.nn.Module):
    """A module in place of a net that looks known scores up by the place of their row."""

    def __init__(self, scores: np.ndarray):
        super().__init__()
        self.register_buffer("scores", torch.from_numpy(np.ascontiguousarray(scores)))

    def forward(self, places: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        """The scores of the rows at these places of the list; ``others`` are the same places again."""
        scores = self.scores
        assert isinstance(scores, torch.Tensor)
        return scores[places.double().round().long()]


def criterion(
    model: BoundModel,
    *,
    batch: int,
    algorithm: str | None,
    together: bool,
    track: Tracker | None = None,
    **given: Any,
) -> Criterion:
    """The criterion of a bound model; F0826 if the model or the algorithm has none."""
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        refuse(errors.criterion_batch(batch))
    if "batch_size" in given:
        refuse(errors.criterion_batch_size())
    if "precision" in given:
        refuse(errors.criterion_precision())
    for name in RATES:
        if name in given:
            refuse(errors.criterion_rate(name))
    return Criterion(model, _planned(model, algorithm, **given), batch, together=together, track=track)


def _planned(model: BoundModel, algorithm: str | None, **given: Any) -> pipeline.Planned:
    """The plan whose gradient an optimizer steps by; F0826 where the algorithm named has none."""
    chosen = {"unverified": True, **given}
    if algorithm is not None:
        chosen["algorithm"] = algorithm
    return training.with_criterion(model.plan(**chosen))


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
    *,
    checkpoints: Checkpoints | None = None,
    **how: Any,
) -> pipeline.Outcome:
    """A solve by steps of an optimizer: ``solve(optimizer=..., ...)``.

    given        the keywords about the optimizer
    chosen       the options of the solve
    checkpoints  where the run keeps its state
    how          what else ``pipeline.training.trained`` takes

    Raises F0826 where the model has no net, F0805 for values that the keywords do not take.
    """
    if not model.compiled.problem.nets:
        refuse(refusals.loop_without_net([name for name in given if name != "every"]))
    if "epochs" in chosen:
        refuse(refusals.epochs_of_loop(chosen["epochs"]))
    planned = starts.begun(_planned(model, **chosen), start)
    if planned.ranks:
        refuse(of_one_process("A solve with an optimizer of yours"), source=planned.problem.source)
    planned = replace(planned, checkpoints=checkpoints)
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
        bound=_validation(planned, validate),
        watch=StoppingQuantity.of(watch, planned.problem),
        patience=patience,
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


def _columns_below(one: ScoreInput) -> tuple[str, ...]:
    """The columns that a net is computed from, also through other nets."""
    below = (node for node in ir.walk(*one.call.inputs) if isinstance(node, ir.Column))
    return tuple(dict.fromkeys(str(column.name) for column in below))


def _first(batch: Any) -> Any:
    """The net's input in a batch: the first entry of a list or a tuple, else the whole batch."""
    if isinstance(batch, list | tuple):
        return batch[0]
    return batch


def _on_device_of(net: Any, value: Any) -> Any:
    """An input, moved to the device of the net's weights if it is a tensor and the net has weights."""
    if not isinstance(net, torch.nn.Module) or not isinstance(value, torch.Tensor):
        return value
    weight = next(iter(net.parameters()), None)
    if weight is None:
        return value
    return value.to(weight.device)


@contextmanager
def _evaluating(nets: Iterable[Any]) -> Iterator[None]:
    """Put modules into evaluation mode, and each of their parts back into its own mode afterwards."""
    parts = [part for net in nets if isinstance(net, torch.nn.Module) for part in net.modules()]
    modes = [part.training for part in parts]
    for part in parts:
        part.training = False
    try:
        yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode
