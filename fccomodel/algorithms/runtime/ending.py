"""What comes after the stochastic part, as time allows. The emitter copies it."""

from __future__ import annotations

import time

from fccomodel.algorithms.runtime.solver import Solver
from fccomodel.core.lazy import torch


def solve_then_finish(
    solver: Solver, data, *, way=None, passes=None, device="cpu", seconds=None, iterations=None, oracles=None, progress=None,
    stop=None, **more,
):  # fmt: skip
    """``solve``, then ``finish`` if a quarter of a typical number of passes (400) fits into the time, else ``restore``.

    ``way`` and ``passes`` ask for one of them (or, empty, for none), and for that many passes. A budget of steps or oracle calls
    is the algorithm's alone.
    """
    began, share = time.perf_counter(), seconds
    with torch.inference_mode(False), torch.no_grad():
        exact = solver.prepare_full(solver.as_namespace(data, device, torch.float64))
        if way is None:
            way = ""
            if seconds is not None and iterations is None and oracles is None:
                needed = 400 * solver.one_pass(solver, exact, device) if solver.finish is not None else float("inf")
                if needed < 1.6 * seconds:
                    way, share = "finish", min(needed + 1.0, 0.6 * seconds)
                elif solver.restore is not None:
                    way, share = "restore", 0.7 * seconds
    limits = {"seconds": share, "iterations": iterations, "oracles": oracles}
    given = {"device": device, "progress": progress, "stop": stop, "tol": solver.tol, "exact": exact}
    outcome = solver.solve(solver, data, **given, **limits, **more)
    if not way:
        return outcome
    with torch.inference_mode(False), torch.no_grad():
        left = None if seconds is None else max(seconds - (time.perf_counter() - began), 0.3 * seconds)
        end = solver.finish if way == "finish" else solver.restore
        return end(solver, outcome, exact, seconds=left, passes=passes, tol=solver.tol, progress=progress, stop=stop)
