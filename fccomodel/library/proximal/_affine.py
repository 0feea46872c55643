"""Expressions over holes as affine forms, and sums as lists of terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.library import atoms


@dataclass(frozen=True, kw_only=True)
class AffineForm:
    """coefficients . holes + constant (of an array: coefficient times the array plus a constant in
    each entry)."""

    coefficients: tuple[float, ...]
    constant: float


def affine(node: ir.Expr, holes: Sequence[ir.Hole]) -> AffineForm | None:
    """The node as an affine form of the holes, by sums and constant factors, or None."""
    zero = (0.0,) * len(holes)
    for k, hole in enumerate(holes):
        if node is hole:
            return AffineForm(coefficients=tuple(float(j == k) for j in range(len(holes))), constant=0.0)
    if isinstance(node, ir.Const):
        return AffineForm(coefficients=zero, constant=node.value)
    if not isinstance(node, ir.Apply) or node.op not in ("add", "sub", "neg", "mul", "div"):
        return None
    parts = [affine(a, holes) for a in node.args]
    if any(p is None for p in parts):
        return None
    first, second = parts[0], parts[-1]
    assert first is not None and second is not None
    match node.op:
        case "neg":
            return _times(first, -1.0)
        case "add" | "sub":
            sign = 1.0 if node.op == "add" else -1.0
            both = zip(first.coefficients, second.coefficients, strict=True)
            return AffineForm(
                coefficients=tuple(p + sign * q for p, q in both),
                constant=first.constant + sign * second.constant,
            )
        case "mul":
            for number, form in ((first, second), (second, first)):
                if not any(number.coefficients):
                    return _times(form, number.constant)
        case "div" if not any(second.coefficients) and second.constant:
            return _times(first, 1 / second.constant)
    return None


def _times(form: AffineForm, factor: float) -> AffineForm:
    return AffineForm(
        coefficients=tuple(factor * c for c in form.coefficients), constant=factor * form.constant
    )


def quadratic(node: ir.Expr, holes: Sequence[ir.Hole]) -> tuple[float, ...] | None:
    """The coefficients q with node = sum of q_k/2 u_k^2, a square of one hole's multiple, or
    None."""
    if (base := atoms.squared(node)) is not None:
        form = affine(base, holes)
        if form is not None and form.constant == 0 and sum(c != 0 for c in form.coefficients) == 1:
            return tuple(2 * c * c for c in form.coefficients)
    return None


def flat_terms(expr: ir.Expr, factor: float = 1.0) -> list[tuple[float, ir.Expr]]:
    """The terms of a sum with their constant factors, from left to right."""
    terms: list[tuple[float, ir.Expr]] = []
    stack = [(factor, expr)]
    while stack:
        times, node = stack.pop()
        match node:
            case ir.Apply(op="add", args=args):
                stack += [(times, a) for a in reversed(args)]
            case ir.Apply(op="sub", args=(a, b)):
                stack += [(-times, b), (times, a)]
            case ir.Apply(op="neg", args=(a,)):
                stack.append((-times, a))
            case (
                ir.Apply(op="mul", args=(ir.Const(value=value), a))
                | ir.Apply(op="mul", args=(a, ir.Const(value=value)))
            ):
                stack.append((times * value, a))
            case ir.Apply(op="div", args=(a, ir.Const(value=value))) if value:
                stack.append((times / value, a))
            case _:
                if times:
                    terms.append((times, node))
    return terms
