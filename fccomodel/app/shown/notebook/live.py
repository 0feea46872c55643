"""Progress in a notebook: a line of figures, and small curves that change in place."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fccomodel.app.shown import display
from fccomodel.app.shown.notebook import html

if TYPE_CHECKING:
    from fccomodel.execution.run import Progress

#: Time between two pictures, in seconds.
PICTURE_SECONDS = 0.5
#: Largest number of points of a curve.
CURVE_POINTS = 200
#: Width of a picture, in pixels.
PICTURE_WIDTH = 220
#: Height of a picture, in pixels.
PICTURE_HEIGHT = 64
#: Smallest value on a logarithmic axis.
SMALLEST_DRAWN = 1e-12


@contextmanager
def progress() -> Iterator[Callable[[Progress], None] | None]:
    """A callback that shows a run in a notebook and removes the picture at the end; None elsewhere."""
    show = _output()
    if show is None:
        yield None
        return
    watch = LivePicture(show)
    try:
        yield watch
    finally:
        if watch.shown:
            show("")


@contextmanager
def shown(
    progress_of: Callable[[Progress], None] | None, *, verbose: bool = False
) -> Iterator[Callable[[Progress], None] | None]:
    """The callback of a run: the user's own, or one that shows the progress; None shows nothing.

    progress_of   the user's callback, or None
    verbose       whether to show the progress in the terminal; a notebook shows it anyway
    """
    if progress_of is not None:
        yield progress_of
    elif verbose and _output() is None:
        with display.progress(display.terminal(sys.stderr)) as in_terminal:
            yield in_terminal
    else:
        with progress() as in_notebook:
            yield in_notebook


def _output() -> Callable[[str], None] | None:
    """A function that shows HTML in the output of the present cell, in place of its earlier HTML.

    None outside of notebooks.
    """
    if "marimo" in sys.modules and sys.modules["marimo"].running_in_notebook():
        marimo = sys.modules["marimo"]
        return lambda text: marimo.output.replace(marimo.Html(text) if text else None)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not getattr(shell, "kernel", None):
        return None
    from IPython.display import HTML
    from IPython.display import display as put

    shown: list[Any] = []

    def show(text: str) -> None:
        """Show a text in the cell's output, in place of the one before."""
        if shown:
            shown[0].update(HTML(text))
        elif text:
            shown.append(put(HTML(text), display_id=True))

    return show


class LivePicture:
    """A callback that draws the progress of a run twice a second."""

    def __init__(self, show: Callable[[str], None], clock: Callable[[], float] = time.monotonic):
        self.show = show
        self.clock = clock
        self.began = clock()
        self.due = 0.0
        self.shown = False
        self.points: list[tuple[float, Progress]] = []

    def __call__(self, now: Progress) -> None:
        elapsed = self.clock() - self.began
        self.points.append((elapsed, now))
        if len(self.points) > 2 * CURVE_POINTS:
            self.points = self.points[::2] + self.points[-1:]
        if elapsed >= self.due:
            self.due, self.shown = elapsed + PICTURE_SECONDS, True
            self.show(picture(self.points))


def picture(points: Sequence[tuple[float, Progress]]) -> str:
    """The state of a run, and curves of objective, violation and KKT residual against seconds."""
    elapsed, now = points[-1]
    head = f"{display.stage(now)} · step {now.iteration:,} · {display.duration(elapsed)}"
    if now.seconds_left is not None:
        head += f", {display.duration(now.seconds_left)} left"
    parts = [f"<div>{html.text(head)}</div>"]
    objective = _finite([(t, p.objective) for t, p in points])
    if objective:
        parts.append(_curve("objective", objective, display.number, log=False))
    violation = _finite([(t, p.violation) for t, p in points])
    if any(value for _, value in violation):  # 0 throughout without constraints
        parts.append(_curve("violation", violation, display.residual, log=True))
    residual = _finite([(t, p.kkt) for t, p in points])
    if any(value for _, value in residual):
        parts.append(_curve("KKT residual", residual, display.residual, log=True))
    if now.message:
        parts.append(f"<div class=soft>{html.text(now.message)}</div>")
    return html.page("".join(parts))


def _finite(values: Sequence[tuple[float, float | None]]) -> list[tuple[float, float]]:
    """The points with a finite value."""
    return [(t, value) for t, value in values if value is not None and math.isfinite(value)]


def _curve(name: str, points: Sequence[tuple[float, float]], write: Callable[..., str], log: bool) -> str:
    """The curve of one quantity, with its name and last value; if ``log``, of the logarithm."""
    times = [t for t, _ in points]
    values = [value for _, value in points]
    if log:
        values = [math.log10(max(value, SMALLEST_DRAWN)) for value in values]
    duration = times[-1] - times[0] or 1
    span = max(values) - min(values) or 1
    x = [PICTURE_WIDTH * (t - times[0]) / duration for t in times]
    y = [4 + (PICTURE_HEIGHT - 8) * (max(values) - value) / span for value in values]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    value = html.text(write(points[-1][1]))
    return (
        f'<figure style="display:inline-block;margin:.3rem 1.2rem .3rem 0"><figcaption>{name} '
        f"<b>{value}</b></figcaption>"
        f'<svg width="{PICTURE_WIDTH}" height="{PICTURE_HEIGHT}" '
        f'viewBox="-3 0 {PICTURE_WIDTH + 6} {PICTURE_HEIGHT}" role="img" '
        f'aria-label="{name}">'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        f'<circle cx="{x[-1]:.1f}" cy="{y[-1]:.1f}" r="2.5" fill="currentColor"/></svg></figure>'
    )
