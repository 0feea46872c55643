"""F0304-F0306, F0311, F0314, F0316: numbers, conditions, labels, rows and sets at wrong places."""

from __future__ import annotations

from collections.abc import Iterable

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span
from fccomodel.language.errors import habits
from fccomodel.language.errors.words import Quote

NOT_A_CONDITION = Code("F0304", "not a condition")
CONDITION_AS_NUMBER = Code("F0305", "condition as number")
LABELS_AND_NUMBERS = Code("F0306", "labels and numbers")
NOT_A_ROW = Code("F0311", "not a row")
NOT_A_NUMBER = Code("F0314", "not a number")
ROW_AS_NUMBER = Code("F0316", "row as number")


# ------------------------------------------------------------------------- in the place of a number
def condition_as_number(value: Quote, place: str) -> Diagnostic:
    """A condition on variables is not a number; ``place`` is the argument that must be a number."""
    return CONDITION_AS_NUMBER.error(
        f"{value} is true or false, and {place} must be a number",
        span=value.span,
        reason="A condition on data is 1 or 0 as a number. This one depends on a variable, and would jump.",
        fix="Use a smooth rate, `sigmoid(t * u)`; in a `let` that is reported, `step(u)` is 1 for u > 0.",
    )


def condition_compared(value: Quote, span: Span) -> Diagnostic:
    """Both sides of a comparison are values, not conditions."""
    return CONDITION_AS_NUMBER.error(
        f"{value} is true or false, and a side of a comparison must be a number, a label or a row",
        span=span,
        reason="Conditions are not 0/1 numbers; they are connected by `and`, `or` and `not`.",
        fix="For conditions p and q, write `p and q or not p and not q` where both or neither must hold.",
    )


def row_as_number(value: Quote, place: str, row: str, columns: Iterable[str]) -> Diagnostic:
    """A row has columns; it is not itself a number."""
    fields = [f"`{row}.{column}`" for column in columns]
    return ROW_AS_NUMBER.error(
        f"{value} is {value.what}, and {place} must be a number",
        span=value.span,
        reason="A row has columns; it is not itself a number.",
        fix=f"Name a column: {' or '.join(fields[:3])}." if fields else "",
    )


def condition_in_brackets(condition: Quote, span: Span) -> Diagnostic:
    """Square brackets make arrays; a condition is a number by itself."""
    return CONDITION_AS_NUMBER.error(
        f"`[{condition.text}]` would be an array",
        span=span,
        reason="A condition on data is 1 or 0 as a number by itself. Square brackets make arrays.",
        fix=f"Write ({condition.text}).",
    )


def label_as_number(value: Quote, place: str) -> Diagnostic:
    """Labels can be compared, but they are not numbers."""
    return LABELS_AND_NUMBERS.error(
        f"{value} is a label, and {place} must be a number",
        span=value.span,
        reason="Labels can be compared (`z.g == k`), but they have no value.",
        fix="Use a numeric column, or declare the set's members as numbers.",
    )


def set_as_number(written: Quote) -> Diagnostic:
    """A list, a range or a comprehension occurs only after ``in`` or ``~``."""
    return NOT_A_NUMBER.error(
        f"{written} is a set, not a number",
        span=written.span,
        reason="A set stands after `in` or `~`, or in a `set` statement.",
        fix="Bind an index over it: `sum[k in {1, 2}] ...`.",
    )


def named_set_as_number(name: str, what: str, span: Span, *, table: bool) -> Diagnostic:
    """A set is used as the range of an index, not as a value."""
    fix = f"Bind an index: `mean[i in {name}] ...` iterates over it"
    return NOT_A_NUMBER.error(
        f"`{name}` is {what}, not a number",
        span=span,
        reason="A set is something that an index ranges over.",
        fix=fix + (f", `E[z ~ {name}] ...` draws from it; a column is then `z.x`." if table else "."),
    )


def member_of_family_as_number(written: Quote) -> Diagnostic:
    """``N[i]`` of a family of sets is a set."""
    return NOT_A_NUMBER.error(
        f"{written} is a set, not a number",
        span=written.span,
        fix=f"Bind an index over it: `E[z ~ {written.text}] ...`.",
    )


def distribution_as_number(name: str, call: Quote, span: Span) -> Diagnostic:
    """A distribution is used as the source of draws of a reduction, not as a value."""
    return NOT_A_NUMBER.error(
        f"`{name}` is a distribution, not a number",
        span=span,
        reason="A number is drawn from it by a reduction.",
        fix=f"Write `E[e ~ {call.text}] ...`.",
    )


def vectors_as_number(name: str, call: Quote, span: Span) -> Diagnostic:
    """A set of vectors is used as the domain of a variable, not as a value."""
    return NOT_A_NUMBER.error(
        f"`{name}` is a set of vectors, not a number", span=span, fix=f"Write `var x[d] in {call.text};`."
    )


def parameters_as_number(call: Quote, span: Span) -> Diagnostic:
    """``params(s)`` makes a net's parameters a decision variable."""
    return NOT_A_NUMBER.error(
        "`params` stands in a `var` statement only",
        span=span,
        reason="It makes a net's parameters a decision variable.",
        fix=f"Write `var w = {call.text};` and use `w`.",
    )


# --------------------------------------------------------------------------------------------- rows
def column_of_whole_table(written: Quote, table: str, column: str) -> Diagnostic:
    """A column is read at a row."""
    return NOT_A_ROW.error(
        f"{written} reads a column of the whole table",
        span=written.span,
        reason="A column is read at a row, which a reduction draws (`~`) or iterates over (`in`).",
        fix=f"Write `E[z ~ {table}] ... z.{column} ...`.",
    )


def no_columns(value: Quote, column: str, span: Span) -> Diagnostic:
    """Only a row of a table has columns."""
    habit = habits.instead(value.text, column, vector=value.what.startswith("a vector"))
    return NOT_A_ROW.error(
        f"{value} is {value.what}; it has no columns",
        span=span,
        reason="Only a row of a table, bound by `in` or `~`, has columns.",
        fix=habit or f"Bind a row, `E[z ~ D] ... z.x ...`, or write the name without `.{column}`.",
    )


# -------------------------------------------------------------------------------------- comparisons
def not_a_condition(place: str, value: Quote) -> Diagnostic:
    """A condition is true or false."""
    return NOT_A_CONDITION.error(
        f"{place} must be a condition, and {value} is {value.what}",
        span=value.span,
        reason="A condition is true or false: a comparison, or comparisons joined by `and`, `or`, `not`.",
        fix=f"Compare it: `{value.text} == 1`, `{value.text} > 0`.",
    )


def labels_ordered(op: str, span: Span) -> Diagnostic:
    """Labels have no order."""
    return LABELS_AND_NUMBERS.error(
        f"labels cannot be ordered by `{op}`",
        span=span,
        reason="Labels have no order.",
        fix="Use `==` or `!=`.",
    )


def labels_in_quotes(span: Span) -> Diagnostic:
    """Whether two labels in quotes are equal does not depend on the data."""
    return LABELS_AND_NUMBERS.error(
        "two labels in quotes are compared",
        span=span,
        reason="The answer does not depend on any data.",
        fix='Compare a column, `z.g == "a"`.',
    )


def labels_of_two_sets(left: Quote, right: Quote, sets: tuple[str, str], span: Span) -> Diagnostic:
    """Labels of two sets are never equal."""
    return LABELS_AND_NUMBERS.error(
        f"{left} and {right} are labels of different sets",
        span=span,
        reason=f"One is a label of `{sets[0]}`, the other of `{sets[1]}`; labels of two sets are never "
        "equal.",
        fix="Declare both with the same set.",
    )


def rows_ordered(op: str, span: Span) -> Diagnostic:
    """Rows have an identity and no order."""
    return LABELS_AND_NUMBERS.error(
        f"rows cannot be ordered by `{op}`",
        span=span,
        reason="Rows have an identity and no order.",
        fix="Compare a column: `j.time >= i.time`; or `j != i` to leave the row itself out.",
    )


def rows_of_two_tables(left: Quote, right: Quote, tables: tuple[str, str], span: Span) -> Diagnostic:
    """Rows of two tables are never the same row."""
    return LABELS_AND_NUMBERS.error(
        f"{left} and {right} are rows of different tables",
        span=span,
        reason=f"One is a row of `{tables[0]}`, the other of `{tables[1]}`; they are never the same row.",
        fix="Compare columns of the two.",
    )


def incomparable(
    left: Quote, right: Quote, span: Span, fix: str = "Compare things of one kind."
) -> Diagnostic:
    """A comparison has numbers, labels or rows on both sides."""
    return LABELS_AND_NUMBERS.error(
        f"{left} and {right} cannot be compared",
        span=span,
        reason=f"The left side is {left.what}, the right side {right.what}.",
        fix=fix,
    )


def label_compared_with_number(
    left: Quote, right: Quote, span: Span, label: Quote, number: float
) -> Diagnostic:
    """``z.g == 1`` of a column of labels."""
    fix = f'Write the label in quotes: `{label.text} == "{number:g}"`;'
    return incomparable(left, right, span, f"{fix} or declare the values as numbers, `{{{number:g}, ...}}`.")


def number_compared_with_label(left: Quote, right: Quote, span: Span, label: str) -> Diagnostic:
    """``z.x == "a"`` of a column of numbers."""
    fix = (
        f'Declare the column with its labels, `{{"{label}", ...}}` or a set\'s name, or compare with a '
        "number."
    )
    return incomparable(left, right, span, fix)


def row_compared_with_value(left: Quote, right: Quote, span: Span) -> Diagnostic:
    """``z == 1`` of a row."""
    return incomparable(left, right, span, "Name a column of the row: `z.x`.")


def numbers_and_labels(span: Span) -> Diagnostic:
    """The members of one set are all numbers, or all labels."""
    return LABELS_AND_NUMBERS.error(
        "a set has numbers and labels",
        span=span,
        reason="The members of one set are all numbers, or all labels in quotes.",
        fix="Put every member in quotes, or none.",
    )
