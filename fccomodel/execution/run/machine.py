"""The machine that a program runs on: memory, interruptions, and failures as coded errors."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from fccomodel.core import memory, process
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn
from fccomodel.evaluation.checks import sizes
from fccomodel.execution import errors, ranks
from fccomodel.execution.checkpoints.keeper import Keeper
from fccomodel.program.emit import Program

#: How many vectors of the variables a run holds: iterate, averages, gradient, best point, copies.
VECTORS = 8


def solved(
    module: Any, program: Program, bound: Bound, polish: bool, keeper: Keeper | None = None, **settings: Any
) -> Any:
    """The end of the program's ``solve``, and with ``polish`` of its ``finish``; the point is on the host.

    A ``keeper`` writes the state as the run goes. Raises F0711 for a constant that is not finite,
    F0704 for lack of memory, F0713 for a lost rank, F0817 for a damaged checkpoint.
    """
    threads = torch.get_num_threads()
    with interruptible() as asked, nullcontext() if keeper is None else process.terminable(keeper.terminate):
        stop = asked.is_set
        if keeper is not None:
            keeper.asks, stop = asked.is_set, keeper.stop
            settings |= {"keep": keeper}
        try:
            torch.set_num_threads(module.THREADS)
            with module.no_grad(), process.holding_memory():
                solve = module.solve
                if polish:
                    solve = getattr(module, "solve_then_finish", solve)
                final = solve(module.SOLVER, dict(program.data), stop=stop, **settings)
                final.w = final.w.cpu().clone()
                return final
        except ArithmeticError as error:
            raise FccoError([errors.constant_not_finite(error)], bound.problem.source) from None
        except (MemoryError, RuntimeError) as error:
            if program.shares is not None and ranks.missing(error):
                raise ranks.lost(error) from None
            if "without overflow" in str(error):  # a number of the model beyond those of the precision
                raise FccoError([errors.constant_not_finite(error)], bound.problem.source) from None
            if memory.ran_out(error):
                raise FccoError([errors.memory(error)], bound.problem.source) from None
            raise _of_state(error, keeper) from None
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise _of_state(error, keeper) from None
        finally:
            torch.set_num_threads(threads)
            for value in program.data.values():
                if drawn(value):
                    value.source.fetching.close()


def _of_state(error: Exception, keeper: Keeper | None) -> Exception:
    """The error itself, or F0817 if the run went on from a checkpoint, whose values may be damaged."""
    if keeper is None or keeper.found is None:
        return error
    return FccoError([errors.checkpoint_damaged(keeper.at.folder)])


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second raises KeyboardInterrupt.

    Outside the main thread, or if the signal is ignored, the event is never set.
    """
    interrupt = threading.Event()
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):
        yield interrupt
        return

    def on_interrupt(number: int, frame: Any) -> None:
        """Set the event; at the second Ctrl-C raise KeyboardInterrupt."""
        if interrupt.is_set():
            raise KeyboardInterrupt
        interrupt.set()
        print("stopping at the best point so far ...", file=sys.stderr)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


def refuse_size(program: Program, bound: Bound, precision: str) -> None:
    """Raise F0704 if a run's vectors, each as long as all variables together, exceed the memory."""
    length = max((stop for _, stop, _ in program.layout.values()), default=0)
    sizes.demand_room(bound, length, VECTORS, getattr(torch, precision).itemsize)


def unjudged(final: Any) -> bool:
    """Whether a run was left before it knew the value at its start, which is its point then."""
    return not final.iterations and (final.timed or final.status == "interrupted")


def nothing_finite(bound: Bound, module: Any, final: Any) -> FccoError:
    """The error F0711: steps of a fixed schedule diverged, or the objective is finite at no point."""
    broken = getattr(final, "broken", None)
    if broken is not None and module.SOLVER.schedule.keeps_last:
        return FccoError([errors.diverged(broken, final.eta)], bound.problem.source)
    return FccoError([errors.objective_not_finite()], bound.problem.source)
