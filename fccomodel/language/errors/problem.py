"""F0401, F0402, F0422, F0423, F0431-F0433, F0435, F0436: the objective, the constraints, and the model
as a whole."""

from __future__ import annotations

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote
from fccomodel.library.atoms import Interval

NO_OBJECTIVE = Code("F0401", "no objective")
TWO_OBJECTIVES = Code("F0402", "two objectives")
TOO_LARGE = Code("F0422", "too large")
INFEASIBLE = Code("F0423", "infeasible")
NO_LABEL = Code("F0431", "no label")
UNUSED = Code("F0432", "unused")
UNUSED_VARIABLE = Code("F0433", "unused variable")
BOUND_AS_CONSTRAINT = Code("F0435", "bound as constraint")
NO_VARIABLE = Code("F0436", "no variable")

_UNUSED = {
    "a variable": "Use it in the objective or in a constraint, or leave it out.",
    "a table": "Draw from it, `E[z ~ {0}] ...`, or leave it out.",
    "a param": "Leave it out.",
    "a `let`": "Leave it out, use it, or have its value reported: --show {0}.",
}


# ---------------------------------------------------------------------------------------- objective
def no_objective(end: int) -> Diagnostic:
    """A model has an objective, which is minimised or maximised."""
    return NO_OBJECTIVE.error(
        "the model has no objective",
        span=Span(start=end, end=end),
        reason="A model says what is minimised or maximised.",
        fix="Add `minimize loss: E[z ~ D] ...;` after the declarations.",
    )


def two_objectives(line: str, span: Span) -> Diagnostic:
    """A model has one objective."""
    return TWO_OBJECTIVES.error(
        "a second objective",
        span=span,
        reason=f"Line {line} states one already; a model has one.",
        fix="Add the two with weights, or make one of them a constraint.",
    )


def constant_objective(span: Span) -> Diagnostic:
    """An objective depends on a variable; otherwise every point is a solution."""
    return NO_VARIABLE.warning(
        "the objective depends on no variable",
        span=span,
        reason="Every point is a solution.",
        fix="Use the variables in it, for instance a loss of `dot(w, z.x)`.",
    )


def no_variables(span: Span) -> Diagnostic:
    """A model declares a variable."""
    return NO_VARIABLE.error(
        "the model has no variable",
        span=span,
        reason="A model declares what is to be decided: without it there is nothing to solve.",
        fix="Declare one before the objective: `var w[d];`, or `var x;`.",
    )


# -------------------------------------------------------------------------------------- constraints
def infeasible(relation: Quote, lies: Interval, op: str) -> Diagnostic:
    """Some point can satisfy a constraint ``left op right``.

    lies  the interval of left minus right, for ``>=`` and ``>>`` of right minus left; for ``<<`` and ``>>``
          of the largest eigenvalue of that difference
    """
    difference, expected = "left minus its right side", "<= 0"
    if op == "==":
        expected = "0"
    elif op in (">=", ">>"):
        difference = "right minus its left side"
    if op in ("<<", ">>"):
        difference = f"difference, {difference}, has a largest eigenvalue that"
    return INFEASIBLE.error(
        f"{relation} can never hold",
        span=relation.span,
        reason=f"Its {difference} lies in {lies}, and must be {expected}.",
        fix="Turn the comparison round, or correct the bound.",
    )


def constant_constraint(label: str, span: Span) -> Diagnostic:
    """A constraint without a variable holds everywhere or nowhere."""
    return NO_VARIABLE.warning(
        f"constraint `{label}` depends on no variable",
        span=span,
        reason="It holds everywhere or nowhere.",
        fix="Leave it out, or use the variables in it.",
    )


def bound_as_constraint(relation: Quote, declared: str) -> Diagnostic:
    """A bound on one variable belongs in its declaration; ``declared`` is the variable with the bound."""
    return BOUND_AS_CONSTRAINT.warning(
        f"{relation} is a bound on one variable",
        span=relation.span,
        reason="A bound that is declared belongs to the variable's domain: it is no row of the report "
        "and has no multiplier.",
        fix=f"Declare it: `var {declared};`.",
    )


def no_label(relation: Quote, label: str) -> Diagnostic:
    """A constraint that has no label is given one."""
    return NO_LABEL.warning(
        f"this constraint has no label and is called `{label}`",
        span=relation.span,
        reason="Its value and multiplier are reported under its label.",
        fix=f"Write `name: {relation.text}`.",
    )


# --------------------------------------------------------------------------------------------- size
def statement_too_deep(span: Span) -> Diagnostic:
    """Definitions inside definitions are inlined."""
    return TOO_LARGE.error(
        "this statement is nested too deeply",
        span=span,
        reason="Definitions inside definitions are inlined.",
        fix="Name a part of it with `let`.",
    )


def definitions_too_deep(limit: int, span: Span) -> Diagnostic:
    """Definitions call definitions to a bounded depth."""
    return TOO_LARGE.error(
        f"definitions call each other more than {limit} deep", span=span, fix="Name a part of it with `let`."
    )


def formula_too_deep(levels: int, limit: int, span: Span) -> Diagnostic:
    """A formula with its lets and definitions written out has a bounded depth."""
    return TOO_LARGE.error(
        f"this formula has {levels:,} levels, more than {limit}",
        span=span,
        reason="Lets and definitions inside one another count as the formulas that they stand for.",
        fix="Write a long recursion as a sum or a product over a set.",
    )


def model_too_large(limit: int, span: Span) -> Diagnostic:
    """A model with its definitions inlined has a bounded size."""
    return TOO_LARGE.error(
        f"the model grows beyond {limit:,} expressions when its definitions are inlined",
        span=span,
        reason="A `def` is copied to each of its calls, so definitions that call each other twice double "
        "at every step.",
        fix="Name the shared quantity once with `let`.",
    )


# ------------------------------------------------------------------------------------- unused names
def unused(name: str, what: str, span: Span) -> Diagnostic:
    """A declared name is used in the model."""
    if what in ("a variable", "the parameters of a net"):
        code = UNUSED_VARIABLE
    else:
        code = UNUSED
    return code.warning(
        f"`{name}` is {what} that nothing uses",
        span=span,
        reason="A variable without use is left where it starts." if what == "a variable" else "",
        fix=_UNUSED.get(what, "Leave it out, or use it.").format(name),
        unused=name,
    )
