"""Figures that a notebook shows by themselves. Needs matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure as Plain


class Figure(Plain):
    """A matplotlib figure that a notebook shows as a picture, without ``%matplotlib inline``."""

    def _repr_png_(self) -> bytes:
        """The figure as PNG, for the front end of a notebook."""
        out = io.BytesIO()
        self.savefig(out, format="png")
        return out.getvalue()
