"""The conic program of a plan, which the interior-point method may solve in place of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.plan.conic_form import conic_form, convex

if TYPE_CHECKING:
    from fccomodel.conic import Conic
    from fccomodel.pipeline.records import Planned


def planned_form(planned: Planned) -> Conic | None:
    """The conic program of a plan that asks for a finish, or None (see ``conic_form``)."""
    if planned.plan.polish:
        return conic_form(planned.analysis, planned.budget.seconds)
    return None


def may_take_over(planned: Planned) -> bool:
    """Whether the problem is convex, and its plan asks for a finish within a budget in seconds."""
    return planned.finishes and convex(planned.analysis)
