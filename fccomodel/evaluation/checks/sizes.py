"""A check that the variables of a problem fit into memory, before anything of their size is made; and
which errors say that something did not fit."""

from __future__ import annotations

import math

from fccomodel.core import memory
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.data.bound import Bound
from fccomodel.evaluation import errors
from fccomodel.evaluation.sets import elements

VECTORS = 3  # vectors of the variables' length that an evaluation with its gradient needs at least
DOUBLE = 8  # bytes of an entry in double precision


def check(bound: Bound) -> None:
    """Raise F0704 if the variables and their gradients need more memory than is available."""
    # the parameters of nets are in memory already
    variables = [v for v in bound.problem.variables.values() if v.net is None]
    length = sum(math.prod(elements.shape(bound, variable.shape)) for variable in variables)
    demand_room(bound, length, VECTORS, DOUBLE)


def beyond_memory(error: Exception) -> bool:
    """Whether an error says that memory ran out, or would have (F0704)."""
    if isinstance(error, FccoError):
        return all(diagnostic.code == errors.TOO_LARGE.id for diagnostic in error.diagnostics)
    return memory.ran_out(error)


def demand_room(bound: Bound, length: int, vectors: int, itemsize: int) -> None:
    """Raise F0704 if ``vectors`` vectors of ``length`` entries of ``itemsize`` bytes exceed the memory."""
    needed = vectors * length * itemsize
    if (left := memory.lacking(needed)) is not None:
        refuse(errors.variables_too_long(length, vectors, needed, left), source=bound.problem.source)
