"""Orders of rows in which groups and ranges are runs, and the texts by which prepared files name them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class RunOrder:
    """Elements sorted so that keys and an ordered quantity select a contiguous run.

    rows      ids sorted by group, then by the ordered quantity
    keys      per key, the sorted distinct own values
    groups    the codes of the groups that occur, ascending; group g is rows[bounds[g] : bounds[g + 1]]
    levels    the sorted distinct values of the ordered quantity
    ranked    group * (len(levels) + 1) + level of each of ``rows``, ascending; empty without an order
    group     the group of each of ``rows``; empty if it is computed on demand
    place     the position of each id in ``rows``, or -1; empty if no id is left out
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
        """The arrays that are not empty, by name."""
        named = {name: getattr(self, name) for name in _single_arrays()}
        for k, key in enumerate(self.keys):
            named[f"key{k}"] = key
        return {name: array for name, array in named.items() if len(array)}

    def cells(self) -> np.ndarray:
        """The group of each of ``rows``."""
        if len(self.group):
            return self.group
        return np.repeat(np.arange(len(self.groups)), np.diff(self.bounds))


def _single_arrays() -> list[str]:
    """The names of an order's arrays besides its keys."""
    return [f.name for f in fields(RunOrder) if f.name != "keys"]


def decided(
    domain: ir.Set,
    static: Sequence[ir.Expr] = (),
    keys: Sequence[ir.Expr] = (),
    ordered: ir.Expr | None = None,
) -> str | None:
    """A text that decides an order of rows, or None if some part has no text.

    It names the condition of the set, further conditions, the keys and the ordered quantity, all of one
    element alone. An order whose text has no ``$`` depends on the table alone.
    """
    parts: list[tuple[str, ir.Expr]] = []
    if isinstance(domain, ir.RowSet) and domain.where is not None:
        parts.append(("where", domain.where))
    parts += [("where", condition) for condition in static]
    parts += [("by", key) for key in keys]
    if ordered is not None:
        parts.append(("along", ordered))
    clauses = []
    for word, expr in parts:
        text = _text(expr)
        if text is None:
            return None
        clauses.append(f"{word} {text}")
    return "; ".join(clauses)


def _text(node: ir.Expr) -> str | None:
    """The text of an expression about one element, the same for all binders; or None."""
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
        case ir.Apply(op=op):
            return _application(op, node)
        case ir.Item():
            return _application("item", node)
    return None


def _application(head: str, node: ir.Expr) -> str | None:
    """The text of an operation on its children, or None if one of these has none."""
    children = [_text(child) for child in node.children]
    if None in children:
        return None
    return f"{head}({', '.join(map(str, children))})"


def prepared(bound: Bound, domain: ir.Set, what: str | None) -> RunOrder | None:
    """The order with this text from prepared files, or None if there is none for these rows."""
    if not isinstance(domain, ir.RowSet) or what is None:
        return None
    table = bound.tables[domain.table]
    is_subset = table.rows is not None
    if is_subset:
        return None
    arrays = table.indices.get(what)
    if arrays is None:
        return None
    return _order(arrays)


def _order(arrays: Mapping[str, np.ndarray]) -> RunOrder:
    """An order from its arrays by name."""
    key_count = sum(name.startswith("key") for name in arrays)
    keys = tuple(arrays[f"key{k}"] for k in range(key_count))
    others = {name: np.asarray(arrays.get(name, NONE)) for name in _single_arrays()}
    return RunOrder(keys=keys, **others)
