"""Values with labels: a mapping, or a pandas Series whose index is more than 0, 1, 2, ..."""

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


def index(value: Any) -> tuple[str, ...] | None:
    """The labels of a pandas Series; None if its index is 0, 1, 2, ..., and for any other value."""
    is_series = hasattr(value, "index") and hasattr(value, "to_numpy") and not hasattr(value, "columns")
    if not is_series or callable(value.index):
        return None
    labels = tuple(map(str, value.index))
    return None if counted(labels) else labels


def index_of_frame(value: Any) -> tuple[str, ...] | None:
    """The labels of a pandas data frame's rows; None if its index is 0, 1, 2, ..., and for other values."""
    is_frame = hasattr(value, "index") and hasattr(value, "to_numpy") and hasattr(value, "columns")
    if not is_frame or callable(value.index):
        return None
    labels = tuple(map(str, value.index))
    return None if counted(labels) else labels


def counted(labels: tuple[str, ...]) -> bool:
    """Whether labels only count the elements: 0, 1, 2, ..."""
    return labels == tuple(map(str, range(len(labels))))


def labelled(raw: Any) -> LabelledValues | None:
    """The values and labels of a mapping or a pandas Series; None if there are no labels."""
    if isinstance(raw, Mapping):
        return LabelledValues(list(raw.values()), tuple(map(str, raw)))
    labels = index(raw)
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
