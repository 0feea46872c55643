"""What an answer costs each group: the members of families of constraints with their bounds, or of a
family of lets."""

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

#: Groups that a picture has room for.
SHOWN_GROUPS = 24
#: Letters of a label.
LABEL_LETTERS = 22


@dataclass(frozen=True)
class Bar:
    """A group's value, its bound where it has one, and whether that holds."""

    label: str
    value: float
    relation: str = ""
    bound: float | None = None
    holds: bool = True


def found(record: Mapping[str, Any], outcome: Outcome | None, name: str | None) -> tuple[str, list[Bar]]:
    """What the axis says, and the groups. F0805 for a name that has no values."""
    rows = record["constraints"] or {}
    families = dict.fromkeys(label.partition("[")[0] for label in rows if rows[label].get("left") is not None)
    grouped = dict.fromkeys(family for family in families if f"{family}[" in "".join(rows)) or families
    lets = _lets(outcome)
    if name in lets or name in record["values"]:
        values = record["values"].get(name) or _values(outcome, lets[str(name)])
        if isinstance(values, Mapping) and all(isinstance(value, float) for value in values.values()):
            return str(name), [Bar(label, value) for label, value in values.items()]
    if name is not None:
        chosen = [name]
    else:
        chosen = list(grouped)
    bars = [
        _bar(label, rows[label])
        for label in rows
        if label.partition("[")[0] in chosen and label.partition("[")[0] in families
    ]
    if not bars:
        refuse(errors.no_values(name or "", [*families, *lets]))
    return "left side of each constraint, and its bound", bars


def _lets(outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return {}
    return {name: let for name, let in outcome.problem.lets.items() if let.binders}


def _values(outcome: Outcome | None, let: Any) -> Any:
    """The members of a family of lets at the answer."""
    from fccomodel.evaluation.values import values

    assert outcome is not None
    return values(outcome.bound, outcome.solution.variables, [let], seed=outcome.planned.seed)[let.name]


def _bar(label: str, row: Mapping[str, Any]) -> Bar:
    if row["relation"] == "==":
        broken = abs(row["value"])
    else:
        broken = row["value"]
    return Bar(label, row["left"], row["relation"], row["right"], broken <= TOLERANCE)


def draw(axes: Axes, says: str, bars: Sequence[Bar]) -> None:
    """A bar for each group, the tightest first, red where its bound is broken, which is a mark across it."""
    shown = sorted(bars, key=lambda bar: -_strain(bar))[:SHOWN_GROUPS]
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
    axes.set_xlabel(says)
    if len(bars) > len(shown):
        axes.set_title(f"{len(shown)} of {len(bars):,} groups", loc="left")


def plain(axes: Axes) -> None:
    """Few numbers along the axis, each written out."""
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}")


def _strain(bar: Bar) -> float:
    """How near a value is to its bound, or how large it is without one."""
    if bar.bound is None:
        return bar.value
    if bar.relation == ">=":
        return bar.bound - bar.value
    return bar.value - bar.bound
