"""F0516, F0521: sizes and labels that disagree."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.data.bind.errors.words import cut

SIZES = Code("F0516", "sizes disagree")
LABELS = Code("F0521", "labels")


# -------------------------------------------------------------------------------------------- sizes
def disagree(what: str, size: int, place: str, dim: ir.Dim, expected: int, by: str) -> Diagnostic:
    """Axes declared with one dim have one size: ``expected`` by the place ``by``, or by the model itself."""
    if isinstance(dim, int):
        declared = f"{dim}"
    else:
        declared = f"{dim} = {expected}"
    if isinstance(dim, int):
        origin = "in the model"
    else:
        origin = f"by {by}"
    return SIZES.error(
        f"{what} has {size} elements where the model has {declared}",
        reason=f"{size} by {place}; {expected} {origin}",
        fix="bind columns of one size to both, or declare two dims",
    )


def other_labels(what: str, names: Sequence[str], name: str, labels: Sequence[str], by: str) -> Diagnostic:
    """An axis over a set has one element for each of its labels, in their order."""
    lacking = [label for label in labels if label not in names]
    unknown = [label for label in names if label not in labels]
    if lacking or unknown:
        differences = [f"{label} is missing" for label in lacking[:4]] + [
            f"{label} is not in {name}" for label in unknown[:4]
        ]
    else:
        differences = ["they come in another order"]
    return SIZES.error(
        f"{what} does not have the {len(labels)} elements of {name}: {', '.join(differences)}",
        reason=f"{name} = {cut(labels, 6)} by {by}",
        fix=f"give one value for each element of {name}; columns = [...] lists them in their order",
    )


def rows_of_set(what: str, size: int, name: str, rows: int) -> Diagnostic:
    """An array over the rows of a filtered set has one element for each."""
    return SIZES.error(
        f"{what} has {size} elements where {name} has {rows}",
        reason=f"{name} is a set of rows; its size is their number",
        fix=f"give one value for each row of {name}, in their order",
    )


# ------------------------------------------------------------------------------------------- labels
def not_in_set(
    what: str,
    unknown: Sequence[str],
    name: str,
    labels: Sequence[str],
    by: str,
    row: str,
    *,
    counted: bool = False,
) -> Diagnostic:
    """A label column holds labels of its set; ``row`` is the first that does not. An array without
    labels has them ``counted`` from 1."""
    fix = (
        did_you_mean(unknown[0], labels) or "leave such rows out with where, or map them to labels of the set"
    )
    if counted:
        fix = (
            f"give that array as a mapping or a Series with its labels, or list them: [sets] {name} = "
            f'["{unknown[0]}", ...]'
        )
    return LABELS.error(
        f"{what}: {cut([repr(label) for label in unknown], 4)} {'are' if len(unknown) > 1 else 'is'} not "
        f"in {name}",
        reason=f"{name} = {cut(labels, 8)} by {by}{' without labels' if counted else ''}; the first is in "
        f"{row} (counted from 0)",
        fix=fix,
    )


def two_values(array: str, label: str) -> Diagnostic:
    """An array has one value for each label."""
    return LABELS.error(f"{array} has two values for {label}", fix="give one value for each label")
