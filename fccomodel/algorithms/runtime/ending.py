"""What comes after the stochastic part, as time allows. The emitter copies it."""

import time
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:  # what the emitted program defines around this text
    TOL = 1e-6
    solve: Any = None
    finish = restore = one_pass = prepare_full = as_namespace = solve


def solve_then_finish(
    data, *, way=None, passes=None, device="cpu", seconds=None, iterations=None, oracles=None, progress=None, stop=None, **more
):
    """``solve``, then ``finish`` if a quarter of a typical number of passes (400) fits into the time, else ``restore``.

    ``way`` and ``passes`` ask for one of them (or, empty, for none), and for that many passes. A budget of steps or oracle calls
    is the algorithm's alone.
    """
    began, own = time.perf_counter(), seconds
    with torch.inference_mode(False), torch.no_grad():
        exact = prepare_full(as_namespace(data, device, torch.float64))
        if way is None:
            way = ""
            if seconds is not None and iterations is None and oracles is None:
                needed = 400 * one_pass(exact, device) if finish is not None else float("inf")
                if needed < 1.6 * seconds:
                    way, own = "finish", min(needed + 1.0, 0.6 * seconds)
                elif restore is not None:
                    way, own = "restore", 0.7 * seconds
    limits = {"seconds": own, "iterations": iterations, "oracles": oracles}
    found = solve(data, device=device, progress=progress, stop=stop, tol=TOL, exact=exact, **limits, **more)
    if not way:
        return found
    with torch.inference_mode(False), torch.no_grad():
        left = None if seconds is None else max(seconds - (time.perf_counter() - began), 0.3 * seconds)
        end = finish if way == "finish" else restore
        return end(found, exact, seconds=left, passes=passes, tol=TOL, progress=progress, stop=stop)
