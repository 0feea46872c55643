"""Every statement of the language: what its record says, and its way through both notations and back."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from support.places import ROOT

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


# ---------------------------------------------------------------------------------- a new statement
HALF = '''
"""``half h = 4;``: half of a number."""

from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.language import syntax
from fccomodel.language.formulas import declarations, expressions
from fccomodel.language.formulas.context import ConstSymbol
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import declared


@dataclass(frozen=True, kw_only=True)
class Half(syntax.Statement):
    name: str
    value: syntax.Expr


def check(ctx, node):
    span = declarations.name_span(ctx, node, node.name)
    value = expressions.number(ctx, declarations.HERE, node.value, "a half")
    assert isinstance(value, ir.Const)
    ctx.declare(ConstSymbol(name=node.name, what="a half", span=span, value=value.value / 2))


def write(writer, node):
    writer("half ", node.name)
    writer.after(" = ", node.value)


def python(writer, node, doc):
    return writer.assigned(node.name, writer.fc("const"), [f"{writer.formula(node.value)} / 2"], doc)


half = StatementKind(
    name="half",
    order=85,
    node=Half,
    forms={"half": "half h = 4;"},
    elsewhere={"halve": "half"},
    token="HALF",
    follows="NAME",
    rules={"half": lambda c, at: Half(name=declared(c[0]), value=c[1], span=at)},
    check=check,
    write=write,
    python=python,
)
'''
SESSION = """
import json
import fccomodel as fc
from fccomodel.core.source import Source
from fccomodel.language import statements
from fccomodel.language.format import format
from fccomodel.language.parse import parse

text = "half   h=4 ;# a comment\\nvar x in box(0, 5);\\nminimize (x - h)^2;"


def refusal(text):
    try:
        fc.compile(text)
    except fc.FccoError as error:
        return [[d.code, d.reason, d.fix] for d in error.diagnostics]


print(json.dumps({
    "text": format(Source(text=text)),
    "again": statements.text(parse(Source(text=text)).statements[0]),
    "python": fc.Model.parse(text).to_python(),
    "solution": fc.compile(text).bind().solve(budget="100it").variables["x"].tolist(),
    "misspelt": refusal(text.replace("half", "halff")),
    "elsewhere": refusal(text.replace("half", "halve")),
    "unended": refusal("half h = 4\\n" + text.replace("half   h", "half k")),
    "unfinished": refusal("half h 4;"),
    "reserved": refusal("var half; minimize half^2;"),
}))
"""


@pytest.fixture(scope="module")
def with_half(tmp_path_factory):
    """The session's answers where the language has one statement more: two files."""
    home = tmp_path_factory.mktemp("half")
    for folder in ("fccomodel", "grammar"):
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("__pycache__"))
    grammar = home / "grammar" / "fcco.lark"
    text = grammar.read_text().replace("?statement: model |", "?statement: model | half |")
    grammar.write_text(text.replace("\nconst: ", '\nhalf:       "half" NAME "=" expr\nconst: '))
    (home / "fccomodel" / "language" / "statements" / "half.py").write_text(HALF)
    environment = os.environ | {"PYTHONPATH": str(home), "XDG_CACHE_HOME": str(home)}
    run = subprocess.run(
        [sys.executable, "-c", SESSION],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


def test_a_new_statement_is_two_files(with_half):
    assert with_half["text"].startswith("half h = 4;  # a comment\nvar x in box(0, 5);\n")
    assert with_half["again"] == "half h = 4;"
    assert "m.h = fc.const(4 / 2, doc='a comment')" in with_half["python"]
    assert with_half["solution"] == pytest.approx(2, abs=1e-2)


def test_errors_know_a_new_statement(with_half):
    (misspelt,) = with_half["misspelt"]
    assert misspelt[0] == "F0106" and "const, half, net" in misspelt[1]
    for answer in ("misspelt", "elsewhere"):
        assert with_half[answer][0][2] == "Did you mean `half`? It is written like `half h = 4;`"
    assert [(code, fix) for code, _, fix in with_half["unended"]] == [("F0105", "write `4;`")]
    assert "`half h = 4;`" in str(with_half["unfinished"])
    assert "half" in str(with_half["reserved"])
