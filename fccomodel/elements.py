"""Sets made concrete: the elements of each over the bound data, their names, and where they stand in arrays.

What decides a set (its bounds, its rows' condition) is an expression, which ``pointwise`` evaluates at elements of sets in turn.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch

from fccomodel import diagnostics, ir
from fccomodel.bound import Bound
from fccomodel.named import DTYPE


def fail(bound: Bound, code: str, message: str, *, span: ir.Span = ir.NOWHERE, reason: str = "", fix: str = "") -> NoReturn:
    """Raise one error about a bound problem."""
    error = diagnostics.error(code, message, span=None if span is ir.NOWHERE else span, reason=reason, fix=fix)
    raise diagnostics.FccoError([error], bound.problem.source)


# --------------------------------------------------------------------------------------------------------- memory of a bound
_memories: weakref.WeakKeyDictionary[Bound, dict[Any, Any]] = weakref.WeakKeyDictionary()


def remember(bound: Bound, key: Any, make: Callable[[], Any]) -> Any:
    """What ``make()`` gave the first time, for one bound problem. Keys may hold records of the problem, which it keeps alive."""
    memory = _memories.setdefault(bound, {})
    if key not in memory:
        memory[key] = make()
    return memory[key]


def column(bound: Bound, table: str, name: str) -> torch.Tensor:
    """A column as float64, (n, *shape)."""
    return remember(bound, ("column", table, name), lambda: as_tensor(bound.tables[table].columns[name]))


def as_tensor(array: Any) -> torch.Tensor:
    """An array as float64."""
    array = np.asarray(array)
    if not array.flags.writeable:  # torch warns of arrays that it could write to by accident
        array = array.copy()
    return torch.as_tensor(array).to(DTYPE)


# --------------------------------------------------------------------------------------------------------------------- sets
def ids(bound: Bound, domain: ir.Set) -> np.ndarray:
    """The elements of a set, int64: row numbers for rows (those where ``where`` holds), positions 0 .. n-1 otherwise.

    Raises F0703 for a distribution or a set of vectors, which have no finite list of elements.
    """
    return remember(bound, ("ids", domain), lambda: _ids(bound, domain))


def _ids(bound: Bound, domain: ir.Set) -> np.ndarray:
    if isinstance(domain, ir.RowSet):
        everything = np.arange(bound.tables[domain.table].n, dtype=np.int64)
        if domain.where is None or domain.row is None:
            return everything
        from fccomodel.pointwise import accepted

        return everything[accepted(bound, domain.row, (domain.where,), everything)]
    if isinstance(domain, ir.LabelSet):
        return np.arange(len(labels(bound, domain)), dtype=np.int64)
    if isinstance(domain, ir.ValueSet):
        return np.arange(len(values(bound, domain)), dtype=np.int64)
    fail(
        bound,
        "F0703",
        f"`{domain.name}` has no list of elements",
        reason="Only tables, sets of values and sets of labels are finite.",
    )


def labels(bound: Bound, domain: ir.LabelSet) -> tuple[str, ...]:
    """The labels of a set, in position order."""
    return tuple(bound.labels[domain.name]) if domain.labels is None else domain.labels


def values(bound: Bound, domain: ir.Set) -> np.ndarray:
    """The numbers of a value set, float64; for other sets, the ids as numbers."""
    if not isinstance(domain, ir.ValueSet):
        return ids(bound, domain).astype(np.float64)
    return remember(bound, ("values", domain), lambda: _values(bound, domain))


def _values(bound: Bound, domain: ir.ValueSet) -> np.ndarray:
    from fccomodel.pointwise import Pointwise

    def number(expr: ir.Expr) -> float:
        return float(Pointwise(bound).value(expr, {}).data)

    if domain.items is not None:
        return np.array([number(item) for item in domain.items], dtype=np.float64)
    assert domain.low is not None and domain.high is not None
    low, high = number(domain.low), number(domain.high)
    step = 1.0 if domain.step is None else number(domain.step)
    if step == 0:
        fail(bound, "F0703", f"the step of `{domain.name}` is 0", fix="Give a step that leads from the first number to the last.")
    count = max(0, math.floor((high - low) / step + 1e-9) + 1)
    return np.round(low + step * np.arange(count), 12 - math.floor(math.log10(abs(step)))) + 0.0  # 0.1 * 3 is 0.3, and no -0


def names(bound: Bound, domain: ir.Set) -> list[str]:
    """The elements as shown to people: numbers without needless decimals, labels, row numbers."""
    if isinstance(domain, ir.LabelSet):
        return list(labels(bound, domain))
    return [f"{value:.12g}" for value in values(bound, domain)]


def size(bound: Bound, dim: ir.Dim) -> int:
    """The number that a size stands for: itself, a bound ``dim``, or the number of a set's elements."""
    if isinstance(dim, int):
        return dim
    if dim.isdigit():
        return int(dim)
    if " + " in dim:  # of joined vectors
        return sum(size(bound, part) for part in dim.split(" + "))
    if dim in bound.dims:
        return int(bound.dims[dim])
    if dim in bound.problem.sets:
        return len(ids(bound, bound.problem.sets[dim]))
    if dim in bound.tables:
        return bound.tables[dim].n
    if dim.startswith("params("):
        return sum(p.numel() for p in bound.nets[dim[len("params(") : -1]].parameters())
    fail(bound, "F0703", f"the size `{dim}` is not known", fix="Bind data that decides it.")


def shape(bound: Bound, dims: ir.Shape) -> tuple[int, ...]:
    """A shape in numbers."""
    return tuple(size(bound, dim) for dim in dims)


def extent(bound: Bound, domain: ir.Set) -> int:
    """One more than the largest id that elements can have: the rows of the whole table, or the number of elements."""
    return bound.tables[domain.table].n if isinstance(domain, ir.RowSet) else len(ids(bound, domain))


def positions(bound: Bound, domain: ir.Set, dim: ir.Dim) -> np.ndarray | None:
    """Where each id of ``domain`` stands in an array's dimension ``dim``; None where the ids are the positions themselves."""
    target = bound.problem.sets.get(dim) if isinstance(dim, str) else None
    return matching(bound, domain, domain if target is None else target, place=True)


def row_positions(bound: Bound, column: ir.Column, dim: ir.Dim) -> np.ndarray:
    """Where each row's label (or number of a set) stands in an array's dimension ``dim``."""
    assert isinstance(column.binder.domain, ir.RowSet) and column.name is not None
    table = column.binder.domain.table
    domain = bound.problem.tables[table].columns[column.name].domain
    assert isinstance(domain, ir.LabelSet | ir.ValueSet)

    def find() -> np.ndarray:
        own = bound.tables[table].columns[column.name or ""]
        if isinstance(domain, ir.ValueSet):
            own = np.abs(np.asarray(own, dtype=np.float64)[:, None] - values(bound, domain)[None, :]).argmin(1)
        place = positions(bound, domain, dim)
        return np.asarray(own if place is None else place[own], dtype=np.int64)

    return remember(bound, ("row positions", table, column.name, dim), find)


def matching(bound: Bound, domain: ir.Set, target: ir.Set, *, place: bool = False) -> np.ndarray | None:
    """For each id of ``domain`` the id (with ``place``: the position) of the same element in ``target``; None: the same ones.

    It is -1 where ``target`` has no such element.
    """
    if isinstance(domain, ir.RowSet) and not place:
        return None
    return remember(bound, ("positions", domain, target), lambda: _positions(bound, domain, target))


def _positions(bound: Bound, domain: ir.Set, target: ir.Set) -> np.ndarray | None:
    if isinstance(domain, ir.RowSet):
        members, place = ids(bound, target), np.full(extent(bound, domain), -1, dtype=np.int64)
        place[members] = np.arange(len(members))
        return None if len(members) == len(place) else place
    if target is domain:
        return None
    if isinstance(domain, ir.LabelSet) and isinstance(target, ir.LabelSet):
        known = {label: k for k, label in enumerate(labels(bound, target))}
        return np.array([known.get(label, -1) for label in labels(bound, domain)], dtype=np.int64)
    own, other = values(bound, domain), values(bound, target)
    if len(own) == len(other) and np.allclose(own, other):
        return None
    close = np.isclose(own[:, None], other[None, :])
    return np.where(close.any(1), close.argmax(1), -1).astype(np.int64)


def name_of(bound: Bound, domain: ir.Set, element: int) -> str:
    """One element (by its id) as shown to people."""
    return str(element) if isinstance(domain, ir.RowSet) else names(bound, domain)[element]


def labels_of(bound: Bound, node: ir.Expr) -> ir.LabelSet | None:
    """The set that a label-valued expression takes its labels from."""
    while isinstance(node, ir.Item):
        node = node.base
    domain: ir.Set | None = None
    if isinstance(node, ir.Column) and isinstance(node.binder.domain, ir.RowSet) and node.name not in (None, ir.FAMILY):
        domain = bound.problem.tables[node.binder.domain.table].columns[str(node.name)].domain
    elif isinstance(node, ir.Element):
        domain = node.binder.domain
    elif isinstance(node, ir.Param) and node.name in bound.problem.arrays:
        domain = bound.problem.arrays[node.name].type.domain
    return domain if isinstance(domain, ir.LabelSet) else None
