"""PANOC (Stella, Themelis, Sopasakis and Patrinos 2017): proximal gradient steps, sped up by L-BFGS
directions and safeguarded by the forward-backward envelope. The emitter copies it."""

import math
from types import SimpleNamespace

from fccomodel.algorithms.runtime.loops.progress import smoothness
from fccomodel.core.lazy import torch


def cautious_step(at, w, times=8):
    """Half of 1 / L for the gradient's Lipschitz constant L near w, estimated from ``times`` differences of
    gradients.
    """
    largest = smoothness(lambda x: at(x)[1], w, times)
    if largest > 0 and math.isfinite(largest):
        return 0.5 / largest
    return 1.0


def is_least(step, move, w):
    """Whether a step is not shortened any more: both it and its move are too short to matter.

    A short step alone does not tell: it has the units of the variables' squares over those of the function.
    Where a gradient is infinite, no step makes the move short: then the move, or the least step, ends it.
    """
    matters = 1e-12 * (1 + float(w.norm())) < float(move.norm()) < math.inf
    return step < 1e-300 or (step < 1e-14 and not matters)


def forward_backward(at, prox, w, step, known=None):
    """The proximal gradient step from w, and the value of the forward-backward envelope there.

    ``prox(x, step)`` moves x in place to the proximal point of the other terms and returns their value.
    ``free`` says that these terms do nothing where the step ends. ``known`` is another step from the same
    w, which saves the pass; whoever counts passes is told by ``at.back``. From a point without a gradient
    no step leads on: it stays there, with an infinite envelope and residual.
    """
    if known is None:
        value, gradient = at(w)
    else:
        value, gradient = (known.value, known.gradient)
    if known is not None and hasattr(at, "back"):
        at.back(value, w)
    if gradient.isnan().any():
        return no_step(w, value, gradient, step)
    while True:
        ahead = (w - step * gradient).clamp(-1e300, 1e300)  # no matrix with inf has singular values
        new = ahead.clone()
        rest = prox(new, step)
        move, free = new - w, rest == 0 and torch.equal(new, ahead)
        model = float(gradient @ move) + float(move @ move) / (2 * step)
        envelope = value + model + rest
        if math.isfinite(envelope) or is_least(step, move, w):
            break
        step *= 0.1
    return SimpleNamespace(
        w=w,
        value=value,
        gradient=gradient,
        new=new,
        move=move,
        model=model,
        envelope=envelope,
        step=step,
        free=free,
    )


def no_step(w, value, gradient, step):
    """The step from a point whose gradient is not a number: none, with an infinite envelope and residual."""
    return SimpleNamespace(
        w=w,
        value=math.inf,
        gradient=gradient,
        new=w.clone(),
        move=torch.full_like(w, math.inf),
        model=math.inf,
        envelope=math.inf,
        step=step,
        free=False,
    )


def with_pair(pairs, s, y, most=40, numbers=1e6):
    """The last curvature pairs (change s of w, change y of the residual, s.y), with one more.

    Fewer pairs are kept for many variables. A pair with s.y <= 0 carries no curvature and is left out.
    """
    product = float(s @ y)
    if product <= 1e-12 * float(s.norm()) * float(y.norm()):
        return pairs
    most_pairs = int(min(most, max(15, numbers // s.numel())))
    return [*pairs[1 - most_pairs :], (s, y, product)]


def direction(pairs, residual, few=8, small=10_000):
    """-H residual, by the two-loop recursion of L-BFGS over the pairs, or ``at_once`` for many short ones."""
    d, left = -residual.clone(), []
    if len(pairs) > few and len(pairs) * d.numel() <= small:
        return at_once(pairs, d)
    for s, y, product in reversed(pairs):
        a = float(s @ d) / product
        d -= a * y
        left.append(a)
    if pairs:
        _, y, product = pairs[-1]
        d *= product / float(y @ y)
    for (s, y, product), a in zip(pairs, reversed(left), strict=True):
        d += (a - float(y @ d) / product) * s
    return d


def at_once(pairs, d):
    """The same direction by two triangular systems, in the products s.y of earlier changes s with later y."""
    s, y = torch.stack([s for s, _, _ in pairs]), torch.stack([y for _, y, _ in pairs])
    products = (s @ y.T).triu()
    a = torch.linalg.solve_triangular(products, (s @ d)[:, None], upper=True)[:, 0]
    d = (d - a @ y) * (pairs[-1][2] / float(y[-1] @ y[-1]))
    rest = torch.linalg.solve_triangular(products.T, (products.diagonal() * a - y @ d)[:, None], upper=False)[
        :, 0
    ]
    return d + rest @ s


def falls(now, tried, size):
    """Whether no other term is active, and both the function and its envelope decrease enough: then the
    point that safeguards is not needed.
    """
    enough = 1e-4 * now.step * size**2
    descends = tried.value <= now.value - enough and tried.envelope <= now.envelope - enough
    return descends and now.free and tried.free and tried.step == now.step


def searched(at, prox, now, d, enough, first, limit):
    """The first good enough point between the whole direction d and the gradient step, by halving; None if
    there is none. ``first`` is the first such point, if it is known.
    """
    level = now.envelope + 1e-13 * abs(now.envelope)  # where rounding hides the descent, the residual tells
    tau = 1.0
    while tau > 0.05 and not limit():
        tried = first or forward_backward(at, prox, now.w + (1 - tau) * now.move + tau * d, now.step)
        first = None
        nearer = tried.envelope <= level and float(tried.move.norm()) <= 0.9 * float(now.move.norm())
        if (tried.envelope <= enough or nearer) and tried.step == now.step:
            return tried
        tau *= 0.5
    return None


def shortened(at, prox, now, pairs, limit):
    """The step from w, halved until it is below 1/L near w by the value ahead, the step from there, and the
    pairs that hold for it. There is no step from there, but None, if ``limit()`` says stop.
    """
    while True:
        ahead = forward_backward(at, prox, now.new, now.step)
        if ahead.value <= now.value + now.model + 1e-12 * abs(now.value) or is_least(
            now.step, now.move, now.w
        ):
            return now, ahead, pairs
        now, pairs = forward_backward(at, prox, now.w, 0.5 * now.step, now), []
        if limit():
            return now, None, pairs


def at_rest(prox, now, size):
    """The point where a step begins, inside the sets, its residual, and the step size: what is left if the
    step leads nowhere.
    """
    here = now.w.clone()
    prox(here, 0.0)
    return here, size, now.step


def panoc(at, prox, w, step, tol, limit, held=None, bold=False):
    """Minimise the function that ``at`` differentiates plus the terms of ``prox``, from w, until the
    fixed-point residual is ``tol`` or ``limit()`` says stop.

    ``held`` contains the state of the iteration whenever ``limit`` is called; if it had one before, the
    iteration continues from it. With ``bold`` a direction is tried before the gradient step that safeguards
    it, which saves that step if the direction is good.

    It ends where no step leads to a finite value. Returns the point, its residual
    |w - prox(w - step grad)| / step, and the step.
    """
    if held is None:
        held = SimpleNamespace(now=None, pairs=[])
    now, pairs = held.now or forward_backward(at, prox, w, step), held.pairs
    while True:
        size, held.now, held.pairs = float(now.move.norm()) / now.step, now, pairs
        if size <= tol or limit():
            return now.new, size, now.step
        residual, first = -now.move / now.step, None
        if bold and pairs and now.free:
            first = forward_backward(at, prox, now.w + direction(pairs, residual), now.step)
            if falls(now, first, size):
                now, pairs = first, with_pair(pairs, first.w - now.w, -first.move / first.step - residual)
                continue
        now, ahead, pairs = shortened(at, prox, now, pairs, limit)
        if ahead is None:
            return at_rest(prox, now, size)
        residual, after = -now.move / now.step, None
        if pairs:
            enough = now.envelope - 1e-4 * now.step * size**2
            after = searched(at, prox, now, direction(pairs, residual), enough, first, limit)
        if after is None and not ahead.value < math.inf:
            return at_rest(prox, now, size)
        bend = ahead.value - now.value - float(now.gradient @ now.move)
        hardly_curved = bend <= 0.2 * float(now.move @ now.move) / (2 * now.step)
        if after is None and hardly_curved:
            now, pairs = forward_backward(at, prox, ahead.w, 2 * ahead.step, ahead), []
            continue
        after = after or ahead
        if after.step == now.step:
            pairs = with_pair(pairs, after.w - now.w, -after.move / after.step - residual)
        now = after
