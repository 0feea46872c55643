"""Numbers as text, and the parts of a page: a title, and sections with a name in the margin."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fccomodel.core.quoting import visible

#: Columns of a page.
WIDTH = 80


# ------------------------------------------------------------------------------------------ numbers
def number(value: float | None, digits: int = 6) -> str:
    """A number with six significant digits, or with ``digits``; ``-`` for None."""
    if value is None:
        return "-"
    if math.isfinite(value):
        return f"{value:.{digits}g}"
    return str(value)


def residual(value: float | None) -> str:
    """A number that should be zero, with two significant digits and a power of ten."""
    if value is None or math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    return f"{value:.1e}"


def rate(value: float | None) -> str:
    """Steps per second, to three digits."""
    if not value or not math.isfinite(value):
        return "-"
    if value >= 1000:
        return f"{value / 1000:.3g}k"
    return f"{value:.3g}"


def duration(seconds: float | None) -> str:
    """``42 s``, ``3:05``, ``1:02:03``; empty when unknown."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours}:{minutes:02}:{whole % 60:02}"
    return f"{minutes}:{whole % 60:02}"


# -------------------------------------------------------------------------------------------- pages
class Safe(Console):
    """A console that shows control characters in a user's text as escape codes."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render a text with its control characters made visible."""
        if isinstance(renderable, Text):
            plain = visible(renderable.plain, "\n\t")
            if plain != renderable.plain:
                renderable = renderable.blank_copy(plain)
        return super().render(renderable, options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a string with its control characters made visible."""
        return super().render_str(visible(text, "\n\t"), **options)


def terminal(file: TextIO) -> Console:
    """A console at most 80 columns wide, so that a report looks alike in a window and in a file."""
    console = Safe(
        file=file, highlight=False, soft_wrap=False, markup=False, emoji=False, force_jupyter=False
    )
    if console.is_terminal:
        console.width = min(console.width, WIDTH)
    else:
        console.width = WIDTH
    return console


def title(name: str, facts: list[str]) -> RenderableType:
    """A name on the left, facts on the right, two columns apart at least."""
    line = Table.grid(expand=True, padding=(0, 2))
    line.add_column(justify="left", no_wrap=True)
    line.add_column(justify="right")
    line.add_row(Text(name, style="bold"), Text(" · ".join(facts), style="dim"))
    return Padding(line, (0, 0, 1, 0))


def page(parts: list[RenderableType | None]) -> RenderableType:
    """The parts below each other, with a margin; parts that are None are left out."""
    return Padding(Group(*(part for part in parts if part is not None)), (1, 1, 0, 1))


def section(name: str, lines: list[Any]) -> RenderableType | None:
    """A name in the margin and lines beside it, with a mark if there are several; None without lines."""
    if not lines:
        return None
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=8, style="dim")
    table.add_column(width=1, style="dim")
    table.add_column(overflow="fold")
    mark = "·" if len(lines) > 1 else ""
    for place, line in enumerate(lines):
        table.add_row(name if place == 0 else "", mark, line if isinstance(line, Text) else Text(line))
    return table


def to_text(renderable: RenderableType, *, width: int = WIDTH) -> str:
    """A page as a string without colours."""
    plain: dict[str, Any] = {
        "color_system": None,
        "force_terminal": False,
        "force_jupyter": False,
        "legacy_windows": False,
    }
    console = Safe(file=io.StringIO(), width=width, markup=False, emoji=False, **plain)
    console.print(renderable)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def seconds(value: float) -> str:
    """A time: in seconds below a minute, else in minutes or hours."""
    if value < 60:
        return f"{value:.1f} s"
    return duration(value)


#: HTML around a page in a notebook: letters as wide as on a terminal, in the notebook's colours.
CODE = '<pre style="font-family:monospace;line-height:1.25;white-space:pre">{code}</pre>'


def to_html(renderable: RenderableType, *, width: int = WIDTH) -> str:
    """A page for a notebook: one ``<pre>`` with emphasis and colours."""
    plain: dict[str, Any] = {"force_terminal": True, "force_jupyter": False, "legacy_windows": False}
    console = Safe(
        file=io.StringIO(),
        width=width,
        record=True,
        markup=False,
        emoji=False,
        color_system="standard",
        **plain,
    )
    console.print(renderable)
    return console.export_html(inline_styles=True, code_format=CODE)
