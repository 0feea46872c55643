"""Shapes and sorts of typed expressions: what an expression is, in the user's words, and what fits
with what."""

from __future__ import annotations

from dataclasses import replace

from fccomodel.core import ir, progressions
from fccomodel.language import syntax
from fccomodel.language.errors.words import Quote
from fccomodel.language.formulas.context import Context
from fccomodel.library import atoms


# -------------------------------------------------------------------------------------------- sizes
def members(domain: ir.Set) -> tuple[float, ...] | None:
    """The numbers of a value set whose members are known from the text, else None."""
    if not isinstance(domain, ir.ValueSet):
        return None
    if domain.items is not None:
        if not all(isinstance(i, ir.Const) for i in domain.items):
            return None
        return tuple(i.value for i in domain.items)  # type: ignore[attr-defined]
    low, high, step = domain.low, domain.high, domain.step
    if (
        isinstance(low, ir.Const)
        and isinstance(high, ir.Const)
        and (step is None or isinstance(step, ir.Const))
    ):
        increment = 1.0 if step is None else step.value
        if increment > 0 and progressions.count(low.value, high.value, increment) <= 1_000_000:
            return tuple(progressions.numbers(low.value, high.value, increment).tolist())
    return None


def member(domain: ir.ValueSet, place: int) -> float:
    """The number at a place counted from 0, of a list or of a range whose low end and step are constants."""
    numbers = members(domain)
    if numbers is not None:
        return numbers[place]
    assert isinstance(domain.low, ir.Const)
    return domain.low.value + place * (domain.step.value if isinstance(domain.step, ir.Const) else 1.0)


def count(domain: ir.Set) -> int | None:
    """The number of a set's elements where the text alone says it."""
    if isinstance(domain, ir.LabelSet):
        if domain.labels is None:
            return None
        return len(domain.labels)
    numbers = members(domain)
    if numbers is None:
        return None
    return len(numbers)


def size(ctx: Context, dim: ir.Dim) -> int | None:
    """The number that a size stands for, where the text alone says it."""
    if isinstance(dim, int):
        return dim
    if dim in ctx.sets:
        return count(ctx.sets[dim])
    return None


def same_dim(ctx: Context, a: ir.Dim, b: ir.Dim) -> bool:
    """Equal names or equal numbers; two different names never, a name and a number where the name's
    number is known."""
    if a == b:
        return True
    if isinstance(a, str) and isinstance(b, str):
        return False
    sizes = size(ctx, a), size(ctx, b)
    return sizes[0] is not None and sizes[0] == sizes[1]


def same_shape(ctx: Context, a: ir.Shape, b: ir.Shape) -> bool:
    return len(a) == len(b) and all(same_dim(ctx, x, y) for x, y in zip(a, b, strict=True))


def broadcast(ctx: Context, a: ir.Shape, b: ir.Shape) -> ir.Shape | None:
    """The shape of an entrywise operation: equal shapes, or a scalar with anything; None where they do
    not fit."""
    if not a or not b:
        return a or b
    return a if same_shape(ctx, a, b) else None


def same_set(a: ir.Set, b: ir.Set) -> bool:
    """An element of ``a`` has the same place in ``b``: the same members, or rows of the table that
    ``b`` is."""
    if a is b:
        return True
    if isinstance(a, ir.ValueSet) and isinstance(b, ir.ValueSet) and a.items is None and b.items is None:
        ends = ((a.low, b.low), (a.high, b.high), (a.step, b.step))
        if all(x is y or (x is not None and y is not None and ir.same(x, y)) for x, y in ends):
            return True
    if isinstance(a, ir.RowSet) and isinstance(b, ir.RowSet):
        return a.table == b.table and b.where is None
    if isinstance(a, ir.LabelSet) and isinstance(b, ir.LabelSet):
        return a.labels is not None and a.labels == b.labels
    numbers = members(a)
    return numbers is not None and numbers == members(b)


# -------------------------------------------------------------------------------------------- sorts
def column_type(ctx: Context, node: ir.Column) -> ir.ColumnType | None:
    domain = node.binder.domain
    if not isinstance(domain, ir.RowSet) or node.name is None or node.name == ir.FAMILY:
        return None
    return ctx.tables[domain.table].columns[node.name]


def sort(ctx: Context, node: ir.Expr) -> str:
    """``number``, ``truth``, ``label`` or ``row``."""
    while True:
        match node:
            case ir.Apply():
                atom = atoms.of(node)
                return "truth" if atom is not None and atom.boolean else "number"
            case ir.Label():
                return "label"
            case ir.Column():
                kind = column_type(ctx, node)
                if kind is not None and isinstance(kind.domain, ir.LabelSet):
                    return "label"
                return "number"
            case ir.Element():
                domain = node.binder.domain
                if isinstance(domain, ir.RowSet):
                    return "row"
                if isinstance(domain, ir.LabelSet):
                    return "label"
                return "number"
            case ir.Param():
                array = ctx.arrays.get(node.name)
                if array is not None and isinstance(array.type.domain, ir.LabelSet):
                    return "label"
                return "number"
            case ir.Item():
                node = node.base
            case _:
                return "number"


def is_net_parameters(node: ir.Expr) -> bool:
    """A variable declared by ``params(s)``: all parameters of a net as one vector, whose entries have
    no names."""
    return isinstance(node, ir.Var) and len(node.shape) == 1 and str(node.shape[0]).startswith("params(")


def labels_of(ctx: Context, node: ir.Expr) -> ir.LabelSet | None:
    """The label set that a label-valued expression belongs to (None for a label in quotes)."""
    while isinstance(node, ir.Item):
        node = node.base
    domain: ir.Set | None = None
    if isinstance(node, ir.Column):
        kind = column_type(ctx, node)
        domain = None if kind is None else kind.domain
    elif isinstance(node, ir.Element):
        domain = node.binder.domain
    elif isinstance(node, ir.Param) and node.name in ctx.arrays:
        domain = ctx.arrays[node.name].type.domain
    return domain if isinstance(domain, ir.LabelSet) else None


# -------------------------------------------------------------------------------------------- words
def show(shape: ir.Shape) -> str:
    """``scalar``, ``vector [d]``, ``matrix [d, 3]``."""
    if not shape:
        return "scalar"
    name = {1: "vector", 2: "matrix"}.get(len(shape), "array")
    return f"{name} [{', '.join(str(n) for n in shape)}]"


def described(ctx: Context, node: ir.Expr, limit: int = 60, *, at: syntax.Node | None = None) -> Quote:
    """A value as the user wrote it (or as it stands ``at`` another place), with what it is."""
    return replace(ctx.quote(node if at is None else at, limit), what=describe(ctx, node))


def describe(ctx: Context, node: ir.Expr) -> str:
    """What a value is, for a message: ``a vector [d]``, ``a label``, ``a row of `D```."""
    kind = sort(ctx, node)
    if kind == "row":
        assert isinstance(node, ir.Element) and isinstance(node.binder.domain, ir.RowSet)
        return f"a row of `{node.binder.domain.table}`"
    if is_net_parameters(node):
        return "the parameters of a net"
    if kind == "truth":
        return "a condition (true or false)"
    if kind == "label":
        if not node.shape:
            return "a label"
        return f"an array of labels [{', '.join(map(str, node.shape))}]"
    if not show(node.shape).startswith("array"):
        return f"a {show(node.shape)}"
    return f"an {show(node.shape)}"
