"""F0811: rows that cannot be held out, or taken as a sample."""

from __future__ import annotations

from fccomodel.core.diagnostics import Code, Diagnostic

HELD_OUT = Code("F0811", "rows as a sample")


def no_rows() -> Diagnostic:
    """Rows are held out of tables, and sampled into them."""
    return HELD_OUT.error(
        "The problem has no rows that it averages over",
        reason="Rows are held out, and taken as a sample, where an expectation, a sum or an extreme ranges over a table.",
    )


def entry_for_each_row(table: str, owner: str) -> Diagnostic:
    """Other rows than those solved on have no variables and arrays of their own."""
    return HELD_OUT.error(
        f"Rows of `{table}` are no sample: {owner} has an entry for each of them",
        reason="What is found for these rows says nothing of others.",
    )
