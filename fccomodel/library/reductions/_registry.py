"""The registry of all kinds of reduction: each public module of this package is the file of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from fccomodel.core import ir
from fccomodel.core.registry import records
from fccomodel.library.reductions._spelled import Spelled, spelled
from fccomodel.library.reductions.base import Reduction


@cache
def all() -> Mapping[str, Reduction]:
    """Every kind by its name, in alphabetical order."""
    return records("fccomodel.library.reductions", Reduction)


def get(name: str) -> Reduction | None:
    """The kind of this name, or None."""
    return all().get(name)


@cache
def words() -> Mapping[str, Reduction | Spelled]:
    """What models write before ``[z ~ D]``, by its name: kinds, and words for functions of them."""
    written: dict[str, Reduction | Spelled] = {name: kind for name, kind in all().items() if kind.written}
    return dict(sorted({**written, **spelled()}.items()))


def of(node: ir.Reduce) -> Reduction:
    """The kind of a reduction node."""
    return all()[node.kind]


def named(which: Callable[[Reduction], bool]) -> tuple[str, ...]:
    """The names of the kinds with a given property."""
    return tuple(name for name, kind in all().items() if which(kind))


@cache
def logarithm(kind: Reduction) -> Reduction | None:
    """The kind with the value log R(e^x) for a linear kind R of numbers, or None."""
    if not kind.additive:
        return None
    return next(other for other in all().values() if other.logarithmic and other.total == kind.total)


def programs() -> Mapping[str, Callable[..., object]]:
    """The functions that emitted programs may carry, by name."""
    every = [
        f
        for kind in all().values()
        for f in (kind.program, kind.program_slope, kind.program_cap)
        if f is not None
    ]
    return {f.__name__: f for f in every}
