"""The finish of a run: a deterministic method of multipliers on all rows, from the best stochastic point. The emitter copies it.

Each round minimises the smoothed problem at fixed centres by PANOC (Stella, Themelis, Sopasakis and Patrinos 2017): proximal
gradient steps, sped up by L-BFGS directions and safeguarded by the forward-backward envelope. Then the centres move to the
multipliers found (hscg-2020, section 2.3, allows any centre), so that no bias of the smoothing is left at the end.
"""

import math
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from fccomodel.algorithms._progress import merit, smoothness, summary

if TYPE_CHECKING:  # what the emitted program defines around this text
    HYPER: dict[str, Any] = {}
    whole: Any = None
    regulariser = blocks = project = evaluate = prepare_full = as_namespace = start = centres = solve = whole


def differentiated(data, c, h, count):
    """w -> value and gradient of ``whole``; ``count.passes`` says how often."""

    def at(w):
        count.passes += 1
        x = w.detach().clone().requires_grad_()
        with torch.enable_grad():
            value = whole(data, x, c, h)
        return float(value), torch.autograd.grad(value, x)[0]

    return at


def forward_backward(at, w, h, step):
    """The proximal gradient step from w, and the forward-backward envelope there."""
    value, gradient = at(w)
    while True:
        new = w - step * gradient
        project(new, step, h)
        move = new - w
        model = float(gradient @ move) + float(move @ move) / (2 * step)
        envelope = value + model + regulariser(new)
        if math.isfinite(envelope) or step < 1e-14:
            break
        step *= 0.1
    return SimpleNamespace(w=w, value=value, gradient=gradient, new=new, move=move, model=model, envelope=envelope, step=step)


def direction(pairs, residual):
    """-H residual, by the two loops of L-BFGS over pairs (change of w, change of the residual)."""
    d, left = -residual.clone(), []
    for s, y in reversed(pairs):
        a = float(s @ d) / float(s @ y)
        d -= a * y
        left.append(a)
    if pairs:
        s, y = pairs[-1]
        d *= float(s @ y) / float(y @ y)
    for (s, y), a in zip(pairs, reversed(left), strict=True):
        d += (a - float(y @ d) / float(s @ y)) * s
    return d


def panoc(at, w, h, step, tol, limit):
    """Minimise whole + regulariser from w until the fixed-point residual is ``tol`` or ``limit()`` says stop.

    Returns the point, its residual |w - prox(w - step grad)| / step, and the step.
    """
    pairs: list = []
    now = forward_backward(at, w, h, step)
    while True:
        size = float(now.move.norm()) / now.step
        if size <= tol or limit():
            return now.new, size, now.step
        while True:  # the step must be below 1/L near w
            ahead = forward_backward(at, now.new, h, now.step)
            if ahead.value <= now.value + now.model + 1e-12 * abs(now.value) or now.step < 1e-14:
                break
            now, pairs = forward_backward(at, now.w, h, 0.5 * now.step), []
        residual = -now.move / now.step
        d = direction(pairs, residual) if pairs else now.move
        enough, tau, after = now.envelope - 1e-4 * now.step * size**2, 1.0, ahead
        while pairs and tau > 0.05:
            tried = forward_backward(at, now.w + (1 - tau) * now.move + tau * d, h, now.step)
            if tried.envelope <= enough and tried.step == now.step:
                after = tried
                break
            tau *= 0.5
        s, y = after.w - now.w, -after.move / after.step - residual
        if float(s @ y) > 1e-12 * float(s.norm()) * float(y.norm()) and after.step == now.step:
            pairs = [*pairs[-14:], (s, y)]
        now = after


def shift_centres(data, w, c, h):
    """Moves the centres to the slopes at w. Returns by how much, in units of the functions' arguments; whether a multiplier is
    at its bound; and the largest one."""
    shifts, saturated, largest = {}, False, 0.0
    for name, (index, t, slope, bounded) in blocks(data, w).items():
        centre = getattr(c, name)
        index = index if index else (...,)
        new = slope(t, centre[index], h)
        new = torch.where(new.isfinite(), new, torch.zeros_like(new))
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
    shift of the centres to end at.
    """
    began = time.perf_counter()
    h = SimpleNamespace(**vars(found.h))
    c = SimpleNamespace(**{name: centre.to(data.device).double().clone() for name, centre in vars(found.c).items()})
    w = found.w.to(data.device).double().clone()
    count = SimpleNamespace(passes=0)
    at = differentiated(data, c, h, count)

    def limit():
        late = seconds is not None and time.perf_counter() - began > seconds
        return late or (passes is not None and count.passes >= passes) or (stop is not None and stop())

    value = summary(evaluate(data, w))
    weight = 2 * max(0.05 * h.rho, shift_centres(data, w, c, h)[2])
    largest = smoothness(lambda x: at(x)[1], w)
    step = 0.5 / largest if largest > 0 and math.isfinite(largest) else 1.0
    before: dict = {}
    best, best_value, rounds, error = w, value, 0, math.inf
    enough = max(tol, 0.1 * float(forward_backward(at, w, h, step).move.norm()) / step)
    history = list(found.history)
    while error > tol and not limit() and rounds < 100:
        rounds += 1
        w, residual, step = panoc(at, w, h, 2 * step, enough, limit)
        value = summary(evaluate(data, w))
        shifts, saturated, steepest = shift_centres(data, w, c, h)
        weight = max(weight, 2 * steepest)
        if merit(value, weight) <= merit(best_value, weight) + 1e-9 * (1 + abs(best_value[0])):
            best, best_value = w.clone(), value
        for name, shift in shifts.items():
            if shift > tol and shift > 0.5 * before.get(name, math.inf):
                setattr(h, "lam_" + name, 0.5 * getattr(h, "lam_" + name))
        if saturated and value[2] > tol:
            h.rho *= 4
        before, error = shifts, max([residual, value[2], *shifts.values()])
        enough = max(tol, min(enough, 0.3 * error))
        entry = {"stage": len(history) + 1, "iteration": found.iterations, "oracles": history[-1]["oracles"], "eta": step}
        entry |= {"objective": best_value[0], "violation": best_value[2], "merit": merit(best_value, weight), "kkt": error}
        history.append({**entry, "passes": count.passes, "seconds": found.seconds + time.perf_counter() - began})
        if progress is not None:
            progress(history[-1])
    reason = found.reason if error > tol else f"converged: stationarity, violation and shift of the multipliers at most {tol:g}"
    return SimpleNamespace(**{**vars(found), "w": best, "c": c, "h": h, "history": history, "exact": data, "passes": count.passes,
                              "reason": "interrupted" if stop is not None and stop() else reason})  # fmt: skip


def solve_then_finish(
    data, *, device="cpu", seconds=None, iterations=None, oracles=None, passes=None, typical=400, progress=None, stop=None, **more
):
    """``solve``, and ``finish`` in the rest of the time if a quarter of a typical number of passes fits into it; with
    ``passes``, that many. A budget of steps or oracle calls is the algorithm's alone: no finish then."""
    began = time.perf_counter()
    with torch.inference_mode(False), torch.no_grad():
        exact = prepare_full(as_namespace(data, device, torch.float64))
        if passes is None:
            passes = 0
            if seconds is not None and iterations is None and oracles is None:
                needed = typical * one_pass(exact, device)
                passes = None if needed < 1.6 * seconds else 0
    own = seconds if passes == 0 or seconds is None else max(0.15 * seconds, min(needed, 0.6 * seconds))
    limits = {"seconds": own, "iterations": iterations, "oracles": oracles}
    found = solve(data, device=device, progress=progress, stop=stop, **limits, **more)
    if passes == 0:
        return found
    with torch.inference_mode(False), torch.no_grad():
        left = None if seconds is None else seconds - (time.perf_counter() - began)
        return finish(found, exact, seconds=left, passes=passes, progress=progress, stop=stop)


def one_pass(data, device):
    """Seconds that ``whole`` and its gradient take, the second time."""
    at = differentiated(data, centres(device, torch.float64), SimpleNamespace(**HYPER), SimpleNamespace(passes=0))
    w = start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    at(w)
    began = time.perf_counter()
    at(w)
    return time.perf_counter() - began
