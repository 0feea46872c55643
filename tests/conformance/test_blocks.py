"""Emitted steps against the papers' updates, written down once more in NumPy: same samples, same
constants, same iterates.

Every reference takes a ``slip``, a mistake that a program might make; with it the iterates must differ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from support.emitted_models import Case, Made, make, settings

STEPS, KINK, BOUND = 12, 1.2, 0.5
HEAD = (
    "dim d; data D : table(x: real[d], y: {-1, 1}); set P = {z in D | z.y == 1}; set N = {z in D | "
    "z.y == -1}; var w[d];"
)
SMOOTH = "minimize mean[i in P] square(E[j ~ N] square(1 + dot(w, j.x) - dot(w, i.x)));"
GROWING = "minimize mean[i in P] exp(E[j ~ N] square(1 + dot(w, j.x) - dot(w, i.x)));"
KINKED = f"minimize mean[i in P] pos((E[j ~ N] square(1 + dot(w, j.x) - dot(w, i.x))) - {KINK});"
WORST = "minimize cvar(tail = 0.5)[i in P] (E[j ~ N] square(1 + dot(w, j.x) - dot(w, i.x)));"
CONSTRAINED = f"minimize square(sumsq(w - 1)); subject to c: E[j ~ N] square(1 + dot(w, j.x)) <= {BOUND};"
BELOW, ABOVE = 1.45, 1.55
BAND = (
    "minimize square(sumsq(w - 1)); subject to c: abs((E[j ~ N] square(1 + dot(w, j.x))) - 1.5) <= "
    f"{ABOVE - 1.5};"
)
CONSTANTS = {
    "eta": 0.015, "gamma": 0.4, "gamma_prime": 0.9, "beta": 0.2, "tau": 0.3, "theta": 0.6, "lam_y1": 0.9, "rho": 1.3,
    "inner_eta": 0.03, "nu": 0.1, "inner_steps": 2,
}  # fmt: skip


def table() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {"D": {"x": rng.normal(size=(16, 2)), "y": np.array([1, -1] * 7 + [-1, -1])}}


class Blocks:
    """g_i(w; j), its Jacobian, and what a method keeps: u and y by block, w and w_{t-1}."""

    def __init__(self, coupled: bool) -> None:
        self.x, self.coupled = table()["D"]["x"], coupled
        self.rows = {name: np.flatnonzero(table()["D"]["y"] == y) for name, y in (("P", 1), ("N", -1))}
        self.n, self.B1 = (len(self.rows["P"]), 3) if coupled else (1, 1)
        self.h = SimpleNamespace(**CONSTANTS)
        self.w = self.w_prev = self.z = self.z_prev = np.array([0.3, -0.2])
        self.steps = 0
        self.before = np.full(len(self.x), np.nan)
        self.v, self.u, self.y = np.zeros(2), np.full(len(self.x), np.nan), np.zeros(len(self.x))

    def g(self, w: np.ndarray, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and Jacobians of the sampled blocks."""
        left = self.x[self.rows["P"][i]] if self.coupled else np.zeros((1, 2))
        difference = self.x[self.rows["N"][j]][None] - left[:, None]
        t = 1 + difference @ w
        return (t**2).mean(1), (2 * t[..., None] * difference).mean(1)

    def cells(self, i: np.ndarray) -> np.ndarray:
        return self.rows["P"][i] if self.coupled else np.array([0])

    def objective(self, w: np.ndarray) -> np.ndarray:
        """The gradient of the part that is no composition."""
        return np.zeros(2) if self.coupled else 4 * ((w - 1) ** 2).sum() * (w - 1)

    def move(self, step: np.ndarray) -> None:
        self.w_prev, self.w = self.w, self.w - step


Update = Callable[[Blocks, np.ndarray, np.ndarray, np.ndarray, str], None]


def first(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(old), value, old)


def sox(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """sox-2022, Algorithm 1: the gradient by the previous u."""
    h, k, (g, J) = b.h, b.cells(i), b.g(b.w, i, j)
    old = first(b.u[k], g)
    b.u[k] = (1 - h.gamma) * old + h.gamma * g
    slope = 2 * (b.u[k] if slip == "current u" else old)
    b.v = (1 - h.beta) * b.v + h.beta * (h.beta if slip == "extra beta" else 1) * (slope @ J) / b.B1
    b.move(h.eta * b.v)


def sox_convex(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """sox-2022, section 3.4: beta = 1."""
    h, k, (g, J) = b.h, b.cells(i), b.g(b.w, i, j)
    old = first(b.u[k], g)
    b.u[k] = (1 - h.gamma) * old + h.gamma * g
    b.move(h.eta * (2 * (b.u[k] if slip == "current u" else old) @ J) / b.B1)


def bsgd(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    g, J = b.g(b.w, i, j)
    b.move(b.h.eta * (2 * g @ J) / b.B1)


def soap(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """sox-2022, section 3.1: the new u, no momentum."""
    h, k, (g, J) = b.h, b.cells(i), b.g(b.w, i, j)
    old = first(b.u[k], g)
    b.u[k] = (1 - h.gamma) * old + h.gamma * g
    b.move(h.eta * (2 * (old if slip == "stale u" else b.u[k]) @ J) / b.B1)


def moap(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """sox-2022, equation (3)."""
    h, k, (g, J) = b.h, b.cells(i), b.g(b.w, i, j)
    new = b.u.copy() if slip == "others stay" else (1 - h.gamma) * b.u
    scale = 1 if slip == "no scale" else b.n / b.B1
    new[k] = first((1 - h.gamma) * b.u[k] + h.gamma * scale * g, g)
    b.u = new
    b.v = (1 - h.beta) * b.v + h.beta * (2 * b.u[k] @ J) / b.B1
    b.move(h.eta * b.v)


def msvr(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """Estimates with the theorem's gamma'; STORM by u_{t-1} at w_t and u_{t-2} at w_{t-1}."""
    h, k, (g, J), (g_prev, J_prev) = b.h, b.cells(i), b.g(b.w, i, j), b.g(b.w_prev, i, j)
    gamma_prime = (b.n - b.B1) / (b.B1 * (1 - h.gamma)) + 1 - h.gamma
    old = first(b.u[k], g_prev)
    before = first(b.before[k], g_prev)
    b.before = b.u.copy()
    b.u[k] = (1 - h.gamma) * old + h.gamma * g + gamma_prime * (g - g_prev)
    G = (2 * (b.u[k] if slip == "current u" else old) @ J) / b.B1
    G_prev = (2 * (old if slip == "one u" else before) @ J_prev) / b.B1
    b.v = G + (1 - h.beta) * (b.v - G_prev) if b.v.any() else G
    b.move(h.eta * b.v)


def corrected(b: Blocks, k: np.ndarray, g: np.ndarray, g_prev: np.ndarray) -> None:
    """u by MSVR with gamma and gamma' of their own (sonex-alexr2-2025, Algorithm 1)."""
    old = first(b.u[k], g)
    b.u[k] = (1 - b.h.gamma) * old + b.h.gamma * g + b.h.gamma_prime * (g - g_prev)


def sonx(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    k, (g, J), (g_prev, _) = b.cells(i), b.g(b.w, i, j), b.g(b.w_prev, i, j)
    old = first(b.u[k], g)
    corrected(b, k, g, g if slip == "no correction" else g_prev)
    b.move(b.h.eta * (((b.u[k] if slip == "current u" else old) > KINK) @ J) / b.B1)


def sonex(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """sonex-alexr2-2025, Algorithm 1: the gradient by the previous u (line 9)."""
    h, k, (g, J), (g_prev, _) = b.h, b.cells(i), b.g(b.w, i, j), b.g(b.w_prev, i, j)
    old = first(b.u[k], g)
    corrected(b, k, g, g if slip == "no correction" else g_prev)
    y = np.clip(((b.u[k] if slip == "current u" else old) - KINK) / h.lam_y1, 0, 1)
    b.v = (1 - h.beta) * b.v + h.beta * (h.beta if slip == "extra beta" else 1) * (y @ J) / b.B1
    b.move(h.eta * b.v)


def extrapolated(b: Blocks, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    g, g_prev = b.g(b.w, i, j)[0], b.g(b.w_prev, i, j)[0]
    return g + b.h.theta * (g - g_prev)


def alexr(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """alexr-2025, Algorithm 1 with psi = f*, by Lemma 1."""
    h, k, J = b.h, b.cells(i), b.g(b.w, i, j if slip == "one batch" else j2)[1]
    old = first(b.u[k], b.g(b.w, i, j)[0])
    weights = (1, h.tau) if slip == "swapped weights" else (h.tau, 1)
    b.u[k] = (weights[0] * old + weights[1] * extrapolated(b, i, j)) / (1 + h.tau)
    b.move(h.eta * (2 * (old if slip == "stale u" else b.u[k]) @ J) / b.B1)


def alexr_dual(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """alexr-2025, Algorithm 1 with psi the half square: y <- argmax_v v g~ - f*(v) - tau/2 (v - y)^2,
    tau times the scale lam."""
    h, k, J = b.h, b.cells(i), b.g(b.w, i, j if slip == "one batch" else j2)[1]
    old = b.y[k].copy()
    b.y[k] = np.clip(b.y[k] + (extrapolated(b, i, j) - KINK) / (h.tau * h.lam_y1), 0, 1)
    b.move(h.eta * ((old if slip == "stale y" else b.y[k]) @ J) / b.B1)


def alexr_squares(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """The same of f(u) = u^2, f*(v) = v^2 / 4: v g~ - v^2 / 4 - s/2 (v - y)^2 is largest at (g~ + s y)
    / (1/2 + s)."""
    h, k, J = b.h, b.cells(i), b.g(b.w, i, j if slip == "one batch" else j2)[1]
    old, s = b.y[k].copy(), b.h.tau * b.h.lam_y1
    b.y[k] = (extrapolated(b, i, j) + s * old) / ((1 if slip == "f* of a half square" else 1 / 2) + s)
    b.move(h.eta * ((old if slip == "stale y" else b.y[k]) @ J) / b.B1)


def alexr_exponential(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """And of f(u) = exp(u), f*(v) = v log v - v: the v with g~ - log v - s (v - y) = 0, by bisection."""
    h, k, J, s = b.h, b.cells(i), b.g(b.w, i, j2)[1], b.h.tau * b.h.lam_y1
    ahead, low, high = extrapolated(b, i, j), np.full(len(k), 1e-12), np.full(len(k), 1e6)
    for _ in range(200):
        middle = (low + high) / 2
        rising = ahead - np.log(middle) - (0 if slip == "no distance" else s * (middle - b.y[k])) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    b.y[k] = low
    b.move(h.eta * (b.y[k] @ J) / b.B1)


def alexr2(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """sonex-alexr2-2025, Algorithm 2, with G_t as its Theorem 4.10 has it."""
    h, k = b.h, b.cells(i)
    if b.steps % h.inner_steps == 0:
        b.z, b.z_prev = b.w, b.w if slip == "jump unseen" or not b.steps else b.z_prev
    z, J = b.z, b.g(b.z, i, j if slip == "one batch" else j2)[1]
    old = first(b.u[k], b.g(z, i, j)[0])
    corrected(b, k, b.g(z, i, j)[0], b.g(b.z_prev, i, j)[0])
    G = (np.clip(((old if slip == "stale u" else b.u[k]) - KINK) / h.lam_y1, 0, 1) @ J) / b.B1
    b.z_prev, b.z = z, (b.w / h.nu + z / h.inner_eta - G) / (1 / h.nu + 1 / h.inner_eta)
    b.steps += 1
    if b.steps % h.inner_steps == 0:
        outer = (b.w - b.z) / h.nu * (h.beta if slip == "extra beta" else 1)
        b.v = (1 - h.beta) * b.v + h.beta * outer
        b.move(h.eta * b.v)


def squared_hinge(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    h, k, (g, J) = b.h, b.cells(i), b.g(b.w, i, j)
    old = first(b.u[k], g)
    b.u[k] = (1 - h.gamma) * old + h.gamma * g
    slope = h.rho * np.maximum((b.u[k] if slip == "current u" else old) - BOUND, 0)
    b.v = (1 - h.beta) * b.v + h.beta * (b.objective(b.w) + slope @ J)
    b.move(h.eta * b.v)


def icppac(
    b: Blocks,
    i: np.ndarray,
    j: np.ndarray,
    j2: np.ndarray,
    slip: str,
    low: float = -np.inf,
    high: float = BOUND,
) -> None:
    """Boob, Deng and Lan 2023, Algorithms 1 and 4, with values for linearisations: q = |z - w|^2 / (2
    nu), max over y+, y- >= 0 of y+ (g - high + q) + y- (low + q - g), at most one of them positive;
    z <- argmin of <G, z> + (1 + y+ + y-) q +
    |z - z_k|^2 / (2 eta); w is z_K."""
    h = b.h
    z = b.w if b.steps == 0 else b.z
    (g, J), (g_prev, _) = b.g(z, i, j), b.g(b.z_prev, i, j)
    q, q_prev = (0 if slip == "no quadratic" else ((x - b.w) ** 2).sum() / (2 * h.nu) for x in (z, b.z_prev))
    theta = 0 if slip == "no extrapolation" else h.theta
    ahead, q = g + theta * (g - g_prev), q if slip == "quadratic as it is" else q + theta * (q - q_prev)
    old, step = b.y[:1].copy(), h.tau * h.lam_y1
    q = min(q, (high - low) / 2)
    above, below = b.y[:1] + (ahead - high + q) / step, b.y[:1] + (ahead - low - q) / step
    b.y[:1] = np.maximum(above, 0) + np.minimum(below, 0)
    G = b.objective(z) + (old if slip == "stale y" else b.y[:1]) @ J
    pull = (1 + (0 if slip == "no pull" else b.y[0] if slip == "signed pull" else abs(b.y[0]))) / h.nu
    b.z_prev, b.z = z, (pull * b.w + z / h.eta - G) / (pull + 1 / h.eta)
    b.steps = (b.steps + 1) % h.inner_steps
    if b.steps == 0:
        b.w = b.z


def ooa(b: Blocks, i: np.ndarray, j: np.ndarray, j2: np.ndarray, slip: str) -> None:
    """alexr-2025, appendix F: unscaled ascent of the sampled weights, projection on the capped simplex."""
    h, k, (g, J), everyone = b.h, b.cells(i), b.g(b.w, i, j), b.rows["P"]
    old = b.y[k].copy()
    b.y[k] = b.y[k] + g / (len(everyone) * h.tau) * (b.n / b.B1 if slip == "scaled ascent" else 1)
    cap, low, high = 1 / (0.5 * b.n), -20.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(b.y[everyone] - middle, 0, cap).sum() > 1 else (low, middle)
    b.y[everyone] = np.clip(b.y[everyone] - low, 0, 1 if slip == "no cap" else cap)
    b.move(h.eta * b.n / b.B1 * ((old if slip == "stale y" else b.y[k]) @ J))


CONEX = ("no quadratic", "quadratic as it is", "no pull")
REFERENCES: dict[str, tuple[str, str, str, Update, tuple[str, ...]]] = {
    "sox": ("sox", "momentum", SMOOTH, sox, ("current u", "extra beta")),
    "sox_boost": ("sox_boost", "momentum", SMOOTH, sox, ("current u",)),
    "sox_convex": ("sox_convex", "plain", SMOOTH, sox_convex, ("current u",)),
    "bsgd": ("bsgd", "plain", SMOOTH, bsgd, ()),
    "soap": ("soap", "plain", SMOOTH, soap, ("stale u",)),
    "moap": ("moap", "momentum", SMOOTH, moap, ("others stay", "no scale")),
    "msvr": ("msvr", "storm", SMOOTH, msvr, ("current u", "one u")),
    "sonx": ("sonx", "plain", KINKED, sonx, ("no correction", "current u")),
    "sonex": ("sonex", "momentum", KINKED, sonex, ("no correction", "current u", "extra beta")),
    "alexr": ("alexr", "plain", SMOOTH, alexr, ("one batch", "swapped weights", "stale u")),
    "alexr, half square": ("alexr", "plain", KINKED, alexr_dual, ("one batch", "stale y")),
    "alexr, half square, smooth": (
        "alexr_quadratic",
        "plain",
        SMOOTH,
        alexr_squares,
        ("one batch", "stale y", "f* of a half square"),
    ),
    "alexr, half square, exponential": (
        "alexr_quadratic",
        "plain",
        GROWING,
        alexr_exponential,
        ("no distance",),
    ),
    "alexr2": ("alexr2", "momentum", KINKED, alexr2, ("one batch", "extra beta", "jump unseen", "stale u")),
    "ooa": ("ooa", "plain", WORST, ooa, ("scaled ascent", "no cap", "stale y")),
    "squared hinge": ("squared_hinge_sox", "momentum", CONSTRAINED, squared_hinge, ("current u",)),
    "icppac": ("icppac", "proximal_point", CONSTRAINED, icppac, (*CONEX, "no extrapolation", "stale y")),
    "icppac, two-sided": (
        "icppac",
        "proximal_point",
        BAND,
        partial(icppac, low=BELOW, high=ABOVE),
        (*CONEX, "signed pull"),
    ),
}


def emitted(made: Made) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """The program's own iterates, and the samples of each step in the order i, j, and the second j."""
    solver = made.solver
    data = solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    h = settings(solver, **CONSTANTS)
    h.peak, h.weight = h.eta, 1.0
    w = torch.tensor([0.3, -0.2], dtype=torch.float64)
    state = SimpleNamespace(w=w, w_prev=w.clone())
    u, c = solver.buffers("cpu", torch.float64), solver.centres("cpu", torch.float64)
    parts = solver.draw(data, torch.Generator().manual_seed(2), STEPS)
    fresh = solver.as_namespace(dict(made.program.data), "cpu", torch.float64)
    places = made.positions(fresh, torch.Generator().manual_seed(2), STEPS).values()
    found, seen = [], []
    with torch.no_grad():
        solver.SOLVER.begin(state, h)
        for t in range(STEPS):
            solver.advance(solver.SOLVER, data, state, u, c, [part[t] for part in parts], h)
            found.append(state.w.numpy().copy())
            seen.append([part[t].numpy() for part in places])
    return found, seen


def iterates(update: Update, coupled: bool, seen: list[list[np.ndarray]], slip: str = "") -> list[np.ndarray]:
    blocks, found = Blocks(coupled), []
    if slip == "sign":
        blocks.h.eta, blocks.h.inner_eta = -blocks.h.eta, -blocks.h.inner_eta
    for batch in seen:
        i, rest = (batch[0], batch[1:]) if coupled else (np.zeros(1, dtype=int), batch)
        update(blocks, i, rest[0], rest[-1], slip)
        found.append(blocks.w.copy())
    return found


@pytest.mark.parametrize("name", REFERENCES)
def test_steps_are_those_of_the_paper(name: str) -> None:
    algorithm, step, body, update, slips = REFERENCES[name]
    options = {"algorithm": algorithm, "step": step, "outer_batch": 3, "inner_batch": 4, "unverified": True}
    made = make(name, Case(text=HEAD + body, data=table, options=options))
    coupled = body not in (CONSTRAINED, BAND)
    found, seen = emitted(made)
    np.testing.assert_allclose(found, iterates(update, coupled, seen), rtol=1e-9, atol=1e-12)
    assert len({str(w) for w in found}) > 2, "the iterates move"
    for slip in ("sign", *slips):
        count = 4 if slip == "sign" else STEPS  # the wrong way is soon far away
        assert np.abs(np.array(found[:count]) - iterates(update, coupled, seen[:count], slip)).max() > 1e-5, (
            slip
        )


def test_samples_of_the_outer_functions() -> None:
    """sox-2022, appendix E: the slope of f_i at the previous u_i by a sample of f_i, here f_i(u) = E_a
    (s_a u - t_a)^2."""
    rng = np.random.default_rng(5)
    A = {"s": rng.uniform(0.5, 2, size=9), "t": rng.normal(size=9)}
    text = HEAD + "data A : table(s: real, t: real);"
    text += (
        "minimize mean[i in P] E[a ~ A] square(a.s * (E[j ~ N] square(1 + dot(w, j.x) - dot(w, i.x))) - a.t);"
    )
    options = {"algorithm": "sox", "step": "momentum", "outer_batch": 3, "inner_batch": 4}
    made = make("stochastic f", Case(text=text, data=lambda: {**table(), "A": A}, options=options))
    found, seen = emitted(made)

    def reference(slip: str) -> list[np.ndarray]:
        b, at = Blocks(coupled=True), []
        for i, a, j in seen:
            k, (g, J) = b.cells(i), b.g(b.w, i, j)
            old = first(b.u[k], g)
            b.u[k] = (1 - b.h.gamma) * old + b.h.gamma * g
            s, t = (column if slip == "all of them" else column[a] for column in (A["s"], A["t"]))
            slope = (2 * s * (s * (b.u[k] if slip == "current u" else old)[:, None] - t)).mean(1)
            b.v = (1 - b.h.beta) * b.v + b.h.beta * (slope @ J) / b.B1
            b.move(b.h.eta * b.v)
            at.append(b.w.copy())
        return at

    np.testing.assert_allclose(found, reference(""), rtol=1e-9, atol=1e-12)
    for slip in ("all of them", "current u"):
        assert np.abs(np.array(found) - reference(slip)).max() > 1e-5, slip


@pytest.mark.parametrize(
    ("algorithm", "calls"),
    [("sox", 12), ("bsgd", 12), ("sonx", 24), ("sonex", 24), ("msvr", 24), ("alexr", 36), ("alexr2", 36)],
)
def test_oracle_calls_of_a_step(algorithm: str, calls: int) -> None:
    options = {"algorithm": algorithm, "outer_batch": 3, "inner_batch": 4, "unverified": True}
    solver = make("oracles", Case(text=HEAD + SMOOTH, data=table, options=options)).solver
    assert calls == solver.SOLVER.oracles, (
        "B1 B2, once more for the point before, once more for a second batch"
    )


def test_a_budget_of_oracle_calls_ends_a_run() -> None:
    options = {"algorithm": "sox", "outer_batch": 3, "inner_batch": 4}
    made = make("oracles", Case(text=HEAD + SMOOTH, data=table, options=options))
    with torch.no_grad():
        found = made.solver.solve(
            made.solver.SOLVER, dict(made.program.data), seconds=None, oracles=12 * 250 + 5
        )
    assert found.iterations == 250 and found.history[-1]["oracles"] == 12 * 250
