"""A model's text is text: in programs it never runs nor breaks them, on terminals it controls nothing;
and any name will do."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import io
import itertools
import json
import keyword
import re
import symtable
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.table import Table
from rich.text import Text
from support.emitted_models import CASES, HEAD, Case, made, table

import fccomodel
from fccomodel import pipeline
from fccomodel.app import cli
from fccomodel.app.shown import display
from fccomodel.core import quoting
from fccomodel.core.diagnostics import FccoError, render
from fccomodel.core.source import Source
from fccomodel.data.bind.errors.sizes import LABELS
from fccomodel.execution import run
from fccomodel.program import emit
from fccomodel.program.emit import sections
from fccomodel.program.lower import lower
from fccomodel.program.names import OF_ENVELOPES, Names, reserved

ATTACK = "exec(\"open('PWNED', 'w')\")"
ENDS = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if len(f"a{c}b".splitlines()) > 1)
#: what ends a comment, a string or a docstring, is a field of a format, or is the text of another definition
PIECES = [
    f'""";{ATTACK};"""', f"''';{ATTACK};'''", f'";{ATTACK};"', f"';{ATTACK};'", f"\x0b{ATTACK}\x0c{ATTACK}",
    "\\", '\\"', '"', '""', "{data} {0} {run} {} %s {{", f"\u2028{ATTACK}\u2029{ATTACK}\x85{ATTACK}\x1c{ATTACK}\x1d{ATTACK}\x1e",
    "\\N{BULLET} \\x \\u12",
    "\ud800\udfff", "\ufeff\u202e", "def noise(", "begin(w) spread(w)", "# \t #", "\x1b[31m\x07\x9b2J", '\\"""', "é ≤ 汉",
]  # fmt: skip
SECTIONS = [
    "net_and_more",
    "constraint_family",
    "risk_set",
    "simple_sets",
    "noise",
    "cvar_rows",
    "dro_kl",
    "affine_set",
]


# ------------------------------------------------------------------------------------- one function
def test_a_comment_is_one_line() -> None:
    assert {"\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"} <= set(ENDS)
    for text in [*PIECES, *ENDS, "".join(ENDS), "\0", "\ud800", "x" * 200]:
        for line in ("# " + quoting.comment(f"a{text}b{text}", 400), "x = 1  # " + quoting.comment(text)):
            assert len(line.splitlines()) == 1
            assert [type(n) for n in ast.parse(f"{line}\ny = 1".encode()).body][-1] is ast.Assign
    assert quoting.comment("x" * 200, 72) == "x" * 69 + "..."


def test_a_docstring_is_a_string() -> None:
    signs = ['"', "\\", "'", "\n", "{", "#", "\r", "\u2028", "\0", "\ud800", "a"]
    drawn = itertools.chain(
        itertools.product(signs[:3], repeat=6), itertools.product(signs, repeat=3), PIECES
    )
    for text in map("".join, drawn):
        found = ast.literal_eval(f'"""{quoting.docstring(text)}"""')
        assert found.replace("'", '"') == quoting.visible(text, "\n\t").replace("'", '"')


def test_a_literal_is_its_value() -> None:
    for value in [*PIECES, *ENDS, -1.5, None, {"a": (1, "\ud800")}, float("inf"), float("-inf")]:
        assert eval(quoting.literal(value), {"float": float}) == value  # noqa: S307  (what literal makes of a value)


def test_attributes_stay_apart() -> None:
    names = [*keyword.kwlist, "device", "net_s", "x", "__class__", "__debug__"]
    names += (
        [quoting.attribute(name) for name in names]
        + [f"{name}_" for name in names]
        + [f"_{name}" for name in names]
    )
    names = sorted(set(names))
    found = [quoting.attribute(name) for name in names]
    assert len(set(found)) == len(found) and not set(found) & quoting.ATTRIBUTES
    assert all(name.isidentifier() for name in found) and quoting.attribute("mu") == "mu"


# ---------------------------------------------------------------------------- through every section
def program(text: str, case: Case, name: str = "m.fcco", **options: Any) -> Any:
    """A case's program with another text."""
    compiled = pipeline.compile_model(Source(text=text, name=name))
    bound = pipeline.bind(compiled, pipeline.Binding(data=case.data(), params=case.params, nets=case.nets()))
    given = {key: (value, "test") for key, value in {"unverified": True, **case.options, **options}.items()}
    return emit.emit(
        lower(bound.problem, bound, pipeline.decide(pipeline.analyse(bound.problem, bound), given))
    )


def commented(text: str, remarks: list[str]) -> str:
    """The text with a comment in the place of each space, one remark after another."""
    found = itertools.cycle(remarks)
    return re.sub(r" (?!to\b)", lambda _: f"# {next(found)}\n", text)


def tree(text: str) -> str:
    """A program's syntax, strings' contents aside."""
    module = ast.parse(text.encode())
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(module)


def same(text: str, case: Case, remarks: list[str], name: str = "m.fcco", **options: Any) -> str:
    """A program that has the tree of its harmless twin."""
    hostile = program(commented(text, remarks), case, name, **options).text
    assert tree(hostile) == tree(program(commented(text, ["harmless"]), case, **options).text)
    assert ATTACK.split("(")[0] not in {
        n.id for n in ast.walk(ast.parse(hostile.encode())) if isinstance(n, ast.Name)
    }
    return hostile


@pytest.mark.parametrize("name", SECTIONS)
def test_comments_in_expressions(name: str) -> None:
    case = CASES[name]
    text = case.text.replace(f"model {name};", "")
    hostile = same(text, case, PIECES, name="".join(PIECES) + ".fcco")
    assert "PWNED" in hostile and hostile.encode()


@pytest.mark.parametrize("algorithm", ["nasa", "sox", "scgd"])
def test_every_writer_of_programs(algorithm: str) -> None:
    text = HEAD + "minimize log(E[z ~ D] exp(0.1 * dot(w, z.x))) + sumsq(w);"
    assert "PWNED" in same(text, Case(text=text), PIECES, name=f"{PIECES[0]}.fcco", algorithm=algorithm)


def test_each_text_at_the_head() -> None:
    text = (
        "param mu default 0.1; var w[3] >= -1; minimize sumsq(w - 1) + mu * norm1(w) + abs(w[1]); "
        "subject to c: sum(w) <= 1;"
    )
    compiled = pipeline.compile_model(Source(text=text))
    bound = pipeline.bind(compiled, pipeline.Binding())
    made = pipeline.decide(pipeline.analyse(bound.problem, bound))
    trees = set()
    for piece in ["harmless", *PIECES, *ENDS]:
        remark = "\n# " + piece.replace("\n", "").replace("\r", "")
        source = dataclasses.replace(compiled.source, text=text + remark)
        problem = dataclasses.replace(bound.problem, name=piece, source=source)
        planned = dataclasses.replace(made, summary=(*made.summary, piece))
        trees.add(tree(sections.header(lower(problem, bound, planned))))
    assert len(trees) == 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_ends_of_lines(end: str) -> None:
    text = f"var w;{end}minimize # a{end} (w - 1)^2{end} + abs(w);{end}"
    case = Case(text=text, data=dict)
    assert tree(program(text, case).text) == tree(program(text.replace(end, "\n"), case).text)


def test_labels_of_data() -> None:
    """Labels, sets of strings, columns' names of the binding, and sources' paths."""
    case = CASES["constraint_family"]

    def labelled(labels: list[str]) -> Case:
        return dataclasses.replace(
            case, data=lambda: {"D": table() | {"g": np.array(labels)[np.arange(60) % 3]}}
        )

    hostile, harmless = labelled(PIECES[:3]), labelled(["a", "b", "c"])
    assert tree(program(case.text, hostile).text) == tree(program(case.text, harmless).text)


def test_texts_of_options() -> None:
    for option, piece in itertools.product(
        ("precision", "sampling", "device", "algorithm", "budget"), PIECES[:4]
    ):
        with pytest.raises(FccoError):
            problem = fccomodel.compile("var w; minimize (w - 1)^2;").bind()
            problem.solve(**{option: piece})


PWNED = f'var m;\nminimize (m - 1)^2 + 2 * # """;{ATTACK};"""\n abs(m);\n'


def test_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Solved and emitted by the command line, from a file whose name is a program too."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / 'a""";open("PWNED","w");"""\n\x1b[31m.fcco'
    file.write_text(PWNED)
    assert cli.main(["solve", str(file), "--budget", "30it", "--out", "out"]) == 0
    assert cli.main(["emit", str(file), "-o", "solver.py", "--budget", "30it"]) == 0
    assert cli.main(["check", str(file)]) == 0
    exec(
        compile((tmp_path / "solver.py").read_bytes(), "solver.py", "exec", dont_inherit=True),
        {"__name__": "solver"},
    )  # noqa: S102
    assert not (tmp_path / "PWNED").exists()
    found = capsys.readouterr()
    assert "\x1b" not in found.out + found.err and "\\x1b[31m" in found.out


# -------------------------------------------------------------------------------------------- names
ERRORS = {
    name
    for name, found in vars(builtins).items()
    if isinstance(found, type) and issubclass(found, BaseException)
}
OWN = """net_s net_x _2 __ t1 t2 g1 g2 u1 y1 s_i all_i r_i i_2 G_print slope_y1 scores D_x constant INITIAL SEED Path
SOLVER Settings BlockSolver solve SimpleNamespace prepare evaluate main model__if c_y1 over_i step noise spread track
in_range data w w_prev torch part epochs device dtype waiting __class__ __dict__ len print max float"""
NAMES = list(dict.fromkeys([*keyword.kwlist, *keyword.softkwlist, *OWN.split(), *dir(builtins)]))


def declarable(template: str) -> list[str]:
    """The names that may stand for ``NAME``; the others are refused with an error of the model's."""
    kept = []
    for name in NAMES:
        try:
            fccomodel.compile(template.replace("NAME", name))
            kept.append(name)
        except FccoError as refused:
            assert all(
                d.code != "F0001" and d.code.startswith(("F01", "F02")) for d in refused.diagnostics
            ), name
    assert {"lambda", "class", "from", "None", "print", "t2"} <= set(kept)
    return kept


def solved(text: str, **given: Any) -> dict[str, np.ndarray]:
    """Where two steps of the program end."""
    compiled = pipeline.compile_model(Source(text=text))
    bound = pipeline.bind(compiled, pipeline.Binding(**given))
    made = pipeline.decide(pipeline.analyse(bound.problem, bound))
    return run.run(
        emit.emit(lower(bound.problem, bound, made)), bound, run.RunSettings(seed=1, iterations=2)
    ).variables


def twins(
    template: str, head: str = "", tail: str = "minimize sumsq(v_) + TERMS;", give: Any = None, size: int = 90
) -> None:
    """A model whose names are all the declarable ones ends where its twin with harmless names ends."""
    declare, term = template.split("|")
    names = declarable(f"{head} var v_[2]; {declare.replace('VALUE', '1')} {tail.replace('TERMS', term)}")
    names = [name for name in names if name not in ERRORS][:size]
    for batch in (names[k::5] for k in range(5)):
        ends = []
        for own in (batch, [f"harmless{k}" for k in range(len(batch))]):
            declared = " ".join(
                declare.replace("NAME", n).replace("VALUE", f"1.{k:03}") for k, n in enumerate(own)
            )
            terms = " + ".join(term.replace("NAME", n) for n in own)
            text = f"{head} var v_[2]; {declared} {tail.replace('TERMS', terms)}"
            found = solved(text, **(give(own) if give else {}))
            ends.append(np.concatenate([np.ravel(found[n]) for n in [*(n for n in own if n in found), "v_"]]))
        assert np.array_equal(*ends), batch


X = np.linspace(1, 2, 12)


def test_parameters_of_any_name() -> None:
    twins("param NAME default VALUE;|NAME * (v_[1] - NAME)^2")


def test_arrays_of_any_name() -> None:
    def given(names: list[str]) -> dict[str, Any]:
        return {"data": {n: np.array([k, k + 1.0]) for k, n in enumerate(names)}}

    twins("data NAME : real[2];|sumsq(v_ - NAME)", give=given)


def test_variables_of_any_name() -> None:
    twins("var NAME;|(NAME - v_[1])^2 + log1pexp(NAME)")


def test_definitions_of_any_name() -> None:
    twins("def NAME(a_) = VALUE * a_^2;|NAME(v_[1] - 2)", size=50)
    twins("let NAME = v_[1] - VALUE;|NAME^2", size=50)


def test_tables_and_columns_of_any_name() -> None:
    twins("data NAME : table(x: real);|(E[z ~ NAME] (v_[1] - z.x))^2", size=60,
          give=lambda names: {"data": {n: {"x": X + k} for k, n in enumerate(names)}})  # fmt: skip


def test_binders_of_any_name() -> None:
    for name in declarable("data D : table(x: real); var v_; minimize mean[NAME in D] (v_ - NAME.x)^2;"):
        assert name.isidentifier()
    body = (
        "mean[NAME in D] log(1 + E[j ~ D | j.x >= NAME.x] exp(v_ * j.x - NAME.x)) + (E[NAME ~ "
        "normal(1, 1)] (NAME - v_))^2"
    )
    for names in ("lambda print noise epochs len _2".split(), "r_i i i_2 net_s G_v_ track t2".split()):
        terms = " + ".join(body.replace("NAME", n) for n in names)
        text = f"data D : table(x: real); var v_; var w; minimize v_^2 + w^2 + {terms};"
        assert np.isfinite(solved(text, data={"D": {"x": X}})["v_"]).all()


def test_constraints_of_any_name() -> None:
    for name in ("lambda", "print", "None", "t2", "class"):
        text = f"var v_[2]; minimize sumsq(v_); subject to {name}: sum(v_) >= 1;"
        found = fccomodel.compile(text).bind().solve(budget="40it")
        assert list(found.constraints) == [name]


@pytest.mark.parametrize("name", SECTIONS)
def test_what_lines_call_is_reserved(name: str) -> None:
    """In functions with lines made from a model, each global name is the program's own: a local one
    cannot hide it."""
    text = made(name).program.text
    wanted = {"gradient", "evaluate", "blocks", "whole", "all_blocks", "constraint_values", "draw"}
    tables = [symtable.symtable(text, "solver.py", "exec")]
    for scope in tables:
        tables += scope.get_children()
    read = {s.get_name() for t in tables if t.get_name() in wanted for s in t.get_symbols() if s.is_global()}
    own = ("net_", *OF_ENVELOPES)
    assert read and not {n for n in read if not n.startswith(own)} - reserved()


def test_no_local_name_hides_an_envelope() -> None:
    """A column of the model may have the name of an envelope's function."""
    names = Names()
    assert [names.fresh("slope_y1"), names.fresh("envelope_y1")] == ["v_slope_y1", "v_envelope_y1"]


# ---------------------------------------------------------------------------------------- terminals
def test_a_console_shows_escape_codes() -> None:
    file, label = io.StringIO(), "\x1b[31m\x9b2Jlabel\u202e[/red]:bell:"
    grid = Table.grid()
    grid.add_column(max_width=10, overflow="fold")
    grid.add_row(Text(label))
    grid.add_row(label)
    console = display.terminal(file)
    for part in (label, Text(label), grid, display.section("how", [label]), display.title(label, [label])):
        console.print(part)
    shown = file.getvalue()
    assert "\x1b" not in shown and "\x9b" not in shown and "\u202e" not in shown
    assert shown.count("\\x1b[31m\\x9b2Jlabel\\u202e[/red]:bell:") >= 2
    assert "\x1b" not in display.to_text(grid)


def test_labels_on_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = {"x": X, "g": np.where(X > 1.5, "\x1b[31mred", "blue\x9b2J")}
    text = "set G; data D : table(x: real, g: G); var w; let r[k in G] = E[z ~ D | z.g == k] (w - z.x)^2;"
    text += "minimize sum[k in G] r[k];"
    result = fccomodel.compile(text).bind(data={"D": rows}).solve(budget="40it", show=["r"])
    assert "\\x1b[31mred" in str(result) and "\x1b" not in str(result) and "\x9b" not in str(result)
    assert "r[\x1b[31mred]" in result.values["r"], "results keep the labels"
    cli._output.print_json({"r": list(result.values["r"])})
    out = capsys.readouterr().out
    assert "\x9b" not in out and json.loads(out)["r"] == list(result.values["r"])


def test_messages_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    bad = "\x1b]0;title\x07"
    shown = render([LABELS.error(bad, reason=bad, fix=bad)], Source(text="var w;", name=f"{bad}.fcco"))
    assert shown.count("\\x1b]0;title\\x07") == 4 and "\x1b" not in shown
    assert cli.main(["check", f"{bad}.fcco"]) == 2
    err = capsys.readouterr().err
    assert "\\x1b]0" in err and "\x1b" not in err
    assert "\x1b" in render([LABELS.error("m")], colour=True), "colours are our own"


def test_data_of_a_program_are_its_own():
    text = """dim d; set G; data D : table(x: real[d], g: G); var w[d];
    minimize cvar(tail = 0.5)[k in G] (E[z ~ D | z.g == k] square(dot(w, z.x) - 1));"""
    rng = np.random.default_rng(0)
    problem = fccomodel.compile(text).bind(D={"x": rng.normal(size=(24, 2)), "g": np.arange(24) % 8})
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            problem.solve(algorithm="alexr", inner_batch=2, budget="3it", polish=False)
    finally:
        torch.set_warn_always(False)
