"""Groups and orders of a problem's tables, computed in advance for prepared files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import indices, members, realising, selections
from fccomodel.evaluation.sets.selections import Selection

#: Bytes of one number of a row.
INT64_BYTES = 8


def orders(bound: Bound) -> Iterator[tuple[str, str, Mapping[str, np.ndarray]]]:
    """(table, text that decides an order, arrays of the order by name) for the orders that conditions use.

    Orders that depend on params, and those of families of tables, are left out. Only one order is in
    memory at a time.
    """
    for (table, text), parts in _by_order(bound).items():
        depends_on_params = "$" in text
        in_family = bound.problem.tables[table].family is not None
        if depends_on_params or in_family:
            continue
        order = realising.order_of(bound, parts[0])
        excluding = [part for part in parts if part.excludes]
        if excluding:
            order = replace(order, place=realising.places(bound, excluding[0], order.rows))
        if parts[0].keys:
            order = replace(order, group=order.cells())
        yield table, text, order.arrays()


def held(bound: Bound, table: str) -> int:
    """An upper bound, in bytes, of the groups and orders of a table's rows that no file has."""
    arrays = 0
    for (name, text), parts in _by_order(bound).items():
        first = parts[0]
        if name != table or indices.prepared(bound, first.binder.domain, text) is not None:
            continue
        arrays += 1  # the rows in order
        if first.keys:
            arrays += 1  # the group of each row
        if first.orders:
            arrays += 1  # the rank of each row
        if any(part.excludes for part in parts):
            arrays += 1  # the place of each row
    return INT64_BYTES * bound.tables[table].n * arrays


def _by_order(bound: Bound) -> dict[tuple[str, str], list[Selection]]:
    """The selections of rows, by table and by the text that decides their order."""
    by_order: dict[tuple[str, str], list[Selection]] = {}
    for part in _parts(bound.problem):
        domain = part.binder.domain
        text = realising.decided_by(part)
        if isinstance(domain, ir.RowSet) and text is not None:
            by_order.setdefault((domain.table, text), []).append(part)
    return by_order


def _parts(problem: ir.Problem) -> Iterator[Selection]:
    """The selections of all binders: with all conditions, with those about one binder alone, and without."""
    for node in problem.expressions():
        if isinstance(node, ir.Reduce):
            yield from _of_binders(node.binders, node.condition)
        elif isinstance(node, ir.Exists):
            yield from _of_binders((node.binder,), node.condition)
    for family in problem.constraints:
        yield from _of_binders(family.binders, family.condition)


def _of_binders(binders: tuple[ir.Binder, ...], condition: ir.Expr | None) -> Iterator[Selection]:
    """The selections of binders that a condition joins, each in its variants."""
    for part in selections.split(binders, condition):
        yield from _variants(part)


def _variants(part: Selection) -> Iterator[Selection]:
    """The selection with all conditions, with those about its binder alone, and without any."""
    yield part
    yield members.alone(part)
    yield Selection(binder=part.binder)
    domain = part.binder.domain
    if isinstance(domain, ir.RowSet) and domain.where is not None:
        whole_table = ir.RowSet(name=domain.table, table=domain.table)
        yield Selection(binder=replace(part.binder, domain=whole_table))
