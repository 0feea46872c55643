"""Keep a run's state as it goes, and put it back. The loops of a program call it ``keep``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from fccomodel.algorithms.runtime import checkpoints as runtime
from fccomodel.core.diagnostics import FccoError
from fccomodel.execution import checkpoints, errors
from fccomodel.execution.checkpoints import Checkpoint, Checkpoints
from fccomodel.execution.checkpoints.state import packed, put_back

#: Errors that a state raises if a part of it is another than it was.
DIFFERENT_PART = (LookupError, TypeError, ValueError, AttributeError, RuntimeError, StopIteration)


class Keeper(runtime.Keeper):
    """A keeper whose files are ``checkpoints``, each with the identity of its run."""

    def __init__(
        self, at: Checkpoints, identity: Mapping[str, Any], *, asked: Callable[[], bool] = lambda: False
    ):
        self.at, self.identity, self.asks = at, identity, asked
        self.found, self.said = self.newest()
        past: Mapping[str, Any] = {"seconds": 0.0, "step": 0}
        state = None
        if self.found is not None:
            past, state = self.found.manifest, dict(self.found.state)
        seconds, step = float(past["seconds"]), int(past["step"])
        super().__init__(at.folder, at.every, state, seconds, step)
        self.tensors: dict[str, torch.Tensor] = {}
        self.device: Any = "cpu"
        self.settings: Callable[[], Any] = SimpleNamespace
        self.silent = False
        self.told: Callable[[Any], None] | None = None

    def newest(self) -> tuple[Checkpoint | None, str]:
        """The checkpoint to go on from, or None; and a note if later ones are damaged."""
        return checkpoints.newest(self.at, self.identity)

    @property
    def message(self) -> str:
        """The step that the run goes on from, in words; an empty text if it begins."""
        if self.found is None:
            return ""
        return f"resumed at step {self.first:,}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the report: this message, and one for each damaged checkpoint."""
        return tuple(filter(None, (self.message and f"{self.message} from a checkpoint", self.said)))

    def of(self, module: Any, data: Mapping[str, Any], device: str, told: Callable[[Any], None]) -> None:
        """Tell the keeper the program that runs, its data, its device, and who hears where it goes on."""
        self.settings, self.device, self.told = module.SOLVER.settings, device, told

    def asked(self) -> bool:
        """Whether somebody asks the run to end."""
        return self.asks()

    def again(self, stage: str, run: Any) -> bool:
        """Put back the state of a stage, and tell where it goes on; whether there was one."""
        there = super().again(stage, run)
        if there and run.history and self.told is not None:
            self.told(run.history[-1])
        return there

    def packed(self, held: Any, name: str) -> dict[str, Any]:
        """A part of the state as JSON values; its tensors are set aside."""
        self.tensors = {}
        return {name: packed(held, name, self.tensors)}

    def back(self, held: Any, into: Any = None) -> Any:
        """A part of the state as it was, put into ``into`` if possible. Raises F0817."""
        assert self.found is not None
        try:
            return put_back(held, self.found.tensors, self.device, self.settings, into)
        except DIFFERENT_PART:
            raise FccoError([errors.checkpoint_damaged(self.at.folder)]) from None

    # ---------------------------------------------------------------------------------------- files
    def write(self, stage: str, run: Any) -> None:
        """Write a checkpoint. If that fails the run goes on, and says so once, unless it is about to end."""
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
                print(
                    f"no checkpoint could be written in {self.at.folder}: {reason}; the run goes on",
                    file=sys.stderr,
                )
            self.silent = True
        else:
            self.silent = False
