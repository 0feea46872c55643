"""Schedules of theorems: the constants they are made of, the steps they ask for, and what fewer steps
are worth."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fccomodel import algorithms, pipeline, plan
from fccomodel.algorithms import Constants, hscg
from fccomodel.app.python import session
from fccomodel.core.source import Source
from fccomodel.plan import rates
from fccomodel.plan.theory import TheoremSchedule

HEAD = "dim d;\ndata D : table(x: real[d], y: real, g: {0, 1, 2});\nvar w[d];\n"
LOSS = "E[z ~ D] square(dot(w, z.x) - z.y)"
GROUPS = (
    "minimize mean[k in {0, 1, 2}] square(E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)) + 0.1 * sumsq(w);"
)
#: every schedule of a theorem, for each update of w
THEORIES = [(name, step) for name, a in algorithms.all().items() if a.theory is not None for step in a.steps]


def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": 1 + rng.normal(size=(300, 3)), "y": 2 + rng.normal(size=300), "g": np.arange(300) % 3.0}


def made(text: str, **options: Any) -> plan.Plan:
    compiled = pipeline.compile_model(Source(text=HEAD + text, name="m"))
    bound = pipeline.bind(compiled, pipeline.Binding(data={"D": data()}))
    given = {"schedule": "theory", **options}
    return pipeline.decide(
        pipeline.analyse(compiled.problem, bound), {k: (v, "command line") for k, v in given.items()}
    )


def constants(text: str, **options: Any) -> Constants:
    known = made(text, **options).constants
    assert known is not None
    return known


@pytest.mark.parametrize(("name", "step"), THEORIES)
def test_the_steps_of_a_schedule_grow_as_its_rate_says(name: str, step: str) -> None:
    """Far out, logarithms apart; and an accuracy is worth the steps that it asks for. Rates with
    kinks. Those of ASCVRG, BSGD and HSCG count samples: their steps take 1 / eps^2 of them each."""
    record = algorithms.all()[name]
    kinks = math.inf if "outer smooth" not in record.requires else 1.5
    k = Constants(n=100, B1=10, B2=5, eps=1e-6, C_f=2, C_g=3, L_f=kinks, L_g=0.5, rows=1000)
    coarse, fine = (
        TheoremSchedule(record=record, step=step, constants=dataclasses.replace(k, eps=eps))
        for eps in (1e-6, 1e-8)
    )
    if coarse.steps is None or fine.steps is None:
        assert not coarse.sentences()
        return
    slope, each = (
        math.log(fine.steps / coarse.steps) / math.log(100),
        2 if name.startswith(("ascvrg", "bsgd", "hscg")) else 0,
    )
    assert slope == pytest.approx(rates.order(record.rate)[0] - each, abs=0.2)
    assert coarse.worth(fine.steps) == pytest.approx(1e-8, rel=0.5), "stages and epochs double"
    assert "are what it asks for" in coarse.sentences(10)[0] and "are what" not in coarse.sentences(10**60)[0]


@pytest.mark.parametrize("kinks", [False, True])
def test_diminishing_steps_are_those_of_their_theorems(kinks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """hscg-2020, (21) and (25), with the numbers P and L of (18), c_0 = 1 and b = B2."""
    k = Constants(
        n=1, B1=1, B2=1, eps=0.1, C_f=2, C_g=1, L_f=math.inf if kinks else 1.5, L_g=9, zeta=0, rows=1000
    )
    scheduled = hscg.algorithm.scheduled("diminishing", k)
    assert scheduled is not None
    squared_K = 1.0 if kinks else 1.5  # M_F = 1, and |K| M_psi = C_f
    P = math.sqrt(26) / 3 * math.sqrt(squared_K**2 + (9 * 2) ** 2)
    given: dict[str, float] = {}

    def hybrid(state: Any, F: Any, beta: float, gamma: float, values: float) -> float:
        given.update(beta=beta, gamma=gamma, values=values)
        return 0.0

    def prox(w: float, eta: float) -> float:
        given.update(eta=eta)
        return w + 1

    monkeypatch.setattr(hscg, "hybrid", hybrid)
    h = SimpleNamespace(**{"flat": 0.0, "values": 1.0, **scheduled})
    for t in (0, 1, 30):
        state = SimpleNamespace(w=0.0, t=t)
        hscg.diminishing_step(state, SimpleNamespace(smoothing=kinks, prox=prox), h)
        smoothing = (t + 2) ** (-1 / 3)
        L = 9 * 2 + squared_K / (smoothing if kinks else 1.0)
        theta = L / (P * (t + 2) ** (1 / 3))
        assert 0 < theta < 1 and state.w == pytest.approx(theta)
        assert given["eta"] == pytest.approx(2 / (L * (3 + theta)))
        assert given["beta"] == pytest.approx(1 - smoothing**2)
        if kinks:
            assert given["gamma"] * scheduled["lam"] == pytest.approx(smoothing)
            assert given["values"] == pytest.approx(smoothing**-2)
        else:
            assert given["gamma"] == given["values"] == 1.0


def test_samples_of_ascvrg_are_those_of_its_theorem() -> None:
    """ascvrg-2021, Theorem 3.5: A, B and C for the step size taken, or every row (Remark 3.7)."""
    k = Constants(n=1, B1=1, B2=1, eps=0.01, C_f=1, C_g=1, L_f=1, L_g=1, rows=10**12)
    few = algorithms.get("ascvrg").scheduled("doubling", k)
    every = algorithms.get("ascvrg").scheduled("doubling", dataclasses.replace(k, rows=100))
    assert few is not None and every is not None
    assert every["inner_batch"] == 100 and every["eta"] == 1 / k.smoothness()
    eta, L = few["eta"] / 2, k.smoothness()
    asked = 12 * max((k.C_g**2 * k.L_f / L) ** 2, (k.C_f * k.L_g / L) ** 2, 1.0)
    alpha = math.log(few["inner_batch"] / asked) / (-2 * math.log(eta))
    assert few["inner_batch"] < k.rows and 1 < alpha < 40
    for bound in (2 / (3 * L), k.eps / (60 * math.sqrt(2) * L * 3)):
        assert eta <= 1.001 * bound ** (1 / alpha)
    assert few["stage"] == math.floor(1 / (2 * eta)) + 1


def test_adam_steps_of_the_theorem_take_the_second_moment_before_the_step() -> None:
    """sonex-alexr2-2025, appendix E, and its steps between eta c_l and eta c_u."""
    k = Constants(n=10, B1=5, B2=5, eps=0.1, C_f=2, C_g=3, L_f=math.inf, L_g=0.5)
    record = algorithms.get("sonex")
    momentum, adam = (record.scheduled(step, k) for step in ("momentum", "adam"))
    assert momentum is not None and adam is not None
    c_u, c_l = 1 / adam["eps"], 1 / (adam["eps"] + k.C_f * k.C_g)
    assert adam["beta"] == pytest.approx(momentum["beta"] * c_l / c_u)
    assert adam["gamma"] == pytest.approx(momentum["gamma"] * c_l / c_u)
    h = SimpleNamespace(beta=0.5, beta_prime=0.25, eta=0.1, eps=2.0)
    state = SimpleNamespace(w=torch.zeros(1), v=torch.ones(1), s=torch.tensor([9.0]))
    record.functions("adam", "theory")["update"](state, torch.tensor([3.0]), h)
    assert float(state.w) == pytest.approx(-0.1 * 2 / (3 + 2)) and float(state.s) == 9
    assert record.functions("adam", "practical")["update"] is record.steps["adam"]


def test_batches_of_a_theorem_are_taken_if_none_are_given() -> None:
    text = "minimize square(E[z ~ D] (dot(w, z.x) - z.y)) + 0.1 * sumsq(w);"
    found = made(text, algorithm="ascvrg", epsilon=0.1)
    assert found.options["inner_batch"][0] == 300 and "theory" in found.options["inner_batch"][1]
    assert made(text, algorithm="ascvrg", epsilon=0.1, inner_batch=7).options["inner_batch"][0] == 7
    assert made(text, algorithm="ascvrg", schedule="practical").options["inner_batch"][0] == 32


@pytest.mark.parametrize("name", ["alexr", "sox_boost"])
def test_strong_convexity_makes_the_steps_linear_in_the_accuracy(name: str) -> None:
    """Theorem 1 of alexr-2025, Theorem 2 of sox-2022: the rates that they promise, logarithms apart."""
    record = algorithms.all()[name]
    k = Constants(n=100, B1=10, B2=5, eps=1e-6, C_f=2, C_g=3, L_f=1.5, L_g=0.5, mu=0.1)
    coarse, fine = (record.theory(dataclasses.replace(k, eps=eps))["iterations"] for eps in (1e-6, 1e-8))  # type: ignore[misc]
    assert math.log(fine / coarse) / math.log(100) == pytest.approx(
        rates.order(record.theorems[0].rate)[0], abs=0.2
    )


def test_what_makes_a_merely_convex_problem_strongly_convex_is_added_to_it() -> None:
    """sox-2022, Corollary 1: mu |w|^2 / 2, small enough for the accuracy."""
    theory, step = algorithms.all()["sox_boost"].theory, algorithms.all()["sox_boost"].steps["momentum"]
    k = Constants(n=100, B1=10, B2=5, eps=1e-3, diameter=3.0)
    assert theory is not None and theory(k)["mu"] * k.diameter**2 == pytest.approx(k.eps)
    assert theory(dataclasses.replace(k, mu=0.1))["mu"] == 0
    state = SimpleNamespace(w=torch.tensor([2.0]), v=torch.zeros(1))
    step(state, torch.tensor([1.0]), SimpleNamespace(beta=1.0, eta=0.5, mu=0.3))
    assert float(state.w) == pytest.approx(2 - 0.5 * (1 + 0.3 * 2))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (f"minimize {LOSS};", lambda x, y: np.mean(y**2)),
        (f"minimize {LOSS} - 5;", lambda x, y: np.mean(y**2)),
        (f"maximize 3 - ({LOSS});", lambda x, y: np.mean(y**2)),
        ("minimize E[z ~ D] dot(w, z.x) + sumsq(w);", lambda x, y: np.sum(x.mean(0) ** 2) / 4),
        (f"minimize sumsq(w);\nsubject to c: {LOSS} <= 1;", lambda x, y: 10 * (np.mean(y**2) - 1)),
        (
            "minimize cvar(tail = 0.5)[k in {0, 1, 2}] (E[z ~ D | z.g == k] square(z.y - dot(w, z.x)));",
            lambda x, y: 2 * np.mean(y**2),
        ),
    ],
)
def test_what_is_to_fall_is_seen_at_the_start(
    text: str, known: Callable[[np.ndarray, np.ndarray], float]
) -> None:
    """F(w_0) - inf F, penalties included: by the range that is proved, or from the slope by strong
    convexity. The cvar is t + mean [g - t]_+ / 0.5, whose t starts at 0."""
    found = constants(text, algorithm="sonex")
    assert found.standing["delta0"] == "estimated"
    assert found.delta0 == pytest.approx(known(data()["x"], data()["y"]), rel=0.5)


def test_what_is_not_known_is_assumed() -> None:
    found = constants("minimize E[z ~ D] dot(w, z.x);", algorithm="sonex")
    assert found.delta0 == 1 and found.standing["delta0"] == found.standing["diameter"] == "assumed"


def test_noise_is_that_of_the_rows() -> None:
    """sigma and zeta at the start and near it, against all rows; none of blocks that are all in every
    step."""
    text = "minimize mean[k in {0, 1, 2}] square(E[z ~ D | z.g == k] (dot(w, z.x) - z.y));"
    found, rows = constants(text, algorithm="sonex", inner_batch=5), data()
    assert found.zeta**2 == pytest.approx(np.var(rows["x"], axis=0).sum(), rel=0.5)
    assert 0.5 * np.std(rows["y"]) < found.sigma < 3 * np.std(rows["y"])
    assert found.B1 == found.n and found.spread == pytest.approx((found.C_f * found.zeta) ** 2 / 5)
    sampled = constants(text, algorithm="sonex", inner_batch=5, outer_batch=2)
    assert sampled.spread == pytest.approx(sampled.C_f**2 * (sampled.zeta**2 / 5 + sampled.C_g**2 / 2))


def test_outer_constants_are_those_of_the_range_seen() -> None:
    found = constants(GROUPS, algorithm="sox")
    assert found.standing["C_f"] == found.standing["L_f"] == "estimated" or found.standing["L_f"] == "proved"
    assert found.C_f > 2 * np.mean(data()["y"] ** 2) * 0.7 and found.L_f == pytest.approx(2)


def test_a_report_says_what_its_steps_are_worth() -> None:
    model = session.compile(HEAD + GROUPS).bind(D=data())
    found = str(model.solve(algorithm="sox", schedule="theory", epsilon=1e-3, budget="50it"))
    assert "the theorem asks for" in found and "the 50 taken are what it asks for eps =" in " ".join(
        found.split()
    )
    assert "the theorem asks for" not in str(model.solve(algorithm="sox", budget="50it"))
