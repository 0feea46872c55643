"""F0508, F0510, F0528, F0536: which columns and which rows of a source are meant."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.data.bind.errors.words import columns_of, cut, entry
from fccomodel.data.sources import RawTable
from fccomodel.data.sources.errors import COLUMN, NO_ROWS

#: a column's name that is to be filled in
THAT = '"..."'
AMBIGUOUS = Code("F0528", "ambiguous columns")
PREPARED = Code("F0536", "prepared otherwise")


# --------------------------------------------------------------------------------------------- rows
def no_rows(table: str, source: str) -> Diagnostic:
    """A table has rows."""
    return NO_ROWS.error(f"{table}: {source} has no rows", fix="give data with at least one row")


def no_row_satisfies(table: str, source: str, where: str) -> Diagnostic:
    """A condition leaves rows."""
    return NO_ROWS.error(
        f"{table}: no row of {source} satisfies {where}",
        fix="change where; the values must be spelled as in the data",
    )


def no_row_left(why: str, total: int) -> Diagnostic:
    """Dropping rows leaves some."""
    return NO_ROWS.error(f"{why}: none of {total} rows is left", fix="lower min_rows, or bind other data")


# ------------------------------------------------------------------------------------------ columns
def _with_blanks(name: str, raw: RawTable) -> str:
    """The column, in quotes, whose name differs from this one by blanks around it; "" if there is none."""
    alike = (column for column in raw.names if column.strip() == name.strip())
    return next((json.dumps(column, ensure_ascii=False) for column in alike), "")


def no_column(what: str, name: str, raw: RawTable) -> Diagnostic:
    """A column that an entry names is in the data."""
    fix = _with_blanks(name, raw)
    if fix:
        fix = f"write {fix}, with the blanks of its header"
    return COLUMN.error(
        f"{what}: {raw.called} has no column {name}",
        reason=columns_of(raw),
        fix=fix or did_you_mean(name, raw.names) or "name one of its columns",
    )


def no_column_of_name(table: str, name: str, raw: RawTable) -> Diagnostic:
    """A column without an entry has its own name in the data."""
    near, column = "", _with_blanks(name, raw)
    if not column:
        near, column = did_you_mean(name, raw.names), THAT
    return COLUMN.error(
        f"{table}.{name}: {raw.called} has no column {name}",
        reason=f"{columns_of(raw)}; a column that the binding file does not mention is the one of the "
        "same name",
        fix=f"{near} {entry(f'{table}.{name}', column=column)}".strip(),
    )


def no_column_of_numbers(what: str, source: str) -> Diagnostic:
    """``"*"`` finds columns."""
    return COLUMN.error(
        f'{what}: "*" finds no column of numbers in {source} that no other entry uses', fix="list the columns"
    )


def vector(
    table: str, name: str, shape: ir.Shape, raw: RawTable, numbers: Sequence[str], source: str
) -> Diagnostic:
    """The columns of a vector are named; ``numbers`` may be meant, ``source`` is what an entry says
    before them."""
    if numbers and len(shape) == 1:
        example = {"columns": '"*"'}
    else:
        example = {"column": THAT}
    if numbers:
        others = f"; it has {len(numbers)} other columns of numbers: {cut(numbers, 6)}"
    else:
        others = ""
    if name in raw.numeric:
        scalar = f"; its column {name} holds one number per row"
    else:
        scalar = ""
    return AMBIGUOUS.error(
        f"{table}.{name} is a vector ({', '.join(map(str, shape))}), and {raw.called} does not say which "
        "columns make it",
        reason=f"there is no column {name} with vectors, and no columns {name}1, {name}2, "
        f"..{scalar}{others}. Nothing is guessed",
        fix=entry(f"{table}.{name}", source, **example),
    )


def numbers_left_out(what: str, first: str, last: str, source: str, lacking: int) -> Diagnostic:
    """Numbered columns that make a vector have no gap."""
    return AMBIGUOUS.error(
        f"{what}: the columns {first} .. {last} of {source} leave out number {lacking}",
        reason="numbered columns make a vector when they run from 0 or 1 without a gap",
        fix=entry(what, columns="[...]"),
    )


def array(name: str, source: str, column: str) -> Diagnostic:
    """The column of an array is named."""
    fix = f'[{name}] source = "{source}"  column = "{column}"'
    return AMBIGUOUS.error(f"{name}: {source} does not say which of its columns it is", fix=fix)


# ---------------------------------------------------------------------------------- prepared tables
def not_in_type(what: str, dtype: str, largest: float) -> Diagnostic:
    """Numbers of a prepared vector fit its type."""
    message = f"{what} has the number {largest:.3g}, which {dtype} does not hold"
    return PREPARED.error(message, fix="prepare it with --dtype float64")


def prepared_otherwise(name: str, folder: str, key: str) -> Diagnostic:
    """A binding of a prepared table says what it was prepared with, or nothing."""
    return PREPARED.error(
        f"[{name}] {key} is not what {folder} was prepared with",
        reason="rows are left out, and columns encoded and scaled, while a table is prepared, not again "
        "when it is bound",
        fix=f"prepare it again with this binding, or leave {key} out",
    )


def encoded_otherwise(what: str, folder: str) -> Diagnostic:
    """A prepared column has the scaling and the categories of the rows that it was prepared of; an
    answer's are its own."""
    return PREPARED.error(
        f"{what} of {folder} was encoded otherwise than where the answer was found",
        reason="other rows are scaled and encoded as those solved on were",
        fix="give the rows as they were before they were prepared: --data TABLE=FILE",
    )


def rows_of_prepared(name: str, folder: str) -> Diagnostic:
    """Rows of a prepared table are held out before its columns are scaled."""
    return PREPARED.error(
        f"rows of {name} cannot be held out: {folder} is prepared",
        reason="its columns were scaled and encoded by all of its rows",
        fix="leave the rows out with `where` while preparing, and evaluate on the others afterwards",
    )


def prepared_as_another_kind(what: str, kind: str) -> Diagnostic:
    """A prepared column is of the kind that the model declares."""
    message = f"{what} was prepared as {kind}, which the model declares it not to be"
    return PREPARED.error(message, fix="prepare it with this model")
