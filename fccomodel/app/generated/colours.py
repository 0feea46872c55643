"""How model files are coloured, in one list of rules out of the grammar and the registries.

Pygments, editors that read TextMate grammars, and the extension for VS Code take their rules from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fccomodel.core import files
from fccomodel.core.version import __version__
from fccomodel.language import lexer, statements, vocabulary

#: Terminals of the grammar whose patterns are rules of their own.
TERMINALS = {"COMMENT": "comment", "STRING": "string", "NUMBER": "number", "FIELD": "column"}
#: Terminals that are words with a pattern.
WORD_TERMINALS = ("SUBJECT", "START_AT", "FROZEN")
#: The types of columns.
TYPES = ("real", "int")
#: The TextMate scope of each kind of word.
SCOPES = {
    "comment": "comment.line.number-sign.fcco",
    "string": "string.quoted.double.fcco",
    "number": "constant.numeric.fcco",
    "column": "variable.other.member.fcco",
    "statement": "keyword.control.fcco",
    "word": "keyword.operator.word.fcco",
    "reduction": "support.function.reduction.fcco",
    "function": "support.function.fcco",
    "type": "storage.type.fcco",
    "operator": "keyword.operator.fcco",
}
#: Words that end where no letter, digit or underscore follows, and begin likewise.
WHOLE = r"(?<![A-Za-z0-9_])(?:{})(?![A-Za-z0-9_])"


@dataclass(frozen=True, kw_only=True)
class ColourRule:
    """A kind of word, and the pattern of its words, in the syntax that Python and Oniguruma share."""

    kind: str
    pattern: str


@cache
def rules() -> tuple[ColourRule, ...]:
    """The rules, in the order in which they are tried."""
    known = lexer.grammar()
    patterns = {t.name: t.pattern.to_regexp() for t in known.parser.terminals}
    beginning = set(statements.forms())
    reductions = known.reductions
    words = set(known.words) - beginning - reductions
    functions = vocabulary.names() - reductions
    begun = [patterns[name] for name in WORD_TERMINALS]
    return (
        *(ColourRule(kind=kind, pattern=patterns[name]) for name, kind in TERMINALS.items()),
        ColourRule(kind="statement", pattern=_any([*begun, *_quoted(beginning)])),
        ColourRule(kind="word", pattern=_any(_quoted(words))),
        ColourRule(kind="type", pattern=_any(TYPES)),
        ColourRule(kind="reduction", pattern=_reduction(reductions)),
        ColourRule(kind="function", pattern=_any(_quoted(functions))),
        ColourRule(kind="operator", pattern=r"[-+*/@^<>=!~|]+"),
    )


def _quoted(words: Iterable[str]) -> list[str]:
    """The words as patterns, in alphabetical order."""
    return [re.escape(word) for word in sorted(words)]


def _any(patterns: Iterable[str]) -> str:
    """The pattern of any of some words."""
    return WHOLE.format("|".join(patterns))


def _reduction(names: Iterable[str]) -> str:
    """The pattern of a reduction: before a bracket, or with an index as its subscript (``mean_i``)."""
    listed = "|".join(_quoted(names))
    return rf"(?<![A-Za-z0-9_])(?:{listed})(?=\s*[\[(]|_[A-Za-z])"


# ------------------------------------------------------------------------------------------ TextMate
def textmate() -> dict[str, Any]:
    """The grammar that editors of the TextMate family read."""
    patterns = [{"name": SCOPES[rule.kind], "match": rule.pattern} for rule in rules()]
    return {"name": "fccomodel", "scopeName": "source.fcco", "fileTypes": ["fcco"], "patterns": patterns}


# ------------------------------------------------------------------------------------------- VS Code
#: The program of the extension.
EXTENSION = """\
const { workspace } = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("fccomodel").get("command", "fccomodel");
  const server = { command, args: ["lsp"], transport: TransportKind.stdio };
  client = new LanguageClient("fccomodel", "fccomodel", server, { documentSelector: [{ language: "fcco" }] });
  return client.start();
};

exports.deactivate = () => client && client.stop();
"""
#: What the folder of the extension says about itself.
README = """\
# fccomodel for VS Code

    npm install
    npx vsce package --allow-missing-repository
    code --install-extension fccomodel-*.vsix

The server is `fccomodel lsp`, of `pip install 'fccomodel[editor]'`. If `fccomodel` is not on the path, set
`fccomodel.command` in the settings.
"""


def extension() -> dict[str, str]:
    """The files of an extension for VS Code, by their names."""
    brackets = [["[", "]"], ["(", ")"], ["{", "}"]]
    layout = {
        "comments": {"lineComment": "#"},
        "brackets": brackets,
        "autoClosingPairs": [*brackets, ['"', '"']],
        "surroundingPairs": [*brackets, ['"', '"']],
    }
    return {
        "package.json": _json(_package()),
        "language-configuration.json": _json(layout),
        "syntaxes/fcco.tmLanguage.json": _json(textmate()),
        "extension.js": EXTENSION,
        "README.md": README,
    }


def _package() -> dict[str, Any]:
    """The description of the extension."""
    language = {
        "id": "fcco",
        "aliases": ["fccomodel"],
        "extensions": [".fcco"],
        "configuration": "./language-configuration.json",
    }
    grammar = {"language": "fcco", "scopeName": "source.fcco", "path": "./syntaxes/fcco.tmLanguage.json"}
    setting = {"type": "string", "default": "fccomodel", "description": "The command that starts the server."}
    return {
        "name": "fccomodel",
        "displayName": "fccomodel",
        "description": "Models of constrained stochastic compositional optimisation",
        "version": re.match(r"\d+\.\d+\.\d+", __version__)[0],  # type: ignore[index]
        "publisher": "fccomodel",
        "license": "Apache-2.0",
        "engines": {"vscode": "^1.75.0"},
        "categories": ["Programming Languages"],
        "main": "./extension.js",
        "activationEvents": ["onLanguage:fcco"],
        "contributes": {
            "languages": [language],
            "grammars": [grammar],
            "configuration": {"title": "fccomodel", "properties": {"fccomodel.command": setting}},
        },
        "dependencies": {"vscode-languageclient": "^9.0.1"},
        "devDependencies": {"@vscode/vsce": "^3.0.0"},
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def write_extension(folder: Path) -> list[Path]:
    """Write the extension into a folder, which may exist; returns the files."""
    paths = []
    for name, text in extension().items():
        path = folder / name
        files.make_folder(path.parent)
        files.write_text(path, text)
        paths.append(path)
    return paths
