"""Random bindings: models, and what users may give for their tables, arrays, params, sizes and
conditions, sound and not."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

#: models by name; ``D`` is always a table
MODELS = {
    "plain": "dim d; data D : table(x: real[d], y: real); param a default 1; var w[d]; "
    "minimize E[z ~ D] (dot(w, z.x) - z.y)^2 + a * sumsq(w);",
    "classes": "dim d; data D : table(x: real[d], y: {-1, 1}, n: int); param a > 0 default 1; var w[d] "
    "in ball(a); "
    "minimize E[z ~ D | z.n > 0] huber(z.y * dot(w, z.x), a);",
    "groups": "dim d; set G; data D : table(x: real[d], y: real, g: G); data c : real[G]; param a "
    "default 1; var w[d]; "
    "minimize sum[k in G] c[k] * E[z ~ D | z.g == k] log1pexp(z.y * dot(w, z.x)) + a * sumsq(w);",
    "family": "dim d; set K; data D[k in K] : table(x: real[d], y: real); param a[K] default 1; var w[d]; "
    "minimize sum[k in K] a[k] * (E[z ~ D[k]] (dot(w, z.x) - z.y)^2);",
    "ranges": "param a default 1; set T = 0 .. 3 by a; data D : table(y: real, t: T); data c : real[T]; "
    "var w[T]; "
    "minimize E[z ~ D] (w[z.t] - z.y)^2 + dot(c, w);",
    "domains": "data D : table(y: real, s: real); param a default 0.5; var w >= 0; "
    "minimize cvar(tail = a)[z ~ D] pinball(w - z.y, z.s) + w / a + E[z ~ D] log(z.s) * w^2;",
    "matrix": "dim d; dim m; data c : real[d, m]; data D : table(x: real[d], y: real[m]); param a "
    "default 1; var w[d, m]; "
    "minimize E[z ~ D] sumsq(z.y - z.x @ w) + a * sum(c * w);",
}
COLUMNS = "x y g n t s k c x0 x1 x2 1 x.1".split() + ["a b", "", "'", "true"]

ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        0.5,
        -3.7,
        1e-320,
        1e308,
        -0.0,
        float("nan"),
        float("inf"),
        -float("inf"),
    ),
    *(
        10**30,
        10**400,
        -(10**5000),
        1 + 2j,
        Decimal("1.5"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("1e999"),
        Fraction(1, 3),
    ),
    *(
        "1",
        "a",
        "",
        " ",
        "nan",
        "é\u2028\x1b[31m",
        "\x00",
        "1e999",
        b"bytes",
        "nothing.csv",
        "sklearn:nothing",
        "s3://bucket/x",
    ),
    *([1, 2], [], [[1], [1, 2]], [1, None], (1, "a"), {"a": 1}, {1: 2, "1": 3}, {1, 2}, range(3)),
    *(
        np.float32(1.5),
        np.int64(3),
        np.bool_(True),
        np.str_("t"),
        np.nan,
        np.array(2.0),
        np.array([1.0, 2.0]),
    ),
    *(
        np.array([[1, 2], [3, 4]]),
        np.array([True, False]),
        np.array(["a", "b"]),
        np.array([1, None], dtype=object),
    ),
    *(np.zeros((0,)), np.zeros((0, 2)), np.zeros((2, 0)), np.zeros((2, 2, 2))),
    *(np.datetime64("2020-01-01"), np.datetime64("NaT"), np.timedelta64(3, "D"), datetime.date(2020, 1, 1)),
    *(datetime.datetime(2020, 1, 1, 5), pd.NA, pd.NaT, pd.Timestamp("2020-01-01")),
    *(
        torch.tensor(1.5),
        torch.tensor([1, 2]),
        torch.tensor([1.0]).bfloat16(),
        object,
        len,
        object(),
        lambda: 1,
    ),
    *(Path("nothing.csv"), "sklearn:iris"),
]
#: lists in lists, too deep to be shown
DEEP: Any = 1
for _ in range(2000):
    DEEP = [DEEP]

WORDS = [
    *(
        "y",
        "g",
        "n",
        "s",
        "x0",
        "nothing",
        "`a b`",
        "`",
        "1",
        "0.5",
        "1e999",
        "-1",
        "9" * 400,
        "'a'",
        '"b"',
        "''",
        "True",
    ),
    *(
        "None",
        "nan",
        "==",
        "!=",
        "<",
        ">=",
        "in",
        "not in",
        "is",
        "and",
        "or",
        "not",
        "&",
        "|",
        "~",
        "+",
        "-",
        "*",
        "/",
        "//",
    ),
    *(
        "%",
        "**",
        "(",
        ")",
        "[",
        "]",
        ",",
        ".isna()",
        ".isin([1])",
        ".str",
        "[1, 'a']",
        "[]",
        "lambda: 1",
        "f''",
        "é",
        "\x00",
    ),
    *(":=", "@", "#", "\n", ";", "if", "else"),
]


def objects(values: list[Any]) -> np.ndarray:
    """An array of objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        array[k] = value
    return array


class Generator:
    """Random bindings from a seed; about half of the parts are sound."""

    def __init__(self, seed: int, folder: Path):
        self.random, self.rng, self.folder = random.Random(seed), np.random.default_rng(seed), folder

    def one(self, *choices: Callable[[], Any]) -> Any:
        return self.random.choice(choices)()

    def odd(self) -> Any:
        return self.random.choice(ODD)

    def rare(self, sound: Callable[[], Any], share: float = 0.15) -> Any:
        """Something sound, now and then anything."""
        return self.odd() if self.random.random() < share else sound()

    # -------------------------------------------------------------------------------------- columns
    def column(self, n: int) -> Any:
        """One value for each row."""
        rng, some = self.rng, self.random.choice
        return self.one(
            lambda: rng.normal(size=n),
            lambda: rng.integers(-2, 3, n),
            lambda: rng.choice([-1, 1], n),
            lambda: rng.choice([0.0, 1.0, 2.0, 3.0], n),
            lambda: rng.choice(["a", "b", "c"], n),
            lambda: rng.normal(size=(n, some([0, 1, 2, 3]))),
            lambda: rng.normal(size=n).astype(some([np.float16, np.float32])),
            lambda: rng.choice([True, False], n),
            lambda: objects([self.odd() for _ in range(n)]),
            lambda: [self.odd() for _ in range(n)],
            lambda: [some([1.5, None, float("nan"), [1, 2], "a"]) for _ in range(n)],
            lambda: [some([[1.0, 2.0], [3, 4], None]) for _ in range(n)],
            lambda: np.full(n, some([np.nan, np.inf, 0.0, 1e308])),
            lambda: torch.from_numpy(rng.normal(size=n)),
            lambda: pd.Categorical(rng.choice(["u", "v"], n)),
            lambda: pd.array([some([1, None]) for _ in range(n)], dtype="Int64"),
            lambda: pd.array([some(["a", None]) for _ in range(n)], dtype="string"),
            lambda: np.array(["2020-01-01"] * n, dtype="datetime64[D]"),
            lambda: rng.normal(size=n) + 1j,
            self.odd,
        )

    def columns(self) -> dict[Any, Any]:
        n = self.random.choice([0, 1, 2, 5, 5, 5, 8])
        names: list[Any] = self.random.sample(COLUMNS, self.random.randrange(1, 8))
        names += (
            ["y"] * (self.random.random() < 0.8)
            + ["x"] * (self.random.random() < 0.6)
            + [1] * (self.random.random() < 0.1)
        )
        return {
            name: self.column(self.rare(lambda: n, 0.0) if self.random.random() < 0.97 else n + 1)
            for name in names
        }

    def table(self) -> Any:
        """What stands for a table."""
        return self.one(
            self.columns,
            self.frame,
            self.frame,
            self.arrow,
            self.file,
            self.file,
            lambda: tuple(self.column(5) for _ in range(self.random.randrange(4))),
            lambda: np.array([(1.0, 2), (3.0, 4)], dtype=[("x", float), ("y", int)]),
            lambda: {self.odd_key(): self.table() for _ in range(self.random.randrange(1, 3))},
            lambda: None,
            self.odd,
        )

    def odd_key(self) -> Any:
        return self.random.choice(["a", "b", "k1", 1, 2, "1", 1.5, ""])

    def frame(self) -> Any:
        try:
            frame = pd.DataFrame(self.columns())
        except Exception:  # not every set of columns is a frame
            frame = pd.DataFrame({"x": [1.0, 2.0], "y": [1, 2]})
        if self.random.random() < 0.1:
            frame = pd.concat([frame, frame], axis=1)
        if self.random.random() < 0.1 and len(frame):
            frame.index = [self.odd_key() for _ in range(len(frame))]
        return frame

    def arrow(self) -> Any:
        import pyarrow as pa

        frame = self.frame()
        try:  # pyarrow itself crashes on some columns of odd objects
            return pa.Table.from_pandas(frame.select_dtypes(exclude=object))
        except Exception:  # not every frame is a table of Arrow's
            return pa.table({"x": [1.0, None], "y": [[1, 2], [3]]})

    def file(self) -> Any:
        """The path of a file, whatever its suffix promises."""
        name = self.random.choice(["a.csv", "a.npz", "a.parquet", "a.npy", "a.txt", "a.csv.gz"])
        path = self.folder / name
        content = self.one(
            lambda: b"x,y\n1,2\n3,4\n",
            lambda: b"x,y,g\n1,2,a\n3,?,b\n,,\n",
            lambda: b"x,x\n1,2\n",
            lambda: b'x,y\n1,"2\n3',
            lambda: b"",
            lambda: b"\n\n",
            lambda: b"x;y\n1;2\n",
            lambda: "x,y\né,1\n".encode("latin-1"),
            lambda: b"\xff\xfe\x00x" * 5,
            lambda: b"PK\x03\x04broken",
            lambda: b"PAR1broken",
            lambda: b"x,y\n" + b"9" * 500 + b",1\n",
        )
        path.write_bytes(content)
        if name == "a.npz" and self.random.random() < 0.7:
            arrays = {
                k: np.asarray(v)
                for k, v in {
                    "x": np.ones((3, 2)),
                    "y": self.rng.normal(size=3),
                    "g": np.array(["a", "b", "a"]),
                }.items()
            }
            np.savez(path, **arrays)
        return self.one(lambda: path, lambda: str(path), lambda: str(path) + "x", lambda: str(self.folder))

    # --------------------------------------------------------------------------------- params, spec
    def number(self) -> Any:
        return self.rare(lambda: self.random.choice([0, 1, 2, 0.5, -1, 0.1, 3, 1e-9, DEEP]), 0.4)

    def condition(self) -> Any:
        """A condition on rows, or what looks like one."""
        if self.random.random() < 0.3:
            return self.random.choice(
                [
                    "y > 0",
                    "y == 1 and n > 0",
                    "not (y < 0)",
                    "g in ['a']",
                    "y.notna()",
                    "y == y",
                    "n % 2 == 0",
                ]
            )
        if self.random.random() < 0.05:
            return self.random.choice(
                [
                    "(" * 500 + "y" + ")" * 500,
                    "y + " * 2000 + "1 > 0",
                    "not " * 2000 + "y",
                    "-" * 3000 + "1 > y",
                ]
            )
        return self.rare(lambda: " ".join(self.random.choices(WORDS, k=self.random.randrange(1, 9))), 0.05)

    def entry(self) -> Any:
        """What a binding says of a column."""
        names = [self.random.choice(COLUMNS) for _ in range(self.random.randrange(1, 4))]
        keys: dict[str, Callable[[], Any]] = {
            "column": lambda: self.random.choice(COLUMNS),
            "columns": lambda: self.random.choice([names, "*", names[0], []]),
            "map": lambda: {
                self.random.choice(["a", "1", "nan", "True"]): self.random.choice([1, -1, "p", 0.5])
                for _ in range(2)
            },
            "encode": lambda: "onehot",
            "scale": lambda: "standard",
            "intercept": lambda: True,
            "min_rows": lambda: self.random.choice([0, 1, 2, 100]),
            "except": lambda: ["y"],
        }
        chosen = self.random.sample(list(keys), self.random.randrange(1, 4))
        return self.rare(lambda: {key: self.rare(keys[key], 0.1) for key in chosen}, 0.1)

    def section(self) -> Any:
        keys: dict[str, Callable[[], Any]] = {
            "where": self.condition,
            "missing": lambda: self.random.choice(["drop", "error"]),
            "na": lambda: ["?", "-99"],
            "separator": lambda: self.random.choice([";", ","]),
            "family": self.entry,
            **{name: self.entry for name in "xygnts"},
        }
        chosen = self.random.sample(list(keys), self.random.randrange(0, 4))
        return {key: self.rare(keys[key], 0.05) for key in chosen}

    def spec(self) -> Any:
        keys: dict[Any, Callable[[], Any]] = {
            "D": self.section,
            "c": lambda: self.random.choice(
                [[1, 2], {"a": 1, "b": 2}, {"values": [1]}, {"source": "a.csv"}, 3, "a.csv"]
            ),
            "params": lambda: {"a": self.number()},
            "dims": lambda: {"d": self.number()},
            "sets": lambda: {
                self.random.choice("GKT"): self.rare(
                    lambda: self.random.choice([["a", "b"], ["1", "2"], []]), 0.2
                )
            },
            "nets": lambda: {},
            self.odd_key(): self.odd,
        }
        chosen = self.random.sample(list(keys), self.random.randrange(0, 3))
        return self.rare(
            lambda: {key: self.rare(keys[key], 0.05) for key in {"D": 0, **dict.fromkeys(chosen)}}, 0.02
        )

    def toml(self) -> Any:
        """The path of a binding file, whatever it holds."""
        lines = [
            *(
                "[D]",
                "[params]",
                "[dims]",
                "[sets]",
                "[nets]",
                "[c]",
                "[E]",
                "[D.a]",
                "[D.x]",
                "[[D]]",
                "D = 3",
                'D = "a.csv"',
            ),
            *(
                'source = "a.csv"',
                "source = 3",
                'where = "y > 0"',
                "where = 1",
                'missing = "drop"',
                'na = ["?"]',
                "a = 1",
            ),
            *(
                "a = []",
                'x = { columns = "*", scale = "standard", intercept = true }',
                'x = "x"',
                'y = { column = "y" }',
            ),
            *("y = {}", "d = 3"),
            *(
                'y = { column = "y", map = { "1" = 1, "2" = -1 } }',
                'g = ["x", "y"]',
                'G = ["a", "b"]',
                "values = [1, 2, 3]",
            ),
            *(
                "a = nan",
                "a = 1979-05-27",
                "x = [[1], [1, 2]]",
                "= 1",
                "a = ",
                "a = 9" + "9" * 50,
                "\x00",
                "# \u2028",
                "é = 1",
            ),
            "a = " + "[" * 300 + "]" * 300,
        ]
        path = self.folder / "b.toml"
        path.write_text(
            "\n".join(self.random.choices(lines, k=self.random.randrange(0, 8))), encoding="utf-8"
        )
        (self.folder / "a.csv").write_text("x,y,g,n,s,t\n1,1,a,1,0.5,1\n2,-1,b,2,0.5,0\n")
        return path

    def sound(self, model: str) -> dict[str, Any]:
        """Data as a model declares them, but for a column or two."""
        n, rng = self.random.choice([1, 5, 8]), self.rng
        columns: dict[str, Any] = {
            "x": rng.normal(size=(n, 2)),
            "y": rng.choice([-1, 1], n) if model != "matrix" else rng.normal(size=(n, 3)),
            "n": rng.integers(0, 3, n),
            "g": np.resize(["a", "b"], n),
            "s": rng.uniform(0.1, 0.9, n),
            "t": np.resize([0.0, 1.0, 2.0], n),
        }
        for _ in range(self.random.choice([0, 0, 1, 2])):
            columns[self.random.choice("xyngst")] = self.column(n)
        array = {"groups": {"a": 1.0, "b": 2.0}, "ranges": [1, 2, 3, 4], "matrix": np.ones((2, 3))}
        family = {"a": columns, "b": columns} if self.random.random() < 0.8 else {1: columns, "1": columns}
        data = {
            "D": family if model == "family" else columns,
            **({"c": array[model]} if model in array else {}),
        }
        return {"data": data, **({"params": {"a": self.number()}} if self.random.random() < 0.4 else {})}

    def binding(self, model: str) -> dict[str, Any]:
        """The arguments of ``bind``."""
        if self.random.random() < 0.5:
            return self.sound(model)
        if self.random.random() < 0.2:
            return {
                "spec": self.toml(),
                **({"data": {"D": self.table()}} if self.random.random() < 0.3 else {}),
            }
        given: dict[str, Any] = {"data": {"D": self.table()}}
        if self.random.random() < 0.6:
            given["data"]["c"] = self.rare(lambda: self.column(3), 0.4)
        if self.random.random() < 0.5:
            given["params"] = {self.random.choice(["a", "a", "a", "d", "nothing"]): self.number()}
        if self.random.random() < 0.6:
            given["spec"] = self.spec()
        if self.random.random() < 0.02:
            given[self.random.choice(["data", "params", "spec", "nets", "samplers"])] = self.odd()
        return given
