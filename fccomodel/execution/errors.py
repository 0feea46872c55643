"""F0711, F0713, F0817, F0818: what a run refuses, and how it ends without an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.errors import ARGUMENT, OUTPUT
from fccomodel.evaluation.errors import TOO_LARGE
from fccomodel.program.errors import NOT_SHARED

NOTHING_FINITE = Code("F0711", "nothing finite")
RANK_LOST = Code("F0713", "rank lost")
CHECKPOINT = Code("F0817", "checkpoint")
BACKEND = Code("F0818", "backend")


# -------------------------------------------------------------------------------------- microscopes
def not_a_quantity(name: str, known: Sequence[str]) -> Diagnostic:
    """A trace is of quantities that steps have."""
    return ARGUMENT.error(f"There is no trace of `{name}`", fix=f"Trace {', '.join(known)}.")


def not_traced() -> Diagnostic:
    """A trace is of algorithms with estimates block by block."""
    return ARGUMENT.error(
        "The steps of this algorithm cannot be traced",
        reason="It estimates all inner expectations as one vector, with corrections from step to step.",
        fix="Trace one that keeps an estimate for each block: sox, msvr, sonex, alexr, alexr2, soap, bsgd.",
    )


def gradient_not_known() -> Diagnostic:
    """The bias of a gradient is beside the true one."""
    return ARGUMENT.error(
        "The gradient cannot be traced",
        reason="The true one takes passes over all rows, which this problem does not afford.",
        fix="Trace u, g or y, or bind fewer rows.",
    )


def of_one_process(what: str) -> Diagnostic:
    """Solves and programs are over ranks; what chooses among many runs is not."""
    return NOT_SHARED.error(
        f"{what} is of one process",
        reason="What it does next depends on how runs ended, which only one process knows.",
        fix="Start it without torchrun, or solve one model by one algorithm.",
    )


# --------------------------------------------------------------------------------------------- runs
def rank_lost(error: Exception) -> Diagnostic:
    """All ranks of a run go on to its end."""
    return RANK_LOST.error(
        "Another rank of this run is gone",
        reason=(str(error).splitlines() or [""])[0],
        fix="See what the launcher says of it. With --checkpoint DIR the run goes on from there when it "
        "is started again.",
    )


def constant_not_finite(error: Exception) -> Diagnostic:
    """Constants of a model are finite."""
    return NOTHING_FINITE.error(
        f"a constant of the model has no finite value: {error}",
        reason="It follows from numbers and parameters alone, before any data are used.",
        fix="Check what the model divides by, and the values of its parameters (--param NAME=VALUE).",
    )


def memory(error: Exception) -> Diagnostic:
    """The arrays of a run fit into the memory."""
    return TOO_LARGE.error(
        "the arrays of this run exceed the memory",
        reason=str(error).splitlines()[0] if str(error) else "",
        fix="Use fewer variables or rows, or smaller batches (--option outer_batch=32).",
    )


def diverged(step: int, eta: float) -> Diagnostic:
    """The iterates of a fixed schedule stay finite."""
    return NOTHING_FINITE.error(
        f"the steps diverged: iterates were not finite by step {step:,}",
        reason="With schedule = decay the last iterate is the answer, and no step is taken back.",
        fix=f"A smaller eta than {eta:.3g}, or schedule = practical, which goes back to its best point.",
    )


def objective_not_finite() -> Diagnostic:
    """The objective is finite at some point tried."""
    return NOTHING_FINITE.error(
        "the objective was not finite at any point tried",
        reason="A run starts at zero (nets: at their initialisation) and keeps points with a finite "
        "objective alone.",
        fix='Check the scale of the data (scale = "standard"), the domains of logarithms and powers; try '
        "smaller eta.",
    )


def not_run_by(name: str, reason: str) -> Diagnostic:
    """A backend that is asked for can take the steps of the program."""
    return BACKEND.error(
        f"the {name} backend cannot take the steps of this program",
        reason=f"{reason[:1].upper()}{reason[1:]}.",
        fix="Use --backend eager, or auto, which takes another only where it can.",
    )


# -------------------------------------------------------------------------------------- checkpoints
def checkpoint_of_another(place: Path, differing: Sequence[str]) -> Diagnostic:
    """A run goes on from its own checkpoint."""
    return CHECKPOINT.error(
        f"The checkpoint `{place}` is of another run: "
        f"{'; '.join(differing[:4])}{' and more' if len(differing) > 4 else ''}",
        reason="A run goes on from a checkpoint of the same model, data, options and version alone; its "
        "budget may be another.",
        fix="Name another folder, or leave aside what is in this one: --fresh.",
    )


def checkpoint_damaged(place: Path) -> Diagnostic:
    """A checkpoint is read as it was written."""
    return CHECKPOINT.error(
        f"The checkpoint `{place}` is damaged, and there is none before it that is whole",
        reason="Its files are not those that its manifest was written with.",
        fix="Begin anew: --fresh.",
    )


def checkpoint_not_written(folder: Path, error: OSError) -> Diagnostic:
    """The system lets a checkpoint be written."""
    return OUTPUT.error(f"No checkpoint could be written in `{folder}`: {error.strerror or error}")
