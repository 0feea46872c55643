"""The judgement: every way to pair the names, every trial, then the words for what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fccomodel import pipeline
from fccomodel.app.grading import cost, functions, regions
from fccomodel.app.grading.differences import differences, other_defaults
from fccomodel.app.grading.functions import Relation
from fccomodel.app.grading.names import NamePairing, correspondences
from fccomodel.app.grading.points import between, numbers_after, random_point, restored
from fccomodel.app.grading.record import Grade
from fccomodel.app.grading.regions import Regions
from fccomodel.app.grading.trials import Trial, trials
from fccomodel.app.grading.values import Point, Side, ValuesAtPoint, sides, variables_with_sets
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets.draws import drawn

#: Random data sets that suffice if both show the same problem.
TRIALS = 2
#: How many times the noise of samples a difference must be to count.
BEYOND_NOISE = 8.0


@dataclass(frozen=True, eq=False, kw_only=True)
class PairingResult:
    """The result of one way to pair the names.

    objective  the relation of the objectives
    regions    the comparison of the constraints
    domains    variables whose sets differ
    trial      the trial in which something differed, or the last one
    undefined  an error of the answer on data that the key takes
    """

    names: NamePairing
    objective: Relation
    regions: Regions
    domains: tuple[str, ...] = ()
    trial: Trial | None = None
    undefined: FccoError | None = None

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.objective.same and self.regions.same is True and not self.names.missing

    @property
    def different(self) -> bool:
        """Whether a difference is certain."""
        return self.objective.kind in ("different", "reversed") or self.regions.same is False

    @property
    def rank(self) -> tuple[int, int, int]:
        """How much is the same; the way to pair names with the most of it is the one that counts."""
        alike = self.objective.same + (self.regions.same is True)
        return alike, -len(self.regions.missing) - len(self.regions.extra), self.objective.kind == "equal"


def grade(
    answer: Source, key: pipeline.Compiled, given: Bound | None = None, *, budget: str | None = None
) -> Grade:
    """The judgement of an answer's text against a key, on the user's data (``given``) and on random data.

    budget  what each of two solves may take, which say what the differences cost; None: no solves
    """
    try:
        compiled = pipeline.compile_model(answer)
    except FccoError as error:
        return Grade(
            verdict="invalid",
            basis=f"Errors in it: {len(error.diagnostics)}.",
            diagnostics=error.diagnostics,
            source=error.source or answer,
        )
    if compiled.hash == key.hash:
        return Grade(
            verdict="same", basis="Both texts say the same.", parts=_parts(key.problem), source=answer
        )
    best: PairingResult | None = None
    for names in correspondences(key.problem, compiled.problem):
        found = _findings(key, compiled, names, given)
        if best is None or found.rank > best.rank:
            best = found
        if found.same:
            break
    assert best is not None
    judged = _judged(best, key.problem, compiled.problem, answer)
    if judged.verdict == "different" and budget is not None and best.trial is not None:
        return judged.with_cost(cost.of(key, compiled, best.trial, budget, given is not None))
    return judged


def _findings(
    key: pipeline.Compiled, answer: pipeline.Compiled, names: NamePairing, given: Bound | None
) -> PairingResult:
    """The comparison of two models for one way to pair their names."""
    whole = names.variables.keys() == key.problem.variables.keys()
    unpaired = len(names.variables) < len(answer.problem.variables)
    nothing = PairingResult(names=names, objective=Relation(kind="unknown"), regions=Regions(same=None))
    if not whole or unpaired:
        return nothing
    seen: list[PairingResult] = []
    try:
        for trial in trials(key, answer, names, given):
            found = _in_trial(trial)
            if found.different:
                return found
            seen.append(found)
            random = sum(not one.trial.given for one in seen if one.trial is not None)
            if random >= TRIALS and all(one.same for one in seen):
                break
    except FccoError as error:
        return replace(nothing, undefined=error)
    return min(seen, key=lambda one: (one.same, one.objective.kind == "equal"))


def _in_trial(trial: Trial) -> PairingResult:
    """The comparison on one data set."""
    key, answer = sides(trial)
    other_domains = tuple(_other_domains(key, answer))
    key.listed = answer.listed = other_domains
    points = list(_points(key, answer, other_domains))
    at_key = [key.at(point) for point in points]
    at_answer = [answer.at(point) for point in points]
    found = regions.compared(key, answer, points, at_key, at_answer)
    known = None if other_domains else (at_key, at_answer)
    objective = _objective(trial, key, answer, points, known)
    if objective.kind in ("different", "reversed") and key.labels:
        objective = _confirmed(trial, key, answer, objective)
    return PairingResult(
        names=trial.names, objective=objective, regions=found, domains=other_domains, trial=trial
    )


def _other_domains(key: Side, answer: Side) -> Iterator[str]:
    """The variables whose sets differ: some points have different projections on them."""
    own, theirs = key.bound.problem, answer.bound.problem
    with_sets = variables_with_sets(theirs)
    rng = np.random.default_rng(1)
    suspects = [n for n in own.variables if own.variables[n].sets or answer.partner[n] in with_sets]
    for number in numbers_after(key) if suspects else ():
        point = random_point(key, number, rng)
        at_key, at_answer = key.projected(point), answer.projected(point)
        for name in list(suspects):
            if not functions.close(at_key[name], at_answer[name]).all():
                suspects.remove(name)
                yield name


def _points(key: Side, answer: Side, free: Sequence[str]) -> Iterator[Point]:
    """Random points in the sets of the variables; those whose sets differ are not projected.

    Many projections are at the same corners of a set, so that every second point is between two of them.
    """
    rng, last = np.random.default_rng(2), None
    for number in numbers_after(key):
        point = random_point(key, number, rng)
        inside = key.projected(point)
        if last is not None and number % 2:
            point = between(last, point, rng.uniform())
            inside = key.projected(between(key.projected(last), inside, rng.uniform()))
        last = point
        yield {name: point[name] if name in free else inside[name] for name in point}


def _objective(
    trial: Trial,
    key: Side,
    answer: Side,
    points: Sequence[Point],
    known: tuple[Sequence[ValuesAtPoint], Sequence[ValuesAtPoint]] | None = None,
) -> Relation:
    """The relation of the objectives; a difference within the noise of samples is not known.

    known  the values at the points, if all of these are in the sets of the variables
    """
    inside = points
    if known is None:
        inside = [key.projected(answer.projected(key.projected(point))) for point in points]
        known = [key.at(point) for point in inside], [answer.at(point) for point in inside]
    ours, theirs = (np.array([values.objective for values in side]) for side in known)
    found = functions.relation(
        ours, theirs, inside, lambda p: key.at(p).objective, lambda p: answer.at(p).objective
    )
    sampled = drawn(trial.key.problem) or drawn(trial.answer.problem)
    if found.same or not sampled:
        return found
    noise = np.maximum(_noise(trial, 0, inside, ours), _noise(trial, 1, inside, theirs))
    if (np.abs(ours - theirs) <= BEYOND_NOISE * noise).all():
        return Relation(kind="unknown")
    return found


def _noise(trial: Trial, model: int, points: Sequence[Point], values: np.ndarray) -> np.ndarray:
    """How much the values of a model at the points change with the sample of its distributions."""
    largest = np.zeros_like(values)
    for seed in NOISE_SEEDS:
        side = sides(trial, seed=seed)[model]
        again = np.array([side.at(point).objective for point in points])
        largest = np.fmax(largest, np.abs(again - values))
    size = np.abs(values) + 1
    return np.maximum(largest, np.median(largest / size) * size)


#: Seeds of the samples that tell the noise.
NOISE_SEEDS = (1, 2, 3)


#: Feasible points at which a difference of objectives is confirmed.
CONFIRMED_AT = 10


def _confirmed(trial: Trial, key: Side, answer: Side, found: Relation) -> Relation:
    """The same relation if the objectives differ at feasible points too; else it is not known."""
    points = _feasible(key)
    if len(points) < functions.NEEDED:
        key.left_out = frozenset(_open_on_data(trial.key.problem))
        points = _feasible(key)
        key.left_out = frozenset()
    if len(points) < functions.NEEDED:
        return Relation(kind="unknown")
    again = _objective(trial, key, answer, points)
    if again.kind in ("different", "reversed"):
        return found
    return replace(again, kind="unknown")


def _feasible(key: Side) -> list[Point]:
    """Points where the key's constraints hold."""
    rng = np.random.default_rng(3)
    found = (restored(key, random_point(key, number, rng)) for number in range(CONFIRMED_AT))
    return [point for point in found if point is not None]


def _open_on_data(problem: ir.Problem) -> Iterator[str]:
    """The labels of inequalities on columns of data: random data may leave them without a point."""
    for constraint in problem.constraints:
        columns = (n for n in ir.walk(constraint.body) if isinstance(n, ir.Column))
        if constraint.kind == "le" and any(isinstance(c.binder.domain, ir.RowSet) for c in columns):
            yield constraint.label.partition("[")[0]


def _parts(problem: ir.Problem, wrong: Sequence[str] = ()) -> dict[str, bool]:
    """For each part of the key, whether the answer has it."""
    labels = ["objective", *(c.label for c in problem.constraints), *variables_with_sets(problem)]
    return {label: label not in wrong for label in labels}


def _judged(found: PairingResult, key: ir.Problem, answer: ir.Problem, source: Source) -> Grade:
    """The grade that the findings give."""
    defaults = tuple(other_defaults(found.names, key, answer))
    if found.same and defaults:
        return Grade(
            verdict="different",
            basis="Only the values of params differ.",
            parts={**_parts(key), **{one.part: False for one in defaults}},
            differences=defaults,
            source=source,
        )
    if found.same:
        return Grade(
            verdict="same",
            basis="Objective and constraints agree at random points, on every data set tried.",
            parts=_parts(key),
            notes=tuple(_in_other_words(found, key, answer)),
            source=source,
        )
    wrong = [*found.regions.missing, *found.domains]
    if not found.objective.same:
        wrong.append("objective")
    told = tuple(differences(found, key, answer))
    parts = _parts(key, wrong)
    if _proved_different(found):
        basis = "Its values differ from the key's."
        if found.undefined is not None:
            basis = f"It does not take the key's data: {found.undefined.diagnostics[0].message}."
        return Grade(verdict="different", basis=basis, parts=parts, differences=told, source=source)
    return Grade(
        verdict="undecided",
        basis="No difference is proved, and neither is it that there is none.",
        parts=parts,
        differences=told,
        notes=tuple(_undecided(found)),
        source=source,
    )


def _proved_different(found: PairingResult) -> bool:
    """Whether the values of answer and key differ for certain, or its data do."""
    data_kinds = {kind for kind, _ in (*found.names.missing, *found.names.extra)} - {"variable"}
    if found.undefined is not None:
        return bool(data_kinds) or found.undefined.diagnostics[0].code.startswith("F05")
    return found.different


def _in_other_words(found: PairingResult, key: ir.Problem, answer: ir.Problem) -> Iterator[str]:
    """Sentences on what the answer writes in another way than the key."""
    renamed = {a: b for a, b in found.names.variables.items() if a != b}
    if renamed:
        pairs = ", ".join(f"`{own}` is `{other}`" for own, other in renamed.items())
        yield f"The answer has other names of variables: {pairs}."
    if found.objective.kind == "affine":
        yield "The objective is a positive multiple of the key's, plus a number: it has the same optimum."
    if found.objective.kind == "increasing":
        yield "The objective is an increasing function of the key's: it has the same optimum."
    if key.objective.sense[:3] != answer.objective.sense[:3]:
        yield "The answer maximizes where the key minimizes, or the reverse, with the other sign."


def _undecided(found: PairingResult) -> Iterator[str]:
    """Why nothing is decided."""
    lacking = [name for kind, name in found.names.missing if kind == "variable"]
    beyond = [name for kind, name in found.names.extra if kind == "variable"]
    if lacking:
        yield f"The key has a variable that the answer lacks: {', '.join(lacking)}."
    if beyond:
        yield f"The answer has a variable that the key lacks: {', '.join(beyond)}."
    if found.undefined is not None:
        yield f"It cannot be evaluated on some data: {found.undefined.diagnostics[0].message}"
    if found.objective.kind == "unknown" and not (lacking or beyond or found.undefined):
        yield "The objectives could not be compared: there are too few points with values, or samples differ."
    if found.regions.same is None and not (lacking or beyond or found.undefined):
        yield "No point was found that only one of the two accepts."
