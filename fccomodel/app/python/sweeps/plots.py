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

#: Share of the distance to the next value that a slope is drawn to.
SHORT = 0.3
#: Values of a param so far apart are drawn on a logarithmic axis.
FAR = 50.0


def tradeoff(sweep: Sweep, param: str | None = None) -> Figure:
    """The optimal value against a param (the last unless named), a curve for each combination of the
    others; short lines are the slopes that the multipliers tell. F0805 for a param that was not
    swept, F0529 without matplotlib."""
    if param is None:
        name = sweep.params[-1]
    else:
        name = param
    if name not in sweep.params:
        refuse(errors.not_swept(name, sweep.params))
    require()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(PAPER):
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = figure.subplots()
        others = [other for other in sweep.params if other != name]
        groups: dict[str, list[tuple[float, float, float | None]]] = {}
        for point in sweep.points:
            if point.outcome is not None and np.ndim(point.values[name]) == 0:
                key = ", ".join(f"{other} = {point.values[other]:g}" for other in others)
                entry = float(point.values[name]), point.outcome.report.objective, point.slopes[name]
                groups.setdefault(key, []).append(entry)
        at = [x for curve in groups.values() for x, *_ in curve]
        wide = bool(at) and min(at) > 0 and max(at) > FAR * min(at)
        for key, curve in groups.items():
            _curve(axes, sorted(curve), key, wide)
        axes.set_xscale("log" if wide else "linear")
        axes.set_xlabel(name)
        axes.set_ylabel("optimal value")
        problem = sweep.compiled.problem
        axes.set_title(
            f"{problem.name}: {problem.objective.sense} {problem.objective.label or ''}".rstrip(), loc="left"
        )
        if len(groups) > 1:
            axes.legend(frameon=False)
        return figure


def _curve(axes: Axes, points: list[tuple[float, float, float | None]], key: str, wide: bool) -> None:
    x, y = np.array([point[:2] for point in points]).T
    (line,) = axes.plot(x, y, "-", marker="o", markersize=4, linewidth=1, label=key or None)
    for k, (at, value, slope) in enumerate(points):
        near = [abs(x[j] - at) for j in (k - 1, k + 1) if 0 <= j < len(x)]
        if slope is None or not near:
            continue
        reach = SHORT * min(near)
        ends = np.array([at - reach, at + reach])
        axes.plot(
            ends,
            value + slope * (ends - at),
            color=line.get_color(),
            linewidth=3.5,
            alpha=0.45,
            solid_capstyle="round",
        )
