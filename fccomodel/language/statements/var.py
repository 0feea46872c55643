"""``var w[d] in ball(2);``, ``var w = params(s);``: decision variables and their simple sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import (
    declarations,
    distributions,
    expressions,
    literals,
    shapes,
    signs,
    vector_sets,
)
from fccomodel.language.formulas.context import BrokenSymbol, Context, NetSymbol, NumberSymbol, SetSymbol
from fccomodel.language.formulas.shapes import described, show
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import bounds_of, declared
from fccomodel.library import distributions as registry


@dataclass(frozen=True, kw_only=True)
class VarDecl(syntax.Statement):
    """``var w[d] >= 0, in simplex(A);`` or ``var w = params(s);``."""

    name: str
    shape: tuple[syntax.Expr, ...] = ()
    bounds: tuple[syntax.Bound, ...] = ()
    value: syntax.Expr | None = None
    start: syntax.Expr | None = None


def _starting(c: list, at: Span) -> syntax.Expr:
    """``start normal(0, 1)``: what stands after the word."""
    start: syntax.Expr = c[1]
    return start


def _read(c: list, at: Span) -> VarDecl | tuple[VarDecl, ...]:
    if isinstance(c[0], tuple):
        return tuple(replace(one, span=at) for one in c[0])
    name = declared(c[0])
    bounds = bounds_of(name, c[2])
    return VarDecl(name=name, shape=c[1] or (), bounds=bounds, value=c[3], start=c[4], span=at)


def _read_several(c: list, at: Span) -> tuple[VarDecl, ...]:
    """``var x[n], y;``: a statement for each variable."""
    return tuple(
        VarDecl(name=declared(name), shape=shape or (), span=at)
        for name, shape in zip(c[::2], c[1::2], strict=True)
    )


def _check(ctx: Context, node: VarDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    variable: ir.Variable | None
    if node.value is not None:
        what, variable = "the parameters of a net", _net_parameters(ctx, node, node.value, span)
    else:
        what, variable = "a variable", _variable(ctx, node, span)
    if variable is not None and node.start is not None:
        variable = _with_start(ctx, node.start, variable)
    if variable is None:
        declarations.broken(ctx, node, node.name)
        return
    use = ir.Var(name=node.name, shape=variable.shape, span=span)
    if ctx.declare(NumberSymbol(name=node.name, what=what, span=span, node=use)):
        ctx.variables[node.name] = variable


def _variable(ctx: Context, node: VarDecl, span: Span) -> ir.Variable | None:
    """A variable with its simple sets, or None after an error."""
    shape = literals.declared_shape(ctx, declarations.HERE, node.shape)
    if shape is None:
        return None
    sets = _variable_sets(ctx, node, shape)
    if sets is None:
        return None
    return ir.Variable(name=node.name, shape=shape, sets=sets, span=span)


def _with_start(ctx: Context, node: syntax.Expr, variable: ir.Variable) -> ir.Variable | None:
    """A variable with where runs begin: a distribution to draw from, or numbers; None after an error."""
    if variable.net is not None:
        ctx.report(errors.declarations.start_of_net_parameters(variable.name, node.span))
        return None
    if isinstance(node, syntax.Call) and node.func in registry.all() and node.func not in ctx.symbols:
        distribution = distributions.distribution(ctx, declarations.HERE, node, (), node.span)
        if distribution is None:
            return None
        assert isinstance(distribution.set, ir.Distribution)
        if distribution.set.shape and not shapes.same_shape(ctx, distribution.set.shape, variable.shape):
            ctx.report(errors.shapes.start(ctx.quote(node), distribution.set.shape, variable))
            return None
        return replace(variable, start=replace(distribution.set, shape=variable.shape))
    value = expressions.number(ctx, declarations.HERE, node, "a start", scalar=False)
    if value is None or not literals.is_fixed(ctx, value):
        return None
    if value.shape and not shapes.same_shape(ctx, value.shape, variable.shape):
        ctx.report(errors.shapes.start(ctx.quote(node), value.shape, variable))
        return None
    return replace(variable, start=value)


def _net_parameters(ctx: Context, node: VarDecl, value: syntax.Expr, span: Span) -> ir.Variable | None:
    """``var w = params(s)``, or None after an error."""
    match value:
        case syntax.Call(func="params", args=(syntax.Name() as owner,)):
            pass
        case _:
            ctx.report(errors.declarations.variable_with_value(node.name, value.span))
            return None
    symbol = ctx.symbols.get(owner.id)
    if isinstance(symbol, BrokenSymbol):
        ctx.used.add(owner.id)
        return None
    if not isinstance(symbol, NetSymbol):
        what = symbol.what if symbol is not None else ""
        nets = [name for name, other in ctx.symbols.items() if isinstance(other, NetSymbol)]
        ctx.report(errors.declarations.not_a_net(owner.id, what, nets, owner.span))
        return None
    if symbol.net.frozen:
        ctx.report(errors.declarations.parameters_of_frozen_net(owner.id, owner.span))
        ctx.used.add(owner.id)
        return None
    if node.shape or node.bounds:
        ctx.report(errors.declarations.shape_of_net_parameters(node.name, owner.id, span))
        return None
    ctx.used.add(owner.id)
    return ir.Variable(name=node.name, shape=(f"params({owner.id})",), net=owner.id, span=span)


def _variable_sets(ctx: Context, node: VarDecl, shape: ir.Shape) -> tuple[ir.VectorSet, ...] | None:
    """A variable's simple sets, or None after an error: its bounds as one box, then the sets after ``in``."""
    low: ir.Expr = ir.Const(value=-inf, span=node.span)
    high: ir.Expr = ir.Const(value=inf, span=node.span)
    named_sets: list[ir.VectorSet] = []
    spans: list[Span] = []
    for bound in node.bounds:
        if bound.op == "in":
            vectors = _variable_set(ctx, node, bound, shape)
            if vectors is None:
                return None
            named_sets.append(vectors)
            continue
        if bound.op not in (">=", "<="):
            ctx.report(errors.values.bound_of_variable(bound.op, bound.span))
            return None
        value = literals.bound(ctx, declarations.HERE, bound.value, "a bound")
        if value is None or not literals.is_fixed(ctx, value):
            return None
        if value.shape and not shapes.same_shape(ctx, value.shape, shape):
            ctx.report(errors.shapes.bound(described(ctx, value), f"`{node.name}`", show(shape)))
            return None
        if bound.op == ">=":
            low = _tighter(low, value, max, "max")
        else:
            high = _tighter(high, value, min, "min")
        spans.append(bound.span)
    if not spans:
        return tuple(named_sets)
    least, greatest = signs.interval(ctx, low).lo, signs.interval(ctx, high).hi
    if least > greatest or least == inf or greatest == -inf:
        whole = spans[0] | spans[-1]
        ctx.report(errors.values.no_value_left("value", node.name, least, greatest, whole))
        return None
    text = ", ".join(ctx.text(s) for s in spans)
    return (ir.VectorSet(name=text, family="box", args=(low, high), shape=shape), *named_sets)


def _tighter(old: ir.Expr, new: ir.Expr, pick: Callable[[float, float], float], atom: str) -> ir.Expr:
    """The tighter of two bounds."""
    if isinstance(old, ir.Const) and old.value in (inf, -inf):
        return new
    if isinstance(old, ir.Const) and isinstance(new, ir.Const):
        return ir.Const(value=pick(old.value, new.value), span=new.span)
    return ir.Apply(op=atom, args=(old, new), shape=old.shape or new.shape, span=old.span | new.span)


def _variable_set(ctx: Context, node: VarDecl, bound: syntax.Bound, shape: ir.Shape) -> ir.VectorSet | None:
    """The simple set after ``in``, or None after an error."""
    value = bound.value
    listed = isinstance(value, syntax.SetLiteral | syntax.Range)
    named = isinstance(value, syntax.Name) and isinstance(ctx.symbols.get(value.id), SetSymbol)
    if listed or named:
        box = ""
        if isinstance(value, syntax.Range):
            box = f">= {ctx.text(value.low.span)}, <= {ctx.text(value.high.span)}"
        ctx.report(errors.sets.finitely_many_values(node.name, ctx.quote(value), box))
        return None
    return vector_sets.vector_set(ctx, declarations.HERE, value, shape)


def _write(writer: TextWriter, node: VarDecl) -> None:
    writer("var ", node.name)
    writer.bounded(node.shape, node.bounds)
    writer.after(" = ", node.value)
    writer.after(" start ", node.start)


def _python(writer: PythonWriter, node: VarDecl, doc: str) -> str:
    match node.value:
        case syntax.Call(func="params", args=(of,)):
            return writer.assigned(node.name, writer.fc("params"), [writer.formula(of)], doc)
    arguments = writer.bounded(node.shape, node.bounds)
    if node.start is not None:
        arguments.append(f"start={writer.formula(node.start)}")
    return writer.assigned(node.name, writer.fc("var"), arguments, doc)


var = StatementKind(
    name="var",
    order=100,
    node=VarDecl,
    forms={"var": "var w[d] in ball(2);"},
    elsewhere={"variable": "var", "variables": "var"},
    token="VAR",
    follows="NAME",
    rules={"var": _read, "vars": _read_several, "starting": _starting},
    check=_check,
    write=_write,
    python=_python,
)
