"""Multipliers and variables by the names that the model and its data give their entries."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import fccomodel
from fccomodel.app.shown.labelled import Labelled, by_family
from fccomodel.core.diagnostics import FccoError

MODEL = """
dim d;
set G;
data D : table(x: real[d], y: {-1, 1}, g: G);
param kappa default 0.2;
var w[d];
var b;
var u[G, 2];
minimize risk: E[z ~ D] log1pexp(-z.y * (dot(w, z.x) + b)) + 0.1 * sumsq(w) + mean[k in G] (u[k, 1]^2 + (u[k, 2] - 1)^2);
subject to
  gap[k in G, t in {0.25, 0.5}]: E[z ~ D | z.g == k] log1pexp(-z.y * (dot(w, z.x) + b)) <= kappa + t;
  some[k in G, l in G | k != l]: u[k, 1] - u[l, 1] <= 1;
  total: sum(w) <= 0.1;
"""


@pytest.fixture(scope="module")
def result() -> fccomodel.Result:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    data = {
        "age": x[:, 0],
        "income": x[:, 1],
        "y": np.where(x.sum(1) > 0, 1, -1),
        "g": np.resize(["a", "b", "c"], 80),
    }
    bound = fccomodel.compile(MODEL).bind(D=data, spec={"D": {"x": {"columns": ["age", "income"]}}})
    return bound.solve(budget="100it")


def refusal(make: Any) -> str:
    with pytest.raises(FccoError) as found:
        make()
    return str(found.value)


def test_entries_by_name(result: fccomodel.Result) -> None:
    gap, rows = result.multipliers["gap"], result.report.constraints
    for k in "abc":
        for t in (0.25, 0.5):
            assert gap.sel(k=k, t=t) == rows[f"gap[{k},{t}]"].multiplier
    assert gap.sel(k="b").dims == ("t",) and gap.sel(k=["c", "a"]).coords == {
        "k": ("c", "a"),
        "t": (0.25, 0.5),
    }
    assert np.array_equal(gap.sel(k=["c", "a"], t=0.5), np.asarray(gap)[[2, 0], 1])
    assert result.multipliers["total"] == rows["total"].multiplier > 0
    assert result.variables["w"].sel(d="income") == result.variables["w"][1]
    u = result.variables["u"]
    assert u.dims == ("G", "axis_2") and u.sel(G="b", axis_2=2) == u[1, 1] == pytest.approx(1, abs=0.3)
    assert result.variables["b"].ndim == 0


def test_combinations_that_are_no_members_are_not_numbers(result: fccomodel.Result) -> None:
    some = result.multipliers["some"]
    assert np.array_equal(np.isnan(some), np.eye(3, dtype=bool)) and some.dims == ("k", "l")


def test_numbers_are_found_as_they_are_shown() -> None:
    array = Labelled(np.arange(3.0), [("t", [0.1, 0.2, 0.1 + 0.2])])
    assert array.sel(t=0.3) == 2.0 and array.sel(t=np.float64(0.1)) == 0.0


def test_a_name_that_is_none(result: fccomodel.Result) -> None:
    gap = result.multipliers["gap"]
    assert "F0813" in (text := refusal(lambda: gap.sel(j="a"))) and "`k`, `t`" in text
    assert "F0813" in (text := refusal(lambda: gap.sel(k="d"))) and "a, b, c" in text
    assert "F0813" in refusal(lambda: Labelled(np.ones(2), [("d", None)]).reshape(2, 1).sel(d=1))


def test_they_are_arrays(result: fccomodel.Result) -> None:
    """Whatever moves entries gives an array without names, never one with wrong ones."""
    w = Labelled(np.array([3.0, 1.0]), [("d", ["p", "q"])])
    assert isinstance(w, np.ndarray) and torch.as_tensor(w).sum() == 4 and float(np.linalg.norm(w)) > 0
    moved = (w[::-1], np.sort(w), np.flip(w), np.partition(w, 1), w.T, w[:1])
    for made in (*moved, w + 1, 2 * w, w @ np.ones(2), np.maximum(w, 2), w.astype(int)):
        assert not getattr(made, "dims", ())
    w += 1
    assert w[0] == 4 and type(w[:]) is np.ndarray
    square = Labelled(np.arange(4.0).reshape(2, 2), [("i", ["p", "q"]), ("j", ["p", "q"])])
    assert not square.T.dims and square.sel(i="p", j="q") == 1 and "i: p, q" in repr(square)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a)), lambda a: a.copy()]
)
def test_copies_keep_names(again: Any) -> None:
    array = Labelled(np.arange(2.0), [("d", ["p", "q"])])
    made = again(array)
    assert made.coords == {"d": ("p", "q")} and np.array_equal(made, array) and made is not array


def test_as_tables(result: fccomodel.Result) -> None:
    pytest.importorskip("pandas")
    gap = result.multipliers["gap"]
    assert gap.to_pandas().loc["b", 0.5] == gap.sel(k="b", t=0.5) and gap.to_pandas().index.name == "k"
    assert result.variables["w"].to_pandas()["income"] == result.variables["w"].sel(d="income")
    cube = Labelled(np.arange(8.0).reshape(2, 2, 2), [(n, [0, 1]) for n in "ijk"])
    assert cube.to_pandas().loc[1, 0, 1] == 5
    assert list(result.history.to_pandas().columns) == list(result.history.columns)
    assert np.array_equal(result.history["objective"], [entry["objective"] for entry in result.history])
    assert "F0813" in refusal(lambda: result.history["objektive"])


def test_as_xarray(result: fccomodel.Result) -> None:
    pytest.importorskip("xarray")
    array = result.multipliers["gap"].to_xarray()
    assert float(array.sel(k="b", t=0.5)) == result.multipliers["gap"].sel(k="b", t=0.5)


def test_without_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    array = Labelled(np.arange(2.0), [("d", None)])
    for package, make in {"xarray": array.to_xarray, "pandas": array.to_pandas}.items():
        monkeypatch.setitem(__import__("sys").modules, package, None)
        assert "F0529" in (text := refusal(make)) and f"pip install {package}" in text


def test_a_folder_keeps_names(result: fccomodel.Result, tmp_path: Any) -> None:
    stored = fccomodel.load(result.save(tmp_path / "out"))
    for made in (
        stored,
        pickle.loads(pickle.dumps(result)),
        copy.deepcopy(result),
        pickle.loads(pickle.dumps(stored)),
    ):
        assert made.multipliers["gap"].coords == result.multipliers["gap"].coords
        assert np.array_equal(made.multipliers["gap"], result.multipliers["gap"])
        assert made.variables["w"].coords == {"d": ("age", "income")} and made.history == result.history


def test_what_is_not_known_is_not_a_number() -> None:
    named = {"c": [], "f": [("k", ["a", "b"])]}
    found = by_family({"c": None, "f[a]": 1.0}, named)
    assert np.isnan(found["c"]) and found["f"].sel(k="a") == 1 and np.isnan(found["f"].sel(k="b"))


def test_the_line_that_solves_again_has_params_by_label_in_the_order_of_the_set():
    text = "set A; data c : real[A]; param p[A]; var x[A]; minimize sumsq(x - c) + dot(p, x);"
    for given in ({"b": 2.0, "a": 1.0}, pd.Series({"b": 2.0, "a": 1.0})):
        bound = fccomodel.compile(text).bind(data={"c": {"a": 0.5, "b": 0.25}}, params={"p": given})
        found = bound.solve(seed=0, device="cpu", budget="20it")
        assert "--param 'p=[1.0, 2.0]'" in found.json["again"]
