"""Algorithms: what their theorems assume and promise, their updates as programs carry them, the forms of the papers."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from markup import page, paragraph, properties, source, table, text

from fccomodel import algorithms as registry
from fccomodel.algorithms import Algorithm
from fccomodel.app.generated import citing
from fccomodel.app.shown import cards


def methods() -> dict[str, tuple[str, str]]:
    """A page for each, by its name: title and text; the first lists them."""
    records = registry.all()
    links = [f'<a href="{key}.html">{text(record.title)}</a>' for key, record in records.items()]
    promises = [map(text, (f"O({record.rate})", record.counts, record.theorem)) for record in records.values()]
    rows = [(link, *promise) for link, promise in zip(links, promises, strict=True)]
    about = (
        "Which one is chosen follows from the model: `fccomodel explain MODEL` says why, and what the others lack. "
        "Rates are in the accuracy eps, n blocks of which B1 are sampled a step, with B2 samples of each."
    )
    start = page("# Algorithms", paragraph(about), table(("algorithm", "rate", "counts", "theorem"), rows))
    return {"index": ("Algorithms", start)} | {key: (record.title, _page(record)) for key, record in records.items()}


def _page(record: Algorithm) -> str:
    module = importlib.import_module(f"fccomodel.algorithms.{record.name}")
    blocks = [f"# {record.title}", paragraph(inspect.getdoc(module) or ""), properties(cards.algorithm(record).entries)]
    about = "As a program has it, in plain PyTorch; `h` holds the options, `u` the estimates."
    blocks += ["## Update", paragraph(about), *_update(record)]
    head, *_ = cards.HEAD
    blocks += ["## Forms", table(head, [tuple(map(text, row)) for row in cards.forms(record)])]
    entries = "\n".join(citing.papers()[key] for key in dict.fromkeys(citing.keys(record.theorem)))
    return page(*blocks, *(["## Cite", f"```bibtex\n{entries}```"] if entries else []))


def _update(record: Algorithm) -> list[str]:
    """Its estimate, its gradient's step, what else is its own."""
    functions: dict[Any, None] = {}
    if isinstance(record.estimator, ModuleType):
        functions[record.estimator.track] = None
    functions |= dict.fromkeys((record.advance, *record.steps.values()))
    return [source(function) for function in functions]
