"""Groups and orders of a problem's tables, computed in advance for prepared files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import indices, members, selections
from fccomodel.evaluation.sets.selections import Selection


def orders(bound: Bound) -> Iterator[tuple[str, str, Mapping[str, np.ndarray]]]:
    """(table, text that decides an order, arrays of the order by name) for the orders that conditions use.

    Orders that depend on params, and those of families of tables, are left out. Only one order is in
    memory at a time.
    """
    for (table, what), parts in _asked(bound).items():
        if "$" in what or bound.problem.tables[table].family is not None:
            continue
        order = selections.order_of(bound, parts[0])
        if leaving := [part for part in parts if part.excludes]:
            order = replace(order, place=selections.places(bound, leaving[0], order.rows))
        if parts[0].keys:
            order = replace(order, group=order.cells())
        yield table, what, order.arrays()


def held(bound: Bound, table: str) -> int:
    """An upper bound, in bytes, of the groups and orders of a table's rows that no file has."""
    kept = {what: parts for (name, what), parts in _asked(bound).items() if name == table}
    lacking = [
        parts for what, parts in kept.items() if indices.prepared(bound, parts[0].binder.domain, what) is None
    ]
    arrays = [1 + bool(of[0].keys) + bool(of[0].orders) + any(part.excludes for part in of) for of in lacking]
    return 8 * bound.tables[table].n * sum(arrays)


def _asked(bound: Bound) -> dict[tuple[str, str], list[Selection]]:
    """The selections of rows, by table and by the text that decides their order."""
    asked: dict[tuple[str, str], list[Selection]] = {}
    for part in _parts(bound.problem):
        domain, what = part.binder.domain, selections.decided_by(part)
        if isinstance(domain, ir.RowSet) and what is not None:
            asked.setdefault((domain.table, what), []).append(part)
    return asked


def _parts(problem: ir.Problem) -> Iterator[Selection]:
    """The selections of all binders: with all conditions, with those about one binder alone, and without."""
    for node in problem.expressions():
        if isinstance(node, ir.Reduce | ir.Exists):
            if isinstance(node, ir.Reduce):
                binders = node.binders
            else:
                binders = (node.binder,)
            for part in selections.split(binders, node.condition):
                yield from _variants(part)
    for family in problem.constraints:
        for part in selections.split(family.binders, family.condition):
            yield from _variants(part)


def _variants(part: Selection) -> Iterator[Selection]:
    """The selection with all conditions, with those about its binder alone, and without any."""
    yield from (part, members.alone(part), Selection(binder=part.binder))
    domain = part.binder.domain
    if isinstance(domain, ir.RowSet) and domain.where is not None:
        yield Selection(binder=replace(part.binder, domain=ir.RowSet(name=domain.table, table=domain.table)))
