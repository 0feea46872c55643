"""What to cite for an answer."""

from __future__ import annotations

import re

import fccomodel
from fccomodel import algorithms
from fccomodel.app.generated import citing


def test_every_theorem_of_a_paper_has_its_entry():
    found = {record.name: citing.keys(record.theorem) for record in algorithms.all().values()}
    assert [name for name, keys in found.items() if len(keys) != 1] == ["sgd", "sgd_uw"], (
        "whose theorems are of another problem"
    )


def test_entries_are_whole():
    for key, entry in citing.papers().items():
        assert entry.startswith("@") and f"{{{key},\n" in entry and entry.count("{") == entry.count("}")
        assert all(re.search(rf"^  {field} = ", entry, re.M) for field in ("title", "author", "year"))
    assert len(citing.papers()) == 14


def test_an_answer_is_cited():
    text = (
        fccomodel.compile("var x[2] in simplex(2); minimize sumsq(x) + x[1];")
        .solve(budget="50it", algorithm="sox")
        .cite()
    )
    assert (
        "@inproceedings{sox-2022," in text
        and f"version = {{{fccomodel.__version__}}}" in text
        and "clarabel" not in text
    )
    by_rows = citing.cite({"algorithm": "sonex", "paper": "mehrotra-1992"})
    assert (
        "@inproceedings{sonex" in by_rows.replace("@article", "@inproceedings")
        and "{mehrotra-1992," in by_rows
    )
