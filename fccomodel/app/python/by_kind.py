"""Values for a model's names, sorted by what they are for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fccomodel.core import files, ir


def kinds(problem: ir.Problem) -> dict[str, str]:
    """For each name that is bound: ``data`` (tables and arrays), ``params`` (and dims) or ``nets``."""
    return {
        **dict.fromkeys((*problem.tables, *problem.arrays), "data"),
        **dict.fromkeys((*problem.params, *problem.dims), "params"),
        **dict.fromkeys(problem.nets, "nets"),
    }


def by_kind(
    problem: ir.Problem, mappings: Mapping[str, Mapping[str, Any]], keywords: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The values of mappings and keywords together, for each kind by name.

    mappings   a mapping for each of ``data``, ``params`` and ``nets``
    keywords   values by name; a name that the model does not have counts as data

    F0805 for a name that is in a mapping and a keyword.
    """
    kind_of = kinds(problem)
    as_keywords: dict[str, dict[str, Any]] = {kind: {} for kind in mappings}
    for name, value in keywords.items():
        as_keywords[kind_of.get(name, "data")][name] = value
    return {
        kind: files.merged((f"in `{kind}`", mapping), ("as a keyword", as_keywords[kind]))
        for kind, mapping in mappings.items()
    }
