"""Twenty models to be rewritten, with data; and what two plans have in common when they are one."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from fccomodel import pipeline
from fccomodel.core import ir
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound
from fccomodel.evaluation import interpret
from fccomodel.plan import Plan
from support.emitted_models import table

torch.set_num_threads(1)

HEAD = """model m;
dim d; set G; set K = {1, 2, 3};
data D : table(x: real[d], y: {-1, 1}, time: real, g: G, a: {0, 1}, b: K);
set P = {z in D | z.y == 1}; set N = {z in D | z.y == -1};
data prev : real[d];
param lam >= 0 default 0.05; param mu >= 0 default 0.01; param tau >= 0 default 0.6;
var w[d];
"""
RISK = "let risk[k in G] = E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x));\n"
LOSS = "E[z ~ D] log1pexp(-z.y * dot(w, z.x))"
BODIES = {
    "lasso": f"minimize {LOSS} + lam * norm1(w);",
    "elastic_net": f"minimize {LOSS} + lam * norm1(w) + mu * sumsq(w);",
    "sparse_and_round": f"minimize {LOSS} + lam * (norm1(w) + norm2(w));",
    "stay_near": f"minimize {LOSS} + lam * norm1(w - prev) + mu * sumsq(w - prev);",
    "moved_and_scaled": "minimize E[z ~ D] (dot(w, z.x) - z.time)^2 + lam * norm1(2 * w - prev);",
    "groups": f"minimize {LOSS} + lam * group_norm(w, 1) + mu * sumsq(w);",
    "neyman_pearson": "minimize E[z ~ N] log1pexp(dot(w, z.x)) + mu * sumsq(w);\n"
    "subject to\n  misses: E[z ~ P] log1pexp(-dot(w, z.x)) <= tau;",
    "in_a_ball": f"minimize {LOSS};\nsubject to\n  size: sumsq(w) <= 4;",
    "in_a_ball_around": f"minimize {LOSS};\nsubject to\n  near: norm2(w - prev) <= 0.5;",
    "in_a_box_around": f"minimize {LOSS} + lam * norm1(w);\nsubject to\n  near: norminf(w - prev) <= 0.3;",
    "two_bounds": f"minimize {LOSS};\nsubject to\n  low: w >= prev - 1;\n  high: w <= prev + 1;",
    "tail_of_groups": RISK + "minimize cvar(tail = 0.5)[k in G] risk[k] + mu * sumsq(w);",
    "worst_group": RISK + "minimize max[k in G] risk[k] + lam * norm1(w);",
    "pairs": "minimize E[p ~ P, n ~ N] sqhinge(1 - dot(w, p.x) + dot(w, n.x)) + mu * sumsq(w);",
    "risk_sets": "minimize mean[i in P] log(E[j ~ D | j.time >= i.time] exp(dot(w, j.x) - dot(w, i.x))) "
    "+ lam * norm1(w);",
    "composition_and_mean": "minimize mean[i in P] (log(1 + E[j ~ N] exp(dot(w, j.x) - dot(w, i.x))) + "
    "mu * sumsq(w));",
    "absolute_gap": f"minimize {LOSS} + mu * sumsq(w);\nsubject to\n"
    "  gap: abs(E[z ~ D | z.a == 0] tanh(dot(w, z.x)) - E[z ~ D | z.a == 1] tanh(dot(w, z.x))) <= 0.05;",
    "kink_of_a_mean": "minimize abs(E[z ~ P] dot(w, z.x) - 1) + max(E[z ~ N] dot(w, z.x), 0.5 * sum(w), "
    "0) + mu * sumsq(w);",
    "return_and_risk": "minimize 0.5 * variance[z ~ D] dot(w, z.x) - E[z ~ D] dot(w, z.x) + lam * "
    "norm1(w) + mu * norm2(w)^2;",
    "square_of_a_mean": "minimize (E[z ~ D] dot(w, z.x) - 1)^2 + sum[k in K] (E[z ~ D | z.b == k] "
    "tanh(dot(w, z.x)))^2\n"
    "    + lam * norm1(w) + mu * dot(w, w);",
}
MODELS = {name: HEAD + body for name, body in BODIES.items()}


@cache
def data() -> dict[str, Any]:
    rows = {name: values for name, values in table().items() if name in ("x", "y", "time", "g", "a", "b")}
    return {"D": rows, "prev": np.array([0.2, -0.4, 0.1])}


def bind(text: str) -> tuple[ir.Problem, Bound]:
    compiled = pipeline.compile_model(Source(text=text))
    return compiled.problem, pipeline.bind(compiled, pipeline.Binding(data=data()))


def plan(problem: ir.Problem, bound: Bound) -> Plan:
    return pipeline.decide(pipeline.analyse(problem, bound), {})


def summary(made: Plan, bound: Bound) -> dict[str, Any]:
    """What decides how a problem is solved: the algorithm, proxes, projections, blocks, envelopes, and
    what has none."""

    def value(node: ir.Expr | None) -> Any:
        return (
            None
            if node is None
            else np.round(np.broadcast_to(interpret.evaluate(bound, node, {}).numpy(), (3,)), 9).tolist()
        )

    normal = made.normal
    blocks = sorted((t.label, t.kind, t.n, t.d1, t.depth) for t in normal.terms if t.kind != "deterministic")
    numbers = {
        (p.variable, p.name): (np.round(list(p.coefficients.values()), 12).tolist(), value(p.centre))
        for p in normal.prox
    }
    sets = [
        (name, s.family, [value(a) for a in s.args], value(s.centre))
        for name, v in normal.variables.items()
        for s in v.sets
    ]
    envelopes = sorted(
        (type(s.function).__name__, s.inner, s.penalty.label if s.penalty else "") for s in normal.smoothed
    )
    return {
        "algorithm": made.algorithm, "promise": made.promise.name if made.promise else "", "prox": numbers, "sets": sets,
        "blocks": blocks, "envelopes": envelopes, "kept": len(normal.kept),
        "constraints": sorted(normal.penalties), "variables": sorted(normal.variables),
    }  # fmt: skip


# ---------------------------------------------------------------------------- one meaning, one plan
@cache
def original(name: str) -> tuple[ir.Problem, Bound, dict[str, Any]]:
    """A model as it is written above, with its plan."""
    problem, bound = bind(MODELS[name])
    return problem, bound, summary(plan(problem, bound), bound)


def compare(name: str, text: str, seed: int) -> list[str]:
    """How another text of a model differs from it: in its objective at a random point, and in its plan."""
    problem, bound, expected = original(name)
    new, again = bind(text)
    at = {"w": torch.tensor(np.random.default_rng(seed).normal(size=3))}
    one, other = (
        float(interpret.evaluate(b, p.objective.expr, at)) for p, b in ((problem, bound), (new, again))
    )
    other = other if new.objective.sense == "minimize" else -other
    apart = [] if abs(one - other) <= 1e-9 * (1 + abs(one)) else [f"value: {one} and {other}"]
    found = summary(plan(new, again), again)
    return apart + [
        f"{part}: {expected[part]} and {found[part]}" for part in expected if expected[part] != found[part]
    ]
