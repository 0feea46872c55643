"""``z.x`` and ``v[k]``: columns of rows, entries of arrays, members of families."""

from __future__ import annotations

import math

from fccomodel.core import ir
from fccomodel.language import syntax
from fccomodel.language.check import (
    expressions,
    names,
    shapes,
)
from fccomodel.language.check.context import BrokenSymbol, Context, LetSymbol, Scope, SetFamilySymbol, TableSymbol, listed
from fccomodel.language.check.shapes import describe, show, sort


def field(ctx: Context, scope: Scope, node: syntax.Field) -> ir.Expr | None:
    """``z.x``: a column at a row."""
    if isinstance(node.obj, syntax.Name) and node.obj.id not in scope.locals:
        symbol = names.find(ctx, node.obj.id)
        if isinstance(symbol, TableSymbol):
            ctx.used.add(symbol.name)
            ctx.error(
                "F0311",
                f"`{ctx.text(node.span)}` reads a column of the whole table",
                node.span,
                reason="A column is read at a row, which a reduction draws (`~`) or iterates over (`in`).",
                fix=f"Write `E[z ~ {symbol.name}] ... z.{node.name} ...`.",
            )
            return None
    row = expressions.evaluate(ctx, scope, node.obj)
    if row is None:
        return None
    if sort(ctx, row) != "row":
        ctx.error(
            "F0311",
            f"`{ctx.text(node.obj.span)}` is {describe(ctx, row)}; it has no columns",
            node.span,
            reason="Only a row of a table, bound by `in` or `~`, has columns.",
            fix="Bind a row, `E[z ~ D] ... z.x ...`, or write the name without `." + node.name + "`.",
        )
        return None
    assert isinstance(row, ir.Element) and isinstance(row.binder.domain, ir.RowSet)
    table = ctx.tables[row.binder.domain.table]
    if node.name not in table.columns:
        hint = ctx.suggest(node.name, table.columns)
        ctx.error(
            "F0208",
            f"table `{table.name}` has no column `{node.name}`",
            node.span,
            reason=f"Its columns, declared on line {ctx.line(table.span)}, are {listed(table.columns)}.",
            fix=hint or f"Add `{node.name}: real` to `data {table.name} : table(...)`.",
        )
        return None
    return ir.Column(binder=row.binder, name=node.name, shape=table.columns[node.name].shape, span=node.span)


def index(ctx: Context, scope: Scope, node: syntax.Index) -> ir.Expr | None:
    """``v[i]``, ``A[i, j]``, ``tpr[0, t]``."""
    if isinstance(node.obj, syntax.Name) and node.obj.id not in scope.locals:
        symbol = names.find(ctx, node.obj.id)
        if isinstance(symbol, LetSymbol):
            ctx.used.add(symbol.name)
            return member(ctx, scope, node, symbol)
        if isinstance(symbol, SetFamilySymbol | TableSymbol):
            ctx.used.add(symbol.name)
            ctx.error(
                "F0314",
                f"`{ctx.text(node.span)}` is a set, not a number",
                node.span,
                fix=f"Bind an index over it: `E[z ~ {ctx.text(node.span)}] ...`.",
            )
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
        ctx.error(
            "F0310",
            f"`{ctx.text(node.obj.span)}` is {describe(ctx, base)} and cannot be indexed",
            node.span,
            reason="Indices pick an entry of a vector or matrix, or a member of a `let` family.",
            fix=f"Write `{ctx.text(node.obj.span)}` alone, or declare it with a shape.",
        )
        return None
    return _entry(ctx, scope, node, base)


def _entry(ctx: Context, scope: Scope, node: syntax.Index, base: ir.Expr) -> ir.Item | None:
    """An entry of an array; with fewer indices than axes, the part that they pick: ``A[k]`` is a row."""
    if len(node.items) > len(base.shape) and not _counted(ctx, node, len(base.shape), f"a {show(base.shape)}"):
        return None
    text = ctx.text(node.obj.span)
    places = [
        place(ctx, scope, item, _axis(ctx, dim), text, labels=True) for item, dim in zip(node.items, base.shape, strict=False)
    ]
    if any(p is None for p in places):
        return None
    rest = base.shape[len(places) :]
    return ir.Item(base=base, indices=tuple(p for p in places if p is not None), shape=rest, span=node.span)


def member(ctx: Context, scope: Scope, node: syntax.Index, symbol: LetSymbol) -> ir.Expr | None:
    """One member of a ``let`` family."""
    let = symbol.let
    if not let.binders:
        if let.body.shape and len(node.items) <= len(let.body.shape):
            return _entry(ctx, scope, node, ir.LetRef(let=let, shape=let.body.shape, span=node.obj.span))
        ctx.error(
            "F0310",
            f"`{symbol.name}` is {describe(ctx, let.body)} and has no {len(node.items)}-fold index",
            node.span,
            reason=f"It is declared on line {ctx.line(symbol.span)} without a family.",
            fix=f"Write `{symbol.name}` alone, or declare `let {symbol.name}[k in K] = ...`.",
        )
        return None
    family = f"the family `{symbol.name}[{', '.join(b.name for b in let.binders)}]`"
    if not _counted(ctx, node, len(let.binders), family):
        return None
    places = [place(ctx, scope, item, b.domain, symbol.name) for item, b in zip(node.items, let.binders, strict=True)]
    if any(p is None for p in places):
        return None
    return ir.LetRef(let=let, args=tuple(p for p in places if p is not None), shape=let.body.shape, span=node.span)


def _counted(ctx: Context, node: syntax.Index, wanted: int, what: str) -> bool:
    given = len(node.items)
    if given == wanted:
        return True
    ctx.error(
        "F0307",
        f"`{ctx.text(node.span)}` has {given} {'index' if given == 1 else 'indices'}, and {what} needs {wanted}",
        node.span,
        reason="Every axis has one index; slices are not written.",
        fix=f"Give {wanted} {'index' if wanted == 1 else 'indices'}.",
    )
    return False


def _axis(ctx: Context, dim: ir.Dim) -> ir.Set | ir.Dim:
    """The set that an axis is indexed by, or its size."""
    if isinstance(dim, str):
        symbol = ctx.symbols.get(dim)
        if isinstance(symbol, TableSymbol):
            return symbol.rows
        return ctx.sets.get(dim, dim)
    return dim


def place(
    ctx: Context, scope: Scope, item: syntax.Expr, axis: ir.Set | ir.Dim, base: str = "...", *, labels: bool = False
) -> ir.Element | ir.Const | ir.Column | None:
    """An index of ``base`` as an element of the axis's set, or as a position counted from 0; with ``labels``, a row's label."""
    value = expressions.evaluate(ctx, scope, item)
    if value is None:
        return None
    text = ctx.text(value.span)
    if isinstance(value, ir.Element) and not isinstance(value.binder.domain, ir.VectorSet):
        return value if _fits(ctx, value, value.binder.domain, axis) else None
    if labels and isinstance(value, ir.Column) and not value.shape:
        kind = shapes.column_type(ctx, value)
        if kind is not None and isinstance(kind.domain, ir.LabelSet | ir.ValueSet):
            return value if _fits(ctx, value, kind.domain, axis) else None
    if isinstance(value, ir.Const):
        return _constant_place(ctx, value, axis)
    if isinstance(value, ir.Label):
        return _label_place(ctx, value, axis)
    name = axis.name if isinstance(axis, ir.Set) else str(axis)
    if isinstance(value, ir.Column):
        fix = f"Iterate over `{name}`: `sum[k in {name} | {text} == k] {base}[k]`."
    else:
        fix = f"Use an index bound over `{name}`, or a constant."
    ctx.error(
        "F0308",
        f"`{text}` cannot be an index",
        value.span,
        reason="An index is a name bound by `in`, a constant, or (of arrays) a column of labels.",
        fix=fix,
    )
    return None


def _fits(ctx: Context, value: ir.Element | ir.Column, domain: ir.Set, axis: ir.Set | ir.Dim) -> bool:
    """The axis is indexed by the elements of ``domain``; else an error."""
    if shapes.same_set(domain, axis) if isinstance(axis, ir.Set) else _counts_to(ctx, domain, axis):
        return True
    wanted = f"the set {_quoted(axis.name)}" if isinstance(axis, ir.Set) else f"1 .. {axis}"
    own = axis.name if isinstance(axis, ir.Set) else wanted
    ctx.error(
        "F0308",
        f"`{ctx.text(value.span)}` {'is in' if isinstance(value, ir.Column) else 'ranges over'} {_quoted(domain.name)}, "
        f"and this axis is indexed by {wanted}",
        value.span,
        reason="An index picks an entry by its place in its own set, so the two sets must be the same.",
        fix=f"Declare the column as `{value.name}: {own}`."
        if isinstance(value, ir.Column)
        else f"Bind it as `{value.binder.name} in {own}`.",
    )
    return False


def _counts_to(ctx: Context, domain: ir.Set, dim: ir.Dim) -> bool:
    """The set is 1, 2, ..., dim."""
    if not isinstance(domain, ir.ValueSet):
        return False
    known, size = shapes.members(domain), shapes.size(ctx, dim)
    if known is not None:
        return size is not None and known == tuple(float(k) for k in range(1, size + 1))
    low, step = domain.low, domain.step
    starts = isinstance(low, ir.Const) and low.value == 1 and (step is None or (isinstance(step, ir.Const) and step.value == 1))
    return starts and isinstance(domain.high, ir.Size) and domain.high.dim == dim


def _constant_place(ctx: Context, value: ir.Const, axis: ir.Set | ir.Dim) -> ir.Const | None:
    x = value.value
    if not isinstance(axis, ir.Set):
        size = shapes.size(ctx, axis)
        if x != int(x) or x < 1 or (size is not None and x > size):
            ctx.error(
                "F0309",
                f"there is no entry {x:g}",
                value.span,
                reason=f"Entries are counted from 1 to {axis}.",
                fix=f"Use a whole number from 1 to {axis}.",
            )
            return None
        return ir.Const(value=x - 1, span=value.span)
    if isinstance(axis, ir.ValueSet):
        known = shapes.members(axis)
        if known is None:
            low, step = axis.low, axis.step
            by = 1.0 if step is None else step.value if isinstance(step, ir.Const) else math.nan
            steps = (x - low.value) / by if isinstance(low, ir.Const) else math.nan
            if steps >= -1e-9 and abs(steps - round(steps)) <= 1e-9:
                return ir.Const(value=float(round(steps)), span=value.span)
            reason = (
                f"The set is {axis.name}, whose members depend on parameters or sizes."
                if math.isnan(steps)
                else f"The set is {axis.name}."
            )
        else:
            for k, member_ in enumerate(known):
                if abs(member_ - x) <= 1e-9 * max(1.0, abs(member_)):
                    return ir.Const(value=float(k), span=value.span)
            shown = ", ".join(f"{v:g}" for v in known[:8]) + (", ..." if len(known) > 8 else "")
            reason = f"Its members are {shown}."
        ctx.error("F0309", f"{x:g} is not in {_quoted(axis.name)}", value.span, reason=reason, fix="Use a member of the set.")
        return None
    what = "labels" if isinstance(axis, ir.LabelSet) else "rows"
    ctx.error(
        "F0309",
        f"{x:g} cannot pick one of the {what} of `{axis.name}`",
        value.span,
        reason="Labels are written in quotes." if what == "labels" else "Rows have an identity, and no number in the model.",
        fix=f"Use an index bound over it: `k in {axis.name}`.",
    )
    return None


def _label_place(ctx: Context, value: ir.Label, axis: ir.Set | ir.Dim) -> ir.Const | None:
    if isinstance(axis, ir.LabelSet) and axis.labels is not None:
        if value.text in axis.labels:
            return ir.Const(value=float(axis.labels.index(value.text)), span=value.span)
        ctx.error(
            "F0309",
            f'"{value.text}" is not a label of `{axis.name}`',
            value.span,
            reason=f"Its labels are {listed(axis.labels)}.",
            fix=ctx.suggest(value.text, axis.labels),
        )
    elif isinstance(axis, ir.LabelSet):
        ctx.error(
            "F0309",
            f'the place of "{value.text}" in `{axis.name}` is not known',
            value.span,
            reason=f"The labels of `{axis.name}` come with the data.",
            fix=f'List them in the model, `set {axis.name} = {{"{value.text}", ...}};`, or use an index bound over it.',
        )
    else:
        ctx.error(
            "F0309", f'"{value.text}" is a label, and this axis has none', value.span, fix="Use a number, or a bound index."
        )
    return None


def _quoted(name: str) -> str:
    return f"`{name}`" if name.isidentifier() else name
