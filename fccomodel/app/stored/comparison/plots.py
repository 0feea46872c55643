"""Curves of a comparison: distance of the objective, violation and KKT residual against oracle calls
and seconds."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.app.shown.plots import ALONG, PAPER, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fccomodel.app.stored.comparison.record import Comparison
    from fccomodel.app.stored.comparison.runs import JobOutcome

#: Points of a curve.
POINTS = 400
#: The least value that a logarithmic axis shows.
LEAST_SHOWN = 1e-12
#: The largest number of decades of a logarithmic axis.
DECADES = 8
#: Letters in a line of the caption.
CAPTION = 116
#: Line styles, by which algorithms differ in grey as well.
LINES = ("-", "--", "-.", ":")
#: Markers, by which algorithms differ in grey as well.
MARKS = "osD^vP*X"
Points = tuple[np.ndarray, np.ndarray]


def save(record: Comparison, folder: Path) -> None:
    """Write ``curves.png`` and ``curves.svg``."""
    picture = figure(record)
    for suffix in ("png", "svg"):
        picture.savefig(folder / f"curves.{suffix}", dpi=150)


def figure(record: Comparison) -> Figure:
    """A row of panels for each quantity, with a column for oracle calls and one for seconds.

    The caption explains the lines.
    """
    require()
    import matplotlib
    from matplotlib.ticker import EngFormatter

    from fccomodel.app.shown.pictures.figure import Figure

    heights = _heights(record)
    with matplotlib.rc_context(PAPER):
        picture = Figure(figsize=(9, 2.7 * len(heights) + 1.2), layout="constrained")
        grid = picture.subplots(len(heights), len(ALONG), squeeze=False, sharey="row", sharex="col")
        for row, (height, read) in zip(grid, heights.items(), strict=True):
            for axes, along in zip(row, ALONG, strict=True):
                _draw(axes, record, read, along)
            _scale(row, record, height)
        for axes, name in zip(grid[-1], ALONG.values(), strict=True):
            axes.set_xlabel(name)
        grid[-1][0].xaxis.set_major_formatter(EngFormatter(sep=""))
        lines, names = grid[0][0].get_legend_handles_labels()
        longest = max(map(len, names), default=1)
        picture.legend(
            lines,
            names,
            loc="outside upper center",
            ncols=max(1, min(len(names), 100 // (longest + 6))),
            frameon=False,
        )
        picture.supxlabel(_caption(record), fontsize=8, color="0.35")
    return picture


def _heights(record: Comparison) -> dict[str, Callable[[Mapping[str, Any]], float | None]]:
    """The quantities on the vertical axes, and how each is read from a stage's entry."""
    best, word = best_value(record)
    heights: dict[str, Callable[[Mapping[str, Any]], float | None]] = {
        f"|objective - {word}|": lambda entry: abs(entry["objective"] - best),
    }
    if record.constrained:
        heights["violation"] = lambda entry: max(entry["violation"], 0.0)
    return heights | {"KKT residual": lambda entry: entry.get("kkt")}


def best_value(record: Comparison) -> tuple[float, str]:
    """The optimal value if it is known, else the best of all runs within the tolerance; and its name."""
    if record.reference is not None:
        return record.reference, "optimum"
    stages = [entry for run in record.runs for entry in run.history]
    ends = [{"objective": run.objective, "violation": run.violation} for run in record.runs if not run.error]
    within = [entry["objective"] for entry in stages + ends if entry["violation"] <= record.tolerance]
    values = [value for value in within if np.isfinite(value)]
    if not values:
        return 0.0, "0"
    if record.sense == "minimize":
        return min(values), "best found"
    return max(values), "best found"


def _draw(
    axes: Axes, record: Comparison, read: Callable[[Mapping[str, Any]], float | None], along: str
) -> None:
    """Draw the median over the seeds, and a band from the least to the largest."""
    styles = itertools.cycle(zip(itertools.cycle(LINES), MARKS, strict=False))
    for number, (name, (line, mark)) in enumerate(zip(record.algorithms, styles, strict=False)):
        curves = [_curve([*run.history, _end(run)], read, along) for run in record.of(name)]
        curves = [(x, y) for x, y in curves if len(x)]
        if not curves:
            continue
        x = np.linspace(min(c[0][0] for c in curves), max(c[0][-1] for c in curves), POINTS)
        y = np.stack([_steps(x, *curve) for curve in curves])
        marks = sorted(set(np.linspace(0, POINTS - 1, 6, dtype=int)))
        look: dict[str, Any] = {
            "color": f"C{number % 10}",
            "linestyle": line,
            "marker": mark,
            "ms": 4,
            "markevery": marks,
        }
        axes.plot(x, np.median(y, axis=0), label=name, **look)
        axes.fill_between(x, y.min(0), y.max(0), color=look["color"], alpha=0.15, linewidth=0)


def _end(run: JobOutcome) -> dict[str, Any]:
    """The report's values for the answer, as the run's last entry."""
    return {name: getattr(run, name) for name in ("oracles", "seconds", "objective", "violation", "kkt")}


def _scale(row: Sequence[Axes], record: Comparison, height: str) -> None:
    """Set a logarithmic axis down to the least value above zero, over at most ``DECADES``.

    Zero is shown at the bottom.
    """
    axes = row[0]
    values = np.concatenate(
        [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines] or [np.zeros(0)]
    )
    above = values[values > 0]
    axes.set_ylabel(height)
    if not len(above):
        return
    top = float(above.max())
    least = max(float(above.min()), top * 10.0**-DECADES, LEAST_SHOWN)
    floor = 10.0 ** np.floor(np.log10(least))
    axes.set_yscale("symlog", linthresh=floor, linscale=0.3)
    axes.set_ylim(0, 2 * top)
    if height == "violation":
        for panel in row:
            panel.axhline(record.tolerance, color="0.5", linewidth=0.8, linestyle=(0, (1, 2)))


def _caption(record: Comparison) -> str:
    """The caption, which explains lines, bands and marks."""
    best, word = best_value(record)
    if len(record.seeds) > 1:
        lines = f"{record.model}: median of {len(record.seeds)} seeds, band from the least to the largest"
    else:
        lines = record.model
    parts = [lines, "each line is of the points that would be the answer then; marks only tell lines apart"]
    if record.constrained:
        within = f", violation <= {record.tolerance:g}"
    else:
        within = ""
    phrases = {
        "optimum": f"optimum: {best:.6g}, as given",
        "best found": f"best found: {best:.6g}, of all runs{within}",
    }
    if word in phrases:
        parts.append(phrases[word])
    parts.append("KKT residual: as the run estimates it by its own gradients, at the end the report's")
    if record.constrained:
        parts.append(f"dotted: the violation {record.tolerance:g} that counts as none")
    return textwrap.fill("; ".join(parts) + ".", CAPTION)


def _curve(
    history: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], float | None], along: str
) -> Points:
    """The finite points of one run's curve."""
    pairs = [(entry.get(along) or 0.0, value) for entry in history if (value := read(entry)) is not None]
    points = np.array(pairs, dtype=float).reshape(-1, 2)
    points = points[np.isfinite(points).all(axis=1)]
    return points[:, 0], points[:, 1]


def _steps(at: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The last value known at each place; the first value before it."""
    return y[np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(y) - 1)]
