"""Texts that a notebook shows as they are printed, and pages that it shows as pages."""

from __future__ import annotations

from html import escape
from pathlib import Path

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
        return f"<page of {len(self):,} characters: .save('page.html') writes it for a browser>"

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; returns its path."""
        Path(path).write_text(self, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        """The page in a frame of its own."""
        style = f"width: 100%; height: {PAGE_HEIGHT}px; border: 0"
        return f'<iframe srcdoc="{escape(str(self))}" style="{style}"></iframe>'
