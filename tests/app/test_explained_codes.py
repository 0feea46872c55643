"""What each error code stands for."""

from __future__ import annotations

import pytest

from fccomodel.app import registry
from fccomodel.app.cli import main
from fccomodel.app.shown import codes


@pytest.mark.slow
def test_every_code_has_a_rule_and_a_stage():
    found = {code.id: rules for code, rules in codes.catalogue().items()}
    assert found.keys() == registry.codes().keys() and len(found) > 130
    assert [code for code, rules in found.items() if not rules] == []
    for code in found:
        assert max(map(len, codes.card(code).splitlines())) <= 80


def test_the_command(capsys):
    assert main(["explain", "F0406"]) == 0
    text = capsys.readouterr().out
    assert (
        text.startswith("F0406  in or ~\n")
        and "- The indices of one reduction all iterate or all draw." in text
    )
    assert main(["explain", "F9406"]) == 2
    assert "Did you mean `F0406`?" in capsys.readouterr().err


def test_a_file_with_the_name_of_a_code_is_a_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "F0406").write_text("var x; minimize named: x^2;")
    assert main(["explain", "F0406"]) == 0
    assert "named" in capsys.readouterr().out


CARDS = {
    "cvar": ("cvar(tail = 0.1)[k in K]", "tail in (0, 1]", "Rockafellar"),
    "E": ("E[z ~ D]", "draws", "twin"),
    "prob": ("prob[z ~ D]", "a condition"),
    "normal": ("normal(mean, sd)", "sd in [0, inf)"),
    "simplex": ("simplex(K)", "Duchi"),
    "max": ("max(u1, u2, ...)", "max[k in K]"),
}


@pytest.mark.parametrize("name", CARDS)
def test_reductions_sets_and_distributions_have_cards(name, capsys):
    assert main(["atoms", name]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in CARDS[name]) and max(map(len, text.splitlines())) <= 80


def test_the_list_has_all_that_a_model_names(capsys):
    assert main(["atoms"]) == 0
    text = capsys.readouterr().out
    for word in (
        "over sets and draws",
        "topk(k = 3)",
        "capped_simplex(K, alpha)",
        "bernoulli(p)",
        "log1pexp",
    ):
        assert word in text
