"""Where the least value of an argument matters: roots, logarithms, fractions."""

from __future__ import annotations

from fccomodel.core import ir

#: atoms that are steep, or not defined, where an argument is 0, and which argument
STEEP = {"sqrt": 0, "log": 0, "entr": 0, "inv": 0, "pow": 0, "div": 1}


def steep_at_0(expr: ir.Expr) -> list[ir.Expr]:
    """The arguments of its parts that are steep, or not defined, where these are 0: their least values matter."""
    return [n.args[STEEP[n.op]] for n in ir.walk(expr) if isinstance(n, ir.Apply) and n.op in STEEP]
