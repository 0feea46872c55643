"""Grading by mathematics: right answers in other words are accepted, wrong ones located."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.grading_cases import KEYS, RIGHT, WRONG

import fccomodel as fc
from fccomodel import pipeline
from fccomodel.app import cli, grading
from fccomodel.core.source import Source


def changed(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def graded(exercise: str, replacements: dict[str, str]) -> grading.Grade:
    return against(KEYS[exercise], changed(KEYS[exercise], replacements))


def against(key: str, answer: str) -> grading.Grade:
    return grading.grade(Source(text=answer), pipeline.compile_model(Source(text=key)))


def mostly_slow(cases: list[Any]) -> list[Any]:
    """The cases; all but two count as slow."""
    return [*cases[:2], *(pytest.param(*case, marks=pytest.mark.slow) for case in cases[2:])]


@pytest.mark.parametrize("exercise, replacements", mostly_slow(RIGHT))
def test_right_answers_in_other_words(exercise: str, replacements: dict[str, str]) -> None:
    found = graded(exercise, replacements)
    assert found.verdict == "same", found
    assert found.score == 1.0


@pytest.mark.parametrize("exercise, replacements, kind, part", mostly_slow(WRONG))
def test_wrong_answers_are_located(exercise: str, replacements: dict[str, str], kind: str, part: str) -> None:
    found = graded(exercise, replacements)
    expected = "undecided" if kind == "missing declaration" else "different"
    assert found.verdict == expected, found
    assert (kind, part) in [(one.kind, one.part) for one in found.differences], found
    assert found.score < 1.0


def test_what_the_card_of_a_difference_says() -> None:
    found = graded("neyman pearson", {"z.y == 0": "z.y == 1"})
    assert "yours: z.y == 1" in found.text() and "key:   z.y == 0" in found.text()
    assert "z.y == 0" not in found.text(hints=True)
    (told,) = found.json["differences"]
    assert told["line"] == 1 and told["kind"] == "condition"
    assert found.json["parts"] == {"objective": False, "misses": True} and found.score == 0.5


def test_a_model_with_errors() -> None:
    found = against("var w; minimize w^2;", "var w; minimize v^2;")
    assert found.verdict == "invalid" and found.score == 0.0
    assert found.json["errors"][0]["code"] == "F0201"


@pytest.mark.slow
@pytest.mark.parametrize(
    "key, answer",
    [
        # a redundant bound: no point shows that it matters, and no row of the key has it
        ("var w in box(0, 1); minimize w;", "var w in box(0, 1); minimize w; subject to w + w^2 <= 3;"),
        # a mean that is known in closed form: samples cannot tell
        ("var w; minimize E[x ~ normal(1, 1)] (w - x)^2;", "var w; minimize w^2 - 2 * w + 2;"),
        # a variable more
        ("var w; minimize abs(w - 1);", "var w; var t; minimize t; subject to w - 1 <= t; 1 - w <= t;"),
    ],
)
def test_what_cannot_be_decided_is_called_undecided(key: str, answer: str) -> None:
    found = against(key, answer)
    assert found.verdict == "undecided" and found.notes and found.score < 1, found


@pytest.mark.slow
@pytest.mark.parametrize(
    "key, answer, verdict",
    [
        (
            "var w; minimize E[x ~ normal(1, 1)] (w - x)^2;",
            "var v; minimize E[u ~ normal(1, 1)] (u - v)^2;",
            "same",
        ),
        (
            "var w; minimize E[x ~ normal(1, 1)] (w - x)^2;",
            "var w; minimize E[x ~ normal(2, 1)] (w - x)^2;",
            "different",
        ),
        (
            "param t default 1; var w; minimize (w - t)^2;",
            "param t default 2; var w; minimize (w - t)^2;",
            "different",
        ),
        # an increasing function of the objective, and one that is not
        ("var w; minimize w^2;", "var w; minimize abs(w);", "same"),
        ("var w; minimize w^2 + w^4;", "var w; minimize w^2 + 2 * w^4 + 0.1 * w;", "different"),
        # equal only where the constraint holds
        ("var x >= 0; minimize abs(x) + x^2;", "var x >= 0; minimize x + x^2;", "same"),
        (
            "var x; var y; minimize x^2 + 3 * y; subject to x == y;",
            "var x; var y; minimize x * y + 3 * x; subject to x == y;",
            "undecided",
        ),
        # most projections on a small box are at its ends; every point is optimal
        ("var x in box(0.1, 1); minimize x^2;", "var x in box(0.1, 1); minimize x;", "same"),
        ("var x in box(0, 1); minimize 0 * x;", "var x in box(0, 1); minimize 1 + 0 * x;", "same"),
        # a formula that overflows far away, and one without a value for negative numbers
        ("var w; minimize log1pexp(3 * w) + w^2;", "var w; minimize log(1 + exp(3 * w)) + w^2;", "same"),
        (
            "var w in box(-2, 2); minimize w;",
            "var w in box(-2, 2); minimize 2 * log(exp(w / 2) + 0 * abs(w)^0.5);",
            "same",
        ),
        # names exchanged
        (
            "var a; var b; minimize (a - 1)^2 + 2 * b^2;",
            "var b; var a; minimize (b - 1)^2 + 2 * a^2;",
            "same",
        ),
        (
            "var w; minimize w^2; subject to w >= 1;",
            "var w; minimize w^2; subject to w >= 1.000001;",
            "undecided",
        ),
    ],
)
def test_verdicts(key: str, answer: str, verdict: str) -> None:
    assert against(key, answer).verdict == verdict, against(key, answer)


@pytest.mark.slow
def test_cost_on_data() -> None:
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=(40, 2)), "y": rng.normal(size=40)}
    key = fc.compile(KEYS["least squares"]).bind(D=table)
    found = fc.grade(KEYS["least squares"].replace("+ mu", "+ 9 * mu"), key)
    assert found.verdict == "different"
    assert found.cost is not None and found.cost.objective > found.cost.best
    assert "key's objective" in str(found)


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, answer = tmp_path / "key.fcco", tmp_path / "mine.fcco"
    key.write_text("var w; minimize (w - 1)^2; subject to low: w >= 2;")
    for text, status in (
        ("var v; minimize 2 * (1 - v)^2; subject to v >= 2;", 0),
        ("var w; minimize (w - 1)^2;", 1),
        ("var w; minimize (w - 1)^2", 2),
        ("var w; var t; minimize (w - 1)^2 + t^2; subject to w >= 2;", 3),
    ):
        answer.write_text(text)
        assert cli.main(["grade", str(answer), "--against", str(key), "--json"]) == status
        told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "undecided"
    answer.write_text("var w; minimize (w - 1)^2;")
    assert cli.main(["grade", str(answer), "--against", str(key), "--hints"]) == 1
    shown = capsys.readouterr().out
    assert "a constraint is missing" in shown and "violates `low` by 1" in shown and "w >= 2" not in shown


@pytest.mark.parametrize(
    "key, wrong",
    [
        ("var x >= 0; minimize (x - 9000)^2;", {"9000": "8000"}),
        ("var x; minimize x^2; subject to c: pos(x - 5000) <= 10;", {"5000": "6000"}),
        ("var x in box(0, 1e7); minimize (x - 3e6)^2;", {"1e7": "1e6"}),
    ],
)
def test_models_that_differ_only_far_from_zero(key: str, wrong: dict[str, str]) -> None:
    assert against(key, changed(key, wrong)).verdict == "different"


def test_rounding_far_from_zero_is_no_difference() -> None:
    key = "var x; minimize log1pexp(x - 5e5) - x / 1e3;"
    assert against(key, "var x; minimize log1pexp(5e5 - x) - 5e5 + x - x / 1e3;").verdict == "same"
