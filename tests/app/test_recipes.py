"""The recipes of examples/recipes: each trains, and reaches what its page says."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch
from support.places import ROOT

FOLDER = ROOT / "examples" / "recipes"
#: what the figures of a recipe satisfy
REACHED: dict[str, Callable[[dict[str, float]], bool]] = {
    "sogclr": lambda f: f["after"] > f["before"] + 0.05,
    "isogclr": lambda f: f["after"] > f["before"] + 0.05,
    "average_precision": lambda f: f["average precision"] > 0.9,
    "ndcg": lambda f: f["ndcg"] > 0.93,
    "group_dro_images": lambda f: f["worst digit"] > 0.8 and f["all"] > 0.93,
    "roc_fairness_images": lambda f: f["partial auc"] > 0.97 and f["violation"] < 0.02,
    "continual_images": lambda f: min(f["old digits"], f["new digits"]) > 0.9 and f["violation"] < 0.05,
    "disco": lambda f: f["after"] > f["before"] + 0.15 and f["drift"] < 0.26,
    "dpo": lambda f: f["preferred"] > 0.8 and f["drift"] < 0.08,
    "drrho": lambda f: f["network"] > max(0.96, f["reference"]),
    "cost_policy": lambda f: f["reward"] > 0.6 and f["cost"] < 0.27,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REACHED)
def test_a_recipe_trains(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="the recipes' data: install the extra `data`")
    monkeypatch.syspath_prepend(str(FOLDER))
    torch.manual_seed(0)
    found = importlib.import_module(name).main()
    assert REACHED[name](found), found


def test_each_recipe_has_a_model_a_script_and_a_line() -> None:
    page = (FOLDER / "README.md").read_text()
    models = {path.stem for path in FOLDER.glob("*.fcco")}
    assert models == REACHED.keys()
    for name in models:
        assert (FOLDER / f"{name}.py").is_file()
        assert f"| `{name}` |" in page
