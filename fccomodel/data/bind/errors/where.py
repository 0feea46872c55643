"""F0509: conditions on rows. Each message contains the whole condition, ``text``."""

from __future__ import annotations

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.data.bind.errors.words import shortened
from fccomodel.data.sources import RawTable

WHERE = Code("F0509", "where")
EXAMPLE = "split == 'train' and age >= 18"


def _in(text: str, message: str, fix: str, reason: str = "") -> Diagnostic:
    return WHERE.error(
        f"where: {message}", reason=f"in {shortened(text)}{'; ' * bool(reason)}{reason}", fix=fix
    )


def too_long(length: int, most: int) -> Diagnostic:
    """A condition is written by a person."""
    return WHERE.error(
        f"where has {length} characters; {most} are read", fix="store the choice of rows as a column"
    )


def backquote(text: str) -> Diagnostic:
    """Backquotes come in pairs."""
    return _in(text, "a backquote is not closed", "write `column name` with one on each side")


def not_parsed(text: str, error: Exception) -> Diagnostic:
    """A condition has the syntax of ``pandas.DataFrame.query``."""
    equality = "=" in text and "==" not in text
    if equality:
        hint = "write == for equality"
    else:
        hint = f"a condition reads like: {EXAMPLE}"
    return _in(text, getattr(error, "msg", None) or "it is not a condition", hint)


def not_a_condition(text: str, part: str, *, column: bool) -> Diagnostic:
    """A condition is true or false for each row."""
    return _in(
        text, f"{part} is not a condition", f"write {part} == 1" if column else f"compare it: {part} == ..."
    )


def not_allowed(text: str, part: str) -> Diagnostic:
    """A condition uses columns only."""
    return _in(
        text,
        f"{part} is not allowed",
        f"compare columns with values: {EXAMPLE}",
        "a condition sees columns alone",
    )


def is_not_allowed(text: str) -> Diagnostic:
    """Values are compared, not objects."""
    return _in(text, "is is not allowed", "write == or !=")


def not_a_column(text: str, name: str, table: RawTable) -> Diagnostic:
    """A name in a condition is the name of a column."""
    fix = did_you_mean(name, table.names) or f"if {name} is a text, put it in quotes: '{name}'"
    return _in(text, f"{name} is not a column of {table.called}", fix)


def not_comparable(text: str, name: str, why: str) -> Diagnostic:
    """A column that is compared holds a number or a text per row."""
    return _in(text, f"column {name} cannot be compared", why or "it holds vectors")


def not_a_number(text: str, part: str) -> Diagnostic:
    """Arithmetic is of numbers."""
    return _in(text, f"{part} is text, not a number", "compare text with == or in")


def not_a_list(text: str, part: str) -> Diagnostic:
    """``in`` has a list on its right."""
    return _in(text, f"{part} is not a list", "write: column in ['a', 'b']")


def text_and_number(text: str, first: str, second: str) -> Diagnostic:
    """Text is compared with text, a number with a number."""
    message = f"{first} is text and {second} is not"
    return _in(text, message, "put a text in quotes, and leave a number without them")
