"""Other values of params for a bound problem, without reading its data again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fccomodel.core import ir
from fccomodel.data.bind import demands
from fccomodel.data.bind.collect import Errors
from fccomodel.data.bind.numbers import NumberValues
from fccomodel.data.bound import Bound


def with_values(bound: Bound, given: Mapping[str, Any]) -> Bound | None:
    """The data with other values of some params; None if these also decide sizes, sets or params.

    Raises FccoError with F0518 for a name that is no param or dim, and F0520 for a value that is not
    as declared.
    """
    problem, errors = bound.problem, Errors()
    demands.names(errors, "param", given, [*problem.params, *problem.dims])
    errors.stop(problem.source)
    if set(given) & set(problem.dims):
        return None
    if any(isinstance(node, ir.Param) and node.name in given for node in _deciding(problem)):
        return None

    def size(dim: ir.Dim) -> int | None:
        """The number of a dim, or None if it is not known."""
        return dim if isinstance(dim, int) else bound.dims.get(dim)

    values = NumberValues(problem, given, size, bound.labels)
    params = dict(bound.params)
    for name in given:
        with errors.collect(span=problem.params[name].span):
            params[name] = values.param(name)
    errors.stop(problem.source)
    return replace(bound, params=params)


def _deciding(problem: ir.Problem) -> Iterator[ir.Expr]:
    """The expressions that binding evaluates: the members of sets of numbers, and defaults of params."""
    for domain in (*problem.sets.values(), *_domains(problem)):
        if isinstance(domain, ir.ValueSet):
            ends = (*(domain.items or ()), domain.low, domain.high, domain.step)
            yield from (node for end in ends if end is not None for node in ir.walk(end))
    for parameter in problem.params.values():
        if parameter.default is not None:
            yield from ir.walk(parameter.default)


def _domains(problem: ir.Problem) -> Iterator[ir.Set]:
    """The sets of values of columns and arrays, and the sets of families of tables."""
    for table in problem.tables.values():
        yield from (kind.domain for kind in table.columns.values() if kind.domain is not None)
        if table.family is not None:
            yield table.family.domain
    yield from (array.type.domain for array in problem.arrays.values() if array.type.domain is not None)
