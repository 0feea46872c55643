"""What binders range over: tables, named sets, families, comprehensions; and the conditions on their
elements."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction, substitute
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import (
    comparisons,
    distributions,
    expressions,
    indexing,
    literals,
    names,
    shapes,
    vector_sets,
)
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    Domain,
    FamilyRule,
    Rule,
    Scope,
    SetFamilySymbol,
    SetSymbol,
    TableSymbol,
)
from fccomodel.library import distributions as registry


def domain_of(ctx: Context, scope: Scope, node: syntax.Expr, kind: str) -> Domain | None:
    """The set that stands after ``in`` or ``~`` (``kind``), or None after an error."""
    match node:
        case syntax.Name():
            return _named(ctx, scope, node, kind)
        case syntax.SetLiteral():
            literal = literals.literal_set(ctx, scope, node)
            if literal is None:
                return None
            return Domain(set=literal)
        case syntax.Range():
            span = literals.range_set(ctx, scope, node)
            if span is None:
                return None
            return Domain(set=span)
        case syntax.SetComprehension():
            return comprehension(ctx, scope, node, kind)
        case syntax.Index(obj=syntax.Call() as inner) if kind == "~":
            return distributions.distribution(ctx, scope, inner, node.items, node.span)
        case syntax.Index(obj=syntax.Name() as base):
            return _family(ctx, scope, node, base, kind)
        case syntax.Call():
            if kind == "~":
                return distributions.distribution(ctx, scope, node, (), node.span)
            vectors = vector_sets.vector_set(ctx, scope, node, None)
            if vectors is None:
                return None
            return Domain(set=vectors)
        case syntax.Number() | syntax.Binary() | syntax.Unary():
            ctx.report(errors.sets.number_as_set(ctx.quote(node)))
            return None
    _not_a_set(ctx, node.span, "an expression", kind)
    return None


def _not_a_set(ctx: Context, span: Span, what: str, kind: str) -> None:
    ctx.report(errors.sets.not_a_set(ctx.quote(span), what, kind))


def _named(ctx: Context, scope: Scope, node: syntax.Name, kind: str) -> Domain | None:
    name, span = node.id, node.span
    if name in scope.locals:
        if scope.locals[name] is not None:
            _not_a_set(ctx, span, "a bound name", kind)
        return None
    symbol = names.find(ctx, name)
    if symbol is None:
        if name == "nonneg" and kind == "in":
            ctx.report(errors.sets.nonneg_without_size(span))
            return None
        split = names.split_subscript(ctx, scope, name)
        if split is not None:
            base, subscripts = split
            items = tuple(syntax.Name(id=s, span=span) for s in subscripts)
            return domain_of(
                ctx, scope, syntax.Index(obj=syntax.Name(id=base, span=span), items=items, span=span), kind
            )
        if (known := registry.get(name)) is not None:
            ctx.report(errors.calls.needs_parameters(name, known.parameters, span))
            return None
        sets = [n for n, s in ctx.symbols.items() if isinstance(s, SetSymbol | SetFamilySymbol | TableSymbol)]
        names.unknown(ctx, scope, name, span, sets=sets)
        return None
    ctx.used.add(name)
    match symbol:
        case BrokenSymbol():
            return None
        case TableSymbol():
            if ctx.tables[name].family is not None:
                _needs_index(ctx, name, span)
                return None
            return Domain(set=symbol.rows)
        case SetSymbol():
            if symbol.set is not None:
                return Domain(set=symbol.set)
            return symbol.base
        case SetFamilySymbol():
            _needs_index(ctx, name, span)
            return None
    if symbol.what == "a dim":
        one = syntax.Number(value=1.0, text="1", span=span)
        return domain_of(ctx, scope, syntax.Range(low=one, high=node, span=span), kind)  # its indices
    _not_a_set(ctx, span, symbol.what, kind)
    return None


def _needs_index(ctx: Context, name: str, span: Span) -> None:
    ctx.report(errors.indices.family_of_sets_needs_index(name, ctx.line(ctx.symbols[name].span), span))


def _family(ctx: Context, scope: Scope, node: syntax.Index, base: syntax.Name, kind: str) -> Domain | None:
    """``N[i]``: a member of a family of sets or of tables."""
    if base.id not in scope.locals:
        symbol = names.find(ctx, base.id)
    else:
        symbol = None
    if isinstance(symbol, SetFamilySymbol):
        ctx.used.add(symbol.name)
        if len(node.items) != len(symbol.binders):
            ctx.report(
                errors.indices.wrong_number(
                    ctx.quote(node), len(node.items), f"the family `{symbol.name}`", len(symbol.binders)
                )
            )
            return None
        inner = Scope()
        for name, item, binder in zip(symbol.names, node.items, symbol.binders, strict=True):
            inner = inner.with_local(name, _family_member(ctx, scope, item, binder))
        if any(v is None for v in inner.locals.values()):
            return None
        return domain_of(ctx, inner, symbol.value, kind)
    if isinstance(symbol, TableSymbol) and (family := ctx.tables[symbol.name].family) is not None:
        ctx.used.add(symbol.name)
        if len(node.items) != 1:
            ctx.report(
                errors.indices.wrong_number(
                    ctx.quote(node), len(node.items), f"the family `{symbol.name}`", 1
                )
            )
            return None
        place = indexing.place(ctx, scope, node.items[0], family.domain)
        assert not isinstance(place, ir.Column)
        if isinstance(place, ir.Const) and isinstance(family.domain, ir.ValueSet):
            place = ir.Const(value=shapes.member(family.domain, int(place.value)), span=place.span)
        if place is None:
            return None
        return Domain(set=symbol.rows, rules=(FamilyRule(place=place, name="", condition=node, scope=scope),))
    if isinstance(symbol, BrokenSymbol):
        ctx.used.add(symbol.name)
        return None
    if symbol is None:
        domain_of(ctx, scope, base, kind)
    else:
        ctx.used.add(symbol.name)
        ctx.report(errors.indices.set_without_family(base.id, symbol.what, node.span))
    return None


def _family_member(ctx: Context, scope: Scope, item: syntax.Expr, binder: ir.Binder) -> ir.Expr | None:
    """An index of a set family: an element of its set, or a constant member."""
    value = expressions.evaluate(ctx, scope, item)
    if value is None:
        return None
    if isinstance(value, ir.Element) and (shapes.same_set(value.binder.domain, binder.domain)):
        return value
    members = shapes.members(binder.domain)
    if isinstance(value, ir.Const) and members is not None and value.value in members:
        return value
    if isinstance(value, ir.Label) and isinstance(binder.domain, ir.LabelSet):
        return value
    ctx.report(errors.indices.index_of_another_family(ctx.quote(value), binder.name, binder.domain.name))
    return None


def condition_of(ctx: Context, domain: Domain, binder: ir.Binder) -> ir.Expr | None:
    """The conditions that the domain puts on a binder over it, as one expression; None without any."""
    parts: list[ir.Expr | None] = []
    for rule in domain.rules:
        if isinstance(rule, FamilyRule):
            span = rule.condition.span
            family_column = ir.Column(binder=binder, name=ir.FAMILY, span=span)
            parts.append(ir.Apply(op="eq", args=(family_column, rule.place), span=span))
        else:
            parts.append(
                comparisons.condition(
                    ctx, rule.scope.with_local(rule.name, binder), rule.condition, "what follows `|`"
                )
            )
    return conjunction(parts)


def comprehension(ctx: Context, scope: Scope, node: syntax.SetComprehension, kind: str) -> Domain | None:
    """``{z in D | condition}``."""
    binders = node.indexing.binders
    if len(binders) != 1 or binders[0].kind != "in":
        ctx.report(errors.reductions.set_of_several(node.span))
        return None
    binder = binders[0]
    base = domain_of(ctx, scope, binder.domain, "in")
    check_new(ctx, scope, binder)
    if base is None:
        comparisons.condition(
            ctx, scope.with_local(binder.name, None), node.indexing.condition, ""
        ) if node.indexing.condition else None
        return None
    if isinstance(base.set, ir.VectorSet):
        ctx.report(errors.sets.vectors_without_members(ctx.quote(binder.domain)))
        return None
    if node.indexing.condition is None:
        return base
    return as_rows(
        ctx,
        Domain(
            set=base.set,
            rules=(*base.rules, Rule(name=binder.name, condition=node.indexing.condition, scope=scope)),
        ),
        node.span,
        binder,
    )


def as_rows(ctx: Context, domain: Domain, span: Span, binder: syntax.Binder) -> Domain | None:
    """A set of rows whose conditions are about the row alone is a RowSet of its own; any other domain
    stays as it is."""
    if isinstance(domain.set, ir.RowSet):
        inherited, row = (domain.set.where, domain.set.row)
    else:
        inherited, row = (None, None)
    fresh = ir.Binder(name=binder.name, kind="in", domain=unfiltered(ctx, domain.set), span=binder.span)
    probe = (
        row if row is not None and row.name == binder.name else fresh
    )  # a chain of sets shares its conditions
    errors_before = len(ctx.errors)
    condition = condition_of(ctx, domain, probe)
    if condition is None:
        return None if len(ctx.errors) > errors_before else domain
    if not condition_is_fixed(ctx, condition):
        return None
    if not isinstance(domain.set, ir.RowSet) or any(b is not probe for b in ir.free_binders(condition)):
        return domain
    if inherited is not None and row is not None:
        if probe is not row:
            inherited = substitute(inherited, {row: ir.Element(binder=probe, span=binder.span)})
        condition = conjunction([inherited, condition])
    return Domain(
        set=ir.RowSet(name=ctx.text(span, 10_000), table=domain.set.table, row=probe, where=condition)
    )


def unfiltered(ctx: Context, domain: ir.Set) -> ir.Set:
    """The whole table of a set of rows; another set as it is."""
    if isinstance(domain, ir.RowSet):
        symbol = ctx.symbols[domain.table]
        assert isinstance(symbol, TableSymbol)
        return symbol.rows
    return domain


def condition_is_fixed(ctx: Context, condition: ir.Expr) -> bool:
    """True, or an error: a condition that depends on decision variables."""
    for node in ir.walk(condition):
        if isinstance(node, ir.Var):
            ctx.report(errors.reductions.condition_on_variable(node.name, node.span))
            return False
    return True


def check_new(ctx: Context, scope: Scope, binder: syntax.Binder) -> bool:
    """True, or an error: a binder may not reuse a visible name."""
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
    for candidate in (*"zijkpqnmrst", f"{name}1", f"{name}2"):
        if candidate not in scope.locals and candidate not in ctx.symbols and candidate not in ctx.later:
            return candidate
    return f"{name}_new"
