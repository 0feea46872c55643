"""Signs that numbers are not those of rows: labels in their place, batches in the order of the table, items
of other rows than the bound ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fccomodel.data.bound import BoundTable
from fccomodel.data.drawn import drawn

#: batches that are looked at before numbers are called labels
FIRST_BATCHES = 8
#: rows drawn until then, at least
ROWS_DRAWN = 64
#: numbers are called labels if there are this many times fewer of them than rows could be
TIMES_FEWER = 4
#: share of a batch that repeats other numbers of it, above which the numbers may be labels
REPEATED = 0.1
#: batches in the order of the table after which that is told
BATCHES_IN_ORDER = 8
#: after this many draws of each row, in the mean, the first and last rows should have been drawn
DRAWS_OF_EACH = 5
#: share of a table at its begin, or at its end, that is worth a word if it is never drawn
NEVER_DRAWN = 0.05
#: two inputs of a net are the same if they differ by at most this share of their size
SAME = 1e-4


@dataclass
class Draws:
    """The row numbers of the first batches of one table.

    rows      rows of the table
    numbers   those seen
    drawn     rows drawn, with repetitions
    batches   batches seen
    """

    rows: int
    numbers: set[int] = field(default_factory=set)
    drawn: int = 0
    batches: int = 0

    def labels(self, ids: torch.Tensor) -> int:
        """The number of different values if they repeat as labels do, else 0.

        Labels repeat within every batch, and there are far fewer of them than rows were drawn. A batch
        that is trained on again and again repeats only from one batch to the next.
        """
        if self.batches >= FIRST_BATCHES and self.drawn >= ROWS_DRAWN:
            return 0
        distinct = ids.unique()
        if len(distinct) >= (1 - REPEATED) * len(ids):
            self.batches, self.drawn = FIRST_BATCHES, ROWS_DRAWN
            return 0
        self.numbers.update(distinct.tolist())
        self.drawn += len(ids)
        self.batches += 1
        enough = self.batches >= FIRST_BATCHES and self.drawn >= ROWS_DRAWN
        few = TIMES_FEWER * len(self.numbers) < min(self.drawn, self.rows)
        if enough and few:
            return len(self.numbers)
        return 0


@dataclass
class Order:
    """The order of the row numbers in the batches of one table.

    rows      rows of the table
    in_order  batches so far, if all are runs k, k + 1, ...; else -1
    first, last  the least and the largest row drawn
    drawn     rows drawn, with repetitions
    """

    rows: int
    in_order: int = 0
    first: int = -1
    last: int = -1
    drawn: int = 0

    @property
    def done(self) -> bool:
        """Whether nothing is looked for any more."""
        return self.in_order < 0 and self.drawn >= DRAWS_OF_EACH * self.rows

    def add(self, ids: torch.Tensor) -> None:
        """Looks at the rows of one batch."""
        if self.in_order >= 0:
            steps = ids[1:] - ids[:-1]
            run = 1 < len(ids) < self.rows and bool((steps == 1).all())
            self.in_order = self.in_order + 1 if run else -1
        least, largest = int(ids.min()), int(ids.max())
        if self.first < 0:
            self.first, self.last = least, largest
        self.first, self.last = min(self.first, least), max(self.last, largest)
        self.drawn += len(ids)

    def runs(self) -> bool:
        """Whether the first batches were all in the order of the table. It is told once."""
        if self.in_order < BATCHES_IN_ORDER:
            return False
        self.in_order = -1
        return True

    def never_drawn(self, added: int) -> tuple[int, int] | None:
        """The rows at one end of the table that were never drawn, first and last, if they are many.

        It is told once: when ``added`` rows, those of the last batch, complete the draws to look at.
        """
        enough = DRAWS_OF_EACH * self.rows
        if not self.drawn - added < enough <= self.drawn:
            return None
        few = NEVER_DRAWN * self.rows
        if self.rows - 1 - self.last > few:
            return self.last + 1, self.rows - 1
        if self.first > few:
            return 0, self.first - 1
        return None


@dataclass
class Items:
    """The inputs and labels that a loader gives beside row numbers.

    table     the table that was bound
    columns   the columns that the net reads
    same      whether the inputs of the first batch are those of the bound rows; None if that is not known
    entries   the other entries of its batches that have one number a row, by their place
    """

    table: BoundTable
    columns: tuple[str, ...]
    same: bool | None = None
    entries: dict[int, list[np.ndarray]] = field(default_factory=dict)
    batches: int = 0

    def add(self, numbers: np.ndarray, batch: Any, given: Any) -> None:
        """Looks at one batch; ``given`` is the input of the net."""
        if not self.batches:
            self.same = self._same(numbers, given)
        self.batches += 1
        if not isinstance(batch, list | tuple):
            return
        for place, entry in enumerate(batch):
            if isinstance(entry, torch.Tensor) and entry.shape == (len(numbers),):
                self.entries.setdefault(place, []).append(entry.detach().cpu().numpy())

    def _same(self, numbers: np.ndarray, given: Any) -> bool | None:
        """Whether most inputs equal those of the bound rows with these numbers; None if unknown."""
        values = self.table.columns.get(self.columns[0])
        if len(self.columns) > 1 or values is None:
            return None
        if drawn(values) or not isinstance(given, torch.Tensor):
            return None
        places = np.searchsorted(self.table.numbers, numbers)
        is_bound = bool((places < len(values)).all())
        if not is_bound or tuple(given.shape[1:]) != values.shape[1:]:
            return None
        array = given.detach().cpu().numpy()
        inputs = array.reshape(len(numbers), -1).astype(np.float64)
        bound_rows = np.asarray(values[places], dtype=np.float64).reshape(len(numbers), -1)
        scale = 1.0 + np.abs(bound_rows).max(axis=1)
        difference = np.abs(inputs - bound_rows).max(axis=1)
        close = difference <= SAME * scale
        return bool(close.mean() > 0.5)

    def others(self, numbers: np.ndarray) -> str:
        """Why these are not the bound rows with these numbers, in words; empty if they may be.

        Inputs that differ may have been transformed; then a label decides, which belongs to its row: an
        entry of the loader and a column of the table that determine each other's values. If no entry of
        the loader determines a column, they are rows of another table.
        """
        if self.same:
            return ""
        places = np.searchsorted(self.table.numbers, numbers)
        entries = [np.concatenate(parts) for parts in self.entries.values() if len(parts) == self.batches]
        labels = {
            name: np.asarray(values)[places]
            for name, values in self.table.columns.items()
            if name not in self.columns and not drawn(values) and values.ndim == 1
        }
        labels = {name: values for name, values in labels.items() if len(np.unique(values)) > 1}
        entries = [entry for entry in entries if 1 < len(np.unique(entry)) < len(entry)]
        if entries and labels:
            if any(_determines(entry, values) for entry in entries for values in labels.values()):
                return ""
            return f"no entry of the loader goes with the column {' or '.join(labels)} of the bound rows"
        if self.same is False:
            return "the inputs of the loader are not those of the bound rows with these numbers"
        return ""


def _determines(entry: np.ndarray, values: np.ndarray) -> bool:
    """Whether equal entries go with equal values, or equal values with equal entries."""
    pairs = len(np.unique(np.stack([_codes(entry), _codes(values)]), axis=1).T)
    return pairs in (len(np.unique(entry)), len(np.unique(values)))


def _codes(values: np.ndarray) -> np.ndarray:
    """The values as whole numbers from 0."""
    return np.unique(values, return_inverse=True)[1].reshape(-1)
