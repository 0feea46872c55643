"""The table of slips of the pen is its own test: each example is explained by its own row."""

import pytest

from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import Source
from fccomodel.language import mistakes
from fccomodel.language.parse import parse


def found(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(FccoError) as caught:
        parse(Source(text=text))
    return caught.value.diagnostics


@pytest.mark.parametrize("row", range(len(mistakes.MISTAKES)), ids=[m.example for m in mistakes.MISTAKES])
def test_each_row_explains_its_example(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = mistakes.MISTAKES
    told = found(rows[row].example)
    monkeypatch.setattr(mistakes, "MISTAKES", rows[: row + 1])
    assert found(rows[row].example) == told
    monkeypatch.setattr(mistakes, "MISTAKES", rows[:row])
    assert found(rows[row].example) != told


def test_a_word_that_no_row_explains_is_told_with_what_may_stand_there() -> None:
    (diagnostic,) = found("var w ~ ;")
    assert diagnostic.message.startswith("did not expect") and diagnostic.reason.startswith("After `w` comes")
