"""Rows of short runs in full passes: work and memory are those of pairs within groups, however the
conditions are written."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import pipeline
from fccomodel.core import memory
from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation.sets.selections import split
from fccomodel.execution.run.loading import loaded
from fccomodel.program.lower import foreseen, lower
from fccomodel.program.lower.program import Lowering
from fccomodel.program.lower.state import State

ROWS, GROUPS = 4000, 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 3))
LABELS = np.array([f"g{k}" for k in range(GROUPS)])[np.arange(ROWS) % GROUPS]
DATA = {
    "D": {"x": X, "t": RNG.normal(size=ROWS), "g": LABELS, "h": np.where(np.arange(ROWS) % 3 == 0, "a", "b")},
    "Z": {
        "u": np.arange(3.0 * GROUPS),
        "g": np.array([f"g{k}" for k in range(GROUPS)])[np.arange(3 * GROUPS) % GROUPS],
    },
}
HEAD = """dim d; set G; set H;
data D : table(x: real[d], t: real, g: G, h: H);
data Z : table(u: real, g: G);
var w[d] in box(-3, 3);
def grouped(a, q) = a.g == q;
"""
LOSS = "sqhinge(1 - dot(w, i.x - j.x))"
#: pairs of rows of a group, written in several ways
WRITTEN = [
    f"mean[q in G] (E[i ~ D, j ~ D | i.g == q and j.g == q and i.t < j.t] {LOSS})^2",
    f"mean[q in G] (E[i ~ D, j ~ D | i.t < j.t and q == j.g and q == i.g] {LOSS})^2",
    f"mean[q in G] (E[i ~ D, j ~ D | j.g == i.g and j.g == q and i.t < j.t] {LOSS})^2",
    f"mean[q in G] (E[i ~ D, j ~ D | i.g == q and j.g == q and i.h == j.h] {LOSS})^2",
    f"mean[q in G] (E[i ~ D, j ~ D | i.g == q and j.g == q and abs(i.t - j.t) <= 1] {LOSS})^2",
    f"mean[z in Z] (E[i ~ D, j ~ D | i.g == z.g and j.g == z.g and i != j] {LOSS})^2",
    f"max[i in D] (E[j ~ D | j.g == i.g] {LOSS})",
    f"mean[q in G] (variance[i ~ D, j ~ D | i.g == q and j.g == q and i.t < j.t] {LOSS})",
    f"mean[i in D] (variance[j ~ D | j.g == i.g and j != i] {LOSS})^2",
]
#: pairs of rows of a group, and bytes that their vectors take; all pairs of rows are forty times as many
PAIRS = GROUPS * (ROWS // GROUPS) ** 2
MOST_BYTES = 8 * 3 * PAIRS


def bound_of(text: str):
    return fccomodel.compile(f"{HEAD}minimize {text} + 0.01 * sumsq(w);").bind(data=DATA)


@pytest.mark.parametrize("text", WRITTEN)
def test_memory_is_that_of_groups(text: str) -> None:
    """A mask over all pairs of rows alone would take 16 MB, numbers of them 128 MB each."""
    planned = bound_of(text).plan(budget="5s")
    found = foreseen(lower(planned.problem, planned.bound, planned.plan))
    assert found.largest <= 2 * MOST_BYTES and found.total < 16 * MOST_BYTES, (found.largest, found.total)


@pytest.mark.parametrize("text", WRITTEN)
def test_values(text: str) -> None:
    """Those of the interpreter, and of evaluations of some of the rows about these."""
    planned = bound_of(text).plan(budget="5s")
    program = pipeline.emit(planned)
    module = loaded(program)
    full = module.SOLVER.prepare_full(module.SOLVER.as_namespace(dict(program.data), "cpu", torch.float64))
    w = torch.zeros(max(stop for _, stop, _ in program.layout.values()), dtype=torch.float64)
    start, stop, _ = program.layout["w"]
    w[start:stop] = torch.tensor([0.3, -0.2, 0.5])
    from fccomodel.evaluation.interpret import evaluate

    wanted = evaluate(planned.bound, planned.problem.objective.expr, {"w": w[start:stop]})
    assert float(module.SOLVER.evaluate(full, w)[0]) == pytest.approx(float(wanted), rel=1e-9)


def test_rows_at_equal_distances() -> None:
    """Of a run that is longer than the places there are, each stands for as many rows."""
    from fccomodel.algorithms.runtime.helpers.support import run_places, run_weights

    places, sizes = torch.arange(4)[None, :], torch.tensor([[2], [4], [10]])
    assert run_places(places, sizes).tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 2, 5, 7]]
    weights = run_weights(places, sizes, torch.float64)
    assert weights.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [2.5, 2.5, 2.5, 2.5]]
    assert weights.sum(1).tolist() == [2, 4, 10]


def test_equal_keys_are_followed() -> None:
    """Each binder is compared with one before it, whichever way its key is written."""
    problem = bound_of(
        "mean[q in G] E[i ~ D, j ~ D | j.g == i.g and j.g == q] dot(w, i.x - j.x)^2"
    ).bound.problem
    inner = next(n for n in fccomodel.core.ir.walk(problem.objective.expr) if getattr(n, "kind", "") == "E")
    first, second = split(inner.binders, inner.condition)
    assert [p.name for p in first.parents] == ["q"] and [p.name for p in second.parents] == ["q"]


def test_one_value_for_each_key() -> None:
    """What depends on an outer row by its key alone is made for each key, not for each row."""
    bound = bound_of(
        "mean[z in Z] (E[i ~ D, j ~ D | i.g == z.g and j.g == z.g] (dot(w, i.x) * j.t)^2)^2"
    ).bound
    lowering = Lowering(State(bound=bound, full=True))
    lowering.expr(bound.problem.objective.expr, {}, True)
    assert max(axis.size for val in lowering.state.graph.vals for axis in val.axes) <= PAIRS


def test_what_does_not_fit_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bytes asked and available, and the expression; ``explain`` says the same beforehand."""
    text = f"cvar(tail = 0.3)[i in D, j in D | i.t < j.t] {LOSS}"
    bound = bound_of(text)
    said = " ".join(str(bound.explain()).split())
    assert "memory: a solve takes" in said and "cvar(tail = 0.3)" in said
    monkeypatch.setattr(memory, "available", lambda: 50_000_000)
    with pytest.raises(FccoError, match="F0704") as raised:
        bound.solve(budget="2s")
    (error,) = raised.value.diagnostics
    assert "50 MB are available" in error.reason and "cvar" in error.reason and error.fix


UNEQUAL = {
    "D": {
        "x": X[:60],
        "t": DATA["D"]["t"][:60],
        "g": np.repeat(LABELS[:4], [5, 10, 15, 30]),
        "h": DATA["D"]["h"][:60],
    }
}


@pytest.mark.parametrize("condition", ["i.t < j.t", "i != j", "abs(i.t - j.t) <= 1", "i.h == j.h"])
def test_steps_keep_groups_apart(condition: str) -> None:
    """A step that takes all rows has the gradient of the objective, however unlike the groups are."""
    text = (
        f"{HEAD}minimize mean[q in G] E[i ~ D, j ~ D | i.g == q and j.g == q and {condition}] (dot(w, "
        "i.x - j.x) - 1)^2;"
    )
    text = text.replace("data Z : table(u: real, g: G);\n", "")
    bound = fccomodel.compile(text).bind(data=UNEQUAL)
    planned = bound.plan(budget="5it")
    program = pipeline.emit(planned)
    module = loaded(program)
    from fccomodel.evaluation.interpret import evaluate

    w = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)
    leaf = w.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(
        evaluate(planned.bound, planned.problem.objective.expr, {"w": leaf}), leaf
    )
    solver = module.SOLVER
    data = solver.prepare(solver.as_namespace(dict(program.data), "cpu", torch.float64))
    rng = torch.Generator().manual_seed(0)
    c, u, h = solver.centres("cpu", torch.float64), solver.buffers("cpu", torch.float64), solver.settings()
    found = torch.stack(
        [
            solver.gradient(data, w, w, u, c, [part[0] for part in solver.draw(data, rng, 1)], h)
            for _ in range(3000)
        ]
    )
    error = found.std(0) / len(found) ** 0.5
    assert bool(((found.mean(0) - wanted).abs() <= 5 * error + 1e-9).all()), (found.mean(0), wanted)
