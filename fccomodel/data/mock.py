"""Random data of the declared types, so that a model can run before there are data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil, floor, inf, prod
from typing import Any

import numpy as np

from fccomodel.core import ir, progressions
from fccomodel.data.bind.numbers import NumberValues

#: The size of a dim.
SIZE = 5
#: The labels of a set whose labels come with the data.
LABELS = ("a", "b", "c")
#: The module of a net.
MODULE = "mlp(16)"


@dataclass(frozen=True, kw_only=True)
class Mock:
    """The arguments of ``bind``: tables and arrays, params, nets, samplers; ``spec`` has sizes and labels."""

    data: dict[str, Any] = field(default_factory=dict)
    params: dict[str, float] = field(default_factory=dict)
    nets: dict[str, str] = field(default_factory=dict)
    samplers: dict[str, Callable[..., np.ndarray]] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)


def mock(
    problem: ir.Problem,
    *,
    rows: int = 200,
    seed: int = 0,
    positive: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> Mock:
    """Random data for every name of a problem.

    Numbers are from a normal distribution, or from (0.1, 1) if ``positive``, and keep the bounds of
    their types. A matrix that is declared positive semidefinite is one. Each label and each
    listed value occurs at least once if there are rows enough. Params without a default get a number
    inside their bounds. ``sizes`` are those of some dims; the others have SIZE.
    """
    dims = {**dict.fromkeys(problem.dims, SIZE), **(sizes or {})}
    params = {name: _inside(p) for name, p in problem.params.items() if p.default is None}
    draws = _Draws(problem, rows, np.random.default_rng(seed), positive, params, dims)
    labels = {
        name: list(LABELS)
        for name, s in problem.sets.items()
        if isinstance(s, ir.LabelSet) and s.labels is None
    }
    tables = {name: draws.table(table) for name, table in problem.tables.items()}
    arrays = {name: draws.column(array.type) for name, array in problem.arrays.items()}
    return Mock(
        data={**tables, **arrays},
        params=params,
        nets=dict.fromkeys(problem.nets, MODULE),
        samplers={family: draws.sampler(shape) for family, shape in _samplers(problem).items()},
        spec={"sets": labels, "dims": dims},
    )


def _inside(parameter: ir.Parameter) -> float:
    """A number between a param's bounds."""
    low, high = parameter.lower, parameter.upper
    if low > -inf and high < inf:
        return (low + high) / 2
    if low > -inf:
        return low + 1
    if high < inf:
        return high - 1
    return 1.0


def _samplers(problem: ir.Problem) -> dict[str, ir.Shape]:
    """The distributions that need a sampler from Python, each with the shape of a draw."""
    binders = (b for node in problem.expressions(ir.Reduce) for b in node.binders)
    distributions = (b.domain for b in binders if isinstance(b.domain, ir.Distribution))
    return {domain.family: domain.shape for domain in distributions if domain.sampler}


class _Draws:
    """Random columns, tables and samplers for a problem."""

    def __init__(
        self,
        problem: ir.Problem,
        rows: int,
        rng: np.random.Generator,
        positive: bool,
        params: Mapping[str, float],
        dims: Mapping[str, int],
    ):
        self.problem = problem
        self.rows = rows
        self.rng = rng
        self.positive = positive
        self.dims = dims
        self.values = NumberValues(problem, params, self.size)

    def size(self, dim: ir.Dim) -> int:
        """The length of an axis: a number, or the size of a dim, a table or a set."""
        if isinstance(dim, int):
            return dim
        if dim in self.problem.tables:
            return self.rows
        if dim in self.problem.sets:
            return len(self.members(self.problem.sets[dim]))
        return self.dims.get(dim, SIZE)

    def members(self, domain: ir.Set) -> list[Any]:
        """The members of a set of labels or of numbers."""
        if isinstance(domain, ir.LabelSet):
            return list(domain.labels or LABELS)
        if isinstance(domain, ir.RowSet):
            return list(range(self.rows))
        assert isinstance(domain, ir.ValueSet)
        if domain.items is not None:
            return [self.values.scalar(item) for item in domain.items]
        assert domain.low is not None and domain.high is not None
        low, high = self.values.scalar(domain.low), self.values.scalar(domain.high)
        step = 1.0 if domain.step is None else self.values.scalar(domain.step)
        return progressions.numbers(low, high, step).tolist()

    def table(self, table: ir.Table) -> dict[str, Any]:
        """Columns by name; for a family, such columns by member."""
        if table.family is None:
            return self._columns(table)
        keys = [key if isinstance(key, str) else f"{key:g}" for key in self.members(table.family.domain)]
        return {key: self._columns(table) for key in keys}

    def _columns(self, table: ir.Table) -> dict[str, np.ndarray]:
        """The columns of a table, or of one member of a family."""
        return {name: self.column(kind, (self.rows,)) for name, kind in table.columns.items()}

    def column(self, kind: ir.ColumnType, rows: tuple[int, ...] = ()) -> np.ndarray:
        """A column of numbers, whole numbers, or members of the column's set."""
        shape = (*rows, *map(self.size, kind.shape))
        if kind.domain is not None:
            members = self.members(kind.domain)
            return self.rng.permutation(np.resize(np.array(members), prod(shape))).reshape(shape)
        if kind.definite:
            factor = self.rng.normal(size=shape)
            return factor @ factor.T / len(factor)
        if kind.kind == "int":
            return self._within(kind, self.rng.integers(1, 10, shape))
        if self.positive:
            return self._within(kind, self.rng.uniform(0.1, 1.0, shape))
        return self._within(kind, self.rng.normal(size=shape))

    def _within(self, kind: ir.ColumnType, numbers: np.ndarray) -> np.ndarray:
        """Numbers inside the bounds of a type: reflected at one, drawn anew between two."""
        low, high = kind.lower, kind.upper
        if not kind.bounded:
            return numbers
        if kind.kind == "int":
            first = ceil(low) + (kind.strict_lower and low == ceil(low)) if low > -inf else floor(high) - 9
            last = floor(high) - (kind.strict_upper and high == floor(high)) if high < inf else first + 9
            return self.rng.integers(first, last + 1, numbers.shape)
        if low > -inf and high < inf:
            return self.rng.uniform(low, high, numbers.shape)
        if low > -inf:
            return low + np.abs(numbers - low)
        return high - np.abs(high - numbers)

    def sampler(self, shape: ir.Shape) -> Callable[..., np.ndarray]:
        """A sampler for a distribution that the model only names."""
        size = tuple(map(self.size, shape))
        if self.positive:
            return lambda rng, n, *_: rng.uniform(0.1, 1.0, (n, *size))
        return lambda rng, n, *_: rng.normal(size=(n, *size))
