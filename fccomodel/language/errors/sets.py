"""F0407, F0409, F0412: sets, their members, and the sets of variables."""

from __future__ import annotations

from collections.abc import Mapping

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote, listed

NOT_A_SET = Code("F0407", "not a set")
MEMBERS = Code("F0409", "members of a set")
SET_OF_VARIABLE = Code("F0412", "set of a variable")

_RANGES = {
    "in": "`in` iterates over a set, a table's rows, a list `{1, 2}` or a range `1 .. n`.",
    "~": "`~` draws rows of a table or of a set of rows, elements of a finite set, or numbers of a "
    "distribution.",
}
_WRITE = {"in": "Write a set there.", "~": "Write a table, a set, or a distribution such as `normal(0, 1)`."}


# ------------------------------------------------------------------------------- after `in` and `~`
def not_a_set(written: Quote, what: str, binding: str) -> Diagnostic:
    """An index ranges over a set; ``binding`` is ``in`` or ``~``."""
    return NOT_A_SET.error(
        f"{written} is {what}, not a set", span=written.span, reason=_RANGES[binding], fix=_WRITE[binding]
    )


def sets_joined(written: Quote, op: str) -> Diagnostic:
    """Sets have no algebra."""
    fixes = {
        "*": "Write an index for each set: `i in A, j in B`.",
        "+": "List the members of both, `set C = {...};`, or write a sum over each.",
    }
    return NOT_A_SET.error(
        f"{written} joins sets by `{op}`",
        span=written.span,
        reason="Sets are listed, ranges, labels of the data, or rows under a condition.",
        fix=fixes.get(op, "Write a condition: `i in A | i != 2`."),
    )


def number_as_set(written: Quote) -> Diagnostic:
    """``i in 10`` is not a range."""
    return NOT_A_SET.error(
        f"{written} is a number, not a set",
        span=written.span,
        reason="An index ranges over a set.",
        fix=f"For 1, 2, ..., write `1 .. {written.text}`.",
    )


def nonneg_without_size(span: Span) -> Diagnostic:
    """``nonneg`` is a set of a variable's vectors."""
    return NOT_A_SET.error(
        "`nonneg` has no size here",
        span=span,
        reason="An index ranges over a set of known size.",
        fix="Use it on a variable.",
    )


def vectors_without_size(written: Quote) -> Diagnostic:
    """A maximum goes over vectors of known size."""
    return NOT_A_SET.error(
        f"{written} has no size here",
        span=written.span,
        reason="`max[u in ..]` ranges over vectors of known size, and their use does not say it here.",
        fix=f"Say the size, `{written.text}[d]`; for weights, write `simplex(K)` or `capped_simplex(K, "
        "alpha)`.",
    )


def vectors_without_members(written: Quote) -> Diagnostic:
    """A comprehension picks from a table or a finite set."""
    return NOT_A_SET.error(
        f"{written} has no members to pick from",
        span=written.span,
        reason="It is a set of vectors.",
        fix="Use a table or a finite set.",
    )


def vectors_without_distribution(written: Quote) -> Diagnostic:
    """A set of vectors has no distribution, so it cannot be sampled."""
    return NOT_A_SET.error(
        f"nothing can be drawn from {written}",
        span=written.span,
        reason="It is a set of vectors without a distribution.",
        fix=f"Maximise over it, `max[q in {written.text}] ...`, or draw from `uniform(low, high)[n]`.",
    )


def family_over_vectors(index: str, span: Span) -> Diagnostic:
    """A family is indexed by a finite set."""
    return _no_elements(f"`{index}`", span, "It ranges over a set of vectors.", "Use a finite set.")


def index_over_vectors(written: Quote) -> Diagnostic:
    """A declared index ranges over elements."""
    fix = "Use a table, a finite set, or a distribution with `~`."
    return _no_elements(str(written), written.span, "An index ranges over elements.", fix)


def _no_elements(what: str, span: Span, reason: str, fix: str) -> Diagnostic:
    return NOT_A_SET.error(f"{what} has no elements to iterate over", span=span, reason=reason, fix=fix)


# ------------------------------------------------------------------------------------------ members
def listed_twice(written: Quote) -> Diagnostic:
    """A set has every member once."""
    return MEMBERS.error(
        f"{written} is listed twice",
        span=written.span,
        reason="A set has every member once.",
        fix="Leave one out.",
    )


def step_of_range(step: float, span: Span) -> Diagnostic:
    """A range goes up."""
    return MEMBERS.error(
        f"the step of a range is {step:g}",
        span=span,
        reason="A range goes up from its low end.",
        fix="Use a positive step.",
    )


def empty_range(written: Quote, low: float, high: float, turned: str) -> Diagnostic:
    """A range goes up from its low end; ``turned`` is the same range the other way round."""
    return MEMBERS.error(
        f"the range {written.text} is empty",
        span=written.span,
        reason=f"It goes up from {low:g} to {high:g}.",
        fix=f"Write `{turned}`." if turned else "Use a number of at least 1.",
    )


def long_range(written: Quote) -> Diagnostic:
    """A range is iterated over member by member."""
    return MEMBERS.error(
        f"the range {written.text} has more than a million members",
        span=written.span,
        reason="A range is iterated over member by member.",
        fix="Use a larger step, or draw from `uniform(low, high)`.",
    )


# -------------------------------------------------------------------------------- sets of variables
def not_a_set_of_vectors(written: Quote, family: str, forms: Mapping[str, str]) -> Diagnostic:
    """A variable lies in one of the simple sets; ``forms`` says how each is written."""
    return SET_OF_VARIABLE.error(
        f"{written} is not a set of vectors",
        span=written.span,
        reason=f"Those known are {listed(forms.values())}.",
        fix=(did_you_mean(family, forms) if family else "")
        or "Write a condition on the variable as a labelled constraint.",
    )


def finitely_many_values(variable: str, written: Quote, box: str) -> Diagnostic:
    """Variables are real numbers; ``box`` is the smallest interval around the values, or empty."""
    return SET_OF_VARIABLE.error(
        f"`{variable}` cannot be restricted to the values {written}",
        span=written.span,
        reason="Variables are real numbers: a choice among finitely many values is integer programming."
        + (f" Its smallest box is `{box}`." if box else ""),
        fix="Relax it to an interval, `>= 0, <= 1`, or to weights on the values, `in simplex(K)`.",
    )


def set_of_a_param(span: Span) -> Diagnostic:
    """The bounds of a param are comparisons with constants."""
    return SET_OF_VARIABLE.error(
        "a param has no set",
        span=span,
        reason="Its bounds are comparisons with constants.",
        fix="Write `>= 0`, `> 0, <= 1`.",
    )
