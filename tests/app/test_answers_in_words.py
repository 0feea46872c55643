"""The answer in a word, in three lines, as tables."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel as fc
from fccomodel.report.statuses import FAILURES, SENTENCES, WORDS
from fccomodel.report.verdicts.grades import BEATEN, FIRST_ORDER, GRADES, OPEN, SADDLE

MODELS = {
    "solved": "var x[2]; minimize f: sumsq(x - 1); subject to half: x[1] <= 0.5;",
    "infeasible": "var x; minimize f: x^2; subject to low: x >= 1; high: x <= 0;",
    "unbounded": "var x; minimize f: x; subject to high: x <= 1;",
}


@pytest.mark.parametrize("word", MODELS)
def test_the_word_of_a_verdict(word: str) -> None:
    assert fc.compile(f"model m; {MODELS[word]}").bind().solve(seed=0).status == word


def test_every_grade_has_a_word() -> None:
    grades = {text for _, text in GRADES if not text.startswith("Not")}
    grades |= {*FIRST_ORDER.values(), OPEN, BEATEN, SADDLE}
    assert grades == set(WORDS)
    others = {*FAILURES, "stopped_feasible", "stopped_infeasible"}
    assert {*WORDS.values(), *others} == set(SENTENCES)


def test_a_run_that_is_stopped_early_says_whether_constraints_hold() -> None:
    text = "model m; dim d; data D : table(x: real[d], y: real); var w[d];"
    text += "minimize f: E[z ~ D] abs(dot(w, z.x) - z.y); subject to far: sum(w) >= 100;"
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(50, 4)), "y": rng.normal(size=50)}
    result = fc.compile(text).bind(D=data).solve(seed=0, budget="1it", polish=False)
    assert result.status in ("stopped_infeasible", "infeasible_nearby")
    assert "largest violation" in result.summary()


def test_summary_and_tables() -> None:
    result = fc.compile(f"model m; {MODELS['solved']}").bind().solve(seed=0)
    first, plain, verdict, held = result.summary().splitlines()
    assert plain == result.in_words == "The answer is the best possible, up to tiny errors."
    assert first.startswith("m: objective 0.25 (solved)") and verdict == result.report.verdict
    assert held == "constraints: 1, all hold"
    frame = result.to_frame()
    assert list(frame.columns) == ["variable", "entry", "value"]
    assert frame.value.tolist() == pytest.approx([0.5, 1.0], abs=1e-5) and frame.entry.tolist() == ["1", "2"]
    limits = result.constraints_frame()
    assert limits.constraint.tolist() == ["half"] and limits.multiplier[0] == pytest.approx(1.0, abs=1e-4)
