"""Whatever a text is, checking and formatting it ends soon, in a model or in coded errors:
``FUZZ=20000 pytest tests/fuzz``."""

from __future__ import annotations

import os
import time
import traceback
from collections import Counter
from pathlib import Path

import pytest
from fuzz.texts import Texts

from fccomodel import pipeline
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.language.format import format

CASES = int(os.environ.get("FUZZ", "1000"))
#: seconds of the processor for a text, and for each 10,000 characters
SECONDS = 1.0


def foreign(error: Exception, case: str) -> str:
    """Where an exception came from."""
    frames = traceback.extract_tb(error.__traceback__)
    last = ([frame for frame in frames if "fccomodel" in Path(frame.filename).parts] or list(frames))[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} ({case}): {str(error)[:80]}"


def checked(source: Source) -> str:
    """What becomes of a text: ``sound``, or the code of its first error."""
    try:
        pipeline.compile_model(source)
    except FccoError as error:
        assert str(error) and not any(d.code == "F0001" for d in error.diagnostics)
        return error.diagnostics[0].code
    return "sound"


def formatted(source: Source) -> str:
    """What formatting makes of a text: another of the same mathematics, which it leaves as it is."""
    try:
        text = format(source)
    except FccoError as error:
        return error.diagnostics[0].code
    again = Source(text=text, name=source.name)
    assert format(again) == text, f"formatted twice: {source.text!r}"
    return "formatted"


def outcome(seed: int) -> list[str]:
    """What becomes of the text of a seed, and every exception that is none of ours, every second too many."""
    source, found = Source(text=Texts(seed).text(), name="m.fcco"), []
    for what in (checked, formatted):
        began = time.process_time()
        try:
            found.append(what(source))
        except Exception as error:
            found.append(foreign(error, f"{what.__name__}, seed {seed}"))
        spent = time.process_time() - began
        if spent > SECONDS * max(2, len(source.text) / 10_000):
            found.append(f"{spent:.1f} s at {len(source.text)} characters ({what.__name__}, seed {seed})")
    return found


@pytest.mark.parametrize("start", range(0, CASES, 200))
def test_texts(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = Counter(text for seed in range(start, min(start + 200, CASES)) for text in outcome(seed))
    strange = [text for text in found if " at " in text]
    assert not strange, "\n".join(strange)
    assert found["sound"] > 20 and found["formatted"] > 40 and len(found) > 15
