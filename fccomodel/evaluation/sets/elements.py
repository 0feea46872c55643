"""The elements of sets over the bound data, their names, and their positions in arrays.

``Pointwise`` evaluates expressions without reductions at given elements of their binders. It is in this
module because sets and such expressions depend on each other: the bounds of a set and the condition on
its rows are expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fccomodel.core import ir, progressions
from fccomodel.core.diagnostics import refuse
from fccomodel.core.lazy import torch
from fccomodel.data.bound import Bound, mapped
from fccomodel.data.drawn import drawn
from fccomodel.evaluation import errors
from fccomodel.evaluation.memory import common, deciding, remember
from fccomodel.evaluation.sets import indices
from fccomodel.evaluation.sets.axes import Env, Named, align, apply_atom, new_axis, spread, union
from fccomodel.library import sets


# ------------------------------------------------------------------------------------------ columns
def column(bound: Bound, table: str, name: str) -> torch.Tensor:
    """A column as float64 with shape (n, *shape); one whose rows are in a file, or drawn, stays there."""
    return common(bound, ("column", table, name), (), lambda: _column(bound.tables[table].columns[name]))


def _column(array: np.ndarray) -> torch.Tensor:
    if not mapped(array):
        return as_tensor(array)
    from fccomodel.evaluation.sets.mapped import Mapped

    rows: Any = array
    if not drawn(array):
        rows = torch.from_numpy(array)
    return Mapped(rows, "cpu", torch.float64)


def as_tensor(array: Any) -> torch.Tensor:
    """An array as float64."""
    array = np.asarray(array)
    if not array.flags.writeable:  # torch warns of arrays that it could write to by accident
        array = array.copy()
    return torch.as_tensor(array).to(torch.float64)


# --------------------------------------------------------------------------------------------- sets
def ids(bound: Bound, domain: ir.Set) -> np.ndarray:
    """The ids of the elements of a set, int64.

    They are row numbers for rows (those where ``where`` holds), and positions 0 .. n-1 otherwise.
    F0703 is raised for a distribution or a set of vectors, which have no finite list of elements.
    """
    return common(bound, ("ids", domain), deciding(domain), lambda: _ids(bound, domain))


def _ids(bound: Bound, domain: ir.Set) -> np.ndarray:
    if isinstance(domain, ir.RowSet):
        everyone = everything(bound, domain.table)
        if domain.where is None or domain.row is None:
            return everyone
        known = indices.prepared(bound, domain, indices.decided(domain))
        if known is None:
            return everyone[accepted(bound, domain.row, (domain.where,), everyone)]
        return known.rows
    if isinstance(domain, ir.LabelSet):
        return np.arange(len(labels(bound, domain)), dtype=np.int64)
    if isinstance(domain, ir.ValueSet):
        return np.arange(len(values(bound, domain)), dtype=np.int64)
    refuse(errors.no_elements(domain), source=bound.problem.source)


def everything(bound: Bound, table: str) -> np.ndarray:
    """All row numbers of a table, always the same array."""
    return common(bound, ("everything", table), (), lambda: _everything(bound, table))


def _everything(bound: Bound, table: str) -> np.ndarray:
    known = indices.prepared(bound, ir.RowSet(name=table, table=table), "")
    if known is None:
        return np.arange(bound.tables[table].n, dtype=np.int64)
    return known.rows


def labels(bound: Bound, domain: ir.LabelSet) -> tuple[str, ...]:
    """The labels of a set, in position order."""
    if domain.labels is None:
        return tuple(bound.labels[domain.name])
    return domain.labels


def values(bound: Bound, domain: ir.Set) -> np.ndarray:
    """The numbers of a value set, float64; for other sets the ids as numbers."""
    if not isinstance(domain, ir.ValueSet):
        return ids(bound, domain).astype(np.float64)
    return remember(bound, ("values", domain), lambda: _values(bound, domain))


def _values(bound: Bound, domain: ir.ValueSet) -> np.ndarray:
    def number(expr: ir.Expr) -> float:
        """The value of a scalar expression."""
        return float(Pointwise(bound).value(expr, {}).data)

    if domain.items is not None:
        return np.array([number(item) for item in domain.items], dtype=np.float64)
    assert domain.low is not None and domain.high is not None
    low, high = number(domain.low), number(domain.high)
    if domain.step is None:
        step = 1.0
    else:
        step = number(domain.step)
    if step == 0:
        refuse(errors.step_of_zero(domain), source=bound.problem.source)
    return progressions.numbers(low, high, step)


def names(bound: Bound, domain: ir.Set) -> list[str]:
    """The elements as texts for people: labels, row numbers, and numbers without needless decimals."""
    if isinstance(domain, ir.LabelSet):
        return list(labels(bound, domain))
    return [f"{value:.12g}" for value in values(bound, domain)]


def _ranges(problem: ir.Problem) -> dict[str, ir.ValueSet]:
    """Sets of numbers that are written at a binder, such as ``t in 1 .. T - 1``, by their text."""
    families: list[ir.Constraint | ir.Let | ir.Reduce] = [*problem.constraints, *problem.lets.values()]
    families += problem.expressions(ir.Reduce)
    domains = (b.domain for family in families for b in family.binders)
    return {domain.name: domain for domain in domains if isinstance(domain, ir.ValueSet)}


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
    if (numbers := remember(bound, "ranges", lambda: _ranges(bound.problem)).get(dim)) is not None:
        return len(ids(bound, numbers))
    refuse(errors.size_unknown(dim), source=bound.problem.source)


def shape(bound: Bound, dims: ir.Shape) -> tuple[int, ...]:
    """A shape in numbers."""
    return tuple(size(bound, dim) for dim in dims)


def extent(bound: Bound, domain: ir.Set) -> int:
    """An upper bound of the ids: the number of rows of the whole table, or the number of elements."""
    if isinstance(domain, ir.RowSet):
        return bound.tables[domain.table].n
    return len(ids(bound, domain))


def positions(bound: Bound, domain: ir.Set, dim: ir.Dim) -> np.ndarray | None:
    """The position of each id of ``domain`` in an array's dimension ``dim``; None if ids are positions."""
    if isinstance(dim, str):
        target = bound.problem.sets.get(dim)
    else:
        target = None
    return matching(bound, domain, domain if target is None else target, place=True)


def row_positions(bound: Bound, column: ir.Column, dim: ir.Dim) -> np.ndarray:
    """The position of each row's label (or number of a set) in an array's dimension ``dim``."""
    assert isinstance(column.binder.domain, ir.RowSet) and column.name is not None
    table = column.binder.domain.table
    domain = bound.problem.tables[table].columns[column.name].domain
    assert isinstance(domain, ir.LabelSet | ir.ValueSet)

    def find() -> np.ndarray:
        """The positions; a number counts as the nearest one of the set."""
        codes = bound.tables[table].columns[column.name or ""]
        if isinstance(domain, ir.ValueSet):
            numbers = np.asarray(codes, dtype=np.float64)
            codes = np.abs(numbers[:, None] - values(bound, domain)[None, :]).argmin(1)
        place = positions(bound, domain, dim)
        return np.asarray(codes if place is None else place[codes], dtype=np.int64)

    return remember(bound, ("row positions", table, column.name, dim), find)


def matching(bound: Bound, domain: ir.Set, target: ir.Set, *, place: bool = False) -> np.ndarray | None:
    """For each id of ``domain``, the id of the same element in ``target``, or -1 if it has none.

    With ``place`` it is the position instead of the id. None is returned if all are the same.
    """
    if isinstance(domain, ir.RowSet) and not place:
        return None
    return remember(bound, ("positions", domain, target), lambda: _positions(bound, domain, target))


def _positions(bound: Bound, domain: ir.Set, target: ir.Set) -> np.ndarray | None:
    if isinstance(domain, ir.RowSet):
        members, place = ids(bound, target), np.full(extent(bound, domain), -1, dtype=np.int64)
        place[members] = np.arange(len(members))
        if len(members) == len(place):
            return None
        return place
    if target is domain:
        return None
    if isinstance(domain, ir.LabelSet) and isinstance(target, ir.LabelSet):
        number_of = {label: k for k, label in enumerate(labels(bound, target))}
        return np.array([number_of.get(label, -1) for label in labels(bound, domain)], dtype=np.int64)
    numbers, targets = values(bound, domain), values(bound, target)
    if len(numbers) == len(targets) and np.allclose(numbers, targets):
        return None
    close = np.isclose(numbers[:, None], targets[None, :])
    return np.where(close.any(1), close.argmax(1), -1).astype(np.int64)


def names_of(bound: Bound, domain: ir.Set, ids: np.ndarray) -> list[str]:
    """The names of elements, given by their ids, for people."""
    if isinstance(domain, ir.RowSet):
        return [str(k) for k in ids.tolist()]
    shown = names(bound, domain)
    return [shown[k] for k in ids.tolist()]


def name_of(bound: Bound, domain: ir.Set, element: int) -> str:
    """The name of an element, given by its id, for people."""
    return names_of(bound, domain, np.array([element]))[0]


def labels_of(bound: Bound, node: ir.Expr) -> ir.LabelSet | None:
    """The label set of a label-valued expression, or None."""
    while isinstance(node, ir.Item):
        node = node.base
    domain: ir.Set | None = None
    if isinstance(node, ir.Column) and isinstance(node.binder.domain, ir.RowSet):
        if node.name not in (None, ir.FAMILY):
            domain = bound.problem.tables[node.binder.domain.table].columns[str(node.name)].domain
    elif isinstance(node, ir.Element):
        domain = node.binder.domain
    elif isinstance(node, ir.Param) and node.name in bound.problem.arrays:
        domain = bound.problem.arrays[node.name].type.domain
    if isinstance(domain, ir.LabelSet):
        return domain
    return None


# ---------------------------------------------------------------------------------------- pointwise
def accepted(
    bound: Bound,
    binder: ir.Binder,
    conditions: Iterable[ir.Expr],
    elements: np.ndarray,
    evaluate: Callable[[Bound], Pointwise] | None = None,
) -> np.ndarray:
    """Whether each element satisfies all conditions, which are about this binder alone."""
    keep = np.ones(len(elements), dtype=bool)
    env = {binder: Named(torch.from_numpy(elements), (new_axis(),))}
    for condition in conditions:
        keep &= (evaluate or Pointwise)(bound).value(condition, env).data.bool().numpy()
    return keep


class Pointwise:
    """Values of expressions without reductions; an environment gives the elements of each free binder.

    Shared nodes are computed once.
    """

    def __init__(self, bound: Bound):
        self.bound = bound
        self.memo: dict[tuple[Any, ...], Named] = {}
        self.kept: list[Any] = []  # keeps alive the records whose ids are keys

    def simple_set(self, domain: ir.VectorSet) -> tuple[sets.SimpleSet, tuple[float | torch.Tensor, ...]]:
        """A simple set with the values of its arguments: numbers, or arrays."""
        simple = sets.get(domain.family)
        assert simple is not None, domain.family
        args = (self.value(arg, {}).data.detach() for arg in domain.args)
        if domain.centre is not None:
            simple = sets.translated(simple, self.value(domain.centre, {}).data.detach())
        return simple, tuple(value if value.dim() else float(value) for value in args)

    # ------------------------------------------------------------------------------------- the walk
    def free(self, node: ir.Expr) -> tuple[ir.Binder, ...]:
        """The binders that a node's value depends on."""
        return ir.free_binders(node)

    def key(self, node: ir.Expr, env: Env) -> tuple[Any, ...]:
        """The key under which a node's value is remembered within this evaluation."""
        return (id(node), *(id(env[binder]) for binder in self.free(node) if binder in env))

    def inner(self, node: ir.Expr, env: Env) -> tuple[ir.Expr, ...]:
        """The subexpressions to evaluate before a node, in its own environment."""
        if isinstance(node, ir.Apply):
            return tuple(arg for arg in node.args if not isinstance(arg, ir.Label))
        if isinstance(node, ir.Item):
            return (node.base,)
        return ()

    def value(self, expr: ir.Expr, env: Env) -> Named:
        """The value of an expression. The walk does not recurse, so that deep expressions are possible."""
        memo = self.memo
        root = self.key(expr, env)
        if root in memo:
            return memo[root]
        self.kept.append((expr, env))
        stack: list[tuple[ir.Expr, bool]] = [(expr, False)]
        while stack:
            node, ready = stack.pop()
            key = self.key(node, env)
            if key in memo:
                continue
            if not ready:
                stack.append((node, True))
                stack.extend((child, False) for child in self.inner(node, env))
                continue
            memo[key] = self.compute(node, env)
        return memo[root]

    def compute(self, node: ir.Expr, env: Env) -> Named:
        """The value of one node whose ``inner`` subexpressions are known."""
        match node:
            case ir.Const(value=value):
                return Named(torch.full(shape(self.bound, node.shape), value, dtype=torch.float64))
            case ir.Size(dim=dim):
                return Named(torch.tensor(float(size(self.bound, dim)), dtype=torch.float64))
            case ir.Param(name=name):
                if name in self.bound.params:
                    arrays = self.bound.params
                else:
                    arrays = self.bound.arrays
                return Named(remember(self.bound, ("array", name), lambda: as_tensor(arrays[name])))
            case ir.Column():
                return self.column(node, env)
            case ir.Element(binder=binder):
                return self.element(binder, env[binder])
            case ir.Item():
                return self.item(node, env)
            case ir.Apply():
                return self.apply(node, env)
        return self.other(node, env)

    def other(self, node: ir.Expr, env: Env) -> Named:
        """The value of a node that is not pointwise: an error here."""
        refuse(errors.not_by_data_alone(self.bound.problem, node), source=self.bound.problem.source)

    # ----------------------------------------------------------------------------------- the leaves
    def column(self, node: ir.Column, env: Env) -> Named:
        """The values of a column at the binder's rows, or the binder's draws."""
        at, domain = env[node.binder], node.binder.domain
        if not isinstance(domain, ir.RowSet) or node.name is None:
            return at
        data = column(self.bound, domain.table, node.name)
        if at.data.numel() == len(data) and at.data is self.everything(domain.table):
            return Named(data, at.axes)
        return Named(data[at.data], at.axes)

    def everything(self, table: str) -> torch.Tensor:
        """All row numbers of a table, always the same tensor."""
        return common(
            self.bound, ("rows", table), (), lambda: torch.from_numpy(everything(self.bound, table))
        )

    def whole(self, domain: ir.Set, elements: np.ndarray) -> torch.Tensor:
        """Ids as a tensor; it is the shared one if they are all rows of a table."""
        if isinstance(domain, ir.RowSet) and len(elements) == self.bound.tables[domain.table].n:
            return self.everything(domain.table)
        return torch.from_numpy(np.ascontiguousarray(elements))

    def element(self, binder: ir.Binder, at: Named) -> Named:
        """The binder's elements as numbers or vectors."""
        if isinstance(binder.domain, ir.Distribution | ir.VectorSet):
            return at
        if not isinstance(binder.domain, ir.ValueSet):
            return Named(at.data.to(torch.float64), at.axes)
        return Named(as_tensor(values(self.bound, binder.domain))[at.data], at.axes)

    def item(self, node: ir.Item, env: Env) -> Named:
        """The entries of an array at some indices."""
        base = self.value(node.base, env)
        if all(isinstance(index, ir.Const) for index in node.indices):
            data = base.data
            for index in node.indices:
                assert isinstance(index, ir.Const)
                data = data.select(len(base.axes), int(index.value))
            return Named(data, base.axes)
        dims = (*node.base.shape, *([0] * len(node.indices)))
        places = [self.place(index, dim, env) for index, dim in zip(node.indices, dims, strict=False)]
        axes = union([base, *places])
        ranges = [Named(torch.arange(base.length(axis)), (axis,)) for axis in base.axes]
        return Named(base.data[tuple(spread(at, axes) for at in (*ranges, *places))], axes)

    def place(self, index: ir.Expr, dim: ir.Dim, env: Env) -> Named:
        """The position that an index stands for in a dimension."""
        if isinstance(index, ir.Const):
            return Named(torch.tensor(int(index.value)))
        if isinstance(index, ir.Column):
            rows = env[index.binder]
            return Named(torch.from_numpy(row_positions(self.bound, index, dim))[rows.data], rows.axes)
        if not isinstance(index, ir.Element):
            refuse(errors.not_an_index(self.bound.problem, index), source=self.bound.problem.source)
        at = env[index.binder]
        place = positions(self.bound, index.binder.domain, dim)
        if place is None:
            return at
        return Named(torch.from_numpy(place)[at.data], at.axes)

    def apply(self, node: ir.Apply, env: Env) -> Named:
        """The value of an operation; labels are compared by their positions."""
        args = node.args
        if node.op in ("eq", "ne") and any(isinstance(arg, ir.Label) for arg in args):
            args = tuple(self.position(arg, args[1 - k]) for k, arg in enumerate(args))
        operands = [self.value(arg, env) for arg in args]
        if node.op == "dot":
            return self.dot(*operands)
        numbers: list[float | None] = [None] * len(args)
        for k, arg in enumerate(args):
            if isinstance(arg, ir.Const) and not arg.shape:
                numbers[k] = arg.value
        return apply_atom(node.op, operands, numbers)

    def position(self, arg: ir.Expr, other: ir.Expr) -> ir.Expr:
        """A label in quotes as its position in the set of the other side, or -1 if it is not in it."""
        if not isinstance(arg, ir.Label):
            return arg
        domain = labels_of(self.bound, other)
        if domain is not None:
            texts = labels(self.bound, domain)
            if arg.text in texts:
                return ir.Const(value=float(texts.index(arg.text)))
        return ir.Const(value=-1.0)

    def dot(self, u: Named, v: Named) -> Named:
        """``sum_k u_k v_k``; it is one matrix-vector product if one side has no axes."""
        if not v.axes:
            return Named(u.data @ v.data, u.axes)
        if not u.axes:
            return Named(v.data @ u.data, v.axes)
        (a, b), axes = align([u, v], entrywise=False)
        return Named((a.unsqueeze(-2) @ b.unsqueeze(-1)).squeeze(-1).squeeze(-1), axes)
