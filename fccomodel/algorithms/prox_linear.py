"""Prox-linear (Gauss-Newton): minimises phi of the linearised F, by accelerated steps on the smoothed
phi."""

import math

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm, Constants
from fccomodel.algorithms.runtime.loops import vector_loop
from fccomodel.core.lazy import torch


def begin(state, F, h):
    """Set the weight of the proximal term, and a first guess 0 of the subproblems' curvature."""
    if state.epoch == 0:
        state.step, state.L = h.eta, 0.0


def subproblem(F, w, at, J, step, count, L):
    """min over z of phi(F + J (z - w)) + R(z) + |z - w|^2 / (2 step), by accelerated steps with restarts.

    Returns z, F + J (z - w), and the gradient's Lipschitz constant. L is a guess of the constant; it is
    doubled as needed.
    """
    if F.keep:
        push, pull = J.mv, J.T.mv
    else:
        push, pull = at.push, at.pull

    def G(z):
        """The gradient of the linearised composition plus the proximal term at z."""
        s, direct = F.slope(z, at.value + push(z - w))
        return pull(s) + direct + (z - w) / step

    L, x, y, momentum = max(0.5 * L, 1 / step), w, w, 1.0
    for _ in range(int(count)):
        if F.late():
            break
        gradient = G(y)
        while True:
            new = F.prox(y - gradient / L, 1 / L)
            move = new - y
            small_enough = float((G(new) - gradient) @ move) <= L * float(move @ move) * (1 + 1e-6)
            if small_enough or L > 1e12 or F.late():
                break
            L *= 2
        if float(move @ (new - x)) < 0:
            momentum = 1.0
        later = 0.5 * (1 + math.sqrt(1 + 4 * momentum**2))
        x, y, momentum = new, new + (momentum - 1) / later * (new - x), later
    return x, at.value + push(x - w), L


def linearised_step(state, F, h):
    """w <- the solution of the subproblem; ``step`` is halved until phi(F(w)) is below its model there."""
    w = state.w
    at = F.whole(w)
    J = at.matrix() if F.keep else torch.zeros(0)
    state.step *= 1.5
    while True:
        z, model, state.L = subproblem(F, w, at, J, state.step, h.inner_steps, state.L)
        near = 0.5 * float((z - w) @ (z - w)) / state.step
        bound = float(F.phi(z, model))
        if F.late() or float(F.phi(z, F.value(z))) <= bound + near + 1e-7 * abs(bound) or state.step < 1e-12:
            break
        state.step *= 0.5
    state.w = z


def theory(k: Constants) -> dict[str, float]:
    """The step eta = 1 / (C_f L_g) and lam = eps / C_f^2 (section 6), for 2 delta0 / (eta eps^2)
    subproblems (5.3)."""
    eta = 1 / (k.C_f * k.L_g)
    values = {"eta": eta, "iterations": 2 * k.delta0 / (eta * k.eps**2)}
    if k.L_f < float("inf"):
        return values
    return {**values, "lam": k.eps / k.C_f**2}


algorithm = Algorithm(
    name="prox_linear",
    title="prox-linear",
    requires={
        "unconstrained": "Drusvyatskiy and Lewis 2018, problem (1.1)",
        "shared inner": "a full pass is F as a vector",
        "two levels": "a full pass is F as a vector",
        "finite sum": "a full pass is F as a vector",
        "prox regulariser": "Drusvyatskiy and Paquette 2019, problem (1.1)",
        "outer convex": "Drusvyatskiy and Paquette 2019, section 3",
        "outer Lipschitz": "Drusvyatskiy and Paquette 2019, section 3",
        "outer prox": "Drusvyatskiy and Paquette 2019, section 6 (phi smoothed)",
        "inner smooth": "Drusvyatskiy and Lewis 2018, section 3",
    },
    oracle="vector",
    loop=vector_loop,
    begin=begin,
    steps={"linearised": linearised_step},
    counts="oracle calls",
    rate="N / eps^2",
    theorem="Drusvyatskiy and Paquette 2019, Theorem 5.3",
    cite="Drusvyatskiy and Paquette, Efficiency of minimizing compositions of convex functions and "
    "smooth maps, "
    "Mathematical Programming 178, 2019",
    hyper={
        **vector_loop.DEFAULTS,
        "stage": 5,
        "longest": 20,
        "growth": 1.3,
        "gain": 1e-6,
        "patience": 3,
        "inner_steps": 50,
    },
    grid=grids.VECTOR,
    theory=theory,
)
