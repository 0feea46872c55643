"""The receiver operating characteristic of a model's score, of all rows or group by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.app import errors
from fccomodel.app.scoring import rows as of_rows
from fccomodel.app.scoring import scoring
from fccomodel.core.diagnostics import refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fccomodel.pipeline import Outcome

#: Colour and line of each curve; they differ in grey print too.
STYLES = (
    ("black", "-"),
    ("tab:blue", "--"),
    ("tab:orange", "-."),
    ("tab:green", ":"),
    ("tab:purple", (0, (5, 1, 1, 1, 1, 1))),
)
#: Largest number of letters of a curve's name.
NAME_LETTERS = 18


@dataclass(frozen=True, eq=False)
class Curve:
    """A ROC curve: rates for each threshold, from the highest score down.

    name             the group, empty for all rows
    rows             number of rows
    false_positive   shape (thresholds + 1,), in [0, 1]
    true_positive    of the same shape
    """

    name: str
    rows: int
    false_positive: np.ndarray
    true_positive: np.ndarray

    @property
    def area(self) -> float:
        """The area under the curve; a pair of tied scores counts as half."""
        return float(np.trapezoid(self.true_positive, self.false_positive))


def curve(name: str, scores: np.ndarray, positive: np.ndarray) -> Curve | None:
    """The curve of some scores; None if all rows are of one class."""
    thresholds, place = np.unique(-scores, return_inverse=True)
    true = np.cumsum(np.bincount(place, positive, len(thresholds)))
    false = np.cumsum(np.bincount(place, ~positive, len(thresholds)))
    if not len(thresholds) or not true[-1] or not false[-1]:
        return None
    start = np.zeros(1)
    return Curve(
        name,
        len(scores),
        np.concatenate([start, false / false[-1]]),
        np.concatenate([start, true / true[-1]]),
    )


def curves(outcome: Outcome | None, rows: Any, *, by: str | None, target: str | None) -> list[Curve]:
    """A curve for each group of ``by`` that has rows of both classes, the largest group first.

    Without ``by`` all rows are one group.
    """
    if outcome is None:
        refuse(errors.no_rows_at_hand())
    known = scoring.fitted(outcome)
    score = of_rows.score(known.compiled)
    if rows is None:
        rows_asked = outcome.bound.tables[score.table.name]
    else:
        rows_asked = rows
    scores, positive, member = scoring.judged(known, score, rows_asked, target=target, by=by)
    names = sorted(set(member), key=lambda name: -int((member == name).sum()))
    per_group = (curve(name, scores[member == name], positive[member == name]) for name in names)
    return [one for one in per_group if one is not None]


def draw(axes: Axes, shown: Sequence[Curve]) -> None:
    """Draw curves and write the area below each; of many groups only the largest."""
    for one, (colour, line) in zip(shown, STYLES, strict=False):
        name = one.name
        if len(name) > NAME_LETTERS:
            name = f"{name[: NAME_LETTERS - 1]}…"
        label = f"area {one.area:.3f}, {one.rows:,} rows"
        if name:
            label = f"{name}: {label}"
        axes.plot(
            one.false_positive, one.true_positive, color=colour, linestyle=line, linewidth=1.6, label=label
        )
    axes.plot([0, 1], [0, 1], color="0.75", linewidth=1, zorder=0)
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.01)
    axes.set_aspect("equal")
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    if len(shown) > len(STYLES):
        axes.set_title(f"{len(STYLES)} of {len(shown)} groups, the largest", loc="left")
    axes.legend(loc="lower right", frameon=False, fontsize=9)
