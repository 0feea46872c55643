"""A compiled objective as a ``torch.nn.Module``: the loss of a training loop that somebody else owns."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.runtime.loops.settings import BlockSettings
from fccomodel.core import process
from fccomodel.core.diagnostics import Diagnostic, FccoError, refuse
from fccomodel.data.bound import Bound, BoundTable
from fccomodel.data.drawn import drawn
from fccomodel.evaluation.sets import members
from fccomodel.execution.training import blocks, joint
from fccomodel.execution.training.errors import criterion as errors
from fccomodel.execution.training.loss import loss_of
from fccomodel.execution.training.right_rows import Draws
from fccomodel.execution.training.samplers import StratifiedSampler, TableStrata
from fccomodel.plan import Plan
from fccomodel.program.emit.given import GivenProgram, given_program
from fccomodel.program.lower.given import GivenSteps, ScoreInput, given_steps

#: the longest stage grows by this factor from one to the next
LONGER = 1.3
#: weight of an estimate's new value, at least, as stages shrink it by ``SHRINKS``
LEAST_GAMMA = 0.05
SHRINKS = 0.7
#: a multiplier this close to the largest that its penalty allows raises the penalty
SATURATED = 0.99
#: a violation above ``FEASIBLE`` that does not fall to this share of itself from one stage to the
#: next sharpens the penalties: their smoothing shrinks by ``SHARPER``, not below ``LEAST_SMOOTHING``
FEASIBLE = 1e-4
FALLS = 0.5
SHARPER = 0.5
LEAST_SMOOTHING = 1e-3
#: groups of buffers whose estimates begin anew where they are not a number: estimates, watched values
FORGETTING = ("u", "v", "value")
#: what of ``blocks`` the functions of a criterion call
CALLED = ("BatchBlocks", "tracked", "keep", "mean", "mean_log", "WATCHING", "WATCHING_ROWS")
#: rows of a batch that a program is made for, at least
LEAST_ROWS = 8

Rows = torch.Tensor | np.ndarray | list[int]


class NotFinite(FccoError):
    """Scores of a batch are not finite, and nothing of the criterion has moved; or the loss is not."""


def suitable(algorithm: Algorithm) -> bool:
    """Whether steps by another optimizer can use an algorithm's gradient: its estimates are block by
    block, and are moved by the batch alone."""
    return (
        algorithm.oracle == "blocks"
        and algorithm.projects_in_steps
        and algorithm.estimator is not None
        and not getattr(algorithm.estimator, "needs_share", False)
        and "linear coupling" not in algorithm.requires
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchFunctions:
    """The functions of a criterion for batches of one capacity."""

    lowered: GivenSteps
    program: GivenProgram
    functions: Mapping[str, Any]
    capacity: int

    @classmethod
    def of(cls, bound: Bound, plan: Plan, capacity: int) -> BatchFunctions:
        """The functions of batches of at most ``capacity`` rows: the steps lowered, printed and loaded."""
        lowered = given_steps(bound.problem, bound, plan, capacity)
        program = given_program(lowered)
        space: dict[str, Any] = {name: vars(blocks)[name] for name in CALLED}
        space["INITIAL"] = dict(program.initial)
        with process.own_randomness():
            exec(compile(program.text, "criterion.py", "exec", dont_inherit=True), space)  # noqa: S102
        return cls(lowered=lowered, program=program, functions=space, capacity=capacity)


class Criterion(torch.nn.Module):
    """The minimised objective of a model as a loss of a batch's scores.

    ``loss = criterion(rows, s=net(x))``: its value is an estimate of the minimised objective, its
    gradient the algorithm's. Estimates u, centres and multipliers are buffers, variables beside the
    nets are parameters. In evaluation mode estimates do not move.

    If it is ``together`` under ``torch.distributed``, the batches of all ranks are one: every rank calls
    it at the same time, and gradients are averaged over ranks, as ``DistributedDataParallel`` does.
    """

    def __init__(
        self,
        bound: Bound,
        plan: Plan,
        *,
        batch: int,
        dtype: torch.dtype = torch.float64,
        together: bool = False,
    ):
        super().__init__()
        self.bound, self.plan, self.batch, self.dtype = bound, plan, batch, dtype
        self.together = together
        self.made: dict[int, BatchFunctions] = {}
        self.placed: dict[tuple[int, torch.device], SimpleNamespace] = {}
        first = self._made(batch)
        lowered = first.lowered
        self.tables = lowered.tables
        self.inputs: dict[str, list[ScoreInput]] = {}
        for asked in lowered.scores:
            self.inputs.setdefault(asked.net, []).append(asked)
        self.table_of = {asked.name: asked.table for asked in lowered.scores}
        self.strata = {
            name: TableStrata.of(
                bound.tables[name].n,
                [*lowered.state.partitions.get(name, []), *lowered.watching.partitions.get(name, [])],
                lowered.state.related.get(name, []),
            )
            for name in self.tables
        }
        self.places = {name: _places(bound.tables[name].numbers) for name in self.tables}
        self.draws = {name: Draws(bound.tables[name].n) for name in self.tables}
        self.settings = settings(plan)
        self.steps, self.until, self.before = 0, int(self.settings.stage), math.inf
        self.noise = torch.Generator().manual_seed(0)
        self.digests: dict[str, tuple[int, str]] | None = None
        self._register(lowered)
        self._start(first)

    def _start(self, made: BatchFunctions) -> None:
        """The variables beside the nets where a solve starts them: inside their sets."""
        w = made.functions["start"](torch.Generator().manual_seed(0), "cpu", self.dtype)
        self._assign(w)

    @torch.no_grad()
    def _assign(self, w: torch.Tensor) -> None:
        """The variables from one flat vector."""
        for name, (begin, end, shape) in self.layout.items():
            self.variables[name].copy_(w[begin:end].reshape(shape))

    def _flat(self) -> torch.Tensor | None:
        """The variables beside the nets as one vector, or None if there are none."""
        flat = [p.reshape(-1) for p in self.variables.values()]
        if flat:
            return torch.cat(flat)
        return None

    def _register(self, lowered: GivenSteps) -> None:
        """The variables beside the nets as parameters; all that a step keeps as buffers."""
        self.variables = torch.nn.ParameterDict(
            {name: torch.zeros(shape, dtype=self.dtype) for name, (_, _, shape) in lowered.layout.items()}
        )
        self.layout = lowered.layout
        self.groups: dict[str, list[str]] = {}
        full = float("nan")
        for buffer in lowered.state.buffers.values():
            self._buffer("u", buffer.name, torch.full(buffer.shape, full, dtype=self.dtype))
        for buffer in lowered.watching.buffers.values():
            self._buffer("v", buffer.name, torch.full(buffer.shape, full, dtype=self.dtype))
        for name, shape in lowered.state.centres.items():
            self._buffer("c", name, torch.zeros(shape, dtype=self.dtype))
            self._buffer("y", name, torch.zeros(shape, dtype=self.dtype))
        for name in lowered.estimated:
            shape = lowered.state.centres[name]
            self._buffer("u", name, torch.full(shape, full, dtype=self.dtype))
        if "" not in lowered.watched:
            self._buffer("value", "objective", torch.tensor(full, dtype=self.dtype))
        for label, (_, value) in lowered.watched.items():
            self._buffer("value", label or "objective", torch.full(_shape(value), full, dtype=self.dtype))

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Criterion:
        """Moves buffers and variables to another device, but keeps their precision: the algebra of scores
        is in ``dtype`` whatever the precision of the nets is (``module.half()``).
        """

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            """The tensor where ``fn`` would put it."""
            there = fn(tensor)
            if there.dtype == tensor.dtype:
                return there
            return tensor.to(there.device)

        super()._apply(moved, recurse)
        return self

    def _buffer(self, group: str, name: str, value: torch.Tensor) -> None:
        self.register_buffer(f"{group}_{name}", value)
        self.groups.setdefault(group, []).append(name)

    def _group(self, group: str) -> SimpleNamespace:
        """The buffers of a group, by their names there; copies in evaluation mode."""
        buffers = {name: getattr(self, f"{group}_{name}") for name in self.groups.get(group, ())}
        if not self.training:
            buffers = {name: value.clone() for name, value in buffers.items()}
        return SimpleNamespace(**buffers)

    # -------------------------------------------------------------------------------------- one step
    def forward(
        self,
        rows: Rows | Mapping[str, Rows],
        *unnamed: Any,
        previous: Mapping[str, Any] | None = None,
        **scores: Any,
    ) -> torch.Tensor:
        """The loss of a batch.

        rows       row numbers as they were bound, counted from 0; a mapping where several tables are
                   sampled
        previous   scores of the same rows at the weights before the last step, by net: for
                   algorithms that correct their estimates by them. Without it they are moving averages
        scores     outputs by the name of the net, one for each row; a mapping by column where a net is
                   applied to several

        Raises F0826 for rows, names or shapes that do not fit.
        """
        if unnamed:
            self._refuse(errors.criterion_scores(list(scores), list(self.inputs)))
        ids = self._ids(rows)
        mine = self._scores(scores, ids)
        if previous is not None:
            before = self._scores(previous, ids)
        else:
            before = mine
        if self.together and joint.count() > 1:
            batch = joint.gathered(ids, mine, before, self.table_of)
        else:
            batch = joint.alone(ids, mine, before)
        step_program = self._made(max(len(part) for part in batch.ids.values()))
        device = next(iter(mine.values())).device
        given = self._given(batch, step_program.capacity, device)
        value, adjoints, gradients = self._stepped(step_program, given, device)
        return self._loss(value, self._own(adjoints, batch, mine), gradients, mine)

    def _given(self, batch: joint.Batch, capacity: int, device: torch.device) -> SimpleNamespace:
        """Rows, their weights and scores, filled up to the capacity of a program."""
        given = SimpleNamespace()
        for name, part in batch.ids.items():
            padded = _padded(part, capacity, part[0])
            weights, strata, others = self.strata[name].weights(part)
            filled = {
                "rows": padded,
                "weights": _padded(weights.to(self.dtype), capacity, 0.0),
                "strata": _padded(strata, capacity, -1),
                "others": _padded(others.to(self.dtype), capacity, 1.0),
            }
            for kind, values in filled.items():
                setattr(given, f"{kind}_{name}", values.to(device))
        for name, score in batch.scores.items():
            setattr(given, name, self._filled(score, capacity))
            setattr(given, f"{name}_prev", self._filled(batch.before[name], capacity))
        return given

    def _own(
        self, adjoints: Mapping[str, torch.Tensor], batch: joint.Batch, mine: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """The adjoints of this rank's scores, times the number of ranks: gradients are averaged later."""
        own = {}
        for name, adjoint in adjoints.items():
            begin = batch.begins[self.table_of[name]]
            own[name] = adjoint[begin : begin + len(mine[name])] * batch.ranks
        return own

    def _stepped(
        self, made: BatchFunctions, given: SimpleNamespace, device: torch.device
    ) -> tuple[Any, dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Take the emitted step on a batch: value, adjoints of scores, gradients. Watched values move
        with it."""
        data = self._data(made, device)
        flat = self._flat()
        if flat is not None:
            w = flat.detach()
        else:
            w = torch.zeros(0, dtype=self.dtype, device=device)
        groups = [self._group(group) for group in ("u", "c", "y", "v")]
        noise = self._drawn(made, data)
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            value, adjoints, gradients, watched = made.functions["step"](
                data, w, w, *groups, noise, self.settings, given
            )
            if self.training:
                for label, values in watched.items():
                    kept = self.get_buffer(f"value_{label or 'objective'}")
                    kept.copy_(torch.as_tensor(values, dtype=self.dtype, device=device).expand(kept.shape))
            if self.training and "" not in made.lowered.watched:
                kept = self.get_buffer("value_objective")
                sign = -1.0 if self.bound.problem.objective.sense == "maximize" else 1.0
                now = torch.as_tensor(value, dtype=self.dtype, device=device) * sign
                kept.copy_(torch.where(kept.isnan(), now, kept + blocks.WATCHED * (now - kept)))
            self._finite_loss(value, adjoints, gradients)
        self.steps += self.training
        return value, adjoints, gradients

    def _finite_loss(
        self, value: Any, adjoints: Mapping[str, torch.Tensor], gradients: Mapping[str, torch.Tensor]
    ) -> None:
        """Raises F0826 if the value of a step or a gradient is not finite. Estimates that are not finite
        are then forgotten, so that they begin anew."""
        total = torch.as_tensor(value, dtype=self.dtype)
        for part in (*adjoints.values(), *map(torch.as_tensor, gradients.values())):
            total = total + part.sum()
        if bool(torch.isfinite(total)):
            return
        if self.training:
            for group in FORGETTING:
                for name in self.groups.get(group, ()):
                    kept = self.get_buffer(f"{group}_{name}")
                    kept[~torch.isfinite(kept)] = math.nan
        error = errors.criterion_overflow(self.steps, self.training)
        raise NotFinite([error], self.bound.problem.source)

    def _drawn(self, made: BatchFunctions, data: SimpleNamespace) -> Any:
        """The noise of one step."""
        if not made.program.noise:
            return ()
        here = SimpleNamespace(device=self.noise.device, dtype=self.dtype, waiting={})
        return [part[0].to(data.device) for part in made.functions["draw"](here, self.noise, 1)]

    def _loss(
        self,
        value: Any,
        adjoints: Mapping[str, torch.Tensor],
        gradients: Mapping[str, torch.Tensor],
        scores: Mapping[str, torch.Tensor],
    ) -> torch.Tensor:
        """A scalar with this value whose gradient is that of the sum of <adjoint, score>, and of the
        regularisers of variables beside the nets."""
        device = next(iter(scores.values())).device
        inputs = list(scores.values())
        derivatives = [adjoints[name].to(self.dtype).expand(score.shape) for name, score in scores.items()]
        for name, gradient in gradients.items():
            parameter = self.variables[name]
            factor = torch.as_tensor(gradient, dtype=self.dtype, device=parameter.device)
            inputs.append(parameter)
            derivatives.append(factor.reshape(parameter.shape))
        source = self.bound.problem.source
        loss = loss_of(torch.as_tensor(value, dtype=self.dtype, device=device), inputs, derivatives, source)
        flat = self._flat()
        if flat is not None and self.plan.normal.prox:
            loss = loss + self.made[self.batch].functions["regulariser"](flat)
        return loss

    # ------------------------------------------------------------------------------ what a step takes
    def _ids(self, rows: Rows | Mapping[str, Rows]) -> dict[str, torch.Tensor]:
        """The places of a batch's rows in the bound tables, by table."""
        if not isinstance(rows, Mapping):
            if len(self.tables) != 1:
                self._refuse(errors.criterion_tables(self.tables))
            rows = {self.tables[0]: rows}
        if set(rows) != set(self.tables):
            self._refuse(errors.criterion_tables(self.tables))
        ids_of_tables = {}
        for name, part in rows.items():
            numbers = self._numbers(name, part)
            if not numbers.numel():
                self._refuse(errors.criterion_row_numbers(name, "the batch is empty"))
            if numbers.dtype == torch.bool or numbers.is_floating_point() or numbers.is_complex():
                kind = str(numbers.dtype).removeprefix("torch.")
                self._refuse(errors.criterion_row_numbers(name, f"their type is {kind}"))
            numbers = numbers.to(torch.int64).reshape(-1).cpu()
            ids = self._places_of(name, numbers)
            if self.training:
                self._drawn_rows(name, ids)
            ids_of_tables[name] = ids
        return ids_of_tables

    def _places_of(self, table: str, numbers: torch.Tensor) -> torch.Tensor:
        """The places of row numbers in the bound table; F0826 for numbers that it does not have."""
        places = self.places[table]
        least, largest = map(int, numbers.aminmax())
        if 0 <= least and largest < len(places):
            ids = places[numbers]
            if int(ids.min()) >= 0:
                return ids
        outside = (numbers < 0) | (numbers >= len(places))
        outside |= places[numbers.clamp(0, len(places) - 1)] < 0
        row = int(numbers[outside][0])
        self._refuse(errors.criterion_rows(table, row, self.bound.tables[table].n))
        raise AssertionError("a refusal raises")

    def _numbers(self, table: str, rows: Rows) -> torch.Tensor:
        """The row numbers of a batch as a tensor; F0826 if they are no numbers."""
        try:
            return torch.as_tensor(rows)
        except (TypeError, ValueError, RuntimeError):
            kind = type(rows).__name__
            self._refuse(errors.criterion_row_numbers(table, f"a {kind} is no list of whole numbers"))
            raise AssertionError("a refusal raises") from None

    def _drawn_rows(self, table: str, ids: torch.Tensor) -> None:
        """Raises F0826 if the numbers of the first batches repeat as labels do."""
        few = self.draws[table].labels(ids)
        if few:
            draws = self.draws.pop(table)
            self.draws[table] = Draws(draws.rows)
            self._refuse(errors.criterion_labels(table, draws.batches, draws.drawn, few))

    def _named(self, given: Iterable[str]) -> None:
        """Raises F0826 unless these are the names of the nets whose scores are taken."""
        names = set(given)
        if names == set(self.inputs):
            return
        frozen = sorted((names - set(self.inputs)) & set(self.bound.problem.nets))
        if frozen:
            self._refuse(errors.criterion_frozen(frozen, list(self.inputs)))
        self._refuse(errors.criterion_scores(list(given), list(self.inputs)))

    def _scores(self, given: Mapping[str, Any], ids: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The scores of a batch by the names that a step has for them."""
        self._named(given)
        scores = {}
        for net, asked in self.inputs.items():
            value = given[net]
            names = [_column(one, asked) for one in asked]
            if not isinstance(value, Mapping):
                if len(asked) != 1:
                    self._refuse(errors.criterion_inputs(net, names))
                value = {names[0]: value}
            elif set(value) != set(names):
                if len(asked) == 1:
                    self._refuse(errors.criterion_heads(net, list(value)))
                self._refuse(errors.criterion_inputs(net, names))
            for one, name in zip(asked, names, strict=True):
                if not isinstance(value[name], torch.Tensor):
                    self._refuse(errors.criterion_not_scores(net, type(value[name]).__name__))
                self._real_and_here(net, value[name])
                shape, expected = tuple(value[name].shape), (len(ids[one.table]), *one.event)
                if shape != expected and shape != (*expected, 1):
                    self._refuse(errors.criterion_shape(net, shape, expected))
                scores[one.name] = value[name].reshape(expected)
        self._finite(scores, ids)
        return scores

    def _real_and_here(self, net: str, score: torch.Tensor) -> None:
        """Raises F0826 for scores that are not real numbers, or are not where the criterion is."""
        if not score.is_floating_point():
            self._refuse(errors.criterion_kind(net, str(score.dtype).removeprefix("torch.")))
        here = self.value_objective.device
        if score.device != here:
            self._refuse(errors.criterion_device(net, score.device, here))

    def _finite(self, scores: Mapping[str, torch.Tensor], ids: Mapping[str, torch.Tensor]) -> None:
        """Raises F0826 for scores that are not finite, before anything has moved."""
        for asked in (one for each in self.inputs.values() for one in each):
            score = scores[asked.name].detach()
            if bool(torch.isfinite(score).all()):
                continue
            wrong = ~torch.isfinite(score.reshape(len(score), -1)).all(dim=1)
            first = ids[asked.table][int(wrong.nonzero()[0])]
            row = int(self.bound.tables[asked.table].numbers[int(first)])
            count = f"{int(wrong.sum())} of {len(score)}"
            error = errors.criterion_not_finite(asked.net, count, row, self.steps)
            raise NotFinite([error], self.bound.problem.source)

    def key(self, asked: ScoreInput) -> str:
        """The name under which the scores of a column are given."""
        return _column(asked, self.inputs[asked.net])

    def _filled(self, score: torch.Tensor, capacity: int) -> torch.Tensor:
        """Scores in the precision of the algebra, filled up with the first row's."""
        score = score.detach().to(self.dtype)
        return _padded(score, capacity, score[:1])

    def _data(self, made: BatchFunctions, device: torch.device) -> SimpleNamespace:
        """The arrays of a program on a device."""
        key = made.capacity, device
        if key not in self.placed:
            data = SimpleNamespace(device=device, dtype=self.dtype, waiting={}, **made.program.numbers)
            for name, value in made.program.data.items():
                converted = value.to(
                    device=device, dtype=self.dtype if value.is_floating_point() else value.dtype
                )
                setattr(data, name, converted)
            self.placed[key] = made.functions["prepare"](data)
        return self.placed[key]

    def _made(self, rows: int) -> BatchFunctions:
        """The functions for batches with this many rows: those of ``batch``, or of a power of two."""
        capacity = self.batch
        while capacity < rows:
            capacity = max(2 * capacity, LEAST_ROWS)
        if capacity not in self.made:
            self.made[capacity] = BatchFunctions.of(self.bound, self.plan, capacity)
        return self.made[capacity]

    def _refuse(self, error: Diagnostic) -> Any:
        refuse(error, source=self.bound.problem.source)

    # ---------------------------------------------------------------------------- between the steps
    @torch.no_grad()
    def step(self) -> None:
        """Update the criterion after the optimizer's step.

        Variables move back into their sets. At the end of a stage the centres move to the multipliers seen,
        estimates average over longer windows, and penalties whose multipliers are at their bound are
        raised.
        """
        self._project()
        if self.steps < self.until:
            return
        h = self.settings
        h.stage = min(int(LONGER * h.stage), h.longest)
        self.until = self.steps + int(h.stage)
        if not h.steady and h.gamma:
            paired = abs(h.gamma + h.gamma_prime - 1.0) < 1e-9
            h.gamma = max(SHRINKS * h.gamma, min(h.gamma, LEAST_GAMMA))
            if paired:
                h.gamma_prime = 1.0 - h.gamma
        largest, worst = 0.0, self.values()["violation"]
        stays = worst > FEASIBLE and worst > FALLS * self.before
        self.before = worst
        for name in self._estimated:
            multipliers = self.get_buffer(f"y_{name}")
            self.get_buffer(f"c_{name}").copy_(multipliers)
            largest = max(largest, float(multipliers.abs().max()))
            if stays:
                h.smooth(name, max(SHARPER * h.smoothing(name), LEAST_SMOOTHING))
        if largest >= SATURATED * h.rho:
            h.rho *= 2.0

    def _project(self) -> None:
        """Variables beside the nets back into their sets."""
        made = self.made[self.batch]
        if not made.program.projects:
            return
        w = self._flat()
        assert w is not None
        made.functions["project"](w, 0.0)
        self._assign(w)

    @property
    def _estimated(self) -> tuple[str, ...]:
        return self.made[self.batch].lowered.estimated

    def values(self) -> dict[str, Any]:
        """Running values of the problem as written: ``objective``, ``constraints`` (left minus right
        side, by label), ``multipliers`` and the largest ``violation``. They are means over the batches of
        some 10 steps.

        Where the objective as written needs all rows (``cvar`` over them), ``objective`` is the mean of
        the loss, penalties included; a constraint that does is left out.
        """
        watched = self.made[self.batch].lowered.watched
        constraints = {k: _number(self.get_buffer(f"value_{k}")) for k in watched if k}
        violation = 0.0
        for label, (kind, _) in watched.items():
            if label:
                left = self.get_buffer(f"value_{label}")
                if kind == "eq":
                    size = left.abs()
                else:
                    size = left
                violation = max(violation, float(size.nan_to_num(0.0).max()))
        return {
            "objective": _number(self.get_buffer("value_objective")),
            "constraints": constraints,
            "multipliers": self.multipliers(),
            "violation": violation,
        }

    def multipliers(self) -> dict[str, Any]:
        """The last multipliers by the constraint's label."""
        by_label = {}
        for label, penalty in self.plan.normal.penalties.items():
            name = getattr(penalty, "name", "")
            if name in self.groups.get("y", ()):
                by_label[label] = _number(self.get_buffer(f"y_{name}").abs())
        return by_label

    def multipliers_by_label(self) -> dict[str, float]:
        """The last multipliers by the label of each constraint or member of a family, as ``miss[0]``.

        Those of members that no batch has met are left out.
        """
        families = {family.label: family for family in self.bound.problem.constraints}
        by_label: dict[str, float] = {}
        for name, value in self.multipliers().items():
            labels = members.of(self.bound, families[name]).labels(name)
            entries = np.ravel(value)
            if len(labels) == len(entries):
                by_label |= {label: float(y) for label, y in zip(labels, entries, strict=True)}
        return {label: y for label, y in by_label.items() if np.isfinite(y)}

    def sampler(self, seed: int = 0, batch: int | None = None, table: str | None = None) -> StratifiedSampler:
        """Batches of row numbers with rows of every set and group: a ``batch_sampler`` of a DataLoader.

        Under ``torch.distributed`` each rank gets rows of its own, ``batch`` of them.
        """
        name = table or self.tables[0]
        if name not in self.tables:
            self._refuse(errors.criterion_tables(self.tables))
        return StratifiedSampler(
            self.strata[name],
            self.bound.tables[name].numbers,
            batch or self.batch,
            seed,
            together=self.together,
        )

    # ------------------------------------------------------------------------------------- its state
    def get_extra_state(self) -> dict[str, Any]:
        """Counts, settings and the state of the noise."""
        return {
            "rows": self._rows(),
            "steps": self.steps,
            "until": self.until,
            "before": self.before,
            "settings": dict(vars(self.settings)),
            "noise": self.noise.get_state(),
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Go on from a state of ``get_extra_state``; F0826 if it is of other rows."""
        for table, then in state.get("rows", {}).items():
            now = self._rows().get(table)
            if now != then:
                self._refuse(errors.criterion_state_of_others(table, _other_rows(now, then)))
        self.steps, self.until, self.before = state["steps"], state["until"], state["before"]
        vars(self.settings).update(state["settings"])
        self.noise.set_state(state["noise"])

    def _rows(self) -> dict[str, tuple[int, str]]:
        """For each table, the number of rows and a digest of its columns of single numbers."""
        if self.digests is None:
            tables = [self.bound.tables[name] for name in self.tables]
            self.digests = {table.name: (table.n, _digest(table)) for table in tables}
        return self.digests

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raises F0826: a state is saved, not the object."""
        self._refuse(errors.criterion_pickled())

    def __deepcopy__(self, memo: dict[int, Any]) -> Criterion:
        """A copy with its own buffers, whose functions are made anew."""
        other = type(self).__new__(type(self))
        memo[id(self)] = other
        other.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return other

    def __getstate__(self) -> dict[str, Any]:
        """All but the functions, which are made anew."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("made", "placed", "noise")}
        return {**state, "made": {}, "placed": {}, "noise_state": self.noise.get_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        noise = state.pop("noise_state")
        super().__setstate__(state)
        self.noise = torch.Generator()
        self.noise.set_state(noise)
        self._made(self.batch)


def settings(plan: Plan) -> BlockSettings:
    """The numbers that steps go by, to begin with."""
    h = BlockSettings()
    values: dict[str, Any] = {"steady": plan.steady, **plan.hyper, **plan.algorithm_record.own}
    values |= {f"lam_{s.name}": plan.smoothing for s in plan.normal.smoothed}
    values["lam_inner"] = plan.inner_smoothing
    for name, value in values.items():
        setattr(h, name, value)
    return h


def _places(numbers: np.ndarray) -> torch.Tensor:
    """The place of each row number in the bound table, -1 where it has none."""
    places = torch.full((int(numbers.max(initial=-1)) + 1,), -1, dtype=torch.int64)
    places[torch.from_numpy(np.asarray(numbers, dtype=np.int64))] = torch.arange(len(numbers))
    return places


def _digest(table: BoundTable) -> str:
    """A digest of the row numbers, and of the columns with one number a row."""
    digest = hashlib.sha256(np.ascontiguousarray(table.numbers).tobytes())
    for name, column in sorted(table.columns.items()):
        if not drawn(column) and column.ndim == 1:
            digest.update(name.encode() + np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def _other_rows(now: tuple[int, str] | None, then: tuple[int, str]) -> str:
    """How the rows of a state differ from those bound, in words."""
    if now is None:
        return "the model that is bound draws no rows of it"
    if now[0] != then[0]:
        return f"it had {then[0]:,} rows, and {now[0]:,} are bound"
    return "their numbers or their columns differ"


def _padded(values: torch.Tensor, length: int, filler: Any) -> torch.Tensor:
    """The values, filled up to a length."""
    missing = length - len(values)
    if not missing:
        return values
    more = values.new_empty((missing, *values.shape[1:]))
    more[:] = filler
    return torch.cat([values, more])


def _column(one: ScoreInput, asked: list[ScoreInput]) -> str:
    """The name under which the scores of a column are given: the table, if that tells them apart."""
    tables = [other.table for other in asked]
    if len(set(tables)) == len(tables):
        return one.table
    if len(set(tables)) == 1:
        return one.column
    return f"{one.table}.{one.column}"


def _shape(value: Any) -> tuple[int, ...]:
    return (*(axis.size for axis in value.axes), *value.event)


def _number(value: torch.Tensor) -> Any:
    if value.dim() == 0:
        return float(value)
    return value.detach().cpu().numpy().copy()
