"""Updates of the flat variables, shared by the algorithms; the emitter copies the one that a plan uses."""


def momentum_step(state, G, h):
    """v <- (1 - beta) v + beta G;  w <- w - eta v. Returns the step size that a prox must use (a scalar)."""
    state.v.lerp_(G, h.beta)
    state.w.sub_(state.v, alpha=h.eta)
    return h.eta


def adam_step(state, G, h):
    """v <- (1 - beta) v + beta G;  s <- (1 - beta') s + beta' G*G;  w <- w - eta v / (sqrt(s) + eps).

    sonex-alexr2-2025, appendix E. Returns the step size of each coordinate, which a separable prox must use.
    """
    state.v.lerp_(G, h.beta)
    state.s.mul_(1 - h.beta_prime).addcmul_(G, G, value=h.beta_prime)
    step = h.eta / (state.s.sqrt() + h.eps)
    state.w.addcmul_(state.v, step, value=-1)
    return step
