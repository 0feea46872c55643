"""Which algorithm solves a problem: what each one's theorem lacks, and the order of those whose assumptions hold.

No condition names an algorithm. Those that can run are ordered by what they declare: first their ``preference`` (practice before
theory: 0 was measured on the bundled models), then their rate: the power of 1/eps, of n, of the batch sizes; then the name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fccomodel import algorithms
from fccomodel.algorithms import Algorithm, Theorem
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.core.options import Origins
from fccomodel.normal import NormalForm, normalise
from fccomodel.plan import assumptions, errors, rates, settings
from fccomodel.plan.assumptions import Finding, Setting
from fccomodel.structure import Analysis


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidate:
    """An algorithm for a problem, what was found about each assumption of its theorem, and the theorem that promises most."""

    record: Algorithm
    setting: Setting
    promise: Theorem
    findings: Mapping[str, Finding] = field(default_factory=dict)

    @cached_property
    def normal(self) -> NormalForm:
        """The problem in the algorithm's own form."""
        return normalise(self.setting.problem, self.setting.bound, **treatment(self.record))

    @property
    def broken(self) -> dict[str, Finding]:
        """What does not hold of what its theorem assumes."""
        return {name: finding for name, finding in self.findings.items() if not finding.holds}

    @property
    def lacking(self) -> dict[str, Finding]:
        """Of this, what its steps have no answer to."""
        return {name: finding for name, finding in self.broken.items() if name not in self.record.beyond}

    @property
    def beyond(self) -> dict[str, Finding]:
        """And what they have one to, though the theorem does not speak of it."""
        return {name: finding for name, finding in self.broken.items() if name in self.record.beyond}

    @property
    def covered(self) -> bool:
        """Its theorem holds, as far as is known."""
        return not self.broken

    @property
    def admitted(self) -> bool:
        """Its theorem holds but for what its steps go beyond: it runs without being asked to."""
        return not self.lacking

    @property
    def can_run(self) -> bool:
        """There is a form of it for this problem, theorem or not."""
        return not any(assumptions.ALL[name].form for name in self.lacking)

    @property
    def left(self) -> int:
        """Non-smooth parts that it leaves to subgradients."""
        return len(self.normal.kept)

    @property
    def order(self) -> tuple[Any, ...]:
        """What candidates are compared by, the least first."""
        return self.record.preference, rates.order(self.promise.rate), self.record.name

    def lacks(self) -> list[str]:
        """What the theorem needs that does not hold, and where it says so."""
        return [sentence(self.record, name, finding) for name, finding in self.lacking.items()]

    def adds(self) -> list[str]:
        """What its steps do where they go beyond the theorem."""
        return [
            f"{finding.why}: {self.record.beyond[name]}; the theorem assumes {assumptions.ALL[name].meaning} "
            f"({self.record.requires[name]})"
            for name, finding in self.beyond.items()
        ]


def sentence(record: Algorithm, name: str, finding: Finding) -> str:
    """An assumption, its clause, and what is the matter."""
    return f"{assumptions.ALL[name].meaning} ({record.requires[name]}); {finding.why}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice:
    """The algorithm for a problem, what it was chosen among (by name), and the options given, with their origins.

    refusal  what the problem lacks, where none suits or the one named does not: nothing is chosen then
    """

    analysis: Analysis
    options: Origins
    candidates: Mapping[str, Candidate]
    selected: Candidate | None = None
    refusal: tuple[Diagnostic, ...] = ()

    @property
    def chosen(self) -> Candidate:
        """The algorithm; raises the refusal where there is none."""
        if self.selected is None:
            refuse(*self.refusal, source=self.analysis.problem.source)
        return self.selected

    @property
    def treatment(self) -> dict[str, Any]:
        """How the algorithm wants non-smooth parts and constraints to be treated: arguments of ``normalise``."""
        return treatment(self.chosen.record)


def choose(analysis: Analysis, options: Origins) -> Choice:
    """The algorithm that the options name, or the first that suits; F06xx where the problem has no form for any."""
    problem = analysis.problem
    settings.refuse_unknown(options, problem)
    named = settings.value(options, "algorithm")
    considered = candidates(analysis, rho=float(settings.value(options, "rho", settings.RHO)))
    unverified = bool(settings.value(options, "unverified", False))
    found = select(considered, None if named in (None, "auto") else str(named), unverified, problem)
    selected, refusal = (found, ()) if isinstance(found, Candidate) else (None, found)
    return Choice(analysis=analysis, options=options, candidates=considered, selected=selected, refusal=refusal)


def candidates(analysis: Analysis, *, rho: float = settings.RHO) -> dict[str, Candidate]:
    """Every algorithm with what was found; raises where the problem has no normal form at all."""
    problem, bound = analysis.problem, analysis.bound
    normal = normalise(problem, bound)
    by_penalty: dict[str | None, Setting] = {}
    decided: dict[tuple[str | None, str], Finding] = {}
    considered = {}
    for name, record in algorithms.all().items():
        penalty = record.penalty if problem.constraints else None
        if penalty not in by_penalty:
            by_penalty[penalty] = Setting(normal=normal, analysis=analysis, bound=bound, penalty=penalty, rho=rho)
        for needed in (*record.requires, *(a for theorem in record.better for a in theorem.where)):
            if (penalty, needed) not in decided:
                decided[penalty, needed] = assumptions.ALL[needed].decide(by_penalty[penalty])
        findings = {needed: decided[penalty, needed] for needed in record.requires}
        promise = next(t for t in record.theorems if all(decided[penalty, needed].holds for needed in t.where))
        considered[name] = Candidate(record=record, setting=by_penalty[penalty], promise=promise, findings=findings)
    return considered


def treatment(record: Algorithm) -> dict[str, Any]:
    """How an algorithm wants non-smooth parts and constraints to be treated."""
    inner = "moreau" if "inner smooth" in record.requires else "subgradient"
    form = {"outer": record.outer, "inner": inner, "penalty": record.penalty, "surrogate": record.surrogate}
    return {**form, "coupled": "linear coupling" in record.requires}


# --------------------------------------------------------------------------------------------------------------- choosing
def select(
    considered: Mapping[str, Candidate], name: str | None, unverified: bool, problem: ir.Problem
) -> Candidate | tuple[Diagnostic, ...]:
    """The one named, checked all the same; else the first whose theorem holds; ``unverified``: else the first that can run.
    Where that is none, what the problem lacks."""
    if name is not None and name not in considered:
        refuse(errors.unknown_algorithm(name, list(considered)), source=problem.source)
    if name is not None:
        one = considered[name]
        if one.admitted or unverified and one.can_run:
            return one
        return tuple(_refusals(one, unverified))
    admitted = sorted((c for c in _direct(considered) if c.admitted), key=lambda c: c.order)
    if admitted:
        return admitted[0]
    near = nearest(considered)
    return near[0] if unverified and near[0].can_run else (_none(considered),)


def _direct(considered: Mapping[str, Candidate]) -> list[Candidate]:
    """Those that solve the problem itself: another one only where it is asked for."""
    return [c for c in considered.values() if c.record.surrogate is None]


def nearest(considered: Mapping[str, Candidate], most: int = 3) -> list[Candidate]:
    """The few that would be run where no theorem holds, the first first; any where none can run."""

    def order(c: Candidate) -> tuple[Any, ...]:
        return c.record.preference, len(c.lacking), c.left, c.order

    running = sorted((c for c in _direct(considered) if c.can_run), key=order)
    return (running or list(considered.values()))[:most]


def rejected(considered: Mapping[str, Candidate], chosen: Candidate | None) -> dict[str, list[str]]:
    """For every other algorithm what it lacks, or why it comes later; those that could be chosen first, in their order."""
    others = sorted((c for c in considered.values() if c is not chosen), key=lambda c: (not c.admitted, c.order))
    return {c.record.name: c.lacks() or [f"{_later(c, chosen)}: O({c.promise.rate})"] for c in others}


def alike(considered: Mapping[str, Candidate], chosen: Candidate | None) -> list[tuple[list[str], str]]:
    """The same for a reader: algorithms with one reason together, of several reasons the one that most algorithms share."""
    shared = Counter(f.why for c in considered.values() for f in c.lacking.values())
    groups: dict[str, list[str]] = {}
    for name in rejected(considered, chosen):
        one = considered[name]
        if one.admitted:
            groups.setdefault(_later(one, chosen), []).append(f"{name} O({one.promise.rate})")
        else:
            reasons = [f.why for f in one.lacking.values()]
            groups.setdefault(max(reasons, key=lambda why: shared[why]), []).append(name)
    return [(names, reason) for reason, names in groups.items()]


def _later(other: Candidate, chosen: Candidate | None) -> str:
    """Why an algorithm that could run is not the one chosen."""
    if other.record.surrogate is not None:
        return "solves another problem, the mean over the groups: only where it is named"
    if chosen is None:
        return "covers the model" if other.covered else "could run"
    suits, title = "covered too" if other.covered else "could run too", chosen.record.title
    better = rates.order(other.promise.rate) < rates.order(chosen.promise.rate)
    if other.record.preference > chosen.record.preference:
        rate = "a better rate, but" if better else f"{suits}, but"
        return f"{rate} not measured on the bundled models as {title} was: practice goes before rates"
    return f"{suits}, and preferred by its rate where none is named" if better else f"{suits}; {title} has the better rate"


def _refusals(one: Candidate, unverified: bool) -> list[Diagnostic]:
    """One error per assumption that does not hold, at its place in the model."""
    lacking = [(assumptions.ALL[name], name, finding) for name, finding in one.lacking.items()]
    return [
        errors.requirement(one.record, name, wanted.meaning, finding.why, finding.span, form=wanted.form)
        for wanted, name, finding in lacking
        if wanted.form or not unverified
    ]


def _none(considered: Mapping[str, Candidate]) -> Diagnostic:
    """No theorem covers the problem; what the nearest lack, and the rewrites that are known for it."""
    near = nearest(considered)
    fixes = dict.fromkeys(f.fix for c in near for f in c.lacking.values() if f.fix)
    return errors.no_algorithm([(c.record.name, c.lacks()) for c in near], len(considered), list(fixes))
