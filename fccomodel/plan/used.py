"""The options of a plan that its run uses, and the reasons why it does not use the others.

An option of the user's own defaults that does not apply is said; any other is refused. Options that
belong to no algorithm (``settings.SETTINGS``) are used by every solve. A setting of steps is used
if the functions of the algorithm read it, which ``Algorithm.reads`` finds in their source: a new
algorithm or a new option needs no entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fccomodel import algorithms
from fccomodel.algorithms import Algorithm
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.core.options import AUTOMATIC, BLOCK, COMMAND, KEYWORD, USER, Origins, Unused
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import selections
from fccomodel.normal_form import NormalForm
from fccomodel.normal_form.penalty import Penalty
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.plan import errors, settings, sizes
from fccomodel.plan.sizes import Batch

#: origins of options that comparisons, their tuning, and races set
COMPARED = "compare"
TUNED = "tuned"
RACE = "race"
#: options that are no algorithm's own
OF_EVERY_METHOD = ("algorithm", "unverified", "ranks", "polish", "tol")
#: settings that only stages which adapt use (``schedule = practical``)
OF_STAGES_THAT_ADAPT = ("gain", "patience", "shrink")
#: settings that the text of every gradient may have
OF_GRADIENTS = ("rho", "lam")
#: options of samples that only algorithms with one estimate per block have
OF_BLOCKS = ("sampling", "inner_sampling", "draws")


#: why no expectation is estimated, of a model where some could be
ALL_SAMPLES = (
    "Each step has all samples of each expectation: none is estimated over steps. A smaller "
    "inner_batch draws some."
)
#: why no expectations share their draws where that was asked for
ALONE = "No two expectations of one table meet the same rows in every step, so that none can share its draws."


@dataclass(frozen=True, kw_only=True)
class DecidingFacts:
    """The facts that decide which options are used.

    record    the algorithm
    step      its update of w
    schedule  its schedule
    normal    the normal form that it takes
    interior  whether the interior-point method alone gives the answer
    hyper     the settings that its program begins with
    rated     whether a rate at the accuracy ``epsilon`` is stated
    tracked   whether some expectation is estimated over steps
    polish    whether full passes over the data finish the run
    draws     whether steps draw some of the blocks or rows
    shared    whether expectations share their draws, or were not asked to
    """

    problem: ir.Problem
    record: Algorithm
    normal: NormalForm
    step: str
    schedule: str
    interior: bool
    hyper: Mapping[str, float]
    rated: bool
    tracked: bool
    polish: bool
    draws: bool
    shared: bool


def without(made: DecidingFacts, name: str) -> str:
    """Why a plan does not use an option of this name, or an empty string if it does."""
    record = made.record
    if made.interior and name in settings.OPTIONS and name not in OF_EVERY_METHOD:
        return "The interior-point method has no steps, and no options of steps."
    if name == "tol":
        if made.polish:
            return ""
        return "Only the finish by passes over all rows stops at it, and this run has none."
    if name == "epsilon":
        if made.rated:
            return ""
        return "Nothing here depends on it: only schedule = theory and rates of theorems do."
    if name in settings.SETTINGS or name in (*OF_EVERY_METHOD, "step", "schedule"):
        return ""
    if name in settings.BATCHES:
        return _without_samples(made, name)
    if name in OF_BLOCKS:
        return _without_draws(made) or ("" if made.shared or name != "draws" else ALONE)
    if name == "gradient_batch":
        if record.independent:
            return ""
        return f"Gradients of {record.title} have no samples of their own."
    return _without_setting(made, name)


def _without_draws(made: DecidingFacts) -> str:
    """Why it does not matter how samples are drawn, or an empty string if it does."""
    if made.record.oracle != "blocks":
        return f"{made.record.title} has one vector of samples, not samples of each block."
    if made.draws:
        return ""
    return "Each step has all blocks and all rows: nothing is drawn."


def _without_setting(made: DecidingFacts, name: str) -> str:
    """The reason why a run does not use a setting of steps and their loop, or an empty text."""
    record, schedule = made.record, made.schedule
    if name == "lam" and not made.normal.smoothed:
        return "No function of this model is smoothed."
    if name not in made.hyper:
        return f"{record.title} has no such option."
    if name == "rho" and not any(_scaled(node) for node in ir.walk(made.normal.objective)):
        return "This model has no constraint with a penalty that it would bound."
    kept = schedule == "theory" and "next_stage" in record.in_theory and name == "gain"
    if name in OF_STAGES_THAT_ADAPT and schedule != "practical" and not kept:
        return f"Only stages that adapt use it (schedule = practical), not schedule = {schedule}."
    if name in OF_GRADIENTS or name in record.reads(made.step, schedule) or _in_gradients(made, name):
        return ""
    if name in record.estimates:
        return _without_estimates(made)
    adapted = name in record.adapts(made.step, schedule)
    if adapted:
        return ""
    return f"{record.title} does not use it with step = {made.step} and schedule = {schedule}."


def _scaled(node: ir.Expr) -> bool:
    """Whether the node is a penalty, or an envelope of one, that ``rho`` scales."""
    return (
        isinstance(node, Penalty)
        and node.scale == "rho"
        or isinstance(node, Smoothed)
        and node.bound == "rho"
    )


def _without_estimates(made: DecidingFacts) -> str:
    """The reason why no expectation is estimated over steps, or an empty string."""
    if made.tracked:
        return ""
    if not any(term.kind == "composition" for term in made.normal.terms):
        return (
            "No expectation of this model stands under a nonlinear function, so that none is "
            "estimated over steps."
        )
    return ALL_SAMPLES


def _in_gradients(made: DecidingFacts, name: str) -> bool:
    """Whether it is the weight of a dual variable that gradients have."""
    record = made.record
    dual = record.outer in ("dual", "conjugate") and bool(made.normal.smoothed)
    return name == "tau" and (dual or "linear coupling" in record.requires)


def tracked(normal: NormalForm, bound: Bound | None, batch: Batch) -> bool:
    """Whether steps draw some of the samples of an expectation under a nonlinear function, whose value
    is estimated then."""
    if not any(term.kind == "composition" for term in normal.terms):
        return False
    roots = normal.reformed.roots
    means = [node for root in roots for node in ir.walk(root) if isinstance(node, ir.Reduce)]
    return any(_drawn(mean, bound, batch) for mean in means)


def _drawn(mean: ir.Reduce, bound: Bound | None, batch: Batch) -> bool:
    """Whether a step has some of the samples of a reduction, not all."""
    if bound is None or any(not isinstance(binder.domain, sizes.LISTED) for binder in mean.binders):
        return True
    return any(batch(binder, count, True) is not None for binder, count in sizes.taken(mean, bound))


def _without_samples(made: DecidingFacts, name: str) -> str:
    """Why nothing is sampled that this batch size would be of."""
    drawn = name == "inner_batch"
    if not drawn and made.record.oracle == "vector" and not made.record.samples_outer:
        return f"Each step of {made.record.title} has all blocks."
    nodes = [
        node for root in made.normal.reformed.roots for node in ir.walk(root) if isinstance(node, ir.Reduce)
    ]
    parts = [part for node in nodes for part in selections.split(node.binders, node.condition)]
    parts += [
        part for c in made.normal.reformed.constraints for part in selections.split(c.binders, c.condition)
    ]
    if any((part.binder.kind == "~") == drawn for part in parts):
        return ""
    if drawn:
        return "No expectation of this model draws samples."
    return "This model has no mean or sum over blocks to sample."


def unused(made: DecidingFacts, given: Origins) -> tuple[Unused, ...]:
    """The options that somebody gave and that the plan does not use, each with the reason; F0606 for
    those that are refused."""
    reasons = {name: without(made, name) for name, (_, origin) in given.items() if origin != AUTOMATIC}
    options = [Unused(name, *given[name], reason) for name, reason in reasons.items() if reason]
    if refused := [one for one in options if not forgiven(given, one.name)]:
        compared = given.get("algorithm", (None, ""))[1] == COMPARED
        refuse(*(_refusal(made, one, compared) for one in refused), source=made.problem.source)
    return tuple(options)


def forgiven(given: Origins, name: str) -> bool:
    """Whether an option that is not used is said and not refused: one of the user's defaults for all
    models, one that the model's options block has for its own algorithm, in whose place another was
    asked for, and those that races and tuning set."""
    origin, asked = given[name][1], given.get("algorithm", (None, AUTOMATIC))[1]
    elsewhere = origin == BLOCK and asked not in (BLOCK, AUTOMATIC, USER)
    by_hand = origin in (COMMAND, KEYWORD, BLOCK) or asked == COMPARED and origin not in (USER, TUNED)
    return not by_hand or elsewhere or asked == RACE


def _refusal(made: DecidingFacts, one: Unused, compared: bool) -> Diagnostic:
    """The error for an option that is not used."""
    if one.name in settings.COMMON:
        having = []
    else:
        having = [k for k, record in algorithms.all().items() if one.name in record.hyper]
    return errors.unused_option(one, made.record, having, one.name in made.problem.params, compared)
