"""The loop around an algorithm's step: stages, the best point so far, step sizes, centres. The emitter copies this source.

A stage is a run of steps from the best point, the step size falling towards its end. Then the exact problem is evaluated at
the last iterate and at the average of the stage's second half; the better of them is kept if it improves on the best so
far, otherwise the step size is halved. After it the centres of the smoothing move to the multipliers seen (hscg-2020,
section 2.3, allows any centre), which takes away the bias of the smoothed hinge.
"""

import math
import time
from types import SimpleNamespace

import torch


def copy_state(state):
    """Iterates and moments, so that a stage can be taken back."""
    return SimpleNamespace(w=state.w.clone(), w_prev=state.w_prev.clone(), v=state.v.clone(), s=state.s.clone())


def thinned(data):
    """The same data with fewer rows where pairs are many: evaluations between stages use these, the final one does not."""
    if not THIN:
        return data
    quick = SimpleNamespace(**vars(data))
    rng = torch.Generator(device=data.device).manual_seed(1)
    for key, count in THIN.items():
        rows = getattr(data, key)
        chosen = torch.randperm(len(rows), generator=rng, device=data.device)[:count]
        setattr(quick, key, rows[chosen.sort().values])
    return quick


def merit(values, rho):
    """Objective plus exact penalty, and the largest violation; infinite where anything is not finite."""
    objective, constraints = values
    violations = [t.abs() if kind == "eq" else t.clamp(min=0) for kind, t in constraints.values()]
    worst = max((float(t.max()) for t in violations), default=0.0)
    total = float(objective) + rho * sum(float(t.sum()) for t in violations)
    return (total if math.isfinite(total) else math.inf), worst


def scale_penalty(data, w, c, h, G):
    """Smoothing from the size of the arguments at the start; rho from the ratio of the objective's gradient to the constraints'."""
    arguments = blocks(data, w)
    for name, (_, t, _, _) in arguments.items():
        finite = t[t.isfinite()]
        size = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
        setattr(h, "lam_" + name, max(0.1 * size, 1e-6))
    penalised = [name for name, (_, _, _, bounded) in arguments.items() if bounded]
    if not penalised:
        return
    rho, h.rho = h.rho, 1e-9
    free = G()
    h.rho = 1.0
    ratio = float(free.norm() / (G() - free).norm().clamp(min=1e-12))
    h.rho = rho
    if math.isfinite(ratio) and 1e-6 < ratio < 1e6:
        h.rho = rho * max(1.0, ratio)
    for name in penalised:
        setattr(h, "lam_" + name, max(10 * getattr(h, "lam_" + name) / max(0.1 * h.rho, 1e-6), 1e-6))


def move_centres(data, w, c, h, worst, before):
    """c <- the slope of the smoothed function at the exact argument. Smoothing follows the spread of the arguments, and is
    halved for penalties whose violation does not fall; returns whether a multiplier sits at its bound."""
    saturated = False
    for name, (index, t, slope, bounded) in blocks(data, w).items():
        lam, centre = "lam_" + name, getattr(c, name)
        index = index if index else (...,)
        new = slope(t, centre[index].to(t.dtype), h)
        centre[index] = torch.where(new.isfinite(), new, torch.zeros_like(new)).to(centre.dtype)
        finite = t[t.isfinite()]
        if bounded:
            saturated |= bool((new.abs() >= 0.99 * h.rho * bounded).any())
            if worst > 1e-5 and worst > 0.5 * before:
                setattr(h, lam, 0.5 * getattr(h, lam))
        elif finite.numel() > 1:
            spread = float((finite - finite.mean()).square().mean().sqrt())
            setattr(h, lam, min(getattr(h, lam), max(0.3 * spread, 0.25 * getattr(h, lam))))
    return saturated


def smoothness(G, w):
    """The gradient's Lipschitz constant near w along its steepest direction: power iteration on differences of gradients."""
    base = G(w).clone()
    direction, size, found = base, 1e-3 * (1.0 + float(w.norm())), 0.0
    for _ in range(8):
        length = float(direction.norm())
        if not math.isfinite(length) or length == 0.0:
            break
        direction = (G(w + direction * (size / length)) - base) / size
        found = max(found, float(direction.norm())) if math.isfinite(float(direction.norm())) else found
    return found


def solve(data, *, seed=0, device="cpu", dtype=torch.float32, seconds=30.0, iterations=None, progress=None, stop=None):
    """Run to the end of the budget, or until stages gain nothing more. Returns the best point seen."""
    began = time.perf_counter()
    exact = prepare_full(as_namespace(data, device, torch.float64))
    quick = thinned(exact)
    data = prepare(as_namespace(data, device, dtype))
    rng = torch.Generator(device=device).manual_seed(seed)
    h = SimpleNamespace(**HYPER)
    w = start(rng, device, dtype)
    state = SimpleNamespace(w=w, w_prev=w.clone(), v=torch.zeros_like(w), s=torch.zeros_like(w))
    u, c = buffers(device, dtype), centres(device, dtype)
    first = [part[0] for part in draw(data, rng, 1)]
    if CENTRED:
        scale_penalty(quick, w.double(), c, h, lambda: gradient(data, w, w, u, c, first, h))
    if h.eta <= 0:
        largest = smoothness(lambda x: gradient(data, x, x, buffers(device, dtype), c, first, h), w)
        h.eta = 1.0 / largest if largest > 0 else 0.05
    u = buffers(device, dtype)
    best_merit, worst = merit(evaluate(quick, w.double()), h.rho)
    best, best_violation = copy_state(state), worst
    average = w.clone()
    history, count, stage, length, calm, eta = [], 0, 0, h.stage, 0, h.eta
    reason = ""
    while not reason:
        done, kept = 0, 0
        while done < length and not reason:
            size = min(BLOCK, length - done)
            batches = draw(data, rng, size)
            h.eta = eta * (1 - 0.95 * done / length)
            for k in range(size):
                G = gradient(data, state.w, state.w_prev, u, c, [part[k] for part in batches], h)
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
        candidates = [(merit(evaluate(quick, x.double()), h.rho), x) for x in ([state.w, average] if kept else [state.w])]
        (value, worst), chosen = min(candidates, key=lambda pair: pair[0][0])
        gain = best_merit - value
        before = best_violation
        if gain > 0:
            best_merit, best_violation = value, worst
            state.w.copy_(chosen)
            best = copy_state(state)
        elif not math.isfinite(value) or not CENTRED:
            state = copy_state(best)
            state.v.zero_()
        if gain < h.tol * abs(best_merit):
            eta *= 0.6
            calm += 1
        else:
            calm = 0
        length = min(int(length * 1.3), h.longest)
        state.w_prev.copy_(state.w)
        if CENTRED and math.isfinite(value):
            saturated = move_centres(quick, state.w.double(), c, h, worst, before)
            if saturated and worst > 1e-3 and worst > 0.5 * before:
                h.rho *= 4
                best_merit, best_violation = merit(evaluate(quick, best.w.double()), h.rho)
        elapsed = time.perf_counter() - began
        history.append(
            {"stage": stage, "iteration": count, "merit": best_merit, "violation": best_violation, "eta": eta, "seconds": elapsed}
        )
        if progress is not None:
            progress(history[-1])
        if not reason and calm >= h.patience:
            reason = "stages gain nothing more"
    return SimpleNamespace(
        w=best.w.double(),
        c=c,
        h=h,
        history=history,
        iterations=count,
        seconds=time.perf_counter() - began,
        reason=reason,
        exact=exact,
    )
