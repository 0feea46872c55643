"""Convex problems drawn at random from the field's parts, whole solves against CVXPY with Clarabel.

    python tests/bench/drawn.py [--count 40] [--seed 0] [--budget 5s] [--show]

A problem is a loss of rows, averaged, or its worst groups, tails or exponential means; a
regulariser or a set of the variables; and up to two constraints. Wrong is an objective that differs
from CVXPY's by more than what the report says of itself, or a gap it certifies that is smaller than
the true one.
"""

from __future__ import annotations

import argparse
import contextlib
import time
import warnings
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

import fccomodel

#: loss of a residual or of a margin u: (text, in CVXPY), by the kind of its target
LOSSES = {
    "labels": {
        "logistic": ("log1pexp(-({u}))", lambda u: cp.logistic(-u)),
        "hinge": ("pos(1 - ({u}))", lambda u: cp.pos(1 - u)),
        "squared hinge": ("sqhinge(1 - ({u}))", lambda u: cp.square(cp.pos(1 - u))),
        "exponential": ("exp(-({u}))", lambda u: cp.exp(-u)),
    },
    "numbers": {
        "square": ("({u})^2", cp.square),
        "absolute": ("abs({u})", cp.abs),
        "huber": ("huber({u}, delta = 0.5)", lambda u: cp.huber(u, 0.5) / 2),
        "pinball": ("pinball({u}, 0.3)", lambda u: 0.3 * cp.pos(u) + 0.7 * cp.neg(u)),
    },
}
#: variable's set: (text, constraints in CVXPY)
SETS = {
    "free": ("", lambda w: []),
    "box": (" >= -0.5, <= 0.8", lambda w: [w >= -0.5, w <= 0.8]),
    "simplex": (" in simplex(d)", lambda w: [w >= 0, cp.sum(w) == 1]),
    "ball": (" in ball(1)", lambda w: [cp.norm(w) <= 1]),
    "nonneg": (" >= 0", lambda w: [w >= 0]),
}
REGULARISERS = {
    "": lambda w: 0.0,
    "0.01 * sumsq(w)": lambda w: 0.01 * cp.sum_squares(w),
    "0.02 * norm1(w)": lambda w: 0.02 * cp.norm1(w),
    "0.05 * norm2(w)": lambda w: 0.05 * cp.norm(w),
}


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A model's text and data, and the same problem in CVXPY."""

    name: str
    text: str
    data: dict[str, Any]
    problem: cp.Problem


def draw(seed: int) -> Drawn:
    rng = np.random.default_rng(seed)
    n, d, groups = int(rng.integers(60, 400)), int(rng.integers(2, 9)), 3
    x, g = rng.normal(size=(n, d)) * rng.choice([1.0, 3.0]), rng.integers(0, groups, n)
    score = x @ rng.normal(size=d) / np.sqrt(d)
    kind = str(rng.choice(["labels", "numbers"]))
    y = np.sign(score + rng.normal(size=n)) if kind == "labels" else score + rng.standard_t(3, size=n)
    own = str(rng.choice(list(LOSSES[kind])))
    loss, convex = LOSSES[kind][own]
    row = "loss(z)"
    text = (
        f"def loss(z) = {loss.format(u='z.y * dot(w, z.x)' if kind == 'labels' else 'dot(w, z.x) - z.y')};\n"
    )
    text += f"let risk[k in G] = E[z ~ D | z.g == k] {row};\n"
    w = cp.Variable(d)
    rows = convex(cp.multiply(y, x @ w) if kind == "labels" else x @ w - y)
    risks = cp.hstack([cp.sum(rows[g == k]) / (g == k).sum() for k in range(groups)])
    t = cp.Variable()
    wholes = {
        "mean": (f"E[z ~ D] {row}", cp.sum(rows) / n),
        "worst": ("max[k in G] risk[k]", cp.max(risks)),
        "tail of groups": ("cvar(tail = 0.5)[k in G] risk[k]", tail(risks, 0.5)),
        "tail": (f"cvar(tail = 0.2)[z ~ D] {row}", tail(rows, 0.2)),
        "entropic": (
            "0.5 * log(mean[k in G] exp(risk[k] / 0.5))",
            0.5 * (cp.log_sum_exp(risks / 0.5) - np.log(groups)),
        ),
        "square of mean": (f"(E[z ~ D] {row})^2", cp.square(cp.sum(rows) / n)),
        "power mean": (
            "(0.01 + mean[k in G] risk[k]^2)^0.5",
            cp.norm(cp.hstack([0.1, risks / np.sqrt(groups)])),
        ),
        "worst row": (f"max[z in D] {row}", cp.max(rows)),
        "root": (f"sqrt(E[z ~ D] {row}^2)", cp.norm(cp.pos(rows)) / np.sqrt(n)),
        "chi-squared": (
            f"t + sqrt(3 * E[z ~ D] pos({row} - t)^2)",
            t + np.sqrt(3 / n) * cp.norm(cp.pos(rows - t)),
        ),
        "excess": ("mean[k in G] pos(risk[k] - 0.3)", cp.sum(cp.pos(risks - 0.3)) / groups),
    }
    whole = str(rng.choice(list(wholes)))
    threshold = "var t;\n" if whole == "chi-squared" else ""
    domain = str(rng.choice(list(SETS), p=[0.4, 0.15, 0.15, 0.15, 0.15]))
    regulariser = str(rng.choice(list(REGULARISERS)))
    limits = SETS[domain][1](w)
    objective = wholes[whole][1] + REGULARISERS[regulariser](w)
    constraints, names = [], []
    kinds = ["mean", "worst", "tail", "linear", "gap", "norm"]
    for k, limited in enumerate(rng.choice(kinds, size=int(rng.integers(0, 3)), replace=False)):
        label = f"c{k}"
        if limited in wholes:
            least = cp.Problem(cp.Minimize(wholes[str(limited)][1]), limits)
            solve(least)
            if least.value is None or not np.isfinite(least.value):
                continue
            bound = round(1.1 * float(least.value) + 0.02, 3)
            constraints.append(f"{label}: {wholes[str(limited)][0]} <= {bound};")
            limits = [*limits, wholes[str(limited)][1] <= bound]
        elif limited == "linear" and domain in ("free", "box"):
            constraints.append(f"{label}: sum(w) == 0.3;")
            limits = [*limits, cp.sum(w) == 0.3]
        elif limited == "gap":
            constraints.append(
                f"{label}: abs(E[z ~ D | z.g == 0] dot(w, z.x) - E[z ~ D | z.g == 1] dot(w, z.x)) <= 0.05;"
            )
            limits = [*limits, cp.abs((x[g == 0].mean(0) - x[g == 1].mean(0)) @ w) <= 0.05]
        elif limited == "norm":
            constraints.append(f"{label}: norm1(w) <= 2;")
            limits = [*limits, cp.norm1(w) <= 2]
        else:
            continue
        names.append(str(limited))
    subject = "subject to\n  " + "\n  ".join(constraints) if constraints else ""
    added = f" + {regulariser}" if regulariser else ""
    model = (
        "model drawn;\ndim d;\nset G = {0, 1, 2};\ndata D : table(x: real[d], y: real, g: {0, 1, 2});\n"
        f"var w[d]{SETS[domain][0]};\n{threshold}{text}minimize f: {wholes[whole][0]}{added};\n{subject}\n"
    )
    name = (
        f"{whole} of {own}, "
        f"{domain}{', ' + regulariser if regulariser else ''}{'; ' + ', '.join(names) if names else ''}"
    )
    data = {"D": {"x": x, "y": y, "g": g}}
    return Drawn(name=name, text=model, data=data, problem=cp.Problem(cp.Minimize(objective), limits))


def tail(values: cp.Expression, share: float) -> cp.Expression:
    """The mean of the largest share."""
    s = cp.Variable()
    return s + cp.sum(cp.pos(values - s)) / (share * values.size)


def solve(problem: cp.Problem) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for tolerance in (1e-10, 1e-8):
            with contextlib.suppress(cp.error.SolverError):
                problem.solve(
                    solver="CLARABEL", tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance
                )
                return


def judged(drawn: Drawn, budget: str) -> tuple[str, str]:
    """``right``, ``unsolved`` (the report says so), ``wrong``, ``unknown``; and a line of figures."""
    solve(drawn.problem)
    if drawn.problem.status is None:
        return "unknown", "no answer from CVXPY"
    began = time.process_time()
    bound = fccomodel.compile(drawn.text).bind(data=drawn.data)
    found = bound.solve(seed=0, budget=budget)
    took, report = time.process_time() - began, found.report
    if drawn.problem.status not in ("optimal", "optimal_inaccurate"):
        verdict = "right" if drawn.problem.status.split("_")[0] in report.verdict.lower() else "wrong"
        return verdict, f"{drawn.problem.status}: {report.verdict[:60]}"
    best = float(drawn.problem.value)
    off = (found.objective - best) / (1 + abs(best))
    claimed = report.verdict.startswith("Solved")
    good = abs(off) <= 1e-5 and report.feasibility <= 1e-5
    gap = None if report.gap is None else report.gap.value
    lying = gap is not None and found.objective - best > gap + 1e-7 * (1 + abs(best))
    wrong = lying or (claimed and abs(off) > max(1e-3, 10 * report.epsilon))
    verdict = "wrong" if wrong else "right" if good and claimed else "unsolved"
    return (
        verdict,
        f"off {off:+.1e}  epsilon {report.epsilon:.1e}  violation {report.feasibility:.1e}  {took:.1f} s",
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", default="5s")
    parser.add_argument("--show", action="store_true", help="print the models that are not solved")
    args = parser.parse_args()
    totals = {"right": 0, "unsolved": 0, "wrong": 0, "unknown": 0}
    for seed in range(args.seed, args.seed + args.count):
        drawn = draw(seed)
        try:
            verdict, figures = judged(drawn, args.budget)
        except fccomodel.FccoError as error:
            verdict, figures = "wrong", str(error).splitlines()[0]
        totals[verdict] += 1
        print(f"{seed:4d} {verdict:9s} {figures}  | {drawn.name}", flush=True)
        if args.show and verdict != "right":
            print(drawn.text)
    print(totals)
    return totals["wrong"]


if __name__ == "__main__":
    raise SystemExit(main())
