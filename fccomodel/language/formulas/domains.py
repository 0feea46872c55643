"""The sets that binders range over, named or written out, and the conditions on their elements."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction, substitute
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import (
    comparisons,
    distributions,
    expressions,
    literals,
    names,
    places,
    shapes,
    vector_sets,
)
from fccomodel.language.formulas.context import (
    BinderRange,
    BrokenSymbol,
    ConstSymbol,
    Context,
    FamilyRule,
    Scope,
    SetCondition,
    SetFamilySymbol,
    SetSymbol,
    TableSymbol,
)
from fccomodel.language.formulas.literals import SET_NAME_LENGTH
from fccomodel.library import distributions as registry
from fccomodel.library import sets


def domain_of(ctx: Context, scope: Scope, node: syntax.Expr, kind: str) -> BinderRange | None:
    """The set that stands after ``in`` or ``~`` (``kind``), or None after an error."""
    match node:
        case syntax.Name():
            return _named(ctx, scope, node, kind)
        case syntax.SetLiteral():
            return _bare(literals.literal_set(ctx, scope, node))
        case syntax.Range():
            return _bare(literals.range_set(ctx, scope, node))
        case syntax.SetComprehension():
            return comprehension(ctx, scope, node, kind)
        case syntax.Index(obj=syntax.Call() as inner) if kind == "~":
            return distributions.distribution(ctx, scope, inner, node.items, node.span)
        case syntax.Index(obj=syntax.Call() as inner) if inner.func in sets.all():
            return _vectors(ctx, scope, inner, node.items)
        case syntax.Index(obj=syntax.Name() as base):
            return _family(ctx, scope, node, base, kind)
        case syntax.Call():
            if kind == "~":
                return distributions.distribution(ctx, scope, node, (), node.span)
            return _vectors(ctx, scope, node)
    _no_set(ctx, scope, node, kind)
    return None


def _no_set(ctx: Context, scope: Scope, node: syntax.Expr, kind: str) -> None:
    """Report that a formula is no set."""
    match node:
        case syntax.Binary() if _is_set(ctx, scope, node.left) and _is_set(ctx, scope, node.right):
            ctx.report(errors.sets.sets_joined(ctx.quote(node), node.op))
        case syntax.Number() | syntax.Binary() | syntax.Unary():
            ctx.report(errors.sets.number_as_set(ctx.quote(node)))
        case _:
            _not_a_set(ctx, node.span, "an expression", kind)


def _vectors(
    ctx: Context, scope: Scope, node: syntax.Call, items: tuple[syntax.Expr, ...] | None = None
) -> BinderRange | None:
    """``ball(r)[d]`` or ``simplex(K)``; None after an error. ``items`` is the size, if it is written."""
    if items is None:
        return _bare(vector_sets.vector_set(ctx, scope, node, None))
    shape = literals.declared_shape(ctx, scope, items)
    if shape is None:
        return None
    return _bare(vector_sets.vector_set(ctx, scope, node, shape, ranged=True))


def _is_set(ctx: Context, scope: Scope, node: syntax.Expr) -> bool:
    """Whether a formula is the name of a set, or a list of members."""
    if isinstance(node, syntax.SetLiteral):
        return True
    if not isinstance(node, syntax.Name) or node.id in scope.locals:
        return False
    return isinstance(names.find(ctx, node.id), SetSymbol | TableSymbol)


def _bare(members: ir.Set | None) -> BinderRange | None:
    """A set without conditions, or None if there is none."""
    if members is None:
        return None
    return BinderRange(set=members)


def _not_a_set(ctx: Context, span: Span, what: str, kind: str) -> None:
    ctx.report(errors.sets.not_a_set(ctx.quote(span), what, kind))


def _named(ctx: Context, scope: Scope, node: syntax.Name, kind: str) -> BinderRange | None:
    """The set that a name stands for, or None after an error."""
    name, span = node.id, node.span
    if name in scope.locals:
        if scope.locals[name] is not None:
            _not_a_set(ctx, span, "a bound name", kind)
        return None
    symbol = names.find(ctx, name)
    if symbol is None:
        return _undeclared(ctx, scope, node, kind)
    ctx.used.add(name)
    match symbol:
        case BrokenSymbol():
            return None
        case TableSymbol():
            if ctx.tables[name].family is not None:
                _needs_index(ctx, name, span)
                return None
            return BinderRange(set=symbol.rows)
        case SetSymbol():
            if symbol.set is not None:
                return BinderRange(set=symbol.set)
            return symbol.base
        case SetFamilySymbol():
            _needs_index(ctx, name, span)
            return None
    if symbol.what == "a dim" or (isinstance(symbol, ConstSymbol) and symbol.value.is_integer()):
        first = syntax.Number(value=1.0, text="1", span=span)
        return domain_of(ctx, scope, syntax.Range(low=first, high=node, span=span), kind)  # its indices
    _not_a_set(ctx, span, symbol.what, kind)
    return None


def _undeclared(ctx: Context, scope: Scope, node: syntax.Name, kind: str) -> BinderRange | None:
    """The set ``N[i]`` of a name ``N_i``, or None after the error of an unknown set."""
    name, span = node.id, node.span
    if name == "nonneg" and kind == "in":
        ctx.report(errors.sets.nonneg_without_size(span))
        return None
    split = names.split_subscript(ctx, scope, name)
    if split is not None:
        base, subscripts = split
        items = tuple(syntax.Name(id=subscript, span=span) for subscript in subscripts)
        member = syntax.Index(obj=syntax.Name(id=base, span=span), items=items, span=span)
        return domain_of(ctx, scope, member, kind)
    known = registry.get(name)
    if known is not None:
        ctx.report(errors.calls.needs_parameters(name, known.parameters, span))
        return None
    sets = [n for n, s in ctx.symbols.items() if isinstance(s, SetSymbol | SetFamilySymbol | TableSymbol)]
    names.unknown(ctx, scope, name, span, sets=sets)
    return None


def _needs_index(ctx: Context, name: str, span: Span) -> None:
    ctx.report(errors.indices.family_of_sets_needs_index(name, ctx.line(ctx.symbols[name].span), span))


def _family(
    ctx: Context, scope: Scope, node: syntax.Index, base: syntax.Name, kind: str
) -> BinderRange | None:
    """``N[i]``: a member of a family of sets or of tables."""
    symbol = None
    if base.id not in scope.locals:
        symbol = names.find(ctx, base.id)
    if isinstance(symbol, SetFamilySymbol):
        return _member_of_sets(ctx, scope, node, symbol, kind)
    if isinstance(symbol, TableSymbol) and (family := ctx.tables[symbol.name].family) is not None:
        return _member_of_tables(ctx, scope, node, symbol, family)
    if isinstance(symbol, BrokenSymbol):
        ctx.used.add(symbol.name)
        return None
    if symbol is None:
        domain_of(ctx, scope, base, kind)
    else:
        ctx.used.add(symbol.name)
        ctx.report(errors.indices.set_without_family(base.id, symbol.what, node.span))
    return None


def _member_of_sets(
    ctx: Context, scope: Scope, node: syntax.Index, symbol: SetFamilySymbol, kind: str
) -> BinderRange | None:
    """A member of a family of sets, whose value is checked anew with the indices as local names."""
    ctx.used.add(symbol.name)
    wanted = len(symbol.binders)
    if len(node.items) != wanted:
        _wrong_number(ctx, node, symbol.name, wanted)
        return None
    inner = Scope()
    for name, item, binder in zip(symbol.names, node.items, symbol.binders, strict=True):
        inner = inner.with_local(name, _family_member(ctx, scope, item, binder))
    if any(value is None for value in inner.locals.values()):
        return None
    return domain_of(ctx, inner, symbol.value, kind)


def _member_of_tables(
    ctx: Context, scope: Scope, node: syntax.Index, symbol: TableSymbol, family: ir.Binder
) -> BinderRange | None:
    """A member of a family of tables: the rows of all under the condition that they are of this one."""
    ctx.used.add(symbol.name)
    if len(node.items) != 1:
        _wrong_number(ctx, node, symbol.name, 1)
        return None
    place = places.place(ctx, scope, node.items[0], family.domain)
    assert not isinstance(place, ir.Column)
    if isinstance(place, ir.Const) and isinstance(family.domain, ir.ValueSet):
        place = ir.Const(value=shapes.member(family.domain, int(place.value)), span=place.span)
    if place is None:
        return None
    return BinderRange(
        set=symbol.rows, rules=(FamilyRule(place=place, name="", condition=node, scope=scope),)
    )


def _wrong_number(ctx: Context, node: syntax.Index, family: str, wanted: int) -> None:
    """Report a wrong number of indices of a family."""
    count = len(node.items)
    ctx.report(errors.indices.wrong_number(ctx.quote(node), count, f"the family `{family}`", wanted))


def _family_member(ctx: Context, scope: Scope, item: syntax.Expr, binder: ir.Binder) -> ir.Expr | None:
    """An index of a family of sets: an element of its set, or a constant member; None after an error."""
    value = expressions.evaluate(ctx, scope, item)
    if value is None:
        return None
    if isinstance(value, ir.Element) and shapes.same_set(value.binder.domain, binder.domain):
        return value
    members = shapes.members(binder.domain)
    if isinstance(value, ir.Const) and members is not None and value.value in members:
        return value
    if isinstance(value, ir.Label) and isinstance(binder.domain, ir.LabelSet):
        return value
    ctx.report(errors.indices.index_of_another_family(ctx.quote(value), binder.name, binder.domain.name))
    return None


def condition_of(ctx: Context, domain: BinderRange, binder: ir.Binder) -> ir.Expr | None:
    """The conditions of a domain on a binder over it as one expression, or None if there are none."""
    parts: list[ir.Expr | None] = []
    for rule in domain.rules:
        if isinstance(rule, FamilyRule):
            span = rule.condition.span
            family_column = ir.Column(binder=binder, name=ir.FAMILY, span=span)
            parts.append(ir.Apply(op="eq", args=(family_column, rule.place), span=span))
        else:
            inner = rule.scope.with_local(rule.name, binder)
            parts.append(comparisons.condition(ctx, inner, rule.condition, "what follows `|`"))
    return conjunction(parts)


def comprehension(ctx: Context, scope: Scope, node: syntax.SetComprehension, kind: str) -> BinderRange | None:
    """``{z in D | condition}``."""
    binders = node.indexing.binders
    if len(binders) != 1 or binders[0].kind != "in":
        ctx.report(errors.reductions.set_of_several(node.span))
        return None
    binder, condition = binders[0], node.indexing.condition
    base = domain_of(ctx, scope, binder.domain, "in")
    check_new(ctx, scope, binder)
    if base is None:
        if condition is not None:  # for the errors in it
            comparisons.condition(ctx, scope.with_local(binder.name, None), condition, "")
        return None
    if isinstance(base.set, ir.VectorSet):
        ctx.report(errors.sets.vectors_without_members(ctx.quote(binder.domain)))
        return None
    if condition is None:
        return base
    rules = (*base.rules, SetCondition(name=binder.name, condition=condition, scope=scope))
    return as_rows(ctx, BinderRange(set=base.set, rules=rules), node.span, binder)


def as_rows(ctx: Context, domain: BinderRange, span: Span, binder: syntax.Binder) -> BinderRange | None:
    """The domain as a set of rows of its own if its conditions are about the row alone, else unchanged.

    None after an error.
    """
    rows = domain.set if isinstance(domain.set, ir.RowSet) else None
    row = rows.row if rows is not None else None
    if row is not None and row.name == binder.name:
        probe = row  # so that a chain of sets shares its conditions
    else:
        probe = ir.Binder(name=binder.name, kind="in", domain=unfiltered(ctx, domain.set), span=binder.span)
    errors_before = len(ctx.errors)
    condition = condition_of(ctx, domain, probe)
    if condition is None:
        if len(ctx.errors) > errors_before:
            return None
        return domain
    if not condition_is_fixed(ctx, condition):
        return None
    if rows is None or any(free is not probe for free in ir.free_binders(condition)):
        return domain
    inherited = rows.where
    if inherited is not None and row is not None:
        if probe is not row:
            inherited = substitute(inherited, {row: ir.Element(binder=probe, span=binder.span)})
        condition = conjunction([inherited, condition])
    chosen = ir.RowSet(name=ctx.text(span, SET_NAME_LENGTH), table=rows.table, row=probe, where=condition)
    return BinderRange(set=chosen)


def unfiltered(ctx: Context, domain: ir.Set) -> ir.Set:
    """All rows of the table that a set of rows is part of; any other set unchanged."""
    if isinstance(domain, ir.RowSet):
        symbol = ctx.symbols[domain.table]
        assert isinstance(symbol, TableSymbol)
        return symbol.rows
    return domain


def condition_is_fixed(ctx: Context, condition: ir.Expr) -> bool:
    """Whether a condition depends on no variable. Reports an error if it does."""
    for node in ir.walk(condition):
        if isinstance(node, ir.Var):
            ctx.report(errors.reductions.condition_on_variable(node.name, node.span))
            return False
    return True


def check_new(ctx: Context, scope: Scope, binder: syntax.Binder) -> bool:
    """Whether the name of a binder is new here. Reports an error if a visible name is reused."""
    name = binder.name
    if name in scope.locals:
        what = "bound around this place"
    elif (symbol := names.find(ctx, name)) is not None and symbol.what != "an index":
        what = f"{symbol.what}, declared on line {ctx.line(symbol.span)}"
    else:
        return True
    ctx.report(errors.names.taken_by_binder(name, what, binder.span, _free_name(ctx, scope, name)))
    return False


def _free_name(ctx: Context, scope: Scope, name: str) -> str:
    """A name for a binder that nothing else has."""
    for candidate in (*"zijkpqnmrst", f"{name}1", f"{name}2"):
        if candidate not in scope.locals and candidate not in ctx.symbols and candidate not in ctx.later:
            return candidate
    return f"{name}_new"
