"""Data of the declared types: every model that is shipped runs on them."""

from __future__ import annotations

import numpy as np
import pytest
from support.places import ROOT

import fccomodel as fc
from fccomodel.app.cli import main

MODELS = [
    *sorted((ROOT / "examples").rglob("*.fcco")),
    *(ROOT / "tests" / "golden" / "facts" / f"{name}.fcco" for name in ("cox", "card_form")),
]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: str(path.relative_to(ROOT)))
def test_models_are_bound(path):
    bound = fc.Model.parse(path).mock(rows=40)
    assert all(table.n == 40 for table in bound.bound.tables.values())


def test_the_types():
    m = fc.Model()
    m.d, m.G, m.K = fc.dim(), fc.labels(), fc.grid(0, 1, by=0.5)
    m.D = fc.table(x=fc.real[m.d], n=fc.integer, y={-1, 1}, g=m.G, k=m.K)
    m.F = (fc.table(x=fc.real) for k in m.G)
    m.c, m.a = fc.array(m.G), fc.param(gt=1)
    m.w, m.v = fc.var(m.d), fc.var(m.G)
    drawn = fc.E(fc.dot(m.w, z.x) ** 2 + m.v[z.g] * m.c[z.g] * z.n + z.y + z.k for z in m.D)
    m.minimize(
        drawn + fc.sum(fc.E(z.x for z in m.F[k]) for k in m.G) + m.a + fc.E(z for z in fc.sampler("own"))
    )
    one, same, other = (m.mock(rows=30, seed=seed).bound for seed in (0, 0, 1))
    table = one.tables["D"]
    assert table.columns["x"].shape == (30, 5) and set(np.unique(table.columns["y"])) == {-1, 1}
    assert set(np.unique(table.columns["k"])) == {0, 0.5, 1} and one.params["a"] > 1
    assert (table.columns["x"] == same.tables["D"].columns["x"]).all()
    assert (table.columns["x"] != other.tables["D"].columns["x"]).any()


def test_numbers_are_positive_where_the_model_asks():
    m = fc.Model()
    m.D, m.t = fc.table(x=fc.real), fc.var()
    m.minimize(fc.E((fc.log(z.x) - m.t) ** 2 for z in m.D))
    assert (m.mock().bound.tables["D"].columns["x"] > 0).all()


def test_a_mock_is_solved():
    assert (
        fc.Model.parse(ROOT / "examples" / "group_dro.fcco").mock(rows=60).solve(budget="200it").objective > 0
    )


@pytest.mark.parametrize("name", ["group_dro", "portfolio"])
def test_the_command_writes_files_and_their_binding(name, tmp_path, capsys):
    model = ROOT / "examples" / f"{name}.fcco"
    assert main(["mock-data", str(model), "--out", str(tmp_path), "--rows", "50"]) == 0
    assert str(tmp_path / f"{name}.toml") in capsys.readouterr().out
    assert main(["explain", str(model), "--bind", str(tmp_path / f"{name}.toml")]) == 0
    bound = fc.compile(model).bind(spec=tmp_path / f"{name}.toml").bound
    assert {table.n for table in bound.tables.values()} == {50}


def test_arrays_families_and_sizes_are_written(tmp_path, capsys):
    text = (
        "set K; set I = {1, 2}; dim d; data S[i in I] : table(x: real[d]); data c : real[K]; param "
        "a; var w[d]; var v[K];\n"
    )
    text += "minimize sum[i in I] (E[z ~ S[i]] (dot(w, z.x) - a)^2) + sum[k in K] (v[k] - c[k])^2;\n"
    (tmp_path / "own.fcco").write_text(text)
    assert main(["mock-data", str(tmp_path / "own.fcco"), "--out", str(tmp_path), "--rows", "20"]) == 0
    bound = fc.compile(tmp_path / "own.fcco").bind(spec=tmp_path / "own.toml").bound
    assert bound.tables["S"].n == 40 and bound.arrays["c"].shape == (3,)
