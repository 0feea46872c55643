"""Loops around a proximal point: inner steps at z on the problem plus |z - w|^2 / (2 nu), then one of w."""

from __future__ import annotations

from fccomodel.algorithms.runtime.loops.solver import BlockSolver


def inner_step(solver: BlockSolver, data, state, u, c, batch, h, eta, weight=None):
    """z <- argmin <G, z> + r(z) + weight |z - w|^2 / (2 nu) + |z - z_k|^2 / (2 eta), from z_0 = w.
    True after the last one.

    ``weight`` is 1, or a function of the solver and the multipliers that G moved. z_{-1} is the
    last round's z_{K-1}, where the estimates are, not z_0 as in the papers: the correction by
    g(z_0) - g(z_{-1}) then takes them along to w.
    """
    if state.k == 0:
        state.z.copy_(state.w)
    G = solver.gradient(data, state.z, state.z_prev, u, c, batch, h)
    state.z_prev.copy_(state.z)
    pull = (1.0 if weight is None else weight(solver, c)) / h.nu
    step = 1.0 / (pull + 1.0 / eta)
    state.z.sub_(G + pull * (state.z - state.w), alpha=step)
    solver.project(state.z, step)
    state.k = (state.k + 1) % int(h.inner_steps)
    return state.k == 0
