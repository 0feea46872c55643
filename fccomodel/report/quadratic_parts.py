"""A convex function as a sum of parts: quadratic ones with a constant Hessian, others with a known
curvature near a point, and norms that bound the variables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fccomodel.core import ir
from fccomodel.core.rewrite import apply, const, substitute, with_children
from fccomodel.library import atoms, reductions
from fccomodel.structure import Analyser
from fccomodel.structure.facts import Facts, Standing


@dataclass(eq=False, kw_only=True)
class WeightedParts:
    """The parts whose sum, with nonnegative weights, is ``sign * expr``.

    see        gives the facts of an expression
    plain      count only squares of whole variables as quadratic, so that the Hessian is diagonal
    leaves     ids of the parts
    convex     whether each part is proved to be convex
    higher     whether some part is neither quadratic nor affine
    radius     count parts that are not quadratic too, as functions whose curvature at a point is at
               most theirs within this distance of it; None to leave them out
    steepest   the largest constant of these parts: a Lipschitz constant of their affine arguments, or
               the constant of ``steady``
    """

    see: Analyser
    plain: bool = False
    leaves: set[int] = field(default_factory=set)
    convex: bool = True
    higher: bool = False
    radius: float | None = None
    steepest: float = 0.0
    #: by node and sign: the node, which keeps its id, and the result
    known: dict[tuple[int, float], tuple[ir.Expr, ir.Expr | None]] = field(default_factory=dict)

    def quadratic(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        """The sum of the parts that are convex quadratic functions, or None if there are none."""
        if not ir.variables_of(node):
            return None
        key = (id(node), sign)
        if key not in self.known:
            self.known[key] = (node, self._quadratic(node, sign))
        return self.known[key][1]

    def _quadratic(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        """The quadratic part of a node with variables that was not computed before."""
        match node:
            case ir.LetRef(let=let):
                if self.radius is not None and let.binders:
                    return self.quadratic(
                        substitute(let.body, dict(zip(let.binders, node.args, strict=True))), sign
                    )
                q = self.quadratic(let.body, sign)
                if let.binders:
                    return None
                return q
            case ir.Apply() if (terms := atoms.signed(node)) is not None:
                inside = [
                    (sign_of_term, self.quadratic(part, sign * sign_of_term)) for sign_of_term, part in terms
                ]
                signed_parts = [_signed(q, sign_of_term) for sign_of_term, q in inside if q is not None]
                if len(signed_parts) == 1:
                    return signed_parts[0]
                if signed_parts:
                    return apply("add", *signed_parts)
                return None
            case ir.Apply(op="mul" | "div", args=(a, b)) if (factor := self._factor(node)) is not None:
                inner = b if factor is a else a
                nonnegative = self.see(factor).interval.value.lo >= 0
                q = self.quadratic(inner, sign if nonnegative else -sign)
                return _with_part(node, inner, q)
            case ir.Reduce(body=body) if reductions.of(node).additive and not _conditional(node):
                q = self.quadratic(body, sign)
                if self.plain:
                    return None
                return _with_part(node, body, q)
        return self._leaf(node, sign)

    def _leaf(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        facts = self.see(node)
        self.leaves.add(id(node))
        good = facts.convex if sign > 0 else facts.concave
        squared = self._squared(node)
        self.convex &= good
        self.higher |= not squared and not facts.affine
        if not good:
            return None
        if squared:
            return node
        return self._near(node)

    def _near(self, node: ir.Expr) -> ir.Expr | None:
        """A function for a part that is not quadratic, see ``radius``; None if none is known."""
        if self.radius is None or node.shape:
            return None
        constant = steady(node, self.see)
        if constant is not None and constant < math.inf:
            self.steepest = max(self.steepest, constant)
            return apply("mul", const(math.exp(-constant * self.radius)), node)
        atom = atoms.of(node)
        if not isinstance(atom, atoms.ScalarAtom) or not atom.near:
            return None
        if any(map(ir.variables_of, node.children[1:])):
            return None
        if (slope := slope_of(node.children[0], self.see)) == math.inf:
            return None
        names = {**dict(zip(atom.arguments, node.children, strict=True)), "r": const(self.radius * slope)}
        near = atoms.expression(atom.near, names)
        if any(not ir.variables_of(condition.subject) for condition in self.see(near).domain):
            return None
        self.steepest = max(self.steepest, slope)
        return near

    def _factor(self, node: ir.Apply) -> ir.Expr | None:
        """The side of a product (the divisor of a quotient) that has no variables and a known sign, or
        None."""
        for side in node.args[1:] if node.op == "div" else node.args:
            low, high = self.see(side).interval.value[:2]
            if not ir.variables_of(side) and (low >= 0 or high <= 0):
                return side
        return None

    def _squared(self, node: ir.Expr) -> bool:
        """Whether the node is a polynomial of degree two in the variables."""
        if self.plain:
            return isinstance(node, ir.Apply) and node.op == "sumsq" and isinstance(node.args[0], ir.Var)
        return self.see(node).degree == 2


def _with_part(node: ir.Expr, whole: ir.Expr, part: ir.Expr | None) -> ir.Expr | None:
    """The node with a part in the place of this child: itself if the part is all of it, None if there
    is none."""
    if part is None:
        return None
    if part is whole:
        return node
    return with_children(node, tuple(part if child is whole else child for child in node.children))


def _signed(node: ir.Expr, sign: float) -> ir.Expr:
    if sign > 0:
        return node
    return apply("neg", node)


def _conditional(node: ir.Reduce) -> bool:
    """Whether the elements of a reduction depend on the variables."""
    return node.condition is not None and bool(ir.variables_of(node.condition))


def steady(node: ir.Expr, see: Analyser) -> float | None:
    """c with ``|D^3 f[v, v, v]| <= c |v| D^2 f[v, v]`` everywhere, for a convex f, or None if none is
    known.

    Within r of a point, the Hessian is at least exp(-c r) times that at the point. A sum has the
    largest constant of its terms. The log-mean-exp of rows h has the second derivative E_q h'' +
    Var_q h', and the constant of h plus three times the range of h', which is 2 Lip h.
    """
    facts = see(node)
    if facts.affine or facts.degree == 2 and facts.convex:
        return 0.0
    match node:
        case ir.LetRef(let=let):
            return steady(substitute(let.body, dict(zip(let.binders, node.args, strict=True))), see)
        case ir.Reduce(body=body) if reductions.of(node).additive and not _conditional(node):
            return steady(body, see)
        case ir.Reduce(body=body) if _logarithmic(node) and not _conditional(node):
            return _steady_of_exponentials(body, _temperature(node, see), see)
        case ir.Apply(op="log", args=(ir.LetRef() | ir.Reduce() as inner,)) if (
            rows := _exponentials(inner)
        ) is not None:
            return _steady_of_exponentials(rows, 1.0, see)
        case ir.Apply() if (terms := atoms.signed(node)) is not None:
            return _steady_of_sum(terms, see)
        case ir.Apply(op="mul", args=(a, b)):
            return _steady_of_product(a, b, see)
    atom = atoms.of(node)
    if not isinstance(atom, atoms.ScalarAtom) or atom.steady == math.inf or node.shape:
        return None
    return atom.steady * slope_of(node.children[0], see)


def _logarithmic(node: ir.Reduce) -> bool:
    """Whether the node is the logarithm of a mean or a sum of exponentials."""
    return reductions.of(node).name in ("logmeanexp", "logsumexp")


def _steady_of_exponentials(rows: ir.Expr, theta: float, see: Analyser) -> float | None:
    """``steady`` of log-mean-exp of rows with temperature ``theta``, or None if that may not be positive."""
    if theta <= 0 or not see(rows).convex:
        return None
    known = steady(rows, see)
    if known is None:
        return None
    return known + 6 * _constant(see(rows)) / theta


def _temperature(node: ir.Reduce, see: Analyser) -> float:
    """The least value of the option ``theta`` of a reduction; 1 if it is not given."""
    if "theta" not in node.options:
        return 1.0
    return see(node.options["theta"]).interval.value.lo


def _steady_of_product(a: ir.Expr, b: ir.Expr, see: Analyser) -> float | None:
    """``steady`` of a product of a number by a factor without variables that is nowhere negative."""
    factor, u = (b, a) if ir.variables_of(a) else (a, b)
    if ir.variables_of(factor) or see(factor).interval.value.lo < 0 or u.shape:
        return None
    return steady(u, see)


def _steady_of_sum(terms: Sequence[tuple[float, ir.Expr]], see: Analyser) -> float | None:
    """``steady`` of a sum: the largest of the terms' constants."""
    largest = -math.inf
    for sign, part in terms:
        if sign > 0 or see(part).affine:
            known = steady(part, see)
        else:
            known = None
        if known is None:
            return None
        largest = max(largest, known)
    return largest


def _exponentials(node: ir.Expr) -> ir.Expr | None:
    """h of a mean or a sum of exp(h), or None for others."""
    if isinstance(node, ir.LetRef) and not node.let.binders:
        inner = node.let.body
    else:
        inner = node
    if not isinstance(inner, ir.Reduce) or not reductions.of(inner).additive or _conditional(inner):
        return None
    if isinstance(inner.body, ir.Apply) and inner.body.op == "exp":
        return inner.body.args[0]
    return None


def slope_of(u: ir.Expr, see: Analyser) -> float:
    """The Lipschitz constant of an affine function; inf if it is not known or the function is not
    affine."""
    if see(u).affine:
        return _constant(see(u))
    return math.inf


def _constant(facts: Facts) -> float:
    """The Lipschitz constant; inf if it is not known."""
    known = facts.lipschitz.standing <= Standing.BOUNDED and facts.lipschitz.value.known
    if known:
        return facts.lipschitz.value.value
    return math.inf


class NormBound(NamedTuple):
    """``|variable| <= radius`` at all points where a sum of parts is at most a level.

    ball   the shape of the unit ball of the dual norm
    """

    variable: str
    ball: str
    radius: float


def sizes(expr: ir.Expr, sign: float, level: float, see: Analyser) -> Iterator[NormBound]:
    """Bounds of variables that follow from ``sign * expr <= level``: a part is a multiple of a norm, and
    the others are bounded below."""
    terms = list(terms_of(expr, sign))
    lows = []
    for node, s in terms:
        ends = see(node).interval
        low = ends.value.lo if s > 0 else -ends.value.hi
        lows.append(low if ends.standing <= Standing.BOUNDED else -math.inf)
    for k, (node, s) in enumerate(terms):
        if (bounded := _norm(node, s, see)) is not None:
            name, ball, power, factor = bounded
            radius = max(0.0, level - sum(lows[:k] + lows[k + 1 :])) / factor
            yield NormBound(name, ball, radius ** (1 / power))


def terms_of(node: ir.Expr, sign: float) -> Iterator[tuple[ir.Expr, float]]:
    """The terms whose sum is ``sign * node``, with their signs."""
    if isinstance(node, ir.LetRef) and not node.let.binders:
        yield from terms_of(node.let.body, sign)
    elif (terms := atoms.signed(node)) is not None:
        for sign_of_term, part in terms:
            yield from terms_of(part, sign * sign_of_term)
    else:
        yield node, sign


def _norm(node: ir.Expr, sign: float, see: Analyser) -> tuple[str, str, int, float] | None:
    """(variable, shape of the ball, power of the norm, positive lower bound of the factor), or None if
    the node is no multiple of a norm of a variable."""
    factor = sign
    while isinstance(node, ir.Apply) and node.op == "mul":
        a, b = node.args
        if ir.variables_of(a):
            a, b = b, a
        ends = see(a).interval.value
        if ir.variables_of(a) or a.shape or ends.lo < 0:
            return None
        factor, node = factor * ends.lo, b
    atom = atoms.of(node)
    if factor <= 0 or not isinstance(atom, atoms.ArrayAtom) or not isinstance(node.children[0], ir.Var):
        return None
    for norm, power in (
        (atom, 1),
        *((root, 2) for root in atoms.all().values() if root.squared == atom.name),
    ):
        if isinstance(norm, atoms.ArrayAtom) and norm.ball is not None and norm.even and not norm.in_groups:
            return node.children[0].name, norm.ball.kind, power, factor
    return None
