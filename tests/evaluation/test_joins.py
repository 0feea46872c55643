"""Counts of triples under conditions on pairs come from joins."""

from __future__ import annotations

import numpy as np

import fccomodel
from fccomodel.core import ir
from fccomodel.evaluation import interpret
from fccomodel.evaluation.interpret.spaces import ListingBlock

ROWS = 40
MODEL = """set G;
data D : table(t: real, g: G);
var w in box(-1, 1);
minimize mean[i in D, j in D, k in D | i.t * j.t <= 0.4 and k.g == j.g and j.t * k.t <= 0.3 and k != j]
    (w - i.t * k.t)^2;
"""


def test_counts_of_a_chain_of_conditions(monkeypatch):
    """The third row is counted once for each second row: tests are of pairs, not of triples."""
    rng = np.random.default_rng(0)
    t, g = rng.normal(size=ROWS), np.arange(ROWS) % 4
    data = {"D": {"t": t, "g": np.array(["a", "b", "c", "d"])[g]}}
    bound = fccomodel.compile(MODEL).bind(data=data).bound
    (node,) = bound.problem.expressions(ir.Reduce)
    tested, plain = [], interpret.spaces.Listing._tested

    def counted(self, block: ListingBlock):
        tested.append(len(block.cell))
        return plain(self, block)

    monkeypatch.setattr(interpret.spaces.Listing, "_tested", counted)
    first = np.outer(t, t) <= 0.4
    second = (g[:, None] == g) & (np.outer(t, t) <= 0.3) & ~np.eye(ROWS, dtype=bool)
    assert float(interpret.combinations(bound, node, {})) == (first.sum(0) * second.sum(1)).sum()
    assert sum(tested) <= 2 * ROWS**2
