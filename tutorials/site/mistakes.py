"""Errors: every code with its rules, and what shows it of the golden texts: models, and worked examples with their mending."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from markup import fenced, folded, page, paragraph, table, text

from fccomodel.app.shown import codes
from fccomodel.core.diagnostics import Code


def stages(shown: Path) -> dict[str, tuple[str, str]]:
    """A page for each stage, by its name: title and text; the first lists all codes."""
    catalogue = codes.catalogue()
    pages: dict[str, tuple[str, str]] = {"index": ("Errors", _index(catalogue))}
    for digits, stage in codes.STAGES.items():
        own = {code: rules for code, rules in catalogue.items() if code.id[1:3] == digits}
        blocks = [block for code, rules in own.items() for block in _code(code, rules, shown)]
        title = stage[0].upper() + stage[1:]
        pages[f"F{digits}"] = (f"F{digits}.. {stage}", page(f"# {title}", *blocks))
    return pages


def _index(catalogue: dict[Code, list[str]]) -> str:
    about = (
        "Every error has a code, the place, the reason and a fix; several come at once. `fccomodel explain F0406` shows a code's "
        "rules at a shell."
    )
    rows = [(f'<a href="F{c.id[1:3]}.html#{c.id}">{c.id}</a>', text(c.topic), text(codes.STAGES[c.id[1:3]])) for c in catalogue]
    return page("# Errors", paragraph(about), table(("code", "topic", "stage"), rows))


def _code(code: Code, rules: list[str], shown: Path) -> Iterator[str]:
    yield f"## {code.id}: {code.topic} {{ #{code.id} }}"
    yield "<ul>" + "".join(f"<li>{text(rule)}</li>" for rule in rules) + "</ul>"
    shows = [(model.stem, _model(model)) for model in sorted(shown.glob(f"{code.id}_*.fcco"))]
    shows += [(example.stem, example.read_text(encoding="utf-8")) for example in sorted(shown.glob(f"{code.id}_*.md"))]
    for place, (name, told) in enumerate(shows):
        yield folded(name.partition("_")[2].replace("_", " "), told, opened=place == 0)


def _model(path: Path) -> str:
    """A model and what is said of it."""
    said = path.with_suffix(".txt").read_text(encoding="utf-8", errors="replace")
    return fenced(path.read_text(encoding="utf-8", errors="replace"), "fcco") + "\n\n" + fenced(said)
