"""F0438: recursions, ``let x[t in T] = ... x[t - 1] ...``."""

from __future__ import annotations

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote

RECURSION = Code("F0438", "recursion")


def without_family(name: str, span: Span) -> Diagnostic:
    """A quantity that is made of itself is a family with an index that counts the steps."""
    return RECURSION.error(
        f"`{name}` is made of itself",
        span=span,
        reason="A recursion is a family: each member is made of earlier members.",
        fix=f"Write `let {name}[t in 1 .. 10] = if t == 1 then ... else ... {name}[t - 1] ...;`.",
    )


def without_order(name: str, index: str, span: Span) -> Diagnostic:
    """A recursion says by a shift of an index which member comes before which."""
    return RECURSION.error(
        f"`{name}` is made of itself, and no index says in which order",
        span=span,
        reason=f"In a recursion one index of `{name}` counts the steps, and the formula mentions members at "
        "other steps.",
        fix=f"Write `{name}[{index} - 1]` for the step before, or `{name}[{index} + 1]` for the step after.",
    )


def not_numbers(name: str, index: str, domain: str, span: Span) -> Diagnostic:
    """The index that counts the steps goes over numbers."""
    return RECURSION.error(
        f"the steps of `{name}` are counted by `{index}`, which goes over `{domain}`",
        span=span,
        reason="Labels and rows have no order; numbers have one.",
        fix=f"Let `{index}` go over numbers: `{index} in 1 .. 10`, or a size.",
    )


def unknown_length(name: str, index: str, domain: str, span: Span) -> Diagnostic:
    """The steps of a recursion are written out, so their number is known with the data."""
    return RECURSION.error(
        f"how many steps `{name}` has is not clear from `{index} in {domain}`",
        span=span,
        reason="Each step becomes a quantity of its own. Their number is a size of the data or of the text.",
        fix=f"Let `{index}` go over a size, as in `{index} in n`, or over numbers, `{index} in 1 .. 24`.",
    )


def too_long(name: str, steps: int, most: int, span: Span) -> Diagnostic:
    """The steps of a recursion are written out, so there are not too many."""
    return RECURSION.error(
        f"`{name}` has {steps} steps, more than {most}",
        span=span,
        reason="Each step becomes a quantity of its own.",
        fix=f"Make `{name}` a variable, `var {name}[...];`, with the step as a constraint.",
    )


def no_such_step(name: str, written: Quote, counter: str, number: float, at: float) -> Diagnostic:
    """A step mentions members that come before it."""
    return RECURSION.error(
        f"{written} is no earlier member of `{name}` at {counter} = {at:g}",
        span=written.span,
        reason=f"It has {counter} = {number:g} there. A step is made of members that come before it.",
        fix=f"Say where the recursion begins: `if {counter} == {at:g} then ... else ... {written.text} ...`.",
    )


def any_step(name: str, written: Quote, counter: str) -> Diagnostic:
    """A step says which members it is made of by its own number and a shift."""
    return RECURSION.error(
        f"{written} inside the recursion `{name}` is not at a fixed distance",
        span=written.span,
        reason="A step is made of members whose number is that of the step and a constant.",
        fix=f"Write `{name}[{counter} - 1]`. A sum of all earlier terms is a recursion of its own: "
        f"`total[{counter}] = total[{counter} - 1] + ...`.",
    )
