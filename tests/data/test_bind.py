"""Binding: what the binding file says becomes exactly these arrays."""

from __future__ import annotations

import json
import sys
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from support.bind_tools import (
    ARRAY,
    FAMILY,
    GROUPS,
    LOGISTIC,
    MODELS,
    failure,
    frame,
    people,
    problem,
    shared_problem,
)
from support.places import ROOT, SHARED

from fccomodel.data.bind import bind


# ---------------------------------------------------------------------------- the acceptance models
@pytest.fixture(scope="module")
def reference():
    if not SHARED.is_dir():
        pytest.skip("the shared folder with the acceptance models and their data is absent")
    sys.path.insert(0, str(SHARED / "accept"))
    try:
        import reference
    finally:
        sys.path.pop(0)
    return reference


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_columns_equal_the_reference(name, reference):
    bound = bind(shared_problem(name), spec=SHARED / "models" / f"{name}.toml", data_dir=SHARED / "data")
    (table,) = bound.tables.values()
    expected = reference.bind(name)
    assert set(expected) == set(table.columns)
    for column, values in expected.items():
        assert table.columns[column].dtype == (np.int64 if column == "g" else np.float64)
        np.testing.assert_allclose(table.columns[column], values, rtol=0, atol=1e-12)
        assert (table.columns[column] == values).all()  # to the last bit


def test_rows_left_out_are_counted(reference):
    bound = bind(
        shared_problem("group_dro_cvar"), spec=SHARED / "models/group_dro_cvar.toml", data_dir=SHARED / "data"
    )
    record = bound.sources["D"]
    assert record["rows_read"] == 48842 and record["rows"] == 31734 == bound.tables["D"].n
    assert [drop["rows"] for drop in record["dropped"]] == [48842 - 32561, 827]
    assert any("59 groups with fewer than 50 rows: 827 of 32561" in note for note in bound.notes)
    assert bound.dims["G"] == 37 and "<=50K|White|Male|Husband" in bound.labels["G"]


def test_labels_of_a_set_are_the_names_of_columns(reference):
    bound = bind(
        shared_problem("mean_variance_l1"),
        spec=SHARED / "models/mean_variance_l1.toml",
        data_dir=SHARED / "data",
    )
    assert bound.dims["A"] == 25 and bound.labels["A"][0] == "ME1_Q1" and bound.labels["A"][-1] == "ME5_Q5"


def test_memory_stays_near_one_copy(reference):
    model = shared_problem("partial_auc")
    bind(
        model, spec=SHARED / "models/partial_auc.toml", data_dir=SHARED / "data"
    )  # imports, outside the measurement
    tracemalloc.start()
    bound = bind(model, spec=SHARED / "models/partial_auc.toml", data_dir=SHARED / "data")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    kept = sum(column.nbytes for column in bound.tables["D"].columns.values())
    assert kept == 286048 * 11 * 8
    assert peak < 1.5 * kept


def test_other_rows_get_the_same_encoding(reference):
    """The test split under the statistics of the train split: the stored record, through JSON, is enough."""
    model, spec = shared_problem("auc_roc_fair"), SHARED / "models/auc_roc_fair.toml"
    solved = bind(model, spec=spec, data_dir=SHARED / "data")
    stored = json.loads(json.dumps({name: table.encoding for name, table in solved.tables.items()}))
    again = bind(model, spec=spec, data_dir=SHARED / "data", encoding=stored)
    assert (again.tables["D"].columns["x"] == solved.tables["D"].columns["x"]).all()
    test = bind(model, spec=spec, data_dir=SHARED / "data", encoding=stored, where="split == 'test'")
    assert test.tables["D"].n == 16281 and test.dims["d"] == 108
    raw = pd.read_parquet(SHARED / "data/adult.parquet")
    train, other = raw[raw.split == "train"], raw[raw.split == "test"]
    expected = (other.age - train.age.mean()) / train.age.std(ddof=0)
    np.testing.assert_allclose(test.tables["D"].columns["x"][:, 0], expected, atol=1e-12)


def test_groups_that_were_left_out_stay_out(reference):
    model, spec = shared_problem("group_dro_cvar"), SHARED / "models/group_dro_cvar.toml"
    solved = bind(model, spec=spec, data_dir=SHARED / "data")
    stored = {name: table.encoding for name, table in solved.tables.items()}
    test = bind(model, spec=spec, data_dir=SHARED / "data", encoding=stored, where="split == 'test'")
    assert test.labels == solved.labels and test.tables["D"].n < 16281
    assert any("groups that were not there when the answer was found" in note for note in test.notes)


# -------------------------------------------------------------------------------------- the entries
def test_features_are_numbers_then_sorted_categories_then_the_intercept():
    spec = {
        "D": {
            "x": {"columns": ["job", "age", "rich"], "encode": "onehot", "intercept": True},
            "y": {"column": "income", "map": {"<=50K": -1, ">50K": 1}},
        }
    }
    bound = bind(problem(LOGISTIC), spec=spec, data={"D": people()})
    x = bound.tables["D"].columns["x"]
    assert bound.tables["D"].encoding["x"]["names"] == ["age", "rich", "job=a", "job=b", "job=c", "intercept"]
    assert x[0].tolist() == [20, 1, 0, 1, 0, 1] and x[3].tolist() == [50, 0, 0, 0, 1, 1]
    assert bound.tables["D"].columns["y"].tolist() == [-1, 1, -1, 1, 1, -1]
    assert bound.dims["d"] == 6


def test_scale_uses_the_rows_left_by_where_and_leaves_the_intercept():
    spec = {
        "D": {
            "where": "split == 'train'",
            "x": {"columns": ["age", "job"], "encode": "onehot", "scale": "standard", "intercept": True},
            "y": {"column": "income", "map": {"<=50K": -1, ">50K": 1}},
        }
    }
    bound = bind(problem(LOGISTIC), spec=spec, data={"D": people()})
    x = bound.tables["D"].columns["x"]
    assert x.shape == (4, 5)
    np.testing.assert_allclose(x[:, :4].mean(0), 0, atol=1e-15)
    np.testing.assert_allclose(x[:, :4].std(0), 1)
    assert (x[:, 4] == 1).all()


def test_a_constant_column_becomes_zero_and_is_named():
    data = frame(a=[1.0, 2.0, 3.0], b=[7.0, 7.0, 7.0], y=[1, -1, 1])
    bound = bind(
        problem(LOGISTIC), spec={"D": {"x": {"columns": "*", "scale": "standard"}}}, data={"D": data}
    )
    assert (bound.tables["D"].columns["x"][:, 1] == 0).all()
    assert any("constant" in note and ": b" in note for note in bound.notes)
    plain = bind(problem(LOGISTIC), spec={"D": {"x": "*"}}, data={"D": data})
    assert any("constant over the rows: b" in note for note in plain.notes)


def test_star_takes_the_numbers_that_no_other_entry_uses():
    data = frame(id=[1, 2], a=[0.5, 1.5], text=["u", "v"], flag=[True, False], label=[1, -1])
    spec = {"D": {"x": {"columns": "*", "except": ["id"]}, "y": "label"}}
    bound = bind(problem(LOGISTIC), spec=spec, data={"D": data})
    assert bound.tables["D"].encoding["x"]["names"] == ["a", "flag"]
    assert bound.sources["D"]["unused"] == ["id", "text"]


@pytest.mark.parametrize(
    ("values", "mapping"),
    [
        ([0, 1, 0], {"0": -1, "1": 1}),
        ([0.0, 1.0, 0.0], {"0": -1, "1": 1}),
        ([0, 1, 0], {"0.0": -1, "1.0": 1}),
        ([False, True, False], {"False": -1, "True": 1}),
        ([False, True, False], {"false": -1, "1": 1}),
        (["no", "yes", "no"], {"no": -1, "yes": 1}),
        (pd.Categorical([3, 5, 3]), {"3": -1, "5": 1}),
        (np.array([0.1, 0.2, 0.1], np.float32), {"0.1": -1, "0.2": 1}),
    ],
)
def test_map_keys_are_compared_as_text_kindly(values, mapping):
    data = frame(x1=[1.0, 2.0, 3.0], c=values)
    bound = bind(problem(LOGISTIC), spec={"D": {"y": {"column": "c", "map": mapping}}}, data={"D": data})
    assert bound.tables["D"].columns["y"].tolist() == [-1, 1, -1]


def test_a_map_names_values_that_do_not_occur():
    data = frame(x1=[1.0, 2.0], c=["a", "b"])
    bound = bind(
        problem(LOGISTIC),
        spec={"D": {"y": {"column": "c", "map": {"a": 1, "b": -1, "z": 1}}}},
        data={"D": data},
    )
    assert any("map names 'z'" in note for note in bound.notes)


def test_combined_keys_are_sorted_part_by_part():
    data = frame(x1=[1.0, 2.0, 3.0, 4.0], sex=["f", "m", "m", "f"], age=[10, 2, 10, 2])
    bound = bind(problem(GROUPS), spec={"D": {"g": {"columns": ["sex", "age"]}}}, data={"D": data})
    assert bound.labels["G"] == ("f|2", "f|10", "m|2", "m|10")
    assert bound.tables["D"].columns["g"].tolist() == [1, 2, 3, 0]


def test_labels_of_one_set_come_from_all_its_columns():
    text = """
    model m; set G; data D : table(a: real, g: G); data F : table(h: G, b: real); var u;
    minimize max[k in G] (E[z ~ D | z.g == k] z.a * u) + E[z ~ F] z.b * square(u);
    """
    bound = bind(
        problem(text),
        data={"D": frame(a=[1.0, 2.0], g=["z", "b"]), "F": frame(h=["a", "b"], b=[1.0, 1.0])},
    )
    assert bound.labels["G"] == ("a", "b", "z")
    assert bound.tables["D"].columns["g"].tolist() == [2, 1] and bound.tables["F"].columns["h"].tolist() == [
        0,
        1,
    ]
    assert any("D.g: no row has a of G" in note for note in bound.notes)


def test_labels_listed_in_the_binding_keep_their_order():
    data = {"D": frame(x1=[1.0, 2.0], g=["b", "a"])}
    bound = bind(problem(GROUPS), spec={"sets": {"G": ["b", "a", "c"]}}, data=data)
    assert bound.labels["G"] == ("b", "a", "c") and bound.tables["D"].columns["g"].tolist() == [0, 1]


def test_rows_with_missing_values_can_be_left_out():
    data = frame(a=[1.0, np.nan, 3.0, 4.0], t=["u", "v", None, "u"], y=[1, 1, 1, -1])
    spec = {"D": {"missing": "drop", "x": {"columns": ["a", "t"], "encode": "onehot"}}}
    bound = bind(problem(LOGISTIC), spec=spec, data={"D": data})
    assert bound.tables["D"].columns["x"].tolist() == [[1, 1], [4, 1]]
    assert any("rows with missing values: 2 of 4 left out" in note for note in bound.notes)


# --------------------------------------------------------------------------- without a binding file
@pytest.mark.parametrize(
    "columns",
    [
        {"x_0": [1.0, 3.0], "x_1": [2.0, 4.0]},
        {"x1": [1.0, 3.0], "x2": [2.0, 4.0]},
        {"x": [[1.0, 2.0], [3.0, 4.0]]},
        {"x": [np.array([1.0, 2.0]), np.array([3.0, 4.0])]},
    ],
)
def test_columns_with_the_names_and_shapes_of_the_model(columns, tmp_path):
    data = frame(**columns, y=[1, -1])
    path = tmp_path / "d.parquet"
    data.to_parquet(path)
    for given in (data, path, str(path)):
        bound = bind(problem(LOGISTIC), data={"D": given})
        assert bound.tables["D"].columns["x"].tolist() == [[1, 2], [3, 4]]
        assert bound.params["mu"] == 0.1


def test_numbered_columns_are_in_the_order_of_their_numbers():
    data = frame(**{f"x{k}": [float(k)] for k in (10, 2, 1, 3, 4, 5, 6, 7, 8, 9)}, y=[1])
    assert bind(problem(LOGISTIC), data={"D": data}).tables["D"].columns["x"].tolist() == [
        [*map(float, range(1, 11))]
    ]


def test_columns_named_by_the_labels_of_a_set():
    text = (
        'model m; set A = {"u", "v"}; data R : table(r: real[A]); var x[A]; minimize E[z ~ R] '
        "dot(z.r, x) + sumsq(x);"
    )
    bound = bind(problem(text), data={"R": frame(v=[1.0], other=[5.0], u=[2.0])})
    assert bound.tables["R"].columns["r"].tolist() == [[2.0, 1.0]]


def test_a_matrix_of_float64_is_not_copied():
    x = np.random.default_rng(0).normal(size=(50, 3))
    bound = bind(problem(LOGISTIC), data={"D": {"x": x, "y": np.ones(50)}})
    assert np.shares_memory(bound.tables["D"].columns["x"], x)


@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_arrays_can_be_shared_with_torch_without_a_warning(make):
    frozen = np.array([1.0, -1.0])
    frozen.flags.writeable = False
    bound = bind(
        problem(LOGISTIC),
        data={
            "D": make({"x1": [1.0, 2.0], "y": frozen})
            if make is pd.DataFrame
            else {"x": np.eye(2), "y": frozen}
        },
    )
    assert all(
        column.flags.writeable and column.flags.c_contiguous for column in bound.tables["D"].columns.values()
    )


def test_arrays_need_neither_pandas_nor_pyarrow(tmp_path):
    import subprocess

    np.savez(tmp_path / "d.npz", x=np.eye(3), y=np.array([1, -1, 1]))
    (tmp_path / "m.fcco").write_text(LOGISTIC)
    code = f"""
import sys
for name in ("pandas", "pyarrow", "sklearn"): sys.modules[name] = None
from pathlib import Path
from fccomodel.data.bind import bind
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from fccomodel.core.source import Source
from fccomodel.core.diagnostics import FccoError
import numpy as np
source = Source(text=Path({str(tmp_path / "m.fcco")!r}).read_text())
problem = check(parse(source), source)
spec = {{"D": {{"where": "y == 1", "x": {{"columns": ["x"], "scale": "standard"}}}}}}
assert bind(problem, spec=spec, data={{"D": {str(tmp_path / "d.npz")!r}}}).tables["D"].n == 2
assert bind(problem, data={{"D": dict(x=np.eye(3), y=np.ones(3))}}).dims["d"] == 3
try:
    Path({str(tmp_path)!r}, "d.csv").write_text("x1,y\\n1,1\\n")
    bind(problem, data={{"D": {str(tmp_path / "d.csv")!r}}})
except FccoError as error:
    assert "F0529" in str(error) and "pip install pandas" in str(error), error
else:
    raise SystemExit("no error")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------------- sizes, params, arrays
def test_sizes_are_solved_and_given():
    text = """
    model m; dim d, k; data D : table(x: real[d]); data c : real[k]; param tau[k] default 2; set T = -1 .. 1 by 0.5;
    var A[k, d]; minimize E[z ~ D] sumsq(A @ z.x) + E[z ~ D] sum[t in T] t * sum(z.x) + dot(c, tau);
    """
    bound = bind(problem(text), data={"D": {"x": np.eye(2)}, "c": [1.0, 2.0, 3.0]})
    assert {"d": 2, "k": 3, "T": 5, "D": 2}.items() <= bound.dims.items()
    assert bound.params["tau"].tolist() == [2, 2, 2] and bound.arrays["c"].tolist() == [1, 2, 3]


def test_a_dim_that_no_data_fix_is_given():
    text = "model m; dim d, k; data D : table(x: real[d]); var A[k, d]; minimize E[z ~ D] sumsq(A @ z.x);"
    for given in ({"params": {"k": 4}}, {"spec": {"dims": {"k": 4}}}):
        assert bind(problem(text), data={"D": {"x": np.eye(2)}}, **given).dims["k"] == 4
    (found,) = failure(text, data={"D": {"x": np.eye(2)}})
    assert found.code == "F0517" and "--param k=" in found.fix


def test_parameters_come_from_the_call_then_the_file_then_the_model():
    data = {"D": {"x": np.eye(2), "y": np.ones(2)}}
    assert bind(problem(LOGISTIC), data=data).params["mu"] == 0.1
    assert bind(problem(LOGISTIC), data=data, spec={"params": {"mu": 0.2}}).params["mu"] == 0.2
    assert (
        bind(problem(LOGISTIC), data=data, spec={"params": {"mu": 0.2}}, params={"mu": 0.3}).params["mu"]
        == 0.3
    )


def test_a_default_uses_other_parameters_and_sizes():
    text = """
    model m; dim d; data D : table(x: real[d]); param a default 3; param b default 2 * a / 4; var w[d]; minimize b * sumsq(w);
    """
    assert bind(problem(text), data={"D": {"x": np.eye(2)}}).params["b"] == 1.5


def test_an_array_takes_the_order_of_its_labels(tmp_path):
    table = {"R": frame(u=[1.0, 3.0], v=[2.0, 4.0])}
    frame(asset=["v", "u"], cost=[20.0, 10.0]).to_csv(tmp_path / "c.csv", index=False)
    np.save(tmp_path / "c.npy", np.array([10.0, 20.0]))
    base = {"R": {"r": "*"}}
    sources: list[dict[str, Any]] = [
        {"spec": base | {"c": {"v": 20.0, "u": 10.0}}},
        {"spec": base | {"c": [10.0, 20.0]}},
        {"spec": base | {"c": {"values": [10.0, 20.0]}}},
        {"spec": base | {"c": {"source": str(tmp_path / "c.csv"), "column": "cost", "index": "asset"}}},
        {"spec": base | {"c": str(tmp_path / "c.npy")}},
        {"spec": base, "data": {"c": {"v": 20.0, "u": 10.0}}},
        {"spec": base, "data": {"c": pd.Series([20.0, 10.0], index=["v", "u"])}},
        {"spec": base, "data": {"c": pd.Series([10.0, 20.0])}},
        {"spec": base, "data": {"c": pa.chunked_array([[10.0], [20.0]])}},
        {"spec": base, "data": {"c": torch.tensor([10.0, 20.0])}},
    ]
    for given in sources:
        bound = bind(problem(ARRAY), **{**given, "data": table | given.get("data", {})})
        assert bound.arrays["c"].tolist() == [10.0, 20.0], given
        assert bound.labels["A"] == ("u", "v")


MATRIX = """
model m; set M; set P; data use : real[M, P]; data hours : real[M]; data price : real[P]; var x[P] >= 0;
maximize dot(price, x) subject to cap[m in M]: dot(use[m], x) <= hours[m];
"""


def test_a_matrix_takes_the_order_of_the_labels_of_its_rows_and_columns(tmp_path):
    use = pd.DataFrame([[2.0, 1.0], [4.0, 3.0]], index=["saw", "paint"], columns=["desk", "chair"])
    use.rename_axis("machine").reset_index().to_csv(tmp_path / "use.csv", index=False)
    sources: list[dict[str, Any]] = [
        {"spec": {"use": {"source": str(tmp_path / "use.csv"), "index": "machine"}}},
        {"spec": {"use": str(tmp_path / "use.csv")}},
        {"data": {"use": use}},
        {"data": {"use": use.T.to_dict()}},
        {"data": {"use": use.to_numpy()[::-1, ::-1].copy()}},
    ]
    vectors = {"hours": {"paint": 5.0, "saw": 6.0}, "price": {"chair": 7.0, "desk": 8.0}}
    named = {"sets": {"M": ["paint", "saw"], "P": ["chair", "desk"]}}
    for given in sources:
        bound = bind(
            problem(MATRIX), spec=named | given.get("spec", {}), data=vectors | given.get("data", {})
        )
        assert bound.arrays["use"].tolist() == [[3.0, 4.0], [1.0, 2.0]], given


def test_columns_that_are_listed_may_have_other_names_than_the_labels():
    use = pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 4.0]})
    spec = {"sets": {"M": ["paint", "saw"], "P": ["chair", "desk"]}, "use": {"columns": ["b", "a"]}}
    vectors = {"hours": [5.0, 6.0], "price": [7.0, 8.0]}
    bound = bind(problem(MATRIX), spec=spec, data={"use": use, **vectors})
    assert bound.arrays["use"].tolist() == [[2.0, 1.0], [4.0, 3.0]]
    del spec["use"]
    assert [one.code for one in failure(MATRIX, spec=spec, data={"use": use, **vectors})] == ["F0516"]


PAIRS = "model m; set A; data S : real[A, A]; data c : real[A]; param p[A]; var x[A];\n"
PAIRS += "minimize dot(x, S @ x) + dot(c, x) + dot(p, x);"
SQUARE = np.arange(9.0).reshape(3, 3)


def test_labels_0_1_2_in_another_order_are_labels():
    frame = pd.DataFrame(SQUARE, index=[2, 0, 1], columns=[2, 0, 1])
    ordered = pd.Series([1.0, 2.0, 0.0], index=[0, 1, 2])
    for square in (frame, frame.sort_index(axis=1)):
        bound = bind(problem(PAIRS), data={"S": square, "c": ordered}, params={"p": ordered})
        assert bound.labels["A"] == ("2", "0", "1")
        assert bound.arrays["S"].tolist() == SQUARE.tolist()
        assert bound.arrays["c"].tolist() == bound.params["p"].tolist() == [0.0, 1.0, 2.0]


def test_an_index_that_pandas_made_has_no_labels():
    made = pd.Series([1.0, 2.0, 0.0])
    frame = pd.DataFrame(SQUARE, index=[2, 0, 1])
    bound = bind(problem(PAIRS), data={"S": frame, "c": made}, params={"p": made})
    assert bound.arrays["S"].tolist() == SQUARE.tolist()
    assert bound.arrays["c"].tolist() == bound.params["p"].tolist() == [1.0, 2.0, 0.0]


def test_an_array_without_labels_has_the_order_of_the_first_that_has_some():
    frame = pd.DataFrame(SQUARE, index=["b", "a", "c"], columns=["b", "a", "c"])
    moved = frame.loc[["c", "b", "a"], ["a", "c", "b"]]
    text = "set A; data n : real[A]; data R : real[A, A]; data S : real[A, A]; data c : real[A]; var x[A]; "
    text += "minimize dot(x, R @ x) + dot(x, S @ x) + dot(c + n, x);"
    values = pd.Series([1.0, 2.0, 0.0], index=["a", "c", "b"])
    bound = bind(problem(text), data={"n": np.arange(3.0), "R": frame, "S": moved, "c": values})
    assert bound.labels["A"] == ("b", "a", "c")
    assert bound.arrays["R"].tolist() == bound.arrays["S"].tolist() == SQUARE.tolist()
    assert bound.arrays["n"].tolist() == bound.arrays["c"].tolist() == [0.0, 1.0, 2.0]


def test_series_of_a_mapping_have_labels():
    rows = {"b": dict(b=0.0, a=1.0, c=2.0), "a": dict(c=5.0, a=4.0, b=3.0), "c": dict(b=6.0, a=7.0, c=8.0)}
    given = {"S": {name: pd.Series(row) for name, row in rows.items()}, "c": [0.0, 0.0, 0.0]}
    bound = bind(problem(PAIRS), data=given, params={"p": [0.0, 0.0, 0.0]})
    assert bound.labels["A"] == ("b", "a", "c")
    assert bound.arrays["S"].tolist() == SQUARE.tolist()


def test_numbers_of_an_index_are_labels():
    """Unless they are the places 0, 1, 2, ... that every Series has."""
    text = (
        "set S; data c : real[S]; data D : table(s: S, y: real); var w[S]; minimize E[z ~ D] "
        "square(w[z.s] - z.y) + dot(c, w);"
    )
    table = {"s": pd.Series([7, 3, 9], index=[5, 6, 7]), "y": pd.Series([1.0, 2.0, 3.0])}
    bound = bind(problem(text), data={"c": pd.Series([9.0, 7.0, 3.0], index=[9, 7, 3]), "D": table})
    assert bound.labels["S"] == ("9", "7", "3") and bound.tables["D"].columns["s"].tolist() == [1, 2, 0]


PER_ROW = """
model m; dim d; data D : table(x: real[d], y: {-1, 1}); set P = {z in D | z.y == 1}; data c : real[D]; data b : real[P]; var w[d];
minimize E[z ~ D] dot(w, z.x) + sum(c) + sum(b);
"""


def test_arrays_with_one_value_per_row():
    table = {"D": {"x": np.eye(3), "y": np.array([1, -1, 1])}}
    bound = bind(problem(PER_ROW), data=table | {"c": np.ones(3), "b": np.ones(2)})
    assert bound.arrays["b"].shape == (2,) and bound.dims["D"] == 3
    for given, words in (
        ({"c": np.ones(2), "b": np.ones(2)}, "D = 3"),
        ({"c": np.ones(3), "b": np.ones(3)}, "where P has 2"),
    ):
        (found,) = failure(PER_ROW, data=table | given)
        assert found.code == "F0516" and words in found.message


# ----------------------------------------------------------------------------------------- families


def test_a_family_by_members_by_sections_and_by_a_column(tmp_path):
    eu, us = frame(x1=[1.0, 2.0], y=[0.0, 1.0]), frame(x1=[3.0, 4.0, 5.0], y=[1.0, 0.0, 1.0])
    eu.to_csv(tmp_path / "eu.csv", index=False)
    us.to_csv(tmp_path / "us.csv", index=False)
    sections = (
        '[S]\nx = { columns = ["x1"] }\n[S.eu]\nsource = "eu.csv"\n[S.us]\nsource = '
        '"us.csv"\nwhere = "x1 > 3"\n'
    )
    (tmp_path / "m.toml").write_text(sections)
    whole = pd.concat([us.assign(region="us"), eu.assign(region="eu")])
    for given, expected in [
        ({"data": {"S": {"eu": eu, "us": us}}}, [1, 2, 3, 4, 5]),
        ({"data": {"S.eu": tmp_path / "eu.csv", "S.us": us}}, [1, 2, 3, 4, 5]),
        ({"spec": tmp_path / "m.toml"}, [1, 2, 4, 5]),
        ({"spec": {"S": {"family": "region"}}, "data": {"S": whole}}, [3, 4, 5, 1, 2]),
    ]:
        bound = bind(problem(FAMILY), **given)
        table = bound.tables["S"]
        assert bound.labels["K"] == ("eu", "us")
        assert table.columns["x"][:, 0].tolist() == expected
        assert table.columns["__family"].tolist() == [int(value > 2) for value in expected]
        again = bind(problem(FAMILY), **given, encoding=json.loads(json.dumps({"S": table.encoding})))
        assert (again.tables["S"].columns["__family"] == table.columns["__family"]).all()


def test_a_family_over_numbers():
    text = FAMILY.replace("set K;", "set K = {1, 2};")
    parts = {"1": frame(x1=[1.0], y=[0.0]), "2": frame(x1=[2.0], y=[0.0])}
    assert bind(problem(text), data={"S": {2: parts["2"], 1: parts["1"]}}).tables["S"].columns[
        "x"
    ].tolist() == [[1], [2]]
    (found,) = failure(text, data={"S": {"1": parts["1"]}})
    assert found.code == "F0527" and "no data for 2" in found.message


# --------------------------------------------------------------------------------------- evaluation
def test_an_unknown_category_is_all_zeros_and_noted():
    spec = {
        "D": {
            "x": {"columns": ["job"], "encode": "onehot"},
            "y": {"column": "income", "map": {"<=50K": -1, ">50K": 1}},
        }
    }
    solved = bind(problem(LOGISTIC), spec=spec, data={"D": people()})
    other = people().assign(job=["a", "q", "b", "q", "c", "a"])
    again = bind(problem(LOGISTIC), spec=spec, data={"D": other}, encoding={"D": solved.tables["D"].encoding})
    assert again.tables["D"].columns["x"][1].tolist() == [0, 0, 0] and again.dims["d"] == 3
    assert any("2 rows have a value of job that was not there" in note for note in again.notes)


def test_an_encoding_alone_repeats_the_binding():
    income = {"column": "income", "map": {"<=50K": -1, ">50K": 1}}
    spec = {"D": {"x": {"columns": ["age", "job"], "encode": "onehot", "scale": "standard"}, "y": income}}
    solved = bind(problem(LOGISTIC), spec=spec, data={"D": people()})
    again = bind(problem(LOGISTIC), data={"D": people()[:3]}, encoding={"D": solved.tables["D"].encoding})
    for column in ("x", "y"):
        assert (again.tables["D"].columns[column] == solved.tables["D"].columns[column][:3]).all()


def test_where_replaces_the_condition_of_the_file():
    spec = {
        "D": {"where": "age < 50", "x": ["age"], "y": {"column": "income", "map": {"<=50K": -1, ">50K": 1}}}
    }
    assert bind(problem(LOGISTIC), spec=spec, data={"D": people()}).tables["D"].n == 3
    assert (
        bind(problem(LOGISTIC), spec=spec, data={"D": people()}, where="age >= 50")
        .tables["D"]
        .columns["x"][0, 0]
        == 50
    )
    assert bind(problem(LOGISTIC), spec=spec, data={"D": people()}, where={"D": "rich"}).tables["D"].n == 3


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("split == 'train'", [0, 1, 2, 3]),
        ("split == 'train' and age >= 30 or age == 70", [1, 2, 3, 5]),
        ("split == 'test' | age < 30 & rich", [0, 4, 5]),
        ("not (split == 'train')", [4, 5]),
        ("~(age > 30)", [0, 1]),
        ("30 <= age < 60", [1, 2, 3]),
        ("job in ['a', 'c']", [1, 3, 4]),
        ("job not in ('a', 'c')", [0, 2, 5]),
        ("job == ['a']", [1, 4]),
        ("job.isin(['a'])", [1, 4]),
        ("age in [20, 70]", [0, 5]),
        ("`job` != 'b'", [1, 3, 4]),
        ("'b' < job", [3]),
        ("rich", [0, 2, 4]),
        ("rich == False", [1, 3, 5]),
        ("-age + 2 * 10 ** 1 == 0", [0]),
        ("age % 20 == 0 and age // 20 >= 2 and age / 2 - 1 > 0", [2, 4]),
        ("job.notna() and age.notnull()", [0, 1, 2, 3, 4, 5]),
        ("job == split", []),
        ("1 == 1", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_conditions_read_as_pandas_reads_them(condition, rows):
    from fccomodel.data.bind import _where
    from fccomodel.data.sources import DataRequest, open

    table = open(people(), DataRequest())
    assert _where.rows(condition, table).tolist() == rows
    if "job == split" not in condition and "'b' <" not in condition and condition != "1 == 1":
        assert people().assign(job=people().job.astype(str)).query(condition).index.tolist() == rows


def test_conditions_on_missing_values():
    from fccomodel.data.bind import _where
    from fccomodel.data.sources import DataRequest, open

    table = open(frame(a=[1.0, np.nan], t=["u", None]), DataRequest())
    assert _where.rows("a.isna()", table).tolist() == _where.rows("t.isnull()", table).tolist() == [1]
    assert _where.rows("a == 1 and t == 'u'", table).tolist() == [0]
    assert _where.rows("t != 'u'", table).tolist() == [1]
    assert _where.rows("t == t", table).tolist() == [0] == _where.rows("a == a", table).tolist()
