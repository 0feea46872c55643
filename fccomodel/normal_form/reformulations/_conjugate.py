"""The conjugate over q >= 0 of a function of one number that the user wrote, derived as an expression."""

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
    """The conjugate of ``psi``, a convex function of q >= 0, or None.

    Piecewise linear-quadratic functions are conjugated by their graph. For others the derivative is
    inverted; it must rise without bound. None is returned if this fails or if psi is not known to be
    convex. ``sign`` gives 1 for a factor that is known to be nonnegative.
    """
    graph = of_expression(psi, q, constant)
    if graph is not None:
        return by_graph(graph)
    return by_inverse(psi, q, sign)


def by_graph(graph: PiecewiseLQ) -> Conjugate:
    """The conjugate over q >= 0, or over q in [0, 1] if the former is not finite everywhere.

    On a simplex q in [0, 1] is enough.
    """
    dual = (graph + indicator(0.0, inf)).conjugate()
    if inf in (dual.left, dual.right):
        dual = (graph + indicator(0.0, 1.0)).conjugate()
    return lambda t: expression(dual, t)


def expression(graph: PiecewiseLQ, t: ir.Expr) -> ir.Expr:
    """A finite convex piecewise linear-quadratic function of ``t``, as an affine part plus hinges.

    The hinges are plain where the slope jumps, and squared where it changes linearly.
    """
    (x0, y0), *_ = graph.points

    def above(op: str, x: float, factor: float) -> ir.Expr:
        """``factor * op(t - x)``."""
        return make("mul", const(factor), make(op, make("sub", t, const(x))))

    terms: list[ir.Expr] = [const(graph.start - y0 * x0)]
    if y0:
        terms = [make("add", terms[0], make("mul", const(y0), t))]
    if graph.left:
        below = make("sqhinge", make("sub", const(x0), t))
        terms.append(make("mul", const(graph.left / 2), below))
    for (x, y), (x_next, y_next) in zip(graph.points, graph.points[1:], strict=False):
        if x == x_next:
            terms.append(above("pos", x, y_next - y))
        elif y != y_next:
            rise = (y_next - y) / (x_next - x) / 2
            terms += [above("sqhinge", x, rise), above("sqhinge", x_next, -rise)]
    if graph.right:
        terms.append(above("sqhinge", graph.points[-1][0], graph.right / 2))
    total = terms[0]
    for term in terms[1:]:
        total = make("add", total, term)
    return total


def by_inverse(psi: ir.Expr, q: ir.Hole, sign: Callable[[ir.Expr], int]) -> Conjugate | None:
    """The conjugate ``t q* - psi(q*)`` with psi'(q*) = t, or q* = 0 if psi' > t everywhere; or None."""
    symbols: dict[sympy.Symbol, ir.Expr] = {}
    at = sympy.Symbol("q", positive=True)
    formula = _formula(psi, q, at, symbols, sign)
    if formula is None:
        return None
    slope = sympy.simplify(sympy.diff(formula, at))
    second = sympy.simplify(sympy.diff(slope, at))
    first = sympy.limit(slope, at, 0)
    last = sympy.limit(slope, at, sympy.oo)
    value = sympy.limit(formula, at, 0)
    if not second.is_nonnegative or last != sympy.oo or not value.is_finite:
        return None
    interior = first == -sympy.oo  # the best q is positive for every t
    if interior:
        v = sympy.Symbol("v", real=True)
    else:
        v = sympy.Symbol("v", positive=True)
    if interior:
        t_formula = v
    else:
        t_formula = first + v
    try:
        roots = [x for x in sympy.solve(slope - t_formula, at) if x.is_positive is not False]
    except NotImplementedError:
        return None
    if len(roots) != 1:
        return None
    dual = sympy.simplify(t_formula * roots[0] - formula.subs(at, roots[0]))

    def of(t: ir.Expr) -> ir.Expr:
        """The conjugate at t."""
        if interior:
            return _expression(dual, {**symbols, v: t})
        return _expression(dual, {**symbols, v: make("pos", make("sub", t, _expression(first, symbols)))})

    try:
        of(const(0))
    except NotImplementedError:
        return None
    return of


def _formula(
    node: ir.Expr,
    q: ir.Hole,
    at: sympy.Symbol,
    symbols: dict[sympy.Symbol, ir.Expr],
    sign: Callable[[ir.Expr], int],
) -> sympy.Expr | None:
    """The sympy formula of an expression in q, with symbols for parts without q; or None."""
    if node is q:
        return at
    if isinstance(node, ir.Const):
        return sympy.nsimplify(node.value, rational=True)
    if not any(n is q for n in ir.walk(node)):
        symbol = next((s for s, e in symbols.items() if e is node), None)
        if symbol is None:
            if sign(node) > 0:
                assumption = {"positive": True}
            else:
                assumption = {"real": True}
            symbol = sympy.Symbol(f"p{len(symbols)}", **assumption)
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
    """The expression of a sympy formula. NotImplementedError if the language has no such function."""
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
        match base, exponent:
            case ir.Apply(op="pos"), ir.Const(value=2):
                return dataclasses.replace(base, op="sqhinge")
            case _, ir.Const(value=-1):
                return make("inv", base)
        return make("pow", base, exponent)
    raise NotImplementedError
