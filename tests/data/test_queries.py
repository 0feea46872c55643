"""A query of a binding reads what it may, and does nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.bind_tools import problem

from fccomodel.core.diagnostics import FccoError
from fccomodel.data import sources
from fccomodel.data.bind import bind
from fccomodel.data.prepare import prepare
from fccomodel.data.sources import DataRequest

duckdb = pytest.importorskip("duckdb", reason="queries need DuckDB (pip install 'fccomodel[sql]')")

MODEL = "data D : table(x: real); var w; minimize E[z ~ D] (w - z.x)^2;"
SECRET = "a secret of the user"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """``binding`` and ``data``, which a query may read; ``home``, the working folder, and
    ``elsewhere``, which it may not."""
    for name in ("binding", "data", "home", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.csv").write_text("x\n1.5\n2.5\n")
        (tmp_path / name / f"secret_{name}.txt").write_text(SECRET)
    monkeypatch.chdir(tmp_path / "home")
    with duckdb.connect(str(tmp_path / "elsewhere" / "store.duckdb")) as store:
        store.execute("CREATE TABLE houses AS SELECT 7.0 AS x")
    return tmp_path


def bound(places: Path, query: str, files: tuple[str, ...] = ()):
    """What a binding file with the query gives."""
    quoted = query.replace("\\", "\\\\").replace('"', '\\"')
    listed = ", ".join(f'"{file}"' for file in files)
    (places / "binding" / "m.toml").write_text(f'[D]\nsource = "duckdb:{quoted}"\nfiles = [{listed}]\n')
    return bind(problem(MODEL), spec=places / "binding" / "m.toml", data_dir=places / "data")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


WRITES = {
    "COPY after a SELECT": "SELECT 1.0 AS x; COPY (SELECT 1) TO '{binding}/w.csv'; SELECT 1.0 AS x",
    "COPY alone": "COPY (SELECT 1 AS x) TO '{binding}/w.csv'",
    "ATTACH and CREATE": "ATTACH '{binding}/w.db' AS w; CREATE TABLE w.t AS SELECT 1.0 AS x; SELECT 1.0 AS x",
    "EXPORT": "EXPORT DATABASE '{binding}/w'",
    "CREATE": "CREATE TABLE t AS SELECT 1.0 AS x",
    "INSTALL": "INSTALL httpfs",
    "LOAD": "LOAD httpfs; SELECT 1.0 AS x",
    "SET": "SET threads = 1; SELECT 1.0 AS x",
    "PRAGMA": "PRAGMA enable_profiling",
    "CALL": "CALL enable_logging()",
    "two SELECT": "SELECT 1.0 AS x; SELECT 2.0 AS x",
    "EXPLAIN ANALYZE": "EXPLAIN ANALYZE SELECT 1.0 AS x",
    "PREPARE": "PREPARE p AS SELECT 1.0 AS x; EXECUTE p",
    "nothing": "",
    "COPY in a query as a text": "SELECT * FROM query('COPY (SELECT 1 AS x) TO ''{binding}/w.csv''')",
    "COPY of a parsed text": "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('COPY (SELECT "
    "1) TO ''w.csv'''))",
    "a profile": "SELECT * FROM enable_profiling(save_location = '{binding}/w.json')",
    "a log": "SELECT * FROM enable_logging(storage_path = '{binding}')",
    "a row for an attached table": "WITH a AS (INSERT INTO store.houses VALUES (8.0) RETURNING *) SELECT "
    "* FROM a",
}
READS = {
    "a text file": "SELECT content AS x FROM read_text('{elsewhere}/secret_elsewhere.txt')",
    "a blob": "SELECT content AS x FROM read_blob('{elsewhere}/secret_elsewhere.txt')",
    "/etc/passwd": "SELECT * FROM read_csv('/etc/passwd')",
    "a table of it": "SELECT * FROM '{elsewhere}/elsewhere.csv'",
    "a quoted name": 'SELECT * FROM "{elsewhere}/elsewhere.csv"',
    "upwards": "SELECT * FROM '../elsewhere/elsewhere.csv'",
    "upwards from an allowed folder": "SELECT * FROM '{binding}/../elsewhere/elsewhere.csv'",
    "a list": "SELECT * FROM read_csv(['binding.csv', '{elsewhere}/elsewhere.csv'])",
    "a computed name": "SELECT * FROM read_csv('{elsewhere}' || '/elsewhere.csv')",
    "a computed name inside": "SELECT * FROM read_csv('{binding}/' || 'binding.csv')",
    "a query as a text": "SELECT * FROM query('SELECT * FROM ''{elsewhere}/elsewhere.csv''')",
    "a parsed query": "FROM json_execute_serialized_sql(json_serialize_sql('FROM "
    "''{elsewhere}/elsewhere.csv'''))",
    "query_table": "SELECT * FROM query_table('{elsewhere}/elsewhere.csv')",
    "below": "SELECT 1.0 AS x WHERE EXISTS (SELECT * FROM '{elsewhere}/elsewhere.csv')",
    "in a WITH": "WITH s AS (FROM '{elsewhere}/elsewhere.csv') SELECT * FROM s",
    "the working folder": "SELECT * FROM 'home.csv'",
    "a pattern": "SELECT * FROM read_csv('{elsewhere}/*.csv')",
    "all folders": "SELECT * FROM read_text('/**/*')",
    "names of files": "SELECT file AS x FROM glob('/etc/*')",
    "names of files inside": "SELECT file AS x FROM glob('{binding}/*')",
    "a link": "SELECT * FROM 'link.csv'",
    "a link to a folder": "SELECT * FROM 'folder/elsewhere.csv'",
    "links by a pattern": "SELECT * FROM 'lin*.csv'",
    "a pipe": "SELECT * FROM read_csv('pipe.csv')",
    "a pipe by its computed name": "SELECT * FROM read_csv('{binding}/pi' || 'pe.csv')",
    "the environment": "SELECT getenv('HOME') AS x",
    "its file": "SELECT * FROM read_text('/proc/self/environ')",
    "the input": "SELECT * FROM read_csv('/dev/stdin')",
    "zeros": "SELECT * FROM read_csv('/dev/zero')",
    "a variable of the program": "SELECT * FROM request",
    "a variable of a test": "SELECT * FROM duckdb",
    "a download": "SELECT * FROM 'https://example.com/a.parquet'",
    "a download by a reader": "SELECT * FROM read_csv('http://example.com/a.csv')",
    "a store": "SELECT * FROM read_parquet('s3://bucket/a.parquet')",
    "a file as an address": "SELECT * FROM read_text('file:///etc/passwd')",
    "metadata": "SELECT num_rows AS x FROM parquet_file_metadata('{elsewhere}/elsewhere.parquet')",
    "a sniffed file": "SELECT * FROM sniff_csv('{elsewhere}/elsewhere.csv')",
    "another database": "SELECT * FROM read_duckdb('{elsewhere}/store.duckdb')",
}


@pytest.mark.parametrize("trick", WRITES)
def test_nothing_is_written(places, trick):
    files = ("../elsewhere/store.duckdb",) if "store." in WRITES[trick] else ()
    bound(places, "SELECT 1.0 AS x")
    query = WRITES[trick].format(**{name: places / name for name in ("binding", "elsewhere")})
    before = snapshot(places)
    with pytest.raises(FccoError) as caught:
        bound(places, query, files)
    after = snapshot(places)
    toml = str(places / "binding" / "m.toml")
    assert {**after, toml: b""} == {**before, toml: b""}
    one = caught.value.diagnostics[0]
    assert one.code in ("F0506", "F0510", "F0537", "F0538") and one.fix and "m.toml:1" in str(caught.value)


@pytest.mark.parametrize("trick", READS)
def test_nothing_else_is_read(places, trick):
    here = places / "binding"
    (here / "link.csv").symlink_to(places / "elsewhere" / "elsewhere.csv")
    (here / "folder").symlink_to(places / "elsewhere")
    os.mkfifo(here / "pipe.csv")
    request = SECRET  # noqa: F841  a name that replacement scans would find
    with pytest.raises(FccoError) as caught:
        bound(places, READS[trick].format(**{name: places / name for name in ("binding", "elsewhere")}))
    one = caught.value.diagnostics[0]
    assert one.code in ("F0505", "F0506", "F0507", "F0537") and one.fix and SECRET not in str(one)


MAY = {
    "beside the binding": "SELECT * FROM 'binding.csv'",
    "of --data-dir": "SELECT * FROM 'data.csv'",
    "by whole paths": "SELECT * FROM '{binding}/binding.csv'",
    "a quoted name": 'SELECT * FROM "binding.csv"',
    "a reader": "SELECT x AS x FROM read_csv('binding.csv', delim = ',')",
    "a list": "SELECT x FROM read_csv(['binding.csv', 'data.csv']) LIMIT 2",
    "a pattern": "SELECT * FROM 'bind*.csv'",
    "a pattern of a reader": "SELECT * FROM read_csv('bind*.csv', header = true)",
    "a pattern in a list": "SELECT * FROM read_csv(['bind*.csv'])",
    "its name": "SELECT binding.x FROM 'binding.csv'",
    "an alias": "SELECT é.x FROM 'binding.csv' AS é",
    "letters of several bytes before": "SELECT x, 'é' AS y FROM 'binding.csv' WHERE y = 'é' OR "
    "'binding.csv' = 'é'",
    "a WITH": "WITH s AS (SELECT * FROM 'binding.csv') SELECT s.x FROM s JOIN 'data.csv' AS t USING (x)",
    "a comment": "SELECT x FROM 'binding.csv' -- ; COPY",
    "a semicolon in a text": "SELECT x, ';' AS y FROM 'binding.csv';",
    "below": "SELECT 1.5 + i AS x FROM (SELECT unnest([0, 1]) AS i)",
    "VALUES": "FROM (VALUES (1.5), (2.5)) AS t(x)",
    "a spill": "SELECT 1.5 + i AS x FROM (SELECT * FROM range(200000) AS r(i) ORDER BY md5(i::VARCHAR)) "
    "WHERE i < 2 ORDER BY i",
}


@pytest.mark.parametrize("query", MAY)
def test_what_a_query_may_read(places, query):
    found = bound(places, MAY[query].format(binding=places / "binding"))
    assert sorted(found.tables["D"].columns["x"]) == [1.5, 2.5]


@pytest.mark.parametrize(
    "query", ["SELECT FROM nothing", "SELECT x FROM nothing", "SELECT", "x", "SELECT '" + "(" * 5000]
)
def test_what_is_no_query(places, query):
    with pytest.raises(FccoError, match="DuckDB does not answer") as caught:
        bound(places, query)
    assert [one.code for one in caught.value.diagnostics] == ["F0506"]


def test_a_file_that_is_not_there(places):
    with pytest.raises(FccoError, match="there is no file none.parquet"):
        bound(places, "SELECT * FROM 'none.parquet'")


def test_files_that_the_binding_names(places):
    elsewhere = "SELECT * FROM '../elsewhere/elsewhere.csv'"
    for files in (("../elsewhere",), ("../elsewhere/elsewhere.csv",), (str(places / "elsewhere"),)):
        assert bound(places, elsewhere, files).tables["D"].n == 2
    assert bound(places, "SELECT * FROM store.houses", ("../elsewhere/store.duckdb",)).tables["D"].columns[
        "x"
    ] == [7]
    with pytest.raises(FccoError, match="F0505"):
        bound(places, elsewhere, ("../nowhere",))
    with pytest.raises(FccoError, match="F0503"):
        bind(problem(MODEL), spec={"D": {"source": "duckdb:SELECT 1.0 AS x", "files": [1]}})
    (places / "binding" / "false.db").write_text("no database")
    with pytest.raises(FccoError, match="cannot be opened as a database"):
        bound(places, "SELECT 1.0 AS x", ("false.db",))


def test_a_query_that_the_user_gives_reads_any_file(places):
    (places / "binding" / "m.toml").write_text("")
    given = bind(
        problem(MODEL), spec=places / "binding" / "m.toml", data={"D": "duckdb:SELECT * FROM 'home.csv'"}
    )
    assert given.tables["D"].n == 2
    assert (
        bind(problem(MODEL), data={"D": f"duckdb:FROM '{places}/elsewhere/elsewhere.csv'"}).tables["D"].n == 2
    )
    assert bind(problem(MODEL), data={"D": f"{places}/elsewhere/*.csv"}).tables["D"].n == 2
    with pytest.raises(FccoError, match="F0538"):
        bind(problem(MODEL), data={"D": "duckdb:COPY (SELECT 1) TO 'w.csv'"})


def test_preparing_obeys_the_same_rules(places):
    spec = {"D": {"source": "duckdb:SELECT 1.0 AS x; COPY (SELECT 1) TO 'w.csv'; SELECT 1.0 AS x"}}
    with pytest.raises(FccoError, match="F0538"):
        prepare(problem(MODEL), places / "prepared", spec=spec)
    made = prepare(problem(MODEL), places / "prepared", spec={"D": {"source": "duckdb:FROM 'home.csv'"}})
    assert made.tables == {"D": 2} and not list(places.rglob("w.csv"))


def test_an_answer_that_fails_on_the_way_is_an_error_of_the_query(places):
    (places / "binding" / "late.csv").write_text("x\n" + "1\n" * 50_000)
    for query in (
        "SELECT CAST(x AS VARCHAR)::DATE AS x FROM 'late.csv'",
        "SELECT error('no') AS x FROM 'late.csv'",
    ):
        with pytest.raises(FccoError, match="F0506"):
            bound(places, query)


def test_a_spill_goes_into_a_temporary_folder(places, monkeypatch, tmp_path):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(sources.duckdb, "SAFE", {**sources.duckdb.SAFE, "memory_limit": "60MB", "threads": 1})
    sorted_texts = (
        "SELECT md5(i::VARCHAR) || md5((7 * i)::VARCHAR) AS k, i FROM range(2000000) AS r(i) "
        "ORDER BY k LIMIT 1999999"
    )
    table = sources.open(f"duckdb:SELECT count(*) AS n FROM ({sorted_texts})", DataRequest())
    assert table.load("n").values.tolist() == [1_999_999]
    assert list((tmp_path / "tmp").iterdir()) == [] and not (places / "home" / ".tmp").exists()


@pytest.mark.parametrize("query", ["SELECT * FROM store.secrets", "SELECT * FROM store.told()"])
def test_what_a_database_brings_along_reads_nothing_else(places, query):
    """Views and macros of an attached database obey the same rules as the query."""
    secret = str(places / "elsewhere" / "secret_elsewhere.txt")
    with duckdb.connect(str(places / "elsewhere" / "store.duckdb")) as store:
        store.execute(f"CREATE VIEW secrets AS SELECT content AS x FROM read_text('{secret}')")
        store.execute(f"CREATE MACRO told() AS TABLE SELECT content AS x FROM read_text('{secret}')")
    with pytest.raises(FccoError, match="F0537") as caught:
        bound(places, query, ("../elsewhere/store.duckdb",))
    assert SECRET not in str(caught.value)
