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
        ),
        encoding="utf-8",
    )


def _drawn(draw: Callable[[Any], None]) -> str:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from fccomodel.app.page import svg
    from fccomodel.app.plots import PAPER

    with rc_context(PAPER):
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        draw(figure.subplots())
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


def _networks(axes: Any, table: str) -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")][2:]
    problems, who = list(dict.fromkeys(row[0] for row in rows)), list(dict.fromkeys(row[1] for row in rows))
    for k, name in enumerate(who):
        ends = {row[0]: float(row[3]) for row in rows if row[1] == name and row[3] != "none"}
        places = [j + (k - (len(who) - 1) / 2) * 0.2 for j, problem in enumerate(problems) if problem in ends]
        axes.bar(places, [max(ends[problem], 0.0) for problem in problems if problem in ends], 0.18, label=name)
    axes.set_xticks(range(len(problems)), problems)
    axes.set(ylabel="objective")
    axes.legend(frameon=False)
