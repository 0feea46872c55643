"""The algorithms on phi(F(w)): F and phi against the interpreter, updates against NumPy, both forms of
the Jacobian."""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from conformance.problems import ALL, HEAD, regression
from conformance.runs import judged, needs_cvxpy, outcome
from fccomodel import algorithms, pipeline
from fccomodel.algorithms import Constants
from fccomodel.algorithms import hscg as hscg_module
from fccomodel.algorithms.runtime.loops.vector_oracle import VectorOracle
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.evaluation import interpret
from fccomodel.execution import run
from fccomodel.execution.run.loading import loaded
from fccomodel.program import emit
from fccomodel.program.lower import VectorSteps, lower
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.reductions import reductions

BY_NAME = {p.name: p for p in ALL}
VECTOR = sorted(name for name, a in algorithms.all().items() if a.oracle == "vector")
MODELS = {
    "plain": HEAD + "minimize E[z ~ D] square(dot(w, z.x) - z.y) + log1pexp(sum(w));",
    "variance": HEAD + "minimize variance[z ~ D] dot(w, z.x) - E[z ~ D] dot(w, z.x);",
    "groups": HEAD + "minimize mean[k in {0, 1, 2, 3, 4}] square(E[z ~ D | z.g == k] square(dot(w, z.x) "
                     "- z.y));",
    "pairs": HEAD + "minimize mean[i in D] log1pexp(E[j ~ D] tanh(dot(w, j.x) - dot(w, i.x)) * i.y);",
    "ordered": HEAD + "minimize mean[i in D] log(E[j ~ D | j.y >= i.y] exp(dot(w, j.x) / 4 - dot(w, i.x) "
                      "/ 4));",
    "ratios": HEAD + "minimize mean[i in D] ((E[j ~ D | j.y >= i.y] exp(-sumsq(w * (j.x - i.x)) / 4)) "
    "/ (1 + E[j ~ D | j.y != i.y] exp(-sumsq(w * (j.x - i.x)) / 4)));",
    "worst": HEAD + "minimize max[k in {0, 1, 2, 3, 4}] (E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)) "
                    "+ square(sum(w));",
    "bounded": HEAD + "minimize E[z ~ D] square(dot(w, z.x) - z.y);\n"
    "subject to one: E[z ~ D | z.g == 1] square(dot(w, z.x) - z.y) <= 0.27;",
    "vectors": HEAD + "minimize norm2(E[z ~ D] z.x * (dot(w, z.x) - z.y));",
}  # fmt: skip


class Made:
    """A model on data, planned for a vector algorithm: its steps lowered, and its program as a module
    in float64."""

    def __init__(self, text: str, algorithm: str = "hscg", **options: Any):
        compiled = pipeline.compile_model(Source(text=text, name="model"))
        self.bound = pipeline.bind(compiled, pipeline.Binding(data=regression()))
        chosen = {"algorithm": algorithm, "unverified": True, **options}
        self.plan = pipeline.decide(
            pipeline.analyse(compiled.problem, self.bound), {k: (v, "test") for k, v in chosen.items()}
        )
        lowered = lower(compiled.problem, self.bound, self.plan)
        assert isinstance(lowered.steps, VectorSteps)
        self.steps = lowered.steps
        self.program = emit.emit(lowered)
        self.solver: Any = loaded(self.program)
        self.data = self.fresh()
        self.exact = self.solver.prepare_full(
            self.solver.as_namespace(dict(self.program.data), "cpu", torch.float64)
        )
        self.h = self.solver.Settings()
        self.c = self.solver.centres("cpu", torch.float64)

    def fresh(self) -> Any:
        """The data as a run begins with it."""
        return self.solver.prepare(self.solver.as_namespace(dict(self.program.data), "cpu", torch.float64))

    def named(self, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return {name: w[a:b].view(shape) for name, (a, b, shape) in self.program.layout.items()}

    def oracle(self, w: torch.Tensor, seed: int = 0) -> tuple[Any, Any]:
        state = SimpleNamespace(w=w, oracles=0, passed=0, t=0, epoch=0, length=self.h.stage)
        rng = torch.Generator().manual_seed(seed)
        return state, VectorOracle(self.solver.SOLVER, self.data, rng, self.c, state, self.h)


@cache
def made(name: str, algorithm: str = "hscg") -> Made:
    return Made(MODELS[name], algorithm)


def point(seed: int = 0, d: int = 4) -> torch.Tensor:
    return 0.4 * torch.randn(d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("name", MODELS)
def test_exact_values_are_the_interpreters(name: str) -> None:
    case = made(name)
    w = point()
    found = case.solver.inner_full(case.data, w, case.h)
    assert len(found) == case.solver.SOLVER.components
    for part in case.steps.components:
        env = {binder: Slots(case.steps.phi).known_ids(slot) for binder, slot in part.slots.items()}
        expected = interpret.evaluate(case.bound, part.node, case.named(w), env)
        torch.testing.assert_close(
            found[part.start : part.stop], expected.reshape(-1), rtol=1e-10, atol=1e-12
        )


@pytest.mark.parametrize("name", MODELS)
def test_phi_of_the_exact_values_is_the_objective(name: str) -> None:
    """Where phi is smoothed: as the smoothing vanishes."""
    case = made(name)
    for key in vars(case.h):
        if key.startswith("lam_"):
            setattr(case.h, key, 1e-9)
    w = point(1)
    value = case.solver.outer(case.data, w, case.solver.inner_full(case.data, w, case.h), case.c, case.h)
    objective, violation = judged(case.bound, case.named(w))
    assert float(value) == pytest.approx(objective + case.h.rho * max(violation, 0.0), rel=1e-6)


@pytest.mark.parametrize("name", ["plain", "variance", "groups", "pairs", "ordered"])
def test_gradients_are_those_of_the_exact_objective(name: str) -> None:
    """By another way through the text: autograd through ``evaluate``."""
    case, w = made(name), point(2)
    state, F = case.oracle(w)
    at = F.whole(w)
    s, direct = F.slope(w, at.value)
    x = w.clone().requires_grad_()
    (expected,) = torch.autograd.grad(case.solver.evaluate(case.exact, x)[0], x)
    torch.testing.assert_close(at.pull(s) + direct, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(s @ at.matrix() + direct, expected, rtol=1e-9, atol=1e-12)
    d = point(3)
    torch.testing.assert_close(at.push(d), at.matrix() @ d, rtol=1e-9, atol=1e-12)
    assert state.oracles == case.solver.SOLVER.rows


@pytest.mark.parametrize("name", ["pairs", "ordered", "ratios"])
def test_slices_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, w = made(name), point(4)
    monkeypatch.setattr(reductions, "DENSE", 1000)
    sliced = Made(MODELS[name])
    assert " sliced(" in sliced.program.text and " sliced(" not in whole.program.text
    results = []
    for case in (sliced, whole):
        _, F = case.oracle(w)
        at = F.whole(w)
        results.append((at.value, at.pull(F.slope(w, at.value)[0])))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["variance", "groups", "pairs", "ordered"])
def test_minibatches_are_unbiased(name: str) -> None:
    case, w = Made(MODELS[name], outer_batch=5, inner_batch=5), point(5)
    _, F = case.oracle(w)
    values = torch.stack([F.sample(w, F.batch()).value for _ in range(1500)])
    error = (values.mean(0) - F.value(w)).abs() / (values.std(0) / math.sqrt(len(values)) + 1e-12)
    assert float(values.std(0).max()) > 1e-3
    assert float(error.max()) < 5


# -------------------------------------------------------------- each update against a transcription
LAMBDA = 0.05
SPARSE = (
    HEAD
    + f"let m = E[z ~ D] dot(w, z.x);\nminimize 0.5 * (E[z ~ D] square(dot(w, z.x)) - m^2) - m + {LAMBDA} "
    "* norm1(w);"
)


class Portfolio:
    """F = (E s, E s^2), s = x.w, in whatever order the program has them; phi = 0.5 (F_2 - F_1^2) -
    F_1; R = lambda |w|_1.

    ``slip``: a mistake that a program might make.
    """

    def __init__(self, case: Made, seed: int, slip: str = ""):
        self.slip: str = slip
        self.before: np.ndarray | None = None
        self.x = case.data.D_x.numpy()
        texts = [case.bound.problem.text(c.node) for c in case.steps.components]
        (self.square,) = (k for k, t in enumerate(texts) if "square" in t)
        assert len(texts) == 2
        rng, data = torch.Generator().manual_seed(seed), case.fresh()
        self.batches = [
            k.numpy() for _ in range(2) for k in case.solver.draw(data, rng, case.solver.SOLVER.block)[0]
        ]
        self.drawn = 0

    def rows(self) -> np.ndarray:
        self.drawn += 1
        return self.x[self.batches[0 if self.slip == "one batch" else self.drawn - 1]]

    def F(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        s = x @ w
        found = np.array([s.mean(), s.mean()])
        found[self.square] = (s**2).mean()
        return found

    def J(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        rows = np.array([x.mean(0), x.mean(0)])
        rows[self.square] = 2 * (x.T @ (x @ w)) / len(x)
        return rows

    def slope(self, u: np.ndarray) -> np.ndarray:
        u, self.before = (self.before if self.slip == "stale F" and self.before is not None else u), u
        found = np.full(2, -u[1 - self.square] - 1.0)
        found[self.square] = 0.5
        return -found if self.slip == "sign" else found

    @staticmethod
    def prox(w: np.ndarray, step: float) -> np.ndarray:
        return np.sign(w) * np.maximum(np.abs(w) - step * LAMBDA, 0)


def ascvrg(p: Portfolio, w: np.ndarray, h: Any, epochs: int) -> np.ndarray:
    """ascvrg-2021, Algorithm 1, with all outer samples in (5)."""
    reference, k, taken, T = w, h.stage, 0, h.stage * (2**h.epochs - 1)
    for _ in range(epochs):
        g0, G0 = p.F(reference, p.x), p.J(reference, p.x)
        v0, total = G0.T @ p.slope(g0), np.zeros_like(w)
        for _ in range(k):
            total = total + w
            x = p.rows()
            g = p.F(w, x) - p.F(reference, x) + g0
            G = p.J(w, x) - p.J(reference, x) + G0
            v = G.T @ p.slope(g) - G0.T @ p.slope(g0) + v0
            taken += 1
            eta = h.eta / 2 * math.sqrt(T) / math.sqrt(2 * T - taken)
            w = p.prox(w - eta * v, eta)
        reference, k = total / k, 2 * k
    return w


def vrsc_pg(p: Portfolio, w: np.ndarray, h: Any, epochs: int) -> np.ndarray:
    for _ in range(epochs):
        reference, g0, G0 = w, p.F(w, p.x), p.J(w, p.x)
        for _ in range(h.stage):
            x = p.rows()
            g, G = g0 + p.F(w, x) - p.F(reference, x), G0 + p.J(w, x) - p.J(reference, x)
            w = p.prox(w - h.eta / 2 * (G.T @ p.slope(g)), h.eta / 2)
    return w


def civr(p: Portfolio, w: np.ndarray, h: Any, epochs: int) -> np.ndarray:
    for _ in range(epochs):
        u, J = p.F(w, p.x), p.J(w, p.x)
        for _ in range(h.stage):
            w, before = p.prox(w - h.eta / 2 * (J.T @ p.slope(u)), h.eta / 2), w
            x = p.rows()
            u, J = u + p.F(w, x) - p.F(before, x), J + p.J(w, x) - p.J(before, x)
        w = p.prox(w - h.eta / 2 * (J.T @ p.slope(u)), h.eta / 2)
    return w


def hscg(
    p: Portfolio, w: np.ndarray, h: Any, epochs: int, diminishing: bool = False, products: bool = False
) -> np.ndarray:
    """hscg-2020, Algorithm 2 (smooth phi); ``products``: (16) for the product of J with the slope of
    phi, kept in place of J."""
    t = 0
    for _ in range(epochs):
        u, J, theta = p.F(w, p.x), p.J(w, p.x), h.theta
        s = p.slope(u)
        v, eta = J.T @ s, 2 * h.eta / (3 + theta)
        before, w = w, (1 - theta) * w + theta * p.prox(w - eta * v, eta)
        for _ in range(h.stage):
            beta = 1 - 1 / (t + 2) ** (2 / 3) if diminishing else 1 - math.sqrt(6 / 60 / (h.stage + 1))
            old, new = (1 - beta, beta) if p.slip == "swapped weights" else (beta, 1 - beta)
            theta = h.theta * (2 / (t + 2)) ** (1 / 3) if diminishing else h.theta
            first, second = p.rows(), p.rows()
            u = beta * u + beta * (p.F(w, first) - p.F(before, first)) + (1 - beta) * p.F(w, second)
            J = old * J + old * (p.J(w, first) - p.J(before, first)) + new * p.J(w, second)
            s, s_before = p.slope(u), s
            v = old * (v + p.J(w, first).T @ s - p.J(before, first).T @ s_before) + new * p.J(w, second).T @ s
            eta = 2 * h.eta / (3 + theta)
            before, w = w, (1 - theta) * w + theta * p.prox(w - eta * (v if products else J.T @ s), eta)
            t += 1
    return w


def scgd(p: Portfolio, w: np.ndarray, h: Any, epochs: int) -> np.ndarray:
    u = p.F(w, p.rows())
    for t in range(epochs * h.stage):
        alpha, beta = h.eta * (1 + t / h.warm) ** -0.75, (1 + t / h.warm) ** -0.5
        x = p.rows()
        u = (1 - beta) * u + beta * p.F(w, x)
        w = p.prox(w - alpha * p.J(w, x).T @ p.slope(u), alpha)
    return w


def asc_pg(p: Portfolio, w: np.ndarray, h: Any, epochs: int) -> np.ndarray:
    y = p.F(w, p.rows())
    for t in range(epochs * h.stage):
        alpha, beta = h.eta * (1 + t / h.warm) ** (-5 / 9), (1 + t / h.warm) ** (-4 / 9)
        new = p.prox(w - alpha * p.J(w, p.rows()).T @ p.slope(y), alpha)
        z = (1 - 1 / beta) * w + new / beta
        y = (1 - beta) * y + beta * p.F(z, p.rows())
        w = new
    return w


def nasa(p: Portfolio, w: np.ndarray, h: Any, epochs: int) -> np.ndarray:
    x = p.rows()
    u = p.F(w, x)
    z = p.J(w, x).T @ p.slope(u)
    for t in range(epochs * h.stage):
        tau = h.tau * (1 + t / h.warm) ** -0.5
        w = w + tau * (p.prox(w - h.eta * z, h.eta) - w)
        x = p.rows()
        z, u = (1 - tau) * z + tau * p.J(w, x).T @ p.slope(u), (1 - tau) * u + tau * p.F(w, x)
    return w


TRANSCRIBED = {
    "ascvrg": ascvrg,
    "vrsc_pg": vrsc_pg,
    "civr": civr,
    "hscg": hscg,
    "scgd": scgd,
    "asc_pg": asc_pg,
    "nasa": nasa,
}


@pytest.mark.parametrize("name", [*TRANSCRIBED, "hscg diminishing", "hscg products"])
def test_updates_are_the_papers(name: str) -> None:
    """Two epochs of a few steps with the same samples."""
    name, _, form = name.partition(" ")
    options = {"": {}, "diminishing": {"step": form}, "products": {"matrix": 0.0}}[form]
    case = Made(SPARSE, name, inner_batch=6, eta=0.1, stage=4, **options)
    start = point(6)
    state, F = case.oracle(start.clone(), seed=9)
    for epoch in range(2):
        state.epoch, state.length = epoch, 4 * (2**epoch if name == "ascvrg" else 1)
        case.solver.SOLVER.begin(state, F, case.h)
        for _ in range(state.length):
            case.solver.SOLVER.update(state, F, case.h)
            state.t += 1
    extra = {form: True} if form else {}
    expected = TRANSCRIBED[name](Portfolio(case, 9), start.numpy(), case.h, 2, **extra)
    np.testing.assert_allclose(state.w.numpy(), expected, rtol=1e-9, atol=1e-12)
    for slip in ("one batch", "sign", "stale F", *(("swapped weights",) if name == "hscg" else ())):
        mistaken = TRANSCRIBED[name](Portfolio(case, 9, slip), start.numpy(), case.h, 2, **extra)
        assert np.abs(mistaken - state.w.numpy()).max() > 1e-5, slip


SPREAD = HEAD + f"minimize mean[i in D] square((E[j ~ D] square(dot(w, j.x))) - i.y) + {LAMBDA} * norm1(w);"


def ascvrg_by_samples(case: Made, w: np.ndarray, seed: int, slip: str = "") -> np.ndarray:
    """ascvrg-2021, Algorithm 1 on g_j = (w.x_j)^2, f_i(u) = (u - y_i)^2: (3), (4) and (5), the f_i of
    a sample C alone."""
    x, y, h = case.data.D_x.numpy(), case.data.D_y.numpy(), case.h
    rng, data = torch.Generator().manual_seed(seed), case.fresh()
    drawn = [case.solver.draw(data, rng, case.solver.SOLVER.block) for _ in range(2)]
    assert [tuple(part.shape[1:]) for part in drawn[0]] == [(6,), (6,)]
    samples = iter(zip(*(torch.cat(parts).numpy() for parts in zip(*drawn, strict=True)), strict=True))
    reference, k, taken, T = w, h.stage, 0, h.stage * (2**h.epochs - 1)

    def g(w: np.ndarray, rows: Any) -> Any:
        return ((x[rows] @ w) ** 2).mean()

    def G(w: np.ndarray, rows: Any) -> np.ndarray:
        return 2 * x[rows].T @ (x[rows] @ w) / len(x[rows])

    def slope(u: Any, rows: Any) -> Any:
        return 2 * (u - (y if slip == "all of them" else y[rows])).mean()

    for _ in range(2):
        everything = np.arange(len(x))
        g0, G0, total = g(reference, everything), G(reference, everything), np.zeros_like(w)
        v0 = G0 * 2 * (g0 - y).mean()
        for _ in range(k):
            total, (A, C) = total + w, next(samples)
            gt, Gt = g(w, A) - g(reference, A) + g0, G(w, A) - G(reference, A) + G0
            v = Gt * slope(gt, C) + (0 if slip == "no correction" else v0 - G0 * slope(g0, C))
            taken += 1
            eta = h.eta / 2 * math.sqrt(T) / math.sqrt(2 * T - taken)
            w = Portfolio.prox(w - eta * (-v if slip == "sign" else v), eta)
        reference, k = total / k, 2 * k
    return w


def test_samples_of_the_outer_index() -> None:
    case, start = Made(SPREAD, "ascvrg", inner_batch=6, eta=0.02, stage=4), point(6)
    state, F = case.oracle(start.clone(), seed=9)
    for epoch in range(2):
        state.epoch, state.length = epoch, 4 * 2**epoch
        case.solver.SOLVER.begin(state, F, case.h)
        for _ in range(state.length):
            case.solver.SOLVER.update(state, F, case.h)
            state.t += 1
    np.testing.assert_allclose(
        state.w.numpy(), ascvrg_by_samples(case, start.numpy(), 9), rtol=1e-9, atol=1e-12
    )
    for slip in ("all of them", "no correction", "sign"):
        assert np.abs(ascvrg_by_samples(case, start.numpy(), 9, slip) - state.w.numpy()).max() > 1e-5, slip


@pytest.mark.parametrize("name", ["groups", "pairs", "ordered"])
def test_samples_of_phi_are_unbiased(name: str) -> None:
    case, w = Made(MODELS[name], "ascvrg", outer_batch=4, inner_batch=5, sampling="iid"), point(5)
    u = case.solver.inner_full(case.data, w, case.h)
    state, F = case.oracle(w)
    values = torch.stack(
        [case.solver.outer_part(case.data, w, u, case.c, F.batch(), case.h) for _ in range(1500)]
    )
    assert float(values.std()) > 1e-3
    assert (
        abs(float(values.mean() - case.solver.outer(case.data, w, u, case.c, case.h)))
        < 5 * float(values.std()) / 38
    )
    s, _ = F.slope(w, u)
    slopes = torch.stack([F.slope(w, u, 1.0, F.batch())[0] for _ in range(1500)])
    assert float(((slopes.mean(0) - s).abs() / (slopes.std(0) + 1e-9)).max()) < 5 / 38
    assert Made(MODELS[name], "hscg", outer_batch=4).solver.SOLVER.outer_part is None


def test_phi_is_whole_where_every_step_has_all_of_it() -> None:
    """Outer functions that are few are all in every step, and so are those under a function that is
    not linear."""
    under = HEAD + "minimize prod[k in {0, 1, 2}] (1 + E[z ~ D | z.g == k] square(dot(w, z.x)));"
    for text, options in ((SPREAD, {"inner_batch": 60}), (under, {"outer_batch": 2})):
        assert Made(text, "ascvrg", **options).solver.SOLVER.outer_part is None


TARGETS = (1.0, -0.5, 0.2)
SMOOTHING = 0.4
MAXIMUM = ", ".join(f"E[z ~ D] square(dot(w, z.x) - {t})" for t in TARGETS).replace("- -", "+ ")
LARGEST = HEAD + f"minimize max({MAXIMUM}) + {LAMBDA} * norm1(w);"


class Worst(Portfolio):
    """F_k = E (s - t_k)^2, phi the largest: y = argmax <u, y> - lam b(y) on the simplex with b = log n
    + sum y log y (or, a slip, half a square)."""

    def __init__(self, case: Made, seed: int, slip: str = ""):
        self.slip, self.before, self.x, self.lam = slip, None, case.data.D_x.numpy(), SMOOTHING
        texts = [case.bound.problem.text(c.node) for c in case.steps.components]
        self.t = np.array([next(t for t in TARGETS if str(abs(t)) in text) for text in texts])
        rng, data = torch.Generator().manual_seed(seed), case.fresh()
        self.batches = [
            k.numpy() for _ in range(2) for k in case.solver.draw(data, rng, case.solver.SOLVER.block)[0]
        ]
        self.drawn = 0

    def F(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.array([((x @ w - t) ** 2).mean() for t in self.t])

    def J(self, w: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.array([2 * (x.T @ (x @ w - t)) / len(x) for t in self.t])

    def slope(self, u: np.ndarray) -> np.ndarray:
        u, self.before = (self.before if self.slip == "stale F" and self.before is not None else u), u
        if self.slip == "half squares":
            return simplex(u / self.lam + 1 / 3)
        p = np.exp((u - u.max()) / self.lam)
        return (-1 if self.slip == "sign" else 1) * p / p.sum()


def simplex(v: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, by bisection."""
    low, high = v.min() - 1, v.max()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(v - low, 0)


def test_entropy_on_the_simplex() -> None:
    """hscg-2020, section 2.3: the same steps with y ~ exp(u / gamma), and the slope of the next centre
    by c exp(u / gamma)."""
    case = Made(LARGEST, "hscg_entropy", inner_batch=6, eta=0.1, stage=4)
    start = point(6)
    state, F = case.oracle(start.clone(), seed=9)
    for name in [key for key in vars(case.h) if key.startswith("lam_")]:
        setattr(case.h, name, SMOOTHING)
    for epoch in range(2):
        state.epoch, state.length = epoch, 4
        case.solver.SOLVER.begin(state, F, case.h)
        for _ in range(state.length):
            case.solver.SOLVER.update(state, F, case.h)
            state.t += 1
    np.testing.assert_allclose(
        state.w.numpy(), hscg(Worst(case, 9), start.numpy(), case.h, 2), rtol=1e-9, atol=1e-12
    )
    for slip in ("half squares", "one batch", "sign", "stale F", "swapped weights"):
        mistaken = hscg(Worst(case, 9, slip), start.numpy(), case.h, 2)
        assert np.abs(mistaken - state.w.numpy()).max() > 1e-5, slip


def test_no_pair_is_made_where_the_bound_of_its_residual_is_infinite() -> None:
    """D_psi of Lemma 3.1 is the largest gradient of b, which entropy has none of; centres take away
    its bias all the same."""
    squares, entropy = (Made(MODELS["worst"], name) for name in ("hscg", "hscg_entropy"))
    found = [
        run.run(case.program, case.bound, run.RunSettings(seed=0, iterations=300, precision="float64"))
        for case in (squares, entropy)
    ]
    assert ["(hscg-2020, Lemma 3.1)" in " ".join(f.notes) for f in found] == [True, False]
    values = [f.history[-1]["objective"] for f in found]
    assert values[1] <= values[0] + 1e-4


@pytest.mark.parametrize("name", ["vrsc_pg", "hscg"])
def test_products_agree_with_the_matrix_in_expectation(name: str) -> None:
    """The next step from the same state, averaged over samples (many: one batch for u and J has a bias
    of the order 1/B2)."""
    means, spreads = [], []
    for matrix in (0.0, 1e6):
        case = Made(SPARSE, name, inner_batch=30, eta=0.1, stage=4, matrix=matrix)
        state, F = case.oracle(point(7))
        assert F.keep == (matrix > 0)
        case.solver.SOLVER.begin(state, F, case.h)
        state.w = state.w + 0.1
        before, moved = dict(vars(state)), []
        for _ in range(400):
            vars(state).update(
                {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in before.items()}
            )
            moved.append(
                case.solver.corrected(state, F) if name == "vrsc_pg" else case.solver.hybrid(state, F, 0.7)
            )
        found = torch.stack(moved)
        means.append(found.mean(0))
        spreads.append(found.std(0) / math.sqrt(len(found)))
    assert float(((means[0] - means[1]).abs() / (spreads[0] + spreads[1])).max()) < 4


@pytest.mark.parametrize("name", VECTOR)
def test_all_run_by_products_with_the_jacobian(name: str) -> None:
    case = Made(MODELS["groups"], name, matrix=0.0, inner_batch=20)
    with case.solver.no_grad():
        found = case.solver.solve(
            case.solver.SOLVER, dict(case.program.data), iterations=5, seconds=None, dtype=torch.float64
        )
    assert math.isfinite(found.history[-1]["objective"]) and found.iterations == 5


def test_prox_linear_by_products_is_prox_linear_by_the_matrix() -> None:
    found = []
    for matrix in (0.0, 1e6):
        case = Made(MODELS["groups"], "prox_linear", eta=0.1, inner_steps=20, matrix=matrix)
        state, F = case.oracle(point(8))
        case.solver.SOLVER.begin(state, F, case.h)
        case.solver.SOLVER.update(state, F, case.h)
        found.append(state.w)
    torch.testing.assert_close(*found, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in VECTOR if algorithms.all()[name].theory is not None])
def test_schedules_of_theorems_shrink_with_the_accuracy(name: str) -> None:
    record = algorithms.all()[name]
    assert record.theory is not None
    coarse, fine = (record.theory(Constants(n=10, B1=10, B2=4, eps=eps, rows=100)) for eps in (1e-1, 1e-3))
    assert set(fine) <= {*record.hyper, "lam", "iterations", "outer_batch"}
    assert all(math.isfinite(value) and value > 0 for value in fine.values())
    assert fine["eta"] <= coarse["eta"]
    if name == "hscg":  # Theorem 3.1: theta <= 1, the weight of fresh samples falls, T grows as eps^-3
        assert fine["theta"] <= coarse["theta"] <= 1
        assert fine["fresh"] / (fine["horizon"] + 1) < coarse["fresh"] / (coarse["horizon"] + 1)
        assert fine["horizon"] == pytest.approx(1e6 * coarse["horizon"])


# ---------------------------------------------------------------------------------- runs to the end
def test_ascvrg_converges_linearly_on_a_strongly_convex_problem() -> None:
    """The gap falls by a constant factor per oracle call: over decades, the calls per decade stay of
    one size."""
    case = Made(MODELS["variance"], "ascvrg", inner_batch=10, gain=1e-14)
    x = case.data.D_x.numpy()
    covariance, mean = np.cov(x.T, ddof=0), x.mean(0)
    w = np.linalg.solve(2 * covariance, mean)
    optimum = float(w @ covariance @ w - mean @ w)
    found = run.run(case.program, case.bound, run.RunSettings(seed=0, iterations=1008, precision="float64"))
    calls = [e["oracles"] for e in found.history]
    gaps = [max(e["objective"] - optimum, 1e-16) for e in found.history]
    reached = [next(c for c, g in zip(calls, gaps, strict=True) if g <= 10.0**-k) for k in (2, 4, 6, 8, 10)]
    assert reached[-1] <= 12 * reached[0]
    assert gaps[-1] < 1e-10


def test_the_pair_of_lemma_3_1_bounds_the_residual() -> None:
    """At the returned point the gradient mapping of phi(F) + R is no larger than the epsilon reported."""
    case = Made(SPARSE, "hscg", inner_batch=20)
    solver = case.solver
    with solver.no_grad():
        found = solver.solve(
            solver.SOLVER, dict(case.program.data), seed=1, dtype=torch.float64, iterations=300
        )
    w = found.w.numpy()
    p = Portfolio(case, 0)
    gradient = p.J(w, p.x).T @ p.slope(p.F(w, p.x))
    distance = np.where(
        w != 0, np.abs(gradient + LAMBDA * np.sign(w)), np.maximum(np.abs(gradient) - LAMBDA, 0)
    )
    assert float(np.linalg.norm(distance)) <= found.epsilon * (1 + 1e-6) + 1e-12
    assert found.epsilon < 0.05


def test_what_they_refuse() -> None:
    for text in (MODELS["worst"], MODELS["bounded"]):
        with pytest.raises(FccoError) as error:
            Made(text, "ascvrg", unverified=False)
        assert error.value.diagnostics[0].code == "F0604"


# ------------------------------------------------------------------------- HSCG where phi has kinks
def test_diminishing_steps_fall_as_the_cube_root_with_kinks_and_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """hscg-2020, (21) and (25): theta falls and eta stays, or eta falls with gamma and theta stays,
    with values by 1 / gamma^2 minibatches."""
    seen: list[tuple[float, ...]] = []
    monkeypatch.setattr(
        hscg_module,
        "hybrid",
        lambda state, F, beta, gamma=1.0, values=1.0: seen.append((beta, gamma, values)),
    )
    monkeypatch.setattr(
        hscg_module, "averaged_move", lambda state, F, v, eta, theta: seen.append((eta, theta))
    )
    h = SimpleNamespace(theta=0.3, eta=0.1, flat=0.0, values=1.0)
    for kinks in (False, True):
        for t in (0, 14, 126):  # (2 / (t + 2))^(1/3) = 1, 1/2, 1/4
            hscg_module.diminishing_step(SimpleNamespace(w=0, t=t), SimpleNamespace(smoothing=kinks), h)
    weights, moves = np.array(seen[::2]), np.array(seen[1::2])
    np.testing.assert_allclose(weights[:, 0], 2 * [1 - (t + 2) ** (-2 / 3) for t in (0, 14, 126)])
    np.testing.assert_allclose(weights[:, 1], [1, 1, 1, 1, 1 / 2, 1 / 4])
    np.testing.assert_allclose(weights[:, 2], [1, 1, 1, 1, 4, 16])
    np.testing.assert_allclose(moves[:, 1], 0.3 * np.array([1, 1 / 2, 1 / 4, 1, 1, 1]))
    np.testing.assert_allclose(moves[3:, 0] / moves[3, 0], [1, 1 / 2, 1 / 4])
    assert moves[2, 0] <= 1.1 * moves[0, 0]


def test_values_by_more_minibatches_have_less_noise() -> None:
    case, w = Made(MODELS["worst"], inner_batch=2), point(8)
    spreads = []
    for count in (1, 4):
        state, F = case.oracle(w)
        state.u, state.w_prev = F.value(w), w
        found = torch.stack([case.solver.hybrid_value(state, F, 0.5, count) for _ in range(300)])
        spreads.append(float(found.var(0).mean()))
    assert spreads[1] == pytest.approx(spreads[0] / 4, rel=0.35)
    state, F = case.oracle(w)
    torch.testing.assert_close(case.solver.hybrid_value(state, F, 0.5, 10_000), F.value(w))


@needs_cvxpy
def test_kinks_are_met_by_diminishing_steps() -> None:
    assert (
        outcome(BY_NAME["worst_group"], "hscg", iterations=600, step="diminishing", inner_batch=6).gap <= 5e-3
    )


@pytest.mark.parametrize("kinks", [False, True])
def test_restarts_are_as_many_and_as_long_as_their_theorem_asks(kinks: bool) -> None:
    """hscg-2020, (30): 16 P b0^(1/4) (Psi(x_0) - Psi*) / (S [b (T + 1)]^(3/4)) + 24 Q / [b0 b (T +
    1)]^(1/2) is eps^2."""
    smoothness = {"L_f": math.inf if kinks else 0.3, "L_g": 0.2}
    k = Constants(n=3, B1=3, B2=4, eps=0.1, C_f=2, C_g=0.5, sigma=0.3, zeta=0.2, delta0=0.7, **smoothness)
    found, c = algorithms.all()["hscg_restarts"].theory(k), hscg_module.constants(k)
    T, first = found["stage"], k.B2 / found["fresh"]
    rounds = found["iterations"] / (T + 1)
    start = 16 * c.P * first**0.25 * c.fall / (rounds * (k.B2 * (T + 1)) ** 0.75)
    noise = 24 * c.Q / math.sqrt(first * k.B2 * (T + 1))
    assert noise == pytest.approx(k.eps**2 / 2, rel=0.05) and start <= k.eps**2 / 2
    assert start >= 0.4 * k.eps**2 and found.get("values", 1) == pytest.approx(100 if kinks else 1)
