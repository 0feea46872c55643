"""Curves of a comparison: objective (or gap) and violation against oracle calls and against time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.app import errors
from fccomodel.core.diagnostics import FccoError

if TYPE_CHECKING:
    from fccomodel.app.comparison.record import Comparison

AXES = {"oracles": "oracle calls", "seconds": "seconds"}
POINTS = 200


def require() -> None:
    """F0529 where matplotlib is not installed: asked before the runs."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise FccoError([errors.no_matplotlib()]) from None


def save(record: Comparison, folder: Path) -> None:
    """Write ``curves.png`` and ``curves.svg``: the mean over the seeds, and a band from the least to the largest."""
    require()
    from matplotlib.figure import Figure

    heights = ["gap" if record.reference is not None else "objective"] + ["violation"] * record.constrained
    figure = Figure(figsize=(9, 3.2 * len(heights)), layout="constrained")
    grid = figure.subplots(len(heights), len(AXES), squeeze=False)
    for row, height in zip(grid, heights, strict=True):
        for axes, along in zip(row, AXES, strict=True):
            _draw(axes, record, height, along)
    lines, names = grid[0][0].get_legend_handles_labels()
    if lines:
        figure.legend(lines, names, loc="outside lower center", ncols=min(len(lines), 6), frameon=False)
    figure.suptitle(record.model)
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"curves.{suffix}", dpi=150)


def _draw(axes: Any, record: Comparison, height: str, along: str) -> None:
    drawn = []
    for name in record.algorithms:
        curves = [_curve(record, run.history, height, along) for run in record.of(name) if run.history]
        curves = [(x, y) for x, y in curves if len(x)]
        if not curves:
            continue
        x = np.linspace(min(c[0][0] for c in curves), max(c[0][-1] for c in curves), POINTS)
        y = np.stack([_steps(x, *curve) for curve in curves])
        drawn.append(y)
        (line,) = axes.plot(x, y.mean(0), label=name, marker="o", markevery=[0, -1])  # visible where there is one stage alone
        axes.fill_between(x, y.min(0), y.max(0), color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_xlabel(AXES[along])
    axes.set_ylabel(height)
    positive = [y[y > 0].min() for y in drawn if (y > 0).any()]
    if height != "objective" and positive:  # a logarithm down to the least value above zero, which has its place below
        axes.set_yscale("symlog", linthresh=10.0 ** np.floor(np.log10(max(min(positive), 1e-12))))
        axes.set_ylim(bottom=0)


def _curve(record: Comparison, history: Sequence[Any], height: str, along: str) -> tuple[np.ndarray, np.ndarray]:
    """Finite points of one run."""
    read = (lambda e: abs(record.gap(e["objective"]))) if height == "gap" else (lambda e: e[height])
    pairs = np.array([(e.get(along) or 0.0, read(e)) for e in history], dtype=float).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    return pairs[:, 0], pairs[:, 1]


def _steps(at: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The last value known at each place; before the first, that one."""
    return y[np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(y) - 1)]
