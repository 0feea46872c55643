"""Outputs of nets that are kept while several quantities are computed at one point.

A net is a function of a row, so its outputs on all rows serve every part of the rows: the groups of a
jackknife, the objective, each constraint. Who computes several quantities opens ``Outputs.used()``; the
evaluator then finds outputs there before it runs a net.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import torch

#: Numbers that are kept at most: older outputs are dropped first.
MOST_NUMBERS = 1 << 25

Key = tuple[str, bytes]


@dataclass(eq=False)
class Outputs:
    """Outputs of nets on the rows of one data set.

    kept   by key: row numbers in ascending order, and the outputs of these rows
    anew   whether nets are run although their outputs are kept: to price an evaluation
    """

    kept: dict[Key, tuple[np.ndarray, torch.Tensor]] = field(default_factory=dict)
    anew: bool = False

    @contextmanager
    def used(self) -> Iterator[None]:
        """Lets evaluators use these outputs, and keep their own here."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def find(self, key: Key, numbers: np.ndarray) -> torch.Tensor | None:
        """The outputs of the rows with these numbers, or None if one of them is not kept."""
        if self.anew or key not in self.kept:
            return None
        known, values = self.kept[key]
        if not len(known):
            return None
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        if not np.array_equal(known[places], numbers):
            return None
        return values.index_select(0, torch.from_numpy(places))

    def keep(self, key: Key, numbers: np.ndarray, values: torch.Tensor) -> None:
        """Keeps outputs, unless more rows are kept under their key."""
        if values.numel() > MOST_NUMBERS or key in self.kept and len(self.kept[key][0]) >= len(numbers):
            return
        ascending, first = np.unique(numbers, return_index=True)
        self.kept[key] = ascending, values.detach().index_select(0, torch.from_numpy(first))
        while sum(kept.numel() for _, kept in self.kept.values()) > MOST_NUMBERS:
            del self.kept[next(iter(self.kept))]


_current: ContextVar[Outputs | None] = ContextVar("outputs of nets", default=None)


def current() -> Outputs | None:
    """The outputs that evaluators use, or None."""
    return _current.get()


@contextmanager
def anew() -> Iterator[None]:
    """Lets evaluators run their nets, and keep the outputs for others."""
    outputs = current()
    if outputs is None:
        outputs = Outputs()
    with Outputs(kept=outputs.kept, anew=True).used():
        yield


def key_of(text: str, variables: Sequence[torch.Tensor], buffers: Iterable[torch.Tensor] = ()) -> Key:
    """The key of a net's outputs: what it is applied to, and the values of its variables and buffers.

    Buffers, such as the running means of batch normalisation, can change where the weights do not.
    """
    digest = blake2b(digest_size=16)
    for value in (*variables, *buffers):
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return text, digest.digest()
