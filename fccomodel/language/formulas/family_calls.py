"""Functions of whole families: ``max(r)`` of ``let r[k in K] = ...;`` is ``max[k in K] r[k]``.

A family has no array. A function that goes over the entries of a vector becomes the reduction over the
members; other arguments give the entry of the same index, and scalars stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fccomodel.core import ir
from fccomodel.core.rewrite import substitute
from fccomodel.language import syntax
from fccomodel.language.formulas import expressions, names
from fccomodel.language.formulas.context import Context, LetSymbol, Scope
from fccomodel.library import atoms

#: From the entries of the arguments and a place to the body of the reduction.
Body = Callable[[list[syntax.Expr]], syntax.Expr]


@dataclass(frozen=True, kw_only=True)
class EntrywiseForm:
    """A function of vectors as a reduction over their entries.

    reduction  the reduction
    body       what it reduces, from one entry of each argument
    arguments  the number of arguments
    """

    reduction: str
    body: Body
    arguments: int = 1


def _entry(entries: list[syntax.Expr]) -> syntax.Expr:
    return entries[0]


def _product(entries: list[syntax.Expr]) -> syntax.Expr:
    first, second = entries
    return syntax.Binary(op="*", left=first, right=second, span=first.span | second.span)


def _square(entries: list[syntax.Expr]) -> syntax.Expr:
    two = syntax.Number(value=2.0, text="2", span=entries[0].span)
    return syntax.Binary(op="^", left=entries[0], right=two, span=entries[0].span)


def _size(entries: list[syntax.Expr]) -> syntax.Expr:
    return syntax.Call(func="abs", args=(entries[0],), span=entries[0].span)


FORMS = {
    "sum": EntrywiseForm(reduction="sum", body=_entry),
    "mean": EntrywiseForm(reduction="mean", body=_entry),
    "max": EntrywiseForm(reduction="max", body=_entry),
    "min": EntrywiseForm(reduction="min", body=_entry),
    "sumsq": EntrywiseForm(reduction="sum", body=_square),
    "norm1": EntrywiseForm(reduction="sum", body=_size),
    "norminf": EntrywiseForm(reduction="max", body=_size),
    "dot": EntrywiseForm(reduction="sum", body=_product, arguments=2),
}


def over_family(ctx: Context, scope: Scope, node: syntax.Call) -> tuple[ir.Expr | None] | None:
    """The value of a function of a family, in a tuple of one; None if it is no such call.

    The value itself is None after an error.
    """
    form = FORMS.get(node.func)
    if form is None or len(node.args) != form.arguments or node.keywords:
        return None
    family = next((found for arg in node.args if (found := _family(ctx, scope, arg)) is not None), None)
    if family is None or any(ir.free_binders(end) for b in family.binders for end in _ends(b.domain)):
        return None
    fresh = {b: ir.Binder(name=b.name, kind="in", domain=b.domain, span=node.span) for b in family.binders}
    inside = scope
    for binder in fresh.values():
        inside = inside.with_local(binder.name, binder)
    indices = tuple(syntax.Name(id=b.name, span=node.span) for b in family.binders)
    entries = [_of_member(ctx, scope, arg, indices) for arg in node.args]
    body = expressions.number(ctx, inside, form.body(entries), f"an argument of `{node.func}`")
    if body is None:
        return (None,)
    elements = {old: ir.Element(binder=new, span=node.span) for old, new in fresh.items()}
    condition = family.condition
    if condition is not None:
        condition = substitute(condition, elements)
    return (
        ir.Reduce(
            kind=form.reduction,
            binders=tuple(fresh.values()),
            body=body,
            condition=condition,
            span=node.span,
        ),
    )


def _ends(domain: ir.Set) -> list[ir.Expr]:
    """The formulas that decide a set of numbers."""
    if not isinstance(domain, ir.ValueSet):
        return []
    return [end for end in (domain.low, domain.high, domain.step) if end is not None]


def _family(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Let | None:
    """The family whose members a formula has as its entries, or None."""
    match node:
        case syntax.Name() if node.id not in scope.locals:
            symbol = names.find(ctx, node.id)
            if isinstance(symbol, LetSymbol) and symbol.let.binders:
                return symbol.let
        case syntax.Unary():
            return _family(ctx, scope, node.arg)
        case syntax.Binary():
            return _family(ctx, scope, node.left) or _family(ctx, scope, node.right)
        case syntax.Call() if isinstance(atoms.get(node.func), atoms.ScalarAtom):
            return next((found for arg in node.args if (found := _family(ctx, scope, arg)) is not None), None)
    return None


def _of_member(
    ctx: Context, scope: Scope, node: syntax.Expr, indices: tuple[syntax.Expr, ...]
) -> syntax.Expr:
    """A formula with the entry at the indices in the place of each family and each array."""
    match node:
        case syntax.Name() if node.id not in scope.locals and _has_entries(ctx, node.id):
            return syntax.Index(obj=node, items=indices, span=node.span)
        case syntax.Unary():
            return replace(node, arg=_of_member(ctx, scope, node.arg, indices))
        case syntax.Binary():
            left, right = (_of_member(ctx, scope, side, indices) for side in (node.left, node.right))
            return replace(node, left=left, right=right)
        case syntax.Call() if isinstance(atoms.get(node.func), atoms.ScalarAtom):
            return replace(node, args=tuple(_of_member(ctx, scope, arg, indices) for arg in node.args))
    return node


def _has_entries(ctx: Context, name: str) -> bool:
    """Whether a name stands for a family or for an array."""
    symbol = names.find(ctx, name)
    if isinstance(symbol, LetSymbol):
        return bool(symbol.let.binders or symbol.let.body.shape)
    node = getattr(symbol, "node", None)
    return node is not None and bool(node.shape)
