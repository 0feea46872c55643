"""Whatever a model that checks is, it is explained and solved, or there are coded errors: ``FUZZ=20000
pytest tests/fuzz``."""

from __future__ import annotations

import os
import time
from collections import Counter

import pytest
from fuzz.models import Models, binding
from fuzz.test_texts import foreign

import fccomodel
from fccomodel.core.diagnostics import FccoError

#: fewer than the texts: each is explained, solved with a few steps, and reported on
CASES = max(int(os.environ.get("FUZZ", "1000")) // 25, 1)
#: seconds of the processor for a model of ten rows
SECONDS = 20.0


def outcome(seed: int) -> str:
    """What becomes of a model: ``solved``, the code of its first error, or where an exception that is
    none of ours came from."""
    text, began = Models(seed).text(), time.process_time()
    try:
        bound = fccomodel.compile(text).bind(**binding(text))
        result = bound.solve(budget="5it", unverified=bool(seed % 2))
        assert str(bound.explain()) and str(result)
        found = "solved"
    except FccoError as error:
        assert str(error) and not any(d.code == "F0001" for d in error.diagnostics)
        found = error.diagnostics[0].code
    except Exception as error:
        return foreign(error, f"seed {seed}")
    spent = time.process_time() - began
    return found if spent < SECONDS else f"{spent:.0f} s at seed {seed}"


@pytest.mark.parametrize("start", range(0, CASES, 20))
def test_models(start: int) -> None:
    found = Counter(outcome(seed) for seed in range(start, min(start + 20, CASES)))
    strange = [text for text in found if " at " in text]
    assert not strange, "\n".join(strange)
    assert found["solved"]
