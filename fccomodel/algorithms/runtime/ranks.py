"""Functions for programs of several ranks: each rank makes the same draws and works on its share,
and sums are taken over all ranks.

A rank is a process of ``torch.distributed``. Without it there is one process, which owns
everything. The emitter copies the functions that a program of ranks calls.
"""

from __future__ import annotations

import math
import os
import time
from types import SimpleNamespace

import torch

from fccomodel.algorithms.runtime.checkpoints import FileKeeper
from fccomodel.algorithms.runtime.helpers.support import net_in_parts


class Ranks:
    """The ranks of a program, and their messages: the number of ``calls``, and the bytes ``sent``.

    The ranks exchange a message each time that they have asked ``pace`` times whether to end. ``asked``
    counts the times since the last message, at which ``said`` was sent. The message carries the wish of
    each rank, by ``wish()``; every rank has ``heard`` what any of them wishes.

    ``together`` says whether all ranks take the same path at the moment. Then passes over tables of at
    least ``least`` numbers are shared.
    """

    least = 1 << 20

    def __init__(self):
        self.calls, self.sent, self.asked, self.pace, self.said = 0, 0, 0, 1, time.perf_counter()
        self.wish = lambda: (False, False, False)
        self.heard: tuple[bool, ...] = (False, False, False)
        self.together = False

    @property
    def there(self):
        """Whether there is more than this process."""
        return torch.distributed.is_available() and torch.distributed.is_initialized()

    @property
    def count(self):
        """The number of processes."""
        if self.there:
            return torch.distributed.get_world_size()
        return 1

    @property
    def rank(self):
        """The number of this process, from 0."""
        if self.there:
            return torch.distributed.get_rank()
        return 0

    def add(self, x):
        """The sum of all ranks' numbers, in their place."""
        if self.there:
            torch.distributed.all_reduce(x)
            self.calls, self.sent = self.calls + 1, self.sent + x.numel() * x.element_size()
        return x


RANKS = Ranks()


def joined(device):
    """Make this process one of those that torchrun, or a launcher like it, has started, with a device of
    its own if there are several.
    """
    if "RANK" not in os.environ or "MASTER_ADDR" not in os.environ:
        return device
    if device == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo")
    return device


class Added(torch.autograd.Function):
    """The sum of all ranks' values as an operation of autograd. Its adjoint goes to each rank unchanged."""

    @staticmethod
    def forward(x):
        """The sum over ranks."""
        return RANKS.add(x.clone())

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep nothing: the derivative needs no values."""
        pass

    @staticmethod
    def backward(ctx, adjoint):
        """The adjoint as it is."""
        return adjoint

    @staticmethod
    def vmap(info, dims, x):
        """The sum of the batched values."""
        return Added.apply(x), dims[0]


class Apart(torch.autograd.Function):
    """A value that all ranks have and use for their shares, as an operation of autograd: its adjoint is the
    sum of the ranks' adjoints.
    """

    @staticmethod
    def forward(x):
        """The value as it is."""
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep nothing: the derivative needs no values."""
        pass

    @staticmethod
    def backward(ctx, adjoint):
        """The sum of the adjoints over ranks."""
        return Added.apply(adjoint)

    @staticmethod
    def vmap(info, dims, x):
        """The batched value as it is."""
        return Apart.apply(x), dims[0]


def over_ranks(x):
    """The sum of all ranks' parts of a value."""
    if torch.is_grad_enabled() and x.requires_grad:
        return Added.apply(x)
    return RANKS.add(x.contiguous().clone())


def in_parts(w):
    """w for this rank's part of a value, whose derivatives are summed over all ranks."""
    return Apart.apply(w)


def once(x):
    """A value that all ranks know, counted by the first rank alone."""
    nothing = torch.zeros_like(x) if isinstance(x, torch.Tensor) else 0.0
    if RANKS.rank == 0:
        return x
    return nothing


def owned(places):
    """The drawn blocks that this rank owns, as places in the draw. Block i belongs to rank i modulo their
    number.
    """
    return (places % RANKS.count == RANKS.rank).nonzero().squeeze(-1)


def placed(count, device):
    """This rank's share of ``count`` samples, as places in the draw."""
    return torch.arange(RANKS.rank, count, RANKS.count, device=device)


def mine(count):
    """How many of ``count`` elements belong to this rank."""
    return len(range(RANKS.rank, count, RANKS.count))


def scored(rows, w):
    """``rows @ w``, computed in shares of the rows."""
    return gathered(lambda part: part @ w, rows)


def net_scored(net, w, rows):
    """The net's output for every row, computed in shares of the rows."""
    return gathered(lambda part: net_in_parts(net, w, part), rows)


def gathered(values, rows):
    """``values(rows)``, one for each row: each rank computes its share and receives the others. If rows are
    few, or if ranks take different paths, every rank computes all.
    """
    if not RANKS.together or RANKS.count == 1 or rows.numel() < RANKS.least:
        return values(rows)
    part = slice(len(rows) * RANKS.rank // RANKS.count, len(rows) * (RANKS.rank + 1) // RANKS.count)
    own = values(rows[part])
    total = own.new_zeros((len(rows), *own.shape[1:]))
    total[part] = own
    return RANKS.add(total)


def joint(solve):
    """``solve`` with all ranks on the same path."""

    def solved(*given, **named):
        """Solve with all ranks together."""
        RANKS.together = True
        try:
            return solve(*given, **named)
        finally:
            RANKS.together = False

    return solved


def brought(x, dim, ids):
    """Complete x: take the entries along ``dim`` (those at ``ids``, in this order, if given) from their
    owners.
    """
    if RANKS.count > 1:
        if ids is None:
            ids = torch.arange(x.shape[dim], device=x.device)
        own, total = (
            ids[RANKS.rank :: RANKS.count],
            x.new_zeros((*x.shape[:dim], len(ids), *x.shape[dim + 1 :])),
        )
        total[(slice(None),) * dim + (slice(RANKS.rank, None, RANKS.count),)] = x.index_select(dim, own)
        x.index_copy_(dim, ids, RANKS.add(total))


def wholly(take_steps, owners):
    """``take_steps``, after which every rank receives all estimates and centres from their owners.

    ``owners`` says, by name, along which dim they are owned, and at which ids.
    """

    def taken(run, solver, data, *more):
        """Take the steps, then gather the whole state."""
        reason = take_steps(run, solver, data, *more)
        whole_state(run, data, owners)
        return reason

    return taken


def whole_state(run, data, owners):
    """Give every rank the estimates and centres of their owners."""
    for name, (dim, key) in owners.items():
        for held in (getattr(run, "u", None), getattr(run, "c", None)):
            if hasattr(held, name):
                brought(getattr(held, name), dim, getattr(data, key) if key else None)


class KeeperOfAll(FileKeeper):
    """That of one rank. All keep their state at the same step, by the word that goes round
    (``agreed``): rank 0 writes it, with estimates as their owners have them, and reads it for all."""

    data: SimpleNamespace
    owners: dict = {}

    def newest(self):
        """The newest checkpoint that rank 0 found, on every rank."""
        newest_of_all = [super().newest() if RANKS.rank == 0 else None]
        if RANKS.count > 1:
            torch.distributed.broadcast_object_list(newest_of_all, src=0)
        RANKS.wish = super().requests
        return newest_of_all[0]

    def requests(self, stage=""):
        """The facts about the end that the run was told; rank 0 decides alone during the finish."""
        if stage in ("finish", "restore"):  # those are rank 0's alone
            return super().requests(stage)
        heard, RANKS.heard = RANKS.heard, (False, False, False)
        return heard

    def write(self, stage, run):
        """Write the gathered state on rank 0."""
        if stage not in ("finish", "restore"):
            whole_state(run, self.data, self.owners)
        if RANKS.rank == 0:
            super().write(stage, run)


def by_rank_0(priced):
    """``priced``, counted by rank 0 for all ranks, so that all decide the same."""

    def agreed(work, most=math.inf):
        """The result, and the seconds that rank 0 measured; infinity if more than ``most``."""
        result, seconds = priced(work)
        seconds = float(RANKS.add(torch.tensor(seconds if RANKS.rank == 0 else 0.0, dtype=torch.float64)))
        if seconds > most:
            return None, math.inf
        return result, seconds

    return agreed


def unhurried(to_the_end):
    """``to_the_end`` for several ranks: it always completes the work, because each rank has its own clock
    and the others would wait.
    """

    def done(work, over, dear=True):
        """Do the work. It came to its end."""
        return to_the_end(work, over, dear=False)

    return done


def unguarded(within_memory):
    """``within_memory`` for several ranks: a rank without memory fails, because the others would wait for one
    that leaves its work.
    """

    def done(work):
        """Do the work. It came to its end."""
        work()
        return True

    return done


def agreed(ending):
    """``ending``, agreed by all ranks: the clock of any rank, or a person, ends the run of all.

    The ranks exchange a message after a number of calls that rank 0 measures to take about a twentieth of a
    second.
    """

    def made(began, stop, seconds, iterations, oracles=None, share=None, work=None):
        """A test of the end on which all ranks agree."""
        alone = ending(began, stop, seconds, None, work=work)
        counted = ending(began, None, None, iterations, oracles, share, work)

        def ended(count, calls=0, passed=0):
            """Why the run ends, as rank 0 decided; asked now and then."""
            RANKS.asked += 1
            if RANKS.asked >= RANKS.pace:
                word, each = alone(count, calls), max(time.perf_counter() - RANKS.said, 1e-6) / RANKS.asked
                if RANKS.rank == 0:
                    pace = min(max(1.0, 0.05 / each), 256.0)
                else:
                    pace = 0.0
                said = torch.tensor(
                    [pace, word == "interrupted", word != "", *RANKS.wish()], dtype=torch.float64
                )
                pace, stopped, over, *wishes = RANKS.add(said).tolist()
                RANKS.asked, RANKS.pace, RANKS.said, RANKS.heard = (
                    0,
                    int(pace),
                    time.perf_counter(),
                    tuple(map(bool, wishes)),
                )
                if stopped or over:
                    work.timed = work.timed or not stopped
                    if stopped:
                        return "interrupted"
                    return "the time limit was reached"
            return counted(count, calls, passed)

        return ended

    return made


def led(end):
    """The stage after the steps, made by rank 0 alone; the other ranks are done."""

    def ended(solver, outcome, *more, **given):
        """End on rank 0 alone."""
        if RANKS.rank == 0:
            return end(solver, outcome, *more, **given)
        outcome.passes = 0
        return outcome

    return ended
