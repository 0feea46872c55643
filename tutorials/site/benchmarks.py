"""Pictures of the benchmarks, drawn from the tables that they wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from markup import page

#: A line of ``textbook.md``: the model, its distance from CVXPY's optimum, the residual, the proved gap.
LINE = re.compile(r"^(\w+) +(-?[\d.]+e[-+]\d+) +([\d.]+e[-+]\d+) +([\d.]+e[-+]\d+|-|none)? ", re.MULTILINE)
LEAST = 1e-12


def write(tables: Path, to: Path) -> None:
    """The page of pictures."""
    to.write_text(
        page(
            "# Benchmarks",
            "Drawn from the tables of the next pages, which say how they were measured.",
            "## Models of textbooks",
            "The share of the models with an optimum whose objective is within a distance of CVXPY's, and whose residual "
            "is below it ([table](../tests/bench/textbook.md)).",
            _drawn(lambda axes: _textbook(axes, (tables / "textbook.md").read_text(encoding="utf-8"))),
            "## Constrained networks",
            "The lowest objective at a violation of at most 1e-3 after five seconds of one thread; the others' settings are the "
            "best of several in hindsight, ours the default ([table](../tests/bench/networks.md)).",
            _drawn(lambda axes: _networks(axes, (tables / "networks.md").read_text(encoding="utf-8"))),
            "## Speed",
            "What a case takes over what its peer takes, both in one run; marks are what it must be, where that is such a ratio "
            "([table](../tests/bench/peers.md)).",
            _drawn(lambda axes: _peers(axes, (tables / "peers.md").read_text(encoding="utf-8")), (6.4, 4.2)),
            "## Growth",
            "Processor seconds of each stage against a size of the model ([tables](../tests/bench/growth.md)); where the time of "
            "a step and of a solve goes is in [another table](../tests/bench/spent.md).",
            _drawn(lambda axes: _growth(axes, (tables / "growth.md").read_text(encoding="utf-8")), (6.4, 7.6), (4, 2)),
        ),
        encoding="utf-8",
    )


def _drawn(draw: Callable[[Any], None], size: tuple[float, float] = (6.4, 3.2), panels: tuple[int, int] = (1, 1)) -> str:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from fccomodel.app.shown.page import svg
    from fccomodel.app.shown.plots import PAPER

    with rc_context(PAPER):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots(*panels))
        return f'<div class="picture">{svg(figure).replace(chr(10), " ")}</div>'


def _textbook(axes: Any, table: str) -> None:
    rows = [(abs(float(off)), float(residual)) for _, off, residual, _ in LINE.findall(table)]
    assert len(rows) > 50, "textbook.md has another form"
    curves = (("distance from CVXPY's optimum", "-"), ("KKT residual", "--"))
    for values, (label, line) in zip(zip(*rows, strict=True), curves, strict=True):
        at = sorted(max(value, LEAST) for value in values)
        axes.step(at, [(k + 1) / len(at) for k in range(len(at))], line, where="post", label=label)
    axes.set(xscale="log", ylim=(0, 1.02), ylabel=f"share of {len(rows)} models")
    axes.legend(frameon=False, loc="lower right")


def _cells(table: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")][2:]


def _networks(axes: Any, table: str) -> None:
    rows = _cells(table)
    problems, who = list(dict.fromkeys(row[0] for row in rows)), list(dict.fromkeys(row[1] for row in rows))
    for k, name in enumerate(who):
        ends = {row[0]: float(row[3]) for row in rows if row[1] == name and row[3] != "none"}
        places = [j + (k - (len(who) - 1) / 2) * 0.2 for j, problem in enumerate(problems) if problem in ends]
        axes.bar(places, [max(ends[problem], 0.0) for problem in problems if problem in ends], 0.18, label=name)
    axes.set_xticks(range(len(problems)), problems)
    axes.set(ylabel="objective")
    axes.legend(frameon=False)


def _peers(axes: Any, table: str) -> None:
    rows = [row for row in _cells(table) if "larger is better" not in row[0] and not row[1].startswith("importing")][::-1]
    axes.barh(range(len(rows)), [float(row[2]) for row in rows], 0.6)
    goals = [(k, re.match(r"[\d.]+(?=$|[ ;](?!s))", row[3])) for k, row in enumerate(rows)]
    axes.plot([float(goal[0]) for _, goal in goals if goal], [k for k, goal in goals if goal], "|", color="black", markersize=9)
    axes.axvline(1.0, linewidth=0.6, color="grey")
    axes.set_yticks(range(len(rows)), [row[0] for row in rows], fontsize=6)
    axes.set(xscale="log", xlabel="ours / the peer's")
    axes.minorticks_off()
    axes.set_xticks(ticks := [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5], [f"{x:g}" for x in ticks])


def _growth(axes: Any, page: str) -> None:
    stages = ("bind", "plan", "emit", "step", "evaluate", "report")
    parts = re.findall(r"^\*\*(\w+)\*\*: .*?\n\n(.*?)\n\n", page + "\n\n", re.MULTILINE | re.DOTALL)
    for panel, (name, table) in zip(axes.flat, parts, strict=True):
        head = [cell.strip() for cell in table.splitlines()[0].strip("|").split("|")]
        rows = [row for row in _cells(table) if row[0] != "slope"]
        sizes = [float(row[0].replace(",", "")) for row in rows]
        for stage in stages:
            panel.plot(sizes, [float(row[head.index(stage)]) for row in rows], ".-", label=stage)
        panel.set(xscale="log", yscale="log", title=name)
        panel.minorticks_off()
        panel.set_xticks(sizes, [f"{n:,.0f}" for n in sizes], fontsize=6)
    for panel in axes[:, 0]:
        panel.set_ylabel("seconds")
    axes.flat[0].figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)
