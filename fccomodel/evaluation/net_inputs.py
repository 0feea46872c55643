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
    """Each input of a net, (n, *input) in float64, where it is first applied; None where that is nowhere,
    or cannot be computed before the nets of the model are known.

    The rows are ``count`` of each set that the inputs depend on, evenly spaced, and those with the least
    and the largest token ids.
    """
    call = next((one for one in bound.problem.expressions(ir.NetCall) if one.net == net), None)
    if call is None:
        return None
    try:
        evaluator = Evaluator(bound, _first_point(bound, call))
        env: dict[ir.Binder, Named] = {}
        for binder in _binders(call):
            extreme = _largest_ids(bound, call, binder)
            env[binder] = _some(bound, evaluator, binder, env, count, extreme)
        _, rows = evaluator.net_inputs(call, env)
    except (FccoError, KeyError):  # the data have no such rows, which another error says
        return None
    if len(rows[0]) == 0:
        return None
    return rows


def _binders(call: ir.NetCall) -> list[ir.Binder]:
    """The binders that the inputs of a call depend on, draws after what their distribution depends on."""
    found = list(dict.fromkeys(b for one in call.inputs for b in ir.free_binders(one)))
    for binder in list(found):
        if isinstance(binder.domain, ir.Distribution):
            found += [b for arg in binder.domain.args for b in ir.free_binders(arg) if b not in found]
    return sorted(found, key=lambda b: isinstance(b.domain, ir.Distribution))


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
    chosen = ids[np.unique(np.linspace(0, len(ids) - 1, count).astype(np.int64))]
    chosen = np.union1d(chosen, np.intersect1d(extreme, ids))
    return Named(torch.from_numpy(np.ascontiguousarray(chosen)), (new_axis(),))


def _largest_ids(bound: Bound, call: ir.NetCall, binder: ir.Binder) -> np.ndarray:
    """The rows with the least and the largest whole numbers that a net takes: an embedding has them all,
    or none."""
    rows = []
    for one, declared in zip(call.inputs, bound.problem.nets[call.net].inputs, strict=True):
        if not declared.whole or not isinstance(one, ir.Column) or one.binder is not binder:
            continue
        assert isinstance(binder.domain, ir.RowSet) and one.name is not None
        column = bound.tables[binder.domain.table].columns[one.name]
        if drawn(column):
            continue
        column = np.asarray(column).reshape(len(column), -1)
        if column.size:
            rows += [int(column.min(1).argmin()), int(column.max(1).argmax())]
    return np.array(rows, dtype=np.int64)


def _first_point(bound: Bound, call: ir.NetCall) -> dict[str, torch.Tensor]:
    """The variables that the inputs depend on: nets as they are bound, others zero."""
    point = {}
    for name in {name for one in call.inputs for name in ir.variables_of(one)}:
        variable = bound.problem.variables[name]
        if variable.net is None:
            point[name] = torch.zeros(elements.shape(bound, variable.shape), dtype=torch.float64)
        else:
            weights = [p.detach().double().reshape(-1) for p in bound.nets[variable.net].parameters()]
            point[name] = torch.cat(weights).cpu()
    return point
