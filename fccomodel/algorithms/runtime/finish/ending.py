"""The choice of the stage that follows the stochastic steps, by the budget. The emitter copies it."""

from __future__ import annotations

import math
import time

from fccomodel.algorithms.runtime.loops.progress import passes_over, started
from fccomodel.algorithms.runtime.loops.settings import RunOptions
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.lazy import torch
from fccomodel.core.work import priced, to_the_end


def allotted(solver: Solver, exact, device, room, patience):
    """Share out the budget between the steps and the stage that follows them.

    Returns the name of that stage, the share of the steps in counted seconds (None: no limit), the number
    of its passes (None: no limit), and the counted seconds of a pass. A typical finish takes 400 passes.

    - ``finish``, if 400 passes take less than 1.6 times the ``room``. The steps get as long as these
      passes, plus a second, and at most 0.6 of the room. If passes may come first, the steps get a quarter
      of what the passes take, or a fortieth if no function is smoothed and a pass takes less than 0.01 s.
    - ``finish``, if at least 25 passes (6 for a convex problem) fit into three quarters of the room. The
      steps get the last quarter: curvature gains more by a pass than by a step.
    - ``restore`` otherwise. It keeps the time of thirty exact evaluations, at most 0.3 of the room.

    A pass that takes more than an eighth of the room is never made. With ``patience`` the run is judged
    after that much work. For networks, whose steps shrink over the budget (``annealed``), the steps have
    the whole room, unless 400 passes take at most a quarter of it.
    """
    way, share, passes, annealed = "", patience, None, solver.settings().annealed
    if patience is None and annealed:
        share = room
    if solver.finish is not None:
        price = solver.one_pass(solver, exact, device, 0.125 * room)
    else:
        price = float("inf")
    needed = 400 * price
    if needed < (0.25 if annealed else 1.6) * room:
        way, share = "finish", min(needed + 1.0, 0.6 * room)
        if solver.direct and not solver.nonconvex:
            cheap = price < 0.01 and not solver.centred  # passes that need little preparation
            share = needed / (40 if cheap else 4)
        if patience is None:
            passes = None
        else:
            passes = int(400 * patience / needed) + 1
    elif (25 if solver.nonconvex else 6) * price < 0.75 * room and not annealed:
        way, share = "finish", room / 4
    elif solver.restore is not None:
        look = one_look(solver, exact, device, 0.01 * room)
        way, share = "restore", room - min(30 * look, 0.3 * room)
    return way, share if patience is None or share is None else min(share, patience), passes, price


def one_look(solver: Solver, exact, device, most=math.inf):
    """Counted seconds of an evaluation of the exact values; infinity if more than ``most``."""
    w = solver.start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    return priced(lambda: solver.evaluate(exact, w), most=most)[1]


def planned_end(solver: Solver, exact, asked: RunOptions, room):
    """The same four values as ``allotted``, from the options if they name the stage.

    A budget of steps or of oracle calls belongs to the algorithm alone: no stage follows.
    """
    if asked.way is not None:
        return asked.way, None, asked.passes, 0.0
    if room is None or asked.iterations is not None or asked.oracles is not None:
        return "", None, asked.passes, 0.0
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


def solve_then_finish(solver: Solver, data, **given):
    """Run the steps, then the stage that ``allotted`` chooses.

    The options are those of ``RunOptions``. ``seconds`` is measured by the clock and can only end a run;
    ``room`` is the budget in counted seconds. ``keep`` holds the result of the steps once another stage
    follows them.
    """
    asked = RunOptions(**given)
    began, keep, seconds = started(asked.keep), asked.keep, asked.seconds
    room = seconds if asked.room is None else asked.room
    planned: list = ["", None, asked.passes, math.inf]
    with torch.inference_mode(False), torch.no_grad():
        exact = solver.prepare_full(solver.as_namespace(data, asked.device, torch.float64))
        over = passes_over(began, asked.stop, None if seconds is None else 0.3 * seconds)
        to_the_end(lambda: planned.__setitem__(slice(None), planned_end(solver, exact, asked, room)), over)
    way, share, passes, price = planned
    given = {**given, "share": share, "tol": solver.tol, "exact": exact}
    if seconds is not None:
        left = max(seconds - (time.perf_counter() - began), 0.1 * seconds)
        given["seconds"] = 0.75 * left if way else left
    may_replace = solver.direct and solver.nonconvex and not solver.centred
    if may_replace and room is not None and 0 < 8 * price < 0.75 * room <= 3000 * price:
        given |= {"price": price, "room": room}
    outcome = before_the_end(solver, data, way, given)
    if "price" in given and not outcome.iterations:
        way = "finish"
    if not way:
        return outcome
    if keep is not None:
        keep.ended("steps", outcome)
    with torch.inference_mode(False), torch.no_grad():
        left = None
        if seconds is not None:
            left = max(seconds - (time.perf_counter() - began), 0.0)
        outcome.scarce = room is not None and way == "finish" and 100 * price > room
        limits = {"seconds": left, "passes": passes, "tol": solver.tol}
        limits |= {"progress": asked.progress, "stop": asked.stop, "keep": keep, "price": price}
        if way != "finish":
            return solver.restore(solver, outcome, exact, **limits)
        outcome_of_finish = solver.finish(solver, outcome, exact, **limits)
        outcome_of_finish.worked += outcome_of_finish.passes * price
        return outcome_of_finish
