"""First values of centres: rows of the data that lie far apart.

A model such as ``E[z ~ D] min[k in K] sumsq(z.x - c[k])`` has many local optima. From centres that
start near each other most stay empty. k-means++ (Arthur and Vassilvitskii, 2007) draws each centre
among the rows, with probability proportional to the squared distance to the centres before it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements

SAMPLE_ROWS = 20_000  # rows among which centres are drawn


def apart(bound: Bound, seed: int | str) -> dict[str, np.ndarray]:
    """By name, first values of the variables that are centres of rows, drawn by k-means++."""
    groups: dict[str, np.ndarray] = {}
    for name, column in _centred(bound.problem):
        count, *width = elements.shape(bound, bound.problem.variables[name].shape)
        rows = _sample(bound, column, f"centres {name} {seed}")
        if name not in groups and list(rows.shape[1:]) == width and len(rows) >= count:
            rng = np.random.default_rng(_number(f"{name} {seed}"))
            groups[name] = rows[_far_apart(rows.reshape(len(rows), -1), count, rng)]
    return groups


def _centred(problem: ir.Problem) -> Iterator[tuple[str, ir.Column]]:
    """Each variable c, free and without a start, with a column x such that a term has ``z.x - c[k]``
    under a reduction over k."""
    for reduced in problem.expressions():
        if not isinstance(reduced, ir.Reduce) or len(reduced.binders) != 1:
            continue
        for node in ir.walk(reduced.body):
            if isinstance(node, ir.Apply) and node.op == "sub":
                yield from _pair(problem, node.args, reduced.binders[0])


def _pair(
    problem: ir.Problem, args: tuple[ir.Expr, ...], binder: ir.Binder
) -> Iterator[tuple[str, ir.Column]]:
    """The variable c and the column x of a difference between ``c[k]``, k the binder, and ``z.x``."""
    for item, column in (args, args[::-1]):
        if not isinstance(item, ir.Item) or not isinstance(column, ir.Column):
            continue
        of_binder = [isinstance(i, ir.Element) and i.binder is binder for i in item.indices]
        if of_binder != [True] or not isinstance(item.base, ir.Var) or column.name is None:
            continue
        variable = problem.variables.get(item.base.name)
        if variable is not None and not variable.sets and variable.start is None:
            yield variable.name, column


def _sample(bound: Bound, column: ir.Column, word: str) -> np.ndarray:
    """Rows of a column, all of them or a random sample."""
    assert isinstance(column.binder.domain, ir.RowSet)
    table = bound.tables[column.binder.domain.table]
    values = table.columns[str(column.name)]
    if table.n <= SAMPLE_ROWS:
        return np.asarray(values[:], dtype=float)
    chosen = np.random.default_rng(_number(word)).choice(table.n, SAMPLE_ROWS, replace=False)
    return np.asarray(values[np.sort(chosen)], dtype=float)


def _number(word: str) -> int:
    """A seed for a word."""
    return zlib.crc32(word.encode())


def _far_apart(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """The numbers of so many rows, by greedy k-means++.

    Of a few rows drawn for each centre, the one that lowers the sum of squared distances most is kept.
    """
    chosen = [int(rng.integers(len(rows)))]
    nearest = _squared_distances(rows, chosen)[0]
    trials = 2 + int(math.log(count))
    while len(chosen) < count:
        total = nearest.sum()
        shares = nearest / total if total > 0 else None
        candidates = rng.choice(len(rows), trials, p=shares)
        left = np.minimum(nearest, _squared_distances(rows, candidates))
        best = int(left.sum(axis=1).argmin())
        chosen.append(int(candidates[best]))
        nearest = left[best]
    return np.array(chosen)


def _squared_distances(rows: np.ndarray, centres: list[int] | np.ndarray) -> np.ndarray:
    """Squared distances (centres, rows) between some rows and all rows."""
    return np.stack([np.square(rows - rows[number]).sum(axis=1) for number in centres])
