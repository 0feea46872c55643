"""Steps as one graph of torch's own operations, which torch's interpreter runs: no Python between them, and no compiler.

By ``torch.jit``, of which torch says that no more will be made, as long as it has it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from fccomodel.solver.backends._base import Backend, Unfit
from fccomodel.solver.backends._leap import Leap, Results
from fccomodel.solver.backends._recorded import recorded
from fccomodel.solver.backends._several import Several

#: steps of one call
STEPS = 8
Arrays = list[torch.Tensor]


def missing(device: str) -> str:
    """Torch's graphs run anywhere; on a GPU it is the kernels' start that costs."""
    if device != "cpu":
        return "it saves calls of the processor; on a GPU it is cuda-graph"
    return "" if hasattr(torch.jit, "trace") else "this torch has no torch.jit.trace"


def traced(several: Several, pooled: bool) -> Callable[..., Any]:
    """The steps' operations, one after the other; Unfit where they depend on what is in the arrays."""
    one, fixed = replace(several, batches=several.batches[:1]), len(several.fixed(several.data))
    moving, drawn = len(several.moving(several.state, several.state.w)), len(several.batches[0])
    step = recorded(lambda *arrays: one(*arrays, pooled=pooled), apart(one.example(), fixed))
    given = apart(several.example(), fixed)

    def steps(*arrays: torch.Tensor) -> tuple[torch.Tensor, ...]:
        moved, left = list(arrays[fixed : fixed + moving]), arrays[fixed + moving : -2 - STEPS * drawn]
        rows, weights, *batches = arrays[len(arrays) - 2 - STEPS * drawn :]
        for k in range(STEPS):
            batch = batches[k * drawn : (k + 1) * drawn]
            moved = step(*arrays[:fixed], *moved, *left, rows[k : k + 1], weights[k : k + 1], *batch)
        return tuple(moved)

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.trace(steps, tuple(given), check_trace=False)


def apart(arrays: Arrays, fixed: int) -> Arrays:
    """Each an array of its own, but for the first ones, which nothing changes."""
    return [x if k < fixed else x.clone() for k, x in enumerate(arrays)]


class Graphs:
    """Calls the graph of batches that move w one by one, or of those that do so together."""

    def __init__(self, several: Several):
        self.several = several
        self.made = {False: traced(several, False)}

    def __call__(
        self, fixed: Arrays, moving: Arrays, kept: Arrays, rows: torch.Tensor, weights: torch.Tensor, drawn: Arrays, pooled: bool
    ) -> Results:
        """The moved arguments; those that are kept change in place. To optimise a graph for what it meets takes longer than all
        that this saves."""
        if pooled not in self.made:
            self.made[pooled] = traced(self.several, pooled)
        with torch.jit.optimized_execution(False):
            return list(self.made[pooled](*fixed, *moving, *kept, rows, weights, *drawn)), kept


def leap(several: Several) -> tuple[Leap, str]:
    """Of graphs that are traced as a run comes to them; the first now."""
    batches = (several.batches * STEPS)[:STEPS]
    try:
        call = Graphs(replace(several, batches=batches))
    except Unfit:
        raise
    except Exception as error:  # whatever cannot be traced
        raise Unfit(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}") from None
    return Leap(several, call, STEPS, STEPS), f"steps by torch's interpreter, {STEPS} in a call"


backend = Backend(
    name="traced",
    meaning=f"{STEPS} steps in a call of a graph of torch's operations, run by its interpreter: no compiler, and no start",
    leap=leap,
    missing=missing,
    share=0.25,
    start=0.15,
)
