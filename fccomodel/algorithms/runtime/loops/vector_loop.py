"""The loop around algorithms that work on all inner expectations as one vector F(w): minimise
phi(F(w)) + R(w).

The emitter copies this source. An epoch is ``begin`` and a number of steps; after it the exact
problem is evaluated, the best point so far is kept, and the centres of the smoothing move to the
slopes of phi there (hscg-2020, section 2.3). Epochs that gain nothing shrink the step size; one
that diverges is taken back. The result is the pair of hscg-2020, Lemma 3.1.
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
    least,
    merit,
    move_centres,
    opened,
    passes_over,
    record,
    scale_smoothing,
    smoothness,
    spare,
    started,
    starting_value,
    status,
    value_at,
    why_left,
    worked,
)
from fccomodel.algorithms.runtime.loops.residual import observe, reached, watching
from fccomodel.algorithms.runtime.loops.settings import RunOptions, VectorSettings
from fccomodel.algorithms.runtime.loops.solver import VectorSolver
from fccomodel.algorithms.runtime.loops.vector_oracle import VectorOracle
from fccomodel.core.lazy import torch
from fccomodel.core.work import Left, priced, to_the_end

#: matrix: the largest Jacobian kept as a matrix, entries     probe: samples by which the first step
#: size is found look: steps of an epoch between exact evaluations           pass_limit: samples
#: above which F is not computed exactly but by algorithms that are made of full passes
DEFAULTS = {
    "eta": 0.0,
    "matrix": 4e6,
    "growth": 1.0,
    "shrink": 0.6,
    "gain": 1e-9,
    "patience": 8,
    "probe": 500,
    "look": 1000,
    "pass_limit": 1e7,
}
#: of algorithms whose noise does not vanish at a fixed step: steps fall like (1 + t / warm)^-power
NOISY = {"stage": 200, "longest": 4000, "growth": 1.3, "gain": 1e-4, "warm": 100.0}


@dataclass(kw_only=True)
class VectorRun:
    """The state of a run over the vector F(w): everything that changes, so that a checkpoint is all of it.

    state    the algorithm's own: w, oracle calls, steps t and epochs so far, and what its update keeps
    c, h     the centres of the smoothing, and the settings
    rng      the random numbers; ``waiting`` is the rest of each unfinished pass over the data
    ahead    minibatches drawn for the next steps
    count    steps so far; ``broken`` is the step by which iterates were not finite, or None
    length   steps of an epoch; ``left`` of them are left in this one, ``pause`` at the next look
    average  the mean of the iterates in the second half of the epoch
    held     the merit that the epoch began with, and ``first`` that of the first iterate
    best     the best point so far, and its ``value``
    eta      the first step size
    calm     number of epochs in a row without a gain
    worst    the largest violation after the last look
    watch    the estimates of the KKT residual; ``work`` is the cost of the run, ``history`` its looks
    """

    state: Any
    c: Any
    h: Any
    rng: Any
    waiting: dict
    ahead: list
    work: Any
    length: int
    left: int = 0
    pause: int = 0
    count: int = 0
    broken: int | None = None
    average: Any = None
    held: float = 0.0
    first: float = 0.0
    best: Any = None
    value: tuple = ()
    eta: float = 0.0
    calm: int = 0
    worst: float = 0.0
    watch: Any = None
    history: list = field(default_factory=list)


def first_step(G, F, w, powers=8, halvings=40):
    """1 / L for the gradient's Lipschitz constant L near w and along the first step."""
    largest, slope = smoothness(G, w, powers), G(w)
    if largest > 0:
        eta = 1.0 / largest
    else:
        eta = 0.05
    for _ in range(halvings):
        ahead = F.prox(w - eta * slope, eta)
        if eta * float((G(ahead) - slope).norm()) <= 1.01 * float((ahead - w).norm()):
            break
        eta *= 0.5
    return eta


def approximate_kkt(solver: VectorSolver, data, F, w, c, h: VectorSettings):
    """The pair of hscg-2020, Lemma 3.1, x = prox_{eta R}(w - eta grad) and y = y*(F(x)), with a bound on
    its residual (8): dist(0, F'(x)' K y + dR(x)) + dist(0, K' F(x) - dpsi(y)) <= |r| + |lam (y -
    centre)|, where r is that of (46).
    """
    at = F.whole(w)
    s, direct = F.slope(w, at.value)
    gradient = at.pull(s) + direct
    x = F.prox(w - h.eta * gradient, h.eta)
    beyond = F.whole(x)
    s, direct = F.slope(x, beyond.value)
    residual = float(((w - x) / h.eta + beyond.pull(s) + direct - gradient).norm())
    gap = 0.0
    for name, (index, t, slope, _) in solver.blocks(data, x.to(torch.float64)).items():
        centre = getattr(c, name)[index if index else (...,)].to(t.dtype)
        shift = h.smoothing(name) * (slope(t, centre, h) - centre)
        gap += float(shift[shift.isfinite()].square().sum())
    return SimpleNamespace(w=x, epsilon=residual + math.sqrt(gap))


def gradients(solver: VectorSolver, data, w, c, h: VectorSettings, rng):
    """A generator of gradients at w by one minibatch after another, with the slope of phi at the mean of
    their values so far.
    """
    data = SimpleNamespace(**{**vars(data), "waiting": {}})
    F, u, k = VectorOracle(solver, data, rng, c, SimpleNamespace(w=w, oracles=0, passed=0), h), 0.0, 0
    while True:
        at, k = F.sample(w, F.batch()), k + 1
        u = u + (at.value - u) / k
        s, direct = F.slope(w, u)
        yield at.pull(s) + direct


def call_price(solver: VectorSolver, data, w, c, h: VectorSettings):
    """Counted seconds of an oracle call of a step, measured on the gradient of one minibatch."""
    rng = torch.Generator(device=w.device).manual_seed(0)
    return priced(lambda: next(gradients(solver, data, w, c, h, rng)))[1] / solver.samples


def pass_price(solver: VectorSolver, work, times=3):
    """Counted seconds of an oracle call in a full pass: ``times`` that of a look for the values and the
    gradient, and at most that of a call of a step. Where looks take pairs of fewer rows, it is the latter.
    """
    if solver.heavy or not solver.rows:
        return work.call
    return min(work.call, times * work.look / solver.rows)


def gradient_of_few(F, few):
    """The function G(x): the gradient at x from a few minibatches, or from all rows if there are none."""

    def G(x):
        """The gradient at x."""
        if few:
            at = F.pooled(x, few)
        else:
            at = F.whole(x)
        s, direct = F.slope(x, at.value)
        return at.pull(s) + direct

    return G


def set_out(run, solver: VectorSolver, data, F, G):
    """Set the smoothing, the first step size and the penalty's weight."""
    w, h = run.state.w, run.h
    if solver.centred and solver.schedule.scales and not h.kept:
        scale_smoothing(solver, data, w.to(data.dtype), run.c, h, G, w.dtype)
    if h.eta <= 0:
        h.eta = first_step(G, F, w, h.powers, h.halvings)
    run.eta, h.weight = h.eta, h.weight or 0.1 * h.rho


def open_epoch(run, solver: VectorSolver, F):
    """Begin an epoch, its average and the merit by which its gain is measured."""
    h = run.h
    run.state.length, run.average, run.held = run.length, run.state.w.clone(), merit(run.value, h.weight)
    solver.begin(run.state, F, h)
    run.left = run.state.length


def take_steps(run, solver: VectorSolver, F, asked: RunOptions, ended, reason=""):
    """Make steps to the next look or the end of the epoch, unless there is a ``reason`` to end before, and
    average the iterates of its second half.

    Returns why the run ends, or "". ``asked.keep`` receives the state after each step.
    """
    state, h = run.state, run.h
    iterations, oracles = asked.iterations or math.inf, asked.oracles or math.inf
    while run.left > run.pause and not reason:
        solver.schedule.move(h, run.eta, max(run.count / iterations, state.oracles / oracles))
        solver.update(state, F, h)
        state.t += 1
        run.count += 1
        run.left -= 1
        run.average.lerp_(state.w, 1.0 / max(1, state.length - run.left + 1 - state.length // 2))
        reason = ended(run.count, state.oracles, state.passed)
        if asked.keep is not None:
            asked.keep("steps", run, reason)
    return reason


def steps_of_a_look(run, solver: VectorSolver, F, asked: RunOptions, ended, reason, fresh):
    """``take_steps``, after the beginning of an epoch if none is open; ``fresh``: from a look on.

    Returns None if a full pass in these was left, since the time is over.
    """
    try:
        if fresh and not run.left:
            open_epoch(run, solver, F)
        if fresh:
            run.pause = max(run.left - run.h.look, 0)
        return take_steps(run, solver, F, asked, ended, reason)
    except Left:
        if not F.over():
            raise
        return None


def keep_the_better(run, solver: VectorSolver, data):
    """Make the better of the last iterate and the epoch's average the best point so far, if its merit is
    smaller; always the last iterate, if the schedule says so.

    Returns the value of the last iterate, and whether it is finite.
    """
    w, h, last = run.state.w, run.h, solver.schedule.keeps_last
    value, chosen = least(solver, data, [w] if last else [w, run.average], h.weight)
    if merit(value, h.weight) < merit(run.value, h.weight) or last:
        run.best, run.value = chosen.clone(), value
    finite = math.isfinite(float(w.sum()))
    if run.broken is None and not finite:
        run.broken = run.count
    return value_at(solver, data, w), finite


def close_epoch(run, solver: VectorSolver, last):
    """Shrink the step size after an epoch without a gain, and undo an epoch that diverged, which ``last``
    shows. The next epoch is longer.
    """
    state, h, run.left, adapts = run.state, run.h, 0, solver.schedule.adapts
    state.epoch += 1
    best = merit(run.value, h.weight)
    if run.held - best >= h.gain * abs(best):
        run.calm = 0
    else:
        run.calm = run.calm + 1
    if run.calm and adapts:
        h.eta *= h.shrink
    if adapts and not merit(last, h.weight) <= run.first + 0.1 * abs(run.first):
        state.w, state.t, state.epoch = run.best.clone(), 0, 0
        h.eta *= 0.5
    run.length = min(int(run.length * h.growth), h.longest)


def close_look(run, solver: VectorSolver, data, G):
    """Keep the better point. At the end of an epoch set step size and centres by the gain."""
    last, finite = keep_the_better(run, solver, data)
    if run.left and finite:
        return
    close_epoch(run, solver, last)
    if solver.centred and solver.schedule.adapts:
        move_centres(solver, data, run.state.w, run.c, run.h, (run.worst, last[2]), G)
    run.worst = last[2]


def write_look(run, solver: VectorSolver, exact, minibatches, asked: RunOptions, began):
    """Write the look into the history, with an estimate of the KKT residual."""
    work, calls = run.work, run.state.oracles
    entry = {"iteration": run.count, "oracles": calls, "eta": run.h.eta}
    work.looks = run.watch.spent + 3 * work.look * (len(run.history) + 1)
    spent = worked(work, run.count, calls, run.state.passed)
    entry |= observe(run, solver, exact, run.best, spent, minibatches)
    record(run.history, asked.progress, began, run.value, run.h.weight, **entry)


def kkt_pair(run, solver: VectorSolver, exact, quick, F):
    """The pair of ``approximate_kkt``, or None. Its point becomes the best if its merit is as small, unless
    the schedule keeps the last point.
    """
    h = run.h
    if not solver.squares or solver.rows > h.pass_limit:
        return None
    pair = approximate_kkt(solver, exact, F, run.best, run.c, h)
    if not solver.schedule.keeps_last:
        if merit(value_at(solver, quick, pair.w), h.weight) <= merit(run.value, h.weight):
            run.best = pair.w
    return pair


def last_passes(run, solver: VectorSolver, exact, quick, F, found):
    """The pair of ``approximate_kkt``, whose epsilon is put into ``found``, and the centres at the best
    point.
    """
    pair = kkt_pair(run, solver, exact, quick, F)
    if pair is not None:
        found.epsilon = pair.epsilon
    if solver.centred and not solver.schedule.adapts:
        centre_at(solver, exact, run.best.double(), run.c, run.h)


def prepare_steps(run, solver: VectorSolver, quick, asked: RunOptions, few, F, G):
    """Prepare the first step: the value at the start, step size, smoothing, and the cost of looks. ``few``
    holds the minibatches of G (see ``gradient_of_few``).
    """
    h, state = run.h, run.state
    spare(h, few, priced(lambda: G(state.w))[1], asked.seconds if asked.share is None else asked.share)
    value, run.work.look = priced(lambda: value_at(solver, quick, state.w))
    run.value = starting_value(solver, quick, state.w, value, G, run.rng, h.halvings)
    run.best = state.w.clone()
    set_out(run, solver, quick, F, G)


def left_early(run, solver: VectorSolver, asked: RunOptions, began):
    """Why a run ends if its passes were left before their end, in words.

    Its point is the best so far, or the last one if the schedule says so. Before the first look this is the
    start, whose value may be unknown.
    """
    h, reason = run.h, why_left(asked.stop, run.work)
    if run.best is None or solver.schedule.keeps_last and bool(run.state.w.isfinite().all()):
        run.best = run.state.w.clone()
    run.watch = run.watch or watching(None, 0.0, 0.0)
    run.value, h.weight = run.value or (math.inf,) * 3, h.weight or 0.1 * h.rho
    entry = {"iteration": run.count, "oracles": run.state.oracles, "eta": h.eta}
    record(run.history, asked.progress, began, run.value, h.weight, **entry)
    return reason


def solve(solver: VectorSolver, data, dear=0.05, **given):
    """Run until the budget is used up (``share``: in counted seconds), until epochs gain nothing more, or
    until the KKT residual is at most ``tol`` in two looks in a row. Returns the best point seen, or the
    last if the schedule says so. Epochs are not ``planned`` by the budget.

    The options are those of ``RunOptions``; ``keep`` and ``dear`` are as in the loop over blocks.
    """
    asked = RunOptions(**given)
    keep, device, dtype = asked.keep, asked.device, asked.dtype or torch.float32
    began, work = started(keep), Work()
    ended = ending(began, asked.stop, asked.seconds, asked.iterations, asked.oracles, asked.share, work)
    exact, quick, data = opened(solver, data, device, dtype, asked.exact)
    rng = torch.Generator(device=device).manual_seed(asked.seed)
    h, c, schedule = solver.settings(), solver.centres(device, dtype), solver.schedule
    state = SimpleNamespace(w=solver.start(rng, device, dtype), oracles=0, passed=0, t=0, epoch=0)
    run = VectorRun(state=state, c=c, h=h, rng=rng, waiting=data.waiting, ahead=[], work=work, length=h.stage)
    over, reason = passes_over(began, asked.stop, asked.seconds), ""

    def late():
        """Whether the budget is used up."""
        return ended(run.count, state.oracles, state.passed) != ""

    F = VectorOracle(solver, data, rng, c, state, h, late, over)
    run.ahead = F.ahead
    few = []
    if solver.rows > h.probe:
        few = [F.batch() for _ in range(math.ceil(h.probe / solver.samples))]
    G = gradient_of_few(F, few)

    def minibatches(x, y, held):
        """Gradients of fresh minibatches at x."""
        fresh = torch.Generator(device=device).manual_seed(asked.seed + 1 + run.count)
        return gradients(solver, data, x, y, held, fresh)

    if to_the_end(lambda: prepare_steps(run, solver, quick, asked, few, F, G), over):
        work.call = call_price(solver, data, state.w, c, h)
        work.passed = pass_price(solver, work)
        run.watch = watching(asked.tol, work.look, work.call * solver.samples)
        run.first, run.worst = merit(run.value, h.weight), run.value[2]
    else:
        reason = left_early(run, solver, asked, began)
    first, early = run.best.clone(), reason != ""
    inside = not early and keep is not None and keep.again("steps", run)

    def look():
        """End an epoch, or look at the point inside it."""
        close_look(run, solver, quick, G)
        write_look(run, solver, exact, minibatches, asked, began)

    def steps():
        """Make the steps until the next look."""
        nonlocal reason
        reason = steps_of_a_look(run, solver, F, asked, ended, reason, not inside)

    while not reason:
        if inside:
            reason = ended(run.count, state.oracles, state.passed)
        enough, inside = completed(steps, over, work, dear=False), False
        was_left = not enough or reason is None
        if was_left or not completed(look, over, work, work.look > dear):
            reason = left_early(run, solver, asked, began)
        if not reason and schedule.adapts:
            reason = reached(run.watch) or ("epochs gain nothing more" if run.calm >= h.patience else "")
    pair = SimpleNamespace(epsilon=None)
    if not early:
        completed(lambda: last_passes(run, solver, exact, quick, F, pair), over, work, work.look > dear)
    w = run.best.double()
    solver.project(w, 0.0)  # to double precision
    return Outcome(
        w=w,
        c=c,
        h=h,
        eta=run.eta,
        history=run.history,
        iterations=run.count,
        seconds=time.perf_counter() - began,
        reason=reason,
        status=status(asked.stop, schedule.adapts and run.watch.held >= 2),
        broken=run.broken,
        exact=exact,
        epsilon=pair.epsilon,
        timed=work.timed,
        worked=worked(work, run.count, state.oracles, state.passed),
        planned=None,
        first=first,
    )
