"""Error against oracle calls on a log-log plot, by the theorems' own schedules over a decade or more
of calls.

Each case runs a schedule for a sequence of accuracies, as long as its theorem asks, and fits the
exponent of the gap in calls. Upper bounds hold on the worst problem of a class: what is measured on
one may be steeper than proved, never flatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.problems import ALL, GROUPS, HEAD, Conformance, Data, convex
from conformance.runs import optimum, planned, solved

BY_NAME = {p.name: p for p in ALL}


def means_of_groups() -> Data:
    """Sixty rows of norm 1 around a direction of each of five groups: C_g = 1 for affine inner functions."""
    rng, g = np.random.default_rng(7), np.arange(60) % 5
    x = rng.normal(size=(5, 3))[g] + 0.5 * rng.normal(size=(60, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return {"D": {"x": x, "y": 0.3 * rng.normal(size=60) + 0.4 * (g - 2.0), "g": g.astype(float)}}


def _of_means(outer: Callable, penalty: float) -> Callable:
    def build(cp, w, data):
        x, y, g = (data["D"][k] for k in "xyg")
        means = [cp.sum(x[g == k] @ w - y[g == k]) / (g == k).sum() for k in range(5)]
        return sum(outer(cp)(m) for m in means) / 5 + penalty * cp.sum_squares(w)

    return convex(build)


MEAN = "E[z ~ D | z.g == k] (dot(w, z.x) - z.y)"
#: smooth, mu = 2, C_f = C_g = 1, L_f = 1/4, L_g = 0; and the same with kinks, merely convex
LOGISTIC = Conformance(
    name="logistic_of_means",
    text=HEAD + f"minimize {GROUPS} log1pexp({MEAN}) + sumsq(w);",
    data=means_of_groups,
    optimum=_of_means(lambda cp: cp.logistic, 1.0),
)
ABSOLUTE = Conformance(
    name="absolute_means",
    text=HEAD + f"minimize {GROUPS} abs({MEAN});",
    data=means_of_groups,
    optimum=_of_means(lambda cp: cp.abs, 0.0),
)
CURVED_ABSOLUTE = Conformance(
    name="absolute_means_curved",
    text=HEAD + f"minimize {GROUPS} abs({MEAN}) + sumsq(w);",
    data=means_of_groups,
    optimum=_of_means(lambda cp: cp.abs, 1.0),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """``proved``: the exponent of the gap in oracle calls. ``accuracies``: as many steps as the
    theorem asks for each; or ``fixed`` numbers of steps (of SOX-boost: of stages) by one schedule.
    Gaps are means over ``seeds`` runs. ``logarithm``: calls are divided by log(2 / eps).
    ``promised``: the gap that an accuracy stands for."""

    algorithm: str
    problem: Conformance
    proved: float
    theorem: str
    accuracies: tuple[float, ...] = ()
    fixed: tuple[int, ...] = ()
    logarithm: bool = False
    promised: Callable[[float], float] = lambda eps: eps
    batches: Mapping[str, int] = field(default_factory=dict)
    step: str = ""
    seeds: int = 1

    @property
    def label(self) -> str:
        step = f"-{self.step}" if self.step else ""
        return f"{self.algorithm}{step}-{self.problem.name}"

    @property
    def options(self) -> dict[str, Any]:
        """The options of its runs, but for accuracies."""
        step = {"step": self.step} if self.step else {}
        return {**self.batches, **step, "algorithm": self.algorithm, "schedule": "theory"}


def _stages(case: Case) -> list[tuple[float, float]]:
    """Calls and gap after so many doublings of the first stage: one run's history."""
    value, chosen = optimum(case.problem)[0], case.options
    first = int(planned(case.problem, **chosen).hyper["stage"])
    steps = first * (2 ** case.fixed[0] - 1)
    runs = [solved(case.problem, iterations=steps, seed=s, **chosen).history for s in range(case.seeds)]
    return [
        (at[0]["oracles"], float(np.mean([e["objective"] for e in at])) - value)
        for at in zip(*runs, strict=True)
    ]


def _runs(case: Case) -> list[tuple[float, float]]:
    """Calls and gap, run by run."""
    value, found = optimum(case.problem)[0], []
    for number in case.accuracies or case.fixed:
        chosen = case.options
        iterations, calls = int(number), 1.0
        if case.accuracies:
            chosen["epsilon"] = number
            schedule = planned(case.problem, **chosen).schedule
            assert schedule is not None and schedule.steps is not None
            iterations = math.ceil(schedule.steps)
            chosen["stage"], calls = iterations, 1 / math.log(2 / number) if case.logarithm else 1.0
        runs = [
            solved(case.problem, iterations=iterations, seed=s, **chosen).history[-1]
            for s in range(case.seeds)
        ]
        found.append((calls * runs[0]["oracles"], float(np.mean([r["objective"] for r in runs])) - value))
    return found


def _of_gradient(eps: float) -> float:
    """|grad F|^2 / (2 mu) with mu = 2."""
    return eps**2 / 4


def measured(case: Case) -> tuple[float, list[tuple[float, float]]]:
    """The fitted exponent, and the points (calls, gap)."""
    points = _stages(case) if case.algorithm == "sox_boost" else _runs(case)
    calls, gaps = np.array(points).T
    return float(np.polyfit(np.log(calls), np.log(gaps), 1)[0]), points


CASES = (
    Case(
        algorithm="alexr", problem=LOGISTIC, proved=-1.0, seeds=4, logarithm=True, batches={"outer_batch": 3, "inner_batch": 4},
        accuracies=(0.004, 0.0015, 0.0005),
        theorem="alexr-2025, Theorem 1: n / (B1 B2 eps) log(1 / eps) for strongly convex r and smooth f",
    ),
    Case(
        algorithm="alexr", problem=ABSOLUTE, proved=-0.5, seeds=5, batches={"outer_batch": 3, "inner_batch": 4},
        accuracies=(0.5, 0.2, 0.08),
        theorem="alexr-2025, Theorem 3: 1 / eps^2 for merely convex problems",
    ),
    Case(
        algorithm="sox_boost", problem=LOGISTIC, proved=-1.0, batches={"outer_batch": 3, "inner_batch": 60}, fixed=(4,),
        theorem="sox-2022, Theorem 2: 1 / (mu^2 eps)",
    ),
    Case(
        algorithm="sox", problem=LOGISTIC, promised=_of_gradient,
        proved=-0.5, seeds=4, batches={"outer_batch": 3, "inner_batch": 2},
        accuracies=(0.7, 0.5, 0.35),
        theorem="sox-2022, Theorem 1: |grad F| <= eps in 1 / eps^4; the gap is at most |grad F|^2 / (2 mu)",
    ),
    Case(
        algorithm="sonex", problem=ABSOLUTE, proved=-0.2, batches={"outer_batch": 3, "inner_batch": 4},
        accuracies=(1.0, 0.7, 0.5),
        theorem="sonex-alexr2-2025, Theorem 4.7: |grad F_lam| <= eps in 1 / eps^5, and F is within C_f "
                "eps / 2 of F_lam",
    ),
    Case(
        algorithm="msvr", problem=LOGISTIC, promised=_of_gradient,
        proved=-2 / 3, seeds=3, batches={"outer_batch": 3, "inner_batch": 4},
        accuracies=(0.5, 0.25, 0.15),
        theorem="alexr-2025, Table 1: |grad F| <= eps in 1 / eps^3; the gap is at most |grad F|^2 / (2 mu)",
    ),
    Case(
        algorithm="bsgd", problem=LOGISTIC, promised=_of_gradient,
        proved=-0.5, seeds=2, batches={"outer_batch": 3, "inner_batch": 60},
        accuracies=(0.12, 0.07, 0.04),
        theorem="sox-2022, Table 1: |grad F| <= eps in 1 / eps^4 steps, inner batches as large as the "
                "bias needs (here: all)",
    ),
    Case(
        algorithm="hscg", step="constant", problem=LOGISTIC, promised=_of_gradient,
        proved=-2 / 3, seeds=3, batches={"inner_batch": 4},
        accuracies=(1.0, 0.6, 0.4),
        theorem="hscg-2020, Theorem 3.1: |G| <= eps in 1 / eps^3; the gap is at most |grad F|^2 / (2 mu)",
    ),
    Case(
        algorithm="hscg", step="diminishing", problem=LOGISTIC, promised=_of_gradient,
        proved=-2 / 3, seeds=3, batches={"inner_batch": 4},
        accuracies=(2.0, 1.0, 0.7),
        theorem="hscg-2020, Theorem 3.2: |G| <= eps in 1 / eps^3, logarithms apart",
    ),
    Case(
        algorithm="hscg_restarts", step="constant", problem=LOGISTIC, promised=_of_gradient,
        proved=-2 / 3, seeds=3, batches={"inner_batch": 4},
        accuracies=(0.5, 0.3, 0.2),
        theorem="hscg-2020, Theorem 4.1: |G| <= eps in 1 / eps^3",
    ),
    Case(
        algorithm="sox_convex", problem=LOGISTIC, proved=-1 / 2, seeds=5, batches={"outer_batch": 3, "inner_batch": 4},
        accuracies=(0.1, 0.03, 0.01),
        theorem="sox-2022, Theorem 3: 1 / eps^2 for merely convex problems",
    ),
    Case(
        algorithm="sonex", step="adam", problem=ABSOLUTE, proved=-0.2, batches={"outer_batch": 3, "inner_batch": 4},
        accuracies=(1.5, 1.0, 0.7),
        theorem="sonex-alexr2-2025, Theorem E.6: |grad F_lam| <= eps in 1 / eps^5",
    ),
    Case(
        algorithm="alexr2", step="momentum", problem=ABSOLUTE, proved=-0.2, batches={"outer_batch": 3, "inner_batch": 4},
        accuracies=(1.5, 1.0, 0.7),
        theorem="sonex-alexr2-2025, Theorem 4.10: |grad F_lam| <= eps in 1 / eps^5",
    ),
    Case(
        algorithm="apg", problem=BY_NAME["elastic_composition"], proved=-2.0, fixed=(4, 8, 16, 32, 48),
        theorem="Beck and Teboulle 2009, Theorem 4.4: n / sqrt(eps)",
    ),
    Case(
        algorithm="apg", problem=BY_NAME["lasso"], proved=-2.0, fixed=(2, 4, 8, 16, 24),
        theorem="Beck and Teboulle 2009, Theorem 4.4: n / sqrt(eps)",
    ),
    Case(
        algorithm="ascvrg", problem=BY_NAME["elastic_composition"], proved=-1.0, fixed=(64, 128, 256, 512, 1024),
        theorem="ascvrg-2021, Theorem 3.5: n log(1 / eps) + 1 / eps for convex F",
    ),
)  # fmt: skip
