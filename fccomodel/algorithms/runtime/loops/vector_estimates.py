"""Estimates of the gradient of phi(F(w)) that several algorithms share, corrected at a reference point
or hybrid, and weights that decay. The emitter copies what an algorithm uses."""

import math

from fccomodel.core.lazy import torch


def pulled(now, s, then, t):
    """J(now)' s - J(then)' t, in one backward pass."""
    with torch.enable_grad():
        ahead, back = torch.autograd.grad((now.taped * s).sum() - (then.taped * t).sum(), (now.x, then.x))
    return ahead + back


def decayed(state, h, power):
    """(1 + t / warm)^-power."""
    return (1 + state.t / h.warm) ** -power


def refer(state, F, w):
    """Set the reference point of an epoch: F and its Jacobian (or its product with the slope of phi),
    exactly.
    """
    at = F.whole(w)
    s, _ = F.slope(w, at.value)
    state.reference, state.u_ref, state.s_ref = w.clone(), at.value, s
    if F.keep:
        state.J_ref = at.matrix()
    else:
        state.J_ref = None
    state.v_ref = at.pull(s)


def corrected(state, F):
    """The gradient at w, by values and Jacobians that are corrected at the reference point (ascvrg-2021,
    equations (3) to (5)).
    """
    batch = F.batch()
    now, then = F.sample(state.w, batch), F.sample(state.reference, batch)
    s, direct = F.slope(state.w, state.u_ref + now.value - then.value)
    if F.keep:
        return s @ state.J_ref + pulled(now, s, then, s) + direct
    return state.v_ref + pulled(now, s, then, state.s_ref) + direct


def corrected_by_samples(state, F):
    """The gradient at w if f is sampled as well, and corrected at the reference point too (equation (5)):
    G_t' mean grad f_i(g_t) - G~' mean grad f_i(g~) + v~. The samples of f_i come with those of g_j.
    """
    batch = F.batch()
    now, then = F.sample(state.w, batch), F.sample(state.reference, batch)
    s, direct = F.slope(state.w, state.u_ref + now.value - then.value, 1.0, batch)
    t, before = F.slope(state.reference, state.u_ref, 1.0, batch)
    if F.keep:
        change = (s - t) @ state.J_ref + pulled(now, s, then, s)
    else:
        change = pulled(now, s, then, t)
    return change + direct - before + state.v_ref + state.direct_ref


def begin_with(state, F, at):
    """Start the estimates with F and its Jacobian ``at`` w, from a full pass or many samples. Returns the
    gradient.
    """
    state.s, direct = F.slope(state.w, at.value)
    state.u, state.J, state.v = at.value, at.matrix() if F.keep else None, at.pull(state.s)
    state.w_prev = state.w
    return state.v + direct


def hybrid_value(state, F, beta, count):
    """Update the hybrid estimator of F alone, with ``count`` minibatches in each of its means, or exactly
    if a full pass has no more samples.
    """
    if count * F.share >= 1:
        return F.value(state.w)
    first, second = ([F.batch() for _ in range(count)] for _ in range(2))
    return beta * (state.u + F.mean(state.w, first) - F.mean(state.w_prev, first)) + (1 - beta) * F.mean(
        state.w, second
    )


def hybrid(state, F, beta, gamma=1.0, values=1.0):
    """The gradient at w by the hybrid estimators of hscg-2020, equations (14) and (16), of F and of its
    Jacobian (or the product with it). With ``values`` > 1, values come from that many minibatches. beta
    = 1 is SARAH.
    """
    first = F.batch()
    now, then = F.sample(state.w, first), F.sample(state.w_prev, first)
    if beta < 1:
        fresh = F.sample(state.w, F.batch())
    else:
        fresh = now
    if values > 1:
        state.u = hybrid_value(state, F, beta, math.ceil(values))
    else:
        state.u = beta * (state.u + now.value - then.value) + (1 - beta) * fresh.value
    s, direct = F.slope(state.w, state.u, gamma)
    if F.keep:
        state.J = beta * (state.J + now.matrix() - then.matrix()) + (1 - beta) * fresh.matrix()
        state.v = s @ state.J
    else:
        known = beta * (state.v + pulled(now, s, then, state.s))
        if beta < 1:
            state.v = known + (1 - beta) * fresh.pull(s)
        else:
            state.v = known
    state.s = s
    return state.v + direct
