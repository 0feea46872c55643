"""Texts that a notebook shows as they are printed, and pages that it shows as pages."""

from __future__ import annotations

from html import escape

#: Height of a page inside a notebook, in pixels.
PAGE_HEIGHT = 600


class Printed(str):
    """A text whose ``repr`` is the text itself, without quotes and ``\\n``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Page(str):
    """The HTML of a page. A notebook shows the page in a frame, a terminal its size."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<page of {len(self):,} characters: write it to a file, and open it in a browser>"

    def _repr_html_(self) -> str:
        """The page in a frame of its own."""
        style = f"width: 100%; height: {PAGE_HEIGHT}px; border: 0"
        return f'<iframe srcdoc="{escape(str(self))}" style="{style}"></iframe>'
