"""A last stage around the loop over blocks: steps to the proximal point of its answer, on the smoothed
problem alone (sonex-alexr2-2025, Corollary 4.11). The emitter copies this source."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

from fccomodel.algorithms.runtime.loops.block_loop import copy_state, drawn, solve
from fccomodel.algorithms.runtime.loops.progress import (
    centre_at,
    ending,
    least,
    record,
    started,
    steps_within,
)
from fccomodel.algorithms.runtime.loops.proximal_point import inner_gradient, inner_step
from fccomodel.algorithms.runtime.loops.settings import RunOptions
from fccomodel.algorithms.runtime.loops.solver import BlockSolver
from fccomodel.core.lazy import torch


def finer(h, share):
    """Set 1 - theta to a share of its value in the inner loop, and with it gamma, the inner step and gamma'
    = theta gamma.
    """
    now = h.copy()
    now.gamma, now.inner_eta = share * h.gamma, share * h.inner_eta
    now.gamma_prime = now.gamma * (1 - share * (1 - h.gamma_prime / h.gamma))
    return now


def approach(solver: BlockSolver, data, run, h, length, ended, keep=None):
    """Make at most ``length`` inner steps from z_0 = w. Returns z_K and the number K of steps made.

    By a theorem's constants 1 - theta is constant; otherwise it falls.
    """
    h.inner_steps = length + 1
    solver.begin(run.state, h)
    if keep is not None:
        keep.again("last", run)
    while run.count < length and (run.ahead or not ended(run.count)):
        if not run.ahead:
            run.since = run.count
            run.ahead = drawn(solver, data, run.rng, min(solver.block, length - run.count))
        now = finer(h, h.finer * (1.0 if solver.schedule.pools else max(1 - run.since / length, 0.02)))
        while run.ahead:
            G = inner_gradient(solver, data, run.state, run.u, run.c, run.ahead.pop(0), now)
            inner_step(solver, run.state, G, now.inner_eta, 1.0 / now.nu, now.inner_steps)
            run.count += 1
            if keep is not None:
                keep("last", run)
    return run.state.z, run.count


def first_half(solver: BlockSolver, data, given, iterations):
    """The result of ``solve`` with half of the seconds and ``iterations`` steps, or the one that it had
    before the run was killed.
    """
    asked = RunOptions(**given)
    keep = asked.keep
    if keep is not None:
        half_outcome = keep.outcome("half", solver, data, asked.device)
        if half_outcome is not None:
            return half_outcome
    half = {"seconds": asked.seconds and 0.5 * asked.seconds, "iterations": iterations, "oracles": None}
    half_outcome = solve(solver, data, **{**given, **half})
    if keep is not None:
        keep.ended("half", half_outcome)
    return half_outcome


def solve_to_proximal_point(solver: BlockSolver, data, **given):
    """Run ``solve`` with half of the budget, then make as many steps, or ``last``, towards the proximal
    point of its result. If stages adapt, the better of both is returned, otherwise the last point.

    The options are those of ``RunOptions``.
    """
    asked = RunOptions(**given)
    began, dtype, device = started(asked.keep), asked.dtype or torch.float32, asked.device
    schedule = solver.schedule
    iterations = steps_within(asked.iterations, asked.oracles, solver.oracles)
    last = solver.settings().last or math.inf
    if iterations is None:
        steps_of_last_stage = 0
    else:
        steps_of_last_stage = int(min(iterations // 2, last))
    outcome = first_half(solver, data, given, iterations and iterations - steps_of_last_stage)
    if outcome.status != "stopped":
        return outcome
    data = solver.prepare(solver.as_namespace(data, device, dtype))
    h, w = outcome.h.copy(), outcome.w.to(dtype)
    if schedule.pools:
        c = solver.centres(device, dtype)
    else:
        c = copy_state(outcome.c)
    run = SimpleNamespace(
        state=SimpleNamespace(w=w, w_prev=w.clone()),
        u=solver.buffers(w.device, w.dtype),
        c=c,
        rng=torch.Generator(device=device).manual_seed(asked.seed + 1),
        waiting=data.waiting,
        count=0,
        ahead=[],
        history=[],
    )
    ended = ending(began, asked.stop, asked.seconds, None)
    z, done = approach(
        solver, data, run, h, int(min(last, steps_of_last_stage or outcome.iterations)), ended, asked.keep
    )
    value, w = least(solver, outcome.exact, [z, outcome.w] if schedule.adapts else [z], h.weight)
    w = w.double()
    solver.project(w, 0.0)  # to double precision
    if solver.centred and not schedule.adapts:
        centre_at(solver, outcome.exact, w, c, outcome.h)
    steps = outcome.iterations + done
    entry = {"iteration": steps, "oracles": steps * solver.oracles, "eta": h.inner_eta}
    record(outcome.history, asked.progress, began, value, h.weight, **entry)
    changed = {"w": w, "c": c, "iterations": steps, "seconds": time.perf_counter() - began}
    return SimpleNamespace(**{**vars(outcome), **changed})
