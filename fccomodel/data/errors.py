"""F0539: rows that are drawn. F0811: rows that cannot be held out or sampled. F0806: a folder that cannot
take prepared tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.errors import OUTPUT

DRAWN = Code("F0539", "rows that are drawn")
HELD_OUT = Code("F0811", "rows as a sample")


def no_rows() -> Diagnostic:
    """A problem without rows to hold out or to sample."""
    return HELD_OUT.error(
        "The problem has no rows that it averages over",
        reason="Rows are held out, and taken as a sample, where an expectation, a sum or an extreme "
        "ranges over a table.",
    )


def entry_for_each_row(table: str, owner: str) -> Diagnostic:
    """A variable or an array with an entry per row: it says nothing of other rows."""
    return HELD_OUT.error(
        f"Rows of `{table}` are no sample: {owner} has an entry for each of them",
        reason="What is found for these rows says nothing of others.",
    )


def not_a_prepared_folder(folder: Path) -> Diagnostic:
    """A folder for prepared tables that holds something else."""
    return OUTPUT.error(
        f"{folder} is there already, and holds no prepared tables", fix="name another folder with --out"
    )


# ------------------------------------------------------------------------------ rows that are drawn
def changing_keys(name: str, row: int) -> Diagnostic:
    """A column that formulas read has one value for each row."""
    return DRAWN.error(
        f"{name} of item {row} changes from one reading to the next",
        reason="labels, groups and numbers in formulas belong to a row, so they are read once",
        fix="let the Dataset return the same value each time, or give keys=frame",
    )


def rows_of_keys(origin: str, n: int, keys: int) -> Diagnostic:
    """Keys have one row for each item."""
    return DRAWN.error(
        f"{origin} has {n:,} items, and keys has {keys:,} rows",
        fix="give keys with one row for each item, in the order of the items",
    )


def keys_of_which(tables: Sequence[str]) -> Diagnostic:
    """Keys are those of one table."""
    return DRAWN.error(
        f"keys are given, and data of {len(tables)} tables",
        fix='say whose they are: keys={"D": frame}',
    )


def transformed_shapes(name: str, step: tuple[int, ...], look: tuple[int, ...]) -> Diagnostic:
    """A net sees inputs of one shape, in steps and in looks."""
    return DRAWN.error(
        f"{name}: steps see rows of shape {step}, looks see rows of shape {look}",
        reason="transform is applied in steps, eval_transform in looks, reports and scores",
        fix=f'give eval_transform={{"{name}": f}} with an f that returns the shape of the steps',
    )


def not_drawn(name: str, why: str) -> Diagnostic:
    """A transform, keys or workers are for columns that are drawn."""
    return DRAWN.error(
        f"{name} is not drawn row by row: {why}",
        reason="a column is drawn if only nets read it, and it comes from a Dataset, a folder of images "
        "or arrays",
        fix="leave keys, transform, eval_transform and workers out, or transform the column beforehand",
    )


def scaled_rows(name: str) -> Diagnostic:
    """A column that is drawn is not read as a whole, so it has no mean."""
    return DRAWN.error(
        f"{name}: its rows are drawn, so they have no mean to be scaled by",
        fix=f'scale each row in transform={{"{name}": f}} and eval_transform={{"{name}": f}}',
    )


def joined_rows(origin: str) -> Diagnostic:
    """The members of a family are one table, whose rows have numbers of their own."""
    return DRAWN.error(
        f"the rows of {origin} are drawn, and it is one of several tables that are joined",
        fix="give one Dataset of all rows, and `family = { column = ... }` to tell its members apart",
    )


def row_not_finite(name: str, what: str, row: int) -> Diagnostic:
    """Rows that are drawn have finite values."""
    return DRAWN.error(
        f"{name}: item {row} of {what} has a value that is missing or infinite",
        fix="leave such rows out of the Dataset, or replace the value in the transform",
    )
