"""Expressions of the problem as piecewise linear-quadratic functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isclose

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.atoms.syntax import tree
from fccomodel.library.piecewise.function import PiecewiseLQ
from fccomodel.library.piecewise.pieces import (
    Pieces,
    add,
    compose,
    extreme,
    pieces_of,
    product,
    weakly_convex,
)


def of_max(*pieces: tuple[float, float]) -> PiecewiseLQ:
    """The maximum of affine functions a x + b, given as (a, b)."""
    f = weakly_convex(extreme(max, [[(-inf, inf, 0.0, a, b)] for a, b in pieces]))
    assert f is not None
    return f


def of_atom(atom: atoms.ScalarAtom, parameters: Sequence[float] = ()) -> PiecewiseLQ | None:
    """The graph of a scalar atom at these parameters, or None if it declares none."""
    graph = atom.graph
    if callable(graph):
        graph = graph(*parameters)
    if graph is None:
        return None
    points, left, right = graph
    start = float(atom.value(points[0][0], *parameters))
    return PiecewiseLQ(points=points, left=left, right=right, start=start)


def downward_kink(
    expr: ir.Expr, argument: ir.Expr, constants: Callable[[ir.Expr], float | None]
) -> float | None:
    """A point where the slope of a piecewise quadratic expression jumps downward, or None."""
    pieces = pieces_along(expr, argument, constants)
    if pieces is None:
        return None
    for (_, x, a0, b0, _), (_, _, a1, b1, _) in zip(pieces, pieces[1:], strict=False):
        before = 2 * a0 * x + b0
        after = 2 * a1 * x + b1
        if after < before - 1e-9 * (1 + abs(b0)):
            return x + 0.0
    return None


def pieces_along(
    expr: ir.Expr, argument: ir.Expr, constants: Callable[[ir.Expr], float | None]
) -> Pieces | None:
    """The expression as quadratic pieces in the scalar node ``argument``, or None if it is not piecewise
    quadratic."""
    try:
        return _Walk((argument,), constants).run(expr)[0]
    except _OffTheLine:
        return None


@dataclass(frozen=True, kw_only=True)
class _Affine:
    """The affine form coefficients . arguments + constant."""

    coefficients: tuple[float, ...]
    constant: float


class _OffTheLine(Exception):
    """The expression is not a piecewise quadratic function of one linear form."""


def of_expression(
    expr: ir.Expr, argument: ir.Expr, constants: Callable[[ir.Expr], float | None]
) -> PiecewiseLQ | None:
    """The expression as a piecewise linear-quadratic function of ``argument`` with upward kinks, or None.

    ``constants`` gives the number of a subexpression without the argument (None: unknown).
    """
    function = along_line(expr, (argument,), constants)
    if function is None:
        return None
    f, (factor,) = function
    if factor == 1:
        return f
    return f.precomposed(factor)


def along_line(
    expr: ir.Expr, arguments: Sequence[ir.Expr], constants: Callable[[ir.Expr], float | None]
) -> tuple[PiecewiseLQ, tuple[float, ...]] | None:
    """The f and the coefficients for which the expression is f(coefficients . arguments), or None.

    f is piecewise linear-quadratic with upward kinks. The prox and the envelope of the expression
    follow from those of f: with s = |coefficients|^2, the gradient of the envelope of parameter lam is
    coefficients * (f's envelope of parameter lam s)'(coefficients . arguments).
    """
    try:
        value, line = _Walk(arguments, constants).run(expr)
    except _OffTheLine:
        return None
    f = weakly_convex(value)
    if f is None:
        return None
    return (f, line)


class _Walk:
    """Turns an expression into pieces along the one direction on which it depends."""

    def __init__(self, arguments: Sequence[ir.Expr], constants: Callable[[ir.Expr], float | None]):
        self.forms: dict[int, _Affine | Pieces] = {}
        for k, node in enumerate(arguments):
            unit = tuple(float(j == k) for j in range(len(arguments)))
            self.forms[id(node)] = _Affine(coefficients=unit, constant=0.0)
        self.constants = constants
        self.size = len(arguments)
        self.line: tuple[float, ...] | None
        if self.size == 1:
            self.line = (1.0,)
        else:
            self.line = None

    def run(self, expr: ir.Expr) -> tuple[Pieces, tuple[float, ...]]:
        """The pieces of an expression and the coefficients of its direction."""
        for node in ir.walk(expr, lets=False):
            if id(node) not in self.forms and any(id(child) in self.forms for child in node.children):
                if not isinstance(node, ir.Apply):
                    raise _OffTheLine
                self.forms[id(node)] = self.apply(node)
        if id(expr) not in self.forms:
            raise _OffTheLine
        pieces = self.pieces(self.forms[id(expr)])
        return pieces, self.line or (0.0,) * self.size

    def number(self, node: ir.Expr) -> float | None:
        """The value of a constant node, or None."""
        if id(node) in self.forms:
            return None
        value = self.constants(node)
        if value is None:
            raise _OffTheLine
        return float(value)

    def operand(self, node: ir.Expr) -> _Affine | Pieces:
        """The form of a node: a constant, or the form of a child that was visited."""
        value = self.number(node)
        if value is None:
            return self.forms[id(node)]
        return _Affine(coefficients=(0.0,) * self.size, constant=value)

    def pieces(self, value: _Affine | Pieces) -> Pieces:
        """The form as pieces along the direction, which the first affine form that needs it sets."""
        if not isinstance(value, _Affine):
            return value
        if not any(value.coefficients):
            return [(-inf, inf, 0.0, 0.0, value.constant)]
        if self.line is None:
            self.line = value.coefficients
        k = max(range(self.size), key=lambda j: abs(self.line[j]))  # type: ignore[index]
        factor = value.coefficients[k] / self.line[k]
        pairs = zip(value.coefficients, self.line, strict=True)
        if any(not isclose(c, factor * d, rel_tol=1e-12, abs_tol=1e-300) for c, d in pairs):
            raise _OffTheLine
        return [(-inf, inf, 0.0, factor, value.constant)]

    def scale(self, value: _Affine | Pieces, factor: float) -> _Affine | Pieces:
        """The form multiplied by a number."""
        if isinstance(value, _Affine):
            return _Affine(
                coefficients=tuple(factor * c for c in value.coefficients), constant=factor * value.constant
            )
        return [(low, high, factor * a, factor * b, factor * c) for low, high, a, b, c in value]

    def add(self, left: _Affine | Pieces, right: _Affine | Pieces) -> _Affine | Pieces:
        """The sum of two forms."""
        if isinstance(left, _Affine) and isinstance(right, _Affine):
            both = zip(left.coefficients, right.coefficients, strict=True)
            return _Affine(
                coefficients=tuple(a + b for a, b in both), constant=left.constant + right.constant
            )
        return add(self.pieces(left), self.pieces(right))

    def apply(self, node: ir.Apply) -> _Affine | Pieces:
        """The form of an atom, from the forms of its arguments."""
        args = node.args
        match node.op:
            case "add":
                return self.add(self.operand(args[0]), self.operand(args[1]))
            case "sub":
                return self.add(self.operand(args[0]), self.scale(self.operand(args[1]), -1.0))
            case "neg":
                return self.scale(self.operand(args[0]), -1.0)
            case "mul":
                for factor, varying in (args, args[::-1]):
                    if (number := self.number(factor)) is not None:
                        return self.scale(self.operand(varying), number)
                return _required(product(*(self.pieces(self.forms[id(arg)]) for arg in args)))
            case "div":
                number = self.number(args[1])
                if not number:
                    raise _OffTheLine
                return self.scale(self.operand(args[0]), 1 / number)
            case "pow":
                if self.number(args[1]) == 1:
                    return self.operand(args[0])
                if self.number(args[1]) != 2:
                    raise _OffTheLine
                return _required(compose([(-inf, inf, 1.0, 0.0, 0.0)], self.pieces(self.operand(args[0]))))
        return self.outer(node)

    def outer(self, node: ir.Apply) -> Pieces:
        """A scalar atom of one argument with constant parameters, by its graph or else by its formula."""
        atom = atoms.of(node)
        if isinstance(atom, atoms.ScalarAtom) and atom.graph is None:
            names = dict(zip(atom.names(len(node.args)), node.args, strict=True))
            return self.pieces(self.read(tree(atom.definition(len(node.args))), names))
        if not isinstance(atom, atoms.ScalarAtom) or id(node.args[0]) not in self.forms:
            raise _OffTheLine
        parameters = [self.number(arg) for arg in node.args[1:]]
        numbers = [p for p in parameters if p is not None]
        if len(numbers) < len(parameters):
            raise _OffTheLine
        f = of_atom(atom, numbers)
        if f is None:
            raise _OffTheLine
        return _required(compose(pieces_of(f), self.pieces(self.forms[id(node.args[0])])))

    def read(self, formula: ast.expr, names: Mapping[str, ir.Expr]) -> _Affine | Pieces:
        """An atom's formula, evaluated on forms: arithmetic, absolute values, maxima and minima."""
        match formula:
            case ast.Constant(value=int() | float() as value):
                return _Affine(coefficients=(0.0,) * self.size, constant=float(value))
            case ast.Name(id=name) if name in names:
                return self.operand(names[name])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.scale(self.read(operand, names), -1.0)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                second = self.read(right, names)
                if isinstance(op, ast.Sub):
                    second = self.scale(second, -1.0)
                return self.add(self.read(left, names), second)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.times(self.read(left, names), self.read(right, names))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self.over(self.read(left, names), self.read(right, names))
            case ast.Call(func=ast.Name(id="Max" | "Min" as head), args=args):
                better = {"Max": max, "Min": min}[head]
                return extreme(better, [self.pieces(self.read(arg, names)) for arg in args])
            case ast.Call(func=ast.Name(id="Abs"), args=[arg]):
                inner = self.read(arg, names)
                return extreme(max, [self.pieces(inner), self.pieces(self.scale(inner, -1.0))])
        raise _OffTheLine

    def times(self, left: _Affine | Pieces, right: _Affine | Pieces) -> _Affine | Pieces:
        """The product of two forms."""
        for value, factor in ((left, right), (right, left)):
            if isinstance(factor, _Affine) and not any(factor.coefficients):
                return self.scale(value, factor.constant)
        return _required(product(self.pieces(left), self.pieces(right)))

    def over(self, left: _Affine | Pieces, right: _Affine | Pieces) -> _Affine | Pieces:
        """The quotient of a form by a number that is not 0."""
        if isinstance(right, _Affine) and not any(right.coefficients) and right.constant:
            return self.scale(left, 1 / right.constant)
        raise _OffTheLine


def _required(pieces: Pieces | None) -> Pieces:
    """The pieces, or the error that says that there are none."""
    if pieces is None:
        raise _OffTheLine
    return pieces
