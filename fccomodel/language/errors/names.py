"""F02: the meaning of names, and their visibility."""

from __future__ import annotations

from collections.abc import Collection

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote, listed

UNKNOWN_NAME = Code("F0201", "unknown name")
TOO_EARLY = Code("F0202", "used before declared")
DECLARED_TWICE = Code("F0203", "declared twice")
NAME_IN_USE = Code("F0204", "name in use")
TAKEN_NAME = Code("F0205", "taken name")
UNKNOWN_COLUMN = Code("F0208", "unknown column")
OUT_OF_SCOPE = Code("F0211", "out of scope")
LABEL_TWICE = Code("F0212", "label used twice")
INCLUDE = Code("F0213", "include")


# ------------------------------------------------------------------------------------ unknown names
def unknown(name: str, span: Span, visible: Collection[str]) -> Diagnostic:
    """A name in a formula is declared above it."""
    fix = f"Declare `{name}` before this statement, for instance `param {name} default 1;`."
    return _unknown("name", name, span, visible, fix)


def unknown_set(name: str, span: Span, sets: Collection[str]) -> Diagnostic:
    """A set that an index ranges over is declared above it."""
    fix = f"Declare it before this statement, for instance `set {name} = {{z in D | ...}};`."
    return _unknown("set", name, span, sets, fix)


def _unknown(what: str, name: str, span: Span, visible: Collection[str], fix: str) -> Diagnostic:
    hint = did_you_mean(name, visible)
    if visible:
        reason = f"The names visible here are {listed(visible)}."
    else:
        reason = "No name is visible here."
    return UNKNOWN_NAME.error(
        f"{what} `{name}` is not declared", span=span, reason="" if hint else reason, fix=hint or fix
    )


def column_without_row(name: str, span: Span, table: str, row: str, *, what: str = "name") -> Diagnostic:
    """A column is read at a row."""
    return UNKNOWN_NAME.error(
        f"{what} `{name}` is not declared",
        span=span,
        reason=f"`{name}` is a column of `{table}`, and a column is read at a row.",
        fix=f"Write `{row}.{name}`.",
    )


def unknown_size(name: str, span: Span, sizes: Collection[str]) -> Diagnostic:
    """A size is a dim or a set that is declared above it."""
    if sizes:
        reason = f"The dims and sets declared so far are {listed(sizes)}."
    else:
        reason = "No dim or set is declared so far."
    return UNKNOWN_NAME.error(
        f"size `{name}` is not declared",
        span=span,
        reason=reason,
        fix=did_you_mean(name, sizes) or f"Declare `dim {name};` before this statement.",
    )


def label_without_quotes(name: str, span: Span) -> Diagnostic:
    """A label among the members of a set is written in quotes."""
    return UNKNOWN_NAME.error(
        f"name `{name}` is not declared",
        span=span,
        reason="Labels are written in quotes.",
        fix=f'Write `"{name}"`.',
    )


def unknown_column(table: str, name: str, columns: Collection[str], line: str, span: Span) -> Diagnostic:
    """A row has the columns that its table declares."""
    return UNKNOWN_COLUMN.error(
        f"table `{table}` has no column `{name}`",
        span=span,
        reason=f"Its columns, declared on line {line}, are {listed(columns)}.",
        fix=did_you_mean(name, columns) or f"Add `{name}: real` to `data {table} : table(...)`.",
    )


# ------------------------------------------------------------------------- names in the wrong place
def too_early(name: str, line: str, span: Span) -> Diagnostic:
    """Names are declared before use."""
    return TOO_EARLY.error(
        f"`{name}` is used before it is declared",
        span=span,
        reason=f"Names are declared before use, and `{name}` comes on line {line}.",
        fix=f"Move the declaration of `{name}` above this statement.",
    )


def uses_itself(name: str, span: Span) -> Diagnostic:
    """Only a ``let`` family is made of its own members."""
    return TOO_EARLY.error(
        f"`{name}` uses itself",
        span=span,
        reason="A name is visible after its own statement.",
        fix="Write the value without the name; a recursion is a family, "
        "`let x[t in 1 .. 10] = if t == 1 then ... else ... x[t - 1] ...;`.",
    )


def use_each_other(name: str, other: str, members: str, span: Span) -> Diagnostic:
    """Two names whose values use each other have no order; families are one recursion of a vector.

    members  the indices of the family of ``name``, as written; "" if it is no family
    """
    if members:
        t = members.split()[0]
        fix = (
            f"Write one recursion of a vector, `let both[{members}] = if {t} == 1 then [..., ...] else "
            f"[..., ...];`, with `both[{t} - 1][1]` for `{name}[{t} - 1]` and `both[{t} - 1][2]` for "
            f"`{other}[{t} - 1]`."
        )
    else:
        fix = f"Write the value of `{name}` without `{other}`."
    return TOO_EARLY.error(
        f"`{name}` and `{other}` use each other",
        span=span,
        reason="A name is visible after its own statement, so neither of the two can come first.",
        fix=fix,
    )


def not_bound_here(name: str, binder: Quote, span: Span) -> Diagnostic:
    """A binder is visible in the body of its own reduction alone."""
    return OUT_OF_SCOPE.error(
        f"`{name}` is not bound here",
        span=span,
        reason=f"{binder} on line {binder.line} binds it in the body of its own reduction,"
        " which is one product: `E[z ~ D] a + b` is `(E[z ~ D] a) + b`.",
        fix="Put the whole body in parentheses: `E[z ~ D] (a + b)`.",
    )


# ----------------------------------------------------------------------------- names that are taken
def declared_twice(name: str, what: str, line: str, span: Span) -> Diagnostic:
    """One name means one thing."""
    return DECLARED_TWICE.error(
        f"`{name}` is declared a second time",
        span=span,
        reason=f"It is already {what}, declared on line {line}; one name means one thing.",
        fix=f"Rename one of the two, for instance `{name}2`.",
    )


def parameter_twice(function: str, parameter: str, span: Span) -> Diagnostic:
    """One name means one argument of a ``def``."""
    return DECLARED_TWICE.error(
        f"`{function}` has two parameters `{parameter}`",
        span=span,
        reason="One name means one argument.",
        fix="Rename one.",
    )


def column_twice(column: str, span: Span) -> Diagnostic:
    """One name means one column of a table."""
    return DECLARED_TWICE.error(
        f"column `{column}` is declared a second time",
        span=span,
        reason="One name means one column.",
        fix="Rename one.",
    )


def taken(name: str, what: str, span: Span, fix: str) -> Diagnostic:
    """A binder may not reuse a visible name."""
    return NAME_IN_USE.error(
        f"the name `{name}` is taken",
        span=span,
        reason=f"`{name}` is {what}; a binder may not reuse a visible name.",
        fix=fix,
    )


def taken_by_binder(name: str, what: str, span: Span, free_name: str) -> Diagnostic:
    """A binder may not reuse a visible name; ``free_name`` may stand instead."""
    return taken(name, what, span, f"Take another letter, for instance `{free_name}`, here and in the body.")


def taken_by_subscript(name: str, span: Span) -> Diagnostic:
    """``mean_i`` inside a reduction over ``i``."""
    return taken(
        name, "bound around this place", span, "Declare another index over the same set, and use it here."
    )


def another_index(name: str, declared: Quote, span: Span) -> Diagnostic:
    """A binder with the name of a declared index ranges over the set of that index."""
    return NAME_IN_USE.error(
        f"`{name}` is declared as another index",
        span=span,
        reason=f"Line {declared.line} declares {declared}; a binder may not reuse a visible name.",
        fix="Take another letter, here and in the body.",
    )


def function_of_the_language(name: str, span: Span) -> Diagnostic:
    """An atom's name keeps its meaning."""
    return TAKEN_NAME.error(
        f"`{name}` is a function of the language",
        span=span,
        reason="A model that gave it another meaning would mislead its readers.",
        fix=f"Rename it, for instance `my_{name}`.",
    )


def label_twice(label: str, line: str, span: Span) -> Diagnostic:
    """Multipliers and reports are listed by label."""
    return LABEL_TWICE.error(
        f"the label `{label}` is used a second time",
        span=span,
        reason=f"Line {line} has it already; multipliers and reports are listed by label.",
        fix=f"Rename one, for instance `{label}2`.",
    )


# -------------------------------------------------------------------------------------- other files
def includes_itself(path: str, span: Span) -> Diagnostic:
    """Files do not include one another in a circle."""
    return INCLUDE.error(
        f'"{path}" includes itself',
        span=span,
        reason="A file may not be included by a file that it includes.",
        fix="Leave one of the two out.",
    )


def included_twice(path: str, span: Span) -> Diagnostic:
    """A file is included once."""
    return INCLUDE.error(
        f'"{path}" is included a second time',
        span=span,
        reason="Its names would be declared twice.",
        fix="Leave this line out.",
    )


def not_included(cause: Diagnostic, span: Span) -> Diagnostic:
    """An included file can be read; ``cause`` says why this one cannot."""
    return INCLUDE.error(
        cause.message,
        span=span,
        reason=cause.reason or "The path is relative to the file that includes it.",
        fix=cause.fix or "Correct the path.",
    )
