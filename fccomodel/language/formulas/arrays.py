"""Arrays by formula: their axes and their entries.

An array by formula has no node of its own in a problem. What takes one asks for its entries: a function
over entries becomes a reduction, an operator works entry by entry, a constraint becomes a family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, literals, names, places, shapes
from fccomodel.language.formulas.context import Context, Entry, FormulaArray, LetSymbol, Scope, Whole


# ------------------------------------------------------------------------------------------- making
def array(
    ctx: Context,
    axes: Sequence[ir.Set],
    entry: Entry,
    span: Span,
    named: Sequence[str] = (),
    whole: Whole | None = None,
) -> FormulaArray:
    """The array with these axes and entries.

    named  names for the indices of the first axes, for what the user reads
    whole  makes the same array as one expression; None if nothing does
    """
    shape = tuple(_dim(ctx, axis) for axis in axes)
    return FormulaArray(
        axes=tuple(axes), entry=entry, named=tuple(named), shape=shape, span=span, whole=whole
    )


def wholes(values: Sequence[ir.Expr], build: Callable[[list[ir.Expr]], ir.Expr | None]) -> Whole | None:
    """Makes what ``build`` makes of some values as whole arrays; None if one of them has only entries."""
    if any(isinstance(value, FormulaArray) and value.whole is None for value in values):
        return None

    def whole() -> ir.Expr | None:
        """The array as one expression."""
        parts = [
            value.whole() if isinstance(value, FormulaArray) and value.whole else value for value in values
        ]
        known = expressions.complete(parts)
        if known is None:
            return None
        return build(known)

    return whole


def _dim(ctx: Context, axis: ir.Set) -> ir.Dim:
    """The size of an axis: a number, a dim, or the name of a set."""
    numbers = shapes.members(axis)
    if axis.name in ctx.sets or numbers is None:
        if isinstance(axis, ir.ValueSet) and isinstance(axis.high, ir.Size) and places.counts_from_one(axis):
            return axis.high.dim
        return axis.name
    return len(numbers)


def of_family(ctx: Context, scope: Scope, node: syntax.Expr) -> FormulaArray | None:
    """A family of quantities as an array, or None for another formula."""
    if not isinstance(node, syntax.Name) or node.id in scope.locals:
        return None
    symbol = names.find(ctx, node.id)
    if not isinstance(symbol, LetSymbol) or not symbol.let.binders:
        return None
    ctx.used.add(node.id)
    return family(ctx, symbol.let, node.span)


def family(ctx: Context, let: ir.Let, span: Span) -> FormulaArray | None:
    """The members of a family, and their entries if they are arrays; None if an axis has no one size."""
    domains = [binder.domain for binder in let.binders]
    if any(ir.free_binders(end) for domain in domains for end in ends(domain)):
        return None
    inner = [places.members(ctx, places.axis_of(ctx, dim), span) for dim in let.body.shape]
    if any(axis is None for axis in inner):
        return None

    def entry(indices: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """The entry at some indices."""
        count = len(domains)
        member = places.member_at(ctx, let, indices[:count], span)
        if member is None or not let.body.shape:
            return member
        return places.entry_at(ctx, member, indices[count:], span)

    return array(ctx, [*domains, *filter(None, inner)], entry, span, [b.name for b in let.binders])


def ends(domain: ir.Set) -> list[ir.Expr]:
    """The formulas that decide a set of numbers."""
    if not isinstance(domain, ir.ValueSet):
        return []
    return [end for end in (domain.low, domain.high, domain.step) if end is not None]


def operand(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Expr | None:
    """The value of a formula that may be an array by formula, a whole family among them.

    None after an error.
    """
    whole = of_family(ctx, scope, node)
    if whole is not None:
        return whole
    return expressions.loose(ctx, scope, node)


# ---------------------------------------------------------------------------------------- reading
def axes_of(ctx: Context, value: ir.Expr) -> list[ir.Set]:
    """The sets that index the axes of a value."""
    if isinstance(value, FormulaArray):
        return list(value.axes)
    axes = [places.members(ctx, places.axis_of(ctx, dim), value.span) for dim in value.shape]
    return [axis for axis in axes if axis is not None]


def entry_of(ctx: Context, value: ir.Expr, indices: Sequence[ir.Expr]) -> ir.Expr | None:
    """The entry of an array at indices as they would stand in brackets; a scalar is its own entry."""
    if isinstance(value, FormulaArray):
        return value.entry(tuple(indices))
    if not value.shape:
        return value
    return places.entry_at(ctx, value, tuple(indices), value.span)


@contextmanager
def elements(ctx: Context, like: ir.Expr, axes: Sequence[ir.Set], span: Span) -> Iterator[list[ir.Element]]:
    """New elements of some axes, with the names of an array's own indices where these are free."""
    named = like.named if isinstance(like, FormulaArray) else ()
    taken = {*ctx.symbols, *ctx.open_axes, *names.written_binders(ctx)}
    own = [name for name in named if name not in ctx.open_axes]
    chosen = own[: len(axes)] if len(own) == len(named) else []
    spare = names.spare_indices({*taken, *chosen})
    chosen += [next(spare) for _ in axes[len(chosen) :]]
    before = len(ctx.open_axes)
    ctx.open_axes += chosen
    try:
        yield [
            ir.Element(binder=ir.Binder(name=name, kind="in", domain=axis, span=span), span=span)
            for name, axis in zip(chosen, axes, strict=True)
        ]
    finally:
        del ctx.open_axes[before:]


def same_axes(a: Sequence[ir.Set], b: Sequence[ir.Set]) -> bool:
    """Whether two arrays have the same axes."""
    return len(a) == len(b) and all(map(shapes.same_set, a, b))


# ---------------------------------------------------------------------------------- entry by entry
def entrywise(
    ctx: Context,
    values: Sequence[ir.Expr],
    build: Callable[[list[ir.Expr]], ir.Expr | None],
    op: str,
    span: Span,
) -> FormulaArray | None:
    """An array whose entries ``build`` makes from those of some values; scalars stand for every entry.

    op  what joins them, for the error if their axes differ
    """
    whole = max(values, key=lambda value: len(value.shape))
    axes = axes_of(ctx, whole)
    for value in values:
        if value.shape and not same_axes(axes_of(ctx, value), axes):
            sides = shapes.described(ctx, whole, 30), shapes.described(ctx, value, 30)
            counts = len(whole.shape), len(value.shape)
            ctx.report(errors.shapes.operands(op, *sides, span, counts))
            return None

    def entry(indices: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """The entry at some indices."""
        parts = [entry_of(ctx, value, indices) for value in values]
        present = [part for part in parts if part is not None]
        if len(present) < len(parts):
            return None
        return build(present)

    named = next((value.named for value in values if isinstance(value, FormulaArray) and value.named), ())
    return array(ctx, axes, entry, span, named, wholes(values, build))


# ------------------------------------------------------------------------------------------ lengths
def numbers_to(ctx: Context, high: ir.Expr, span: Span) -> ir.Set | None:
    """The set 1, 2, ..., high, in one form for equal numbers; None after an error."""
    linear = factors(high)
    if linear is None:
        end = high
    else:
        end = _canonical(linear, span)
    if isinstance(end, ir.Size):
        return places.members(ctx, places.axis_of(ctx, end.dim), span)
    if isinstance(end, ir.Const) and end.value < 1:
        ctx.report(errors.indices.empty_slice(ctx.quote(span)))
        return None
    one = ir.Const(value=1.0, span=NOWHERE)
    name = ctx.text(span)
    if isinstance(end, ir.Const):
        name = f"1 .. {end.value:g}"
    return ir.ValueSet(name=name, low=one, high=end)


def factors(value: ir.Expr) -> dict[ir.Dim | None, float] | None:
    """The factor of each size in a formula, and the constant under None; None if it is not linear."""
    match value:
        case ir.Const():
            return {None: value.value}
        case ir.Size():
            return {value.dim: 1.0}
        case ir.Apply(op="neg", args=(only,)):
            return _scaled(factors(only), -1.0)
        case ir.Apply(op="add" | "sub", args=(left, right)):
            first, second = factors(left), factors(right)
            if value.op == "sub":
                second = _scaled(second, -1.0)
            if first is None or second is None:
                return None
            return {key: first.get(key, 0.0) + second.get(key, 0.0) for key in {**first, **second}}
        case ir.Apply(op="mul", args=(ir.Const(value=factor), other)):
            return _scaled(factors(other), factor)
    return None


def _scaled(linear: dict[ir.Dim | None, float] | None, factor: float) -> dict[ir.Dim | None, float] | None:
    if linear is None:
        return None
    return {key: factor * number for key, number in linear.items()}


def _canonical(linear: dict[ir.Dim | None, float], span: Span) -> ir.Expr:
    """A linear formula of sizes: the sizes in order, then the constant."""
    total: ir.Expr | None = None
    for dim in sorted((key for key, factor in linear.items() if key is not None and factor), key=str):
        term: ir.Expr = ir.Size(dim=dim, span=span)
        if linear[dim] != 1:
            term = ir.Apply(op="mul", args=(ir.Const(value=linear[dim], span=span), term), span=span)
        total = term if total is None else ir.Apply(op="add", args=(total, term), span=span)
    constant = linear.get(None, 0.0)
    if total is None:
        return ir.Const(value=constant, span=span)
    if constant == 0:
        return total
    op = "add" if constant > 0 else "sub"
    return ir.Apply(op=op, args=(total, ir.Const(value=abs(constant), span=span)), span=span)


# ------------------------------------------------------------------------------------------- slices
def is_slice(item: syntax.Expr) -> bool:
    """Whether an index stands for several entries: ``2 .. n``, or ``..`` for all."""
    return isinstance(item, syntax.Range | syntax.Whole)


def indexed(ctx: Context, scope: Scope, node: syntax.Index, base: ir.Expr) -> ir.Expr | None:
    """``A[i, ..]``, ``x[2 .. n]``: the part of an array at some indices; None after an error.

    The entries of ``x[2 .. n]`` are counted from 1.
    """
    axes: list[ir.Set] = []
    picks: list[Pick] = []
    whole = axes_of(ctx, base)
    for item, axis in zip(node.items, whole, strict=False):
        part = _part(ctx, scope, item, axis)
        if part is None:
            return None
        axes += part.axes
        picks.append(part.pick)
    rest = whole[len(picks) :]

    def entry(indices: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """The entry at some indices."""
        left, formulas = iter(indices), places.IndexFormulas()
        value = entry_of(ctx, base, [*[pick(left, formulas) for pick in picks], *left])
        if value is None:
            return None
        return formulas.at(value)

    axes += rest
    if not axes:
        return entry(())
    return checked(ctx, array(ctx, axes, entry, node.span))


def checked(ctx: Context, value: FormulaArray) -> FormulaArray | None:
    """An array whose entries have no error, or None after an error."""
    with elements(ctx, value, value.axes, value.span) as at:
        if value.entry(tuple(at)) is None:
            return None
    return value


#: From the indices on the axes that are left, and the place for indices that are formulas, to the index
#: on the whole axis.
Pick = Callable[[Iterator[ir.Expr], places.IndexFormulas], ir.Expr]


@dataclass(frozen=True, kw_only=True)
class IndexedAxis:
    """An axis after an index: the axis that is left, if any, and the index on the whole axis.

    axes  the axis that is left, if there is one
    pick  the index on the whole axis
    """

    axes: tuple[ir.Set, ...]
    pick: Pick


def _part(ctx: Context, scope: Scope, item: syntax.Expr, axis: ir.Set) -> IndexedAxis | None:
    """An axis after one index, or None after an error."""
    if isinstance(item, syntax.Whole):
        return IndexedAxis(axes=(axis,), pick=lambda left, _: next(left))
    if not isinstance(item, syntax.Range):
        value = expressions.evaluate(ctx, scope, item)
        if value is None or _on_axis(ctx, value, axis, places.IndexFormulas()) is None:
            return None
        return IndexedAxis(axes=(), pick=lambda _, formulas: _on_axis(ctx, value, axis, formulas) or value)
    if item.step is not None:
        ctx.report(errors.indices.slice_with_step(ctx.quote(item)))
        return None
    numbers = literals.range_set(ctx, scope, item)
    if numbers is None or numbers.low is None or numbers.high is None:
        return None
    offset = total(numbers.low, ir.Const(value=-1.0, span=item.span), item.span)
    negative = ir.Apply(op="neg", args=(offset,), span=item.span)
    left = numbers_to(ctx, total(numbers.high, negative, item.span), item.span)
    if left is None:
        return None
    return IndexedAxis(axes=(left,), pick=lambda indices, _: total(next(indices), offset, item.span))


def _on_axis(ctx: Context, value: ir.Expr, axis: ir.Set, formulas: places.IndexFormulas) -> ir.Expr | None:
    """An index as it stands in brackets, on an axis that has it; None after an error."""
    place = places.place_of(ctx, value, axis, value.span, labels=True, formulas=formulas)
    if isinstance(place, ir.Const):
        return value
    return place


def total(left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr:
    """A sum, in its shortest form."""
    linear = factors(ir.Apply(op="add", args=(left, right), span=span))
    if linear is not None:
        return _canonical(linear, span)
    if isinstance(right, ir.Const) and right.value == 0:
        return left
    return ir.Apply(op="add", args=(left, right), span=span)


# ----------------------------------------------------------------------------------------- products
def product(ctx: Context, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    """``A @ B`` entry by entry if one factor is an array by formula; None after an error."""
    first, second = axes_of(ctx, left), axes_of(ctx, right)
    fits = 1 <= len(first) <= 2 and 1 <= len(second) <= 2 and shapes.same_set(first[-1], second[0])
    if not fits:
        sides = shapes.described(ctx, left, 30), shapes.described(ctx, right, 30)
        ctx.report(errors.shapes.matrix_product(*sides, span, with_scalar=not first or not second))
        return None
    rows = len(first) - 1

    def entry(indices: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """The sum over the inner axis at some indices."""
        with elements(ctx, left, first[-1:], span) as inner:
            factors = expressions.complete(
                [
                    entry_of(ctx, left, (*indices[:rows], *inner)),
                    entry_of(ctx, right, (*inner, *indices[rows:])),
                ]
            )
            if factors is None:
                return None
            body = ir.Apply(op="mul", args=tuple(factors), span=span)
            return ir.Reduce(kind="sum", binders=tuple(at.binder for at in inner), body=body, span=span)

    outer = [*first[:-1], *second[1:]]
    if not outer:
        return entry(())

    def multiplied(parts: list[ir.Expr]) -> ir.Expr:
        """The product as one expression."""
        shape = (*parts[0].shape[:-1], *parts[1].shape[1:])
        return ir.Apply(op="matmul", args=tuple(parts), shape=shape, span=span)

    return array(ctx, outer, entry, span, whole=wholes([left, right], multiplied))
