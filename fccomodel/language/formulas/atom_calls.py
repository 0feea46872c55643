"""Calls of the functions of the language: arguments, shapes and domains, checked by the library."""

from __future__ import annotations

import math
import os.path
from collections.abc import Collection, Sequence

import fccomodel.library.atoms as registry
from fccomodel.core import ir
from fccomodel.core.diagnostics import nearest
from fccomodel.language import errors, syntax
from fccomodel.language.errors.words import are, counted
from fccomodel.language.formulas import (
    array_forms,
    arrays,
    expressions,
    literals,
    names,
    shapes,
    signs,
    symmetry,
)
from fccomodel.language.formulas.context import (
    Context,
    FormulaArray,
    Scope,
    SetSymbol,
    TableSymbol,
)
from fccomodel.language.formulas.shapes import described
from fccomodel.library.atoms import Atom, ShapeError

#: Functions that the error about wrong arguments offers besides the one that was called.
MAX_RIVALS = 3
#: Axes of a matrix.
MATRIX_AXES = 2
#: First letters that two names share if they are similar.
COMMON_LETTERS = 3


def named_atoms() -> dict[str, Atom]:
    """The functions that a model can call, by every name."""
    named = {name: atom for name, atom in registry.all().items() if not atom.internal and not atom.symbol}
    return named | {alias: named[name] for alias, name in registry.aliases().items() if name in named}


def apply_atom(ctx: Context, scope: Scope, node: syntax.Call, atom: Atom) -> ir.Expr | None:
    """The value of a function of the language, or None after an error."""
    args = _arguments(ctx, scope, node, atom)
    if args is None:
        return None
    if atom.name == "logdet":
        return _log_of_determinant(ctx, node, args[0])
    if atom.name == "inv" and len(args[0].shape) == MATRIX_AXES:
        return _inverse(ctx, node, args[0])
    if any(isinstance(value, FormulaArray) for value in args) or (atom.extreme and len(args) == 1):
        return array_forms.apply(ctx, node, atom, args, lambda one, values: applied(ctx, node, one, values))
    return applied(ctx, node, atom, args)


def applied(ctx: Context, node: syntax.Call, atom: Atom, values: list[ir.Expr]) -> ir.Expr | None:
    """The value of a function at arguments, or None after an error."""
    what = f"an argument of `{atom.name}`"
    args = expressions.complete([expressions.as_number(ctx, value, what) for value in values])
    if args is None:
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


def _inverse(ctx: Context, node: syntax.Call, value: ir.Expr) -> ir.Expr | None:
    """``inv(A)`` of a matrix, which is its inverse and not that of its entries; None after an error."""
    matrix = expressions.written_out(ctx, value) if isinstance(value, FormulaArray) else value
    inverse = registry.get("inverse")
    assert inverse is not None
    if matrix is None:
        return None
    return applied(ctx, node, inverse, [matrix])


def _log_of_determinant(ctx: Context, node: syntax.Call, value: ir.Expr) -> ir.Expr | None:
    """``logdet(A)``: concave if A is proved to be symmetric, else log |det A|; None after an error."""
    matrix = expressions.written_out(ctx, value) if isinstance(value, FormulaArray) else value
    if matrix is None:
        return None
    symmetric = len(matrix.shape) == MATRIX_AXES and symmetry.is_symmetric(ctx, matrix)
    atom = registry.get("logdet" if symmetric else "logabsdet")
    assert atom is not None
    return applied(ctx, node, atom, [matrix])


def _arguments(ctx: Context, scope: Scope, node: syntax.Call, atom: Atom) -> list[ir.Expr] | None:
    """The arguments in the atom's order, named ones included, or None after an error."""
    values = [arrays.operand(ctx, scope, argument) for argument in node.args]
    named = {keyword.name: expressions.evaluate(ctx, scope, keyword.value) for keyword in node.keywords}
    reason = _misnamed(atom, len(values), named)
    if not reason:
        values += [named[name] for name in atom.arguments[len(values) :] if name in named]
        if not atom.accepts(len(values)) or len(values) < len(node.args) + len(named):
            reason = f"{_needed(atom)} needed, {len(values)} {are(len(values))} given"
    arguments = expressions.complete(values)
    if not reason:
        return arguments
    first = next((value for value in values if value is not None), None)
    single = len(values) == 1 and first is not None and not shapes.is_net_parameters(first)
    if single and atom.extreme and first is not None and first.shape:
        return arguments
    if arguments is not None:
        _report_misfit(ctx, node, arguments, atom, reason)
    return None


def _misnamed(atom: Atom, count: int, named: Collection[str]) -> str:
    """The error in the names of arguments that follow ``count`` others, or an empty text."""
    if named and atom.variadic:
        return "its arguments have no names"
    for name in named:
        if name not in atom.arguments:
            return f"`{name}` is none of its arguments"
        if name in atom.arguments[:count]:
            return f"`{name}` is given twice"
    return ""


def _needed(atom: Atom) -> str:
    """The number of arguments of an atom as the subject of a sentence."""
    if atom.variadic:
        return f"{atom.min_count} or more arguments are"
    arity = len(atom.arguments)
    return f"{counted(arity, 'argument')} {are(arity)}"


def _parameters_fixed(ctx: Context, atom: Atom, args: list[ir.Expr]) -> bool:
    """Whether the parameters of an atom are scalars without variables. Reports an error if not."""
    for argument, value in zip(atom.arguments, args, strict=False):
        if argument not in atom.parameters:
            continue
        if value.shape:
            ctx.report(errors.shapes.parameter_of_atom(argument, atom.signature, described(ctx, value)))
            return False
        if ir.variables_of(value):
            quote = ctx.quote(value)
            ctx.report(errors.values.parameter_on_variable(quote, argument, atom.name, atom.signature))
            return False
    return True


def _shape(ctx: Context, node: syntax.Call, atom: Atom, args: Sequence[ir.Expr]) -> ir.Shape | None:
    """The shape of the value by the atom's own rule, or None after an error.

    If it refuses the names of the sizes, the numbers that the text gives for them are tried.
    """
    by_name = tuple(value.shape for value in args)
    try:
        return atom.shape(by_name)
    except ShapeError as error:
        by_number = tuple(tuple(shapes.size(ctx, dim) or dim for dim in shape) for shape in by_name)
        try:
            return atom.shape(by_number)
        except ShapeError:
            reason, alternatives = _sentence(atom, str(error)), _alternatives(args, atom)
            descriptions = [described(ctx, value, 30) for value in args]
            ctx.report(errors.shapes.arguments(node.func, reason, descriptions, alternatives, node.span))
    return None


def _sentence(atom: Atom, text: str) -> str:
    """A reason as a sentence, with the function's name in quotes."""
    if text.startswith(atom.name):
        return f"`{atom.name}`{text.removeprefix(atom.name)}."
    return f"{text[0].upper()}{text[1:]}."


def _alternatives(args: Sequence[ir.Expr], atom: Atom) -> str:
    """Signatures of functions with a similar name that take these arguments."""
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


def _report_misfit(
    ctx: Context, node: syntax.Call, values: Sequence[ir.Expr], atom: Atom, reason: str
) -> None:
    """Report a call with the wrong arguments, with similar functions and why each does not fit."""
    rivals = [
        rival
        for rival in sorted(registry.all().values(), key=lambda a: (_distance(a, atom), a.name))
        if rival is not atom and not rival.internal and not rival.symbol and _distance(rival, atom) <= 2
    ]
    candidates = [(rival.signature, _verdict(rival, values)) for rival in rivals[:MAX_RIVALS]]
    candidates.insert(0, (atom.signature, reason))
    ctx.report(errors.calls.arguments_of_atom(ctx.quote(node), atom.signature, atom.meaning, candidates))


def _verdict(rival: Atom, values: Sequence[ir.Expr]) -> str:
    """Whether a function takes these arguments, in words."""
    if not rival.accepts(len(values)):
        if rival.variadic:
            return f"{rival.min_count} or more needed"
        return f"{counted(len(rival.arguments), 'argument')} needed"
    try:
        rival.shape(tuple(value.shape for value in values))
    except ShapeError as error:
        return str(error)
    return f"would fit; {rival.meaning}"


def _distance(a: Atom, b: Atom) -> int:
    """The distance of two functions.

    0: the same, 1: similar names, 2: a parameter of the same name, 3: neither.
    """
    if a is b:
        return 0
    common = len(os.path.commonprefix([a.name, b.name]))
    if common >= COMMON_LETTERS or nearest(a.name, [b.name]):
        return 1
    if set(a.parameters) & set(b.parameters):
        return 2
    return 3


def _fold(atom: Atom, values: list[float]) -> float | None:
    """The value at constants, or None if it is no finite number."""
    try:
        value = float(atom.value(*values))
    except (TypeError, ValueError, ArithmeticError):
        return None
    if not math.isfinite(value):
        return None
    return value


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
