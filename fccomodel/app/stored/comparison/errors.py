"""F0812, and wrong arguments of comparisons."""

from __future__ import annotations

from typing import Any

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.errors import ARGUMENT

PROCESSES = Code("F0812", "processes")


def nothing_to_compare() -> Diagnostic:
    """A comparison has no algorithms, or no seeds."""
    return ARGUMENT.error(
        "There is nothing to compare", fix="Name algorithms and seeds: --algorithms sox,sonex --seeds 5."
    )


def not_a_variant(text: str) -> Diagnostic:
    """A text does not name an algorithm with its options."""
    fix = "Write sox, or sox(gamma=0.1, inner_batch=4)."
    return ARGUMENT.error(f"`{text}` does not name an algorithm with its options", fix=fix)


def of_all_runs(name: str, text: str) -> Diagnostic:
    """An option of one algorithm must be the same for all."""
    return ARGUMENT.error(
        f"`{name}` in `{text}` is the same for all runs of a comparison",
        fix="Give it once, outside the parentheses.",
    )


def set_by_comparison(name: str, value: Any) -> Diagnostic:
    """An option is given that a comparison sets for each run."""
    instead = {
        "seed": "Name the seeds: --seeds 3, (in Python seeds=[3]).",
        "algorithm": "Name it among the algorithms.",
        "polish": "Leave it out: a finish by passes over all rows is no part of an algorithm.",
    }
    return ARGUMENT.error(
        f"A comparison sets `{name}` itself, and cannot take `{name}` = {value}", fix=instead[name]
    )


def validation_without_tuning() -> Diagnostic:
    """Rows for validation are given without tuning."""
    return ARGUMENT.error(
        "Rows for validation are given, and nothing is tuned",
        fix="Add --tune (tune=True), or leave them out.",
    )


def not_seeds(text: str) -> Diagnostic:
    """The seeds are neither a number nor a list."""
    return ARGUMENT.error(
        f"--seeds {text} is neither a number nor a list", fix="Write --seeds 5 or --seeds 0,1,7."
    )


def not_a_share(text: str | None) -> Diagnostic:
    """A share of rows is not between 0 and 1."""
    return ARGUMENT.error(
        f"--validation {text} is no share of the rows", fix="Write a number between 0 and 1."
    )


def data_not_sent(error: Exception) -> Diagnostic:
    """The data cannot be pickled for other processes."""
    return PROCESSES.error(
        f"The data cannot be sent to other processes: {error}", fix="Bind files or arrays, or use jobs = 1."
    )


def process_ended() -> Diagnostic:
    """A process of the comparison ended before its end."""
    return PROCESSES.error(
        "A process of the comparison ended by itself",
        reason="Often the memory is short.",
        fix="Use fewer processes: --jobs 1.",
    )
