"""What a pass of a net over all rows costs, counted: the same number on every machine."""

from __future__ import annotations

import weakref

import torch

from fccomodel.core import ir
from fccomodel.data.bound import Bound

#: multiply-adds of one pass of the nets over all rows, from which on passes are thrifty: in the
#: precision of the steps, in small blocks, and few of them
DEAR = 1e9
#: multiply-adds of a pass from which on looks between stages are at a sample of the rows, and those of a
#: pass over the sample
TOO_DEAR = 1e10
OF_A_LOOK = 5e9
#: a layer uses each of its weights at no more places of one input than this, as a first guess
PLACES = 1000
#: rows that a net sees at once in a thrifty pass: what they become fits a processor's cache
BLOCK = 256

_known: weakref.WeakKeyDictionary[Bound, float] = weakref.WeakKeyDictionary()


def dear(bound: Bound | None) -> bool:
    """Whether a pass of a model's nets over all rows takes a noticeable part of a second."""
    return bound is not None and bool(bound.nets) and pass_cost(bound) > DEAR


def looked_at(bound: Bound | None) -> float:
    """The share of the rows that looks between stages are at."""
    if bound is None or not bound.nets or pass_cost(bound) <= TOO_DEAR:
        return 1.0
    return OF_A_LOOK / pass_cost(bound)


def pass_cost(bound: Bound) -> float:
    """Multiply-adds of one pass of the nets over all rows that they are applied to."""
    if bound not in _known:
        _known[bound] = sum(_of_net(bound, name) for name in bound.nets)
    return _known[bound]


def part_of(part: Bound, whole: Bound) -> Bound:
    """Some of the rows of a problem, which are taken as all of them are: thriftily or not."""
    _known[part] = pass_cost(whole)
    return part


def _of_net(bound: Bound, name: str) -> float:
    """Those of one net."""
    columns = {
        (node.arg.binder.domain.table, node.arg.name)
        for node in ir.walk(*bound.problem.roots)
        if isinstance(node, ir.NetCall)
        and node.net == name
        and isinstance(node.arg, ir.Column)
        and isinstance(node.arg.binder.domain, ir.RowSet)
    }
    rows = sum(bound.tables[table].n for table, _ in columns)
    module = bound.nets[name]
    if rows * PLACES * sum(p.numel() for p in module.parameters()) <= DEAR:
        return 0.0
    declared = bound.problem.nets[name].input
    shape = tuple(size if isinstance(size, int) else bound.dims[size] for size in declared)
    return rows * multiply_adds(module, shape)


def multiply_adds(module: torch.nn.Module, shape: tuple[int, ...]) -> float:
    """Multiply-adds of a net for one input of a shape."""
    from torch.utils.flop_counter import FlopCounterMode

    first = next(module.parameters())
    row = torch.zeros((1, *shape), dtype=first.dtype, device=first.device)
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        module(row)
    return counter.get_total_flops() / 2
