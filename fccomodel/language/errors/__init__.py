"""Every error that a model's text can have: one function each, from what is wrong to its diagnostic."""

from fccomodel.language.errors import (
    calls,
    declarations,
    indices,
    names,
    problem,
    recursions,
    reductions,
    sets,
    shapes,
    sorts,
    statements,
    syntax,
    text,
    values,
)

__all__ = [
    "calls",
    "declarations",
    "indices",
    "names",
    "problem",
    "recursions",
    "reductions",
    "sets",
    "shapes",
    "sorts",
    "statements",
    "syntax",
    "text",
    "values",
]
