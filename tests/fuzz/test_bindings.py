"""Whatever is bound, what comes out is a bound problem or coded errors: ``FUZZ=20000 pytest
tests/fuzz`` for a longer look."""

from __future__ import annotations

import os
import traceback
import warnings
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from fuzz.bindings import MODELS, Generator

from fccomodel import pipeline
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source

CASES = int(os.environ.get("FUZZ", "1000"))
COMPILED = {
    name: pipeline.compile_model(Source(text=text, name=f"{name}.fcco")) for name, text in MODELS.items()
}


def outcome(seed: int, folder: Path) -> str:
    """What becomes of a binding: ``bound``, the code of its first error, or where an exception that is
    none of ours came from."""
    made = Generator(seed, folder)
    name = made.random.choice(list(MODELS))
    given = made.binding(name)
    try:
        pipeline.bind(COMPILED[name], pipeline.Binding(**given))
    except FccoError as error:
        str(error)
        return error.diagnostics[0].code
    except Exception as error:
        return foreign(error, f"{name}, seed {seed}")
    return "bound"


def foreign(error: Exception, case: str) -> str:
    """Where an exception came from."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} ({case}): {str(error)[:80]}"


def chosen(seed: int) -> str:
    """The same of a condition on the rows of a table with numbers, texts, vectors and missing values."""
    made = Generator(seed, Path())
    table = pd.DataFrame(
        {"x": [[1.0, 2.0]] * 4, "y": [1.0, None, 3.0, -1.0], "g": ["a", "b", None, "a"], "n": [1, 2, 3, 4]}
    )
    try:
        pipeline.bind(COMPILED["plain"], pipeline.Binding(data={"D": table}), where=made.condition())
    except FccoError as error:
        return str(error) and error.diagnostics[0].code
    except Exception as error:
        return foreign(error, f"condition, seed {seed}")
    return "bound"


@pytest.mark.parametrize("start", range(0, CASES, 200))
def test_conditions(start: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Counter(chosen(seed) for seed in range(start, min(start + 200, CASES)))
    strange = [text for text in found if " at " in text]
    assert not strange, "\n".join(strange)
    assert found["bound"] and found["F0509"]


@pytest.mark.parametrize("start", range(0, CASES, 100))
def test_bindings(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Counter(outcome(seed, tmp_path) for seed in range(start, min(start + 100, CASES)))
    strange = [text for text in found if " at " in text]
    assert not strange, "\n".join(strange)
    assert found["bound"] and len(found) > 5
