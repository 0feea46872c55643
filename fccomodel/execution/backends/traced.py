"""Steps as one graph of torch's own operations, which torch's interpreter runs: no Python between
them, and no compiler.

By ``torch.jit``, of which torch says that no more will be made, as long as it has it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from fccomodel.execution.backends._base import Backend, attempting
from fccomodel.execution.backends.steps.leap import Leap, Results
from fccomodel.execution.backends.steps.recorded import Recorded, recorded
from fccomodel.execution.backends.steps.several import Several, apart

#: steps of one call
STEPS = 8
Arrays = list[torch.Tensor]


def missing(device: str) -> str:
    """Torch's graphs run anywhere; on a GPU it is the kernels' start that costs."""
    if device != "cpu":
        return "it saves calls of the processor; on a GPU it is cuda-graph"
    return "" if hasattr(torch.jit, "trace") else "this torch has no torch.jit.trace"


class Graphs:
    """Calls graphs of several steps, each from some of the numbers that steps begin with, for batches
    that move w one by one or together."""

    def __init__(self, several: Several):
        self.several, self.fixed = several, len(several.fixed(several.data))
        self.phases, self.following = several.phases()
        self.steps: dict[tuple[int, bool], Recorded] = {}
        self.made: dict[tuple[int, bool], tuple[Callable[..., Any], int]] = {}
        self.graph(0, False)

    def step(self, phase: int, pooled: bool) -> Recorded:
        """One step, recorded."""
        if (phase, pooled) not in self.steps:
            one = replace(self.several, batches=self.several.batches[:1]).beginning(self.phases[phase])
            given = apart(one.example(), self.fixed)
            self.steps[phase, pooled] = found = recorded(lambda *arrays: one(*arrays, pooled=pooled), given)
            found.in_place(range(self.fixed, self.fixed + len(one.moving(one.state, one.state.w))))
        return self.steps[phase, pooled]

    def graph(self, phase: int, pooled: bool) -> tuple[Callable[..., Any], int]:
        """Some steps one after another, and the phase after them."""
        if (phase, pooled) not in self.made:
            each, now = [], phase
            for _ in range(STEPS):
                each.append(self.step(now, pooled))
                now = self.following[now]
            self.made[phase, pooled] = self.traced(each), now
        return self.made[phase, pooled]

    def traced(self, each: list[Recorded]) -> Callable[..., Any]:
        """All operations in one graph."""
        fixed, drawn = self.fixed, len(self.several.batches[0])
        last = fixed + len(self.several.moving(self.several.state, self.several.state.w))

        def steps(*arrays: torch.Tensor) -> tuple[torch.Tensor, ...]:
            first = len(arrays) - len(each) * drawn
            moved, kept, (rows, weights) = (
                list(arrays[fixed:last]),
                arrays[last : first - 2],
                arrays[first - 2 : first],
            )
            for k, step in enumerate(each):
                batch = arrays[first + k * drawn : first + (k + 1) * drawn]
                moved = step(*arrays[:fixed], *moved, *kept, rows[k : k + 1], weights[k : k + 1], *batch)
            return tuple(moved)

        given = tuple(apart(self.several.example(), fixed))
        with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.trace(steps, given, check_trace=False)

    def __call__(
        self,
        before: dict[str, Any],
        fixed: Arrays,
        moving: Arrays,
        kept: Arrays,
        rows: torch.Tensor,
        weights: torch.Tensor,
        drawn: Arrays,
        pooled: bool,
    ) -> Results:
        """The moved arguments, which change in place like those that are kept. To optimise a graph for
        what it meets takes longer than all that this saves."""
        graph, phase = self.graph(self.phases.index(before), pooled)
        with torch.jit.optimized_execution(False):
            return list(graph(*fixed, *moving, *kept, rows, weights, *drawn)), kept, self.phases[phase]


def leap(several: Several) -> tuple[Leap, str]:
    """Of graphs that are traced as a run comes to them; the first now."""
    batches = (several.batches * STEPS)[:STEPS]
    with attempting():
        call = Graphs(replace(several, batches=batches))
    return Leap(several, call, STEPS, STEPS), f"steps by torch's interpreter, {STEPS} in a call"


backend = Backend(
    name="traced",
    meaning=f"{STEPS} steps in a call of a graph of torch's operations, run by its interpreter: no "
    "compiler, and no start",
    leap=leap,
    missing=missing,
    share=0.25,
    start=0.15,
)
