"""A last stage around the loop over blocks: steps to the proximal point of its answer, on the smoothed
problem alone (sonex-alexr2-2025, Corollary 4.11). The emitter copies this source."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

from fccomodel.algorithms.runtime.loops.block_loop import copy_state, drawn, solve
from fccomodel.algorithms.runtime.loops.progress import centre_at, ending, least, record, started
from fccomodel.algorithms.runtime.loops.proximal_point import inner_step
from fccomodel.algorithms.runtime.loops.solver import BlockSolver
from fccomodel.core.lazy import torch


def finer(h, share):
    """1 - theta at that share of the inner loop's: gamma and the inner step with it, gamma' = theta gamma."""
    now = h.copy()
    now.gamma, now.inner_eta = share * h.gamma, share * h.inner_eta
    now.gamma_prime = now.gamma * (1 - share * (1 - h.gamma_prime / h.gamma))
    return now


def approach(solver: BlockSolver, data, w, c, h, rng, length, ended, keep=None):
    """z_K from z_0 = w, and K, at most ``length``, the steps made. By a theorem's constants 1 - theta
    stays, else it falls."""
    state, u, h.inner_steps = (
        SimpleNamespace(w=w, w_prev=w.clone()),
        solver.buffers(w.device, w.dtype),
        length + 1,
    )
    run = SimpleNamespace(state=state, u=u, c=c, rng=rng, waiting=data.waiting, count=0, ahead=[], history=[])
    solver.begin(run.state, h)
    if keep is not None:
        keep.again("last", run)
    while run.count < length and (run.ahead or not ended(run.count)):
        if not run.ahead:
            run.since, run.ahead = run.count, drawn(solver, data, rng, min(solver.block, length - run.count))
        now = finer(h, h.finer * (1.0 if solver.schedule.pools else max(1 - run.since / length, 0.02)))
        while run.ahead:
            inner_step(solver, data, run.state, run.u, run.c, run.ahead.pop(0), now, now.inner_eta)
            run.count += 1
            if keep is not None:
                keep("last", run)
    return run.state.z, run.count


def solve_to_proximal_point(
    solver: BlockSolver,
    data,
    *,
    seed=0,
    device="cpu",
    dtype=None,
    seconds=30.0,
    iterations=None,
    oracles=None,
    progress=None,
    stop=None,
    keep=None,
    **more,
):
    """``solve`` with half of the budget, then as many steps, or ``last``, towards the proximal point
    of what it found. Where stages adapt the better of both is returned, else the last one."""
    began, dtype = started(keep), dtype or torch.float32
    schedule = solver.schedule
    if oracles is not None:
        iterations = min(iterations or math.inf, max(1, int(oracles // max(solver.oracles, 1))))
    last = solver.settings().last or math.inf
    if iterations is None:
        kept = 0
    else:
        kept = int(min(iterations // 2, last))
    half = {"seconds": seconds and 0.5 * seconds, "iterations": iterations and iterations - kept}
    if keep is not None:
        found = keep.outcome("half", solver, data, device)
    else:
        found = None
    if found is None:
        given = {
            "seed": seed,
            "device": device,
            "dtype": dtype,
            "progress": progress,
            "stop": stop,
            "keep": keep,
        }
        found = solve(solver, data, **given, **half, **more)
        if keep is not None:
            keep.ended("half", found)
    if found.status != "stopped":
        return found
    run = solver.prepare(solver.as_namespace(data, device, dtype))
    rng, h = torch.Generator(device=device).manual_seed(seed + 1), found.h.copy()
    if schedule.pools:
        c = solver.centres(device, dtype)
    else:
        c = copy_state(found.c)
    length = int(min(last, kept or found.iterations))
    z, done = approach(
        solver, run, found.w.to(dtype), c, h, rng, length, ending(began, stop, seconds, None), keep
    )
    value, w = least(solver, found.exact, [z, found.w] if schedule.adapts else [z], h.weight)
    w = w.double()
    solver.project(w, 0.0)  # to double precision
    if solver.centred and not schedule.adapts:
        centre_at(solver, found.exact, w, c, found.h)
    steps = found.iterations + done
    entry = {"iteration": steps, "oracles": steps * solver.oracles, "eta": h.inner_eta}
    record(found.history, progress, began, value, h.weight, **entry)
    changed = {"w": w, "c": c, "iterations": steps, "seconds": time.perf_counter() - began}
    return SimpleNamespace(**{**vars(found), **changed})
