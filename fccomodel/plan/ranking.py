"""The order of the algorithms that suit a problem, and why each one comes later than the chosen one.

No condition names an algorithm. If passes over all rows are wanted at the end, algorithms that allow
them go first; of these, those that smooth all of the problem's kinks; and of these, those whose
theorem covers the problem, or would without a smoothing that no theorem has. Then the theorems decide
(``candidates``), a guarantee before none, unless algorithms were measured on problems of the same
class and the theorems' first choice was far from the best (``measured``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from fccomodel.algorithms.estimators import plug_in
from fccomodel.plan import measured
from fccomodel.plan.candidates import GUARANTEES, Candidate, finishable

FINISHED = "but only without the final full-data phase (--no-polish)"
#: Algorithms of a common reason that are shown with their rates.
RATES_SHOWN = 2
KINKED = "by subgradients at kinks, but only without the final full-data phase (--no-polish)"


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranking:
    """Algorithms that suit a problem, the best first.

    theorems   in the order of their theorems alone
    order      in the order in which they are chosen
    row        the measurements that changed the order of the theorems, or None
    finishing  whether a finish by passes over all rows is wanted
    """

    theorems: tuple[Candidate, ...] = ()
    order: tuple[Candidate, ...] = ()
    row: measured.Measurement | None = None
    finishing: bool = False

    def reasons(self) -> list[str]:
        """Why the first algorithm comes first: its worth or the measurements that decided, and the choice
        of the theorems alone if it differs."""
        if not self.order:
            return []
        first, alone = self.order[0], self.theorems[0]
        if self.row is not None:
            sentences = [self.row.sentence(first.record.name, self._named)]
        elif first.covered:
            sentences = [f"its theorem: {first.worth()}"]
        else:
            sentences = [f"the rate of its theorem, which does not cover all of the model: {first.worth()}"]
        if first is not alone:
            lost = self._unfinished(alone, first)
            sentences.append(
                f"by the theorems alone it would be {alone.record.name}: "
                f"{alone.worth()}{lost and ', ' + lost}"
            )
        return sentences

    def _unfinished(self, other: Candidate, chosen: Candidate) -> str:
        """Why passes over all rows cannot finish a run of ``other``, if they can for the chosen one; ""
        otherwise."""
        if not self.finishing or not finishable(chosen.record):
            return ""
        if not finishable(other.record):
            return FINISHED
        if other.left and not chosen.left:
            return KINKED
        return ""

    @property
    def _named(self) -> list[str]:
        """The algorithms that were measured together with the first one; if a finish is wanted, those that
        allow it.
        """
        return [c.record.name for c in self.order if not self._unfinished(c, self.order[0])]

    def to_json(self) -> dict[str, Any]:
        """``order``, what the ``theorems`` alone would choose, and the class and times that were
        ``measured`` against that."""
        worth = {
            c.record.name: {"guarantee": c.guarantee, "rate": c.promise.rate, "calls": c.calls}
            for c in self.order
        }
        row = self.row and {
            "class": dict(self.row.problems),
            "models": list(self.row.models),
            "times": dict(self.row.times),
        }
        if self.theorems:
            alone = self.theorems[0].record.name
        else:
            alone = None
        return {"order": worth, "theorems": alone, "measured": row, "finishing": self.finishing}

    def later(self, other: Candidate, chosen: Candidate | None) -> str:
        """Why an algorithm that could run is not the one chosen."""
        if other.record.surrogate is not None:
            return "solves a different problem, the mean over the groups, so it runs only if you name it"
        if chosen is None:
            if other.covered:
                return "covers the model"
            return "could run"
        suits, title = "covered too" if other.covered else "could run too", chosen.record.title
        if lost := self._unfinished(other, chosen):
            return f"{suits}, {lost}"
        if other.biased and not chosen.biased:
            return f"{suits}, but one minibatch at a time is a biased estimate, however long the run"
        if (
            self.row is not None
            and self.row.place(chosen.record.name) < inf
            and other.covered == chosen.covered
        ):
            slower = self.row.place(other.record.name)
            if slower == inf:
                return f"{suits}, but not measured on similar models"
            if slower >= self.row.place(chosen.record.name):
                return f"{suits}, but measured slower than {title} on similar models"
        if other.order > chosen.order:
            weaker = GUARANTEES.index(other.guarantee) > GUARANTEES.index(chosen.guarantee)
            return f"{suits}; {title} has the {'stronger guarantee' if weaker else 'better rate'}"
        return f"{suits}, and preferred where none is named"


def rank(
    considered: Mapping[str, Candidate], finishing: bool = False, schedule: str = "practical"
) -> Ranking:
    """The order of the algorithms whose theorems hold, or whose steps go beyond them.

    finishing   passes over all rows are wanted at the end
    schedule    with ``theory`` algorithms that have a theorem's schedule go first, and measurements do
                not count
    """
    theorems = sorted((c for c in direct(considered) if c.admitted), key=lambda c: c.order)
    finishing = finishing and any(finishable(c.record) for c in theorems)
    finishing = finishing and not any(c.setting.problem.nets for c in theorems)
    by_theory = schedule == "theory"

    def unfinished(c: Candidate) -> tuple[bool, bool]:
        """Whether a full-data finish is wanted and cannot follow, or leaves work."""
        cannot = finishing and not finishable(c.record)
        return cannot, finishing and not cannot and c.left > 0

    def late(c: Candidate) -> tuple[bool, ...]:
        """The reasons why a candidate comes after others, the gravest first."""
        return (
            *unfinished(c),
            c.biased,
            by_theory and c.record.theory is None,
            not c.covered and (by_theory or not c.practised),
        )

    least = min(map(late, theorems), default=())
    first = [c.record.name for c in theorems if late(c) == least]
    row = None
    if len(first) > 1 and not by_theory:
        row = measured.of(class_of(theorems))
    if row is not None and row.best(first) is None:
        row = None

    def order(c: Candidate) -> tuple[Any, ...]:
        """The sort key: faults, then the steps measured on similar models, then the listed order."""
        return *late(c), row.step(c.record.name, first) if row else 0.0, c.order

    return Ranking(
        theorems=tuple(theorems), order=tuple(sorted(theorems, key=order)), row=row, finishing=finishing
    )


def class_of(suited: Sequence[Candidate]) -> measured.Class | None:
    """The class of the problem of these candidates; None before binding."""
    setting = suited[0].setting
    return measured.features(setting.free or setting, sampled=all(c.sampled for c in suited))


def direct(considered: Mapping[str, Candidate]) -> list[Candidate]:
    """The algorithms that solve the problem itself, not a surrogate."""
    return [c for c in considered.values() if c.record.surrogate is None]


def nearest(considered: Mapping[str, Candidate], most: int = 3) -> list[Candidate]:
    """The ``most`` nearest algorithms if no theorem holds: those that can run, the nearest first; any if
    none can run."""
    running = sorted((c for c in direct(considered) if c.can_run), key=_distance)
    return (running or list(considered.values()))[:most]


def nearest_for_nets(considered: Mapping[str, Candidate]) -> list[Candidate]:
    """The same of a model that trains nets: algorithms whose steps take some rows come first, and those
    with estimates that are kept come before others."""

    def order(c: Candidate) -> tuple[Any, ...]:
        """The sort key: all rows in a step, estimates by one minibatch, then as ever."""
        return c.record.oracle != "blocks", c.record.estimator in (None, plug_in), *_distance(c)

    return sorted(nearest(considered, len(considered)), key=order)


def _distance(c: Candidate) -> tuple[Any, ...]:
    """The sort key of the nearest: missing assumptions, then work left, then the listed order."""
    return len(c.lacking), c.left, c.order


def rejected(
    considered: Mapping[str, Candidate], chosen: Candidate | None, ranking: Ranking
) -> dict[str, list[str]]:
    """For every other algorithm, the assumptions that the model does not meet, or the reason why it comes
    later.

    Algorithms that could be chosen come first.
    """
    place = {c.record.name: k for k, c in enumerate(ranking.order)}
    others = [c for c in considered.values() if c is not chosen]
    others.sort(key=lambda c: (place.get(c.record.name, len(place)), not c.admitted, c.order))
    return {c.record.name: c.lacks() or [f"{ranking.later(c, chosen)}: {c.worth()}"] for c in others}


def alike(
    considered: Mapping[str, Candidate], chosen: Candidate | None, ranking: Ranking
) -> list[tuple[list[str], str]]:
    """The reasons, each with the algorithms that have it.

    Of several reasons of an algorithm, the reason of the most algorithms counts. Of algorithms that could
    run too, the first have their rates: they are the best.
    """
    shared = Counter(f.why for c in considered.values() for f in c.lacking.values())
    groups: dict[str, list[str]] = {}
    for name in rejected(considered, chosen, ranking):
        one = considered[name]
        if one.admitted:
            group = groups.setdefault(ranking.later(one, chosen), [])
            group.append(f"{name} ({one.worth()})" if len(group) < RATES_SHOWN else name)
        else:
            reasons = [f.why for f in one.lacking.values()]
            groups.setdefault(max(reasons, key=lambda why: shared[why]), []).append(name)
    return [(names, reason) for reason, names in groups.items()]
