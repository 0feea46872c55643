"""The finish of a run: a deterministic method of multipliers on all rows, from the best stochastic point. The emitter copies it.

Each round minimises the smoothed problem at fixed centres by PANOC. Then the centres move to the multipliers found (hscg-2020,
section 2.3, allows any centre), so that no bias of the smoothing is left at the end: of penalties, of outer functions, and of
functions inside expectations, where each row has a centre of its own.
"""

import math
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from fccomodel.algorithms._failure import conflict, falls_for_ever, least_violation, stagnant, without_end
from fccomodel.algorithms._panoc import forward_backward, panoc
from fccomodel.algorithms._progress import merit, slope_at, smoothness, status, summary

if TYPE_CHECKING:  # what the emitted program defines around this text
    HYPER: dict[str, Any] = {}
    INSIDE: dict[str, tuple[int, ...]] = {}
    whole: Any = None
    regulariser = all_blocks = project = evaluate = start = centres = whole


def differentiated(data, c, h, count):
    """w -> value and gradient of ``whole``; ``count`` has their number, the last value and the size of the last w."""

    def at(w):
        count.passes += 1
        x = w.detach().clone().requires_grad_()
        with torch.enable_grad():
            value = whole(data, x, c, h)
        count.value, count.size = float(value), float(w.norm())
        return count.value, torch.autograd.grad(value, x)[0]

    return at


def centre_rows(data, w, c, h):
    """Centres for the functions inside expectations, one per row, smoothed on a tenth of their arguments' size."""
    found = all_blocks(data, w) if INSIDE else {}
    for name, shape in INSIDE.items():
        t = found[name][1]
        setattr(c, name, torch.zeros(shape, device=w.device, dtype=w.dtype))
        setattr(h, "lam_" + name, max(0.1 * float(t[t.isfinite()].square().mean().sqrt()), 1e-6))


def shift_centres(data, w, c, h):
    """Moves the centres to the slopes at w. Returns by how much, in units of the functions' arguments; whether a multiplier is
    at its bound; and the largest one."""
    shifts, saturated, largest = {}, False, 0.0
    for name, (index, t, slope, bounded) in all_blocks(data, w).items():
        centre = getattr(c, name)
        index = index if index else (...,)
        new = slope_at(t, slope, centre[index], h)
        shifts[name] = getattr(h, "lam_" + name) * float((new - centre[index]).abs().max())
        centre[index] = new
        if bounded:
            steepest = float(centre.abs().max()) / bounded
            largest = max(largest, steepest)
            saturated |= steepest >= 0.99 * h.rho
    return shifts, saturated, largest


def finish(found, data, *, seconds=None, passes=None, tol=1e-6, progress=None, stop=None):
    """Continue from what ``solve`` found, on ``data`` in float64; its point is replaced by one of as small a merit.

    ``passes`` bounds the evaluations of ``whole``, ``seconds`` the time; ``tol`` is the stationarity, the violation and the
    shift of the centres to end at. ``failure`` of what it returns names why there is no solution, with the evidence, or is None.
    """
    began = time.perf_counter()
    h = SimpleNamespace(**vars(found.h))
    c = SimpleNamespace(**{name: centre.to(data.device).double().clone() for name, centre in vars(found.c).items()})
    w = found.w.to(data.device).double().clone()
    centre_rows(data, w, c, h)
    count = SimpleNamespace(passes=0, value=0.0, size=0.0)
    at = differentiated(data, c, h, count)
    value = summary(evaluate(data, w))
    floor, ceiling = -1e10 * (1 + abs(value[0])), 1e9 * (1 + float(w.norm()))

    def endless():
        return count.value < floor or count.size > ceiling

    def limit():
        late = seconds is not None and time.perf_counter() - began > seconds
        return late or (passes is not None and count.passes >= passes) or (stop is not None and stop()) or endless()

    def prox(x, step):
        project(x, step, h)
        return regulariser(x)

    h.weight = weight = 2 * max(0.05 * h.rho, shift_centres(data, w, c, h)[2])
    largest = smoothness(lambda x: at(x)[1], w)
    step = 0.5 / largest if largest > 0 and math.isfinite(largest) else 1.0
    before: dict = {}
    best, best_value, rounds, error, failure = w, value, 0, math.inf, None
    raised, searched = [], False
    enough = max(tol, 0.1 * float(forward_backward(at, prox, w, step).move.norm()) / step)
    history = list(found.history)
    if value[2] > max(tol, 1e-4) and stagnant(history):
        least = least_violation(data, w, h, limit, count, 200)
        failure = conflict(least, max(tol, 1e-3 * value[2]), far=100.0)
        best = w if failure is None else least.w
    while error > tol and not limit() and rounds < 100 and failure is None:
        rounds += 1
        begin, last = w, count.passes + 500
        w, residual, step = panoc(at, prox, w, 2 * step, enough, lambda last=last: limit() or count.passes > last)
        value = summary(evaluate(data, w))
        if endless() and value[2] > 1e-6 * float(w.norm()):  # the penalty is too weak
            w, count.value, count.size, step = best.clone(), 0.0, 0.0, 0.1 * step
            h.rho *= 4
            continue
        shifts, saturated, steepest = shift_centres(data, w, c, h)
        h.weight = weight = max(weight, 2 * steepest)
        if merit(value, weight) <= merit(best_value, weight) + 1e-9 * (1 + abs(best_value[0])):
            best, best_value = w.clone(), value
        for name, shift in shifts.items():
            if shift > tol and shift > 0.5 * before.get(name, math.inf):
                setattr(h, "lam_" + name, 0.5 * getattr(h, "lam_" + name))
        if count.passes > last and falls_for_ever(data, w, w - begin, h, tol, limit, count) == "unbounded":
            failure = {"kind": "unbounded", "direction": w - begin}
        if saturated and value[2] > tol:
            h.rho *= 4
            raised.append(value[2])
        if len(raised) > 3 and raised[-1] > 0.3 * raised[0] and not searched:
            searched, least = True, least_violation(data, w, h, limit, count)
            if least.violation > max(1e-2 * tol, 1e-3 * raised[-1]) and not limit():
                best, failure = least.w, conflict(least, 0.0)
            else:
                w = least.w
        before, error = shifts, max([residual, value[2], *shifts.values()])
        enough = max(tol, min(enough, 0.3 * error))
        entry = {"stage": len(history) + 1, "iteration": found.iterations, "oracles": history[-1]["oracles"], "eta": step}
        entry |= {"objective": best_value[0], "violation": best_value[2], "merit": merit(best_value, weight), "kkt": error}
        history.append({**entry, "passes": count.passes, "seconds": found.seconds + time.perf_counter() - began})
        if progress is not None:
            progress(history[-1])
    if failure is not None:
        best_value = summary(evaluate(data, best))
    early = "the budget is used up" if found.status == "converged" else found.reason
    reason = early if error > tol else f"converged: stationarity, violation and shift of the multipliers at most {tol:g}"
    if failure is None:
        end = count.passes + 200
        further = panoc(at, prox, best, step, 1e-3 * tol, lambda: limit() or count.passes > end)[0] if error <= tol else best
        failure = without_end(data, best, further, h, tol, limit, count)
    reason = reason if failure is None else failure["kind"]
    ended = status(stop, error <= tol)
    reason = ended if ended == "interrupted" else reason
    more = {"w": best, "c": c, "h": h, "history": history, "exact": data, "passes": count.passes, "way": "finish"}
    return SimpleNamespace(**{**vars(found), **more, "failure": failure, "reason": reason, "status": ended})


def one_pass(data, device):
    """Seconds that ``whole`` and its gradient take, the least of a few times after the first."""
    h, c = SimpleNamespace(**HYPER), centres(device, torch.float64)
    w = start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    centre_rows(data, w, c, h)
    at = differentiated(data, c, h, SimpleNamespace(passes=0))
    at(w)
    taken: list = []
    while len(taken) < 5 and sum(taken) < 0.2:
        began = time.perf_counter()
        at(w)
        taken.append(time.perf_counter() - began)
    return min(taken)
