"""Values of an answer by group: a family of constraints with its bounds, or a family of lets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fccomodel.app import errors
from fccomodel.app.shown.display import TOLERANCE
from fccomodel.core.diagnostics import refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fccomodel.pipeline import Outcome

#: Largest number of groups in a picture.
SHOWN_GROUPS = 24
#: Largest number of letters of a label.
LABEL_LETTERS = 22


@dataclass(frozen=True)
class Bar:
    """A group's value, its bound (None if it has none), and whether the bound holds."""

    label: str
    value: float
    relation: str = ""
    bound: float | None = None
    holds: bool = True


def bars_of(record: Mapping[str, Any], outcome: Outcome | None, name: str | None) -> tuple[str, list[Bar]]:
    """The label of the axis, and a bar for each group. F0805 for a name that has no values.

    name   a family of lets or of constraints; None for all families of constraints, or for all
           constraints if none is a family
    """
    rows = record["constraints"] or {}
    family_of = {label: label.partition("[")[0] for label in rows}
    families = dict.fromkeys(family_of[label] for label in rows if rows[label].get("left") is not None)
    lets = _lets(outcome)
    if name in lets or name in record["values"]:
        values = record["values"].get(name) or _values(outcome, lets[str(name)])
        if isinstance(values, Mapping) and all(isinstance(value, float) for value in values.values()):
            return str(name), [Bar(label, value) for label, value in values.items()]
    if name is not None:
        chosen = [name]
    else:
        several = [family for family in families if f"{family}[" in "".join(rows)]
        chosen = several or list(families)
    bars = []
    for label, row in rows.items():
        if family_of[label] in chosen and family_of[label] in families:
            bars.append(_bar(label, row))
    if not bars:
        refuse(errors.no_values(name or "", [*families, *lets]))
    return "left side of each constraint, and its bound", bars


def _lets(outcome: Outcome | None) -> dict[str, Any]:
    """The families of lets by name; none without the outcome of a solve."""
    if outcome is None:
        return {}
    return {name: let for name, let in outcome.problem.lets.items() if let.binders}


def _values(outcome: Outcome | None, let: Any) -> Any:
    """The members of a family of lets at the answer."""
    from fccomodel.evaluation.values import values

    assert outcome is not None
    return values(outcome.bound, outcome.solution.variables, [let], seed=outcome.planned.seed)[let.name]


def _bar(label: str, row: Mapping[str, Any]) -> Bar:
    """The bar of one constraint in the record of a result."""
    violation = row["value"]
    if row["relation"] == "==":
        violation = abs(violation)
    return Bar(label, row["left"], row["relation"], row["right"], violation <= TOLERANCE)


def draw(axes: Axes, axis_label: str, bars: Sequence[Bar]) -> None:
    """Draw a bar for each group, the tightest first, with its bound as a mark across it.

    A bar is red if its bound is violated.
    """
    shown = sorted(bars, key=lambda bar: -_excess(bar))[:SHOWN_GROUPS]
    axes.figure.set_figheight(max(2.2, 0.9 + 0.27 * len(shown)))  # type: ignore[union-attr]
    colours = ["0.65" if bar.holds else "tab:red" for bar in shown]
    places = range(len(shown))
    axes.barh(places, [bar.value for bar in shown], color=colours, height=0.6)
    bounds = [(bar.bound, k) for k, bar in enumerate(shown) if bar.bound is not None]
    if bounds:
        x, y = zip(*bounds, strict=True)
        axes.vlines(
            x, [k - 0.42 for k in y], [k + 0.42 for k in y], color="black", linewidth=2, label="bound"
        )
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0)
    labels = [
        bar.label if len(bar.label) <= LABEL_LETTERS else f"{bar.label[: LABEL_LETTERS - 1]}…"
        for bar in shown
    ]
    axes.set_yticks(places, labels)
    axes.set_ylim(max(len(shown), 3) - 0.5, -0.5)
    axes.axvline(0, color="black", linewidth=0.8)
    plain(axes)
    axes.set_xlabel(axis_label)
    if len(bars) > len(shown):
        axes.set_title(f"{len(shown)} of {len(bars):,} groups", loc="left")


def plain(axes: Axes) -> None:
    """Write few numbers along the axis, without powers of ten."""
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}")


def _excess(bar: Bar) -> float:
    """The difference of a value and its bound (negative inside), or the value itself if it has no bound."""
    if bar.bound is None:
        return bar.value
    if bar.relation == ">=":
        return bar.bound - bar.value
    return bar.value - bar.bound
