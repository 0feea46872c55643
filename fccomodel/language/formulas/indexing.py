"""``z.x`` and ``v[k]``: columns of rows, entries of arrays, members of families."""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import field as field_

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, literals, names, shapes
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    LetSymbol,
    Scope,
    SetFamilySymbol,
    TableSymbol,
)
from fccomodel.language.formulas.shapes import describe, described, show, sort


@expressions.evaluates(syntax.Field)
def field(ctx: Context, scope: Scope, node: syntax.Field) -> ir.Expr | None:
    """``z.x``: a column at a row."""
    if isinstance(node.obj, syntax.Name) and node.obj.id not in scope.locals:
        symbol = names.find(ctx, node.obj.id)
        if isinstance(symbol, TableSymbol):
            ctx.used.add(symbol.name)
            ctx.report(errors.sorts.column_of_whole_table(ctx.quote(node), symbol.name, node.name))
            return None
    row = expressions.evaluate(ctx, scope, node.obj)
    if row is None:
        return None
    if sort(ctx, row) != "row":
        description = described(ctx, row, at=node.obj)
        ctx.report(errors.sorts.no_columns(description, node.name, node.span))
        return None
    assert isinstance(row, ir.Element) and isinstance(row.binder.domain, ir.RowSet)
    table = ctx.tables[row.binder.domain.table]
    if node.name not in table.columns:
        ctx.report(
            errors.names.unknown_column(table.name, node.name, table.columns, ctx.line(table.span), node.span)
        )
        return None
    return ir.Column(binder=row.binder, name=node.name, shape=table.columns[node.name].shape, span=node.span)


@expressions.evaluates(syntax.Index)
def index(ctx: Context, scope: Scope, node: syntax.Index) -> ir.Expr | None:
    """``v[i]``, ``A[i, j]``, ``tpr[0, t]``."""
    if isinstance(node.obj, syntax.Name) and node.obj.id not in scope.locals:
        symbol = names.find(ctx, node.obj.id)
        if isinstance(symbol, LetSymbol):
            ctx.used.add(symbol.name)
            return member(ctx, scope, node, symbol)
        if isinstance(symbol, SetFamilySymbol | TableSymbol):
            ctx.used.add(symbol.name)
            ctx.report(errors.sorts.member_of_family_as_number(ctx.quote(node)))
            return None
        if isinstance(symbol, BrokenSymbol):
            ctx.used.add(symbol.name)
            for item in node.items:
                expressions.evaluate(ctx, scope, item)
            return None
    base = expressions.evaluate(ctx, scope, node.obj)
    if base is None:
        for item in node.items:
            expressions.evaluate(ctx, scope, item)
        return None
    if not base.shape or shapes.is_net_parameters(base):
        ctx.report(errors.indices.not_indexable(ctx.quote(node.obj), describe(ctx, base), node.span))
        return None
    return _entry(ctx, scope, node, base)


def _entry(ctx: Context, scope: Scope, node: syntax.Index, base: ir.Expr) -> ir.Expr | None:
    """An entry of an array; with fewer indices than axes, the part that they pick: ``A[k]`` is a row."""
    if len(node.items) > len(base.shape) and not _counted(
        ctx, node, len(base.shape), f"a {show(base.shape)}"
    ):
        return None
    text, formulas = ctx.text(node.obj.span), Formulas()
    places = [
        place(ctx, scope, item, axis_of(ctx, dim), text, labels=True, formulas=formulas)
        for item, dim in zip(node.items, base.shape, strict=False)
    ]
    if any(p is None for p in places):
        return None
    rest = base.shape[len(places) :]
    return formulas.at(
        ir.Item(base=base, indices=tuple(p for p in places if p is not None), shape=rest, span=node.span)
    )


def member(ctx: Context, scope: Scope, node: syntax.Index, symbol: LetSymbol) -> ir.Expr | None:
    """One member of a ``let`` family."""
    let = symbol.let
    if not let.binders:
        if let.body.shape and len(node.items) <= len(let.body.shape):
            return _entry(ctx, scope, node, ir.LetRef(let=let, shape=let.body.shape, span=node.obj.span))
        what, line = describe(ctx, let.body), ctx.line(symbol.span)
        ctx.report(errors.indices.let_without_family(symbol.name, what, len(node.items), line, node.span))
        return None
    family = f"the family `{symbol.name}[{', '.join(b.name for b in let.binders)}]`"
    if not _counted(ctx, node, len(let.binders), family):
        return None
    formulas = Formulas()
    places = [
        place(ctx, scope, item, b.domain, symbol.name, formulas=formulas)
        for item, b in zip(node.items, let.binders, strict=True)
    ]
    if any(p is None for p in places):
        return None
    return formulas.at(
        ir.LetRef(
            let=let, args=tuple(p for p in places if p is not None), shape=let.body.shape, span=node.span
        )
    )


def _counted(ctx: Context, node: syntax.Index, wanted: int, what: str) -> bool:
    count = len(node.items)
    if count == wanted:
        return True
    ctx.report(errors.indices.wrong_number(ctx.quote(node), count, what, wanted))
    return False


def axis_of(ctx: Context, dim: ir.Dim) -> ir.Set | ir.Dim:
    """The set that an axis is indexed by, or its size."""
    if isinstance(dim, str):
        symbol = ctx.symbols.get(dim)
        if isinstance(symbol, TableSymbol):
            return symbol.rows
        return ctx.sets.get(dim, dim)
    return dim


@dataclass
class Formulas:
    """Indices that are formulas of others, ``v[i + 1]``: elements of their own, with conditions that
    they equal the formulas."""

    binders: list[ir.Binder] = field_(default_factory=list)
    conditions: list[ir.Expr] = field_(default_factory=list)

    def element(self, value: ir.Expr, text: str, numbers: ir.ValueSet) -> ir.Element:
        """Of these numbers the one that a formula gives."""
        binder = ir.Binder(name=text, kind="in", domain=numbers, span=value.span)
        element = ir.Element(binder=binder, span=value.span)
        self.binders.append(binder)
        self.conditions.append(ir.Apply(op="eq", args=(element, value), span=value.span))
        return element

    def at(self, entry: ir.Expr) -> ir.Expr:
        """The one entry that the conditions leave: its mean, which none makes an error."""
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
    formulas: Formulas | None = None,
) -> ir.Element | ir.Const | ir.Column | None:
    """An index of ``base`` as an element of the axis's set, or as a position counted from 0; with
    ``labels``, a row's label; with ``formulas``, an element that they say more of."""
    value = expressions.evaluate(ctx, scope, item)
    if value is None:
        return None
    if isinstance(value, ir.Element) and not isinstance(value.binder.domain, ir.VectorSet):
        if formulas is not None and _part(ctx, value.binder.domain, axis):
            numbers = members(ctx, axis, item.span)
            if isinstance(numbers, ir.ValueSet):
                return formulas.element(value, f"({ctx.text(value.span)})", numbers)
        return value if _fits(ctx, value, value.binder.domain, axis) else None
    if labels and isinstance(value, ir.Column) and not value.shape:
        kind = shapes.column_type(ctx, value)
        if kind is not None and isinstance(kind.domain, ir.LabelSet | ir.ValueSet):
            return value if _fits(ctx, value, kind.domain, axis) else None
    if isinstance(value, ir.Const):
        return _constant_place(ctx, value, axis)
    if isinstance(value, ir.Label):
        return _label_place(ctx, value, axis)
    if (
        formulas is not None
        and _of_numbers(value)
        and isinstance(numbers := members(ctx, axis, item.span), ir.ValueSet)
    ):
        return formulas.element(value, ctx.text(value.span), numbers)
    if isinstance(value, ir.Column):
        ctx.report(errors.indices.column_as_index(ctx.quote(value), axis, base))
    else:
        ctx.report(errors.indices.not_an_index(ctx.quote(value), axis))
    return None


def _of_numbers(value: ir.Expr) -> bool:
    """A formula of index numbers, sizes and constants."""
    match value:
        case ir.Const() | ir.Size():
            return True
        case ir.Element(binder=binder):
            return isinstance(binder.domain, ir.ValueSet)
        case ir.Apply(op="add" | "sub" | "mul" | "neg", args=args):
            return all(map(_of_numbers, args))
    return False


def members(ctx: Context, axis: ir.Set | ir.Dim, span: Span) -> ir.Set | None:
    """What an axis is indexed by: its set, or the numbers from 1 to its size."""
    if isinstance(axis, ir.Set):
        return axis
    one = syntax.Number(value=1.0, text="1", span=span)
    size = (
        syntax.Name(id=axis, span=span)
        if isinstance(axis, str)
        else replace(one, value=float(axis), text=str(axis))
    )
    numbers = literals.range_set(ctx, Scope(), syntax.Range(low=one, high=size, span=span))
    if numbers is None:
        return None
    return replace(numbers, name=str(axis))


def _fits(ctx: Context, value: ir.Element | ir.Column, domain: ir.Set, axis: ir.Set | ir.Dim) -> bool:
    """The axis is indexed by the elements of ``domain``; else an error."""
    if _alike(ctx, domain, axis):
        return True
    if isinstance(value, ir.Column):
        ctx.report(errors.indices.column_of_another_set(ctx.quote(value), str(value.name), domain, axis))
    else:
        ctx.report(errors.indices.index_of_another_set(ctx.quote(value), value.binder.name, domain, axis))
    return False


def _alike(ctx: Context, domain: ir.Set, axis: ir.Set | ir.Dim) -> bool:
    """The axis is indexed by the elements of ``domain``."""
    if isinstance(axis, ir.Set):
        return shapes.same_set(domain, axis)
    return _counts_to(ctx, domain, axis)


def _part(ctx: Context, domain: ir.Set, axis: ir.Set | ir.Dim) -> bool:
    """Numbers that pick entries by what they are, ``1 .. n - 1`` of ``1 .. n``: not those of another
    ``dim``, nor a declared set in place of another, which are rather mistaken for the axis's own."""
    if not isinstance(domain, ir.ValueSet) or _alike(ctx, domain, axis):
        return False
    if isinstance(domain.high, ir.Size) and _counts_to(ctx, domain, domain.high.dim):
        return False
    return not isinstance(axis, ir.Set) or domain.name not in ctx.sets


def _counts_to(ctx: Context, domain: ir.Set, dim: ir.Dim) -> bool:
    """The set is 1, 2, ..., dim."""
    if not isinstance(domain, ir.ValueSet):
        return False
    members, size = shapes.members(domain), shapes.size(ctx, dim)
    if members is not None:
        return size is not None and members == tuple(float(k) for k in range(1, size + 1))
    low, step = domain.low, domain.step
    starts = (
        isinstance(low, ir.Const)
        and low.value == 1
        and (step is None or (isinstance(step, ir.Const) and step.value == 1))
    )
    return starts and isinstance(domain.high, ir.Size) and domain.high.dim == dim


def _constant_place(ctx: Context, value: ir.Const, axis: ir.Set | ir.Dim) -> ir.Const | None:
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
    """The place of a number among listed ones, or among the steps of a range whose high end is not known."""
    x, numbers = value.value, shapes.members(axis)
    low, step = axis.low, axis.step if axis.step is not None else ir.Const(value=1.0, span=value.span)
    if numbers is not None:
        place = next(
            (float(k) for k, member in enumerate(numbers) if abs(member - x) <= 1e-9 * max(1.0, abs(member))),
            None,
        )
        error = errors.indices.no_number(x, axis, value.span, numbers)
    elif isinstance(low, ir.Const) and isinstance(step, ir.Const):
        steps = (x - low.value) / step.value
        if steps >= -1e-9 and abs(steps - round(steps)) <= 1e-9:
            place = float(round(steps))
        else:
            place = None
        error = errors.indices.no_step_of_range(x, axis, value.span, low.value, step.value)
    else:
        place, error = None, errors.indices.number_without_place(x, axis, value.span)
    if place is None:
        ctx.report(error)
        return None
    return ir.Const(value=place, span=value.span)


def _label_place(ctx: Context, value: ir.Label, axis: ir.Set | ir.Dim) -> ir.Const | None:
    if isinstance(axis, ir.LabelSet) and axis.labels is not None:
        if value.text in axis.labels:
            return ir.Const(value=float(axis.labels.index(value.text)), span=value.span)
        ctx.report(errors.indices.no_label(value.text, axis.name, axis.labels, value.span))
    elif isinstance(axis, ir.LabelSet):
        ctx.report(errors.indices.label_without_place(value.text, axis.name, value.span))
    else:
        ctx.report(errors.indices.label_for_number(value.text, value.span))
    return None
