"""Recognition of expressions by the atom at their top."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from math import pi
from typing import NamedTuple

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.library.atoms._array import ArrayAtom
from fccomodel.library.atoms._registry import all, get
from fccomodel.library.atoms.base import Atom


def of(node: ir.Expr) -> Atom | None:
    """The atom that a node applies, or None if the node is not an application."""
    if isinstance(node, ir.Apply):
        return get(node.op)
    return None


def as_power(node: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
    """The base u and exponent p of ``u^p``, ``square(u)``, ``sqrt(u)`` or ``inv(u)``, or None."""
    atom = of(node)
    if atom is None or atom.exponent is None or not isinstance(node, ir.Apply):
        return None
    p = atom.exponent
    return node.args[0], node.args[atom.arguments.index(p)] if isinstance(p, str) else const(p)


def squared(node: ir.Expr) -> ir.Expr | None:
    """The base u of ``square(u)`` or ``u^2``, or None."""
    power = as_power(node)
    if power is not None and isinstance(power[1], ir.Const) and power[1].value == 2:
        return power[0]
    return None


def signed(node: ir.Expr) -> tuple[tuple[int, ir.Expr], ...] | None:
    """The terms of a sum, difference or negative with their signs, or None."""
    atom = of(node)
    if atom is None or atom.signs is None or not isinstance(node, ir.Apply):
        return None
    return tuple(zip(atom.signs, node.args, strict=True))


def generator(node: ir.Expr) -> str:
    """The generator phi of a divergence, or an empty text."""
    atom = of(node)
    if isinstance(atom, ArrayAtom):
        return atom.generator
    return ""


#: The generator of the total variation, which models write as ``norm1(q - p) / 2``.
TOTAL_VARIATION = "abs(t - 1) / 2"


class DivergenceOf(NamedTuple):
    """``unit`` times a divergence of q from p, given by its generator."""

    generator: str
    q: ir.Expr
    p: ir.Expr
    unit: float = 1.0


def divergence_of(node: ir.Expr) -> DivergenceOf | None:
    """The divergence that a node is a multiple of, or None: of ``norm1(q - p)`` twice the total variation."""
    match node:
        case ir.Apply(op="norm1", args=(ir.Apply(op="sub", args=(q, p)),)):
            return DivergenceOf(TOTAL_VARIATION, q, p, 2.0)
        case ir.Apply(op="div", args=(inner, ir.Const(value=c))) if c > 0:
            part, factor = divergence_of(inner), 1 / c
        case ir.Apply(op="mul", args=(ir.Const(value=c), inner)) if c > 0:
            part, factor = divergence_of(inner), c
        case _ if generator(node):
            q, p = node.children
            return DivergenceOf(generator(node), q, p)
        case _:
            return None
    return None if part is None else part._replace(unit=factor * part.unit)


@cache
def symbols() -> Mapping[type, str]:
    """Names of the atoms that are written with a Python operator between two operands."""
    pairs = (
        (atom.name, atom.symbol.replace("^", "**"))
        for atom in all().values()
        if atom.symbol and len(atom.arguments) == 2
    )
    parsed = ((name, ast.parse(f"a {symbol} b", mode="eval").body) for name, symbol in pairs)
    return {type(tree.op): name for name, tree in parsed if isinstance(tree, ast.BinOp)}


def expression(text: str, names: Mapping[str, ir.Expr]) -> ir.Expr:
    """Parse a formula of scalars in the modelling language, such as ``t * log(t)``."""

    def built(node: ast.expr) -> ir.Expr:
        """The expression of a node of a Python formula."""
        match node:
            case ast.Constant(value=int() | float() as value):
                return const(value)
            case ast.Name(id=name):
                if name in names:
                    return names[name]
                return const({"pi": pi}[name])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return make("neg", built(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return make(symbols()[type(op)], built(left), built(right))
            case ast.Call(func=ast.Name(id=name), args=args):
                return make(name, *(built(arg) for arg in args))
        raise ValueError(f"not a formula: {ast.dump(node)}")

    return built(ast.parse(text.replace("^", "**"), mode="eval").body)
