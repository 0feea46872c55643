"""Calls of functions of the language, of definitions and of nets, and errors about unknown functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import array_forms, atom_calls, definitions, expressions, names, shapes
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    DefSymbol,
    NetSymbol,
    Scope,
)
from fccomodel.language.formulas.shapes import described, show
from fccomodel.library import atoms, distributions, sets

#: What to write for functions of other languages, by their names there.
NO_RULES = "z.c, a column with its values; nothing is known of this function at variables"
ELSEWHERE: Mapping[str, str] = {
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
    "indicator": "the condition itself, (z.y == 1) * u",
    "where": "(if z.y == 1 then u else v)",
    "ifelse": "(if z.y == 1 then u else v)",
    "if_else": "(if z.y == 1 then u else v)",
    "iif": "(if z.y == 1 then u else v)",
    "log2": "log(u) / log(2)",
    "log10": "log(u) / log(10)",
    "exp2": "2^u",
    "cbrt": "u^(1/3)",
    "median": "E[z ~ D] abs(z.x - u), whose least u is a median",
    "quantile": "cvar(tail = 0.1)[z ~ D] ..., which bounds the quantile",
    "tan": NO_RULES,
    **dict.fromkeys(("tv", "total_variation"), "norm1(q - p) / 2"),
    "rank": "sum[j in D] sigmoid((s(j) - s(z)) / width), a smoothed rank of z",
    **dict.fromkeys(
        ("grad", "gradient", "jacobian"),
        "a difference, (s(w; z.x + h * e) - s(w; z.x)) / h; or add the term in your own loop "
        "(`problem.criterion()`): formulas have no gradients of nets",
    ),
    "gammaln": "lgamma(u)",
    "loggamma": "lgamma(u)",
    "psi": "digamma(u)",
    "arctan": "atan(u)",
    "log_cosh": "logcosh(u)",
    **dict.fromkeys(("opnorm", "sigma_max", "spectral_norm"), "norm_spec(A)"),
    **dict.fromkeys(("normNuc", "norm_nuclear", "nuclear_norm"), "norm_nuc(A)"),
    "det": "logdet(A), the logarithm of the determinant",
    **dict.fromkeys(("log_det", "slogdet"), "logdet(A)"),
    "tr_inv": "trace(inv(P))",
    **dict.fromkeys(("eigmax", "lambda_sum_largest"), "lambda_max(A)"),
    "eigmin": "lambda_min(A)",
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
    "T": "transpose(A)",
}


@expressions.evaluates(syntax.Call)
def call(ctx: Context, scope: Scope, node: syntax.Call) -> ir.Expr | None:
    """``func(args)``, or None after an error."""
    name = node.func
    if name in scope.locals:
        _check_arguments(ctx, scope, node)
        if scope.locals[name] is not None:
            ctx.report(errors.calls.not_a_function(name, "a bound name", node.span))
        return None
    symbol = names.find(ctx, name)
    if symbol is None:
        return _undeclared(ctx, scope, node)
    ctx.used.add(name)
    if isinstance(symbol, DefSymbol):
        return definitions.definition(ctx, scope, node, symbol, ())
    if isinstance(symbol, NetSymbol):
        return _net(ctx, scope, node, symbol.net)
    _check_arguments(ctx, scope, node)
    if not isinstance(symbol, BrokenSymbol):
        ctx.report(errors.calls.not_a_function(name, symbol.what, node.span))
    return None


def _undeclared(ctx: Context, scope: Scope, node: syntax.Call) -> ir.Expr | None:
    """A call of a function of the language, or of a definition with a subscript: ``h_k(w)``."""
    name, atoms_by_name = node.func, atom_calls.named_atoms()
    if name in atoms_by_name:
        return atom_calls.apply_atom(ctx, scope, node, atoms_by_name[name])
    split = names.split_subscript(ctx, scope, name)
    if split is not None and isinstance(ctx.symbols[split[0]], DefSymbol):
        symbol = names.find(ctx, split[0])
        if isinstance(symbol, DefSymbol):
            ctx.used.add(symbol.name)
            return definitions.definition(ctx, scope, node, symbol, split[1])
    if name == "uniform" and len(node.args) == 1 and not node.keywords:
        return atom_calls.uniform_weights(ctx, scope, node)
    array = array_forms.made(ctx, scope, node)
    if array is not None:
        return array[0]
    _check_arguments(ctx, scope, node)
    _report_unknown(ctx, node)
    return None


def _check_arguments(ctx: Context, scope: Scope, node: syntax.Call) -> None:
    """Report the errors in the arguments of a call that has no value."""
    for argument in node.args:
        expressions.evaluate(ctx, scope, argument)


def _report_unknown(ctx: Context, node: syntax.Call) -> None:
    """Report a function that does not exist, or a set or a distribution in the place of a number."""
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
        instead = ELSEWHERE.get(name) or _by_symbol(name)
        ctx.report(errors.calls.unknown_function(name, len(node.args), callables, instead, at))


def _by_symbol(name: str) -> str:
    """How to write the operator of this name in lists of atoms, or an empty text if there is none."""
    atom = atoms.all().get(name)
    if atom is None or not atom.symbol or atom.internal:
        return ""
    if len(atom.arguments) == 2:
        return f"`u {atom.symbol} v`"
    return f"`{atom.symbol}u`"


def _net(ctx: Context, scope: Scope, node: syntax.Call, net: ir.Net) -> ir.Expr | None:
    """``s(w; z.x, z.m)``, or ``t(z.x)`` for a frozen net: the value of a net, or None after an error."""
    owner = next((n for n, v in ctx.variables.items() if v.net == net.name), None)
    values = [expressions.evaluate(ctx, scope, a) for a in node.args]
    expected = len(net.inputs) + (not net.frozen)
    if len(node.args) != expected or node.keywords:
        count = len(node.args) + len(node.keywords)
        if net.frozen:
            ctx.report(errors.calls.frozen_net_arguments(ctx.quote(node), net.name, count, len(net.inputs)))
        else:
            ctx.report(errors.calls.net_arguments(ctx.quote(node), net.name, count, len(net.inputs), owner))
        return None
    known = expressions.complete(values)
    if known is None:
        return None
    weights: ir.Expr | None = None
    if not net.frozen:
        weights, *known = known
        if not isinstance(weights, ir.Var) or weights.shape != (f"params({net.name})",):
            description = described(ctx, weights)
            if shapes.is_net_parameters(weights):
                description = replace(description, what="the parameters of another net")
            ctx.report(errors.calls.net_parameters(description, net.name, owner))
            return None
    fits = [_fits(ctx, value, wanted, net) for value, wanted in zip(known, net.inputs, strict=True)]
    if not all(fits):
        return None
    assert weights is None or isinstance(weights, ir.Var)
    return ir.NetCall(net=net.name, params=weights, inputs=tuple(known), shape=net.output, span=node.span)


def _fits(ctx: Context, value: ir.Expr, wanted: ir.NetInput, net: ir.Net) -> bool:
    """Whether a value is what a net takes. Reports an error if it is not."""
    if not expressions.is_number(ctx, value, "a net's input"):
        return False
    line = ctx.line(net.span)
    if not shapes.same_shape(ctx, value.shape, wanted.shape):
        ctx.report(errors.calls.net_input(described(ctx, value), net.name, show(wanted.shape), line))
        return False
    if wanted.whole and not _whole(ctx, value):
        ctx.report(errors.calls.net_input_not_whole(ctx.quote(value), net.name, line))
        return False
    return True


def _whole(ctx: Context, value: ir.Expr) -> bool:
    """Whether a value is a column of whole numbers, or a whole number."""
    if isinstance(value, ir.Const):
        return value.value == int(value.value)
    if not isinstance(value, ir.Column) or not isinstance(value.binder.domain, ir.RowSet):
        return False
    assert value.name is not None
    kind = ctx.tables[value.binder.domain.table].columns[value.name]
    if kind.kind == "int":
        return True
    items = getattr(kind.domain, "items", None) or ()
    return bool(items) and all(isinstance(one, ir.Const) and one.value == int(one.value) for one in items)
