"""A result as one page for a browser: the model as mathematics, pictures, the KKT table, assumptions,
data, how to run it again.

The page needs no network: mathematics is MathML, pictures are SVG, styles are within. It reads what
``result.json`` holds and compiles the model's text again; the data are not needed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fccomodel import pipeline
from fccomodel.app import errors
from fccomodel.app.generated import citing
from fccomodel.app.shown import display
from fccomodel.app.shown import explain as explaining
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.quoting import visible
from fccomodel.language import statements

if TYPE_CHECKING:
    from fccomodel.app.stored.results import Stored

TEMPLATE = "page.html.j2"
#: What a page is made by.
PACKAGES = ("jinja2", "latex2mathml", "matplotlib")
#: Constraints that get a row of their own.
MOST = 60
#: The grey of pictures that is not seen on a dark page.
DARK = "#404040"


def html(stored: Stored) -> str:
    """The page of a stored result. F0529 where jinja2, latex2mathml or matplotlib is missing."""
    for package in PACKAGES:
        try:
            import_module(package)
        except ImportError:
            raise FccoError([errors.no_page(package)]) from None
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = lambda value: display.number(value, 5)
    environment.filters["residual"] = display.residual
    template = environment.from_string(files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8"))
    return template.render(**_context(stored))


def _context(stored: Stored) -> dict[str, Any]:
    """What the template shows."""
    from fccomodel.app.shown.plots import Plots

    record, problem = stored.record, stored.compiled.problem
    rows = record["constraints"] or {}
    kinds = display.kinds(problem)
    broken = {label: display.violation(label, row["value"], kinds) for label, row in rows.items()}
    order = sorted(rows, key=lambda label: -broken[label])
    plots = Plots(record, kinds)
    pictures = {"Convergence": plots.convergence()}
    if rows:
        pictures |= {"Constraints": plots.constraints(), "Multipliers": plots.multipliers()}
    explained = pipeline.explain(stored.compiled, pipeline.Binding(), {})
    return {
        "r": record,
        "label": problem.objective.label or "objective",
        "mathematics": mathematics(problem),
        "rows": [(label, rows[label], broken[label] <= display.TOLERANCE) for label in order[:MOST]],
        "hidden": len(order) - min(len(order), MOST),
        "pictures": {name: svg(figure) for name, figure in pictures.items()},
        "structure": visible(explaining.to_text(explained.analysis, None), "\n"),
        "variables": {
            name: (value.shape, float((value**2).sum()) ** 0.5) for name, value in stored.variables.items()
        },
        "text": visible(record["source"]["text"], "\n\t"),
        "command": record.get("again", ""),
        "params": _params(record),
        "cite": citing.cite(record),
        "heldout": _held_out(record.get("holdout")),
        "given": [(k, o["value"], o["origin"]) for k, o in record["options"].items()],
    }


def _held_out(said: Any) -> str:
    """Which rows the answer is judged by."""
    if not isinstance(said, Mapping):
        return str(said or "")
    if isinstance(said.get("given"), str):
        return str(said["given"])
    rows = ", ".join(f"{count:,} of {name}" for name, count in said.get("rows", {}).items())
    return f"{said.get('given')} of the rows at random, seed {said.get('seed')}{f': {rows}' if rows else ''}"


def _params(record: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """The params whose values are not the model's own, and where these came from."""
    origins = record.get("param_origins") or {}
    default = {name: origins.get(name, {}).get("default") for name in record["params"]}
    differing = [name for name, value in record["params"].items() if value != default[name]]
    return [(name, record["params"][name], origins.get(name, {}).get("origin", "")) for name in differing]


def mathematics(problem: ir.Problem) -> list[list[str]]:
    """A problem as rows of cells of MathML."""
    return [mathml(line) for line in _rows(statements.latex(problem))]


def _rows(block: str) -> list[list[str]]:
    """The cells of an aligned block."""
    inner = re.sub(r"\\(begin|end)\{align\*\}", "", block)
    return [
        [cell.strip() for cell in row.replace("&&", "&").split("&")] for row in inner.strip().split("\\\\\n")
    ]


def mathml(cells: list[str]) -> list[str]:
    """Cells of LaTeX as MathML."""
    try:
        from latex2mathml.converter import convert
    except ImportError:
        raise FccoError([errors.no_page("latex2mathml")]) from None
    shown = [convert(cell) if cell else "" for cell in cells]
    return [cell.replace('display="inline"', 'display="inline" displaystyle="true"') for cell in shown]


def svg(figure: Any) -> str:
    """A figure's SVG, in the colours of the page around it."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
    text = re.sub(
        r'(<svg[^>]*?) width="[^"]*"',
        r"\1",
        re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1),
        count=1,
    )
    for dark in ("#000000", "black", DARK):
        text = text.replace(f"stroke: {dark}", "stroke: currentColor").replace(
            f"fill: {dark}", "fill: currentColor"
        )
    return text.replace("<svg ", '<svg fill="currentColor" ', 1)
