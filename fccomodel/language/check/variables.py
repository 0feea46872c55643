"""``net`` and ``var``."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import (
    atom_calls,
    declarations,
    expressions,
    literals,
    shapes,
    signs,
    vector_sets,
)
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    NetSymbol,
    NumberSymbol,
    SetSymbol,
)
from fccomodel.language.formulas.shapes import described, show

#: what can be assumed of a net -> its constant, which may be left out ("": it has none)
ASSUMPTIONS = {"smooth": "L", "lipschitz": "C", "weakly_convex": "rho", "convex": ""}


def net(ctx: Context, node: syntax.NetDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    ends: list[ir.Shape | None] = []
    for end in (node.input, node.output):
        if end.name != "real":
            ctx.report(errors.declarations.not_mapped_by_nets(ctx.quote(end)))
            ends.append(None)
        else:
            ends.append(literals.declared_shape(ctx, declarations.HERE, end.shape))
    assume = [_assumption(ctx, a) for a in node.assume]
    if node.name in atom_calls.named_atoms():
        declarations.taken(ctx, node.name, span)
        assume.append(None)
    if any(e is None for e in ends) or any(a is None for a in assume):
        declarations.broken(ctx, node, node.name)
        return
    network = ir.Net(
        name=node.name,
        input=ends[0] or (),
        output=ends[1] or (),
        assume=tuple(a for a in assume if a is not None),
        span=span,
    )
    if ctx.declare(NetSymbol(name=node.name, what="a net", span=span, net=network)):
        ctx.nets[node.name] = network


def _assumption(ctx: Context, node: syntax.Expr) -> tuple[str, tuple[float, ...]] | None:
    if isinstance(node, syntax.Name):
        name = node.id
    elif isinstance(node, syntax.Call):
        name = node.func
    else:
        name = ""
    if isinstance(node, syntax.Call):
        args = node.args
    else:
        args = ()
    if name not in ASSUMPTIONS:
        ctx.report(errors.declarations.unknown_assumption(ctx.quote(node), name, ASSUMPTIONS))
        return None
    most = 1 if ASSUMPTIONS[name] else 0
    values = [expressions.number(ctx, declarations.HERE, a, "a constant") for a in args]
    if any(v is None for v in values):
        return None
    if len(args) > most or not all(isinstance(v, ir.Const) and v.value >= 0 for v in values):
        ctx.report(errors.declarations.constants_of_assumption(ctx.quote(node), name, most))
        return None
    return name, tuple(v.value for v in values if isinstance(v, ir.Const))


def var(ctx: Context, node: syntax.VarDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    if node.value is not None:
        _net_variable(ctx, node, span)
        return
    shape = literals.declared_shape(ctx, declarations.HERE, node.shape)
    if shape is None:
        declarations.broken(ctx, node, node.name)
        return
    sets = variable_sets(ctx, node, shape)
    if sets is None:
        declarations.broken(ctx, node, node.name)
        return
    if ctx.declare(
        NumberSymbol(
            name=node.name, what="a variable", span=span, node=ir.Var(name=node.name, shape=shape, span=span)
        )
    ):
        ctx.variables[node.name] = ir.Variable(name=node.name, shape=shape, sets=sets, span=span)


def _net_variable(ctx: Context, node: syntax.VarDecl, span: Span) -> None:
    value = node.value
    if isinstance(value, syntax.Call) and value.func == "params" and len(value.args) == 1:
        owner = value.args[0]
    else:
        owner = None
    if value is None or not isinstance(owner, syntax.Name):
        assert value is not None
        ctx.report(errors.declarations.variable_with_value(node.name, value.span))
        declarations.broken(ctx, node, node.name)
        return
    symbol = ctx.symbols.get(owner.id)
    nets = [n for n, s in ctx.symbols.items() if isinstance(s, NetSymbol)]
    if isinstance(symbol, BrokenSymbol):
        ctx.used.add(owner.id)
    elif not isinstance(symbol, NetSymbol):
        ctx.report(
            errors.declarations.not_a_net(
                owner.id, symbol.what if symbol is not None else "", nets, owner.span
            )
        )
    elif node.shape or node.bounds:
        ctx.report(errors.declarations.shape_of_net_parameters(node.name, owner.id, span))
    else:
        shape = (f"params({owner.id})",)
        ctx.used.add(owner.id)
        if ctx.declare(
            NumberSymbol(
                name=node.name,
                what="the parameters of a net",
                span=span,
                node=ir.Var(name=node.name, shape=shape, span=span),
            )
        ):
            ctx.variables[node.name] = ir.Variable(name=node.name, shape=shape, net=owner.id, span=span)
        return
    declarations.broken(ctx, node, node.name)


def variable_sets(ctx: Context, node: syntax.VarDecl, shape: ir.Shape) -> tuple[ir.VectorSet, ...] | None:
    """A variable's simple sets: its bounds together as one box, then the sets after ``in``."""
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
        value = expressions.number(ctx, declarations.HERE, bound.value, "a bound", scalar=False)
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
    if signs.interval(ctx, low).lo > signs.interval(ctx, high).hi:
        ends = signs.interval(ctx, low).lo, signs.interval(ctx, high).hi
        ctx.report(errors.values.no_value_left("value", node.name, *ends, spans[0] | spans[-1]))
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


def _variable_set(
    ctx: Context, node: syntax.VarDecl, bound: syntax.Bound, shape: ir.Shape
) -> ir.VectorSet | None:
    value = bound.value
    if isinstance(value, syntax.SetLiteral | syntax.Range) or (
        isinstance(value, syntax.Name) and isinstance(ctx.symbols.get(value.id), SetSymbol)
    ):
        box = ""
        if isinstance(value, syntax.Range):
            box = f">= {ctx.text(value.low.span)}, <= {ctx.text(value.high.span)}"
        ctx.report(errors.sets.finitely_many_values(node.name, ctx.quote(value), box))
        return None
    return vector_sets.vector_set(ctx, declarations.HERE, value, shape)
