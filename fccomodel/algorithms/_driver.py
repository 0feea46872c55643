"""The loop around an algorithm's step: stages, the best point so far, step sizes, centres. The emitter copies this source.

A stage is a run of steps from the best point, the step size falling towards its end. Then the exact problem is evaluated at
the last iterate and at the average of the stage's second half; the better of them is kept if it improves on the best so
far, otherwise step size and gamma shrink. After it the centres of the smoothing move to the multipliers seen (hscg-2020,
section 2.3, allows any centre), which takes away the bias of the smoothed hinge.
"""

import math
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from fccomodel.algorithms._progress import merit, move_centres, scale_smoothing, smoothness, summary, thinned

if TYPE_CHECKING:  # what the emitted program defines around this text
    HYPER: dict[str, Any] = {}
    BLOCK, CENTRED, HEAVY = 1, True, False
    as_namespace: Any = None
    prepare = prepare_full = start = buffers = centres = draw = gradient = update = project = evaluate = as_namespace


def copy_state(state):
    """Iterates and moments, so that a stage can be taken back."""
    return SimpleNamespace(w=state.w.clone(), w_prev=state.w_prev.clone(), v=state.v.clone(), s=state.s.clone())


def shrink_gamma(h):
    """Estimates average over a longer window; gamma' = 1 - gamma stays so."""
    paired = abs(getattr(h, "gamma_prime", 0.0) + h.gamma - 1.0) < 1e-9
    h.gamma = max(0.7 * h.gamma, min(h.gamma, 0.05))
    if paired:
        h.gamma_prime = 1.0 - h.gamma


def solve(data, *, seed=0, device="cpu", dtype=torch.float32, seconds=30.0, iterations=None, progress=None, stop=None):
    """Run to the end of the budget, or until stages gain nothing more. Returns the best point seen."""
    began = time.perf_counter()
    exact = prepare_full(as_namespace(data, device, torch.float64))
    quick = thinned(prepare_full(as_namespace(data, device, dtype)) if HEAVY else exact)
    data = prepare(as_namespace(data, device, dtype))
    rng = torch.Generator(device=device).manual_seed(seed)
    h = SimpleNamespace(**HYPER)
    w = start(rng, device, dtype)
    state = SimpleNamespace(w=w, w_prev=w.clone(), v=torch.zeros_like(w), s=torch.zeros_like(w))
    c = centres(device, dtype)
    first = [part[0] for part in draw(data, rng, 1)]

    def G(x):
        return gradient(data, x, x, buffers(device, dtype), c, first, h)

    if CENTRED:
        scale_smoothing(quick, w.to(quick.dtype), c, h, G, dtype)
    if h.eta <= 0:
        largest = smoothness(G, w)
        h.eta = 1.0 / largest if largest > 0 else 0.05
    u = buffers(device, dtype)
    value, weight = summary(evaluate(quick, w.to(quick.dtype))), 0.1 * h.rho
    best, best_value, worst = copy_state(state), value, value[2]
    average = w.clone()
    history, count, stage, length, calm, eta, first_eta = [], 0, 0, h.stage, 0, h.eta, h.eta
    reason = ""
    while not reason:
        done, kept = 0, 0
        while done < length and not reason:
            left = length if iterations is None else min(length, iterations - count)
            size = min(BLOCK, left - done)
            batches = draw(data, rng, size)
            h.eta = eta * max(1 - done / length, 0.02)
            steps = zip(*(part.unbind() for part in batches), strict=True) if batches else [()] * size
            for k, batch in enumerate(steps):
                G = gradient(data, state.w, state.w_prev, u, c, batch, h)
                state.w_prev.copy_(state.w)
                project(state.w, update(state, G, h), h)
                if 2 * (done + k) >= length:
                    kept += 1
                    average.lerp_(state.w, 1.0 / kept)
            done += size
            elapsed = time.perf_counter() - began
            if stop is not None and stop():
                reason = "interrupted"
            elif (seconds is not None and elapsed > seconds) or (iterations is not None and count + done >= iterations):
                reason = "the budget is used up"
        count += done
        stage += 1
        candidates = [(summary(evaluate(quick, x.to(quick.dtype))), x) for x in ([state.w, average] if kept else [state.w])]
        value, chosen = min(candidates, key=lambda pair: merit(pair[0], weight))
        gain, before, worst = merit(best_value, weight) - merit(value, weight), worst, value[2]
        finite = math.isfinite(value[0])
        if finite:
            state.w.copy_(chosen)
        if gain > 0:
            best, best_value = copy_state(state), value
        elif not finite or not CENTRED:
            state, u = copy_state(best), buffers(device, dtype)  # the estimates belong to the point that is left
            state.v.zero_()
        if gain < h.tol * abs(merit(best_value, weight)):
            eta *= 0.6
            shrink_gamma(h)
            calm += 1
        else:
            calm = 0
        length = min(int(length * 1.3), h.longest)
        state.w_prev.copy_(state.w)
        if CENTRED and finite:
            saturated, largest = move_centres(quick, state.w.to(quick.dtype), c, h, worst, before)
            weight = max(weight, 2 * largest)
            if saturated and worst > 1e-3 and worst > 0.5 * before:
                h.rho *= 4
        elapsed = time.perf_counter() - began
        entry = {"stage": stage, "iteration": count, "objective": best_value[0], "violation": best_value[2], "eta": eta}
        history.append({**entry, "merit": merit(best_value, weight), "seconds": elapsed})
        if progress is not None:
            progress(history[-1])
        if not reason and calm >= h.patience:
            reason = "stages gain nothing more"
    elapsed = time.perf_counter() - began
    return SimpleNamespace(
        w=best.w.double(), c=c, h=h, eta=first_eta, history=history, iterations=count, seconds=elapsed, reason=reason, exact=exact
    )
