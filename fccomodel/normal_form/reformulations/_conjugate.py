"""The conjugate, over q >= 0, of a function of one number that the user wrote: derived, as an expression."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from math import inf

from fccomodel.core import ir
from fccomodel.core.lazy import sympy
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.library import atoms
from fccomodel.library.piecewise import PiecewiseLQ, of_expression
from fccomodel.normal_form.penalty import indicator
from fccomodel.normal_form.reformulations._base import Constant

#: t -> max over q >= 0 of t q - psi(q), as expressions
Conjugate = Callable[[ir.Expr], ir.Expr]


def conjugate(
    psi: ir.Expr, q: ir.Hole, constant: Constant, sign: Callable[[ir.Expr], int]
) -> Conjugate | None:
    """The conjugate of ``psi``, a convex function of q >= 0; None where none is found, or psi is not
    known to be convex.

    Piecewise linear-quadratic functions by their graph; others by inverting the derivative, which
    must rise without bound. ``sign`` is 1 of a factor known to be nonnegative.
    """
    graph = of_expression(psi, q, constant)
    if graph is not None:
        return by_graph(graph)
    return by_inverse(psi, q, sign)


def by_graph(graph: PiecewiseLQ) -> Conjugate:
    """The conjugate over q >= 0, or over q in [0, 1], which is all that a simplex needs, where that is
    not finite."""
    dual = (graph + indicator(0.0, inf)).conjugate()
    if inf in (dual.left, dual.right):
        dual = (graph + indicator(0.0, 1.0)).conjugate()
    return lambda t: expression(dual, t)


def expression(graph: PiecewiseLQ, t: ir.Expr) -> ir.Expr:
    """A convex piecewise linear-quadratic function, finite everywhere, of ``t``: an affine part,
    hinges and their squares."""
    (x0, y0), *_ = graph.points

    def beyond(op: str, x: float, factor: float, towards: float = 1.0) -> ir.Expr:
        if towards > 0:
            distance = make("sub", t, const(x))
        else:
            distance = make("sub", const(x), t)
        return make("mul", const(factor), make(op, distance))

    start = const(graph.start - y0 * x0)
    terms = [make("add", start, make("mul", const(y0), t)) if y0 else start]
    if graph.left:
        terms += [beyond("sqhinge", x0, graph.left / 2, -1.0)]
    for (x, y), (x_next, y_next) in zip(graph.points, graph.points[1:], strict=False):
        if x == x_next:
            terms.append(beyond("pos", x, y_next - y))
        elif y != y_next:
            rise = (y_next - y) / (x_next - x) / 2
            terms += [beyond("sqhinge", x, rise), beyond("sqhinge", x_next, -rise)]
    if graph.right:
        terms += [beyond("sqhinge", graph.points[-1][0], graph.right / 2)]
    total = terms[0]
    for term in terms[1:]:
        total = make("add", total, term)
    return total


def by_inverse(psi: ir.Expr, q: ir.Hole, sign: Callable[[ir.Expr], int]) -> Conjugate | None:
    """``t q* - psi(q*)`` with psi'(q*) = t, or q* = 0 where psi' lies above t everywhere."""
    symbols: dict[sympy.Symbol, ir.Expr] = {}
    at = sympy.Symbol("q", positive=True)
    formula = _formula(psi, q, at, symbols, sign)
    if formula is None:
        return None
    slope = sympy.simplify(sympy.diff(formula, at))
    second = sympy.simplify(sympy.diff(slope, at))
    first, last, value = (sympy.limit(f, at, end) for f, end in ((slope, 0), (slope, sympy.oo), (formula, 0)))
    if not second.is_nonnegative or last != sympy.oo or not value.is_finite:
        return None
    interior = first == -sympy.oo
    if interior:
        v = sympy.Symbol("v", real=True)
    else:
        v = sympy.Symbol("v", positive=True)
    try:
        roots = [
            x for x in sympy.solve(slope - (v if interior else first + v), at) if x.is_positive is not False
        ]
    except NotImplementedError:
        return None
    if len(roots) != 1:
        return None
    dual = sympy.simplify((v if interior else first + v) * roots[0] - formula.subs(at, roots[0]))

    def built(t: ir.Expr) -> ir.Expr:
        if interior:
            return _expression(dual, {**symbols, v: t})
        return _expression(dual, {**symbols, v: make("pos", make("sub", t, _expression(first, symbols)))})

    try:
        built(const(0))
    except NotImplementedError:
        return None
    return built


def _formula(
    node: ir.Expr,
    q: ir.Hole,
    at: sympy.Symbol,
    symbols: dict[sympy.Symbol, ir.Expr],
    sign: Callable[[ir.Expr], int],
) -> sympy.Expr | None:
    """The expression as sympy's; what does not depend on q as symbols."""
    if node is q:
        return at
    if isinstance(node, ir.Const):
        return sympy.nsimplify(node.value, rational=True)
    if not any(n is q for n in ir.walk(node)):
        symbol = next((s for s, e in symbols.items() if e is node), None)
        if symbol is None:
            way = sign(node)
            if way > 0:
                symbol = sympy.Symbol(f"p{len(symbols)}", positive=True)
            else:
                symbol = sympy.Symbol(f"p{len(symbols)}", real=True)
            symbols[symbol] = node
        return symbol
    atom = atoms.of(node)
    if not isinstance(atom, atoms.ScalarAtom) or atom.kinked or atom.boolean:
        return None
    args = [_formula(a, q, at, symbols, sign) for a in node.children]
    if None in args:
        return None
    return atom.symbolic(args)


def _expression(formula: sympy.Expr, symbols: dict[sympy.Symbol, ir.Expr]) -> ir.Expr:
    """A sympy formula as an expression; NotImplementedError where the language has no such function."""
    if formula in symbols:
        return symbols[formula]
    if formula.is_number and formula.is_real:
        return const(float(formula))
    args = [_expression(a, symbols) for a in formula.args]
    if formula.func in (sympy.Add, sympy.Mul):
        total = args[0]
        for arg in args[1:]:
            total = make("add" if formula.func is sympy.Add else "mul", total, arg)
        return total
    if formula.func in (sympy.exp, sympy.log):
        return make(formula.func.__name__, args[0])
    if formula.func is sympy.Pow:
        base, exponent = args
        if (
            isinstance(exponent, ir.Const)
            and exponent.value == 2
            and isinstance(base, ir.Apply)
            and base.op == "pos"
        ):
            return dataclasses.replace(base, op="sqhinge")
        if isinstance(exponent, ir.Const) and exponent.value == -1:
            return make("inv", base)
        return make("pow", base, exponent)
    raise NotImplementedError
