"""What the user reads about a bad model: one text per model under ``golden/errors``, rewritten by ``pytest --update-golden``.

A model's name begins with the code that it is about; the code must be in its text.
"""

from pathlib import Path

import pytest
from places import GOLDEN

from fccomodel.app import registry
from fccomodel.core.diagnostics import FccoError, render
from fccomodel.core.source import Source
from fccomodel.language.check import check
from fccomodel.language.parse import parse

FOLDER = GOLDEN / "errors"
MODELS = sorted(FOLDER.glob("*.fcco"))
#: Codes of texts too large to keep; `test_parse.py` makes them.
GENERATED = {"F0108"}


def findings(path: Path) -> str:
    """The errors of a model, or its lint notes if it has none, as a terminal without colours shows them."""
    source = Source(text=path.read_bytes().decode(), name=path.name)
    try:
        return render(check(parse(source), source).warnings, source) + "\n"
    except FccoError as found:
        return f"{found}\n"


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_text(path: Path, update_golden: bool) -> None:
    text = findings(path)
    expected = path.with_suffix(".txt")
    if update_golden:
        expected.write_text(text)
    assert f"[{path.stem.split('_')[0]}]" in text
    assert text == expected.read_text()


def test_every_syntax_error_is_shown() -> None:
    shown = {code for path in MODELS for code in registry.codes() if f"[{code}]" in path.with_suffix(".txt").read_text()}
    assert {code for code in registry.codes() if code.startswith("F01")} - shown == GENERATED
