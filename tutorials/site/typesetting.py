"""An extension of Markdown: formulas become MathML, which browsers show without a script or a network."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import highlighting
from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor

#: What the extension ``arithmatex`` makes of $...$ and $$...$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

#: After every other postprocessor: the page is whole then.
LAST = -100

highlighting.register()


class Formulas(Postprocessor):
    """Typesets the formulas of a page."""

    def run(self, text: str) -> str:
        """The page with MathML in the place of LaTeX.

        Raises:
            ValueError: a formula has a command that the converter does not know.
        """
        return FORMULA.sub(_typeset, text)


class Typesetting(Extension):
    """Adds ``Formulas`` to a Markdown converter."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (the name is Markdown's)
        """Register the postprocessor."""
        md.postprocessors.register(Formulas(md), "typesetting", LAST)


def makeExtension(**settings: Any) -> Typesetting:  # noqa: N802 (the name is Markdown's)
    """The extension, as Markdown asks for it by this module's name."""
    return Typesetting(**settings)


def _typeset(found: re.Match[str]) -> str:
    block = found[1] == "div"
    display = "block" if block else "inline"
    formula = convert(" ".join(unescape(found[2]).split()), display=display)
    if "\\" in formula:
        raise ValueError(f"this formula has a command that cannot be typeset: {found[2]}")
    return f'<div class="formula">{formula}</div>' if block else formula
