"""``net`` and ``var``."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.check import (
    atom_calls,
    declarations,
    expressions,
    literals,
    shapes,
    signs,
    vector_sets,
)
from fccomodel.language.check.context import (
    BrokenSymbol,
    Context,
    NetSymbol,
    NumberSymbol,
    SetSymbol,
    listed,
)
from fccomodel.language.check.shapes import describe, show

#: assumption -> the least and most arguments
ASSUMPTIONS = {"smooth": (0, 1), "lipschitz": (0, 1), "weakly_convex": (0, 1), "convex": (0, 0)}


def net(ctx: Context, node: syntax.NetDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
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
            ends.append(literals.declared_shape(ctx, declarations.HERE, end.shape))
    assume = [_assumption(ctx, a) for a in node.assume]
    if node.name in atom_calls.named_atoms():
        declarations.taken(ctx, node.name, span)
        assume.append(None)
    if any(e is None for e in ends) or any(a is None for a in assume):
        declarations.broken(ctx, node, node.name)
        return
    made = ir.Net(
        name=node.name, input=ends[0] or (), output=ends[1] or (), assume=tuple(a for a in assume if a is not None), span=span
    )
    if ctx.declare(NetSymbol(name=node.name, what="a net", span=span, net=made)):
        ctx.nets[node.name] = made


def _assumption(ctx: Context, node: syntax.Expr) -> tuple[str, tuple[float, ...]] | None:
    name = node.id if isinstance(node, syntax.Name) else node.func if isinstance(node, syntax.Call) else ""
    args = node.args if isinstance(node, syntax.Call) else ()
    if name not in ASSUMPTIONS:
        ctx.error(
            "F0418",
            f"`{ctx.text(node.span)}` is no assumption about a net",
            node.span,
            reason="Known are `smooth`, `smooth(L)`, `lipschitz(C)`, `weakly_convex(rho)` and `convex`.",
            fix=ctx.suggest(name, ASSUMPTIONS) or "Use one of these, or leave `assume` out.",
        )
        return None
    low, high = ASSUMPTIONS[name]
    values = [expressions.number(ctx, declarations.HERE, a, "a constant") for a in args]
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
    span = declarations.name_span(ctx, node, node.name)
    if node.value is not None:
        _net_variable(ctx, node, span)
        return
    shape = literals.declared_shape(ctx, declarations.HERE, node.shape)
    if shape is None:
        declarations.broken(ctx, node, node.name)
        return
    found = variable_sets(ctx, node, shape)
    if found is None:
        declarations.broken(ctx, node, node.name)
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
        declarations.broken(ctx, node, node.name)
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
    declarations.broken(ctx, node, node.name)


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
        value = expressions.number(ctx, declarations.HERE, bound.value, "a bound", scalar=False)
        if value is None or not literals.is_fixed(ctx, value):
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
    return vector_sets.vector_set(ctx, declarations.HERE, value, shape)
