"""F0511 - F0515: values that a column of the model cannot have."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.data.bind.errors.words import listed, map_entry, texts
from fccomodel.data.sources.errors import SHAPE

MISSING = Code("F0511", "missing values")
NOT_NUMBERS = Code("F0512", "not numbers")
DOMAIN = Code("F0513", "outside the domain")
MAP = Code("F0514", "map")


# ----------------------------------------------------------------------------------- missing values
def missing(
    what: str, columns: Sequence[tuple[str, str]], row: str, *, values: int, infinite: bool
) -> Diagnostic:
    """No value is missing or infinite.

    ``columns``  their names with what they lack, in words; the first one lacks it in ``row``, and
                 ``values`` in all
    ``infinite``  some of these are infinite
    """
    name, lacks = columns[0]
    if not name.isidentifier():
        label = f"`{name}`"
    else:
        label = name
    drop, where = 'missing = "drop" or ', f"{label}.notna()"
    if infinite:
        drop, where = "", f"-1e300 < {label} < 1e300"
    reason = f"the first is in {row} of {name} (rows count from 0); nothing is filled in silently"
    message = f"{what}: column {name} has {lacks} value{'s' * (values > 1)}"
    if len(columns) > 1:
        shown = [f"{column} ({lack})" for column, lack in columns[:8]] + ["..."] * (len(columns) > 8)
        message, reason = (
            f"{what}: {len(columns)} columns have missing or infinite values",
            f"{', '.join(shown)}; {reason}",
        )
    fix = f'leave such rows out with {drop}where = "{where}", or leave such columns out, or mend the data'
    return MISSING.error(message, reason=reason, fix=fix)


# -------------------------------------------------------------------------------------- not numbers
def unusable(what: str, name: str, source: str, why: str) -> Diagnostic:
    """A column holds numbers or text."""
    return NOT_NUMBERS.error(
        f"{what}: column {name} of {source} cannot be used", reason=why, fix="convert or leave out the column"
    )


def text(what: str, name: str, values: Sequence[str], domain: Sequence[float]) -> Diagnostic:
    """A number comes from a column of numbers; ``domain`` are the numbers it may have."""
    if len(domain) == len(values):
        targets = [f"{value:g}" for value in domain]
    elif len(values) == 2:
        targets = ["0", "1"]
    else:
        targets = []
    targets += ["..."] * (min(len(values), 3) - len(targets))
    return NOT_NUMBERS.error(
        f"{what}: column {name} is text",
        reason=f"it holds {texts(values)}; {what} is a number",
        fix=map_entry(what, name, list(zip(values[: max(3, len(domain))], targets, strict=False))),
    )


def labels_lose_digits(what: str, name: str, value: float) -> Diagnostic:
    """Labels that are whole numbers are told apart by all of their digits."""
    return NOT_NUMBERS.error(
        f"{what}: labels in column {name} are too large for float64",
        reason=f"it holds {value:.0f}; from 2^53 on, different whole numbers become one float64, and rows "
        "of different groups one group",
        fix="give the column as text, or as integers of at most 64 bits without missing values",
    )


def texts_of_vector(what: str, names: Sequence[str], values: Sequence[str]) -> Diagnostic:
    """Columns of a vector are numbers, unless texts are encoded; ``values`` are those of the first."""
    return NOT_NUMBERS.error(
        f"{what}: {listed(names)} {'are' if len(names) > 1 else 'is'} text",
        reason=f"{names[0]} holds {texts(values)}; text becomes numbers by one-hot columns only",
        fix='add encode = "onehot" to the entry, or leave the text columns out',
    )


def no_longer_numbers(what: str, name: str, others: Sequence[str]) -> Diagnostic:
    """A column of new rows has numbers if the rows of the model had; ``others`` are its other texts."""
    return NOT_NUMBERS.error(
        f"{what}: column {name} is text",
        reason=f"it holds {texts(others)}; the rows that the model was solved on have numbers there",
        fix='give numbers, or name texts that stand for a missing value: na = ["?"] in the binding',
    )


def array_of_type(name: str, origin: str, dtype: object) -> Diagnostic:
    """An array holds numbers."""
    return NOT_NUMBERS.error(f"{name}: {origin} holds {dtype}, not numbers", fix="give an array of numbers")


def values_of_array(name: str) -> Diagnostic:
    """The values of a mapping are numbers."""
    return NOT_NUMBERS.error(
        f"{name}: its values are not all numbers", fix=f"{name} = {{ a = 1.0, b = 2.0 }}"
    )


def column_of_array(name: str, column: str, source: str) -> Diagnostic:
    """The column of an array holds numbers."""
    return NOT_NUMBERS.error(
        f"{name}: column {column} of {source} is not numbers", fix="name a column of numbers"
    )


# --------------------------------------------------------------------------------- maps and domains
def not_in_map(
    what: str, name: str, unnamed: Sequence[str], values: Sequence[str], keys: Sequence[str]
) -> Diagnostic:
    """A map names every value of its column."""
    return MAP.error(
        f"{what}: map does not say what {texts(unnamed)} in column {name} "
        f"stand{'s' if len(unnamed) == 1 else ''} for",
        reason=f"the column holds {texts(values)}; map names {texts(keys)}; keys are compared as text",
        fix="add the missing values to map, or leave their rows out with where",
    )


def outside(what: str, expected: str, values: Sequence[tuple[float, int]], row: str, fix: str) -> Diagnostic:
    """A column's values are in its domain; ``values`` are those that are not with how often they
    occur, the first in ``row``."""
    shown = ", ".join(f"{value:g} ({count} time{'s' * (count > 1)})" for value, count in values[:4])
    if len(values) > 4:
        more = f" and {len(values) - 4} other values"
    else:
        more = ""
    return DOMAIN.error(
        f"{what} must be {expected}; the data have {shown}{more}",
        reason=f"the first is in {row} (counted from 0)",
        fix=fix,
    )


def not_symmetric(what: str, skew: float) -> Diagnostic:
    """A matrix that is declared positive semidefinite is symmetric."""
    return DOMAIN.error(
        f"{what} must be symmetric, since it is declared in psd; two entries differ by {skew:.3g}",
        fix=f"give ({what} + {what}') / 2, or leave `in psd` out",
    )


def not_definite(what: str, least: float) -> Diagnostic:
    """A matrix that is declared positive semidefinite has no negative eigenvalue."""
    return DOMAIN.error(
        f"{what} must be positive semidefinite; its least eigenvalue is {least:.3g}",
        fix="mend the data, or leave `in psd` out: then the model is judged by the matrix as it is",
    )


# ------------------------------------------------------------------------------------------- shapes
def vector_for_number(what: str, name: str, shape: tuple[int, ...]) -> Diagnostic:
    """A number per row comes from a column of numbers."""
    return SHAPE.error(
        f"{what} is one number per row, and column {name} holds {shape}",
        fix=f"declare it as real[{', '.join(map(str, shape))}]",
    )


def vector_for_label(what: str, name: str, shape: tuple[int, ...]) -> Diagnostic:
    """A label per row comes from a column of one value per row."""
    return SHAPE.error(
        f"{what} is one label per row, and column {name} holds {shape}", fix="name another column"
    )


def axes_of_column(what: str, declared: int, name: str, actual: int) -> Diagnostic:
    """A column of matrices has the declared axes."""
    return SHAPE.error(
        f"{what} has {declared} axes per row, and column {name} has {actual}", fix="reshape the data"
    )


def axes_of_rows(what: str, name: str, shape: tuple[int, ...], declared: int) -> Diagnostic:
    """Columns together have the declared axes."""
    return SHAPE.error(
        f"{what} has shape {shape} per row, declared with {declared} axes",
        fix=f"declare {name}: real[{', '.join(map(str, shape))}], or bind one column with such arrays",
    )


def axes_of_array(name: str, shape: tuple[int, ...], declared: int) -> Diagnostic:
    """An array has the declared axes."""
    return SHAPE.error(
        f"{name} has shape {shape}, declared with {declared} axes", fix="give an array of the declared shape"
    )


def vector_of_labels(what: str, name: str) -> Diagnostic:
    """A row has one label in each column."""
    return SHAPE.error(
        f"{what} is a vector of labels",
        reason="a row has one label in each column",
        fix=f"declare {name} without a shape",
    )


def array_of_labels(name: str) -> Diagnostic:
    """Arrays hold numbers."""
    return SHAPE.error(
        f"{name} is an array of labels", reason="arrays hold numbers", fix="put the labels in a table"
    )
