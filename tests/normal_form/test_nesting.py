"""Reductions inside reductions: their depth is counted once."""

import pytest

import fccomodel
from fccomodel.normal_form import terms


def test_the_depth_of_nested_expectations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dozen of them, each looked at a few times, where every one doubled the work before."""
    depth, looks, own = 12, 0, terms.is_sampled

    def counted(node):
        nonlocal looks
        looks += 1
        return own(node)

    monkeypatch.setattr(terms, "is_sampled", counted)
    opened = "".join(f"E[z{k} ~ D] (1 + z{k}.y * " for k in range(depth))
    text = f"data D : table(y: real); var x; minimize {opened}x{')' * depth};"
    bound = fccomodel.compile(text).bind(D={"y": [1.0, 2.0, 3.0]})
    assert "E[z0 ~ D]" in str(bound.explain())
    assert looks < 60 * depth
