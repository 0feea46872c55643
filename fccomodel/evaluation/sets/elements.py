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

    def convert() -> torch.Tensor:
        """The column from the bound table."""
        return _column(bound.tables[table].columns[name])

    return common(bound, ("column", table, name), (), convert)


def _column(array: np.ndarray) -> torch.Tensor:
    if not mapped(array):
        return as_tensor(array)
    from fccomodel.evaluation.sets.mapped import MappedTensor

    rows: Any = array
    if not drawn(array):
        rows = torch.from_numpy(array)
    return MappedTensor(rows, "cpu", torch.float64)


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
        return _row_ids(bound, domain)
    if isinstance(domain, ir.LabelSet):
        count = len(labels(bound, domain))
        return np.arange(count, dtype=np.int64)
    if isinstance(domain, ir.ValueSet):
        count = len(values(bound, domain))
        return np.arange(count, dtype=np.int64)
    refuse(errors.no_elements(domain), source=bound.problem.source)


def _row_ids(bound: Bound, domain: ir.RowSet) -> np.ndarray:
    """The numbers of the rows where ``where`` holds; prepared data have them in a file."""
    everyone = everything(bound, domain.table)
    if domain.where is None or domain.row is None:
        return everyone
    known = indices.prepared(bound, domain, indices.decided(domain))
    if known is not None:
        return known.rows
    keep = accepted(bound, domain.row, (domain.where,), everyone)
    return everyone[keep]


def everything(bound: Bound, table: str) -> np.ndarray:
    """All row numbers of a table, always the same array."""
    return common(bound, ("everything", table), (), lambda: _everything(bound, table))


def _everything(bound: Bound, table: str) -> np.ndarray:
    whole_table = ir.RowSet(name=table, table=table)
    known = indices.prepared(bound, whole_table, "")
    if known is not None:
        return known.rows
    return np.arange(bound.tables[table].n, dtype=np.int64)


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
        listed = [number(item) for item in domain.items]
        return np.array(listed, dtype=np.float64)
    assert domain.low is not None and domain.high is not None
    low = number(domain.low)
    high = number(domain.high)
    step = 1.0
    if domain.step is not None:
        step = number(domain.step)
    if step == 0:
        refuse(errors.step_of_zero(domain), source=bound.problem.source)
    return progressions.numbers(low, high, step)


def names(bound: Bound, domain: ir.Set) -> list[str]:
    """The elements as texts for people: labels, row numbers, and numbers without needless decimals."""
    if isinstance(domain, ir.LabelSet):
        return list(labels(bound, domain))
    numbers = values(bound, domain)
    return [f"{number:.12g}" for number in numbers]


def _ranges(problem: ir.Problem) -> dict[str, ir.ValueSet]:
    """Sets of numbers that are written at a binder, such as ``t in 1 .. T - 1``, by their text."""
    families: list[ir.Constraint | ir.Let | ir.Reduce] = []
    families += problem.constraints
    families += problem.lets.values()
    families += problem.expressions(ir.Reduce)
    ranges = {}
    for family in families:
        for binder in family.binders:
            if isinstance(binder.domain, ir.ValueSet):
                ranges[binder.domain.name] = binder.domain
    return ranges


def size(bound: Bound, dim: ir.Dim) -> int:
    """The number that a size stands for: itself, a bound ``dim``, or the number of a set's elements."""
    if isinstance(dim, int):
        return dim
    if dim.isdigit():
        return int(dim)
    if " + " in dim:  # of joined vectors
        parts = dim.split(" + ")
        return sum(size(bound, part) for part in parts)
    if dim in bound.dims:
        return int(bound.dims[dim])
    if dim in bound.problem.sets:
        return len(ids(bound, bound.problem.sets[dim]))
    if dim in bound.tables:
        return bound.tables[dim].n
    if dim.startswith("params("):
        net = bound.nets[dim[len("params(") : -1]]
        return sum(weight.numel() for weight in net.parameters())
    ranges = remember(bound, "ranges", lambda: _ranges(bound.problem))
    if dim in ranges:
        return len(ids(bound, ranges[dim]))
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
    target = None
    if isinstance(dim, str):
        target = bound.problem.sets.get(dim)
    if target is None:
        target = domain
    return matching(bound, domain, target, place=True)


def row_positions(bound: Bound, column: ir.Column, dim: ir.Dim) -> np.ndarray:
    """The position of each row's label (or number of a set) in an array's dimension ``dim``."""
    assert isinstance(column.binder.domain, ir.RowSet) and column.name is not None
    table = column.binder.domain.table
    name = column.name
    domain = bound.problem.tables[table].columns[name].domain
    assert isinstance(domain, ir.LabelSet | ir.ValueSet)

    def compute() -> np.ndarray:
        """The positions; a number counts as the nearest one of the set."""
        codes = bound.tables[table].columns[name]
        if isinstance(domain, ir.ValueSet):
            codes = _nearest(values(bound, domain), codes)
        place = positions(bound, domain, dim)
        if place is not None:
            codes = place[codes]
        return np.asarray(codes, dtype=np.int64)

    return remember(bound, ("row positions", table, name, dim), compute)


def _nearest(members: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """For each number, the position of the nearest member."""
    numbers = np.asarray(numbers, dtype=np.float64)
    distance = np.abs(numbers[:, None] - members[None, :])
    return distance.argmin(1)


def matching(bound: Bound, domain: ir.Set, target: ir.Set, *, place: bool = False) -> np.ndarray | None:
    """For each id of ``domain``, the id of the same element in ``target``, or -1 if it has none.

    With ``place`` it is the position instead of the id. None is returned if all are the same.
    """
    if isinstance(domain, ir.RowSet) and not place:
        return None
    return remember(
        bound,
        ("positions", domain, target),
        lambda: _positions(bound, domain, target),
    )


def _positions(bound: Bound, domain: ir.Set, target: ir.Set) -> np.ndarray | None:
    if isinstance(domain, ir.RowSet):
        return _row_places(bound, domain, target)
    if target is domain:
        return None
    if isinstance(domain, ir.LabelSet) and isinstance(target, ir.LabelSet):
        number_of = {label: k for k, label in enumerate(labels(bound, target))}
        label_places = [number_of.get(label, -1) for label in labels(bound, domain)]
        return np.array(label_places, dtype=np.int64)
    numbers = values(bound, domain)
    targets = values(bound, target)
    if len(numbers) == len(targets) and np.allclose(numbers, targets):
        return None
    close = np.isclose(numbers[:, None], targets[None, :])
    places = np.where(close.any(1), close.argmax(1), -1)
    return places.astype(np.int64)


def _row_places(bound: Bound, domain: ir.RowSet, target: ir.Set) -> np.ndarray | None:
    """For each row of the table, its position among the rows of ``target``; None if these are all rows."""
    members = ids(bound, target)
    count = extent(bound, domain)
    if len(members) == count:
        return None
    place = np.full(count, -1, dtype=np.int64)
    place[members] = np.arange(len(members))
    return place


def names_of(bound: Bound, domain: ir.Set, ids: np.ndarray) -> list[str]:
    """The names of elements, given by their ids, for people."""
    if isinstance(domain, ir.RowSet):
        return [str(row) for row in ids.tolist()]
    every_name = names(bound, domain)
    return [every_name[k] for k in ids.tolist()]


def name_of(bound: Bound, domain: ir.Set, element: int) -> str:
    """The name of an element, given by its id, for people."""
    return names_of(bound, domain, np.array([element]))[0]


def labels_of(bound: Bound, node: ir.Expr) -> ir.LabelSet | None:
    """The label set of a label-valued expression, or None."""
    while isinstance(node, ir.Item):
        node = node.base
    domain: ir.Set | None = None
    if isinstance(node, ir.Column):
        domain = _column_domain(bound.problem, node)
    elif isinstance(node, ir.Element):
        domain = node.binder.domain
    elif isinstance(node, ir.Param) and node.name in bound.problem.arrays:
        domain = bound.problem.arrays[node.name].type.domain
    if isinstance(domain, ir.LabelSet):
        return domain
    return None


def _column_domain(problem: ir.Problem, node: ir.Column) -> ir.Set | None:
    """The set that the entries of a column are from, or None."""
    if not isinstance(node.binder.domain, ir.RowSet):
        return None
    if node.name is None or node.name == ir.FAMILY:
        return None
    table = problem.tables[node.binder.domain.table]
    return table.columns[node.name].domain


# ---------------------------------------------------------------------------------------- pointwise
def accepted(
    bound: Bound,
    binder: ir.Binder,
    conditions: Iterable[ir.Expr],
    elements: np.ndarray,
    evaluate: Callable[[Bound], Pointwise] | None = None,
) -> np.ndarray:
    """Whether each element satisfies all conditions, which are about this binder alone.

    ``evaluate`` makes the evaluator; None means ``Pointwise``.
    """
    if evaluate is None:
        evaluate = Pointwise
    keep = np.ones(len(elements), dtype=bool)
    env = {binder: Named(torch.from_numpy(elements), (new_axis(),))}
    for condition in conditions:
        truth = evaluate(bound).value(condition, env)
        keep &= truth.data.bool().numpy()
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
        if domain.centre is not None:
            centre = self.value(domain.centre, {}).data.detach()
            simple = sets.translated(simple, centre)
        args: list[float | torch.Tensor] = []
        for arg in domain.args:
            value = self.value(arg, {}).data.detach()
            args.append(value if value.dim() else float(value))
        return simple, tuple(args)

    def into_sets(self, domains: Iterable[ir.VectorSet], value: torch.Tensor) -> torch.Tensor:
        """The value projected on each of the simple sets in turn."""
        for domain in domains:
            simple, arguments = self.simple_set(domain)
            value = simple.nearest(value, *arguments)
        return value

    # ------------------------------------------------------------------------------------- the walk
    def free(self, node: ir.Expr) -> tuple[ir.Binder, ...]:
        """The binders that a node's value depends on."""
        return ir.free_binders(node)

    def key(self, node: ir.Expr, env: Env) -> tuple[Any, ...]:
        """The key under which a node's value is remembered within this evaluation."""
        elements = (id(env[binder]) for binder in self.free(node) if binder in env)
        return (id(node), *elements)

    def inner(self, node: ir.Expr, env: Env) -> tuple[ir.Expr, ...]:
        """The subexpressions to evaluate before a node, in its own environment."""
        match node:
            case ir.Apply(args=args):
                return tuple(arg for arg in args if not isinstance(arg, ir.Label))
            case ir.Item(base=base):
                return (base,)
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
            case ir.Const():
                return self.constant(node)
            case ir.Size(dim=dim):
                number = float(size(self.bound, dim))
                return Named(torch.tensor(number, dtype=torch.float64))
            case ir.Param(name=name):
                return self.array(name)
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
    def constant(self, node: ir.Const) -> Named:
        """A number, or an array that is filled with it."""
        dims = shape(self.bound, node.shape)
        return Named(torch.full(dims, node.value, dtype=torch.float64))

    def array(self, name: str) -> Named:
        """A parameter or an array of the data."""
        arrays = self.bound.arrays
        if name in self.bound.params:
            arrays = self.bound.params
        return Named(remember(self.bound, ("array", name), lambda: as_tensor(arrays[name])))

    def column(self, node: ir.Column, env: Env) -> Named:
        """The values of a column at the binder's rows, or the binder's draws."""
        at = env[node.binder]
        domain = node.binder.domain
        if not isinstance(domain, ir.RowSet) or node.name is None:
            return at
        data = column(self.bound, domain.table, node.name)
        if at.data.numel() == len(data) and at.data is self.everything(domain.table):
            return Named(data, at.axes)
        return Named(data[at.data], at.axes)

    def everything(self, table: str) -> torch.Tensor:
        """All row numbers of a table, always the same tensor."""

        def convert() -> torch.Tensor:
            """The numbers as a tensor."""
            return torch.from_numpy(everything(self.bound, table))

        return common(self.bound, ("rows", table), (), convert)

    def whole(self, domain: ir.Set, elements: np.ndarray) -> torch.Tensor:
        """Ids as a tensor; it is the shared one if they are all rows of a table."""
        if isinstance(domain, ir.RowSet):
            rows = self.bound.tables[domain.table].n
            if len(elements) == rows:
                return self.everything(domain.table)
        return torch.from_numpy(np.ascontiguousarray(elements))

    def element(self, binder: ir.Binder, at: Named) -> Named:
        """The binder's elements as numbers or vectors."""
        domain = binder.domain
        if isinstance(domain, ir.Distribution | ir.VectorSet):
            return at
        if not isinstance(domain, ir.ValueSet):
            return Named(at.data.to(torch.float64), at.axes)
        numbers = as_tensor(values(self.bound, domain))
        return Named(numbers[at.data], at.axes)

    def item(self, node: ir.Item, env: Env) -> Named:
        """The entries of an array at some indices."""
        base = self.value(node.base, env)
        if all(isinstance(index, ir.Const) for index in node.indices):
            data = base.data
            for index in node.indices:
                assert isinstance(index, ir.Const)
                data = data.select(len(base.axes), int(index.value))
            return Named(data, base.axes)
        places = []
        for k, index in enumerate(node.indices):
            dim: ir.Dim = 0
            if k < len(node.base.shape):
                dim = node.base.shape[k]
            places.append(self.place(index, dim, env))
        axes = union([base, *places])
        lengths = [(axis, base.length(axis)) for axis in base.axes]
        ranges = [Named(torch.arange(length), (axis,)) for axis, length in lengths]
        selection = tuple(spread(at, axes) for at in (*ranges, *places))
        return Named(base.data[selection], axes)

    def place(self, index: ir.Expr, dim: ir.Dim, env: Env) -> Named:
        """The position that an index stands for in a dimension."""
        if isinstance(index, ir.Const):
            return Named(torch.tensor(int(index.value)))
        if isinstance(index, ir.Column):
            rows = env[index.binder]
            place_of_row = torch.from_numpy(row_positions(self.bound, index, dim))
            return Named(place_of_row[rows.data], rows.axes)
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
            left, right = args
            args = (self.position(left, right), self.position(right, left))
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
        products = a.unsqueeze(-2) @ b.unsqueeze(-1)
        return Named(products.squeeze(-1).squeeze(-1), axes)
