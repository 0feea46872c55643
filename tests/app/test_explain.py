"""Explanations: as data, in words, and as derivations, golden for the models under ``golden/facts``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.places import GOLDEN

import fccomodel
from fccomodel import structure
from fccomodel.app.shown import explain
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from fccomodel.structure import RULES, Analysis, why
from fccomodel.structure.facts import Facts

FOLDER = GOLDEN / "facts"
MODELS = sorted(FOLDER.glob("*.fcco"))
#: model -> part -> (curvature, smooth), on what the text alone proves
EXPECTED = {
    "neyman_pearson": {"objective": ("convex", True), "misses": ("convex", True)},
    "group_dro_cvar": {"objective": ("convex", False)},
    "mean_variance_l1": {"objective": ("convex", False)},
    "pnorm_push": {"objective": ("convex", True)},
    "partial_auc": {"objective": ("convex", False)},
    "cox": {"objective": ("convex", True)},
    "worst_of_losses": {"objective": ("weakly convex", False)},
    "card_form": {"objective": ("weakly convex", True), "c1": ("convex", True)},
    "auc_roc_fair": {name: ("unknown", False) for name in ("objective", "tpr_gap", "fpr_gap", "centred")},
    "second_moment": {"objective": ("convex", True)},
}


def analysis_of(text: str, name: str = "<model>") -> Analysis:
    source = Source(text=text, name=name)
    return structure.analyse(check(parse(source), source))


def from_file(stem: str) -> Analysis:
    return analysis_of((FOLDER / f"{stem}.fcco").read_text(), f"{stem}.fcco")


# ------------------------------------------------------------------------------------------- golden
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_golden(path: Path, update_golden: bool) -> None:
    found = analysis_of(path.read_text(), path.name)
    parts = [
        explain.to_text(found),
        *(explain.to_text(found, why=name) for name in ("objective", *found.constraints)),
    ]
    text = f"\n{'=' * 80}\n".join(parts) + "\n"
    expected = path.with_suffix(".txt")
    if update_golden:
        expected.write_text(text)
    assert text == expected.read_text()
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("stem", EXPECTED)
def test_models(stem: str) -> None:
    found = from_file(stem)
    told = explain.to_json(found)
    parts = {"objective": told["objective"], **told["constraints"]}
    assert {name: (part["curvature"], part["smooth"]) for name, part in parts.items()} == EXPECTED[stem]


@pytest.mark.parametrize(
    "path", [p for p in MODELS if p.stem.startswith("refused")], ids=lambda path: path.stem
)
def test_what_is_not_convex_is_not_called_convex(path: Path) -> None:
    found = analysis_of(path.read_text(), path.name)
    assert not found.convex and not found.minimised.convex
    text = explain.to_text(found, why="objective")
    assert "because" in text or "unknown curvature" in text


# --------------------------------------------------------------------------------------------- data
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_json_is_plain(path: Path) -> None:
    told = explain.to_json(analysis_of(path.read_text(), path.name))
    assert json.loads(json.dumps(told)) == told
    for part in (told["objective"], *told["constraints"].values()):
        assert part["curvature"] in ("constant", "affine", "convex", "concave", "weakly convex", "unknown")
        assert isinstance(part["smooth"], bool) and part["reason"]


def test_every_node_has_its_facts_in_json() -> None:
    told = explain.to_json(analysis_of("var u; var p >= 0; minimize e: square(u) + log(p);"))
    nodes = {node["text"]: node for node in told["nodes"]}
    assert list(nodes) == ["square(u) + log(p)", "log(p)", "p", "square(u)", "u"]
    assert nodes["square(u)"]["curvature"] == "convex" and nodes["log(p)"]["monotone"] == {"p": "increasing"}
    assert nodes["square(u)"]["facts"]["below"]["rule"] == "affine argument" and nodes["log(p)"]["place"] == [
        1,
        44,
    ]
    assert nodes["p"]["facts"]["interval"] == {
        "says": "in [0, inf)", "rule": "declared range", "reason": "", "standing": "proved"
    }  # fmt: skip
    assert "log needs an argument in (0, inf)" in nodes["log(p)"]["undefined"][0]


def test_numbers_in_json() -> None:
    told = explain.to_json(
        analysis_of("var u >= -1, <= 2; param a > 0; minimize e: 3 * square(u) + a * abs(u) + sigmoid(u);")
    )
    objective = told["objective"]
    assert objective["weak_convexity"] == pytest.approx(0.0962, rel=1e-3)
    assert objective["lipschitz"] == "finite" and objective["gradient_lipschitz"] is None
    assert objective["monotone"] == {"u": "none"} and objective["range"][0] == pytest.approx(0.2689, rel=1e-3)


TAIL_OF_PAIRS = """dim d; data D : table(x: real[d], y: {-1, 1}); var w[d];
minimize cvar(tail = 0.5)[p in D | p.y == 1] (E[n ~ D | n.y == -1] sqhinge(1 + dot(w, n.x) - dot(w, p.x)))
    + 0.1 * norm1(w);"""


def test_a_plan_is_shown() -> None:
    rows = {"x": np.random.default_rng(0).normal(size=(60, 3)), "y": np.where(np.arange(60) < 12, 1, -1)}
    planned = fccomodel.compile(TAIL_OF_PAIRS).bind(data={"D": rows}).plan(algorithm="sonex")
    found, plan = planned.analysis, planned.plan
    text = explain.to_text(found, plan)
    for words in (
        "Structure",
        "composition, 12 blocks",
        "tracked: E[n ~ D | n.y == -1] sqhinge(1 + dot(w, n.x) - dot(w, p.x))",
        "prox: 0.1 * norm1(w)",
        "variational tail mean: cvar",
        "removes cvar, topk",
        "Algorithm  sonex",
        "chosen by name",
        "outer prox (Assumption 3.2): proved",
    ):
        assert words in text
    assert "not smooth: cvar has kinks" in " ".join(text.split("Rejected")[1].split())
    told = explain.to_json(found, plan)
    assert told["algorithm"] == "sonex" and told["via"] == ["variational tail mean", "outer Moreau smoothing"]
    assert told["rejected"]["icppac"][0].endswith("the model has no constraint")
    assert told["structure"][1]["inner"] == ["E[n ~ D | n.y == -1] sqhinge(1 + dot(w, n.x) - dot(w, p.x))"]
    assert told["structure"][1]["n"] == 12 and told["assumptions"]["outer prox"]["holds"]


# ---------------------------------------------------------------------------------------------- why
def test_the_failing_node_is_named_in_the_users_text() -> None:
    found = analysis_of(
        "dim d; data D : table(x: real[d], y: {-1, 1}); var w[d];\n"
        "let risk = E[z ~ D] (1 - sigmoid(z.y * dot(w, z.x)));\n"
        "minimize e: square(risk) + sumsq(w);"
    )
    text = explain.to_text(found, why="e")
    assert "2:26  sigmoid(z.y * dot(w, z.x))" in text
    assert "sigmoid is neither convex nor concave" in text and "Fix: the logistic loss" in text


def test_a_rule_is_named_with_its_sentence() -> None:
    text = explain.to_text(from_file("cox"), why="nll")
    assert "convex by `log-convex`" in text and "log-sum-exp" in text.split("Rules")[1]


def test_unknown_subject() -> None:
    with pytest.raises(FccoError) as found:
        explain.to_text(from_file("neyman_pearson"), why="mises")
    assert found.value.diagnostics[0].code == "F0691" and "misses" in found.value.diagnostics[0].fix


def test_assumptions_and_domains_are_noted() -> None:
    model = (
        "dim d; data D : table(x: real[d]); net s : real[d] -> real assume smooth; var w = params(s);\n"
        "minimize e: log(E[z ~ D] s(w; z.x));"
    )
    said = explain.warnings(analysis_of(model))
    assert any("log needs an argument in (0, inf)" in s for s in said)
    assert any("assumes that s is smooth" in s for s in said)


def test_every_rule_that_is_used_is_explained() -> None:
    used: set[str] = set()
    for path in MODELS:
        found = analysis_of(path.read_text(), path.name)
        roots: list[Facts] = [found.objective, *found.constraints.values()]
        stack: list[Any] = [fact for root in roots for fact in root.facts()]
        seen = set()
        while stack:
            fact = stack.pop()
            if id(fact) not in seen:
                seen.add(id(fact))
                used.add(fact.rule)
                stack.extend(fact.uses)
                assert fact.standing >= max(
                    (u.standing for u in fact.uses), default=fact.standing
                ) or fact.rule in ("log-convex",)
    assert used <= set(RULES)


def test_all_rules_have_a_reason_of_one_sentence() -> None:
    for name, sentence in RULES.items():
        assert sentence.endswith(".") and "\n" not in sentence, name


def test_long_text_is_shortened() -> None:
    terms = " + ".join(f"square(u - {k})" for k in range(60))
    text = explain.to_text(analysis_of(f"var u; minimize e: {terms};"), why="e")
    assert max(map(len, text.splitlines())) <= 80 and " .." in text
    assert why.wrap("word " * 40, 40)[0].startswith("  word")


@pytest.mark.parametrize(
    "model, words",
    [
        ("minimize s; subject to u[k in G]: E[z ~ D | z.g == k] (w - z.t)^2 <= s;", "`max[k in G] ...`"),
        ("maximize s; subject to u[k in G]: E[z ~ D | z.g == k] -(w - z.t)^2 >= s;", "`min[k in G] ...`"),
        ("minimize s + w; subject to u[k in G]: E[z ~ D | z.g == k] s^2 + w^2 <= s;", ""),
        ("minimize s + E[z ~ D] pos(abs(w - z.t) - s) / 0.1;", "`cvar(tail = ...)[z ~ D] loss`"),
        (
            "minimize w^2; subject to q: s + 5 * E[z ~ D] pos(w - z.t - s) <= 1;",
            "`cvar(tail = ...)[z ~ D] loss`",
        ),
        ("minimize E[i ~ D] log(1 + E[j ~ D] (j.g == i.g) * (w - j.t)^2);", "`[j ~ D | j.g == i.g]`"),
        ("minimize E[z ~ D] (z.t > 0) * (w - z.t)^2;", ""),
        (
            f"minimize w^2; subject to {' '.join(f'c{k}: w + {k} * s <= {k};' for k in range(20))}",
            "20 constr",
        ),
    ],
)
def test_costly_texts_are_named(model: str, words: str) -> None:
    text = "set G; data D : table(t: real, g: G); var w; var s;" + model
    notes = [
        note for note in explain.warnings(analysis_of(text)) if "says the same" in note or "factor" in note
    ]
    assert len(notes) == bool(words) and words in "".join(notes)
