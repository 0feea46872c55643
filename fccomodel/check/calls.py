"""Calls: definitions are inlined, nets and atoms are applied; a call that does not fit is told what would."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import fccomodel.atoms as registry
from fccomodel import ir, syntax
from fccomodel.atoms import Atom, ShapeError
from fccomodel.check import expressions, names, sets, shapes, signs
from fccomodel.check.context import (
    BrokenSymbol,
    Context,
    DefSymbol,
    IndexSymbol,
    NetSymbol,
    Scope,
    SetSymbol,
    TableSymbol,
    listed,
)
from fccomodel.check.shapes import describe, show, sort
from fccomodel.diagnostics import did_you_mean, nearest
from fccomodel.source import Span

#: Definitions that call definitions, this deep at most.
DEEPEST = 100
#: Operators and truth: atoms that are written with symbols, not by name.
UNNAMED = frozenset({"add", "sub", "mul", "div", "neg", "pow", "matmul", *shapes.TRUTH})
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


def named_atoms() -> dict[str, Atom]:
    """The functions that a model can call, by every name."""
    known = {name: atom for name, atom in registry.all().items() if not atom.internal and name not in UNNAMED}
    return known | {alias: known[name] for alias, name in registry.aliases().items() if name in known}


def call(ctx: Context, scope: Scope, node: syntax.Call) -> ir.Expr | None:
    """``func(args)``."""
    name = node.func
    symbol = None if name in scope.locals else names.find(ctx, name)
    subscripts: tuple[str, ...] = ()
    if (
        symbol is None
        and name not in scope.locals
        and name not in named_atoms()
        and (split := names.split_subscript(ctx, scope, name))
    ):
        if isinstance(ctx.symbols[split[0]], DefSymbol):
            name, subscripts = split
            symbol = names.find(ctx, name)
    if isinstance(symbol, DefSymbol):
        ctx.used.add(name)
        return _definition(ctx, scope, node, symbol, subscripts)
    if isinstance(symbol, NetSymbol):
        ctx.used.add(name)
        return _net(ctx, scope, node, symbol.net)
    if symbol is None and name not in scope.locals:
        if name in named_atoms():
            return _atom(ctx, scope, node, named_atoms()[name])
        if name == "uniform" and len(node.args) == 1 and not node.keywords:
            return _uniform(ctx, scope, node)
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
        ctx.error(
            "F0207",
            f"`{name}` is {what}, not a function",
            node.span,
            reason="Round brackets after a name call it; a product needs its `*`.",
            fix=f"Write `{name} * (...)` for a product, or `{name}[...]` for an entry.",
        )
    else:
        _unknown(ctx, node)
    return None


def _unknown(ctx: Context, node: syntax.Call) -> None:
    name = node.func
    at = Span(start=node.span.start, end=node.span.start + len(name))
    if name in sets.DISTRIBUTIONS:
        ctx.error(
            "F0314",
            f"`{name}` is a distribution, not a number",
            at,
            reason="A number is drawn from it by a reduction.",
            fix=f"Write `E[e ~ {ctx.text(node.span)}] ...`.",
        )
    elif name in sets.VECTOR_SETS:
        ctx.error("F0314", f"`{name}` is a set of vectors, not a number", at, fix=f"Write `var x[d] in {ctx.text(node.span)};`.")
    elif name == "params":
        ctx.error(
            "F0314",
            "`params` stands in a `var` statement only",
            at,
            reason="It makes a net's parameters a decision variable.",
            fix=f"Write `var w = {ctx.text(node.span)};` and use `w`.",
        )
    elif name in ctx.later or name in ctx.symbols:
        names.unknown(ctx, Scope(), name, at)
    else:
        callable_ = [*named_atoms(), *(n for n, s in ctx.symbols.items() if isinstance(s, DefSymbol | NetSymbol))]
        near = did_you_mean(name, callable_)
        foreign = f"Write {FOREIGN[name]}." if name in FOREIGN else ""
        similar = sorted(n for n in callable_ if n.startswith(name[:3]) and len(name) >= 3)
        ctx.error(
            "F0206",
            f"there is no function `{name}`",
            at,
            reason="Functions are the atoms of the language and what `def` and `net` declare."
            + (f" Of similar names there are {listed(similar)}." if similar and not near else ""),
            fix=foreign or near or f"Define it: `def {name}({', '.join('uvxyz'[: max(1, min(5, len(node.args)))])}) = ...;`.",
        )


# ------------------------------------------------------------------------------------------------------------ definitions
def _definition(ctx: Context, scope: Scope, node: syntax.Call, symbol: DefSymbol, subscripts: tuple[str, ...]) -> ir.Expr | None:
    """The body of a ``def`` with its parameters standing for the arguments; equal calls give one node."""
    given = _match_parameters(ctx, scope, node, symbol, subscripts)
    if given is None:
        return None
    values: dict[str, ir.Expr | None] = {}
    for parameter, argument in given.items():
        values[parameter] = expressions.evaluate(ctx, scope, argument)
    if len(ctx.calls) >= DEEPEST:
        ctx.error(
            "F0422", f"definitions call each other more than {DEEPEST} deep", node.span, fix="Name a part of it with `let`."
        )
        return None
    key = (
        symbol.name,
        tuple(_identity(v) for v in values.values()),
        tuple((n, id(b)) for n, b in scope.indices.items()),
        scope.opened,
    )
    if key in ctx.inlined and all(v is not None for v in values.values()):
        return ctx.inlined[key]
    ctx.kept.extend((*values.values(), scope))
    ctx.calls.append((symbol.name, node.span))
    try:
        result = expressions.evaluate(ctx, Scope(locals=values, indices=scope.indices, opened=scope.opened), symbol.body)
    finally:
        ctx.calls.pop()
    ctx.inlined[key] = result
    return result


def _identity(value: ir.Expr | None) -> object:
    """Equal for arguments that are the same thing."""
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
    """Each parameter with its argument: subscripts and keywords by name, the rest in order, left-out indices by their own name."""
    given: dict[str, syntax.Expr] = {}
    signature = f"{symbol.name}({', '.join(symbol.params)})"

    def refuse(reason: str) -> None:
        declared = f"It is declared on line {ctx.line(symbol.span)} as `{signature}`."
        ctx.error(
            "F0302",
            f"`{ctx.text(node.span)}` does not fit `{signature}`",
            node.span,
            reason=f"{reason} {declared}",
            fix=f"Write `{signature}` with an expression for each name.",
        )

    for name in subscripts:
        if name not in symbol.params:
            refuse(f"The subscript `{name}` is none of its parameters.")
            return None
        given[name] = syntax.Name(id=name, span=node.span)
    for keyword in node.keywords:
        if keyword.name not in symbol.params or keyword.name in given:
            refuse(f"`{keyword.name}` is {'given twice' if keyword.name in given else 'none of its parameters'}.")
            return None
        given[keyword.name] = keyword.value
    rest = [p for p in symbol.params if p not in given]
    if len(node.args) < len(rest):
        plain = [p for p in rest if not isinstance(ctx.symbols.get(p), IndexSymbol)]
        if len(node.args) == len(plain):
            left_out = [p for p in rest if p not in plain]
            rest = plain
        else:
            left_out, rest = rest[len(node.args) :], rest[: len(node.args)]
        for name in left_out:
            if not isinstance(ctx.symbols.get(name), IndexSymbol):
                refuse(
                    f"{len(node.args)} {'argument is' if len(node.args) == 1 else 'arguments are'} given, and `{name}` is left out;"
                    " only an index declared by `index` may be."
                )
                return None
            given[name] = syntax.Name(id=name, span=node.span)
    if len(node.args) > len(rest):
        refuse(f"{len(node.args)} arguments are given, {len(rest)} {'is' if len(rest) == 1 else 'are'} needed.")
        return None
    given |= dict(zip(rest, node.args, strict=True))
    return {p: given[p] for p in symbol.params}


# ------------------------------------------------------------------------------------------------------------------- nets
def _net(ctx: Context, scope: Scope, node: syntax.Call, net: ir.Net) -> ir.Expr | None:
    """``s(w; z.x)``."""
    owner = next((n for n, v in ctx.variables.items() if v.net == net.name), None)
    form = f"{net.name}({owner or 'w'}; ...)"
    values = [expressions.evaluate(ctx, scope, a) for a in node.args]
    if len(node.args) != 2 or node.keywords:
        ctx.error(
            "F0313",
            f"`{ctx.text(node.span)}` does not fit the net `{net.name}`",
            node.span,
            reason=f"A net is called with its parameters and one input; {len(node.args) + len(node.keywords)} arguments are given.",
            fix=f"Write `{form}`" + ("" if owner else f", after `var w = params({net.name});`") + ".",
        )
        return None
    weights, value = values
    if weights is None or value is None:
        return None
    if not isinstance(weights, ir.Var) or weights.shape != (f"params({net.name})",):
        what = "the parameters of another net" if sort(ctx, weights) == "net parameters" else describe(ctx, weights)
        ctx.error(
            "F0313",
            f"`{ctx.text(weights.span)}` is not the parameters of `{net.name}`",
            weights.span,
            reason=f"It is {what}.",
            fix=f"Write `{form}`." if owner else f"Declare `var w = params({net.name});` and write `{net.name}(w; ...)`.",
        )
        return None
    if not expressions.is_number(ctx, value, "a net's input"):
        return None
    if not shapes.same_shape(ctx, value.shape, net.input):
        ctx.error(
            "F0313",
            f"`{net.name}` takes a {show(net.input)}, and this is {describe(ctx, value)}",
            value.span,
            reason=f"The net is declared on line {ctx.line(net.span)}.",
            fix="Give it an input of that shape, or correct its declaration.",
        )
        return None
    return ir.NetCall(net=net.name, params=weights, arg=value, shape=net.output, span=node.span)


# ------------------------------------------------------------------------------------------------------------------ atoms
def _atom(ctx: Context, scope: Scope, node: syntax.Call, atom: Atom) -> ir.Expr | None:
    """A function of the language."""
    values = [expressions.evaluate(ctx, scope, a) for a in node.args]
    named = {k.name: expressions.evaluate(ctx, scope, k.value) for k in node.keywords}
    reason = ""
    if named and not atom.variadic:
        order = atom.arguments[len(values) :]
        if set(named) - set(order):
            wrong = next(n for n in named if n not in order)
            reason = f"`{wrong}` is {'given twice' if wrong in atom.arguments else 'none of its arguments'}"
        else:
            values += [named[n] for n in order if n in named]
    elif named:
        reason = "its arguments have no names"
    single = len(values) == 1 and atom.name in ("max", "min")
    if not reason and (not atom.accepts(len(values)) or (len(values) < len(node.args) + len(named))):
        needed = (
            f"{atom.min_count} or more arguments are"
            if atom.variadic
            else _count(len(atom.arguments)) + (" is" if len(atom.arguments) == 1 else " are")
        )
        reason = f"{needed} needed, {len(values)} {'is' if len(values) == 1 else 'are'} given"
    if reason:
        if single and values[0] is not None and values[0].shape:
            ctx.error(
                "F0302",
                f"`{atom.name}` of one vector",
                node.span,
                reason=f"`{atom.name}(a, b, ...)` compares its arguments entry by entry.",
                fix=f"For the entries of a vector write `{atom.name}[k in K] v[k]`.",
            )
        elif all(v is not None for v in values):
            _misfit(ctx, node, [v for v in values if v is not None], atom, reason)
        return None
    if any(v is None for v in values):
        return None
    args = [v for v in values if v is not None]
    if not all([expressions.is_number(ctx, v, f"an argument of `{atom.name}`") for v in args]):
        return None
    shape = _shape(ctx, node, atom, args)
    if shape is None:
        return None
    for argument, value in zip(atom.arguments, args, strict=False):
        if argument in atom.parameters:
            if value.shape:
                ctx.error(
                    "F0303",
                    f"`{argument}` of `{atom.signature}` must be a scalar, and this is {describe(ctx, value)}",
                    value.span,
                    fix="Give one number.",
                )
                return None
            if ir.variables_of(value):
                ctx.error(
                    "F0417",
                    f"`{ctx.text(value.span)}` depends on a variable",
                    value.span,
                    reason=f"`{argument}` of `{atom.signature}` must be fixed: the properties of {atom.name} are those of a given {argument}.",
                    fix="Use a constant, a param, or data.",
                )
                return None
    if not signs.in_domain(ctx, atom.name, tuple(args), node.span):
        return None
    if all(isinstance(v, ir.Const) and not v.shape for v in args):
        folded = _fold(atom, [v.value for v in args if isinstance(v, ir.Const)])
        if folded is not None:
            return ir.Const(value=folded, span=node.span)
    return ir.Apply(op=atom.name, args=tuple(args), shape=shape, span=node.span)


def _count(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"


def _shape(ctx: Context, node: syntax.Call, atom: Atom, args: Sequence[ir.Expr]) -> ir.Shape | None:
    """The shape of the value, by the atom's own rule; sizes known from the text count as numbers where names differ."""
    own = tuple(v.shape for v in args)
    try:
        return atom.shape(own)
    except ShapeError as error:
        try:
            return atom.shape(tuple(tuple(shapes.size(ctx, n) or n for n in shape) for shape in own))
        except ShapeError:
            given = ", ".join(f"`{ctx.text(v.span, 30)}` is {describe(ctx, v)}" for v in args)
            others = _candidates(ctx, node, args, atom)
            ctx.error(
                "F0301",
                f"the arguments of `{node.func}` do not fit",
                node.span,
                reason=f"{str(error)[0].upper()}{str(error)[1:]}. Here {given}."
                + (f"\nWhat would fit: {others}." if others else ""),
                fix="Change the arguments, or the shapes they are declared with.",
            )
    return None


def _candidates(ctx: Context, node: syntax.Call, args: Sequence[ir.Expr], atom: Atom) -> str:
    """Signatures of other functions of a similar name that take these arguments."""
    found = []
    for other in registry.all().values():
        if other is atom or other.internal or other.name in UNNAMED or not other.accepts(len(args)):
            continue
        if other.name[:4] == atom.name[:4] or nearest(atom.name, [other.name]):
            try:
                other.shape(tuple(v.shape for v in args))
            except ShapeError:
                continue
            found.append(f"`{other.signature}`")
    return " or ".join(found[:3])


def _misfit(ctx: Context, node: syntax.Call, values: Sequence[ir.Expr], atom: Atom, reason: str) -> None:
    """The error of a call with the wrong arguments: candidates, nearest first, each with why it does not fit."""
    lines = [f"  {atom.signature}: {reason}"]
    for other in sorted(registry.all().values(), key=lambda a: (_distance(a.name, atom.name), a.name)):
        if other is atom or other.internal or other.name in UNNAMED or _distance(other.name, atom.name) > 4 or len(lines) > 3:
            continue
        if not other.accepts(len(values)):
            why = f"{other.min_count} or more" if other.variadic else _count(len(other.arguments))
            lines.append(f"  {other.signature}: {why} needed")
            continue
        try:
            other.shape(tuple(v.shape for v in values))
            lines.append(f"  {other.signature}: would fit; {other.meaning}")
        except ShapeError as error:
            lines.append(f"  {other.signature}: {error}")
    ctx.error(
        "F0302",
        f"`{ctx.text(node.span)}` does not fit `{atom.signature}`",
        node.span,
        reason="The candidates, nearest first:\n" + "\n".join(lines),
        fix=f"Write `{atom.signature}`: {atom.meaning}.",
    )


def _distance(a: str, b: str) -> int:
    """How far two function names are: a shared beginning of four letters counts as near."""
    common = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return max(len(a), len(b)) - common if common >= 4 else 5 + (nearest(a, [b]) is None)


def _fold(atom: Atom, values: list[float]) -> float | None:
    """The value at constants, where it is a finite number."""
    try:
        value = float(atom.value(*values))
    except (TypeError, ValueError, ArithmeticError):
        return None
    return value if math.isfinite(value) else None


def _uniform(ctx: Context, scope: Scope, node: syntax.Call) -> ir.Expr | None:
    """``uniform(K)``: the vector with 1/|K| for each element of K."""
    inner = node.args[0]
    symbol = names.find(ctx, inner.id) if isinstance(inner, syntax.Name) else None
    if not isinstance(symbol, SetSymbol | TableSymbol) and (symbol is None or symbol.what != "a dim"):
        if isinstance(inner, syntax.Name) and symbol is None:
            names.unknown(ctx, scope, inner.id, inner.span)
        else:
            ctx.error(
                "F0302",
                f"`{ctx.text(node.span)}` is not a vector",
                node.span,
                reason="`uniform(K)` gives each element of a set K the weight 1/|K|.",
                fix="Name a set or a dim.",
            )
        return None
    dim = sets.declared_dim(ctx, scope, inner)
    if dim is None:
        return None
    ones = ir.Const(value=1.0, shape=(dim,), span=node.span)
    return ir.Apply(op="div", args=(ones, ir.Size(dim=dim, span=inner.span)), shape=(dim,), span=node.span)
