"""Properties that the text of a scalar atom's formula shows: extremes, powers, polynomial
pieces."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache

#: functions of formulas that are put together from pieces: they choose among their arguments, or
#: turn where one is 0
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
            return 1 if head == "Max" else -1
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
    """The degree, at most 2, of a formula's polynomial pieces, from those of its arguments; None where
    it has no such pieces.

    numbers  values of arguments, where they are known
    scalar   all depends on one number, so that pieces are intervals; else they are polyhedra: only
             affine functions part them
    whole    there may be one piece alone: a polynomial
    """

    def top(*nodes: ast.expr) -> int | None:
        powers = [of(node) for node in nodes]
        if None in powers:
            return None
        return max((d for d in powers if d is not None), default=0)

    def parted(*nodes: ast.expr) -> int | None:
        """The degree of functions on the pieces that a comparison separates."""
        highest = top(*nodes)
        if highest == 0 or highest is not None and not whole and (scalar or highest == 1):
            return highest
        return None

    def of(node: ast.expr) -> int | None:
        power = rule(node)
        return None if power is None or power > 2 else power

    def rule(node: ast.expr) -> int | None:
        match node:
            case ast.Constant():
                return 0
            case ast.Name(id=name):
                return degrees.get(name, 0)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return of(operand)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return top(left, right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                parts = of(left), of(right)
                if parts[0] is None or parts[1] is None:
                    return None
                return parts[0] + parts[1]
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                if of(right) == 0:
                    return of(left)
                return None
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return _power(of(left), of(right), _number(right, numbers))
            case ast.Call(func=ast.Name(id="Abs" | "Max" | "Min"), args=args):
                return parted(*args)
            case ast.Call(func=ast.Name(id="sign"), args=args):
                return None if parted(*args) is None else 0
            case ast.Call(func=ast.Name(id="Piecewise"), args=cases):
                pairs = [case.elts for case in cases if isinstance(case, ast.Tuple)]
                apart = [parted(*_sides(condition)) for _, condition in pairs]
                if None in apart:
                    return None
                return top(*(value for value, _ in pairs))
            case ast.Call(args=args):
                return 0 if top(*args) == 0 else None
        return None

    return of(tree(text))


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
