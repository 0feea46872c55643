"""Pictures of a run: values against work, constraints with their bounds, multipliers, the KKT
residual. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.app import errors
from fccomodel.app.shown.display import TOLERANCE, violation
from fccomodel.app.shown.pictures import groups, roc
from fccomodel.core.diagnostics import FccoError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fccomodel.pipeline import Outcome

ALONG = {"oracles": "oracle calls", "seconds": "seconds"}
#: Curves that are drawn, each with its line, so that they differ in grey.
CURVES = (("objective", "tab:blue", "-"), ("violation", "tab:red", "--"), ("kkt", "0.25", "-."))
#: Constraints that a picture has room for.
SHOWN_CONSTRAINTS = 12
#: Letters of a label.
LABEL_LETTERS = 22
#: Values of constraints that can be told from 0.
SEEN = 1e-4
#: An objective that moves by less than this, relative to itself, is drawn as not moving.
FLAT = 1e-3
PAPER: Any = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"}


def require() -> None:
    """F0529 where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise FccoError([errors.no_matplotlib()]) from None


class Plots:
    """Pictures of a result, each a matplotlib figure; called, those of a run on one page.

    record   what ``result.json`` holds
    kinds    ``le`` or ``eq`` by the label of each constraint or family; inequalities where nothing is said
    outcome  the solve itself, where it is at hand: what ``roc`` and ``groups`` look at besides the record
    """

    def __init__(
        self,
        record: Mapping[str, Any],
        kinds: Mapping[str, str] | None = None,
        outcome: Outcome | None = None,
    ):
        self._record, self._kinds, self._outcome = record, kinds or {}, outcome

    def __repr__(self) -> str:
        return "<plots: plot(), plot.convergence(), .constraints(), .multipliers(), .groups(), .roc()>"

    def __call__(self, along: str = "seconds") -> Figure:
        """Convergence, and constraints where there are any, on one page."""
        constrained = bool(self._record["constraints"])
        return drawn(lambda axes: self._all(axes, along), 2 if constrained else 1)

    def _all(self, axes: Sequence[Axes], along: str) -> None:
        _convergence(axes[0], self._record, along)
        if len(axes) > 1:
            _constraints(axes[1], self._record, self._kinds)

    def convergence(self, along: str = "seconds") -> Figure:
        """Objective (left axis), violation and KKT residual (right axis, logarithmic) of the best
        point so far, stage by stage, against ``seconds`` or ``oracles`` (calls; a finish makes
        none); the dotted line is the proved bound of the optimum."""
        return drawn(lambda axes: _convergence(axes[0], self._record, along))

    def constraints(self) -> Figure:
        """Each constraint's value, left minus right side: the worst a dozen, and whether they hold."""
        return drawn(lambda axes: _constraints(axes[0], self._record, self._kinds), size=self._low)

    def multipliers(self) -> Figure:
        """The multipliers of the minimised problem, those of the largest size: what a constraint costs."""
        return drawn(lambda axes: _multipliers(axes[0], self._record), size=self._low)

    @property
    def _low(self) -> tuple[float, float]:
        """The size of a picture with a line for each constraint: low where these are few."""
        return 6.4, min(1.4 + 0.25 * min(len(self._record["constraints"]), SHOWN_CONSTRAINTS), 3.4)

    def groups(self, name: str | None = None) -> Figure:
        """Risks by group with their bounds: the left sides of a family of constraints beside the right
        ones, or the members of a family of lets. Without a name, of all families of constraints.
        F0805 for a name that has no such values."""
        return drawn(lambda axes: groups.draw(axes[0], *groups.found(self._record, self._outcome, name)))

    def roc(self, rows: Any = None, *, by: str | None = None, target: str | None = None) -> Figure:
        """True against false positive rates of the model's score, with the area below: on the rows
        solved on, or on others.

        rows    a DataFrame or what else binds, with the columns that the score reads and its column
                of two values
        by      a column of labels: a curve for each
        target  the column of two values, where
                there are several

        Raises F0814 where the model has no score or no such column, F0805 without the rows of the solve.
        """
        curves = roc.curves(self._outcome, rows, by=by, target=target)
        return drawn(lambda axes: roc.draw(axes[0], curves), size=(4.6, 4.4))


def drawn(
    draw: Callable[[Sequence[Axes]], None], rows: int = 1, size: tuple[float, float] = (6.4, 3.4)
) -> Figure:
    """The figure on whose axes, ``rows`` of them, ``draw`` draws. F0529 without matplotlib."""
    require()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(PAPER):
        figure = Figure(figsize=(size[0], size[1] * rows), layout="constrained")
        draw(list(np.atleast_1d(figure.subplots(rows))))
        return figure


def _convergence(axes: Axes, record: Mapping[str, Any], along: str) -> None:
    stages = [entry for entry in record["history"] if entry.get(along) is not None]
    lines, residuals = [], list[float]()
    beside = axes.twinx()
    for name, colour, line in CURVES:
        points = [(entry[along], entry[name]) for entry in stages if entry.get(name) is not None]
        if not points or name == "violation" and not record["constraints"]:
            continue
        x, y = np.array(points, dtype=float).T
        on = axes if name == "objective" else beside
        if on is axes:
            y = y
        else:
            y = np.abs(y)
        if on is axes:
            residuals += []
        else:
            residuals += y.tolist()
        lines += on.plot(x, y, line, color=colour, marker="o", markersize=3, label=LABELS[name])
    bound = (record.get("gap") or {}).get("bound")
    if bound is not None and _near(bound, [entry["objective"] for entry in stages]):
        lines.append(axes.axhline(bound, color="tab:blue", linestyle=":", linewidth=1, label="proved bound"))
    values = [entry["objective"] for entry in stages if entry.get("objective") is not None]
    if values and max(values) - min(values) < FLAT * abs(values[-1]):  # digits that tell nothing
        axes.set_ylim(values[-1] - FLAT * abs(values[-1]), values[-1] + FLAT * abs(values[-1]))
    _logarithmic(beside, residuals)
    beside.spines["right"].set_visible(True)
    beside.set_ylabel("violation, KKT residual" if record["constraints"] else "KKT residual")
    axes.set_ylabel("objective")
    axes.set_xlabel(ALONG[along])
    axes.set_title(f"{record['model']}: {record['sense']}, {record['algorithm']}", loc="left")
    axes.legend(handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, frameon=False)


def _logarithmic(axes: Axes, values: Sequence[float]) -> None:
    """A logarithmic axis of numbers that are at least 0; below their least decade it is linear down to
    a 0 among them."""
    if 0 not in values:
        axes.set_yscale("log")
        return
    least = min((value for value in values if value > 0), default=1.0)
    decade = 10.0 ** np.floor(np.log10(least))
    axes.set_yscale("symlog", linthresh=decade, linscale=0.5)
    axes.set_ylim(-0.15 * decade, 3 * max(*values, decade))


def _near(bound: float, values: Sequence[float]) -> bool:
    """A bound that leaves the curve its room."""
    if values:
        return abs(bound - values[-1]) <= max(max(values) - min(values), 1e-3 * abs(values[-1]))
    return False


LABELS = {"objective": "objective", "violation": "violation", "kkt": "KKT residual"}


def _constraints(axes: Axes, record: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
    rows = record["constraints"]
    broken = {label: violation(label, row["value"], kinds) for label, row in rows.items()}
    worst = sorted(rows, key=lambda label: -broken[label])[:SHOWN_CONSTRAINTS]
    values = [rows[label]["value"] for label in worst]
    colours = ["0.6" if broken[label] <= TOLERANCE else "tab:red" for label in worst]
    axes.barh(range(len(worst)), values, color=colours, height=0.5)
    axes.scatter(values, range(len(worst)), color=colours, s=18, zorder=3)  # where a bar is too short to see
    axes.set_xscale("symlog", linthresh=SEEN)
    # five labels stay apart on a phone
    axes.xaxis.get_major_locator().set_params(numticks=5)  # type: ignore[call-arg]
    low, high = min([-10 * SEEN, *values]), max([10 * SEEN, *values])
    axes.set_xlim(3 * low if low < 0 else low, 3 * high)
    axes.axvspan(-TOLERANCE, TOLERANCE, color="0.5", alpha=0.2, linewidth=0, zorder=0)
    axes.axvline(0, color="black", linewidth=1)
    _labelled(axes, worst, len(rows))
    axes.set_xlabel(
        f"left - right side: holds at or left of 0,\nan equality at 0 (shaded: within {TOLERANCE:g})"
    )


def _multipliers(axes: Axes, record: Mapping[str, Any]) -> None:
    known = {
        label: row["multiplier"]
        for label, row in record["constraints"].items()
        if row["multiplier"] is not None
    }
    largest = sorted(known, key=lambda label: -abs(known[label]))[:SHOWN_CONSTRAINTS]
    axes.barh(range(len(largest)), [known[label] for label in largest], color="0.6", height=0.6)
    axes.axvline(0, color="black", linewidth=1)
    _labelled(axes, largest, len(known))
    groups.plain(axes)
    axes.set_xlabel("multiplier: change of the optimum per unit of the right side")


def _labelled(axes: Axes, labels: Sequence[str], of: int) -> None:
    """Names of the bars, the first on top; how many there are where not all are shown."""
    shown = [label if len(label) <= LABEL_LETTERS else f"{label[: LABEL_LETTERS - 1]}…" for label in labels]
    axes.set_yticks(range(len(shown)), shown)
    axes.set_ylim(max(len(shown), 4) - 0.5, -0.5)
    if of > len(shown):
        axes.set_title(f"{len(shown)} of {of:,} constraints", loc="left")
