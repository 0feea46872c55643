"""Whether a problem is a conic program that the interior-point method may solve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.core.memory import lacking

if TYPE_CHECKING:
    from fccomodel.conic import Conic
    from fccomodel.structure import Analysis


def conic_form(analysis: Analysis, seconds: float | None) -> Conic | None:
    """The problem as a conic program, or None if it is none, takes too long, or does not fit into memory.

    The objective and the set must be convex, and the method must be foreseen to take at most
    ``seconds``. None for a budget of steps or oracle calls (``seconds`` is None).
    """
    from fccomodel import conic

    form = built_form(analysis, seconds)
    if form is None or seconds is None or conic.cost(form) > seconds:
        return None
    if lacking(form.bytes_needed) is not None:
        return None
    return form


def built_form(analysis: Analysis, seconds: float | None) -> Conic | None:
    """The conic program that is built to find what it costs, or None (see ``conic_form``)."""
    from fccomodel import conic

    if seconds is None or analysis.bound is None or not convex(analysis):
        return None
    return conic.of(analysis.bound, lambda expr: analysis.see(expr).interval.value)


def convex(analysis: Analysis) -> bool:
    """Whether the objective is convex, on a convex set."""
    return analysis.minimised.convex and _convex_set(analysis)


def _convex_set(analysis: Analysis) -> bool:
    """Whether the known facts prove that the constraints hold on a convex set."""
    curved = [c for c in analysis.problem.constraints if not analysis.constraints[c.label].affine]
    if any(c.kind == "eq" for c in curved):
        return False
    if all(analysis.see(c.body).convex for c in curved):
        return True
    from fccomodel.conic import level_sets  # loads much

    return all(level_sets.convex(c.body, analysis.see) for c in curved)
