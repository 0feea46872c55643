"""Rates of convergence as formulas in n, B1, B2, eps and mu: how fast they grow, and what they come to for a problem."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import isfinite, log

import sympy
from sympy.parsing.sympy_parser import convert_xor, implicit_multiplication, parse_expr, standard_transformations

NAMES = ("n", "B1", "B2", "eps", "mu", "N", "q", "d1", "m")
SYMBOLS = {name: sympy.Symbol(name, positive=True) for name in NAMES}
FUNCTIONS = {"max": sympy.Max, "min": sympy.Min, "sqrt": sympy.sqrt, "log": sympy.log}


@cache
def parse(rate: str) -> sympy.Expr:
    """``n / (B1 sqrt(B2) eps^5)`` as an expression."""
    rules = (*standard_transformations, implicit_multiplication, convert_xor)
    return parse_expr(rate, local_dict={**SYMBOLS, **FUNCTIONS}, transformations=rules)


@cache
def order(rate: str) -> tuple[float, ...]:
    """Exponents by which rates are compared, the least first: of 1/eps, of n, of the batch sizes."""
    return _exponent(rate, "eps", -1), _exponent(rate, "n", 1), -_exponent(rate, "B1", -1) - _exponent(rate, "B2", -1)


def _exponent(rate: str, name: str, sign: int) -> float:
    """p where the rate grows as name^(sign p) far out; a logarithm counts as a hundredth."""
    expr = parse(rate)
    if SYMBOLS[name] not in expr.free_symbols:
        return 0.0
    others = {s: sympy.Rational(1, 100) if s.name == "mu" else sympy.Integer(2) for s in expr.free_symbols if s.name != name}
    far = [sympy.log(expr.subs({**others, SYMBOLS[name]: sympy.Integer(10) ** (sign * k)})).evalf() for k in (120, 150)]
    slope = float(far[1] - far[0]) / log(10.0**30)
    whole = round(2 * slope) / 2
    return whole + (0.01 if abs(slope - whole) > 1e-6 else 0.0)


def value(rate: str, numbers: Mapping[str, float]) -> float | None:
    """The rate for these numbers; None where one that it needs is missing."""
    expr = parse(rate)
    if any(s.name not in numbers for s in expr.free_symbols):
        return None
    number = float(expr.subs({s: numbers[s.name] for s in expr.free_symbols}))
    return number if isfinite(number) else None


def in_numbers(rate: str, numbers: Mapping[str, float], eps: float) -> str:
    """``1,797 / (512 * 512 * eps^4) = 6.9e-03 / eps^4: 6.9e+09 at eps = 0.001``."""
    parameters = {name: number for name, number in numbers.items() if name != "eps"}
    parameters |= {name: numbers["rows"] for name in ("N", "m") if "rows" in numbers}
    expr = parse(rate)
    missing = sorted(s.name for s in expr.free_symbols if s.name not in parameters and s.name != "eps")
    if missing:
        return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not known"
    said = _filled(rate, parameters)
    if expr.free_symbols - {SYMBOLS["eps"]}:
        rest = expr.subs({s: parameters[s.name] for s in expr.free_symbols if s.name != "eps"})
        factor, powers = rest.as_independent(SYMBOLS["eps"], as_Add=False)
        if powers.is_Pow and powers.base == SYMBOLS["eps"]:
            said += f" = {float(factor):.1e} / eps" + (f"^{-powers.exp}" if powers.exp != -1 else "")
    total = value(rate, {**parameters, "eps": eps})
    return said if total is None else f"{said}: {total:.1e} at eps = {eps:g}"


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
    return f"{number:g}" if not isinstance(number, int) else f"{number:,}" if grouped else str(number)
