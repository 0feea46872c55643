"""What gave the answer is named: in the head line, in ``result.json``, and before a run among what
practice adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fccomodel

HEAD = "dim d;\ndata D : table(x: real[d], y: {-1, 1});\nvar w[d];\n"
LOGISTIC = f"{HEAD}minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.1 * sumsq(w);"
NOT_CONVEX = f"{HEAD}minimize E[z ~ D] sigmoid(-z.y * dot(w, z.x)) + 0.01 * sumsq(w);"


def bound(text: str) -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    return fccomodel.compile(text).bind(
        D={"x": x, "y": np.where(x @ [1, -1, 0.5] + rng.normal(size=200) > 0, 1, -1)}
    )


def words(text: object) -> str:
    return " ".join(str(text).split())


@pytest.mark.parametrize("text", [LOGISTIC, NOT_CONVEX])
def test_full_passes_that_gave_the_answer_are_named(text: str) -> None:
    result = bound(text).solve()
    found = result.json["answered_by"]
    assert found["method"] == "proximal L-BFGS" and "full pass" in found["words"]
    assert found["words"] in words(result)
    assert result.json["iterations"] == 0 or found["words"].endswith("which gave the answer")


def test_steps_alone_are_the_algorithms() -> None:
    result = bound(NOT_CONVEX).solve(algorithm="sox", budget="60it")
    assert result.json["answered_by"] == {"method": "SOX", "words": "SOX, 60 steps"}


def test_an_interior_point_method_that_gave_the_answer_is_named(tmp_path: Path) -> None:
    result = (
        fccomodel.compile("var x[2] >= 0;\nminimize 2*x[1] + x[2];\nsubject to c: x[1] + x[2] >= 1;")
        .bind()
        .solve(algorithm="interior_point")
    )
    found = result.json["answered_by"]
    assert found["method"] == "interior-point method" and found["words"].startswith("interior-point method, ")
    assert result.objective == pytest.approx(1, abs=1e-6)
    result.save(tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "result.json").read_text())
    assert stored["answered_by"] == found and any(
        "interior-point method's" in note for note in stored["notes"]
    )


def test_where_a_run_began_is_named() -> None:
    model = bound(LOGISTIC)
    first = model.solve()
    again = model.solve(start=first)
    assert again.json["answered_by"]["method"] in ("start", "proximal L-BFGS")
    assert "was planned, not needed" not in again.json["answered_by"]["words"]


def test_what_will_follow_the_steps_is_among_practice() -> None:
    model = bound(LOGISTIC)
    told = " ".join(model.plan().plan.practice)
    assert "finish: full passes" in told and "interior-point method" in told
    assert not any(line.startswith(("finish", "interior")) for line in model.plan(polish=False).plan.practice)
    assert not any(
        line.startswith(("finish", "interior")) for line in model.plan(budget="500it").plan.practice
    )
    assert not any(line.startswith("interior") for line in bound(NOT_CONVEX).plan().plan.practice)
