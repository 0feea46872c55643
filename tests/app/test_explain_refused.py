"""Explanations of models that nothing solves: their facts, what each algorithm lacks, and what to change."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.places import ROOT

import fccomodel
from fccomodel import algorithms
from fccomodel.app import cli
from fccomodel.structure import RULES

HEAD = "model m;\ndim d;\ndata D : table(x: real[d], y: {-1, 1});\nvar w[d];\n"
UNCOVERED = HEAD + "minimize min(sqrt(E[z ~ D] square(dot(w, z.x))), E[z ~ D] square(dot(w, z.x) - 1));"
STEP = HEAD + "minimize E[z ~ D] step(dot(w, z.x));"
TAIL = HEAD + "maximize cvar(tail = 0.1)[z ~ D] dot(w, z.x);"
NAMED = (
    HEAD + "minimize E[z ~ D] square(dot(w, z.x)); subject to c: sumsq(w) >= 1; options { algorithm = apg; }"
)
CODES = {"F0605": UNCOVERED, "F0610": STEP, "F0601": TAIL, "F0604": NAMED}
X = np.random.default_rng(0).normal(size=(20, 3))
DATA = {"x": X, "y": np.sign(X[:, 0])}


@pytest.mark.parametrize("code", CODES)
def test_what_nothing_solves_is_explained(code: str) -> None:
    model = fccomodel.compile(CODES[code])
    for explanation in (model.explain(), model.bind(D=DATA).explain()):
        told, text = json.loads(json.dumps(explanation.json)), str(explanation)
        assert told["algorithm"] is None and {one["code"] for one in told["refused"]} == {code}
        assert set(told["rejected"]) == set(algorithms.all()) and all(told["rejected"].values())
        assert told["objective"]["reason"] and told["nodes"]
        assert text.splitlines()[2].startswith(f"Not solved ({code})") and "Fix: " in text
        assert "Algorithms, and what each lacks" in text and all(name in text for name in algorithms.all())
        assert explanation.why("objective").startswith("objective: ")
    with pytest.raises(fccomodel.FccoError, match=code):
        model.bind(D=DATA).solve(budget="1it")


def test_the_nearest_algorithms_and_the_change_come_first() -> None:
    lines = str(fccomodel.compile(UNCOVERED).explain()).splitlines()
    nearest = [line for line in lines if re.match(r"  - \w+ needs ", line)]
    assert len(nearest) == 3 and lines.index(nearest[0]) == 3
    said = " ".join(" ".join(lines).split())
    assert (
        said.partition("Fix:")[2].startswith(" Change the model so that one holds.")
        and "--unverified" in said
    )


def test_what_is_solved_is_not_refused() -> None:
    told = fccomodel.compile(HEAD + "minimize E[z ~ D] square(dot(w, z.x));").explain().json
    assert told["algorithm"] and told["refused"] is None


def test_an_option_that_there_is_not_is_still_an_error() -> None:
    with pytest.raises(fccomodel.FccoError, match="F0603"):
        fccomodel.compile(UNCOVERED).explain(algorithm="sonx2")


def test_the_command_line_explains_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for code, text in CODES.items():
        path = tmp_path / f"{code}.fcco"
        path.write_text(text)
        assert cli.main(["explain", str(path)]) == 0 and f"({code})" in capsys.readouterr().out
        assert cli.main(["explain", str(path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["refused"][0]["code"] == code
        assert cli.main(["explain", str(path), "--why", "objective"]) == 0


def test_a_net_that_is_bound_is_not_said_to_be_unbound() -> None:
    text = "net s : real[d] -> real;\nvar v = params(s);\nminimize E[z ~ D] min(s(v; z.x), 1);"
    bound = fccomodel.compile(HEAD + text).bind(D=DATA, nets={"s": "mlp(8, activation=relu)"})
    explanation = bound.explain()
    told = str(explanation) + explanation.why("objective") + json.dumps(explanation.json)
    assert "not bound" not in told and "ReLU" in told


def test_reasons_name_places_of_the_users_text() -> None:
    """Of what reformulations write too: here, the negative of a concave function of an expectation."""
    text = HEAD + "maximize log(1 + E[z ~ D] square(dot(w, z.x)));"
    rejected = fccomodel.compile(text).explain().json["rejected"]
    reasons = [reason for lacks in rejected.values() for reason in lacks if "not convex" in reason]
    assert reasons
    for reason in reasons:
        assert "apply" not in reason and "at 1:1" not in reason
        if "a function of" in reason:
            assert reason.partition("a function of ")[2].partition(" at ")[0].partition(";")[0] in text


def test_every_rule_that_the_code_names_is_explained() -> None:
    """Facts name their rule by a text: each has its sentence, so that no derivation ends in an error."""
    places = {"propose": 2, "both": 1, "make": 3, "_restated": 1, "renamed": 1, "_unknown": 4}
    named = set()
    for path in (ROOT / "fccomodel" / "structure").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                place = places.get(name, len(node.args))
                named |= {
                    n.value
                    for a in node.args[place : place + 1]
                    for n in ast.walk(a)
                    if isinstance(n, ast.Constant)
                }
    named = {name for name in named if isinstance(name, str)}
    assert len(named) > 20 and named <= set(RULES)
