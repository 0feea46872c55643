"""The reference: a page for each kind of knowledge, written from its registry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import concepts
import interface
import mistakes
from markup import page
from methods import methods

#: Titles of pages, their names, and what writes them.
PAGES: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("Grammar", "grammar", interface.grammar),
    ("Functions of numbers", "functions", lambda: concepts.atoms("entry by entry")),
    ("Functions of vectors and matrices", "arrays", lambda: concepts.atoms("of whole vectors and matrices")),
    ("Operators", "operators", lambda: concepts.atoms("operators")),
    ("Reductions", "reductions", concepts.reductions),
    ("Simple sets", "sets", concepts.sets),
    ("Distributions", "distributions", concepts.distributions),
    ("Regularisers", "regularisers", concepts.regularisers),
    ("Reformulations", "reformulations", concepts.reformulations),
    ("Identities", "identities", concepts.identities),
    ("Data sources", "sources", concepts.sources),
    ("Options", "options", concepts.options),
    ("Assumptions", "assumptions", concepts.assumptions),
    ("Estimators", "estimators", concepts.estimators),
    ("Commands", "commands", interface.commands),
    ("Python", "python", interface.python),
)


def write(root: Path, to: Path) -> list[Any]:
    """All pages; their part of the navigation."""
    to.mkdir(parents=True, exist_ok=True)
    nav: list[Any] = ["reference/index.md"]
    for title, name, written in PAGES:
        (to / f"{name}.md").write_text(f"# {title}\n\n{written()}", encoding="utf-8")
        nav.append({title: f"reference/{name}.md"})
    nav.append({"Algorithms": _all(methods(), to / "algorithms")})
    nav.append({"Errors": _all(mistakes.stages(root / "tests" / "golden" / "errors"), to / "errors")})
    (to / "citing.md").write_text(interface.cite(), encoding="utf-8")
    (to / "index.md").write_text(page("# Reference", interface.START, _list(nav[1:])), encoding="utf-8")
    return nav


def _all(pages: dict[str, tuple[str, str]], to: Path) -> list[Any]:
    """Pages of one section, of which the first is its index, by their names: title and text."""
    to.mkdir(parents=True, exist_ok=True)
    for name, (_, text) in pages.items():
        (to / f"{name}.md").write_text(text, encoding="utf-8")
    place = f"reference/{to.name}"
    return [f"{place}/index.md", *({title: f"{place}/{name}.md"} for name, (title, _) in list(pages.items())[1:])]


def _list(nav: list[Any]) -> str:
    lines = []
    for item in nav:
        for title, place in item.items():
            first = place if isinstance(place, str) else place[0]
            lines.append(f"- [{title}]({first.removeprefix('reference/')})")
    return "\n".join(lines)
