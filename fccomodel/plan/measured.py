"""Where measurement speaks against theorems: how long algorithms took, by classes of problems.

``measured.toml`` is made by ``tests/bench/choice.py`` from runs of every algorithm on every model
with several seeds: for each class, the geometric mean over its models of an algorithm's time over
that of the best there. A time is sqrt(oracle calls * counted seconds) to an accuracy, 1e-2 and
1e-3, by stochastic steps alone. The theorems' order stands unless their first choice was measured
to take more than ``AGAINST`` times as long as the best, and so were their first choices for the
class's models, each its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

from fccomodel.evaluation.sets import elements
from fccomodel.plan import assumptions
from fccomodel.plan.assumptions import Setting

#: how much longer the theorems' first choice may take
AGAINST = 1.5
#: so many variables are few
FEW = 10
#: a class: what holds of its problems, and what does not
Class = Mapping[str, bool]
#: feature -> how a class with it is called, and one without
WORDS = {
    "convex": ("convex", "not convex"),
    "constrained": ("with constraints", "without constraints"),
    "kinks": ("with kinks", "smooth or smoothed"),
    "nets": ("of nets", ""),
    "sampled": ("by samples", "by all rows in every step"),
    "few": (f"of at most {FEW} variables", f"of more than {FEW} variables"),
    "maxima": ("of maxima", ""),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A class of problems, the models of it that were measured, and by algorithm how much longer it
    took than the best. Features that it does not name may be either way: where a class has a single
    model, that stands with those of a wider one.
    ``theorems``: the same of what these choose for each model by itself."""

    problems: Class
    models: tuple[str, ...]
    times: Mapping[str, float]
    theorems: float

    @property
    def name(self) -> str:
        """``convex, without constraints, smooth or smoothed, of at most 10 variables``."""
        return named(self.problems)

    def best(self, names: Sequence[str]) -> str | None:
        """The one of these that took the least, where the first of them took more than ``AGAINST``
        times as long, and what the theorems choose did."""
        timed = [name for name in names if name in self.times]
        least = min(timed, key=lambda name: self.times[name], default=None)
        if (
            least is None
            or min(self.times.get(names[0], self.theorems), self.theorems) <= AGAINST * self.times[least]
        ):
            return None
        return least

    def sentence(self, name: str, among: Sequence[str]) -> str:
        """``measurement: on problems of its class (convex, ..: 5 models) it took 1.2 times the least
        time, alexr 3.7``."""
        times = sorted((self.times[other], other) for other in among if other in self.times and other != name)
        others = "".join(f", {other} {time:.1f}" for time, other in times[:3])
        counted = f"{len(self.models)} model{'s' * (len(self.models) != 1)}"
        took = f"it took {self.times[name]:.1f} times the least time{others}"
        return f"measurement: on problems of its class ({self.name}: {counted}) {took}"

    def step(self, name: str, names: Sequence[str]) -> float:
        """The same for an order in which measurements that hardly differ from the least of these count
        as equal."""
        least = min((self.place(other) for other in names), default=0.0)
        if self.place(name) <= AGAINST * least:
            return 0.0
        return self.place(name)

    def place(self, name: str) -> float:
        """What algorithms are ordered by where the row speaks."""
        return self.times.get(name, float("inf"))


def named(problems: Class) -> str:
    """A class in words."""
    said = (WORDS[feature][not holds] for feature, holds in problems.items())
    return ", ".join(words for words in said if words)


@cache
def rows() -> tuple[Row, ...]:
    """All that was measured."""
    text = Path(__file__).with_name("measured.toml").read_text(encoding="utf-8")
    return tuple(
        Row(
            problems=entry["problems"],
            models=tuple(entry["models"]),
            times=entry["times"],
            theorems=entry["theorems"],
        )
        for entry in tomllib.loads(text).get("class", [])
    )


def of(problems: Class | None) -> Row | None:
    """The first row that a class is in, the narrowest first; None where there is none."""
    return next(
        (row for row in rows() if problems is not None and row.problems.items() <= problems.items()), None
    )


def features(setting: Setting, sampled: bool) -> Class | None:
    """The class of a problem, None before there are data; kinks are those of the objective, which
    ``setting`` has without penalties. ``sampled``: steps do not see all rows."""
    if setting.bound is None:
        return None
    bound, problem = setting.bound, setting.problem
    kinks = not all(assumptions.ALL[name].decide(setting).met for name in ("outer smooth", "inner smooth"))
    lengths = (prod(elements.shape(bound, v.shape)) for v in problem.variables.values() if v.net is None)
    return {
        "convex": setting.analysis.convex,
        "constrained": bool(setting.constrained),
        "kinks": kinks,
        "nets": bool(problem.nets),
        "sampled": sampled,
        "few": not problem.nets and sum(lengths) <= FEW,
        "maxima": kinks and assumptions.ALL["maxima"].decide(setting).holds,
    }
