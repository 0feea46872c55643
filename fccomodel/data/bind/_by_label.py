"""Values with labels: a mapping, or a pandas Series whose index does more than count 0, 1, 2, ..."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors


class LabelledValues(NamedTuple):
    """Values along a first axis, and the label of each."""

    values: Any
    labels: tuple[str, ...]


def index(value: Any, known: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
    """The labels of a pandas Series; None for any other value, and if its index only counts the values.

    known   the labels of the set, if these are known
    """
    if hasattr(value, "columns"):
        return None
    return _index(value, known)


def index_of_frame(value: Any, known: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
    """The labels of a pandas data frame's rows; None for other values, and if its index only counts them.

    known   the labels of the set, if these are known
    """
    if not hasattr(value, "columns"):
        return None
    return _index(value, known)


def _index(value: Any, known: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The labels in the index of pandas; None for other values, and if it only counts."""
    if not hasattr(value, "to_numpy") or not hasattr(value, "index") or callable(value.index):
        return None
    return naming(tuple(map(str, value.index)), known, default=is_default(value.index))


def naming(
    labels: tuple[str, ...], known: tuple[str, ...] | None, *, default: bool
) -> tuple[str, ...] | None:
    """The labels, or None if they are 0, 1, 2, ... and only count.

    They are labels if the set has just these, unless pandas made them (``default``).
    """
    if counted(labels) and (default or set(labels) != set(known or ())):
        return None
    return labels


def is_default(axis: Any) -> bool:
    """Whether an index is the one that pandas makes of the number of rows or columns."""
    return type(axis).__name__ == "RangeIndex"


def counted(labels: tuple[str, ...]) -> bool:
    """Whether labels only count the elements: 0, 1, 2, ..."""
    return labels == tuple(map(str, range(len(labels))))


def labelled(raw: Any, known: tuple[str, ...] | None = None) -> LabelledValues | None:
    """The values and labels of a mapping or a pandas Series; None if there are no labels.

    known   the labels of the set, if these are known
    """
    if isinstance(raw, Mapping):
        return LabelledValues(list(raw.values()), tuple(map(str, raw)))
    labels = index(raw, known)
    if labels is None:
        return None
    return LabelledValues(raw.to_numpy(), labels)


def of_param(parameter: ir.Parameter, given: LabelledValues, order: tuple[str, ...] | None) -> Any:
    """The values of a param in the order of its set's labels.

    order   the set's labels; None if the param's axis has none

    F0516 for two values of one label, F0520 for labels that are not those of the set.
    """
    name, labels = parameter.name, given.labels
    if len(set(labels)) < len(labels):
        refuse(errors.sizes.two_values(name, next(label for label in labels if labels.count(label) > 1)))
    if order is None:
        refuse(errors.numbers.no_labels(name, parameter.shape))
    if set(order) != set(labels):
        refuse(errors.numbers.other_labels(name, labels, order))
    place = {label: k for k, label in enumerate(labels)}
    return np.asarray(given.values)[[place[label] for label in order]]
