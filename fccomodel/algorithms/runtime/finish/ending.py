"""The choice of the stage that follows the stochastic steps, by the budget. The emitter copies it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from fccomodel.algorithms.runtime.loops.progress import Work, completed, passes_over, started
from fccomodel.algorithms.runtime.loops.settings import RunOptions
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.lazy import torch
from fccomodel.core.work import priced


@dataclass(kw_only=True)
class LastStage:
    """The stage that follows the steps.

    way     its name: ``finish``, ``restore``, or empty if no stage follows
    share   counted seconds that the steps may take; None for no limit
    passes  the number of its passes; None for no limit
    price   counted seconds of a pass
    """

    way: str = ""
    share: float | None = None
    passes: int | None = None
    price: float = math.inf


def allotted(solver: Solver, exact, device, room, patience):
    """Share out the budget between the steps and the stage that follows them, a ``LastStage``.

    A typical finish takes 400 passes.

    - ``finish``, if 400 passes take less than 1.6 times the ``room``. The steps get as long as these
      passes, plus a second, and at most 0.6 of the room. If passes may come first, the steps get a quarter
      of what the passes take, or a fortieth if no function is smoothed.
    - ``finish``, if at least 25 passes (6 for a convex problem) fit into three quarters of the room. The
      steps get the last quarter: curvature gains more by a pass than by a step.
    - ``restore`` otherwise. It keeps the time of thirty exact evaluations, at most 0.3 of the room.

    A pass that takes more than an eighth of the room is never made. With ``patience`` the run is judged
    after that much work. For networks, whose steps shrink over the budget (``annealed``), the steps have
    the whole room, unless 400 passes take at most a quarter of it.
    """
    annealed = solver.settings().annealed
    last = LastStage(share=patience)
    if patience is None and annealed:
        last.share = room
    if solver.finish is not None:
        last.price = solver.one_pass(solver, exact, device, 0.125 * room)
    typical_passes = 400 * last.price
    fewest_passes = (25 if solver.nonconvex else 6) * last.price
    if typical_passes < (0.25 if annealed else 1.6) * room:
        last.way = "finish"
        last.share = steps_before_passes(solver, typical_passes, room)
        if patience is not None:
            last.passes = int(400 * patience / typical_passes) + 1
    elif fewest_passes < 0.75 * room and not annealed:
        last.way = "finish"
        last.share = room / 4
    elif solver.restore is not None:
        look = one_look(solver, exact, device, 0.01 * room)
        last.way = "restore"
        last.share = room - min(30 * look, 0.3 * room)
    if patience is not None and last.share is not None:
        last.share = min(last.share, patience)
    return last


def steps_before_passes(solver: Solver, typical_passes, room):
    """Counted seconds of the steps before a finish whose ``typical_passes`` fit into the ``room``."""
    if not solver.direct or solver.nonconvex:
        return min(typical_passes + 1.0, 0.6 * room)
    if not solver.centred:  # passes that need little preparation
        return typical_passes / 40
    return typical_passes / 4


def one_look(solver: Solver, exact, device, most=math.inf):
    """Counted seconds of an evaluation of the exact values; infinity if more than ``most``."""
    w = solver.start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    return priced(lambda: solver.evaluate(exact, w), most=most)[1]


def planned_end(solver: Solver, exact, asked: RunOptions, room):
    """The ``LastStage`` by ``allotted``, or the one that the options name.

    A budget of steps or of oracle calls belongs to the algorithm alone: no stage follows.
    """
    if asked.way is not None:
        return LastStage(way=asked.way, passes=asked.passes, price=0.0)
    if room is None or asked.iterations is not None or asked.oracles is not None:
        return LastStage(passes=asked.passes, price=0.0)
    return allotted(solver, exact, asked.device, room, asked.patience)


def before_the_end(solver: Solver, data, way, given):
    """The result of the steps: from this process before it was killed, from the run that this one
    continues, or from steps that are made now.
    """
    asked = RunOptions(**given)
    outcome = None
    if asked.keep is not None:
        outcome = asked.keep.outcome("steps", solver, data, asked.device, asked.exact)
    if outcome is None and solver.resume is not None and way == "finish":
        with torch.inference_mode(False), torch.no_grad():
            outcome = solver.resume(solver, asked.exact, asked.device, asked.progress)
    if outcome is None or not math.isfinite(outcome.history[-1]["merit"]):
        outcome = solver.solve(solver, data, **given)
    return outcome


def passes_may_replace_steps(solver: Solver, price, room):
    """Whether the steps may leave the budget to passes, which cost little more than they do."""
    if room is None or not solver.direct or not solver.nonconvex or solver.centred:
        return False
    return 0 < 8 * price < 0.75 * room <= 3000 * price


def run_last_stage(solver: Solver, outcome, exact, asked: RunOptions, last: LastStage, seconds):
    """The result of the last stage, which goes on from the ``outcome`` of the steps for so many seconds."""
    limits = {"seconds": seconds, "passes": last.passes, "tol": solver.tol, "price": last.price}
    limits |= {"progress": asked.progress, "stop": asked.stop, "keep": asked.keep}
    with torch.inference_mode(False), torch.no_grad():
        if last.way != "finish":
            return solver.restore(solver, outcome, exact, **limits)
        final = solver.finish(solver, outcome, exact, **limits)
        final.worked += final.passes * last.price
        return final


def solve_then_finish(solver: Solver, data, **given):
    """Run the steps, then the stage that ``allotted`` chooses.

    The options are those of ``RunOptions``. ``seconds`` is measured by the clock and can only end a run;
    ``room`` is the budget in counted seconds. ``keep`` holds the result of the steps once another stage
    follows them.
    """
    asked = RunOptions(**given)
    began = started(asked.keep)
    seconds = asked.seconds
    room = seconds if asked.room is None else asked.room
    last = LastStage(passes=asked.passes)

    def plan():
        """Set the last stage; looks and passes are measured for it."""
        nonlocal last
        last = planned_end(solver, exact, asked, room)

    with torch.inference_mode(False), torch.no_grad():
        exact = solver.prepare_full(solver.as_namespace(data, asked.device, torch.float64))
        over = passes_over(began, asked.stop, None if seconds is None else 0.3 * seconds)
        completed(plan, over, Work())
    given = {**given, "share": last.share, "tol": solver.tol, "exact": exact}
    if seconds is not None:
        left = max(seconds - (time.perf_counter() - began), 0.1 * seconds)
        given["seconds"] = 0.75 * left if last.way else left
    passes_first = passes_may_replace_steps(solver, last.price, room)
    if passes_first:
        given |= {"price": last.price, "room": room}
    outcome = before_the_end(solver, data, last.way, given)
    if passes_first and not outcome.iterations:
        last.way = "finish"
    if not last.way:
        return outcome
    if asked.keep is not None:
        asked.keep.ended("steps", outcome)
    left = None
    if seconds is not None:
        left = max(seconds - (time.perf_counter() - began), 0.0)
    outcome.scarce = room is not None and last.way == "finish" and 100 * last.price > room
    return run_last_stage(solver, outcome, exact, asked, last, left)
