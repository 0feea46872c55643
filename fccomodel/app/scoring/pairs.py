"""Scores of pairs of rows: of one table, or of two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app.scoring import errors, rows, scoring
from fccomodel.app.scoring.rows import Quantity
from fccomodel.app.scoring.scoring import Fitted
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError, quoting, refuse
from fccomodel.core.source import NOWHERE
from fccomodel.data.bound import BoundTable
from fccomodel.evaluation.interpret import evaluate
from fccomodel.language import syntax
from fccomodel.language.check import check
from fccomodel.language.rewriting import replaced, walk
from fccomodel.language.statements.define import DefDecl
from fccomodel.language.statements.let import LetDecl

#: The names of the two rows at which a definition is taken; no text of a model can have them.
ROWS = ("first'", "second'")


@dataclass(frozen=True, eq=False, kw_only=True)
class PairScore:
    """A formula of two rows in its model: the quantity of the first row, and that of the second."""

    first: Quantity
    second: Quantity


def pair(compiled: pipeline.Compiled, name: str) -> PairScore:
    """The quantity of two rows that a definition stands for. F0814 if it is not clear which rows."""
    defined = rows.definitions(compiled)
    if name not in defined:
        refuse(errors.no_quantity(name, list(defined)))
    calls = {(call.args, tables): (call, tables) for call, tables in _calls(compiled, defined[name])}
    scores = [score for call, tables in calls.values() if (score := _at(compiled, call, tables)) is not None]
    if len(scores) != 1:
        refuse(errors.no_pairs(name, len(scores)))
    return scores[0]


def _calls(compiled: pipeline.Compiled, defined: DefDecl) -> Iterator[tuple[syntax.Call, tuple[str, ...]]]:
    """The calls of a definition at two rows in the model's text, with the tables of the rows."""
    shared = _tables(compiled, [s for s in compiled.statements if hasattr(s, "binders")])
    for statement in compiled.statements:
        tables = {**shared, **_tables(compiled, [statement])}
        for node in walk(statement):
            if not isinstance(node, syntax.Call) or node.func != defined.name:
                continue
            parts = [part for part in walk(node) if isinstance(part, syntax.Name) and part.id in tables]
            names = list(dict.fromkeys(part.id for part in sorted(parts, key=lambda part: part.span.start)))
            if len(names) == len(ROWS):
                yield _renamed(node, names), tuple(tables[name] for name in names)


def _renamed(call: syntax.Call, names: list[str]) -> syntax.Call:
    """The call with the names of ``ROWS`` for its two rows, and without places."""
    new = dict(zip(names, ROWS, strict=True))

    def change(node: syntax.Node) -> syntax.Node | None:
        """The new name of a row."""
        if isinstance(node, syntax.Name) and node.id in new:
            return syntax.Name(id=new[node.id], span=NOWHERE)
        return None

    renamed = replaced(call, change)
    assert isinstance(renamed, syntax.Call)
    return renamed


def _tables(compiled: pipeline.Compiled, statements: list[Any]) -> dict[str, str]:
    """The table of each row that the statements bind, by the row's name."""
    tables = {}
    for statement in statements:
        for node in walk(statement):
            if isinstance(node, syntax.Binder) and (table := _table(compiled.problem, node.domain)):
                tables[node.name] = table
    return tables


def _table(problem: ir.Problem, domain: syntax.Expr) -> str:
    """The table whose rows a set has; empty for other sets."""
    if isinstance(domain, syntax.SetComprehension):
        return _table(problem, domain.indexing.binders[0].domain)
    if not isinstance(domain, syntax.Name):
        return ""
    known = problem.sets.get(domain.id)
    if isinstance(known, ir.RowSet):
        return known.table
    return domain.id if domain.id in problem.tables else ""


def _at(compiled: pipeline.Compiled, call: syntax.Call, tables: tuple[str, ...]) -> PairScore | None:
    """A call at the rows of two tables, or None if it does not fit them."""
    binders = tuple(
        syntax.Binder(name=row, kind="in", domain=syntax.Name(id=table, span=NOWHERE), span=NOWHERE)
        for row, table in zip(ROWS, tables, strict=True)
    )
    name = f"{call.func}'"
    let = LetDecl(name=name, family=syntax.Indexing(binders=binders, span=NOWHERE), value=call, span=NOWHERE)
    try:
        problem = check(
            replace(compiled.model, statements=(*compiled.model.statements, let)), compiled.source
        )
    except FccoError:
        return None
    taken = problem.lets[name]
    first, second = (
        rows.demand_one_row(Quantity(name=call.func, problem=problem, row=row, expr=taken.body))
        for row in taken.binders
    )
    return PairScore(first=first, second=second)


def value(known: Fitted, wanted: PairScore, first: Any, second: Any) -> np.ndarray:
    """A quantity of each pair of rows: (rows of the first, rows of the second, *its own axes), float64.

    It is NaN for rows that the binding leaves out as incomplete. Raises F05xx if rows do not bind as
    before.
    """
    import torch

    one_table = wanted.first.table.name == wanted.second.table.name
    quantities = wanted.first, wanted.second
    columns = [quantity.columns for quantity in quantities]
    if one_table:
        columns = [tuple(dict.fromkeys((*columns[0], *columns[1])))] * 2
    parts = [
        scoring.bound_rows(known, quantity, data, names)
        for quantity, data, names in zip(quantities, (first, second), columns, strict=True)
    ]
    (left, left_read), (right, right_read) = parts
    if one_table:
        tables = [_joined(left, right)]
    else:
        tables = [left, right]
    bound = scoring.with_tables(known, wanted.first.problem, tables)
    places = {
        wanted.first.row: np.arange(left.n),
        wanted.second.row: np.arange(right.n) + (left.n if one_table else 0),
    }
    with quoting(wanted.first.problem.source), torch.no_grad():
        values = evaluate(bound, wanted.first.expr, scoring.point_of(known), places).double().numpy()
    everything = np.full((left_read, right_read, *values.shape[2:]), np.nan)
    everything[np.ix_(left.numbers, right.numbers)] = values
    return everything


def _joined(first: BoundTable, second: BoundTable) -> BoundTable:
    """The rows of both as one table."""
    columns = {name: np.concatenate([of, second.columns[name]]) for name, of in first.columns.items()}
    return BoundTable(name=first.name, n=first.n + second.n, columns=columns)
