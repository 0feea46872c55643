"""Progress in a notebook: a line of figures and small curves that change in place, without a library
of widgets."""

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

#: Seconds between two pictures.
PICTURE_SECONDS = 0.5
#: Largest number of points of a curve.
CURVE_POINTS = 200
#: Width of a picture, in pixels.
PICTURE_WIDTH = 220
#: Height of a picture, in pixels.
PICTURE_HEIGHT = 64
#: The least value on a logarithmic axis.
LEAST = 1e-12


@contextmanager
def progress() -> Iterator[Callable[[Progress], None] | None]:
    """A callback that shows a run where it runs in a notebook, and takes the picture away at its end;
    None elsewhere."""
    show = _output()
    if show is None:
        yield None
        return
    watch = Watch(show)
    try:
        yield watch
    finally:
        if watch.shown:
            show("")


def _output() -> Callable[[str], None] | None:
    """What puts HTML in the output of a notebook's cell, in place of what it put there before; None
    outside of notebooks."""
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


class Watch:
    """The course of a run, drawn twice a second."""

    def __init__(self, show: Callable[[str], None], clock: Callable[[], float] = time.monotonic):
        self.show, self.clock, self.began, self.due = show, clock, clock(), 0.0
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
    """Where a run is, and how it came there: objective, violation and KKT residual against seconds."""
    elapsed, now = points[-1]
    if now.seconds_left is not None:
        left = f", {display.duration(now.seconds_left)} left"
    else:
        left = ""
    head = f"{display.stage(now)} · step {now.iteration:,} · {display.duration(elapsed)}{left}"
    curves: list[tuple[str, Sequence[tuple[float, float | None]], Callable[..., str], bool]]
    curves = [("objective", [(t, p.objective) for t, p in points], display.number, False)]
    curves.append(("violation", [(t, p.violation) for t, p in points], display.residual, True))
    curves.append(("KKT residual", [(t, p.kkt) for t, p in points], display.residual, True))
    drawn = "".join(
        _curve(name, known, write, log)
        for name, values, write, log in curves
        if (known := _known(values, log))
    )
    if now.message:
        said = f"<div class=soft>{html.text(now.message)}</div>"
    else:
        said = ""
    return html.page(f"<div>{html.text(head)}</div>{drawn}{said}")


def _known(values: Sequence[tuple[float, float | None]], log: bool) -> list[tuple[float, float]]:
    """The points of a curve; none of a residual that was 0 all along, as the violation is where there
    are no constraints."""
    known = [(t, value) for t, value in values if value is not None and math.isfinite(value)]
    if not log or any(value for _, value in known):
        return known
    return []


def _curve(name: str, points: Sequence[tuple[float, float]], write: Callable[..., str], log: bool) -> str:
    """One quantity: its name, its last value, its course; of residuals the logarithm."""
    at = [(t, math.log10(max(value, LEAST)) if log else value) for t, value in points]
    (first, last), (low, high) = (at[0][0], at[-1][0]), (min(y for _, y in at), max(y for _, y in at))
    x = [PICTURE_WIDTH * (t - first) / (last - first or 1) for t, _ in at]
    y = [4 + (PICTURE_HEIGHT - 8) * (high - value) / (high - low or 1) for _, value in at]
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
