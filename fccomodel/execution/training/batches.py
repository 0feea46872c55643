"""The batches of a training run: their rows, and the scores of the nets on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn
from fccomodel.execution.training.criterion import Criterion
from fccomodel.execution.training.looks import Modules
from fccomodel.execution.training.moved import copied
from fccomodel.execution.training.samplers import Stream
from fccomodel.program.lower.given import applied_to


@dataclass(frozen=True, eq=False, kw_only=True)
class _Batch:
    """One batch: the places of its rows by table, the step that draws it, the nets, and the outputs of
    nets that are known for it."""

    rows: Mapping[str, np.ndarray]
    step: int
    modules: Modules
    outputs: dict[tuple[str, str, tuple[str, ...]], torch.Tensor] = field(default_factory=dict)


class RowBatches:
    """The rows of every step by table, in an order that the seed fixes."""

    def __init__(self, criterion: Criterion, seed: int):
        self.streams = {name: Stream(criterion.sampler(seed, table=name)) for name in criterion.tables}

    def next(self) -> dict[str, list[int]]:
        """The rows of the next step, by table."""
        return {name: next(stream) for name, stream in self.streams.items()}

    def state_dict(self) -> dict[str, Any]:
        """The place in the order of every table."""
        return {name: stream.state_dict() for name, stream in self.streams.items()}

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        """Goes on from what ``state_dict`` gave; other tables begin anew."""
        for name, stream in self.streams.items():
            if name in states:
                stream.load_state_dict(states[name])


class BatchScores:
    """The outputs of the nets for a batch, in the form in which the criterion takes them.

    seed           of the draws of drawn rows
    device, dtype  of the nets that the batches' columns go into
    half           whether nets run in bfloat16, by autocast
    """

    def __init__(
        self,
        bound: Bound,
        criterion: Criterion,
        seed: int,
        *,
        device: torch.device,
        dtype: torch.dtype,
        half: bool = False,
    ):
        self.bound, self.criterion, self.seed = bound, criterion, seed
        self.device, self.dtype, self.half = device, dtype, half
        frozen = [name for name, net in bound.problem.nets.items() if net.frozen]
        self.frozen = {name: copied(bound.nets[name], device, dtype) for name in frozen}

    def of(self, rows: Mapping[str, Any], modules: Modules, step: int) -> dict[str, Any]:
        """The scores of some rows by net; ``step`` numbers the draws of drawn rows."""
        places = {name: self.criterion.places[name][torch.as_tensor(rows[name])].numpy() for name in rows}
        batch = _Batch(rows=places, step=step, modules=modules)
        scores: dict[str, Any] = {}
        for net, inputs in self.criterion.inputs.items():
            by_column = {self.criterion.key(one): self._outputs(one.call, batch) for one in inputs}
            if len(by_column) == 1:
                scores[net] = next(iter(by_column.values()))
            else:
                scores[net] = by_column
        return scores

    def _outputs(self, call: ir.NetCall, batch: _Batch) -> torch.Tensor:
        """The outputs of a net at the rows of a batch, computed once for each batch."""
        applied = applied_to(call)
        assert applied is not None
        key = call.net, _table(applied.binder), applied.names
        if key not in batch.outputs:
            wanted = self.bound.problem.nets[call.net].inputs
            inputs = [
                self._net_input(expressions, declared.whole, batch)
                for expressions, declared in zip(call.inputs, wanted, strict=True)
            ]
            module = self.frozen[call.net] if call.net in self.frozen else batch.modules[call.net]
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
        column = self.bound.tables[table].columns[given.name]
        values = self._rows_of(column, batch.rows[table], batch.step)
        if whole:
            return values.round().to(self.device, torch.int64)
        return values.to(self.device, self.dtype)

    def _rows_of(self, column: Any, places: np.ndarray, step: int) -> torch.Tensor:
        """Some rows of a column; if its rows are drawn, as this step draws them."""
        if drawn(column):
            return torch.as_tensor(column[places].fetched(self.seed + step))
        return torch.from_numpy(np.ascontiguousarray(column[places]))


def _table(binder: ir.Binder) -> str:
    """The table of a row's binder."""
    assert isinstance(binder.domain, ir.RowSet)
    return binder.domain.table
