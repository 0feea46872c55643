"""The plan of a solve: the algorithm, chosen by its requirements, and the batch sizes and
hyper-parameters for the normal form that it takes, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from fccomodel.algorithms import Algorithm, Constants, Theorem
from fccomodel.algorithms.estimators import plug_in
from fccomodel.core.options import AUTOMATIC, HALF, Budget, Origins, Unused
from fccomodel.data.bound import Bound
from fccomodel.data.net_costs import dear, looked_at
from fccomodel.normal_form import NormalForm
from fccomodel.plan import interior, practice, rates, settings, sizes, used
from fccomodel.plan.assumptions import NETS, Finding, Setting, coercive, modulus
from fccomodel.plan.candidates import GIVEN, GUARANTEES, Candidate, finishable
from fccomodel.plan.choice import Choice, choose
from fccomodel.plan.ranking import Ranking, alike, rejected
from fccomodel.plan.settings import OPTIONS, SECONDS, SMOOTHING, value
from fccomodel.plan.sharing import SharedStrata
from fccomodel.plan.sizes import Batch
from fccomodel.plan.starts import Start
from fccomodel.plan.theory import TheoremSchedule, constants, of_theorem
from fccomodel.structure import Analysis

__all__ = ["OPTIONS", "Choice", "Plan", "Start", "choose", "settle"]

SCHEDULES = {
    "practical": "practical step sizes",
    "theory": "the theorem's schedule",
    "decay": "a step divided by ten at half and three quarters of the budget",
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The numbers of elements of the data that the steps of a plan use.

    sampled     only some of the rows or blocks, or draws
    biased      expectations under nonlinear functions are estimated by one minibatch each
    finishable  passes over all rows could end the run
    """

    sampled: bool
    biased: bool
    finishable: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """How a problem is solved, and why.

    algorithm   name of the algorithm
    via         reformulations, in order
    choice      the candidates it was chosen from
    options     every option with its value and origin
    unused      given options that do not apply to this plan and are not refused
    batch       (binder, elements, inner) -> sample size, or None for all
    hyper       hyper-parameters that the emitted program starts with
    findings    assumption of the algorithm's theorem -> how it is met
    promise     the strongest of the theorems that hold
    unverified  what the theorem needs and the model lacks: it does not cover the run
    practice    what the run does beyond the theorem
    rate        iterations that the theorem promises, in the problem's own numbers
    schedule    the theorem's schedule with its constants, if it was asked for
    undefined   conditions for the model to be defined that are not proved
    polish      passes over all rows may follow the steps
    steady      weights of new inner values do not fall with the steps
    annealed    step sizes fall over the budget, not only within stages
    once        step sizes do not fall within stages at all
    direct      steps may only prepare passes over all rows, if these are affordable: neither the
                algorithm nor its theorem's schedule was asked for, and the problem is convex or steps
                are of blocks
    attained    the objective is convex and grows in every direction: it has a minimum
    convex      the problem is convex
    entrants    the algorithms of a race, if one was asked for; ``algorithm`` is the first
    interior    the interior-point method alone gives the answer: ``algorithm`` is its name, and
                ``algorithm_record`` the algorithm whose program is emitted beside the answer
    start       where the run begins; None for zero, with nets at their initialisation
    optimizer   the optimizer that takes the steps, if they are not the algorithm's own; else ''
    """

    algorithm: str
    algorithm_record: Algorithm
    via: tuple[str, ...]
    choice: Choice = field(repr=False)
    options: Origins
    summary: list[str]
    normal: NormalForm
    batch: Batch
    hyper: Mapping[str, float]
    step: str
    smoothing: float = SMOOTHING
    inner_smoothing: float = 1e-2
    block: int = 64
    budget: Budget = Budget(seconds=SECONDS)
    threads: int = 1
    findings: Mapping[str, Finding] = field(default_factory=dict)
    unverified: tuple[str, ...] = ()
    promise: Theorem | None = None
    practice: tuple[str, ...] = ()
    rate: str = ""
    schedule: TheoremSchedule | None = None
    undefined: tuple[str, ...] = ()
    polish: bool = False
    steady: bool = False
    annealed: bool = False
    once: bool = False
    direct: bool = False
    attained: bool = False
    convex: bool = False
    entrants: tuple[str, ...] = ()
    interior: bool = False
    start: Start | None = None
    strata: tuple[SharedStrata, ...] = ()
    thrifty: bool = False
    unused: tuple[Unused, ...] = ()
    optimizer: str = ""

    def stepped_by(self, optimizer: str) -> Plan:
        """The plan whose steps another optimizer takes, by the algorithm's gradient: no theorem is
        claimed of them, and no passes over all rows follow."""
        words = f"{self.title}'s estimates and gradient; steps by {optimizer}: no theorem is claimed"
        return replace(
            self,
            optimizer=optimizer,
            promise=None,
            findings={},
            unverified=(),
            practice=(f"steps by {optimizer}: no theorem is claimed",),
            rate="",
            schedule=None,
            polish=False,
            summary=[words, *self.summary[1:]],
        )

    @property
    def ranking(self) -> Ranking:
        """The order of the algorithms that suit."""
        return self.choice.ranking

    @cached_property
    def rejected(self) -> Mapping[str, list[str]]:
        """For every other algorithm by name, the assumptions that the model does not meet with the clauses
        of its theorem, or the reason why it comes later.
        """
        return rejected(self.choice.candidates, self._covering, self.ranking)

    @cached_property
    def others(self) -> list[tuple[list[str], str]]:
        """The other algorithms, grouped by reason: the names, and the reason that they share."""
        return alike(self.choice.candidates, self._covering, self.ranking)

    @property
    def _covering(self) -> Candidate | None:
        """The stochastic algorithm that was chosen, if one was."""
        if self.interior:
            return None
        return self.choice.chosen

    @property
    def title(self) -> str:
        """The name of the method."""
        if self.interior:
            return interior.TITLE
        return self.algorithm_record.title

    @property
    def clauses(self) -> Mapping[str, str]:
        """Assumption -> the place in the paper that states it."""
        if self.interior:
            return interior.REQUIRES
        return self.algorithm_record.requires

    @property
    def counts(self) -> str:
        """The unit that its rate counts, such as iterations."""
        if self.interior:
            return interior.COUNTS
        return self.algorithm_record.counts

    @property
    def guarantee(self) -> str:
        """The guarantee of its theorem (a key of ``GIVEN``)."""
        if self.interior:
            return interior.THEOREM.gives
        if self.unverified or self.optimizer:
            return GUARANTEES[-1]
        return self.choice.chosen.guarantee

    @property
    def pace(self) -> str:
        """The kind of schedule: ``practical``, ``theory`` or ``decay``."""
        return str(self.options["schedule"][0])

    @property
    def surrogates(self) -> list[str]:
        """The reformulations that replace the problem by another one."""
        return [
            step.reformulation.name
            for step in self.normal.chain.steps
            if step.reformulation.role == "surrogate"
        ]

    @property
    def constants(self) -> Constants | None:
        """The constants of the theorem's schedule, or None if it was not asked for."""
        if self.schedule is None:
            return None
        return self.schedule.constants

    @property
    def remembers(self) -> bool:
        """Whether estimates need the values at w_{t-1} too. They do not if theta or gamma', the weight of
        the difference to these values, is 0."""
        estimator = self.algorithm_record.estimator
        weights = (self.hyper.get(name, 1.0) for name in ("theta", "gamma_prime"))
        return bool(estimator and estimator.needs_previous and all(weights))

    @property
    def resamples(self) -> bool:
        """Whether gradients use inner samples of their own, not those of the estimates."""
        return bool(self.algorithm_record.independent) and self.options["gradient_batch"][0] == "fresh"

    @property
    def forgetful(self) -> bool:
        """Whether expectations under nonlinear functions are estimated by the current minibatch alone."""
        memoryless = self.algorithm_record.estimator is plug_in
        return memoryless and any(term.kind == "composition" for term in self.normal.terms)

    def seen(self, bound: Bound) -> Seen:
        """The numbers of elements that the steps use, and whether passes over all rows can end the run."""
        normal, batch = self.normal, self.batch
        sampled = sizes.draws(normal, bound, batch)
        nets = any(variable.net for variable in normal.problem.variables.values())
        return Seen(
            sampled=sampled,
            biased=sampled and self.forgetful,
            finishable=finishable(self.algorithm_record) and not nets,
        )

    @property
    def half(self) -> bool:
        """Whether steps run nets in bfloat16."""
        return self.options.get("precision", ("", ""))[0] == HALF

    @property
    def of_nets(self) -> list[str]:
        """Sentences on nets that are not proved to be smooth, so that no theorem is claimed."""
        return [sentences for sentences in self.practice if NETS in sentences]

    @property
    def whole(self) -> bool:
        """Whether passes over all rows can finish the run: the smoothed problem, with centres that may
        move, has a gradient on all rows."""
        return self.polish and finishable(self.algorithm_record)


def settle(choice: Choice, normal: NormalForm) -> Plan:
    """The plan: options that were not given follow from the algorithm, its theorem and the data. Raises
    F06xx for options that contradict them."""
    sloped = bool(choice.analysis.problem.nets) and not settings.saturating(choice.analysis)
    problem, bound, chosen = choice.analysis.problem, choice.analysis.bound, choice.chosen
    record, setting = chosen.record, chosen.setting
    budget = choice.budget
    given, aside = settings.applicable(choice.options, record, budget)
    settings.refuse_unsuited(given, record, problem, budget)
    settled = settings.by_algorithm(given, record, normal, shared=sloped)
    nets, step, kind = bool(problem.nets), value(settled, "step"), value(settled, "schedule")
    thrifty = nets and dear(bound)
    batch, shared, counts = _samples(settled, normal, bound, record, thrifty)
    eps = float(value(settled, "epsilon"))
    schedule = None
    if kind == "theory":
        numbers = constants(setting, eps=eps, sample=True, **(counts or {"n": 1, "B1": 1, "B2": 1}))
        schedule = of_theorem(record, str(step), numbers, problem)
        if settings.take_batches(settled, schedule.batches, eps):
            batch, shared, counts = _samples(settled, normal, bound, record, thrifty)
    scheduled: dict[str, float] = {}
    if schedule is not None:
        scheduled = {n: v for n, v in schedule.hyper.items() if n != "lam" or normal.smoothed}
    smoothing = settings.smoothing(settled, scheduled, setting, normal)
    between = sizes.rounds(normal, bound, batch)
    waiting = between > 1 and settings.exponentials(normal, bound)
    defaults = settings.defaults(
        record, normal, step, settings.adam_step_size(choice.analysis), between, waiting, sloped
    )
    if thrifty and "gamma_prime" in defaults:  # another pass of the net costs half a step
        defaults = {**defaults, "gamma_prime": 0.0}
    hyper = settings.hyper_parameters(settled, defaults, scheduled)
    unverified = uncovered(chosen, settled)
    rated = kind == "theory" or bound is not None and chosen.covered or "algorithm" not in given
    settled_plan = used.DecidingFacts(
        problem=problem,
        record=record,
        normal=normal,
        step=str(step),
        schedule=str(kind),
        hyper=hyper,
        rated=rated,
        interior=choice.interior is not None,
        tracked=used.tracked(normal, bound, batch),
        draws=bound is None or sizes.draws(normal, bound, batch),
        polish=bool(value(settled, "polish")),
        shared=bool(shared) or bound is None or value(settled, "draws") != "shared",
    )
    idle = used.unused(settled_plan, given)
    if idle:
        names = {one.name for one in idle}
        named = {name: entry for name, entry in settled.items() if name not in names}
        settled = settings.by_algorithm(named, record, normal, shared=sloped)
    known = {**(counts or {}), **_modulus(setting)}
    promised = bound is not None and chosen.covered and not unverified
    if promised:
        rate = rates.in_numbers(chosen.promise.rate, known, eps)
    else:
        rate = ""
    summary = summarise(normal, chosen, f"{step} steps, {SCHEDULES[str(kind)]}", rate, unverified)
    plan = Plan(
        algorithm=record.name,
        algorithm_record=record,
        via=normal.via,
        choice=choice,
        entrants=choice.entrants,
        options=settled,
        summary=summary,
        normal=normal,
        batch=batch,
        hyper=hyper,
        step=step,
        findings=chosen.findings,
        unverified=unverified,
        promise=chosen.promise,
        practice=(
            *choice.passed,
            *practice.added(chosen, settled, step, budget, counts, shared, convex=choice.analysis.convex),
            *practice.looks(looked_at(bound, budget.seconds)),
            *practice.drawn_rows(bound),
        ),
        rate=rate,
        schedule=schedule,
        budget=budget,
        undefined=undefined(choice.analysis),
        smoothing=smoothing,
        polish=bool(value(settled, "polish")),
        steady=waiting and kind == "practical",
        annealed=settings.annealed(settled, record, budget, nets=nets),
        once=settings.annealed(settled, record, budget, nets=sloped),
        direct=(choice.analysis.convex or record.oracle == "blocks")
        and kind == "practical"
        and not nets
        and "algorithm" not in choice.options,
        attained=coercive(setting),
        convex=choice.analysis.convex,
        strata=shared,
        thrifty=thrifty,
        unused=(*choice.unused, *aside, *idle),
    )
    if choice.interior is None:
        return plan
    return by_interior_point(plan, choice.interior)


class Samples(NamedTuple):
    """What a step draws: the batch sizes, the rows that expectations share, and the numbers n, B1, B2 and
    rows, or None before binding."""

    batch: sizes.Batch
    shared: tuple[SharedStrata, ...]
    counts: dict[str, Any] | None


def _samples(
    settled: Origins, normal: NormalForm, bound: Bound | None, record: Algorithm, thrifty: bool
) -> Samples:
    """What a step draws by the options, and set their batch sizes if none are given.

    thrifty   whether every row of the nets is expensive
    """
    nets, deep = bool(normal.problem.nets), sizes.depth(normal.problem.roots)
    batch, sample_sizes = sizes.of_steps(
        settled,
        normal,
        bound,
        nets=nets,
        deep=deep,
        thrifty=thrifty,
        every_block=record.oracle == "vector",
    )
    settings.settle(settled, sample_sizes)
    shared = settings.shared(settled, normal, bound, batch, record, thrifty=thrifty)
    drawn = {binder: part.drawn(binder) for part in shared for binder in part.cells}
    counts = None
    if bound is not None:
        counts = sizes.counted(normal, bound, batch, drawn)
    return Samples(batch, shared, counts)


def by_interior_point(plan: Plan, findings: Mapping[str, Finding]) -> Plan:
    """The plan with the interior-point method alone, whose theorem covers the problem."""
    theorem, (_, origin) = interior.THEOREM, plan.choice.options.get("algorithm", (None, AUTOMATIC))
    promised = f"{GIVEN[theorem.gives]} in O({theorem.rate}) {interior.COUNTS}"
    return replace(
        plan,
        algorithm=interior.NAME,
        interior=True,
        via=(),
        findings=findings,
        unverified=(),
        promise=theorem,
        practice=(),
        rate="",
        schedule=None,
        summary=[f"{interior.TITLE} ({theorem.name}); {promised}"],
        options={**plan.options, "algorithm": (interior.NAME, origin)},
    )


def uncovered(chosen: Candidate, settled: Origins) -> tuple[str, ...]:
    """The assumptions of the theorem that the model, or the requested samples, do not meet."""
    lacks, where = chosen.lacks(), chosen.record.independent
    if where and settled["gradient_batch"][0] == "same":
        lacks.append(
            f"inner samples of gradients that are independent of the estimates' ({where}); gradient_batch "
            "= same"
        )
    return tuple(lacks)


def _modulus(setting: Setting) -> dict[str, float]:
    """mu, if the objective is strongly convex by its regularisers."""
    mu, without = modulus(setting)
    if mu and not without:
        return {"mu": mu}
    return {}


def undefined(analysis: Analysis) -> tuple[str, ...]:
    """Conditions for the model to be defined that are not proved."""
    roots = [analysis.objective, *analysis.constraints.values()]
    conditions = [condition for root in roots for condition in root.domain]
    sentences = (f"{fact.reason}: {analysis.problem.text(fact.subject)}" for fact in conditions)
    return tuple(dict.fromkeys(sentences))


def iterations(record: Algorithm, promise: Theorem, rate: str) -> str:
    """The rate of the theorem, and its value for this problem."""
    general = f"O({promise.rate}) {record.counts}"
    if rate:
        return f"{general}, here {rate}"
    return general


def summarise(
    normal: NormalForm, chosen: Candidate, how: str, rate: str, unverified: tuple[str, ...]
) -> list[str]:
    """The plan in a few sentences; no theorem is named if none covers it."""
    record, promise = chosen.record, chosen.promise
    if unverified:
        lines = [f"{record.title}, {how}; no theorem covers the run"]
    elif any(finding.practice == NETS for finding in chosen.broken.values()):
        lines = [f"{record.title}, {how}; no theorem covers the run: see practice"]
    elif not chosen.covered:
        lines = [f"{record.title}, {how}; beyond {promise.name}: see practice"]
    else:
        promised = f"{GIVEN[promise.gives]} in {iterations(record, promise, rate)}"
        lines = [f"{record.title} ({promise.name}), {how}; {promised}"]
    for steps in normal.chain.steps:
        if steps.reformulation.role != "smoothing" and steps.reformulation.role != "penalty":
            lines += [f"{steps.reformulation.title}: {sentence}" for sentence in steps.sentences]
    lines += [f"{how}: {text} ({why})" for text, how, why in normal.treatment]
    return lines
