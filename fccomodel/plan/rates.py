"""Rates of convergence as formulas in n, B1, B2, eps and mu: their growth, and their values for a
problem."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from functools import cache
from math import inf, isfinite, log

#: Functions of the formulas, on decimal numbers: exponents of n and eps show only far out, where floats
#: overflow.
FUNCTIONS: dict[str, Callable[..., Decimal]] = {
    "max": max,
    "min": min,
    "sqrt": Decimal.sqrt,
    "log": Decimal.ln,
}
#: Operators of the formulas.
OPERATORS: dict[type, Callable[..., Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@cache
def parse(rate: str) -> ast.expr:
    """``n / (B1 sqrt(B2) eps^5)`` as an expression."""
    return ast.parse(_with_products(rate).replace("^", "**"), mode="eval").body


def _with_products(rate: str) -> str:
    """The formula with ``*`` for spaces between factors."""
    return re.sub(r"(?<=[A-Za-z0-9)]) +(?=[A-Za-z(])", " * ", rate)


@cache
def names(rate: str) -> frozenset[str]:
    """The quantities that a rate depends on."""
    used = frozenset(node.id for node in ast.walk(parse(rate)) if isinstance(node, ast.Name))
    return used - FUNCTIONS.keys()


def _at(node: ast.expr, numbers: Mapping[str, Decimal]) -> Decimal:
    """The value of a formula for these numbers."""
    match node:
        case ast.Constant(value=number):
            return Decimal(str(number))
        case ast.Name(id=name):
            return numbers[name]
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_at(left, numbers), _at(right, numbers))
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*(_at(arg, numbers) for arg in args))
    raise AssertionError(ast.dump(node))


@cache
def order(rate: str) -> tuple[float, ...]:
    """Exponents of 1/eps, of n and of the batch sizes, by which rates are compared."""
    return (
        _exponent(rate, "eps", -1),
        _exponent(rate, "n", 1),
        -_exponent(rate, "B1", -1) - _exponent(rate, "B2", -1),
    )


def _exponent(rate: str, name: str, sign: int) -> float:
    """The p for which the rate grows as name^(sign p) far out; a logarithm adds a hundredth."""
    if name not in names(rate):
        return 0.0
    others = {other: Decimal("0.01" if other == "mu" else 2) for other in names(rate)}
    low, high = (_at(parse(rate), {**others, name: Decimal(10) ** (sign * k)}) for k in (120, 150))
    slope = float((high / low).ln()) / log(10.0**30)
    whole = round(2 * slope) / 2
    return whole + (0.01 if abs(slope - whole) > 1e-6 else 0.0)


def value(rate: str, numbers: Mapping[str, float]) -> float | None:
    """The rate for these numbers; None if one is missing or the rate is not finite."""
    if names(rate) - numbers.keys():
        return None
    number = float(_at(parse(rate), {name: Decimal(numbers[name]) for name in names(rate)}))
    if isfinite(number):
        return number
    return None


def calls(rate: str, numbers: Mapping[str, float], unit: float) -> float | None:
    """Oracle calls of the rate, with ``unit`` calls for each step that it counts; N and m are the rows of
    an expectation. None if a number is missing."""
    total = value(rate, {**numbers, **_finite_sums(numbers)})
    if total is None:
        return None
    return unit * total


def _finite_sums(numbers: Mapping[str, float]) -> dict[str, float]:
    """N and m in rates for finite sums; an expectation over a distribution has none."""
    rows = numbers.get("rows", inf)
    if isfinite(rows):
        return {"N": rows, "m": rows}
    return {}


def _power(rate: str, numbers: Mapping[str, float]) -> tuple[float, Decimal] | None:
    """(c, p) if the rate is c / eps^p, else None."""
    given = {name: Decimal(numbers[name]) for name in names(rate) if name != "eps"}
    with localcontext() as context:
        context.prec = 40
        values = [_at(parse(rate), {**given, "eps": Decimal(10) ** -k}) for k in (0, 1, 2)]
        if min(values) <= 0:
            return None
        powers = [(after / before).log10() for before, after in zip(values, values[1:], strict=False)]
    power = powers[0].quantize(Decimal("0.01"))
    if any(abs(p - power) > Decimal("1e-20") for p in powers):
        return None
    return float(values[0]), power.normalize()


def in_numbers(rate: str, numbers: Mapping[str, float], eps: float) -> str:
    """``1,797 / (512 * 512 * eps^4) = 6.9e-03 / eps^4: 6.9e+09 at eps = 0.001``."""
    parameters = {name: number for name, number in numbers.items() if name != "eps"}
    parameters |= _finite_sums(numbers)
    missing = sorted(name for name in names(rate) if name not in parameters and name != "eps")
    if missing:
        return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not known"
    text = _filled(rate, parameters)
    if names(rate) - {"eps"} and (fitted := _power(rate, parameters)) is not None:
        factor, power = fitted
        text += f" = {factor:.1e} / eps"
        if power != 1:
            text += f"^{power:f}"
    total = value(rate, {**parameters, "eps": eps})
    if total is None:
        return text
    return f"{text}: {total:.1e} at eps = {eps:g}"


def _filled(rate: str, numbers: Mapping[str, float]) -> str:
    """The formula with numbers in place of their names."""

    def number(match: re.Match[str]) -> str:
        """The number that stands for a name of the rate."""
        name = match[0]
        if name in numbers:
            return _number(numbers[name], "," not in rate)
        return name

    return re.sub(r"\b[A-Za-z]\w*\b", number, _with_products(rate))


def _number(number: float, grouped: bool) -> str:
    """A number in a formula: whole numbers with all digits, ``grouped`` by thousands."""
    if not isinstance(number, int):
        return f"{number:g}"
    if grouped:
        return f"{number:,}"
    return str(number)
