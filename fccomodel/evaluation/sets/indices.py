"""Rows in an order in which groups and ranges are runs; what decides an order as a text, which
prepared files are found by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Order:
    """Elements sorted so that keys and an ordered quantity select a contiguous run.

    rows      ids sorted by group, then by the ordered quantity
    keys      per key, the sorted distinct own values
    groups    the codes of the groups that occur, ascending; group g is rows[bounds[g] : bounds[g + 1]]
    levels    the sorted distinct values of the ordered quantity
    ranked    group * (len(levels) + 1) + level of each of ``rows``, ascending; none where nothing is ordered
    group     the group of each of ``rows``; none where it is made when it is asked for
    place     where each id stands in ``rows``, -1 where it does not; none where no id is left out
    """

    rows: np.ndarray
    keys: tuple[np.ndarray, ...] = ()
    groups: np.ndarray
    bounds: np.ndarray
    levels: np.ndarray = field(default_factory=NONE.copy)
    ranked: np.ndarray = field(default_factory=NONE.copy)
    group: np.ndarray = field(default_factory=NONE.copy)
    place: np.ndarray = field(default_factory=NONE.copy)

    def arrays(self) -> dict[str, np.ndarray]:
        """Its arrays by name, those that are not empty."""
        named = {f.name: getattr(self, f.name) for f in fields(Order) if f.name != "keys"}
        named |= {f"key{k}": key for k, key in enumerate(self.keys)}
        return {name: array for name, array in named.items() if len(array)}

    def cells(self) -> np.ndarray:
        """The group of each of ``rows``."""
        if len(self.group):
            return self.group
        return np.repeat(np.arange(len(self.groups)), np.diff(self.bounds))


def decided(
    domain: ir.Set,
    static: Sequence[ir.Expr] = (),
    keys: Sequence[ir.Expr] = (),
    ordered: ir.Expr | None = None,
) -> str | None:
    """What decides an order, as a text: the rows' condition and the conditions, keys and quantity of
    an element, all about it alone; None where some part has no text. Those without ``$`` follow
    from the table alone."""
    if isinstance(domain, ir.RowSet) and domain.where is not None:
        where = [domain.where]
    else:
        where = []
    parts = [*where, *static, *keys, *([] if ordered is None else [ordered])]
    texts = list(map(_text, parts))
    if None in texts:
        return None
    kinds = ["where"] * (len(where) + len(static)) + ["by"] * len(keys) + ["along"]
    return "; ".join(f"{kind} {text}" for kind, text in zip(kinds, texts, strict=False))


def _text(node: ir.Expr) -> str | None:
    """An expression about one element: the same for all binders."""
    match node:
        case ir.Const(value=value) if not node.shape:
            return repr(value)
        case ir.Label(text=text):
            return json.dumps(text)
        case ir.Column(name=str(name)):
            return f"row.{name}"
        case ir.Element():
            return "row"
        case ir.Param(name=name):
            return f"${name}"
    inner = [_text(child) for child in node.children]
    if not isinstance(node, ir.Apply | ir.Item) or None in inner:
        return None
    return f"{node.op if isinstance(node, ir.Apply) else 'item'}({', '.join(map(str, inner))})"


def prepared(bound: Bound, domain: ir.Set, what: str | None) -> Order | None:
    """An order that is in files; None where there is none for these rows."""
    if not isinstance(domain, ir.RowSet) or what is None or bound.tables[domain.table].rows is not None:
        return None
    arrays = bound.tables[domain.table].indices.get(what)
    if arrays is None:
        return None
    return _order(arrays)


def _order(arrays: Mapping[str, np.ndarray]) -> Order:
    """An order by its arrays' names."""
    keys = tuple(
        arrays[name] for name in sorted((n for n in arrays if n.startswith("key")), key=lambda n: int(n[3:]))
    )
    return Order(
        keys=keys, **{f.name: np.asarray(arrays.get(f.name, NONE)) for f in fields(Order) if f.name != "keys"}
    )
