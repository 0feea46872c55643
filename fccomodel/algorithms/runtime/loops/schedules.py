"""Schedules, which say what changes during a run: stages that adapt, a theorem's constants, or
steps that decay with the budget. The emitter copies the one that the plan names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fccomodel.algorithms.runtime.loops.settings import BlockSettings, LoopSettings


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How steps, stages (epochs) and the answer change during a run. This base class changes only what the
    algorithm itself changes.

    next_stage   changes the settings between stages: ``next_stage(h, gained, worst)``, whether the last
                 stage gained, and its violation
    falling      ``falling(h, share)``: the settings within a stage when the step size is at that share of
                 its first value
    adapts       whether the result of a stage decides where the next one starts, and sets step sizes,
                 centres and penalties
    scales       whether smoothing and penalties start from the sizes of arguments and gradients
    pools        whether the average is over all iterates, not over each stage's second half
    keeps_last   whether the answer is the last iterate, not the best
    matrices     whether steps on a vector keep Jacobians as matrices however many rows these have
    """

    next_stage: Callable | None = None
    falling: Callable | None = None

    adapts = False
    scales = True
    pools = False
    keeps_last = False
    matrices = False

    def length(self, h: LoopSettings, count: int, iterations: int | None) -> float:
        """The number of steps of the stage that begins after ``count`` steps."""
        return min(h.stage, (iterations or math.inf) - count)

    def within(self, h: BlockSettings, left: float, spent: float) -> BlockSettings:
        """The settings of a step when the share ``left`` of the stage is left and the share ``spent`` of
        the budget is spent.
        """
        return h

    def move(self, h: LoopSettings, first: float, spent: float) -> None:
        """Set the step size when the share ``spent`` of the budget is spent; ``first`` is its first value."""

    def averages(self, done: int, length: float) -> bool:
        """Whether the iterate after ``done`` steps of a stage is part of the average."""
        return self.pools

    def after(self, h: LoopSettings, gained: bool, worst: float) -> None:
        """Change the settings after a stage."""
        if self.next_stage is not None:
            self.next_stage(h, gained, worst)


class Practical(Schedule):
    """A schedule that adapts: step sizes fall within each stage, and the next stage starts from the better
    of the last iterate and the average.
    """

    adapts = True

    def within(self, h: BlockSettings, left: float, spent: float) -> BlockSettings:
        """The settings with a smaller step size: it falls within each stage, or once over the budget like a
        cosine.
        """
        share = max(left, 0.02) * (1 - 0.9 * min(spent, 1.0) if h.annealed else 1.0)
        if h.once:
            share = 0.505 + 0.495 * math.cos(math.pi * min(spent, 1.0))
        if self.falling is None:
            return h
        return self.falling(h, share)

    def averages(self, done: int, length: float) -> bool:
        """Whether the iterate is in the second half of the stage."""
        return 2 * done >= length


class Theory(Schedule):
    """A schedule by the constants of a theorem: only the theorem changes them, and stages are just places
    to look.
    """

    scales = False
    pools = True
    matrices = True


class Decay(Schedule):
    """A schedule that divides the step size by ten at half and at three quarters of the budget (sox-2022,
    section 4; sonex-alexr2-2025, appendix F). Nothing else changes; the answer is the last iterate.
    """

    keeps_last = True

    def length(self, h: LoopSettings, count: int, iterations: int | None) -> float:
        """A fiftieth of the budget, so that there are looks."""
        return max(h.stage, (iterations or 0) // 50)

    def move(self, h: LoopSettings, first: float, spent: float) -> None:
        """Divide the step size by ten at each of the two places."""
        h.eta = first * 0.1 ** ((spent >= 0.5) + (spent >= 0.75))


SCHEDULES: dict[str, type[Schedule]] = {"practical": Practical, "theory": Theory, "decay": Decay}
