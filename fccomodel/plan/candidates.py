"""Every algorithm for a problem: what its theorem lacks, what it guarantees, and what its rate
comes to.

Candidates are compared by what their theorems promise: an optimum before a stationary point, either
before what the theorem does not cover; then by the oracle calls that the whole rate comes to, every
term of it at the problem's own n, B1, B2 and eps, times what a step takes (before there are data,
by the powers of 1/eps, n and the batch sizes); then by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from math import inf
from typing import Any

from fccomodel import algorithms
from fccomodel.algorithms import Algorithm, Theorem
from fccomodel.algorithms.estimators import plug_in
from fccomodel.core.options import Origins
from fccomodel.normal_form import Forms, NormalForm, reformulations
from fccomodel.plan import assumptions, rates, settings, sizes
from fccomodel.plan.assumptions import Finding, Setting, modulus
from fccomodel.structure import Analysis

#: what theorems guarantee, the best first
GUARANTEES = ("optimum", "stationarity", "smoothed stationarity", "nothing")
GIVEN = {
    "optimum": "an optimum",
    "stationarity": "a stationary point",
    "smoothed stationarity": "a point near a stationary one of the smoothed objective F_lambda, not of "
    "the problem",
    "nothing": "no guarantee",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidate:
    """An algorithm for a problem. Its assumptions are decided when they are asked for: by ``find``, of
    the problem in its own setting, so that one that is named, or kept, does not wait for the
    others."""

    record: Algorithm
    setting: Setting
    forms: Forms = field(repr=False)
    find: Callable[[str], Finding] = field(repr=False)
    count: Callable[[Algorithm], Mapping[str, float]] = field(repr=False)

    @cached_property
    def findings(self) -> dict[str, Finding]:
        """What was found about each assumption of its theorem."""
        return {needed: self.find(needed) for needed in self.record.requires}

    @cached_property
    def promise(self) -> Theorem:
        """The theorem that promises most, of those that hold."""
        return next(t for t in self.record.theorems if all(self.find(needed).holds for needed in t.where))

    @cached_property
    def numbers(self) -> Mapping[str, float]:
        """The problem's own in its rate, with data."""
        return self.count(self.record)

    @cached_property
    def normal(self) -> NormalForm:
        """The problem in the algorithm's own form."""
        return self.forms(**treatment(self.record))

    @property
    def broken(self) -> dict[str, Finding]:
        """What does not hold of what its theorem assumes."""
        return {name: finding for name, finding in self.findings.items() if not finding.holds}

    @property
    def lacking(self) -> dict[str, Finding]:
        """Of this, what its steps have no answer to."""
        return {name: finding for name, finding in self.broken.items() if not self._practice(name, finding)}

    @property
    def beyond(self) -> dict[str, Finding]:
        """And what they have one to, though the theorem does not speak of it."""
        return {name: finding for name, finding in self.broken.items() if self._practice(name, finding)}

    def _practice(self, name: str, finding: Finding) -> str:
        """What is run where an assumption does not hold; "" where there is no such thing."""
        return finding.practice or self.record.beyond.get(name, "")

    @property
    def covered(self) -> bool:
        """Its theorem holds, as far as is known."""
        return not self.broken

    @property
    def admitted(self) -> bool:
        """Its theorem holds but for what its steps go beyond: it runs without being asked to."""
        return not self.lacking

    @property
    def practised(self) -> bool:
        """Whether its theorem would cover the problem but for what is run in the place of assumptions
        that fail: an envelope, a penalty."""
        return all(finding.practice for finding in self.broken.values())

    @property
    def can_run(self) -> bool:
        """There is a form of it for this problem, theorem or not."""
        return not any(assumptions.ALL[name].form for name in self.lacking)

    @property
    def left(self) -> int:
        """Non-smooth parts that it leaves to subgradients."""
        return len(self.normal.kept)

    @property
    def guarantee(self) -> str:
        """What its theorem guarantees of the problem: ``optimum``, ``stationarity`` or ``nothing``."""
        if self.covered:
            return self.promise.gives
        return GUARANTEES[-1]

    @cached_property
    def calls(self) -> float | None:
        """Oracle calls that its theorem's rate comes to for the problem, up to constants; None before
        there are data."""
        if "n" not in self.numbers:
            return None
        unit = self.record.calls(*(self.numbers[name] for name in ("n", "B1", "B2")))
        return rates.calls(self.promise.rate, self.numbers, unit)

    @property
    def sampled(self) -> bool:
        """Its steps do not see all blocks and rows; those of a distribution have no end."""
        return bool(self.numbers) and (
            self.numbers["B1"] < self.numbers["n"] or self.numbers["B2"] < self.numbers["rows"]
        )

    @property
    def biased(self) -> bool:
        """One minibatch at a time stands for an expectation over a distribution under a nonlinear
        function: no pass over all of it can mend that."""
        memoryless = self.record.estimator is plug_in
        return (
            memoryless
            and sizes.draws(self.normal)
            and any(term.kind == "composition" for term in self.normal.terms)
        )

    @property
    def order(self) -> tuple[Any, ...]:
        """What candidates are compared by, the least first."""
        rate = rates.order(self.promise.rate)
        return (
            GUARANTEES.index(self.guarantee),
            inf if self.calls is None else self.calls,
            rate,
            self.record.name,
        )

    def worth(self) -> str:
        """``an optimum, O(1 / eps^2): 3.6e+08 oracle calls``: what it is ordered by."""
        rate = f"{GIVEN[self.guarantee]}, O({self.promise.rate})"
        if self.calls is None:
            return rate
        return f"{rate}: {self.calls:.1e} oracle calls"

    def lacks(self) -> list[str]:
        """What the theorem needs that does not hold, and where it says so."""
        return [sentence(self.record, name, finding) for name, finding in self.lacking.items()]

    def adds(self) -> list[str]:
        """What its steps do where they go beyond the theorem: one sentence for assumptions that fail
        for the same reason."""
        alike: dict[tuple[str, str], list[str]] = {}
        for name, finding in self.beyond.items():
            assumed = f"{assumptions.ALL[name].meaning} ({self.record.requires[name]})"
            alike.setdefault((finding.why, self._practice(name, finding)), []).append(assumed)
        return [
            f"{why}: {practice}; the theorem assumes {', and '.join(assumed)}"
            for (why, practice), assumed in alike.items()
        ]


def sentence(record: Algorithm, name: str, finding: Finding) -> str:
    """An assumption, its clause, and what is the matter."""
    return f"{assumptions.ALL[name].meaning} ({record.requires[name]}); {finding.why}"


def candidates(analysis: Analysis, options: Origins | None = None) -> dict[str, Candidate]:
    """Every algorithm with what was found; raises where the problem has no normal form at all."""
    problem, bound, options = analysis.problem, analysis.bound, options or {}
    rho = float(settings.value(options, "rho", settings.RHO))
    forms = Forms(problem, bound)
    normal = forms()
    given = {name: options[name] for name in settings.BATCHES if name in options}
    sampled, _ = sizes.batches(given, bool(problem.nets), deep=sizes.depth(problem.roots))
    free = Setting(normal=normal, analysis=analysis, bound=bound, penalty=None, rho=rho, batch=sampled)
    count = _numbers(free, options)

    @cache
    def setting(penalty: str | None) -> Setting:
        if penalty is None:
            return free
        return dataclasses.replace(free, penalty=penalty, free=free)

    @cache
    def finding(penalty: str | None, needed: str) -> Finding:
        return assumptions.ALL[needed].decide(setting(penalty))

    taken = {
        name: record.penalty if problem.constraints else None for name, record in algorithms.all().items()
    }
    return {
        name: Candidate(
            record=record,
            setting=setting(taken[name]),
            forms=forms,
            find=partial(finding, taken[name]),
            count=count,
        )
        for name, record in algorithms.all().items()
    }


def _numbers(setting: Setting, options: Origins) -> Callable[[Algorithm], dict[str, float]]:
    """n, B1, B2, rows, eps and, where the problem is strongly convex, mu, by the batch sizes that an
    algorithm takes."""
    normal, bound = setting.normal, setting.bound
    eps, (mu, _) = float(settings.value(options, "epsilon", settings.EPSILON)), modulus(setting)

    @cache
    def of(batches: tuple[tuple[str, Any], ...]) -> dict[str, float]:
        given, deep = {name: (size, "") for name, size in batches}, sizes.depth(setting.problem.roots)
        batch, _ = sizes.batches(given, bool(setting.problem.nets), deep=deep)
        assert bound is not None
        return {**sizes.counted(normal, bound, batch), "eps": eps, **({"mu": mu} if mu else {})}

    def numbers(record: Algorithm) -> dict[str, float]:
        if bound is None:
            return {}
        given = {name: settings.value(options, name, record.hyper.get(name)) for name in settings.BATCHES}
        return of(tuple((name, size) for name, size in given.items() if size is not None))

    return numbers


def treatment(record: Algorithm) -> dict[str, Any]:
    """How an algorithm wants non-smooth parts and constraints to be treated."""
    inner = "moreau" if "inner smooth" in record.requires else "subgradient"
    form = {"outer": record.outer, "inner": inner, "penalty": record.penalty, "surrogate": record.surrogate}
    return {**form, "coupled": "linear coupling" in record.requires}


def finishable(record: Algorithm) -> bool:
    """The smoothed problem that it works on, with centres that may move, has a gradient on all rows."""
    if record.penalty:
        penalty = reformulations.penalty(record.penalty)
    else:
        penalty = None
    return record.outer in ("moreau", "entropy", "smooth", "dual") and (
        penalty is None or penalty.smooth and penalty.bounded
    )
