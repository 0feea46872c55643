"""The batches of a training run: their rows, and the scores of the nets on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn
from fccomodel.execution.training.criterion import Criterion
from fccomodel.execution.training.looks import Modules
from fccomodel.execution.training.samplers import Stream
from fccomodel.program.lower.given import ScoreInput


class Batches:
    """The rows of every step by table, in an order that the seed fixes.

    device, dtype  of the nets that the batches' columns go into
    """

    def __init__(
        self, bound: Bound, criterion: Criterion, seed: int, *, device: torch.device, dtype: torch.dtype
    ):
        self.bound, self.criterion, self.seed = bound, criterion, seed
        self.device, self.dtype = device, dtype
        self.streams = {name: Stream(criterion.sampler(seed, table=name)) for name in criterion.tables}

    def loss(self, modules: Modules, step: int) -> torch.Tensor:
        """The loss of the next batch by the nets' scores; ``step`` numbers the draws of drawn rows."""
        rows = {name: next(stream) for name, stream in self.streams.items()}
        return self.criterion(rows, **self._scores(modules, rows, step))

    def _scores(self, modules: Modules, rows: Mapping[str, Any], step: int) -> dict[str, Any]:
        """Outputs of the nets for a batch, in the form in which the criterion takes them."""
        scores: dict[str, Any] = {}
        for net, inputs in self.criterion.inputs.items():
            by_column = {
                self.criterion.key(one): modules[net](*self._net_inputs(one, rows, step)) for one in inputs
            }
            if len(by_column) == 1:
                scores[net] = next(iter(by_column.values()))
            else:
                scores[net] = by_column
        return scores

    def _net_inputs(self, asked: ScoreInput, rows: Mapping[str, Any], step: int) -> list[torch.Tensor]:
        """The inputs of a net at the rows of a batch: one tensor for each column, whole numbers as int64."""
        places = self.criterion.places[asked.table][torch.as_tensor(rows[asked.table])]
        columns = self.bound.tables[asked.table].columns
        inputs = []
        for name, one in zip(asked.columns, self.bound.problem.nets[asked.net].inputs, strict=True):
            values = self._rows_of(columns[name], places.numpy(), step)
            if one.whole:
                inputs.append(values.round().to(self.device, torch.int64))
            else:
                inputs.append(values.to(self.device, self.dtype))
        return inputs

    def _rows_of(self, column: Any, places: np.ndarray, step: int) -> torch.Tensor:
        """Some rows of a column; if its rows are drawn, as this step draws them."""
        if drawn(column):
            return torch.as_tensor(column[places].fetched(self.seed + step))
        return torch.from_numpy(np.ascontiguousarray(column[places]))

    # ------------------------------------------------------------------------------------------ state
    def state_dict(self) -> dict[str, Any]:
        """The place in the order of every table."""
        return {name: stream.state_dict() for name, stream in self.streams.items()}

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        """Goes on from what ``state_dict`` gave; other tables begin anew."""
        for name, stream in self.streams.items():
            if name in states:
                stream.load_state_dict(states[name])
