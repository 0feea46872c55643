"""Variables that no memory holds are refused when data are bound, before anything of their size is made."""

from __future__ import annotations

import pytest

import fccomodel
from fccomodel.core.diagnostics import FccoError


@pytest.mark.parametrize("shape", ["1e12", "1000000000000", "10000000, 10000000"])
def test_more_entries_than_memory(shape: str) -> None:
    with pytest.raises(FccoError) as caught:
        fccomodel.compile(f"var w[{shape}]; minimize sumsq(w);").bind().explain()
    assert caught.value.diagnostics[0].code == "F0704" and "entries" in str(caught.value)
