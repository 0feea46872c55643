"""Sizes of dims, and labels of sets, as the data determine them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fccomodel.core import ir, progressions
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._encode import Key
from fccomodel.data.bound import Claim

#: Largest number of elements of a range.
MOST_ELEMENTS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class PlacedSize:
    """A size, and the source that fixed it, in words."""

    size: int
    place: str


class KnownSizes:
    """The sizes of dims and sets, and the labels of sets, so far.

    A later size of a dim is compared with the first.

    value         the value of an expression in constants, params and sizes
    labels        the labels of each set whose order is fixed
    label_places  for each of these sets, the source that fixed the order, in words
    counted       sets with the labels 1, 2, ..., because an array came without labels
    learned       for other sets, the labels that columns have so far, with their sort keys
    claims        sizes of filtered row sets, which are compared when the rows are known
    """

    def __init__(self, problem: ir.Problem, value: Callable[[ir.Expr], float]):
        self.problem = problem
        self.value = value
        self.by_name: dict[str, PlacedSize] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.label_places: dict[str, str] = {}
        self.counted: set[str] = set()
        self.learned: dict[str, dict[str, Key]] = {}
        self.claims: list[Claim] = []

    def declare_labels(self, name: str, labels: tuple[str, ...], place: str) -> None:
        """Fix the labels of a set, in their final order."""
        self.labels[name], self.label_places[name] = labels, place
        self.by_name[name] = PlacedSize(size=len(labels), place=place)

    def learn(self, name: str, labels: tuple[str, ...], keys: tuple[Key, ...]) -> None:
        """Note labels of a column; they are sorted when all columns have been read."""
        self.learned.setdefault(name, {}).update(zip(labels, keys, strict=True))

    def settle(self) -> None:
        """Fix the labels learned from columns, sorted by their keys."""
        for name, keys in self.learned.items():
            if name not in self.labels:
                self.declare_labels(name, tuple(sorted(keys, key=keys.__getitem__)), "the data's labels")

    def of(self, dim: ir.Dim) -> int | None:
        """The size of a dim or a set; None as long as it is unknown."""
        if isinstance(dim, int):
            return dim
        index_set = self.problem.sets.get(dim)
        if dim not in self.by_name and isinstance(index_set, ir.ValueSet):
            self.by_name[dim] = PlacedSize(size=len(members(index_set, self.value)), place=f"set {dim}")
        if dim in self.by_name:
            return self.by_name[dim].size
        return None

    def unify(
        self, dim: ir.Dim, size: int, what: str, place: str, names: tuple[str, ...] | None = None
    ) -> None:
        """Note that an axis has ``size`` elements in the data; F0516 if this contradicts an earlier size.

        dim     the axis as the model declares it
        what    the column or array, in words
        place   the source of the data, in words
        names   the labels of the elements, if the data have any
        """
        if isinstance(dim, int):
            if dim != size:
                refuse(errors.sizes.disagree(what, size, place, dim, dim, ""))
            return
        index_set = self.problem.sets.get(dim)
        if isinstance(index_set, ir.RowSet):
            self.claims.append(Claim(set=dim, size=size, what=what))
            return
        if isinstance(index_set, ir.LabelSet) and names is not None:
            self._unify_labels(dim, names, what, place)
            return
        expected = self.of(dim)
        if expected is None:
            self.by_name[dim] = PlacedSize(size=size, place=place)
            if isinstance(index_set, ir.LabelSet):
                self.declare_labels(dim, tuple(str(k + 1) for k in range(size)), place)
                self.counted.add(dim)
        elif expected != size:
            refuse(errors.sizes.disagree(what, size, place, dim, expected, self.by_name[dim].place))

    def _unify_labels(self, name: str, names: tuple[str, ...], what: str, place: str) -> None:
        """Note the labels along an axis; F0516 if the set has other labels.

        Elements that an array without labels counted take the labels of the first array that has some, in
        its order.
        """
        labels = self.labels.get(name)
        if labels is None or (name in self.counted and len(labels) == len(names)):
            self.declare_labels(name, names, place)
            self.counted.discard(name)
        elif labels != names:
            refuse(errors.sizes.other_labels(what, names, name, labels, self.label_places[name]))

    def positions(
        self, name: str, labels: tuple[str, ...], codes: np.ndarray
    ) -> tuple[np.ndarray, list[str]]:
        """Positions in a set, -1 for unknown labels; and the unknown labels.

        name     the set
        labels   the labels of a column
        codes    for each row, the position of its label in ``labels``
        """
        position = {label: k for k, label in enumerate(self.labels[name])}
        unknown = [label for label in labels if label not in position]
        recode = np.array([position.get(label, -1) for label in labels], np.int64)
        if np.array_equal(recode, np.arange(len(labels))):
            return codes, unknown
        return recode[codes], unknown


def start(
    problem: ir.Problem,
    value: Callable[[ir.Expr], float],
    sets: Mapping[str, tuple[str, ...]],
    places: Callable[..., str],
) -> KnownSizes:
    """The sizes known before the data: labels in the model and in the binding file.

    value    the value of an expression in constants, params and sizes
    sets     label lists of the binding file
    places   the line of a key in the binding file
    """
    sizes = KnownSizes(problem, value)
    index_sets: dict[str, ir.Set] = {}
    for table in problem.tables.values():
        for column in table.columns.values():
            if column.domain is not None:
                index_sets[column.domain.name] = column.domain
    index_sets |= problem.sets
    for name, index_set in index_sets.items():
        if isinstance(index_set, ir.LabelSet) and index_set.labels is not None:
            sizes.declare_labels(name, index_set.labels, f"set {name} of the model")
        elif name in sets:
            sizes.declare_labels(name, sets[name], places("sets", name) or "the binding")
    return sizes


def members(value_set: ir.ValueSet, value: Callable[[ir.Expr], float]) -> np.ndarray:
    """The numbers of a value set, float64, in order."""
    if value_set.items is not None:
        return np.array([value(item) for item in value_set.items], float)
    assert value_set.low is not None and value_set.high is not None
    low, high = value(value_set.low), value(value_set.high)
    step = 1.0
    if value_set.step is not None:
        step = value(value_set.step)
    if step == 0 or not all(map(math.isfinite, (low, high, step))):
        refuse(errors.numbers.not_a_range(value_set.name, low, high, step))
    count = progressions.count(low, high, step)
    if count > MOST_ELEMENTS:
        refuse(errors.numbers.too_many_elements(value_set.name, count))
    return progressions.numbers(low, high, step)
