"""Which algorithm solves a problem: the one that the options name, checked all the same, or the first
that suits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fccomodel import algorithms
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.core.options import USER, Origins, Unused
from fccomodel.plan import assumptions, errors, settings
from fccomodel.plan.assumptions import Finding
from fccomodel.plan.candidates import Candidate, candidates
from fccomodel.plan.ranking import Ranking, nearest, rank
from fccomodel.structure import Analysis

#: in the place of an algorithm: several take a share of the budget each, and the one that came
#: furthest goes on
RACE = "race"
ENTRANTS = 4
#: options that only some algorithms have, besides those by which these declare their own
OWN = {"step", "gradient_batch"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice:
    """The algorithm for a problem, what it was chosen among (by name), and the options given, with
    their origins.

    refusal   what the problem lacks, where none suits or the one named does not: nothing is chosen then
    entrants  of a race, if one was asked for
    interior  how the problem meets the assumptions of the interior-point method, where the plan
              rests on that one
    ranked    finds the order of those that suit
    unused    the user's own default algorithm, where this model cannot take it
    """

    analysis: Analysis
    options: Origins
    candidates: Mapping[str, Candidate]
    selected: Candidate | None = None
    refusal: tuple[Diagnostic, ...] = ()
    entrants: tuple[str, ...] = ()
    interior: Mapping[str, Finding] | None = None
    ranked: Callable[[], Ranking] = Ranking
    unused: tuple[Unused, ...] = ()

    @property
    def ranking(self) -> Ranking:
        """The order of those that suit: where one was named, or kept, it is found when it is asked for."""
        return self.ranked()

    @property
    def chosen(self) -> Candidate:
        """The algorithm; raises the refusal where there is none."""
        if self.selected is None:
            refuse(*self.refusal, source=self.analysis.problem.source)
        return self.selected


def choose(analysis: Analysis, options: Origins, like: Candidate | None = None) -> Choice:
    """The algorithm that the options name, or the first that suits; F06xx where the problem has no
    form for any.

    like   what was chosen for other numbers in the same model: it is kept where it has the same
           guarantee here
    """
    problem = analysis.problem
    settings.refuse_unknown(options, problem)
    named = settings.value(options, "algorithm")
    if named == RACE:
        refuse_alone(options, problem)
    considered = candidates(analysis, options)

    @cache
    def ranked() -> Ranking:
        return rank(
            considered, settings.finishing(options), str(settings.value(options, "schedule", "practical"))
        )

    unverified = bool(settings.value(options, "unverified", False))
    if named in (None, "auto", RACE):
        name = None
    else:
        name = str(named)
    kept: Candidate | tuple[Diagnostic, ...] | None
    if like is None or named == RACE or name is not None:
        kept = None
    else:
        kept = considered[like.record.name]
    found = (
        kept if like and kept and equal(kept, like) else select(considered, ranked, name, unverified, problem)
    )
    unused: tuple[Unused, ...] = ()
    if name is not None and not isinstance(found, Candidate) and options["algorithm"][1] == USER:
        unused = (Unused("algorithm", name, USER, f"{found[0].message[:1].upper()}{found[0].message[1:]}."),)
        options = {key: entry for key, entry in options.items() if key != "algorithm"}
        found = select(considered, ranked, None, unverified, problem)
    selected: Candidate | None = None
    refusal: tuple[Diagnostic, ...] = ()
    if isinstance(found, Candidate):
        selected = found
    else:
        refusal = found
    if named == RACE and selected is not None:
        entered = entrants(considered, ranked(), options)
    else:
        entered = ()
    return Choice(
        analysis=analysis,
        options=options,
        candidates=considered,
        selected=selected,
        refusal=refusal,
        entrants=entered,
        ranked=ranked,
        unused=unused,
    )


def equal(one: Candidate, other: Candidate) -> bool:
    """The same algorithm covers two problems equally: the same assumptions hold, and so the same theorem."""
    return (
        one.admitted
        and other.admitted
        and one.broken.keys() == other.broken.keys()
        and one.promise == other.promise
    )


def refuse_alone(options: Origins, problem: ir.Problem) -> None:
    """F0615 for options of a race that only some of the algorithms have, or by which steps fall with
    the budget."""
    every = [set(record.hyper) for record in algorithms.all().values()]
    own = (OWN | set().union(*every)) - set(settings.COMMON)
    if wrong := [
        name for name in options if name in own or name == "schedule" and options[name][0] == "decay"
    ]:
        refuse(*(errors.option_of_one(name, options[name][0]) for name in wrong), source=problem.source)


def entrants(considered: Mapping[str, Candidate], ranking: Ranking, options: Origins) -> tuple[str, ...]:
    """Who takes part in a race: the first few in the order, the theorems' first among them, of those
    whose steps are the same in practice one; of schedules by theorems those that have one."""
    suited = [*ranking.order[:1], *ranking.theorems[:1], *ranking.order]
    suited = suited or [c for c in nearest(considered, ENTRANTS) if c.can_run]
    if settings.value(options, "schedule") == "theory":
        return tuple(dict.fromkeys(c.record.name for c in suited if c.record.theory is not None))[:ENTRANTS]
    different: dict[Any, str] = {}
    for c in suited:
        different.setdefault(c.record.practical, c.record.name)
    return tuple(different.values())[:ENTRANTS]


# ----------------------------------------------------------------------------------------- choosing
def select(
    considered: Mapping[str, Candidate],
    ranked: Callable[[], Ranking],
    name: str | None,
    unverified: bool,
    problem: ir.Problem,
) -> Candidate | tuple[Diagnostic, ...]:
    """The one named, checked all the same; else the first whose theorem holds; ``unverified``: else
    the first that can run. Where that is none, what the problem lacks."""
    if name is not None and name not in considered:
        refuse(errors.unknown_algorithm(name, list(considered)), source=problem.source)
    if name is not None:
        one = considered[name]
        if one.admitted or unverified and one.can_run:
            return one
        return tuple(_refusals(one, unverified))
    if order := ranked().order:
        return order[0]
    near = nearest(considered)
    if unverified and near[0].can_run:
        return near[0]
    return (_none(considered),)


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
