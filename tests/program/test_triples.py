"""Programs over triples of rows: what they lay out, keep and leave."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fuzz.pair_forms import HEAD, tables

import fccomodel
from fccomodel import pipeline
from fccomodel.algorithms.runtime.loops.vector_oracle import VectorOracle
from fccomodel.core.work import Left
from fccomodel.data.subsets import RandomParts
from fccomodel.execution.run.loading import loaded
from fccomodel.program.emit import printer
from fccomodel.program.lower.binders import segments
from fccomodel.program.operations.segments import segment

NESTED = "mean[i in D] (max[j in D, k in D | i.g == k.g and i.g == j.g] (dot(w, i.x - j.x) + dot(w, k.x)))^2"


def emitted(text: str, rows: int = 60, groups: int = 3):
    data = tables(rows, groups, 0)
    return pipeline.emit(fccomodel.compile(text).bind(data=data).plan())


def prepared_full(program):
    solver = loaded(program).SOLVER
    return solver.prepare_full(solver.as_namespace(dict(program.data), "cpu", torch.float64))


def test_sums_over_alike_rows_are_numbers_with_a_mean():
    """The sizes of groups are integers, of which torch takes no mean."""
    writer = SimpleNamespace(ref=lambda value: "2")
    val = SimpleNamespace(args=["rows"], attrs={"how": "sum", "sizes": "j_size"})
    data = SimpleNamespace(j_size=torch.tensor([1, 4]), dtype=torch.float64)
    assert eval(segment.alike(writer, val), {"data": data}).mean() == 5.0


def test_steps_lay_out_no_more_rows_than_a_pass_holds(monkeypatch: pytest.MonkeyPatch):
    """Rows of groups for rows of groups, in a step."""
    form = "mean[i in D] (E[j ~ D, k ~ D | i.g == k.g and i.g == j.g] exp(dot(w, i.x - j.x) * k.t))^2"
    text = f"{HEAD}minimize {form} + 0.01 * sumsq(w);\n"
    whole = max(len(array) for array in emitted(text).data.values())
    monkeypatch.setattr(segments, "AT_ONCE", 100)
    assert max(len(array) for array in emitted(text).data.values()) < whole


def test_large_intermediate_values_are_deleted(monkeypatch: pytest.MonkeyPatch):
    """What only prepared values need is freed after its last use, and the values stay the same."""
    text = f"{HEAD}minimize {NESTED} + 0.01 * sumsq(w);\n"
    kept = prepared_full(emitted(text))
    monkeypatch.setattr(printer, "DELETED_FROM", 10)
    program = emitted(text)
    left = prepared_full(program)
    assert "\n    del data." in program.text
    assert set(vars(left)) < set(vars(kept))
    for name, value in vars(left).items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, getattr(kept, name)), name


def test_a_full_pass_is_left_once_the_time_is_over():
    """The pass, and the pass backwards, of steps over very many samples; others are made to their end."""
    calls = []

    def inner_full(data, x, h):
        for _ in range(20):
            calls.append(x.sum())
        return x.sum().reshape(1)

    solver = SimpleNamespace(
        outer_part=None, centred=False, components=1, samples=1, rows=10**8, inner_full=inner_full
    )
    state, h = (
        SimpleNamespace(w=torch.zeros(3), oracles=0, passed=0),
        SimpleNamespace(matrix=0, pass_limit=1e7),
    )
    F = VectorOracle(solver, None, None, None, state, h, over=lambda: len(calls) >= 5)
    with pytest.raises(Left):
        F.whole(state.w)
    assert len(calls) < 10
    solver.rows = 10
    calls.clear()
    at = F.whole(state.w)
    assert len(calls) == 20 and torch.equal(at.pull(torch.ones(1)), torch.ones(3))
    solver.rows = 10**8
    with pytest.raises(Left):
        at.pull(torch.ones(1))


def test_parts_keep_rows_of_the_groups_that_the_model_names():
    """Groups in columns that no expression mentions take no part in a sample of the rows."""
    data = tables(400, 100, 0)

    def part(more: str):
        text = f"{HEAD}minimize E[i ~ D, j ~ D | i.y == 1{more}] dot(w, i.x - j.x)^2;\n"
        return RandomParts(bound=fccomodel.compile(text).bind(data=data).bound).of_share(0.01)

    few, many = part(""), part(" and i.g == j.g")
    assert few.tables["D"].n < 10 and len(np.unique(many.tables["D"].columns["g"])) == 100
