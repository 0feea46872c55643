"""Measured times of algorithms, by classes of problems, which may overrule the order of the theorems.

``tests/bench/choice.py`` makes ``measured.toml`` from runs of every algorithm on every model with
several seeds. For each class and algorithm it has the geometric mean, over the class's models, of the
algorithm's time divided by the best time. A time is sqrt(oracle calls * counted seconds) to an
accuracy, 1e-2 and 1e-3, by stochastic steps alone. The theorems' order stands unless their first
choice took more than ``AGAINST`` times as long as the best, and so did the theorems' first choices
for the models of the class.
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

#: Time of the theorems' first choice, relative to the best, up to which the theorems decide.
AGAINST = 1.5
#: Variables up to which they are few.
FEW_VARIABLES = 10
#: A class of problems: feature -> whether its problems have it.
Class = Mapping[str, bool]
#: feature -> the words for a class with it, and for one without.
WORDS = {
    "convex": ("convex", "not convex"),
    "constrained": ("with constraints", "without constraints"),
    "kinks": ("with kinks", "smooth or smoothed"),
    "nets": ("of nets", ""),
    "sampled": ("by samples", "by all rows in every step"),
    "few": (f"of at most {FEW_VARIABLES} variables", f"of more than {FEW_VARIABLES} variables"),
    "maxima": ("of maxima", ""),
}


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The measurements of a class of problems.

    problems   the class; features that it does not name may be either way, so that a class with a
               single model is part of a wider one
    models     the measured models
    times      algorithm -> its time relative to the best
    theorems   the same for the choices that the theorems make for each model
    """

    problems: Class
    models: tuple[str, ...]
    times: Mapping[str, float]
    theorems: float

    @property
    def name(self) -> str:
        """``convex, without constraints, smooth or smoothed, of at most 10 variables``."""
        return named(self.problems)

    def best(self, names: Sequence[str]) -> str | None:
        """The fastest of these algorithms, if both the first of them and the theorems' choices took more
        than ``AGAINST`` times as long; else None."""
        timed = [name for name in names if name in self.times]
        if not timed:
            return None
        fastest = min(timed, key=lambda name: self.times[name])
        of_theorems = min(self.times.get(names[0], self.theorems), self.theorems)
        if of_theorems > AGAINST * self.times[fastest]:
            return fastest
        return None

    def sentence(self, name: str, among: Sequence[str]) -> str:
        """``measurement: on 5 models like this (convex, ...) it was the fastest; slower by these factors:
        sox 3.7``."""
        mine = self.times[name]
        counted = f"{len(self.models)} model{'s' * (len(self.models) != 1)}"
        fastest = min((other for other in among if other in self.times), key=lambda other: self.times[other])
        if self.times[fastest] < mine:
            place = f"it took {mine / self.times[fastest]:.1f} times as long as the fastest, {fastest}"
        else:
            place = "it was the fastest"
        slower = sorted((self.times[other], other) for other in among if self.times.get(other, 0.0) > mine)
        if slower:
            others = [f"{other} {time / mine:.1f}" for time, other in slower[:3]]
            place += f"; slower by these factors: {', '.join(others)}"
        return f"measurement: on {counted} like this ({self.name}) {place}"

    def step(self, name: str, names: Sequence[str]) -> float:
        """The relative time of an algorithm, 0 if it hardly differs from the least of these."""
        least = min((self.place(other) for other in names), default=0.0)
        if self.place(name) <= AGAINST * least:
            return 0.0
        return self.place(name)

    def place(self, name: str) -> float:
        """The relative time of an algorithm; infinite if it was not measured."""
        return self.times.get(name, float("inf"))


def named(problems: Class) -> str:
    """The class in words."""
    said = (WORDS[feature][not holds] for feature, holds in problems.items())
    return ", ".join(words for words in said if words)


@cache
def rows() -> tuple[Measurement, ...]:
    """All measurements, the narrowest classes first."""
    text = Path(__file__).with_name("measured.toml").read_text(encoding="utf-8")
    return tuple(
        Measurement(
            problems=entry["problems"],
            models=tuple(entry["models"]),
            times=entry["times"],
            theorems=entry["theorems"],
        )
        for entry in tomllib.loads(text).get("class", [])
    )


def of(problems: Class | None) -> Measurement | None:
    """The measurements of the narrowest class that holds these problems, or None."""
    if problems is None:
        return None
    return next((row for row in rows() if row.problems.items() <= problems.items()), None)


def features(setting: Setting, sampled: bool) -> Class | None:
    """The class of a problem, or None before binding.

    setting   the problem without penalties, so that kinks are those of the objective
    sampled   whether steps see only some of the rows
    """
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
        "few": not problem.nets and sum(lengths) <= FEW_VARIABLES,
        "maxima": kinks and assumptions.ALL["maxima"].decide(setting).holds,
    }
