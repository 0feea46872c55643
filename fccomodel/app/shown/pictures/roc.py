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

#: The curves that a picture tells apart, in colours that differ in grey, and by their lines.
STYLES = (
    ("black", "-"),
    ("tab:blue", "--"),
    ("tab:orange", "-."),
    ("tab:green", ":"),
    ("tab:purple", (0, (5, 1, 1, 1, 1, 1))),
)
LETTERS = 18


@dataclass(frozen=True, eq=False)
class Curve:
    """Rates for each threshold from the highest score down, (thresholds + 1,); ``area`` below them, of
    tied scores by halves."""

    name: str
    rows: int
    false_positive: np.ndarray
    true_positive: np.ndarray

    @property
    def area(self) -> float:
        """The area under the curve."""
        return float(np.trapezoid(self.true_positive, self.false_positive))


def curve(name: str, scores: np.ndarray, positive: np.ndarray) -> Curve | None:
    """The curve of some scores; None where they are all of one class."""
    ordered, counted = np.unique(-scores, return_inverse=True)
    true = np.cumsum(np.bincount(counted, positive, len(ordered)))
    false = np.cumsum(np.bincount(counted, ~positive, len(ordered)))
    if not len(ordered) or not true[-1] or not false[-1]:
        return None
    start = np.zeros(1)
    return Curve(
        name,
        len(scores),
        np.concatenate([start, false / false[-1]]),
        np.concatenate([start, true / true[-1]]),
    )


def curves(outcome: Outcome | None, rows: Any, *, by: str | None, target: str | None) -> list[Curve]:
    """One curve, or one for each member of ``by`` with rows of both classes, the largest groups first."""
    if outcome is None:
        refuse(errors.no_rows_at_hand())
    known = scoring.fitted(outcome)
    wanted = of_rows.score(known.compiled)
    if rows is None:
        given = outcome.bound.tables[wanted.table.name]
    else:
        given = rows
    scores, positive, member = scoring.judged(known, wanted, given, target=target, by=by)
    names = sorted(set(member), key=lambda name: -int((member == name).sum()))
    found = (curve(name, scores[member == name], positive[member == name]) for name in names)
    return [one for one in found if one is not None]


def draw(axes: Axes, shown: Sequence[Curve]) -> None:
    """Curves with the area below each; of many groups the largest."""
    for one, (colour, line) in zip(shown, STYLES, strict=False):
        if len(one.name) <= LETTERS:
            name = one.name
        else:
            name = f"{one.name[: LETTERS - 1]}…"
        label = f"{name + ': ' if name else ''}area {one.area:.3f}, {one.rows:,} rows"
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
