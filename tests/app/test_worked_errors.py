"""Worked examples of errors, as the reference shows them: what they print, and that the mended version
no longer does.

Pages are kept beside the models with errors, ``golden/errors/CODE_about.md``: files, commands, what
these print under that code, and below ``Mended:`` the files and the commands that change. One
without commands says how an error arises that no example can show. `pytest --update-golden` writes
what is printed.
"""

from __future__ import annotations

import linecache
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.places import GOLDEN

from fccomodel.app import cli, registry
from fccomodel.core.diagnostics import FccoError

FOLDER = GOLDEN / "errors"
PAGES = sorted(FOLDER.glob("*.md"))
BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^```text\n.*?^```$", re.MULTILINE | re.DOTALL)
MENDED = "\nMended:\n"


def run(page: str, commands: str, err: Callable[[], str]) -> tuple[str, str]:
    """The commands of a part of a page, or those of the part before, with its files: what they say is
    wrong."""
    for kind, name, text in BLOCK.findall(page):
        if name:
            Path(name).write_text(text)
        elif kind == "sh":
            commands = text
    err()
    for line in commands.splitlines():
        _run(line)
    return err().strip(), commands


def _run(line: str) -> None:
    program, *arguments = shlex.split(line)
    if program == "fccomodel":
        cli.main(arguments)
    elif program == "python":
        _python(Path(arguments[0]))
    else:
        subprocess.run(line, shell=True, check=True)


def _python(path: Path) -> None:
    linecache.clearcache()
    try:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    except FccoError as error:
        print(error, file=sys.stderr)


@pytest.mark.parametrize(
    "path", [page for page in PAGES if MENDED in page.read_text()], ids=lambda path: path.stem
)
def test_page(path, update_golden, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    code, page = path.stem.partition("_")[0], path.read_text()
    wrong, mended = page.split(MENDED)
    printed, commands = run(wrong, "", lambda: capsys.readouterr().err)
    printed = printed.replace(str(tmp_path), "/home/me")
    if update_golden:
        wrong = PRINTED.sub(lambda _: f"```text\n{printed}\n```", wrong)
        path.write_text(wrong + MENDED + mended)
    assert f"[{code}]" in printed
    assert f"```text\n{printed}\n```" in wrong
    assert "error[" not in run(mended, commands, lambda: capsys.readouterr().err)[0]


def test_every_code_is_shown_or_told():
    shown = {path.stem.partition("_")[0] for path in [*FOLDER.glob("*.fcco"), *PAGES]}
    assert set(registry.codes()) - shown == set(), (
        "a new code needs an example in tests/golden/errors: a model, or a page"
    )
    assert shown <= set(registry.codes())


@pytest.mark.parametrize(
    "path", [page for page in PAGES if MENDED not in page.read_text()], ids=lambda path: path.stem
)
def test_what_is_told_begins_with_words(path: Path):
    """How the error arises; a text that it prints may follow, no commands, which a test would have to run."""
    text = path.read_text()
    assert text[0].isalnum() or text[0] == "`"
    assert not text.startswith("```") and "```sh" not in text
