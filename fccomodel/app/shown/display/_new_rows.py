"""What is said of new rows: margins of constraints, and the optimality gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fccomodel.app.shown.display._constraints import MOST_ROWS
from fccomodel.app.shown.display._layout import number, residual, seconds

#: the share of a margin that may be missing where it counts as kept
KEPT = 0.01

if TYPE_CHECKING:
    from fccomodel.report.new_rows.margins import Margins
    from fccomodel.report.new_rows.population import Population


def margins(found: Margins) -> RenderableType:
    """The constraints with margins, and what they cost; the tightest where there are many."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 2))
    table.add_column(f"for new rows, all with {found.level:.0%}", overflow="fold", max_width=40)
    for column in ("left - right", "margin", "standard error"):
        table.add_column(column, justify="right", no_wrap=True)
    tightest = sorted(found.rows, key=lambda label: -(found.rows[label].value + found.rows[label].margin))[
        :MOST_ROWS
    ]
    for label in (label for label in found.rows if label in tightest):
        row = found.rows[label]
        table.add_row(Text(label), f"{row.value:+.2e}", residual(row.margin), residual(row.error))
    if len(found.rows) > len(tightest):
        said = [f"{len(found.rows) - len(tightest)} more constraints are less tight"]
    else:
        said = []
    said += [f"no margin: {label} is {why}" for label, why in found.untouched.items()]
    said += ["the report above is of the problem with margins: left - right + margin <= 0"]
    said += [
        f"margins of {found.factor:.3g} standard errors, {_correction(found)}; rows taken as independent "
        "draws"
    ]
    said += [_cost(found)]
    return Group(table, *(Text(line, style="dim") for line in said))


def _cost(found: Margins) -> str:
    """What margins cost, where a point with them was found."""
    label, row = max(found.rows.items(), key=lambda pair: pair[1].value + pair[1].margin)
    short = row.value + row.margin
    if short > KEPT * row.margin:
        return (
            f"no point with them was found, so their cost is not known: `{label}` is "
            f"{residual(short)} short of its margin"
        )
    return f"they cost {number(found.cost)}: the objective without them is {number(found.plain)}"


def _correction(found: Margins) -> str:
    """How margins hold together."""
    if found.failed:
        lost = f", {found.failed} more had no answer"
    else:
        lost = ""
    solves = f"{found.solves} answers on resampled rows in {seconds(found.seconds)}{lost}"
    if found.how == "bagging":
        return f"by the largest deviation in {solves}"
    return f"Bonferroni over {len(found.rows)}: only {solves}"


def population_lines(found: Population) -> list[str]:
    """The interval of the gap for new rows, and what it rests on."""
    if found.failed:
        lost = f", {found.failed} more had none"
    else:
        lost = ""
    cost = f"{found.solves} answers on resampled rows in {seconds(found.seconds)}{lost}"
    if found.why:
        return [f"no interval of the gap: {found.why} ({cost})"]
    sided = "two-sided" if found.low else "one-sided"
    best = "the best" if found.convex else "the best that such runs find"
    bound = (
        f"gap at most {number(found.most)} with 95% confidence (one-sided): two replications on the "
        "rows held out"
    )
    return [
        *([bound] if found.most == found.most else []),
        f"gap to {best}: {number(found.low)} to {number(found.high)} with {found.level:.0%} confidence "
        f"({sided}), "
        f"{number(found.mean)} in the mean",
        f"the objective is worse than on the rows at hand by {number(found.optimism)} in the mean",
        f"bagging, {cost}; rows taken as independent draws, the best as unique",
    ]
