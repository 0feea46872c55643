"""Facts about the leaves of an expression, from the declarations and, if bound, the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import Any

import numpy as np

from fccomodel.core import ir, progressions
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn
from fccomodel.library import distributions, ranges, sets
from fccomodel.library.amounts import SOME, Amount, amount
from fccomodel.library.atoms import Interval
from fccomodel.structure.facts import Standing

REALS = Interval(-inf, inf, True, True)


def interval(lo: float = -inf, hi: float = inf, lo_open: bool = False, hi_open: bool = False) -> Interval:
    """The interval from ``lo`` to ``hi``; infinite ends are marked open."""
    return Interval(lo, hi, lo_open or lo == -inf, hi_open or hi == inf)


def opened(u: Interval) -> Interval:
    """The interval with its infinite ends marked open."""
    return interval(*u)


@dataclass(frozen=True, eq=False, kw_only=True)
class Leaf:
    """A leaf's range (``interval``), a bound of its Euclidean norm (``size``), and their standing.

    ``random`` says that it is a draw without bounds.
    """

    interval: Interval = REALS
    size: Amount = SOME
    standing: Standing = Standing.PROVED
    random: bool = False


@dataclass(eq=False, kw_only=True)
class Declarations:
    """A problem's declarations, with data or without.

    holes   interval of each hole's values, by name
    values  values of params that are known without a bound problem
    within  intervals in which some expressions are assumed to lie
    free    whether variables and holes range over all reals, for facts that must hold everywhere
    stats   ranges and norms of bound arrays, each computed once
    """

    problem: ir.Problem | None = None
    bound: Bound | None = None
    holes: Mapping[str, Interval] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    within: Mapping[ir.Expr, Interval] = field(default_factory=dict)
    free: bool = False
    stats: dict[int, tuple[np.ndarray, Leaf]] = field(default_factory=dict)

    # ---------------------------------------------------------------------------------------- sizes
    def dim(self, dim: ir.Dim) -> float:
        """The number that a dim stands for, or inf if it is not known."""
        if isinstance(dim, int):
            return dim
        if self.bound is not None and dim in self.bound.dims:
            return self.bound.dims[dim]
        if self.problem is not None and dim in self.problem.sizes:
            return self.problem.sizes[dim]
        if self.problem is not None and dim in self.problem.sets:
            return self.count(self.problem.sets[dim])
        if self.bound is not None and dim in self.bound.tables:
            return self.bound.tables[dim].n
        return inf

    def entries(self, shape: ir.Shape) -> float:
        """The number of entries of an array, or inf if it is not known."""
        return float(prod(self.dim(n) for n in shape))

    def count(self, domain: ir.Set) -> float:
        """An upper bound of the number of elements of a set, or inf if none is known."""
        if isinstance(domain, ir.RowSet):
            if self.bound is not None and domain.table in self.bound.tables:
                return self.bound.tables[domain.table].n
            return inf
        if isinstance(domain, ir.LabelSet):
            if domain.labels is not None:
                return len(domain.labels)
            if self.bound is not None and domain.name in self.bound.labels:
                return len(self.bound.labels[domain.name])
            return inf
        if isinstance(domain, ir.ValueSet):
            if domain.items is not None:
                return len(domain.items)
            low, high = self.number(domain.low), self.number(domain.high)
            step = 1.0 if domain.step is None else self.number(domain.step)
            if low is not None and high is not None and step:
                return progressions.count(low, high, step)
        return inf

    def number(self, expr: ir.Expr | None) -> float | None:
        """The value of literals, sizes, scalar params with a value, and their sums and products, or None."""
        match expr:
            case ir.Const(value=value):
                return value
            case ir.Size(dim=dim):
                n = self.dim(dim)
                if n < inf:
                    return n
                return None
            case ir.Param(name=name):
                value = self.value(name)
                if value is not None and np.ndim(value) == 0:
                    return float(value)
                return None
            case ir.Apply(op="neg", args=(arg,)):
                inner = self.number(arg)
                if inner is None:
                    return None
                return -inner
            case ir.Apply(op="add" | "sub" | "mul" as op, args=(left, right)):
                first, second = self.number(left), self.number(right)
                if first is None or second is None:
                    return None
                return {"add": first + second, "sub": first - second, "mul": first * second}[op]
        return None

    # --------------------------------------------------------------------------------------- leaves
    def value(self, name: str) -> Any:
        """The value of a param or an array, or None if it is not known."""
        if self.bound is not None:
            if name in self.bound.params:
                return self.bound.params[name]
            if name in self.bound.arrays:
                return self.bound.arrays[name]
        return self.values.get(name)

    def param(self, node: ir.Param) -> Leaf:
        """A declared param or array: its value if it is bound, otherwise its declared bounds."""
        value = self.value(node.name)
        if isinstance(value, Interval):
            return Leaf(interval=value, size=amount(value.mag) if value.mag < inf else SOME)
        if isinstance(value, ir.Parameter):
            return self._declared(value)
        if value is not None:
            return self.measured(np.asarray(value, dtype=float), rows=False)
        if self.problem is not None:
            if node.name in self.problem.params:
                return self._declared(self.problem.params[node.name])
            if node.name in self.problem.arrays:
                return self._typed(self.problem.arrays[node.name].type, node.shape)
        return Leaf()

    def _declared(self, p: ir.Parameter) -> Leaf:
        return Leaf(interval=opened(ranges.declared(p)))

    def column(self, node: ir.Column) -> Leaf:
        """A column, for any row of its table, or a draw."""
        domain = node.binder.domain
        if not isinstance(domain, ir.RowSet) or node.name is None:
            return self.element(node.binder)
        declared = Leaf()
        if self.problem is not None and domain.table in self.problem.tables:
            columns = self.problem.tables[domain.table].columns
            if node.name in columns:
                declared = self._typed(columns[node.name], node.shape)
        if self.bound is None or domain.table not in self.bound.tables:
            return declared
        values = self.bound.tables[domain.table].columns.get(node.name)
        if values is None or drawn(values):
            return declared
        data = self.measured(values, rows=True)
        if data.interval.inside(declared.interval) and not declared.interval.inside(data.interval):
            return data
        if node.shape:
            return replace(data, interval=declared.interval)
        return declared

    def _typed(self, kind: ir.ColumnType, shape: ir.Shape) -> Leaf:
        """The range that a declared type gives."""
        if kind.domain is None:
            return Leaf(interval=opened(ranges.declared(kind)))
        return Leaf(interval=self.elements(kind.domain))

    def elements(self, domain: ir.Set) -> Interval:
        """The range of the elements of a value set, or of the positions of a label set."""
        if isinstance(domain, ir.LabelSet):
            n = self.count(domain)
            return interval(0.0, n - 1 if n < inf else inf)
        if isinstance(domain, ir.ValueSet):
            if domain.items is not None:
                numbers = [self.number(item) for item in domain.items]
                finite = [n for n in numbers if n is not None]
                if finite and len(finite) == len(numbers):
                    return interval(min(finite), max(finite))
                return REALS
            low, high = self.number(domain.low), self.number(domain.high)
            return interval(-inf if low is None else low, inf if high is None else high)
        return REALS

    def element(self, binder: ir.Binder) -> Leaf:
        """The binder's own value: an element of a set, or a draw of a distribution."""
        domain = binder.domain
        if isinstance(domain, ir.Distribution):
            return self._draw(domain)
        if isinstance(domain, ir.VectorSet):
            return self.vector(domain, domain.shape)
        return Leaf(interval=self.elements(domain))

    def _draw(self, domain: ir.Distribution) -> Leaf:
        known = distributions.get(domain.family)
        if known is None:
            return Leaf(random=True, standing=Standing.ASSUMED)
        ends = [self._end(argument) for argument in domain.args]
        return Leaf(interval=opened(known.range(*ends)), random=not known.bounded)

    def _end(self, expr: ir.Expr) -> Interval:
        """The range of an argument of a set or a distribution, made of numbers, params and arrays."""
        value = self.number(expr)
        if value is not None:
            return Interval.point(value)
        return ranges.Ranges(self._fixed)(expr)

    def _fixed(self, node: ir.Expr) -> Interval:
        if isinstance(node, ir.Param):
            return self.param(node).interval
        return REALS

    # ------------------------------------------------------------------------------------ variables
    def variable(self, name: str) -> Leaf:
        """The range and norm of a variable in its simple sets; the norm is NONE if they are unbounded."""
        if name in self.holes:
            if self.free:
                where = REALS
            else:
                where = opened(self.holes[name])
            return Leaf(interval=where, size=amount(where.mag))
        if self.problem is None:
            declared = None
        else:
            declared = self.problem.variables.get(name)
        result = Leaf(size=amount(inf))
        if declared is None or self.free:
            return result
        for domain in declared.sets:
            leaf = self.vector(domain, declared.shape)
            size = min(leaf.size, result.size, key=lambda a: (not a.finite, not a.known, a.value))
            result = Leaf(
                interval=leaf.interval.meet(result.interval),
                size=size,
                standing=max(result.standing, leaf.standing),
            )
        return result

    def vector(self, domain: ir.VectorSet, shape: ir.Shape) -> Leaf:
        """The range of the entries, and the norm, of the vectors in a simple set."""
        simple, ends = sets.get(domain.family), [self._end(a) for a in domain.args]
        if simple is None:
            return Leaf(size=amount(inf))
        if domain.centre is not None:
            simple = sets.translated(simple, self._end(domain.centre))
        length = simple.longest(tuple(self.dim(n) for n in shape), *ends)
        if length < inf:
            size = amount(length)
        elif simple.bounded(*ends):
            size = SOME
        else:
            size = amount(inf)
        return Leaf(interval=opened(simple.entries(*ends)), size=size)

    # ----------------------------------------------------------------------------------------- data
    def __getstate__(self) -> dict[str, Any]:
        """The state without the cache that is keyed by object identity."""
        return vars(self) | {"stats": {}}

    def measured(self, values: np.ndarray, *, rows: bool) -> Leaf:
        """The range of all entries of an array and its norm: with ``rows`` the largest norm of a row."""
        if id(values) not in self.stats:
            if values.size == 0:
                return Leaf(standing=Standing.BOUNDED)
            ends = interval(float(values.min()), float(values.max()))
            flat = values.reshape(len(values) if rows else 1, -1)
            squares_of_norms = np.einsum("ij,ij->i", flat, flat, dtype=float)
            top = float(np.sqrt(squares_of_norms.max()))
            leaf = Leaf(interval=ends, size=amount(top), standing=Standing.BOUNDED)
            self.stats[id(values)] = values, leaf
        return self.stats[id(values)][1]
