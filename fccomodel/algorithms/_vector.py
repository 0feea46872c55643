"""The loop around algorithms that work on all inner expectations as one vector F(w): minimise phi(F(w)) + R(w).

The emitter copies this source. An epoch is ``begin`` and a number of steps; after it the exact problem is evaluated, the best
point so far is kept, and the centres of the smoothing move to the slopes of phi there (hscg-2020, section 2.3). Epochs that
gain nothing shrink the step size; one that diverges is taken back. The result is the pair of hscg-2020, Lemma 3.1.
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
    CENTRED, COMPONENTS, SAMPLES, ROWS, BLOCK = True, 1, 1, 1, 64
    start: Any = None
    centres = draw = begin = update = project = inner = inner_full = outer = blocks = start

#: matrix: the largest Jacobian kept as a matrix, entries     probe: samples by which the first step size is found
#: look: steps of an epoch between exact evaluations           pass_limit: samples above which F is not computed exactly
#: but by algorithms that are made of full passes
DEFAULTS = {
    "eta": 0.0, "matrix": 4e6, "growth": 1.0, "shrink": 0.6, "gain": 1e-9, "patience": 8, "probe": 500, "look": 1000,
    "pass_limit": 1e7,
}  # fmt: skip
#: of algorithms whose noise does not vanish at a fixed step: steps fall like (1 + t / warm)^-power
NOISY = {"stage": 200, "longest": 4000, "growth": 1.3, "gain": 1e-4, "warm": 100.0}


def linearised(f, w):
    """f(w) in R^q; ``pull(s)`` = J(w)' s; ``matrix()`` = J(w), q x p; ``push(d)`` = J(w) d, by reverse differentiation."""
    x = w.detach().clone().requires_grad_()
    with torch.enable_grad():
        value = f(x)

    def pull(s):
        return torch.autograd.grad(value, x, s, retain_graph=True)[0]

    def matrix():
        rows = torch.eye(len(value), dtype=w.dtype, device=w.device)
        if len(rows) <= 8:  # fewer than it pays to batch
            return torch.stack([pull(s) for s in rows])
        rows = rows.split(32)  # so many passes backwards at once
        return torch.cat([torch.autograd.grad(value, x, s, retain_graph=True, is_grads_batched=True)[0] for s in rows])

    def push(d):
        with torch.enable_grad():
            s = torch.zeros_like(value).requires_grad_()
            back = torch.autograd.grad(value, x, s, create_graph=True)[0]
        return torch.autograd.grad(back, s, d, retain_graph=True)[0]

    return SimpleNamespace(value=value.detach(), pull=pull, matrix=matrix, push=push, taped=value, x=x)


def pulled(now, s, then, t):
    """J(now)' s - J(then)' t, in one pass backwards."""
    ahead, back = torch.autograd.grad((now.taped, then.taped), (now.x, then.x), (s, t))
    return ahead - back


def oracle_of(data, rng, c, state, h, late=lambda: False):
    """What a step may ask for; ``state.oracles`` counts the calls (one: the value and derivative of one g_i at one sample).

    batch()            the next minibatch                       sample(w, batch)   F(w; batch), linearised
    whole(w)           F(w) by a full pass, linearised          value(w)           F(w) alone
    pooled(w, batches) F(w) by several minibatches, linearised  many(w)            F(w) by a full pass, or 100 minibatches
    slope(w, u, gamma) the derivatives of phi in u and in w, its smoothing parameters times gamma
    phi(w, u)          its value                                prox(w, step)      prox_{step R}(w), a new vector
    keep               the Jacobian is kept as a q x p matrix; else, and where q > 128, products with it
    smoothing          phi has kinks                             share              of all samples in a minibatch
    late()             the budget is used up
    """
    ahead: list = []

    def batch():
        if not ahead:
            parts = draw(data, rng, BLOCK)
            ahead.extend(zip(*(part.unbind() for part in parts), strict=True) if parts else [()] * BLOCK)
        return ahead.pop(0)

    def sample(w, chosen):
        state.oracles += SAMPLES
        return linearised(lambda x: inner(data, x, chosen, h), w)

    def pooled(w, batches):
        state.oracles += SAMPLES * len(batches)
        return linearised(lambda x: sum(inner(data, x, chosen, h) for chosen in batches) / len(batches), w)

    def whole(w):
        state.oracles += ROWS
        return linearised(lambda x: inner_full(data, x, h), w)

    def many(w):
        if ROWS <= h.pass_limit:
            return whole(w)
        return pooled(w, [batch() for _ in range(min(100, math.ceil(h.pass_limit / SAMPLES)))])

    def value(w):
        state.oracles += ROWS
        return inner_full(data, w, h)

    def slope(w, u, gamma=1.0):
        scaled = h if gamma == 1 else SimpleNamespace(**{k: gamma * v if k[:5] == "lam_y" else v for k, v in vars(h).items()})
        y, x = u.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
        with torch.enable_grad():
            found = outer(data, x, y, c, scaled)
        return torch.autograd.grad(found, (y, x), allow_unused=True, materialize_grads=True)

    def phi(w, u):
        return outer(data, w, u, c, h)

    def prox(w, step):
        project(w, step, h)
        return w

    return SimpleNamespace(
        batch=batch, sample=sample, pooled=pooled, many=many, whole=whole, value=value, slope=slope, phi=phi, prox=prox,
        late=late,
        keep=COMPONENTS <= 128 and COMPONENTS * len(state.w) <= h.matrix, smoothing=CENTRED, share=min(1.0, SAMPLES / ROWS),
    )  # fmt: skip


def decayed(state, h, power):
    """(1 + t / warm)^-power."""
    return (1 + state.t / h.warm) ** -power


def first_step(G, F, w):
    """One over the gradient's Lipschitz constant near w, and along the first step."""
    largest, slope = smoothness(G, w), G(w)
    eta = 1.0 / largest if largest > 0 else 0.05
    for _ in range(40):
        ahead = F.prox(w - eta * slope, eta)
        if eta * float((G(ahead) - slope).norm()) <= 1.01 * float((ahead - w).norm()):
            break
        eta *= 0.5
    return eta


def refer(state, F, w):
    """The reference point of an epoch: F, its Jacobian (or its product with the slope of phi), exactly."""
    at = F.whole(w)
    s, _ = F.slope(w, at.value)
    state.reference, state.u_ref, state.s_ref = w.clone(), at.value, s
    state.J_ref = at.matrix() if F.keep else None
    state.v_ref = at.pull(s)


def corrected(state, F):
    """The gradient at w by values and Jacobians corrected at the reference point (ascvrg-2021, equations (3) to (5))."""
    batch = F.batch()
    now, then = F.sample(state.w, batch), F.sample(state.reference, batch)
    s, direct = F.slope(state.w, state.u_ref + now.value - then.value)
    if F.keep:
        return s @ state.J_ref + pulled(now, s, then, s) + direct
    return state.v_ref + pulled(now, s, then, state.s_ref) + direct


def begin_with(state, F, at):
    """F and its Jacobian at w as found ``at`` w, by a full pass or by many samples; returns the gradient."""
    state.s, direct = F.slope(state.w, at.value)
    state.u, state.J, state.v = at.value, at.matrix() if F.keep else None, at.pull(state.s)
    state.w_prev = state.w
    return state.v + direct


def hybrid(state, F, beta, gamma=1.0):
    """The gradient at w by the hybrid estimators of hscg-2020, equations (14) and (16): of F, and of its Jacobian or of the
    product with it. beta = 1: SARAH."""
    first = F.batch()
    now, then = F.sample(state.w, first), F.sample(state.w_prev, first)
    fresh = F.sample(state.w, F.batch()) if beta < 1 else now
    state.u = beta * (state.u + now.value - then.value) + (1 - beta) * fresh.value
    s, direct = F.slope(state.w, state.u, gamma)
    if F.keep:
        state.J = beta * (state.J + now.matrix() - then.matrix()) + (1 - beta) * fresh.matrix()
        state.v = s @ state.J
    else:
        state.v = beta * (state.v + pulled(now, s, then, state.s)) + (1 - beta) * fresh.pull(s)
    state.s = s
    return state.v + direct


def approximate_kkt(data, F, w, c, h):
    """hscg-2020, Lemma 3.1: the pair x = prox_{eta R}(w - eta grad), y = y*(F(x)), and a bound on its residual (8):
    dist(0, F'(x)' K y + dR(x)) + dist(0, K' F(x) - dpsi(y)) <= |r| + |lam (y - centre)|, with r as in (46)."""
    at = F.whole(w)
    s, direct = F.slope(w, at.value)
    gradient = at.pull(s) + direct
    x = F.prox(w - h.eta * gradient, h.eta)
    beyond = F.whole(x)
    s, direct = F.slope(x, beyond.value)
    residual = float(((w - x) / h.eta + beyond.pull(s) + direct - gradient).norm())
    gap = 0.0
    for name, (index, t, slope, _) in blocks(data, x.to(torch.float64)).items():
        centre = getattr(c, name)[index if index else (...,)].to(t.dtype)
        moved = getattr(h, "lam_" + name) * (slope(t, centre, h) - centre)
        gap += float(moved[moved.isfinite()].square().sum())
    return SimpleNamespace(w=x, epsilon=residual + math.sqrt(gap))


def gradients(data, w, c, h, rng):
    """The gradients at w by one minibatch after another, the slope of phi at the mean of their values so far."""
    data = SimpleNamespace(**{**vars(data), "waiting": {}})
    F, u, k = oracle_of(data, rng, c, SimpleNamespace(w=w, oracles=0), h), 0.0, 0
    while True:
        at, k = F.sample(w, F.batch()), k + 1
        u = u + (at.value - u) / k
        s, direct = F.slope(w, u)
        yield at.pull(s) + direct


def solve(
    data, *, seed=0, device="cpu", dtype=torch.float32, seconds=30.0, iterations=None, oracles=None, progress=None, stop=None,
    tol=None, exact=None,
):  # fmt: skip
    """Run to the end of the budget, or until epochs gain nothing more, or until the KKT residual is at most ``tol`` in two looks
    running. Returns the best point seen (``h.decay``: the last).

    ``broken`` is the step by which iterates were not finite (their epoch was taken back), or None.
    """
    began = time.perf_counter()
    ended = ending(began, stop, seconds, iterations, oracles)
    exact, quick, data = opened(data, device, dtype, exact)
    rng = torch.Generator(device=device).manual_seed(seed)
    h, c = SimpleNamespace(**HYPER), centres(device, dtype)
    fixed = h.theory or h.decay
    state = SimpleNamespace(w=start(rng, device, dtype), oracles=0, t=0, epoch=0)
    count = 0
    F = oracle_of(data, rng, c, state, h, lambda: ended(count, state.oracles) != "")
    few = [F.batch() for _ in range(math.ceil(h.probe / SAMPLES))] if ROWS > h.probe else []

    def G(x):
        at = F.pooled(x, few) if few else F.whole(x)
        s, direct = F.slope(x, at.value)
        return at.pull(s) + direct

    def minibatches(x, y, held):
        return gradients(data, x, y, held, torch.Generator(device=device).manual_seed(seed + 1 + count))

    leave_flat_start(state.w, G, rng)
    if CENTRED and not h.theory:
        scale_smoothing(quick, state.w.to(quick.dtype), c, h, G, dtype)
    if h.eta <= 0:
        h.eta = first_step(G, F, state.w)
    looked = time.perf_counter()
    value, h.weight, first_eta = value_at(quick, state.w), 0.1 * h.rho, h.eta
    watch = watching(tol, 8 * (time.perf_counter() - looked))
    best, best_value, worst, first_value = state.w.clone(), value, value[2], merit(value, h.weight)
    history: list = []
    left, length, calm, reason, broken = 0, h.stage, 0, "", None
    while not reason:
        if not left:
            state.length, average, held = length, state.w.clone(), merit(best_value, h.weight)
            begin(state, F, h)
            left = state.length
        for _ in range(min(left, h.look)):
            if h.decay:
                h.eta = first_eta * tenfold(max(count / (iterations or math.inf), state.oracles / (oracles or math.inf)))
            update(state, F, h)
            state.t += 1
            count += 1
            left -= 1
            average.lerp_(state.w, 1.0 / max(1, state.length - left + 1 - state.length // 2))
            reason = ended(count, state.oracles)
            if reason:
                break
        last = value_at(quick, state.w)
        value, chosen = least(quick, [state.w] if h.decay else [state.w, average], h.weight)
        if merit(value, h.weight) < merit(best_value, h.weight) or h.decay:
            best, best_value = chosen.clone(), value
        finite = math.isfinite(float(state.w.sum()))
        if broken is None and not finite:
            broken = count
        if not left or not finite:
            left, before, worst = 0, worst, last[2]
            state.epoch += 1
            calm = 0 if held - merit(best_value, h.weight) >= h.gain * abs(merit(best_value, h.weight)) else calm + 1
            if calm and not fixed:
                h.eta *= h.shrink
            if not fixed and not merit(last, h.weight) <= first_value + 0.1 * abs(first_value):
                state.w, state.t, state.epoch = best.clone(), 0, 0
                h.eta *= 0.5
            length = min(int(length * h.growth), h.longest)
            if CENTRED and not fixed:
                move_centres(quick, state.w.to(quick.dtype), c, h, worst, before, G, dtype)
        seen = observe(watch, exact, best, best_value, c, h, time.perf_counter() - began, minibatches)
        record(history, progress, began, best_value, h.weight, iteration=count, oracles=state.oracles, eta=h.eta, **seen)
        reason = reason or (not fixed and reached(watch)) or ""
        if not reason and calm >= h.patience and not fixed:
            reason = "epochs gain nothing more"
    pair = approximate_kkt(exact, F, best, c, h) if ROWS <= h.pass_limit else None
    if pair is not None and not h.decay and merit(value_at(quick, pair.w), h.weight) <= merit(best_value, h.weight):
        best = pair.w
    if CENTRED and fixed:
        centre_at(exact, best.double(), c, h)
    w = best.double()
    project(w, 0.0, h)  # to double precision
    return SimpleNamespace(
        w=w, c=c, h=h, eta=first_eta, history=history, iterations=count, seconds=time.perf_counter() - began,
        reason=reason, status=status(stop, not fixed and watch.held >= 2), broken=broken, exact=exact,
        epsilon=pair and pair.epsilon,
    )  # fmt: skip
