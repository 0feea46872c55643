"""Inputs of nets at a few rows of the data, on which modules are tried when they are bound."""

from __future__ import annotations

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import draws, elements
from fccomodel.evaluation.sets.axes import Named, new_axis


def at_some_rows(bound: Bound, net: str, count: int) -> list[torch.Tensor] | None:
    """Each input of a net, (n, *input) in float64, where the model first applies it.

    The rows are ``count`` of each set that the inputs depend on, evenly spaced, and those with the least
    and the largest token ids. None is returned if the model does not apply the net, or if an input
    cannot be computed before the nets of the model are known.
    """
    call = None
    for node in bound.problem.expressions(ir.NetCall):
        if node.net == net:
            call = node
            break
    if call is None:
        return None
    try:
        evaluator = Evaluator(bound, _first_point(bound, call))
        env: dict[ir.Binder, Named] = {}
        for binder in _binders(call):
            extreme = _rows_of_extreme_ids(bound, call, binder)
            env[binder] = _some(bound, evaluator, binder, env, count, extreme)
        _, rows = evaluator.net_inputs(call, env)
    except (FccoError, KeyError):  # the data have no such rows, which another error says
        return None
    if len(rows[0]) == 0:
        return None
    return rows


def _binders(call: ir.NetCall) -> list[ir.Binder]:
    """The binders that the inputs of a call depend on; draws come after the binders of their parameters."""
    binders: dict[ir.Binder, None] = {}
    for expr in call.inputs:
        binders |= dict.fromkeys(ir.free_binders(expr))
    for binder in list(binders):
        if isinstance(binder.domain, ir.Distribution):
            for arg in binder.domain.args:
                binders |= dict.fromkeys(ir.free_binders(arg))
    return sorted(binders, key=lambda binder: isinstance(binder.domain, ir.Distribution))


def _some(
    bound: Bound,
    evaluator: Evaluator,
    binder: ir.Binder,
    env: dict[ir.Binder, Named],
    count: int,
    extreme: np.ndarray,
) -> Named:
    """Some elements of a binder's set along an axis of their own, ``extreme`` ones among them."""
    domain = binder.domain
    if isinstance(domain, ir.Distribution):
        args = [evaluator.value(arg, env) for arg in domain.args]
        return draws.sample(bound, binder, args, count, 0)
    ids = elements.ids(bound, domain)
    places = np.linspace(0, len(ids) - 1, count).astype(np.int64)
    evenly_spaced = ids[np.unique(places)]
    chosen = np.union1d(evenly_spaced, np.intersect1d(extreme, ids))
    return Named(torch.from_numpy(np.ascontiguousarray(chosen)), (new_axis(),))


def _rows_of_extreme_ids(bound: Bound, call: ir.NetCall, binder: ir.Binder) -> np.ndarray:
    """The rows with the least and the largest whole numbers of a net's inputs.

    An embedding that has vectors for these numbers has vectors for all of them.
    """
    rows = []
    for expr, declared in zip(call.inputs, bound.problem.nets[call.net].inputs, strict=True):
        if not declared.whole or not isinstance(expr, ir.Column) or expr.binder is not binder:
            continue
        assert isinstance(binder.domain, ir.RowSet) and expr.name is not None
        column = bound.tables[binder.domain.table].columns[expr.name]
        if drawn(column):
            continue
        numbers = np.asarray(column).reshape(len(column), -1)
        if numbers.size:
            rows.append(int(numbers.min(1).argmin()))
            rows.append(int(numbers.max(1).argmax()))
    return np.array(rows, dtype=np.int64)


def _first_point(bound: Bound, call: ir.NetCall) -> dict[str, torch.Tensor]:
    """The variables that the inputs depend on: nets as they are bound, others zero."""
    names = {name for expr in call.inputs for name in ir.variables_of(expr)}
    point = {}
    for name in names:
        variable = bound.problem.variables[name]
        if variable.net is None:
            shape = elements.shape(bound, variable.shape)
            point[name] = torch.zeros(shape, dtype=torch.float64)
        else:
            parameters = bound.nets[variable.net].parameters()
            weights = [parameter.detach().double().reshape(-1) for parameter in parameters]
            point[name] = torch.cat(weights).cpu()
    return point
