"""Projections and dual maximisers, batched, in plain torch. Emitted programs contain the source of
those they use."""

from __future__ import annotations

import torch

from fccomodel.library.sets.capped_simplex import project_capped
from fccomodel.library.sets.definite import symmetric_eigen
from fccomodel.library.sets.simplex import project_simplex


def flattened(x, dims):
    """The array x with ``dims`` merged into one last dimension."""
    return x.movedim(dims, tuple(range(-len(dims), 0))).flatten(-len(dims))


def restored(y, dims, x):
    """The inverse of ``flattened(x, dims)``."""
    shape = x.movedim(dims, tuple(range(-len(dims), 0))).shape
    return y.view(shape).movedim(tuple(range(-len(dims), 0)), dims)


def onto_simplex(x, dim):
    """The nearest point of {q >= 0, sum q = 1} along one dim, or along several as if they were one."""
    if isinstance(dim, tuple):
        dims = dim
    else:
        dims = (dim,)
    return restored(project_simplex(flattened(x, dims)), dims, x)


def onto_capped_simplex(x, cap, dim):
    """The nearest point of {0 <= q <= cap, sum q = 1} along a dim, or several as if they were one;
    -inf entries stay 0."""
    if isinstance(dim, tuple):
        dims = dim
    else:
        dims = (dim,)
    if isinstance(cap, torch.Tensor):
        height = flattened(cap, dims)
    else:
        height = cap
    return restored(project_capped(flattened(x, dims), height), dims, x)


def onto_ball(x, dims):
    """The nearest point of the Euclidean unit ball along ``dims``."""
    return x / torch.linalg.vector_norm(x, dim=dims, keepdim=True).clamp(min=1)


def onto_cross_polytope(x, dims):
    """The nearest point of {sum |y| <= 1} along ``dims``."""
    inside = x.abs().sum(dims, keepdim=True) <= 1
    return torch.where(inside, x, x.sign() * onto_simplex(x.abs(), dims))


def onto_spectral_ball(x):
    """The nearest matrix (last two dims) whose singular values are at most 1."""
    left, sizes, right = torch.linalg.svd(x, full_matrices=False)
    return (left * sizes.clamp(max=1)[..., None, :]) @ right


def onto_nuclear_ball(x):
    """The nearest matrix (last two dims) whose singular values have a sum of at most 1."""
    left, sizes, right = torch.linalg.svd(x, full_matrices=False)
    return (left * onto_cross_polytope(sizes, (-1,))[..., None, :]) @ right


def onto_spectraplex(x):
    """The nearest symmetric matrix (last two dims) of trace 1 without a negative eigenvalue."""
    values, vectors = symmetric_eigen(x)
    return (vectors * project_simplex(values)[..., None, :]) @ vectors.mT


def outside_spectraplex(x):
    """1 for a symmetric matrix of trace 1 without a negative eigenvalue, more for others."""
    trace = (x.diagonal(dim1=-2, dim2=-1).sum(-1) - 1).abs()
    negative = (-symmetric_eigen(x)[0].amin(-1)).relu()
    return 1 + trace + negative + (x - x.mT).abs().amax((-2, -1))


def entropic_simplex(x, theta, lam, dim):
    """argmax over q of the simplex of q.x - theta sum q log q - lam/2 |q|^2.

    q_i(nu) solves theta log q + lam q = x_i - nu - theta; nu by Newton's method on sum q(nu) = 1,
    which is convex and falling in nu, from the left; log q by Newton's method beside it.
    """
    x = x.clamp(min=torch.finfo(x.dtype).min / 4)
    nu = theta * torch.logsumexp(x / theta, dim, keepdim=True) - theta - lam
    logq = None
    for _ in range(24 if x.dtype == torch.float32 else 40):
        s = (x - nu) / theta - 1
        if logq is None:
            logq = torch.minimum(s, torch.log1p(s.clamp(min=0) * theta / lam) + 1)
        for _ in range(3):
            q = logq.exp()
            logq = logq - (logq + lam / theta * q - s) / (1 + lam / theta * q)
        q = logq.exp()
        nu = nu + (q.sum(dim, keepdim=True) - 1) / (q / (theta + lam * q)).sum(dim, keepdim=True)
    return q / q.sum(dim, keepdim=True)


def exponents(t, lam, c, dims):
    """The exponents t / lam + log c, with c a point of the simplex (0: uniform); -inf where t
    is."""
    prior = (
        (torch.zeros_like(t) + c)
        .clamp(min=torch.finfo(t.dtype).tiny)
        .log()
        .masked_fill(t == -torch.inf, -torch.inf)
    )
    return t / lam + (prior - torch.logsumexp(prior, dims, keepdim=True))


def entropic_weights(t, lam, c, dims):
    """argmax over q of the simplex along ``dims`` of q.t - lam sum q log (q / c)."""
    x = exponents(t, lam, c, dims)
    return (x - torch.logsumexp(x, dims, keepdim=True)).exp()


def entropic_value(t, lam, c, dims):
    """The maximum over q of q.t - lam sum q log (q / c): lam log sum c exp(t / lam)."""
    return lam * torch.logsumexp(exponents(t, lam, c, dims), dims)


def along_ray(slope, x, dims):
    """slope(|x|) x/|x|: the gradient of a function of the Euclidean norm."""
    length = torch.linalg.vector_norm(x, dim=dims, keepdim=True)
    return slope(length) * x / length.clamp(min=1e-30)


def steepest_mix(x, rows, b, lam):
    """A' q for the q in the simplex that maximises q.(A x + b) - lam/2 |A' q|^2; x has the last dim of
    A's rows.

    q is optimal on the face of its positive entries: every face is tried, and the best feasible q taken.
    """
    values, gram = x @ rows.T + b, lam * (rows @ rows.T)
    best, mix = torch.full_like(values[..., 0], -float("inf")), torch.zeros_like(x)
    for face in range(1, 2 ** len(rows)):
        at = [k for k in range(len(rows)) if face >> k & 1]
        system = torch.zeros((len(at) + 1, len(at) + 1), dtype=x.dtype, device=x.device)
        system[:-1, :-1], system[-1, :-1], system[:-1, -1] = gram[at][:, at], 1, 1
        right = torch.cat([values[..., at], torch.ones_like(values[..., :1])], -1)
        q = (right @ torch.linalg.pinv(system, hermitian=True).T)[..., :-1]
        y = q @ rows[at]
        values_of_mixes = (q * values[..., at]).sum(-1) - lam / 2 * y.square().sum(-1)
        allowed = (q >= -1e-7).all(-1) & ((q.sum(-1) - 1).abs() < 1e-6)
        better = allowed & (values_of_mixes > best)
        best, mix = torch.where(better, values_of_mixes, best), torch.where(better[..., None], y, mix)
    return mix


def newton_slope(derivatives, x, lam, weak, at, low, high):
    """The y with f'(x - lam y) = y, entry by entry: the slope at x of the Moreau envelope of a
    (weakly) convex f.

    ``derivatives(v)`` are f' and f'' in (low, high), ``at`` is a point inside. f' + (v - x)/lam
    rises at least as fast as 1/lam - weak, which brackets v, hence y. Newton's step from the last
    point, where it stays in the bracket, and the middle of the bracket take turns: it halves every
    two steps, whatever f is (a kink included).
    """
    first, _ = derivatives(torch.full_like(x, at))
    start = (x - at) / lam
    end = (x - at) / lam + (first - start) / (1 - lam * weak)
    down, up = torch.minimum(start, end), torch.maximum(start, end)
    down, up = down.clamp(min=(x - high) / lam), up.clamp(max=(x - low) / lam)
    y = (down + up) / 2
    steps = 40 if x.dtype == torch.float32 else 90
    for k in range(steps):
        first, second = derivatives((x - lam * y).clamp(low, high))
        down, up = torch.where(first > y, y, down), torch.where(first > y, up, y)
        newton, y = y + (first - y) / (1 + lam * second), (down + up) / 2
        if k % 2 == 0 or k >= steps - 4:
            y = torch.where((newton >= down) & (newton <= up), newton, y)
    return y


def moreau(value, t, y, c, lam, dims):
    """f(v) + lam/2 (|y|^2 - |c|^2) at v = t + lam (c - y): max over y of y.t - f*(y) - lam/2 |y - c|^2."""
    rest = lam / 2 * (y * y - c * c)
    return value(t + lam * (c - y)) + (rest.sum(dims) if dims else rest)


def support_value(t, y, c, lam, dims):
    """y.t - lam/2 |y - c|^2 along ``dims``; entries left out are at -inf, with y = 0.

    The derivative by t is y, the y that attains the maximum (Danskin): no derivative of y is taken. A
    projection has none where singular values are equal.
    """
    y = y.detach()
    return (y * t.clamp(min=-1e30) - lam / 2 * (y - c).square()).sum(dims)


def largest_mean(x, cap, dim):
    """max of q.x over {0 <= q <= cap, sum q = 1}: the largest entries, the last of them in part."""
    if isinstance(dim, tuple):
        last = tuple(range(-len(dim), 0))
        return largest_mean(
            x.movedim(dim, last).flatten(-len(dim)), cap.movedim(dim, last).flatten(-len(dim)), -1
        )
    ordered = x.sort(dim=dim, descending=True).values
    place = torch.arange(x.shape[dim], device=x.device, dtype=x.dtype).view(
        (-1,) + (1,) * (x.dim() - 1 - dim % x.dim())
    )
    q = (1 - place * cap).clamp(min=0).minimum(cap.expand_as(x))
    return (torch.where(q > 0, ordered, torch.zeros_like(ordered)) * q).sum(dim)
