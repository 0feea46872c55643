"""Pieces of pages: what a registry says of a concept, as Markdown and HTML."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from fccomodel.app.shown.cards import EXAMPLE, Card

Pairs = Iterable[tuple[str, str]]


def text(words: str) -> str:
    """Words in which nothing is markup but what stands between backticks."""
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(" ".join(str(words).split()), quote=False))


def paragraph(words: str) -> str:
    return f"<p>{text(words)}</p>"


def heading(title: str, name: str, level: int = 2) -> str:
    """A heading of code, whose anchor is the concept's name."""
    return f"{'#' * level} `{title}` {{ #{name} }}"


def fenced(code: str, language: str = "text") -> str:
    fence = "````" if "```" in code else "```"
    return f"{fence} {language}\n{code.rstrip()}\n{fence}"


def properties(pairs: Pairs) -> str:
    """Names and what they mean, a row each; a name that is empty goes on with the one before."""
    merged: list[tuple[str, list[str]]] = []
    for name, meaning in pairs:
        if name or not merged:
            merged.append((name, [meaning]))
        else:
            merged[-1][1].append(meaning)
    rows = (f"<tr><th>{text(name)}</th><td>{'<br>'.join(map(text, said))}</td></tr>" for name, said in merged)
    return f'<div class="card"><table>{"".join(rows)}</table></div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of words."""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{''.join(f'<th>{text(name)}</th>' for name in head)}</tr></thead><tbody>{body}</tbody></table>"


def card(one: Card, name: str, level: int = 2) -> str:
    """A concept: what it is, its properties, its example."""
    entries = [(key, value) for key, value in one.entries if key != EXAMPLE]
    blocks = [heading(one.head, name, level)] + ([paragraph(one.meaning)] if one.meaning else []) + [properties(entries)]
    example = dict(one.entries).get(EXAMPLE)
    return "\n\n".join([*blocks, *([fenced(example.replace("; ", ";\n"), "fcco"), mathematics(example)] if example else [])])


def mathematics(model: str) -> str:
    """A model as mathematics."""
    from fccomodel import pipeline
    from fccomodel.app.shown.page import mathematics as rows
    from fccomodel.core.source import Source

    problem = pipeline.compile_model(Source(text=model, name="example")).problem
    return aligned(rows(problem))


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells of MathML, in their columns."""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="aligned"><table>{body}</table></div>'


def source(function: Any) -> str:
    """A function as it is written, its docstring included."""
    return fenced(inspect.cleandoc("\n" + inspect.getsource(function)), "python")


def docstring(thing: Any) -> str:
    """What a docstring says: its first sentences as words, lists and examples as they stand."""
    told = inspect.cleandoc(thing.__doc__ or "")
    first, _, rest = told.partition("\n\n")
    return "\n\n".join([paragraph(first), *([fenced(rest)] if rest.strip() else [])])


def folded(summary: str, body: str, *, opened: bool = False) -> str:
    """A note that unfolds."""
    inside = "\n".join(f"    {line}".rstrip() for line in body.splitlines())
    return f'{"???+" if opened else "???"} example "{summary}"\n\n{inside}'


def page(*blocks: str) -> str:
    return "\n\n".join(blocks) + "\n"
