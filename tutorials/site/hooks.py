"""What mkdocs does besides: formulas as MathML, which browsers show without a script or a network, and models in colours."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import highlighting
from latex2mathml.converter import convert

#: What the extension ``arithmatex`` makes of $...$ and $$...$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

#: A program and the model that stands for it.
PAIR = re.compile(r"^```python\n(?:(?!^```).*\n)*```\n\n```fcco\n(?:(?!^```).*\n)*```$", re.MULTILINE)

highlighting.register()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Programs and models that follow one another stand side by side, over the width of the page."""
    beside, count = PAIR.subn(r'<div class="beside" markdown>\n\n\g<0>\n\n</div>', markdown)
    if count:
        page.meta["hide"] = ["navigation", "toc"]
    return beside


def on_page_content(html: str, **_: Any) -> str:
    """Formulas typeset; a command that the converter does not know would stand there as it is written."""
    return FORMULA.sub(_typeset, html)


def _typeset(found: re.Match[str]) -> str:
    block = found[1] == "div"
    formula = convert(" ".join(unescape(found[2]).split()), display="block" if block else "inline")
    if "\\" in formula:
        raise ValueError(f"this formula has a command that cannot be typeset: {found[2]}")
    return f'<div class="formula">{formula}</div>' if block else formula
