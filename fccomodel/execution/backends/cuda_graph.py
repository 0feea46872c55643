"""Several steps captured as one CUDA graph, whose kernels all start by one call from the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from fccomodel.execution.backends._base import Backend, attempting
from fccomodel.execution.backends.steps.leap import Arguments, Leap, Results
from fccomodel.execution.backends.steps.several import STEPS, Several, counts

Arrays = list[torch.Tensor]


def missing(device: str) -> str:
    """Why the backend does not run on a device that is not a GPU, or is not there."""
    if not device.startswith("cuda"):
        return "its steps run on the processor, not on a GPU (--device cuda)"
    if torch.cuda.is_available():
        return ""
    return "there is no GPU here"


class CapturedGraph:
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


@dataclass(frozen=True, eq=False)
class Capture:
    """The graph of some steps.

    fixed    the fixed arrays that it reads
    places   its own arrays, where the other arguments are copied to
    after    the numbers after its steps
    """

    graph: Any
    fixed: Arrays
    places: Arrays
    after: Mapping[str, Any]

    def reads(self, fixed: Arrays) -> bool:
        """Whether the graph reads these fixed arrays, and no copies of them."""
        return all(mine is theirs for mine, theirs in zip(self.fixed, fixed, strict=True))


class Captured:
    """CUDA graphs, captured on demand. Their arrays have fixed places, where arguments are copied to.

    There is one for each phase (the numbers that steps begin with), and for batches that move w one
    by one or together. Other data need a new graph.
    """

    def __init__(self, several: Several, graph: Callable[[Callable[[], None]], Any] = CapturedGraph):
        self.several, self.graph = several, graph
        self.phases = several.phases()[0]
        self.made: dict[tuple[int, bool], Capture] = {}

    def __call__(self, given: Arguments) -> Results:
        """Take the steps: the moved arguments and those changed in place, in the graph's places."""
        phase = self.phases.index(given.before)
        moving = len(given.moving)
        capture = self.made.get((phase, given.pooled))
        if capture is None or not capture.reads(given.fixed):
            capture = self.captured(given.fixed, given.changing, moving, given.pooled, phase)
            self.made[phase, given.pooled] = capture
        for place, array in zip(capture.places, given.changing, strict=True):
            if place is not array:
                place.copy_(array)
        capture.graph.replay()
        kept = capture.places[moving : moving + len(given.kept)]
        return capture.places[:moving], kept, capture.after

    def captured(self, fixed: Arrays, changing: Arrays, moving: int, pooled: bool, phase: int = 0) -> Capture:
        """The graph of the steps from a phase; each step replaces the first ``moving`` changing arrays."""
        places = [array.clone() for array in changing]
        several = self.several.beginning(self.phases[phase])

        def work() -> None:
            """Take the steps, and put the results into the graph's places."""
            moved = several(*fixed, *places, pooled=pooled)
            for place, x in zip(places[:moving], moved, strict=True):
                place.copy_(x)

        after = counts(SimpleNamespace(**(several.after or {})))
        return Capture(self.graph(work), fixed, places, after)


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
