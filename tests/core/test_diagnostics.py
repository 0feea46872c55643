"""How an error reads."""

import re

import pytest

from fccomodel.core import diagnostics
from fccomodel.core.diagnostics import Code, Diagnostic, FccoError, did_you_mean, nearest, registered, render
from fccomodel.core.source import Source, Span


@pytest.fixture(autouse=True)
def codes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Code]:
    """An empty register, so that these tests may have codes of their own."""
    empty: dict[str, Code] = {}
    monkeypatch.setattr(diagnostics, "_CODES", empty)
    return empty


def unexpected() -> Code:
    return diagnostics._CODES.get("F0101") or Code("F0101", "unexpected")


def shown(text: str, start: int, end: int, **rest: str) -> list[str]:
    d = unexpected().error(rest.pop("message", "here"), span=Span(start=start, end=end), **rest)
    return render([d], Source(text=text, name="m.fcco")).split("\n")


def test_the_whole_form() -> None:
    text = "model m;\n\n  gap[t in T]: abs(a - b) <= kappa;\n"
    at = text.index("abs")
    lines = shown(
        text,
        at,
        at + 3,
        message="needs a smooth argument",
        reason="abs has a kink.\na is unknown.",
        fix="smooth it\nor not",
    )
    assert lines == [
        "error[F0101] unexpected  m.fcco:3:16",
        "  3 |   gap[t in T]: abs(a - b) <= kappa;",
        "    |                ^^^ needs a smooth argument",
        "  abs has a kink.",
        "  a is unknown.",
        "  Fix: smooth it",
        "       or not",
    ]


def test_without_a_place() -> None:
    d = Code("F0116", "not text").error("no such thing", reason="because", fix="do")
    assert render([d]) == "error[F0116] not text\n  no such thing\n  because\n  Fix: do"
    assert render([d], Source(text="", name="m.fcco")).startswith("error[F0116] not text  m.fcco\n")


def test_several_and_severity() -> None:
    d = [unexpected().error("a"), unexpected().warning("b")]
    assert render(d) == "error[F0101] unexpected\n  a\n\nwarning[F0101] unexpected\n  b"


def test_colour_changes_no_text() -> None:
    source = Source(text="var x;")
    d = [unexpected().error("a", span=Span(start=4, end=5), reason="r", fix="f")]
    coloured = render(d, source, colour=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(d, source)


def test_tabs_and_wide_letters_keep_the_caret_in_place() -> None:
    lines = shown("\tx = y;\r\n", 1, 2)
    assert lines[1:3] == ["  1 |     x = y;", "    |     ^ here"]
    lines = shown("# 漢字 é e\u0301 |", 10, 11)
    assert lines[2].index("^") == len("  1 | # ") + 4 + 5


def test_what_cannot_be_printed_is_a_dot() -> None:
    assert shown("a\x07\x1b[31mb", 1, 2)[1] == "  1 | a··[31mb"


@pytest.mark.parametrize("at", [0, 50, 5_000, 9_990])
def test_a_long_line_is_cut_around_the_caret(at: int) -> None:
    text = "".join(chr(97 + k % 26) for k in range(10_000))
    lines = shown(text, at, at + 3)
    assert max(map(len, lines)) < 120
    column = lines[2].index("^")
    assert lines[1][column : column + 3] == text[at : at + 3]


def test_a_span_over_lines_is_marked_to_the_line_end() -> None:
    assert shown("ab\ncd", 1, 4)[1:3] == ["  1 | ab", "    |  ^ here"]
    assert shown("ab", 2, 3)[2] == "    |   ^ here"
    assert shown("", 0, 0)[1:3] == ["  1 |", "    | ^ here"]


def test_the_numbers_of_lines_move_the_bar() -> None:
    lines = shown("\n" * 99 + "x", 99, 100)
    assert lines[1].index("|") == lines[2].index("|") == 6


def test_long_reasons_wrap() -> None:
    lines = shown("x", 0, 1, reason="word " * 50, fix="word " * 50)
    assert max(map(len, lines)) <= 100
    assert lines[-1].startswith("       word")


def test_an_error_shows_itself() -> None:
    d = Diagnostic(code="F0101", topic="unexpected", message="m", span=Span(start=0, end=1))
    found = FccoError([d], Source(text="x", name="n"))
    assert found.diagnostics == (d,) and str(found).startswith("error[F0101] unexpected  n:1:1")


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("vra", ["var", "param"], "var"),
        ("Lam", ["lam", "alpha"], "lam"),
        ("centr", ["center", "centre"], "center"),
        ("x", ["y", "z"], None),
        ("sigmiod", ["sigmoid", "logsigmoid"], "sigmoid"),
        ("mu", ["mu"], None),
        ("kappa", [], None),
        ("log", ["exp", "log1p"], None),
        ("softplus", ["log1pexp"], None),
    ],
)
def test_did_you_mean(name: str, known: list[str], near: str | None) -> None:
    assert nearest(name, known) == near
    assert did_you_mean(name, known) == (f"Did you mean `{near}`?" if near else "")


def test_a_code_has_the_number_of_a_stage_and_stands_once() -> None:
    for wrong in ("F9999", "F1", "0101", "F01011"):
        with pytest.raises(AssertionError, match="no code"):
            Code(wrong, "anything")
    Code("F0101", "unexpected")
    with pytest.raises(AssertionError, match="F0101 is taken: unexpected"):
        Code("F0101", "anything")


def test_the_codes_are_sorted() -> None:
    made = [Code(name, "anything") for name in ("F0301", "F0101", "F0204")]
    assert registered() == (made[1], made[2], made[0])


@pytest.mark.parametrize("column", [0, 30, 70, 120, 299, 390])
@pytest.mark.parametrize(
    "message", ["short", "a message of many words, which goes into lines of its own " * 2]
)
def test_a_page_has_eighty_columns_and_the_caret_is_under_its_word(column, message):
    """Of a long line the part around the word is shown; of one with wide characters the columns count."""
    text = "".join(f"word{k:02} + " if k % 3 else "日本{k} + " for k in range(40)).ljust(400, "x")
    source, span = Source(text=f"\n\n{text}"), Span(start=column + 2, end=column + 7)
    given = Diagnostic(
        code="F0101", topic="t", message=message, span=span, reason="why " * 40, fix="so " * 40
    )
    lines = diagnostics.render([given], source).split("\n")
    assert max(sum(diagnostics._width(c) for c in line) for line in lines) <= 80
    shown, marked = lines[1], lines[2]
    before = next(
        k for k in range(len(shown)) if sum(map(diagnostics._width, shown[:k])) == marked.index("^")
    )
    assert shown[before:].startswith(text[column : column + 5]) and marked.count("^") >= 5
    assert " ".join(message.split()) in " ".join(
        " ".join(line.partition("| ")[2] for line in lines[2:]).replace("^", "").split()
    )
