"""Prepared folders: every key of a binding gives the numbers that it gives in memory; what changed or
is damaged is refused."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.bind_tools import FAMILY, GROUPS, LOGISTIC, problem

from fccomodel.app.cli import main
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.bind import _encode, _prepared, _sink, bind
from fccomodel.data.prepare import prepare
from fccomodel.data.sources import RawColumn, _spool, csv, duckdb, parquet

N = 211


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that everything has several; mapped however small."""
    monkeypatch.setattr(_sink, "BLOCK", 64)
    monkeypatch.setattr(_spool, "COPIED_BYTES", 256)
    monkeypatch.setattr(_prepared, "HELD", 0)
    for source in (csv, duckdb, parquet):
        monkeypatch.setattr(source, "rows_of_part", lambda width: 37)


def data() -> pd.DataFrame:
    """Numbers of every kind, some missing, texts, times, groups of several sizes; kinds change on the
    way down."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(3, 5, (N, 3)), columns=["a", "b", "c"])
    frame["whole"] = rng.integers(-5, 5, N)
    frame["late"] = np.where(np.arange(N) < 150, np.arange(N), np.arange(N) + 0.25)
    frame["flat"] = 2.5
    frame["flag"] = rng.integers(0, 2, N).astype(bool)
    frame["holes"] = np.where(np.arange(N) % 17 == 3, np.nan, frame["a"])
    frame["y"] = rng.choice([-1, 1], N)
    frame["income"] = np.where(frame["y"] > 0, ">50K", "<=50K")
    frame["town"] = rng.choice(["oslo", "bern", "rome", "lima"], N, p=[0.6, 0.2, 0.15, 0.05])
    frame["sex"] = rng.choice(["f", "m"], N)
    frame["code"] = rng.choice([3, 10, 2], N)
    frame["odd"] = np.where(np.arange(N) < 150, (np.arange(N) % 3).astype(str), "x")
    return frame


X = {"columns": ["a", "b", "c"]}
KEYS = {
    "columns": (LOGISTIC, {"x": X}),
    "a list": (LOGISTIC, {"x": ["c", "a"]}),
    "all but some": (LOGISTIC, {"x": {"columns": "*", "except": ["holes", "code"], "scale": "standard"}}),
    "scale": (LOGISTIC, {"x": {**X, "scale": "standard"}}),
    "a constant": (LOGISTIC, {"x": {"columns": ["a", "flat"], "scale": "standard", "intercept": True}}),
    "a constant as it is": (LOGISTIC, {"x": {"columns": ["a", "flat"], "intercept": True}}),
    "kinds": (LOGISTIC, {"x": ["whole", "late", "flag"]}),
    "onehot": (LOGISTIC, {"x": {"columns": ["a", "town", "sex"], "encode": "onehot"}}),
    "onehot, scaled": (
        LOGISTIC,
        {"x": {"columns": ["town", "a", "odd"], "encode": "onehot", "scale": "standard"}},
    ),
    "map": (LOGISTIC, {"x": X, "y": {"column": "income", "map": {"<=50K": -1, ">50K": 1, "?": 0}}}),
    "a number scaled": (
        FREE := LOGISTIC.replace("y: {-1, 1}", "y: real"),
        {"x": X, "y": {"column": "a", "scale": "standard"}},
    ),
    "where": (LOGISTIC, {"x": {**X, "scale": "standard"}, "where": "town == 'oslo' and a > 1"}),
    "missing": (
        LOGISTIC,
        {"x": {"columns": ["a", "holes"], "scale": "standard"}, "missing": "drop", "where": "b > 0"},
    ),
    "groups of numbers": (GROUPS, {"x": X, "g": {"column": "code"}}),
    "groups by texts": (GROUPS, {"x": X, "g": {"columns": ["town", "sex"], "min_rows": 20}}),
    "groups by a map": (
        GROUPS,
        {"x": X, "g": {"column": "town", "map": {"oslo": "n", "bern": "s", "rome": "s", "lima": "s"}}},
    ),
    "family": (FAMILY, {"x": {**X, "scale": "standard"}, "family": {"column": "town"}}),
    "family with rows left out": (FAMILY, {"x": X, "family": {"column": "code"}, "where": "a > 0"}),
}


def written(frame: pd.DataFrame, kind: str, folder) -> str:
    """The data as a source of some kind."""
    if kind == "csv":
        frame.to_csv(folder / "raw.csv", index=False)
        return "raw.csv"
    if kind == "parts":
        for k, low in enumerate(range(0, N, 80)):
            frame[low : low + 80].to_parquet(folder / f"part-{k}.parquet")
        return "part-*.parquet"
    frame.to_parquet(folder / "raw.parquet")
    if kind == "sql":
        pytest.importorskip("duckdb")
        return "duckdb:SELECT * FROM 'raw.parquet'"
    return "raw.parquet"


def same(a, b, *, exactly: bool) -> None:
    """Two bindings with the same numbers."""
    assert a.dims == b.dims and dict(a.labels) == dict(b.labels)
    for name, table in a.tables.items():
        other = b.tables[name]
        assert table.n == other.n and set(table.columns) == set(other.columns)
        for column, values in table.columns.items():
            if exactly:
                np.testing.assert_allclose(other.columns[column], values, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_allclose(other.columns[column], values, rtol=1e-6, atol=1e-6)
        alike(table.encoding, other.encoding)


def alike(a, b) -> None:
    """Two JSON-like records with the same entries, numbers to 1e-12."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            alike(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            alike(one, other)
    else:
        assert a == (pytest.approx(b, rel=1e-12, abs=1e-12) if isinstance(a, float) else b)


ELSEWHERE = ("all but some", "onehot, scaled", "missing", "groups by texts")


@pytest.mark.parametrize(
    "name, kind",
    [*((n, "parquet") for n in KEYS), *((n, kind) for n in ELSEWHERE for kind in ("csv", "parts", "sql"))],
)
def test_every_key_gives_the_numbers_of_memory(name, kind, tmp_path):
    text, section = KEYS[name]
    model, table = problem(text), "S" if text is FAMILY else "D"
    section = {"source": written(data(), kind, tmp_path), **section}
    spec, prepared = {table: section}, tmp_path / "prepared"
    memory = bind(model, spec=spec, data_dir=tmp_path)
    prepare(model, prepared, dtype="float64", spec=spec, data_dir=tmp_path)
    alone = bind(model, spec={table: {"source": "prepared"}}, data_dir=tmp_path)
    same(memory, alone, exactly=True)
    same(
        memory, bind(model, spec={table: {**section, "source": "prepared"}}, data_dir=tmp_path), exactly=True
    )
    assert isinstance(alone.tables[table].columns["x"], np.memmap)
    notes = set(memory.notes)
    assert notes <= set(prepare(model, prepared, spec=spec, data_dir=tmp_path).notes)
    rounded = bind(model, spec=spec, data={table: prepared})
    same(memory, rounded, exactly=False)
    assert (
        rounded.tables[table].columns["x"].dtype == np.float32
        and f"{table}.x: prepared as float32" in rounded.notes
    )
    assert not list(tmp_path.glob(".prepared*")) and not (prepared / "spool").exists()


LISTS = """model m; dim d; data D : table(x: real[d], t: real[2, 2]); var w[d];
minimize E[z ~ D] dot(w, z.x) * z.t[1, 2] + sumsq(w);"""


def test_columns_of_lists_and_times(tmp_path):
    rng = np.random.default_rng(1)
    x, t = rng.normal(size=(N, 4)).astype(np.float32), rng.normal(size=(N, 2, 2))
    frame = pd.DataFrame({"x": list(x), "t": [row.tolist() for row in t]})
    frame.to_parquet(tmp_path / "raw.parquet")
    model = problem(LISTS)
    memory = bind(model, data={"D": tmp_path / "raw.parquet"})
    prepare(model, tmp_path / "p", data={"D": tmp_path / "raw.parquet"})
    again = bind(model, data={"D": tmp_path / "p"})
    np.testing.assert_array_equal(
        again.tables["D"].columns["x"], memory.tables["D"].columns["x"]
    )  # float32 as in the source
    same(memory, again, exactly=False)
    moments = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.where(np.arange(N) < 100, 0, 5), "h")
    pd.DataFrame({"x1": x[:, 0], "g": moments}).to_parquet(tmp_path / "times.parquet")
    times, spec = problem(GROUPS), {"D": {"x": ["x1"], "g": "g"}}
    memory = bind(times, spec=spec, data={"D": tmp_path / "times.parquet"})
    prepare(times, tmp_path / "p", spec=spec, data={"D": tmp_path / "times.parquet"}, dtype="float64")
    same(memory, bind(times, data={"D": tmp_path / "p"}), exactly=True)
    assert memory.labels["G"] == ("2020-01-01 00:00:00", "2020-01-01 05:00:00")


@pytest.fixture
def folder(tmp_path):
    """Data prepared for a logistic model, scaled and filtered."""
    data().to_parquet(tmp_path / "raw.parquet")
    spec = {"D": {"source": "raw.parquet", "x": {**X, "scale": "standard"}, "where": "a > 0"}}
    prepare(problem(LOGISTIC), tmp_path / "prepared", spec=spec, data_dir=tmp_path)
    return tmp_path


def refused(code: str, words: str, folder, spec=None, model=LOGISTIC, **given) -> None:
    with pytest.raises(FccoError) as caught:
        bind(problem(model), spec=spec, data={"D": folder / "prepared"}, **given)
    assert [d.code for d in caught.value.diagnostics] == [code] and words in caught.value.diagnostics[
        0
    ].message
    assert caught.value.diagnostics[0].fix


def flip(path, at: int = -5) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_what_is_damaged_is_refused(folder):
    whole = (folder / "prepared" / "D.x.npy").read_bytes()
    flip(folder / "prepared" / "D.x.npy")
    refused("F0534", "D.x.npy is not as it was written", folder)
    (folder / "prepared" / "D.x.npy").write_bytes(whole)
    bind(problem(LOGISTIC), data={"D": folder / "prepared"})  # the same bytes at another time
    (folder / "prepared" / "D.y.npy").unlink()
    refused("F0534", "D.y.npy", folder)
    flip(folder / "prepared" / "manifest.json", 40)
    refused("F0534", "manifest.json", folder)


def test_a_source_that_changed_is_refused_and_prepared_again(folder):
    raw, model = folder / "raw.parquet", problem(LOGISTIC)
    os.utime(raw, ns=(1, 1))
    bind(model, data={"D": folder / "prepared"})
    frame = data()
    frame.loc[0, "a"] += 1
    frame.to_parquet(raw)
    refused("F0535", "was prepared before raw.parquet changed", folder)
    spec = {"D": {"source": "raw.parquet", "x": X}}
    assert prepare(model, folder / "prepared", spec=spec, data_dir=folder).again == "raw.parquet has changed"
    bind(model, data={"D": folder / "prepared"})
    raw.unlink()
    bind(model, data={"D": folder / "prepared"})  # the folder is enough


def test_what_was_prepared_otherwise_is_refused(folder):
    refused("F0536", "[D] where is not what prepared was prepared with", folder, {"D": {"where": "a > 1"}})
    refused("F0536", "[D] x is not", folder, {"D": {"x": X}})
    refused("F0536", "cannot be held out", folder, without="y == 1")
    refused("F0536", "cannot be held out", folder, rows={"D": np.arange(9)})
    labels = (
        LOGISTIC.replace("y: {-1, 1}", "y: G").replace("dim d;", "dim d; set G;").replace("-z.y * ", "-1 * ")
    )
    refused("F0536", "was prepared as numbers", folder, model=labels)


def test_rows_that_no_column_was_scaled_by_are_left_out(tmp_path):
    """By a condition on the columns, as of a table in memory; the others by the same encoding."""
    given, model = {"D": data()}, problem(LOGISTIC)
    prepare(model, tmp_path / "p", spec={"D": {"x": X}}, data=given, dtype="float64")
    memory = bind(model, spec={"D": {"x": X}}, data=given, without="y == 1").tables["D"]
    some = bind(model, data={"D": tmp_path / "p"}, without="y == 1").tables["D"]
    np.testing.assert_array_equal(some.columns["x"], memory.columns["x"])
    others = bind(model, data={"D": tmp_path / "p"}, encoding={"D": some.encoding}, where="y == 1").tables[
        "D"
    ]
    assert some.n + others.n == N and (others.columns["y"] == 1).all()


def test_a_failure_leaves_what_was_there(folder):
    before = json.loads((folder / "prepared" / "manifest.json").read_text())
    with pytest.raises(FccoError):
        prepare(
            problem(LOGISTIC),
            folder / "prepared",
            spec={"D": {"source": "raw.parquet", "x": ["none"]}},
            data_dir=folder,
        )
    assert json.loads((folder / "prepared" / "manifest.json").read_text()) == before
    assert sorted(path.name for path in folder.iterdir()) == ["prepared", "raw.parquet"]
    (folder / "other").mkdir()
    (folder / "other" / "notes.txt").write_text("mine")
    with pytest.raises(FccoError, match="F0806"):
        prepare(problem(LOGISTIC), folder / "other", data={"D": folder / "raw.parquet"})


def test_numbers_beyond_float32_are_refused(tmp_path):
    given = {"x": np.full((9, 2), 1e300), "y": np.ones(9)}
    with pytest.raises(FccoError, match="(?s)F0536.*float32 does not hold"):
        prepare(problem(LOGISTIC), tmp_path / "p", data={"D": given})
    prepare(problem(LOGISTIC), tmp_path / "p", data={"D": given}, dtype="float64")


def test_an_earlier_encoding_and_rows_of_it(folder):
    model = problem(LOGISTIC)
    learned = bind(model, data={"D": folder / "prepared"})
    encoding = {"D": learned.tables["D"].encoding}
    some = bind(model, data={"D": folder / "prepared"}, encoding=encoding, where="y == 1")
    keep = learned.tables["D"].columns["y"] == 1
    np.testing.assert_array_equal(some.tables["D"].columns["x"], learned.tables["D"].columns["x"][keep])
    raw = bind(
        model,
        spec={"D": {"x": {**X, "scale": "standard"}}},
        data={"D": folder / "raw.parquet"},
        encoding=encoding,
    )
    assert raw.tables["D"].n == N
    other = {"D": {"x": {**encoding["D"]["x"], "numbers": ["a", "b", "d"]}}}
    refused("F0536", "encoded otherwise", folder, encoding=other)


def test_names_that_mean_nothing(folder):
    model = problem(LOGISTIC)
    with pytest.raises(FccoError) as caught:
        bind(model, data={"D": "none-*.parquet"}, data_dir=folder)
    assert [d.code for d in caught.value.diagnostics] == ["F0505"]
    assert "no file matches none-*.parquet" in caught.value.diagnostics[0].message
    other = problem(LOGISTIC.replace("data D", "data R").replace("~ D", "~ R"))
    with pytest.raises(FccoError) as caught:
        bind(other, data={"R": folder / "prepared"})
    assert (
        caught.value.diagnostics[0].code == "F0508"
        and "has no table R; it has D" in caught.value.diagnostics[0].message
    )


def test_blocks_are_of_so_many_numbers(folder, monkeypatch):
    """Whatever the rows' width; of texts, of their categories."""
    seen = []
    made = _encode.features
    monkeypatch.setattr(_encode, "features", lambda *given: (seen.append(made(*given)), seen[-1])[1])
    for x in (
        X,
        {**X, "scale": "standard"},
        {"columns": ["town", "sex", "a"], "encode": "onehot", "scale": "standard"},
    ):
        prepare(
            problem(LOGISTIC),
            folder / "prepared",
            spec={"D": {"source": "raw.parquet", "x": x}},
            data_dir=folder,
        )
    assert len(seen) > 20 and max(built.values.size for built in seen) <= _sink.BLOCK


def test_the_command(folder, capsys):
    (folder / "m.fcco").write_text(LOGISTIC)
    (folder / "m.toml").write_text('[D]\nsource = "raw.parquet"\nx = ["a", "b"]\n')
    assert main(["prepare", str(folder / "m.toml"), "--out", str(folder / "new")]) == 0
    assert f"{N} rows" in capsys.readouterr().out
    assert main(["prepare", str(folder / "m.toml"), "--out", str(folder / "new"), "--dtype", "float64"]) == 0
    assert "is written again: it was asked for again" in capsys.readouterr().out
    assert bind(problem(LOGISTIC), data={"D": folder / "new"}).tables["D"].n == N
    (folder / "m.fcco").unlink()
    assert main(["prepare", str(folder / "m.toml"), "--out", str(folder / "new")]) == 2
    assert "F0801" in capsys.readouterr().err


def test_files_are_read_where_rows_are_asked_for(tmp_path):
    """Of many columns' files a few rows are read in turns: what systems read ahead would be a multiple
    of each file."""
    growing = _spool.Growing(tmp_path / "1.bin", "x")
    numbers = np.arange(40_000.0)
    growing.add(RawColumn(values=numbers))
    growing.close()
    column = growing.column()
    for rows in (np.arange(513, 9_000), np.array([3, 4, 39_999]), np.array([5, 2, 3]), np.arange(0)):
        assert np.array_equal(column.take(rows).values, numbers[rows])
    smaps = Path("/proc/self/smaps")
    if smaps.exists():
        mine = smaps.read_text().partition(str(tmp_path / "1.bin"))[2]
        assert "rr" in re.search(r"VmFlags: (.*)", mine)[1].split()
