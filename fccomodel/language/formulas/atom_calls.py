"""Calls of atoms: arguments, shapes and domains checked against the registry."""

from __future__ import annotations

import math
from collections.abc import Sequence

import fccomodel.library.atoms as registry
from fccomodel.core import ir
from fccomodel.core.diagnostics import nearest
from fccomodel.language import errors, syntax
from fccomodel.language.errors.words import are, counted
from fccomodel.language.formulas import expressions, literals, names, shapes, signs
from fccomodel.language.formulas.context import (
    Context,
    Scope,
    SetSymbol,
    TableSymbol,
)
from fccomodel.language.formulas.shapes import described
from fccomodel.library.atoms import Atom, ShapeError


def named_atoms() -> dict[str, Atom]:
    """The functions that a model can call, by every name."""
    named = {name: atom for name, atom in registry.all().items() if not atom.internal and not atom.symbol}
    return named | {alias: named[name] for alias, name in registry.aliases().items() if name in named}


def apply_atom(ctx: Context, scope: Scope, node: syntax.Call, atom: Atom) -> ir.Expr | None:
    """A function of the language."""
    args = _arguments(ctx, scope, node, atom)
    if args is None or not all(
        [expressions.is_number(ctx, v, f"an argument of `{atom.name}`") for v in args]
    ):
        return None
    shape = _shape(ctx, node, atom, args)
    if shape is None or not _parameters_fixed(ctx, atom, args):
        return None
    if not signs.in_domain(ctx, atom.name, tuple(args), node.span):
        return None
    if all(isinstance(v, ir.Const) and not v.shape for v in args):
        folded = _fold(atom, [v.value for v in args if isinstance(v, ir.Const)])
        if folded is not None:
            return ir.Const(value=folded, span=node.span)
    return ir.Apply(op=atom.name, args=tuple(args), shape=shape, span=node.span)


def _arguments(ctx: Context, scope: Scope, node: syntax.Call, atom: Atom) -> list[ir.Expr] | None:
    """The arguments in the atom's order, those given by name too; an error where they are not what it
    takes."""
    values = [expressions.evaluate(ctx, scope, a) for a in node.args]
    named = {k.name: expressions.evaluate(ctx, scope, k.value) for k in node.keywords}
    reason = ""
    if named and not atom.variadic:
        order = atom.arguments[len(values) :]
        if set(named) - set(order):
            misnamed = next(n for n in named if n not in order)
            reason = (
                f"`{misnamed}` is {'given twice' if misnamed in atom.arguments else 'none of its arguments'}"
            )
        else:
            values += [named[n] for n in order if n in named]
    elif named:
        reason = "its arguments have no names"
    if not reason and (not atom.accepts(len(values)) or (len(values) < len(node.args) + len(named))):
        arity = len(atom.arguments)
        if atom.variadic:
            needed = f"{atom.min_count} or more arguments are"
        else:
            needed = f"{counted(arity, 'argument')} {are(arity)}"
        reason = f"{needed} needed, {len(values)} {are(len(values))} given"
    arguments = [v for v in values if v is not None]
    if not reason:
        return arguments if len(arguments) == len(values) else None
    if len(values) == 1 and atom.extreme and arguments and arguments[0].shape:
        ctx.report(errors.calls.extreme_of_a_vector(atom.name, node.span))
    elif len(arguments) == len(values):
        _misfit(ctx, node, arguments, atom, reason)
    return None


def _parameters_fixed(ctx: Context, atom: Atom, args: list[ir.Expr]) -> bool:
    """The atom's parameters are scalars without variables."""
    for argument, value in zip(atom.arguments, args, strict=False):
        if argument not in atom.parameters:
            continue
        if value.shape:
            ctx.report(errors.shapes.parameter_of_atom(argument, atom.signature, described(ctx, value)))
            return False
        if ir.variables_of(value):
            ctx.report(
                errors.values.parameter_on_variable(ctx.quote(value), argument, atom.name, atom.signature)
            )
            return False
    return True


def _shape(ctx: Context, node: syntax.Call, atom: Atom, args: Sequence[ir.Expr]) -> ir.Shape | None:
    """The shape of the value, by the atom's own rule; sizes known from the text count as numbers where
    names differ."""
    argument_shapes = tuple(v.shape for v in args)
    try:
        return atom.shape(argument_shapes)
    except ShapeError as error:
        try:
            return atom.shape(
                tuple(tuple(shapes.size(ctx, n) or n for n in shape) for shape in argument_shapes)
            )
        except ShapeError:
            alternatives = _candidates(ctx, node, args, atom)
            descriptions = [described(ctx, v, 30) for v in args]
            ctx.report(
                errors.shapes.arguments(
                    node.func, _sentence(atom, str(error)), descriptions, alternatives, node.span
                )
            )
    return None


def _sentence(atom: Atom, text: str) -> str:
    """A reason as a sentence, with the function's name in quotes."""
    if text.startswith(atom.name):
        return f"`{atom.name}`{text.removeprefix(atom.name)}."
    return f"{text[0].upper()}{text[1:]}."


def _candidates(ctx: Context, node: syntax.Call, args: Sequence[ir.Expr], atom: Atom) -> str:
    """Signatures of other functions of a similar name that take these arguments."""
    signatures = []
    for rival in registry.all().values():
        if rival is atom or rival.internal or rival.symbol or not rival.accepts(len(args)):
            continue
        if _distance(rival, atom) <= 1 and type(rival) is type(atom):
            try:
                rival.shape(tuple(v.shape for v in args))
            except ShapeError:
                continue
            signatures.append(f"`{rival.signature}`")
    return " or ".join(signatures[:3])


def _misfit(ctx: Context, node: syntax.Call, values: Sequence[ir.Expr], atom: Atom, reason: str) -> None:
    """The error of a call with the wrong arguments: candidates, nearest first, each with why it does
    not fit."""
    candidates = [(atom.signature, reason)]
    for rival in sorted(registry.all().values(), key=lambda a: (_distance(a, atom), a.name)):
        if (
            rival is atom
            or rival.internal
            or rival.symbol
            or _distance(rival, atom) > 2
            or len(candidates) > 3
        ):
            continue
        if not rival.accepts(len(values)):
            if rival.variadic:
                needed = f"{rival.min_count} or more"
            else:
                needed = counted(len(rival.arguments), "argument")
            candidates.append((rival.signature, f"{needed} needed"))
            continue
        try:
            rival.shape(tuple(v.shape for v in values))
            candidates.append((rival.signature, f"would fit; {rival.meaning}"))
        except ShapeError as error:
            candidates.append((rival.signature, str(error)))
    ctx.report(errors.calls.arguments_of_atom(ctx.quote(node), atom.signature, atom.meaning, candidates))


def _distance(a: Atom, b: Atom) -> int:
    """How far two functions are: 0 the same, 1 of similar names, 2 with a parameter of the same name,
    3 of another kind."""
    if a is b:
        return 0
    common = next(
        (k for k, (x, y) in enumerate(zip(a.name, b.name, strict=False)) if x != y),
        min(len(a.name), len(b.name)),
    )
    if common >= 3 or nearest(a.name, [b.name]):
        return 1
    return 2 if set(a.parameters) & set(b.parameters) else 3


def _fold(atom: Atom, values: list[float]) -> float | None:
    """The value at constants, where it is a finite number."""
    try:
        value = float(atom.value(*values))
    except (TypeError, ValueError, ArithmeticError):
        return None
    return value if math.isfinite(value) else None


def uniform_weights(ctx: Context, scope: Scope, node: syntax.Call) -> ir.Expr | None:
    """``uniform(K)``: the vector with 1/|K| for each element of K."""
    argument = node.args[0]
    if isinstance(argument, syntax.Name):
        symbol = names.find(ctx, argument.id)
    else:
        symbol = None
    if not isinstance(symbol, SetSymbol | TableSymbol) and (symbol is None or symbol.what != "a dim"):
        if isinstance(argument, syntax.Name) and symbol is None:
            names.unknown(ctx, scope, argument.id, argument.span)
        else:
            ctx.report(errors.calls.weights_of_no_set(ctx.quote(node)))
        return None
    dim = literals.declared_dim(ctx, scope, argument)
    if dim is None:
        return None
    ones = ir.Const(value=1.0, shape=(dim,), span=node.span)
    return ir.Apply(op="div", args=(ones, ir.Size(dim=dim, span=argument.span)), shape=(dim,), span=node.span)
