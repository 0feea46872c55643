"""Which terms of an objective are regularisers."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.library.regularisers._base import Recognised
from fccomodel.library.regularisers._registry import all, get
from fccomodel.library.sums import Constant, factored, matched


def recognise(term: ir.Expr, variable: str, constant: Constant) -> Recognised | None:
    """The term as a regulariser of the variable, or None.

    ``lam * norm1(w)``, ``lam / 2 * sumsq(w)``, ``norm2(w) / 4``, ``group_norm(w, 3)``, ``dot(w, w)``: one atom of the variable
    alone, times and over numbers. ``constant`` gives the value of an expression without variables (None: unknown).
    """
    factors = factored(term, variable, constant)
    if factors is None or not factors[0] >= 0:
        return None
    factor, core = factors
    for regulariser in all().values():
        for form in regulariser.forms:
            rest = matched(core, form, variable)
            if rest is not None:
                numbers = [constant(arg) for arg in rest]
                if None not in numbers and len(numbers) + 1 == len(regulariser.coefficients):
                    return _made(regulariser.name, variable, (factor, *(n for n in numbers if n is not None)))
    return None


def combine(terms: Sequence[Recognised]) -> tuple[Recognised, ...]:
    """The same sum with fewer terms: those of one kind and variable added up, those whose sum has a name as one."""
    merged: dict[tuple[str, str, tuple[float, ...]], float] = {}
    for item in terms:
        values = tuple(item.coefficients.values())
        parts = [(item.name, values[0], values[1:])]
        if item.regulariser.sum_of:
            parts = [(name, value, ()) for name, value in zip(item.regulariser.sum_of, values, strict=True)]
        for name, factor, others in parts:
            key = (item.variable, name, others)
            merged[key] = merged.get(key, 0.0) + factor
    result = []
    for variable, name, others in list(merged):
        whole = next((r for r in all().values() if name in r.sum_of and not others), None)
        keys = [(variable, part, ()) for part in whole.sum_of] if whole is not None else []
        if whole is None or not merged.keys() >= set(keys):
            result.append(_made(name, variable, (merged[variable, name, others], *others)))
        elif name == whole.sum_of[0]:
            result.append(_made(whole.name, variable, tuple(merged[key] for key in keys)))
    return tuple(result)


def _made(name: str, variable: str, values: tuple[float, ...]) -> Recognised:
    regulariser = get(name)
    assert regulariser is not None
    named = dict(zip(regulariser.coefficients, values, strict=True))
    return Recognised(regulariser=regulariser, variable=variable, coefficients=named)
