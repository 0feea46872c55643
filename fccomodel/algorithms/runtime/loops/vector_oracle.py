"""What steps on the vector F(w) of all inner expectations may ask for: its values and derivatives by
samples or by full passes, the slope of phi around it, the prox of R. The emitter copies it."""

from __future__ import annotations

import math
from types import SimpleNamespace

from fccomodel.algorithms.runtime.loops.settings import VectorSettings
from fccomodel.algorithms.runtime.loops.solver import VectorSolver
from fccomodel.core.lazy import torch


def linearised(f, w):
    """f(w) in R^q; ``pull(s)`` = J(w)' s; ``matrix()`` = J(w), q x p; ``push(d)`` = J(w) d, by reverse
    differentiation."""
    x = w.detach().clone().requires_grad_()
    with torch.enable_grad():
        value = f(x)
        # constants have a derivative too
        if value.requires_grad:
            value = value
        else:
            value = value + 0 * x.sum()

    def pull(s):
        """J's."""
        with torch.enable_grad():
            return torch.autograd.grad((value * s).sum(), x, retain_graph=True)[0]

    def matrix():
        """J, row by row."""
        rows = torch.eye(len(value), dtype=w.dtype, device=w.device)
        if len(rows) <= 8:  # fewer than it pays to batch
            return torch.stack([pull(s) for s in rows])
        rows = rows.split(32)  # so many passes backwards at once
        return torch.cat(
            [torch.autograd.grad(value, x, s, retain_graph=True, is_grads_batched=True)[0] for s in rows]
        )

    def push(d):
        """J d."""
        with torch.enable_grad():
            s = torch.zeros_like(value).requires_grad_()
            back = torch.autograd.grad((value * s).sum(), x, create_graph=True)[0]
            return torch.autograd.grad((back * d).sum(), s, retain_graph=True)[0]

    return SimpleNamespace(value=value.detach(), pull=pull, matrix=matrix, push=push, taped=value, x=x)


def oracle_of(solver: VectorSolver, data, rng, c, state, h: VectorSettings, late=lambda: False):
    """The operations that a step may ask for.

    ``state.oracles`` counts the calls: one is the value and the derivative of one g_i at one sample.

    batch()             the next minibatch
    sample(w, batch)    F(w; batch), linearised
    whole(w)            F(w) by a full pass, linearised
    value(w)            F(w) by a full pass, without derivatives
    pooled(w, batches)  F(w) by several minibatches, linearised
    many(w)             F(w) by a full pass, or by 100 minibatches, linearised
    mean(w, batches)    F(w) by several minibatches, without derivatives
    slope(w, u, gamma)  derivatives of phi in u and in w, its smoothing parameters times gamma; with
                        ``chosen`` by samples of phi
    phi(w, u)           value of phi
    prox(w, step)       prox_{step R}(w), a new vector
    keep                whether the Jacobian is kept as a q x p matrix; if not, or if q > 128, products
                        with it are computed
    smoothing           whether phi has kinks
    share               share of all samples in a minibatch
    partial             whether phi is computed by samples
    late()              whether the budget is used up
    ahead               minibatches that are drawn but not yet asked for
    """
    ahead: list = []

    def batch():
        """The next minibatch."""
        if not ahead:
            parts = solver.draw(data, rng, solver.block)
            ahead.extend(
                zip(*(part.unbind() for part in parts), strict=True) if parts else [()] * solver.block
            )
        return ahead.pop(0)

    def sample(w, chosen):
        """The linearisation of a minibatch's mean at w."""
        state.oracles += solver.samples
        return linearised(lambda x: solver.inner(data, x, chosen, h), w)

    def pooled(w, batches):
        """The linearisation of the mean over several minibatches at w."""
        state.oracles += solver.samples * len(batches)
        return linearised(
            lambda x: sum(solver.inner(data, x, chosen, h) for chosen in batches) / len(batches), w
        )

    def mean(w, batches):
        """The mean over several minibatches at w, without derivatives."""
        state.oracles += solver.samples * len(batches)
        return sum(solver.inner(data, w, chosen, h) for chosen in batches) / len(batches)

    def whole(w):
        """The linearisation of the expectation over all rows at w."""
        state.oracles += solver.rows
        return linearised(lambda x: solver.inner_full(data, x, h), w)

    def many(w):
        """The linearisation over all rows, or over many minibatches if rows are too many."""
        if solver.rows <= h.pass_limit:
            return whole(w)
        return pooled(w, [batch() for _ in range(min(100, math.ceil(h.pass_limit / solver.samples)))])

    def value(w):
        """The expectation over all rows at w, without derivatives."""
        state.oracles += solver.rows
        return solver.inner_full(data, w, h)

    def slope(w, u, gamma=1.0, chosen=None):
        """The derivative of phi in u, and the direct derivative in w; smoothing times gamma."""
        if gamma == 1:
            scaled = h
        else:
            scaled = h.smoothed(lambda lam: gamma * lam)
        y, x = u.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
        with torch.enable_grad():
            part = solver.outer_part if chosen is not None else None
            if part is None:
                taped = solver.outer(data, x, y, c, scaled)
            else:
                taped = part(data, x, y, c, chosen, scaled)
        return torch.autograd.grad(taped, (y, x), allow_unused=True, materialize_grads=True)

    def phi(w, u):
        """The outer function at (w, u)."""
        return solver.outer(data, w, u, c, h)

    def prox(w, step):
        """Project w in place, with a proximal step."""
        solver.project(w, step)
        return w

    return SimpleNamespace(
        batch=batch,
        sample=sample,
        pooled=pooled,
        mean=mean,
        many=many,
        whole=whole,
        value=value,
        slope=slope,
        phi=phi,
        prox=prox,
        late=late,
        ahead=ahead,
        partial=solver.outer_part is not None,
        keep=solver.components <= 128 and solver.components * len(state.w) <= h.matrix,
        smoothing=solver.centred,
        share=min(1.0, solver.samples / solver.rows) if solver.rows else 1.0,
    )
