"""The separated form of one reduction over the elements of one binder."""

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
    """The mean of f(outer + inner.body), or its sum if ``inner`` is a sum; f is quadratic on each piece."""

    outer: ir.Expr
    inner: ir.Reduce
    pieces: Pieces

    @property
    def children(self) -> tuple[ir.Expr, ...]:
        """The outer part and the inner reduction."""
        return (self.outer, self.inner)


@dataclass(frozen=True)
class RowReduction:
    """One reduction over the elements of one binder.

    constant     gives the value of a subexpression without variables and rows
    free         gives the binders that an expression depends on
    conditional  whether its elements depend on the binders around it
    """

    node: ir.Reduce
    constant: Callable[[ir.Expr], float | None]
    free: Callable[[ir.Expr], tuple[ir.Binder, ...]]
    conditional: bool

    @property
    def binder(self) -> ir.Binder:
        """The binder."""
        return self.node.binders[0]

    @property
    def kind(self) -> Reduction:
        """The kind of the reduction."""
        return reductions.of(self.node)

    def varies(self, expr: ir.Expr) -> bool:
        """Whether an expression depends on the binder."""
        return self.binder in self.free(expr)

    def mixed(self, expr: ir.Expr) -> bool:
        """Whether an expression depends on the binder and on another one."""
        free = self.free(expr)
        return self.binder in free and len(free) > 1

    def over(self, body: ir.Expr, kind: Reduction | None = None) -> ir.Reduce:
        """The reduction (or one of another kind) with another body."""
        return (kind or self.kind).over(self.node, body)

    def alike(self, body: ir.Expr) -> ir.Expr:
        """The reduction of a body that is the same for every element."""
        if self.kind.total:
            return make("mul", body, self.over(const(1.0)))
        return body

    def mean(self, body: ir.Expr) -> ir.Expr | None:
        """The separated form of the whole reduction, or None; also None if its body is not mixed."""
        if not self.mixed(body):
            return None
        if self.kind.logarithmic:
            return self.log(body)
        return self.of(body)

    # -------------------------------------------------------------------------------------- numbers
    def of(self, body: ir.Expr) -> ir.Expr | None:
        """The separated mean (or sum) of a body, or None."""
        if not self.varies(body):
            return self.alike(body)
        if not self.mixed(body):
            return self.over(body)
        if _is_sum(body):
            return _mapped(body, self.of)
        return self.product(body) or self.quadratic(body)

    def product(self, body: ir.Expr) -> ir.Expr | None:
        """The mean of a product, or None.

        The factors depend on one side alone, are exponentials, or are one sum.
        """
        outer, inner, exponent, others = self.factors(body)
        mean: ir.Expr | None = None
        if not others:
            if exponent is None:
                mean = self.over(inner or const(1.0))
            else:
                mean = self.exponential(exponent, inner)
        elif len(others) > 1 or others[0] is body:
            return None
        elif inner is None and exponent is None:
            mean = self.of(others[0])
        elif _is_sum(others[0]):
            rest = _product(inner, None if exponent is None else make("exp", exponent))
            mean = _mapped(others[0], lambda term: self.of(make("mul", rest, term)))
        if mean is None:
            return None
        return _product(outer, mean)

    def factors(self, body: ir.Expr) -> tuple[ir.Expr | None, ir.Expr | None, ir.Expr | None, list[ir.Expr]]:
        """The factors of a product in four groups.

        They are the product of those without the binder, the product of those with the binder alone,
        the sum of the arguments of mixed exponentials, and the list of the other mixed factors. None
        stands for an empty product or sum.
        """
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
        """The mean of factor * exp(exponent) for a factor that depends on the binder alone, or None."""
        parts = self.split(exponent)
        if parts is None or factor is not None and self.conditional:
            return None
        a, b = parts
        if factor is None:
            return make("exp", make("add", a, self.over(b, reductions.logarithm(self.kind))))
        log = self.over(b, LOGMEANEXP)
        centred = make("mul", factor, make("exp", make("sub", b, log)))
        return make("mul", make("exp", make("add", a, log)), self.over(centred))

    def quadratic(self, body: ir.Expr) -> ir.Expr | None:
        """The mean of a piecewise quadratic function of a sum, or None.

        A single piece p u^2 + q u + r is expanded around the mean of the binder's part.
        """
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
        middle, deviation = make("add", a, mean), make("sub", b, mean)
        slope = make("add", make("mul", const(2 * p), middle), const(q))
        linear = make("add", make("mul", const(p), middle), const(q))
        value = make("add", make("mul", linear, middle), const(r))
        first = make("mul", slope, self.over(deviation))
        second = make("mul", const(p), self.over(make("square", deviation)))
        return make("add", make("add", self.alike(value), first), second)

    # ----------------------------------------------------------------------------------- logarithms
    def log(self, body: ir.Expr) -> ir.Expr | None:
        """The separated logarithm of the mean (or of the sum) of e^body, or None."""
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
        """(a, b) with a + b = node, a without the binder and b with it alone; or None."""
        a, b = sides(node, self.node.binders, self.free) or (None, None)
        if a is None or b is None:
            return None
        return (a, b)


def _is_sum(node: ir.Expr) -> bool:
    """Whether the node is a sum, a difference or a negation."""
    return atoms.signed(node) is not None


def _named(node: ir.Expr, name: str) -> bool:
    """Whether the node applies the atom of this name or of an alias of it."""
    atom = atoms.of(node)
    return atom is not None and atom.name == name


def _mapped(node: ir.Expr, of: Callable[[ir.Expr], ir.Expr | None]) -> ir.Expr | None:
    """The node with its children replaced by ``of`` of them, or None if one of these is None."""
    children = [of(child) for child in node.children]
    mapped = tuple(child for child in children if child is not None)
    if len(mapped) == len(children):
        return with_children(node, mapped)
    return None


def _sum(left: ir.Expr | None, right: ir.Expr) -> ir.Expr:
    """left + right, or right if left is None."""
    if left is None:
        return right
    return make("add", left, right)


def _product(left: ir.Expr | None, right: ir.Expr | None, inverse: bool = False) -> ir.Expr:
    """left * right (with ``inverse``, left / right); None stands for 1."""
    if right is None:
        return left or const(1.0)
    if left is None:
        if inverse:
            return make("inv", right)
        return right
    return make("div" if inverse else "mul", left, right)
