"""Formulas of scalar atoms: one text, read by NumPy for values and by sympy for mathematics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from math import erf, erfc, pi
from typing import Any

import numpy as np


def _piecewise(*cases: tuple[Any, Any]) -> Any:
    values = np.broadcast_arrays(*(value for value, _ in cases), *(case for _, case in cases))
    return np.select([np.asarray(case, dtype=bool) for case in values[len(cases) :]], values[: len(cases)])


_erf, _erfc = (np.vectorize(f, otypes=[float]) for f in (erf, erfc))


def _loggamma(u: Any) -> Any:
    from scipy import special

    return np.where(u > 0, special.gammaln(u), np.nan)


def _polygamma(order: int, u: Any) -> Any:
    from scipy import special

    return np.where(u > 0, special.polygamma(order, u), np.nan)


_NUMPY = {
    "Abs": np.abs,
    "Max": lambda *u: reduce(np.maximum, u),
    "Min": lambda *u: reduce(np.minimum, u),
    "Piecewise": _piecewise,
    "And": lambda *u: reduce(np.logical_and, u),
    "Or": lambda *u: reduce(np.logical_or, u),
    "Not": np.logical_not,
    "Eq": np.equal,
    "Ne": np.not_equal,
    "atan": np.arctan,
    "cos": np.cos,
    "erf": _erf,
    "erfc": _erfc,
    "exp": np.exp,
    "log": np.log,
    "logaddexp": np.logaddexp,
    "loggamma": _loggamma,
    "pi": pi,
    "polygamma": _polygamma,
    "sign": np.sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}


@cache
def _code(text: str) -> Any:
    return compile(text, text, "eval")


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """The formula's value in float64, entry by entry (nan or inf outside its domain)."""
    env = {
        name: np.asarray(u) if np.asarray(u).dtype == bool else np.asarray(u, dtype=float)
        for name, u in values.items()
    }
    with np.errstate(all="ignore"):
        # the texts are this package's own
        return eval(_code(text), {"__builtins__": {}}, {**_NUMPY, **env})  # noqa: S307


@cache
def symbolic(text: str) -> Any:
    """The formula as a sympy expression in real symbols."""
    import sympy

    code = _code(text)
    symbols = {name: sympy.Symbol(name, real=True) for name in code.co_names if name not in _NUMPY}
    functions = {name: getattr(sympy, name) for name in _NUMPY if hasattr(sympy, name)}
    functions["logaddexp"] = lambda a, b: sympy.log(sympy.exp(a) + sympy.exp(b))
    return sympy.sympify(eval(code, {"__builtins__": {}}, {**functions, **symbols}))  # noqa: S307
