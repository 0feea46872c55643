"""Every way in which a binding can be wrong, and what the user is told."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from support.bind_tools import ARRAY, FAMILY, GROUPS, LOGISTIC, failure, frame, problem

from fccomodel.app import registry
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.bind import bind

COUNTED = (
    "set S; data c : real[S]; data D : table(s: S); var w[S]; minimize E[z ~ D] square(w[z.s]) + dot(c, w);"
)


def good() -> pd.DataFrame:
    return frame(x1=[1.0, 2.0, 3.0], x2=[0.0, 1.0, 0.0], y=[1, -1, 1], t=["a", "b", "a"])


def toml(text: str):
    return lambda folder: (
        (folder / "b.toml").write_text(text) and {"spec": folder / "b.toml", "data": {"D": good()}}
    )


def given(**keywords: Any):
    return lambda folder: keywords


def file(name: str, content: bytes | str):
    def write(folder: Path) -> dict[str, Any]:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return {"data": {"D": name}, "data_dir": folder}

    return write


def section(content: Any):
    """A table bound with these entries."""
    return given(spec={"D": content}, data={"D": good()})


def array(value: Any, content: Any = None):
    """The array c over A = {u, v} bound like this."""
    entry = {} if content is None else {"c": content}
    return given(spec={"R": {"r": "*"}} | entry, data={"R": frame(u=[1.0], v=[2.0]), "c": value})


def swapped(folder: Path) -> dict[str, Any]:
    return {"spec": {"D": {"r": ["x1", "x2"], "s": ["x2", "x1"]}}, "data": {"D": good()}}


def net(*layers: torch.nn.Module):
    return lambda folder: {"data": {"D": good()}, "nets": {"s": torch.nn.Sequential(*layers)}}


TWO = """
model m; dim d; data D : table(x: real[d]); data F : table(x: real[d]); var w[d];
minimize E[z ~ D, v ~ F] dot(w, z.x - v.x);
"""
UNUSED = GROUPS.replace("g: G", "g: real").replace("z.g == k", "z.g == 1")
KNOWN = FAMILY.replace("set K;", 'set K = {"a", "b"};')
STEPS = """
model m; dim d; data D : table(x: real[d]); param h default 1; set T = 0 .. 1 by h; var w[d];
minimize sum[t in T] (E[z ~ D] t * dot(w, z.x)) + sumsq(w);
"""
TWICE = """
model m; set A; data D : table(r: real[A], s: real[A]); var x[A]; minimize E[z ~ D] dot(z.r - z.s, x);
"""
INT = "model m; data D : table(n: int); var u; minimize E[z ~ D] z.n * square(u);"
SAMPLER = "model m; var u; minimize E[z ~ wear(1)] square(u - z);"
LABELS = """
model m; set G = {"a", "b"}; data D : table(g: G, v: real);
var u; minimize max[k in G] (E[z ~ D | z.g == k] z.v * u);
"""
NET = """
model m; dim d; data D : table(x: real[d], y: {-1, 1});
net s : real[d] -> real; var w = params(s); minimize E[z ~ D] log1pexp(-z.y * s(w; z.x));
"""
BOUNDED = LOGISTIC.replace("param mu >= 0 default 0.1", "param mu > 0, <= 1")

#: (code, words that its text holds, model, what is given)
BAD: list[tuple[str, str, str, Any]] = [
    ("F0501", "b.toml:2", LOGISTIC, toml('[D]\nsource = = "x"\n')),
    (
        "F0501",
        "b.toml",
        LOGISTIC,
        lambda folder: (folder / "b.toml").write_bytes(b"\xff\xfe\x00") and {"spec": folder / "b.toml"},
    ),
    ("F0502", "b.toml:1: [E] is neither a table", LOGISTIC, toml('[E]\nsource = "x"\n')),
    ("F0502", "b.toml:2: [D] has no column and no setting named sorce", LOGISTIC, toml('[D]\nsorce = "x"\n')),
    ("F0502", "Did you mean `scale`?", LOGISTIC, toml('[D]\nx = { columns = ["x1"], scael = "standard" }\n')),
    (
        "F0503",
        "b.toml:3: D.x: scale = 'minmax' is not known",
        LOGISTIC,
        toml('[D]\n\nx = { columns = ["x1"], scale = "minmax" }\n'),
    ),
    (
        "F0503",
        "encode = 'label' is not known",
        LOGISTIC,
        section({"x": {"columns": ["t"], "encode": "label"}}),
    ),
    (
        "F0503",
        "intercept must be true or false",
        LOGISTIC,
        section({"x": {"columns": ["x1"], "intercept": 1}}),
    ),
    ("F0503", "neither column nor columns", LOGISTIC, section({"x": {"scale": "standard"}})),
    ("F0503", "both column and columns", LOGISTIC, section({"x": {"column": "x1", "columns": "*"}})),
    ("F0503", "list of different names", LOGISTIC, section({"x": ["x1", "x1"]})),
    ("F0503", "must say its columns", LOGISTIC, section({"x": 3})),
    ("F0503", "map must list values", LOGISTIC, section({"y": {"column": "y", "map": {}}})),
    (
        "F0503",
        "map must give numbers",
        LOGISTIC,
        section({"y": {"column": "t", "map": {"a": "u", "b": "v"}}}),
    ),
    ("F0503", "map is for one column", LOGISTIC, section({"x": {"columns": ["x1"], "map": {"a": 1}}})),
    ("F0503", "except goes with", LOGISTIC, section({"x": {"columns": ["x1"], "except": ["x2"]}})),
    (
        "F0503",
        "min_rows must be a whole number",
        LOGISTIC,
        section({"x": {"columns": ["x1"], "min_rows": -1}}),
    ),
    ("F0503", "min_rows is for labels", LOGISTIC, section({"x": {"columns": ["x1"], "min_rows": 2}})),
    ("F0503", "is one number per row", LOGISTIC, section({"y": {"columns": ["x1", "x2"]}})),
    ("F0503", "is a label", GROUPS, section({"g": {"columns": ["t"], "scale": "standard"}})),
    ("F0503", "missing = 'skip'", LOGISTIC, section({"missing": "skip"})),
    ("F0503", "where must be a condition", LOGISTIC, section({"where": 3})),
    ("F0503", "params must be a TOML section", LOGISTIC, given(spec={"params": 3}, data={"D": good()})),
    ("F0503", "G must be a list of labels", GROUPS, given(spec={"sets": {"G": "a"}}, data={"D": good()})),
    ("F0504", "no data for D", LOGISTIC, given()),
    ("F0504", "no data for c", ARRAY, given(spec={"R": {"r": "*"}}, data={"R": frame(u=[1.0])})),
    ("F0504", "is a family", FAMILY, given()),
    ("F0505", "there is no file nothing.parquet", LOGISTIC, given(data={"D": "nothing.parquet"})),
    ("F0505", "is a folder", LOGISTIC, lambda folder: {"data": {"D": str(folder)}}),
    ("F0505", "there is no file b.toml", LOGISTIC, given(spec="b.toml")),
    ("F0505", "Did you mean `iris`?", LOGISTIC, given(data={"D": "sklearn:iriss"})),
    ("F0506", "cannot be read as parquet", LOGISTIC, file("d.parquet", "no parquet at all")),
    ("F0506", "ends in none of", LOGISTIC, file("d.xlsx", "PK")),
    ("F0506", 'look separated by ";"', LOGISTIC, file("d.csv", "x1;y\n1;1\n")),
    ("F0506", "d.npz", LOGISTIC, file("d.npz", "PK broken")),
    ("F0506", "cannot be read as csv", LOGISTIC, file("d.csv", b'x1,y\n"open,1\n2,3')),
    (
        "F0506",
        "several columns named a",
        LOGISTIC,
        given(data={"D": pd.DataFrame([[1, 2]], columns=["a", "a"])}),
    ),
    ("F0507", "is not a table", LOGISTIC, given(data={"D": object()})),
    ("F0507", "is an address", LOGISTIC, given(data={"D": "https://example.org/d.csv"})),
    ("F0507", "s3: is not a kind of data", LOGISTIC, given(data={"D": "s3:bucket"})),
    ("F0507", "3 arrays for 2 columns", LOGISTIC, given(data={"D": (np.eye(2), np.ones(2), np.ones(2))})),
    ("F0508", "has no column agee", LOGISTIC, toml('[D]\nx = { columns = ["x1", "agee"] }\n')),
    ("F0508", "m.fcco:4", LOGISTIC, given(data={"D": good().drop(columns="y")})),
    ("F0508", 'y = { column = " y" }', LOGISTIC, given(data={"D": good().rename(columns={"y": " y"})})),
    ("F0508", '"*" finds no column', LOGISTIC, given(spec={"D": {"x": "*"}}, data={"D": frame(y=[1])})),
    ("F0508", "look like a row of data", LOGISTIC, file("d.csv", "1,2,3\n4,5,6\n")),
    ("F0509", "split is not a column", LOGISTIC, toml("[D]\nwhere = \"split == 'train'\"\n")),
    ("F0509", "put it in quotes: 'a'", LOGISTIC, given(data={"D": good()}, where="t == a")),
    (
        "F0509",
        "a call is not allowed",
        LOGISTIC,
        given(data={"D": good()}, where="__import__('os').system('x') == 1"),
    ),
    ("F0509", "an attribute is not allowed", LOGISTIC, given(data={"D": good()}, where="t.__class__ == 1")),
    ("F0509", "a subscript is not allowed", LOGISTIC, given(data={"D": good()}, where="t[0] == 1")),
    ("F0509", "write == for equality", LOGISTIC, given(data={"D": good()}, where="t = 'a'")),
    ("F0509", "is not closed", LOGISTIC, given(data={"D": good()}, where="`t == 'a'")),
    ("F0509", "is text and 3.0 is not", LOGISTIC, given(data={"D": good()}, where="t > 3.0")),
    ("F0509", "is not a condition", LOGISTIC, given(data={"D": good()}, where="x1")),
    ("F0509", "is not a list", LOGISTIC, given(data={"D": good()}, where="t in 'a'")),
    ("F0509", "is text, not a number", LOGISTIC, given(data={"D": good()}, where="t + 1 == 2")),
    ("F0509", "characters", LOGISTIC, given(data={"D": good()}, where="x1 == 1" + " or x1 == 1" * 5000)),
    ("F0509", "where", LOGISTIC, given(data={"D": good()}, where="(" * 5000 + "x1" + ")" * 5000)),
    ("F0510", "has no rows", LOGISTIC, given(data={"D": good()[:0]})),
    ("F0510", "no row of a DataFrame satisfies", LOGISTIC, given(data={"D": good()}, where="t == 'zz'")),
    ("F0510", "is empty", LOGISTIC, file("d.csv", "")),
    ("F0510", "none of 3 rows is left", GROUPS, section({"g": {"column": "t", "min_rows": 9}})),
    ("F0511", "has 1 missing value", LOGISTIC, given(data={"D": good().assign(x1=[1.0, np.nan, 3.0])})),
    (
        "F0511",
        "1 infinite value the first is in row 2 of x2",
        LOGISTIC,
        given(data={"D": good().assign(x2=[1.0, 3.0, np.inf])}),
    ),
    (
        "F0511",
        "column t has 1 missing value",
        GROUPS,
        given(spec={"D": {"g": "t"}}, data={"D": good().assign(t=["a", None, "b"])}),
    ),
    ("F0512", 'map = { "a" = -1, "b" = 1 }', LOGISTIC, section({"y": "t"})),
    ("F0512", 'add encode = "onehot"', LOGISTIC, section({"x": ["x1", "t"]})),
    (
        "F0512",
        "its lists have 1 to 2 values",
        LOGISTIC,
        given(data={"D": frame(x=[[1.0], [1.0, 2.0]], y=[1, 1])}),
    ),
    ("F0513", 'map = { "0" = -1, "1" = 1 }', LOGISTIC, given(data={"D": good().assign(y=[0, 1, 1])})),
    ("F0513", "whole numbers", INT, given(data={"D": {"n": [1.0, 2.5]}})),
    (
        "F0514",
        "what 'b' in column t stands for",
        LOGISTIC,
        toml('[D]\ny = { column = "t", map = { "a" = 1 } }\n'),
    ),
    ("F0515", "different numbers of rows", LOGISTIC, given(data={"D": {"x": np.eye(3), "y": np.ones(2)}})),
    ("F0515", "is one number per row", LOGISTIC, given(data={"D": {"x": np.eye(3), "y": np.eye(3)}})),
    ("F0515", "is a single value", LOGISTIC, given(data={"D": {"x": 1.0, "y": 1.0}})),
    ("F0516", "d = 2", TWO, given(data={"D": {"x": np.eye(2)}, "F": {"x": np.eye(3)}})),
    (
        "F0516",
        "w is not in A",
        ARRAY,
        given(spec={"R": {"r": "*"}, "c": {"u": 1, "v": 1, "w": 2}}, data={"R": frame(u=[1.0], v=[2.0])}),
    ),
    ("F0517", "the labels of set G", UNUSED, given(data={"D": {"x": np.eye(2), "g": np.ones(2)}})),
    ("F0518", "no param named nu", LOGISTIC, given(params={"nu": 1}, data={"D": good()})),
    ("F0518", "no table or array named Q", LOGISTIC, given(data={"D": good(), "Q": good()})),
    ("F0518", "no net named s", LOGISTIC, given(data={"D": good()}, nets={"s": "linear()"})),
    ("F0518", "b.toml:2: the model declares no param named nu", LOGISTIC, toml("[params]\nnu = 1\n")),
    ("F0519", "param mu has no value", BOUNDED, given(data={"D": good()})),
    ("F0520", "param mu = 0 is outside", BOUNDED, given(data={"D": good()}, params={"mu": 0})),
    (
        "F0520",
        "param mu = 2 is outside its declared bounds: > 0, <= 1",
        BOUNDED,
        given(data={"D": good()}, params={"mu": 2}),
    ),
    ("F0520", "param mu = 'big' is not a number", BOUNDED, given(data={"D": good()}, params={"mu": "big"})),
    ("F0520", "param mu is nan", BOUNDED, given(data={"D": good()}, params={"mu": float("nan")})),
    ("F0520", "dim d = 0", LOGISTIC, given(data={"D": good()}, params={"d": 0})),
    ("F0512", "too large for float64", LABELS, given(data={"D": frame(g=[2**70, 2**70 + 1], v=[1.0, 2.0])})),
    ("F0511", "in row 1", ARRAY, array(np.ma.masked_array([1.0, 2.0], mask=[False, True]))),
    ("F0521", "'c' is not in G", LABELS, given(data={"D": frame(g=["a", "c"], v=[1.0, 2.0])})),
    ("F0522", "there is no built-in net named mpl", NET, given(data={"D": good()}, nets={"s": "mpl(3)"})),
    ("F0523", "no net is bound to s", NET, given(data={"D": good()})),
    ("F0524", "--allow-python", NET, given(data={"D": good()}, nets={"s": "n.py:Net"})),
    (
        "F0525",
        "BatchNorm1d (layer 1) in train mode",
        NET,
        net(
            torch.nn.Linear(2, 3),
            torch.nn.BatchNorm1d(3, track_running_stats=False),
            torch.nn.Linear(3, 1),
        ),
    ),
    ("F0526", "cannot be applied to rows of real[2]", NET, net(torch.nn.Linear(5, 1))),
    ("F0527", "do not say which row belongs", FAMILY, given(data={"S": good().assign(x=1.0)})),
    (
        "F0527",
        "c is not an element of K",
        KNOWN,
        given(spec={"S": {"family": "t"}}, data={"S": good().assign(t=[*"abc"])}),
    ),
    ("F0528", 'x = { columns = "*" }', LOGISTIC, given(data={"D": frame(a=[1.0], b=[2.0], y=[1])})),
    ("F0528", "leave out number 2", LOGISTIC, given(data={"D": frame(x1=[1.0], x3=[2.0], y=[1])})),
    ("F0531", "does not fit this model", LOGISTIC, given(data={"D": good()}, encoding={"Q": {}})),
    ("F0531", "does not fit this model", LOGISTIC, given(data={"D": good()}, encoding={"D": {"x": {}}})),
    ("F0527", "both one source and members", FAMILY, given(spec={"S": {"source": "a.csv", "eu": "b.csv"}})),
    (
        "F0508",
        "S: family: a DataFrame has no column region",
        FAMILY,
        given(spec={"S": {"family": "region"}}, data={"S": good()}),
    ),
    (
        "F0512",
        "it is text for some members",
        FAMILY,
        given(data={"S": {"a": frame(x1=[1.0], y=[1.0]), "b": frame(x1=["u"], y=[1.0])}}),
    ),
    (
        "F0512",
        "rows have shapes",
        FAMILY,
        given(data={"S": {k: {"x": np.eye(k), "y": np.ones(k)} for k in (2, 3)}}),
    ),
    ("F0512", "not numbers", ARRAY, array(["a", "b"])),
    ("F0512", "are not all numbers", ARRAY, array({"u": 1.0, "v": "b"})),
    ("F0515", "shape (1, 2), declared with 1 axes", ARRAY, array([[1.0, 2.0]])),
    ("F0516", "A = 2", ARRAY, array([1.0, 2.0, 3.0])),
    ("F0511", "1 missing value", ARRAY, array([1.0, np.nan])),
    (
        "F0521",
        "as a mapping or a Series with its labels",
        COUNTED,
        given(data={"c": np.ones(2), "D": {"s": [0, 1]}}),
    ),
    ("F0521", "two values for u", ARRAY, array(pd.Series([1.0, 2.0], index=["u", "u"]))),
    ("F0528", "does not say which of its columns", ARRAY, array(frame(p=[1.0, 2.0], q=[1.0, 2.0]))),
    (
        "F0512",
        "column p of a DataFrame is not numbers",
        ARRAY,
        array(frame(p=["a", "b"]), {"source": "x", "column": "p"}),
    ),
    ("F0507", "is not an array", ARRAY, array(torch.utils.data.TensorDataset(torch.ones(2)))),
    ("F0502", "[c] has no setting named colum", ARRAY, array(None, {"source": "c.csv", "colum": "p"})),
    ("F0502", "e is neither a table", LOGISTIC, given(spec={"e": 3}, data={"D": good()})),
    ("F0503", "D must be a section", LOGISTIC, given(spec={"D": 3}, data={"D": good()})),
    ("F0503", "dim d must be a whole number", LOGISTIC, given(spec={"dims": {"d": 2.5}}, data={"D": good()})),
    ("F0503", "na must be a list", LOGISTIC, section({"na": 3})),
    ("F0503", "separator must be one character", LOGISTIC, section({"separator": ", "})),
    ("F0503", "source must be a path", LOGISTIC, section({"source": 3})),
    ("F0503", "column must be a name", LOGISTIC, section({"y": {"column": 3}})),
    ("F0503", "except must be a list", LOGISTIC, section({"x": {"columns": "*", "except": "y"}})),
    ("F0503", "must give numbers or labels", LOGISTIC, section({"y": {"column": "t", "map": {"a": [1]}}})),
    ("F0503", "map is for one number per row", LOGISTIC, section({"x": {"column": "x1", "map": {"a": 1}}})),
    ("F0520", "has shape (2,), declared ()", LOGISTIC, given(params={"mu": [1.0, 2.0]}, data={"D": good()})),
    ("F0520", "is not a number", LOGISTIC, given(params={"mu": object()}, data={"D": good()})),
    ("F0520", "is no range", STEPS, given(params={"h": 0}, data={"D": good()})),
    ("F0520", "elements", STEPS, given(params={"h": 1e-12}, data={"D": good()})),
    ("F0516", "D.s does not have the 2 elements of A: they come in another order", TWICE, swapped),
    ("F0530", "no sampler is bound for wear", SAMPLER, given()),
]


@pytest.mark.parametrize(
    ("code", "words", "text", "make"), BAD, ids=[f"{code}-{k}" for k, (code, *_) in enumerate(BAD)]
)
def test_bad_bindings_are_explained(code, words, text, make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FccoError) as caught:
        bind(problem(text), **make(tmp_path))
    found = [d for d in caught.value.diagnostics if d.code == code]
    assert found, str(caught.value)
    told = " ".join(" ".join((d.message, d.reason, d.fix)) for d in found)
    assert words in told or words in str(caught.value), str(caught.value)
    assert all(d.fix for d in caught.value.diagnostics)


def test_what_the_fixes_say_in_python_binds():
    """A frame whose columns have other names than the model's: each fix is taken as it stands, until
    there is no error."""
    model, rows = problem(LOGISTIC), frame(age=[31.0, 42.0, 23.0], bought=["yes", "no", "yes"])
    spec, asked = {}, []
    while len(asked) < 5:
        try:
            bind(model, data={"D": rows}, spec=spec)
            break
        except FccoError as error:
            for one in error.diagnostics:
                said = re.search(r"spec=(\{.*\})\)", one.fix).group(1)
                written = ast.literal_eval(said.replace("...", "bought"))
                spec = {"D": {**spec.get("D", {}), **written["D"]}}
            asked.append([one.code for one in error.diagnostics])
    assert asked == [["F0528", "F0508"], ["F0512"]] and set(spec["D"]) == {"x", "y"}


def test_every_binding_code_is_shown_by_a_test():
    here = {code for code, *_ in BAD}
    # without pandas, above; of domains; of prepared folders; of queries (test_queries); of drawn rows
    elsewhere = {"F0529", "F0532", "F0533", "F0534", "F0535", "F0536", "F0537", "F0538", "F0539"}
    assert {code for code in registry.codes() if code.startswith("F05")} == here | elsewhere


def test_all_errors_come_at_once(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text(
        '[D]\nx = { columns = ["nope"] }\ny = { column = "why", scael = 1 }\n\n[params]\nmu = -1\nnu = 2\n'
    )
    found = failure(LOGISTIC, spec=path, data={"D": good(), "Q": 1}, params={"zeta": 1})
    assert sorted(d.code for d in found) == ["F0502", "F0508", "F0508", "F0518", "F0518", "F0518", "F0520"]
    assert any(d.message.startswith("b.toml:2: D.x") for d in found) and any(
        d.message.startswith("b.toml:6: param mu") for d in found
    )


def test_lines_of_keys():
    from fccomodel.data.bind._lines import key_lines

    text = (
        '# [X]\n[D]\nsource = "a = [b]"\nx = { columns = [\n  "a",\n  "b = 1",\n], scale = "standard" '
        "}\ny = 1\n"
        '["odd name".sub]\n"k.1" = 2\n'
    )
    lines = key_lines(text)
    assert (
        lines[("D",)] == 2
        and lines[("D", "source")] == 3
        and lines[("D", "x")] == 4
        and lines[("D", "y")] == 8
    )
    assert lines[("odd name", "sub")] == 9 and lines[("odd name", "sub", "k.1")] == 10
