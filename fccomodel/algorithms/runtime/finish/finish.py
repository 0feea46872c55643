"""The finish of a run: a deterministic method of multipliers on all rows, from the best stochastic
point. The emitter copies it.

Each round minimises the smoothed problem at fixed centres by PANOC. Then the centres move to the
multipliers found (hscg-2020, section 2.3, allows any centre), so that no bias of the smoothing is
left at the end: of penalties, of outer functions, and of functions inside expectations, where each
row has a centre of its own.
"""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

from fccomodel.algorithms.runtime.finish.failure import (
    conflict,
    drifts,
    falls_for_ever,
    least_violation,
    stagnant,
    without_end,
)
from fccomodel.algorithms.runtime.finish.panoc import cautious_step, forward_backward, panoc
from fccomodel.algorithms.runtime.helpers.support import gradient_of
from fccomodel.algorithms.runtime.loops.progress import (
    merit,
    passes_over,
    record,
    scale_smoothing,
    slope_at,
    started,
    status,
    summary,
)
from fccomodel.algorithms.runtime.loops.settings import LoopSettings, RunOptions
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.lazy import torch
from fccomodel.core.work import priced, to_the_end


def differentiated(solver: Solver, data, c, h: LoopSettings, count):
    """w -> value and gradient of ``whole``; ``count`` has their number, the last value and the size of
    the last w: of one gone ``back`` to, too."""

    def back(value, w):
        """Remember the value and the size of the point."""
        count.value, count.size = value, float(w.norm())

    def at(w):
        """The value over all rows at w, and its gradient; counted as one pass."""
        count.passes += 1
        x = w.detach().clone().requires_grad_()
        with torch.enable_grad():
            value = solver.whole(data, x, c, h)
        back(float(value), w)
        return count.value, gradient_of(value, x)

    at.back = back  # type: ignore[attr-defined]
    return at


def centre_rows(solver: Solver, data, w, c, h: LoopSettings):
    """Centres for the functions inside expectations, one per row, smoothed on a tenth of their
    arguments' size."""
    if solver.inside:
        cells = solver.all_blocks(data, w)
    else:
        cells = {}
    for name, shape in solver.inside.items():
        t = cells[name][1]
        setattr(c, name, torch.zeros(shape, device=w.device, dtype=w.dtype))
        h.smooth(name, max(0.1 * float(t[t.isfinite()].square().mean().sqrt()), 1e-6))


def shift_centres(solver: Solver, data, w, c, h: LoopSettings):
    """Moves the centres to the slopes at w. Returns by how much, in units of the functions' arguments;
    whether a multiplier is at its bound; and the largest one."""
    shifts, saturated, largest = {}, False, 0.0
    for name, (index, t, slope, bounded) in solver.all_blocks(data, w).items():
        centre = getattr(c, name)
        if index:
            index = index
        else:
            index = (...,)
        new = slope_at(t, slope, centre[index], h)
        shifts[name] = h.smoothing(name) * float((new - centre[index]).abs().max())
        centre[index] = new
        if bounded:
            steepest = float(centre.abs().max()) / bounded
            largest = max(largest, steepest)
            saturated |= steepest >= 0.99 * h.rho
    return shifts, saturated, largest


def full_problem(solver: Solver, outcome, data, asked: RunOptions, tol):
    """What rounds work on, from where ``found`` ended, on ``data`` in float64: the smoothed problem
    with its centres c and its parameters h, ``at`` (value and gradient), ``prox`` (of the rest),
    ``limit()`` (to stop at), ``endless()`` (w runs away), and ``late()`` (asked to stop, or some
    beyond the time: to tell why there is no solution takes no longer)."""
    began, seconds, passes, stop = time.perf_counter(), asked.seconds, asked.passes, asked.stop
    h = outcome.h.copy()
    c = SimpleNamespace(
        **{name: centre.to(data.device).double().clone() for name, centre in vars(outcome.c).items()}
    )
    w = outcome.w.to(data.device).double().clone()
    centre_rows(solver, data, w, c, h)
    count = SimpleNamespace(passes=0, value=0.0, size=0.0, timed=False)
    value = summary(solver.evaluate(data, w))
    floor, ceiling = -1e10 * (1 + abs(value[0])), 1e9 * (1 + float(w.norm()))

    def endless():
        """Whether the value or the point grows without end."""
        return count.value < floor or count.size > ceiling

    def over(more=0.0):
        """Whether the run is stopped, or its time used up (with ``more`` seconds of grace)."""
        if stop is not None and stop():
            return True
        past = seconds is not None and time.perf_counter() - began > seconds + more
        count.timed |= past
        return past

    def limit():
        """Whether the finish must end here."""
        return (passes is not None and count.passes >= passes) or endless() or over()

    def late():
        """Whether the time is used up, a last step granted."""
        return over(0.3 + 0.02 * (seconds or 0.0))

    def prox(x, step):
        """The proximal step on x, in place; the regulariser's value there."""
        solver.project(x, step)
        return solver.regulariser(x)

    at = differentiated(solver, data, c, h, count)
    return SimpleNamespace(
        solver=solver,
        data=data,
        c=c,
        h=h,
        w=w,
        value=value,
        at=at,
        prox=prox,
        limit=limit,
        endless=endless,
        late=late,
        count=count,
        tol=tol,
    )


def from_the_first(full, first, most=40):
    """Of a problem that is not convex: goes to what a few passes lead to from the first iterate of
    all, where the smoothed problem is worth less there than at the best point of the steps, and the
    problem no more."""
    at, count, h, start = full.at, full.count, full.h, first.to(full.w)
    level = at(full.w)[0] + full.prox(full.w.clone(), 0.0)
    enough, last, held = level - 1e-6 * (1 + abs(level)), count.passes + most, (count.value, count.size)

    def limit():
        """Whether this round must end here."""
        return full.limit() or count.passes >= last or count.value < enough

    found, _, _ = panoc(at, full.prox, start, 2 * cautious_step(at, start), 0.0, limit, bold=True)
    if at(found)[0] + full.prox(found.clone(), 0.0) < enough:
        value = summary(full.solver.evaluate(full.data, found))
        if merit(value, h.weight) <= merit(full.value, h.weight):
            full.w, full.value = found, value
    count.value, count.size = held


def first_point(full, history, step=0.0, times=8):
    """Where rounds start: w, the best point and its value so far, the step, the accuracy of the first
    round; and the failure of constraints that conflict, where the stages before could not lower
    their violation. ``step``: the first, where it is known; else by so many differences of
    gradients."""
    data, h, w, value, count, tol = full.data, full.h, full.w, full.value, full.count, full.tol
    resumed = full.solver.resume is not None
    if not resumed:  # else the multipliers are nearer than those that a point changed a little would give
        h.weight = 2 * max(0.05 * h.rho, shift_centres(full.solver, data, w, full.c, h)[2])
    step = step or cautious_step(full.at, w, times)
    enough = max(
        tol,
        (0.01 if resumed else 0.1) * float(forward_backward(full.at, full.prox, w, step).move.norm()) / step,
    )
    best, failure = w, None
    if value[2] > max(tol, 1e-4) and stagnant(history):
        least = least_violation(full.solver, data, w, full.limit, count, 200)
        failure = conflict(least, max(tol, 1e-3 * value[2]), far=100.0)
        best = w if failure is None else least.w
    return SimpleNamespace(
        w=w,
        best=best,
        value=value,
        step=step,
        enough=enough,
        error=math.inf,
        off=math.inf,
        failure=failure,
        shifts={},
        raised=[],
        searched=False,
        inner=None,
        pairs=[],
        more=0,
    )


def next_round(now, full):
    """Minimises the smoothed problem at fixed centres, then moves these; the point is kept if it is
    the best. False where the penalty was too weak to hold the point: it is stronger now."""
    data, h, count, tol = full.data, full.h, full.count, full.tol
    if now.inner is None:  # the curvature of the last round is about that of this one
        now.begin, now.last, now.inner = now.w, count.passes + 500, SimpleNamespace(now=None, pairs=now.pairs)
        if now.pairs:
            now.step = now.step
        else:
            now.step = 2 * now.step

    def limit():
        """Keep the state, and say whether this round must end here."""
        full.keep()
        return full.limit() or count.passes > now.last

    bold = full.solver.nonconvex
    now.w, residual, now.step = panoc(full.at, full.prox, now.w, now.step, now.enough, limit, now.inner, bold)
    now.pairs, now.inner, value = now.inner.pairs, None, summary(full.solver.evaluate(data, now.w))
    if full.endless() and value[2] > 1e-6 * float(now.w.norm()):
        now.w, count.value, count.size, now.step, now.pairs = now.best.clone(), 0.0, 0.0, 0.1 * now.step, []
        h.rho *= 4
        return False
    shifts, saturated, steepest = shift_centres(full.solver, data, now.w, full.c, h)
    h.weight = max(h.weight, 2 * steepest)
    off, point = max([value[2], *shifts.values()]), now.w.clone()
    # a pass may be left at any operation of torch: there is none from here until error and point agree
    now.off, now.error = off, max(residual, off)
    equal = tol if now.error <= tol else 1e-9  # one that converged is the answer before others as good
    if merit(value, h.weight) <= merit(now.value, h.weight) + equal * (1 + abs(now.value[0])):
        now.best, now.value = point, value
    for name, shift in shifts.items():
        if shift > tol and shift > 0.5 * now.shifts.get(name, math.inf):
            h.smooth(name, 0.5 * h.smoothing(name))
    moved = now.w - now.begin
    if (
        count.passes > now.last
        and not full.solver.attained
        and falls_for_ever(full, now.w, moved) == "unbounded"
    ):
        now.failure = {"kind": "unbounded", "direction": moved, "far": float(now.w.norm())}
    if saturated and value[2] > tol:
        raise_penalty(now, full, value[2])
    now.shifts = shifts
    now.enough = max(tol, min(now.enough, 0.3 * (now.error if full.solver.resume is None else now.off)))
    return True


def unfinished(now, full, most=3):
    """Not at the tolerance yet. Where another run ended some rounds more come cheap, until what is off
    counts for nothing in the objective."""
    if now.error > full.tol:
        return True
    now.more += 1
    counts = full.h.weight * now.off > full.tol * max(abs(now.value[0]), 0.01)
    return full.solver.resume is not None and counts and now.more <= most


def raise_penalty(now, full, violation):
    """A penalty whose multiplier is at its bound becomes stronger. Once that has helped little, the
    least violation that there is tells whether constraints conflict; where they do not, the next
    round starts there."""
    full.h.rho *= 4
    now.raised.append(violation)
    if now.searched or len(now.raised) <= 3 or violation <= 0.3 * now.raised[0]:
        return
    now.searched, least = True, least_violation(full.solver, full.data, now.w, full.limit, full.count)
    if least.violation > max(1e-2 * full.tol, 1e-3 * violation) and not full.limit():
        now.best, now.failure = least.w, conflict(least, 0.0, far=1.0)
    else:
        now.w = least.w


def descent_without_end(now, full):
    """The failure of an objective that goes on falling from the best point on, or None. Where rounds
    have converged, a stricter one shows in which direction; where it went a long way, one in
    between has less beside that direction. Or it falls along that, or along w, where the other
    variables follow."""

    def stricter(w, accuracy, most=200):
        """The point after a descent to a finer accuracy."""
        end = count.passes + most
        return panoc(
            full.at, full.prox, w, now.step, accuracy * full.tol, lambda: full.limit() or count.passes > end
        )[0]

    def judged(w):
        """Whether the descent from w goes on without end."""
        return without_end(full, w, further)

    count, further = full.count, now.best
    if now.error <= full.tol:
        further = stricter(now.best, 1e-3)
    failure = judged(now.best)
    moved = float((further - now.best).norm()) / (1 + float(now.best.norm()))
    if failure is None and moved > 0.01:
        failure = judged(stricter(now.best, 0.03))
    if failure is None and now.error <= full.tol:
        if moved > 0.1:
            way = further - now.best
        else:
            way = now.best
        failure = drifts(full, now.best, way, lambda x: stricter(x, 0.01, 50))
    return failure


def begin_rounds(solver: Solver, outcome, full, run):
    """Where the rounds of a finish start: for a problem that is not convex perhaps nearer the first
    iterate of all."""
    if solver.nonconvex and outcome.first is not None and outcome.iterations:
        from_the_first(full, outcome.first)
    measured = not outcome.iterations and not solver.settings().eta
    far = solver.nonconvex and not outcome.iterations
    # the first round mends a step far from a minimum
    times = 2 if far or getattr(outcome, "scarce", False) else 8
    step = full.h.pass_step or (0.5 * outcome.eta if measured else 0.0)
    run.now = first_point(full, run.history, step, times)
    run.now.pairs = getattr(outcome, "pairs", [])


def goes_on_with(now, full, rounds):
    """Whether a round is not over, or another one may come."""
    if now.inner is not None:
        return True
    return unfinished(now, full) and not full.limit() and rounds < 100 and now.failure is None


def why_over(now, full, passes):
    """Why the rounds of a finish ended, in words."""
    if now.error <= full.tol:
        measures = "stationarity, violation and the last change of the multipliers"
        return f"converged: {measures} are below {full.tol:g}"
    if full.count.timed:
        return "the time is used up"
    if passes is not None and full.count.passes >= passes:
        return "the budget is used up"
    if full.endless():
        return "iterates run away"
    return "rounds of passes gain nothing more"


def all_rounds(run, full, solver: Solver, outcome, asked: RunOptions, began):
    """The rounds of a finish, from where they stand. Returns why there is no solution, or None."""
    keep, history = asked.keep, run.history
    if keep is None or not keep.again("finish", run):
        begin_rounds(solver, outcome, full, run)
    now = run.now
    while goes_on_with(now, full, run.rounds):
        run.rounds += now.inner is None
        if next_round(now, full):
            entry = {"iteration": outcome.iterations, "oracles": history[-1]["oracles"]}
            entry |= {"eta": now.step, "kkt": now.error, "passes": full.count.passes}
            record(history, asked.progress, began, now.value, full.h.weight, **entry)
    full.h.pass_step = now.step
    full.keep("ended")
    return now.failure or (None if solver.attained else descent_without_end(now, full))


def finish(solver: Solver, outcome, data, dear=0.05, **given):
    """Continue from what ``solve`` found, on ``data`` in float64; its point is replaced by one of as
    small a merit.

    ``given``: see ``RunOptions``. ``passes`` bounds the evaluations of ``whole``, ``seconds`` the
    time; ``tol`` is the stationarity, the violation and the shift of the centres to end at.
    ``outcome.scarce``: few passes fit, of which none is spent on what the first will show.
    ``failure`` of what it returns names why there is no solution, with the evidence, or is None;
    ``moved``: its point is another. Passes of a ``price`` of more than ``dear`` counted seconds are
    left before their end once their time is over; the best point so far is kept.
    """
    asked = RunOptions(**given)
    keep, tol = asked.keep, 1e-6 if asked.tol is None else asked.tol
    over = passes_over(time.perf_counter(), asked.stop, asked.seconds)
    run = SimpleNamespace(rounds=0, now=None, history=list(outcome.history))
    state = SimpleNamespace(failure=None, full=None)
    began = started(keep, outcome.seconds)

    def keep_state(reason=""):
        """Keep the state, if anybody does."""
        if keep is not None:
            keep("finish", run, reason)

    def work():
        """All passes of the finish."""
        full = state.full = full_problem(solver, outcome, data, asked, tol)
        run.c, run.h, run.count, full.keep = full.c, full.h, full.count, keep_state
        state.failure = all_rounds(run, full, solver, outcome, asked, began)

    ended_early = not to_the_end(work, over, (asked.price or 0.0) > dear)
    full, now = state.full, run.now
    if now is None:  # left before the first of its points was known
        outcome.passes = 0
        if asked.stop is not None and asked.stop():
            outcome.status = outcome.reason = "interrupted"
        else:
            outcome.timed = True
        return outcome
    if ended_early:
        full.count.timed |= not (asked.stop is not None and asked.stop())
    ended = status(asked.stop, now.error <= tol)
    reason = why_over(now, full, asked.passes)
    if ended == "interrupted":
        reason = ended
    elif state.failure:
        reason = state.failure["kind"]
    more = {"w": now.best, "c": full.c, "h": full.h, "history": run.history, "exact": data}
    more |= {"passes": full.count.passes, "pairs": now.pairs, "way": "finish"}
    more |= {"failure": state.failure, "reason": reason, "status": ended}
    more["timed"] = outcome.timed or full.count.timed
    more["moved"] = not torch.equal(now.best, outcome.w.to(now.best))
    return SimpleNamespace(**{**vars(outcome), **more})


def resumed(solver: Solver, data, device, progress=None):
    """Where another run ended, as ``solve`` would return it: the program's first w, c and settings, in
    float64, and no step made. Smoothing and penalties go by the sizes of arguments and gradients
    there, where the settings do not keep them."""
    began, h, c = time.perf_counter(), solver.settings(), solver.centres(device, torch.float64)
    w = solver.start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    if solver.centred and not h.kept:
        centre_rows(solver, data, w, c, h)
        at = differentiated(solver, data, c, h, SimpleNamespace(passes=0))
        scale_smoothing(solver, data, w, c, h, lambda x: at(x)[1], w.dtype)
    h.weight = h.weight or 0.1 * h.rho
    history: list = []
    record(
        history, progress, began, summary(solver.evaluate(data, w)), h.weight, iteration=0, oracles=0, eta=0.0
    )
    return SimpleNamespace(
        w=w,
        c=c,
        h=h,
        eta=0.0,
        history=history,
        iterations=0,
        seconds=time.perf_counter() - began,
        reason="",
        status="stopped",
        broken=None,
        exact=data,
        timed=False,
        worked=0.0,
        planned=None,
        first=None,
        pairs=[] if solver.pairs is None else solver.pairs(device),
    )


def one_pass(solver: Solver, data, device, most=math.inf):
    """Counted seconds that ``whole`` and its gradient take; infinity if they, or the centres before
    them, take more than ``most``."""
    h, c = solver.settings(), solver.centres(device, torch.float64)
    w = solver.start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    if priced(lambda: centre_rows(solver, data, w, c, h), most=most)[1] > most:
        return math.inf
    at = differentiated(solver, data, c, h, SimpleNamespace(passes=0))
    return priced(lambda: at(w), most=most)[1]
