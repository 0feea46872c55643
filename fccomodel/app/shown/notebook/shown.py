"""What a notebook is given to choose from."""

from __future__ import annotations

from collections.abc import Container
from typing import Any


class Shown:
    """Objects that notebooks show: as text, as HTML, mathematics as LaTeX too; a form that is None is
    left out."""

    def _repr_mimebundle_(
        self: Any, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        """By type of content; ``include`` and ``exclude`` are types."""
        ways = {"text/plain": self.__repr__, "text/html": self._repr_html_}
        if hasattr(self, "_repr_latex_"):
            ways["text/latex"] = self._repr_latex_
        asked = [kind for kind in ways if (not include or kind in include) and kind not in (exclude or ())]
        made = {kind: ways[kind]() for kind in asked}
        return {kind: text for kind, text in made.items() if text is not None}
