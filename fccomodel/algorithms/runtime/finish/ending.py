"""What comes after the stochastic part, as the work that there is room for allows. The emitter copies it."""

from __future__ import annotations

import math
import time

from fccomodel.algorithms.runtime.loops.progress import passes_over, started
from fccomodel.algorithms.runtime.loops.settings import RunOptions
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.lazy import torch
from fccomodel.core.work import priced, to_the_end


def allotted(solver: Solver, exact, device, room, patience):
    """What comes after the steps, the steps' share of the work, and passes of what comes after;
    counted seconds of a pass.

    ``finish`` if a quarter of a typical number of passes (400) fits into the ``room``: after steps
    for as long as these passes take and a second, at most 0.6 of the room; where passes come first,
    for a quarter of it. If only 25 passes, of a convex problem six, fit into three quarters of the
    room, after steps for the other quarter: curvature gains more by each than a step does. Of a
    smooth problem after none, where a pass costs little more than steps do and 400 are no small
    part of the room. A pass of more than an eighth of the room is left before its end, and comes
    never. Else ``restore``, with the room for thirty looks at the exact values, at most
    0.3 of all. With ``patience`` the run is judged after so much work. Steps that are annealed,
    those of nets, have the room where nothing comes after them; passes do where 400 take a quarter
    of it at most.
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
        way, share = (
            "finish",
            needed / 4 if solver.direct and not solver.nonconvex else min(needed + 1.0, 0.6 * room),
        )
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
    """Counted seconds that the exact values take; infinity if more than ``most``."""
    w = solver.start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    return priced(lambda: solver.evaluate(exact, w), most=most)[1]


def planned_end(solver: Solver, exact, asked: RunOptions, room):
    """What comes after the steps, the steps' share of the work, and passes of what comes after;
    counted seconds of a pass: as asked for, or as ``allotted``. A budget of steps or oracle calls is
    the algorithm's alone."""
    if asked.way is not None:
        return asked.way, None, asked.passes, 0.0
    if room is None or asked.iterations is not None or asked.oracles is not None:
        return "", None, asked.passes, 0.0
    return allotted(solver, exact, asked.device, room, asked.patience)


def before_the_end(solver: Solver, data, way, given):
    """How the steps ended: before the run was killed, in another run that this one goes on from, or now."""
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
    """``solve``, then what is ``allotted``. ``seconds`` are those of the clock, which ends a run
    alone; ``room`` is the budget in counted seconds.

    ``given``: see ``RunOptions``. ``keep`` has how the steps ended, once something comes after them.
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
        found = solver.finish(solver, outcome, exact, **limits)
        found.worked += found.passes * price
        return found
