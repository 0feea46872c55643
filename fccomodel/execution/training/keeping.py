"""Checkpoints of a training run: a killed run goes on from the last one, to the same numbers."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

from fccomodel.core import process
from fccomodel.execution import checkpoints
from fccomodel.execution.checkpoints import Checkpoints
from fccomodel.execution.checkpoints.state import packed, put_back

#: the name of the state in a checkpoint
RUN = "training"
#: a dictionary whose keys are no texts is written as a list of pairs, under this key
PAIRS = "(pairs)"


class TrainingKeeper:
    """Writes the state of a training run at regular times, and reads the one from which a run continues."""

    def __init__(self, at: Checkpoints, identity: Mapping[str, Any]):
        self.at, self.identity = at, identity
        checkpoint, self.said = checkpoints.newest(at, identity)
        self.left: dict[str, Any] | None = None
        self.spent = 0.0
        if checkpoint is not None:
            self.spent = float(checkpoint.manifest["seconds"])
            state = put_back(checkpoint.state[RUN], checkpoint.tensors, "cpu", SimpleNamespace)
            self.left = _with_keys(state)
        self.began = time.perf_counter()
        self.due = self.began + at.every
        self.terminated = False

    @property
    def is_due(self) -> bool:
        """Whether it is time to write a state, or SIGTERM asks for one."""
        return self.terminated or time.perf_counter() >= self.due

    @contextmanager
    def heeding_sigterm(self) -> Iterator[None]:
        """Let SIGTERM ask for a last state; the process ends once that is written."""

        def terminate() -> None:
            """Notes that the process is asked to end."""
            self.terminated = True

        with process.terminable(terminate):
            yield

    def write(self, state: Mapping[str, Any], steps: int) -> None:
        """Writes a state, whole or not at all. After SIGTERM the process ends then."""
        tensors: dict[str, torch.Tensor] = {}
        text = packed(_with_texts(dict(state)), RUN, tensors)
        spent = self.spent + time.perf_counter() - self.began
        manifest = {"identity": dict(self.identity), "stage": RUN, "step": steps, "seconds": spent}
        checkpoints.write(self.at, manifest, {RUN: text}, tensors)
        self.due = time.perf_counter() + self.at.every
        if self.terminated:
            print(f"terminated at step {steps:,}: the checkpoint goes on from there", file=sys.stderr)
            raise SystemExit(process.TERMINATED)


def _with_texts(value: Any) -> Any:
    """The value with pairs in place of dictionaries whose keys are no texts."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _with_texts(one) for key, one in value.items()}
        return {PAIRS: [[key, _with_texts(one)] for key, one in value.items()]}
    if isinstance(value, list | tuple):
        return type(value)(_with_texts(one) for one in value)
    return value


def _with_keys(value: Any) -> Any:
    """The value with dictionaries in place of pairs."""
    if isinstance(value, dict):
        if value.keys() == {PAIRS}:
            return {key: _with_keys(one) for key, one in value[PAIRS]}
        return {key: _with_keys(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_with_keys(one) for one in value)
    return value
