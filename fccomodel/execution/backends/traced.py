"""Steps as one graph of torch's operations, run by torch's interpreter without Python or a compiler.

It needs ``torch.jit``, which torch no longer develops.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from fccomodel.execution.backends._base import Backend, attempting
from fccomodel.execution.backends.steps.leap import Arguments, Leap, Results
from fccomodel.execution.backends.steps.recorded import RecordedCalls, recorded
from fccomodel.execution.backends.steps.several import Several, apart

#: Steps of one call.
STEPS = 8
Arrays = list[torch.Tensor]


def missing(device: str) -> str:
    """Why the backend does not run on a device: on a GPU the start of the kernels is what costs."""
    if device != "cpu":
        return "it saves calls of the processor; on a GPU it is cuda-graph"
    if hasattr(torch.jit, "trace"):
        return ""
    return "this torch has no torch.jit.trace"


class Graphs:
    """Graphs of several steps, traced on demand.

    There is one for each phase (the numbers that steps begin with), and for batches that move w one
    by one or together.
    """

    def __init__(self, several: Several):
        self.several, self.fixed = several, len(several.fixed(several.data))
        self.phases, self.following = several.phases()
        self.steps: dict[tuple[int, bool], RecordedCalls] = {}
        self.made: dict[tuple[int, bool], tuple[Callable[..., Any], int]] = {}
        self.graph(0, False)

    def step(self, phase: int, pooled: bool) -> RecordedCalls:
        """The recording of one step of a phase."""
        if (phase, pooled) not in self.steps:
            of_one_batch = replace(self.several, batches=self.several.batches[:1])
            one = of_one_batch.beginning(self.phases[phase])
            copies = apart(one.example(), self.fixed)
            self.steps[phase, pooled] = trace = recorded(lambda *arrays: one(*arrays, pooled=pooled), copies)
            moving = one.moving(one.state, one.state.w)
            trace.in_place(range(self.fixed, self.fixed + len(moving)))
        return self.steps[phase, pooled]

    def graph(self, phase: int, pooled: bool) -> tuple[Callable[..., Any], int]:
        """The graph of several steps from a phase, and the phase after them."""
        if (phase, pooled) not in self.made:
            each = []
            now = phase
            for _ in range(STEPS):
                each.append(self.step(now, pooled))
                now = self.following[now]
            self.made[phase, pooled] = self.traced(each), now
        return self.made[phase, pooled]

    def traced(self, each: list[RecordedCalls]) -> Callable[..., Any]:
        """One graph with the operations of several steps."""
        fixed = self.fixed
        drawn = len(self.several.batches[0])
        state = self.several.state
        last = fixed + len(self.several.moving(state, state.w))

        def steps(*arrays: torch.Tensor) -> tuple[torch.Tensor, ...]:
            """The moved arguments after all steps."""
            first = len(arrays) - len(each) * drawn
            constant = arrays[:fixed]
            moving = list(arrays[fixed:last])
            kept = arrays[last : first - 2]
            rows, weights = arrays[first - 2 : first]
            samples = arrays[first:]
            for k, step in enumerate(each):
                row = rows[k : k + 1]
                weight = weights[k : k + 1]
                batch = samples[k * drawn : (k + 1) * drawn]
                moving = step(*constant, *moving, *kept, row, weight, *batch)
            return tuple(moving)

        copies = tuple(apart(self.several.example(), fixed))
        with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.trace(steps, copies, check_trace=False)

    def __call__(self, given: Arguments) -> Results:
        """Run the steps; the result is the changed arguments, the constant ones, and the numbers after the
        steps.

        Arguments change in place. Torch's optimiser is off: it would take longer than it saves.
        """
        graph, phase = self.graph(self.phases.index(given.before), given.pooled)
        with torch.jit.optimized_execution(False):
            moved = graph(*given.fixed, *given.changing)
        return list(moved), given.kept, self.phases[phase]


def leap(several: Several) -> tuple[Leap, str]:
    """Steps by graphs that are traced on demand, the first at once; and a sentence on them."""
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
