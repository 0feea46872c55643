"""The machine that a program runs on: its memory, its interruptions, and its failures as coded errors."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import torch

from fccomodel.core import diagnostics
from fccomodel.data.bound import Bound
from fccomodel.solver.emit import Program

#: vectors as long as the variables that a run holds: iterate, averages, gradient, best point, and their copies
VECTORS = 8


def solved(module: Any, program: Program, bound: Bound, polish: bool, **settings: Any) -> Any:
    """What the program's ``solve`` (with ``polish``, then its ``finish``) returns, its point on the host; failures of the
    machine or of a constant as coded errors."""
    threads = torch.get_num_threads()
    with interruptible() as asked:
        try:
            torch.set_num_threads(module.THREADS)
            with module.no_grad():
                solve = getattr(module, "solve_then_finish", module.solve) if polish else module.solve
                found = solve(dict(program.data), stop=asked.is_set, **settings)
                found.w = found.w.cpu().clone()
                return found
        except ArithmeticError as error:
            raise refusal(
                bound,
                "F0711",
                f"a constant of the model has no finite value: {error}",
                reason="It follows from numbers and parameters alone, before any data are used.",
                fix="Check what the model divides by, and the values of its parameters (--param NAME=VALUE).",
            ) from None
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError | torch.OutOfMemoryError) and "allocate memory" not in str(error):
                raise
            raise refusal(
                bound,
                "F0704",
                "the arrays of this run exceed the memory",
                reason=str(error).splitlines()[0] if str(error) else "",
                fix="Use fewer variables or rows, or smaller batches (--option outer_batch=32).",
            ) from None
        finally:
            torch.set_num_threads(threads)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """The first Ctrl-C sets the event, the second raises KeyboardInterrupt; only in the main thread, and where it is heeded."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield asked
        return

    def on_interrupt(number: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        print("stopping at the best point so far ...", file=sys.stderr)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def refuse_size(program: Program, bound: Bound, precision: str) -> None:
    """F0704 where the vectors of a run, each as long as all variables together, exceed the machine's memory."""
    length = max((stop for _, stop, _ in program.layout.values()), default=0)
    needed = VECTORS * length * getattr(torch, precision).itemsize
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else inf
    if needed > memory:
        raise refusal(
            bound,
            "F0704",
            f"the variables have {length:,} entries: too many for the memory",
            reason=f"A run holds {VECTORS} vectors of this length, {needed / 2**30:,.0f} GiB, of {memory / 2**30:,.0f}.",
            fix="Check the sizes that the variables are declared with.",
        )


def nothing_finite(bound: Bound, module: Any, found: Any) -> diagnostics.FccoError:
    """F0711: steps of a fixed schedule that diverged, or no point at which the objective is finite."""
    broken = getattr(found, "broken", None)
    if broken is not None and module.HYPER["decay"]:
        return refusal(
            bound,
            "F0711",
            f"the steps diverged: iterates were not finite by step {broken:,}",
            reason="With schedule = decay the last iterate is the answer, and no step is taken back.",
            fix=f"A smaller eta than {found.eta:.3g}, or schedule = practical, which goes back to its best point.",
        )
    return refusal(
        bound,
        "F0711",
        "the objective was not finite at any point tried",
        reason="A run starts at zero (nets: at their initialisation) and keeps points with a finite objective alone.",
        fix='Check the scale of the data (scale = "standard"), the domains of logarithms and powers; try smaller eta.',
    )


def refusal(bound: Bound, code: str, message: str, *, reason: str, fix: str) -> diagnostics.FccoError:
    """The error that ends a run."""
    return diagnostics.FccoError([diagnostics.error(code, message, reason=reason, fix=fix)], bound.problem.source)
