"""Whether the variables of a problem can be held at all, before anything of their size is made."""

from __future__ import annotations

import math

from fccomodel.core import memory
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bound import Bound
from fccomodel.evaluation import errors
from fccomodel.evaluation.sets import elements

#: Vectors of the variables' length that an evaluation with its gradient holds at least.
VECTORS = 3
#: Bytes of an entry in double precision.
DOUBLE = 8


def check(bound: Bound) -> None:
    """F0704 where the variables and their gradients take more than the memory that is available."""
    variables = [
        v for v in bound.problem.variables.values() if v.net is None
    ]  # a net's parameters are there already
    length = sum(math.prod(elements.shape(bound, variable.shape)) for variable in variables)
    demand_room(bound, length, VECTORS, DOUBLE)


def demand_room(bound: Bound, length: int, vectors: int, itemsize: int) -> None:
    """F0704 where so many vectors of ``length`` entries, of ``itemsize`` bytes each, exceed the memory
    that is available."""
    needed = vectors * length * itemsize
    if (left := memory.lacking(needed)) is not None:
        refuse(errors.variables_too_long(length, vectors, needed, left), source=bound.problem.source)
