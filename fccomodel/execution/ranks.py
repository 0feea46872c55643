"""A program of several ranks, which torchrun starts: how they find each other, keep one state, and end
where one is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import torch
from torch import distributed

from fccomodel.algorithms.runtime.ranks import joined
from fccomodel.core import process
from fccomodel.core.diagnostics import FccoError
from fccomodel.execution import errors
from fccomodel.execution.checkpoints import Checkpoint, keeper

#: what torch says where another process, or the way to it, is gone
LOST = ("peer", "gloo", "nccl", "timed out", "timeout", "connection", "socket")
#: key of the store that the first rank to say why a run ends has taken
SAID = "fccomodel/said"
#: how long ranks wait for the first, which may have a long way to go alone
PATIENT = timedelta(days=30)
_talking: dict[str, Any] = {}
#: stages that are rank 0's alone
ALONE = ("finish", "restore")


def join(device: str) -> str:
    """Makes this process one of those that were launched with it; its own device, where there are several."""
    try:
        with process.killable():
            device = joined(device)
            talking()
        return device
    except RuntimeError as error:
        raise lost(error) from None


def talking() -> Any:
    """The group in which the first rank tells the others what to do; they wait for its word as long as
    it is there."""
    if count() == 1:
        return None
    world = distributed.group.WORLD
    if _talking.get("world") is not world:
        _talking.update(world=world, group=distributed.new_group(backend="gloo", timeout=PATIENT))
    return _talking["group"]


def count() -> int:
    """How many ranks there are."""
    if distributed.is_initialized():
        return distributed.get_world_size()
    return 1


class Done(SystemExit):
    """The steps are done: a rank but the first has nothing left to do, unless the first has work for it."""


def waiting(free: bool = True) -> None:
    """The others have done their part, and do what the first says, or do so no more."""
    _talking["free"] = free


def done() -> None:
    """Ends the part of a rank but the first, which goes on."""
    waiting()
    if distributed.is_initialized() and distributed.get_rank() > 0:
        raise Done(0)


def part() -> None:
    """The ranks go apart: what they are joined by would end with the process in the middle of its work."""
    if distributed.is_initialized():
        distributed.destroy_process_group()
    _talking.clear()


def silenced() -> None:
    """Something was left half said: no word is understood any more."""
    _talking["silent"] = True


def free() -> bool:
    """Whether the others wait for the first's word."""
    return bool(_talking.get("free")) and not _talking.get("silent")


def missing(error: BaseException) -> bool:
    """An error says that another rank is gone."""
    if count() == 1:
        return False
    return isinstance(error, distributed.DistError) or any(word in str(error).lower() for word in LOST)


def lost(error: Exception) -> FccoError:
    """F0713."""
    return FccoError([errors.rank_lost(error)])


def first_to_speak() -> bool:
    """Whether no other rank has said yet why the run ends."""
    with suppress(Exception):
        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = distributed.TCPStore(*place, is_master=False, timeout=timedelta(seconds=3))
        return store.add(SAID, 1) == 1
    return process.rank() == 0


def of_rank_0(ask: Callable[[], Any]) -> Any:
    """What ``ask()`` gives rank 0, on every rank; so is the error that it ends in."""
    if count() == 1:
        return ask()
    answer: list[Any] = [None, None]
    if distributed.get_rank() == 0:
        try:
            answer[0] = ask()
        except FccoError as error:
            answer[1] = error.diagnostics
    distributed.broadcast_object_list(answer, src=0)
    if answer[1] is not None:
        raise FccoError(answer[1])
    return answer[0]


class Keeper(keeper.Keeper):
    """That of one rank. All of them keep their state at the same step, by the word that goes round as
    they ask whether to end (``agreed`` in the program): rank 0 writes it, with estimates as their
    owners have them, and reads it for all."""

    module: Any = None
    held: Any = None

    def newest(self) -> tuple[Checkpoint | None, str]:
        join("cuda" if torch.cuda.is_available() else "cpu")
        return of_rank_0(super().newest)

    def of(self, module: Any, data: Mapping[str, Any], device: str, told: Callable[[Any], None]) -> None:
        super().of(module, data, device, told)
        self.module, self.held = module, SimpleNamespace(**data)
        module.RANKS.wish = lambda: super(Keeper, self).word("")

    def word(self, stage: str = "") -> tuple[bool, bool, bool]:
        if stage in ALONE:
            return super().word(stage)
        heard, self.module.RANKS.heard = self.module.RANKS.heard, (False, False, False)
        return heard

    def write(self, stage: str, run: Any) -> None:
        if stage not in ALONE:
            self.module.whole_state(run, self.held, self.module.OWNERS)
        if self.module.RANKS.rank == 0:
            super().write(stage, run)
