"""Functions that both loops share: exact values, the merit of a point, the end of a run, and the
amount and the centres of smoothing. The emitter copies them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from fccomodel.algorithms.runtime.helpers.support import shuffled
from fccomodel.algorithms.runtime.loops.settings import LoopSettings
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.lazy import torch
from fccomodel.core.work import to_the_end, within_memory


@dataclass(kw_only=True)
class Work:
    """The cost of a run in counted seconds.

    step    of one step
    call    of one oracle call
    passed  of one oracle call in a full pass
    look    of one evaluation of the exact problem
    looks   of all such evaluations so far, and of estimates of the residual
    start   before the first step
    timed   whether the clock ended the run
    short   whether lack of memory ended the run
    """

    step: float = 0.0
    call: float = 0.0
    passed: float = 0.0
    look: float = 0.0
    looks: float = 0.0
    start: float = 0.0
    timed: bool = False
    short: bool = False


@dataclass(kw_only=True)
class Outcome:
    """The result of a loop.

    w           the point, in float64
    c, u, h     the centres, the estimates (None for a loop without) and the settings at the end
    moments     running means of gradients at the answer, by name
    eta         the first step size
    history     one entry a stage: steps, oracle calls, step size, objective, violation, merit, seconds
    iterations  the number of steps
    seconds     by the clock
    reason      why the run ended, in words
    status      ``converged``, ``interrupted`` or ``stopped``
    broken      the step by which iterates were not finite, or None
    exact       the data in float64, for a report or a finish
    first       the first iterate
    timed       whether the clock ended the run
    worked      the work done, in counted seconds
    planned     the number of steps that repeats the run; None if the steps themselves plan
    epsilon     the bound of hscg-2020, Lemma 3.1, on the KKT residual, if there is one
    scarce      whether less than a hundred passes fit into the budget of the finish
    """

    w: Any
    c: Any
    u: Any = None
    h: Any
    eta: float
    history: list
    iterations: int
    seconds: float
    reason: str
    status: str
    broken: int | None
    exact: Any
    first: Any
    timed: bool
    worked: float
    planned: float | None
    epsilon: float | None = None
    scarce: bool = False
    moments: Any = None


def opened(solver: Solver, data, device, dtype, exact=None):
    """The data three times: for exact values (float64), for values between stages (with fewer rows if these
    are expensive), and for steps.
    """
    if exact is None:
        exact = solver.prepare_full(solver.as_namespace(data, device, torch.float64))
    if solver.heavy:
        quick = solver.prepare_full(thinned(solver, solver.as_namespace(data, device, dtype)))
    else:
        quick = exact
    return exact, quick, solver.prepare(solver.as_namespace(data, device, dtype))


def started(keep, spent=0.0):
    """When the run began, by the clock, so that the time before it was killed counts, at least ``spent``
    seconds.
    """
    return time.perf_counter() - (spent if keep is None else max(spent, keep.spent))


def ending(began, stop, seconds, iterations, oracles=None, share=None, work=None):
    """The function ``ended(count, calls, passed)``: why a run ends after ``count`` steps and ``calls``
    oracle calls, ``passed`` of these in full passes, or "" if it goes on.

    ``share`` bounds its part of ``work`` in counted seconds. ``work.timed`` becomes True if the clock ends
    the run.
    """

    def ended(count, calls=0, passed=0):
        """Why the run ends after ``count`` steps, or nothing."""
        if stop is not None and stop():
            return "interrupted"
        spent = (iterations is not None and count >= iterations) or (oracles is not None and calls >= oracles)
        if spent or (share is not None and worked(work, count, calls, passed) > share):
            return "the budget is used up"
        if seconds is not None and time.perf_counter() - began > seconds:
            work.timed = True
            return "the time limit was reached"
        return ""

    return ended


def passes_over(began, stop, seconds, share=0.1, grace=0.5, pace=0.1):
    """The function ``over()``: whether passes over all rows must be left before their end.

    Passes may take a ``share`` of the run's ``seconds`` and ``grace`` seconds more, so that a last look can
    end, and ``grace`` seconds after a person asked for the end. ``stop`` is called at most once in ``pace``
    seconds.
    """
    last, asked = math.inf, -math.inf
    if seconds is not None:
        last = began + (1 + share) * seconds + grace

    def over():
        """Whether the time of passes is over."""
        nonlocal last, asked
        now = time.perf_counter()
        if stop is not None and now - asked > pace:
            asked = now
            if stop():
                last = min(last, now + grace)
        return now > last

    return over


def completed(task, over, work, dear=True):
    """Do ``task()``. Whether it came to its end, within the time (see ``to_the_end``) and the memory that
    there is. ``work`` records whether memory ran out.
    """
    done = False

    def begun():
        """Do it in the time that there is."""
        nonlocal done
        done = to_the_end(task, over, dear)

    work.short |= not within_memory(begun)
    return done


def why_left(stop, work):
    """Why a pass was left before its end, in words. ``work`` records whether the clock was the reason, and
    has recorded whether memory was.
    """
    if stop is not None and stop():
        return "interrupted"
    if work.short:
        return "memory ran out"
    work.timed = True
    return "the time limit was reached"


def cut_short(outcome, stop, work):
    """Record in the ``outcome`` of the steps why the stage after them was left before its end."""
    why = why_left(stop, work)
    outcome.timed |= work.timed
    if why == "interrupted":
        outcome.status = why
    if not work.timed:
        outcome.reason = why


def steps_within(iterations, oracles, each):
    """The number of steps that a budget of steps or of oracle calls allows; None: any number.

    ``each``: oracle calls of a step.
    """
    if oracles is None:
        return iterations
    return min(iterations or math.inf, max(1, int(oracles // max(each, 1))))


def spare(h: LoopSettings, few, price, seconds):
    """Save gradients before the first step if a gradient is expensive.

    ``price`` is the cost of one in counted seconds. If all gradients of the start would take more than a
    fifth of the budget, or one of them more than a hundredth, there are fewer, of fewer minibatches
    (``few``, changed in place). If ``seconds`` is None, nothing is saved.
    """
    if seconds is None:
        return
    if few and price > 0.01 * seconds:
        kept = max(int(len(few) * 0.01 * seconds / price), 1)
        price *= kept / len(few)
        del few[kept:]
    most = 0.2 * seconds / max(price, 1e-9)
    h.powers, h.halvings = min(h.powers, max(int(most / 3), 2)), min(h.halvings, max(int(most / 2), 3))


def passes_first(price, step, slope, tol, room):
    """Whether passes come before any step.

    They do if a pass costs at most as much as two steps, or at most as much as forty if 400 passes do not
    fit into 1.6 times the ``room``. The ``slope`` at the start must also show that it is far from a
    stationary point: steps could not come nearer than their noise.
    """
    most = 40 if 400 * price >= 1.6 * room else 2
    return price <= most * step and float(slope.norm()) > 100 * (tol or 0.0)


def worked(work, count, calls=0, passed=0):
    """Counted seconds of ``count`` steps and ``calls`` oracle calls, ``passed`` of these in full passes, with
    the work before them and the looks between them.
    """
    by_samples = work.call * (calls - passed)
    return work.start + work.step * count + by_samples + work.passed * passed + work.looks


def record(history, progress, began, value, weight, **entry):
    """Append a stage to the history, with the summary of the best point so far, and pass it to
    ``progress``.
    """
    point = {
        "objective": value[0],
        "violation": value[2],
        "merit": merit(value, weight),
        "seconds": time.perf_counter() - began,
    }
    history.append({"stage": len(history) + 1, **entry, **point})
    if progress is not None:
        progress(history[-1])


def hearing(progress, every=1.0):
    """The function ``heard(run)``, which reports the steps since the last stage to ``progress``, once in
    ``every`` seconds; None without ``progress``.
    """
    if progress is None:
        return None
    last = [time.perf_counter()]

    def heard(run):
        """The best point so far, with the number of steps now."""
        now = time.perf_counter()
        if now - last[0] >= every:
            last[0] = now
            before = run.history[-1] if run.history else {"stage": 0}
            known = {"objective": run.value[0], "violation": run.value[2]}
            progress({**before, **known, "iteration": run.count})

    return heard


def running_means(state):
    """The running means of gradients (v) and of their squares (s), by name, of an update that keeps them."""
    known = {name: getattr(state, name, None) for name in ("v", "s")}
    return {name: value for name, value in known.items() if torch.is_tensor(value)}


def status(stop, converged):
    """The status of a run: ``converged``, ``interrupted`` or ``stopped``."""
    if stop is not None and stop():
        return "interrupted"
    if converged:
        return "converged"
    return "stopped"


def thinned(solver: Solver, data, seed=1):
    """The data with fewer rows if there are many pairs. Evaluations between stages use it, the final one
    does not.
    """
    if not solver.thin:
        return data
    quick = SimpleNamespace(**vars(data))
    rng = torch.Generator(device=data.device).manual_seed(seed)
    for key, count in solver.thin.items():
        rows, places = getattr(data, key), torch.arange(count, device=data.device)
        chosen = shuffled(
            places, len(rows), int(torch.randint(1 << 62, (), generator=rng, device=data.device))
        )
        setattr(quick, key, rows[chosen.sort().values])
    return quick


def summary(values):
    """Objective, summed and largest violation of an evaluation; all infinite where anything is not finite."""
    objective, constraints = values
    violations = [t.abs() if kind == "eq" else t.clamp(min=0) for kind, t in constraints.values()]
    value = (
        float(objective),
        sum(float(t.sum()) for t in violations),
        max((float(t.max()) for t in violations), default=0.0),
    )
    if all(map(math.isfinite, value)):
        return value
    return (math.inf, math.inf, math.inf)


def value_at(solver: Solver, data, w):
    """The summary of the evaluation at w."""
    return summary(solver.evaluate(data, w.to(data.dtype)))


def least(solver: Solver, data, points, weight):
    """The summary of the point with the least merit, and that point."""
    return min(((value_at(solver, data, x), x) for x in points), key=lambda pair: merit(pair[0], weight))


def merit(point, weight):
    """Objective plus exact penalty. The weight follows the multipliers, because the penalty is exact only
    for weights above them.
    """
    if point[1]:
        return point[0] + weight * point[1]
    return point[0]


def starting_value(solver: Solver, data, w, value, G, rng, most=40):
    """The value at the start, which is moved if no step could be taken from it.

    ``value`` belongs to the start as given. The start moves in three cases, and at most ``most`` points are
    tried:

    - The problem or its derivative is not finite, as for a logarithm at 0. It moves to the first point at
      which both are, among points of equal entries and random points of several sizes.
    - The derivative is exactly zero, as for products of variables. It moves by small random numbers, which
      do no harm at a minimum.
    - The derivative is zero with respect to some variables that are 0. These move, such as factors beside
      offsets. Variables without any influence stay.
    """

    def scattered():
        """A standard normal point."""
        return torch.randn(w.shape, generator=rng, device=w.device, dtype=w.dtype)

    slopes = G(w)
    if w.numel():
        slope = float(slopes.abs().max())
    else:
        slope = 1.0
    edge = not math.isfinite(value[0] + slope)
    if slope:
        idle = (slopes == 0) & (w == 0)
    else:
        idle = torch.ones_like(w, dtype=torch.bool)
    if not edge and not (idle.any() and (solver.nonconvex or not slope)):
        return value
    sizes, ways = (1.0, 0.1, 10.0, 0.01, 100.0, 1000.0), [torch.ones_like(w), -torch.ones_like(w)]
    trials = ((t, way) for t in sizes for way in [*ways, *(scattered() for _ in range(4))])
    if not edge:
        small = scattered() * w.numel() ** -0.5 * idle
        small *= (G(w + small) != 0) | (not slope)
        trials = ((t, small) for t in (1.0, 0.1, 0.01, 0.001))
    for _, (size, way) in zip(range(most), trials, strict=False):
        x = w + size * way
        solver.project(x, 0.0)
        summary_at_x = value_at(solver, data, x)
        if math.isfinite(summary_at_x[0]) and bool(G(x).isfinite().all()):
            w.copy_(x)
            return summary_at_x
    return value


def scale_smoothing(solver: Solver, data, w, c, h: LoopSettings, G, dtype):
    """Set lam and rho for the first stage. ``G(w)`` is the gradient with the present smoothing and centres.

    - An objective with kinks is smoothed on a tenth of the size of its arguments. If blocks keep their y,
      it is smoothed on all of it: a visit then moves y by 1 / tau of its range (for a smooth function, by 1
      / (1 + tau) of the way to the slope).
    - A penalty is smoothed so that its curvature |grad c|^2 / lam is ten times the objective's, or equal to
      it if steps fall once, because their noise stays large to the end. The largest slope at the start is
      at most a tenth of rho, for all penalties together: a constraint that is hardly violated at the start
      would otherwise have no smoothing.
    - rho is at least ten times |grad g_0| / |grad c|.
    """
    penalties, violation, share = [], 0.0, 1.0 if solver.dual else 0.1
    for name, (index, t, slope, bounded) in solver.blocks(data, w).items():
        finite = t[t.isfinite()]
        if finite.numel():
            size = float(finite.square().mean().sqrt())
        else:
            size = 0.0
        if name in solver.curved:
            h.smooth(name, 1e-6)
            size /= max(float(slope(finite, torch.zeros_like(finite), h).square().mean().sqrt()), 1e-6)
        h.smooth(name, 1e6 if bounded else h.lam or max(share * size, 1e-6))
        if bounded:
            penalties.append(name)
            violation = max(
                violation, 1e6 * float(slope_at(t, slope, getattr(c, name)[index or (...,)], h).abs().max())
            )
    if not penalties:
        return
    begin = w.to(dtype)
    curvature, free, h.steep = (
        smoothness(G, begin, h.powers),
        float(G(begin).norm()),
        steepness(penalties, begin, c, h, G),
    )
    if h.steep > 1e-6 * free and math.isfinite(h.steep):
        if solver.schedule.adapts:
            h.rho *= min(max(1.0, free / h.steep), 1e4)
        if curvature > 0:
            lam = (1.0 if h.once else 0.1) * h.steep**2 / curvature
        else:
            lam = 10 * h.steep / h.rho
    else:
        lam = 0.1
    for name in penalties:
        h.smooth(name, h.lam or min(max(lam, 1e-6), 10 * violation / h.rho or 1e4))


def steepness(penalties, w, c, h: LoopSettings, G):
    """The norm of the sum of the constraints' gradients at w: that of G with all multipliers 1, minus G
    with all multipliers 0.
    """
    kept, held = dict(vars(h)), {name: getattr(c, name).clone() for name in penalties}
    vars(h).update(dict.fromkeys(["rho", *("lam_" + name for name in penalties)], 1e6))
    slopes = []
    for y in (0.0, 1.0):
        for name in penalties:
            getattr(c, name).fill_(y)
        slopes.append(G(w).clone())
    vars(h).update(kept)
    for name in penalties:
        getattr(c, name).copy_(held[name])
    return float((slopes[1] - slopes[0]).norm())


def slope_at(t, slope, centre, h: LoopSettings):
    """The slope of a smoothed function at its argument, or 0 if it is not finite: the next centre."""
    new = slope(t, centre.to(t.dtype), h)
    return torch.where(new.isfinite(), new, torch.zeros_like(new)).to(centre.dtype)


def centre_at(solver: Solver, data, w, c, h: LoopSettings):
    """c <- the slope of the smoothed function at the exact argument; the block's own y if steps move it."""
    cells = solver.blocks(data, w)
    for name, (index, t, slope, _) in cells.items():
        if not solver.dual:
            centre, index = getattr(c, name), index or (...,)
            centre[index] = slope_at(t, slope, centre[index], h)
    return cells


def estimated(name, index, t, u, h: LoopSettings):
    """The error of a penalty's argument as steps estimate it: its root mean square over the cells, over the
    last stages.
    """
    if hasattr(u, name):
        off = getattr(u, name)[index or (...,)] - t
        square = float(off[off.isfinite()].square().mean())
        if math.isfinite(square):
            h.off[name] = math.sqrt(0.8 * square + 0.2 * h.off.get(name, math.sqrt(square)) ** 2)
    return h.off.get(name, 0.0)


def move_centres(solver: Solver, data, w, c, h: LoopSettings, violations, G, u=None):
    """Move the centres to the slopes at w, and update smoothing, merit and penalties.

    - The smoothing follows the spread of the arguments. That of penalties follows the square of their
      gradients if these become smaller. It is reduced if the violation does not fall tenfold; less so if
      steps do not fall within a stage (they fall once, or the loop has no estimates ``u``). It stays above
      twice the error of the estimates divided by the multipliers' size, at least a tenth of rho.
    - The weight of the merit follows the multipliers.
    - rho grows if a multiplier at its bound does not help.

    ``violations`` are the largest one before and the largest one now.
    """
    before, worst = violations
    saturated, largest, cells = False, 0.0, centre_at(solver, data, w.to(data.dtype), c, h)
    penalties = {name: bounded for name, (*_, bounded) in cells.items() if bounded}
    if penalties and 0 < (steep := steepness(penalties, w, c, h, G)) < h.steep:
        for name in penalties:
            h.smooth(name, max((steep / h.steep) ** 2 * h.smoothing(name), 1e-6))
        h.steep = steep
    for name, bounded in penalties.items():
        steepest = float(getattr(c, name).abs().max()) / bounded
        largest = max(largest, steepest)
        saturated |= steepest >= 0.99 * h.rho
    for name, (index, t, _, bounded) in cells.items():
        lam, finite = h.smoothing(name), t[t.isfinite()]
        if bounded and not solver.dual:
            falls = u is not None and not h.once
            if worst > 1e-5:
                less = min(max(0.1 * before / worst, 0.25 if falls else 0.7), 1.0)
            else:
                less = 1.0
            lam = max(less * lam, 2 * estimated(name, index, t, u, h) / max(largest, 0.1 * h.rho))
        elif finite.numel() > 1 and not solver.dual:
            spread = float((finite - finite.mean()).square().mean().sqrt())
            lam = min(lam, max(0.3 * spread, 0.25 * lam))
        h.smooth(name, lam)
    h.weight = max(h.weight, 2 * largest)
    if saturated and worst > 1e-3 and worst > 0.5 * before:
        h.rho *= 4


def smoothness(G, w, times=8):
    """The gradient's Lipschitz constant near w along its steepest direction, by ``times`` power iterations
    on differences of gradients.
    """
    base = G(w).clone()
    direction, size, largest = base, 1e-3 * (1.0 + float(w.norm())), 0.0
    for _ in range(times):
        length = float(direction.norm())
        if not math.isfinite(length) or length == 0.0:
            break
        direction = (G(w + direction * (size / length)) - base) / size
        if math.isfinite(float(direction.norm())):
            largest = max(largest, float(direction.norm()))
    return largest
