"""What the user reads about a bad model: one text per model under ``golden/errors``, rewritten by
``pytest --update-golden``.

A model's name begins with the code that it is about; the code must be in its text.
"""

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
from support.places import GOLDEN

from fccomodel.app import registry
from fccomodel.core.diagnostics import Code, Diagnostic, FccoError, render
from fccomodel.core.source import Source
from fccomodel.language import errors
from fccomodel.language.check import check
from fccomodel.language.errors import notation
from fccomodel.language.parse import parse

FOLDER = GOLDEN / "errors"
MODELS = sorted(FOLDER.glob("*.fcco"))
#: Codes of texts too large to keep; `test_parse.py` makes them.
GENERATED = {"F0108"}
#: Errors that other tests make, of such texts and of files that include others; the last guards
#: against a depth of Python itself.
ELSEWHERE = {"text.long_file", "text.long_statement", "names.included_twice", "problem.statement_too_deep"}


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


@pytest.mark.slow
def test_every_syntax_error_is_shown() -> None:
    shown = {
        code
        for path in MODELS
        for code in registry.codes()
        if f"[{code}]" in path.with_suffix(".txt").read_text()
    }
    of_python = {value.id for value in vars(notation).values() if isinstance(value, Code)}
    assert {code for code in registry.codes() if code.startswith("F01")} - shown - of_python == GENERATED


@pytest.mark.slow
def test_every_error_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function of ``language/errors`` makes a diagnostic of some model."""
    made: set[str] = set()
    known: set[str] = set()

    def recorded(name: str, constructor: Callable[..., Diagnostic]) -> Callable[..., Diagnostic]:
        known.add(name)
        return lambda *args, **options: made.add(name) or constructor(*args, **options)

    for part in errors.__all__:
        module = getattr(errors, part)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                monkeypatch.setattr(module, name, recorded(f"{part}.{name}", function))
    for path in MODELS:
        findings(path)
    assert known - made == ELSEWHERE
