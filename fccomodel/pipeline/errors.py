"""F0712: a start that does not fit the problem."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core.diagnostics import Diagnostic, did_you_mean
from fccomodel.core.errors import START
from fccomodel.core.source import Span


def start_of_no_variable(name: str, known: Sequence[str]) -> Diagnostic:
    """A start names something that is not a variable of the model."""
    return START.error(
        f"The start has a value for `{name}`, which is no variable of the model",
        reason=f"Its variables are {', '.join(f'`{one}`' for one in known)}.",
        fix=did_you_mean(name, known),
    )


def start_of_shape(name: str, given: tuple[int, ...], declared: tuple[int, ...], span: Span) -> Diagnostic:
    """A start has another shape than its variable."""
    return START.error(
        f"The start has `{name}` with shape {given}, and the model asks for {declared}", span=span
    )


def start_of_no_numbers(name: str, error: Exception, span: Span) -> Diagnostic:
    """A start is not an array of numbers, nor a mapping from labels to numbers."""
    if error.args:
        reason = error.args[0]
    else:
        reason = type(error).__name__
    return START.error(f"The start has a `{name}` that is no array of numbers: {reason}", span=span)


def start_not_finite(name: str, span: Span) -> Diagnostic:
    """A start has an infinite entry or NaN."""
    return START.error(f"The start has a `{name}` that is not finite", span=span)


def one_first_point() -> Diagnostic:
    """Nets begin at their initialisation, and variables with numbers after `start` at these."""
    return START.error(
        "`starts` would run from one point several times",
        reason="Every variable has its first value: numbers after `start`, or the initialisation of a net.",
        fix="Write a distribution, `start normal(0, 1)`, or solve with several seeds.",
    )


def several_starts_beside(other: str) -> Diagnostic:
    """Runs from several first points are no single run that could be kept or shared."""
    return START.error(
        f"`starts` and {other} exclude each other",
        reason="Several runs are made, one after the other, and the best answer is kept.",
        fix="Leave one of them out.",
    )
