"""Claims about random expressions of matrices, at random points and beside CVXPY.

    python tests/bench/matrix_claims.py [--seeds 0 10000]

Each seed makes one expression from functions of symmetric matrices, norms of matrices, traces and sums of
rank-one matrices. Its curvature, range and Lipschitz constant are tried on random chords. CVXPY reads the same
expression: what it proves convex or concave must be proved here too.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import cvxpy as cp  # noqa: E402

from fccomodel import pipeline, structure  # noqa: E402
from fccomodel.core.source import Source  # noqa: E402
from fccomodel.data.bind import bind  # noqa: E402
from fccomodel.evaluation.interpret import Evaluator  # noqa: E402

SIZE, ROWS, CHORDS = 3, 5, 12
HEAD = """dim d; data D : table(a: real[d]); data A : real[d, d];
var P[d, d] in psd; var S[d, d] in sym; var M[d, d]; var w[d]; var p[D] >= 0; var t;
"""
RANK_ONE = "(sum[s in D] p[s] * outer(s.a, s.a))"


@dataclass(frozen=True)
class Both:
    """An expression as text, and in CVXPY; None if CVXPY has no counterpart."""

    text: str
    other: Any


class Maker:
    """A random expression from a seed."""

    def __init__(self, seed: int, data: dict[str, Any], variables: dict[str, Any]):
        self.rng, self.data, self.v = random.Random(seed), data, variables

    def symmetric(self, depth: int) -> Both:
        v, pick = self.v, self.rng.choice
        if depth <= 0:
            rows = [v["p"][k] * np.outer(a, a) for k, a in enumerate(self.data["D"]["a"])]
            return pick(
                [
                    Both("P", v["P"]),
                    Both("S", v["S"]),
                    Both(RANK_ONE, sum(rows)),
                    Both("diag(w)", cp.diag(v["w"])),
                ]
            )
        first = self.symmetric(depth - 1)
        match pick(["plus", "minus", "shift", "congruence", "scaled", "part"]):
            case "plus":
                second = self.symmetric(depth - 1)
                return Both(f"({first.text} + {second.text})", first.other + second.other)
            case "minus":
                second = self.symmetric(depth - 1)
                return Both(f"({first.text} - {second.text})", first.other - second.other)
            case "shift":
                return Both(f"({first.text} + t * eye(d))", first.other + v["t"] * np.eye(SIZE))
            case "congruence":
                A = self.data["A"]
                return Both(f"(A @ {first.text} @ transpose(A))", A @ first.other @ A.T)
            case "scaled":
                factor = pick([0.5, 2.0, -1.0])
                return Both(f"({factor} * {first.text})", factor * first.other)
        return Both("((M + transpose(M)) / 2)", (v["M"] + v["M"].T) / 2)

    def matrix(self, depth: int) -> Both:
        if self.rng.random() < 0.5:
            return self.symmetric(depth)
        A, M = self.data["A"], self.v["M"]
        return self.rng.choice(
            [Both("M", M), Both("(A @ M)", A @ M), Both("(M - A)", M - A), Both("outer(w, w)", None)]
        )

    def number(self, depth: int) -> Both:
        pick = self.rng.choice
        match pick(
            ["largest", "smallest", "det", "inverse", "frac", "spec", "nuc", "trace", "sum", "max", "bend"]
        ):
            case "largest":
                return self.of("lambda_max", cp.lambda_max, self.symmetric(depth))
            case "smallest":
                return self.of("lambda_min", cp.lambda_min, self.symmetric(depth))
            case "det":
                return self.of("logdet", cp.log_det, self.symmetric(depth))
            case "inverse":
                inner = self.symmetric(depth)
                other = None if inner.other is None else cp.tr_inv(inner.other)
                return Both(f"trace(inv({inner.text}))", other)
            case "frac":
                inner = self.symmetric(depth)
                return Both(f"matrix_frac(w, {inner.text})", cp.matrix_frac(self.v["w"], inner.other))
            case "spec":
                return self.of("norm_spec", cp.sigma_max, self.matrix(depth))
            case "nuc":
                return self.of("norm_nuc", cp.normNuc, self.matrix(depth))
            case "trace":
                return self.of("trace", cp.trace, self.matrix(depth))
        if depth <= 0:
            return Both("t", self.v["t"])
        first, second = self.number(depth - 1), self.number(depth - 1)
        known = first.other is not None and second.other is not None
        match pick(["plus", "minus", "max", "exp", "pos"]):
            case "plus":
                return Both(f"({first.text} + {second.text})", first.other + second.other if known else None)
            case "minus":
                return Both(f"({first.text} - {second.text})", first.other - second.other if known else None)
            case "max":
                other = cp.maximum(first.other, second.other) if known else None
                return Both(f"max({first.text}, {second.text})", other)
            case "exp":
                return self.of("exp", lambda u: cp.exp(u), first)
        return self.of("pos", cp.pos, first)

    @staticmethod
    def of(name: str, function: Any, inner: Both) -> Both:
        """A function of an expression."""
        return Both(f"{name}({inner.text})", None if inner.other is None else function(inner.other))


def drawn(rng: np.random.Generator) -> dict[str, torch.Tensor]:
    """A random point of the declared sets."""
    root, turn = rng.normal(size=(2, SIZE, SIZE))
    rank = int(rng.integers(1, SIZE + 1))
    point = {
        "P": root[:, :rank] @ root[:, :rank].T + (0.2 * np.eye(SIZE) if rng.random() < 0.7 else 0.0),
        "S": (turn + turn.T) / 2 + (3 * np.eye(SIZE) if rng.random() < 0.5 else 0.0),
        "M": rng.normal(size=(SIZE, SIZE)) + (3 * np.eye(SIZE) if rng.random() < 0.5 else 0.0),
        "w": rng.normal(size=SIZE) + (2.0 if rng.random() < 0.5 else 0.0),
        "p": rng.exponential(size=ROWS),
        "t": rng.normal() + 1.0,
    }
    return {name: torch.as_tensor(value, dtype=torch.float64) for name, value in point.items()}


def tried(seed: int) -> tuple[str, list[str], str]:
    """The text of a seed's expression, what is wrong with its claims, and what both tools prove."""
    rng = np.random.default_rng(seed)
    data = {"A": rng.normal(size=(SIZE, SIZE)), "D": {"a": rng.normal(size=(ROWS, SIZE))}}
    n = SIZE
    variables = {
        "P": cp.Variable((n, n), PSD=True), "S": cp.Variable((n, n), symmetric=True), "M": cp.Variable((n, n)),
        "w": cp.Variable(n), "p": cp.Variable(ROWS, nonneg=True), "t": cp.Variable(),
    }  # fmt: skip
    both = Maker(seed, data, variables).number(2)
    text = f"{HEAD}minimize e: {both.text} + 0 * (t + sum(w) + sum(p) + sum(P) + sum(S) + sum(M));"
    problem = pipeline.compile_model(Source(text=text, name="m")).problem
    bound = bind(problem, data=data)
    expr = problem.objective.expr.args[0]
    facts = structure.facts_of(expr, problem=problem, bound=bound)
    wrong = _refuted(facts, lambda at: float(Evaluator(bound, at).value(expr, {}).data), rng)
    proved = facts.curvature
    if both.other is None:
        return both.text, wrong, "no counterpart"
    theirs = both.other.is_convex(), both.other.is_concave()
    if theirs[0] and not facts.convex or theirs[1] and not facts.concave:
        wrong.append(f"CVXPY proves {both.other.curvature}, here {proved}")
    return both.text, wrong, f"{'CVXPY too' if any(theirs) else 'CVXPY not'}, here {proved}"


def _refuted(facts: Any, f: Any, rng: np.random.Generator) -> list[str]:
    """The claims that a random chord refutes."""
    wrong = []
    for _ in range(CHORDS):
        a, b = drawn(rng), drawn(rng)
        middle = {name: (a[name] + b[name]) / 2 for name in a}
        low, high, mid = f(a), f(b), f(middle)
        if not np.isfinite([low, high]).all():
            continue
        slack = 1e-8 * (1 + abs(low) + abs(high))
        gap = (low + high) / 2 - mid
        if facts.convex and not gap >= -slack:
            wrong.append(f"convex: {gap:.3g}")
        if facts.concave and not gap <= slack:
            wrong.append(f"concave: {gap:.3g}")
        ends = facts.interval.value
        if not ends.lo - slack <= low <= ends.hi + slack:
            wrong.append(f"range {ends}: {low}")
        steep = facts.lipschitz.value
        length = sum(float((a[name] - b[name]).square().sum()) for name in a) ** 0.5
        if steep.known and steep.finite and abs(low - high) > steep.value * length * (1 + 1e-9) + slack:
            wrong.append(f"Lipschitz {steep.value}: {abs(low - high) / length}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 10_000])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    refuted = 0
    for seed in range(*arguments.seeds):
        text, wrong, proved = tried(seed)
        counts[proved] += 1
        if wrong:
            refuted += 1
            print(seed, text, wrong[:2], flush=True)
    print(f"{sum(counts.values())} expressions, {refuted} refuted or missed")
    for proved, count in counts.most_common():
        print(f"{count:6}  {proved}")


if __name__ == "__main__":
    main()
