"""Every algorithm for a problem: what its theorem lacks, its guarantee, and its rate in numbers.

Candidates are compared by the promises of their theorems: an optimum before a stationary point, and
both before no guarantee. Then they are compared by oracle calls: the whole rate at the problem's own
n, B1, B2 and eps, times the calls of a step (before binding, by the powers of 1/eps, n and the batch
sizes). Then they are compared by name.
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
from fccomodel.plan.assumptions import NETS, Finding, Setting, modulus
from fccomodel.structure import Analysis

#: The guarantees of theorems, the best first.
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
    """An algorithm for a problem.

    setting   the problem in the algorithm's form
    find      decides an assumption by name; only when it is asked for, so that a named algorithm does
              not wait for the others
    count     the problem's numbers in the rate of an algorithm
    """

    record: Algorithm
    setting: Setting
    forms: Forms = field(repr=False)
    find: Callable[[str], Finding] = field(repr=False)
    count: Callable[[Algorithm], Mapping[str, float]] = field(repr=False)

    @cached_property
    def findings(self) -> dict[str, Finding]:
        """The finding on each assumption of its theorem."""
        return {needed: self.find(needed) for needed in self.record.requires}

    @cached_property
    def promise(self) -> Theorem:
        """The strongest of its theorems that hold."""
        return next(t for t in self.record.theorems if all(self.find(needed).holds for needed in t.where))

    @cached_property
    def numbers(self) -> Mapping[str, float]:
        """The problem's numbers in its rate; none before binding."""
        return self.count(self.record)

    @cached_property
    def normal(self) -> NormalForm:
        """The problem in the algorithm's own form."""
        return self.forms(**treatment(self.record))

    @property
    def broken(self) -> dict[str, Finding]:
        """The assumptions of its theorem that do not hold."""
        return {name: finding for name, finding in self.findings.items() if not finding.holds}

    @property
    def lacking(self) -> dict[str, Finding]:
        """The broken assumptions without which the algorithm is not run by default."""
        return {name: finding for name, finding in self.broken.items() if not self._practice(name, finding)}

    @property
    def beyond(self) -> dict[str, Finding]:
        """The broken assumptions for which the algorithm does something that the theorem does not cover."""
        return {name: finding for name, finding in self.broken.items() if self._practice(name, finding)}

    def _practice(self, name: str, finding: Finding) -> str:
        """What the algorithm does if an assumption does not hold, or an empty string."""
        return finding.practice or self.record.beyond.get(name, "")

    @property
    def covered(self) -> bool:
        """Whether its theorem holds, as far as is known."""
        return not self.broken

    @property
    def covered_but_for_nets(self) -> bool:
        """Whether its theorem would hold if every net were smooth; it then suits as it would suit those."""
        return all(finding.practice == NETS for finding in self.broken.values())

    @property
    def admitted(self) -> bool:
        """Whether it may be chosen: its theorem holds except for ``beyond``."""
        return not self.lacking

    @property
    def practised(self) -> bool:
        """Whether each broken assumption has a practice of its own, such as an envelope or a penalty."""
        return all(finding.practice for finding in self.broken.values())

    @property
    def can_run(self) -> bool:
        """Whether the algorithm has a form for this problem, with or without its theorem."""
        return not any(assumptions.ALL[name].form for name in self.lacking)

    @property
    def left(self) -> int:
        """The number of non-smooth parts that it leaves to subgradients."""
        return len(self.normal.kept)

    @property
    def guarantee(self) -> str:
        """The guarantee of its theorem for the problem, one of ``GUARANTEES``."""
        if self.covered:
            return self.promise.gives
        return GUARANTEES[-1]

    @cached_property
    def calls(self) -> float | None:
        """Oracle calls of its theorem's rate for the problem, up to constants; None before binding."""
        if "n" not in self.numbers:
            return None
        unit = self.record.calls(*(self.numbers[name] for name in ("n", "B1", "B2")))
        return rates.calls(self.promise.rate, self.numbers, unit)

    @property
    def sampled(self) -> bool:
        """Whether its steps see only some of the blocks and rows."""
        numbers = self.numbers
        if not numbers:
            return False
        return numbers["B1"] < numbers["n"] or numbers["B2"] < numbers["rows"]

    @property
    def biased(self) -> bool:
        """Whether one minibatch at a time estimates an expectation under a nonlinear function, and no pass
        over all rows is sure to remove that bias: expectations over distributions, and nets, whose passes
        seldom follow the steps."""
        if self.record.estimator is not plug_in:
            return False
        if not any(term.kind == "composition" for term in self.normal.terms):
            return False
        numbers = self.numbers
        nets = any(variable.net for variable in self.setting.problem.variables.values())
        some_rows = bool(numbers) and numbers["B2"] < numbers["rows"]
        return sizes.endless(self.normal) or nets and some_rows

    @property
    def order(self) -> tuple[Any, ...]:
        """The key by which candidates are compared; the least is the best."""
        rate = rates.order(self.promise.rate)
        if self.covered_but_for_nets:
            promised = self.promise.gives
        else:
            promised = self.guarantee
        return (
            GUARANTEES.index(promised),
            inf if self.calls is None else self.calls,
            rate,
            self.record.name,
        )

    def worth(self) -> str:
        """The guarantee and the rate of a candidate: ``an optimum, O(1 / eps^2): 3.6e+08 oracle calls``."""
        rate = f"{GIVEN[self.guarantee]}, O({self.promise.rate})"
        if self.calls is None:
            return rate
        return f"{rate}: {self.calls:.1e} oracle calls"

    def lacks(self) -> list[str]:
        """Sentences on the lacking assumptions, with the place that states them."""
        return [sentence(self.record, name, finding) for name, finding in self.lacking.items()]

    def adds(self) -> list[str]:
        """Sentences on what its steps do beyond the theorem, one for all assumptions that fail for the
        same reason."""
        alike: dict[tuple[str, str], list[str]] = {}
        of_nets = ""
        for name, finding in self.beyond.items():
            assumed = f"{assumptions.ALL[name].meaning} ({self.record.requires[name]})"
            why, practice = finding.why, self._practice(name, finding)
            if practice == NETS:  # the kinks of one net break several assumptions
                of_nets = why = of_nets or why
            alike.setdefault((why, practice), []).append(assumed)
        return [
            f"{why}: {practice}; the theorem assumes {', and '.join(assumed)}"
            for (why, practice), assumed in alike.items()
        ]


def sentence(record: Algorithm, name: str, finding: Finding) -> str:
    """An assumption, its clause, and why it does not hold."""
    return f"{assumptions.ALL[name].meaning} ({record.requires[name]}); {finding.why}"


def candidates(analysis: Analysis, options: Origins | None = None) -> dict[str, Candidate]:
    """Every algorithm as a candidate; raises if the problem has no normal form at all."""
    problem, bound, options = analysis.problem, analysis.bound, options or {}
    rho = float(settings.value(options, "rho", settings.RHO))
    forms = Forms(problem, bound)
    normal = forms()
    batch_options = {name: options[name] for name in settings.BATCHES if name in options}
    sampled, _ = sizes.batches(batch_options, bool(problem.nets), deep=sizes.depth(problem.roots))
    free = Setting(normal=normal, analysis=analysis, bound=bound, penalty=None, rho=rho, batch=sampled)
    count = _numbers(free, options)

    settings_of: dict[object, Setting] = {}

    def setting(penalty: str | None) -> Setting:
        """The setting with a penalty for the constraints, or without one. Penalties by one function of
        the constraints share it."""
        if penalty is None:
            return free
        function = reformulations.penalty(penalty).function
        return settings_of.setdefault(function, dataclasses.replace(free, penalty=penalty, free=free))

    @cache
    def finding(posed: Setting, needed: str) -> Finding:
        """Whether an assumption holds in a setting."""
        return assumptions.ALL[needed].decide(posed)

    penalties = {
        name: record.penalty if problem.constraints else None for name, record in algorithms.all().items()
    }
    return {
        name: Candidate(
            record=record,
            setting=setting(penalties[name]),
            forms=forms,
            find=partial(finding, setting(penalties[name])),
            count=count,
        )
        for name, record in algorithms.all().items()
    }


def _numbers(setting: Setting, options: Origins) -> Callable[[Algorithm], dict[str, float]]:
    """A function that gives an algorithm's numbers, by its batch sizes: n, B1, B2, rows, eps and, if the
    problem is strongly convex, mu."""
    normal, bound = setting.normal, setting.bound
    eps, (mu, _) = float(settings.value(options, "epsilon", settings.EPSILON)), modulus(setting)

    @cache
    def of(batches: tuple[tuple[str, Any], ...]) -> dict[str, float]:
        """The numbers of the problem with some batch sizes."""
        given, deep = {name: (size, "") for name, size in batches}, sizes.depth(setting.problem.roots)
        batch, _ = sizes.batches(given, bool(setting.problem.nets), deep=deep)
        assert bound is not None
        return {**sizes.counted(normal, bound, batch), "eps": eps, **({"mu": mu} if mu else {})}

    def numbers(record: Algorithm) -> dict[str, float]:
        """The numbers of the problem with an algorithm's batch sizes."""
        if bound is None:
            return {}
        batch_sizes = {
            name: settings.value(options, name, record.hyper.get(name)) for name in settings.BATCHES
        }
        return of(tuple((name, size) for name, size in batch_sizes.items() if size is not None))

    return numbers


def treatment(record: Algorithm) -> dict[str, Any]:
    """The treatment of non-smooth parts and constraints that an algorithm needs."""
    inner = "moreau" if "inner smooth" in record.requires else "subgradient"
    form = {"outer": record.outer, "inner": inner, "penalty": record.penalty, "surrogate": record.surrogate}
    return {**form, "coupled": "linear coupling" in record.requires}


def finishable(record: Algorithm) -> bool:
    """Whether passes can finish its runs: the smoothed problem that it works on, with centres that may
    move, has a gradient on all rows."""
    if record.outer not in ("moreau", "entropy", "smooth", "dual"):
        return False
    if not record.penalty:
        return True
    penalty = reformulations.penalty(record.penalty)
    return penalty.smooth and penalty.bounded
