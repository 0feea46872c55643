"""Expressions by what their atoms are."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from math import pi

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.library.atoms._array import ArrayAtom
from fccomodel.library.atoms._registry import all, get
from fccomodel.library.atoms.base import Atom


def of(node: ir.Expr) -> Atom | None:
    """The atom that a node applies; None for a node of another kind."""
    if isinstance(node, ir.Apply):
        return get(node.op)
    return None


def as_power(node: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
    """u and p of ``u^p``, ``square(u)``, ``sqrt(u)``, ``inv(u)``; None for anything else."""
    atom = of(node)
    if atom is None or atom.exponent is None or not isinstance(node, ir.Apply):
        return None
    p = atom.exponent
    return node.args[0], node.args[atom.arguments.index(p)] if isinstance(p, str) else const(p)


def squared(node: ir.Expr) -> ir.Expr | None:
    """u of ``square(u)`` and ``u^2``; None for anything else."""
    power = as_power(node)
    if power is not None and isinstance(power[1], ir.Const) and power[1].value == 2:
        return power[0]
    return None


def signed(node: ir.Expr) -> tuple[tuple[int, ir.Expr], ...] | None:
    """The terms, with their signs, of a sum, a difference, or a negative; None for anything else."""
    atom = of(node)
    if atom is None or atom.signs is None or not isinstance(node, ir.Apply):
        return None
    return tuple(zip(atom.signs, node.args, strict=True))


def generator(node: ir.Expr) -> str:
    """phi of a divergence; empty for anything else."""
    atom = of(node)
    return atom.generator if isinstance(atom, ArrayAtom) else ""


@cache
def symbols() -> Mapping[type, str]:
    """The atoms of Python's operators between two operands."""
    pairs = (
        (atom.name, atom.symbol.replace("^", "**"))
        for atom in all().values()
        if atom.symbol and len(atom.arguments) == 2
    )
    parsed = ((name, ast.parse(f"a {symbol} b", mode="eval").body) for name, symbol in pairs)
    return {type(tree.op): name for name, tree in parsed if isinstance(tree, ast.BinOp)}


def expression(text: str, names: Mapping[str, ir.Expr]) -> ir.Expr:
    """A formula in the modelling language, such as ``t * log(t)``, of scalars."""

    def built(node: ast.expr) -> ir.Expr:
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
