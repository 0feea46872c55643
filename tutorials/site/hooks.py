"""What mkdocs does besides: formulas as MathML, which browsers show without a script or a network, and models in colours."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import highlighting
from latex2mathml.converter import convert

#: What the extension ``arithmatex`` makes of $...$ and $$...$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

highlighting.register()


def on_page_content(html: str, **_: Any) -> str:
    """Formulas typeset."""
    return FORMULA.sub(_typeset, html)


def _typeset(found: re.Match[str]) -> str:
    block = found[1] == "div"
    formula = convert(" ".join(unescape(found[2]).split()), display="block" if block else "inline")
    return f'<div class="formula">{formula}</div>' if block else formula
