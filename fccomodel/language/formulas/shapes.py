"""Shapes and sorts of typed expressions, and their description in the user's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fccomodel.core import ir, progressions
from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.errors.words import Quote
from fccomodel.language.formulas.context import Context
from fccomodel.library import atoms

#: Members of a range that the checks list.
MAX_RANGE_MEMBERS = 1_000_000
#: Relative difference up to which two members of a set of numbers are the same.
SAME_MEMBER = 1e-9


# -------------------------------------------------------------------------------------------- sizes
def members(domain: ir.Set) -> tuple[float, ...] | None:
    """The numbers of a value set, or None if the text alone does not say them."""
    if not isinstance(domain, ir.ValueSet):
        return None
    if domain.items is not None:
        if not all(isinstance(i, ir.Const) for i in domain.items):
            return None
        return tuple(i.value for i in domain.items)  # type: ignore[attr-defined]
    low, high, step = domain.low, domain.high, domain.step
    if not isinstance(low, ir.Const) or not isinstance(high, ir.Const):
        return None
    if step is None:
        increment = 1.0
    elif isinstance(step, ir.Const):
        increment = step.value
    else:
        return None
    if increment <= 0 or progressions.count(low.value, high.value, increment) > MAX_RANGE_MEMBERS:
        return None
    return tuple(progressions.numbers(low.value, high.value, increment).tolist())


def place_among(members: Sequence[float], number: float) -> int | None:
    """The place of a number among others, counted from 0, or None if it is none of them."""
    for k, member in enumerate(members):
        if abs(member - number) <= SAME_MEMBER * max(1.0, abs(member)):
            return k
    return None


def member(domain: ir.ValueSet, place: int) -> float:
    """The number at a place counted from 0; the low end and the step of a range must be constants."""
    numbers = members(domain)
    if numbers is not None:
        return numbers[place]
    assert isinstance(domain.low, ir.Const)
    step = domain.step.value if isinstance(domain.step, ir.Const) else 1.0
    return domain.low.value + place * step


def count(domain: ir.Set) -> int | None:
    """The number of a set's elements, or None if the text alone does not say it."""
    if isinstance(domain, ir.LabelSet):
        if domain.labels is None:
            return None
        return len(domain.labels)
    numbers = members(domain)
    if numbers is None:
        return None
    return len(numbers)


def listed(domain: ir.Set, span: Span) -> list[ir.Expr]:
    """The elements of a set that the text says, as they stand in brackets: numbers, or labels."""
    if isinstance(domain, ir.LabelSet):
        return [ir.Label(text=label, span=span) for label in domain.labels or ()]
    return [ir.Const(value=number, span=span) for number in members(domain) or ()]


def size(ctx: Context, dim: ir.Dim) -> int | None:
    """The number that a size stands for, or None if the text alone does not say it."""
    if isinstance(dim, int):
        return dim
    if dim in ctx.sets:
        return count(ctx.sets[dim])
    return None


def same_dim(ctx: Context, a: ir.Dim, b: ir.Dim) -> bool:
    """Whether two sizes are the same: the same name, or the same number where the text says it.

    Two different names never are the same size.
    """
    if a == b:
        return True
    if isinstance(a, str) and isinstance(b, str):
        return False
    sizes = size(ctx, a), size(ctx, b)
    return sizes[0] is not None and sizes[0] == sizes[1]


def same_shape(ctx: Context, a: ir.Shape, b: ir.Shape) -> bool:
    """Whether two shapes have the same sizes."""
    return len(a) == len(b) and all(same_dim(ctx, x, y) for x, y in zip(a, b, strict=True))


def is_square(ctx: Context, shape: ir.Shape) -> bool:
    """Whether a shape is that of square matrices."""
    return len(shape) == 2 and same_dim(ctx, shape[0], shape[1])


def broadcast(ctx: Context, a: ir.Shape, b: ir.Shape) -> ir.Shape | None:
    """The shape of an entrywise operation, or None if the shapes do not fit.

    Equal shapes fit, and a scalar fits with any shape.
    """
    if not a:
        return b
    if not b or same_shape(ctx, a, b):
        return a
    return None


def same_set(a: ir.Set, b: ir.Set) -> bool:
    """Whether an element of ``a`` has the same place in ``b``.

    It has if both have the same members, or if ``a`` holds rows of the table ``b``.
    """
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
    """The declared type of a column, or None if it is no column of a table that the user names."""
    domain = node.binder.domain
    if not isinstance(domain, ir.RowSet) or node.name is None or node.name == ir.FAMILY:
        return None
    return ctx.tables[domain.table].columns[node.name]


def sort(ctx: Context, node: ir.Expr) -> str:
    """The sort of a value: ``number``, ``truth``, ``label`` or ``row``."""
    while isinstance(node, ir.Item):
        node = node.base
    if isinstance(node, ir.Apply):
        atom = atoms.of(node)
        if atom is not None and atom.boolean:
            return "truth"
        return "number"
    if isinstance(node, ir.Element) and isinstance(node.binder.domain, ir.RowSet):
        return "row"
    if isinstance(node, ir.Label) or labels_of(ctx, node) is not None:
        return "label"
    return "number"


def is_net_parameters(node: ir.Expr) -> bool:
    """Whether a node is a variable declared by ``params(s)``: all parameters of a net as one vector."""
    return isinstance(node, ir.Var) and len(node.shape) == 1 and str(node.shape[0]).startswith("params(")


def labels_of(ctx: Context, node: ir.Expr) -> ir.LabelSet | None:
    """The set of a label-valued expression, or None for a label in quotes and for other values."""
    while isinstance(node, ir.Item):
        node = node.base
    domain: ir.Set | None = None
    if isinstance(node, ir.Column):
        kind = column_type(ctx, node)
        if kind is not None:
            domain = kind.domain
    elif isinstance(node, ir.Element):
        domain = node.binder.domain
    elif isinstance(node, ir.Param) and node.name in ctx.arrays:
        domain = ctx.arrays[node.name].type.domain
    if isinstance(domain, ir.LabelSet):
        return domain
    return None


# -------------------------------------------------------------------------------------------- words
def show(shape: ir.Shape) -> str:
    """A shape in words: ``scalar``, ``vector [d]``, ``matrix [d, 3]``."""
    if not shape:
        return "scalar"
    name = {1: "vector", 2: "matrix"}.get(len(shape), "array")
    return f"{name} [{', '.join(str(n) for n in shape)}]"


def described(ctx: Context, node: ir.Expr, limit: int = 60, *, at: syntax.Node | None = None) -> Quote:
    """The user's text of a value, or the text ``at`` another place, with what the value is."""
    return replace(ctx.quote(node if at is None else at, limit), what=describe(ctx, node))


def describe(ctx: Context, node: ir.Expr) -> str:
    """A value's sort and shape in words: ``a vector [d]``, ``a label``, ``a row of `D```."""
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
    article = "an" if len(node.shape) > 2 else "a"
    return f"{article} {show(node.shape)}"
