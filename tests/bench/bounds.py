"""Certified gaps at random points of random convex problems, against CVXPY's optima: none may be
false.

    python tests/bench/bounds.py [--count 5000] [--exact 200] [--seed 0]

Points are feasible and not, near the optimum and far from it; multipliers go from 1e-2 to 1e2. A
bound is false where the objective is further above the optimum than the gap allows. Problems are
those of ``drawn.py``, and smallest norms under a bound of such a loss, whose optimum is worse than
the objective at many points that violate it.

Then those of ``exact.py``, so many of each kind: at scales from 1e-10 to 1e10, with columns far
from 0, nearly collinear, nearly semidefinite, and with draws of distributions, against optima in
exact arithmetic. Of draws nothing may be called proved, and no point whose gap is more than a
hundredth of the objective's range may be called solved to high accuracy.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from fractions import Fraction

import cvxpy as cp
import exact
import numpy as np
from drawn import Drawn, draw, solve

import fccomodel
from fccomodel import report
from fccomodel.core.diagnostics import FccoError

NORMS = {"norm1(w)": cp.norm1, "norm2(w)": cp.norm, "norminf(w)": cp.norm_inf, "sumsq(w)": cp.sum_squares}
#: points of each problem; of CVXPY's optimum, relative to its size
POINTS, ACCURACY = 25, 1e-6
#: a gap that counts as none in any units
NONE = 1e-12


def smallest(drawn: Drawn, rng: np.random.Generator) -> Drawn:
    """The smallest norm for which a drawn loss is little above its least value."""
    name, norm = list(NORMS.items())[rng.integers(len(NORMS))]
    objective = drawn.problem.objective.args[0]
    bound = float(objective.value) + 10.0 ** rng.uniform(-2, 0) * (1 + abs(float(objective.value)))
    head, _, rest = drawn.text.partition("minimize f: ")
    loss, _, limits = rest.partition(";\n")
    limits = limits.replace("subject to\n", "")
    text = f"{head}minimize f: {name};\nsubject to\n  loss: {loss} <= {bound};\n{limits}"
    problem = cp.Problem(cp.Minimize(norm(variable(drawn))), [*drawn.problem.constraints, objective <= bound])
    return Drawn(name=f"{name} under {drawn.name}", text=text, data=drawn.data, problem=problem)


def variable(drawn: Drawn) -> cp.Variable:
    """The variable w of a drawn problem."""
    d = drawn.data["D"]["x"].shape[1]
    return next(v for v in drawn.problem.variables() if v.shape == (d,))


def point(best: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A point on the way from 0 to the optimum or beyond it, or beside it."""
    scale, aside = (
        rng.choice([0.0, 1e-3, 0.5, 0.9, 1.0, 1.0 + 1e-5, 1.1, 3.0]),
        rng.choice([0.0, 1e-6, 1e-3, 0.1, 1.0]),
    )
    return {name: scale * value + aside * rng.normal(size=np.shape(value)) for name, value in best.items()}


def optimum(drawn: Drawn) -> float | None:
    solve(drawn.problem)
    return None if drawn.problem.status != "optimal" else float(drawn.problem.value)


def judge(drawn: Drawn, least: float, rng: np.random.Generator, seen: Counter[str]) -> None:
    """Bounds at some points of a problem, against its optimum."""
    made = fccomodel.compile(drawn.text).bind(data=drawn.data).bound
    best = {"w": variable(drawn).value} | {
        name: np.zeros(()) for name in made.problem.variables if name != "w"
    }
    for _ in range(POINTS):
        seen["points"] += 1
        nus = {c.label: float(10 ** rng.uniform(-2, 2)) for c in made.problem.constraints}
        try:
            found = report.report(made, point(best, rng), multipliers=nus)
        except FccoError:
            seen["not finite"] += 1
            continue
        if found.gap is None or found.gap.value is None:
            seen["no bound"] += 1
        elif found.objective - least > found.gap.value + ACCURACY * (1 + abs(least)):
            seen["false"] += 1
            print(
                f"false: {drawn.name}: {found.objective:.9g} - {least:.9g} > {found.gap}\n{drawn.text}",
                flush=True,
            )
        else:
            seen["true"] += 1
            seen["of them feasible"] += found.feasibility == 0
            seen["of them below 0"] += found.gap.value < 0


def judge_exactly(model: exact.Model, seen: Counter[str]) -> None:
    """Bounds at some points of a model, against its exact optimum."""
    made = fccomodel.compile(model.text).bind(data=model.data).bound
    start = max(model.value(point) for point in model.points) - model.optimum
    for at in model.points:
        seen["exact points"] += 1
        try:
            found = report.report(made, at)
        except FccoError:
            seen["not finite"] += 1
            continue
        gap, true = found.gap, model.value(at) - model.optimum
        known = gap is not None and gap.value is not None
        wrong, least = "", Fraction(NONE * max(1.0, 1e3 * abs(found.objective)))
        if model.drawn:
            said = found.verdict + str(gap)
            wrong = "proved" if "proved (" in said or "by the proved" in said else ""
            wrong = wrong or ("accuracy" if "high accuracy" in said else "")
        elif known and true > Fraction(gap.value):
            wrong = "false gap"
        elif known and found.verdict.startswith("Solved to high accuracy") and true > max(start / 100, least):
            wrong = "false words"
        seen["exact, with a gap"] += known
        seen["exact, solved"] += found.solved
        if wrong:
            seen[wrong] += 1
            print(
                f"{wrong}: {model.name}: true {float(true):.6g}, {gap}, {found.verdict}\n{model.text}\n{at}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--exact", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rng, seed, seen = np.random.default_rng(given.seed), given.seed * 10_000, Counter[str]()
    kinds: set[str] = set()
    while seen["points"] < given.count:
        seed += 1
        drawn = draw(seed)
        if seed % 2 and optimum(drawn) is not None:
            drawn = smallest(drawn, rng)
        if (least := optimum(drawn)) is not None:
            seen["problems"] += 1
            kinds.add(drawn.name.split(",")[0])
            judge(drawn, least, rng, seen)
    for number in range(given.exact):
        for model in exact.models(given.seed * 10_000 + number):
            judge_exactly(model, seen)
    print(
        ", ".join(f"{count} {name}" for name, count in seen.items() if count),
        f"in {len(kinds)} kinds of models",
    )


if __name__ == "__main__":
    main()
