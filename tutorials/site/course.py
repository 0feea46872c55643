"""The sessions of the course as pages: cells of text as they are, cells of code with what they print, the answers folded.

What cells print, and their pictures, are kept beside this file, ``shown/NAME.json``; ``python tutorials/site/course.py
[NAME ...]`` runs the sessions again. A test says when their code has changed since.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHOWN = HERE / "shown"
CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
#: of a picture's coordinates, beyond a tenth of a point; scales are below 1
DIGITS = re.compile(r"(?<=[1-9]\.\d)\d+|(?<=\d\d\.\d)\d+")
ASKED = re.compile(r'check\("([\d.]+)"')


def write(sessions: Path, to: Path) -> list[dict[str, str] | str]:
    """A page for each session; their part of the navigation."""
    given = answers(sessions / "answers.py")
    nav: list[dict[str, str] | str] = ["tutorials/course/README.md"]
    for path in sorted(sessions.glob("[0-9]*.py")):
        text = page(path, given)
        (to / f"{path.stem}.md").write_text(text, encoding="utf-8")
        title = re.search(r"^# (.*)", text, re.MULTILINE)
        nav.append({title[1] if title else path.stem: f"tutorials/course/{path.stem}.md"})
    return nav


def page(path: Path, given: dict[str, str]) -> str:
    """A session as Markdown."""
    shown = json.loads((SHOWN / f"{path.stem}.json").read_text(encoding="utf-8"))["cells"]
    blocks = [_text(body) if kind else _code(body, shown.pop(0), given) for kind, body in cells(path)]
    return "\n\n".join([*blocks, f"[This session as a notebook kept as text]({path.name})"]) + "\n"


def cells(path: Path) -> list[tuple[str, str]]:
    """The cells of a session: their kind, "" of code, and their text."""
    parts = CELL.split(path.read_text(encoding="utf-8"))[1:]
    return [(kind.strip(), body.strip()) for kind, body in zip(parts[::2], parts[1::2], strict=True)]


def _text(body: str) -> str:
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.splitlines())


def _code(body: str, shown: dict[str, str], given: dict[str, str]) -> str:
    """A cell of code, what it prints, its picture, and the answers to what it asks."""
    from markup import fenced

    asked = [name for name in ASKED.findall(body) if name in given]
    folded = [f'??? success "Answer {name}"\n\n' + _indented(_fenced(given[name])) for name in asked]
    printed = [fenced(shown["printed"])] if "printed" in shown and not asked else []
    picture = [f'<div class="picture">{shown["picture"].replace(chr(10), " ")}</div>'] if "picture" in shown else []
    return "\n\n".join([_fenced(body), *printed, *picture, *folded])


def code_hash(path: Path) -> str:
    """Of the code of a session, which what is shown was made by."""
    return hashlib.sha256("\n".join(body for kind, body in cells(path) if kind == "").encode()).hexdigest()


def run(path: Path) -> None:
    """Runs a session where it is, and keeps what each cell of code prints, and its ``picture``."""
    import matplotlib

    from fccomodel.app.shown.page import svg

    matplotlib.use("agg")
    os.chdir(path.parent)
    sys.path[:0] = [str(path.parent), str(ROOT)]
    names: dict[str, Any] = {"__name__": "__main__"}
    kept: list[dict[str, str]] = []
    for body in (body for kind, body in cells(path) if kind == ""):
        before, out = names.get("picture"), io.StringIO()
        with redirect_stdout(out):
            exec(compile(body, str(path), "exec"), names)
        printed = "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())
        kept.append({"printed": printed} if printed else {})
        if names.get("picture") is not before:
            kept[-1]["picture"] = DIGITS.sub("", svg(names["picture"]))
    SHOWN.mkdir(exist_ok=True)
    record = json.dumps({"code": code_hash(path), "cells": kept}, indent=1, ensure_ascii=False)
    (SHOWN / f"{path.stem}.json").write_text(record + "\n", encoding="utf-8")


def _fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def answers(path: Path) -> dict[str, str]:
    """The answers with their comments, as they are written, by the numbers of the exercises."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    table = next(node.value for node in ast.parse(source).body if isinstance(node, ast.Assign))
    assert isinstance(table, ast.Dict)
    found, start = {}, table.lineno
    for key, value in zip(table.keys, table.values, strict=True):
        assert isinstance(key, ast.Constant)
        before = [line.strip() for line in lines[start : key.lineno - 1]]
        found[str(key.value)] = "\n".join([*before, ast.get_source_segment(source, value) or ""])
        start = value.end_lineno or start
    return found


if __name__ == "__main__":
    sessions = sorted((ROOT / "tutorials" / "course").glob("[0-9]*.py"))
    wanted = [path for path in sessions if path.stem in sys.argv[1:] or not sys.argv[1:]]
    if len(wanted) == 1:
        run(wanted[0])
    else:
        for one in wanted:  # each in a process of its own
            subprocess.run([sys.executable, __file__, one.stem], check=True)
