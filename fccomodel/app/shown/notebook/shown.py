"""Objects that notebooks show in several formats."""

from __future__ import annotations

from collections.abc import Container
from typing import Any


class Shown:
    """An object that notebooks show as text, as HTML, and as LaTeX if it is mathematics.

    A format whose method returns None is left out.
    """

    def _repr_mimebundle_(
        self: Any, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """The object's text for each MIME type; ``include`` and ``exclude`` are such types."""
        formats = {"text/plain": self.__repr__, "text/html": self._repr_html_}
        if hasattr(self, "_repr_latex_"):
            formats["text/latex"] = self._repr_latex_
        texts = {}
        for mime_type, write in formats.items():
            if include and mime_type not in include or exclude and mime_type in exclude:
                continue
            text = write()
            if text is not None:
                texts[mime_type] = text
        return texts
