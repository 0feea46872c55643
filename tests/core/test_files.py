"""Reading and writing files: every failure is an error with a code."""

from __future__ import annotations

import os

import pytest

from fccomodel.core import files
from fccomodel.core.diagnostics import FccoError


def test_text_or_path(tmp_path):
    path = tmp_path / "m.fcco"
    path.write_text("model m;\n")
    assert files.model_source(path).text == "model m;\n"
    assert files.model_source(str(path)).name == str(path)
    assert files.model_source("model m;").name == "<model>"
    assert files.model_source("model m\n").text == "model m\n"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda p: None, "F0801"),
        (lambda p: p.mkdir(), "F0802"),
        (lambda p: p.write_bytes(b"model \xff;"), "F0804"),
        (lambda p: p.write_text("x" * (files.LONGEST_MODEL + 1)), "F0803"),
    ],
)
def test_what_is_no_model_file(tmp_path, make, code):
    path = tmp_path / "m.fcco"
    make(path)
    with pytest.raises(FccoError, match=code):
        files.read_model(path)


def test_long_text_is_refused_as_well():
    with pytest.raises(FccoError, match="F0803"):
        files.model_source("x;" * files.LONGEST_MODEL)


def test_a_null_byte_in_a_name():
    with pytest.raises(FccoError, match="F0802"):
        files.read_model("a\0b")


def test_a_misspelt_file_name_finds_its_neighbour(tmp_path):
    (tmp_path / "portfolio.fcco").write_text("model m;")
    with pytest.raises(FccoError, match=r"Did you mean `portfolio\.fcco`"):
        files.read_model(tmp_path / "portfolo.fcco")
    with pytest.raises(FccoError, match="no folder"):
        files.read_model(tmp_path / "nowhere" / "m.fcco")


def test_a_byte_order_mark_is_not_text(tmp_path):
    path = tmp_path / "m.fcco"
    path.write_bytes(b"\xef\xbb\xbfmodel m;")
    assert files.read_model(path).text == "model m;"


def test_pairs_and_numbers():
    assert files.pairs(["D=a=b.csv", "E= e.npz "], "--data") == {"D": "a=b.csv", "E": "e.npz"}
    assert files.numbers(["mu=1e-3", "c=[1, 2]"]) == {"mu": 1e-3, "c": [1, 2]}


@pytest.mark.parametrize("item", ["D", "=x", "D=", " = "])
def test_malformed_pairs(item):
    with pytest.raises(FccoError, match="F0805"):
        files.pairs([item], "--data")


@pytest.mark.parametrize("item", ["mu=much", "mu=[1,"])
def test_malformed_numbers(item):
    with pytest.raises(FccoError, match="F0805"):
        files.numbers([item])


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "new" / "a.txt"
    files.write_text(path, "one")
    files.write_text(path, "two")
    assert path.read_text() == "two"
    assert os.listdir(path.parent) == ["a.txt"]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere"):
        with pytest.raises(FccoError, match="F0806"):
            files.make_folder(type(tmp_path)(bad))
    with pytest.raises(FccoError, match="F0806"):
        files.write_text(tmp_path, "a folder is there")
