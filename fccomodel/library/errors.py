"""F0532 and F0612: simple sets without points, and smoothing parameters that are too large."""

from __future__ import annotations

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span

EMPTY_SET = Code("F0532", "empty set")
SMOOTHING = Code("F0612", "smoothing parameter")


def empty_set(
    text: str, span: Span | None, reason: str, fix: str = "Correct the values of its arguments."
) -> Diagnostic:
    """A set is empty for the values of its arguments; ``text`` is how the model writes it."""
    return EMPTY_SET.error(
        f"`{text}` is empty with the values bound to it", span=span, reason=reason, fix=fix
    )


def smoothing_too_large(lam: float, weak: float) -> Diagnostic:
    """A prox with parameter lambda is a single point only if 0 < lambda < 1/rho."""
    if not weak:
        fix = "Take any lambda > 0."
    else:
        fix = f"Take lambda < {1 / weak:.6g}, which is 1/rho."
    return SMOOTHING.error(
        f"no prox with lambda = {lam:g}",
        reason="lambda must be positive."
        if not lam > 0
        else f"The function is {weak:.6g}-weakly convex: only for lambda < 1/rho = {1 / weak:.6g} is f(v) "
        "+ |v - u|^2/(2 lambda) "
        "strictly convex in v, so that its minimiser, the prox, is one point and the envelope has a "
        "gradient.",
        fix=fix,
    )
