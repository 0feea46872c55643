"""F0508, F0510, F0528: which columns and which rows of a source are meant."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.data.bind.errors.words import columns_of, cut
from fccomodel.data.sources import RawTable
from fccomodel.data.sources.errors import COLUMN, NO_ROWS

AMBIGUOUS = Code("F0528", "ambiguous columns")


# -------------------------------------------------------------------------------------------------------------------- rows
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


# ----------------------------------------------------------------------------------------------------------------- columns
def no_column(what: str, name: str, raw: RawTable) -> Diagnostic:
    """A column that an entry names is in the data."""
    return COLUMN.error(
        f"{what}: {raw.called} has no column {name}",
        reason=columns_of(raw),
        fix=did_you_mean(name, raw.names) or "name one of its columns",
    )


def no_column_of_name(table: str, name: str, raw: RawTable) -> Diagnostic:
    """A column without an entry has its own name in the data."""
    near = did_you_mean(name, raw.names)
    return COLUMN.error(
        f"{table}.{name}: {raw.called} has no column {name}",
        reason=f"{columns_of(raw)}; a column that the binding file does not mention is the one of the same name",
        fix=f'{near} Write in a binding file: [{table}]  {name} = {{ column = "..." }}'.strip(),
    )


def no_column_of_numbers(what: str, source: str) -> Diagnostic:
    """``"*"`` finds columns."""
    return COLUMN.error(f'{what}: "*" finds no column of numbers in {source} that no other entry uses', fix="list the columns")


def vector(table: str, name: str, shape: ir.Shape, raw: RawTable, numbers: Sequence[str], source: str) -> Diagnostic:
    """The columns of a vector are named; ``numbers`` may be meant, ``source`` is what an entry says before them."""
    several = f'{name} = {{ columns = "*" }}' if numbers and len(shape) == 1 else f'{name} = {{ column = "..." }}'
    others = f"; it has {len(numbers)} other columns of numbers: {cut(numbers, 6)}" if numbers else ""
    scalar = f"; its column {name} holds one number per row" if name in raw.numeric else ""
    return AMBIGUOUS.error(
        f"{table}.{name} is a vector ({', '.join(map(str, shape))}), and {raw.called} does not say which columns make it",
        reason=f"there is no column {name} with vectors, and no columns {name}1, {name}2, ..{scalar}{others}. Nothing is guessed",
        fix=f"write in a binding file: [{table}]  {source}{several}",
    )


def numbers_left_out(what: str, first: str, last: str, source: str, lacking: int) -> Diagnostic:
    """Numbered columns that make a vector have no gap."""
    return AMBIGUOUS.error(
        f"{what}: the columns {first} .. {last} of {source} leave out number {lacking}",
        reason="numbered columns make a vector when they run from 0 or 1 without a gap",
        fix=f"name the columns in a binding file: {what.partition('.')[2]} = {{ columns = [...] }}",
    )


def array(name: str, source: str, column: str) -> Diagnostic:
    """The column of an array is named."""
    fix = f'[{name}] source = "{source}"  column = "{column}"'
    return AMBIGUOUS.error(f"{name}: {source} does not say which of its columns it is", fix=fix)
