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

from fccomodel.algorithms.runtime.finish.elsewhere import least_anywhere, start_elsewhere
from fccomodel.algorithms.runtime.finish.failure import (
    conflict,
    drifts,
    falls_for_ever,
    stagnant,
    without_end,
)
from fccomodel.algorithms.runtime.finish.panoc import cautious_step, forward_backward, panoc
from fccomodel.algorithms.runtime.helpers.support import gradient_of
from fccomodel.algorithms.runtime.loops.progress import (
    Work,
    completed,
    cut_short,
    merit,
    passes_over,
    record,
    scale_smoothing,
    slope_at,
    started,
    status,
    summary,
    why_left,
)
from fccomodel.algorithms.runtime.loops.settings import LoopSettings, RunOptions
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.lazy import torch
from fccomodel.core.work import priced


def differentiated(solver: Solver, data, c, h: LoopSettings, count):
    """The function w -> (value, gradient) of ``whole``.

    ``count`` holds the number of calls, the last value and the size of the last w. ``back`` sets them to
    those of a point to which the caller returns.
    """

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
    """Add centres for the functions inside expectations, one a row. Their smoothing is a tenth of the size
    of their arguments.
    """
    if solver.inside:
        cells = solver.all_blocks(data, w)
    else:
        cells = {}
    for name, shape in solver.inside.items():
        t = cells[name][1]
        setattr(c, name, torch.zeros(shape, device=w.device, dtype=w.dtype))
        h.smooth(name, max(0.1 * float(t[t.isfinite()].square().mean().sqrt()), 1e-6))


def shift_centres(solver: Solver, data, w, c, h: LoopSettings):
    """Move the centres to the slopes at w.

    Returns the largest shift in units of the functions' arguments, whether a multiplier is at its bound,
    and the largest multiplier.
    """
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
    """The smoothed problem on all rows in float64, from the point where the steps ended.

    The record has the centres c, the settings h, and these functions:

    at         the value and the gradient at w
    prox       the proximal step of the other terms
    limit      whether the finish must stop here
    endless    whether the value or w grows without end
    late       whether the time is used up; a little more is granted to tell why there is no solution
    """
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
        """Make the proximal step on x in place; returns the regulariser's value there."""
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
    """For a problem that is not convex: make a few passes from the very first iterate as well.

    The point found replaces the best point of the steps if the smoothed problem is smaller there and the
    merit of the problem is not larger.
    """
    at, count, h, start = full.at, full.count, full.h, first.to(full.w)
    level = at(full.w)[0] + full.prox(full.w.clone(), 0.0)
    enough, last, held = level - 1e-6 * (1 + abs(level)), count.passes + most, (count.value, count.size)

    def limit():
        """Whether this round must end here."""
        return full.limit() or count.passes >= last or count.value < enough

    end, _, _ = panoc(at, full.prox, start, 2 * cautious_step(at, start), 0.0, limit, bold=True)
    if at(end)[0] + full.prox(end.clone(), 0.0) < enough:
        value = summary(full.solver.evaluate(full.data, end))
        if merit(value, h.weight) <= merit(full.value, h.weight):
            full.w, full.value = end, value
    count.value, count.size = held


def first_point(full, history, step=0.0, times=8):
    """The state in which the rounds start.

    It has w, the best point so far with its value, the step size, the accuracy of the first round, and the
    failure of constraints that conflict, which is looked for if the steps could not lower the violation.
    ``step`` is the first step size; if it is 0, it is estimated from ``times`` differences of gradients.
    """
    data, h, w, value, tol = full.data, full.h, full.w, full.value, full.tol
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
        least = least_anywhere(full, w, max(tol, 1e-3 * value[2]), 200)
        failure = conflict(least, max(tol, 1e-3 * value[2]), far=100.0)
        if failure is not None:
            best = least.w
        elif least.elsewhere:
            w, best, value = least.w, least.w, summary(full.solver.evaluate(data, least.w))
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
        elsewhere=False,
        inner=None,
        pairs=[],
        more=0,
    )


def next_round(now, full):
    """Minimise the smoothed problem at fixed centres, then move the centres. The point is kept if it is the
    best one.

    Returns False if the penalty was too weak to hold the point; it is stronger now.
    """
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
    change = now.w - now.begin
    if (
        count.passes > now.last
        and not full.solver.attained
        and falls_for_ever(full, now.w, change) == "unbounded"
    ):
        now.failure = {"kind": "unbounded", "direction": change, "far": float(now.w.norm())}
    if saturated and value[2] > tol:
        raise_penalty(now, full, value[2])
    now.shifts = shifts
    now.enough = max(tol, min(now.enough, 0.3 * (now.error if full.solver.resume is None else now.off)))
    return True


def unfinished(now, full, most=3):
    """Whether the tolerance is not reached yet.

    If the run continues another one, a few more rounds are cheap: they go on until the remaining error
    counts for nothing in the objective.
    """
    if now.error > full.tol:
        return True
    now.more += 1
    counts = full.h.weight * now.off > full.tol * max(abs(now.value[0]), 0.01)
    return full.solver.resume is not None and counts and now.more <= most


def raise_penalty(now, full, violation):
    """Strengthen a penalty whose multiplier is at its bound.

    If that has helped little, the least possible violation tells whether constraints conflict. If they do
    not, the next round starts at the point of least violation.
    """
    full.h.rho *= 4
    now.raised.append(violation)
    if now.searched or len(now.raised) <= 3 or violation <= 0.3 * now.raised[0]:
        return
    now.searched, least = True, least_anywhere(full, now.w, max(1e-2 * full.tol, 1e-3 * violation))
    if least.violation > max(1e-2 * full.tol, 1e-3 * violation) and not full.limit():
        now.best, now.failure = least.w, conflict(least, 0.0, far=1.0)
    else:
        now.w = least.w


def descent_without_end(now, full):
    """The failure of an objective that falls for ever from the best point, or None.

    If rounds have converged, a stricter round shows a direction; if a round went a long way, a point in
    between has less of the other directions. The objective may fall along that direction, or along w while
    the other variables follow.
    """

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
    distance = float((further - now.best).norm()) / (1 + float(now.best.norm()))
    if failure is None and distance > 0.01:
        failure = judged(stricter(now.best, 0.03))
    if failure is None and now.error <= full.tol:
        if distance > 0.1:
            way = further - now.best
        else:
            way = now.best
        failure = drifts(full, now.best, way, lambda x: stricter(x, 0.01, 50))
    return failure


def begin_rounds(solver: Solver, outcome, full, run):
    """The state in which the rounds of a finish start. For a problem that is not convex it may be near the
    very first iterate.
    """
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
    """Whether a round is unfinished or another one may follow."""
    if now.inner is not None:
        return True
    return unfinished(now, full) and not full.limit() and rounds < 100 and now.failure is None


def why_over(now, full, passes):
    """Why the rounds of a finish ended, in words."""
    if now.error <= full.tol:
        measures = "stationarity, violation and the last change of the multipliers"
        return f"converged: {measures} are below {full.tol:g}"
    if full.count.timed:
        return "the time limit was reached"
    if passes is not None and full.count.passes >= passes:
        return "the budget is used up"
    if full.endless():
        return "iterates run away"
    return "rounds of passes gain nothing more"


def all_rounds(run, full, solver: Solver, outcome, asked: RunOptions, began):
    """Make the rounds of a finish from the current state. Returns why there is no solution, or None."""
    keep, history = asked.keep, run.history
    if keep is None or not keep.again("finish", run):
        begin_rounds(solver, outcome, full, run)
    now = run.now
    while True:
        while goes_on_with(now, full, run.rounds):
            run.rounds += now.inner is None
            if next_round(now, full):
                entry = {"iteration": outcome.iterations, "oracles": history[-1]["oracles"]}
                entry |= {"eta": now.step, "kkt": now.error, "passes": full.count.passes}
                record(history, asked.progress, began, now.value, full.h.weight, **entry)
        full.h.pass_step = now.step
        full.keep("ended")
        failure = now.failure or (None if solver.attained else descent_without_end(now, full))
        if not start_elsewhere(now, full, failure):
            return failure


def finish(solver: Solver, outcome, data, dear=0.05, **given):
    """Continue from the result of ``solve``, on ``data`` in float64. Its point is replaced by one of at
    most the same merit.

    The options are those of ``RunOptions``: ``passes`` bounds the evaluations of ``whole``, ``seconds`` the
    time, and ``tol`` is the stationarity, the violation and the shift of the centres to reach.
    ``outcome.scarce`` says that few passes fit: none is spent on what the first round will show anyway. In
    the result, ``failure`` says why there is no solution, with the evidence, or is None; ``moved`` says
    whether the point has changed. If a pass costs more than ``dear`` counted seconds, it is left before its
    end once the time is over, and every pass is if memory runs out; the best point so far is kept.
    """
    asked = RunOptions(**given)
    keep, tol = asked.keep, 1e-6 if asked.tol is None else asked.tol
    over = passes_over(time.perf_counter(), asked.stop, asked.seconds)
    run = SimpleNamespace(rounds=0, now=None, history=list(outcome.history))
    state = SimpleNamespace(failure=None, full=None)
    began = started(keep, outcome.seconds)

    def keep_state(reason=""):
        """Hand the state to the keeper, if there is one."""
        if keep is not None:
            keep("finish", run, reason)

    def work():
        """Make all rounds of the finish."""
        full = state.full = full_problem(solver, outcome, data, asked, tol)
        run.c, run.h, run.count, full.keep = full.c, full.h, full.count, keep_state
        state.failure = all_rounds(run, full, solver, outcome, asked, began)

    spent = Work()
    ended_early = not completed(work, over, spent, (asked.price or 0.0) > dear)
    full, now = state.full, run.now
    if now is None:  # left before the first of its points was known
        outcome.passes = 0
        cut_short(outcome, asked.stop, spent)
        return outcome
    why = ""
    if ended_early:
        why = why_left(asked.stop, spent)
        full.count.timed |= spent.timed
    ended = status(asked.stop, now.error <= tol)
    reason = why_over(now, full, asked.passes)
    if ended == "interrupted":
        reason = ended
    elif spent.short:
        reason = why
    elif state.failure:
        reason = state.failure["kind"]
    more = {"w": now.best, "c": full.c, "h": full.h, "history": run.history, "exact": data}
    more |= {"passes": full.count.passes, "pairs": now.pairs, "way": "finish"}
    more |= {"failure": state.failure, "reason": reason, "status": ended}
    more["timed"] = outcome.timed or full.count.timed
    more["moved"] = not torch.equal(now.best, outcome.w.to(now.best))
    return SimpleNamespace(**{**vars(outcome), **more})


def resumed(solver: Solver, data, device, progress=None):
    """The result of another run, as ``solve`` would return it without a step: the first w, c and settings
    of this program, in float64.

    Smoothing and penalties follow from the sizes of arguments and gradients there, unless the settings
    contain them.
    """
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
    """Counted seconds of ``whole`` with its gradient; infinity if it, or the centres that it needs, takes
    more than ``most``.
    """
    h, c = solver.settings(), solver.centres(device, torch.float64)
    w = solver.start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    if priced(lambda: centre_rows(solver, data, w, c, h), most=most)[1] > most:
        return math.inf
    at = differentiated(solver, data, c, h, SimpleNamespace(passes=0))
    return priced(lambda: at(w), most=most)[1]
