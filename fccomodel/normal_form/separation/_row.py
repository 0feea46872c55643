"""One reduction over the elements of one binder, and what its separated form is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const, with_children
from fccomodel.library import atoms, piecewise, reductions
from fccomodel.library.linear import sides
from fccomodel.library.piecewise import Pieces
from fccomodel.library.reductions import Reduction
from fccomodel.library.reductions.logmeanexp import LOGMEANEXP
from fccomodel.library.reductions.mean import MEAN


@dataclass(frozen=True, eq=False, kw_only=True)
class PiecewiseMean(ir.Expr):
    """The mean (where ``inner`` is a sum, the sum) of f(outer + inner.body), f being quadratic on each
    of ``pieces``."""

    outer: ir.Expr
    inner: ir.Reduce
    pieces: Pieces

    @property
    def children(self) -> tuple[ir.Expr, ...]:
        return (self.outer, self.inner)


@dataclass(frozen=True)
class Row:
    """One reduction over the elements of one binder.

    constant     the value of a subexpression that no variable and no row enters
    free         the binders that an expression depends on
    conditional  its elements depend on the binders around it
    """

    node: ir.Reduce
    constant: Callable[[ir.Expr], float | None]
    free: Callable[[ir.Expr], tuple[ir.Binder, ...]]
    conditional: bool

    @property
    def binder(self) -> ir.Binder:
        return self.node.binders[0]

    @property
    def kind(self) -> Reduction:
        return reductions.of(self.node)

    def varies(self, expr: ir.Expr) -> bool:
        return self.binder in self.free(expr)

    def mixed(self, expr: ir.Expr) -> bool:
        """It depends on the own binder and on another."""
        free = self.free(expr)
        return self.binder in free and len(free) > 1

    def over(self, body: ir.Expr, kind: Reduction | None = None) -> ir.Reduce:
        """The same reduction (or one of another kind) of another body."""
        return (kind or self.kind).over(self.node, body)

    def alike(self, body: ir.Expr) -> ir.Expr:
        """The reduction of what is the same for every element."""
        if self.kind.total:
            return make("mul", body, self.over(const(1.0)))
        return body

    def mean(self, body: ir.Expr) -> ir.Expr | None:
        """The separated form of the whole reduction; None where its body is not mixed."""
        if not self.mixed(body):
            return None
        if self.kind.logarithmic:
            return self.log(body)
        return self.of(body)

    # -------------------------------------------------------------------------------------- numbers
    def of(self, body: ir.Expr) -> ir.Expr | None:
        """The mean (or the sum) of a body."""
        if not self.varies(body):
            return self.alike(body)
        if not self.mixed(body):
            return self.over(body)
        if _is_sum(body):
            return _mapped(body, self.of)
        return self.product(body) or self.quadratic(body)

    def product(self, body: ir.Expr) -> ir.Expr | None:
        """The mean of a product: of factors that depend on one side alone, of exponentials, and of one
        sum."""
        outer, inner, exponent, sums = self.factors(body)
        if not sums:
            mean = self.over(inner or const(1.0)) if exponent is None else self.exponential(exponent, inner)
        elif len(sums) > 1 or sums[0] is body:
            return None
        elif inner is None and exponent is None:
            mean = self.of(sums[0])
        else:
            rest = _product(inner, None if exponent is None else make("exp", exponent))
            mean = (
                _mapped(sums[0], lambda term: self.of(make("mul", rest, term))) if _is_sum(sums[0]) else None
            )
        if mean is None:
            return None
        return _product(outer, mean)

    def factors(self, body: ir.Expr) -> tuple[ir.Expr | None, ir.Expr | None, ir.Expr | None, list[ir.Expr]]:
        """The factors without the own binder and those of it alone, as one each; the sum of the
        arguments of mixed exponentials; and the other mixed factors."""
        outer: ir.Expr | None = None
        inner: ir.Expr | None = None
        exponent: ir.Expr | None = None
        others: list[ir.Expr] = []
        stack = [(body, False)]
        while stack:
            node, below = stack.pop()
            op = node.op if isinstance(node, ir.Apply) else ""
            if not self.varies(node):
                outer = _product(outer, node, below)
            elif not self.mixed(node):
                inner = _product(inner, node, below)
            elif op in ("mul", "div"):
                stack += [(node.children[1], below != (op == "div")), (node.children[0], below)]
            elif op == "neg":
                stack += [(node.children[0], below), (const(-1.0), False)]
            elif _named(node, "exp"):
                argument = node.children[0]
                exponent = _sum(exponent, make("neg", argument) if below else argument)
            else:
                others.append(make("inv", node) if below else node)
        return outer, inner, exponent, others

    def exponential(self, exponent: ir.Expr, factor: ir.Expr | None) -> ir.Expr | None:
        """The mean of factor * exp(exponent), the factor being of the own binder alone."""
        parts = self.split(exponent)
        if parts is None or factor is not None and self.conditional:
            return None
        a, b = parts
        if factor is None:
            return make("exp", make("add", a, self.over(b, reductions.logarithm(self.kind))))
        log = self.over(b, LOGMEANEXP)
        return make(
            "mul",
            make("exp", make("add", a, log)),
            self.over(make("mul", factor, make("exp", make("sub", b, log)))),
        )

    def quadratic(self, body: ir.Expr) -> ir.Expr | None:
        """The mean of a piecewise quadratic function of a sum."""
        node = body
        while (parts := self.split(node)) is None:
            below = {id(child): child for child in node.children if self.mixed(child)}
            if not isinstance(node, ir.Apply) or len(below) != 1:
                return None
            (node,) = below.values()
        pieces = piecewise.pieces_along(body, node, self.constant)
        if pieces is None or not all(isfinite(c) for piece in pieces for c in piece[2:]):
            return None
        a, b = parts
        if len(pieces) > 1:
            return PiecewiseMean(outer=a, inner=self.over(b), pieces=pieces)
        _, _, p, q, r = pieces[0]
        mean = ir.Reduce(kind=MEAN.name, binders=self.node.binders, body=b)
        middle, away = make("add", a, mean), make("sub", b, mean)
        slope = make("add", make("mul", const(2 * p), middle), const(q))
        value = make(
            "add", make("mul", make("add", make("mul", const(p), middle), const(q)), middle), const(r)
        )
        first, second = (
            make("mul", slope, self.over(away)),
            make("mul", const(p), self.over(make("square", away))),
        )
        return make("add", make("add", self.alike(value), first), second)

    # ----------------------------------------------------------------------------------- logarithms
    def log(self, body: ir.Expr) -> ir.Expr | None:
        """The logarithm of the mean (or of the sum) of e^body."""
        if not self.varies(body):
            if self.kind.total:
                return make("add", body, self.over(const(0.0)))
            return body
        if not self.mixed(body):
            return self.over(body)
        if _named(body, "logaddexp"):
            assert isinstance(body, ir.Apply)
            return _mapped(body, self.log)
        parts = self.split(body)
        if parts is None:
            return None
        return make("add", parts[0], self.over(parts[1]))

    # -------------------------------------------------------------------------------- sums of sides
    def split(self, node: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
        """(a, b) with a + b = node, a without the own binder and b of it alone; None where there are none."""
        a, b = sides(node, self.node.binders, self.free) or (None, None)
        if a is None or b is None:
            return None
        return (a, b)


def _is_sum(node: ir.Expr) -> bool:
    return atoms.signed(node) is not None


def _named(node: ir.Expr, name: str) -> bool:
    """An application of the atom of this name, whatever its alias."""
    atom = atoms.of(node)
    return atom is not None and atom.name == name


def _mapped(node: ir.Expr, of: Callable[[ir.Expr], ir.Expr | None]) -> ir.Expr | None:
    """The node over what its children become; None where one becomes None."""
    children = [of(child) for child in node.children]
    mapped = tuple(child for child in children if child is not None)
    if len(mapped) == len(children):
        return with_children(node, mapped)
    return None


def _sum(left: ir.Expr | None, right: ir.Expr) -> ir.Expr:
    if left is None:
        return right
    return make("add", left, right)


def _product(left: ir.Expr | None, right: ir.Expr | None, inverse: bool = False) -> ir.Expr:
    """left * right (or / right), either of them left out where it is None."""
    if right is None:
        return left or const(1.0)
    if left is None:
        if inverse:
            return make("inv", right)
        return right
    return make("div" if inverse else "mul", left, right)
