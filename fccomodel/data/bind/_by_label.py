"""Values that come with labels: a mapping, or a pandas Series whose index says more than places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors


class Labelled(NamedTuple):
    """Values along a first axis, and the label of each."""

    values: Any
    labels: tuple[str, ...]


def index(value: Any) -> tuple[str, ...] | None:
    """The labels of a pandas Series, whose index says more than the places 0, 1, 2, ... that it has by
    itself."""
    if (
        not hasattr(value, "index")
        or not hasattr(value, "to_numpy")
        or hasattr(value, "columns")
        or callable(value.index)
    ):
        return None
    labels = tuple(map(str, value.index))
    if labels == tuple(map(str, range(len(labels)))):
        return None
    return labels


def labelled(raw: Any) -> Labelled | None:
    """The values and labels of what comes with labels, or None."""
    if isinstance(raw, Mapping):
        return Labelled(list(raw.values()), tuple(map(str, raw)))
    found = index(raw)
    if found is None:
        return None
    return Labelled(raw.to_numpy(), found)


def of_param(parameter: ir.Parameter, given: Labelled, order: tuple[str, ...] | None) -> Any:
    """The values of a param in the order of its set's labels. F0516 for two values of a label, F0520
    for other labels than the set's, or an axis that has none."""
    name, labels = parameter.name, given.labels
    if len(set(labels)) < len(labels):
        refuse(errors.sizes.two_values(name, next(label for label in labels if labels.count(label) > 1)))
    if order is None:
        refuse(errors.numbers.no_labels(name, parameter.shape))
    if set(order) != set(labels):
        refuse(errors.numbers.other_labels(name, labels, order))
    place = {label: k for k, label in enumerate(labels)}
    return np.asarray(given.values)[[place[label] for label in order]]
