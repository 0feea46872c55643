"""Memory of a bound problem, and memory shared by bound problems of the same data with other params."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from fccomodel.core import ir
from fccomodel.data.bound import Bound


class Memory(dict):
    """The values remembered for one bound problem; ``common`` holds those shared by the same data."""

    def __init__(self, common: dict[Any, Any] | None = None):
        super().__init__()
        self.common: dict[Any, Any]
        if common is None:
            self.common = {}
        else:
            self.common = common


_memories: weakref.WeakKeyDictionary[Bound, Memory] = weakref.WeakKeyDictionary()


class Owned:
    """A record of a bound problem that may be remembered with it, and so holds it by a weak reference."""

    owner: weakref.ref[Bound]

    @property
    def bound(self) -> Bound:
        """The bound problem."""
        bound = self.owner()
        assert bound is not None, "who asks has the bound problem"
        return bound


def remember(bound: Bound, key: Any, make: Callable[[], Any]) -> Any:
    """The value that ``make()`` gave the first time, for one bound problem.

    Keys may hold records of the problem. The value must not hold the bound problem itself, because its
    data would never be freed (see ``Owned``).
    """
    memory = _memory(bound)
    if key not in memory:
        memory[key] = make()
    return memory[key]


def _memory(bound: Bound) -> Memory:
    memory = _memories.get(bound)
    if memory is None:
        return _memories.setdefault(bound, Memory())
    return memory


def akin(bound: Bound, other: Bound) -> Bound:
    """The bound problem, whose ``common`` memory is shared with ``other``: the same data, other params."""
    _memories[bound] = Memory(_memory(other).common)
    return bound


def common(bound: Bound, key: Any, made_of: Iterable[ir.Expr], make: Callable[[], Any]) -> Any:
    """The value that ``make()`` gave, shared by all bound problems of the same data.

    The value depends on the data and on the expressions ``made_of``. It is made again if a param in
    these has another value; the last value is kept. A record with an owner is copied for ``bound``.
    """
    memory = _memory(bound)
    if key not in memory:
        params = [bound.params[name].tobytes() for name in _named(bound, tuple(made_of))]
        known_params, value = memory.common.get(key, (None, None))
        if known_params != params:
            value = make()
            memory.common[key] = params, value
        elif isinstance(value, Owned) and value.owner() is not bound:
            value = replace(value, owner=weakref.ref(bound))  # type: ignore[type-var]
        memory[key] = value
    return memory[key]


def _named(bound: Bound, exprs: tuple[ir.Expr, ...]) -> tuple[str, ...]:
    """The params in some expressions and in the sets of their binders."""
    memory = _memory(bound).common
    if ("params", exprs) not in memory:
        nodes = [node for expr in exprs for node in ir.walk(expr)]
        domains = [b.domain for node in nodes for b in _binders(node)]
        inner = tuple(dict.fromkeys(part for domain in domains for part in deciding(domain)))
        names = {node.name for node in nodes if isinstance(node, ir.Param)}
        if inner:
            names |= set(_named(bound, inner))
        memory["params", exprs] = tuple(sorted(names & bound.params.keys()))
    return memory["params", exprs]


def _binders(node: ir.Expr) -> tuple[ir.Binder, ...]:
    """The binders that a node introduces or refers to."""
    if isinstance(node, ir.Reduce):
        return node.binders
    if isinstance(node, ir.Column | ir.Element | ir.Exists):
        return (node.binder,)
    return ()


def deciding(domain: ir.Set) -> tuple[ir.Expr, ...]:
    """The expressions that decide the elements of a set."""
    if isinstance(domain, ir.RowSet):
        if domain.where is None:
            return ()
        return (domain.where,)
    if isinstance(domain, ir.ValueSet):
        parts = (*(domain.items or ()), domain.low, domain.high, domain.step)
        return tuple(e for e in parts if e is not None)
    return tuple(getattr(domain, "args", ()))
