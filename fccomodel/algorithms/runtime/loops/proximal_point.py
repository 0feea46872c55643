"""Loops around a proximal point: inner steps at z on the problem plus |z - w|^2 / (2 nu), then one of w."""

from __future__ import annotations

from fccomodel.algorithms.runtime.loops.solver import BlockSolver


def inner_gradient(solver: BlockSolver, data, state, u, c, batch, h):
    """The gradient G at z, starting from z_0 = w.

    z_{-1} is z_{K-1} of the last round, where the estimates are, and not z_0 as in the papers: the
    correction by g(z_0) - g(z_{-1}) then carries the estimates to w.
    """
    if state.k == 0:
        state.z.copy_(state.w)
    return solver.gradient(data, state.z, state.z_prev, u, c, batch, h)


def inner_step(solver: BlockSolver, state, G, eta, pull, steps):
    """z <- argmin <G, z> + r(z) + pull |z - w|^2 / 2 + |z - z_k|^2 / (2 eta).

    Returns whether this was the last of ``steps`` inner steps.
    """
    state.z_prev.copy_(state.z)
    step = 1.0 / (pull + 1.0 / eta)
    state.z.sub_(G + pull * (state.z - state.w), alpha=step)
    solver.project(state.z, step)
    state.k = (state.k + 1) % int(steps)
    return state.k == 0
