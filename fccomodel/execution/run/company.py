"""What comes after the steps of several ranks: the first goes on, and the others do for it what it
says, each on its share of the rows: products of a table's columns with weights, in float64, whole
runs of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import distributed

from fccomodel.core import ir, options
from fccomodel.data.bound import Bound, mapped
from fccomodel.evaluation.kernels import scores
from fccomodel.evaluation.sets import elements
from fccomodel.execution import ranks

#: numbers of a column from which on its products are shared
LEAST = 1 << 20


@contextmanager
def helped(bound: Bound) -> Iterator[None]:
    """A run, and what follows it: from its end on the others help the first rank in passes over the
    rows, until it leaves the block. One process is alone in it."""
    try:
        with told_of_lost(), scores.in_company(First(bound)):
            yield
    except ranks.Done:
        Follower(bound).follow()
        ranks.part()
        raise
    finally:
        leave()


@contextmanager
def assisted(work: Callable[[Any], Bound]) -> Iterator[None]:
    """Jobs of many runs that the first rank hands out (``taken``), each to all: the others do them by
    ``work``, which gives the rows of what follows, until the first leaves the block."""
    ranks.join(options.pick_device("auto"))
    ranks.waiting()
    if distributed.get_rank() > 0:
        Follower(work=work).follow()
        ranks.part()
        raise ranks.Done(0)
    try:
        yield
    finally:
        leave()


@contextmanager
def taken(job: Any, bound: Bound) -> Iterator[None]:
    """A job in which all ranks take part, and what the first makes of it with their help."""
    tell("run", job)
    try:
        with told_of_lost(), scores.in_company(First(bound)):
            yield
    finally:
        ranks.waiting()


@contextmanager
def told_of_lost() -> Iterator[None]:
    """F0713 where another rank is gone."""
    try:
        yield
    except RuntimeError as error:
        if ranks.missing(error):
            ranks.waiting(False)
            raise ranks.lost(error) from None
        raise


@contextmanager
def uncut() -> Iterator[None]:
    """What ranks say to each other here they say to the end; else nothing more is said, and the others
    end with this process."""
    try:
        yield
    except BaseException:
        ranks.silenced()
        raise


def leave() -> None:
    """The others may go."""
    if ranks.count() > 1 and ranks.free() and distributed.get_rank() == 0:
        with suppress(RuntimeError):  # one of them is lost
            tell("end")
            ranks.part()
    ranks.waiting(False)


def share(length: int, rank: int) -> slice:
    """The rows of so many that a rank takes."""
    count = ranks.count()
    return slice(length * rank // count, length * (rank + 1) // count)


def columns(bound: Bound) -> list[tuple[str, str]]:
    """The vector columns that the problem reads, by table and name: the same on every rank."""
    read = (n for n in bound.problem.expressions(ir.Column) if n.name is not None)
    found = {(n.binder.domain.table, str(n.name)) for n in read if isinstance(n.binder.domain, ir.RowSet)}
    return sorted(place for place in found if bound.tables[place[0]].columns[place[1]].ndim == 2)


class First:
    """The first rank, which says what is to be done (see ``scores.Company``)."""

    def __init__(self, bound: Bound):
        self.bound, self.known = bound, columns(bound)

    @property
    def led(self) -> bool:
        """Others follow, since their steps are done."""
        return ranks.count() > 1 and ranks.free()

    def place(self, rows: torch.Tensor) -> int | None:
        """Which of the columns these are."""
        if not self.led or rows.dim() != 2 or rows.numel() < LEAST:
            return None
        return next(
            (k for k, place in enumerate(self.known) if elements.column(self.bound, *place) is rows), None
        )

    def has(self, rows: torch.Tensor) -> bool:
        return self.place(rows) is not None

    def products(self, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        place, own, found = self.place(rows), share(len(rows), 0), weights.new_empty(len(rows))
        with uncut():
            tell("products", place, weights.numpy())
            found[own] = rows[own] @ weights
            for rank in range(1, ranks.count()):
                distributed.recv(found[share(len(rows), rank)], rank, group=ranks.talking())
        return found

    def sums(self, weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        place, own, weights = self.place(rows), share(len(rows), 0), weights.contiguous()
        with uncut():
            tell("sums", place)
            for rank in range(1, ranks.count()):
                distributed.send(weights[share(len(rows), rank)], rank, group=ranks.talking())
            found = weights[own] @ rows[own]
            distributed.reduce(found, 0, group=ranks.talking())
        return found


class Follower:
    """A rank but the first."""

    def __init__(self, bound: Bound | None = None, work: Callable[[Any], Bound | None] = lambda job: None):
        self.work, self.bound = work, bound
        self.parts: dict[int, torch.Tensor] = {}

    def follow(self) -> None:
        """Does what the first says until that is the end."""
        with told_of_lost():
            while (word := told())[0] != "end":
                getattr(self, word[0])(*word[1:])

    def rows(self, place: int) -> torch.Tensor:
        """Its share of a column, in float64; what is mapped stays in its file."""
        assert self.bound is not None
        if place not in self.parts:
            table, name = columns(self.bound)[place]
            array = self.bound.tables[table].columns[name]
            own = share(len(array), distributed.get_rank())
            if mapped(array):
                whole = elements.column(self.bound, table, name)
            else:
                whole = torch.from_numpy(np.array(array[own])).double()
            if mapped(array):
                self.parts[place] = whole[own]
            else:
                self.parts[place] = whole
        return self.parts[place]

    def products(self, place: int, weights: np.ndarray) -> None:
        distributed.send(self.rows(place) @ torch.from_numpy(weights), 0, group=ranks.talking())

    def sums(self, place: int) -> None:
        rows = self.rows(place)
        weights = torch.empty(len(rows), dtype=torch.float64)
        distributed.recv(weights, 0, group=ranks.talking())
        distributed.reduce(weights @ rows, 0, group=ranks.talking())

    def run(self, job: Any) -> None:
        """Takes part in a run; its rows are those of what follows."""
        self.bound, self.parts = self.work(job), {}


def tell(*word: Any) -> None:
    """The first rank's word to all others."""
    distributed.broadcast_object_list([word], src=0, group=ranks.talking())


def told() -> tuple[Any, ...]:
    word: list[Any] = [None]
    distributed.broadcast_object_list(word, src=0, group=ranks.talking())
    return word[0]
