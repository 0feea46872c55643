"""Random hostile files: what a stranger may send as data, a binding, prepared tables, an answer or
checkpoints.

Each case is a file or a folder that lies, is damaged, or is no file at all, and what a user does
with it. Sound and hostile parts are mixed, so that what is wrong lies at every depth.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import shutil
import socket
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import fccomodel
from fccomodel.app.shown import page
from fccomodel.app.stored import store
from fccomodel.core import files
from fccomodel.execution import checkpoints

TABLE = (
    "dim d; data D : table(x: real[d], y: real); param a default 1; var w[d]; "
    "minimize E[z ~ D] (dot(w, z.x) - z.y)^2 + a * sumsq(w);"
)
ARRAY = "dim d; data c : real[d]; param a default 1; var w[d]; minimize sumsq(w - c) + a * sumsq(w);"
ANSWERED = (
    "dim d; set G; data D : table(x: real[d], y: real, g: G); param a > 0 default 0.1; var w[d]; var t[G]; "
    "def score(x) = dot(w, x); minimize E[z ~ D] (dot(w, z.x) + t[z.g] - z.y)^2 + a * sumsq(w); subject "
    "to cap: sum(w) <= 0.5;"
)
BINDING = """
[D]
source = "rows.csv"
x = { columns = ["x0", "x1"], scale = "standard", intercept = true }
y = { column = "y", scale = "standard" }
"""
#: What stands in place of a value of a record.
ODD: list[Any] = [
    None, True, -1, 0, 1e308, 10**30, "", "x", "../x", "/etc/passwd", "\x00", [], {}, [[]], [None], {"": None}, [1, "a"],
    "<script>", "9" * 5000,
]  # fmt: skip
TEXTS = [
    "1",
    "-2.5",
    "nan",
    "inf",
    "9" * 5000,
    "",
    " ",
    '"',
    "'",
    "\x00",
    "é",
    "\ufeff",
    "<script>",
    "1,2",
    "\r",
    "1e999",
    "0x1p3",
]
PATTERNS = [
    "/**/*",
    "**/*.csv",
    "/*/*/*/*",
    "*",
    "?ows.csv",
    "/etc/*",
    "../*.csv",
    "[",
    "*/../*/../*/*.csv",
    "~/*",
    "/dev/*",
    "/proc/*/mem",
]
QUERIES = [
    "SELECT 1.0 AS x0, 2.0 AS y; COPY (SELECT 1) TO '{outside}/w.csv'",
    "COPY (SELECT 1) TO '{outside}/w.csv'",
    "ATTACH '{outside}/w.db' AS w",
    "SELECT * FROM read_text('{outside}/secret.txt')",
    "SELECT * FROM glob('/**/*')",
    "SELECT * FROM 'rows.csv'",
    "SELECT * FROM read_csv('fifo.csv')",
    "SELECT * FROM '/dev/zero'",
    "SELECT unnest(range(100)) AS y, repeat('1', 100000)::VARCHAR AS x0",
    "WITH RECURSIVE r AS (SELECT 1 AS y UNION ALL SELECT y + 1 FROM r WHERE y < 1000) SELECT y, y AS x0 "
    "FROM r",
    "SELECT " + "(" * 500 + "1" + ")" * 500 + " AS y",
    "SELECT [1, 2] AS x, {{'a': 1}} AS y",
]


def header(shape: str, descr: str = "'<f8'", fortran: str = "False") -> bytes:
    """The header of an .npy file that claims this."""
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    text += b" " * ((-len(text) - 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


class Hostile:
    """Cases from a seed, in a folder of their own; ``answer`` is a result folder, ``prepared`` one of
    tables, ``state`` one of checkpoints, which are copied before they are changed."""

    def __init__(self, seed: int, folder: Path, sound: Path):
        self.random, self.folder, self.sound = random.Random(seed), folder, sound
        self.cases: dict[str, Callable[[], Callable[[], Any]]] = {
            "npy": lambda: self.table(self.write("rows.npy", self.npy())),
            "npy as an array": lambda: self.array(self.write("c.npy", self.npy())),
            "npz": lambda: self.table(self.write("rows.npz", self.npz())),
            "csv": lambda: self.table(self.write("rows.csv", self.csv())),
            "gz": lambda: self.table(self.write("rows.csv.gz", self.gz())),
            "parquet": lambda: self.table(self.write("rows.parquet", self.parquet())),
            "renamed": lambda: self.table(self.renamed()),
            "no file": lambda: self.table(self.no_file()),
            "pattern": lambda: self.table(self.pattern()),
            "query": lambda: self.table(
                "duckdb:" + self.random.choice(QUERIES).format(outside=self.sound.parent)
            ),
            "toml": self.toml,
            "prepare": self.prepare,
            "prepared": self.prepared,
            "answer": self.answer,
            "variables": self.variables,
            "checkpoint": self.checkpoint,
            "data of a program": self.data_of_program,
            "net": self.net,
            "model": self.model,
            "out": self.out,
        }

    def case(self) -> tuple[str, Callable[[], Any]]:
        """A kind of case, and what a user does with it."""
        name = self.random.choice(list(self.cases))
        return name, self.cases[name]()

    def write(self, name: str, content: bytes) -> str:
        (self.folder / name).write_bytes(content)
        return name

    # ----------------------------------------------------------------------------------- data files
    def table(self, source: str) -> Callable[[], Any]:
        """A binding file that names a source, bound or prepared."""
        keys = [
            'x = ["x0", "x1"]',
            'missing = "drop"',
            'where = "y > 0"',
            'separator = ";"',
            'x = { columns = "*", scale = "standard" }',
        ]
        chosen = "\n".join(self.random.sample(keys, self.random.randrange(3)))
        self.write("m.toml", f"[D]\nsource = {json.dumps(source)}\n{chosen}\n".encode())
        if self.random.random() < 0.3:
            return lambda: fccomodel.compile(TABLE).prepare(
                self.folder / "prepared", spec=self.folder / "m.toml"
            )
        return lambda: fccomodel.compile(TABLE).bind(spec=self.folder / "m.toml")

    def array(self, source: str) -> Callable[[], Any]:
        self.write("m.toml", f"c = {json.dumps(source)}\n".encode())
        return lambda: fccomodel.compile(ARRAY).bind(spec=self.folder / "m.toml")

    def damaged(self, content: bytes) -> bytes:
        """The same with a few bytes changed, cut off, or put in."""
        changed = bytearray(content)
        for _ in range(self.random.randrange(1, 6)):
            place = (
                self.random.randrange(len(changed) + 1)
                if self.random.random() < 0.6
                else max(0, len(changed) - self.random.randrange(400))
            )
            match self.random.randrange(4):
                case 0:
                    del changed[place:]
                case 1:
                    changed[place:place] = self.random.randbytes(self.random.choice([1, 8, 100]))
                case _:
                    changed[place : place + 1] = self.random.randbytes(1)
        return bytes(changed)

    def npy(self) -> bytes:
        shapes = [
            "(4,)",
            "(1000000000000,)",
            "(1000000000, 1000000000)",
            "(-4,)",
            "(0, 5)",
            "(4, 10000000000000000000000)",
            "()",
            "(2, 2)",
        ]
        shapes += [
            "(1,)" * 30,
            "(" + "1, " * 40 + ")",
            "[4]",
            "4",
            "(4.0,)",
            "(True,)",
            "(" * 300,
            "9" * 5000,
        ]
        types = [
            "'<f8'",
            "'|O'",
            "'<c16'",
            "'|S8'",
            "'<U2'",
            "'|b1'",
            "'<M8[s]'",
            "'|V8'",
            "[('a', '<f8')]",
            "'<f2'",
            "('<f8', (10000,))",
        ]
        types += ["'|V9999999999'", "None", "__import__('os')", "'>i8'", "'<f16'"]
        match self.random.randrange(4):
            case 0:
                return header(self.random.choice(shapes)) + bytes(32)
            case 1:
                return header("(4,)", self.random.choice(types)) + bytes(32)
            case 2:
                return header(
                    self.random.choice(shapes),
                    self.random.choice(types),
                    self.random.choice(["True", "False", "1"]),
                ) + bytes(32)
            case _:
                return self.damaged(header("(4,)") + np.arange(4.0).tobytes())

    def npz(self) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(
            packed, "w", self.random.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
        ) as archive:
            for name in self.random.sample(
                ["x0", "x1", "y", "x", "../y", "/y", "", "y\n", "<b>"], self.random.randrange(5)
            ):
                archive.writestr(
                    f"{name}.npy", self.random.choice([self.npy(), header("(4,)") + np.arange(4.0).tobytes()])
                )
            if self.random.random() < 0.2:  # zeros that take a thousandth of their size
                archive.writestr("bomb.npy", header("(25000000,)") + bytes(200_000_000), zipfile.ZIP_DEFLATED)
        content = packed.getvalue()
        return self.damaged(content) if self.random.random() < 0.5 else content

    def csv(self) -> bytes:
        rows, columns = self.random.randrange(6), self.random.choice([1, 3, 3, 3, 300])
        names = ["x0", "x1", "y", *(f"x{k}" for k in range(2, columns))][:columns]
        names = [self.random.choice(TEXTS) if self.random.random() < 0.1 else name for name in names]
        lines = [names, *([self.random.choice(TEXTS[:2] * 5 + TEXTS) for _ in names] for _ in range(rows))]
        text = self.random.choice(["\n", "\n", "\r\n", "\r"]).join(",".join(line) for line in lines)
        content = text.encode(self.random.choice(["utf-8", "utf-8", "utf-16", "latin-1"]), "replace")
        return self.damaged(content) if self.random.random() < 0.5 else content

    def gz(self) -> bytes:
        match self.random.randrange(4):
            case 0:
                return gzip.compress(b"x0,x1,y\n" + bytes(80_000_000), 1)  # one line
            case 1:
                return gzip.compress(b"x0,x1,y\n" + b"1,2,3\n" * 4_000_000, 1)
            case 2:
                return gzip.compress(self.csv())
            case _:
                return self.damaged(gzip.compress(self.csv()))

    def parquet(self) -> bytes:
        count = self.random.randrange(5)
        columns: dict[str, Any] = {"x0": list(range(count)), "x1": [0.5] * count, "y": [1.0] * count}
        extra = [
            [[1.0, 2.0]] * count,
            [b"a"] * count,
            [{"a": 1}] * count,
            [None] * count,
            [10**30] * count,
            ["a"] * count,
        ]
        columns["x"] = self.random.choice(extra)
        try:
            made = pa.table(columns)
        except (pa.ArrowException, OverflowError):
            made = pa.table({"y": [1.0]})
        if self.random.random() < 0.2:  # many rows in few bytes
            made = pa.table({name: pa.repeat(pa.scalar(1.0), 30_000_000) for name in ("x0", "x1", "y")})
        packed = io.BytesIO()
        pq.write_table(made, packed, compression=self.random.choice(["snappy", "gzip", "none", "zstd"]))
        content = packed.getvalue()
        return self.damaged(content) if self.random.random() < 0.7 else content

    def renamed(self) -> str:
        """A file of one kind by the name of another."""
        content = self.random.choice(
            [self.npy, self.csv, self.parquet, lambda: self.random.randbytes(500), lambda: b""]
        )()
        return self.write(
            "rows"
            + self.random.choice([".csv", ".npz", ".npy", ".parquet", ".csv.gz", ".tsv", ".pq", ".txt"]),
            content,
        )

    def no_file(self) -> str:
        """Links, pipes, devices, sockets and folders where a file is named."""
        suffix = self.random.choice([".csv", ".npz", ".npy", ".parquet", ".csv.gz"])
        path = self.folder / f"rows{suffix}"
        match self.random.randrange(8):
            case 0:
                path.symlink_to(path)
            case 1:
                path.symlink_to(self.folder / "nothing")
            case 2:
                path.symlink_to("/dev/zero")
            case 3:
                os.mkfifo(path)
            case 4:
                path.mkdir()
            case 5:
                with socket.socket(socket.AF_UNIX) as end:
                    end.bind(os.path.relpath(path))
            case 6:
                return self.random.choice(
                    ["/dev/zero", "/dev/stdin", "/dev/random", "/proc/self/environ", "/proc/kmsg", "/"]
                )
            case _:
                return self.random.choice(
                    [
                        "a" * 5000,
                        "rows\x00.csv",
                        "~nobody/x.csv",
                        "~",
                        ".",
                        "..",
                        "",
                        "\ud800.csv".encode("unicode_escape").decode(),
                    ]
                )
        return path.name

    def pattern(self) -> str:
        self.write("rows.csv", self.csv())
        (self.folder / "link.csv").symlink_to(self.sound.parent / "secret.txt")
        os.mkfifo(self.folder / "fifo.csv")
        return self.random.choice(PATTERNS)

    # -------------------------------------------------------------------------------- binding files
    def toml(self) -> Callable[[], Any]:
        self.write("rows.csv", b"x0,x1,y\n1,2,3\n4,5,6\n")
        texts = [
            "a = " + "[" * 20_000,
            "x." * 20_000 + "x = 1",
            "[" + "a." * 5000 + "b]",
            "a = " + "9" * 5000,
            "a = 0x" + "f" * 50_000,
            "a = nan",
            "a = 1e999",
            "a = 1979-05-27",
            "a = [" + "1, " * 100_000 + "]",
            "é" * 100_000,
            '"' + "a" * 100_000,
            "'''",
            "a = {",
            "source = 3",
            "x = 3",
            "files = 3",
            'files = ["/"]',
            'files = ["rows.csv", "/dev/zero"]',
            'separator = ""',
            "na = [[]]",
            "map = {}",
            "\x00",
            "a b c d " * 20_000,
            "[params]\na = " + "9" * 5000,
            "[params]\na = [1]",
            "[nets]\ns = 'mlp(" + "9" * 5000 + ")'",
            "[sets]\nG = [" + "9" * 5000 + "]",
            "[dims]\nd = " + "9" * 400,
            "[[D]]",
            "[D.x]\ncolumns = [" + "'x0'," * 5000 + "]",
            "[D.y]\nmap = { a = " + "9" * 5000 + " }",
            'where = "' + "(" * 5000 + '"',
            'where = "y == ' + "9" * 5000 + '"',
            "a = -" + "9" * 4000,
            "[D.y]\ncolumn = 'y'\nmap = { a = " + "9" * 400 + " }",
            "min_rows = " + "9" * 100,
            "[params]\na = " + "9" * 400,
        ]
        parts = ['[D]\nsource = "rows.csv"', *self.random.sample(texts, self.random.randrange(1, 3))]
        self.random.shuffle(parts)
        content = "\n".join(parts).encode()
        self.write("m.toml", self.damaged(content) if self.random.random() < 0.2 else content)
        return lambda: fccomodel.compile(self.random.choice([TABLE, ANSWERED])).bind(
            spec=self.folder / "m.toml"
        )

    def net(self) -> Callable[[], Any]:
        self.write("n.py", b"raise SystemExit(3)")
        spec = self.random.choice(
            [
                "n.py:Net",
                "/dev/zero:Net",
                "../n.py:Net",
                "mlp(" + "9" * 5000 + ")",
                "mlp" + "(" * 5000,
                "mlp(1" + ", 1" * 10**5 + ")",
            ]
        )
        text = (
            "dim d; data D : table(x: real[d], y: real); net s : real[d] -> real; var v = params(s); "
            "minimize E[z ~ D] (s(v; z.x) - z.y)^2;"
        )
        return lambda: fccomodel.compile(text).bind(data={"D": self.sound / "rows.csv"}, nets={"s": spec})

    def model(self) -> Callable[[], Any]:
        number = "9" * 5000
        texts = [
            f"var x; minimize {number} * x^2;",
            f"var x; minimize x^{number};",
            f"dim d = {number}; var x[d]; minimize sumsq(x);",
            f"var x[{number}]; minimize sumsq(x);",
            f"var x; minimize x^2 + 1e{number};",
            f"set T = 0 .. {number}; var x[T]; minimize sumsq(x);",
            f"var x >= {number}; minimize x^2;",
            f"param a default {number}; var x; minimize a * x^2;",
            f"var x[3]; minimize x[{number}]^2;",
        ]
        text = self.random.choice(texts)
        return lambda: fccomodel.compile(text).bind()

    # ------------------------------------------------------------------------------ folders of ours
    def copied(self, name: str) -> Path:
        shutil.copytree(self.sound / name, self.folder / name)
        return self.folder / name

    def prepare(self) -> Callable[[], Any]:
        """Preparing into a folder that is something else."""
        self.write("rows.csv", b"x0,x1,y\n1,2,3\n4,5,6\n")
        self.write("m.toml", b'[D]\nsource = "rows.csv"\nx = ["x0", "x1"]\n')
        out = self.folder / "prepared"
        match self.random.randrange(4):
            case 0:
                out.symlink_to(self.sound.parent / "outside")
            case 1:
                out.write_text("a file")
            case 2:
                os.mkfifo(out)
            case _:
                out.mkdir()
                (out / "manifest.json").symlink_to(
                    self.random.choice(["/dev/zero", "/etc/passwd", "nothing"])
                )
        return lambda: fccomodel.compile(TABLE).prepare(out, spec=self.folder / "m.toml")

    def prepared(self) -> Callable[[], Any]:
        folder = self.copied("prepared")
        if self.random.random() < 0.4:
            file = self.random.choice(sorted(folder.glob("*.npy")))
            self.write(f"prepared/{file.name}", self.npy())
        manifest = json.loads((folder / "manifest.json").read_text())
        self.change(manifest, self.random.randrange(3))
        for name in list(manifest.get("files") or []) if isinstance(manifest.get("files"), dict) else []:
            if (folder / name).is_file() and self.random.random() < 0.9:
                status = (folder / name).stat()
                manifest["files"][name] = {
                    "size": status.st_size,
                    "time": status.st_mtime_ns,
                    "sha256": files.digest(folder / name),
                }
        (folder / "manifest.json").write_text(json.dumps(files.seal(manifest)))
        self.write("m.toml", b'[D]\nsource = "prepared"\n')
        return lambda: fccomodel.compile(TABLE).bind(spec=self.folder / "m.toml")

    def change(self, record: Any, times: int) -> None:
        """Replace, remove or add values at random places of a record."""
        for _ in range(times):
            node, steps = record, self.random.randrange(1, 6)
            while steps:
                keys = list(node) if isinstance(node, dict) else list(range(len(node)))
                if not keys:
                    break
                key, steps = self.random.choice(keys), steps - 1
                if not steps or not isinstance(node[key], dict | list):
                    match self.random.randrange(4):
                        case 0 if isinstance(node, dict):
                            del node[key]
                        case 1 if isinstance(node, dict):
                            node[self.random.choice(["../x", "", "x"])] = node[key]
                        case _:
                            node[key] = self.random.choice(ODD)
                    break
                node = node[key]

    def reseal(self, folder: Path, record: dict[str, Any]) -> None:
        """Write the record of an answer with the hashes that it should have."""
        if isinstance(record.get("files"), dict):
            for name in record["files"]:
                place = folder / name
                if place.is_file() and self.random.random() < 0.9:
                    record["files"][name] = files.digest(place)
        text = store.json_text({name: entry for name, entry in record.items() if name != "sha256"})
        record["sha256"] = hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
        (folder / "result.json").write_text(store.json_text(record), errors="backslashreplace")

    def used(self, folder: Path) -> Callable[[], Any]:
        """Something that is done with an answer."""
        rows = self.sound / "rows.csv"

        def shown() -> Any:
            stored = fccomodel.load(folder)
            return repr(stored), stored.multipliers, stored.history, repr(stored.variables)

        uses: list[Callable[[], Any]] = [
            shown,
            lambda: str(fccomodel.evaluate(folder)),
            lambda: str(fccomodel.evaluate(folder, D=rows)),
            lambda: fccomodel.load(folder).predict(rows),
            lambda: fccomodel.load(folder).value("score", rows),
            lambda: fccomodel.compile(ANSWERED).bind(spec=self.sound / "m.toml").plan(start=folder),
            lambda: (
                fccomodel.compile(ANSWERED)
                .bind(spec=self.sound / "m.toml")
                .solve(start=folder, budget="2it", polish=False)
            ),
            lambda: page.html(fccomodel.load(folder)),
        ]
        return self.random.choice(uses)

    def answer(self) -> Callable[[], Any]:
        folder = self.copied("answer")
        record = json.loads((folder / "result.json").read_text())
        self.change(record, self.random.randrange(1, 4))
        if self.random.random() < 0.2:
            name = self.random.choice(["variables.npz", "result.json", "data.pt"])
            (folder / name).unlink()
            if self.random.random() < 0.5:
                os.mkfifo(folder / name)
            elif self.random.random() < 0.5:
                (folder / name).symlink_to("/dev/zero")
        if not (folder / "result.json").is_fifo() and not (folder / "result.json").is_symlink():
            self.reseal(folder, record)
        if self.random.random() < 0.1:
            (folder / ".written").symlink_to(self.sound.parent / "outside")
        return self.used(folder)

    def variables(self) -> Callable[[], Any]:
        """An answer whose hashes are right and whose variables are not."""
        folder = self.copied("answer")
        odd: list[Callable[[np.ndarray], Any]] = [
            lambda w: w * 1j,
            lambda w: w * np.nan,
            lambda w: w * np.inf,
            lambda w: w[:-1],
            lambda w: np.stack([w, w]),
            lambda w: w.astype(str),
            lambda w: w.astype("M8[s]"),
            lambda w: np.zeros(0),
            lambda w: np.float64(1),
            lambda w: w > 0,
            lambda w: w.astype(np.int8),
            lambda w: np.full(w.shape, 1e308),
            lambda w: w.astype(object),
        ]
        with np.load(folder / "variables.npz") as archive:
            arrays = {name: archive[name] for name in archive.files}
        name = self.random.choice(list(arrays))
        arrays[self.random.choice([name, name, name, "other"])] = self.random.choice(odd)(arrays[name])
        if self.random.random() < 0.2:
            arrays.pop(name, None)
        np.savez(folder / "variables.npz", **arrays, allow_pickle=True)
        self.reseal(folder, json.loads((folder / "result.json").read_text()))
        return self.used(folder)

    def checkpoint(self) -> Callable[[], Any]:
        folder = self.copied("state")
        place = max(folder.rglob("0*"))
        manifest = json.loads((place / checkpoints.MANIFEST).read_text())
        match self.random.randrange(4):
            case 0:
                self.change(manifest, 1)
            case 1:
                state = json.loads((place / checkpoints.STATE).read_text())
                self.change(state, self.random.randrange(1, 3))
                (place / checkpoints.STATE).write_text(json.dumps(state))
            case 2:
                (place / checkpoints.TENSORS).write_bytes(self.npz())
            case _:
                (place / checkpoints.STATE).unlink()
                os.mkfifo(place / checkpoints.STATE)
        for name in manifest.get("files") or [] if isinstance(manifest.get("files"), dict) else []:
            if (place / name).is_file():
                manifest["files"][name] = files.digest(place / name)
        (place / checkpoints.MANIFEST).write_text(json.dumps(files.seal(manifest)))
        return lambda: (
            fccomodel.compile(ANSWERED)
            .bind(spec=self.sound / "m.toml")
            .solve(budget="40it", polish=False, checkpoint=folder)
        )

    def data_of_program(self) -> Callable[[], Any]:
        from fccomodel.algorithms.runtime.helpers import support

        path = self.folder / "data.pt"
        if self.random.random() < 0.5:
            torch.save(
                self.random.choice([{"x": torch.zeros(3)}, [1], print, {"x": np.zeros(3)}, object()]), path
            )
        else:
            path.write_bytes(self.damaged((self.sound / "answer" / "data.pt").read_bytes()))
        return lambda: support.read_data(str(path), None, self.random.random() < 0.5)

    def out(self) -> Callable[[], Any]:
        """Saving into a folder that is prepared for it."""
        out = self.copied("answer")
        outside = self.sound.parent / "outside"
        links: dict[str, Any] = {
            "result.json": outside / "kept.txt",
            ".written": outside,
            ".writing": outside,
            "solver.py": outside / "kept.txt",
        }
        name = self.random.choice(list(links))
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(links[name])
        return lambda: (
            fccomodel.compile(ANSWERED)
            .bind(spec=self.sound / "m.toml")
            .solve(budget="2it", polish=False)
            .save(out)
        )


def sound_files(folder: Path) -> Path:
    """What the cases start from: rows, an answer of them, their tables prepared, and checkpoints of a run."""
    sound = folder / "sound"
    sound.mkdir(parents=True)
    (folder / "outside").mkdir()
    (folder / "outside" / "kept.txt").write_text("kept")
    (folder / "secret.txt").write_text("x0,x1,y\n1,2,3\n")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 3)).round(3)
    lines = [f"{a},{b},{y},{g}" for (a, b, y), g in zip(rows, "pq" * 20, strict=True)]
    (sound / "rows.csv").write_text("x0,x1,y,g\n" + "\n".join(lines) + "\n")
    (sound / "m.toml").write_text(BINDING)
    model = fccomodel.compile(ANSWERED)
    model.bind(spec=sound / "m.toml").solve(budget="20it", polish=False).save(sound / "answer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "remove", lambda at: None)
        model.bind(spec=sound / "m.toml").solve(
            budget="40it", polish=False, checkpoint=sound / "state", every=0
        )
    fccomodel.compile(TABLE).prepare(sound / "prepared", spec=sound / "m.toml")
    return sound


def tree(folder: Path) -> Mapping[str, Any]:
    """Every file and folder below, by its path: what it is, and its bytes."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        found[str(path)] = (
            path.read_bytes() if path.is_file() and not path.is_symlink() else path.lstat().st_mode
        )
    return found
