"""F0104-F0107, F0114: brackets, semicolons, and the order of statements."""

from __future__ import annotations

from collections.abc import Mapping

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span
from fccomodel.language.errors.words import short

BRACKET = Code("F0104", "bracket")
SEMICOLON = Code("F0105", "semicolon")
STATEMENT = Code("F0106", "statement")
NESTING = Code("F0107", "nesting")
ORDER = Code("F0114", "order")


# ----------------------------------------------------------------------------------------- brackets
def nothing_to_close(bracket: str, span: Span) -> Diagnostic:
    """Brackets come in pairs."""
    return BRACKET.error(
        f"nothing is open that `{bracket}` could close",
        span=span,
        reason="Brackets come in pairs, and every pair here is already complete.",
        fix=f"remove this `{bracket}`, or open it where it should begin",
    )


def crossed_brackets(bracket: str, opener: str, where: str, closer: str, span: Span) -> Diagnostic:
    """Brackets close in the opposite order of opening."""
    return BRACKET.error(
        f"`{bracket}` cannot close the `{opener}` {where}",
        span=span,
        reason="Brackets close in the opposite order of opening, each by its own kind.",
        fix=f"write `{closer}` before this `{bracket}`",
    )


def never_closed(bracket: str, closer: str, span: Span) -> Diagnostic:
    """A bracket is closed within its statement."""
    return BRACKET.error(
        f"this `{bracket}` is never closed",
        span=span,
        reason="The statement ends before its bracket does.",
        fix=f"add the missing `{closer}`",
    )


def deep_brackets(limit: int, span: Span) -> Diagnostic:
    """Brackets are nested to a bounded depth."""
    return NESTING.error(
        f"more than {limit} brackets inside one another",
        span=span,
        reason=f"Brackets may stand {limit} deep.",
        fix="name the inner parts with `let` or `def`",
    )


def deep_operators(limit: int, start: int) -> Diagnostic:
    """Operators and calls are nested to a bounded depth."""
    return NESTING.error(
        f"more than {limit} levels of operators",
        span=Span(start=start, end=start + 1),
        reason=f"Operators and calls may stand inside one another {limit} deep.",
        fix="name parts of it with `let`",
    )


# --------------------------------------------------------------------------------------- semicolons
def no_semicolon(word: str, span: Span, *, last: bool = False) -> Diagnostic:
    """Every statement and every option ends in ``;``; ``last``: the file ends here."""
    return SEMICOLON.error(
        "`;` is missing after this",
        span=span,
        reason="Every statement ends in `;`, the last one too."
        if last
        else "Every statement ends in `;`, and every option.",
        fix=f"write `{short(word)};`",
    )


def heading_with_end(sign: str, span: Span) -> Diagnostic:
    """``subject to`` is a heading."""
    return SEMICOLON.error(
        f"no `{sign}` here",
        span=span,
        reason="`subject to` is a heading: the constraints follow it, and each of them ends in `;`.",
        fix=f"remove this `{sign}`",
    )


def nothing_ends(span: Span) -> Diagnostic:
    """Each ``;`` ends a statement."""
    return SEMICOLON.error(
        "nothing ends here",
        span=span,
        reason="Each `;` ends a statement, and there is none before this one.",
        fix="remove this `;`",
    )


# --------------------------------------------------------------------------------------- statements
def unknown_statement(word: str, forms: Mapping[str, str], meant: str | None, span: Span) -> Diagnostic:
    """A statement begins with one of the statement words; ``meant`` is the word that was probably meant."""
    fix = "begin the statement with one of these words"
    if meant is not None:
        fix = f"Did you mean `{meant}`?" + (
            f" It is written like `{forms[meant]}`" if forms[meant] != meant else ""
        )
    return STATEMENT.error(
        f"no statement begins with `{short(word)}`",
        span=span,
        reason="A statement begins with one of: " + ", ".join(forms) + ".",
        fix=fix,
    )


def groups(span: Span) -> Diagnostic:
    """Groups of rows are written as conditions on a column."""
    return STATEMENT.error(
        "groups of rows are not declared by a statement",
        span=span,
        reason="A group is the rows whose column has one value: a condition of an expectation.",
        fix="Declare the values, `set G;`, with a column `g: G` of the table. Write the worst group as "
        "`max[k in G] E[z ~ D | z.g == k] ...`, and a constraint for each group as "
        "`fair[k in G]: E[z ~ D | z.g == k] ... <= 0.1`",
    )


def early_constraint(span: Span) -> Diagnostic:
    """Constraints come after their heading."""
    return ORDER.error(
        "a constraint before `subject to`",
        span=span,
        reason="Constraints come after the heading `subject to` (or `s.t.`), which comes after the "
        "objective.",
        fix="write `subject to` on a line of its own before the first constraint",
    )


def model_not_first(start: int) -> Diagnostic:
    """``model`` is the first statement, once."""
    return ORDER.error(
        "`model` is not the first statement",
        span=Span(start=start, end=start + len("model")),
        reason="The name of a model is its first statement, and it has one name.",
        fix="move it to the top, or remove it",
    )


def options_not_last(start: int) -> Diagnostic:
    """``options`` is the last statement, once."""
    return ORDER.error(
        "`options` is not the last statement",
        span=Span(start=start, end=start + len("options")),
        reason="Options come last, and once, so that they can be taken away without touching the problem.",
        fix="move it to the end",
    )
