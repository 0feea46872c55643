"""Runs an emitted program: the text is what runs."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import torch

from fccomodel import diagnostics, elements, ir, selection
from fccomodel.bound import Bound
from fccomodel.emit import Program
from fccomodel.penalty import Penalty
from fccomodel.smoothing import Smoothed

#: vectors as long as the variables that a run holds: iterate, averages, gradient, best point, and their copies
VECTORS = 8


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run is: objective and violation of the best point so far, on the exact problem, and its KKT residual as last
    estimated, with the 95% error of the estimate."""

    stage: int
    iteration: int
    objective: float
    violation: float
    kkt: float | None
    kkt_error: float | None
    steps_per_second: float
    seconds_left: float | None
    message: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """Where a run ended: the user's variables (float64), multipliers by label, and how it went.

    ``limits``: by constraint (a family as a whole) the largest multiplier that its penalty allows, where there is one.
    ``stopped`` is the reason in words, ``ended`` one of ``converged``, ``interrupted``, ``stopped``.
    ``history``: for each stage objective (in the model's sense) and violation of the best point so far, oracle calls, seconds.
    ``passes`` over all rows of the ``way`` it ended (``finish``, ``restore``), 0 where there was none. ``failure`` is why there
    is no solution, if that was found.
    ``notes`` say what the smoothing left: its parameter at the end, and by how much a block's envelope can differ.
    """

    variables: Mapping[str, np.ndarray]
    multipliers: Mapping[str, float]
    limits: Mapping[str, float]
    history: list[dict[str, Any]]
    iterations: int
    wall_s: float
    stopped: str
    ended: str
    notes: tuple[str, ...] = ()
    passes: int = 0
    way: str = ""
    failure: Failure | None = None

    @property
    def status(self) -> str:
        """``infeasible``, ``unbounded`` or ``unattained``; otherwise ``converged``, ``interrupted`` or ``stopped``."""
        return self.ended if self.failure is None else self.failure.kind

    @property
    def interrupted(self) -> bool:
        return self.ended == "interrupted"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a problem has no solution, as the finish found it.

    kind       ``infeasible``: constraints conflict; ``unbounded``: the objective falls for ever; ``unattained``: it falls towards
               an infimum that no point attains
    conflict   infeasible: v_k > 0, the violations whose squares' sum cannot be lowered, by label
    nearest    infeasible: where constraints are convex, no feasible point is nearer to the one returned
    along      otherwise: the entry of a variable that grows the most, and whether it rises
    """

    kind: str
    conflict: Mapping[str, float] = field(default_factory=dict)
    nearest: float = 0.0
    along: tuple[str, bool] | None = None


def run(
    program: Program,
    bound: Bound,
    *,
    seed: int = 0,
    device: str = "cpu",
    precision: str = "float32",
    budget_s: float | None = None,
    budget_it: int | None = None,
    budget_oracles: float | None = None,
    polish: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Execute the program's text on its data; Ctrl-C ends it with the best point so far.

    Raises F0711 where nothing finite was found, F0704 where the variables or the arrays exceed the memory.
    """
    refuse_size(program, bound, precision)
    module = types.ModuleType("solver")
    exec(compile(program.text, "solver.py", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the text that we emitted
    began = time.perf_counter()
    limited = (budget_s, budget_it, budget_oracles) != (None, None, None)
    seconds = budget_s if limited else module.SECONDS

    def report(entry: Mapping[str, Any]) -> None:
        if progress is None:
            return
        elapsed = time.perf_counter() - began
        progress(
            Progress(
                stage=entry["stage"],
                iteration=entry["iteration"],
                objective=module.SIGN * entry["objective"],
                violation=entry["violation"],
                kkt=entry.get("kkt"),
                kkt_error=entry.get("kkt_error"),
                steps_per_second=entry["iteration"] / max(elapsed, 1e-9),
                seconds_left=None if seconds is None else max(0.0, seconds - elapsed),
            )
        )

    settings = {"seed": seed, "device": device, "dtype": getattr(torch, precision), "seconds": seconds, "iterations": budget_it}
    found = solved(module, program, bound, polish, progress=report, oracles=budget_oracles, **settings)
    w = found.w
    if not bool(torch.isfinite(w).all()) or not found.history or not np.isfinite(found.history[-1]["merit"]):
        raise nothing_finite(bound, module, found)
    names = bound.problem.variables
    variables = {
        name: w[a:b].reshape(shape).numpy().astype(np.float64) for name, (a, b, shape) in program.layout.items() if name in names
    }
    notes = [gap(text, getattr(found.h, f"lam_{name}"), width) for name, (text, width) in program.smoothed.items()]
    if module.HYPER["eta"] == 0:
        notes.insert(0, f"first step size: {found.eta:.3g}, the inverse of the smoothness estimated at the start")
    if getattr(found, "epsilon", None) is not None:
        notes.append(f"the solver's own pair (x, y) is epsilon-KKT, epsilon = {found.epsilon:.2g} (hscg-2020, Lemma 3.1)")
    if getattr(found, "broken", None) is not None:
        notes.append(f"iterates were not finite by step {found.broken:,}: the run went on from its best point with smaller steps")
    return Solution(
        variables=variables,
        multipliers=multipliers(program, bound, found, exact_values(module, program, found)),
        limits=limits(program, bound, found),
        history=[{**entry, "objective": module.SIGN * entry["objective"]} for entry in found.history],
        iterations=found.iterations,
        passes=getattr(found, "passes", 0),
        way=getattr(found, "way", ""),
        failure=failure(bound, program, getattr(found, "failure", None)),
        wall_s=time.perf_counter() - began,
        stopped=found.reason,
        ended=found.status,
        notes=tuple(notes),
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


def refusal(bound: Bound, code: str, message: str, *, reason: str, fix: str) -> diagnostics.FccoError:
    """The error that ends a run."""
    return diagnostics.FccoError([diagnostics.error(code, message, reason=reason, fix=fix)], bound.problem.source)


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


def gap(text: str, lam: float, width: float) -> str:
    """How far an envelope can lie below its function: max over y, c in the dual domain of lam/2 |y - c|^2."""
    bound = "" if math.isinf(width) else f", so a block lies at most {0.5 * lam * width**2:.2g} below its function"
    return f"smoothing of {text}: lambda = {lam:.2g}{bound}"


def exact_values(module: Any, program: Program, found: Any) -> Mapping[str, tuple[str, Any]]:
    """The constraints at the point found, where multipliers follow from them."""
    if not any(isinstance(p, Penalty) for p in program.penalties.values()):
        return {}
    with module.no_grad():
        return module.evaluate(found.exact, found.w.to(found.exact.device))[1]


def multipliers(program: Program, bound: Bound, found: Any, values: Mapping[str, tuple[str, Any]]) -> dict[str, float]:
    """The solver's own multipliers by label, from ``values`` of the constraints at the point found."""
    result: dict[str, float] = {}
    for constraint in bound.problem.constraints:
        match program.penalties.get(constraint.label):
            case Smoothed(name=name, args=args, units=(below, above)) if hasattr(found.c, name):
                slopes = getattr(found.c, name).cpu().double().numpy()
                array = np.where(slopes < 0, slopes / below, slopes / above)
                order = [constraint.binders.index(b) for b in dict.fromkeys(b for a in args for b in ir.free_binders(a))]
                for key, index in members(bound, constraint):
                    result[key] = float(array[tuple(index[k] for k in order)])
            case Penalty(scale=str(scale)) as penalty:
                array = penalty.multiplier(values[constraint.label][1].cpu().double().numpy(), getattr(found.h, scale))
                for key, value in zip([key for key, _ in members(bound, constraint)], array.reshape(-1), strict=True):
                    result[key] = float(value)
    return result


def limits(program: Program, bound: Bound, found: Any) -> dict[str, float]:
    """The largest slopes of the penalties, which are bounded where they are multiples of a hinge or an absolute value."""
    result: dict[str, float] = {}
    for constraint in bound.problem.constraints:
        match program.penalties.get(constraint.label):
            case Smoothed(bound=str(scale)):
                result[constraint.label] = float(getattr(found.h, scale))
            case Penalty(scale=str(scale), op="pos" | "abs") as penalty:
                result[constraint.label] = float(getattr(found.h, scale)) * penalty.factor
    return result


def failure(bound: Bound, program: Program, said: Mapping[str, Any] | None) -> Failure | None:
    """What a program says of its failure, in the model's names."""
    if said is None:
        return None
    if said["kind"] == "infeasible":
        found: dict[str, float] = {}
        for constraint in bound.problem.constraints:
            excess = said["weights"][constraint.label].cpu().reshape(-1).tolist()
            found |= dict(zip([key for key, _ in members(bound, constraint)], excess, strict=True))
        least = 1e-3 * max(found.values())
        conflict = {label: v for label, v in sorted(found.items(), key=lambda pair: -pair[1]) if v > least}
        return Failure(kind="infeasible", conflict=conflict, nearest=said["nearest"])
    w = said["direction"].cpu()
    k = int(w.abs().argmax())
    name, (start, _, shape) = next((n, place) for n, place in program.layout.items() if place[0] <= k < place[1])
    index = ", ".join(str(int(i) + 1) for i in np.unravel_index(k - start, shape)) if shape else ""
    return Failure(kind=said["kind"], along=(f"{name}[{index}]" if shape else name, bool(w[k] > 0)))


def members(bound: Bound, constraint: ir.Constraint) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The members of a constraint family: ``label[k1,k2]`` and the ids of their elements."""
    if not constraint.binders:
        yield constraint.label, ()
        return
    parts = selection.split(constraint.binders, constraint.condition)
    if any(part.parents for part in parts):
        parts = tuple(dataclasses.replace(p, keys=(), orders=(), excludes=(), masks=(), parents=()) for p in parts)
    lists = [selection.realise(bound, part).rows for part in parts]
    shown = [elements.names(bound, part.binder.domain) for part in parts]
    places = [{int(i): k for k, i in enumerate(elements.ids(bound, part.binder.domain))} for part in parts]
    for cell in itertools.product(*lists):
        text = ",".join(names[place[int(i)]] for names, place, i in zip(shown, places, cell, strict=True))
        yield f"{constraint.label}[{text}]", tuple(int(i) for i in cell)


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
