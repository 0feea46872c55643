"""Which name of an answer stands for which name of the key.

Names of tables, columns, arrays, params, nets and variables may differ. A name that both models have is
itself; of the others, those are paired that have the same type and no rival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from fccomodel.core import ir

#: Orders of a group of variables of one type that are tried.
MAX_ORDERS = 24


@dataclass(frozen=True, kw_only=True)
class NamePairing:
    """Names of the answer by names of the key, kind by kind, and what has no partner.

    columns  by the key's (table, column), the answer's column
    missing  (kind, name) of the key's names that the answer lacks
    extra    (kind, name) of the answer's names that the key lacks
    """

    tables: Mapping[str, str]
    columns: Mapping[tuple[str, str], str]
    arrays: Mapping[str, str]
    params: Mapping[str, str]
    nets: Mapping[str, str]
    variables: Mapping[str, str]
    missing: tuple[tuple[str, str], ...] = ()
    extra: tuple[tuple[str, str], ...] = ()


def correspondences(key: ir.Problem, answer: ir.Problem) -> list[NamePairing]:
    """The ways to pair the names of two problems; they differ in the order of variables of one type."""
    tables = _paired(key.tables, answer.tables, _table_type)
    columns: dict[tuple[str, str], str] = {}
    missing: list[tuple[str, str]] = []
    extra: list[tuple[str, str]] = []
    for own, other in tables.items():
        ours, theirs = key.tables[own].columns, answer.tables[other].columns
        pairs = _paired(ours, theirs, _type)
        columns |= {(own, name): partner for name, partner in pairs.items()}
        missing += [("column", f"{own}.{name}") for name in ours if name not in pairs]
        extra += [("column", f"{other}.{name}") for name in theirs if name not in pairs.values()]
    arrays = _paired(key.arrays, answer.arrays, lambda a: _type(a.type))
    params = _paired(key.params, answer.params, lambda p: len(p.shape))
    nets = _paired(key.nets, answer.nets, lambda n: (len(n.inputs), len(n.output), n.frozen))
    for kind in ("tables", "arrays", "nets"):
        pairs = {"tables": tables, "arrays": arrays, "nets": nets}[kind]
        missing += [(kind[:-1], name) for name in getattr(key, kind) if name not in pairs]
        extra += [(kind[:-1], name) for name in getattr(answer, kind) if name not in pairs.values()]
    found = []
    for variables in _orders(key, answer, nets):
        lacking = [("variable", name) for name in key.variables if name not in variables]
        beyond = [("variable", name) for name in answer.variables if name not in variables.values()]
        names = NamePairing(
            tables=tables,
            columns=columns,
            arrays=arrays,
            params=params,
            nets=nets,
            variables=variables,
            missing=(*missing, *lacking),
            extra=(*extra, *beyond),
        )
        found.append(names)
    return found


def _paired(ours: Mapping[str, Any], theirs: Mapping[str, Any], kind: Callable[[Any], Any]) -> dict[str, str]:
    """The partner of each name: the same name, or the only unpaired name of the same kind."""
    pairs = {name: name for name in ours if name in theirs}
    left = [name for name in ours if name not in pairs]
    open_names = [name for name in theirs if name not in pairs]
    for name in left:
        alike = [other for other in open_names if kind(theirs[other]) == kind(ours[name])]
        rivals = [other for other in left if kind(ours[other]) == kind(ours[name])]
        if len(alike) == 1 and len(rivals) == 1:
            pairs[name] = alike[0]
    return pairs


def _type(column: ir.ColumnType) -> tuple[Any, ...]:
    """What two columns of one type share."""
    labels = isinstance(column.domain, ir.LabelSet)
    return column.kind, len(column.shape), labels


def _table_type(table: ir.Table) -> tuple[Any, ...]:
    """What two tables of one type share."""
    return tuple(sorted(map(_type, table.columns.values()))), table.family is None


def _orders(key: ir.Problem, answer: ir.Problem, nets: Mapping[str, str]) -> Iterable[dict[str, str]]:
    """The ways to pair variables of equal type; pairs of equal names come first."""

    def kind(variable: ir.Variable, of_key: bool) -> Any:
        """What paired variables share."""
        if variable.net is None:
            return len(variable.shape)
        return nets.get(variable.net) if of_key else variable.net

    ours = {name: kind(v, True) for name, v in key.variables.items()}
    theirs = {name: kind(v, False) for name, v in answer.variables.items()}
    fixed = {name: name for name in ours if theirs.get(name, ...) == ours[name]}
    open_names = [name for name in theirs if name not in fixed.values()]
    left = [name for name in ours if name not in fixed]
    ways: list[dict[str, str]] = [fixed]
    for group in dict.fromkeys(map(str, (ours[name] for name in left))):
        members = [name for name in left if str(ours[name]) == group]
        partners = [name for name in open_names if str(theirs[name]) == group]
        count = min(len(members), len(partners))
        orders = list(permutations(partners, count))[:MAX_ORDERS]
        ways = [{**way, **dict(zip(members, order, strict=False))} for way in ways for order in orders]
    if len(fixed) > 1:
        ways += _exchanged(ways[0], ours)
    return ways[:MAX_ORDERS]


def _exchanged(way: dict[str, str], kinds: Mapping[str, Any]) -> list[dict[str, str]]:
    """The same pairs with two variables of one type exchanged, if an answer uses the names otherwise."""
    names = list(way)
    changed = []
    for k, one in enumerate(names):
        for other in names[k + 1 :]:
            if kinds[one] == kinds[other]:
                changed.append({**way, one: way[other], other: way[one]})
    return changed
