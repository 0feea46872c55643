"""Progress while a solver runs: a live panel on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fccomodel.app.shown.display._layout import duration, number, rate, residual

if TYPE_CHECKING:
    from fccomodel.execution.run import Progress

News = TypeVar("News")
Callback = Callable[[News], None]


@contextmanager
def watched(
    console: Console, panel: Callable[[News, float], RenderableType], line: Callback[News], *, quiet: bool
) -> Iterator[Callback[News] | None]:
    """A callback for news of a run.

    panel   shows the news and the seconds since the start, live on a terminal
    line    prints the news elsewhere
    quiet   no callback: None
    """
    if quiet:
        yield None
    elif console.is_terminal:
        began = time.monotonic()
        with Live(console=console, refresh_per_second=8, transient=True) as live:
            yield lambda news: live.update(panel(news, time.monotonic() - began))
    else:
        yield line


def progress(console: Console, *, quiet: bool = False) -> AbstractContextManager[Callback[Progress] | None]:
    """A callback for a running solver; None if ``quiet``.

    On a terminal it shows a live panel, elsewhere it prints a line now and then.
    """
    return watched(console, _panel, _Lines(console), quiet=quiet)


@contextmanager
def rows_so_far(console: Console, *, quiet: bool = False) -> Iterator[Callable[[str, int, int | None], None]]:
    """A callback that shows a bar of rows read or written, on a terminal.

    Its arguments are a description, the number of rows so far, and the number of all rows (None if
    unknown).
    """
    if quiet or not console.is_terminal:
        yield lambda what, done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        bar = bars.add_task("reading", total=None)
        yield lambda what, done, total: bars.update(bar, description=what, completed=done, total=total)


def _panel(now: Progress, elapsed: float) -> RenderableType:
    """A bar with the time, and the figures under it."""
    left = now.seconds_left
    remaining = ""
    if left is not None:
        remaining = f"{duration(left)} left"
    if left is not None and elapsed + left > 0:
        bar = ProgressBar(total=1.0, completed=elapsed / (elapsed + left), width=24, pulse=False)
    else:
        bar = ProgressBar(total=None, completed=0.0, width=24, pulse=True)
    head = Table.grid(padding=(0, 2), expand=False)
    head.add_row(Text(stage(now), style="bold"), bar, duration(elapsed), Text(remaining, style="dim"))
    figures = Text("  ").join(_figures(now))
    rows: list[RenderableType] = [head, figures]
    if now.message:
        rows.append(Text(now.message, style="dim", overflow="ellipsis", no_wrap=True))
    return Group(*rows)


def stage(now: Progress) -> str:
    """The present part of a run: a stage of steps, or the finish."""
    if now.passes is None:
        return f"stage {now.stage}"
    return f"finish, {now.passes:,} passes"


def _figures(now: Progress) -> list[Text]:
    """The known figures of a step, each with its name."""
    shown = [("step", f"{now.iteration:,}"), ("objective", number(now.objective))]
    if now.violation is not None:
        shown.append(("violation", residual(now.violation)))
    if now.kkt is not None and now.kkt_error:
        shown.append(("KKT", f"{residual(now.kkt)} ± {residual(now.kkt_error)}"))
    elif now.kkt is not None:
        shown.append(("KKT", residual(now.kkt)))
    if now.steps_per_second:
        shown.append(("steps/s", rate(now.steps_per_second)))
    return [Text.assemble((f"{name} ", "dim"), value) for name, value in shown]


class _Lines:
    """Progress without a terminal: lines after about 2, 6, 14, ... seconds, then once a minute."""

    def __init__(self, console: Console):
        self.console = console
        self.began = time.monotonic()
        self.due = 2.0
        self.gap = 2.0
        self.last_message = ""

    def __call__(self, now: Progress) -> None:
        elapsed = time.monotonic() - self.began
        if now.message != self.last_message:
            self.last_message = now.message
            self.console.print(now.message, markup=False, highlight=False, soft_wrap=True)
        if elapsed < self.due:
            return
        self.gap = min(2 * self.gap, 60.0)
        self.due = elapsed + self.gap
        if now.seconds_left is not None:
            left = f"  {duration(now.seconds_left)} left"
        else:
            left = ""
        figures = "  ".join(text.plain for text in _figures(now))
        self.console.print(
            f"{stage(now)}  {duration(elapsed)}  {figures}{left}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
