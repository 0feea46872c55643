"""The loop around an algorithm's step: stages, the best point so far, step sizes, centres. The emitter copies this source.

A stage is a run of steps with fixed parameters from the best point. After it the exact problem is evaluated at the last
iterate and at the average of the stage's second half; the better of them is kept if it improves on the best so far,
otherwise the step shrinks and the next stage starts from the best point again. Then the centres of the smoothing move to
the multipliers seen (hscg-2020, section 2.3, allows any centre), which takes away the bias of the smoothed hinge.
"""

import math
import time
from types import SimpleNamespace

import torch


def copy_state(state):
    """Iterates and moments, so that a stage can be taken back."""
    return SimpleNamespace(w=state.w.clone(), w_prev=state.w_prev.clone(), v=state.v.clone(), s=state.s.clone())


def merit(values, rho):
    """Objective plus exact penalty, and the largest violation; infinite where anything is not finite."""
    objective, constraints = values
    violations = [t.abs() if kind == "eq" else t.clamp(min=0) for kind, t in constraints.values()]
    worst = max((float(t.max()) for t in violations), default=0.0)
    total = float(objective) + rho * sum(float(t.sum()) for t in violations)
    return (total if math.isfinite(total) else math.inf), worst


def move_centres(data, w, c, h, first):
    """c <- the slope of the smoothed function at the exact argument; lam follows the spread of the arguments. Returns saturation."""
    saturated = False
    for name, (index, t, slope, bounded) in blocks(data, w).items():
        lam = "lam_" + name
        finite = t[t.isfinite()]
        spread = float((finite - finite.mean()).square().mean().sqrt()) if finite.numel() > 1 else 0.0
        size = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
        if first:
            setattr(h, lam, max(0.1 * size, 1e-6))
        elif not bounded and spread > 0:
            setattr(h, lam, min(getattr(h, lam), max(0.3 * spread, 0.25 * getattr(h, lam))))
        if not first:
            centre = getattr(c, name)
            key = index if index else (...,)
            new = slope(t + 0, centre[key].to(t.dtype), h)
            if bounded:
                saturated |= bool((new.abs() >= 0.99 * h.rho * bounded).any())
            centre[key] = torch.where(new.isfinite(), new, torch.zeros_like(new)).to(centre.dtype)
    return saturated


def solve(data, *, seed=0, device="cpu", dtype=torch.float32, seconds=30.0, iterations=None, progress=None, stop=None):
    """Run to the end of the budget, or until steps have become small without progress. Returns the best point seen."""
    began = time.perf_counter()
    exact = prepare_full(as_namespace(data, device, torch.float64))
    data = prepare(as_namespace(data, device, dtype))
    rng = torch.Generator(device=device).manual_seed(seed)
    h = SimpleNamespace(**HYPER)
    w = start(rng, device, dtype)
    state = SimpleNamespace(w=w, w_prev=w.clone(), v=torch.zeros_like(w), s=torch.zeros_like(w))
    u, c = buffers(device, dtype), centres(device, dtype)
    if CENTRED:
        move_centres(exact, w.double(), c, h, True)
    best_merit, worst = merit(evaluate(exact, w.double()), h.rho)
    best, best_violation = copy_state(state), worst
    average = w.clone()
    history, step_count, stage, length, calm = [], 0, 0, h.stage, 0
    reason = "the step size has become small"
    eta_start = h.eta
    while True:
        done, count = 0, 0
        while done < length:
            batches = draw(data, rng, min(BLOCK, length - done))
            for k in range(min(BLOCK, length - done)):
                G = gradient(data, state.w, state.w_prev, u, c, [part[k] for part in batches], h)
                state.w_prev.copy_(state.w)
                size = update(state, G, h)
                project(state.w, size, h)
                if 2 * (done + k) >= length:
                    count += 1
                    average.lerp_(state.w, 1.0 / count)
            done += min(BLOCK, length - done)
            elapsed = time.perf_counter() - began
            out = (seconds is not None and elapsed > seconds) or (iterations is not None and step_count + done >= iterations)
            if out or (stop is not None and stop()):
                reason = "interrupted" if not out else "the budget is used up"
                break
        step_count += done
        stage += 1
        ended = done < length or reason != "the step size has become small"
        candidates = [(merit(evaluate(exact, x.double()), h.rho), x) for x in (state.w, average)]
        (value, worst), chosen = min(candidates, key=lambda pair: pair[0][0])
        gained = best_merit - value
        better = gained > 0
        small = gained < h.tol * max(1e-12, abs(best_merit))
        if better:
            best_merit, best_violation = value, worst
            state.w.copy_(chosen)
            best = copy_state(state)
        else:
            state = copy_state(best)
            state.v.zero_()
        if small:
            h.eta *= 0.5
            calm += 1
        else:
            calm = 0
        length = min(int(length * 1.2), h.longest)
        state.w_prev.copy_(state.w)
        if CENTRED and not ended:
            if move_centres(exact, state.w.double(), c, h, False):
                h.rho *= 4
                best_merit, best_violation = merit(evaluate(exact, state.w.double()), h.rho)
        elapsed = time.perf_counter() - began
        history.append(
            {
                "stage": stage,
                "iteration": step_count,
                "merit": best_merit,
                "violation": best_violation,
                "eta": h.eta,
                "seconds": elapsed,
            }
        )
        if progress is not None:
            progress(history[-1])
        if ended:
            break
        if h.eta < 1e-5 * eta_start or calm >= 12:
            break
    final = best.w.double()
    if CENTRED:
        move_centres(exact, final, c, h, False)
    return SimpleNamespace(
        w=final, c=c, h=h, history=history, iterations=step_count, seconds=time.perf_counter() - began, reason=reason, exact=exact
    )
