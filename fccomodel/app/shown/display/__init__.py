"""Text on a terminal, at 80 columns: progress while a solver runs, and its report."""

from rich.console import RenderableType

from fccomodel.app.shown.display._constraints import MOST_ROWS, TOLERANCE, kinds, violation
from fccomodel.app.shown.display._layout import (
    WIDTH,
    duration,
    number,
    page,
    rate,
    residual,
    section,
    terminal,
    title,
    to_html,
    to_text,
)
from fccomodel.app.shown.display._progress import progress, rows_so_far, stage, watched
from fccomodel.app.shown.display._report import evaluation, option_lines, outcome, report, unverified
from fccomodel.app.shown.display._variables import variable_lines

__all__ = [
    "MOST_ROWS",
    "TOLERANCE",
    "WIDTH",
    "RenderableType",
    "duration",
    "evaluation",
    "kinds",
    "number",
    "option_lines",
    "outcome",
    "page",
    "progress",
    "rate",
    "report",
    "residual",
    "rows_so_far",
    "section",
    "stage",
    "terminal",
    "title",
    "to_html",
    "to_text",
    "unverified",
    "variable_lines",
    "violation",
    "watched",
]
