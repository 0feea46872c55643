"""Maxima and minima over a ball or a box in closed form: ``max[u in ball(r)] loss(dot(w, x + u))``.

Let L(u) = L(0) + c.u be affine in u. Its largest value over a set is L(0) + s(c), with s the support
function of the set. A function that is monotone in L takes its largest value at the largest or the
smallest L; an even function that grows with |L|, over a set with -u for each u, at |L(0)| + s(c).

    set          s(c)
    ball(r)      r norm2(c)
    ball1(r)     r norminf(c)
    box(l, h)    sum of max(l_i c_i, h_i c_i), which is r norm1(c) where h = -l = r

Weights in a simplex stay as they are: their maximum has a dual of its own, in the normal form.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter, const
from fccomodel.core.rewrite import apply as make
from fccomodel.core.source import Span
from fccomodel.language import errors, rewriting, syntax
from fccomodel.language.formulas import expressions, signs
from fccomodel.language.formulas.context import Context, Scope
from fccomodel.library import atoms
from fccomodel.library.atoms import Interval
from fccomodel.library.coefficients import Coefficient, at_zero, coefficients, depends

#: The sets whose support functions are known in closed form.
CLOSED = ("ball", "ball1", "box")
#: 1 for the reduction that takes the largest value, -1 for the one that takes the smallest.
SIGNS = {"max": 1, "min": -1}


# ------------------------------------------------------------------------------------ sizes of vectors
def with_sizes(ctx: Context, scope: Scope, node: syntax.Reduce) -> Sequence[syntax.Binder]:
    """The binders of a maximum or a minimum; a ball or a box without a size gets that of its use."""
    assert node.indexing is not None
    return [_with_size(ctx, scope, binder, node.body) for binder in node.indexing.binders]


def _with_size(ctx: Context, scope: Scope, binder: syntax.Binder, body: syntax.Expr) -> syntax.Binder:
    """A binder over ``ball(r)[d]`` in place of ``ball(r)``, if the body says which size it has."""
    domain = binder.domain
    if not isinstance(domain, syntax.Call) or domain.func not in CLOSED:
        return binder
    sizes = list(_sizes(ctx, scope, binder.name, body))
    if not sizes:
        return binder
    sized = syntax.Index(obj=domain, items=max(sizes, key=len), span=domain.span)
    return dataclasses.replace(binder, domain=sized)


def _sizes(
    ctx: Context, scope: Scope, name: str, body: syntax.Expr
) -> Iterator[tuple[syntax.Name | syntax.Number, ...]]:
    """The sizes that the partners of a name in sums and products have, and the sets of its indices."""
    bound = {node.name: node.domain for node in rewriting.walk(body) if isinstance(node, syntax.Binder)}
    for node in rewriting.walk(body):
        if isinstance(node, syntax.Index) and _is(node.obj, name):
            domains = [bound.get(item.id) if isinstance(item, syntax.Name) else None for item in node.items]
            if all(isinstance(domain, syntax.Name) for domain in domains):
                yield tuple(domain for domain in domains if isinstance(domain, syntax.Name))
        for partner, axis in _partners(node, name):
            shape = _shape(ctx, scope, partner)
            if shape or (shape is not None and axis is None and _is_sum(node)):
                yield _written(shape[axis:][:1] if axis is not None else shape, partner.span)


def _partners(node: syntax.Node, name: str) -> Iterator[tuple[syntax.Expr, int | None]]:
    """The formulas that share a size with a name, with the axis of a matrix that multiplies it."""
    if isinstance(node, syntax.Call) and node.func == "dot":
        operands, op = node.args, "dot"
    elif isinstance(node, syntax.Binary):
        operands, op = (node.left, node.right), node.op
    else:
        return
    if len(operands) != 2 or op not in ("+", "-", "*", "@", "dot"):
        return
    for place in (0, 1):
        if _is_multiple(operands[place], name):
            yield operands[1 - place], (-place if op == "@" else None)


def _is(node: syntax.Expr, name: str) -> bool:
    return isinstance(node, syntax.Name) and node.id == name


def _is_sum(node: syntax.Node) -> bool:
    """Whether a node adds or subtracts: then a number beside a name says that the name is one too."""
    return isinstance(node, syntax.Binary) and node.op in "+-"


def _is_multiple(node: syntax.Expr, name: str) -> bool:
    """Whether a formula is a name, or a multiple of it such as ``-2 * u``."""
    if isinstance(node, syntax.Unary):
        return _is_multiple(node.arg, name)
    if isinstance(node, syntax.Binary) and node.op == "*":
        return _is_multiple(node.left, name) or _is_multiple(node.right, name)
    return _is(node, name)


def _shape(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Shape | None:
    """The shape of a formula, or None if it is not known here. Nothing is reported."""
    reported = list(ctx.errors)
    value = expressions.loose(ctx, scope, node)
    ctx.errors[:] = reported
    if value is None or len(value.shape) > 2:
        return None
    return value.shape


def _written(shape: ir.Shape, span: Span) -> tuple[syntax.Name | syntax.Number, ...]:
    """A shape as one writes it in brackets."""
    return tuple(
        syntax.Number(value=float(dim), text=str(dim), span=span)
        if isinstance(dim, int)
        else syntax.Name(id=str(dim), span=span)
        for dim in shape
    )


def recourse(node: syntax.Reduce) -> syntax.Binder | None:
    """The decision of ``min[y in box(0, 9) | y >= z.d - x] c * y``, taken after the draw; or None."""
    if node.kind != "min" or node.indexing is None or node.indexing.condition is None:
        return None
    binders = node.indexing.binders
    domains = [binder.domain.func for binder in binders if isinstance(binder.domain, syntax.Call)]
    if len(binders) == 1 and domains and domains[0] in CLOSED:
        return binders[0]
    return None


# --------------------------------------------------------------------------------------- closed forms
def closed_form(
    ctx: Context, node: syntax.Reduce, binders: Sequence[ir.Binder], condition: ir.Expr | None, body: ir.Expr
) -> ir.Expr | None:
    """The largest (smallest) value of a body over balls and boxes, or None after an error."""
    if node.kind not in SIGNS or not all(isinstance(b.domain, ir.VectorSet) for b in binders):
        ctx.report(errors.reductions.vectors_beside_others(ctx.quote(node), node.kind))
        return None
    sign = SIGNS[node.kind]
    if condition is not None:
        ctx.report(errors.reductions.condition_on_vectors(ctx.quote(condition.span)))
        return None
    value: ir.Expr = body
    for binder in binders:
        try:
            value = _Extreme(ctx, binder).of(value, sign)
        except _NotClosed as place:
            ctx.report(
                errors.reductions.no_closed_form(
                    ctx.quote(node), node.kind, binder.name, ctx.quote(place.node.span)
                )
            )
            return None
    return dataclasses.replace(_placed(value, node.span), span=node.span)


def _placed(value: ir.Expr, span: Span) -> ir.Expr:
    """The value whose functions that the text does not contain have the place of the maximum."""

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The function with a place, if it has none."""
        if isinstance(node, ir.Apply) and node.span == ir.NOWHERE:
            return dataclasses.replace(node, span=span)
        return None

    return Rewriter(rule)(value)


def is_over_vectors(binders: Sequence[ir.Binder]) -> bool:
    """Whether a reduction ranges over balls and boxes."""
    return any(isinstance(b.domain, ir.VectorSet) and b.domain.family in CLOSED for b in binders)


class _NotClosed(Exception):
    """No closed form is known for the extreme value of a node."""

    def __init__(self, node: ir.Expr):
        super().__init__()
        self.node = node


@dataclass(frozen=True)
class _Extreme:
    """The extreme values of expressions over the set of one binder."""

    ctx: Context
    binder: ir.Binder

    @property
    def domain(self) -> ir.VectorSet:
        """The set of the binder."""
        assert isinstance(self.binder.domain, ir.VectorSet)
        return self.binder.domain

    def of(self, node: ir.Expr, sign: int) -> ir.Expr:
        """The largest value of a node (``sign`` 1), or its smallest (-1)."""
        if not depends(node, self.binder):
            return node
        factor = coefficients(node, self.binder)
        if factor is not None:
            return self._of_affine(node, factor, sign)
        if isinstance(node, ir.Reduce) and SIGNS.get(node.kind) == sign:
            if not any(depends(part, self.binder) for part in node.children[1:]):
                return dataclasses.replace(node, body=self.of(node.body, sign))
        if isinstance(node, ir.Apply):
            return self._of_function(node, sign)
        raise _NotClosed(node)

    def _of_affine(self, node: ir.Expr, factor: Coefficient, sign: int) -> ir.Expr:
        """L(0) + s(c), or L(0) - s(-c)."""
        if depends(factor.whole, self.binder):
            raise _NotClosed(node)
        base = at_zero(node, self.binder)
        if sign < 0:
            factor = factor.times(const(-1))
        reach = self._support(factor)
        if isinstance(base, ir.Const) and base.value == 0:
            return reach if sign > 0 else make("neg", reach, span=node.span)
        return make("add" if sign > 0 else "sub", base, reach, span=node.span)

    def _of_function(self, node: ir.Apply, sign: int) -> ir.Expr:
        """The extreme value of an atom of one argument that depends on the vector."""
        atom = atoms.of(node)
        varying = [k for k, arg in enumerate(node.args) if depends(arg, self.binder)]
        # One u does not bring every entry of an array to its extreme.
        of_array = any(node.args[k].shape for k in varying)
        if atom is None or len(varying) != 1 or node.shape or of_array:
            raise _NotClosed(node)
        (place,) = varying
        where = [signs.interval(self.ctx, arg) for arg in node.args]
        direction = atom.monotone(*where, argument=place)
        if direction in ("increasing", "decreasing"):
            inner = self.of(node.args[place], sign if direction == "increasing" else -sign)
        else:
            inner = self._of_even(node, atom, place, where, sign)
        args = tuple(inner if k == place else arg for k, arg in enumerate(node.args))
        return dataclasses.replace(node, args=args)

    def _of_even(
        self, node: ir.Apply, atom: atoms.Atom, place: int, where: list[Interval], sign: int
    ) -> ir.Expr:
        """The argument at which an even function that grows with |L| has its extreme value."""
        arg = node.args[place]
        factor = coefficients(arg, self.binder)
        beyond = [Interval(0.0, Interval().hi) if k == place else w for k, w in enumerate(where)]
        grows = atom.monotone(*beyond, argument=place) == "increasing"
        if not (_is_even(node, atom) and grows and factor is not None and self._is_symmetric()):
            raise _NotClosed(node)
        size = make("abs", at_zero(arg, self.binder), span=arg.span)
        reach = self._support(factor)
        if sign > 0:
            return make("add", size, reach, span=arg.span)
        return make("pos", make("sub", size, reach, span=arg.span), span=arg.span)

    # ------------------------------------------------------------------------------ support functions
    def _is_symmetric(self) -> bool:
        """Whether the set has -u for each u."""
        return self.domain.family != "box" or _half_width(self.domain) is not None

    def _support(self, factor: Coefficient) -> ir.Expr:
        """The largest c.u over the set, which is bounded."""
        for number in self.domain.args:
            if isinstance(number, ir.Const) and math.isinf(number.value):
                raise _NotClosed(number)
        array = factor.array if factor.array is not None else const(1)
        radius = _half_width(self.domain) if self.domain.family == "box" else self.domain.args[0]
        if radius is None:
            return self._support_of_box(factor, array)
        radius = self._nonnegative(radius)
        reach = _NORMS[self.domain.family](radius, array)
        return self._scaled(factor, reach)

    def _support_of_box(self, factor: Coefficient, array: ir.Expr) -> ir.Expr:
        """The middle of the box times c, and half of its width times |c|."""
        low, high = self.domain.args
        middle = make("mul", const(0.5), make("add", low, high))
        half = self._nonnegative(make("mul", const(0.5), make("sub", high, low)))
        centre = _along(middle, array)
        if factor.number is not None:
            centre = make("mul", factor.number, centre)
        return make("add", centre, self._scaled(factor, _NORMS["box"](half, array)))

    def _scaled(self, factor: Coefficient, reach: ir.Expr) -> ir.Expr:
        """A norm times the size of the factor's number."""
        if factor.number is None:
            return reach
        number = factor.number
        known = signs.interval(self.ctx, number)
        if known.is_point:
            size = abs(known.lo)
            return reach if size == 1 else make("mul", const(size), reach)
        if known.lo < 0:
            number = make("abs", number)
        return make("mul", number, reach)

    def _nonnegative(self, radius: ir.Expr) -> ir.Expr:
        """A radius, whose sign is checked when the data are bound if they say it."""
        return signs.nonnegative(self.ctx, radius, self.domain_span)

    @property
    def domain_span(self) -> Span:
        """The place of the set."""
        return self.domain.args[0].span | self.domain.args[-1].span


def _is_even(node: ir.Apply, atom: atoms.Atom) -> bool:
    """Whether a function is even in its first argument."""
    if node.op == "pow":
        exponent = node.args[1]
        return isinstance(exponent, ir.Const) and exponent.value % 2 == 0
    return atom.even


def _half_width(box: ir.VectorSet) -> ir.Expr | None:
    """The r of ``box(-r, r)``, or None for another box."""
    low, high = box.args
    if isinstance(low, ir.Const) and isinstance(high, ir.Const):
        return high if low.value == -high.value else None
    if isinstance(low, ir.Apply) and low.op == "neg":
        (size,) = low.args
        same = type(size) is type(high) and getattr(size, "name", "") == getattr(high, "name", None)
        return high if same else None
    return None


def _along(numbers: ir.Expr, array: ir.Expr) -> ir.Expr:
    """The sum of the products of an array's entries and numbers, one for each or one for all."""
    if not array.shape:
        return make("mul", numbers, array)
    if numbers.shape:
        return ir.Apply(op="dot", args=(numbers, array))
    return make("mul", numbers, ir.Apply(op="sum", args=(array,)))


def _weighted_sizes(radius: ir.Expr, array: ir.Expr) -> ir.Expr:
    """The sum of |c_i| times half widths."""
    if radius.shape or not array.shape:
        return _along(radius, make("abs", array))
    return make("mul", radius, ir.Apply(op="norm1", args=(array,)))


def _times(norm: str) -> Callable[[ir.Expr, ir.Expr], ir.Expr]:
    """The radius times a norm."""
    return lambda radius, array: make("mul", radius, ir.Apply(op=norm, args=(array,)))


_NORMS: dict[str, Callable[[ir.Expr, ir.Expr], ir.Expr]] = {
    "ball": _times("norm2"),
    "ball1": _times("norminf"),
    "box": _weighted_sizes,
}
