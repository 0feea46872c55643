"""Linear maps of rows term by term, squared distances by norms and products: values and gradients as
pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fccomodel import pipeline
from fccomodel.core import ir
from fccomodel.core.source import Source
from fccomodel.evaluation import distributed, interpret
from fccomodel.library.distances import beside, middle, squared_distances
from fccomodel.normal_form import normalise

HEAD = """
dim d; const k = 2; set G;
data D : table(x: real[d], g: G, t: real);
var A[k, d]; var B[d, d]; var c[d]; var w[d];
"""
BODIES = {
    "map": "mean[i in D] log(1 + sum[j in D | j != i] exp(-sumsq(A @ (i.x - j.x))))",
    "ratio": "mean[i in D] (sum[j in D | j.g == i.g and j != i] exp(-sumsq(A @ (i.x - j.x))))"
    " / (sum[j in D | j != i] exp(-sumsq(A @ (i.x - j.x))))",
    "score": "mean[i in D] (E[j ~ D | j.t > i.t - 9] tanh(dot(w, (i.x - j.x) / 2 + c)))^2",
    "distance": "mean[i in D, j in D] tanh(1 / (1 + sumsq(i.x - B @ j.x + 2 * c)))",
    "order": "mean[i in D] log(1 + E[j ~ D | j.t >= i.t] log1pexp(dot(w, j.x - i.x) * sumsq(A @ (j.x + "
    "i.x))))",
    "equal_rows": "mean[i in D] E[j ~ D] (1e-6 + sumsq(A @ (i.x - j.x)))^0.25",
}


def bound(body: str, n: int = 41, shift: float = 0.0):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 3)) + shift
    x[: n // 3] = x[n // 3 : 2 * (n // 3)]  # rows that are equal
    data = {"x": x, "g": rng.integers(0, 3, n), "t": np.round(rng.normal(size=n), 1)}
    compiled = pipeline.compile_model(Source(text=f"model pairs;{HEAD}minimize {body};"))
    return pipeline.bind(compiled, pipeline.Binding(data={"D": data}))


def point(seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"A": (2, 3), "B": (3, 3), "c": (3,), "w": (3,)}
    drawn = {
        name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()
    }
    return {name: value.requires_grad_() for name, value in drawn.items()}


def valued(problem, at: dict[str, torch.Tensor], **given) -> tuple[torch.Tensor, list[torch.Tensor]]:
    value = interpret.evaluate(problem, problem.problem.objective.expr, at, **given)
    gradients = torch.autograd.grad(value, list(at.values()), allow_unused=True)
    return value.detach(), [g for g in gradients if g is not None]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("chunk", [1 << 21, 300])
def test_interpreter(name: str, chunk: int) -> None:
    problem = bound(BODIES[name])
    fast, slow = (valued(problem, point(), shortcuts=shortcuts, chunk=chunk) for shortcuts in (True, False))
    assert float(fast[0]) == pytest.approx(float(slow[0]), rel=1e-10)
    for one, other in zip(fast[1], slow[1], strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-11)


def test_forms() -> None:
    """A map of a sum is taken apart where its terms have fewer elements, and a squared distance has
    its sides."""
    problem = bound(BODIES["map"])
    forms = distributed.of(problem)
    nodes = [
        n for n in ir.walk(problem.problem.objective.expr) if getattr(n, "op", "") in ("matmul", "sumsq")
    ]
    matmul, sumsq = sorted(nodes, key=lambda n: n.op)
    assert forms.form(matmul) is forms.form(matmul) is not None
    assert forms.sides(sumsq) is not None
    assert forms.form(matmul, lambda part: 1.0) is None  # no fewer elements


@pytest.mark.parametrize("shift", [0.0, 1e5])
def test_squared_distances(shift: float) -> None:
    """Small ones are as exact as large ones, rows that are far from zero or equal included."""
    generator = torch.Generator().manual_seed(0)
    u, v = (shift + torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (30, 20))
    v[:5], v[5:9] = u[:5], u[5:9] + 1e-7
    exact = (u[:, None] - v).square().sum(-1)
    found = squared_distances(u, beside(v, middle(v)), middle(v))
    assert torch.allclose(found, exact, rtol=1e-9, atol=0.0)
    assert bool((found.diagonal()[:5] == 0).all())


def test_gradients_of_squared_distances() -> None:
    generator = torch.Generator().manual_seed(1)
    u, v = (torch.randn(n, 2, generator=generator, dtype=torch.float64, requires_grad=True) for n in (4, 3))

    def distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        b = torch.cat([b, a[:1]])
        return squared_distances(a, beside(b, middle(b)), middle(b))

    assert torch.autograd.gradcheck(distances, (u, v))


def test_the_plan_says_what_is_mapped_once() -> None:
    problem = bound(BODIES["ratio"])
    said = {
        text: why for text, how, why in normalise(problem.problem, problem).treatment if how == "mapped once"
    }
    assert (
        said["A @ (i.x - j.x)"] == "each row is mapped once: an exact pass maps 41 + 41 rows, not 1,681 pairs"
    )
    assert said["sumsq(A @ (i.x - j.x))"].startswith("by norms and products of rows: ")
