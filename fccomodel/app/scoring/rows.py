"""Quantities of a single row: the formula that a name of the model stands for, and its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fccomodel import pipeline
from fccomodel.app.scoring import errors, sums
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.source import NOWHERE
from fccomodel.language import syntax
from fccomodel.language.check import check
from fccomodel.language.rewriting import walk
from fccomodel.language.statements.define import DefDecl
from fccomodel.language.statements.let import LetDecl

#: The name of a definition that scores rows, if a model has one.
SCORE = "score"
#: The name of the row at which a definition is taken; no text of a model can have it.
ROW = "row'"


@dataclass(frozen=True, eq=False, kw_only=True)
class Quantity:
    """A formula ``expr`` of one row of a table and of the elements of ``others``, in its model."""

    name: str
    problem: ir.Problem
    row: ir.Binder
    expr: ir.Expr
    others: tuple[ir.Binder, ...] = ()

    @property
    def table(self) -> ir.Table:
        """The table of the row."""
        return self.problem.tables[_table_of(self.row)]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, in the table's order."""
        read = {
            node.name
            for node in ir.walk(self.expr)
            if isinstance(node, ir.Column) and node.binder is self.row
        }
        return tuple(name for name in self.table.columns if name in read)

    @property
    def outermost(self) -> ir.Expr:
        """The formula with the lets at its top written out."""
        expr = self.expr
        while isinstance(expr, ir.LetRef):
            expr = expr.let.body
        return expr


def quantity(
    compiled: pipeline.Compiled, name: str, *, columns: Mapping[str, str] | None = None, table: str = ""
) -> Quantity:
    """The quantity of one row that a ``def``, a ``let`` of rows, or a net of the model stands for.

    columns  the column for each parameter of a definition; else those that the model gives it
    table    the table, if several have these columns

    Raises F0814 if it is not a quantity of one row.
    """
    problem, defined = compiled.problem, definitions(compiled)
    if name in problem.lets:
        candidate = _of_let(problem, problem.lets[name])
    elif name in defined:
        candidate = _of_definition(compiled, defined[name], columns or {}, table)
    elif name in problem.nets:
        candidate = _single(
            name, [q for q in _applied(problem) if isinstance(q.expr, ir.NetCall) and q.name == name]
        )
    else:
        refuse(errors.no_quantity(name, [*defined, *problem.lets, *problem.nets]))
    return demand_one_row(candidate)


def score(compiled: pipeline.Compiled) -> Quantity:
    """The score of a row: the definition ``score``, else the model's only net or linear form of a row.

    Raises F0814 if there is none.
    """
    if SCORE in definitions(compiled) or SCORE in compiled.problem.lets:
        return quantity(compiled, SCORE)
    applied = list(_applied(compiled.problem))
    if len(applied) != 1:
        refuse(errors.no_score([q.name for q in applied], [*definitions(compiled), *compiled.problem.lets]))
    return demand_one_row(_with_additions(applied[0]))


def definitions(compiled: pipeline.Compiled) -> dict[str, DefDecl]:
    """The definitions of the model, by name."""
    return {s.name: s for s in compiled.statements if isinstance(s, DefDecl)}


def _table_of(binder: ir.Binder) -> str:
    """The table that a binder runs over; an empty text if it is none."""
    if isinstance(binder.domain, ir.RowSet):
        return binder.domain.table
    return ""


def _of_let(problem: ir.Problem, let: ir.Let) -> Quantity:
    """The quantity of a let. Raises F0814 if it is not of one row."""
    rows = [b for b in let.binders if isinstance(b.domain, ir.RowSet)]
    if problem.counting:
        refuse(errors.not_of_a_row(let.name, "the data say how many steps a recursion has", is_let=True))
    if len(rows) != 1:
        refuse(errors.not_of_a_row(let.name, f"it is a quantity of {len(rows) or 'no'} rows", is_let=True))
    others = tuple(b for b in let.binders if b is not rows[0])
    return Quantity(name=let.name, problem=problem, row=rows[0], expr=let.body, others=others)


# ---------------------------------------------------------------------------- nets and linear forms
def _applied(problem: ir.Problem) -> Iterator[Quantity]:
    """Each net and each product with a variable that is applied to a column of rows, once."""
    seen = set()
    for node in problem.expressions():
        if (parts := _of_column(node)) is None:
            continue
        name, weights, column, form = parts
        key = name, weights, _table_of(column.binder), column.name
        if _table_of(column.binder) and key not in seen:
            seen.add(key)
            yield Quantity(name=name, problem=problem, row=column.binder, expr=form)


def _with_additions(found: Quantity) -> Quantity:
    """A net or a product together with what the model adds to it, such as an intercept.

    Raises F0814 if the model adds different terms in different places, adds them to a multiple, or
    takes minus the score.
    """
    problem, taken = found.problem, _taken(found)
    if product := sums.scaled(problem, taken):
        refuse(errors.scaled_score(found.name, *product))
    if formula := sums.negated(problem, taken):
        refuse(errors.negated_score(found.name, formula))
    places = sums.additions(problem, taken)
    added = {place.text(problem): place for place in places}
    if len(added) > 1:
        refuse(errors.which_additions(found.name, sorted(added)))
    place = next(iter(added.values()), None)
    if place is None or not place.terms:
        return found
    return replace(found, row=place.row, expr=place.total())


def is_only_compared(found: Quantity) -> bool:
    """Whether the model takes a score only in differences of two rows: then 0 is no threshold for it."""
    scores = [term for _, term in sums.terms(found.outermost) if _of_column(term) is not None]
    if len(scores) != 1:
        return False
    return sums.only_compared(found.problem, _taken(replace(found, expr=scores[0])))


def _taken(found: Quantity) -> sums.Taken:
    """Which nodes are a net or a product at the same column as the one that was found."""
    own = _of_column(found.expr)
    assert own is not None
    key = own[0], own[1], _table_of(own[2].binder), own[2].name

    def at(node: ir.Expr) -> bool:
        """Whether the node is that net or product at one row."""
        parts = _of_column(node)
        return parts is not None and (parts[0], parts[1], _table_of(parts[2].binder), parts[2].name) == key

    def is_difference(node: ir.Expr) -> bool:
        """Whether the node is a product with a difference of two rows."""
        return any(_minuend(arg) is not None for arg in node.children)

    return sums.Taken(at, is_difference)


def _of_column(node: ir.Expr) -> tuple[str, str, ir.Column, ir.Expr] | None:
    """A net or a product at one column: its name, its variable, the column and the formula.

    A product with a difference of two rows is that with the first row. None for another node.
    """
    if isinstance(node, ir.NetCall) and node.params is not None and isinstance(node.inputs[0], ir.Column):
        return node.net, node.params.name, node.inputs[0], node
    if isinstance(node, ir.Apply) and node.op in ("dot", "matmul"):
        args = tuple(_minuend(arg) or arg for arg in node.args)
        variables = [a for a in args if isinstance(a, ir.Var)]
        columns = [a for a in args if isinstance(a, ir.Column)]
        if len(variables) == len(columns) == 1:
            name = f"{variables[0].name}·{columns[0].name}"
            return name, variables[0].name, columns[0], replace(node, args=args)
    return None


def _minuend(node: ir.Expr) -> ir.Column | None:
    """``p.x`` of the difference ``p.x - n.x`` of two rows of a table, or None for another node."""
    match node:
        case ir.Apply(op="sub", args=(ir.Column() as left, ir.Column() as right)):
            same = left.name == right.name and _table_of(left.binder) == _table_of(right.binder)
            if same and left.binder is not right.binder:
                return left
    return None


def _single(name: str, found: list[Quantity]) -> Quantity:
    """The only quantity. Raises F0814 if there are several, or none."""
    if len(found) != 1:
        refuse(errors.not_of_a_row(name, f"the model takes it of {len(found) or 'no'} columns"))
    return found[0]


# -------------------------------------------------------------------------------------- definitions
@dataclass(frozen=True)
class _Call:
    """A call of a definition at a row: its arguments, and the call as text.

    difference   whether the model takes it of a difference of two rows
    """

    args: tuple[syntax.Expr, ...]
    text: str
    difference: bool = False


def _of_definition(
    compiled: pipeline.Compiled, defined: DefDecl, given: Mapping[str, str], table: str
) -> Quantity:
    if unknown := [name for name in given if name not in defined.params]:
        refuse(errors.no_parameter(defined.name, unknown[0], defined.params))
    calls = sorted(_calls(compiled, defined), key=lambda call: call.text)
    if given:
        calls = [_given(defined, given)]
    tables = [
        name for name, of in compiled.problem.tables.items() if of.family is None and table in ("", name)
    ]
    quantities = {
        f"{call.text}, {name} the rows": quantity
        for call in {call.text: call for call in sorted(calls, key=lambda call: not call.difference)}.values()
        for name in tables
        if (quantity := _at(compiled, defined, call, name)) is not None
    }
    if len(quantities) != 1:
        refuse(errors.which_columns(defined.name, defined.params, list(quantities)))
    return next(iter(quantities.values()))


def _given(defined: DefDecl, given: Mapping[str, str]) -> _Call:
    """The call at given columns."""
    args = tuple(_column(given[p]) if p in given else _name(p) for p in defined.params)
    texts = [f".{given[p]}" if p in given else p for p in defined.params]
    return _Call(args, f"{defined.name}({', '.join(texts)})")


def _column(name: str) -> syntax.Expr:
    """A column of the row."""
    return syntax.Field(obj=_name(ROW), name=name, span=NOWHERE)


def _name(name: str) -> syntax.Expr:
    """A name in a formula."""
    return syntax.Name(id=name, span=NOWHERE)


def _calls(compiled: pipeline.Compiled, defined: DefDecl) -> Iterator[_Call]:
    """The calls of a definition at one row in the model's text."""
    problem = compiled.problem
    declared = {*problem.variables, *problem.params, *problem.arrays}
    for statement in compiled.statements:
        for node in walk(statement):
            if isinstance(node, syntax.Call) and node.func == defined.name:
                parts = [_argument(arg, declared) for arg in node.args]
                rows = {row for _, row, _ in parts if row}
                if len(rows) == 1:
                    text = ", ".join(text for _, _, text in parts)
                    difference = any(isinstance(arg, syntax.Binary) for arg in node.args)
                    yield _Call(tuple(arg for arg, _, _ in parts), f"{defined.name}({text})", difference)


def _argument(arg: syntax.Expr, declared: set[str]) -> tuple[syntax.Expr, str, str]:
    """An argument at ``ROW``, the name of its own row, and the argument as text.

    A difference of two rows is taken at the first of them.
    """
    match arg:
        case syntax.Binary(
            op="-",
            left=syntax.Field(obj=syntax.Name(id=row), name=column),
            right=syntax.Field(obj=syntax.Name(id=other), name=same),
        ) if row != other and column == same:
            return _column(column), row, f".{column}"
        case syntax.Field(obj=syntax.Name(id=row), name=column):
            return _column(column), row, f".{column}"
        case syntax.Name(id=name) if name in declared:
            return _name(name), "", name
        case syntax.Name(id=row):
            return _name(ROW), row, "row"
    return arg, "?", "?"


def _at(compiled: pipeline.Compiled, defined: DefDecl, call: _Call, table: str) -> Quantity | None:
    """A definition at the rows of a table, or None if it does not fit them."""
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
    definition = problem.lets[name]
    row, body = definition.binders[0], definition.body
    if call.difference and not _is_linear(body, row):
        return None
    return Quantity(name=defined.name, problem=problem, row=row, expr=body)


def _is_linear(expr: ir.Expr, row: ir.Binder) -> bool:
    """Whether a formula is linear in the row's columns; so its value at a difference is the difference."""
    match expr:
        case ir.Column(binder=binder):
            return binder is row
        case ir.Item(base=base):
            return _is_linear(base, row)
        case ir.Apply(op="add" | "sub" | "neg", args=args):
            return all(_is_linear(arg, row) for arg in args)
        case ir.Apply(op="mul" | "dot" | "matmul", args=(left, right)):
            return (_is_linear(left, row) and row not in ir.free_binders(right)) or (
                _is_linear(right, row) and row not in ir.free_binders(left)
            )
        case ir.Apply(op="div", args=(above, below)):
            return _is_linear(above, row) and row not in ir.free_binders(below)
    return False


# ------------------------------------------------------------------------------------------ one row
def demand_one_row(found: Quantity) -> Quantity:
    """The quantity. Raises F0814 if it depends on other rows, or on a variable with an entry per row."""
    problem, is_let = found.problem, found.name in found.problem.lets
    for node in ir.walk(found.expr):
        binders: tuple[ir.Binder, ...] = ()
        if isinstance(node, ir.Reduce):
            binders = node.binders
        elif isinstance(node, ir.Exists):
            binders = (node.binder,)
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
