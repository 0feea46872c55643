"""F0711, F0713, F0817, F0818: refusals of a run, and ends without an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.errors import ARGUMENT, OUTPUT
from fccomodel.core.memory import in_words
from fccomodel.evaluation.errors import TOO_LARGE
from fccomodel.program.errors import NOT_SHARED

NOTHING_FINITE = Code("F0711", "nothing finite")
RANK_LOST = Code("F0713", "rank lost")
CHECKPOINT = Code("F0817", "checkpoint")
BACKEND = Code("F0818", "backend")


# -------------------------------------------------------------------------------------- microscopes
def not_a_quantity(name: str, known: Sequence[str]) -> Diagnostic:
    """The trace of an unknown quantity is asked for."""
    return ARGUMENT.error(f"There is no trace of `{name}`", fix=f"Trace {', '.join(known)}.")


def not_traced() -> Diagnostic:
    """A trace of an algorithm without estimates block by block is asked for."""
    return ARGUMENT.error(
        "The steps of this algorithm cannot be traced",
        reason="It estimates all inner expectations as one vector, with corrections from step to step.",
        fix="Trace one that keeps an estimate for each block: sox, msvr, sonex, alexr, alexr2, soap, bsgd.",
    )


def gradient_not_known() -> Diagnostic:
    """The error of a gradient cannot be traced if the true gradient is unknown."""
    return ARGUMENT.error(
        "The gradient cannot be traced",
        reason="The true one takes passes over all rows, which this problem does not afford.",
        fix="Trace u, g or y, or bind fewer rows.",
    )


def of_one_process(what: str) -> Diagnostic:
    """Several ranks are to do something that chooses among many runs."""
    return NOT_SHARED.error(
        f"{what} is of one process",
        reason="What it does next depends on how runs ended, which only one process knows.",
        fix="Start it without torchrun, or solve one model by one algorithm.",
    )


# --------------------------------------------------------------------------------------------- runs
def rank_lost(error: Exception) -> Diagnostic:
    """Another rank of the run is lost."""
    return RANK_LOST.error(
        "Another rank of this run is gone",
        reason=(str(error).splitlines() or [""])[0],
        fix="See what the launcher says of it. With --checkpoint DIR the run goes on from there when it "
        "is started again.",
    )


def constant_not_finite(error: Exception) -> Diagnostic:
    """A constant of the model is not finite."""
    return NOTHING_FINITE.error(
        f"a constant of the model has no finite value: {error}",
        reason="It follows from numbers and parameters alone, before any data are used.",
        fix="Check what the model divides by, and the values of its parameters (--param NAME=VALUE).",
    )


def memory(error: Exception) -> Diagnostic:
    """The arrays of a run exceed the memory."""
    return TOO_LARGE.error(
        "the arrays of this run exceed the memory",
        reason=_array_without_room(error),
        fix="Use fewer variables or rows, or smaller batches (--option outer_batch=32).",
    )


def _array_without_room(error: Exception) -> str:
    """The array that found no room, in words, or what the error says."""
    said = re.search(r"tried to allocate (\d+) bytes", str(error))
    if said:
        return f"There is no room for an array of {in_words(float(said[1]))} beside those that are there."
    return next(iter(str(error).splitlines()), "")


def diverged(step: int, eta: float) -> Diagnostic:
    """The steps of a fixed schedule diverged."""
    return NOTHING_FINITE.error(
        f"the steps diverged: iterates were not finite by step {step:,}",
        reason="With schedule = decay the last iterate is the answer, and no step is taken back.",
        fix=f"A smaller eta than {eta:.3g}, or schedule = practical, which goes back to its best point.",
    )


def objective_not_finite() -> Diagnostic:
    """The objective was finite at no point tried."""
    return NOTHING_FINITE.error(
        "the objective was not finite at any point tried",
        reason="A run starts at zero (nets: at their initialisation) and keeps points with a finite "
        "objective alone.",
        fix='Check the scale of the data (scale = "standard"), the domains of logarithms and powers; try '
        "smaller eta.",
    )


def not_run_by(name: str, reason: str) -> Diagnostic:
    """The backend that is asked for cannot take the steps of the program."""
    return BACKEND.error(
        f"the {name} backend cannot take the steps of this program",
        reason=f"{reason[:1].upper()}{reason[1:]}.",
        fix="Use --backend eager, or auto, which takes another only where it can.",
    )


# -------------------------------------------------------------------------------------- checkpoints
def checkpoint_of_another(place: Path, differing: Sequence[str]) -> Diagnostic:
    """A checkpoint belongs to another run."""
    return CHECKPOINT.error(
        f"The checkpoint `{place}` is of another run: "
        f"{'; '.join(differing[:4])}{' and more' if len(differing) > 4 else ''}",
        reason="A run goes on from a checkpoint of the same model, data, options and version alone; its "
        "budget may be another.",
        fix="Name another folder, or leave aside what is in this one: --fresh.",
    )


def checkpoint_damaged(place: Path) -> Diagnostic:
    """No checkpoint is as it was written."""
    return CHECKPOINT.error(
        f"The checkpoint `{place}` is damaged, and there is none before it that is whole",
        reason="Its files are not those that its manifest was written with.",
        fix="Begin anew: --fresh.",
    )


def checkpoint_not_written(folder: Path, error: OSError) -> Diagnostic:
    """The system does not let a checkpoint be written."""
    return OUTPUT.error(f"No checkpoint could be written in `{folder}`: {error.strerror or error}")
