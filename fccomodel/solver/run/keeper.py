"""Keeps a run's state as it goes, and puts it back: what the loops of a program call ``keep``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from fccomodel.core import process
from fccomodel.solver.run import checkpoints
from fccomodel.solver.run.checkpoints import Checkpoint, Checkpoints
from fccomodel.solver.run.state import packed, put_back

#: reasons to end after which no step is whole, or none: such a state is not written
CUT = ("", "interrupted")


class Keeper:
    """Writes a checkpoint every so many seconds, once a person asks to stop, on SIGTERM, and where steps end.

    ``keep(stage, run)`` is called wherever a state is whole; ``again(stage, run)`` puts one back; ``ended(stage, outcome)`` is
    told what a stage came to, and ``outcome(stage, ...)`` gives it. ``spent`` are the seconds that the run took before.

    A state is everything that changes in a run, and what is made of the program, its data and the seed is made anew.
    """

    def __init__(self, at: Checkpoints, identity: Mapping[str, Any], *, asked: Callable[[], bool] = lambda: False):
        self.at, self.identity, self.asked = at, identity, asked
        self.found, self.said = self.newest()
        self.began, self.due = time.perf_counter(), time.perf_counter() + at.every
        self.spent = 0.0 if self.found is None else float(self.found.manifest["seconds"])
        self.step = self.first = 0 if self.found is None else int(self.found.manifest["step"])
        self.base, self.left = 0, self.found
        self.outcomes: dict[str, Any] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self.device: Any = "cpu"
        self.settings: Callable[[], Any] = SimpleNamespace
        self.stopping = self.terminated = self.silent = False
        self.told: Callable[[Any], None] | None = None

    def newest(self) -> tuple[Checkpoint | None, str]:
        """The checkpoint that the run goes on from, and what is to be said of damaged ones."""
        return checkpoints.newest(self.at, self.identity)

    @property
    def message(self) -> str:
        """Where the run goes on, in words; "" for one that begins."""
        return "" if self.found is None else f"resumed at step {self.first:,}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The same, and what is wrong with checkpoints, for the report."""
        return tuple(filter(None, (self.message and f"{self.message} from a checkpoint", self.said)))

    def of(self, module: Any, data: Mapping[str, Any], device: str, told: Callable[[Any], None]) -> None:
        """The program that runs, its data, and who is told where it goes on."""
        self.settings, self.device, self.told = module.SOLVER.settings, device, told

    def terminate(self) -> None:
        """The process is asked to end, once the state is written."""
        self.terminated = True

    def stop(self) -> bool:
        """What the loops ask: that a person wants them to end, once the state of before is written."""
        return self.stopping

    # ------------------------------------------------------------------------------------------------------ what loops call
    def __call__(self, stage: str, run: Any, reason: str = "") -> None:
        """A state that is whole, after a step; ``reason``: why it is the last."""
        if self.stopping:
            return
        due, stopping, ending = self.word(stage)
        if due or stopping or ending or reason not in CUT:
            self.step = self.base + run.count if isinstance(run.count, int) and stage != "restore" else self.base
            self.write(stage, run)
        self.stopping = stopping
        if ending:
            print(f"terminated at step {self.step:,}: the checkpoint in {self.at.folder} goes on from there", file=sys.stderr)
            raise SystemExit(process.TERMINATED)

    def word(self, stage: str) -> tuple[bool, bool, bool]:
        """Whether it is time to write, a person wants the run to end, and the process is asked to."""
        return time.perf_counter() >= self.due, self.asked(), self.terminated

    def again(self, stage: str, run: Any) -> bool:
        """Whether the checkpoint was written in this stage: then ``run`` stands as it did."""
        if self.left is None or stage not in self.left.state:
            return False
        self._back(self.left, self.left.state[stage], run)
        self.left = None
        if run.history and self.told is not None:
            self.told(run.history[-1])
        return True

    def ended(self, stage: str, outcome: Any) -> None:
        """What a stage came to, unless a person ended it, is part of all states from here on."""
        if outcome.status == "interrupted":
            return
        self.base, self.tensors = outcome.iterations, {}
        held = SimpleNamespace(**{name: value for name, value in vars(outcome).items() if name != "exact"})
        self.outcomes = {_after(stage): packed(held, _after(stage), self.tensors)}

    def outcome(self, stage: str, solver: Any, data: Any, device: Any, exact: Any = None) -> Any:
        """What a stage came to before; None where it is not known to have ended."""
        if self.left is None or _after(stage) not in self.left.state:
            return None
        outcome = self._back(self.left, self.left.state[_after(stage)], None)
        if exact is None:
            exact = solver.prepare_full(solver.as_namespace(data, device, torch.float64))
        outcome.exact = exact
        self.ended(stage, outcome)
        return outcome

    def _back(self, checkpoint: Checkpoint, text: Any, into: Any) -> Any:
        return put_back(text, checkpoint.tensors, self.device, self.settings, into)

    # ----------------------------------------------------------------------------------------------------------------- files
    def write(self, stage: str, run: Any) -> None:
        """A checkpoint; where that fails the run goes on, and says so once, unless it is about to be ended."""
        tensors = dict(self.tensors)
        state = {**self.outcomes, stage: packed(run, stage, tensors)}
        seconds = self.spent + time.perf_counter() - self.began
        manifest = {"identity": dict(self.identity), "stage": stage, "step": self.step, "seconds": seconds}
        try:
            checkpoints.write(self.at, manifest, state, tensors)
        except OSError as error:
            if self.terminated:
                raise checkpoints.unwritable(self.at, error) from None
            if not self.silent:
                reason = error.strerror or error
                print(f"no checkpoint could be written in {self.at.folder}: {reason}; the run goes on", file=sys.stderr)
            self.silent = True
        else:
            self.silent = False
        self.due = time.perf_counter() + self.at.every


def _after(stage: str) -> str:
    return f"after {stage}"
