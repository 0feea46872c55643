"""Programs of several ranks under torchrun: how the ranks meet, keep one state, share runs, and end
if one of them is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import torch
from torch import distributed

from fccomodel.algorithms.runtime.ranks import joined
from fccomodel.core import options, process
from fccomodel.core.diagnostics import FccoError
from fccomodel.execution import errors
from fccomodel.execution.checkpoints import Checkpoint, keeper

#: What torch says if another process, or the way to it, is gone.
LOST = ("peer", "gloo", "nccl", "timed out", "timeout", "connection", "socket")
#: The key in the store by which the first rank claims to say why the run ends.
SAID = "fccomodel/said"
#: How long ranks wait for rank 0, which may work alone for long.
LONGEST_WAIT = timedelta(days=30)
#: The group for messages of rank 0 with the world that it belongs to, and whether the others wait.
_talking: dict[str, Any] = {}
#: Stages that rank 0 does alone.
ALONE = ("finish", "restore")


def join(device: str) -> str:
    """Join the processes that were launched with this one. Returns the device of this process."""
    try:
        with process.killable():
            device = joined(device)
            talking()
        return device
    except RuntimeError as error:
        raise lost(error) from None


def talking() -> Any:
    """The group in which rank 0 tells the others what to do; None in a single process."""
    if count() == 1:
        return None
    world = distributed.group.WORLD
    if _talking.get("world") is not world:
        _talking.update(world=world, group=distributed.new_group(backend="gloo", timeout=LONGEST_WAIT))
    return _talking["group"]


def count() -> int:
    """The number of ranks."""
    if distributed.is_initialized():
        return distributed.get_world_size()
    return 1


class Done(SystemExit):
    """Ends a process other than rank 0, which has nothing left to do after the steps."""


def waiting(free: bool = True) -> None:
    """Note whether the other ranks have done their part and wait for rank 0."""
    _talking["free"] = free


def free() -> bool:
    """Whether the other ranks wait for rank 0."""
    return bool(_talking.get("free"))


def done() -> None:
    """End the part of every rank but 0, which goes on. Raises ``Done`` there."""
    waiting()
    if distributed.is_initialized() and distributed.get_rank() > 0:
        raise Done(0)


def part() -> None:
    """Leave the process group, which would otherwise end in the middle of its work with the process."""
    if distributed.is_initialized():
        distributed.destroy_process_group()
    _talking.clear()


@contextmanager
def apart() -> Iterator[None]:
    """A solve of several ranks: the others end with the steps, and rank 0 goes on alone.

    Raises F0713 if another rank is lost. With a single process this does nothing.
    """
    try:
        with told_of_lost():
            yield
    finally:
        if count() > 1 and free():
            part()
        waiting(False)


@contextmanager
def assisted(work: Callable[[Any], None]) -> Iterator[None]:
    """Runs that rank 0 hands out (``taken``), each to all ranks, inside this block.

    The other ranks do ``work`` for each until rank 0 leaves the block. Then ``Done`` ends them.
    """
    join(options.pick_device("auto"))
    waiting()
    if distributed.get_rank() > 0:
        with told_of_lost():
            while (job := _told()) is not None:
                work(job)
        part()
        raise Done(0)
    try:
        yield
    finally:
        if count() > 1 and free():
            with suppress(RuntimeError):  # one of them is lost
                _tell(None)
                part()
        waiting(False)


@contextmanager
def taken(job: Any) -> Iterator[None]:
    """A run in which all ranks take part; what rank 0 makes of it afterwards, it makes alone."""
    _tell(job)
    try:
        with told_of_lost():
            yield
    finally:
        waiting()


@contextmanager
def told_of_lost() -> Iterator[None]:
    """Raises F0713 if another rank is lost inside this block."""
    try:
        yield
    except RuntimeError as error:
        if missing(error):
            waiting(False)
            raise lost(error) from None
        raise


def _tell(job: Any) -> None:
    """Rank 0 sends a job to all others; None is the end."""
    distributed.broadcast_object_list([job], src=0, group=talking())


def _told() -> Any:
    """The job that rank 0 sends, or None at the end."""
    received: list[Any] = [None]
    distributed.broadcast_object_list(received, src=0, group=talking())
    return received[0]


def missing(error: BaseException) -> bool:
    """Whether an error says that another rank is lost."""
    if count() == 1:
        return False
    return isinstance(error, distributed.DistError) or any(word in str(error).lower() for word in LOST)


def lost(error: Exception) -> FccoError:
    """The error F0713: a rank is lost."""
    return FccoError([errors.rank_lost(error)])


def first_to_speak() -> bool:
    """Whether no other rank has said yet why the run ends."""
    with suppress(Exception):
        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = distributed.TCPStore(*place, is_master=False, timeout=timedelta(seconds=3))
        return store.add(SAID, 1) == 1
    return process.rank() == 0


def of_rank_0(ask: Callable[[], Any]) -> Any:
    """The value of ``ask()`` on rank 0, for every rank. An error that it raises is raised everywhere."""
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
    """The keeper of one rank. All ranks keep their state at the same step.

    The ranks agree on the step when they ask each other whether to end (``agreed`` in the program).
    Rank 0 writes the state, with the estimates of all owners, and reads it for all.
    """

    module: Any = None
    held: Any = None

    def newest(self) -> tuple[Checkpoint | None, str]:
        """The newest checkpoint that rank 0 finds, on every rank."""
        join("cuda" if torch.cuda.is_available() else "cpu")
        return of_rank_0(super().newest)

    def of(self, module: Any, data: Mapping[str, Any], device: str, told: Callable[[Any], None]) -> None:
        """Tell the keeper the program and its data, and the ranks what this one wishes."""
        super().of(module, data, device, told)
        self.module, self.held = module, SimpleNamespace(**data)
        module.RANKS.wish = lambda: super(Keeper, self).requests("")

    def requests(self, stage: str = "") -> tuple[bool, bool, bool]:
        """The wishes of any rank at the last exchange between ranks; in stages of rank 0 alone, its own
        wishes.
        """
        if stage in ALONE:
            return super().requests(stage)
        heard, self.module.RANKS.heard = self.module.RANKS.heard, (False, False, False)
        return heard

    def write(self, stage: str, run: Any) -> None:
        """Write the state on rank 0, after the owners of its parts have sent them."""
        if stage not in ALONE:
            self.module.whole_state(run, self.held, self.module.OWNERS)
        if self.module.RANKS.rank == 0:
            super().write(stage, run)
