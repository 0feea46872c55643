"""Rates of convergence as formulas in n, B1, B2, eps and mu: how fast they grow, and what they come to
for a problem."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from functools import cache
from math import inf, isfinite, log

#: What formulas call, and their operators, on decimal numbers: exponents of n and eps show far out,
#: where floats overflow.
FUNCTIONS: dict[str, Callable[..., Decimal]] = {
    "max": max,
    "min": min,
    "sqrt": Decimal.sqrt,
    "log": Decimal.ln,
}
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
    return ast.parse(
        re.sub(r"(?<=[A-Za-z0-9)]) +(?=[A-Za-z(])", " * ", rate).replace("^", "**"), mode="eval"
    ).body


@cache
def names(rate: str) -> frozenset[str]:
    """The quantities that a rate depends on."""
    return (
        frozenset(node.id for node in ast.walk(parse(rate)) if isinstance(node, ast.Name)) - FUNCTIONS.keys()
    )


def _at(node: ast.expr, numbers: Mapping[str, Decimal]) -> Decimal:
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
    """Exponents by which rates are compared, the least first: of 1/eps, of n, of the batch sizes."""
    return (
        _exponent(rate, "eps", -1),
        _exponent(rate, "n", 1),
        -_exponent(rate, "B1", -1) - _exponent(rate, "B2", -1),
    )


def _exponent(rate: str, name: str, sign: int) -> float:
    """p where the rate grows as name^(sign p) far out; a logarithm counts as a hundredth."""
    if name not in names(rate):
        return 0.0
    others = {other: Decimal("0.01" if other == "mu" else 2) for other in names(rate)}
    low, high = (_at(parse(rate), {**others, name: Decimal(10) ** (sign * k)}) for k in (120, 150))
    slope = float((high / low).ln()) / log(10.0**30)
    whole = round(2 * slope) / 2
    return whole + (0.01 if abs(slope - whole) > 1e-6 else 0.0)


def value(rate: str, numbers: Mapping[str, float]) -> float | None:
    """The rate for these numbers; None where one that it needs is missing."""
    if names(rate) - numbers.keys():
        return None
    number = float(_at(parse(rate), {name: Decimal(numbers[name]) for name in names(rate)}))
    return number if isfinite(number) else None


def calls(rate: str, numbers: Mapping[str, float], unit: float) -> float | None:
    """Oracle calls: ``unit`` of them for each of what the rate counts; N and m are the rows of an
    expectation."""
    total = value(rate, {**numbers, **_finite_sums(numbers)})
    if total is None:
        return None
    return unit * total


def _finite_sums(numbers: Mapping[str, float]) -> dict[str, float]:
    """N and m of rates for finite sums, which no expectation over a distribution is."""
    rows = numbers.get("rows", inf)
    if isfinite(rows):
        return {"N": rows, "m": rows}
    return {}


def _power(rate: str, numbers: Mapping[str, float]) -> tuple[float, Decimal] | None:
    """c and p where the rate is c / eps^p; None where it is no such power."""
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
    said = _filled(rate, parameters)
    if names(rate) - {"eps"} and (fitted := _power(rate, parameters)) is not None:
        factor, power = fitted
        said += f" = {factor:.1e} / eps" + (f"^{power:f}" if power != 1 else "")
    total = value(rate, {**parameters, "eps": eps})
    if total is None:
        return said
    return f"{said}: {total:.1e} at eps = {eps:g}"


def _filled(rate: str, numbers: Mapping[str, float]) -> str:
    """The formula with the numbers in place of their names."""
    spaced = re.sub(r"(?<=[A-Za-z0-9)]) +(?=[A-Za-z(])", " * ", rate)
    return re.sub(
        r"\b[A-Za-z]\w*\b",
        lambda m: m[0] if m[0] not in numbers else _number(numbers[m[0]], "," not in rate),
        spaced,
    )


def _number(number: float, grouped: bool) -> str:
    """Whole numbers with all their digits, by thousands where no comma stands between arguments."""
    if not isinstance(number, int):
        return f"{number:g}"
    if grouped:
        return f"{number:,}"
    return str(number)
