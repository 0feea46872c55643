"""F0102, F0103, F0108, F0111, F0116-F0118: characters, strings, numbers, and the file as a whole."""

from __future__ import annotations

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span
from fccomodel.language.errors.words import short

CHARACTER = Code("F0102", "character")
STRING = Code("F0103", "string")
SIZE = Code("F0108", "size")
NUMBER = Code("F0111", "number")
NOT_TEXT = Code("F0116", "not text")
EMPTY = Code("F0117", "empty")
TOO_MANY = Code("F0118", "too many errors")

_KEYBOARD = "Models are written in the characters of a keyboard"


# ----------------------------------------------------------------------------------------- the file
def zero_byte(at: int) -> Diagnostic:
    """A model is a text file."""
    return NOT_TEXT.error(
        "a zero byte: this is no text",
        span=Span(start=at, end=at + 1),
        reason="A model is a text file in UTF-8; data are bound to it from files of their own.",
        fix="give the .fcco file here, and the table with --data NAME=FILE",
    )


def long_file(characters: int, limit: int) -> Diagnostic:
    """A model has a bounded number of characters."""
    return SIZE.error(
        f"the file has {characters:,} characters, more than {limit:,}",
        span=Span(start=limit, end=limit + 1),
        reason="A model is mathematics: its text is short, and its data are bound to it from files of "
        "their own.",
        fix="declare the numbers as `data`, and bind them with --data or a binding file",
    )


def long_statement(words: int, limit: int, span: Span) -> Diagnostic:
    """A statement has a bounded number of words."""
    return SIZE.error(
        f"this statement has {words:,} words, more than {limit:,}",
        span=span,
        reason="A model is mathematics: its text is short, and its data are bound to it from files of "
        "their own.",
        fix="write long sums as `sum[k in K] ...`, and declare lists of numbers as `data`",
    )


def no_statement(*, comments: bool) -> Diagnostic:
    """A model has statements."""
    return EMPTY.error(
        "there is no statement in this file",
        span=Span(start=0, end=0),
        reason="A model declares its data and variables, and says what to minimize."
        + " Comments say nothing." * comments,
        fix="begin with `data D : table(x: real[d], y: real);`, `var w[d];` and `minimize ...;`",
    )


def too_many_errors(limit: int) -> Diagnostic:
    """A bounded number of errors is shown."""
    return TOO_MANY.error(
        f"stopped after {limit} errors",
        reason="The rest of the file was not read, or its errors are not shown: many follow from the "
        "first ones.",
        fix="mend the first ones and try again",
    )


# --------------------------------------------------------------------------------------- characters
def string_without_end(start: int) -> Diagnostic:
    """A string ends on its line."""
    return STRING.error(
        "this string has no end",
        span=Span(start=start, end=start + 1),
        reason="A string begins and ends with a double quote on the same line.",
        fix='add the closing `"`',
    )


def name_beyond_ascii(name: str, instead: str, often: str, span: Span) -> Diagnostic:
    """Names are made of ASCII letters."""
    return CHARACTER.error(
        f"`{short(name)}` has letters beyond a to z{often}",
        span=span,
        reason="Names are made of a-z, A-Z, 0-9 and _.",
        fix=f"write `{instead}`",
    )


def percent(often: str, span: Span) -> Diagnostic:
    """``%`` does not begin a comment, and it is not an operator."""
    why = "A comment begins with `#`; there is no remainder of a division."
    return _meaningless("`%`", often, span, why, "write `#` to begin a comment")


def question_mark(often: str, span: Span) -> Diagnostic:
    """A choice is written in words."""
    why = "A choice is written in words, in round brackets."
    return _meaningless("`?`", often, span, why, "write `(if z.y == 1 then u else v)`")


def sign_of_another_language(sign: str, instead: str, often: str, span: Span) -> Diagnostic:
    """A typographic sign, or a sign of another language, is written as the sign of this language."""
    if sign.isascii():
        why = "It is a sign of other languages."
    else:
        why = f"{_KEYBOARD}."
    return _meaningless(f"`{sign if sign.isprintable() else ' '}`", often, span, why, f"write `{instead}`")


def meaningless_sign(sign: str, often: str, span: Span) -> Diagnostic:
    """A model has only characters that the language uses."""
    return _meaningless(
        f"`{sign}`",
        often,
        span,
        f"{_KEYBOARD}, and not every one has a meaning.",
        "remove it, or put it into a comment",
    )


def meaningless_characters(count: int, first: str, often: str, span: Span) -> Diagnostic:
    """Characters that cannot be printed, or several together; ``first`` is the name of the first one."""
    if count > 1:
        message = f"{count} characters that mean nothing, the first is {first}"
    else:
        message = f"{first} means nothing here"
    return CHARACTER.error(
        message + often,
        span=span,
        reason="A model is a text file in UTF-8, in the characters of a keyboard outside its comments.",
        fix="remove them" if count > 1 else "remove it",
    )


def _meaningless(sign: str, often: str, span: Span, reason: str, fix: str) -> Diagnostic:
    return CHARACTER.error(f"{sign} means nothing here{often}", span=span, reason=reason, fix=fix)


# ------------------------------------------------------------------------------------------ numbers
def point_without_digits(number: str, span: Span) -> Diagnostic:
    """A number has digits on both sides of its point."""
    return NUMBER.error(
        "a number has digits on both sides of its point",
        span=span,
        reason="So that `1..3` is a range.",
        fix=f"write `{number}`",
    )


def large_number(span: Span) -> Diagnostic:
    """A number is a float64."""
    return NUMBER.error("this number is too large", span=span, reason="Numbers are float64: at most 1.8e308.")


def underscore_in_number(number: str, span: Span) -> Diagnostic:
    """The digits of a number stand side by side; ``number`` is the number without other signs."""
    return NUMBER.error(
        "a number has no `_` between its digits",
        span=span,
        reason="Names have `_`; numbers are digits, as in 1000 or 1e3.",
        fix=f"write `{number}`",
    )


def number_or_name(number: str, name: str, span: Span) -> Diagnostic:
    """``2x`` is neither a name nor a product."""
    return NUMBER.error(
        "neither a number nor a name",
        span=span,
        reason="A name does not begin with a digit, and a product is written with `*`.",
        fix=f"write `{number} * {name}`, or another name",
    )
