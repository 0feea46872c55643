"""Which terms of an objective are regularisers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fccomodel import ir
from fccomodel.regularisers._base import Recognised
from fccomodel.regularisers._registry import all, get

Constant = Callable[[ir.Expr], float | None]


def recognise(term: ir.Expr, variable: str, constant: Constant) -> Recognised | None:
    """The term as a regulariser of the variable, or None.

    ``lam * norm1(w)``, ``lam / 2 * sumsq(w)``, ``norm2(w) / 4``, ``group_norm(w, 3)``, ``dot(w, w)``: one atom of the variable
    alone, times and over numbers. ``constant`` gives the value of an expression without variables (None: unknown).
    """
    found = _factored(term, variable, constant)
    if found is None or not found[0] >= 0:
        return None
    factor, core = found
    match core:
        case ir.Apply(op="dot", args=(left, right)) if _is(left, variable) and _is(right, variable):
            return _made("squared_l2", variable, (factor,))
        case ir.Apply(op="pow", args=(base, exponent)) if constant(exponent) == 2:
            core = ir.Apply(op="square", args=(base,), shape=core.shape)
    for regulariser in all().values():
        for form in regulariser.forms:
            rest = _matches(core, form, variable)
            if rest is not None:
                numbers = [constant(arg) for arg in rest]
                if None not in numbers and len(numbers) + 1 == len(regulariser.coefficients):
                    return _made(regulariser.name, variable, (factor, *(n for n in numbers if n is not None)))
    return None


def combine(found: Sequence[Recognised]) -> tuple[Recognised, ...]:
    """The same sum with fewer terms: those of one kind and variable added up, l1 and squared l2 together as an elastic net."""
    merged: dict[tuple[str, str, tuple[float, ...]], float] = {}
    for item in found:
        first, *rest = item.coefficients.values()
        parts: list[tuple[str, float, tuple[float, ...]]] = [(item.name, first, tuple(rest))]
        if item.name == "elastic_net":
            parts = [("l1", first, ()), ("squared_l2", rest[0], ())]
        for name, factor, others in parts:
            key = (item.variable, name, others)
            merged[key] = merged.get(key, 0.0) + factor
    result = []
    for (variable, name, others), factor in merged.items():
        if name == "l1" and (variable, "squared_l2", ()) in merged:
            result.append(_made("elastic_net", variable, (factor, merged[variable, "squared_l2", ()])))
        elif name != "squared_l2" or (variable, "l1", ()) not in merged:
            result.append(_made(name, variable, (factor, *others)))
    return tuple(result)


def _made(name: str, variable: str, values: tuple[float, ...]) -> Recognised:
    regulariser = get(name)
    assert regulariser is not None
    named = dict(zip(regulariser.coefficients, values, strict=True))
    return Recognised(regulariser=regulariser, variable=variable, coefficients=named)


def _is(node: ir.Expr, variable: str) -> bool:
    return isinstance(node, ir.Var) and node.name == variable


def _factored(term: ir.Expr, variable: str, constant: Constant) -> tuple[float, ir.Expr] | None:
    """The term as a number times the rest."""
    factor = 1.0
    while True:
        match term:
            case ir.Apply(op="mul", args=(left, right)):
                known, rest = (left, right) if variable not in ir.variables_of(left) else (right, left)
            case ir.Apply(op="div", args=(rest, known)):
                pass
            case ir.Apply(op="neg", args=(rest,)):
                factor, term = -factor, rest
                continue
            case _:
                return factor, term
        number = constant(known) if variable not in ir.variables_of(known) else None
        if number is None or (term.op == "div" and number == 0):
            return None
        factor, term = (factor / number if term.op == "div" else factor * number), rest


def _matches(core: ir.Expr, form: str | tuple[str, str], variable: str) -> tuple[ir.Expr, ...] | None:
    """The further arguments, if the core is of this form."""
    outer, inner = form if isinstance(form, tuple) else (form, None)
    if not isinstance(core, ir.Apply) or core.op != outer or core.shape:
        return None
    first, *rest = core.args
    if inner is not None:
        return () if not rest and isinstance(first, ir.Apply) and first.op == inner and _is(first.args[0], variable) else None
    return tuple(rest) if _is(first, variable) else None
