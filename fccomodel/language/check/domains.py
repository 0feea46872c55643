"""What binders range over: tables, named sets, families, comprehensions; and the conditions on their elements."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.check import (
    comparisons,
    distributions,
    expressions,
    indexing,
    literals,
    names,
    shapes,
    vector_sets,
)
from fccomodel.language.check.context import (
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


def domain_of(ctx: Context, scope: Scope, node: syntax.Expr, kind: str) -> Domain | None:
    """The set that stands after ``in`` or ``~`` (``kind``), or None after an error."""
    match node:
        case syntax.Name():
            return _named(ctx, scope, node, kind)
        case syntax.SetLiteral():
            literal = literals.literal_set(ctx, scope, node)
            return None if literal is None else Domain(set=literal)
        case syntax.Range():
            span = literals.range_set(ctx, scope, node)
            return None if span is None else Domain(set=span)
        case syntax.SetComprehension():
            return comprehension(ctx, scope, node, kind)
        case syntax.Index(obj=syntax.Call() as inner) if kind == "~":
            return distributions.distribution(ctx, scope, inner, node.items, node.span)
        case syntax.Index(obj=syntax.Name() as base):
            return _family(ctx, scope, node, base, kind)
        case syntax.Call():
            if kind == "~":
                return distributions.distribution(ctx, scope, node, (), node.span)
            found = vector_sets.vector_set(ctx, scope, node, None)
            return None if found is None else Domain(set=found)
        case syntax.Number() | syntax.Binary() | syntax.Unary():
            ctx.error(
                "F0407",
                f"`{ctx.text(node.span)}` is a number, not a set",
                node.span,
                reason="An index ranges over a set.",
                fix=f"For 1, 2, ..., write `1 .. {ctx.text(node.span)}`.",
            )
            return None
    _not_a_set(ctx, node.span, "an expression", kind)
    return None


def _not_a_set(ctx: Context, span: Span, what: str, kind: str) -> None:
    ctx.error(
        "F0407",
        f"`{ctx.text(span)}` is {what}, not a set",
        span,
        reason="`in` iterates over a set, a table's rows, a list `{1, 2}` or a range `1 .. n`."
        if kind == "in"
        else "`~` draws rows of a table or of a set of rows, elements of a finite set, or numbers of a distribution.",
        fix="Write a set there." if kind == "in" else "Write a table, a set, or a distribution such as `normal(0, 1)`.",
    )


def _named(ctx: Context, scope: Scope, node: syntax.Name, kind: str) -> Domain | None:
    name, span = node.id, node.span
    if name in scope.locals:
        if scope.locals[name] is not None:
            _not_a_set(ctx, span, "a bound name", kind)
        return None
    symbol = names.find(ctx, name)
    if symbol is None:
        if name == "nonneg" and kind == "in":
            ctx.error(
                "F0407",
                "`nonneg` has no size here",
                span,
                reason="An index ranges over a set of known size.",
                fix="Use it on a variable.",
            )
            return None
        split = names.split_subscript(ctx, scope, name)
        if split is not None:
            base, subscripts = split
            items = tuple(syntax.Name(id=s, span=span) for s in subscripts)
            return domain_of(ctx, scope, syntax.Index(obj=syntax.Name(id=base, span=span), items=items, span=span), kind)
        if name in ir.DISTRIBUTIONS:
            ctx.error(
                "F0302",
                f"`{name}` needs its parameters",
                span,
                fix=f"Write `{name}({', '.join(ir.DISTRIBUTIONS[name])})`.",
            )
            return None
        sets = [n for n, s in ctx.symbols.items() if isinstance(s, SetSymbol | SetFamilySymbol | TableSymbol)]
        names.unknown(ctx, scope, name, span, what="set", candidates=sets)
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
            return Domain(set=symbol.set) if symbol.set is not None else symbol.base
        case SetFamilySymbol():
            _needs_index(ctx, name, span)
            return None
    if symbol.what == "a dim":
        one = syntax.Number(value=1.0, text="1", span=span)
        return domain_of(ctx, scope, syntax.Range(low=one, high=node, span=span), kind)  # its indices
    _not_a_set(ctx, span, symbol.what, kind)
    return None


def _needs_index(ctx: Context, name: str, span: Span) -> None:
    ctx.error(
        "F0307",
        f"`{name}` is a family of sets and needs its index",
        span,
        reason=f"It is declared on line {ctx.line(ctx.symbols[name].span)} with an index in brackets.",
        fix=f"Write `{name}[k]`.",
    )


def _family(ctx: Context, scope: Scope, node: syntax.Index, base: syntax.Name, kind: str) -> Domain | None:
    """``N[i]``: a member of a family of sets or of tables."""
    symbol = names.find(ctx, base.id) if base.id not in scope.locals else None
    if isinstance(symbol, SetFamilySymbol):
        ctx.used.add(symbol.name)
        if len(node.items) != len(symbol.binders):
            ctx.error(
                "F0307",
                f"`{ctx.text(node.span)}` has {len(node.items)} indices, and the family needs {len(symbol.binders)}",
                node.span,
                fix=f"Give {len(symbol.binders)}.",
            )
            return None
        inner = Scope()
        for name, item, binder in zip(symbol.names, node.items, symbol.binders, strict=True):
            inner = inner.with_local(name, _family_member(ctx, scope, item, binder))
        return None if any(v is None for v in inner.locals.values()) else domain_of(ctx, inner, symbol.value, kind)
    if isinstance(symbol, TableSymbol) and (family := ctx.tables[symbol.name].family) is not None:
        ctx.used.add(symbol.name)
        if len(node.items) != 1:
            ctx.error(
                "F0307",
                f"`{ctx.text(node.span)}` has {len(node.items)} indices, and `{symbol.name}` needs one",
                node.span,
                fix="Give one.",
            )
            return None
        place = indexing.place(ctx, scope, node.items[0], family.domain)
        assert not isinstance(place, ir.Column)
        if isinstance(place, ir.Const) and isinstance(family.domain, ir.ValueSet):
            place = ir.Const(value=shapes.member(family.domain, int(place.value)), span=place.span)
        return (
            None
            if place is None
            else Domain(set=symbol.rows, rules=(FamilyRule(place=place, name="", condition=node, scope=scope),))
        )
    if isinstance(symbol, BrokenSymbol):
        ctx.used.add(symbol.name)
        return None
    if symbol is None:
        domain_of(ctx, scope, base, kind)
    else:
        ctx.used.add(symbol.name)
        ctx.error(
            "F0310",
            f"`{base.id}` is {symbol.what} and has no index",
            node.span,
            reason="Only a family of sets or tables is indexed here.",
            fix=f"Write `{base.id}` alone.",
        )
    return None


def _family_member(ctx: Context, scope: Scope, item: syntax.Expr, binder: ir.Binder) -> ir.Expr | None:
    """An index of a set family: an element of its set, or a constant member."""
    value = expressions.evaluate(ctx, scope, item)
    if value is None:
        return None
    if isinstance(value, ir.Element) and (shapes.same_set(value.binder.domain, binder.domain)):
        return value
    known = shapes.members(binder.domain)
    if isinstance(value, ir.Const) and known is not None and value.value in known:
        return value
    if isinstance(value, ir.Label) and isinstance(binder.domain, ir.LabelSet):
        return value
    ctx.error(
        "F0308",
        f"`{ctx.text(value.span)}` is not an element of `{binder.domain.name}`",
        value.span,
        reason=f"The family is declared over `{binder.name} in {binder.domain.name}`.",
        fix=f"Use an index bound as `{binder.name} in {binder.domain.name}`.",
    )
    return None


def condition_of(ctx: Context, domain: Domain, binder: ir.Binder) -> ir.Expr | None:
    """The conditions that the domain puts on a binder over it, as one expression; None without any."""
    parts: list[ir.Expr | None] = []
    for rule in domain.rules:
        if isinstance(rule, FamilyRule):
            span = rule.condition.span
            own = ir.Column(binder=binder, name=ir.FAMILY, span=span)
            parts.append(ir.Apply(op="eq", args=(own, rule.place), span=span))
        else:
            parts.append(comparisons.condition(ctx, rule.scope.with_local(rule.name, binder), rule.condition, "what follows `|`"))
    return expressions.conjunction(parts)


def comprehension(ctx: Context, scope: Scope, node: syntax.SetComprehension, kind: str) -> Domain | None:
    """``{z in D | condition}``."""
    binders = node.indexing.binders
    if len(binders) != 1 or binders[0].kind != "in":
        ctx.error(
            "F0406",
            "a set is written with one name and `in`",
            node.span,
            reason="Its members are those of one set for which a condition holds.",
            fix="Write `{z in D | ...}`; for pairs, bind two names in the reduction.",
        )
        return None
    own = binders[0]
    base = domain_of(ctx, scope, own.domain, "in")
    check_new(ctx, scope, own)
    if base is None:
        comparisons.condition(
            ctx, scope.with_local(own.name, None), node.indexing.condition, ""
        ) if node.indexing.condition else None
        return None
    if isinstance(base.set, ir.VectorSet):
        ctx.error(
            "F0407",
            f"`{ctx.text(own.domain.span)}` has no members to pick from",
            own.domain.span,
            reason="It is a set of vectors.",
            fix="Use a table or a finite set.",
        )
        return None
    if node.indexing.condition is None:
        return base
    return as_rows(
        ctx,
        Domain(set=base.set, rules=(*base.rules, Rule(name=own.name, condition=node.indexing.condition, scope=scope))),
        node.span,
        own,
    )


def as_rows(ctx: Context, domain: Domain, span: Span, own: syntax.Binder) -> Domain | None:
    """A set of rows whose conditions are about the row alone is a RowSet of its own; any other domain stays as it is."""
    probe = ir.Binder(name=own.name, kind="in", domain=unfiltered(ctx, domain.set), span=own.span)
    before = len(ctx.errors)
    condition = condition_of(ctx, domain, probe)
    if condition is None:
        return None if len(ctx.errors) > before else domain
    if not condition_is_fixed(ctx, condition):
        return None
    if not isinstance(domain.set, ir.RowSet) or any(b is not probe for b in ir.free_binders(condition)):
        return domain
    if domain.set.where is not None:
        assert domain.set.row is not None
        from fccomodel.core.rewrite import substitute

        old = substitute(domain.set.where, {domain.set.row: ir.Element(binder=probe, span=own.span)})
        condition = expressions.conjunction([old, condition])
    return Domain(set=ir.RowSet(name=ctx.text(span, 10_000), table=domain.set.table, row=probe, where=condition))


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
            ctx.error(
                "F0414",
                f"the condition depends on the variable `{node.name}`",
                node.span,
                reason="Which rows take part must not change with the decision: the result would have jumps.",
                fix="Move it into the body through a smooth function, such as `sigmoid(u / 0.1)`.",
            )
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
    ctx.error(
        "F0204",
        f"the name `{name}` is taken",
        binder.span,
        reason=f"`{name}` is {what}; a binder may not reuse a visible name.",
        fix=f"Take another letter, for instance `{_other(ctx, scope, name)}`, here and in the body.",
    )
    return False


def _other(ctx: Context, scope: Scope, name: str) -> str:
    for other in (*"zijkpqnmrst", f"{name}1", f"{name}2"):
        if other not in scope.locals and other not in ctx.symbols and other not in ctx.later:
            return other
    return f"{name}_new"
