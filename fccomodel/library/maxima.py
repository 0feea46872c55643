"""Nested maxima as one: max(.., u + |v|, ..) = max(.., u + v, u - v, ..)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import apply, const
from fccomodel.library import atoms

#: The largest number of terms of a joined maximum.
MAX_TERMS = 8
#: The value of an expression that is a number, or None.
Number = Callable[[ir.Expr], float | None]


def constant(node: ir.Expr) -> float | None:
    """The value of a number in the text, or None."""
    if isinstance(node, ir.Const):
        return float(node.value)
    return None


def nested(node: ir.Expr) -> list[ir.Expr] | None:
    """The terms of a maximum with other maxima inside, or None if there are none inside or too many
    terms."""
    outer = branches(node)
    pieces = [piece for branch in outer for piece in spread_out(branch)]
    if len(outer) < len(pieces) <= MAX_TERMS:
        return pieces
    return None


def branches(node: ir.Expr, number: Number = constant) -> list[ir.Expr]:
    """The terms of a maximum, or of a maximum of affine functions of one number; else empty."""
    atom = atoms.of(node)
    if not isinstance(node, ir.Apply) or not isinstance(atom, atoms.ScalarAtom):
        return []
    if atom.variadic:
        if atom.extreme > 0:
            return [arg for arg in node.args if not isinstance(arg, ir.Label)]
        return []
    u, *parameters = node.args
    numbers = [known for parameter in parameters if (known := number(parameter)) is not None]
    if len(numbers) == len(atom.parameters) == len(parameters):
        pieces = atom.affine_pieces(*numbers)
    else:
        pieces = ()
    if len(pieces) > 1:
        return [_affine(slope, u, shift) for slope, shift in pieces]
    return []


def spread_out(node: ir.Expr, number: Number = constant) -> list[ir.Expr]:
    """The terms of the maximum that a sum is, by one of its summands that is a maximum."""
    if inside := branches(node, number):
        return [piece for branch in inside for piece in spread_out(branch, number)]
    terms = atoms.signed(node)
    for k, (sign, term) in enumerate(terms or ()):
        if sign < 0:
            continue
        inner = spread_out(term, number)
        if len(inner) > 1:
            assert isinstance(node, ir.Apply)
            return [replace(node, args=(*node.args[:k], piece, *node.args[k + 1 :])) for piece in inner]
    return [node]


def _affine(slope: float, u: ir.Expr, shift: float) -> ir.Expr:
    if not slope:
        return const(shift)
    if slope == 1:
        scaled = u
    elif slope == -1:
        scaled = apply("neg", u)
    else:
        scaled = apply("mul", const(slope), u)
    if shift:
        return apply("add", scaled, const(shift))
    return scaled
