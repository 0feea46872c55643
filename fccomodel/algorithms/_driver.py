"""The loop around an algorithm's step: stages, the best point so far, step sizes, centres. The emitter copies this source.

A stage is a run of steps from the best point, step size and gamma falling towards its end, no later than the budget's.
Then the exact problem is evaluated at the last iterate and at the average of the stage's second half; the better of them is
kept if it improves on the best so far, otherwise ``next_stage`` shrinks step size and gamma. After it the centres of the
smoothing move to the multipliers seen (hscg-2020, section 2.3, allows any centre), which takes away the bias of the smoothed
hinge.

By the constants of a theorem (``h.theory``) stages are places to look alone: step size, smoothing and iterates go on as they
are, and the average is that of the whole run. Where steps decay with the budget (``h.decay``) the last iterate is returned,
and nothing else changes. Where steps descend another problem (``h.blind``) no point is kept or left by this one's values.
``step_sizes``, ``begin``, ``advance``, ``falling``, ``next_stage`` are the algorithm's.
"""

import math
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from fccomodel.algorithms._progress import (
    centre_at,
    ending,
    least,
    leave_flat_start,
    merit,
    move_centres,
    opened,
    record,
    scale_smoothing,
    smoothness,
    status,
    tenfold,
    value_at,
)
from fccomodel.algorithms._residual import observe, reached, watching

if TYPE_CHECKING:  # what the emitted program defines around this text
    HYPER: dict[str, Any] = {}
    BLOCK, CENTRED, ORACLES, OWN = 1, True, 1, 0
    start: Any = None
    buffers = centres = draw = gradient = project = step_sizes = begin = advance = falling = next_stage = start


def copy_state(state):
    """All that the step keeps, so that a stage can be taken back."""
    return SimpleNamespace(**{k: x.clone() if torch.is_tensor(x) else x for k, x in vars(state).items()})


def drawn(data, rng, count):
    """So many minibatches, one after another."""
    parts = draw(data, rng, count)
    return list(zip(*(part.unbind() for part in parts), strict=True)) if parts else [()] * count


def gradients(data, w, c, h, rng):
    """The gradients at w by one minibatch after another, each with estimates of its own."""
    data = SimpleNamespace(**{**vars(data), "waiting": {}})
    u = buffers(w.device, w.dtype)
    while True:
        for batch in drawn(data, rng, BLOCK):
            yield gradient(data, w, w, u, copy_state(c), batch, h)


def inverse_smoothness(G, w, value=None):
    """One over the gradient's Lipschitz constant at w, constraints active; no further than a first step goes downhill, by the
    gradient at its end, or by ``value(w)`` where gradients jump."""
    largest = max(smoothness(G, w), smoothness(lambda x: G(x, 1.0), w) if CENTRED else 0.0)
    step, slope = 1.0 / largest if largest > 0 else 0.05, G(w)
    for _ in range(40):
        ahead = w - step * slope
        if (float(G(ahead) @ slope) >= 0) if value is None else value(ahead) <= value(w):
            break
        step *= 0.5
    return step


def solve(
    data, *, seed=0, device="cpu", dtype=torch.float32, seconds=30.0, iterations=None, oracles=None, progress=None, stop=None,
    tol=None, exact=None,
):  # fmt: skip
    """Run to the end of the budget, or until stages gain nothing more, or until the KKT residual is at most ``tol`` in two of
    them running. Returns the best point seen (``h.decay``: the last).

    ``oracles`` bounds the values g_i(w; xi) that steps ask for; evaluations between stages are no part of the algorithm.
    ``broken`` is the step by which iterates were not finite (the loop went back to the best point), or None.
    """
    began = time.perf_counter()
    if oracles is not None:
        iterations = min(iterations or math.inf, max(1, int(oracles // max(ORACLES, 1))))
    ended = ending(began, stop, seconds, iterations)
    exact, quick, data = opened(data, device, dtype, exact)
    rng = torch.Generator(device=device).manual_seed(seed)
    h = SimpleNamespace(**HYPER)
    fixed = h.theory or h.decay
    w = start(rng, device, dtype)
    state = SimpleNamespace(w=w, w_prev=w.clone())
    c = centres(device, dtype)
    few = drawn(data, rng, min(8, math.ceil(256 / max(ORACLES, 1))))

    def G(x, y=None, few=few):
        held = copy_state(c) if y is None else SimpleNamespace(**{k: torch.full_like(v, y) for k, v in vars(c).items()})
        return sum(gradient(data, x, x, buffers(device, dtype), copy_state(held), batch, h) for batch in few) / len(few)

    def minibatches(x, y, held):
        return gradients(data, x, y, held, torch.Generator(device=device).manual_seed(seed + 1 + count))

    leave_flat_start(w, G, rng)
    state.w_prev.copy_(w)
    if CENTRED and not h.theory:
        scale_smoothing(quick, w.to(quick.dtype), c, h, G, dtype)

    def inverse(jumps=False):
        value = (lambda x: merit(value_at(quick, x), h.rho)) if jumps else None
        return inverse_smoothness(lambda x, y=None: G(x, y, few[:1]), w, value)

    step_sizes(h, inverse)
    h.peak = first_eta = h.eta
    h.weight = 0.1 * h.rho
    begin(state, h)
    u = buffers(device, dtype)
    looked = time.perf_counter()
    value = value_at(quick, w)
    watch = watching(tol, 8 * (time.perf_counter() - looked))
    best, best_value, worst, best_c, rho = copy_state(state), value, value[2], copy_state(c), h.rho
    average = w.clone()
    history: list = []
    count, calm, kept, reason, broken = 0, 0, 0, "", None
    while not reason:
        done, state.met, kept = 0, 0, kept if h.theory else 0
        length = max(h.stage, iterations // 50) if h.decay else min(h.stage, (iterations or math.inf) - count)
        while done < length and not reason:
            size = min(BLOCK, length - done)
            h.eta = h.peak
            now = h if fixed else falling(h, max(1 - done / length, 0.02))
            for batch in drawn(data, rng, size):
                if h.decay:
                    h.eta = h.peak * tenfold((count + done) / iterations)
                advance(data, state, u, c, batch, now)
                if h.theory or (2 * done >= length and not h.decay):
                    kept += 1
                    average.lerp_(state.w, 1.0 / kept)
                done += 1
                reason = ended(count + done)
                if reason:
                    break
            if broken is None and not math.isfinite(float(state.w.sum())):
                broken = count + done
        count += done
        value, chosen = least(quick, [state.w, average] if kept else [state.w], h.weight)
        gain, before, worst = merit(best_value, h.weight) - merit(value, h.weight), worst, value[2]
        finite = math.isfinite(value[0])
        if finite and not fixed:
            state.w.copy_(chosen)
        if gain > 0 or h.decay or h.blind:
            best, best_value, best_c, rho = copy_state(state), value, copy_state(c), h.rho
            best.w.copy_(chosen)
        elif not fixed and not (finite and CENTRED):
            # the estimates belong to the point that is left; what reformulations added has no place in its objective and stays
            added = state.w[OWN:].clone()
            state, c, u = copy_state(best), copy_state(best_c), buffers(device, dtype)
            if finite:
                state.w[OWN:] = added
            begin(state, h)
        gained = h.blind or gain >= h.gain * abs(merit(best_value, h.weight))
        calm = 0 if gained else calm + 1
        if not h.decay:
            next_stage(h, gained, worst)
        if not fixed:
            state.w_prev.copy_(state.w)
        if CENTRED and finite and not fixed:
            move_centres(quick, state.w.to(quick.dtype), c, h, worst, before, G, dtype, u)
        eta = h.eta if h.decay else h.peak
        seen = observe(watch, exact, best.w, best_value, c, h, time.perf_counter() - began, minibatches)
        record(history, progress, began, best_value, h.weight, iteration=count, oracles=count * ORACLES, eta=eta, **seen)
        reason = reason or (not fixed and reached(watch)) or ""
        if not reason and not fixed and calm >= h.patience:
            reason = "stages gain nothing more"
    if CENTRED and fixed:
        centre_at(exact, best.w.double(), c, h)
    h.rho, w = rho, best.w.double()
    project(w, 0.0, h)  # to double precision
    return SimpleNamespace(
        w=w, c=c, h=h, eta=first_eta, history=history, iterations=count, seconds=time.perf_counter() - began,
        reason=reason, status=status(stop, not fixed and watch.held >= 2), broken=broken, exact=exact,
    )  # fmt: skip
