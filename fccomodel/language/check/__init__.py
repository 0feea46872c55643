"""The checks: from the syntax of a model to a typed problem, or to all its errors at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fccomodel.core import ir, process
from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import Source, Span
from fccomodel.language import errors, statements, syntax
from fccomodel.language.check import groups, include, lint
from fccomodel.language.formulas.context import Context

#: Levels of a formula with its lets and definitions written out; later stages recurse down them.
MAX_LEVELS = 220
#: Levels of a formula of a model with recursions, whose steps stand inside one another.
MAX_LEVELS_OF_STEPS = 800


def check(model: syntax.Model, source: Source, sizes: Mapping[str, int] | None = None) -> ir.Problem:
    """The typed problem that a model states; raises FccoError with every error found.

    sizes  the sizes of some dims, as the data say them
    """
    expanded, source = include.expand(model.statements, source)
    ctx = Context(source=source, known_sizes=sizes or {})
    try:
        with process.frames():
            problem = _check(ctx, expanded)
    except RecursionError:
        if ctx.statement is not None:
            span = ctx.statement.span
        else:
            span = Span(start=0, end=0)
        ctx.report(errors.problem.statement_too_deep(span))
        problem = None
    if problem is not None:
        _check_depth(ctx, problem)
    if problem is None or ctx.errors:
        raise FccoError(_ordered(ctx.errors), source)
    return groups.leave_out(problem)


def _check_depth(ctx: Context, problem: ir.Problem) -> None:
    """Report each formula that has too many levels with its lets and definitions."""
    limit = MAX_LEVELS_OF_STEPS if ctx.recursions else MAX_LEVELS
    levels: dict[int, int] = {}
    for formula in problem.roots:
        for node in ir.walk(formula):
            if isinstance(node, ir.LetRef):
                inner = (*node.children, node.let.body)
            else:
                inner = node.children
            levels[id(node)] = 1 + max((levels[id(child)] for child in inner), default=0)
        if levels[id(formula)] > limit:
            ctx.report(errors.problem.formula_too_deep(levels[id(formula)], limit, formula.span))


def _check(ctx: Context, parsed: tuple[syntax.Statement, ...]) -> ir.Problem | None:
    """The problem that the statements state, or None if it has no objective without errors."""
    if ctx.source.name.endswith(".fcco"):
        ctx.name = Path(ctx.source.name).stem
    kinds = [statements.of(statement) for statement in parsed]
    for kind, statement in zip(kinds, parsed, strict=True):
        for declared in kind.names(statement):
            ctx.later.setdefault(declared, statement.span)
            ctx.declaring.setdefault(declared, statement)
        kind.announce(ctx, statement)
    for kind, statement in zip(kinds, parsed, strict=True):
        ctx.statement = statement
        kind.check(ctx, statement)
    ctx.statement = None
    if ctx.first_objective is None:
        if parsed:
            end = parsed[-1].span.end
        else:
            end = 0
        ctx.report(errors.problem.no_objective(end))
    elif not any(kind.name == "var" for kind in kinds):
        ctx.report(errors.problem.no_variables(ctx.first_objective.span))
    lint.unused(ctx)
    if ctx.objective is None:
        return None
    return ir.Problem(
        name=ctx.name,
        source=ctx.source,
        objective=ctx.objective,
        constraints=tuple(ctx.constraints),
        dims=tuple(ctx.dims),
        counting=frozenset(ctx.counting),
        sets=ctx.sets,
        tables=ctx.tables,
        arrays=ctx.arrays,
        params=ctx.params,
        nets=ctx.nets,
        variables=ctx.variables,
        lets=ctx.lets,
        options=ctx.options,
        warnings=tuple(_ordered(ctx.diagnostics)),
    )


def _ordered(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Errors first, each kind in the order of the text."""
    return sorted(diagnostics, key=lambda d: (d.severity != "error", d.span.start if d.span else 0))


__all__ = ["check"]
