"""The coefficients of expressions that are affine in a vector, as expressions themselves.

An affine number L(u) is L(0) + c.u. The coefficients c are found from the outside in, as a derivative is
in reverse mode: each operation hands the factor of its value on to its arguments. A factor is a product
of a number and a vector, so that a norm of c may be taken of the vector alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter, const
from fccomodel.core.rewrite import apply as make
from fccomodel.library import reductions
from fccomodel.library.identities import entries


@dataclass(frozen=True, kw_only=True)
class Coefficient:
    """The product of a number and an array; None stands for 1 in either."""

    number: ir.Expr | None = None
    array: ir.Expr | None = None

    def times(self, number: ir.Expr) -> Coefficient:
        """The factor times a number."""
        if self.number is None:
            return dataclasses.replace(self, number=number)
        return dataclasses.replace(self, number=make("mul", self.number, number))

    @property
    def whole(self) -> ir.Expr:
        """The product as one expression."""
        if self.array is None:
            return self.number or const(1)
        if self.number is None:
            return self.array
        return make("mul", self.number, self.array)


class NotAffine(Exception):
    """The expression is not affine in the vector, or its coefficients are not known."""


def coefficients(node: ir.Expr, u: ir.Binder) -> Coefficient | None:
    """The coefficients of a number that is affine in the element of a binder, or None.

    They have the shape of the element.
    """
    try:
        terms = _Terms(u).of(node, Coefficient())
    except NotAffine:
        return None
    if len(terms) <= 1:
        return terms[0] if terms else None
    total = terms[0].whole
    for term in terms[1:]:
        total = make("add", total, term.whole)
    return Coefficient(array=total) if total.shape else Coefficient(number=total)


def depends(node: ir.Expr, u: ir.Binder) -> bool:
    """Whether an expression depends on the element of a binder."""
    return u in ir.free_binders(node)


@dataclass(frozen=True)
class _Terms:
    """Collects the terms of the coefficients of one binder's element."""

    u: ir.Binder

    def of(self, node: ir.Expr, factor: Coefficient) -> list[Coefficient]:
        """The terms from a node whose value has a factor in the whole."""
        if not depends(node, self.u):
            return []
        if isinstance(node, ir.Element):
            return [factor]
        if isinstance(node, ir.Reduce):
            return self._of_reduction(node, factor)
        if isinstance(node, ir.Apply) and node.op in _RULES:
            return _RULES[node.op](self, node, factor)
        raise NotAffine

    def varying(self, node: ir.Apply) -> int:
        """The place of the only argument that depends on the element."""
        places = [k for k, arg in enumerate(node.args) if depends(arg, self.u)]
        if len(places) != 1:
            raise NotAffine
        return places[0]

    def into(self, arg: ir.Expr, factor: Coefficient, shape: ir.Shape) -> list[Coefficient]:
        """The terms from an argument of an operation entry by entry, whose value has a shape."""
        if shape and not arg.shape and factor.array is not None:
            number = ir.Apply(op="sum", args=(factor.array,))
            factor = Coefficient(number=factor.number).times(number)
        return self.of(arg, factor)

    def _of_reduction(self, node: ir.Reduce, factor: Coefficient) -> list[Coefficient]:
        """The terms from a sum or an average: sums of the body's coefficients."""
        fixed = node.condition is None or not depends(node.condition, self.u)
        if not reductions.of(node).additive or not fixed or node.shape:
            raise NotAffine
        entry = self._of_entries(node)
        if entry is not None:
            return [dataclasses.replace(factor, array=entry)]
        inner = coefficients(node.body, self.u)
        if inner is None:
            raise NotAffine
        total = dataclasses.replace(node, body=inner.whole, shape=inner.whole.shape)
        if not total.shape:
            return [factor.times(total)]
        return [dataclasses.replace(factor, array=total)]

    def _of_entries(self, node: ir.Reduce) -> ir.Expr | None:
        """The coefficients of ``sum[k in K] c[k] * u[k]`` as a vector, or None for another form."""
        if node.kind != "sum" or node.condition is not None or len(node.binders) != 1:
            return None
        (k,) = node.binders
        hole = ir.Binder(name=self.u.name, kind="in", domain=dataclasses.replace(_domain(self.u), shape=()))

        def at_k(part: ir.Expr) -> ir.Expr | None:
            """The element of the hole in place of ``u[k]``, or None."""
            if isinstance(part, ir.Item) and len(part.indices) == 1:
                of_u = isinstance(part.base, ir.Element) and part.base.binder is self.u
                index = part.indices[0]
                if of_u and isinstance(index, ir.Element) and index.binder is k:
                    return ir.Element(binder=hole)
            return None

        body = Rewriter(at_k)(node.body)
        if depends(body, self.u) or not entries.runs_along(k.domain, _domain(self.u).shape[0]):
            return None
        inner = coefficients(body, hole)
        if inner is None:
            return None
        if k not in ir.free_binders(inner.whole):
            return ir.Apply(op="mul", args=(inner.whole, _ones(self.u)), shape=_domain(self.u).shape)
        return entries.whole(inner.whole, (k,))


def _domain(u: ir.Binder) -> ir.VectorSet:
    """The set of vectors that a binder ranges over."""
    assert isinstance(u.domain, ir.VectorSet)
    return u.domain


def _ones(u: ir.Binder) -> ir.Expr:
    """The vector of ones of a binder's shape."""
    return ir.Const(value=1.0, shape=_domain(u).shape)


# ------------------------------------------------------------------------------------- the operations
def _sum_or_difference(terms: _Terms, node: ir.Apply, factor: Coefficient) -> list[Coefficient]:
    left, right = node.args
    other = factor.times(const(-1)) if node.op == "sub" else factor
    return [*terms.into(left, factor, node.shape), *terms.into(right, other, node.shape)]


def _negative(terms: _Terms, node: ir.Apply, factor: Coefficient) -> list[Coefficient]:
    return terms.of(node.args[0], factor.times(const(-1)))


def _product(terms: _Terms, node: ir.Apply, factor: Coefficient) -> list[Coefficient]:
    """A product with one factor that does not depend on the element, or a quotient of such a divisor."""
    place = terms.varying(node)
    arg, other = node.args[place], node.args[1 - place]
    if node.op == "div":
        if place == 1:
            raise NotAffine
        other = make("div", const(1), other)
    if not other.shape:
        return terms.into(arg, factor.times(other), node.shape)
    array = other if factor.array is None else make("mul", factor.array, other)
    return terms.into(arg, dataclasses.replace(factor, array=array), node.shape)


def _total(terms: _Terms, node: ir.Apply, factor: Coefficient) -> list[Coefficient]:
    (arg,) = node.args
    return terms.of(arg, dataclasses.replace(factor, array=ir.Const(value=1.0, shape=arg.shape)))


def _scalar_product(terms: _Terms, node: ir.Apply, factor: Coefficient) -> list[Coefficient]:
    place = terms.varying(node)
    return terms.of(node.args[place], dataclasses.replace(factor, array=node.args[1 - place]))


def _matrix_product(terms: _Terms, node: ir.Apply, factor: Coefficient) -> list[Coefficient]:
    """A product of a matrix and a vector, in either order, or of two vectors."""
    left, right = node.args
    place = terms.varying(node)
    arg, other = node.args[place], node.args[1 - place]
    if len(left.shape) == len(right.shape) == 1:
        return _scalar_product(terms, node, factor)
    if len(arg.shape) != 1 or len(other.shape) != 2 or factor.array is None:
        raise NotAffine
    if place == 1:
        args = factor.array, other
    else:
        args = other, factor.array
    array = ir.Apply(op="matmul", args=args, shape=arg.shape, span=node.span)
    return terms.of(arg, dataclasses.replace(factor, array=array))


_RULES: dict[str, Callable[[_Terms, ir.Apply, Coefficient], list[Coefficient]]] = {
    "add": _sum_or_difference,
    "sub": _sum_or_difference,
    "neg": _negative,
    "mul": _product,
    "div": _product,
    "sum": _total,
    "dot": _scalar_product,
    "matmul": _matrix_product,
}


# ------------------------------------------------------------------------------------- the value at 0
def at_zero(node: ir.Expr, u: ir.Binder) -> ir.Expr:
    """An expression that is affine in a vector, at the vector 0."""
    return Rewriter(lambda part: _at_zero(part, u))(node)


def _is_zero(node: ir.Expr) -> bool:
    return isinstance(node, ir.Const) and node.value == 0


def _at_zero(node: ir.Expr, u: ir.Binder) -> ir.Expr | None:
    """What becomes of a node whose arguments are already taken at 0; None if it stays."""
    if isinstance(node, ir.Element) and node.binder is u:
        return ir.Const(value=0.0, shape=node.shape)
    if isinstance(node, ir.Item) and _is_zero(node.base):
        return ir.Const(value=0.0, shape=node.shape)
    if isinstance(node, ir.Reduce) and _is_zero(node.body) and reductions.of(node).additive:
        return ir.Const(value=0.0, shape=node.shape)
    if not isinstance(node, ir.Apply) or not any(map(_is_zero, node.args)):
        return None
    if node.op in ("neg", "mul", "dot", "matmul", "sum") or (node.op == "div" and _is_zero(node.args[0])):
        return ir.Const(value=0.0, shape=node.shape)
    if node.op not in ("add", "sub"):
        return None
    left, right = node.args
    if _is_zero(right) and left.shape == node.shape:
        return left
    if not _is_zero(left) or right.shape != node.shape:
        return None
    if node.op == "add":
        return right
    return make("neg", right, span=node.span)
