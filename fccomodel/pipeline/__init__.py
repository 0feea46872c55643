"""The stages from the text of a model to an answer with its report, and the records between them."""

from __future__ import annotations

from fccomodel.pipeline.budget import HELD_OUT_SECONDS
from fccomodel.pipeline.choosing import decide, settled
from fccomodel.pipeline.explaining import Explained, candidates, explain, explained
from fccomodel.pipeline.records import Binding, Compiled, Outcome, Planned
from fccomodel.pipeline.rows import elsewhere, on, prepare, rebind, with_parameters
from fccomodel.pipeline.solving import held_out, solve
from fccomodel.pipeline.stages import (
    analyse,
    automatic,
    bind,
    compile_model,
    divide,
    emit,
    plan,
    report,
    rows,
    run,
    with_origins,
)

__all__ = [
    "HELD_OUT_SECONDS",
    "Binding",
    "Compiled",
    "Explained",
    "Outcome",
    "Planned",
    "analyse",
    "automatic",
    "bind",
    "candidates",
    "compile_model",
    "decide",
    "divide",
    "elsewhere",
    "emit",
    "explain",
    "explained",
    "held_out",
    "on",
    "plan",
    "prepare",
    "rebind",
    "report",
    "rows",
    "run",
    "settled",
    "solve",
    "with_origins",
    "with_parameters",
]
