"""F0811: rows that cannot be held out or sampled. F0806: a folder that cannot take prepared tables."""

from __future__ import annotations

from pathlib import Path

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.errors import OUTPUT

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
