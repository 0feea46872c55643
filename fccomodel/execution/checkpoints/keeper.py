"""Keeps a run's state as it goes, and puts it back: what the loops of a program call ``keep``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from fccomodel.algorithms.runtime import keeping
from fccomodel.core.diagnostics import FccoError
from fccomodel.execution import checkpoints, errors
from fccomodel.execution.checkpoints import Checkpoint, Checkpoints
from fccomodel.execution.checkpoints.state import packed, put_back


class Keeper(keeping.Keeper):
    """One whose files are ``checkpoints``: they say what they are of, and a run says where it goes on."""

    def __init__(
        self, at: Checkpoints, identity: Mapping[str, Any], *, asked: Callable[[], bool] = lambda: False
    ):
        self.at, self.identity, self.asks = at, identity, asked
        self.found, self.said = self.newest()
        past: Mapping[str, Any]
        if self.found is None:
            past = {"seconds": 0.0, "step": 0}
        else:
            past = self.found.manifest
        if self.found is None:
            state = None
        else:
            state = dict(self.found.state)
        super().__init__(at.folder, at.every, state, float(past["seconds"]), int(past["step"]))
        self.tensors: dict[str, torch.Tensor] = {}
        self.device: Any = "cpu"
        self.settings: Callable[[], Any] = SimpleNamespace
        self.silent = False
        self.told: Callable[[Any], None] | None = None

    def newest(self) -> tuple[Checkpoint | None, str]:
        """The checkpoint that the run goes on from, and what is to be said of damaged ones."""
        return checkpoints.newest(self.at, self.identity)

    @property
    def message(self) -> str:
        """Where the run goes on, in words; "" for one that begins."""
        if self.found is None:
            return ""
        return f"resumed at step {self.first:,}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The same, and what is wrong with checkpoints, for the report."""
        return tuple(filter(None, (self.message and f"{self.message} from a checkpoint", self.said)))

    def of(self, module: Any, data: Mapping[str, Any], device: str, told: Callable[[Any], None]) -> None:
        """The program that runs, its data, and who is told where it goes on."""
        self.settings, self.device, self.told = module.SOLVER.settings, device, told

    def asked(self) -> bool:
        return self.asks()

    def again(self, stage: str, run: Any) -> bool:
        there = super().again(stage, run)
        if there and run.history and self.told is not None:
            self.told(run.history[-1])
        return there

    def packed(self, held: Any, name: str) -> dict[str, Any]:
        self.tensors = {}
        return {name: packed(held, name, self.tensors)}

    def back(self, held: Any, into: Any = None) -> Any:
        assert self.found is not None
        try:
            return put_back(held, self.found.tensors, self.device, self.settings, into)
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            RuntimeError,
            StopIteration,
        ):  # a part is another than it was
            raise FccoError([errors.checkpoint_damaged(self.at.folder)]) from None

    # ---------------------------------------------------------------------------------------- files
    def write(self, stage: str, run: Any) -> None:
        """A checkpoint; where that fails the run goes on, and says so once, unless it is about to be
        ended."""
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
