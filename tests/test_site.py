"""The pages of the documentation site: what they say is what is so. The site itself is built by
``.ci/run``."""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile

import numpy as np
import pytest
from support.places import ROOT

import fccomodel

SITE = ROOT / "tutorials" / "site"
#: Models that are solved within a second.
QUICK = ("cox", "farmer", "newsvendor", "portfolio")


@pytest.fixture
def site(monkeypatch):
    monkeypatch.syspath_prepend(SITE)
    yield
    for path in SITE.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_every_model_of_the_gallery_has_an_answer(site):
    import gallery

    assert {path.stem for path in gallery.models(ROOT)} == {
        path.stem for path in gallery.ANSWERS.glob("*.txt")
    }
    for path in gallery.models(ROOT):
        report = (gallery.ANSWERS / f"{path.stem}.txt").read_text(encoding="utf-8")
        assert re.search(r"^ verdict +(Solved|Stationary)", report, re.MULTILINE), path.stem
        assert (gallery.ANSWERS / f"{path.stem}.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("name", QUICK)
def test_answers_of_the_gallery_are_those_of_their_notebooks(site, name, tmp_path, monkeypatch):
    import gallery
    import notebooks

    path = next(path for path in gallery.models(ROOT) if path.stem == name)
    report = (gallery.ANSWERS / f"{name}.txt").read_text(encoding="utf-8")
    stated = re.search(r"^ (?:mini|maxi)mize \w+ +(\S+)$", report, re.MULTILINE)
    assert stated is not None
    with zipfile.ZipFile(io.BytesIO(notebooks.archive(path, name, "about"))) as packed:
        packed.extractall(tmp_path)
    monkeypatch.chdir(tmp_path / name)
    cells = json.loads((tmp_path / name / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    scope: dict = {}
    for cell in cells[1:4]:
        exec(cell["source"], scope)
    assert scope["result"].objective == pytest.approx(float(stated[1]), rel=1e-4)


@pytest.mark.parametrize(
    "name, envelope, nearest",
    [
        ("abs", lambda u: np.where(abs(u) < 1, u**2 / 2, abs(u) - 0.5), lambda u: u - np.clip(u, -1, 1)),
        ("square", lambda u: u**2 / 3, lambda u: u / 3),
    ],
)
def test_graphs_of_functions_have_their_envelopes_and_proximal_maps(site, name, envelope, nearest):
    import graphs

    from fccomodel.library import atoms

    found = graphs.curves(atoms.get(name))
    assert found.envelope == pytest.approx(envelope(found.at), abs=1e-5)
    assert found.nearest == pytest.approx(nearest(found.at), abs=graphs.SPACING)
    assert graphs.curves(atoms.get("log")).envelope is None


def test_sessions_become_pages_with_folded_answers(site):
    import course

    folder = ROOT / "tutorials" / "course"
    given = course.answers(folder / "answers.py")
    for path in sorted(folder.glob("[0-9]*.py")):
        text = course.page(path, given)
        shown = json.loads((course.SHOWN / f"{path.stem}.json").read_text(encoding="utf-8"))
        assert shown["code"] == course.code_hash(path), (
            f"the code has changed: python tutorials/site/course.py {path.stem}"
        )
        assert text.startswith("# ") and text.count('??? success "Answer ') == 3 and "# %%" not in text


def test_every_error_code_has_a_page_and_every_example_of_one_is_shown(site):
    import mistakes

    shown = ROOT / "tests" / "golden" / "errors"
    pages = "\n".join(text for _, text in mistakes.stages(shown).values())
    assert pages.count("\n??? example") + pages.count("\n???+ example") == len(
        [*shown.glob("*.fcco"), *shown.glob("*.md")]
    )
    parts = dict(re.findall(r"^## (F\d{4}):.*?\n(.*?)(?=^## F|\Z)", pages, re.MULTILINE | re.DOTALL))
    assert parts.keys() == fccomodel.app.registry.codes().keys()
    assert [
        code for code, text in parts.items() if "??? example" not in text and "???+ example" not in text
    ] == []


def test_the_grammar_is_shown_with_statements_of_the_examples(site):
    import interface

    text = interface.grammar()
    for word in ("dim", "set", "data", "param", "var", "def", "let", "objective", "constraint", "options"):
        assert f'example "{word}"' in text, word


def test_properties_and_formulas_are_not_markup(site):
    import markup

    assert markup.text("|u| < 1 for `u*v` & all") == "|u| &lt; 1 for <code>u*v</code> &amp; all"
    assert "<td>a<br>b</td>" in markup.properties([("needs", "a"), ("", "b")])
    assert markup.fenced("```x```").startswith("````")


def test_formulas_that_cannot_be_typeset_are_refused(site):
    pytest.importorskip("latex2mathml")
    pytest.importorskip("markdown")
    import typesetting

    typeset = typesetting.Formulas().run
    written = '<span class="arithmatex">\\(%s\\)</span>'
    assert "<math" in typeset(written % "\\mathrm{arg\\,max}_v")
    with pytest.raises(ValueError, match="cannot be typeset"):
        typeset(written % "\\arg\\max_v")


def test_answers_of_the_gallery_name_files_from_the_checkout(site):
    import gallery

    for path in gallery.ANSWERS.glob("*.txt"):
        assert not re.search(r"[ (]/\w", path.read_text(encoding="utf-8")), path.stem
