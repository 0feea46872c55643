"""Quantities of a single row: which formula a name of the model stands for, and what it reads of the row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fccomodel import pipeline
from fccomodel.app import errors
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.source import NOWHERE
from fccomodel.language import syntax
from fccomodel.language.check import check
from fccomodel.language.rewriting import walk
from fccomodel.language.statements.define import DefDecl
from fccomodel.language.statements.let import LetDecl

#: The definition that scores rows, where a model has one of this name.
SCORE = "score"
#: The row of a definition that is taken by itself: a name that no text of a model can have.
ROW = "row'"


@dataclass(frozen=True, eq=False, kw_only=True)
class Quantity:
    """A formula of one row of a table, and of the elements of ``others``; ``problem`` is the model
    that it stands in."""

    name: str
    problem: ir.Problem
    row: ir.Binder
    expr: ir.Expr
    others: tuple[ir.Binder, ...] = ()

    @property
    def table(self) -> ir.Table:
        return self.problem.tables[_table_of(self.row)]

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that it reads, in the table's order."""
        read = {
            node.name
            for node in ir.walk(self.expr)
            if isinstance(node, ir.Column) and node.binder is self.row
        }
        return tuple(name for name in self.table.columns if name in read)

    @property
    def outermost(self) -> ir.Expr:
        """The formula, written out at its top."""
        expr = self.expr
        while isinstance(expr, ir.LetRef):
            expr = expr.let.body
        return expr


def quantity(
    compiled: pipeline.Compiled, name: str, *, columns: Mapping[str, str] | None = None, table: str = ""
) -> Quantity:
    """What a ``def``, a ``let`` of rows, or a net of the model is at one row; F0814 where it is no
    quantity of one row.

    A definition is taken at the columns that the model gives it, or at ``columns`` by parameter;
    ``table`` says which of several.
    """
    problem, defined = compiled.problem, _definitions(compiled)
    if name in problem.lets:
        found = _of_let(problem, problem.lets[name])
    elif name in defined:
        found = _of_definition(compiled, defined[name], columns or {}, table)
    elif name in problem.nets:
        found = _single(
            name, [q for q in _applied(problem) if isinstance(q.expr, ir.NetCall) and q.name == name]
        )
    else:
        refuse(errors.no_quantity(name, [*defined, *problem.lets, *problem.nets]))
    return _demand_one_row(found)


def score(compiled: pipeline.Compiled) -> Quantity:
    """What rows are scored by: the definition ``score``, else the model's only net or linear form of a
    row. F0814 without one."""
    if SCORE in _definitions(compiled) or SCORE in compiled.problem.lets:
        return quantity(compiled, SCORE)
    applied = list(_applied(compiled.problem))
    if len(applied) != 1:
        refuse(errors.no_score([q.name for q in applied], [*_definitions(compiled), *compiled.problem.lets]))
    return _demand_one_row(applied[0])


def _definitions(compiled: pipeline.Compiled) -> dict[str, DefDecl]:
    return {s.name: s for s in compiled.statements if isinstance(s, DefDecl)}


def _table_of(binder: ir.Binder) -> str:
    return binder.domain.table if isinstance(binder.domain, ir.RowSet) else ""


def _of_let(problem: ir.Problem, let: ir.Let) -> Quantity:
    rows = [b for b in let.binders if isinstance(b.domain, ir.RowSet)]
    if len(rows) != 1:
        refuse(errors.not_of_a_row(let.name, f"it is a quantity of {len(rows) or 'no'} rows", is_let=True))
    others = tuple(b for b in let.binders if b is not rows[0])
    return Quantity(name=let.name, problem=problem, row=rows[0], expr=let.body, others=others)


# ---------------------------------------------------------------------------- nets and linear forms
def _applied(problem: ir.Problem) -> Iterator[Quantity]:
    """Each net, and each product with a variable, that is taken of a column of rows, once."""
    seen = set()
    for node in problem.expressions():
        if (parts := _of_column(node)) is None:
            continue
        name, weights, column = parts
        key = name, weights, _table_of(column.binder), column.name
        if _table_of(column.binder) and key not in seen:
            seen.add(key)
            yield Quantity(name=name, problem=problem, row=column.binder, expr=node)


def _of_column(node: ir.Expr) -> tuple[str, str, ir.Column] | None:
    """A net's or a product's name, its variable and its column."""
    if isinstance(node, ir.NetCall) and isinstance(node.arg, ir.Column):
        return node.net, node.params.name, node.arg
    if isinstance(node, ir.Apply) and node.op in ("dot", "matmul"):
        variables = [a for a in node.args if isinstance(a, ir.Var)]
        columns = [a for a in node.args if isinstance(a, ir.Column)]
        if len(variables) == len(columns) == 1:
            return f"{variables[0].name}·{columns[0].name}", variables[0].name, columns[0]
    return None


def _single(name: str, found: list[Quantity]) -> Quantity:
    if len(found) != 1:
        refuse(errors.not_of_a_row(name, f"the model takes it of {len(found) or 'no'} columns"))
    return found[0]


# -------------------------------------------------------------------------------------- definitions
@dataclass(frozen=True)
class _Call:
    """A definition's arguments with ``row`` as the row: what stands for each parameter, and as a text."""

    args: tuple[syntax.Expr, ...]
    text: str


def _of_definition(
    compiled: pipeline.Compiled, defined: DefDecl, given: Mapping[str, str], table: str
) -> Quantity:
    if unknown := [name for name in given if name not in defined.params]:
        refuse(errors.no_parameter(defined.name, unknown[0], defined.params))
    if given:
        calls = [_given(defined, given)]
    else:
        calls = sorted(_calls(compiled, defined), key=lambda call: call.text)
    tables = [
        name for name, of in compiled.problem.tables.items() if of.family is None and table in ("", name)
    ]
    found = {
        f"{call.text}, {name} the rows": made
        for call in {call.text: call for call in calls}.values()
        for name in tables
        if (made := _at(compiled, defined, call, name)) is not None
    }
    if len(found) != 1:
        refuse(errors.which_columns(defined.name, defined.params, list(found)))
    return next(iter(found.values()))


def _given(defined: DefDecl, given: Mapping[str, str]) -> _Call:
    args = tuple(_column(given[p]) if p in given else _name(p) for p in defined.params)
    return _Call(
        args, f"{defined.name}({', '.join(f'.{given[p]}' if p in given else p for p in defined.params)})"
    )


def _column(name: str) -> syntax.Expr:
    return syntax.Field(obj=_name(ROW), name=name, span=NOWHERE)


def _name(name: str) -> syntax.Expr:
    return syntax.Name(id=name, span=NOWHERE)


def _calls(compiled: pipeline.Compiled, defined: DefDecl) -> Iterator[_Call]:
    """The ways in which the model's text takes a definition of one row."""
    problem = compiled.problem
    declared = {*problem.variables, *problem.params, *problem.arrays}
    for statement in compiled.statements:
        for node in walk(statement):
            if isinstance(node, syntax.Call) and node.func == defined.name:
                parts = [_argument(arg, declared) for arg in node.args]
                rows = {row for _, row, _ in parts if row}
                if len(rows) == 1:
                    text = ", ".join(text for _, _, text in parts)
                    yield _Call(tuple(arg for arg, _, _ in parts), f"{defined.name}({text})")


def _argument(arg: syntax.Expr, declared: set[str]) -> tuple[syntax.Expr, str, str]:
    """An argument with ``row`` as its row, the row's own name, and the argument as a text."""
    match arg:
        case syntax.Field(obj=syntax.Name(id=row), name=column):
            return _column(column), row, f".{column}"
        case syntax.Name(id=name) if name in declared:
            return _name(name), "", name
        case syntax.Name(id=row):
            return _name(ROW), row, "row"
    return arg, "?", "?"


def _at(compiled: pipeline.Compiled, defined: DefDecl, call: _Call, table: str) -> Quantity | None:
    """A definition at the rows of a table; None where it is none of them."""
    name = f"{defined.name}'"
    binder = syntax.Binder(name=ROW, kind="in", domain=_name(table), span=NOWHERE)
    value = syntax.Call(func=defined.name, args=call.args, span=NOWHERE)
    let = LetDecl(
        name=name, family=syntax.Indexing(binders=(binder,), span=NOWHERE), value=value, span=NOWHERE
    )
    model = replace(compiled.model, statements=(*compiled.model.statements, let))
    try:
        problem = check(model, compiled.source)
    except FccoError:
        return None
    made = problem.lets[name]
    return Quantity(name=defined.name, problem=problem, row=made.binders[0], expr=made.body)


# ------------------------------------------------------------------------------------------ one row
def _demand_one_row(found: Quantity) -> Quantity:
    """F0814 for what depends on more than the row: on other rows, or on a variable with an entry for
    each row."""
    problem, is_let = found.problem, found.name in found.problem.lets
    for node in ir.walk(found.expr):
        if isinstance(node, ir.Reduce):
            binders = node.binders
        elif isinstance(node, ir.Exists):
            binders = (node.binder,)
        else:
            binders = ()
        if rows := [b for b in binders if isinstance(b.domain, ir.RowSet)]:
            refuse(
                errors.not_of_a_row(
                    found.name, f"it depends on all rows of {rows[0].domain.name}", is_let=is_let
                )
            )
        if isinstance(node, ir.Var):
            entries = [
                dim
                for dim in node.shape
                if dim in problem.tables or isinstance(problem.sets.get(str(dim)), ir.RowSet)
            ]
            if entries:
                refuse(
                    errors.not_of_a_row(
                        found.name, f"`{node.name}` has an entry for each row that was solved on"
                    )
                )
    if found.table.family is not None:
        refuse(errors.not_of_a_row(found.name, f"{found.table.name} is a family of tables"))
    if not found.columns:
        refuse(errors.not_of_a_row(found.name, "it reads no column"))
    return found
