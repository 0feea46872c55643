"""Models that a wrong analysis would accept: each is refused with its reason, and a chord shows that
it is not convex."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fccomodel import structure
from fccomodel.core import ir
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound, BoundTable
from fccomodel.evaluation.interpret import evaluate
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from fccomodel.structure.why import why

torch.set_num_threads(1)
HEAD = """
dim d;
data D : table(x: real[d], y: {-1, 1}, t: real);
data B : real[d, d];
param c default -1;
var w[d];
var u;
var v;
var l >= 0.5;
"""
#: what is wrong, the objective, and words of the reason
WRONG = [
    (
        "a concave objective hidden in a ratio",
        "minimize e: (E[z ~ D] square(dot(w, z.x))) / (1 + E[z ~ D] square(dot(w, z.x)));",
        "both parts of the quotient depend on the variables",
    ),
    (
        "a decreasing outer function over a convex inner one",
        "minimize e: exp(-(E[z ~ D] square(dot(w, z.x) - z.t)));",
        "exp is convex and non-decreasing, so its argument must be convex, and it is concave",
    ),
    ("a product of convex functions", "minimize e: square(u) * exp(v);", "both factors depend on the variables"),
    (
        "the root of a convex function",
        "minimize e: sqrt(E[z ~ D] log1pexp(-z.y * dot(w, z.x)));",
        "sqrt is concave over (0, inf), not convex",
    ),
    (
        "a difference of convex functions",
        "minimize e: E[z ~ D] abs(dot(w, z.x)) - 0.5 * norm2(w);",
        "what is subtracted is not known to be weakly concave",
    ),
    (
        "the logarithm of a convex function",
        "minimize e: log(1 + E[z ~ D] square(dot(w, z.x)));",
        "log is concave over [1, inf), not convex",
    ),
    (
        "the largest of concave functions",
        "minimize e: max(-square(u), log(l) - u);",
        "max is convex and non-decreasing, so argument 1 must be convex, and it is concave",
    ),
    (
        "a convex outer function of a smooth inner one that is not convex",
        "minimize e: pos(E[z ~ D] sigmoid(z.y * dot(w, z.x)) - 0.4);",
        "sigmoid is neither convex nor concave",
    ),
    ("1/u with u of unknown sign", "minimize e: 1 / u;", "1/u is neither convex nor concave"),
    ("an odd power of unknown sign", "minimize e: (u - v)^3;", "u^3 is neither convex nor concave"),
    ("a convex function, maximised", "maximize e: E[z ~ D] square(dot(w, z.x));", "it is convex, and it is maximised"),
    (
        "the variance of a function that is not affine",
        "minimize e: variance[z ~ D] sigmoid(dot(w, z.x) - z.t);",
        "the variance of a function that is weakly convex, not affine, need not be convex",
    ),
    ("a factor of unknown sign", "minimize e: c * abs(u);", "with a factor of unknown sign"),
    ("an indefinite quadratic form", "minimize e: dot(w, B @ w);", "both factors depend on the variables"),
    (
        "the square of a convex function of unknown sign",
        "minimize e: square(square(u) - 1);",
        "square is convex and neither non-decreasing nor non-increasing, so its argument must be affine, "
        "and it is convex",
    ),
    (
        "a difference of two log-sum-exps",
        "minimize e: log(E[z ~ D] exp(dot(w, z.x))) - log(E[z ~ D] exp(2 * dot(w, z.x)));",
        "1 of its 2 terms is not convex as it stands",
    ),
]  # fmt: skip


def bound_to(text: str) -> Bound:
    source = Source(text=HEAD + text)
    problem = check(parse(source), source)
    rng = np.random.default_rng(0)
    rows = 20
    columns = {
        "x": rng.normal(size=(rows, 2)),
        "y": np.where(rng.random(rows) < 0.5, -1.0, 1.0),
        "t": rng.random(rows),
    }
    return Bound(
        problem=problem,
        tables={"D": BoundTable(name="D", n=rows, columns=columns)},
        arrays={"B": np.array([[1.0, 0.0], [0.0, -2.0]])},
        params={"c": np.float64(-1.0)},
        dims={"d": 2},
    )


@pytest.mark.parametrize("row", WRONG, ids=[row[0] for row in WRONG])
def test_refused_with_the_reason(row: tuple[str, str, str]) -> None:
    _, text, words = row
    bound = bound_to(text)
    found = structure.analyse(bound.problem)
    assert not found.convex and not found.minimised.convex
    assert words in " ".join(" ".join(why(found, "objective", 80)).split())
    assert not structure.analyse(bound.problem, bound).minimised.convex or "unknown sign" not in row[0]


@pytest.mark.parametrize("row", WRONG, ids=[row[0] for row in WRONG])
def test_a_chord_shows_that_it_is_not_convex(row: tuple[str, str, str]) -> None:
    bound = bound_to(row[1])
    sign = 1.0 if bound.problem.objective.sense == "minimize" else -1.0
    rng, shapes = np.random.default_rng(1), {"w": (2,), "u": (), "v": (), "l": ()}

    def point() -> dict[str, torch.Tensor]:
        made = {name: torch.tensor(rng.normal(size=shape)) * 2 for name, shape in shapes.items()}
        return made | {"l": made["l"].abs() + 0.5}

    def value(at: dict[str, torch.Tensor]) -> float:
        return sign * float(evaluate(bound, bound.problem.objective.expr, at))

    def bends_down() -> bool:
        a, b = point(), point()
        return value({name: (a[name] + b[name]) / 2 for name in a}) > (value(a) + value(b)) / 2 + 1e-9

    assert any(bends_down() for _ in range(300))


def hole(name: str) -> ir.Hole:
    return ir.Hole(name=name)


@pytest.mark.parametrize(
    "op, decreasing",
    [
        ("abs", False),
        ("square", False),
        ("neg", True),
        ("inv", False),
        ("huber", False),
        ("eps_insensitive", False),
    ],
)
def test_outer_functions_that_are_not_non_decreasing(op: str, decreasing: bool) -> None:
    extra = (ir.Const(value=0.5),) if op in ("huber", "eps_insensitive") else ()
    found = structure.facts_of(ir.Apply(op=op, args=(hole("u1"), *extra)))
    assert not found.non_decreasing and found.non_increasing == decreasing
