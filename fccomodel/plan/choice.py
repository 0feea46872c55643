"""The choice of an algorithm: the one that the options name, if it suits, or the first that suits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from fccomodel import algorithms
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.core.options import USER, Budget, Origins, Unused
from fccomodel.plan import assumptions, errors, settings
from fccomodel.plan.assumptions import Finding
from fccomodel.plan.candidates import Candidate, candidates
from fccomodel.plan.ranking import Ranking, nearest, nearest_for_nets, rank
from fccomodel.structure import Analysis

#: In place of an algorithm's name: several algorithms get a share of the budget each, and the one that
#: comes furthest goes on.
RACE = "race"
#: Algorithms in a race, at most.
ENTRANTS = 4
#: Options that only some algorithms have, besides the hyper-parameters that they declare.
OWN = {"step", "gradient_batch"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice:
    """The algorithm for a problem.

    options     those given, with their origins
    candidates  all algorithms by name
    selected    the algorithm; None if none suits, or if the one named does not
    refusal     what the problem lacks, if nothing is selected
    entrants    the algorithms of a race, if one was asked for
    interior    how the problem meets the assumptions of the interior-point method, if the plan rests
                on that method
    ranked      finds the order of those that suit
    unused      the user's own default algorithm, if this model cannot take it
    passed      sentences about algorithms that come before the selected one, and whose theorems give no
                schedule for this model
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
    passed: tuple[str, ...] = ()

    @property
    def ranking(self) -> Ranking:
        """The order of the algorithms that suit, found on the first use."""
        return self.ranked()

    @cached_property
    def budget(self) -> Budget:
        """The budget of the run."""
        return settings.budget_of(self.options)

    @property
    def chosen(self) -> Candidate:
        """The algorithm; raises the refusal if there is none."""
        if self.selected is None:
            refuse(*self.refusal, source=self.analysis.problem.source)
        return self.selected


def choose(analysis: Analysis, options: Origins, like: Candidate | None = None) -> Choice:
    """The algorithm that the options name, or the first that suits. Raises F06xx if the problem has no
    form for any.

    like   the algorithm chosen for other numbers in the same model; it is kept if it has the same
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
        """The candidates in the order of preference."""
        return rank(
            considered, settings.finishing(options), str(settings.value(options, "schedule", "practical"))
        )

    unverified = bool(settings.value(options, "unverified", False))
    if named in (None, "auto", RACE):
        name = None
    else:
        name = str(named)
    kept: Candidate | None = None
    if like is not None and named != RACE and name is None:
        kept = considered[like.record.name]
    outcome: Candidate | tuple[Diagnostic, ...]
    if like is not None and kept is not None and equal(kept, like):
        outcome = kept
    else:
        outcome = select(considered, ranked, name, unverified, problem)
    unused: tuple[Unused, ...] = ()
    if name is not None and not isinstance(outcome, Candidate) and options["algorithm"][1] == USER:
        unused = (
            Unused("algorithm", name, USER, f"{outcome[0].message[:1].upper()}{outcome[0].message[1:]}."),
        )
        options = {key: entry for key, entry in options.items() if key != "algorithm"}
        outcome = select(considered, ranked, None, unverified, problem)
    selected: Candidate | None = None
    refusal: tuple[Diagnostic, ...] = ()
    if isinstance(outcome, Candidate):
        selected = outcome
    else:
        refusal = outcome
    entered: tuple[str, ...] = ()
    if named == RACE and selected is not None:
        entered = entrants(considered, ranked(), options)
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


def with_next_schedule(choice: Choice, why: str) -> Iterator[Choice]:
    """The choices of the algorithms after the selected one whose theorems have schedules, and cover the
    problem if that of the selected one does; no choices if the algorithm was named.

    why   why the theorem of the selected one gives no schedule
    """
    if settings.value(choice.options, "algorithm") not in (None, "auto") or choice.entrants:
        return
    first = choice.chosen
    order = choice.ranking.order
    names = [candidate.record.name for candidate in order]
    if first.record.name not in names:
        return
    passed = f"algorithm: {first.record.title} comes first, but {why}"
    for candidate in order[names.index(first.record.name) + 1 :]:
        covers = candidate.covered or not first.covered
        if covers and candidate.record.theory is not None:
            yield replace(choice, selected=candidate, passed=(passed,))


def equal(one: Candidate, other: Candidate) -> bool:
    """Whether an algorithm covers two problems equally: the same assumptions and theorem hold."""
    return (
        one.admitted
        and other.admitted
        and one.broken.keys() == other.broken.keys()
        and one.promise == other.promise
    )


def refuse_alone(options: Origins, problem: ir.Problem) -> None:
    """Raise F0615 for options of a race that only some algorithms have, or that let steps fall with the
    budget."""
    every = [set(record.hyper) for record in algorithms.all().values()]
    own = (OWN | set().union(*every)) - set(settings.COMMON)
    if wrong := [
        name for name in options if name in own or name == "schedule" and options[name][0] == "decay"
    ]:
        refuse(*(errors.option_of_one(name, options[name][0]) for name in wrong), source=problem.source)


def entrants(considered: Mapping[str, Candidate], ranking: Ranking, options: Origins) -> tuple[str, ...]:
    """The algorithms of a race: the first few in the order, and the theorems' first choice.

    Of several with the same steps in practice only one takes part. With ``schedule = theory`` only
    algorithms that have such a schedule do.
    """
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
    """The algorithm named, if it suits; if none is named, the first whose theorem holds. With
    ``unverified``, and for models that train nets, an algorithm that can run is enough. Otherwise, what
    the problem lacks."""
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
    if any(variable.net for variable in problem.variables.values()):
        near, unverified = nearest_for_nets(considered), True
    if unverified and near[0].can_run:
        return near[0]
    return (_none(considered),)


def _refusals(one: Candidate, unverified: bool) -> list[Diagnostic]:
    """One error per assumption that does not hold, at its place in the model."""
    lacking = [(assumptions.ALL[name], name, finding) for name, finding in one.lacking.items()]
    return [
        errors.requirement(one.record, name, needed.meaning, finding.why, finding.span, form=needed.form)
        for needed, name, finding in lacking
        if needed.form or not unverified
    ]


def _none(considered: Mapping[str, Candidate]) -> Diagnostic:
    """The error that no theorem covers the problem: what the nearest algorithms lack, and known rewrites."""
    near = nearest(considered)
    fixes = dict.fromkeys(f.fix for c in near for f in c.lacking.values() if f.fix)
    return errors.no_algorithm([(c.record.name, c.lacks()) for c in near], len(considered), list(fixes))
