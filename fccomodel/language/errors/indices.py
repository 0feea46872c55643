"""F0307-F0310: indices of arrays, and of families of quantities, sets and tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.source import Span
from fccomodel.language.errors.words import Quote, counted, listed

NUMBER_OF_INDICES = Code("F0307", "number of indices")
OTHER_SET = Code("F0308", "index of another set")
NO_MEMBER = Code("F0309", "no such member")
NOT_INDEXABLE = Code("F0310", "not indexable")


# -------------------------------------------------------------------------------- number of indices
def family_needs_indices(name: str, indices: Sequence[str], line: str, span: Span) -> Diagnostic:
    """A ``let`` family is used with an index for each of its binders."""
    return NUMBER_OF_INDICES.error(
        f"`{name}` is a family and needs {'its index' if len(indices) == 1 else 'its indices'}",
        span=span,
        reason=f"It is declared as `let {name}[{', '.join(indices)}]` on line {line}.",
        fix=f"Write `{name}[{', '.join(indices)}]`, with each index bound or a member of its set; "
        f"`sum({name})`, `max({name})`, `dot(p, {name})` and the like take all members.",
    )


def family_of_sets_needs_index(name: str, line: str, span: Span) -> Diagnostic:
    """A family of sets is used with an index."""
    return NUMBER_OF_INDICES.error(
        f"`{name}` is a family of sets and needs its index",
        span=span,
        reason=f"It is declared on line {line} with an index in brackets.",
        fix=f"Write `{name}[k]`.",
    )


def wrong_number(written: Quote, given: int, what: str, wanted: int) -> Diagnostic:
    """Every axis of an array, and every binder of a family, has one index."""
    return NUMBER_OF_INDICES.error(
        f"{written} has {counted(given, 'index', 'indices')}, and {what} needs {wanted}",
        span=written.span,
        reason="Every axis has one index.",
        fix=f"Give {counted(wanted, 'index', 'indices')}.",
    )


def empty_slice(written: Quote) -> Diagnostic:
    """A slice has an entry at least."""
    return NO_MEMBER.error(
        f"{written} holds no entry",
        span=written.span,
        reason="Both ends of a slice belong to it: `2 .. 4` are three entries.",
        fix="Exchange the ends, or leave the slice out.",
    )


def slice_with_step(written: Quote) -> Diagnostic:
    """A slice takes every entry between its ends."""
    return OTHER_SET.error(
        f"{written} is a slice with a step",
        span=written.span,
        reason="A slice holds all entries between its ends.",
        fix="Write the entries by formula: `[i in 1 .. 3] x[2 * i]`.",
    )


# ---------------------------------------------------------------------------------- no index at all
def not_indexable(written: Quote, what: str, span: Span) -> Diagnostic:
    """Indices pick an entry of an array, or a member of a family."""
    return NOT_INDEXABLE.error(
        f"{written} is {what} and cannot be indexed",
        span=span,
        reason="Indices pick an entry of a vector or matrix, or a member of a `let` family.",
        fix=f"Write {written} alone, or declare it with a shape.",
    )


def let_without_family(name: str, what: str, given: int, line: str, span: Span) -> Diagnostic:
    """A ``let`` without a family has the axes of its value."""
    return NOT_INDEXABLE.error(
        f"`{name}` is {what} and has no {given}-fold index",
        span=span,
        reason=f"It is declared on line {line} without a family.",
        fix=f"Write `{name}` alone, or declare `let {name}[k in K] = ...`.",
    )


def set_without_family(name: str, what: str, span: Span) -> Diagnostic:
    """An expression with an index is a set only if it is a member of a family of sets or tables."""
    return NOT_INDEXABLE.error(
        f"`{name}` is {what} and has no index",
        span=span,
        reason="Only a family of sets or tables is indexed here.",
        fix=f"Write `{name}` alone.",
    )


# ---------------------------------------------------------------------------- not of the axis's set
def not_an_index(value: Quote, axis: ir.Set | ir.Dim) -> Diagnostic:
    """An index is a bound name, a constant, or (of arrays) a column of labels."""
    return _not_an_index(value, f"Use an index bound over `{_written(axis)}`, or a constant.")


def column_as_index(value: Quote, axis: ir.Set | ir.Dim, base: str) -> Diagnostic:
    """A column of numbers is not an index of ``base``."""
    name = _written(axis)
    return _not_an_index(value, f"Iterate over `{name}`: `sum[k in {name} | {value.text} == k] {base}[k]`.")


def _not_an_index(value: Quote, fix: str) -> Diagnostic:
    return OTHER_SET.error(
        f"{value} cannot be an index",
        span=value.span,
        reason="An index is a name bound by `in`, a formula of such numbers (`i + 1`), a constant, or "
        "a column of labels.",
        fix=fix,
    )


def index_of_another_set(value: Quote, index: str, domain: ir.Set, axis: ir.Set | ir.Dim) -> Diagnostic:
    """An index picks an entry by its place in its own set, so that this must be the axis's."""
    whole, part = f"{index} in {_range(axis)}", ""
    if isinstance(domain, ir.ValueSet) and not isinstance(axis, ir.Set):
        part = f", a part of these under a condition: `{whole} | {index} < {axis}`"
    fix = f"Bind it as `{whole}`{part}."
    return _another_set(f"{value} ranges over {_quoted(domain)}", value.span, axis, fix)


def column_of_another_set(value: Quote, column: str, domain: ir.Set, axis: ir.Set | ir.Dim) -> Diagnostic:
    """A column picks an entry by the place of its value in its own set, so that this must be the axis's."""
    return _another_set(
        f"{value} is in {_quoted(domain)}",
        value.span,
        axis,
        f"Declare the column as `{column}: {_range(axis)}`.",
    )


def _another_set(message: str, span: Span, axis: ir.Set | ir.Dim, fix: str) -> Diagnostic:
    if isinstance(axis, ir.Set):
        expected = f"the set {_quoted(axis)}"
    else:
        expected = _range(axis)
    return OTHER_SET.error(
        f"{message}, and this axis is indexed by {expected}",
        span=span,
        reason="An index picks an entry by its place in its own set, so the two sets must be the same.",
        fix=fix,
    )


def _written(axis: ir.Set | ir.Dim) -> str:
    if isinstance(axis, ir.Set):
        return axis.name
    return str(axis)


def _range(axis: ir.Set | ir.Dim) -> str:
    if isinstance(axis, ir.Set):
        return axis.name
    return f"1 .. {axis}"


def _quoted(domain: ir.Set) -> str:
    """A set's name in backticks; one that is written out stands as it is."""
    if domain.name.isidentifier():
        return f"`{domain.name}`"
    return domain.name


def index_of_another_family(value: Quote, index: str, domain: str) -> Diagnostic:
    """A family of sets is indexed by the elements of the set that it is declared over."""
    return OTHER_SET.error(
        f"{value} is not an element of `{domain}`",
        span=value.span,
        reason=f"The family is declared over `{index} in {domain}`.",
        fix=f"Use an index bound as `{index} in {domain}`.",
    )


# ----------------------------------------------------------------------------------- no such member
def no_entry(place: float, size: str, span: Span) -> Diagnostic:
    """Entries are counted from 1."""
    return NO_MEMBER.error(
        f"there is no entry {place:g}",
        span=span,
        reason=f"Entries are counted from 1 to {size}.",
        fix=f"Use a whole number from 1 to {size}.",
    )


def no_number(value: float, domain: ir.Set, span: Span, members: Sequence[float]) -> Diagnostic:
    """A constant index is a member of the axis's set."""
    shown = ", ".join(f"{v:g}" for v in members[:8]) + (", ..." if len(members) > 8 else "")
    return _no_number(value, domain, span, f"Its members are {shown}.")


def no_step_of_range(value: float, domain: ir.Set, span: Span, low: float, step: float) -> Diagnostic:
    """A constant index is a step of the axis's range, whose high end is not known."""
    return _no_number(value, domain, span, f"It goes up from {low:g} in steps of {step:g}.")


def number_without_place(value: float, domain: ir.Set, span: Span) -> Diagnostic:
    """A constant index picks from a list of constants, or from a range whose low end and step are."""
    return NO_MEMBER.error(
        f"the place of {value:g} in {_quoted(domain)} is not known",
        span=span,
        reason="Its members depend on parameters or sizes.",
        fix=f"Use an index bound over it: `k in {domain.name}`.",
    )


def _no_number(value: float, domain: ir.Set, span: Span, reason: str) -> Diagnostic:
    return NO_MEMBER.error(
        f"{value:g} is not in {_quoted(domain)}", span=span, reason=reason, fix="Use a member of the set."
    )


def number_for_label(value: float, domain: str, span: Span) -> Diagnostic:
    """Labels are written in quotes."""
    return _no_place(value, "labels", domain, span, "Labels are written in quotes.")


def number_for_row(value: float, domain: str, span: Span) -> Diagnostic:
    """A row is not written as a number in the model."""
    return _no_place(value, "rows", domain, span, "Rows have an identity, and no number in the model.")


def _no_place(value: float, what: str, domain: str, span: Span, reason: str) -> Diagnostic:
    return NO_MEMBER.error(
        f"{value:g} cannot pick one of the {what} of `{domain}`",
        span=span,
        reason=reason,
        fix=f"Use an index bound over it: `k in {domain}`.",
    )


def no_label(label: str, domain: str, labels: Collection[str], span: Span) -> Diagnostic:
    """A label in quotes is one of the axis's set."""
    return NO_MEMBER.error(
        f'"{label}" is not a label of `{domain}`',
        span=span,
        reason=f"Its labels are {listed(labels)}.",
        fix=did_you_mean(label, labels),
    )


def label_without_place(label: str, domain: str, span: Span) -> Diagnostic:
    """The labels of a set that come with the data have no place in the text."""
    return NO_MEMBER.error(
        f'the place of "{label}" in `{domain}` is not known',
        span=span,
        reason=f"The labels of `{domain}` come with the data.",
        fix=f'List them in the model, `set {domain} = {{"{label}", ...}};`, or use an index bound over it.',
    )


def label_for_number(label: str, span: Span) -> Diagnostic:
    """An axis of numbers has no labels."""
    return NO_MEMBER.error(
        f'"{label}" is a label, and this axis has none', span=span, fix="Use a number, or a bound index."
    )
