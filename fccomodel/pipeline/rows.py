"""The same model on other data: prepared files, other values of params, rows held out, no data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.pipeline.boundary import quoted
from fccomodel.pipeline.records import Binding, Compiled, Planned
from fccomodel.pipeline.stages import analyse, bind, with_members

if TYPE_CHECKING:
    import numpy as np

    from fccomodel.data.bound import Bound
    from fccomodel.data.prepare import PreparedFolder


@quoted
def prepare(
    compiled: Compiled,
    binding: Binding,
    folder: Path,
    *,
    dtype: str = "float32",
    told: Callable[..., None] = lambda *_: None,
) -> PreparedFolder:
    """Write the tables of a binding to files of a folder, which is a source of them from then on.

    The groups and orders that the model asks for are written too.
    """
    from fccomodel.data.prepare import prepare
    from fccomodel.evaluation.sets.preparing import orders

    return prepare(compiled.problem, folder, dtype=dtype, told=told, orders=orders, **binding.arguments)


@quoted
def rebind(
    compiled: Compiled, binding: Binding, bound: Bound, params: Mapping[str, Any]
) -> tuple[Binding, Bound]:
    """The same model and data for other values of some params.

    Data are read again only if these params decide sizes or sets.
    """
    from fccomodel.data import rebinding
    from fccomodel.evaluation import memory
    from fccomodel.evaluation.checks import claims, domains

    binding = replace(binding, params={**binding.params, **params})
    again = rebinding.with_values(bound, params)
    if again is None:
        return binding, bind(compiled, binding)
    claims.check(memory.akin(again, bound))
    domains.check(again)
    return binding, again


def elsewhere(planned: Planned) -> Bound:
    """The problem on the rows held out, with the scaling and the categories of those solved on."""
    encoding = {name: table.encoding for name, table in planned.bound.tables.items()}
    where = planned.holdout if isinstance(planned.holdout, str) else None
    return bind(
        planned.compiled,
        planned.binding,
        seed=planned.seed,
        encoding=encoding,
        where=where,
        rows=planned.held,
    )


@quoted
def on(planned: Planned, bound: Bound) -> Planned:
    """The same plan on other rows or draws, with the analysis of the problem there."""
    bound = with_members(bound)
    return replace(planned, bound=bound, analysis=analyse(bound.problem, bound))


@quoted
def with_parameters(problem: ir.Problem, binding: Binding) -> ir.Problem:
    """The problem for given values of params and dims, without data.

    The values stand as the params' bounds.
    """
    if not binding.params and not binding.nets:
        return problem
    from fccomodel.data import bind as data
    from fccomodel.data.nets.errors import without_data
    from fccomodel.evaluation.checks import domains

    if binding.nets:
        refuse(*(without_data(name) for name in binding.nets))
    bound = data.parameters(problem, binding.params)
    domains.check(bound)
    fixed = {name: _fixed(problem.params[name], value) for name, value in bound.params.items()}
    return replace(problem, params={**problem.params, **fixed}, sizes=bound.dims)


def _fixed(parameter: ir.Parameter, value: np.ndarray) -> ir.Parameter:
    """The param with bounds that leave its value alone."""
    low, high = float(value.min()), float(value.max())
    default = parameter.default
    if value.ndim == 0:
        default = ir.Const(value=low, span=parameter.span)
    return replace(parameter, lower=low, upper=high, strict_lower=False, strict_upper=False, default=default)
