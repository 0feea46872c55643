"""The parts of a step that algorithms share; the emitter copies those that a plan uses."""

from __future__ import annotations

import math

from fccomodel.algorithms.runtime.loops.settings import BlockSettings
from fccomodel.algorithms.runtime.loops.solver import BlockSolver
from fccomodel.core.lazy import torch


def begin(state, h):
    """Set v and s to zero."""
    state.v, state.s = torch.zeros_like(state.w), torch.zeros_like(state.w)


def begin_late(state, h):
    """Set v and s to zero, and the step count t to infinity.

    torch's Adam divides v and s by 1 - (1 - beta)^t and 1 - (1 - beta')^t, which are 1 at t = infinity.
    """
    begin(state, h)
    state.late = torch.full((), math.inf, dtype=torch.float32, device=state.w.device)


def advance(solver: BlockSolver, data, state, u, c, batch, h: BlockSettings):
    """Make one step: the gradient at w, the update of w, proximal maps and projections.

    If ``h.together`` batches make a step, w moves after the last of them.
    """
    G = solver.gradient(data, state.w, state.w_prev, u, c, batch, h)
    state.w_prev.copy_(state.w)
    G = together(state, G, h)
    if G is not None:
        solver.project(state.w, solver.update(state, G, h))


def together(state, G, h: BlockSettings):
    """The mean gradient of ``h.together`` batches at one w, or None before the last of them. ``state.met``
    counts the batches.
    """
    if h.together == 1:
        return G
    if state.met:
        state.sum = state.sum + G
    else:
        state.sum = G.clone()
    state.met = (state.met + 1) % h.together
    if state.met:
        return None
    return state.sum / h.together


def step_sizes(h: BlockSettings, inverse):
    """Set a step size of 0 to the inverse of the gradient's Lipschitz constant, which ``inverse()``
    measures at the start.
    """
    if h.eta <= 0:
        h.eta = inverse()


def next_stage(h: BlockSettings, gained, worst):
    """Lengthen the next stage. After a stage without a gain, steps become smaller and the estimates average
    over longer windows; once these are at their longest, batches become larger first.
    """
    slow_down(h, gained)


def slow_down(h: BlockSettings, gained):
    """After a stage without a gain: smaller steps and longer windows of the estimates; once these are at
    their longest, larger batches. The next stage is longer in any case.
    """
    if not gained:
        larger = h.gamma <= 0.05 and h.together < 16
        h.peak *= 0.8 if larger else 0.6
        h.together *= 2 if larger else 1
        shrink_gamma(h)
    h.stage = min(int(1.3 * h.stage), h.longest)


def falling(h: BlockSettings, share):
    """The settings within a stage when the step size is at a share of its first value. The weight of new
    values falls with it, down to a tenth, unless it must be constant (``steady``).
    """
    now = h.copy()
    now.eta = share * h.peak
    weigh(now, 1.0 if h.steady else max(share, 0.1))
    return now


def shrink_gamma(h: BlockSettings):
    """Lengthen the window over which estimates average, from stage to stage."""
    weigh(h, 0.7, least=0.05)


def weigh(h: BlockSettings, share, least=0.0):
    """Multiply gamma by a share, but not below ``least``. If gamma' = 1 - gamma, it stays so."""
    paired = abs(h.gamma_prime + h.gamma - 1.0) < 1e-9
    h.gamma = max(share * h.gamma, min(h.gamma, least))
    if paired:
        h.gamma_prime = 1.0 - h.gamma


def plain_step(state, G, h):
    """w <- w - eta G. Returns the step size that a prox must use (a scalar)."""
    state.w.sub_(G, alpha=h.eta)
    return h.eta


def momentum_step(state, G, h):
    """v <- (1 - beta) v + beta G;  w <- w - eta v. Returns the step size that a prox must use (a scalar)."""
    state.v.lerp_(G, h.beta)
    state.w.sub_(state.v, alpha=h.eta)
    return h.eta


def adam_step(state, G, h):
    """v <- (1 - beta) v + beta G;  s <- (1 - beta') s + beta' G*G;  w <- w - eta v / (sqrt(s) + eps).

    sonex-alexr2-2025, appendix E, with the new s where it has the one before. Returns the step size of
    each coordinate, which a separable prox must use.
    """
    state.v.lerp_(G, h.beta)
    state.s.lerp_(G.square(), h.beta_prime)
    step = h.eta / (state.s.sqrt() + h.eps)
    state.w.addcmul_(state.v, step, value=-1)
    return step


def adam_step_of_theorem(state, G, h):
    """w <- w - eta v / (sqrt(s) + eps) with s before this step; v and s as in ``adam_step``.

    sonex-alexr2-2025, appendix E, by the letter. Returns the step size of each coordinate, which a
    separable prox must use.
    """
    step = h.eta / (state.s.sqrt() + h.eps)
    state.v.lerp_(G, h.beta)
    state.s.lerp_(G.square(), h.beta_prime)
    state.w.addcmul_(state.v, step, value=-1)
    return step


def swept_adam_step(state, G, h):
    """v <- (1 - beta) v + beta G;  s <- (1 - beta') s + beta' G*G;  w <- w - eta v / (sqrt(s) +
    eps), in one sweep over them.

    sonex-alexr2-2025, appendix E. No prox asks for the step size of each coordinate.
    """
    # torch.optim.Adam(fused=True) always corrects the bias of v and s, which this algorithm does not:
    # only the function below it takes the step count, and at an infinite count the corrections are 1.
    # For 1,000,000 weights and 32 rows a step takes 2.7 ms with it and 4.7 ms by ``adam_step``.
    torch._fused_adam_(
        [state.w],
        [G.contiguous()],
        [state.v],
        [state.s],
        [],
        [state.late],
        lr=h.eta,
        beta1=1 - h.beta,
        beta2=1 - h.beta_prime,
        eps=h.eps,
        weight_decay=0.0,
        amsgrad=False,
        maximize=False,
    )
