"""A result as one page for a browser.

It has the model as mathematics, pictures, the KKT table, assumptions, data, and the command that runs
it again. The page needs no network: mathematics is MathML, pictures are SVG, styles are inside. It is
made from ``result.json`` and the model's text, without the data.
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
from fccomodel.app.shown import display, labelled
from fccomodel.app.shown import explain as explaining
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.quoting import visible
from fccomodel.language import statements

if TYPE_CHECKING:
    import numpy as np
    from markupsafe import Markup

    from fccomodel.app.stored.results import Stored

TEMPLATE = "page.html.j2"
#: Packages that a page needs.
PACKAGES = ("jinja2", "latex2mathml", "matplotlib")
#: Largest number of constraints with a row of their own.
SHOWN_CONSTRAINTS = 60
#: Largest number of entries of a variable that are shown.
SHOWN_ENTRIES = 8
#: Largest number of coefficients of a score that are shown.
SHOWN_COEFFICIENTS = 30
#: The grey of pictures that would not be seen on a dark page.
DARK = "#404040"


def html(stored: Stored) -> str:
    """The page of a stored result. F0529 if jinja2, latex2mathml or matplotlib is missing."""
    for package in PACKAGES:
        try:
            import_module(package)
        except ImportError:
            raise FccoError([errors.no_page(package)]) from None
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = lambda value: display.number(value, 5)
    environment.filters["residual"] = display.residual
    environment.filters["words"] = _words
    template = environment.from_string(files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8"))
    return template.render(**_context(stored))


def _context(stored: Stored) -> dict[str, Any]:
    """The values that the template refers to."""
    from fccomodel.app.shown.plots import Plots
    from fccomodel.report.certificates import gap

    record, problem = stored.record, stored.compiled.problem
    rows = record["constraints"] or {}
    kinds = display.kinds(problem)
    violations = {label: display.violation(label, row["value"], kinds) for label, row in rows.items()}
    order = sorted(rows, key=lambda label: -violations[label])
    plots = Plots(record, kinds, stored.variables)
    if plots.has_steps:
        pictures = {"Convergence": plots.convergence()}
    else:
        pictures = {"Variables": plots.variables()}
    if rows:
        pictures |= {"Constraints": plots.constraints(), "Multipliers": plots.multipliers()}
    explained = pipeline.explain(stored.compiled, pipeline.Binding(), {})
    return {
        "r": record,
        "label": problem.objective.label or "objective",
        "how": _how(record),
        "mathematics": mathematics(problem),
        "rows": [
            (label, rows[label], violations[label] <= display.TOLERANCE)
            for label in order[:SHOWN_CONSTRAINTS]
        ],
        "hidden": len(order) - min(len(order), SHOWN_CONSTRAINTS),
        "pictures": {name: svg(figure) for name, figure in pictures.items()},
        "structure": visible(explaining.to_text(explained.analysis, None), "\n"),
        "in_words": stored.in_words,
        "gap_remark": gap.remark((record.get("gap") or {}).get("value"), record["objective"]),
        "variables": {
            name: (value.shape, _largest(value, record["axes"]["variables"][name]))
            for name, value in stored.variables.items()
        },
        "coefficients": _coefficients(stored),
        "text": visible(record["source"]["text"], "\n\t"),
        "command": record.get("again", ""),
        "params": _params(record),
        "cite": citing.cite(record),
        "heldout": _held_out(record.get("holdout")),
        "given": [(k, o["value"], o["origin"]) for k, o in record["options"].items()],
    }


def _how(record: Mapping[str, Any]) -> str:
    """The methods that ran, in words; of results that do not say so, the algorithm with its steps."""
    words = (record.get("answered_by") or {}).get("words")
    return words or f"{record['algorithm']}, {record['iterations']:,} steps"


def _words(text: str) -> Markup:
    """A sentence of the record as HTML, with names and formulas in backquotes as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def _largest(value: np.ndarray, axes: Any) -> str:
    """The entries of a variable that are largest in size, with the names that its axes give them."""
    array = labelled.variables({"": value}, {"": axes})[""]
    entries = sorted(labelled.entries(array), key=lambda entry: -abs(entry[1]))
    numbers = (f"{name} {display.number(entry, 4)}".strip() for name, entry in entries[:SHOWN_ENTRIES])
    shown = ", ".join(numbers)
    if len(entries) > SHOWN_ENTRIES:
        return f"largest: {shown}"
    return shown


def _coefficients(stored: Stored) -> list[tuple[str, float]]:
    """The coefficients of a linear score in the units of the data, largest first; none of other scores."""
    from fccomodel.app.scoring import linear

    try:
        table = linear.coefficients(stored.fitted())
    except FccoError:
        return []
    if table.coefficients.ndim > 1:
        return []
    pairs = sorted(zip(table.names, table.coefficients.tolist(), strict=True), key=lambda pair: -abs(pair[1]))
    return [*pairs[:SHOWN_COEFFICIENTS], ("constant", float(table.constant))]


def _held_out(holdout: Any) -> str:
    """The held-out rows in words: the condition, or the share with the seed and the counts."""
    if not isinstance(holdout, Mapping):
        return str(holdout or "")
    if isinstance(holdout.get("given"), str):
        return str(holdout["given"])
    text = f"{holdout.get('given')} of the rows at random, seed {holdout.get('seed')}"
    rows = ", ".join(f"{count:,} of {name}" for name, count in holdout.get("rows", {}).items())
    if rows:
        text += f": {rows}"
    return text


def _params(record: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """Name, value and origin of each param whose value is not the model's default."""
    origins = record.get("param_origins") or {}
    default = {name: origins.get(name, {}).get("default") for name in record["params"]}
    differing = [name for name, value in record["params"].items() if value != default[name]]
    return [(name, record["params"][name], origins.get(name, {}).get("origin", "")) for name in differing]


def mathematics(problem: ir.Problem) -> list[list[str]]:
    """A problem as rows of cells of MathML."""
    return [mathml(line) for line in _rows(statements.latex(problem))]


def _rows(block: str) -> list[list[str]]:
    """The cells of an aligned block, row by row."""
    inner = re.sub(r"\\(begin|end)\{align\*\}", "", block).strip()
    rows = []
    for row in inner.split("\\\\\n"):
        rows.append([cell.strip() for cell in row.replace("&&", "&").split("&")])
    return rows


def mathml(cells: list[str]) -> list[str]:
    """Cells of LaTeX as MathML."""
    try:
        from latex2mathml.converter import convert
    except ImportError:
        raise FccoError([errors.no_page("latex2mathml")]) from None
    shown = [convert(cell) if cell else "" for cell in cells]
    return [cell.replace('display="inline"', 'display="inline" displaystyle="true"') for cell in shown]


def svg(figure: Any) -> str:
    """A figure as SVG, without a fixed size, in the colours of the page around it."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
    for side in ("height", "width"):
        text = re.sub(rf'(<svg[^>]*?) {side}="[^"]*"', r"\1", text, count=1)
    for dark in ("#000000", "black", DARK):
        text = text.replace(f"stroke: {dark}", "stroke: currentColor")
        text = text.replace(f"fill: {dark}", "fill: currentColor")
    return text.replace("<svg ", '<svg fill="currentColor" ', 1)
