"""What comes after the steps of several ranks: the report is that of one process, and products of rows
are made by all."""

from __future__ import annotations

import queue
import threading

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel.execution import ranks
from fccomodel.execution.run import company
from fccomodel.report import report

MODEL = (
    "dim d; data D : table(x: real[d], y: {-1, 1}); var w[d]; "
    "minimize mean[p in D | p.y == 1] log(1 + E[q ~ D | q.y == -1] exp(dot(w, q.x) - dot(w, p.x))); "
    "subject to c: E[z ~ D] log1pexp(-z.y * dot(w, z.x)) <= 0.6;"
)


#: parts of a report at the end of a search, which is flat there
SEARCHED = ("multiplier", "gap", "complementarity", "qualification")


class Wire:
    """What ``torch.distributed`` does for ranks, here for threads; ``reduced`` counts sums."""

    def __init__(self, count: int):
        self.of = threading.local()
        self.between = {(a, b): queue.Queue() for a in range(count) for b in range(count)}
        self.count, self.reduced = count, 0

    def get_rank(self) -> int:
        return self.of.rank

    def send(self, x, dst, group=None):
        self.between[self.get_rank(), dst].put(x.clone() if isinstance(x, torch.Tensor) else x)

    def recv(self, x, src, group=None):
        x.copy_(self.between[src, self.get_rank()].get(timeout=30))

    def reduce(self, x, dst, group=None):
        if self.get_rank() != dst:
            return self.send(x, dst)
        self.reduced += 1
        for rank in range(1, self.count):
            x += self.between[rank, dst].get(timeout=30)

    def broadcast_object_list(self, held, src, group=None):
        for rank in range(1, self.count) if self.get_rank() == src else ():
            self.send(held[0], rank)
        if self.get_rank() != src:
            held[0] = self.between[src, self.get_rank()].get(timeout=30)


def test_report_over_ranks(monkeypatch, count=3):
    """Numbers to 1e-12, those that a search ends at to 1e-9; rows do not divide evenly, and gradients
    are summed over ranks."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(101, 3))
    rows = {"D": {"x": x, "y": np.where(x[:, 0] + rng.normal(size=101) > 0, 1, -1)}}
    bound = fccomodel.compile(MODEL).bind(data=rows).bound
    point = {"w": np.array([0.7, 0.1, -0.2])}
    alone = report(bound, point)
    wire = Wire(count)
    wire.of.rank = 0
    monkeypatch.setattr(company, "distributed", wire)
    monkeypatch.setattr(company, "LEAST", 0)
    for name, value in {"count": count, "talking": None, "free": True}.items():
        monkeypatch.setattr(ranks, name, lambda value=value: value)

    def follow(rank):
        wire.of.rank = rank
        company.Follower(bound).follow()

    threads = [threading.Thread(target=follow, args=(rank,)) for rank in range(1, count)]
    for thread in threads:
        thread.start()
    with company.helped(bound):
        shared = report(bound, point)
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert wire.reduced > 0
    one, other = (numbers(found.to_json()) for found in (alone, shared))
    assert one.keys() == other.keys()
    for place, value in one.items():
        near = 1e-9 if any(word in place for word in SEARCHED) else 1e-12
        assert other[place] == pytest.approx(value, rel=near, abs=near), place


def numbers(record, place=""):
    """All numbers of a record, by where they are."""
    if isinstance(record, dict | list | tuple):
        parts = record.items() if isinstance(record, dict) else enumerate(record)
        return {
            k: v for key, part in parts if key != "wall_s" for k, v in numbers(part, f"{place}.{key}").items()
        }
    return {place: float(record)} if isinstance(record, int | float) else {}
