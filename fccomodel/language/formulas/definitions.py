"""Calls of definitions: the body with the arguments in place of the parameters."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import arrays
from fccomodel.language.formulas.context import (
    Context,
    DefSymbol,
    IndexSymbol,
    Scope,
)

#: Levels of definitions that call definitions.
MAX_CALL_DEPTH = 100


def definition(
    ctx: Context, scope: Scope, node: syntax.Call, symbol: DefSymbol, subscripts: tuple[str, ...]
) -> ir.Expr | None:
    """The body of a ``def`` with its arguments, or None after an error; equal calls give one node."""
    arguments = _match_parameters(ctx, scope, node, symbol, subscripts)
    if arguments is None:
        return None
    values = {name: arrays.operand(ctx, scope, argument) for name, argument in arguments.items()}
    if len(ctx.calls) >= MAX_CALL_DEPTH:
        ctx.report(errors.problem.definitions_too_deep(MAX_CALL_DEPTH, node.span))
        return None
    identities = tuple(_identity(value) for value in values.values())
    indices = tuple((name, id(binder)) for name, binder in scope.indices.items())
    key = symbol.name, identities, indices, scope.opened
    if key in ctx.inlined:
        return ctx.inlined[key]
    ctx.kept.extend((*values.values(), scope))
    depth = len(ctx.calls)
    ctx.calls.append((symbol.name, node.span))
    inner = Scope(locals=values, indices=scope.indices, opened=scope.opened)
    try:
        result = arrays.operand(ctx, inner, symbol.body)
    finally:
        del ctx.calls[depth:]
    ctx.inlined[key] = result
    return result


def _identity(value: ir.Expr | None) -> object:
    """A key that is equal for arguments with the same meaning."""
    match value:
        case ir.Const():
            return ("const", value.value)
        case ir.Var() | ir.Param():
            return (type(value).__name__, value.name)
        case ir.Element():
            return ("element", id(value.binder))
        case ir.Column():
            return ("column", id(value.binder), value.name)
        case ir.LetRef() if not value.args:
            return ("let", id(value.let))
    return id(value)


def _match_parameters(
    ctx: Context, scope: Scope, node: syntax.Call, symbol: DefSymbol, subscripts: tuple[str, ...]
) -> dict[str, syntax.Expr] | None:
    """Each parameter with its argument, or None after an error.

    Subscripts and keywords go by name, the other arguments in order. An index that is left out stands
    for itself.
    """
    arguments: dict[str, syntax.Expr] = {}
    signature = f"{symbol.name}({', '.join(symbol.params)})"
    written = ctx.quote(node), signature, ctx.line(symbol.span)
    for name in subscripts:
        if name not in symbol.params:
            ctx.report(errors.calls.no_such_subscript(*written, name))
            return None
        arguments[name] = syntax.Name(id=name, span=node.span)
    for keyword in node.keywords:
        if keyword.name in arguments:
            ctx.report(errors.calls.parameter_twice(*written, keyword.name))
            return None
        if keyword.name not in symbol.params:
            ctx.report(errors.calls.no_such_parameter(*written, keyword.name))
            return None
        arguments[keyword.name] = keyword.value
    rest = [p for p in symbol.params if p not in arguments]
    if len(node.args) < len(rest):
        plain = [p for p in rest if not isinstance(ctx.symbols.get(p), IndexSymbol)]
        if len(node.args) == len(plain):
            left_out = [p for p in rest if p not in plain]
            rest = plain
        else:
            left_out, rest = rest[len(node.args) :], rest[: len(node.args)]
        for name in left_out:
            if not isinstance(ctx.symbols.get(name), IndexSymbol):
                ctx.report(errors.calls.left_out(*written, name, len(node.args)))
                return None
            arguments[name] = syntax.Name(id=name, span=node.span)
    if len(node.args) > len(rest):
        ctx.report(errors.calls.too_many_arguments(*written, len(node.args), len(rest)))
        return None
    arguments |= dict(zip(rest, node.args, strict=True))
    return {p: arguments[p] for p in symbol.params}
