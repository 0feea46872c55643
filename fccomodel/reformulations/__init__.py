"""Reformulations, one file each, found by themselves and applied in their declared order."""

from __future__ import annotations

import importlib
import pkgutil

from fccomodel import ir
from fccomodel.reformulations._base import Chain, Reformulation


def all() -> tuple[Reformulation, ...]:  # noqa: A001 - the registry's verb, as in the other registries
    """Every reformulation, in the order in which they are applied."""
    found = [
        importlib.import_module(f"{__name__}.{info.name}").reformulation
        for info in pkgutil.iter_modules(__path__)
        if not info.name.startswith("_")
    ]
    return tuple(sorted(found, key=lambda r: r.order))


def get(name: str) -> Reformulation:
    """The reformulation of that name."""
    return next(r for r in all() if r.name == name)


def chain(problem: ir.Problem) -> Chain:
    """Every equivalence that has something to do."""
    result = Chain(problem=problem)
    for reformulation in (r for r in all() if r.role == "equivalent"):
        problem, recover, sentences = reformulation.apply(result.problem)
        if sentences:
            step = (reformulation.name, tuple(sentences))
            result = Chain(problem=problem, steps=(*result.steps, step), recovers=(*result.recovers, recover))
    return result
