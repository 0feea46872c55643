"""Several steps captured as one CUDA graph, whose kernels all start by one call from the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from fccomodel.execution.backends._base import Backend, attempting
from fccomodel.execution.backends.steps.leap import Leap, Results
from fccomodel.execution.backends.steps.several import STEPS, Several, counts

Arrays = list[torch.Tensor]


def missing(device: str) -> str:
    """Why the backend does not run on a device that is not a GPU, or is not there."""
    if not device.startswith("cuda"):
        return "its steps run on the processor, not on a GPU (--device cuda)"
    if torch.cuda.is_available():
        return ""
    return "there is no GPU here"


class Graph:
    """The kernels that ``work`` starts on the GPU, captured once to be replayed."""

    def __init__(self, work: Callable[[], None]):
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):  # kernels are loaded, and workspaces made, before the capture
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(beside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            work()

    def replay(self) -> None:
        """Start all kernels again."""
        self.graph.replay()


class Captured:
    """CUDA graphs, captured on demand. Their arrays have fixed places, where arguments are copied to.

    There is one for each phase (the numbers that steps begin with), and for batches that move w one
    by one or together. Other data need a new graph.
    """

    def __init__(self, several: Several, graph: Callable[[Callable[[], None]], Any] = Graph):
        self.several, self.graph = several, graph
        self.phases = several.phases()[0]
        self.made: dict[tuple[int, bool], tuple[Any, Arrays, Arrays, Mapping[str, Any]]] = {}

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
        """Take the steps: the moved arguments and those changed in place, in the graph's places."""
        phase = self.phases.index(before)
        found = self.made.get((phase, pooled))
        if found is None or any(x is not y for x, y in zip(found[1], fixed, strict=True)):
            others = [*moving, *kept, rows, weights, *drawn]
            self.made[phase, pooled] = found = self.captured(fixed, others, len(moving), pooled, phase)
        graph, _, places, after = found
        for place, x in zip(places, [*moving, *kept, rows, weights, *drawn], strict=True):
            if place is not x:
                place.copy_(x)
        graph.replay()
        return places[: len(moving)], places[len(moving) : len(moving) + len(kept)], after

    def captured(
        self, fixed: Arrays, others: Arrays, moving: int, pooled: bool, phase: int = 0
    ) -> tuple[Any, Arrays, Arrays, Mapping[str, Any]]:
        """A graph, the fixed arrays that it reads, its own arrays, and the numbers after its steps."""
        places, several = [x.clone() for x in others], self.several.beginning(self.phases[phase])

        def work() -> None:
            """Take the steps, and put the results into the graph's places."""
            moved = several(*fixed, *places, pooled=pooled)
            for place, x in zip(places[:moving], moved, strict=True):
                place.copy_(x)

        return self.graph(work), fixed, places, counts(SimpleNamespace(**(several.after or {})))


def leap(several: Several) -> tuple[Leap, str]:
    """Steps by graphs that are captured on demand, after one trial; and a sentence on them."""
    with attempting():
        call, count = Captured(several), len(several.moving(several.state, several.state.w))
        example = several.example()
        first = len(several.fixed(several.data))
        call.captured(example[:first], example[first:], count, several.pooled)
    return Leap(several, call), f"steps by CUDA graphs, {STEPS} in a call"


backend = Backend(
    name="cuda-graph",
    meaning=f"{STEPS} steps captured as one CUDA graph, started by one call",
    leap=leap,
    missing=missing,
)
