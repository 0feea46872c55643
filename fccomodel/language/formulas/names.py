"""The values of names in formulas, and errors about unknown names."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator

from fccomodel.core import ir
from fccomodel.core.diagnostics import nearest
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions
from fccomodel.language.formulas.context import (
    ArraySymbol,
    BrokenSymbol,
    ConstSymbol,
    Context,
    DefSymbol,
    DimSymbol,
    IndexSymbol,
    LetSymbol,
    NetSymbol,
    NumberSymbol,
    Scope,
    SetFamilySymbol,
    SetSymbol,
    Symbol,
    TableSymbol,
)
from fccomodel.language.rewriting import walk

#: Numbers that have a name, unless the model gives the name another meaning.
CONSTANTS = {"pi": math.pi}
#: Names of indices that the user does not name.
INDEX_NAMES = (*"ijkl", *(f"i{k}" for k in range(100)))


@expressions.evaluates(syntax.Name)
def resolve(ctx: Context, scope: Scope, node: syntax.Name) -> ir.Expr | None:
    """The value of a name in a formula, or None after an error."""
    name, span = node.id, node.span
    if name in scope.locals:
        value = scope.locals[name]
        if isinstance(value, ir.Binder):
            return element(value, span)
        return value
    symbol = find(ctx, name)
    if symbol is None and name in CONSTANTS:
        return ir.Const(value=CONSTANTS[name], span=span)
    if symbol is None:
        split = split_subscript(ctx, scope, name)
        if split is not None:
            return subscripted(ctx, scope, node, *split)
        unknown(ctx, scope, name, span)
        return None
    ctx.used.add(name)
    return _value(ctx, scope, node, symbol)


def _value(ctx: Context, scope: Scope, node: syntax.Name, symbol: Symbol) -> ir.Expr | None:
    """The value of a declared name, or None after an error."""
    name, span = node.id, node.span
    match symbol:
        case BrokenSymbol():
            return None
        case DimSymbol():
            if name in ctx.assumed:
                return ir.Const(value=float(ctx.assumed[name]), span=span)
            return ir.Size(dim=name, span=span)
        case ConstSymbol():
            return ir.Const(value=symbol.value, span=span)
        case NumberSymbol():
            return dataclasses.replace(symbol.node, span=span)
        case ArraySymbol():
            return dataclasses.replace(symbol.value, span=span)
        case IndexSymbol():
            binder = scope.indices.get(name)
            if binder is None:
                return None
            return element(binder, span)
        case LetSymbol() if not symbol.let.binders:
            return ir.LetRef(let=symbol.let, shape=symbol.let.body.shape, span=span)
        case DefSymbol() if all(isinstance(ctx.symbols.get(p), IndexSymbol) for p in symbol.params):
            return expressions.typed(ctx, scope, syntax.Call(func=name, span=span))
    _needs_more(ctx, name, symbol, span)
    return None


def _needs_more(ctx: Context, name: str, symbol: Symbol, span: Span) -> None:
    """Report a name that is no value by itself: a family, a function, a net, a set."""
    match symbol:
        case LetSymbol():
            names = [b.name for b in symbol.let.binders]
            ctx.report(errors.indices.family_needs_indices(name, names, ctx.line(symbol.span), span))
        case DefSymbol():
            ctx.report(errors.calls.function_needs_arguments(name, symbol.params, span))
        case NetSymbol():
            ctx.report(errors.calls.net_needs_arguments(name, span))
        case SetSymbol() | SetFamilySymbol() | TableSymbol():
            is_table = isinstance(symbol, TableSymbol)
            ctx.report(errors.sorts.named_set_as_number(name, symbol.what, span, table=is_table))


def find(ctx: Context, name: str) -> Symbol | None:
    """A declared name, or None if it is not visible here.

    The body of a ``def`` sees the names that were declared before it.
    """
    symbol = ctx.symbols.get(name)
    if symbol is not None and ctx.calls:
        inside = ctx.symbols.get(ctx.calls[-1][0])
        if isinstance(inside, DefSymbol) and name not in inside.symbols:
            return None
    return symbol


def element(binder: ir.Binder, span: Span) -> ir.Expr:
    """A binder's own value: an element of its set, or the draw of a distribution."""
    domain = binder.domain
    if isinstance(domain, ir.Distribution):
        return ir.Column(binder=binder, name=None, shape=domain.shape, span=span)
    if isinstance(domain, ir.VectorSet):
        shape = domain.shape
    else:
        shape = ()
    return ir.Element(binder=binder, shape=shape, span=span)


# --------------------------------------------------------------------------------------- subscripts
def split_subscript(ctx: Context, scope: Scope, name: str) -> tuple[str, tuple[str, ...]] | None:
    """``h_k`` as ``h`` and ``(k,)`` if ``h`` is declared and ``k`` is an index or a binder, else None."""
    parts = name.split("_")
    for cut in range(len(parts) - 1, 0, -1):
        base, subscripts = "_".join(parts[:cut]), tuple(parts[cut:])
        if base in ctx.symbols and all(is_index(ctx, scope, s) for s in subscripts):
            return base, subscripts
    return None


def is_index(ctx: Context, scope: Scope, name: str) -> bool:
    """Whether a name is a binder around this place, or a declared index."""
    return isinstance(scope.locals.get(name), ir.Binder) or isinstance(ctx.symbols.get(name), IndexSymbol)


def subscripted(
    ctx: Context, scope: Scope, node: syntax.Name, base: str, subscripts: tuple[str, ...]
) -> ir.Expr | None:
    """``x_i`` as ``x[i]``, or as the call ``h()`` at the index."""
    if isinstance(ctx.symbols[base], DefSymbol):
        return expressions.typed(ctx, scope, syntax.Call(func=node.id, span=node.span))
    items = tuple(syntax.Name(id=subscript, span=node.span) for subscript in subscripts)
    entry = syntax.Index(obj=syntax.Name(id=base, span=node.span), items=items, span=node.span)
    return expressions.evaluate(ctx, scope, entry)


# ------------------------------------------------------------------------------------ unknown names
def unknown(ctx: Context, scope: Scope, name: str, span: Span, *, sets: list[str] | None = None) -> None:
    """Report a name without a meaning here: declared later, bound elsewhere, or misspelt.

    sets  the sets visible here, if a set must stand here
    """
    if name in ctx.later or name in ctx.symbols:
        if name not in ctx.missing:
            ctx.missing.add(name)
            _too_early(ctx, name, span)
        return
    binder = written_binders(ctx).get(name)
    if binder is not None:
        ctx.report(errors.names.not_bound_here(name, ctx.quote(binder), span))
        return
    if sets is None:
        candidates = ctx.visible(scope)
    else:
        candidates = sets
    if name in ctx.missing and not nearest(name, candidates):
        return
    ctx.missing.add(name)
    for local, value in scope.locals.items():
        domain = value.domain if isinstance(value, ir.Binder) else None
        if isinstance(domain, ir.RowSet) and name in ctx.tables[domain.table].columns:
            what = "name" if sets is None else "set"
            ctx.report(errors.names.column_without_row(name, span, domain.table, local, what=what))
            return
    error = errors.names.unknown if sets is None else errors.names.unknown_set
    ctx.report(error(name, span, candidates))


def _too_early(ctx: Context, name: str, span: Span) -> None:
    """Report a name used in its own statement, or before it."""
    place = ctx.later.get(name) or ctx.symbols[name].span
    declares_it = isinstance(ctx.statement, syntax.Statement) and getattr(ctx.statement, "name", "") == name
    if declares_it or any(function == name for function, _ in ctx.calls):
        ctx.report(errors.names.uses_itself(name, span))
        return
    own = getattr(ctx.statement, "name", "")
    if own and _needs(ctx, name, own):
        family = getattr(ctx.statement, "family", None)
        members = ", ".join(ctx.text(binder.span) for binder in family.binders) if family else ""
        ctx.report(errors.names.use_each_other(own, name, members, span))
        return
    ctx.report(errors.names.too_early(name, ctx.line(place), span))


def _needs(ctx: Context, name: str, wanted: str) -> bool:
    """Whether the declaration of a name uses another name, or another declaration that does."""
    seen, waiting = {name}, [name]
    while waiting:
        statement = ctx.declaring.get(waiting.pop())
        if statement is None:
            continue
        used = {node.id for node in walk(statement) if isinstance(node, syntax.Name)}
        if wanted in used:
            return True
        waiting += used - seen
        seen |= used
    return False


def spare_indices(taken: Collection[str]) -> Iterator[str]:
    """Names for indices that the user does not name, without those that are taken."""
    return (name for name in INDEX_NAMES if name not in taken)


def written_binders(ctx: Context) -> dict[str, syntax.Binder]:
    """The first binder of each name in the statement that is being checked; kept for that statement."""
    if ctx.binders is None or ctx.binders[0] is not ctx.statement:
        first: dict[str, syntax.Binder] = {}
        for binder in binders_in(ctx.statement):
            first.setdefault(binder.name, binder)
        ctx.binders = ctx.statement, first
    return ctx.binders[1]


def binders_in(node: syntax.Node | None) -> Iterator[syntax.Binder]:
    """Every binder written in a piece of syntax; not recursive."""
    stack: list[object] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, syntax.Binder):
            yield item
        if isinstance(item, tuple):
            stack.extend(item)
        elif isinstance(item, syntax.Node):
            stack.extend(getattr(item, f.name) for f in dataclasses.fields(item) if f.name != "span")
