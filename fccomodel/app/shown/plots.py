"""Pictures of a run: convergence, constraints with their bounds, multipliers. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.app import errors, habits
from fccomodel.app.shown import labelled
from fccomodel.app.shown.display import TOLERANCE, violation
from fccomodel.app.shown.pictures import groups, roc
from fccomodel.core.diagnostics import FccoError, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fccomodel.pipeline import Outcome

ALONG = {"oracles": "oracle calls", "seconds": "seconds"}
#: Curves of the convergence picture: name, colour, line. The lines differ in grey print too.
CURVES = (("objective", "tab:blue", "-"), ("violation", "tab:red", "--"), ("kkt", "0.25", "-."))
#: Largest number of constraints in a picture.
SHOWN_CONSTRAINTS = 12
#: Largest number of entries of variables in a picture.
SHOWN_ENTRIES = 12
#: Largest number of letters of a label.
LABEL_LETTERS = 22
#: The axis of constraints' values is linear up to this value, and logarithmic beyond.
LINEAR_VALUES = 1e-4
#: The axis of the objective spans at least this much to either side, relative to the objective.
LEAST_RELATIVE_SPAN = 1e-3
#: Style of all pictures.
PAPER: Any = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"}


def require() -> None:
    """Raise F0529 if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise FccoError([errors.no_matplotlib()]) from None


class Plots(habits.Answering):
    """Pictures of a result, each a matplotlib figure. ``plot()`` has convergence and constraints.

    record     the content of ``result.json``
    kinds      ``le`` or ``eq`` by the label of each constraint or family; a missing label means ``le``
    variables  the values of the variables by name, whose entries may have names
    outcome    the outcome of the solve, which ``roc`` and ``groups`` need; None for a stored result
    """

    def __init__(
        self,
        record: Mapping[str, Any],
        kinds: Mapping[str, str] | None = None,
        variables: Mapping[str, np.ndarray] | None = None,
        outcome: Outcome | None = None,
    ):
        self._record, self._kinds, self._outcome = record, kinds or {}, outcome
        self._variables = variables or {}

    _called = "A result's plot"

    def _instead(self) -> Mapping[str, str]:
        return habits.PICTURES

    def __repr__(self) -> str:
        names = ("convergence", "variables", "constraints", "multipliers", "groups", "roc")
        return f"<plots: plot(), plot{', '.join(f'.{name}()' for name in names)}>"

    def __call__(self, along: str = "seconds") -> Figure:
        """Convergence, and constraints if there are any, on one page.

        An answer without steps, as of the interior-point method alone, shows its variables in place of
        the convergence.
        """
        constrained = bool(self._record["constraints"])
        return drawn(lambda axes: self._all(axes, along), 2 if constrained else 1)

    def _all(self, axes: Sequence[Axes], along: str) -> None:
        if self.has_steps:
            _convergence(axes[0], self._record, along)
        else:
            _entries(axes[0], self._variables)
        if len(axes) > 1:
            _constraints(axes[1], self._record, self._kinds)

    @property
    def has_steps(self) -> bool:
        """Whether the run noted the objective at several points, which ``convergence`` shows."""
        return len(self._record["history"]) > 1

    def variables(self, *names: str) -> Figure:
        """The twelve largest entries of the variables.

        names   the variables to show; all if none is given. F0805 for an unknown name.
        """
        if unknown := [name for name in names if name not in self._variables]:
            refuse(errors.no_variable_to_show(unknown[0], list(self._variables)))
        shown = {name: self._variables[name] for name in names or self._variables}
        return drawn(lambda axes: _entries(axes[0], shown))

    def convergence(self, along: str = "seconds") -> Figure:
        """The best point so far after each stage: objective, violation and KKT residual.

        The objective has the left axis, violation and residual the right one, which is logarithmic. A
        dotted line is the proved bound of the optimum.

        along   ``seconds`` or ``oracles`` (oracle calls; a finish makes none)
        """
        return drawn(lambda axes: _convergence(axes[0], self._record, along))

    def constraints(self) -> Figure:
        """The values (left minus right side) of the twelve worst constraints, red if violated."""
        return drawn(lambda axes: _constraints(axes[0], self._record, self._kinds), size=self._bars_size)

    def multipliers(self) -> Figure:
        """The largest multipliers: how much better the optimum gets per unit of relaxation."""
        return drawn(lambda axes: _multipliers(axes[0], self._record), size=self._bars_size)

    @property
    def _bars_size(self) -> tuple[float, float]:
        """Width and height, in inches, of a picture with a bar for each constraint."""
        bars = min(len(self._record["constraints"]), SHOWN_CONSTRAINTS)
        return 6.4, min(1.4 + 0.25 * bars, 3.4)

    def groups(self, name: str | None = None) -> Figure:
        """Values by group with their bounds.

        name   a family of constraints, whose left sides are shown beside the right sides, or a family
               of lets; None for all families of constraints

        F0805 for a name that has no such values.
        """
        return drawn(lambda axes: groups.draw(axes[0], *groups.bars_of(self._record, self._outcome, name)))

    def roc(self, rows: Any = None, *, by: str | None = None, target: str | None = None) -> Figure:
        """True against false positive rates of the model's score, with the area below the curve.

        rows    a DataFrame, or any other data that can be bound, with the columns that the score reads
                and a column of two values; None for the rows of the solve
        by      a column of labels: each label has its curve
        target  the column of two values; needed only if there are several

        Raises F0814 if the model has no score or no such column, F0805 if the rows of the solve are
        not at hand.
        """
        curves = roc.curves(self._outcome, rows, by=by, target=target)
        return drawn(lambda axes: roc.draw(axes[0], curves), size=(4.6, 4.4))


def drawn(
    draw: Callable[[Sequence[Axes]], None], rows: int = 1, size: tuple[float, float] = (6.4, 3.4)
) -> Figure:
    """A figure drawn by ``draw``, on axes below each other. F0529 if matplotlib is not installed.

    draw   draws on a list of axes
    rows   number of axes
    size   width and height of each, in inches
    """
    require()
    import matplotlib

    from fccomodel.app.shown.pictures.figure import Figure

    with matplotlib.rc_context(PAPER):
        figure = Figure(figsize=(size[0], size[1] * rows), layout="constrained")
        draw(list(np.atleast_1d(figure.subplots(rows))))
        return figure


def _convergence(axes: Axes, record: Mapping[str, Any], along: str) -> None:
    """Draw the curves of a run against seconds or oracle calls."""
    stages = [entry for entry in record["history"] if entry.get(along) is not None]
    lines: list[Any] = []
    residuals: list[float] = []
    beside = axes.twinx()
    for name, colour, line in CURVES:
        points = [(entry[along], entry[name]) for entry in stages if entry.get(name) is not None]
        if not points or name == "violation" and not record["constraints"]:
            continue
        x, y = np.array(points, dtype=float).T
        if name == "objective":
            panel = axes
        else:
            panel = beside
            y = np.abs(y)
            residuals += y.tolist()
        lines += panel.plot(x, y, line, color=colour, marker="o", markersize=3, label=LABELS[name])
    bound = (record.get("gap") or {}).get("bound")
    if bound is not None and _leaves_room(bound, [entry["objective"] for entry in stages]):
        lines.append(axes.axhline(bound, color="tab:blue", linestyle=":", linewidth=1, label="proved bound"))
    values = [entry["objective"] for entry in stages if entry.get("objective") is not None]
    if values:
        span = LEAST_RELATIVE_SPAN * abs(values[-1])
        if max(values) - min(values) < span:
            axes.set_ylim(values[-1] - span, values[-1] + span)
    _logarithmic(beside, residuals)
    beside.spines["right"].set_visible(True)
    beside.set_ylabel("violation, KKT residual" if record["constraints"] else "KKT residual")
    axes.set_ylabel("objective")
    axes.set_xlabel(ALONG[along])
    axes.set_title(f"{record['model']}: {record['sense']}, {record['algorithm']}", loc="left")
    axes.legend(handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, frameon=False)


def _logarithmic(axes: Axes, values: Sequence[float]) -> None:
    """Make the axis of nonnegative values logarithmic.

    If a value is 0, the axis is linear below the decade of the smallest positive value.
    """
    if 0 not in values:
        axes.set_yscale("log")
        return
    least = min((value for value in values if value > 0), default=1.0)
    decade = 10.0 ** np.floor(np.log10(least))
    axes.set_yscale("symlog", linthresh=decade, linscale=0.5)
    axes.set_ylim(-0.15 * decade, 3 * max(*values, decade))


def _leaves_room(bound: float, values: Sequence[float]) -> bool:
    """Whether a bound is near enough to the last value to be drawn on the axis of the curve."""
    if not values:
        return False
    span = max(values) - min(values)
    return abs(bound - values[-1]) <= max(span, 1e-3 * abs(values[-1]))


LABELS = {"objective": "objective", "violation": "violation", "kkt": "KKT residual"}


def _constraints(axes: Axes, record: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
    """Draw the value of each of the worst constraints as a bar."""
    rows = record["constraints"]
    violations = {label: violation(label, row["value"], kinds) for label, row in rows.items()}
    worst = sorted(rows, key=lambda label: -violations[label])[:SHOWN_CONSTRAINTS]
    values = [rows[label]["value"] for label in worst]
    colours = ["0.6" if violations[label] <= TOLERANCE else "tab:red" for label in worst]
    axes.barh(range(len(worst)), values, color=colours, height=0.5)
    # A dot marks the value if its bar is too short to be seen.
    axes.scatter(values, range(len(worst)), color=colours, s=18, zorder=3)
    axes.set_xscale("symlog", linthresh=LINEAR_VALUES)
    # five labels stay apart on a phone
    axes.xaxis.get_major_locator().set_params(numticks=5)  # type: ignore[call-arg]
    low = min([-10 * LINEAR_VALUES, *values])
    high = max([10 * LINEAR_VALUES, *values])
    axes.set_xlim(3 * low, 3 * high)
    axes.axvspan(-TOLERANCE, TOLERANCE, color="0.5", alpha=0.2, linewidth=0, zorder=0)
    axes.axvline(0, color="black", linewidth=1)
    _labelled(axes, worst, len(rows))
    axes.set_xlabel(
        f"left - right side: holds at or left of 0,\nan equality at 0 (shaded: within {TOLERANCE:g})"
    )


def _multipliers(axes: Axes, record: Mapping[str, Any]) -> None:
    """Draw the largest multipliers as bars."""
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
    axes.set_xlabel("multiplier: how much better the optimum gets\nper unit by which a constraint is relaxed")


def _entries(axes: Axes, variables: Mapping[str, np.ndarray]) -> None:
    """Draw the entries of variables that are largest in size as bars."""
    named = [
        (f"{name}[{entry}]" if entry else name, value)
        for name, array in variables.items()
        for entry, value in labelled.entries(np.asanyarray(array))
    ]
    largest = sorted(named, key=lambda pair: -abs(pair[1]))[:SHOWN_ENTRIES]
    axes.barh(range(len(largest)), [value for _, value in largest], color="tab:blue", height=0.6)
    axes.axvline(0, color="black", linewidth=1)
    _labelled(axes, [label for label, _ in largest], len(named), "entries")
    groups.plain(axes)
    axes.set_xlabel("value")


def _labelled(axes: Axes, labels: Sequence[str], count: int, what: str = "constraints") -> None:
    """Write the names of the bars, the first on top, and the number of all if some are hidden."""
    shown = [label if len(label) <= LABEL_LETTERS else f"{label[: LABEL_LETTERS - 1]}…" for label in labels]
    axes.set_yticks(range(len(shown)), shown)
    axes.set_ylim(max(len(shown), 4) - 0.5, -0.5)
    if count > len(shown):
        axes.set_title(f"{len(shown)} of {count:,} {what}", loc="left")
