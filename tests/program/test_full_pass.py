"""The emitted full pass against the interpreter, which knows of no plan: objective and every
constraint member."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.emitted_models import CASES, Made, finish, made
from support.places import SHARED

from fccomodel import pipeline
from fccomodel.algorithms.runtime.helpers.support import reduce_by_cell
from fccomodel.core.files import model_source
from fccomodel.data import net_costs
from fccomodel.evaluation import interpret
from fccomodel.evaluation.sets import elements
from fccomodel.library.reductions.cvar import reduce_cvar
from fccomodel.library.reductions.max import reduce_max
from fccomodel.library.reductions.pmean import reduce_pmean
from fccomodel.library.reductions.topk import reduce_topk

MODELS = sorted(p.stem for p in (SHARED / "models").glob("*.fcco")) if (SHARED / "data").is_dir() else []


def compare(case: Made, w: torch.Tensor, tolerance: float = 1e-9) -> None:
    """The program's values are those of the interpreter, which runs expensive nets in float32."""
    if net_costs.dear(case.bound):
        tolerance = max(tolerance, 1e-6)
    solver, problem, bound = case.solver, case.lowered.problem, case.bound
    data = solver.prepare_full(solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    point = {
        name: w[a:b].reshape(shape)
        for name, (a, b, shape) in case.program.layout.items()
        if name in problem.variables
    }
    with torch.no_grad():
        objective, constraints = solver.evaluate(data, w)
        exact = float(interpret.evaluate(bound, problem.objective.expr, point))
    assert abs(solver.SIGN * float(objective) - exact) <= tolerance * max(1.0, abs(exact))
    assert list(constraints) == [c.label for c in problem.constraints]
    for constraint in problem.constraints:
        kind, values = constraints[constraint.label]
        assert kind == constraint.kind
        lists = [elements.ids(bound, b.domain) for b in constraint.binders]
        with torch.no_grad():
            wanted = interpret.evaluate(
                bound, constraint.body, point, dict(zip(constraint.binders, lists, strict=True))
            )
            if constraint.condition is not None:
                env = dict(zip(constraint.binders, lists, strict=True))
                wanted = wanted * interpret.evaluate(bound, constraint.condition, {}, env).double()
        found = values.double()
        if (
            found.shape != wanted.shape
        ):  # the emitted family leaves out what a condition on one binder excludes
            assert abs(float(found.max()) - float(wanted.max())) <= tolerance or float(wanted.max()) == 0
            assert float(found.clamp(min=0).sum()) == pytest.approx(
                float(wanted.clamp(min=0).sum()), abs=tolerance
            )
        else:
            assert np.allclose(found.numpy(), wanted.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_evaluate(name: str) -> None:
    for seed in (0, 1):
        compare(made(name), made(name).point(seed))


@pytest.mark.parametrize("name", CASES)
def test_blocks(name: str) -> None:
    """Centres take finite slopes of the right shape at the exact arguments."""
    case = made(name)
    solver, w = case.solver, case.point()
    data = solver.prepare_full(solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    c = solver.centres("cpu", torch.float64)
    h = solver.Settings()
    with torch.no_grad():
        found = solver.blocks(data, w)
        assert set(found) == set(vars(c))
        for name, (index, t, slope, *_) in found.items():
            centre = getattr(c, name)
            cells = centre[index if index else (...,)]
            y = slope(t, cells, h)
            assert y.shape == t.shape == cells.shape
            assert bool(y.isfinite().all())


@pytest.mark.parametrize("name", MODELS)
def test_shared_models(name: str) -> None:
    compiled = pipeline.compile_model(model_source(SHARED / "models" / f"{name}.fcco"))
    bound = pipeline.bind(
        compiled, pipeline.Binding(spec=SHARED / "models" / f"{name}.toml", data_dir=SHARED / "data")
    )
    case = finish(name, compiled.problem, bound, {}, scale=0.05)
    compare(case, case.point(), 1e-8)


def test_reductions_of_rows_cell_after_cell():
    """Cells of any sizes, padded to common lengths, as cell by cell."""
    values = torch.randn(2000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).abs()
    size = torch.tensor([1, 2, 3, 4, 5, 700, 64, 65, 1156])
    first = size.cumsum(0) - size
    kinds = [(reduce_max, ()), (reduce_cvar, (0.3,)), (reduce_topk, (3,)), (reduce_pmean, (2.0,))]
    for reduce, options in kinds:
        found = reduce_by_cell(reduce, values, first, size, (3, 3), *options)
        cells = [reduce(part, 0, *options) for part in values.split(size.tolist())]
        torch.testing.assert_close(found, torch.stack(cells).view(3, 3), rtol=1e-12, atol=0)
