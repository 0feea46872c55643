"""``minimize risk: E[z ~ D] loss(z);``, ``maximize ...;``: the objective."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, families
from fccomodel.language.formulas.context import Context
from fccomodel.language.latex import LatexPrinter, Row
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter, labelled
from fccomodel.language.statements import Key, StatementKind, no_names
from fccomodel.library import tex


@dataclass(frozen=True, kw_only=True)
class Objective(syntax.Statement):
    """``sense`` is ``minimize`` or ``maximize``."""

    sense: str
    body: syntax.Expr
    label: str | None = None


def _read(c: list, at: Span) -> Objective:
    if c[1] is None:
        label = None
    else:
        label = str(c[1])
    sense = str(c[0]).replace("mise", "mize")
    return Objective(sense=sense, label=label, body=c[2], span=at)


def _announce(ctx: Context, node: Objective) -> None:
    if node.label is not None:
        ctx.labels[node.label] = node.span


def _check(ctx: Context, node: Objective) -> None:
    if ctx.first_objective is None:
        ctx.first_objective = node
    else:
        word = Span(start=node.span.start, end=node.span.start + len(node.sense))
        ctx.report(errors.problem.two_objectives(ctx.line(ctx.first_objective.span), word))
    objective = _objective(ctx, node)
    ctx.objective = ctx.objective or objective


def _objective(ctx: Context, node: Objective) -> ir.Objective | None:
    """The function that is minimised or maximised: a scalar without anything left to draw."""
    body = expressions.number(ctx, families.open_scope(ctx), node.body, "the objective")
    if body is None or not families.settled(ctx, body, (), "the objective"):
        return None
    if not ir.variables_of(body):
        ctx.report(errors.problem.constant_objective(node.body.span))
    return ir.Objective(sense=node.sense, expr=body, label=node.label, span=node.span)


def _keys(node: Objective) -> frozenset[Key]:
    return frozenset({("objective", "")})


def _write(writer: TextWriter, node: Objective) -> None:
    writer(node.sense, " " if node.label is None else f" {node.label}: ")
    writer.expression(node.body)


def _python(writer: PythonWriter, node: Objective, doc: str) -> str:
    return writer.method(node.sense, [labelled(node.label, writer.formula(node.body))], doc)


def _latex(printer: LatexPrinter, problem: ir.Problem) -> list[Row]:
    """The sense over the variables, the function, and its label."""
    variables = [printer.variable(variable) for variable in problem.variables.values()]
    over = r",\; ".join(filter(None, variables))
    sense = r"\min" if problem.objective.sense == "minimize" else r"\max"
    label = tex.escaped(problem.objective.label or "")
    return [(rf"{sense}_{{{over}}} \quad", printer(problem.objective.expr), label)]


objective = StatementKind(
    name="objective",
    order=130,
    node=Objective,
    forms={
        "minimize": "minimize risk: E[z ~ D] loss(z);",
        "maximize": "maximize score: E[z ~ D] gain(z);",
    },
    elsewhere={
        **dict.fromkeys(("min", "minimum"), "minimize"),
        **dict.fromkeys(("max", "maximum"), "maximize"),
    },
    token="SENSE",
    group="problem",
    rules={"objective": _read},
    announce=_announce,
    check=_check,
    names=no_names,
    keys=_keys,
    write=_write,
    python=_python,
    latex=_latex,
)
