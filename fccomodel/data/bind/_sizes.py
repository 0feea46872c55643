"""Sizes solved from the data: dims, and the labels of sets whose labels come with it."""

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

#: Elements of a range that are listed.
MOST_ELEMENTS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class PlacedSize:
    """A size and what it was read from, in words."""

    size: int
    place: str


class Sizes:
    """Sizes of dims and sets, and labels, so far; every new one is compared with the first."""

    def __init__(self, problem: ir.Problem, value: Callable[[ir.Expr], float]):
        self.problem, self._value = problem, value
        self.by_name: dict[str, PlacedSize] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.label_places: dict[str, str] = {}  # label sets whose order is fixed, with what fixed it
        self.counted: set[str] = set()  # those whose labels are 1, 2, ..., as an array came without any
        self.learned: dict[str, dict[str, Key]] = {}  # label sets that collect labels from columns
        self.claims: list[Claim] = []  # sizes of filtered rows, to be compared when the rows are known

    def declare_labels(self, name: str, labels: tuple[str, ...], place: str) -> None:
        """Labels in their final order."""
        self.labels[name], self.label_places[name] = labels, place
        self.by_name[name] = PlacedSize(size=len(labels), place=place)

    def learn(self, name: str, labels: tuple[str, ...], keys: tuple[Key, ...]) -> None:
        """Labels met in a column; they are sorted when all columns have been read."""
        self.learned.setdefault(name, {}).update(zip(labels, keys, strict=True))

    def settle(self) -> None:
        """Sort what the columns taught."""
        for name, keys in self.learned.items():
            if name not in self.labels:
                self.declare_labels(name, tuple(sorted(keys, key=keys.__getitem__)), "the data's labels")

    def of(self, dim: ir.Dim) -> int | None:
        """A size; None as long as nothing fixes it."""
        if isinstance(dim, int):
            return dim
        if dim not in self.by_name and isinstance(index_set := self.problem.sets.get(dim), ir.ValueSet):
            self.by_name[dim] = PlacedSize(size=len(members(index_set, self._value)), place=f"set {dim}")
        if dim in self.by_name:
            return self.by_name[dim].size
        return None

    def unify(
        self, dim: ir.Dim, size: int, what: str, place: str, names: tuple[str, ...] | None = None
    ) -> None:
        """Note that an axis declared as ``dim`` has ``size`` elements (called ``names``) in the data;
        F0516 if it has not."""
        if isinstance(dim, str):
            index_set = self.problem.sets.get(dim)
        else:
            index_set = None
        if isinstance(dim, str) and isinstance(index_set, ir.RowSet):
            self.claims.append(Claim(set=dim, size=size, what=what))
            return
        if isinstance(dim, str) and isinstance(index_set, ir.LabelSet) and names is not None:
            self._unify_labels(dim, names, what, place)
            return
        expected = self.of(dim)
        if expected is None:
            assert isinstance(dim, str)
            self.by_name[dim] = PlacedSize(size=size, place=place)
            if isinstance(index_set, ir.LabelSet):
                self.declare_labels(dim, tuple(str(k + 1) for k in range(size)), place)
                self.counted.add(dim)
        elif expected != size:
            refuse(
                errors.sizes.disagree(
                    what, size, place, dim, expected, self.by_name[dim].place if isinstance(dim, str) else ""
                )
            )

    def _unify_labels(self, name: str, names: tuple[str, ...], what: str, place: str) -> None:
        labels = self.labels.get(name)
        if labels is None:
            self.declare_labels(name, names, place)
        elif labels != names:
            refuse(errors.sizes.other_labels(what, names, name, labels, self.label_places[name]))

    def positions(
        self, name: str, labels: tuple[str, ...], codes: np.ndarray
    ) -> tuple[np.ndarray, list[str]]:
        """Positions in the set for positions in ``labels`` (-1 for unknown), and the labels it does
        not have."""
        position = {label: k for k, label in enumerate(self.labels[name])}
        recode = np.array([position.get(label, -1) for label in labels], np.int64)
        same = np.array_equal(recode, np.arange(len(labels)))
        return codes if same else recode[codes], [label for label in labels if label not in position]


def start(
    problem: ir.Problem,
    value: Callable[[ir.Expr], float],
    sets: Mapping[str, tuple[str, ...]],
    places: Callable[..., str],
) -> Sizes:
    """Sizes known from the model and from label lists of the binding file."""
    sizes = Sizes(problem, value)
    column_domains = {
        column.domain.name: column.domain
        for table in problem.tables.values()
        for column in table.columns.values()
        if column.domain is not None
    }
    for name, index_set in {**column_domains, **problem.sets}.items():
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
    low, high, step = (
        value(value_set.low),
        value(value_set.high),
        value(value_set.step) if value_set.step is not None else 1.0,
    )
    if step == 0 or not all(map(math.isfinite, (low, high, step))):
        refuse(errors.numbers.not_a_range(value_set.name, low, high, step))
    if (count := progressions.count(low, high, step)) > MOST_ELEMENTS:
        refuse(errors.numbers.too_many_elements(value_set.name, count))
    return progressions.numbers(low, high, step)
