"""Colours of model files: one list of rules for Pygments and TextMate, out of the grammar and the registries."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.places import ROOT

from fccomodel.app import cli
from fccomodel.app.generated import colours
from fccomodel.language import lexer, statements, vocabulary

MODELS = sorted((ROOT / "examples").glob("*.fcco"))
OF_TOKENS = {"COMMENT": "comment", "STRING": "string", "NUMBER": "number", "FIELD": "column"}


def scanned(text: str, rules: list[tuple[str, str]]) -> dict[int, tuple[int, str]]:
    """What an engine of TextMate grammars makes of a text: at each place the first match, the earliest one."""
    found, at = {}, 0
    patterns = [(kind, re.compile(pattern)) for kind, pattern in rules]
    while at < len(text):
        matches = [(match.start(), k, match, kind) for k, (kind, p) in enumerate(patterns) if (match := p.search(text, at))]
        if not matches:
            break
        start, _, match, kind = min(matches, key=lambda one: one[:2])
        found[start] = match.end(), kind
        at = match.end()
    return found


@pytest.mark.parametrize("path", MODELS[:3], ids=lambda path: path.stem)
def test_every_word_of_the_language_is_coloured(path: Path) -> None:
    text = path.read_text()
    found = scanned(text, [(rule.kind, rule.pattern) for rule in colours.rules()])
    for word in lexer.tokens(text):
        end, kind = found.get(word.start_pos, (0, ""))
        wanted = OF_TOKENS.get(word.type)
        if wanted:
            assert (end, kind) == (word.end_pos, wanted), word
        elif str(word) in statements.forms():
            assert kind == "statement", word
        elif word.type == "RED":
            assert kind == "reduction", word


def test_the_words_are_those_of_the_registries() -> None:
    rules = {rule.kind: rule.pattern for rule in colours.rules()}
    for word in lexer.grammar().words:
        text = f"{word}[z in D]"
        assert any(re.match(rules[kind], text) for kind in ("statement", "word", "reduction")), word
    assert all(re.match(rules["function"], w) or w in lexer.grammar().reductions for w in vocabulary.names())
    assert not re.match(rules["function"], "hubert(w)") and not re.match(rules["statement"], "variance")


def test_pygments_has_the_same_rules() -> None:
    pytest.importorskip("pygments")
    from pygments.token import Comment, Keyword, Name

    from fccomodel.app.generated.pygments_lexer import FccoLexer

    text = "minimize E[z ~ D] huber(w - z.data, 1); # loss\n"
    tokens = list(FccoLexer().get_tokens(text))
    assert "".join(part for _, part in tokens) == text
    kinds = {part: kind for kind, part in tokens}
    assert kinds["minimize"] is Keyword and kinds["E"] is Name.Function and kinds["huber"] is Name.Builtin
    assert kinds[".data"] is Name.Attribute and kinds["w"] is Name and kinds["# loss"] is Comment.Single


def test_the_extension(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lsp", "--vscode", str(tmp_path / "extension")]) == 0
    assert "package.json" in capsys.readouterr().out
    package = json.loads((tmp_path / "extension" / "package.json").read_text())
    (grammar,) = package["contributes"]["grammars"]
    written = json.loads((tmp_path / "extension" / grammar["path"]).read_text())
    assert written["scopeName"] == grammar["scopeName"]
    assert len(written["patterns"]) == len(colours.rules())
    assert (tmp_path / "extension" / package["main"]).exists()
