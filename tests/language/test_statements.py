"""Every statement of the language: what its record says, and its way through both notations and back."""

from __future__ import annotations

import re

import pytest

import fccomodel as fc
from fccomodel.core.source import Source
from fccomodel.language import lexer, statements, syntax
from fccomodel.language.parse import parse
from fccomodel.language.rewriting import canonical
from fccomodel.language.statements import StatementKind

#: What the forms of statements use, each text by the names that it declares.
DECLARED = {
    "d": "dim d;",
    "K": "set K;",
    "D": "data D : table(x: real[d], y: {-1, 1}, g: K);",
    "N": "data N : table(x: real[d], y: {-1, 1}, g: K);",
    "P": "set P = {z in D | z.y == 1};",
    "w": "var w[d];",
    "left": "var left;",
    "right": "let right = left^2;",
    "loss": "def loss(z) = z.y * dot(w, z.x);",
    "gain": "def gain(z) = -loss(z);",
}
FORMS = [
    pytest.param(kind, form, id=word or kind.name)
    for kind in statements.all().values()
    for word, form in kind.forms.items()
]


def model_of(kind: StatementKind, form: str) -> str:
    """A model that holds a statement in its form."""
    node = lone(kind, form)
    own = set(statements.names_of(node))
    parts = {"name": [], "declarations": [], "problem": ["minimize sum[z in D] loss(z);"], "options": []}
    parts["declarations"] = [text for name, text in DECLARED.items() if name not in own]
    if kind.name == "objective":
        parts["problem"] = []
    if kind.name == "constraint":
        parts["problem"].append("subject to")
    parts[kind.group].append(form)
    return "\n".join(text for group in parts.values() for text in group)


def lone(kind: StatementKind, form: str) -> syntax.Statement:
    """The node of a statement by itself."""
    text = form if kind.name != "constraint" else f"subject to {form}"
    return parse(Source(text=text)).statements[-1]


def kinds_in(text: str) -> list[syntax.Node]:
    return [canonical(statement) for statement in parse(Source(text=text)).statements]


def in_python(code: str) -> fc.Model:
    scope: dict[str, object] = {}
    exec(compile(code, "<program>", "exec"), scope)
    return next(value for value in scope.values() if isinstance(value, fc.Model))


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_a_form_reads_as_its_statement(kind, form):
    node = lone(kind, form)
    assert type(node) is kind.node and statements.of(node) is kind
    assert node == lone(kind, statements.text(node))


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_a_form_begins_with_its_word(kind, form):
    words = [word for word in lexer.tokens(form) if word.type not in lexer.SPACE]
    if not kind.token:
        assert words[0].type not in statements.by_token()
        return
    assert words[0].type == kind.token
    assert not kind.follows or kind.follows == words[1].type


@pytest.mark.parametrize(("kind", "form"), [case for case in FORMS if case.values[0].name != "include"])
def test_there_and_back(kind, form):
    """A file, the model in Python that it is, the program that builds it, and the file again."""
    text = model_of(kind, form)
    model = fc.Model.parse(text)
    again = in_python(model.to_python())
    assert canonical(lone(kind, form)) in kinds_in(str(again))
    assert sorted(map(repr, kinds_in(text))) == sorted(map(repr, kinds_in(str(model))))
    assert kinds_in(str(model)) == kinds_in(str(again))
    for name in statements.names_of(lone(kind, form)):
        assert name in again


def test_an_included_file_comes_back_as_its_statements(tmp_path):
    (tmp_path / "file.fcco").write_text("model inner;\n" + "\n".join(DECLARED.values()))
    text = statements.all()["include"].forms["include"] + "\nminimize sum[z in D] loss(z);"
    (tmp_path / "outer.fcco").write_text(text)
    model = fc.Model.parse(tmp_path / "outer.fcco")
    assert kinds_in(str(in_python(model.to_python()))) == kinds_in(str(model))
    assert kinds_in(str(model))[:-1] == kinds_in("\n".join(DECLARED.values()))


def test_records_are_the_statements_of_the_grammar():
    rules = {rule.origin.name for rule in lexer.grammar().parser.rules}
    (alternatives,) = re.findall(r"^\?statement:((?:.|\n)+?)\n\n", lexer.grammar_text(), flags=re.M)
    assert {*re.findall(r"\w+", alternatives), "constraint"} == {*statements.all()}
    assert {*statements.rules()} <= rules
    terminals = {terminal.name for terminal in lexer.grammar().parser.terminals}
    kinds = statements.all().values()
    assert {kind.token for kind in kinds if kind.token} | statements.clauses() <= terminals


def test_a_statement_has_one_place_in_lists():
    kinds = statements.all().values()
    assert len({kind.order for kind in kinds}) == len(kinds)
    assert {*statements.elsewhere().values()} <= {*statements.forms()}
    assert not {*statements.elsewhere()} & {*statements.forms()}
