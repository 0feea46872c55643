"""The page on the language in Python: both columns of each row are the same model."""

from __future__ import annotations

import re

import pytest
from support.places import ROOT

import fccomodel as fc

PAGE = (ROOT / "tutorials" / "guide" / "language_in_python.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(.+?)` \| `(.+?)` \|$", re.MULTILINE)
DECLARATIONS, FORMULAS = PAGE.split("The remaining rows use these names:")
NAMES = re.search(r"^```fcco\n(.*?)^```", FORMULAS, re.MULTILINE | re.DOTALL)
BEGIN = re.search(r"^```py\n(.*?)^m = ", DECLARATIONS, re.MULTILINE | re.DOTALL)
ROWS = [("", *row) for row in ROW.findall(DECLARATIONS)]
ROWS += [(NAMES[1] if NAMES else "", *row) for row in ROW.findall(FORMULAS)]


@pytest.mark.parametrize(("before", "text", "python"), ROWS, ids=lambda one: str(one)[:40])
def test_a_row_says_the_same_twice(before: str, text: str, python: str) -> None:
    text, python = (one.replace(r"\|", "|") for one in (text, python))
    separate = text.replace("; ", ";\n")
    scope: dict = {"m": fc.Model.parse(f"model t;\n{before}")}
    assert BEGIN is not None
    exec(BEGIN[1], scope)
    exec(python, scope)
    assert str(scope["m"]) == str(fc.Model.parse(f"model t;\n{before}{separate}"))


def test_there_are_rows_of_every_section() -> None:
    assert len(ROWS) >= 35
