"""Checking: the syntax of a model becomes a typed problem, or every error in it at once."""

from __future__ import annotations

from pathlib import Path

from fccomodel.core import ir, process
from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import Source, Span
from fccomodel.language import errors, syntax
from fccomodel.language.check import (
    constraints,
    functions,
    groups,
    include,
    index_sets,
    lint,
    numbers,
    tables,
    variables,
)
from fccomodel.language.formulas.context import Context

#: Python frames that the deepest model needs; the parser bounds the depth of a formula.
FRAMES = 40_000

#: Levels of a formula with its lets and definitions written out; later stages walk down them.
MAX_LEVELS = 220

DECLARE = {
    syntax.DimDecl: index_sets.dim,
    syntax.SetDecl: index_sets.set_,
    syntax.IndexDecl: index_sets.index,
    syntax.DataDecl: tables.data,
    syntax.ParamDecl: numbers.param,
    syntax.ConstDecl: numbers.const,
    syntax.NetDecl: variables.net,
    syntax.VarDecl: variables.var,
    syntax.DefDecl: functions.def_,
    syntax.LetDecl: functions.let,
}


def check(model: syntax.Model, source: Source) -> ir.Problem:
    """The typed problem that a model states; raises FccoError with every error found."""
    statements, source = include.expand(model.statements, source)
    ctx = Context(source=source)
    try:
        with process.frames(FRAMES):
            problem = _check(ctx, statements)
    except RecursionError:
        if ctx.statement is not None:
            span = ctx.statement.span
        else:
            span = Span(start=0, end=0)
        ctx.report(errors.problem.statement_too_deep(span))
        problem = None
    if problem is not None:
        _bounded(ctx, problem)
    if problem is None or ctx.errors:
        raise FccoError(_ordered(ctx.errors), source)
    return groups.leave_out(problem)


def _bounded(ctx: Context, problem: ir.Problem) -> None:
    """An error for each formula that lets and definitions make deeper than ``MAX_LEVELS``."""
    levels: dict[int, int] = {}
    for formula in problem.roots:
        for node in ir.walk(formula):
            if isinstance(node, ir.LetRef):
                inner = (*node.children, node.let.body)
            else:
                inner = node.children
            levels[id(node)] = 1 + max((levels[id(child)] for child in inner), default=0)
        if levels[id(formula)] > MAX_LEVELS:
            ctx.report(errors.problem.formula_too_deep(levels[id(formula)], MAX_LEVELS, formula.span))


def _check(ctx: Context, statements: tuple[syntax.Statement, ...]) -> ir.Problem | None:
    if ctx.source.name.endswith(".fcco"):
        name = Path(ctx.source.name).stem
    else:
        name = "model"
    for statement in statements:
        for declared in names_of(statement):
            ctx.later.setdefault(declared, statement.span)
    objectives: list[syntax.Objective] = []
    objective: ir.Objective | None = None
    relations: list[ir.Constraint] = []
    options: dict[str, object] = {}
    labels: dict[str, Span] = {
        s.label: s.span for s in statements if isinstance(s, syntax.Objective) and s.label is not None
    }
    reserved = {s.label for s in statements if isinstance(s, syntax.Constraint) and s.label is not None}
    number = 0
    for statement in statements:
        ctx.statement = statement
        match statement:
            case syntax.ModelDecl():
                name = statement.name
            case syntax.Objective():
                objectives.append(statement)
                if len(objectives) > 1:
                    _second_objective(ctx, objectives[0], statement)
                candidate = constraints.objective(ctx, statement)
                objective = objective or candidate
            case syntax.Constraint():
                label, number = constraints.label_of(ctx, statement, labels, number, reserved)
                relations.extend(constraints.constraint(ctx, statement, label))
            case syntax.Options():
                constraints.options(ctx, statement, options)
            case syntax.SubjectTo() | syntax.Include():
                pass
            case _:
                DECLARE[type(statement)](ctx, statement)  # type: ignore[operator]
    ctx.statement = None
    if not objectives:
        _no_objective(ctx, statements)
    elif not any(isinstance(s, syntax.VarDecl) for s in statements):
        ctx.report(errors.problem.no_variables(objectives[0].span))
    lint.unused(ctx, statements)
    if objective is None:
        return None
    return ir.Problem(
        name=name,
        source=ctx.source,
        objective=objective,
        constraints=tuple(relations),
        dims=tuple(ctx.dims),
        sets=ctx.sets,
        tables=ctx.tables,
        arrays=ctx.arrays,
        params=ctx.params,
        nets=ctx.nets,
        variables=ctx.variables,
        lets=ctx.lets,
        options=options,
        warnings=tuple(_ordered(ctx.diagnostics)),
    )


def _no_objective(ctx: Context, statements: tuple[syntax.Statement, ...]) -> None:
    if statements:
        end = statements[-1].span
    else:
        end = Span(start=0, end=0)
    ctx.report(errors.problem.no_objective(end.end))


def _second_objective(ctx: Context, first: syntax.Objective, second: syntax.Objective) -> None:
    word = Span(start=second.span.start, end=second.span.start + len(second.sense))
    ctx.report(errors.problem.two_objectives(ctx.line(first.span), word))


def names_of(statement: syntax.Statement) -> tuple[str, ...]:
    """The names that a statement declares."""
    match statement:
        case syntax.DimDecl():
            return statement.names
        case syntax.IndexDecl():
            return tuple(b.name for b in statement.binders)
        case syntax.ModelDecl():
            return ()
    name = getattr(statement, "name", None)
    if isinstance(name, str):
        return (name,)
    return ()


def _ordered(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Errors first, each kind in the order of the text."""
    return sorted(diagnostics, key=lambda d: (d.severity != "error", d.span.start if d.span else 0))


__all__ = ["check"]
