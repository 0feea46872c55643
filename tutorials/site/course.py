"""The sessions of the course as pages: cells of text as they are, cells of code as code, the answers folded."""

from __future__ import annotations

import ast
import re
from pathlib import Path

CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
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
    parts = CELL.split(path.read_text(encoding="utf-8"))[1:]
    blocks = [_cell(kind, body, given) for kind, body in zip(parts[::2], parts[1::2], strict=True)]
    return "\n\n".join([*blocks, f"[This session as a notebook kept as text]({path.name})"]) + "\n"


def _cell(kind: str, body: str, given: dict[str, str]) -> str:
    if "[markdown]" in kind:
        return "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines())
    asked = [name for name in ASKED.findall(body) if name in given]
    folded = [f'??? success "Answer {name}"\n\n' + _indented(_fenced(given[name])) for name in asked]
    return "\n\n".join([_fenced(body.strip()), *folded])


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
