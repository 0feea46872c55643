"""Reports on a random part of the rows, where all are too dear or cannot be held."""

from __future__ import annotations

import dataclasses
import math
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import fccomodel
from fccomodel import pipeline, report
from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.subsets import RandomParts, strata
from fccomodel.evaluation import passes
from fccomodel.evaluation.errors import too_many_to_sort
from fccomodel.report.new_rows import memory_needed, subsample
from fccomodel.report.new_rows.memory_needed import bytes_needed

RNG = np.random.default_rng(3)
X = RNG.normal(size=(900, 3))
Y = np.where(X[:, 0] + RNG.normal(size=900) > 0.8, 1, -1)
TAIL = """dim d; data D : table(x: real[d], y: {-1, 1}); var w[d];
minimize mean[p in D | p.y == 1] cvar(tail = 0.2)[n ~ D | n.y == -1] sqhinge(1 - dot(w, p.x) + dot(w, n.x)) + 0.1 * sumsq(w);"""
GROUPS = """dim d; set K; data D : table(x: real[d], g: K); var w[d];
minimize max[k in K] E[z ~ D | z.g == k] (dot(w, z.x) - 1)^2 + mean[i in D] E[j ~ D] pos(dot(w, i.x) - dot(w, j.x));"""


@pytest.fixture
def bound():
    return fccomodel.compile(TAIL).bind(data={"D": {"x": X, "y": Y}})


def test_elements_are_counted(bound):
    assert passes.amount(bound.bound) == (Y == 1).sum() * (Y == -1).sum()
    grouped = fccomodel.compile(GROUPS).bind(data={"D": {"x": X, "g": np.arange(900) % 3}}).bound
    assert passes.amount(grouped) == 900**2


def test_what_cannot_be_held_is_estimated(bound, monkeypatch):
    """An answer is not thrown away where its terms cannot be sorted together: the estimate and its
    error cover the value."""
    w = {"w": np.array([0.5, 0.0, 0.1])}
    exact = report.report(bound.bound, w)
    system = report.System

    def small(rows, *args, **more):
        if rows.tables["D"].n > 600:
            refuse(too_many_to_sort(next(rows.problem.expressions(ir.Reduce)), 1e9, 5e10, 1e9))
        return system(rows, *args, **more)

    monkeypatch.setattr(report, "System", small)
    monkeypatch.setattr(subsample, "KEPT", 50_000)
    found = report.report(bound.bound, w)
    assert not found.exact and "drawn at random" in found.notes[0] and "95%" in found.notes[1]
    half = float(found.notes[1].rpartition("within ")[2])
    assert 0 < half < 0.2 and abs(found.objective - exact.objective) < 2 * half
    outcome = pipeline.solve(bound.plan(budget="200it"))
    assert not outcome.report.exact and np.isfinite(outcome.report.objective)


def test_a_report_without_memory_keeps_the_point(bound, monkeypatch):
    """Parts are tried until one fits; where none does the answer has its values, and no grade."""
    w, tried = {"w": np.array([0.5, 0.0, 0.1])}, []
    exact = report.report(bound.bound, w).objective
    system = report.System

    def small(rows, *args, **more):
        tried.append(passes.amount(rows))
        if tried[-1] > most:
            raise MemoryError
        return system(rows, *args, **more)

    monkeypatch.setattr(report, "System", small)
    monkeypatch.setattr(subsample, "KEPT", 50_000.0)
    most = 10_000.0
    assert "drawn at random" in report.report(bound.bound, w).notes[0]
    assert tried[0] > tried[1] > most >= tried[2] and len(tried) == 3
    most = 0.0
    planned = bound.plan(budget="200it")
    outcome = pipeline.solve(planned)
    found = outcome.report
    assert found.verdict.startswith("Not judged") and not found.solved and math.isinf(found.epsilon)
    assert np.isfinite(found.objective) and found.objective < exact and "memory ran out" in found.notes[0]
    monkeypatch.setattr(passes, "values", lambda *_: small(bound.bound))
    last = pipeline.report(planned, outcome.solution)
    assert last.objective == outcome.solution.history[-1]["objective"] and "last look" in last.notes[0]


def test_bytes_of_a_report_are_foreseen(bound, monkeypatch):
    """From a part of the rows: neither less than all rows take, nor far more."""
    taken = bytes_needed(bound.bound)
    monkeypatch.setattr(memory_needed, "COUNTED_ELEMENTS", 10_000)
    foreseen = memory_needed._counted(bound.bound, 0)
    assert 0.5 * taken < foreseen < 6 * taken and taken > 8 * passes.amount(bound.bound)


def test_rows_that_do_not_fit_are_not_taken(bound, monkeypatch):
    """A report for which there is not enough memory is made on a part of the rows."""
    monkeypatch.setattr(subsample, "FREE_ELEMENTS", 1000)
    needed = bytes_needed(bound.bound)
    assert subsample.part_that_fits(RandomParts(bound=bound.bound, seed=0)) is None
    monkeypatch.setattr(subsample, "lacking", lambda size: needed / 4 if size > needed / 4 else None)
    found = report.report(bound.bound, {"w": np.zeros(3)})
    assert not found.exact and "drawn at random" in found.notes[0]


def test_what_is_too_dear_is_estimated(bound, monkeypatch):
    """By counted work: the same rows each time; all of them where they are affordable."""
    w = {"w": np.array([0.5, 0.0, 0.1])}
    for name, value in {
        "FREE_ELEMENTS": 100_000,
        "SMALL_PARTS": (20_000, 40_000),
        "LEAST_KEPT": 10_000,
    }.items():
        monkeypatch.setattr(subsample, name, value)
    first, second = (report.report(bound.bound, w, afford=1e-3) for _ in range(2))
    assert not first.exact and first.objective == second.objective
    assert report.report(bound.bound, w, afford=1e3).exact


def test_values_are_of_all_rows_where_one_pass_is_affordable(monkeypatch):
    """The residuals alone are estimated."""
    text = TAIL.rstrip(";") + " subject to a: E[z ~ D] (dot(w, z.x))^2 <= 0.1;"
    bound = fccomodel.compile(text).bind(data={"D": {"x": X, "y": Y}}).bound
    w = {"w": np.array([0.5, 0.0, 0.1])}
    exact = report.report(bound, w)
    for name, value in {
        "FREE_ELEMENTS": 100_000,
        "SMALL_PARTS": (20_000, 40_000),
        "LEAST_KEPT": 10_000,
        "PASSES": 1e6,
    }.items():
        monkeypatch.setattr(subsample, name, value)
    found = report.report(bound, w, afford=10.0)
    assert not found.exact and found.notes[0].endswith("the objective and the constraints are of all rows")
    assert found.objective == pytest.approx(exact.objective, rel=1e-14)  # all rows at once, and in one sum
    assert found.constraints["a"].value == exact.constraints["a"].value
    assert found.constraints["a"].left == pytest.approx(exact.constraints["a"].left)
    assert found.feasibility == exact.feasibility and found.stationarity != exact.stationarity


def test_explain_says_what_will_be_large(bound, monkeypatch):
    assert "drawn at random" not in str(bound.explain())
    monkeypatch.setattr(subsample, "LARGE_ELEMENTS", 100_000)
    assert "elements are evaluated" in str(bound.explain())


def test_entries_for_each_row_are_not_thinned():
    text = (
        "data D : table(x: real); var s[D]; minimize mean[i in D] mean[j in D] (s[i] - s[j] - i.x + j.x)^2;"
    )
    made = fccomodel.compile(text).bind(data={"D": {"x": X[:40, 0]}}).bound
    assert "an entry for each row" in RandomParts(bound=made).obstacle


PLAIN = """dim d; data D : table(x: real[d], y: {-1, 1}); var w[d];
minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)); s.t. c: E[z ~ D] z.x[1] * w[1] <= 0.1;"""


def test_intervals_take_what_is_left(monkeypatch):
    """Of fewer rows the half-widths are as of all, and said to be cut; a value is of all rows where
    that is one pass."""
    from fccomodel.report.new_rows import intervals

    bound = fccomodel.compile(PLAIN).bind(data={"D": {"x": X, "y": Y}}).bound
    w = {"w": np.array([0.5, 0.0, 0.1])}
    whole = subsample.sure(bound, w, seed=0, afford=np.inf)
    monkeypatch.setattr(intervals, "counting", lambda: nullcontext(SimpleNamespace(seconds=1.0)))
    cut = subsample.sure(bound, w, seed=0, afford=2.0)
    assert not whole.cut and "0.25 of the rows" in cut.cut and cut.groups == intervals.FEWEST
    assert (
        cut.objective.value == whole.objective.value and 0.4 < cut.objective.half / whole.objective.half < 2.5
    )
    tiny = subsample.sure(bound, w, seed=0, afford=0.01)
    assert "rows" in tiny.why and tiny.objective.value == whole.objective.value


def test_held_out_rows_share_the_budget(monkeypatch):
    asked = []
    sure = subsample.sure
    monkeypatch.setattr(
        subsample, "sure", lambda *a, afford, **more: asked.append(afford) or sure(*a, afford=afford, **more)
    )
    problem = fccomodel.compile(PLAIN).bind(data={"D": {"x": X, "y": Y}})
    planned = problem.plan(budget="4s", holdout=0.2)
    outcome = pipeline.solve(planned)
    assert 1.0 <= asked[0] <= 4.0 and outcome.heldout is not None and not outcome.heldout.why
    spent = dataclasses.replace(outcome.solution, worked=1e9)
    pipeline.held_out(outcome.planned, spent)
    assert asked[1] == 1.0


def test_a_part_that_cannot_become_smaller_is_taken():
    """Each group keeps a row, whatever a pass over these takes; a pass over all rows that takes more
    than was foreseen, or is late, is left."""
    text = """set G; data D : table(x: real, g: G); var w in box(-1, 1);
minimize mean[i in D] (E[j ~ D, k ~ D | k.g == i.g] pos(w * (i.x - j.x) + k.x))^2;"""
    data = {"D": {"x": RNG.normal(size=1200), "g": np.array([f"g{k % 400}" for k in range(1200)])}}
    rows, point = fccomodel.compile(text).bind(data=data).bound, {"w": np.array(0.5)}
    part = subsample.part_for(RandomParts(bound=rows, seed=0), point, afford=1e-4, most=1e-4)
    assert part is not None and part.values is None and part.bound.tables["D"].n >= 400
    exact = passes.values_within(rows, point, 0, np.inf, lambda: False)
    assert exact == pytest.approx(passes.values(rows, point)[0])
    assert passes.values_within(rows, point, 0, 1e-4, lambda: False) is None
    assert passes.values_within(rows, point, 0, np.inf, lambda: True) is None


def test_strata_are_numbered_in_ascending_order():
    """Rows that agree in all labels have one number, in lexicographic order of their labels."""
    rng = np.random.default_rng(0)
    columns = {
        "a": rng.integers(-2, 3, 40),
        "b": rng.choice([0.5, -7.0, np.inf], 40),
        "c": 1e9 * rng.integers(0, 2, 40),
    }
    kinds = dict.fromkeys(columns, SimpleNamespace(domain="listed", shape=()))
    problem = SimpleNamespace(tables={"D": SimpleNamespace(columns=kinds)})
    table = SimpleNamespace(name="D", columns=columns, n=40)
    expected = np.unique(np.stack(list(columns.values()), axis=1), axis=0, return_inverse=True)[1].ravel()
    assert (strata(SimpleNamespace(problem=problem), table) == expected).all()
