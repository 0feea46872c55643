"""What a pass of a net over all rows costs, counted: the same number on every machine."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from fccomodel.core import ir
from fccomodel.core.work import Rates, priced
from fccomodel.data.bound import Bound

if TYPE_CHECKING:
    import torch

#: Multiply-adds of one pass of the nets over all rows above which passes are thrifty: few of them,
#: in the precision of the steps, in small blocks.
THRIFTY_PASS = 1e9
#: Multiply-adds of one pass above which looks between stages see only a sample of the rows, if the
#: budget is not in seconds.
SAMPLED_PASS = 1e10
#: Multiply-adds of a pass over such a sample.
SAMPLE_PASS = 5e9
#: The share of a budget in seconds that one pass of a look may take: a run has ten or so.
LOOK_SHARE = 0.006
#: Rows of the largest table that a look sees at least.
LEAST_LOOKED_AT = 500
#: First guess of the largest number of places of one input at which a layer uses each of its weights.
USES_OF_A_WEIGHT = 1000
#: Rows that a net sees at once in a thrifty pass: its intermediate values fit a processor's cache.
THRIFTY_ROWS = 256

#: The price of operations by their multiply-adds alone.
PRODUCTS = Rates(call=0.0, byte=0.0, product=1.0, curved=0.0, moved=0.0, drawn=0.0, ordered=0.0)

_known: weakref.WeakKeyDictionary[Bound, float] = weakref.WeakKeyDictionary()


def dear(bound: Bound | None) -> bool:
    """Whether a pass of a model's nets over all rows takes a noticeable part of a second."""
    return bound is not None and bool(bound.nets) and pass_cost(bound) > THRIFTY_PASS


def looked_at(bound: Bound | None, seconds: float | None = None) -> float:
    """The share of the rows that a look between stages evaluates.

    seconds   of the budget, None for a budget of steps or oracle calls
    """
    if bound is None or not bound.nets or not dear(bound):
        return 1.0
    cost = pass_cost(bound)
    if seconds is None:
        if cost <= SAMPLED_PASS:
            return 1.0
        return SAMPLE_PASS / cost
    least = LEAST_LOOKED_AT / max(table.n for table in bound.tables.values())
    return min(1.0, max(LOOK_SHARE * seconds / (Rates().product * cost), least))


def pass_cost(bound: Bound) -> float:
    """Multiply-adds of one pass of the nets over all rows that they are applied to."""
    if bound not in _known:
        _known[bound] = sum(_of_net(bound, name) for name in bound.nets)
    return _known[bound]


def part_of(part: Bound, whole: Bound) -> Bound:
    """The problem on some of its rows, whose passes are as thrifty as those over all rows."""
    _known[part] = pass_cost(whole)
    return part


def _of_net(bound: Bound, name: str) -> float:
    """Multiply-adds of one pass of one net."""
    columns = {
        (node.arg.binder.domain.table, node.arg.name)
        for node in bound.problem.expressions(ir.NetCall)
        if node.net == name
        and isinstance(node.arg, ir.Column)
        and isinstance(node.arg.binder.domain, ir.RowSet)
    }
    rows = sum(bound.tables[table].n for table, _ in columns)
    module = bound.nets[name]
    if rows * USES_OF_A_WEIGHT * sum(p.numel() for p in module.parameters()) <= THRIFTY_PASS:
        return 0.0
    declared = bound.problem.nets[name].input
    shape = tuple(size if isinstance(size, int) else bound.dims[size] for size in declared)
    return rows * multiply_adds(module, shape)


def multiply_adds(module: torch.nn.Module, shape: tuple[int, ...]) -> float:
    """Multiply-adds of a net for one input of a shape, in products of matrices and convolutions."""
    import torch

    first = next(module.parameters())
    row = torch.zeros((1, *shape), dtype=first.dtype, device=first.device)
    fused = torch.backends.mha.get_fastpath_enabled()  # layers of transformers as one operation
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            return priced(lambda: module(row), PRODUCTS)[1]
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
