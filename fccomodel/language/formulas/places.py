"""The places that indices name: entries of arrays, members of families."""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import field as field_

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, literals, shapes
from fccomodel.language.formulas.context import Context, Recursion, Scope, TableSymbol


def entry_at(
    ctx: Context, base: ir.Expr, indices: tuple[ir.Expr, ...], span: Span, text: str = "..."
) -> ir.Expr | None:
    """The entry of an array of the problem, or a part of it, at indices as they stand in brackets."""
    formulas = IndexFormulas()
    places = expressions.complete(
        [
            place_of(ctx, value, axis_of(ctx, dim), value.span, text, labels=True, formulas=formulas)
            for value, dim in zip(indices, base.shape, strict=False)
        ]
    )
    if places is None:
        return None
    written = _written(base, places)
    if written is not None:
        return written
    rest = base.shape[len(places) :]
    return formulas.at(ir.Item(base=base, indices=tuple(places), shape=rest, span=span))


def _written(base: ir.Expr, places: list) -> ir.Expr | None:
    """The entry at a place of a vector that the text writes out, or None."""
    if not isinstance(base, ir.Apply) or base.op != "concat" or any(arg.shape for arg in base.args):
        return None
    place = places[0]
    if isinstance(place, ir.Const) and place.value < len(base.args):
        return base.args[int(place.value)]
    return None


def member_at(ctx: Context, let: ir.Let, indices: tuple[ir.Expr, ...], span: Span) -> ir.Expr | None:
    """The member of a family at indices as they stand in brackets; one may be the label of a row."""
    recursion = ctx.recursions.get(let.name)
    if recursion is not None:
        if not _is_known(ctx, recursion, indices, span):
            return None
        let, indices = _of_step(recursion, let, indices)
    formulas = IndexFormulas()
    places = expressions.complete(
        [
            place_of(ctx, value, binder.domain, value.span, let.name, labels=True, formulas=formulas)
            for value, binder in zip(indices, let.binders, strict=True)
        ]
    )
    if places is None:
        return None
    args = [
        formulas.element(place, ctx.text(place.span), binder.domain)
        if isinstance(place, ir.Column)
        else place
        for place, binder in zip(places, let.binders, strict=True)
    ]
    return formulas.at(ir.LetRef(let=let, args=tuple(args), shape=let.body.shape, span=span))


def _is_known(ctx: Context, recursion: Recursion, indices: tuple[ir.Expr, ...], span: Span) -> bool:
    """Whether a member of a recursion is known in the step that is being made. Reports an error if not."""
    now, index = recursion.next_number, indices[recursion.place]
    if now is None:
        return True
    written, counter = ctx.quote(span), recursion.counter.name
    if not isinstance(index, ir.Const):
        ctx.report(errors.recursions.any_step(recursion.name, written, counter))
        return False
    if index.value not in recursion.steps:
        ctx.report(errors.recursions.no_such_step(recursion.name, written, counter, index.value, now))
        return False
    return True


def _of_step(
    recursion: Recursion, let: ir.Let, indices: tuple[ir.Expr, ...]
) -> tuple[ir.Let, tuple[ir.Expr, ...]]:
    """The quantity of one step with the other indices if the index that counts is a number."""
    place = recursion.place
    index = indices[place]
    if not isinstance(index, ir.Const) or index.value not in recursion.steps:
        return let, indices
    return recursion.steps[index.value], indices[:place] + indices[place + 1 :]


def axis_of(ctx: Context, dim: ir.Dim) -> ir.Set | ir.Dim:
    """The set that an axis is indexed by, or its size."""
    if isinstance(dim, str):
        symbol = ctx.symbols.get(dim)
        if isinstance(symbol, TableSymbol):
            return symbol.rows
        return ctx.sets.get(dim, dim)
    return dim


@dataclass
class IndexFormulas:
    """Indices that are formulas, as in ``v[i + 1]``.

    Each becomes an element of its own under the condition that it equals the formula.
    """

    binders: list[ir.Binder] = field_(default_factory=list)
    conditions: list[ir.Expr] = field_(default_factory=list)

    def element(self, value: ir.Expr, text: str, numbers: ir.Set) -> ir.Element:
        """The element of ``numbers`` that equals a formula, or a row's label."""
        binder = ir.Binder(name=text, kind="in", domain=numbers, span=value.span)
        element = ir.Element(binder=binder, span=value.span)
        self.binders.append(binder)
        self.conditions.append(ir.Apply(op="eq", args=(element, value), span=value.span))
        return element

    def at(self, entry: ir.Expr) -> ir.Expr:
        """The entry at the elements that the conditions leave: a mean over one, an error without any."""
        if not self.binders:
            return entry
        condition = conjunction(self.conditions)
        return ir.Reduce(
            kind="mean",
            binders=tuple(self.binders),
            body=entry,
            condition=condition,
            shape=entry.shape,
            span=entry.span,
        )


def place(
    ctx: Context,
    scope: Scope,
    item: syntax.Expr,
    axis: ir.Set | ir.Dim,
    base: str = "...",
    *,
    labels: bool = False,
    formulas: IndexFormulas | None = None,
) -> ir.Element | ir.Const | ir.Column | None:
    """An index of ``base``: an element of the axis's set, or a position counted from 0; None after an error.

    labels    whether a column may be the index: the label of a row
    formulas  takes the indices that are formulas of others; None: there may be none
    """
    value = expressions.evaluate(ctx, scope, item)
    if value is None:
        return None
    return place_of(ctx, value, axis, item.span, base, labels=labels, formulas=formulas)


def place_of(
    ctx: Context,
    value: ir.Expr,
    axis: ir.Set | ir.Dim,
    span: Span,
    base: str = "...",
    *,
    labels: bool = False,
    formulas: IndexFormulas | None = None,
) -> ir.Element | ir.Const | ir.Column | None:
    """The place on an axis of the value of an index; see ``place``."""
    if isinstance(value, ir.Element) and not isinstance(value.binder.domain, ir.VectorSet):
        return _element_place(ctx, value, axis, span, formulas)
    if labels and isinstance(value, ir.Column) and not value.shape:
        kind = shapes.column_type(ctx, value)
        if kind is not None and isinstance(kind.domain, ir.LabelSet | ir.ValueSet):
            if _fits(ctx, value, kind.domain, axis):
                return value
            return None
    if isinstance(value, ir.Const):
        return _constant_place(ctx, value, axis)
    if isinstance(value, ir.Label):
        return _label_place(ctx, value, axis)
    if formulas is not None and _of_numbers(value):
        numbers = members(ctx, axis, span)
        if isinstance(numbers, ir.ValueSet):
            return formulas.element(value, _text(ctx, value), numbers)
    if isinstance(value, ir.Column):
        ctx.report(errors.indices.column_as_index(ctx.quote(value), axis, base))
    else:
        ctx.report(errors.indices.not_an_index(ctx.quote(value), axis))
    return None


def _element_place(
    ctx: Context, value: ir.Element, axis: ir.Set | ir.Dim, span: Span, formulas: IndexFormulas | None
) -> ir.Element | None:
    """An element as an index: of the axis's own set, or of a part of its numbers."""
    if formulas is not None and _is_part(ctx, value.binder.domain, axis):
        numbers = members(ctx, axis, span)
        if isinstance(numbers, ir.ValueSet):
            return formulas.element(value, f"({_text(ctx, value)})", numbers)
    if _fits(ctx, value, value.binder.domain, axis):
        return value
    return None


def _text(ctx: Context, value: ir.Expr) -> str:
    """A formula of indices as the user wrote it, or as it reads if the checks made it."""
    elements = [node for node in ir.walk(value) if isinstance(node, ir.Element)]
    if all(ctx.text(node.span) == node.binder.name for node in elements):
        return ctx.text(value.span)
    return _as_read(ctx, value)


def _as_read(ctx: Context, value: ir.Expr) -> str:
    """A formula of indices, sizes and numbers as text."""
    match value:
        case ir.Const():
            return f"{value.value:g}"
        case ir.Size():
            return str(value.dim)
        case ir.Element():
            return value.binder.name
        case ir.Apply(op="add" | "sub", args=(left, right)):
            sign = "+" if value.op == "add" else "-"
            return f"{_as_read(ctx, left)} {sign} {_as_read(ctx, right)}"
    return ctx.text(value.span)


def _of_numbers(value: ir.Expr) -> bool:
    """Whether a formula is made of index numbers, sizes and constants."""
    match value:
        case ir.Const() | ir.Size():
            return True
        case ir.Element(binder=binder):
            return isinstance(binder.domain, ir.ValueSet)
        case ir.Apply(op="add" | "sub" | "mul" | "neg", args=args):
            return all(map(_of_numbers, args))
    return False


def members(ctx: Context, axis: ir.Set | ir.Dim, span: Span) -> ir.Set | None:
    """The set that an axis is indexed by, or the numbers from 1 to its size; None after an error."""
    if isinstance(axis, ir.Set):
        return axis
    first = syntax.Number(value=1.0, text="1", span=span)
    size: syntax.Expr
    if isinstance(axis, str):
        size = syntax.Name(id=axis, span=span)
    else:
        size = syntax.Number(value=float(axis), text=str(axis), span=span)
    numbers = literals.range_set(ctx, Scope(), syntax.Range(low=first, high=size, span=span))
    if numbers is None:
        return None
    return replace(numbers, name=str(axis))


def _fits(ctx: Context, value: ir.Element | ir.Column, domain: ir.Set, axis: ir.Set | ir.Dim) -> bool:
    """Whether the axis is indexed by the elements of ``domain``. Reports an error if not."""
    if _alike(ctx, domain, axis):
        return True
    if isinstance(value, ir.Column):
        ctx.report(errors.indices.column_of_another_set(ctx.quote(value), str(value.name), domain, axis))
    else:
        ctx.report(errors.indices.index_of_another_set(ctx.quote(value), value.binder.name, domain, axis))
    return False


def _alike(ctx: Context, domain: ir.Set, axis: ir.Set | ir.Dim) -> bool:
    """Whether the axis is indexed by the elements of ``domain``."""
    if isinstance(axis, ir.Set):
        return shapes.same_set(domain, axis)
    return _counts_to(ctx, domain, axis)


def _is_part(ctx: Context, domain: ir.Set, axis: ir.Set | ir.Dim) -> bool:
    """Whether numbers pick entries of an axis by their values, as ``1 .. n - 1`` of ``1 .. n``.

    The numbers of another ``dim``, or of another declared set, are rather a mistake.
    """
    if not isinstance(domain, ir.ValueSet) or _alike(ctx, domain, axis):
        return False
    if isinstance(domain.high, ir.Size) and _counts_to(ctx, domain, domain.high.dim):
        return False
    return not isinstance(axis, ir.Set) or domain.name not in ctx.sets


def _counts_to(ctx: Context, domain: ir.Set, dim: ir.Dim) -> bool:
    """Whether the set is 1, 2, ..., dim."""
    if not isinstance(domain, ir.ValueSet):
        return False
    numbers, size = shapes.members(domain), shapes.size(ctx, dim)
    if numbers is not None:
        return size is not None and numbers == tuple(float(k) for k in range(1, size + 1))
    return counts_from_one(domain) and isinstance(domain.high, ir.Size) and domain.high.dim == dim


def counts_from_one(domain: ir.ValueSet) -> bool:
    """Whether a range begins at 1 and has steps of 1."""
    return is_one(domain.low) and (domain.step is None or is_one(domain.step))


def is_one(value: ir.Expr | None) -> bool:
    """Whether a formula is the number 1."""
    return isinstance(value, ir.Const) and value.value == 1


def _constant_place(ctx: Context, value: ir.Const, axis: ir.Set | ir.Dim) -> ir.Const | None:
    """The place of a number on an axis, counted from 0; None after an error."""
    x = value.value
    if not isinstance(axis, ir.Set):
        size = shapes.size(ctx, axis)
        if x != int(x) or x < 1 or (size is not None and x > size):
            ctx.report(errors.indices.no_entry(x, str(axis), value.span))
            return None
        return ir.Const(value=x - 1, span=value.span)
    if isinstance(axis, ir.ValueSet):
        return _number_place(ctx, value, axis)
    if isinstance(axis, ir.LabelSet):
        report = errors.indices.number_for_label
    else:
        report = errors.indices.number_for_row
    ctx.report(report(x, axis.name, value.span))
    return None


def _number_place(ctx: Context, value: ir.Const, axis: ir.ValueSet) -> ir.Const | None:
    """The place of a number in a set of numbers, counted from 0; None after an error.

    The numbers are listed, or the steps of a range whose high end may not be known.
    """
    number, numbers = value.value, shapes.members(axis)
    if numbers is not None:
        place = shapes.place_among(numbers, number)
        if place is None:
            ctx.report(errors.indices.no_number(number, axis, value.span, numbers))
            return None
        return ir.Const(value=float(place), span=value.span)
    low = axis.low.value if isinstance(axis.low, ir.Const) else None
    step: float | None = 1.0
    if axis.step is not None:
        step = axis.step.value if isinstance(axis.step, ir.Const) else None
    if low is None or step is None:
        ctx.report(errors.indices.number_without_place(number, axis, value.span))
        return None
    steps = (number - low) / step
    if steps < -shapes.SAME_MEMBER or abs(steps - round(steps)) > shapes.SAME_MEMBER:
        ctx.report(errors.indices.no_step_of_range(number, axis, value.span, low, step))
        return None
    return ir.Const(value=float(round(steps)), span=value.span)


def _label_place(ctx: Context, value: ir.Label, axis: ir.Set | ir.Dim) -> ir.Const | None:
    """The place of a label on an axis, counted from 0; None after an error."""
    if isinstance(axis, ir.LabelSet) and axis.labels is not None:
        if value.text in axis.labels:
            return ir.Const(value=float(axis.labels.index(value.text)), span=value.span)
        ctx.report(errors.indices.no_label(value.text, axis.name, axis.labels, value.span))
    elif isinstance(axis, ir.LabelSet):
        ctx.report(errors.indices.label_without_place(value.text, axis.name, value.span))
    else:
        ctx.report(errors.indices.label_for_number(value.text, value.span))
    return None
