"""The operations that steps on the vector F(w) of all inner expectations may use: its values and
derivatives by samples or full passes, the slope of phi around it, and the prox of R. The emitter
copies it.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

from fccomodel.algorithms.runtime.loops.settings import VectorSettings
from fccomodel.algorithms.runtime.loops.solver import VectorSolver
from fccomodel.core.lazy import torch
from fccomodel.core.work import Left, to_the_end


def linearised(f, w):
    """f(w) in R^q with its derivative: ``pull(s)`` = J(w)' s, ``matrix()`` = J(w), q x p, and ``push(d)`` =
    J(w) d, by reverse differentiation.
    """
    x = w.detach().clone().requires_grad_()
    with torch.enable_grad():
        value = f(x)
        # constants have a derivative too
        if value.requires_grad:
            value = value
        else:
            value = value + 0 * x.sum()

    def pull(s):
        """J' s."""
        with torch.enable_grad():
            return torch.autograd.grad((value * s).sum(), x, retain_graph=True)[0]

    def matrix():
        """J, row by row, or column by column if these are fewer."""
        rows = torch.eye(len(value), dtype=w.dtype, device=w.device)
        if len(rows) <= 8:  # fewer than it pays to batch
            return torch.stack([pull(s) for s in rows])
        if len(w) <= len(rows):
            columns = torch.eye(len(w), dtype=w.dtype, device=w.device)
            return torch.stack([push(d) for d in columns], 1)
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


class VectorOracle:
    """The operations that a step may use.

    ``state.oracles`` counts the calls: one is the value and the derivative of one g_i at one sample.
    ``state.passed`` counts those in full passes.

    keep       whether the Jacobian is kept as a q x p matrix; if not, products with it are computed. It
               is not if it has too many entries or, except in a theorem's schedule, if q > 128
    smoothing  whether phi has kinks
    share      share of all samples in a minibatch
    partial    whether phi is computed by samples
    late       late() says whether the budget is used up
    over       over() says whether the time is over: full passes over more than ``pass_limit`` samples are
               left then, by ``Left``
    ahead      minibatches that are drawn but not yet used
    """

    def __init__(
        self, solver: VectorSolver, data, rng, c, state, h: VectorSettings, late=lambda: False, over=None
    ):
        self.solver, self.data, self.rng = solver, data, rng
        self.c, self.state, self.h, self.late, self.over = c, state, h, late, over
        self.ahead: list = []
        self.partial, self.smoothing = solver.outer_part is not None, solver.centred
        few = solver.components <= 128 or solver.schedule.matrices
        self.keep = few and solver.components * len(state.w) <= h.matrix
        self.share = min(1.0, solver.samples / solver.rows) if solver.rows else 1.0

    def batch(self):
        """The next minibatch."""
        if not self.ahead:
            parts, count = self.solver.draw(self.data, self.rng, self.solver.block), self.solver.block
            drawn_ahead = zip(*(part.unbind() for part in parts), strict=True) if parts else [()] * count
            self.ahead.extend(drawn_ahead)
        return self.ahead.pop(0)

    def inner(self, w, batch):
        """F(w; batch), not counted."""
        return self.solver.inner(self.data, w, batch, self.h)

    def sample(self, w, batch):
        """F(w; batch), linearised."""
        self.state.oracles += self.solver.samples
        return linearised(lambda x: self.inner(x, batch), w)

    def pooled(self, w, batches):
        """F(w) by several minibatches, linearised."""
        self.state.oracles += self.solver.samples * len(batches)
        return linearised(lambda x: sum(self.inner(x, batch) for batch in batches) / len(batches), w)

    def mean(self, w, batches):
        """F(w) by several minibatches, without derivatives."""
        self.state.oracles += self.solver.samples * len(batches)
        return sum(self.inner(w, batch) for batch in batches) / len(batches)

    def whole(self, w):
        """F(w) by a full pass, linearised."""
        self.count_pass()
        at = self.in_time(lambda: linearised(lambda x: self.solver.inner_full(self.data, x, self.h), w))
        pull, push, matrix = at.pull, at.push, at.matrix
        at.pull = lambda s: self.in_time(lambda: pull(s))
        at.push = lambda d: self.in_time(lambda: push(d))
        at.matrix = lambda: self.in_time(matrix)
        return at

    def count_pass(self):
        """Count the calls of a full pass."""
        self.state.oracles += self.solver.rows
        self.state.passed += self.solver.rows

    def in_time(self, work):
        """The result of a part of a full pass. Raises ``Left`` if the time is over before its end."""
        if self.over is None:
            return work()
        values: list = []
        dear = self.solver.rows > self.h.pass_limit
        if not to_the_end(lambda: values.append(work()), self.over, dear):
            raise Left
        return values[0]

    def many(self, w):
        """F(w) by a full pass or, if rows are too many, by 100 minibatches, linearised."""
        if self.solver.rows <= self.h.pass_limit:
            return self.whole(w)
        count = min(100, math.ceil(self.h.pass_limit / self.solver.samples))
        return self.pooled(w, [self.batch() for _ in range(count)])

    def value(self, w):
        """F(w) by a full pass, without derivatives."""
        self.count_pass()
        return self.in_time(lambda: self.solver.inner_full(self.data, w, self.h))

    def slope(self, w, u, gamma=1.0, chosen=None):
        """The derivatives of phi in u and in w, with its smoothing parameters times gamma. ``chosen``: by
        samples of phi.
        """
        if gamma == 1:
            scaled = self.h
        else:
            scaled = self.h.smoothed(lambda lam: gamma * lam)
        y, x = u.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
        with torch.enable_grad():
            part = self.solver.outer_part if chosen is not None else None
            if part is None:
                taped = self.solver.outer(self.data, x, y, self.c, scaled)
            else:
                taped = part(self.data, x, y, self.c, chosen, scaled)
        return torch.autograd.grad(taped, (y, x), allow_unused=True, materialize_grads=True)

    def phi(self, w, u):
        """The value of phi."""
        return self.solver.outer(self.data, w, u, self.c, self.h)

    def prox(self, w, step):
        """prox_{step R}(w), in place of w."""
        self.solver.project(w, step)
        return w
