"""How long steps may take before the interior-point method takes over."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fccomodel.pipeline.conic_form import may_take_over

if TYPE_CHECKING:
    from fccomodel.conic import Conic
    from fccomodel.pipeline.records import Planned

#: The least patience, in counted seconds.
SHORTEST = 0.3
#: The largest patience, in counted seconds.
LONGEST = 3.0
#: Between these two, the patience is so many times the foreseen cost of the interior-point method.
TIMES_ITS_COST = 2.0
#: Elements times variables up to which a conic program costs less than the least patience.
LIGHT_NUMBERS = 20_000


def of_form(form: Conic) -> float:
    """Counted seconds for steps, if the interior-point method can solve this conic program."""
    from fccomodel import conic

    return min(max(SHORTEST, TIMES_ITS_COST * conic.cost(form)), LONGEST)


def light(planned: Planned) -> bool:
    """Whether the interior-point method would cost less than the least patience, by the data's size.

    The conic program of a light problem is built only if steps do not converge.
    """
    vectors = all(len(variable.shape) <= 1 for variable in planned.problem.variables.values())
    return may_take_over(planned) and numbers(planned) <= LIGHT_NUMBERS and vectors


def numbers(planned: Planned) -> float:
    """Elements of the data times entries of the variables: what a pass multiplies, about."""
    from fccomodel.evaluation.passes import amount
    from fccomodel.evaluation.sets import elements

    bound = planned.bound
    shapes = [elements.shape(bound, variable.shape) for variable in planned.problem.variables.values()]
    return amount(bound) * sum(map(math.prod, shapes))
