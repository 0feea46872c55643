"""Full passes over pairs: rows mapped once, slices swept for value and gradient, against the
interpreter pair by pair; and when a finish by few of them is taken."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.emitted_models import Made, finish

from fccomodel import pipeline
from fccomodel.algorithms.runtime.finish import ending
from fccomodel.algorithms.runtime.finish import finish as finishing
from fccomodel.algorithms.runtime.helpers.raised import log_mean_raised, raised
from fccomodel.algorithms.runtime.helpers.support import log_mean_exp
from fccomodel.algorithms.runtime.helpers.sweep import swept
from fccomodel.algorithms.runtime.loops.settings import LoopSettings
from fccomodel.algorithms.runtime.loops.solver import Solver
from fccomodel.core.options import Budget
from fccomodel.core.source import Source
from fccomodel.evaluation import interpret
from fccomodel.program.emit import printer
from fccomodel.program.lower import program
from fccomodel.program.lower.reductions import reductions

NCA = """
dim d; const k = 2; set G;
data D : table(x: real[d], g: G, t: real);
var A[k, d];
maximize mean[i in D] (sum[j in D | j.g == i.g and j != i] exp(-sumsq(A @ (i.x - j.x))))
    / (sum[j in D | j != i] exp(-sumsq(A @ (i.x - j.x))));
"""
MODELS = {
    "nca": NCA,
    "weighted": NCA.replace(
        "maximize mean[i in D] (", "minimize (sum[i in D | i.t > 0] exp(i.t / 9) * ("
    ).replace("));", ")))^2;"),
    "sliced": "dim d; set G; data D : table(x: real[d], g: G, t: real); var w[d]; var b; minimize "
    "(mean[i in D] log(1 + E[j ~ D |"
    " j.t + i.t > -9] square(tanh(dot(w, i.x - j.x) + b))))^2;",
}


def emitted(text: str, monkeypatch: pytest.MonkeyPatch, n: int = 60) -> Made:
    """The program of a model whose passes go slice by slice."""
    monkeypatch.setattr(reductions, "DENSE", 1)
    monkeypatch.setattr(printer, "SLICE", 500)
    return made(text, n)


def made(text: str, n: int = 60) -> Made:
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(n, 3)), "g": rng.integers(0, 3, n), "t": rng.normal(size=n)}
    compiled = pipeline.compile_model(Source(text=f"model pairs;{text}"))
    return finish("pairs", compiled.problem, pipeline.bind(compiled, pipeline.Binding(data={"D": data})), {})


@pytest.mark.parametrize("name", MODELS)
def test_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = emitted(MODELS[name], monkeypatch)
    assert "swept(over_i" in case.program.text
    solver, w = case.solver, case.point(1).requires_grad_()
    data = solver.prepare_full(solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    value = solver.whole(data, w, solver.centres("cpu", torch.float64), solver.Settings())
    (gradient,) = torch.autograd.grad(value, w)
    with torch.no_grad():
        assert float(solver.evaluate(data, w)[0]) == pytest.approx(value.item(), rel=1e-12)
    names = case.bound.problem.variables
    point = {n: w[a:b].reshape(shape) for n, (a, b, shape) in case.program.layout.items() if n in names}
    exact = solver.SIGN * interpret.evaluate(
        case.bound, case.bound.problem.objective.expr, point, shortcuts=False
    )
    (wanted,) = torch.autograd.grad(exact, w)
    assert value.item() == pytest.approx(exact.item(), rel=1e-10)
    assert torch.allclose(gradient, wanted, rtol=1e-9, atol=1e-11)


def test_rows_are_mapped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One product of the table with A, and one table of distances and of their exponentials for both
    sums, in each pass."""
    text = emitted(NCA, monkeypatch).program.text
    whole = text[text.index("def whole(") : text.index("def all_blocks(")]
    assert whole.count("data.D_x @") == whole.count("squared_distances(") == whole.count(" = raised(") == 1
    assert whole.count(" = log_mean_raised(") == 2


def test_exponentials_under_several_masks() -> None:
    """Values and gradients as each mask alone has them, where what it lets through is far below the
    rest or nothing, or the rest is infinite."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, 9, generator=generator, dtype=torch.float64)
    mask = torch.rand(6, 9, generator=generator) < 0.5
    mask[:, 0], mask[4] = False, False
    x[1, 0], x[2, 0] = 800.0, 2000.0
    places, kinds = torch.tensor([0, 0, 3, 0, 4, 5]), torch.tensor([1, 2, 1, 3, 2, 1, 2, 3, 1])
    for dim in (1, 0):
        for top in (0.0, math.inf):
            x[3, 0] = top
            given = (x if dim else x.T).clone().requires_grad_()
            chosen = mask if dim else mask.T
            skip, along, across = places.unsqueeze(dim), kinds.unsqueeze(1 - dim), kinds[:6].unsqueeze(dim)
            kept = torch.ones_like(chosen).scatter(dim, skip, False)
            for skips, more, let in (
                ((), {"mask": chosen}, chosen),
                ((skip,), {"alike": (along, across)}, kept & (along == across)),
                (
                    (skip,),
                    {"mask": chosen, "alike": (along + 0.5, across + 0.5)},
                    kept & chosen & (along == across),
                ),
                ((skip,), {}, kept),
            ):
                found = log_mean_raised(raised(given, dim, *skips), dim, **more)
                wanted = log_mean_exp(given.masked_fill(~let, -math.inf), dim)
                assert torch.allclose(found, wanted, rtol=1e-13)
                (slope,), (exact,) = (
                    torch.autograd.grad(value.sum(), given, retain_graph=True) for value in (found, wanted)
                )
                assert torch.allclose(slope, exact, rtol=1e-12, atol=0.0)


def test_sweep() -> None:
    """Value and gradient of a sum over slices, with one evaluation of each; nothing without a gradient
    is differentiated."""
    w, calls = torch.randn(3, dtype=torch.float64, requires_grad=True), []

    def over(part, w):
        calls.append(len(part))
        return (part[:, None] * w).sin().sum(1)

    parts = torch.arange(10.0, dtype=torch.float64).split(4)
    (found,) = torch.autograd.grad(2 * swept(over, parts, w), w)
    assert calls == [4, 4, 2]
    (wanted,) = torch.autograd.grad(2 * (torch.arange(10.0, dtype=torch.float64)[:, None] * w).sin().sum(), w)
    assert torch.allclose(found, wanted)
    assert not swept(over, parts, w.detach()).requires_grad


@pytest.mark.parametrize(
    ("price", "convex", "way", "share"),
    [(0.01, False, "finish", 5.0), (1.1, False, "finish", 10.0), (1.3, False, "", None), (4.9, True, "finish", 10.0),
     (5.1, True, "", None)],
)  # fmt: skip
def test_few_passes_are_better_than_none(price: float, convex: bool, way: str, share: float | None) -> None:
    """Of 40 seconds: 400 passes after some steps, 25 or more in three quarters of them, of a convex
    problem six, or none."""
    solver = SimpleNamespace(
        finish=True, restore=None, direct=False, nonconvex=not convex, one_pass=lambda *_: price
    )
    solver.settings = lambda: SimpleNamespace(annealed=False)
    last = ending.allotted(solver, None, "cpu", 40.0, None)
    assert last.way == way and last.share == share


def test_budgets_decide_what_is_affordable() -> None:
    """More numbers than a pass is made of hundreds of times: some of it, where the budget has room for
    them."""
    numbers = 4.0 * program.CHEAP_PASS_NUMBERS
    assert program.many_fit(program.CHEAP_PASS_NUMBERS, SimpleNamespace(budget=Budget()))
    assert not program.many_fit(numbers, SimpleNamespace(budget=Budget(iterations=100)))
    assert not program.many_fit(numbers, SimpleNamespace(budget=Budget(seconds=10.0)))
    assert program.many_fit(numbers, SimpleNamespace(budget=Budget(seconds=120.0)))


@pytest.mark.parametrize(("first", "ends"), [(-0.5, -1.0), (3.0, 1.0)])
def test_the_first_iterate_is_tried(first: float, ends: float) -> None:
    """From near the worse of two minima, where steps ended, the finish goes to the better if the first
    iterate leads there."""

    def whole(data, w, c, h):
        return ((w - 1) * (w + 1)).square().sum() + 0.3 * w.sum()

    def evaluate(data, w):
        return whole(data, w, None, None), {}

    usual = {field.name: None if field.default is MISSING else field.default for field in fields(Solver)}
    own = {
        "whole": whole,
        "evaluate": evaluate,
        "inside": {},
        "all_blocks": lambda data, w: {},
        "own": 1,
        "nonconvex": True,
    }
    own |= {"project": lambda w, step: None, "regulariser": lambda w: 0.0}
    solver = SimpleNamespace(**usual | own)
    w = torch.tensor([0.9], dtype=torch.float64)
    entry = {"merit": 1.0, "objective": 1.0, "violation": 0.0, "oracles": 1.0, "stage": 1}
    outcome = SimpleNamespace(
        w=w, first=torch.tensor([first], dtype=torch.float64), c=SimpleNamespace(), h=LoopSettings(), history=[entry],
        iterations=1, seconds=0.0, timed=False,
    )  # fmt: skip
    data = SimpleNamespace(device="cpu")
    with torch.no_grad():
        found = finishing.finish(solver, outcome, data, passes=500)
    assert math.isclose(float(found.w), ends, abs_tol=0.1)
