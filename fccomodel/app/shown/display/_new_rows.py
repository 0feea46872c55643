"""Texts about new rows: margins of constraints, and the optimality gap."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fccomodel.app.shown.display._constraints import MOST_ROWS
from fccomodel.app.shown.display._layout import number, residual, seconds

#: Share of a margin that may be missing if the margin is to count as kept.
MISSING_SHARE = 0.01

if TYPE_CHECKING:
    from fccomodel.report.new_rows.margins import Margins
    from fccomodel.report.new_rows.population import Population


def margins(found: Margins) -> RenderableType:
    """The constraints with margins (of many, the tightest), and the cost of the margins."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 2))
    table.add_column(f"for new rows, all with {found.level:.0%}", overflow="fold", max_width=40)
    for column in ("left - right", "margin", "standard error"):
        table.add_column(column, justify="right", no_wrap=True)
    missing = {label: row.value + row.margin for label, row in found.rows.items()}
    tightest = sorted(missing, key=lambda label: -missing[label])[:MOST_ROWS]
    for label, row in found.rows.items():
        if label in tightest:
            table.add_row(Text(label), f"{row.value:+.2e}", residual(row.margin), residual(row.error))
    lines = []
    if len(found.rows) > len(tightest):
        lines.append(f"{len(found.rows) - len(tightest)} more constraints are less tight")
    lines += [f"no margin: {label} is {why}" for label, why in found.untouched.items()]
    lines.append("the report above is of the problem with margins: left - right + margin <= 0")
    errors = f"margins of {found.factor:.3g} standard errors"
    lines.append(f"{errors}, {_correction(found)}; rows taken as independent draws")
    lines.append(_cost(found))
    return Group(table, *(Text(line, style="dim") for line in lines))


def _cost(found: Margins) -> str:
    """The cost of the margins, if a point that keeps them was found."""
    label, row = max(found.rows.items(), key=lambda pair: pair[1].value + pair[1].margin)
    missing = row.value + row.margin
    if missing > MISSING_SHARE * row.margin:
        return (
            f"no point with them was found, so their cost is not known: `{label}` is "
            f"{residual(missing)} short of its margin"
        )
    return f"they cost {number(found.cost)}: the objective without them is {number(found.plain)}"


def _correction(found: Margins) -> str:
    """The method by which all margins hold together with the wanted confidence."""
    solves = f"{found.solves} answers on resampled rows in {seconds(found.seconds)}"
    if found.failed:
        solves += f", {found.failed} more had no answer"
    if found.how == "bagging":
        return f"by the largest deviation in {solves}"
    return f"Bonferroni over {len(found.rows)}: only {solves}"


def population_lines(found: Population) -> list[str]:
    """The interval of the optimality gap for new rows, with the method and its assumptions."""
    cost = f"{found.solves} answers on resampled rows in {seconds(found.seconds)}"
    if found.failed:
        cost += f", {found.failed} more had none"
    if found.why:
        return [f"no interval of the gap: {found.why} ({cost})"]
    lines = []
    if not math.isnan(found.most):
        lines.append(
            f"gap at most {number(found.most)} with 95% confidence (one-sided): two replications on the "
            "rows held out"
        )
    sided = "two-sided" if found.low else "one-sided"
    best = "the best" if found.convex else "the best that such runs find"
    interval = f"{number(found.low)} to {number(found.high)} with {found.level:.0%} confidence ({sided})"
    return [
        *lines,
        f"gap to {best}: {interval}, {number(found.mean)} in the mean",
        f"the objective is worse than on the rows at hand by {number(found.optimism)} in the mean",
        f"bagging, {cost}; rows taken as independent draws, the best as unique",
    ]
