"""The loop around an algorithm's step: stages, the best point so far, step sizes, centres. The emitter
copies this source.

A stage is a run of steps from the best point, step size and gamma falling towards its end, no later
than the budget's. Then the exact problem is evaluated at the last iterate and at the average of the
stage's second half; the better of them is kept if it improves on the best so far, otherwise
``next_stage`` shrinks step size and gamma. After it the centres of the smoothing move to the
multipliers seen (hscg-2020, section 2.3, allows any centre), which takes away the bias of the
smoothed hinge.

By the constants of a theorem stages are places to look alone: step size, smoothing and iterates go
on as they are, and the average is that of the whole run. Where steps decay with the budget the last
iterate is returned, and nothing else changes (``schedules``). Where steps descend another problem
(``surrogate``) no point is kept or left by this one's values.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from fccomodel.algorithms.runtime.loops.progress import (
    Outcome,
    Work,
    centre_at,
    completed,
    ending,
    hearing,
    least,
    merit,
    move_centres,
    opened,
    passes_first,
    passes_over,
    record,
    running_means,
    scale_smoothing,
    smoothness,
    spare,
    started,
    starting_value,
    status,
    steps_within,
    value_at,
    why_left,
    worked,
)
from fccomodel.algorithms.runtime.loops.residual import observe, reached, watching
from fccomodel.algorithms.runtime.loops.settings import BlockSettings, RunOptions
from fccomodel.algorithms.runtime.loops.solver import BlockSolver
from fccomodel.core.lazy import torch
from fccomodel.core.work import priced, to_the_end


@dataclass(kw_only=True)
class BlockRun:
    """The state of a run over blocks: everything that changes, so that a checkpoint is all of it.

    state    the algorithm's own: w, w_prev, and what its update keeps
    u, c     the estimates of the inner expectations, and the centres of the smoothing
    h        the settings
    rng      the random numbers; ``waiting`` is the rest of each unfinished pass over the data
    count    steps so far; ``broken`` is the step by which iterates were not finite, or None
    length   steps of this stage; ``done`` of them are made, and ``end`` is the count at its end
    ahead    minibatches drawn for the next steps
    since    (done, count) when they were drawn, which determines the settings of these steps
    average  the mean of the last ``kept`` iterates
    best     the state at the best point so far, with its ``value``, centres ``best_c`` and ``rho``
    eta      the first step size
    calm     number of stages in a row without a gain
    worst    the largest violation after the last stage
    watch    the estimates of the KKT residual; ``work`` is the cost of the run, ``history`` its stages
    """

    state: Any
    u: Any = None
    c: Any
    h: Any
    rng: Any
    waiting: dict
    count: int = 0
    broken: int | None = None
    length: int = 0
    done: int = 0
    end: int = 0
    ahead: list = field(default_factory=list)
    since: tuple = (0, 0)
    average: Any = None
    kept: int = 0
    best: Any = None
    value: tuple = ()
    best_c: Any = None
    rho: float = 0.0
    eta: float = 0.0
    calm: int = 0
    worst: float = 0.0
    watch: Any = None
    work: Any = None
    history: list = field(default_factory=list)


def copy_state(state):
    """A copy of everything that a step changes, so that a stage can be undone."""

    def copied(x):
        """A copy of a tensor or of a namespace of tensors; anything else itself."""
        if torch.is_tensor(x):
            return x.clone()
        if isinstance(x, SimpleNamespace):
            return copy_state(x)
        return x

    return SimpleNamespace(**{name: copied(x) for name, x in vars(state).items()})


def drawn(solver: BlockSolver, data, rng, count):
    """The next ``count`` minibatches."""
    parts = solver.draw(data, rng, count)
    if parts:
        return list(zip(*(part.unbind() for part in parts), strict=True))
    return [()] * count


def gradients(solver: BlockSolver, data, w, c, h: BlockSettings, rng):
    """A generator of gradients at w, each by a minibatch and estimates of its own."""
    data = SimpleNamespace(**{**vars(data), "waiting": {}})
    u = solver.buffers(w.device, w.dtype)
    while True:
        for batch in drawn(solver, data, rng, solver.block):
            yield solver.gradient(data, w, w, u, copy_state(c), batch, h)


def inverse_smoothness(solver: BlockSolver, G, w, value=None, powers=8, halvings=40):
    """1 / L for the gradient's Lipschitz constant L at w, with active constraints.

    It is no larger than a first step that decreases the objective. The decrease is judged by the gradient
    at the end of the step or, where gradients jump, by the parabola of this curvature through ``value(w)``.
    """
    largest = max(
        smoothness(G, w, powers), smoothness(lambda x: G(x, 1.0), w, powers) if solver.centred else 0.0
    )
    step, slope = 1.0 / largest if largest > 0 else 0.05, G(w)
    for _ in range(halvings):
        ahead, fall = w - step * slope, 0.5 * step * float(slope @ slope)
        if float(G(ahead) @ slope) >= 0 or (value is not None and value(ahead) <= value(w) - fall):
            break
        step *= 0.5
    return step


def mean_gradient(solver: BlockSolver, data, x, c, h: BlockSettings, batches):
    """The mean gradient at x over some minibatches, each with estimates of its own."""

    def at(batch):
        """The gradient of one minibatch, with estimates from this batch alone."""
        return solver.gradient(data, x, x, solver.buffers(x.device, x.dtype), copy_state(c), batch, h)

    return sum(map(at, batches)) / len(batches)


def step_price(run, solver: BlockSolver, data, few=4):
    """Counted seconds of a step with its draws, measured on a few steps of a copy."""
    state, u, c, h = copy_state(run.state), copy_state(run.u), copy_state(run.c), run.h.copy()
    data = SimpleNamespace(**{**vars(data), "waiting": {}})
    rng = torch.Generator(device=state.w.device).manual_seed(0)
    batches, draws = priced(lambda: drawn(solver, data, rng, solver.block))
    state.met = 0
    _, steps = priced(
        lambda: [solver.advance(solver, data, state, u, c, batch, h) for batch in batches[:few]]
    )
    return draws / len(batches) + steps / len(batches[:few])


def gradient_of_few(run, solver: BlockSolver, data, few):
    """The function G(x, y, most): the mean gradient of a few minibatches at x, at most ``most`` of them,
    with all centres equal to the number y.
    """

    def G(x, y=None, most=None):
        """The mean gradient at x."""
        if y is None:
            c = run.c
        else:
            c = SimpleNamespace(**{name: torch.full_like(v, y) for name, v in vars(run.c).items()})
        return mean_gradient(solver, data, x, c, run.h, few[:most])

    return G


def set_out(run, solver: BlockSolver, data, G):
    """Set the first step size, the smoothing, the penalty's weight and the estimates."""
    w, h = run.state.w, run.h
    run.state.w_prev.copy_(w)
    if solver.centred and solver.schedule.scales and not h.kept:
        scale_smoothing(solver, data, w.to(data.dtype), run.c, h, G, w.dtype)

    def value(x):
        """The merit at x."""
        return merit(value_at(solver, data, x), h.rho)

    def inverse(jumps=False):
        """1 / L along the gradient; ``jumps``: judged by the merit."""
        judge = value if jumps else None
        return inverse_smoothness(solver, lambda x, y=None: G(x, y, 1), w, judge, h.powers, h.halvings)

    solver.step_sizes(h, inverse)
    h.peak, h.weight, run.eta = h.eta, h.weight or 0.1 * h.rho, h.eta
    solver.begin(run.state, h)
    if solver.moments is not None:
        own, kept = running_means(run.state), solver.moments(w.device, w.dtype)
        vars(run.state).update({name: value for name, value in kept.items() if name in own})
    run.u, run.average = solver.buffers(w.device, w.dtype), w.clone()
    run.best, run.best_c, run.rho = copy_state(run.state), copy_state(run.c), h.rho


def spaced(h: BlockSettings, work):
    """Lengthen the stages until the three looks of each take at most the share ``looking`` of the work."""
    if h.looking:
        h.stage = max(h.stage, math.ceil(3 * work.look / (h.looking * max(work.step, 1e-9))))
        h.longest = max(h.longest, h.stage)


def paced(run, solver: BlockSolver, asked: RunOptions, iterations, G):
    """The solver with the function that takes its steps, and the number of steps that the budget allows: 0
    if passes come first, None for any number.
    """
    work = run.work
    if asked.price is not None and passes_first(
        asked.price, work.step, G(run.state.w), asked.tol, asked.room
    ):
        return solver, 0
    if solver.leaping is not None:
        solver, work.step, work.start = solver.leaping(solver, work.step, asked.share)
    if asked.share is not None and iterations != 0:
        affordable = 1 + int((asked.share - work.start) / (work.step + 1.5 * work.look / run.h.stage))
        iterations = min(iterations or math.inf, affordable)
    return solver, iterations


def open_stage(run, solver: BlockSolver, iterations):
    """Begin a stage and its average."""
    run.length, run.done, run.ahead = solver.schedule.length(run.h, run.count, iterations), 0, []
    run.end, run.state.met = run.count + run.length, 0
    run.kept = run.kept if solver.schedule.pools else 0


def one_step(run, solver: BlockSolver, data, h: BlockSettings, now: BlockSettings, iterations):
    """Make the first of the steps whose samples are drawn, with the settings ``now``, and add the iterate
    to the average.
    """
    schedule = solver.schedule
    schedule.move(h, h.peak, run.count / (iterations or math.inf))
    solver.advance(solver, data, run.state, run.u, run.c, run.ahead.pop(0), now)
    if schedule.averages(run.done, run.length):
        run.kept += 1
        run.average.lerp_(run.state.w, 1.0 / run.kept)
    run.done, run.count = run.done + 1, run.count + 1


def take_steps(run, solver: BlockSolver, data, iterations, ended, keep=None, reason="", heard=None):
    """Make the steps of a stage, unless there is a ``reason`` to end before, and average the iterates of
    its second half (by a theorem's constants: of all stages).

    Returns why the run ends, or "". ``keep`` receives the state after each step, or after the steps that a
    backend takes in one call; ``heard`` is called then, too.
    """
    h, schedule, step = run.h, solver.schedule, solver.leap or one_step
    while run.done < run.length and not reason:
        if not run.ahead:
            run.since = run.done, run.count
            run.ahead = drawn(solver, data, run.rng, min(solver.block, run.length - run.done))
        h.eta = h.peak
        done, count = run.since
        now = schedule.within(h, 1 - done / run.length, count / (iterations or math.inf))
        while run.ahead and not reason:
            step(run, solver, data, h, now, iterations)
            reason = ended(run.count)
            if keep is not None:
                keep("steps", run, reason)
            if heard is not None:
                heard(run)
        if run.broken is None and not math.isfinite(float(run.state.w.sum())):
            run.broken = run.count
    return reason


def keep_the_better(run, solver: BlockSolver, data):
    """Compare the last iterate and the average with the best point so far.

    If the better of the two improves on it, it becomes the best point, and steps continue from it (from the
    last iterate, if steps fall only once). Otherwise steps go back to the best point. Returns the violation
    of the better one, whether its value is finite, and whether it improves enough.
    """
    h, schedule = run.h, solver.schedule
    value, chosen = least(solver, data, [run.state.w, run.average] if run.kept else [run.state.w], h.weight)
    gain = merit(run.value, h.weight) - merit(value, h.weight)
    if float(chosen.norm()) > 1e8 * (1 + float(run.best.w.norm())):
        gain = -math.inf  # it has run away, to where values are rounding
    finite = math.isfinite(value[0]) and gain > -1e8 * (1 + abs(merit(run.value, h.weight)))
    if finite and schedule.adapts and not h.once:
        run.state.w.copy_(chosen)
    if gain > 0 or schedule.keeps_last or solver.surrogate:
        best, best_c = copy_state(run.state), copy_state(run.c)
        best.w.copy_(chosen)
        run.best, run.value, run.best_c, run.rho = best, value, best_c, h.rho  # all, or none
    elif schedule.adapts and not (finite and (solver.centred or h.once)):
        go_back(run, solver, finite)
    gained = solver.surrogate or gain >= h.gain * abs(merit(run.value, h.weight))
    if gained:
        run.calm = 0
    else:
        run.calm = run.calm + 1
    return value[2], finite, gained


def go_back(run, solver: BlockSolver, finite):
    """Return to the best point.

    The estimates fit the point that is left, so they are reset. Variables that reformulations added stay:
    the objective that compares points does not depend on them.
    """
    added = run.state.w[solver.own :].clone()
    run.state, run.c = copy_state(run.best), copy_state(run.best_c)
    run.u = solver.buffers(added.device, added.dtype)
    if finite:
        run.state.w[solver.own :] = added
    solver.begin(run.state, run.h)


def close_stage(run, solver: BlockSolver, data, G):
    """Keep the better point, and set the step size and the centres of the next stage by the gain."""
    h, schedule, before = run.h, solver.schedule, run.worst
    run.worst, finite, gained = keep_the_better(run, solver, data)
    schedule.after(h, gained, run.worst)
    if schedule.adapts:
        run.state.w_prev.copy_(run.state.w)
    if solver.centred and finite and schedule.adapts:
        move_centres(solver, data, run.state.w, run.c, h, (before, run.worst), G, run.u)


def write_stage(run, solver: BlockSolver, exact, minibatches, asked: RunOptions, began):
    """Write the stage into the history, with an estimate of the KKT residual."""
    h, work = run.h, run.work
    eta = h.eta if solver.schedule.keeps_last else h.peak
    entry = {"iteration": run.count, "oracles": run.count * solver.oracles, "eta": eta}
    work.looks = run.watch.spent + 3 * work.look * (len(run.history) + 1)
    entry |= observe(run, solver, exact, run.best.w, worked(work, run.count), minibatches)
    record(run.history, asked.progress, began, run.value, h.weight, **entry)


def prepare_steps(run, solver: BlockSolver, quick, data, asked: RunOptions, few, G):
    """Prepare the first step: the value at the start, step size, smoothing, and the costs of steps and
    looks. ``few`` holds the minibatches of G (see ``gradient_of_few``).
    """
    h, w = run.h, run.state.w
    spare(h, few, priced(lambda: G(w))[1], asked.seconds if asked.share is None else asked.share)
    value, run.work.look = priced(lambda: value_at(solver, quick, w))
    run.value = starting_value(solver, quick, w, value, G, run.rng, h.halvings)
    set_out(run, solver, quick, G)
    run.work.step = step_price(run, solver, data)
    spaced(h, run.work)
    run.watch, run.worst = watching(asked.tol, run.work.look, run.work.step), run.value[2]


def left_early(run, solver: BlockSolver, asked: RunOptions, began):
    """Why a run ends if its passes were left before their end, in words.

    Its point is the best so far, or the last one if the schedule says so. Before the first look this is the
    start, whose value may be unknown.
    """
    h, reason = run.h, why_left(asked.stop, run.work)
    if run.best is None or solver.schedule.keeps_last and bool(run.state.w.isfinite().all()):
        run.best, run.best_c, run.rho = copy_state(run.state), run.c, h.rho
    run.watch = run.watch or watching(None, 0.0, 0.0)
    run.value, h.weight = run.value or (math.inf,) * 3, h.weight or 0.1 * h.rho
    entry = {"iteration": run.count, "oracles": run.count * solver.oracles, "eta": h.eta}
    record(run.history, asked.progress, began, run.value, h.weight, **entry)
    return reason


def solve(solver: BlockSolver, data, dear=0.05, **given):
    """Run until the budget is used up, until stages gain nothing more, or until the KKT residual is at most
    ``tol`` in two stages in a row. Returns the best point seen, or the last if the schedule says so.

    The options are those of ``RunOptions``. With a ``price`` of a pass, passes may come in place of steps
    (``passes_first``). To repeat a stage that the clock or a person cut short, give ``iterations`` and
    ``planned``: the number of steps by which the stages were planned. ``oracles`` bounds the values g_i(w;
    xi) that steps ask for; evaluations between stages do not count. ``keep`` writes and restores ``run``,
    which contains everything that changes. If a look costs more than ``dear`` counted seconds, it is left
    before its end once the time is over. If memory runs out after the first look, the run ends.
    """
    asked = RunOptions(**given)
    keep, device, dtype = asked.keep, asked.device, asked.dtype or torch.float32
    began = started(keep)
    exact, quick, data = opened(solver, data, device, dtype, asked.exact)
    rng = torch.Generator(device=device).manual_seed(asked.seed)
    h, schedule = solver.settings(), solver.schedule
    w = solver.start(rng, device, dtype)
    state = SimpleNamespace(w=w, w_prev=w.clone())
    run = BlockRun(state=state, c=solver.centres(device, dtype), h=h, rng=rng, waiting=data.waiting)
    run.work = Work()
    few = drawn(solver, data, rng, min(8, math.ceil(256 / max(solver.oracles, 1))))
    G = gradient_of_few(run, solver, data, few)

    def minibatches(x, y, held):
        """Gradients of fresh minibatches at x."""
        fresh = torch.Generator(device=device).manual_seed(asked.seed + 1 + run.count)
        return gradients(solver, data, x, y, held, fresh)

    over, work, iterations = passes_over(began, asked.stop, asked.seconds), run.work, 0
    early = not to_the_end(lambda: prepare_steps(run, solver, quick, data, asked, few, G), over)
    first, reason = run.state.w.clone(), left_early(run, solver, asked, began) if early else ""
    if not early:
        iterations = steps_within(asked.iterations, asked.oracles, solver.oracles)
        solver, iterations = paced(run, solver, asked, iterations, G)
    ended = ending(began, asked.stop, asked.seconds, iterations, work=work)
    planned, inside = asked.planned or iterations, not early and keep is not None and keep.again("steps", run)
    heard = hearing(asked.progress)

    def look():
        """End a stage: keep the better point, set up the next stage, and write the history."""
        close_stage(run, solver, quick, G)
        write_stage(run, solver, exact, minibatches, asked, began)

    def stage():
        """Make the steps of a stage."""
        nonlocal reason
        reason = take_steps(run, solver, data, planned, ended, keep, reason, heard)

    while not reason:
        if not inside:
            open_stage(run, solver, planned)
        if inside or iterations == 0:
            reason = ended(run.count)
        inside, enough = False, completed(stage, over, work, dear=False)
        if not enough or not completed(look, over, work, work.look > dear):
            reason = left_early(run, solver, asked, began)
        if not reason and schedule.adapts:
            reason = reached(run.watch) or ("stages gain nothing more" if run.calm >= h.patience else "")
    if solver.centred and not schedule.adapts and not early:
        at_best = run.best.w.double()
        completed(lambda: centre_at(solver, exact, at_best, run.c, h), over, work, work.look > dear)
    h.rho, w = run.rho, run.best.w.double()
    solver.project(w, 0.0)  # to double precision
    return Outcome(
        w=w,
        c=run.c,
        u=run.u,
        moments=running_means(run.best),
        h=h,
        eta=run.eta,
        history=run.history,
        iterations=run.count,
        seconds=time.perf_counter() - began,
        reason=reason,
        status=status(asked.stop, schedule.adapts and run.watch.held >= 2),
        broken=run.broken,
        exact=exact,
        first=first,
        timed=work.timed,
        worked=worked(work, run.count),
        planned=None if schedule.keeps_last else iterations or run.end,
    )
