"""Reductions over pairs of rows without the pairs: values and gradients are those of the explicit
pairs, in float64."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.emitted_models import compiled
from torch import Tensor

from fccomodel import pipeline
from fccomodel.algorithms.runtime.helpers import raised, support
from fccomodel.library.proximal import maps
from fccomodel.normal_form import normalise
from fccomodel.program.emit.printer import FunctionPrinter
from fccomodel.program.lower import Lowering, State

HEAD = """model m; dim d; data D : table(x: real[d], y: {0, 1}, t: real, c: real, k: int); param mu >= 0 default 0.5;
set P = {z in D | z.y == 1}; set N = {z in D | z.y == 0}; var w[d];
"""
ROWS = 41


def table(scale: float = 1.0) -> dict[str, np.ndarray]:
    """Rows with ties in t, and groups k of different sizes."""
    rng = np.random.default_rng(0)
    return {
        "x": scale * rng.normal(size=(ROWS, 3)), "y": (rng.random(ROWS) < 0.4).astype(int), "t": rng.integers(0, 9, ROWS) / 2.0,
        "c": rng.random(ROWS) - 0.3, "k": rng.integers(0, 4, ROWS),
    }  # fmt: skip


def full_pass(
    text: str, data: dict[str, np.ndarray], **options: Any
) -> tuple[Callable[[Tensor], Tensor], Lowering]:
    """The objective on all rows as a function of w that autograd goes through."""
    made = compiled(HEAD + f"minimize {text};")
    bound = pipeline.bind(made, pipeline.Binding(data={"D": data}))
    lowering = Lowering(State(bound=bound, full=True, **options))
    root = lowering.expr(made.problem.objective.expr, {}, True)
    printer = FunctionPrinter(layout={"w": (0, 3, (3,))}, autograd=True)
    printer.print([root])
    known = {name: f for module in (maps, raised, support) for name, f in vars(module).items()}
    body = "\n".join(
        f"    {line}" for line in [*printer.prepared.lines, *printer.body, f"return {printer.ref(root)}"]
    )
    names = {**known, "torch": torch, "math": math}
    exec(f"def whole(data, w):\n{body}", names)
    arrays = {key: torch.as_tensor(np.array(value)) for key, value in lowering.state.data.items()}
    given = types.SimpleNamespace(
        device="cpu", dtype=torch.float64, **arrays, **{k: float(v) for k, v in bound.params.items()}
    )
    return lambda w: names["whole"](given, w), lowering


class Rows:
    """Scores and columns of all rows, of P and of N, pairs as (n, p) and (i, j)."""

    def __init__(self, data: dict[str, np.ndarray], w: Tensor):
        self.s = torch.as_tensor(data["x"]) @ w
        self.t, self.c, self.k, y = (torch.as_tensor(data[name]) for name in ("t", "c", "k", "y"))
        self.positive = y == 1
        self.p, self.n = self.s[y == 1], self.s[y == 0]
        self.cp, self.cn = self.c[y == 1], self.c[y == 0]
        self.tp, self.tn = self.t[y == 1], self.t[y == 0]
        self.pair = self.n[:, None] - self.p
        self.later = (self.t >= self.t[:, None]).double()
        self.alike = (self.k == self.k[:, None]).double()

    def over(self, mask: Tensor, values: Tensor) -> Tensor:
        """Per row i, the mean of values over the j that a mask lets through."""
        return (mask * values).sum(1) / mask.sum(1)


def huber(u: Tensor, delta: float) -> Tensor:
    return torch.where(u.abs() <= delta, u.square() / 2, delta * (u.abs() - delta / 2))


PAIR = "dot(w, n.x) - dot(w, p.x)"
CASES: dict[str, tuple[str, Callable[[Rows], Tensor]]] = {
    "exp": (f"mean[n in N] (E[p ~ P] exp({PAIR}))^4", lambda r: r.pair.exp().mean(1).pow(4).mean()),
    "one score": (
        "mean[n in N] (E[p ~ P] exp(dot(w, n.x - p.x)))^4",
        lambda r: r.pair.exp().mean(1).pow(4).mean(),
    ),
    "temperature": (
        f"mean[n in N] log(E[p ~ P] exp(({PAIR}) / mu))",
        lambda r: (r.pair / 0.5).exp().mean(1).log().mean(),
    ),
    "sum": (
        f"mean[n in N] square(sum[p in P] (n.c * exp({PAIR}) - mu))",
        lambda r: (r.cn[:, None] * r.pair.exp() - 0.5).sum(1).square().mean(),
    ),
    "both factors": (
        f"mean[n in N] square(E[p ~ P] (n.c * exp({PAIR}) * p.c))",
        lambda r: (r.cn[:, None] * r.pair.exp() * r.cp).mean(1).square().mean(),
    ),
    "factors of a sum": (
        f"mean[n in N] square(E[p ~ P] (p.c * ({PAIR}) / (1 + n.c^2)))",
        lambda r: (r.cp * r.pair / (1 + r.cn[:, None] ** 2)).mean(1).square().mean(),
    ),
    "square": (
        f"mean[n in N] log(1 + E[p ~ P] (1 + {PAIR})^2)",
        lambda r: (1 + r.pair).square().mean(1).log1p().mean(),
    ),
    "sum of squares": (
        f"mean[n in N] log(1 + sum[p in P] (mu + {PAIR})^2)",
        lambda r: (0.5 + r.pair).square().sum(1).log1p().mean(),
    ),
    "squared hinge": (
        f"mean[n in N] square(E[p ~ P] sqhinge(1 + {PAIR}))",
        lambda r: (1 + r.pair).relu().square().mean(1).square().mean(),
    ),
    "hinge": (
        f"mean[n in N] square(E[p ~ P] max(0, mu + {PAIR}))",
        lambda r: (0.5 + r.pair).relu().mean(1).square().mean(),
    ),
    "huber": (
        f"mean[n in N] square(sum[p in P] (n.c * huber({PAIR}, 0.7)))",
        lambda r: (r.cn * huber(r.pair, 0.7).sum(1)).square().mean(),
    ),
    "two binders": (
        f"E[p ~ P, n ~ N] max(0, 1 + {PAIR})^2 + mu * (E[n ~ N, p ~ P | n.t > 1 and p.t > 1] exp({PAIR}))^2",
        lambda r: (
            (1 + r.pair).relu().square().mean() + 0.5 * r.pair[r.tn > 1][:, r.tp > 1].exp().mean().square()
        ),
    ),
    "risk sets": (
        "mean[i in D] log(E[j ~ D | j.t >= i.t] exp(dot(w, j.x) - dot(w, i.x)))",
        lambda r: r.over(r.later, (r.s - r.s[:, None]).exp()).log().mean(),
    ),
    "before": (
        "mean[i in D] square(sum[j in D | i.t > j.t - 1] (i.c * tanh(dot(w, j.x))))",
        lambda r: (r.c[:, None] * (r.t[:, None] > r.t - 1) * r.s.tanh()).sum(1).square().mean(),
    ),
    "strata": (
        "mean[i in D] log(sum[j in D | j.k == i.k and j.t >= i.t] exp(dot(w, j.x) - dot(w, i.x)))",
        lambda r: (r.alike * r.later * (r.s - r.s[:, None]).exp()).sum(1).log().mean(),
    ),
    "ordered pairs": (
        "log(E[i ~ D, j ~ D | j.t > i.t] exp(dot(w, j.x) - dot(w, i.x)))"
        " + E[i ~ P, j ~ D | j.t > i.t] (1 + dot(w, j.x) - dot(w, i.x))^2",
        lambda r: (
            ((r.s - r.s[:, None])[r.t > r.t[:, None]]).exp().mean().log()
            + (1 + r.s - r.s[:, None])[(r.t > r.t[:, None]) & r.positive[:, None]].square().mean()
        ),
    ),
    "before in groups": (
        "sum[i in D, j in D | j.k == i.k and j.t < i.t] (mu + dot(w, j.x) - dot(w, i.x))^2",
        lambda r: (0.5 + r.s - r.s[:, None])[(r.t < r.t[:, None]) & (r.alike > 0)].square().sum(),
    ),
    "hinges of ordered pairs": (
        "E[i ~ D, j ~ D | j.t > i.t] max(0, 1 + dot(w, j.x) - dot(w, i.x))^2",
        lambda r: (1 + r.s - r.s[:, None])[r.t > r.t[:, None]].relu().square().mean(),
    ),
    "hinges in groups": (
        "mean[i in D] square(E[j ~ D | j.k == i.k] pos(mu + dot(w, j.x) - dot(w, i.x)))",
        lambda r: r.over(r.alike, (0.5 + r.s - r.s[:, None]).relu()).square().mean(),
    ),
    "hinges in a window": (
        "sum[i in D, j in D | j.k == i.k and j.t >= i.t - 1 and j.t < i.t + 1] (i.c * huber(dot(w, j.x) "
        "- dot(w, i.x), 0.6))",
        lambda r: (
            r.alike
            * ((r.t >= r.t[:, None] - 1) & (r.t < r.t[:, None] + 1))
            * r.c[:, None]
            * huber(r.s - r.s[:, None], 0.6)
        ).sum(),
    ),
    "groups": (
        "mean[i in D] square(E[j ~ D | j.k == i.k] (mu + dot(w, j.x) - dot(w, i.x)))",
        lambda r: r.over(r.alike, 0.5 + r.s - r.s[:, None]).square().mean(),
    ),
}


def differentiated(of: Callable[[Tensor], Tensor], at: Tensor) -> tuple[float, np.ndarray]:
    w = at.clone().requires_grad_()
    value = of(w)
    return value.item(), torch.autograd.grad(value, w)[0].numpy()


W = torch.tensor([0.5, -0.8, 0.3], dtype=torch.float64)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_pairs(name: str) -> None:
    text, explicit = CASES[name]
    data = table()
    found, lowering = full_pass(text, data)
    value, gradient = differentiated(found, W)
    expected = differentiated(lambda w: explicit(Rows(data, w)), W)
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-10, atol=1e-12)
    assert (
        max(math.prod(axis.size for axis in val.axes) for val in lowering.state.graph.vals) <= ROWS
    )  # no pairs


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "both factors",
        "square",
        "squared hinge",
        "two binders",
        "risk sets",
        "strata",
        "hinges in groups",
    ],
)
def test_scores_of_fifty_neither_overflow_nor_cancel(name: str) -> None:
    text, explicit = CASES[name]
    data = table(scale=25.0)
    data["x"][:, 0] += 300  # a shift that all pairs lose
    found, _ = full_pass(text, data)
    value, gradient = differentiated(found, W)
    expected = differentiated(lambda w: explicit(Rows(data, w)), W)
    assert math.isfinite(expected[0]) and value == pytest.approx(expected[0], rel=1e-9)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-8, atol=1e-9 * np.abs(expected[1]).max())


KEPT = [
    f"mean[n in N] square(E[p ~ P] sigmoid({PAIR}))",
    "mean[n in N] square(E[p ~ P] ((dot(w, n.x) - dot(w, p.x)) * (n.t - p.t)))",
    "mean[i in D] log(E[j ~ D | j != i] exp(dot(w, j.x) - dot(w, i.x)))",
    "mean[i in D] square(E[j ~ D | j.t >= i.t and j.t <= i.t + 2] dot(w, j.x))",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_has_no_separated_form_stays_a_pass_over_pairs(text: str) -> None:
    data = table()
    found, lowering = full_pass(text, data)
    value, gradient = differentiated(found, W)
    plain, _ = full_pass(text, data, separated=False)
    expected = differentiated(plain, W)
    assert value == pytest.approx(expected[0], rel=1e-14)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)
    assert max(math.prod(axis.size for axis in val.axes) for val in lowering.state.graph.vals) > ROWS


def test_rows_in_order_by_their_bits() -> None:
    ends = [0.0, -0.0, 5e-324, -5e-324, math.inf, -math.inf, 1e300, -1e300]
    for dtype in (torch.float64, torch.float32):
        x = torch.cat(
            [
                torch.tensor(ends, dtype=dtype),
                torch.randn(100, generator=torch.Generator().manual_seed(0), dtype=dtype),
            ]
        )
        assert torch.equal(x[support.increasing(x)], x.sort().values)


def test_the_plan_says_what_a_pass_costs() -> None:
    data = table()
    text = (
        f"{HEAD}minimize log(E[n ~ N, p ~ P] exp({PAIR})) + mean[i in D] square(E[j ~ D | j.t >= i.t] "
        "dot(w, j.x));"
    )
    made = compiled(text)
    bound = pipeline.bind(made, pipeline.Binding(data={"D": data}))
    said = normalise(made.problem, bound).treatment
    positive = int(data["y"].sum())
    expected = f"each row enters alone: an exact pass meets {ROWS - positive} + {positive} rows, not"
    assert any(how == "separated" and why.startswith(expected) for _, how, why in said)
    assert any(how == "sorted" and text.startswith("E[j ~ D") for text, how, _ in said)
