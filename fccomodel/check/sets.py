"""What binders range over: tables, named sets, literals, ranges, comprehensions, families, distributions, vector sets."""

from __future__ import annotations

from collections.abc import Mapping

from fccomodel import ir, syntax
from fccomodel.check import comparisons, expressions, indexing, names, shapes, signs
from fccomodel.check.context import (
    BrokenSymbol,
    Context,
    Domain,
    FamilyRule,
    Rule,
    Scope,
    SetFamilySymbol,
    SetSymbol,
    TableSymbol,
    listed,
)
from fccomodel.check.shapes import describe, show
from fccomodel.diagnostics import did_you_mean
from fccomodel.source import Span

#: distribution -> its parameters
DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "normal": ("mean", "sd"),
    "uniform": ("low", "high"),
    "bernoulli": ("p",),
    "laplace": ("mean", "scale"),
    "exponential": ("rate",),
}
#: vector set -> how it is written
VECTOR_SETS: Mapping[str, str] = {
    "box": "box(low, high)",
    "simplex": "simplex(K)",
    "capped_simplex": "capped_simplex(K, alpha)",
    "ball": "ball(radius)",
    "nonneg": "nonneg",
    "affine": "affine(A, b)",
}


def domain_of(ctx: Context, scope: Scope, node: syntax.Expr, kind: str) -> Domain | None:
    """The set that stands after ``in`` or ``~`` (``kind``), or None after an error."""
    match node:
        case syntax.Name():
            return _named(ctx, scope, node, kind)
        case syntax.SetLiteral():
            literal = literal_set(ctx, scope, node)
            return None if literal is None else Domain(set=literal)
        case syntax.Range():
            span = range_set(ctx, scope, node)
            return None if span is None else Domain(set=span)
        case syntax.SetComprehension():
            return comprehension(ctx, scope, node, kind)
        case syntax.Index(obj=syntax.Call() as inner) if kind == "~":
            return distribution(ctx, scope, inner, node.items, node.span)
        case syntax.Index(obj=syntax.Name() as base):
            return _family(ctx, scope, node, base, kind)
        case syntax.Call():
            if kind == "~":
                return distribution(ctx, scope, node, (), node.span)
            found = vector_set(ctx, scope, node, None)
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
        if name in DISTRIBUTIONS:
            ctx.error("F0302", f"`{name}` needs its parameters", span, fix=f"Write `{name}({', '.join(DISTRIBUTIONS[name])})`.")
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
        ctx.error(
            "F0407",
            f"`{name}` is a dim, not a set",
            span,
            reason="A dim is a number, the size of an axis.",
            fix=f"For the indices of that axis write `1 .. {name}`.",
        )
        return None
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
    if isinstance(value, ir.Element) and (
        shapes.same_set(value.binder.domain, binder.domain) or _same_rows(value.binder.domain, binder.domain)
    ):
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


def _same_rows(given: ir.Set, wanted: ir.Set) -> bool:
    """Rows of the same table, of a family declared over all of its rows."""
    return isinstance(given, ir.RowSet) and isinstance(wanted, ir.RowSet) and given.table == wanted.table and wanted.where is None


# ---------------------------------------------------------------------------------------------------------------- binding
def condition_of(ctx: Context, domain: Domain, binder: ir.Binder) -> ir.Expr | None:
    """The conditions that the domain puts on a binder over it, as one expression; None without any."""
    parts: list[ir.Expr | None] = []
    for rule in domain.rules:
        if isinstance(rule, FamilyRule):
            span = rule.condition.span
            own = ir.Column(binder=binder, name=shapes.FAMILY, span=span)
            parts.append(ir.Apply(op="eq", args=(own, rule.place), span=span))
        else:
            parts.append(comparisons.condition(ctx, rule.scope.with_local(rule.name, binder), rule.condition, "what follows `|`"))
    return expressions.conjunction(parts)


# ----------------------------------------------------------------------------------------------------------- kinds of sets
def literal_set(ctx: Context, scope: Scope, node: syntax.SetLiteral) -> ir.Set | None:
    """``{1, 2}`` or ``{"a", "b"}``."""
    items: list[ir.Expr | None] = []
    for item in node.items:
        if isinstance(item, syntax.Name) and item.id not in scope.locals and item.id not in ctx.symbols:
            ctx.error(
                "F0201",
                f"name `{item.id}` is not declared",
                item.span,
                reason="Labels are written in quotes.",
                fix=f'Write `"{item.id}"`.',
            )
            items.append(None)
        else:
            items.append(expressions.evaluate(ctx, scope, item))
    if any(i is None for i in items):
        return None
    values = [i for i in items if i is not None]
    text = ctx.text(node.span, 10_000)
    if all(isinstance(v, ir.Label) for v in values):
        labels = tuple(v.text for v in values if isinstance(v, ir.Label))
        if not _distinct(ctx, labels, values):
            return None
        return ir.LabelSet(name=text, labels=labels)
    for v in values:
        if isinstance(v, ir.Label):
            ctx.error(
                "F0306",
                "a set has numbers and labels",
                v.span,
                reason="The members of one set are all numbers, or all labels in quotes.",
                fix="Put every member in quotes, or none.",
            )
            return None
        if not expressions.is_number(ctx, v, "a member of a set"):
            return None
        if v.shape or not data_free(v):
            ctx.error(
                "F0424",
                f"`{ctx.text(v.span)}` cannot be a member of a set",
                v.span,
                reason="Members are numbers known before any data: constants, params, dims and their arithmetic.",
                fix="Use a constant or a param.",
            )
            return None
    if not _distinct(ctx, tuple(v.value for v in values if isinstance(v, ir.Const)), values):
        return None
    return ir.ValueSet(name=text, items=tuple(values))


def _distinct(ctx: Context, keys: tuple, values: list[ir.Expr]) -> bool:
    for k, key in enumerate(keys):
        if key in keys[:k]:
            ctx.error(
                "F0410",
                f"`{ctx.text(values[k].span)}` is listed twice",
                values[k].span,
                reason="A set has every member once.",
                fix="Leave one out.",
            )
            return False
    return True


def range_set(ctx: Context, scope: Scope, node: syntax.Range) -> ir.ValueSet | None:
    """``low .. high by step``."""
    parts = []
    for part, what in (
        (node.low, "the low end of a range"),
        (node.high, "the high end of a range"),
        (node.step, "the step of a range"),
    ):
        value = None if part is None else expressions.number(ctx, scope, part, what)
        if part is not None and value is not None and not data_free(value):
            ctx.error(
                "F0424",
                f"`{ctx.text(part.span)}` is not known before the data is",
                part.span,
                reason="The ends and the step of a range are made of constants, params and dims.",
                fix="Use a constant or a param.",
            )
            value = None
        if part is not None and value is None:
            return None
        parts.append(value)
    low, high, step = parts
    assert low is not None and high is not None
    if isinstance(step, ir.Const) and step.value <= 0:
        ctx.error(
            "F0409",
            f"the step of a range is {step.value:g}",
            step.span,
            reason="A range goes up from its low end.",
            fix="Use a positive step.",
        )
        return None
    if isinstance(low, ir.Const) and isinstance(high, ir.Const):
        if low.value > high.value:
            ctx.error(
                "F0409",
                f"the range {ctx.text(node.span)} is empty",
                node.span,
                reason=f"It goes up from {low.value:g} to {high.value:g}.",
                fix=f"Write `{ctx.text(node.high.span)} .. {ctx.text(node.low.span)}`.",
            )
            return None
        if (high.value - low.value) / (step.value if isinstance(step, ir.Const) else 1.0) > 1e6:
            ctx.error(
                "F0409",
                f"the range {ctx.text(node.span)} has more than a million members",
                node.span,
                reason="A range is iterated over member by member.",
                fix="Use a larger step, or draw from `uniform(low, high)`.",
            )
            return None
    return ir.ValueSet(name=ctx.text(node.span, 10_000), low=low, high=high, step=step)


def data_free(expr: ir.Expr) -> bool:
    """Made of constants, params and dims alone."""
    return all(isinstance(n, ir.Const | ir.Param | ir.Size | ir.Apply) for n in ir.walk(expr))


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
        from fccomodel.rewrite import substitute

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
        what, where = "bound", "around this place"
    elif (symbol := names.find(ctx, name)) is not None and symbol.what != "an index":
        what, where = symbol.what, f"on line {ctx.line(symbol.span)}"
    else:
        return True
    ctx.error(
        "F0204",
        f"`{name}` is {what} already",
        binder.span,
        reason=f"It is {what if what != 'bound' else 'bound'} {where}; a binder may not reuse a visible name.",
        fix=f"Take another letter, for instance `{_other(ctx, scope, name)}`, here and in the body.",
    )
    return False


def _other(ctx: Context, scope: Scope, name: str) -> str:
    for other in (*"zijkpqnmrst", f"{name}1", f"{name}2"):
        if other not in scope.locals and other not in ctx.symbols and other not in ctx.later:
            return other
    return f"{name}_new"


def distribution(ctx: Context, scope: Scope, node: syntax.Call, items: tuple[syntax.Expr, ...], span: Span) -> Domain | None:
    """``normal(0, 0.1)[d]``; an unknown family is a sampler to be given from Python."""
    wanted = DISTRIBUTIONS.get(node.func)
    if wanted is None and (hint := did_you_mean(node.func, DISTRIBUTIONS)):
        ctx.error(
            "F0206",
            f"there is no distribution `{node.func}`",
            node.span,
            reason=f"The distributions are {listed(DISTRIBUTIONS)}.",
            fix=hint,
        )
        return None
    if wanted is None and node.func in VECTOR_SETS:
        ctx.error(
            "F0407",
            f"nothing can be drawn from `{ctx.text(node.span)}`",
            node.span,
            reason="It is a set of vectors without a distribution.",
            fix=f"Maximise over it, `max[q in {ctx.text(node.span)}] ...`, or draw from `uniform(low, high)[n]`.",
        )
        return None
    args = _ordered(ctx, scope, node, wanted)
    if args is None:
        return None
    shape = declared_shape(ctx, scope, items)
    if shape is None:
        return None
    for arg in args:
        if arg.shape and not items:
            shape = arg.shape
        if arg.shape and not shapes.same_shape(ctx, arg.shape, shape):
            ctx.error(
                "F0301",
                f"`{ctx.text(arg.span)}` is {describe(ctx, arg)}, and the draw is a {show(shape)}",
                arg.span,
                fix="Give scalars, or arrays of the draw's shape.",
            )
            return None
        if ir.variables_of(arg):
            ctx.error(
                "F0414",
                f"the distribution depends on the decision variable in `{ctx.text(arg.span)}`",
                arg.span,
                reason="A draw is taken before the decision, so its derivative would be missed.",
                fix="Draw from a fixed distribution and transform: `E[e ~ normal(0, 1)] f(m + s * e)`.",
            )
            return None
    if wanted is not None and not signs.distribution_is_defined(ctx, node.func, args):
        return None
    return Domain(set=ir.Distribution(name=ctx.text(span), family=node.func, args=tuple(args), shape=shape))


def _ordered(ctx: Context, scope: Scope, node: syntax.Call, wanted: tuple[str, ...] | None) -> list[ir.Expr] | None:
    """A distribution's parameters in order."""
    parts = list(node.args)
    if node.keywords:
        named = {k.name: k.value for k in node.keywords}
        rest = (wanted or ())[len(parts) :]
        if wanted is None or set(named) != set(rest) or len(named) != len(node.keywords):
            ctx.error(
                "F0302",
                f"`{ctx.text(node.span)}` does not fit",
                node.span,
                fix=f"Write `{node.func}({', '.join(wanted or ('...',))})`.",
            )
            return None
        parts += [named[name] for name in rest]
    if wanted is not None and len(parts) != len(wanted):
        ctx.error(
            "F0302",
            f"`{node.func}` has {len(wanted)} {'parameter' if len(wanted) == 1 else 'parameters'}, and {len(parts)} are given",
            node.span,
            fix=f"Write `{node.func}({', '.join(wanted)})`.",
        )
        return None
    values = [expressions.number(ctx, scope, p, "a distribution's parameter", scalar=False) for p in parts]
    return None if any(v is None for v in values) else [v for v in values if v is not None]


# ------------------------------------------------------------------------------------------------------------- vector sets
def vector_set(ctx: Context, scope: Scope, node: syntax.Expr, shape: ir.Shape | None) -> ir.VectorSet | None:
    """``simplex(K)``, ``box(l, u)``, ...: as a variable's domain (``shape`` is the variable's) or to range over (None)."""
    family = node.func if isinstance(node, syntax.Call) else node.id if isinstance(node, syntax.Name) else ""
    args = node.args if isinstance(node, syntax.Call) else ()
    span, text = node.span, ctx.text(node.span)
    if family not in VECTOR_SETS:
        hint = ctx.suggest(family, VECTOR_SETS) if family else ""
        ctx.error(
            "F0412",
            f"`{text}` is not a set of vectors",
            span,
            reason=f"Those known are {listed(VECTOR_SETS.values())}.",
            fix=hint or "Write a condition on the variable as a labelled constraint.",
        )
        return None
    wanted = {"box": 2, "simplex": 1, "capped_simplex": 2, "ball": 1, "nonneg": 0, "affine": 2}[family]
    keywords = node.keywords if isinstance(node, syntax.Call) else ()
    if keywords or (len(args) != wanted and not (family == "simplex" and not args and shape)):
        ctx.error(
            "F0302",
            f"`{text}` has {len(args) + len(keywords)} arguments; `{family}` takes {wanted}",
            span,
            fix=f"Write `{VECTOR_SETS[family]}`.",
        )
        return None
    if family in ("simplex", "capped_simplex"):
        return _simplex(ctx, scope, family, args, shape, span)
    if shape is None:
        ctx.error(
            "F0407",
            f"`{text}` has no size here",
            span,
            reason="`max[q in ..]` ranges over vectors of known size.",
            fix="Use `simplex(K)` or `capped_simplex(K, alpha)`.",
        )
        return None
    values = [expressions.number(ctx, scope, a, f"an argument of `{family}`", scalar=False) for a in args]
    if any(v is None for v in values):
        return None
    return _with_values(ctx, family, [v for v in values if v is not None], shape, span)


def _simplex(
    ctx: Context, scope: Scope, family: str, args: tuple[syntax.Expr, ...], shape: ir.Shape | None, span: Span
) -> ir.VectorSet | None:
    own = declared_shape(ctx, scope, args[:1]) if args else shape
    if own is None:
        return None
    if shape is not None and not shapes.same_shape(ctx, own, shape):
        ctx.error(
            "F0301",
            f"`{ctx.text(span)}` has vectors [{own[0]}], and the variable is a {show(shape)}",
            span,
            reason="A variable's set has the variable's shape.",
            fix=f"Write `{family}({shape[0]}...)`." if shape else "Give the variable a shape.",
        )
        return None
    rest: tuple[ir.Expr, ...] = ()
    if family == "capped_simplex":
        cap = expressions.number(ctx, scope, args[1], "the second argument of `capped_simplex`")
        if (
            cap is None
            or not is_fixed(ctx, cap)
            or not signs.within(ctx, cap, 0, 1, "the tail of `capped_simplex`", low_open=True)
        ):
            return None
        rest = (cap,)
    return ir.VectorSet(name=ctx.text(span), family=family, args=rest, shape=own)


def _with_values(ctx: Context, family: str, values: list[ir.Expr], shape: ir.Shape, span: Span) -> ir.VectorSet | None:
    text = ctx.text(span)
    for value in values:
        if not is_fixed(ctx, value):
            return None
    if family == "ball":
        if not shape:
            ctx.error("F0301", "a scalar variable has no ball", span, fix="Write bounds: `>= -1, <= 1`.")
            return None
        if not expressions_scalar(ctx, values[0]) or not signs.within(
            ctx, values[0], 0, float("inf"), "the radius of a ball", low_open=True
        ):
            return None
    if family == "box":
        for value in values:
            if value.shape and not shapes.same_shape(ctx, value.shape, shape):
                ctx.error(
                    "F0301",
                    f"`{ctx.text(value.span)}` is {describe(ctx, value)}, and the variable is a {show(shape)}",
                    value.span,
                    fix="Give a scalar, or a bound for every entry.",
                )
                return None
        low, high = values
        if isinstance(low, ir.Const) and isinstance(high, ir.Const) and low.value > high.value:
            ctx.error(
                "F0410",
                f"`{text}` is empty",
                span,
                reason=f"The low end {low.value:g} is above the high end {high.value:g}.",
                fix=f"Write `box({high.value:g}, {low.value:g})`.",
            )
            return None
    if family == "affine":
        matrix, right = values
        fits = len(matrix.shape) == 2 and len(right.shape) == 1 and len(shape) == 1
        if not (
            fits and shapes.same_dim(ctx, matrix.shape[1], shape[0]) and shapes.same_dim(ctx, matrix.shape[0], right.shape[0])
        ):
            ctx.error(
                "F0301",
                f"`{text}` does not fit a {show(shape)}",
                span,
                reason=f"`A x = b` needs a matrix [m, n], a vector [m] and a variable [n]; these are {describe(ctx, matrix)}, {describe(ctx, right)}"
                f" and a {show(shape)}.",
                fix="Correct the declared shapes.",
            )
            return None
    return ir.VectorSet(name=text, family=family, args=tuple(values), shape=shape)


def expressions_scalar(ctx: Context, value: ir.Expr) -> bool:
    if value.shape:
        ctx.error(
            "F0303",
            f"`{ctx.text(value.span)}` is {describe(ctx, value)}, and a scalar is needed",
            value.span,
            fix="Give one number.",
        )
    return not value.shape


def is_fixed(ctx: Context, value: ir.Expr) -> bool:
    """True, or an error: the argument of a variable's set depends on a variable or on a draw."""
    if ir.variables_of(value) or ir.free_binders(value):
        ctx.error(
            "F0424",
            f"`{ctx.text(value.span)}` is not fixed",
            value.span,
            reason="A variable's set, and an option of a reduction, is made of constants, params and arrays.",
            fix="Write the condition as a labelled constraint after `subject to`.",
        )
        return False
    return True


# ------------------------------------------------------------------------------------------------------------------ shapes
def declared_shape(ctx: Context, scope: Scope, items: tuple[syntax.Expr, ...]) -> ir.Shape | None:
    """The sizes in ``real[d, 3]`` or ``var x[A]``: dims, sets, whole numbers."""
    dims: list[ir.Dim] = []
    for item in items:
        dim = declared_dim(ctx, scope, item)
        if dim is None:
            return None
        dims.append(dim)
    return tuple(dims)


def declared_dim(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Dim | None:
    text = ctx.text(node.span)
    if isinstance(node, syntax.Name) and node.id not in scope.locals:
        symbol = names.find(ctx, node.id)
        if symbol is None:
            candidates = [n for n, s in ctx.symbols.items() if isinstance(s, SetSymbol | TableSymbol) or s.what == "a dim"]
            if node.id in ctx.later or any(c[0] == node.id for c in ctx.calls):
                names.unknown(ctx, scope, node.id, node.span)
            else:
                ctx.error(
                    "F0201",
                    f"size `{node.id}` is not declared",
                    node.span,
                    reason=f"The dims and sets declared so far are {listed(candidates)}."
                    if candidates
                    else "No dim or set is declared so far.",
                    fix=ctx.suggest(node.id, candidates) or f"Declare `dim {node.id};` before this statement.",
                )
            return None
        ctx.used.add(node.id)
        match symbol:
            case BrokenSymbol():
                return None
            case SetSymbol(set=ir.Set()):
                return node.id
            case TableSymbol() if ctx.tables[node.id].family is None:
                return node.id
        if symbol.what == "a dim":
            return node.id
        if symbol.what != "a constant":
            ctx.error(
                "F0416",
                f"`{node.id}` is {symbol.what}, not a size",
                node.span,
                reason="A size is a dim, a set, or a whole number.",
                fix=f"Declare it as `dim {node.id};` or `const {node.id} = 3;`.",
            )
            return None
    if isinstance(node, syntax.SetLiteral | syntax.Range):
        ctx.error(
            "F0416",
            f"`{text}` has no name",
            node.span,
            reason="An axis is named after its set, so that indices can be checked.",
            fix=f"Declare `set K = {text};` and write `K` here.",
        )
        return None
    value = expressions.number(ctx, scope, node, "a size")
    if value is None:
        return None
    if not isinstance(value, ir.Const) or value.value != int(value.value) or value.value < 1:
        ctx.error(
            "F0416",
            f"`{text}` is not a size",
            node.span,
            reason="A size is a dim, a set, or a whole number of 1 or more.",
            fix="Declare a dim for it: it is solved from the data.",
        )
        return None
    return int(value.value)
