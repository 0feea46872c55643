"""A convex function as a sum of its parts: quadratic ones, whose Hessian is a constant, and norms that bound the variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fccomodel.core import ir
from fccomodel.core.rewrite import apply
from fccomodel.library import reductions
from fccomodel.structure import Analyser

#: Norms of a variable, by atom.
NORMS = ("norm1", "norm2", "norminf", "sumsq")


@dataclass(eq=False, kw_only=True)
class Parts:
    """What ``sign * expr`` is a sum of, with weights that are not negative.

    see        gives the facts of an expression
    plain      only squares of whole variables count as quadratic, so that the Hessian is diagonal
    leaves     ids of the parts           convex   each of them is proved to be convex
    higher     some part is neither quadratic nor affine
    """

    see: Analyser
    plain: bool = False
    leaves: set[int] = field(default_factory=set)
    convex: bool = True
    higher: bool = False

    def quadratic(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        """The sum of the parts that are convex quadratic functions; None where there are none."""
        if not ir.variables_of(node):
            return None
        match node:
            case ir.LetRef(let=let):
                found = self.quadratic(let.body, sign)
                return None if let.binders else found
            case ir.Apply(op="add" | "sub" | "neg", args=args):
                signs = [sign, -sign] if node.op == "sub" else [-sign if node.op == "neg" else sign] * len(args)
                inside = [self.quadratic(arg, s) for arg, s in zip(args, signs, strict=True)]
                kept = [_signed(q, s * sign) for q, s in zip(inside, signs, strict=True) if q is not None]
                return kept[0] if len(kept) == 1 else apply("add", *kept) if kept else None
            case ir.Apply(op="mul" | "div", args=(a, b)) if (factor := self._factor(node)) is not None:
                inner = b if factor is a else a
                found = self.quadratic(inner, sign * (1 if self.see(factor).interval.value.lo >= 0 else -1))
                return None if found is None else dataclasses.replace(node, args=(a, found) if factor is a else (found, b))
            case ir.Reduce(body=body) if reductions.of(node).additive and not _conditional(node):
                found = self.quadratic(body, sign)
                return None if found is None or self.plain else dataclasses.replace(node, body=found)
        return self._leaf(node, sign)

    def _leaf(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        facts = self.see(node)
        self.leaves.add(id(node))
        good = facts.convex if sign > 0 else facts.concave
        squared = self._squared(node)
        self.convex &= good
        self.higher |= not squared and not facts.affine
        return node if good and squared else None

    def _factor(self, node: ir.Apply) -> ir.Expr | None:
        """The side of a product that no variable is in, where its sign is known; of a quotient the divisor."""
        for side in node.args[1:] if node.op == "div" else node.args:
            low, high = self.see(side).interval.value[:2]
            if not ir.variables_of(side) and (low >= 0 or high <= 0):
                return side
        return None

    def _squared(self, node: ir.Expr) -> bool:
        """It is a polynomial of degree two in the variables."""
        match node:
            case ir.Apply(op="sumsq", args=(inner,)) if self.plain:
                return isinstance(inner, ir.Var)
            case _ if self.plain:
                return False
            case ir.Apply(op="sumsq" | "square", args=(inner,)):
                return self.see(inner).affine
            case ir.Apply(op="pow", args=(inner, ir.Const(value=2.0))):
                return self.see(inner).affine
            case ir.Apply(op="dot" | "mul", args=(a, b)):
                return self.see(a).affine and self.see(b).affine
            case ir.Reduce(body=body) if reductions.of(node).degree == 2:
                return not _conditional(node) and self.see(body).affine
        return False


def _signed(node: ir.Expr, sign: float) -> ir.Expr:
    return node if sign > 0 else apply("neg", node)


def _conditional(node: ir.Reduce) -> bool:
    """Its elements depend on the variables."""
    return node.condition is not None and bool(ir.variables_of(node.condition))


class Size(NamedTuple):
    """``|variable| <= radius`` in the norm that the atom computes, wherever a sum of parts is at most a level."""

    variable: str
    norm: str
    radius: float


def sizes(expr: ir.Expr, sign: float, level: float, see: Analyser) -> Iterator[Size]:
    """What ``sign * expr <= level`` says of the variables: one part is a multiple of a norm, and the others are bounded below."""
    terms = list(_terms(expr, sign))
    lows = []
    for node, s in terms:
        ends = see(node).interval.value
        lows.append(ends.lo if s > 0 else -ends.hi)
    for k, (node, s) in enumerate(terms):
        if (found := _norm(node, s, see)) is not None:
            name, norm, factor = found
            radius = max(0.0, level - sum(lows[:k] + lows[k + 1 :])) / factor
            yield Size(name, "norm2", radius**0.5) if norm == "sumsq" else Size(name, norm, radius)


def _terms(node: ir.Expr, sign: float) -> Iterator[tuple[ir.Expr, float]]:
    match node:
        case ir.LetRef(let=let) if not let.binders:
            yield from _terms(let.body, sign)
        case ir.Apply(op="add", args=args):
            for arg in args:
                yield from _terms(arg, sign)
        case ir.Apply(op="sub", args=(a, b)):
            yield from _terms(a, sign)
            yield from _terms(b, -sign)
        case ir.Apply(op="neg", args=(a,)):
            yield from _terms(a, -sign)
        case _:
            yield node, sign


def _norm(node: ir.Expr, sign: float, see: Analyser) -> tuple[str, str, float] | None:
    """(variable, atom, a positive lower bound of the factor)."""
    factor = sign
    while isinstance(node, ir.Apply) and node.op == "mul":
        a, b = node.args if not ir.variables_of(node.args[0]) else node.args[::-1]
        ends = see(a).interval.value
        if ir.variables_of(a) or a.shape or ends.lo < 0:
            return None
        factor, node = factor * ends.lo, b
    if factor > 0 and isinstance(node, ir.Apply) and node.op in NORMS and isinstance(node.args[0], ir.Var):
        return node.args[0].name, node.op, factor
    return None
