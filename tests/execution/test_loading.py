"""Programs as modules: their classes are made once, as long as all that these name is the same."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fccomodel.execution.run import loading
from fccomodel.execution.run.loading import loaded

HEAD = "import copy\nimport math\nfrom dataclasses import dataclass"
BASE = (
    "@dataclass\nclass Base:\n    copy: int = 0\n\n    def again(self):\n        return "
    "copy.copy(self), math.inf"
)
DERIVED = "@dataclass\nclass Derived(Base):\n    size: float = 1.0"
OWN = "@dataclass\nclass Own:\n    size: float = 1.0\n\n    def value(self):\n        return scale(self.size)"


def module(*parts: str):
    return loaded(SimpleNamespace(text="\n\n\n".join((HEAD, *parts)), modules={}))


def test_classes_are_made_once():
    one, other = module(BASE, DERIVED, "TAU = 1"), module(BASE, DERIVED, "TAU = 2")
    assert one.Base is other.Base and one.Derived is other.Derived and (one.TAU, other.TAU) == (1, 2)
    assert one.Derived(size=2.0).again()[0].size == 2.0 and one.Derived.__module__ == "solver"


def test_a_full_cache_gives_up_its_oldest_class(monkeypatch):
    module(BASE.replace("copy: int = 0", "copy: int = 7"))
    monkeypatch.setattr(loading, "LARGEST_CACHE", len(loading._classes) + 1)
    one, other = module(BASE, DERIVED), module(BASE, DERIVED)
    assert one.Base is other.Base and one.Derived is other.Derived


def test_a_class_of_another_base_is_another():
    one, other = module(BASE, DERIVED), module(BASE.replace("copy: int = 0", "copy: int = 1"), DERIVED)
    assert one.Derived is not other.Derived and (one.Derived().copy, other.Derived().copy) == (0, 1)


@pytest.mark.parametrize("order", [0, 1], ids=["before", "after"])
def test_a_class_that_names_a_function_of_its_program_is_its_own(order):
    found = []
    for factor in (2, 3):
        scale = f"def scale(x):\n    return {factor} * x"
        found.append(module(*([scale, OWN] if order == 0 else [OWN, scale])))
    assert [each.Own().value() for each in found] == [2.0, 3.0]


@pytest.mark.parametrize("before", [1, 3])
def test_a_part_that_programs_share_has_the_lines_of_each(before):
    """The code of a part is compiled once and moved to where a program has it, inner functions too."""
    part = "def outer():\n    def inner():\n        return (\n            1\n            / 0\n        )\n    return inner"
    parts = ["A = 1"] * before + [part]
    alone = compile("\n\n\n".join((HEAD, *parts)), "solver.py", "exec")
    scope: dict = {}
    exec(alone, scope)
    found, expected = module(*parts).outer, scope["outer"]
    assert list(found.__code__.co_lines()) == list(expected.__code__.co_lines())
    inner, of_text = found().__code__, expected().__code__
    assert list(inner.co_lines()) == list(of_text.co_lines())
    assert list(inner.co_positions()) == list(of_text.co_positions())
