"""Properties that the text of a scalar atom's formula shows: extremes, powers, polynomial
pieces."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

#: Functions that make formulas piecewise: they choose among their arguments or change sign at 0.
PIECED = frozenset({"Abs", "Max", "Min", "Piecewise", "sign"})


@cache
def tree(text: str) -> ast.expr:
    """The syntax tree of a formula."""
    return ast.parse(text, mode="eval").body


def pieced(text: str) -> bool:
    """Whether the formula is put together from pieces."""
    return any(isinstance(node, ast.Name) and node.id in PIECED for node in ast.walk(tree(text)))


def extreme(text: str, names: tuple[str, ...]) -> int:
    """1 if the formula is the maximum of all arguments, -1 if the minimum, else 0."""
    match tree(text):
        case ast.Call(func=ast.Name(id="Max" | "Min" as head), args=args) if [
            ast.unparse(a) for a in args
        ] == list(names):
            if head == "Max":
                return 1
            return -1
    return 0


def exponent(text: str, base: str) -> float | str | None:
    """The exponent p of a formula ``base^p``, a number or an argument's name, or None."""
    match tree(text):
        case ast.BinOp(
            left=ast.Name(id=name), op=ast.Pow(), right=ast.Constant(value=int() | float() as p)
        ) if name == base:
            return float(p)
        case ast.BinOp(left=ast.Name(id=name), op=ast.Pow(), right=ast.Name(id=p)) if name == base:
            return p
        case ast.Call(func=ast.Name(id="sqrt"), args=[ast.Name(id=name)]) if name == base:
            return 0.5
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Div(), right=ast.Name(id=name)) if name == base:
            return -1.0
    return None


def degree(
    text: str,
    degrees: Mapping[str, int],
    numbers: Mapping[str, float],
    *,
    scalar: bool = True,
    whole: bool = False,
) -> int | None:
    """The degree, at most 2, of a formula's polynomial pieces, or None if it has no such pieces.

    degrees  the degrees of the arguments
    numbers  values of arguments, as far as they are known
    scalar   everything depends on one number, so that pieces are intervals; otherwise pieces are
             polyhedra, which only affine functions separate
    whole    only one piece is allowed: a polynomial
    """
    return _Degrees(degrees, numbers, scalar, whole).of(tree(text))


@dataclass(frozen=True)
class _Degrees:
    """The degrees of the nodes of a formula, by the rules of ``degree``."""

    degrees: Mapping[str, int]
    numbers: Mapping[str, float]
    scalar: bool
    whole: bool

    def of(self, node: ast.expr) -> int | None:
        """The degree of a node, or None beyond 2."""
        power = self._rule(node)
        if power is None or power > 2:
            return None
        return power

    def _rule(self, node: ast.expr) -> int | None:
        match node:
            case ast.Constant():
                return 0
            case ast.Name(id=name):
                return self.degrees.get(name, 0)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.of(operand)
            case ast.BinOp():
                return self._operation(node.op, node.left, node.right)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, args)
            case ast.Call(args=args):
                return self._other_call(args)
        return None

    def _operation(self, op: ast.operator, left: ast.expr, right: ast.expr) -> int | None:
        match op:
            case ast.Add() | ast.Sub():
                return self._highest(left, right)
            case ast.Mult():
                first, second = self.of(left), self.of(right)
                if first is None or second is None:
                    return None
                return first + second
            case ast.Div() if self.of(right) == 0:
                return self.of(left)
            case ast.Pow():
                return _power(self.of(left), self.of(right), _number(right, self.numbers))
        return None

    def _call(self, name: str, args: list[ast.expr]) -> int | None:
        match name:
            case "Abs" | "Max" | "Min":
                return self._separated(*args)
            case "sign":
                if self._separated(*args) is None:
                    return None
                return 0
            case "Piecewise":
                pairs = [case.elts for case in args if isinstance(case, ast.Tuple)]
                if any(self._separated(*_sides(condition)) is None for _, condition in pairs):
                    return None
                return self._highest(*(value for value, _ in pairs))
        return self._other_call(args)

    def _other_call(self, args: list[ast.expr]) -> int | None:
        """Any other function is a constant of constants."""
        if self._highest(*args) == 0:
            return 0
        return None

    def _highest(self, *nodes: ast.expr) -> int | None:
        """The largest degree of the nodes, or None if one is unknown."""
        degrees = [self.of(node) for node in nodes]
        known = [d for d in degrees if d is not None]
        if len(known) < len(degrees):
            return None
        return max(known, default=0)

    def _separated(self, *nodes: ast.expr) -> int | None:
        """The degree of functions on the pieces that a comparison of them separates, or None."""
        highest = self._highest(*nodes)
        if highest is None or highest == 0:
            return highest
        if self.whole or (highest > 1 and not self.scalar):
            return None
        return highest


def _sides(condition: ast.expr) -> list[ast.expr]:
    """The two sides of a comparison."""
    match condition:
        case ast.Compare(left=left, comparators=[right]):
            return [left, right]
        case ast.Call(args=args):
            return args
    return []


def _power(base: int | None, exponent: int | None, p: float | None) -> int | None:
    if base is None or exponent != 0:
        return None
    if base == 0:
        return 0
    if p is not None and p == int(p) and p >= 0:
        return base * int(p)
    return None


def _number(node: ast.expr, numbers: Mapping[str, float]) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return numbers.get(name)
    return None
