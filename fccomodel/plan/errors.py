"""F0603 - F0607, F0613 - F0615: algorithms, their requirements and their options."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from fccomodel.algorithms import Algorithm
from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.options import Unused
from fccomodel.core.source import Span
from fccomodel.library.errors import SMOOTHING

ALGORITHM = Code("F0603", "algorithm")
REQUIREMENTS = Code("F0604", "requirements")
NO_ALGORITHM = Code("F0605", "no algorithm")
OPTION = Code("F0606", "option")
STEP = Code("F0607", "step")
SCHEDULE = Code("F0613", "schedule")
BUDGET = Code("F0614", "budget")

RACE = Code("F0615", "race")

#: Codes that say what an algorithm lacks on a model.
LACKING = (REQUIREMENTS.id, STEP.id)
#: Codes that say that an algorithm's theorem has no schedule for a model.
WITHOUT_SCHEDULE = (SCHEDULE.id, SMOOTHING.id)


# --------------------------------------------------------------------------------------- algorithms
def unknown_algorithm(name: str, known: Sequence[str]) -> Diagnostic:
    """An algorithm is one of those there are."""
    return ALGORITHM.error(
        f"there is no algorithm `{name}`",
        reason=f"Known are {', '.join(sorted(known))}.",
        fix=did_you_mean(name, known) or "`fccomodel algorithms` lists them.",
    )


def requirement(
    record: Algorithm, assumption: str, meaning: str, why: str, span: Span, *, form: bool
) -> Diagnostic:
    """The assumptions of an algorithm hold on the model; ``form``: without this one it has no text for
    such a model."""
    return REQUIREMENTS.error(
        f"{record.name} needs {meaning}",
        span=span,
        reason=f"{record.requires[assumption]} asks for it; {why}.",
        fix="Leave the choice to the compiler: there is no form of it for such a model."
        if form
        else "Change the model so that it holds, leave the choice to the compiler, or run it without a "
        "theorem: --unverified.",
    )


def not_conic() -> Diagnostic:
    """The interior-point method needs a conic program, all of its data, and a budget in seconds."""
    return REQUIREMENTS.error(
        "the interior-point method needs a conic program of moderate size",
        reason="The model is not known to be convex and made of linear, second-order, exponential, power "
        "and semidefinite cones, "
        "or its data are not given, or the budget is not one of seconds with a finish.",
        fix="Leave the choice to the compiler.",
    )


def no_algorithm(
    nearest: Sequence[tuple[str, Sequence[str]]], total: int, fixes: Sequence[str] = ()
) -> Diagnostic:
    """Some theorem covers the model; ``nearest``: the names of algorithms with what they lack, of
    ``total``; ``fixes``: rewrites by which one would."""
    lines = "; ".join(f"{name} needs {', '.join(lacks)}" for name, lacks in nearest)
    if total > 3:
        more = f"; {total - 3} more in `fccomodel algorithms --model`"
    else:
        more = ""
    return NO_ALGORITHM.error(
        "no algorithm's theorem covers this model",
        reason=f"Nearest: {lines}{more}.",
        fix=" ".join(f"{fix.rstrip('.')}." for fix in fixes or ["Change the model so that one holds"])
        + " Or run it without a theorem: --unverified.",
    )


# ------------------------------------------------------------------------------------------ options
#: Keywords of other libraries, by what to write here.
ELSEWHERE = {
    **dict.fromkeys(("random_state", "rng", "random_seed"), "seed=0"),
    **dict.fromkeys(("max_iter", "max_iters", "maxiter", "n_iter", "iterations", "steps"), 'budget="5000it"'),
    **dict.fromkeys(("time_limit", "timeout", "max_time", "timelimit"), 'budget="60s"'),
    **dict.fromkeys(("lr", "learning_rate", "step_size"), "eta=0.1"),
    **dict.fromkeys(("solver", "method"), 'algorithm="sonex"'),
    **dict.fromkeys(("x0", "init", "initial", "warm_start"), "start=result"),
    **dict.fromkeys(("batch_size", "minibatch"), "outer_batch=64"),
    "dtype": 'precision="float64"',
}


def unknown_option(name: str, given: Any, known: Sequence[str], params: Collection[str] = ()) -> Diagnostic:
    """An option is one that `fccomodel options` lists; values of the model's params are not options."""
    if name in params:
        return OPTION.error(
            f"`{name}` is a param of this model, not an option", fix=f"{_as_param(name, given)}."
        )
    if name in ELSEWHERE:
        return OPTION.error(f"there is no option `{name}`", fix=f"Write `{ELSEWHERE[name]}`.")
    near, listed = did_you_mean(name, [*known, *params]), f"Options are {', '.join(known)}."
    if near:
        listed = "`fccomodel options` lists them."
    return OPTION.error(f"there is no option `{name}`", reason=listed, fix=near or "Remove it.")


def half_without_nets(record: Algorithm, trained: bool) -> Diagnostic:
    """bfloat16 is only for nets, in steps by minibatches."""
    if trained:
        why = f"Steps of {record.title} take all rows at once, in float32 or float64."
    else:
        why = "It is for the layers of nets, and this model trains none."
    return OPTION.error(
        "`precision = bfloat16` is not used by this run", reason=why, fix="Use precision = float32."
    )


def unused_option(
    one: Unused, record: Algorithm, having: Sequence[str], is_param: bool, compared: bool
) -> Diagnostic:
    """An option that somebody gives is used by the run; ``having``: the algorithms that have it,
    ``is_param``: the model has a param of this name, ``compared``: several algorithms run with it."""
    name, value = one.name, one.value
    if record.name in having:
        others = []
    else:
        others = list(having)
    if is_param:
        fixes = [f"`{name}` is a param of this model: {_as_param(name, value)}"]
    else:
        fixes = []
    if others and compared:
        fixes.append(f"Give it to the algorithms that have it: {others[0]}({name}={value})")
    elif others:
        fixes.append(
            f"{', '.join(others)} {'has' if len(others) == 1 else 'have'} it: name {others[0]} (--algorithm)"
        )
    fixes.append("Or remove it" if fixes else "Remove it")
    return OPTION.error(
        f"{record.name} does not use the option `{name}` = {value} ({one.origin})",
        reason=one.reason,
        fix=". ".join(fixes) + ".",
    )


def _as_param(name: str, given: Any) -> str:
    """How the value of a param is given."""
    return f"give its value by --param {name}={given}, in Python by with_params({name}={given})"


def no_step(step: str, record: Algorithm) -> Diagnostic:
    """A step is one that the algorithm has."""
    return STEP.error(
        f"{record.name} has no step `{step}`",
        reason=f"It has {', '.join(record.steps)}.",
        fix=f"Use step = {next(iter(record.steps))}.",
    )


def no_schedule(record: Algorithm) -> Diagnostic:
    """A theorem's schedule is one that is written down."""
    return SCHEDULE.error(
        f"{record.name} has no schedule of its theorem here",
        reason=f"{record.theorem} gives none in terms of constants, or none is written down.",
        fix="Use schedule = practical, or another algorithm.",
    )


def no_finite_schedule(record: Algorithm, constants: Sequence[str], values: Sequence[str]) -> Diagnostic:
    """The numbers of a theorem's schedule are finite and positive. ``constants``: those that are
    infinite or 0, in words;
    ``values``: what the schedule comes to, in words."""
    why = "; ".join(constants) or "its constants leave no step of a finite size"
    if values:
        values_text = f" Its formula gives {', '.join(values)}."
    else:
        values_text = ""
    return SCHEDULE.error(
        f"the theorem of {record.name} gives no schedule for this model",
        reason=f"{why}.{values_text}",
        fix="Leave `schedule = theory` out, or name an algorithm whose theorem covers the model: "
        "`fccomodel algorithms --model` lists them.",
    )


def no_steps_to_divide(budget: Any) -> Diagnostic:
    """Step sizes fall by parts of a budget of steps or oracle calls."""
    return BUDGET.error(
        "schedule = decay has no steps to divide",
        reason="Its step sizes fall at half and at three quarters of a budget of steps or oracle calls; "
        + (f"`{budget}` is a time." if budget is not None else "none was given."),
        fix="Give one: --budget 20000it, or --budget 1e6oracles.",
    )


# -------------------------------------------------------------------------------------------- races
def option_of_one(name: str, given: Any) -> Diagnostic:
    """Options of a race mean the same for all that take part."""
    falls = name == "schedule"
    return RACE.error(
        f"a race has no option `{name}`" if not falls else f"a race has no schedule `{given}`",
        reason="Its step sizes fall with the budget, of which those that take part have a share."
        if falls
        else "Only some of the algorithms that may take part have it.",
        fix="Remove it, or name one algorithm.",
    )
