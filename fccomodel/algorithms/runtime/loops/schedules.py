"""What a run changes as it goes: stages that adapt, a theorem's constants, or steps that decay with
the budget. The emitter copies the one that a plan asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fccomodel.algorithms.runtime.loops.settings import BlockSettings, LoopSettings


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Of steps, stages (epochs) and the answer; here nothing changes but what the algorithm says.

    next_stage   what changes between stages: ``next_stage(h, gained, worst)``, whether the last one
                 gained, its violation
    falling      and within them: ``falling(h, share)``, the settings where the step size is at that
                 share of its first
    adapts       what a stage found decides where the next one starts, and on step sizes, centres
                 and penalties
    scales       smoothing and penalties begin by the sizes of arguments and gradients
    pools        the average is that of all iterates, not of each stage's second half
    keeps_last   the answer is the last iterate, not the best
    """

    next_stage: Callable | None = None
    falling: Callable | None = None

    adapts = False
    scales = True
    pools = False
    keeps_last = False

    def length(self, h: LoopSettings, count: int, iterations: int | None) -> float:
        """Steps of the stage that begins after ``count`` of them."""
        return min(h.stage, (iterations or math.inf) - count)

    def within(self, h: BlockSettings, left: float, spent: float) -> BlockSettings:
        """The settings of steps where so much of a stage is left, and so much of the budget is spent."""
        return h

    def move(self, h: LoopSettings, first: float, spent: float) -> None:
        """The step size, from the ``first`` one, where so much of the budget is spent."""

    def averages(self, done: int, length: float) -> bool:
        """The iterate after so many steps of a stage is part of the average."""
        return self.pools

    def after(self, h: LoopSettings, gained: bool, worst: float) -> None:
        """A stage has ended."""
        if self.next_stage is not None:
            self.next_stage(h, gained, worst)


class Practical(Schedule):
    """Stages that adapt: steps fall within each, and the next starts from the better of its last and
    its average iterate."""

    adapts = True

    def within(self, h: BlockSettings, left: float, spent: float) -> BlockSettings:
        """As the algorithm's steps fall: within each stage, or once, as a cosine does."""
        share = max(left, 0.02) * (1 - 0.9 * min(spent, 1.0) if h.annealed else 1.0)
        if h.once:
            share = 0.505 + 0.495 * math.cos(math.pi * min(spent, 1.0))
        if self.falling is None:
            return h
        return self.falling(h, share)

    def averages(self, done: int, length: float) -> bool:
        """From the middle on."""
        return 2 * done >= length


class Theory(Schedule):
    """By the constants of a theorem: stages are places to look, and what the theorem itself changes
    between them."""

    scales = False
    pools = True


class Decay(Schedule):
    """A step size divided by ten at half and at three quarters of the budget (sox-2022, section 4;
    sonex-alexr2-2025, appendix F), all else constant; the answer is the last iterate."""

    keeps_last = True

    def length(self, h: LoopSettings, count: int, iterations: int | None) -> float:
        """A fiftieth of the budget, to look by."""
        return max(h.stage, (iterations or 0) // 50)

    def move(self, h: LoopSettings, first: float, spent: float) -> None:
        """By tenths."""
        h.eta = first * 0.1 ** ((spent >= 0.5) + (spent >= 0.75))


SCHEDULES: dict[str, type[Schedule]] = {"practical": Practical, "theory": Theory, "decay": Decay}
