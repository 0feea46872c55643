"""Declarations: what each statement before the objective adds to the problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from fccomodel import ir, syntax
from fccomodel.check import calls, expressions, reductions, sets, shapes, signs
from fccomodel.check.context import (
    BrokenSymbol,
    ConstSymbol,
    Context,
    DefSymbol,
    DimSymbol,
    Domain,
    IndexSymbol,
    LetSymbol,
    NetSymbol,
    NumberSymbol,
    Rule,
    Scope,
    SetFamilySymbol,
    SetSymbol,
    TableSymbol,
    listed,
)
from fccomodel.check.shapes import describe, show, sort
from fccomodel.source import Span

HERE = Scope()


def name_span(ctx: Context, node: syntax.Node, name: str) -> Span:
    """Where a statement writes the name that it declares."""
    text = ctx.source.text[node.span.start : node.span.end]
    found = re.compile(rf"\b{re.escape(name)}\b").search(
        text, re.match(r"\s*\w+", text).end() if re.match(r"\s*\w+\s", text) else 0
    )  # type: ignore[union-attr]
    return node.span if found is None else Span(start=node.span.start + found.start(), end=node.span.start + found.end())


def _broken(ctx: Context, node: syntax.Node, name: str) -> None:
    ctx.declare(BrokenSymbol(name=name, what="a declaration with an error", span=name_span(ctx, node, name)))


# --------------------------------------------------------------------------------------------------------- dims and sets
def dim(ctx: Context, node: syntax.DimDecl) -> None:
    for name in node.names:
        if ctx.declare(DimSymbol(name=name, what="a dim", span=name_span(ctx, node, name))):
            ctx.dims.append(name)


def set_(ctx: Context, node: syntax.SetDecl) -> None:
    span = name_span(ctx, node, node.name)
    if node.value is None:
        if node.family is not None:
            ctx.error(
                "F0416",
                f"the family `{node.name}` has no value",
                span,
                reason="Only the labels of a plain set can come with the data.",
                fix=f"Write `set {node.name}[...] = {{z in D | ...}};`.",
            )
            _broken(ctx, node, node.name)
            return
        labels = ir.LabelSet(name=node.name)
        if ctx.declare(SetSymbol(name=node.name, what="a set", span=span, set=labels, base=Domain(set=labels))):
            ctx.sets[node.name] = labels
        return
    if node.family is not None:
        _set_family(ctx, node, span)
        return
    domain = sets.domain_of(ctx, HERE, node.value, "in")
    if domain is None:
        _broken(ctx, node, node.name)
        return
    if isinstance(domain.set, ir.VectorSet | ir.Distribution):
        ctx.error(
            "F0416",
            f"`{ctx.text(node.value.span)}` cannot be named by `set`",
            node.value.span,
            reason="A set has elements that an index ranges over.",
            fix="Write it where it is used.",
        )
        _broken(ctx, node, node.name)
        return
    if domain.rules:
        if ctx.declare(SetSymbol(name=node.name, what="a set", span=span, set=None, base=domain)):
            ctx.used.discard(node.name)
        return
    named = domain.set if isinstance(node.value, syntax.Name) else replace(domain.set, name=node.name)
    if ctx.declare(SetSymbol(name=node.name, what="a set", span=span, set=named, base=Domain(set=named))):
        ctx.sets[node.name] = named


def _set_family(ctx: Context, node: syntax.SetDecl, span: Span) -> None:
    assert node.family is not None and node.value is not None
    head = _family(ctx, node.family, "a family of sets")
    if head is None:
        _broken(ctx, node, node.name)
        return
    before = len(ctx.errors)
    domain = sets.domain_of(ctx, head.scope, node.value, "in")
    if domain is None or len(ctx.errors) > before:
        _broken(ctx, node, node.name)
        return
    if not isinstance(domain.set, ir.RowSet) and not domain.rules:
        pass  # a family of equal sets: allowed, and harmless
    ctx.declare(
        SetFamilySymbol(
            name=node.name,
            what="a family of sets",
            span=span,
            names=tuple(b.name for b in head.binders),
            binders=head.binders,
            value=node.value,
        )
    )


def _family(ctx: Context, indexing: syntax.Indexing, what: str, scope: Scope = HERE) -> reductions.Head | None:
    """The binders of a family; None after an error."""
    for binder in indexing.binders:
        if binder.kind != "in":
            ctx.error(
                "F0406",
                f"{what} is indexed with `in`",
                binder.span,
                reason="Its members are all elements of a set; `~` draws some.",
                fix=f"Write `{binder.name} in {ctx.text(binder.domain.span)}`.",
            )
            return None
    head = reductions.bind(ctx, scope, indexing.binders, indexing.condition)
    if head.broken:
        return None
    for binder in head.binders:
        if isinstance(binder.domain, ir.VectorSet):
            ctx.error(
                "F0407",
                f"`{binder.name}` has no elements to iterate over",
                binder.span,
                reason="It ranges over a set of vectors.",
                fix="Use a finite set.",
            )
            return None
    return head


def index(ctx: Context, node: syntax.IndexDecl) -> None:
    for binder in node.binders:
        scope = reductions.indices_open(ctx, HERE, pending={})
        domain = sets.domain_of(ctx, scope, binder.domain, binder.kind)
        span = Span(start=binder.span.start, end=binder.span.start + len(binder.name))
        if domain is None:
            ctx.declare(BrokenSymbol(name=binder.name, what="an index", span=span))
            continue
        if isinstance(domain.set, ir.VectorSet):
            ctx.error(
                "F0407",
                f"`{ctx.text(binder.domain.span)}` has no elements to iterate over",
                binder.domain.span,
                reason="An index ranges over elements.",
                fix="Use a table, a finite set, or a distribution with `~`.",
            )
            ctx.declare(BrokenSymbol(name=binder.name, what="an index", span=span))
            continue
        ctx.declare(IndexSymbol(name=binder.name, what="an index", span=span, binder=binder))


# ------------------------------------------------------------------------------------------------------------------- data
def data(ctx: Context, node: syntax.DataDecl) -> None:
    span = name_span(ctx, node, node.name)
    if node.type is not None:
        kind = None if node.family is not None else column_type(ctx, node.type)
        if node.family is not None:
            ctx.error(
                "F0416",
                f"`{node.name}` is a family without rows",
                span,
                reason="A family of numbers is an array: its sets are its shape.",
                fix=f"Write `data {node.name} : real[K];`.",
            )
        if kind is None:
            _broken(ctx, node, node.name)
            return
        param = ir.Param(name=node.name, shape=kind.shape, span=span)
        if ctx.declare(
            NumberSymbol(name=node.name, what="an array" if kind.shape else "a number given as data", span=span, node=param)
        ):
            ctx.arrays[node.name] = ir.Array(name=node.name, type=kind, span=span)
        return
    family: ir.Binder | None = None
    broken = False
    if node.family is not None:
        head = _family(ctx, node.family, "a family of tables")
        if head is not None and (len(head.binders) > 1 or head.condition is not None):
            ctx.error(
                "F0416",
                f"`{node.name}` has more than one index, or a condition",
                node.family.span,
                reason="A family of tables is indexed by one set.",
                fix="Use one index; further keys are columns.",
            )
            head = None
        broken = head is None
        family = head.binders[0] if head is not None else None
    columns: dict[str, ir.ColumnType] = {}
    for column in node.fields or ():
        if column.name in columns:
            ctx.error(
                "F0203",
                f"column `{column.name}` is declared a second time",
                column.span,
                reason="One name means one column.",
                fix="Rename one.",
            )
            continue
        kind = column_type(ctx, column.type)
        broken = broken or kind is None
        if kind is not None:
            columns[column.name] = replace(kind, span=column.span)
    if broken:
        _broken(ctx, node, node.name)
        return
    what = "a family of tables" if family is not None else "a table"
    rows = ir.RowSet(name=node.name, table=node.name)
    if ctx.declare(TableSymbol(name=node.name, what=what, span=span, rows=rows)):
        ctx.tables[node.name] = ir.Table(name=node.name, columns=columns, family=family, span=span)


def column_type(ctx: Context, node: syntax.TypeExpr) -> ir.ColumnType | None:
    """``real[d]``, ``int``, ``{-1, 1}``, a set's name."""
    shape = sets.declared_shape(ctx, HERE, node.shape)
    if node.values is not None:
        domain = sets.literal_set(ctx, HERE, node.values)
        return (
            None if domain is None or shape is None else ir.ColumnType(kind="values", shape=shape, domain=domain, span=node.span)
        )
    if node.name in ("real", "int"):
        return None if shape is None else ir.ColumnType(kind=node.name, shape=shape, span=node.span)
    assert node.name is not None
    symbol = ctx.symbols.get(node.name)
    if isinstance(symbol, SetSymbol) and isinstance(symbol.set, ir.ValueSet | ir.LabelSet):
        ctx.used.add(node.name)
        return None if shape is None else ir.ColumnType(kind="values", shape=shape, domain=symbol.set, span=node.span)
    if isinstance(symbol, BrokenSymbol):
        ctx.used.add(node.name)
        return None
    at = Span(start=node.span.start, end=node.span.start + len(node.name))
    value_sets = [n for n, s in ctx.symbols.items() if isinstance(s, SetSymbol) and isinstance(s.set, ir.ValueSet | ir.LabelSet)]
    foreign = {
        "float": "real",
        "number": "real",
        "double": "real",
        "integer": "int",
        "bool": "{0, 1}",
        "binary": "{0, 1}",
        "boolean": "{0, 1}",
        "string": "a set of labels: `set G;` before the table, then `G`",
        "str": "a set of labels: `set G;` before the table, then `G`",
    }
    if symbol is not None:
        ctx.used.add(node.name)
        hint = (
            f"`{node.name}` is {symbol.what}. For a vector of that size write `real[{node.name}]`."
            if symbol.what == "a dim"
            else ""
        )
        ctx.error(
            "F0416",
            f"`{node.name}` is {symbol.what}, not the type of a column",
            at,
            reason="A column is `real`, `int`, a list of values `{0, 1}`, or a set of values or labels.",
            fix=hint or "Use one of these.",
        )
    elif node.name in ctx.later:
        ctx.error(
            "F0202",
            f"`{node.name}` is used before it is declared",
            at,
            reason=f"It comes on line {ctx.line(ctx.later[node.name])}.",
            fix=f"Move the declaration of `{node.name}` above this one.",
        )
    else:
        ctx.error(
            "F0416",
            f"there is no type `{node.name}`",
            at,
            reason="A column is `real`, `int`, a list of values `{0, 1}`, or a set declared before the table"
            + (f" ({listed(value_sets)})." if value_sets else "."),
            fix=f"Write {foreign[node.name]}."
            if node.name in foreign
            else ctx.suggest(node.name, ["real", "int", *value_sets])
            or f"Declare `set {node.name};` before the table: its labels come with the data.",
        )
    return None


# ---------------------------------------------------------------------------------------------------------------- numbers
def const(ctx: Context, node: syntax.ConstDecl) -> None:
    span = name_span(ctx, node, node.name)
    value = expressions.number(ctx, HERE, node.value, "a constant")
    if value is None:
        _broken(ctx, node, node.name)
        return
    if not isinstance(value, ir.Const):
        ctx.error(
            "F0424",
            f"`{ctx.text(node.value.span)}` is not a constant",
            node.value.span,
            reason="A `const` is baked into the solver: numbers alone.",
            fix="Use `param` for a value that is given later, `let` for a quantity, or `def` for a function.",
        )
        _broken(ctx, node, node.name)
        return
    ctx.declare(ConstSymbol(name=node.name, what="a constant", span=span, value=value.value))


def param(ctx: Context, node: syntax.ParamDecl) -> None:
    span = name_span(ctx, node, node.name)
    shape = sets.declared_shape(ctx, HERE, node.shape)
    found = _bounds(ctx, node)
    default = None if node.default is None else expressions.number(ctx, HERE, node.default, "a default", scalar=False)
    if shape is None or found is None or (node.default is not None and default is None):
        _broken(ctx, node, node.name)
        return
    low, high, strict_low, strict_high = found
    good = True
    if default is not None:
        if default.shape and not shapes.same_shape(ctx, default.shape, shape):
            ctx.error(
                "F0301",
                f"the default is {describe(ctx, default)}, and `{node.name}` is a {show(shape)}",
                default.span,
                fix="Give a scalar: every entry has it.",
            )
            good = False
        elif not sets.data_free(default) or any(isinstance(n, ir.Param) and n.name in ctx.arrays for n in ir.walk(default)):
            ctx.error(
                "F0424",
                f"`{ctx.text(default.span)}` is not known before the data is",
                default.span,
                reason="A default is made of constants, params and dims.",
                fix="Use a number.",
            )
            good = False
        elif isinstance(default, ir.Const):
            value = default.value
            if value < low or value > high or (strict_low and value == low) or (strict_high and value == high):
                bounds = ", ".join(ctx.text(b.span) for b in node.bounds)
                ctx.error(
                    "F0411",
                    f"the default {value:g} breaks `{bounds}`",
                    default.span,
                    reason="The bounds of a param are part of its type: every value keeps them.",
                    fix="Change the default or the bounds.",
                )
                good = False
    if not good:
        _broken(ctx, node, node.name)
        return
    made = ir.Parameter(
        name=node.name,
        shape=shape,
        lower=low,
        upper=high,
        strict_lower=strict_low,
        strict_upper=strict_high,
        default=default,
        span=span,
    )
    if ctx.declare(
        NumberSymbol(name=node.name, what="a param", span=span, node=ir.Param(name=node.name, shape=shape, span=span))
    ):
        ctx.params[node.name] = made


def _bounds(ctx: Context, node: syntax.ParamDecl) -> tuple[float, float, bool, bool] | None:
    """Lower and upper bound of a param, and whether each is strict."""
    low, high, strict_low, strict_high = -inf, inf, False, False
    for bound in node.bounds:
        if bound.op == "in":
            ctx.error(
                "F0412",
                "a param has no set",
                bound.span,
                reason="Its bounds are comparisons with constants.",
                fix="Write `>= 0`, `> 0, <= 1`.",
            )
            return None
        value = expressions.number(ctx, HERE, bound.value, "a bound")
        if value is None:
            return None
        if not isinstance(value, ir.Const):
            ctx.error(
                "F0424",
                f"`{ctx.text(bound.value.span)}` is not a constant",
                bound.value.span,
                reason="The bounds of a param are part of its type.",
                fix="Use a number.",
            )
            return None
        x = value.value
        match bound.op:
            case ">=" | ">":
                if x >= low:
                    low, strict_low = x, bound.op == ">"
            case "<=" | "<":
                if x <= high:
                    high, strict_high = x, bound.op == "<"
            case _:
                ctx.error(
                    "F0404",
                    f"`{bound.op}` does not bound",
                    bound.span,
                    reason="Bounds are `>=`, `>`, `<=`, `<`.",
                    fix=f"For a fixed value write `const {node.name} = {x:g};`."
                    if bound.op in ("==", "=")
                    else "Use one of these.",
                )
                return None
    if low > high or (low == high and (strict_low or strict_high)):
        ctx.error(
            "F0410",
            f"no number keeps the bounds of `{node.name}`",
            node.bounds[0].span | node.bounds[-1].span,
            reason=f"They ask for at least {low:g} and at most {high:g}.",
            fix="Swap or correct them.",
        )
        return None
    return low, high, strict_low, strict_high


# ------------------------------------------------------------------------------------------------------- nets and variables
#: assumption -> the least and most arguments
ASSUMPTIONS = {"smooth": (0, 1), "lipschitz": (0, 1), "weakly_convex": (0, 1), "convex": (0, 0)}


def net(ctx: Context, node: syntax.NetDecl) -> None:
    span = name_span(ctx, node, node.name)
    ends: list[ir.Shape | None] = []
    for end in (node.input, node.output):
        if end.name != "real":
            ctx.error(
                "F0416",
                f"`{ctx.text(end.span)}` is not what a net maps",
                end.span,
                reason="A net maps real numbers or arrays of them.",
                fix="Write `real` or `real[d]`.",
            )
            ends.append(None)
        else:
            ends.append(sets.declared_shape(ctx, HERE, end.shape))
    assume = [_assumption(ctx, a) for a in node.assume]
    if node.name in calls.named_atoms():
        _taken(ctx, node.name, span)
        assume.append(None)
    if any(e is None for e in ends) or any(a is None for a in assume):
        _broken(ctx, node, node.name)
        return
    made = ir.Net(
        name=node.name, input=ends[0] or (), output=ends[1] or (), assume=tuple(a for a in assume if a is not None), span=span
    )
    if ctx.declare(NetSymbol(name=node.name, what="a net", span=span, net=made)):
        ctx.nets[node.name] = made


def _taken(ctx: Context, name: str, span: Span) -> None:
    ctx.error(
        "F0205",
        f"`{name}` is a function of the language",
        span,
        reason="A model that gave it another meaning would mislead its readers.",
        fix=f"Rename it, for instance `my_{name}`.",
    )


def _assumption(ctx: Context, node: syntax.Expr) -> tuple[str, tuple[float, ...]] | None:
    name = node.id if isinstance(node, syntax.Name) else node.func if isinstance(node, syntax.Call) else ""
    args = node.args if isinstance(node, syntax.Call) else ()
    if name not in ASSUMPTIONS:
        ctx.error(
            "F0418",
            f"`{ctx.text(node.span)}` is no assumption about a net",
            node.span,
            reason="Known are `smooth`, `smooth(L)`, `lipschitz(C)`, `weakly_convex(rho)` and `convex`.",
            fix=ctx.suggest(name, ASSUMPTIONS),
        )
        return None
    low, high = ASSUMPTIONS[name]
    values = [expressions.number(ctx, HERE, a, "a constant") for a in args]
    if any(v is None for v in values):
        return None
    if not low <= len(args) <= high or not all(isinstance(v, ir.Const) and v.value >= 0 for v in values):
        ctx.error(
            "F0418",
            f"`{ctx.text(node.span)}` does not fit",
            node.span,
            reason=f"`{name}` takes {'no argument' if high == 0 else 'one constant of 0 or more, or none'}.",
            fix=f"Write `{name}`.",
        )
        return None
    return name, tuple(v.value for v in values if isinstance(v, ir.Const))


def var(ctx: Context, node: syntax.VarDecl) -> None:
    span = name_span(ctx, node, node.name)
    if node.value is not None:
        _net_variable(ctx, node, span)
        return
    shape = sets.declared_shape(ctx, HERE, node.shape)
    if shape is None:
        _broken(ctx, node, node.name)
        return
    found = variable_sets(ctx, node, shape)
    if found is None:
        _broken(ctx, node, node.name)
        return
    if ctx.declare(
        NumberSymbol(name=node.name, what="a variable", span=span, node=ir.Var(name=node.name, shape=shape, span=span))
    ):
        ctx.variables[node.name] = ir.Variable(name=node.name, shape=shape, sets=found, span=span)


def _net_variable(ctx: Context, node: syntax.VarDecl, span: Span) -> None:
    value = node.value
    owner = value.args[0] if isinstance(value, syntax.Call) and value.func == "params" and len(value.args) == 1 else None
    if value is None or not isinstance(owner, syntax.Name):
        assert value is not None
        ctx.error(
            "F0419",
            "a variable has no value in the model",
            value.span,
            reason="The solver finds it; only `var w = params(s);` gives it a form.",
            fix=f"For a named quantity write `let {node.name} = ...;`; a starting point is given to `solve`.",
        )
        _broken(ctx, node, node.name)
        return
    symbol = ctx.symbols.get(owner.id)
    nets = [n for n, s in ctx.symbols.items() if isinstance(s, NetSymbol)]
    if isinstance(symbol, BrokenSymbol):
        ctx.used.add(owner.id)
    elif not isinstance(symbol, NetSymbol):
        what = f"is {symbol.what}, not a net" if symbol is not None else "is not a declared net"
        ctx.error(
            "F0419",
            f"`{owner.id}` {what}",
            owner.span,
            reason="`params(s)` is the parameters of the net `s`" + (f"; declared are {listed(nets)}." if nets else "."),
            fix=ctx.suggest(owner.id, nets)
            or f"Declare `net {owner.id if symbol is None else 's'} : real[d] -> real;` before it.",
        )
    elif node.shape or node.bounds:
        ctx.error(
            "F0419",
            "the parameters of a net have no shape or bounds in the model",
            span,
            reason="The net that is bound has its own.",
            fix=f"Write `var {node.name} = params({owner.id});`.",
        )
    else:
        shape = (f"params({owner.id})",)
        ctx.used.add(owner.id)
        if ctx.declare(
            NumberSymbol(
                name=node.name, what="the parameters of a net", span=span, node=ir.Var(name=node.name, shape=shape, span=span)
            )
        ):
            ctx.variables[node.name] = ir.Variable(name=node.name, shape=shape, net=owner.id, span=span)
        return
    _broken(ctx, node, node.name)


def variable_sets(ctx: Context, node: syntax.VarDecl, shape: ir.Shape) -> tuple[ir.VectorSet, ...] | None:
    """A variable's simple sets: its bounds together as one box, then the sets after ``in``."""
    low: ir.Expr = ir.Const(value=-inf, span=node.span)
    high: ir.Expr = ir.Const(value=inf, span=node.span)
    others: list[ir.VectorSet] = []
    spans: list[Span] = []
    for bound in node.bounds:
        if bound.op == "in":
            found = _variable_set(ctx, node, bound, shape)
            if found is None:
                return None
            others.append(found)
            continue
        if bound.op not in (">=", "<="):
            fix = {
                "<": "Write `<=`.",
                ">": "Write `>=`.",
                "=": "Write `==` in a constraint.",
                "==": "Fix it in a constraint, or use a `param`.",
            }
            ctx.error(
                "F0404",
                f"`{bound.op}` does not bound a variable",
                bound.span,
                reason="Bounds are closed: the solution may lie on them." if bound.op in "<>" else "Bounds are `>=` and `<=`.",
                fix=fix.get(bound.op, "Use `>=` or `<=`."),
            )
            return None
        value = expressions.number(ctx, HERE, bound.value, "a bound", scalar=False)
        if value is None or not sets.is_fixed(ctx, value):
            return None
        if value.shape and not shapes.same_shape(ctx, value.shape, shape):
            ctx.error(
                "F0301",
                f"`{ctx.text(value.span)}` is {describe(ctx, value)}, and `{node.name}` is a {show(shape)}",
                value.span,
                fix="Give a scalar, or a bound for every entry.",
            )
            return None
        if bound.op == ">=":
            low = _tighter(low, value, max, "max")
        else:
            high = _tighter(high, value, min, "min")
        spans.append(bound.span)
    if not spans:
        return tuple(others)
    if signs.interval(ctx, low).lo > signs.interval(ctx, high).hi:
        ctx.error(
            "F0410",
            f"no value keeps the bounds of `{node.name}`",
            spans[0] | spans[-1],
            reason=f"They ask for at least {signs.interval(ctx, low).lo:g} and at most {signs.interval(ctx, high).hi:g}.",
            fix="Swap or correct them.",
        )
        return None
    text = ", ".join(ctx.text(s) for s in spans)
    return (ir.VectorSet(name=text, family="box", args=(low, high), shape=shape), *others)


def _tighter(old: ir.Expr, new: ir.Expr, pick: Callable[[float, float], float], atom: str) -> ir.Expr:
    """The tighter of two bounds."""
    if isinstance(old, ir.Const) and old.value in (inf, -inf):
        return new
    if isinstance(old, ir.Const) and isinstance(new, ir.Const):
        return ir.Const(value=pick(old.value, new.value), span=new.span)
    return ir.Apply(op=atom, args=(old, new), shape=old.shape or new.shape, span=old.span | new.span)


def _variable_set(ctx: Context, node: syntax.VarDecl, bound: syntax.Bound, shape: ir.Shape) -> ir.VectorSet | None:
    value = bound.value
    text = ctx.text(value.span)
    if isinstance(value, syntax.SetLiteral | syntax.Range) or (
        isinstance(value, syntax.Name) and isinstance(ctx.symbols.get(value.id), SetSymbol)
    ):
        low_high = (
            f" Its smallest box is `>= {ctx.text(value.low.span)}, <= {ctx.text(value.high.span)}`."
            if isinstance(value, syntax.Range)
            else ""
        )
        ctx.error(
            "F0412",
            f"`{node.name}` cannot be restricted to the values `{text}`",
            value.span,
            reason="Variables are real numbers: a choice among finitely many values is integer programming." + low_high,
            fix="Relax it to an interval, `>= 0, <= 1`, or to weights on the values, `in simplex(K)`.",
        )
        return None
    return sets.vector_set(ctx, HERE, value, shape)


# ----------------------------------------------------------------------------------------------------- functions and lets
def def_(ctx: Context, node: syntax.DefDecl) -> None:
    """A function: its names are checked now, its shapes at each call."""
    span = name_span(ctx, node, node.name)
    for k, parameter in enumerate(node.params):
        if parameter in node.params[:k]:
            ctx.error(
                "F0203",
                f"`{node.name}` has two parameters `{parameter}`",
                span,
                reason="One name means one argument.",
                fix="Rename one.",
            )
            _broken(ctx, node, node.name)
            return
    before = len(ctx.errors)
    unknown = Scope(locals=dict.fromkeys(node.params))
    expressions.evaluate(ctx, reductions.indices_open(ctx, unknown, pending={}), node.body)
    if node.name in calls.named_atoms():
        _taken(ctx, node.name, span)
    if len(ctx.errors) > before:
        _broken(ctx, node, node.name)
        return
    ctx.declare(
        DefSymbol(
            name=node.name, what="a function", span=span, params=node.params, body=node.body, symbols=frozenset(ctx.symbols)
        )
    )


def let(ctx: Context, node: syntax.LetDecl) -> None:
    span = name_span(ctx, node, node.name)
    ctx.pending = {}
    scope = reductions.indices_open(ctx, HERE)
    binders: tuple[ir.Binder, ...] = ()
    if node.family is not None:
        head = _family(ctx, node.family, "a family of quantities", scope)
        if head is None:
            _broken(ctx, node, node.name)
            return
        if head.condition is not None:
            ctx.error(
                "F0416",
                f"the family `{node.name}` has a condition",
                node.family.span,
                reason="Every combination of its indices is a member, so that each use finds one.",
                fix="Leave the condition out here, and restrict the reductions that use it.",
            )
            _broken(ctx, node, node.name)
            return
        scope, binders = head.scope, head.binders
    body = expressions.evaluate(ctx, scope, node.value)
    if (
        body is None
        or not expressions.is_number(ctx, body, "a `let`")
        or not settled(ctx, body, binders, f"`let {node.name}`", family=True)
    ):
        _broken(ctx, node, node.name)
        return
    made = ir.Let(name=node.name, binders=binders, body=body, span=span)
    if ctx.declare(LetSymbol(name=node.name, what="a `let`", span=span, let=made)):
        ctx.lets[node.name] = made


def settled(ctx: Context, body: ir.Expr, binders: Sequence[ir.Binder], what: str, *, family: bool = False) -> bool:
    """True, or an error: the value depends on an index that nothing binds."""
    for binder in ir.free_binders(body):
        if binder in binders:
            continue
        place = next(n for n in ir.walk(body, lets=False) if isinstance(n, ir.Column | ir.Element) and n.binder is binder)
        word = "`mean_{0}`, `sum_{0}` or `max_{0}`" if binder.kind == "in" else "`E_{0}`, or `E[...]` around it"
        fix = f"Reduce over it: {word.format(binder.name)}."
        if family and binder.kind == "in":
            fix += f" For one value per `{binder.name}` declare a family, `let x[{binder.name} in {binder.domain.name}] = ...`."
        ctx.error(
            "F0403",
            f"{what} depends on the index `{binder.name}`, which nothing binds",
            place.span,
            reason=f"`index {binder.name} {binder.kind} {binder.domain.name}` is declared on line {ctx.line(binder.span)};"
            + (" what is drawn must be averaged." if binder.kind == "~" else " it stands for every element of its set."),
            fix=fix,
        )
        return False
    return True


def rule_count(domain: Domain) -> int:
    return len(domain.rules)


__all__ = ["Rule", "const", "data", "def_", "dim", "index", "let", "net", "param", "set_", "settled", "sort", "var"]
