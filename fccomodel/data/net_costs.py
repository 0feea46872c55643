"""The cost of a pass of a net over all rows, as counted work, which is equal on every machine."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir
from fccomodel.core.work import Rates, priced
from fccomodel.data import draw_counts
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn as is_drawn

if TYPE_CHECKING:
    import torch

#: Multiply-adds of one pass of the nets over all rows, or other work that takes as long, above which
#: passes are thrifty: few of them, in the precision of the steps, in small blocks.
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
#: Multiply-adds of a layer that take the time of one number of pointwise work.
PRODUCTS_OF_A_NUMBER = 16
#: Rows that a net sees at once in a thrifty pass: its intermediate values fit a processor's cache.
THRIFTY_ROWS = 256

#: The price of operations by their multiply-adds alone.
PRODUCTS = Rates(call=0.0, byte=0.0, product=1.0, curved=0.0, moved=0.0, drawn=0.0, ordered=0.0, narrow=1.0)
#: The price of operations without their multiply-adds, and without what each call costs.
POINTWISE = Rates(call=0.0, product=0.0)
#: Numbers of rows whose prices tell that of one row more.
COMPARED_ROWS = (8, 16)

_known: weakref.WeakKeyDictionary[Bound, float] = weakref.WeakKeyDictionary()
_weights: weakref.WeakKeyDictionary[Bound, dict[str, int]] = weakref.WeakKeyDictionary()


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
    """Multiply-adds of one pass of the nets over all rows that they are applied to, and other work in
    multiply-adds that take as long."""
    if bound not in _known:
        _known[bound] = sum(_of_net(bound, name) for name in bound.nets)
    return _known[bound]


def numbers_of_a_draw(bound: Bound, binder: ir.Binder, body: ir.Expr, own: int) -> int:
    """Numbers that each draw of a binder costs in ``body``: its ``own`` entries, or what the nets that see
    it work on, for one element of the other binders."""
    seen_by = {
        node.net
        for node in ir.walk(body)
        if isinstance(node, ir.NetCall) and any(binder in ir.free_binders(one) for one in node.inputs)
    }
    return max([own, *(numbers_of_a_row(bound, name) for name in seen_by)])


def numbers_of_a_row(bound: Bound, name: str) -> int:
    """Numbers that one evaluation of a net for one row works on; products inside layers count less."""
    known = _weights.setdefault(bound, {})
    if name not in known:
        module = bound.nets[name]
        shapes = input_shapes(bound, name)
        weights = (*module.parameters(), *module.buffers())
        numbers = sum(map(math.prod, shapes)) + sum(p.shape[0] for p in weights if p.dim())
        products = multiply_adds(module, rows_of(bound, name)) / PRODUCTS_OF_A_NUMBER
        known[name] = max(1, math.ceil(max(numbers, products)))
    return known[name]


def input_shapes(bound: Bound, name: str) -> list[tuple[int, ...]]:
    """The shape of each input of a net, for one row."""
    return [
        tuple(size if isinstance(size, int) else bound.dims[size] for size in declared.shape)
        for declared in bound.problem.nets[name].inputs
    ]


def rows_of(bound: Bound, name: str, count: int = 1) -> list[torch.Tensor]:
    """Inputs of zeros for a net, in the types that its module takes: what it costs does not depend on
    them."""
    import torch

    module = bound.nets[name]
    first = next((p for p in (*module.parameters(), *module.buffers()) if p.is_floating_point()), None)
    real = torch.float32 if first is None else first.dtype
    return [
        torch.zeros((count, *shape), dtype=torch.int64 if declared.whole else real)
        for declared, shape in zip(bound.problem.nets[name].inputs, input_shapes(bound, name), strict=True)
    ]


def part_of(part: Bound, whole: Bound) -> Bound:
    """The problem on some of its rows, whose passes are as thrifty as those over all rows."""
    _known[part] = pass_cost(whole)
    return part


def _of_net(bound: Bound, name: str) -> float:
    """Multiply-adds of one pass of one net."""
    rows = evaluations(bound, name)
    module = bound.nets[name]
    return _fetches(bound, name) + _of_rows(bound, name, rows, module)


def _fetches(bound: Bound, name: str) -> float:
    """The time to fetch all rows that a net is applied to, if they are drawn, as multiply-adds."""
    columns = {
        (child.binder.domain.table, child.name)
        for node in bound.problem.expressions(ir.NetCall)
        if node.net == name
        for child in node.children
        if isinstance(child, ir.Column) and isinstance(child.binder.domain, ir.RowSet)
    }
    seconds = 0.0
    for table, column in columns:
        values: Any = bound.tables[table].columns[str(column)]
        if is_drawn(values):
            seconds += bound.tables[table].n * values.source.seconds
    return seconds / Rates().product


def _of_rows(bound: Bound, name: str, rows: int, module: torch.nn.Module) -> float:
    """Multiply-adds of a net for this many rows, with its other work as in ``pass_cost``."""
    weights = (*module.parameters(), *module.buffers())
    if rows * USES_OF_A_WEIGHT * sum(p.numel() for p in weights) <= THRIFTY_PASS:
        return 0.0
    products = multiply_adds(module, rows_of(bound, name))
    return rows * (products + _pointwise(bound, name, module) / Rates().product)


def _pointwise(bound: Bound, name: str, module: torch.nn.Module) -> float:
    """Counted seconds of a net for one more row beside its products: most of them in a small transformer."""
    few, more = (_priced(module, rows_of(bound, name, count), POINTWISE) for count in COMPARED_ROWS)
    return max(more - few, 0.0) / (COMPARED_ROWS[1] - COMPARED_ROWS[0])


def evaluations(bound: Bound, name: str) -> int:
    """Inputs that a net is applied to in one pass: a column counts once, however often it is used."""
    inputs: dict[object, int] = {}
    for node in bound.problem.expressions(ir.NetCall):
        if node.net != name:
            continue
        key: object = id(node)
        if node.column is not None and isinstance(node.column.binder.domain, ir.RowSet):
            key = node.column.binder.domain.table, node.columns
        inputs[key] = _elements(bound, node)
    return sum(inputs.values())


def _elements(bound: Bound, node: ir.NetCall) -> int:
    """Combinations of rows and draws that the input of one call depends on."""
    binders = list(dict.fromkeys(b for one in node.inputs for b in ir.free_binders(one)))
    tables = [b.domain.table for b in binders if isinstance(b.domain, ir.RowSet)]
    rows = math.prod(bound.tables[table].n for table in tables)
    random_binders = [b for b in binders if isinstance(b.domain, ir.Distribution)]
    together = any(
        random_binders[0] in reduce.binders and len(reduce.binders) > 1
        for reduce in (bound.problem.expressions(ir.Reduce) if random_binders else ())
    )
    for _ in random_binders:
        around = rows * numbers_of_a_row(bound, node.net)
        rows *= draw_counts.count(bound.draws, around, rows if together else 1)
    return rows


def multiply_adds(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> float:
    """Multiply-adds of a net for the inputs of one row, in products of matrices and convolutions."""
    return _priced(module, inputs, PRODUCTS)


def _priced(module: torch.nn.Module, inputs: Sequence[torch.Tensor], rates: Rates) -> float:
    """The price of a net for some inputs."""
    import torch

    fused = torch.backends.mha.get_fastpath_enabled()  # layers of transformers as one operation
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            return priced(lambda: module(*inputs), rates)[1]
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
