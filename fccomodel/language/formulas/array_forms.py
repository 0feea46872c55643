"""Formulas that make arrays, and functions of arrays by formula: ``[i in n] u``, ``[a, b]``, ``norm2(r)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import (
    arrays,
    comparisons,
    expressions,
    literals,
    operators,
    places,
    reductions,
    shapes,
    symmetry,
)
from fccomodel.language.formulas.context import Context, FormulaArray, Scope
from fccomodel.library import atoms
from fccomodel.library.array_functions import FUNCTIONS

#: From an atom and its arguments to its value, or None after an error.
Applied = Callable[[atoms.Atom, list[ir.Expr]], ir.Expr | None]
ZERO = ir.Const(value=0.0)
ONE = ir.Const(value=1.0)


# --------------------------------------------------------------------------------- arrays written out
@expressions.evaluates(syntax.Comprehension)
def comprehension(ctx: Context, scope: Scope, node: syntax.Comprehension) -> ir.Expr | None:
    """``[i in n, k in K] body``: the array whose entries are the body; None after an error.

    The body is typed again for each use, with the indices of that use.
    """
    binders = node.indexing.binders
    drawn = next((binder for binder in binders if binder.kind != "in"), None)
    if drawn is not None:
        place = drawn.name, ctx.quote(drawn.domain), drawn.span
        ctx.report(errors.reductions.family_drawn("an array by formula", *place))
        return None
    head = reductions.bind(ctx, scope, binders, node.indexing.condition)
    if head.broken:
        return None
    if head.condition is not None:
        ctx.report(errors.shapes.array_with_condition(node.indexing.span))
        return None
    body = arrays.operand(ctx, head.scope, node.body)
    if body is not None and not body.shape:
        body = expressions.as_number(ctx, body, "an entry of an array")
    if body is None:
        return None
    calls, open_names = list(ctx.calls), [binder.name for binder in binders]

    def entry(indices: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """The body at some indices."""
        inner = head.scope
        for name, index in zip(open_names, indices, strict=False):
            inner = _bound(inner, name, index)
        outside, ctx.calls = ctx.calls, list(calls)
        try:
            value = arrays.operand(ctx, inner, node.body)
        finally:
            ctx.calls = outside
        if value is not None and not value.shape:
            value = expressions.as_number(ctx, value, "an entry of an array")
        rest = indices[len(open_names) :]
        if value is None or not rest:
            return value
        return arrays.entry_of(ctx, value, rest)

    axes = [binder.domain for binder in head.binders]
    return arrays.array(ctx, [*axes, *arrays.axes_of(ctx, body)], entry, node.span, open_names)


def _bound(scope: Scope, name: str, index: ir.Expr) -> Scope:
    """The scope in which a name of an array's index is an index from elsewhere."""
    if isinstance(index, ir.Element):
        local: ir.Binder | ir.Expr = index.binder
    else:
        local = index
    bound = scope.with_local(name, local)
    if name in scope.indices and isinstance(index, ir.Element):
        bound = bound.with_index(name, index.binder, opened=True)
    return bound


@expressions.evaluates(syntax.Vector)
def vector(ctx: Context, scope: Scope, node: syntax.Vector) -> ir.Expr | None:
    """``[a, b, c]``, or ``[[a, b], [c, d]]`` by its rows; None after an error."""
    values = expressions.complete([arrays.operand(ctx, scope, item) for item in node.items])
    if values is None:
        return None
    axes = arrays.axes_of(ctx, values[0])
    if len(values) == 1 and not axes and shapes.sort(ctx, values[0]) == "truth":
        ctx.report(errors.sorts.condition_in_brackets(ctx.quote(values[0]), node.span))
        return None
    for value in values:
        if not value.shape and expressions.as_number(ctx, value, "an entry of an array") is None:
            return None
        if not arrays.same_axes(arrays.axes_of(ctx, value), axes):
            ends = shapes.described(ctx, values[0], 30), shapes.described(ctx, value, 30)
            ctx.report(errors.shapes.rows_of_an_array(*ends, node.span))
            return None
    if not axes and len(values) > 1:
        return ir.Apply(op="concat", args=tuple(values), shape=(len(values),), span=node.span)
    rows = arrays.numbers_to(ctx, ir.Const(value=float(len(values)), span=node.span), node.span)
    assert rows is not None

    def entry(indices: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """The entry at some indices."""
        first, *rest = indices
        entries = expressions.complete([arrays.entry_of(ctx, value, rest) for value in values])
        if entries is None:
            return None
        if len(entries) == 1:
            return entries[0]
        if isinstance(first, ir.Const):
            return entries[int(first.value) - 1]
        side = ir.Apply(op="concat", args=tuple(entries), shape=(len(entries),), span=node.span)
        return places.entry_at(ctx, side, (first,), node.span)

    return arrays.array(ctx, [rows, *axes], entry, node.span)


@expressions.evaluates(syntax.Whole)
def whole(ctx: Context, scope: Scope, node: syntax.Whole) -> None:
    """``..`` outside an array's brackets: an error."""
    ctx.report(errors.sorts.set_as_number(ctx.quote(node)))


# ------------------------------------------------------------------------- functions over all entries
@dataclass(frozen=True, kw_only=True)
class EntrywiseForm:
    """A function of arrays as a reduction over their entries.

    reduction  the reduction
    power      the power of an entry that it reduces: 2 for squares
    inner      the atom that is applied to each entry before, or an empty text
    outer      the atom that is applied to the result, or an empty text
    arguments  the number of arguments, whose entries are multiplied
    """

    reduction: str
    power: int = 1
    inner: str = ""
    outer: str = ""
    arguments: int = 1


FORMS = {
    "sum": EntrywiseForm(reduction="sum"),
    "mean": EntrywiseForm(reduction="mean"),
    "max": EntrywiseForm(reduction="max"),
    "min": EntrywiseForm(reduction="min"),
    "sumsq": EntrywiseForm(reduction="sum", power=2),
    "norm1": EntrywiseForm(reduction="sum", inner="abs"),
    "norm2": EntrywiseForm(reduction="sum", power=2, outer="sqrt"),
    "norm_fro": EntrywiseForm(reduction="sum", power=2, outer="sqrt"),
    "norminf": EntrywiseForm(reduction="max", inner="abs"),
    "logsumexp": EntrywiseForm(reduction="sum", inner="exp", outer="log"),
    "dot": EntrywiseForm(reduction="sum", arguments=2),
}


def apply(
    ctx: Context, node: syntax.Call, atom: atoms.Atom, args: list[ir.Expr], applied: Applied
) -> ir.Expr | None:
    """An atom of arguments among which are arrays by formula, or None after an error."""
    form = FORMS.get(atom.name)
    if form is not None and len(args) == form.arguments and all(value.shape for value in args):
        return _reduced(ctx, node, form, args, applied)
    if isinstance(atom, atoms.ScalarAtom):
        return arrays.entrywise(ctx, args, lambda parts: applied(atom, parts), node.func, node.span)
    if atom.name == "transpose" and len(args) == 1 and len(args[0].shape) == 2:
        return _transposed(ctx, args[0], node.span)
    if atom.name == "outer" and len(args) == 2 and all(len(value.shape) == 1 for value in args):
        return _outer(ctx, args, node.span)
    written = [
        expressions.written_out(ctx, value) if isinstance(value, FormulaArray) else value for value in args
    ]
    values = expressions.complete(written)
    if values is None:
        return None
    return applied(atom, values)


def _reduced(
    ctx: Context, node: syntax.Call, form: EntrywiseForm, args: list[ir.Expr], applied: Applied
) -> ir.Expr | None:
    """A function over all entries as a reduction, or None after an error."""
    named = atoms.all()

    def entry(parts: list[ir.Expr]) -> ir.Expr | None:
        """The term of the reduction, from an entry of each argument."""
        value: ir.Expr | None = parts[0]
        for other in parts[1:]:
            assert value is not None
            value = operators.arithmetic(ctx, "*", value, other, node.span)
        if value is not None and form.inner:
            value = applied(named[form.inner], [value])
        if value is not None and form.power != 1:
            exponent = ir.Const(value=float(form.power), span=node.span)
            value = operators.arithmetic(ctx, "^", value, exponent, node.span)
        return value

    joined = arrays.entrywise(ctx, args, entry, node.func, node.span)
    if joined is None:
        return None
    with arrays.elements(ctx, joined, joined.axes, node.span) as at:
        body = joined.entry(tuple(at))
    if body is not None:
        body = expressions.as_number(ctx, body, f"an argument of `{node.func}`")
    if body is None:
        return None
    binders = tuple(element.binder for element in at)
    value: ir.Expr = ir.Reduce(kind=form.reduction, binders=binders, body=body, span=node.span)
    if form.outer:
        return applied(named[form.outer], [value])
    return value


def _transposed(ctx: Context, value: ir.Expr, span: Span) -> FormulaArray:
    """A matrix by formula with rows and columns exchanged."""
    rows, columns = arrays.axes_of(ctx, value)
    named = value.named[::-1] if isinstance(value, FormulaArray) and len(value.named) == 2 else ()

    def transposed(parts: list[ir.Expr]) -> ir.Expr:
        """The transposed matrix as one expression."""
        return ir.Apply(op="transpose", args=tuple(parts), shape=parts[0].shape[::-1], span=span)

    return arrays.array(
        ctx,
        [columns, rows],
        lambda at: arrays.entry_of(ctx, value, (at[1], at[0])),
        span,
        named,
        arrays.wholes([value], transposed),
    )


def _outer(ctx: Context, args: list[ir.Expr], span: Span) -> FormulaArray:
    """The products of the entries of two vectors."""
    first, second = (arrays.axes_of(ctx, value)[0] for value in args)

    def entry(at: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """The entry at some indices."""
        factors = [arrays.entry_of(ctx, value, (index,)) for value, index in zip(args, at, strict=True)]
        left, right = factors
        if left is None or right is None:
            return None
        return operators.arithmetic(ctx, "*", left, right, span)

    def products(parts: list[ir.Expr]) -> ir.Expr:
        """The matrix of products as one expression."""
        shape = (*parts[0].shape, *parts[1].shape)
        return ir.Apply(op="outer", args=tuple(parts), shape=shape, span=span)

    return arrays.array(ctx, [first, second], entry, span, whole=arrays.wholes(args, products))


# ------------------------------------------------------------------------- functions that make arrays
def made(ctx: Context, scope: Scope, node: syntax.Call) -> tuple[ir.Expr | None] | None:
    """The value of ``ones(n)``, ``diag(x)`` and the like, in a tuple of one; None for another call.

    The value itself is None after an error.
    """
    function = FUNCTIONS.get(node.func)
    if function is None:
        return None
    if node.keywords or not function.least <= len(node.args) <= function.most:
        ctx.report(errors.calls.arguments_of_array_function(ctx.quote(node), function))
        return (None,)
    if function.sizes:
        return (_constant(ctx, scope, node),)
    value = arrays.operand(ctx, scope, node.args[0])
    if value is None:
        return (None,)
    axes = arrays.axes_of(ctx, value)
    if len(axes) not in function.axes or shapes.is_net_parameters(value):
        ctx.report(errors.shapes.array_function(shapes.described(ctx, value), function))
        return (None,)
    return (_MAKERS[node.func](ctx, value, axes, node.span),)


def _constant(ctx: Context, scope: Scope, node: syntax.Call) -> FormulaArray | None:
    """``ones(n, m)``, ``zeros(n, m)``, ``eye(n)``."""
    known = expressions.complete([_size(ctx, scope, item) for item in node.args])
    if known is None:
        return None
    if node.func == "eye":
        filled = arrays.array(ctx, known * 2, lambda at: _where_equal(ctx, at, ONE, node.span), node.span)
        ones = ir.Const(value=1.0, shape=filled.shape[:1], span=node.span)
        return replace(filled, whole=lambda: _on_diagonal(ones, node.span))
    value = ONE if node.func == "ones" else ZERO
    filled = arrays.array(ctx, known, lambda at: value, node.span)
    return replace(filled, whole=lambda: ir.Const(value=value.value, shape=filled.shape, span=node.span))


def _on_diagonal(vector: ir.Expr, span: Span) -> ir.Expr:
    """The matrix with a vector on its diagonal, as one expression."""
    return ir.Apply(op="diagonal", args=(vector,), shape=vector.shape * 2, span=span)


def _size(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Set | None:
    """The axis of a size: a dim, a set, a number, or a formula of these; None after an error."""
    if isinstance(node, syntax.Binary):
        numbers = literals.range_set(
            ctx,
            scope,
            syntax.Range(low=syntax.Number(value=1.0, text="1", span=node.span), high=node, span=node.span),
        )
        if numbers is None or numbers.high is None:
            return None
        return arrays.numbers_to(ctx, numbers.high, node.span)
    dim = literals.declared_dim(ctx, scope, node)
    if dim is None:
        return None
    return places.members(ctx, places.axis_of(ctx, dim), node.span)


def _where_equal(ctx: Context, at: tuple[ir.Expr, ...], value: ir.Expr, span: Span) -> ir.Expr | None:
    """A value where two indices are equal, and 0 elsewhere."""
    first, second = at
    if isinstance(first, ir.Const) and isinstance(second, ir.Const):
        return value if first.value == second.value else ZERO
    equal = comparisons.compared(ctx, "==", first, second, span)
    if equal is None:
        return None
    indicator = ir.Apply(op="indicator", args=(equal,), span=span)
    return operators.arithmetic(ctx, "*", indicator, value, span)


def _diagonal(ctx: Context, value: ir.Expr, axes: Sequence[ir.Set], span: Span) -> FormulaArray | None:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix."""
    if len(axes) == 2:
        if not _is_square(ctx, value, axes):
            return None

        def diagonal(parts: list[ir.Expr]) -> ir.Expr:
            """The diagonal as one expression."""
            return ir.Apply(op="diagonal_of", args=tuple(parts), shape=parts[0].shape[:1], span=span)

        return arrays.array(
            ctx,
            axes[:1],
            lambda at: arrays.entry_of(ctx, value, (at[0], at[0])),
            span,
            whole=arrays.wholes([value], diagonal),
        )

    def entry(at: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """The entry at a row and a column."""
        own = arrays.entry_of(ctx, value, at[:1])
        if own is None:
            return None
        return _where_equal(ctx, at, own, span)

    whole = arrays.wholes([value], lambda parts: _on_diagonal(parts[0], span))
    return arrays.array(ctx, [axes[0], axes[0]], entry, span, whole=whole)


def _is_square(ctx: Context, value: ir.Expr, axes: Sequence[ir.Set]) -> bool:
    """Whether a matrix has the same rows as columns. Reports an error if not."""
    if shapes.same_set(axes[0], axes[1]):
        return True
    ctx.report(errors.shapes.not_square(shapes.described(ctx, value)))
    return False


def _trace(ctx: Context, value: ir.Expr, axes: Sequence[ir.Set], span: Span) -> ir.Expr | None:
    """The sum of the diagonal."""
    of_inverse = _of_inverse(ctx, value, span)
    if of_inverse is not None:
        return of_inverse
    diagonal = _diagonal(ctx, value, axes, span)
    if diagonal is None:
        return None
    with arrays.elements(ctx, diagonal, diagonal.axes, span) as at:
        body = diagonal.entry(tuple(at))
    if body is None:
        return None
    return ir.Reduce(kind="sum", binders=tuple(element.binder for element in at), body=body, span=span)


def _of_inverse(ctx: Context, value: ir.Expr, span: Span) -> ir.Expr | None:
    """``trace(inv(P))`` of a symmetric P as a function that is convex; None for another value."""
    if not isinstance(value, ir.Apply) or value.op != "inverse":
        return None
    (matrix,) = value.args
    if not symmetry.is_symmetric(ctx, matrix):
        return None
    return ir.Apply(op="trace_inv", args=(matrix,), span=span)


def _smallest_eigenvalue(ctx: Context, value: ir.Expr, axes: Sequence[ir.Set], span: Span) -> ir.Expr | None:
    """The smallest eigenvalue, by the largest one of the negative matrix."""
    matrix = expressions.written_out(ctx, value) if isinstance(value, FormulaArray) else value
    if matrix is None or not _is_square(ctx, value, axes):
        return None
    negative = ir.Apply(op="neg", args=(matrix,), shape=matrix.shape, span=matrix.span)
    largest = ir.Apply(op="lambda_max", args=(negative,), span=span)
    return ir.Apply(op="neg", args=(largest,), span=span)


def _cumulative(ctx: Context, value: ir.Expr, axes: Sequence[ir.Set], span: Span) -> FormulaArray | None:
    """The sums of the entries up to each one."""
    if not _numbered(ctx, value, axes[0]):
        return None

    def entry(at: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """The sum of the entries up to one."""
        with arrays.elements(ctx, value, axes, span) as inner:
            body = arrays.entry_of(ctx, value, inner)
            upto = comparisons.compared(ctx, "<=", inner[0], at[0], span)
        if body is None or upto is None:
            return None
        return ir.Reduce(kind="sum", binders=(inner[0].binder,), body=body, condition=upto, span=span)

    return arrays.array(ctx, axes, entry, span)


def _differences(ctx: Context, value: ir.Expr, axes: Sequence[ir.Set], span: Span) -> FormulaArray | None:
    """The differences of neighbours: ``x[2] - x[1]``, ..."""
    domain = axes[0]
    if not _numbered(ctx, value, domain):
        return None
    assert isinstance(domain, ir.ValueSet) and domain.low is not None and domain.high is not None
    shift = arrays.total(domain.low, ir.Const(value=-1.0, span=span), span)
    length = arrays.total(domain.high, ir.Apply(op="neg", args=(domain.low,), span=span), span)
    left = arrays.numbers_to(ctx, length, span)
    if left is None:
        return None

    def entry(at: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """One difference."""
        here = arrays.total(at[0], shift, span)
        beyond = arrays.total(here, ONE, span)
        ends = [arrays.entry_of(ctx, value, (index,)) for index in (beyond, here)]
        if ends[0] is None or ends[1] is None:
            return None
        return operators.arithmetic(ctx, "-", ends[0], ends[1], span)

    return arrays.array(ctx, [left], entry, span)


def _numbered(ctx: Context, value: ir.Expr, axis: ir.Set) -> bool:
    """Whether an axis counts in steps of 1. Reports an error if not."""
    if isinstance(axis, ir.ValueSet) and axis.low is not None:
        if axis.step is None or places.is_one(axis.step):
            return True
    ctx.report(errors.shapes.axis_without_order(shapes.described(ctx, value), axis.name))
    return False


_MAKERS: dict[str, Callable[[Context, ir.Expr, Sequence[ir.Set], Span], ir.Expr | None]] = {
    "diag": _diagonal,
    "trace": _trace,
    "lambda_min": _smallest_eigenvalue,
    "cumsum": _cumulative,
    "diff": _differences,
}
