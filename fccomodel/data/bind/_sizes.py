"""Sizes solved from the data: dims, and the labels of sets whose labels come with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._encode import Key
from fccomodel.data.bound import Claim


@dataclass(frozen=True, kw_only=True)
class Known:
    """A size and what it was read from, in words."""

    size: int
    place: str


class Sizes:
    """What is known of dims and sets so far; every new finding is compared with the first."""

    def __init__(self, problem: ir.Problem, value: Callable[[ir.Expr], float]):
        self.problem, self._value = problem, value
        self.known: dict[str, Known] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.ordered: dict[str, str] = {}  # label sets whose order is fixed, with what fixed it
        self.learned: dict[str, dict[str, Key]] = {}  # label sets that collect labels from columns
        self.claims: list[Claim] = []  # sizes of filtered rows, to be compared when the rows are known

    def declare_labels(self, name: str, labels: tuple[str, ...], place: str) -> None:
        """Labels in their final order."""
        self.labels[name], self.ordered[name] = labels, place
        self.known[name] = Known(size=len(labels), place=place)

    def learn(self, name: str, labels: tuple[str, ...], keys: tuple[Key, ...]) -> None:
        """Labels met in a column; they are sorted when all columns have been read."""
        self.learned.setdefault(name, {}).update(zip(labels, keys, strict=True))

    def settle(self) -> None:
        """Sort what the columns taught."""
        for name, found in self.learned.items():
            if name not in self.labels:
                self.declare_labels(name, tuple(sorted(found, key=found.__getitem__)), "the data's labels")

    def of(self, dim: ir.Dim) -> int | None:
        """A size as far as it is known."""
        if isinstance(dim, int):
            return dim
        if dim not in self.known and isinstance(chosen := self.problem.sets.get(dim), ir.ValueSet):
            self.known[dim] = Known(size=len(members(chosen, self._value)), place=f"set {dim}")
        return self.known[dim].size if dim in self.known else None

    def unify(self, dim: ir.Dim, size: int, what: str, place: str, names: tuple[str, ...] | None = None) -> None:
        """Note that an axis declared as ``dim`` has ``size`` elements (called ``names``) in the data; F0516 if it has not."""
        chosen = self.problem.sets.get(dim) if isinstance(dim, str) else None
        if isinstance(dim, str) and isinstance(chosen, ir.RowSet):
            self.claims.append(Claim(set=dim, size=size, what=what))
            return
        if isinstance(dim, str) and isinstance(chosen, ir.LabelSet) and names is not None:
            self._unify_labels(dim, names, what, place)
            return
        known = self.of(dim)
        if known is None:
            assert isinstance(dim, str)
            self.known[dim] = Known(size=size, place=place)
            if isinstance(chosen, ir.LabelSet):
                self.declare_labels(dim, tuple(str(k + 1) for k in range(size)), place)
        elif known != size:
            refuse(errors.sizes.disagree(what, size, place, dim, known, self.known[dim].place if isinstance(dim, str) else ""))

    def _unify_labels(self, name: str, names: tuple[str, ...], what: str, place: str) -> None:
        known = self.labels.get(name)
        if known is None:
            self.declare_labels(name, names, place)
        elif known != names:
            refuse(errors.sizes.other_labels(what, names, name, known, self.ordered[name]))

    def positions(self, name: str, labels: tuple[str, ...], codes: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """Positions in the set for positions in ``labels`` (-1 for unknown), and the labels it does not have."""
        place = {label: k for k, label in enumerate(self.labels[name])}
        table = np.array([place.get(label, -1) for label in labels], np.int64)
        return table[codes] if len(labels) else codes, [label for label in labels if label not in place]


def start(
    problem: ir.Problem, value: Callable[[ir.Expr], float], sets: Mapping[str, tuple[str, ...]], places: Callable[..., str]
) -> Sizes:
    """Sizes known from the model and from label lists of the binding file."""
    sizes = Sizes(problem, value)
    literal = {c.domain.name: c.domain for t in problem.tables.values() for c in t.columns.values() if c.domain is not None}
    for name, chosen in {**literal, **problem.sets}.items():
        if isinstance(chosen, ir.LabelSet) and chosen.labels is not None:
            sizes.declare_labels(name, chosen.labels, f"set {name} of the model")
        elif name in sets:
            sizes.declare_labels(name, sets[name], places("sets", name) or "the binding")
    return sizes


def members(chosen: ir.ValueSet, value: Callable[[ir.Expr], float]) -> np.ndarray:
    """The numbers of a value set, float64, in order."""
    if chosen.items is not None:
        return np.array([value(item) for item in chosen.items], float)
    assert chosen.low is not None and chosen.high is not None
    low, high, step = value(chosen.low), value(chosen.high), value(chosen.step) if chosen.step is not None else 1.0
    if step == 0 or not all(map(math.isfinite, (low, high, step))):
        refuse(errors.numbers.not_a_range(chosen.name, low, high, step))
    count = math.floor((high - low) / step + 1e-9) + 1
    if count > 10_000_000:
        refuse(errors.numbers.too_many_elements(chosen.name, count))
    digits = 12 - math.floor(math.log10(abs(step)))
    return np.round(low + step * np.arange(max(count, 0)), digits) + 0.0  # 0.1 * 3 is 0.3, and no -0
