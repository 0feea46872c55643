"""A statement is searched for its binders once, however many of its names mean nothing."""

from __future__ import annotations

import pytest

import fccomodel
from fccomodel.core.diagnostics import FccoError
from fccomodel.language.formulas import names


def test_a_statement_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched, search = [], names.binders_in
    monkeypatch.setattr(names, "binders_in", lambda node: searched.append(node) or search(node))
    with pytest.raises(FccoError) as caught:
        fccomodel.compile("var w; minimize w^2 + " + " + ".join(f"unknown{k}" for k in range(300)) + ";")
    assert len(caught.value.diagnostics) == 300 and len(searched) == 1
