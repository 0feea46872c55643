"""Products of two multiples of one expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import const
from fccomodel.library.identities._equal import equal
from fccomodel.library.linear import (
    TERMS_OF_CHAINS,
    Factor,
    LinearTerm,
    common,
    folded,
    is_number,
    joined,
    same_factors,
    terms,
    without,
)


def multiples(a: ir.Expr, b: ir.Expr) -> LinearTerm | None:
    """The product ``a b`` as ``c r^2``, entry by entry, or None if neither factor is a multiple of
    the other.

    The constant c is a sign and factors. An example is ``(2 u - 4) / lam`` times ``1 - u / 2``.
    """
    listed = [terms(a), terms(b)]
    if a.shape != b.shape or len(listed[0]) != len(listed[1]) or len(listed[0]) > TERMS_OF_CHAINS:
        return None
    shared = [common([t.factors for t in parts]) for parts in listed]
    ours, theirs = (
        [replace(t, factors=without(t.factors, factors)) for t in parts]
        for parts, factors in zip(listed, shared, strict=True)
    )
    ratio = _ratio(ours, theirs)
    if not ratio or is_number(b) and not equal(a, b):
        return None
    number = () if abs(ratio) == 1 else (Factor("mul", const(abs(ratio))),)
    return LinearTerm(
        core=joined(theirs, b.span),
        sign=1 if ratio > 0 else -1,
        factors=folded((*number, *shared[0], *shared[1])),
    )


def _ratio(ours: Sequence[LinearTerm], theirs: Sequence[LinearTerm]) -> float | None:
    """The number c with one sum equal to c times the other, term by term in any order, or None."""
    rest, ratios = [_apart(t) for t in theirs], set()
    for value, factors, core in map(_apart, ours):
        k = next((k for k, t in enumerate(rest) if _alike(core, t[2]) and same_factors(factors, t[1])), None)
        if k is None or rest[k][0] == 0:
            return None
        ratios.add(value / rest.pop(k)[0])
    if len(ratios) == 1:
        return ratios.pop()
    return None


def _apart(term: LinearTerm) -> tuple[float, list[Factor], ir.Expr | None]:
    """The number in a term, its other factors, and their core; None if the core is a number."""
    value = float(term.sign)
    for op, by in term.factors:
        if isinstance(by, ir.Const):
            if op == "mul":
                value = value * by.value
            elif by.value:
                value = value / by.value
            else:
                value = 0.0
    others = [f for f in term.factors if not isinstance(f.by, ir.Const)]
    plain = isinstance(term.core, ir.Const) and not term.core.shape
    if isinstance(term.core, ir.Const) and plain:
        return (value * term.core.value, others, None)
    return (value, others, term.core)


def _alike(a: ir.Expr | None, b: ir.Expr | None) -> bool:
    return a is b or a is not None and b is not None and equal(a, b)
