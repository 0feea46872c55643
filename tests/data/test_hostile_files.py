"""Files that lie about themselves, or are none: refused with a code, at once, in little memory. Random
ones: ``tests/fuzz``."""

from __future__ import annotations

import gzip
import json
import os
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.bind_tools import problem

from fccomodel.core import arrays, files, memory
from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.data import sources
from fccomodel.data.bind import bind
from fccomodel.data.prepare import prepare
from fccomodel.data.sources import DataRequest, _paths, csv

MODEL = "data D : table(y: real); var x; minimize E[z ~ D] (x - z.y)^2;"
VECTORS = "dim d; data D : table(x: real[d], y: real); var w[d]; minimize E[z ~ D] (dot(w, z.x) - z.y)^2;"


def refused(code: str, words: str, **given) -> Diagnostic:
    with pytest.raises(FccoError) as caught:
        bind(problem(given.pop("model", MODEL)), **given)
    one = caught.value.diagnostics[0]
    assert one.code == code and words in one.message and one.fix, str(caught.value)
    return one


@pytest.fixture
def small(monkeypatch):
    """A machine with a megabyte of memory."""
    monkeypatch.setattr(memory, "available", lambda: 1_000_000)


# -------------------------------------------------------------------------------------- NumPy files
def npy(shape: str, descr: str = "'<f8'", numbers: bytes = bytes(24)) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + numbers


LIES = {
    "too many": npy("(1000000000000,)"),
    "too many to count": npy("(1000000000000, 1000000000000)"),
    "fewer than none": npy("(-3,)"),
    "one too many": npy("(4,)"),
    "objects": npy("(3,)", "'|O'"),
    "a long name of a type": npy("(3,)", "'" + "f" * 9000 + "'"),
    "a deep shape": npy("(" * 3000 + ")" * 3000),
    "no header": b"\x93NUMPY\x01\x00",
    "an unknown version": b"\x93NUMPY\x09\x00" + bytes(100),
    "nothing": b"",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_numpy_file_is_as_large_as_it_says(tmp_path, lie):
    (tmp_path / "y.npy").write_bytes(LIES[lie])
    refused("F0506", "y.npy", data={"D": tmp_path / "y.npy"})
    with pytest.raises(arrays.NotArrays):
        arrays.mapped(tmp_path / "y.npy")
    with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
        archive.writestr("y.npy", LIES[lie])
    refused("F0506", "d.npz", data={"D": tmp_path / "d.npz"})


def test_zeros_that_take_a_thousandth_of_their_size(tmp_path, small):
    np.savez_compressed(tmp_path / "d.npz", y=np.zeros(10_000_000))
    assert (tmp_path / "d.npz").stat().st_size < 100_000
    refused("F0506", "does not fit memory", data={"D": tmp_path / "d.npz"})


def test_arrays_are_read_as_numpy_reads_them(tmp_path):
    given = {
        "a": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.ones((2, 3))),
        "é": np.array(["a", "bc"]),
        "n": np.zeros(0),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "d.npz", **given)
        found = arrays.read(tmp_path / "d.npz")
        assert found.keys() == given.keys()
        assert all(
            np.array_equal(found[name], value) and found[name].dtype == value.dtype
            for name, value in given.items()
        )
    np.savez(tmp_path / "d.npz")
    assert arrays.read(tmp_path / "d.npz") == {}


# --------------------------------------------------------------------------------- text and parquet
def test_a_line_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "LONGEST_LINE", 1 << 20)
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"y\n" + bytes(8_000_000)))
    refused("F0506", "has a line of more than 1 MB", data={"D": tmp_path / "d.csv.gz"})
    with pytest.raises(FccoError, match="has a line of more than 1 MB"):
        prepare(problem(MODEL), tmp_path / "prepared", data={"D": tmp_path / "d.csv.gz"})


def test_rows_beyond_memory_are_read_in_parts_only(tmp_path, small):
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"y\n" + b"1\n" * 200_000))
    one = refused("F0506", "does not fit memory", data={"D": tmp_path / "d.csv.gz"})
    assert "fccomodel prepare" in one.fix
    pq.write_table(pa.table({"y": np.ones(200_000)}), tmp_path / "d.parquet")
    one = refused("F0506", "does not fit memory", data={"D": tmp_path / "d.parquet"})
    assert "fccomodel prepare" in one.fix
    for name in ("d.csv.gz", "d.parquet"):
        assert prepare(problem(MODEL), tmp_path / "prepared", data={"D": tmp_path / name}).tables == {
            "D": 200_000
        }


def test_the_time_for_columns_grows_with_their_number(tmp_path):
    seconds = []
    for count in (2_000, 16_000):
        line = ",".join(["1"] * count)
        (tmp_path / "d.csv").write_text(
            ",".join([*(f"x{k}" for k in range(count - 1)), "y"]) + f"\n{line}\n{line}\n"
        )
        began = time.process_time()
        bind(problem(VECTORS), spec={"D": {"source": "d.csv", "x": "*"}}, data_dir=tmp_path)
        seconds.append(time.process_time() - began)
    assert seconds[1] < 30 * max(seconds[0], 0.05)  # 8 times the columns; the square is 64


# -------------------------------------------------------------------------- names that are no files
@pytest.mark.parametrize("name", ["d.csv", "d.npy", "d.parquet", "d.csv.gz", "d.npz"])
def test_pipes_devices_and_links_in_circles(tmp_path, name):
    os.mkfifo(tmp_path / name)
    refused("F0505", "is a device, a pipe or a socket", data={"D": tmp_path / name})
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    refused("F0505", "is a device, a pipe or a socket", data={"D": tmp_path / name})
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(tmp_path / name)
    refused("F0505", name, data={"D": tmp_path / name})


@pytest.mark.parametrize("name", ["a" * 5000, "a/" * 3000 + "d.csv", "~nobody-of-that-name/d.csv"])
def test_names_that_the_system_does_not_take(name):
    refused("F0505", "is no path", data={"D": name})


# ----------------------------------------------------------------------------------------- patterns
@pytest.fixture
def shards(tmp_path, monkeypatch):
    """A binding's folder with two files, a folder with others beside it, and links to these."""
    for name in ("binding", "elsewhere", "home"):
        (tmp_path / name).mkdir()
        for k in (1, 2):
            (tmp_path / name / f"part-{k}.csv").write_text("y\n1\n")
    (tmp_path / "binding" / "link-1.csv").symlink_to(tmp_path / "elsewhere" / "part-1.csv")
    (tmp_path / "binding" / "folder").symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path / "home")

    def bound(pattern: str, more: str = "") -> dict:
        (tmp_path / "binding" / "m.toml").write_text(f"[D]\nsource = {json.dumps(pattern)}\n{more}")
        return {"spec": tmp_path / "binding" / "m.toml"}

    return bound


def test_a_pattern_keeps_to_the_folders_of_the_binding(shards, tmp_path):
    assert bind(problem(MODEL), **shards("part-*.csv")).tables["D"].n == 2
    assert bind(problem(MODEL), **shards(f"{tmp_path}/binding/part-?.csv")).tables["D"].n == 2
    outside = [
        f"{tmp_path}/elsewhere/*.csv",
        "../elsewhere/*.csv",
        "/*/*",
        "/etc/*",
        "link-*.csv",
        "folder/*.csv",
        "f*/part-1.csv",
    ]
    for pattern in outside:
        refused("F0537", "reaches", **shards(pattern))
    refused("F0505", "no file matches", **shards("../*/part-1.txt", 'files = [".."]'))
    for pattern in ("/**/*", "**/*.csv", "../**/part-1.csv"):
        refused("F0505", "would look through all folders", **shards(pattern))


def test_what_a_binding_names_is_open_to_its_patterns(shards, tmp_path):
    for pattern in ("../elsewhere/part-*.csv", "folder/part-*.csv", f"{tmp_path}/elsewhere/part-?.csv"):
        assert bind(problem(MODEL), **shards(pattern, 'files = ["../elsewhere"]')).tables["D"].n == 2
    assert (
        bind(problem(MODEL), **shards("link-*.csv", 'files = ["../elsewhere/part-1.csv"]')).tables["D"].n == 1
    )
    assert bind(problem(MODEL), **shards("../elsewhere/*.csv"), data_dir=tmp_path).tables["D"].n == 2
    assert bind(problem(MODEL), data={"D": f"{tmp_path}/elsewhere/*.csv"}).tables["D"].n == 2
    refused("F0505", "nowhere", **shards("*.csv", 'files = ["nowhere"]'))


def test_a_pattern_looks_at_so_many_files(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(_paths, "LARGEST_SEARCH", 3)
    refused("F0505", "looks at more than 3", **shards("*.csv"))


# ------------------------------------------------------------------------------------ binding files
HUGE = "9" * 5000
BINDINGS = {
    "digits": f"[params]\na = {HUGE}",
    "digits of a label": f"[D.y]\ncolumn = 'y'\nmap = {{ no = {HUGE} }}",
    "digits that Python reads": f"[D.y]\ncolumn = 'y'\nmap = {{ no = {'9' * 4000} }}",
    "brackets": "a = " + "[" * 20_000,
    "a key of many parts": "x." * 20_000 + "x = 1",
    "a section of many parts": "[" + "a." * 20_000 + "a]",
    "parts within braces": "a = { " + "b." * 20_000 + "b = 1 }",
    "tables in tables": "a = " + "{ b = " * 150 + "1" + " }" * 150,
}


@pytest.mark.parametrize("name", BINDINGS)
def test_numbers_and_depths_of_a_binding_file(tmp_path, name):
    (tmp_path / "d.csv").write_text("y\n1\n")
    (tmp_path / "m.toml").write_text(f'[D]\nsource = "d.csv"\n{BINDINGS[name]}\n')
    began = time.process_time()
    with pytest.raises(FccoError) as caught:
        bind(problem("param a default 1; " + MODEL), spec=tmp_path / "m.toml")
    assert (
        caught.value.diagnostics[0].code in ("F0501", "F0502", "F0503", "F0518")
        and time.process_time() - began < 5
    )


def test_a_binding_file_of_many_numbers_is_read(tmp_path):
    numbers = ", ".join(f"{k}.5" for k in range(20_000))
    (tmp_path / "m.toml").write_text(f"c = [{numbers}]\n")
    bound = bind(
        problem("dim d; data c : real[d]; var x[d]; minimize sumsq(x - c);"), spec=tmp_path / "m.toml"
    )
    assert bound.arrays["c"].shape == (20_000,)


def test_a_message_quotes_a_long_name_in_part(tmp_path):
    (tmp_path / "d.csv").write_text("a" * 3_000_000 + ",y\n1,2\n")
    (tmp_path / "e.csv").write_text("a" * 3_000_000 + ";y\n1;2\n")
    for name, given in {"d.csv": VECTORS, "e.csv": MODEL}.items():
        with pytest.raises(FccoError) as caught:
            bind(problem(given), data={"D": tmp_path / name})
        assert len(str(caught.value)) < 20_000


# --------------------------------------------------------------------------------- prepared folders
CHANGES = {
    "no tables": lambda m: m.update(tables=[]),
    "a table of no columns": lambda m: m["tables"]["D"].pop("columns"),
    "a file elsewhere": lambda m: m["tables"]["D"]["columns"]["y"].update(file="../y.npy"),
    "a file that is not sealed": lambda m: m["files"].clear(),
    "other rows": lambda m: m["tables"]["D"].update(n=7),
    "labels of numbers": lambda m: m["tables"]["D"]["columns"]["y"].update(labels=["a"]),
    "a name upwards": lambda m: m["files"].update({"../y.npy": m["files"].pop("D.y.npy")}),
    "an encoding of another kind": lambda m: m["tables"]["D"]["columns"]["y"].update(encoding=3),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_manifest_that_was_sealed_again(tmp_path, change):
    (tmp_path / "d.csv").write_text("y\n1\n2\n")
    prepare(problem(MODEL), tmp_path / "prepared", data={"D": tmp_path / "d.csv"})
    path = tmp_path / "prepared" / "manifest.json"
    manifest = json.loads(path.read_text())
    CHANGES[change](manifest)
    path.write_text(json.dumps(files.seal(manifest)))
    refused("F0534", "is not as it was written", data={"D": tmp_path / "prepared"})


def test_prepared_numbers_that_lie(tmp_path):
    (tmp_path / "d.csv").write_text("y\n1\n2\n3\n")
    prepare(problem(MODEL), tmp_path / "prepared", data={"D": tmp_path / "d.csv"})
    path = tmp_path / "prepared" / "manifest.json"
    for content in (
        npy("(1000000000000,)"),
        npy("(3,)", "'<c8'"),
        npy("(3,)", "'|O'"),
        npy("()"),
        npy("(2,)"),
    ):
        file = tmp_path / "prepared" / "D.y.npy"
        file.write_bytes(content)
        manifest = json.loads(path.read_text())
        status = file.stat()
        manifest["files"]["D.y.npy"] = {
            "size": status.st_size,
            "time": status.st_mtime_ns,
            "sha256": files.digest(file),
        }
        path.write_text(json.dumps(files.seal(manifest)))
        refused("F0534", "D.y.npy is not as it was written", data={"D": tmp_path / "prepared"})


def test_sources_of_any_kind_may_be_opened_by_themselves(tmp_path):
    (tmp_path / "d.csv").write_text("y\n1\n")
    assert sources.open("*.csv", DataRequest(folders=(tmp_path,))).n == 1
    assert Path("d.csv") == _paths.find_file("d.csv", (tmp_path,)).relative_to(tmp_path)
