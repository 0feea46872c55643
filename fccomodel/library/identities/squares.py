"""Squares, norms and sums of entries have one form, in whatever way they are written."""

from __future__ import annotations

from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.library import atoms
from fccomodel.library.identities._base import Identity, Knowledge
from fccomodel.library.identities._multiples import multiples
from fccomodel.library.linear import Factor, LinearTerm, single


def _product(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    match node:
        case ir.Apply(op="mul" | "dot" as op, args=(a, b)) if (twice := multiples(a, b)) is not None:
            square = make("square", twice.core, span=node.span)
            if op == "mul":
                whole = square
            else:
                whole = ir.Apply(op="sumsq", args=(twice.core,), span=node.span)
            return replace(twice, core=whole, place=node.span).expr
        case ir.Apply(op="pow", args=(a, ir.Const(value=2.0))):
            return make("square", a, span=node.span)
    return None


def _of_norm(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    """The square of an atom whose square is an atom too: a norm's is ``sumsq``."""
    inner = atoms.squared(node)
    if inner is not None:
        atom = atoms.of(inner)
    else:
        atom = None
    if atom is None or not atom.squared or not isinstance(inner, ir.Apply) or inner.shape != node.shape:
        return None
    return ir.Apply(op=atom.squared, args=inner.args, shape=node.shape, span=node.span)


def _root(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    power = atoms.as_power(node)
    if power is None or not isinstance(power[1], ir.Const) or power[1].value != 0.5:
        return None
    term = single(power[0])
    if term.sign < 0 or any(known.where(f.by).lo < 0 for f in term.factors):
        return None
    match term.core:
        case ir.Apply(op="sumsq", args=(u,)):
            core: ir.Expr = ir.Apply(
                op="norm2" if len(u.shape) == 1 else "norm_fro", args=(u,), span=node.span
            )
        case ir.Apply(op="square", args=(u,)):
            core = make("abs", u, span=node.span)
        case _:
            return None
    return LinearTerm(
        core=core, factors=tuple(Factor(f.op, _half(f.by)) for f in term.factors), place=node.span
    ).expr


def _half(by: ir.Expr) -> ir.Expr:
    """The root of a factor."""
    if isinstance(by, ir.Const):
        return replace(by, value=by.value**0.5)
    return make("sqrt", by, span=by.span)


#: the sum over entries of an atom of one argument
SUMS = {"square": "sumsq", "abs": "norm1"}


def _sum(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    match node:
        case ir.Apply(op="sum", args=(ir.Apply(op=op, args=(u,)),)) if op in SUMS:
            return ir.Apply(op=SUMS[op], args=(u,), span=node.span)
        case ir.Apply(op="sum", args=(ir.Apply(op="mul", args=(a, b)),)) if len(a.shape) == len(b.shape) == 1:
            return ir.Apply(op="dot", args=(a, b), span=node.span)
    return None


square_of_product = Identity(
    name="square_of_product",
    formula="u u = u^2 = square(u);  (2 u) (u / 4) = 0.5 square(u);  dot(u, u) = sumsq(u)",
    apply=_product,
)
square_of_norm = Identity(
    name="square_of_norm",
    formula="norm2(u)^2 = norm_fro(u)^2 = sumsq(u);  abs(u)^2 = u^2;  pos(u)^2 = sqhinge(u)",
    apply=_of_norm,
)
root_of_square = Identity(
    name="root_of_square",
    formula="sqrt(4 sumsq(u)) = 2 norm2(u), of a matrix norm_fro;  sqrt(u^2) = abs(u)",
    apply=_root,
)
sum_of_entries = Identity(
    name="sum_of_entries",
    formula="sum(u^2) = sumsq(u);  sum(abs(u)) = norm1(u);  sum(u v) = dot(u, v)",
    apply=_sum,
)
