"""F0701, F0706: points without a finite value or gradient; constraints without margins."""

from __future__ import annotations

from collections.abc import Mapping

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span

NOT_FINITE = Code("F0701", "not finite")
MARGIN = Code("F0706", "margin")


def variable(name: str, span: Span) -> Diagnostic:
    """A point is finite."""
    return NOT_FINITE.error(
        f"`{name}` is not finite at this point",
        span=span,
        reason="The solver diverged: its last variables hold NaN or infinity.",
        fix="Use a smaller step size, or scale the data.",
    )


def value(what: str, value: float, span: Span) -> Diagnostic:
    """The objective and the constraints are finite at a point."""
    return NOT_FINITE.error(
        f"{what} is {value} at this point",
        span=span,
        reason="A logarithm or root of a negative number, a division by zero, or an overflow of exp.",
        fix="Scale the data, use a smaller step size, or bound the variables.",
    )


def gradient(span: Span) -> Diagnostic:
    """Gradients are finite at a point."""
    return NOT_FINITE.error(
        "the gradient is not finite at this point",
        span=span,
        reason="Some function is at the edge of its domain, as sqrt is at 0.",
        fix="Keep its argument away from the edge: `sqrt(1e-6 + u)`.",
    )


def nothing_sampled(without: Mapping[str, str], span: Span) -> Diagnostic:
    """A margin is for constraints on expectations over rows; ``without`` says what the others are."""
    others = "; ".join(f"`{label}` is {why}" for label, why in without.items())
    return MARGIN.error(
        "no constraint can have a margin",
        span=span,
        reason="Margins are for inequalities on expectations over rows: "
        f"{others or 'the model has no constraints'}.",
        fix="Leave --margin out.",
    )


def no_errors(why: str, span: Span) -> Diagnostic:
    """A margin is made of a constraint's standard error."""
    reason = f"{why[0].upper()}{why[1:]}."
    return MARGIN.error(
        "the constraints' standard errors are not known", span=span, reason=reason, fix="Leave --margin out."
    )


def no_answers(failed: int, draws: int, factor: float, span: Span) -> Diagnostic:
    """Other rows have answers with margins too."""
    return MARGIN.error(
        "constraints this tight cannot be promised for new rows",
        span=span,
        reason=f"With margins of {factor:.3g} standard errors {failed} of {draws} problems on resampled "
        "rows have no answer: "
        "those that have one are the lucky ones.",
        fix="Loosen the constraints, bind more rows, or ask for less confidence.",
    )
