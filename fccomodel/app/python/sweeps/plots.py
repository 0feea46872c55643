"""The trade-off of a sweep as a picture. Needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fccomodel.app.python.sweeps import errors
from fccomodel.app.shown.plots import PAPER, require
from fccomodel.core.diagnostics import refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fccomodel.app.python.sweeps.record import Sweep

#: Length of a drawn slope to either side, as a share of the distance to the nearer neighbour.
SLOPE_LENGTH = 0.3
#: Ratio of the largest to the smallest value above which the axis is logarithmic.
LOGARITHMIC_RATIO = 50.0


def tradeoff(sweep: Sweep, param: str | None = None) -> Figure:
    """The optimal value against a param, with a curve for each combination of the other params.

    Short lines show the slopes that the multipliers give. The default is the last param. F0805 for a
    param that was not swept, F0529 without matplotlib.
    """
    name = param
    if name is None:
        name = sweep.params[-1]
    if name not in sweep.params:
        refuse(errors.not_swept(name, sweep.params))
    require()
    import matplotlib

    from fccomodel.app.shown.pictures.figure import Figure

    with matplotlib.rc_context(PAPER):
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = figure.subplots()
        curves = _curves(sweep, name)
        for key, curve in curves.items():
            _draw(axes, curve, key)
        values = [point[0] for curve in curves.values() for point in curve]
        if values and min(values) > 0 and max(values) > LOGARITHMIC_RATIO * min(values):
            axes.set_xscale("log")
        else:
            axes.set_xscale("linear")
        axes.set_xlabel(name)
        axes.set_ylabel("optimal value")
        problem = sweep.compiled.problem
        heading = f"{problem.name}: {problem.objective.sense} {problem.objective.label or ''}"
        axes.set_title(heading.rstrip(), loc="left")
        if len(curves) > 1:
            axes.legend(frameon=False)
        return figure


def _curves(sweep: Sweep, name: str) -> dict[str, list[tuple[float, float, float | None]]]:
    """The sorted values of the param, optimal values and slopes, for each combination of the other
    params."""
    others = [other for other in sweep.params if other != name]
    curves: dict[str, list[tuple[float, float, float | None]]] = {}
    for point in sweep.points:
        if point.outcome is not None and np.ndim(point.values[name]) == 0:
            key = ", ".join(f"{other} = {point.values[other]:g}" for other in others)
            entry = float(point.values[name]), point.outcome.report.objective, point.slopes[name]
            curves.setdefault(key, []).append(entry)
    return {key: sorted(curve) for key, curve in curves.items()}


def _draw(axes: Axes, points: list[tuple[float, float, float | None]], key: str) -> None:
    """Draw one curve, and its slope at each of its points."""
    x, y = np.array([point[:2] for point in points]).T
    (line,) = axes.plot(x, y, "-", marker="o", markersize=4, linewidth=1, label=key or None)
    for k, (at, value, slope) in enumerate(points):
        distances = [abs(x[j] - at) for j in (k - 1, k + 1) if 0 <= j < len(x)]
        if slope is None or not distances:
            continue
        reach = SLOPE_LENGTH * min(distances)
        ends = np.array([at - reach, at + reach])
        axes.plot(
            ends,
            value + slope * (ends - at),
            color=line.get_color(),
            linewidth=3.5,
            alpha=0.45,
            solid_capstyle="round",
        )
