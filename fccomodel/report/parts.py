"""A convex function as a sum of its parts: quadratic ones, whose Hessian is a constant, and norms that bound the variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fccomodel.core import ir
from fccomodel.core.rewrite import apply
from fccomodel.library import atoms, reductions
from fccomodel.structure import Analyser


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
                q = self.quadratic(let.body, sign)
                return None if let.binders else q
            case ir.Apply() if (terms := atoms.signed(node)) is not None:
                inside = [(sign_of_term, self.quadratic(part, sign * sign_of_term)) for sign_of_term, part in terms]
                kept = [_signed(q, sign_of_term) for sign_of_term, q in inside if q is not None]
                return kept[0] if len(kept) == 1 else apply("add", *kept) if kept else None
            case ir.Apply(op="mul" | "div", args=(a, b)) if (factor := self._factor(node)) is not None:
                inner = b if factor is a else a
                q = self.quadratic(inner, sign * (1 if self.see(factor).interval.value.lo >= 0 else -1))
                return None if q is None else dataclasses.replace(node, args=(a, q) if factor is a else (q, b))
            case ir.Reduce(body=body) if reductions.of(node).additive and not _conditional(node):
                q = self.quadratic(body, sign)
                return None if q is None or self.plain else dataclasses.replace(node, body=q)
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
        if self.plain:
            return isinstance(node, ir.Apply) and node.op == "sumsq" and isinstance(node.args[0], ir.Var)
        return self.see(node).degree == 2


def _signed(node: ir.Expr, sign: float) -> ir.Expr:
    return node if sign > 0 else apply("neg", node)


def _conditional(node: ir.Reduce) -> bool:
    """Its elements depend on the variables."""
    return node.condition is not None and bool(ir.variables_of(node.condition))


class Size(NamedTuple):
    """``|variable| <= radius`` in the norm whose dual's unit ball has this shape, wherever a sum of parts is at most a level."""

    variable: str
    ball: str
    radius: float


def sizes(expr: ir.Expr, sign: float, level: float, see: Analyser) -> Iterator[Size]:
    """What ``sign * expr <= level`` says of the variables: one part is a multiple of a norm, and the others are bounded below."""
    terms = list(_terms(expr, sign))
    lows = []
    for node, s in terms:
        ends = see(node).interval.value
        lows.append(ends.lo if s > 0 else -ends.hi)
    for k, (node, s) in enumerate(terms):
        if (bounded := _norm(node, s, see)) is not None:
            name, ball, power, factor = bounded
            radius = max(0.0, level - sum(lows[:k] + lows[k + 1 :])) / factor
            yield Size(name, ball, radius ** (1 / power))


def _terms(node: ir.Expr, sign: float) -> Iterator[tuple[ir.Expr, float]]:
    if isinstance(node, ir.LetRef) and not node.let.binders:
        yield from _terms(node.let.body, sign)
    elif (terms := atoms.signed(node)) is not None:
        for sign_of_term, part in terms:
            yield from _terms(part, sign * sign_of_term)
    else:
        yield node, sign


def _norm(node: ir.Expr, sign: float, see: Analyser) -> tuple[str, str, int, float] | None:
    """(variable, the shape of the ball, the norm's power, a positive lower bound of the factor)."""
    factor = sign
    while isinstance(node, ir.Apply) and node.op == "mul":
        a, b = node.args if not ir.variables_of(node.args[0]) else node.args[::-1]
        ends = see(a).interval.value
        if ir.variables_of(a) or a.shape or ends.lo < 0:
            return None
        factor, node = factor * ends.lo, b
    atom = atoms.of(node)
    if factor <= 0 or not isinstance(atom, atoms.ArrayAtom) or not isinstance(node.children[0], ir.Var):
        return None
    for norm, power in ((atom, 1), *((root, 2) for root in atoms.all().values() if root.squared == atom.name)):
        if isinstance(norm, atoms.ArrayAtom) and norm.ball is not None and not norm.in_groups:
            return node.children[0].name, norm.ball.kind, power, factor
    return None
