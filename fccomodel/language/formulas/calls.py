"""Calls: what a name before round brackets is, and what it might have been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import atom_calls, definitions, expressions, names, shapes
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    DefSymbol,
    NetSymbol,
    Scope,
)
from fccomodel.language.formulas.shapes import described, show
from fccomodel.library import atoms, distributions, sets

#: What other languages call it.
FOREIGN: Mapping[str, str] = {
    "ln": "log(u)",
    "logistic": "log1pexp(u), or sigmoid(u)",
    "norm": "norm2(u), norm1(u) or norminf(u)",
    "sum_entries": "sum(u)",
    "maximum": "max(u, v)",
    "minimum": "min(u, v)",
    "inner": "dot(u, v)",
    "vdot": "dot(u, v)",
    "quad_form": "dot(x, A @ x)",
    "power": "u^p",
    "sq": "u^2, or sumsq(u)",
    "linear": "dot(w, x)",
    "indicator": "a condition, E[z ~ D | ...], or step(u)",
    "bce": "log1pexp(-z.y * u) for labels -1 and 1",
    "cross_entropy": "log1pexp(-z.y * u) for labels -1 and 1",
    "binary_cross_entropy": "log1pexp(-z.y * u) for labels -1 and 1",
    "mse": "E[z ~ D] (z.y - u)^2",
    "expectation": "E[z ~ D] ...",
    "Expectation": "E[z ~ D] ...",
    "var": "variance[z ~ D] ...",
    "std": "sqrt(variance[z ~ D] ...)",
    "sum_largest": "topk(k = 3)[i in I] ...",
    "CVaR": "cvar(tail = 0.1)[i in I] ...",
    "tv": "sum of abs differences",
    "diff": "a difference of entries, u[2] - u[1]",
    "trace": "sum[k in K] A[k, k]",
    "T": "transpose(A)",
}


@expressions.evaluates(syntax.Call)
def call(ctx: Context, scope: Scope, node: syntax.Call) -> ir.Expr | None:
    """``func(args)``."""
    name = node.func
    if name in scope.locals:
        symbol = None
    else:
        symbol = names.find(ctx, name)
    subscripts: tuple[str, ...] = ()
    if (
        symbol is None
        and name not in scope.locals
        and name not in atom_calls.named_atoms()
        and (split := names.split_subscript(ctx, scope, name))
    ):
        if isinstance(ctx.symbols[split[0]], DefSymbol):
            name, subscripts = split
            symbol = names.find(ctx, name)
    if isinstance(symbol, DefSymbol):
        ctx.used.add(name)
        return definitions.definition(ctx, scope, node, symbol, subscripts)
    if isinstance(symbol, NetSymbol):
        ctx.used.add(name)
        return _net(ctx, scope, node, symbol.net)
    if symbol is None and name not in scope.locals:
        if name in atom_calls.named_atoms():
            return atom_calls.apply_atom(ctx, scope, node, atom_calls.named_atoms()[name])
        if name == "uniform" and len(node.args) == 1 and not node.keywords:
            return atom_calls.uniform_weights(ctx, scope, node)
    arguments = [expressions.evaluate(ctx, scope, a) for a in node.args]  # for the errors in them
    del arguments
    if isinstance(symbol, BrokenSymbol):
        ctx.used.add(name)
    elif symbol is not None or name in scope.locals:
        what = symbol.what if symbol is not None else "a bound name"
        if symbol is not None:
            ctx.used.add(name)
        if name in scope.locals and scope.locals[name] is None:
            return None
        ctx.report(errors.calls.not_a_function(name, what, node.span))
    else:
        _unknown(ctx, node)
    return None


def _unknown(ctx: Context, node: syntax.Call) -> None:
    name = node.func
    at = Span(start=node.span.start, end=node.span.start + len(name))
    if name in distributions.all():
        ctx.report(errors.sorts.distribution_as_number(name, ctx.quote(node), at))
    elif name in sets.all():
        ctx.report(errors.sorts.vectors_as_number(name, ctx.quote(node), at))
    elif name == "params":
        ctx.report(errors.sorts.parameters_as_number(ctx.quote(node), at))
    elif name in ctx.later or name in ctx.symbols:
        names.unknown(ctx, Scope(), name, at)
    else:
        callables = [
            *atom_calls.named_atoms(),
            *(n for n, s in ctx.symbols.items() if isinstance(s, DefSymbol | NetSymbol)),
        ]
        ctx.report(
            errors.calls.unknown_function(
                name, len(node.args), callables, FOREIGN.get(name) or _by_symbol(name), at
            )
        )


def _by_symbol(name: str) -> str:
    """How an atom is written that is an operator: it has a name in lists of atoms alone."""
    atom = atoms.all().get(name)
    if atom is None or not atom.symbol or atom.internal:
        return ""
    if len(atom.arguments) == 2:
        return f"`u {atom.symbol} v`"
    return f"`{atom.symbol}u`"


def _net(ctx: Context, scope: Scope, node: syntax.Call, net: ir.Net) -> ir.Expr | None:
    """``s(w; z.x)``."""
    owner = next((n for n, v in ctx.variables.items() if v.net == net.name), None)
    values = [expressions.evaluate(ctx, scope, a) for a in node.args]
    if len(node.args) != 2 or node.keywords:
        ctx.report(
            errors.calls.net_arguments(ctx.quote(node), net.name, len(node.args) + len(node.keywords), owner)
        )
        return None
    weights, value = values
    if weights is None or value is None:
        return None
    if not isinstance(weights, ir.Var) or weights.shape != (f"params({net.name})",):
        description = described(ctx, weights)
        if shapes.is_net_parameters(weights):
            description = replace(description, what="the parameters of another net")
        ctx.report(errors.calls.net_parameters(description, net.name, owner))
        return None
    if not expressions.is_number(ctx, value, "a net's input"):
        return None
    if not shapes.same_shape(ctx, value.shape, net.input):
        ctx.report(
            errors.calls.net_input(described(ctx, value), net.name, show(net.input), ctx.line(net.span))
        )
        return None
    return ir.NetCall(net=net.name, params=weights, arg=value, shape=net.output, span=node.span)
