"""The page for those who come from other libraries: our models are models, and have the optima of CVXPY's."""

from __future__ import annotations

import re

import pytest
from support.places import ROOT

import fccomodel

PAGE = (ROOT / "tutorials" / "coming_from.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|fcco)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PARTS = {part.partition("\n")[0]: BLOCK.findall(part) for part in PAGE.split("\n## ")[1:]}
OURS = [(library, text) for library, found in PARTS.items() for kind, text in found if kind == "fcco"]


def test_there_are_five_of_each():
    assert list(PARTS) == ["CVXPY", "Pyomo", "Fairlearn", "TFCO", "LibAUC", "Cooper"]
    for library, found in PARTS.items():
        assert [kind for kind, _ in found if kind == "fcco"] == ["fcco"] * 5, library
        for kind, text in found:
            if kind == "python":
                compile(text, library, "exec")


@pytest.mark.parametrize(
    ("library", "text"), OURS, ids=lambda one: one.partition(";")[0].removeprefix("model ")
)
def test_our_models_are_models_that_an_algorithm_runs(library, text):
    explained = fccomodel.compile(text).explain()
    assert explained.json["algorithm"], library


def test_the_optima_are_those_of_cvxpy():
    pytest.importorskip("cvxpy")
    found = iter(PARTS["CVXPY"])
    scope: dict[str, object] = {}
    exec(next(found)[1], scope)
    for (_, theirs), (_, ours) in zip(found, found, strict=True):
        exec(theirs, scope)
        data = {name: scope[name] for name in re.findall(r"^data (\w+)", ours, re.MULTILINE)}
        result = fccomodel.compile(ours).bind(**data).solve()
        assert result.objective == pytest.approx(scope["problem"].value, rel=1e-4, abs=1e-7), ours
        if "duals" in scope:
            assert result.multipliers["limits"] == pytest.approx(scope.pop("duals"), abs=1e-4)
