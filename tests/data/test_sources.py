"""Sources: what each kind of data gives as columns."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import fccomodel
from fccomodel.core.diagnostics import FccoError
from fccomodel.data import sources
from fccomodel.data.sources import DataRequest, RawTable, sklearn

torch.set_num_threads(1)


def request(folder=None, **given) -> DataRequest:
    return DataRequest(name="D", fields=("x", "y"), folders=() if folder is None else (folder,), **given)


def texts(table: RawTable, name: str) -> list[str | None]:
    column = table.load(name)
    assert column.categories is not None
    return [None if code < 0 else column.categories[code] for code in column.values]


def numbers(table: RawTable, name: str) -> list:
    column = table.load(name)
    assert column.categories is None and not column.unusable
    return column.values.tolist()


def test_every_file_of_the_folder_is_a_source():
    assert set(sources.all()) == {
        "arrays", "csv", "dataset", "duckdb", "frame", "images", "npz", "parquet", "prepared", "sklearn",
    }  # fmt: skip
    assert all(source.meaning for source in sources.all().values())


MIXED = {
    "i": [1, 2, 3],
    "f": [0.5, None, 1.5],
    "b": [True, False, True],
    "n": [True, None, False],
    "t": ["u", None, "v"],
    "c": ["q", "p", "q"],
    "day": [datetime.date(2020, 1, 1), datetime.date(2020, 2, 1), None],
    "midnight": [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 2, 1), None],
    "time": [datetime.datetime(2020, 1, 1, 12, 30), datetime.datetime(2020, 2, 1), None],
    "fraction": [datetime.datetime(2020, 1, 1, 12, 30, 0, 250_000), datetime.datetime(2020, 2, 1), None],
    "clock": [datetime.time(1, 2, 3), datetime.time(4, 5), None],
    "span": [datetime.timedelta(seconds=1), None, datetime.timedelta(days=2)],
    "l": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "r": [[1.0], [1.0, 2.0], [1.0]],
    "holes": [[1.0], None, [2.0]],
    "words": [["a"], ["b"], ["c"]],
}
AS_TEXT = {
    "t": ["u", None, "v"],
    "c": ["q", "p", "q"],
    "day": ["2020-01-01", "2020-02-01", None],
    "midnight": ["2020-01-01", "2020-02-01", None],
    "time": ["2020-01-01 12:30:00", "2020-02-01 00:00:00", None],
    "fraction": ["2020-01-01 12:30:00.250", "2020-02-01 00:00:00.000", None],
    "clock": ["01:02:03", "04:05:00", None],
}
UNUSABLE = {
    "span": "spans of time",
    "r": "1 to 2 values",
    "holes": "1 of its lists are missing",
    "words": "its lists do not hold numbers",
}


class Handed:
    """What others give: columns handed over through the Arrow interface."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table(MIXED).__arrow_c_stream__(requested_schema)


def in_pandas() -> pd.DataFrame:
    return pd.DataFrame(MIXED).assign(c=pd.Categorical(MIXED["c"]))


def in_parquet(folder) -> str:
    pq.write_table(pa.table({name: values for name, values in MIXED.items()}), folder / "d.parquet")
    return str(folder / "d.parquet")


def in_duckdb():
    rows = pa.table(MIXED)  # found by its name
    return pytest.importorskip("duckdb").sql("select * from rows") if rows else None


KINDS = {
    "pandas": lambda folder: in_pandas(),
    "pandas, Arrow": lambda folder: pa.table(MIXED).to_pandas(types_mapper=pd.ArrowDtype),
    "arrow": lambda folder: pa.table(MIXED),
    "batches": lambda folder: pa.RecordBatchReader.from_batches(
        pa.table(MIXED).schema, pa.table(MIXED).to_batches()
    ),
    "stream": lambda folder: Handed(),
    "parquet": in_parquet,
    "polars": lambda folder: pytest.importorskip("polars").DataFrame(MIXED, strict=False),
    "polars, lazy": lambda folder: pytest.importorskip("polars").LazyFrame(MIXED, strict=False),
    "duckdb": lambda folder: in_duckdb(),
    "mapping": lambda folder: MIXED,
    "series": lambda folder: dict(in_pandas().items()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_columns_from_every_frame(kind, tmp_path):
    table = sources.open(KINDS[kind](tmp_path), request())
    assert table.n == 3 and table.names == tuple(MIXED)
    numeric = {name for name, numeric in table.numeric.items() if numeric}
    assert numeric - {"r", "holes"} == {"i", "f", "b", "n", "l"} and table.vectors - {"r", "holes"} == {"l"}
    assert numbers(table, "i") == [1, 2, 3] and numbers(table, "b") == [True, False, True]
    assert np.isnan(numbers(table, "f")[1]) and numbers(table, "f")[::2] == [0.5, 1.5]
    assert np.isnan(numbers(table, "n")[1]) and numbers(table, "n")[::2] == [1, 0]
    assert numbers(table, "l") == [[1, 2], [3, 4], [5, 6]]
    assert {name: texts(table, name) for name in AS_TEXT} == AS_TEXT
    assert all(why in table.load(name).unusable for name, why in UNUSABLE.items())


def test_times_with_a_zone_are_in_utc():
    hours = [datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))), None]
    kinds = [pd.DataFrame({"t": hours}), pa.table({"t": hours}), {"t": hours}]
    found = {tuple(texts(sources.open(kind, request()), "t")) for kind in kinds}
    assert found == {("2020-01-01", None)}


@pytest.mark.parametrize("kind", ["polars, lazy", "duckdb", "batches"])
def test_a_query_is_read_once(kind, tmp_path):
    """A bound problem has the rows of a stream, which cannot be read again."""
    bound = fccomodel.compile("data D : table(i: real); var x; minimize E[z ~ D] (x - z.i)^2;").bind(
        D=KINDS[kind](tmp_path)
    )
    assert bound.binding.data["D"].num_rows == 3 and bound.plan(holdout=0.34).bound.tables["D"].n == 2


def test_an_index_that_pandas_stored_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index([7, 9], name="id"))
    frame.to_parquet(tmp_path / "d.parquet")
    table = sources.open(tmp_path / "d.parquet", request())
    assert table.names == ("a", "id") and table.hidden == {"id"} and numbers(table, "id") == [7, 9]


def test_arrow_types(tmp_path):
    columns = {
        "bytes": pa.array([b"\x00\x01", b"\xff\x02"], pa.binary(2)),
        "decimal": pa.array([Decimal("1.5"), Decimal("2.5")]),
        "half": pa.array(np.array([0.5, 1.5], np.float16)),
        "flag": pa.array([True, None]),
        "nested": pa.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
        "holes": pa.array([[1.0], None]),
        "words": pa.array([["a"], ["b"]]),
        "large": pa.array(["a", "b"], pa.large_string()),
        "day": pa.array([datetime.date(2020, 1, 1), None]),
        "struct": pa.array([{"a": 1}, {"a": 2}]),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, None], pa.uint32()), ["u"]),
        "education.num": pa.array([1, 2]),
    }
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    for value in (pa.table(columns), tmp_path / "d.parquet"):
        table = sources.open(value, request())
        assert numbers(table, "bytes") == [[0, 1], [255, 2]] and "bytes" in table.hidden
        assert numbers(table, "decimal") == [1.5, 2.5] and numbers(table, "half") == [0.5, 1.5]
        assert numbers(table, "flag")[0] == 1 and np.isnan(numbers(table, "flag")[1])
        assert numbers(table, "nested") == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
        assert "1 of its lists are missing" in table.load("holes").unusable
        assert table.load("words").unusable and table.load("struct").unusable
        assert texts(table, "large") == ["a", "b"] and texts(table, "day") == ["2020-01-01", None]
        assert texts(table, "dictionary") == ["u", None] and numbers(table, "education.num") == [1, 2]


def test_objects_in_a_frame():
    frame = pd.DataFrame(
        {
            "n": pd.Series([1, None, 2.5], dtype=object),
            "huge": pd.Series([2**70, 1, 2], dtype=object),
            "money": pd.Series([Decimal("1.5"), Decimal("2"), Decimal("3")], dtype=object),
            "mixed": pd.Series(["a", 1, None], dtype=object),
            "bytes": pd.Series([b"a", b"b", b"c"], dtype=object),
            "tuples": pd.Series([(1, 2), (3, 4), (5, 6)], dtype=object),
            "nullable": pd.array([1, None, 3], "Int64"),
            "complex": np.array([1j, 2, 3]),
            "span": pd.to_timedelta([1, 2, 3], unit="s"),
        }
    )
    table = sources.open(frame, request())
    assert np.isnan(numbers(table, "n")[1]) and numbers(table, "huge")[0] == 2.0**70
    assert numbers(table, "money") == [1.5, 2, 3] and numbers(table, "tuples") == [[1, 2], [3, 4], [5, 6]]
    assert texts(table, "mixed") == ["a", "1", None]
    assert table.load("bytes").unusable and table.load("complex").unusable
    assert np.isnan(numbers(table, "nullable")[1]) and not table.numeric["complex"]
    assert "spans of time" in table.load("span").unusable


def test_csv_options(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n1;?\n2;b\n")
    table = sources.open("a.csv", request(tmp_path, options={"separator": ";", "na": ["?"]}))
    assert numbers(table, "x") == [1, 2] and texts(table, "y") == [None, "b"]
    (tmp_path / "a.tsv").write_text("x\ty\n1\t2\n")
    assert numbers(sources.open("a.tsv", request(tmp_path)), "y") == [2]
    pd.DataFrame({"x": [1.0]}).to_csv(tmp_path / "a.csv.gz", index=False)
    assert numbers(sources.open("a.csv.gz", request(tmp_path)), "x") == [1]


def test_arrays_of_every_kind():
    given = {
        "a": np.arange(2),
        "t": torch.tensor([0.5, 1.5], requires_grad=True),
        "h": torch.tensor([1.0, 2.0], dtype=torch.bfloat16),
        "l": [1, 2],
        "s": np.array(["u", "v"]),
        "d": np.array(["2020-01-01", "NaT"], "datetime64[s]"),
        "x": np.zeros((2, 3)),
        "c": np.array([1j, 2]),
    }
    table = sources.open(given, request())
    assert (
        numbers(table, "t") == [0.5, 1.5] and numbers(table, "h") == [1, 2] and numbers(table, "l") == [1, 2]
    )
    assert texts(table, "s") == ["u", "v"] and texts(table, "d") == ["2020-01-01", None]
    assert table.vectors == {"x"} and table.load("c").unusable
    assert np.shares_memory(table.load("x").values, given["x"])


def test_a_tuple_names_the_columns_in_their_order():
    table = sources.open((np.eye(2), torch.ones(2)), request())
    assert table.names == ("x", "y") and numbers(table, "y") == [1, 1]
    structured = np.array([(1.0, 2)], dtype=[("x", float), ("y", int)])
    assert sources.open(structured, request()).names == ("x", "y")


class Pairs(torch.utils.data.Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        return self.items[row]


@pytest.mark.parametrize(
    "items",
    [
        [(torch.tensor([1.0, 2.0]), 0), (torch.tensor([3.0, 4.0]), 1.5)],
        [{"x": [1.0, 2.0], "y": 0}, {"x": [3.0, 4.0], "y": 1.5}],
    ],
)
def test_items_of_a_dataset_become_columns(items):
    table = sources.open(Pairs(items), request())
    assert numbers(table, "x") == [[1, 2], [3, 4]] and numbers(table, "y") == [0, 1.5]


def test_datasets_of_tensors_of_text_and_of_single_parts():
    tensors = torch.utils.data.TensorDataset(torch.eye(2), torch.ones(2))
    assert numbers(sources.open(tensors, request()), "x") == [[1, 0], [0, 1]]
    assert texts(sources.open(Pairs([(1.0, "a"), (2.0, "b")]), request()), "y") == ["a", "b"]
    single = DataRequest(name="D", fields=("x",))
    assert numbers(sources.open(Pairs([torch.ones(2), torch.zeros(2)]), single), "x") == [[1, 1], [0, 0]]


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(())


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (Stream(), "F0507"),
        (Pairs([]), "F0510"),
        (Pairs([(1.0, 2.0, 3.0)]), "F0507"),
        (Pairs([(torch.zeros(2), 1.0), (torch.zeros(3), 1.0)]), "F0515"),
        ({}, "F0510"),
        (3.0, "F0507"),
        (pa.table([[1], [2]], names=["a", "a"]), "F0506"),
        ("no\0name.csv", "F0505"),
        ("sklearn:", "F0505"),
        ("oracle:table", "F0507"),
    ],
)
def test_what_is_refused(value, code):
    with pytest.raises(FccoError) as caught:
        sources.open(value, request())
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_npz_holds_no_objects(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.array([{}], object))
    with pytest.raises(FccoError, match="F0506"):
        sources.open("d.npz", request(tmp_path))


def test_a_parquet_file_that_is_cut_off(tmp_path):
    in_parquet(tmp_path)
    (tmp_path / "d.parquet").write_bytes((tmp_path / "d.parquet").read_bytes()[:-40])
    with pytest.raises(FccoError, match="F0506"):
        sources.open("d.parquet", request(tmp_path))
    twice = pa.table([[1], [2]], names=["a", "a"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(FccoError, match="several columns named a"):
        sources.open("twice.parquet", request(tmp_path))


def test_a_file_is_looked_for_in_the_folders_in_order(tmp_path):
    for folder, value in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        pd.DataFrame({"x": [value]}).to_csv(tmp_path / folder / "d.csv", index=False)
    folders = (tmp_path / "none", tmp_path / "two", tmp_path / "one")
    assert sources.find_file("d.csv", folders) == tmp_path / "two" / "d.csv"
    assert sources.find_file(tmp_path / "one" / "d.csv", folders) == tmp_path / "one" / "d.csv"
    with pytest.raises(FccoError, match="Did you mean `d.csv`"):
        sources.find_file("dd.csv", folders)


def test_data_sets_of_scikit_learn():
    table = sources.open("sklearn:iris", request())
    assert table.n == 150 and table.names[-1] == "target" and table.origin == "sklearn:iris"


@pytest.mark.parametrize("name", ["breast_cancer", "digits", "iris", "wine"])
def test_files_of_scikit_learn_are_its_tables(name):
    """Columns, types and numbers as the package gives them, which is not imported for them."""
    read, made = sklearn._from_file(name), sklearn._from_package(name)
    assert read is not None and (read.n, read.origin, dict(read.numeric)) == (
        made.n,
        made.origin,
        dict(made.numeric),
    )
    for column in made.names:
        one, other = read.load(column), made.load(column)
        assert (
            one.dtype == other.dtype
            and one.values.dtype == other.values.dtype
            and (one.values == other.values).all()
        )


def test_files_that_are_not_as_expected_are_left_to_scikit_learn(monkeypatch):
    for file, header in [("iris.csv", 0), ("none.csv", 1), ("wine_data.csv", 1)]:
        monkeypatch.setitem(sklearn.FILES, "iris", (file, header, sklearn.FILES["iris"][2]))
        assert sklearn._from_file("iris") is None and sources.open("sklearn:iris", request()).n == 150
