"""What is remembered of a bound problem: by itself, and in common with those of the same data under
other params."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from fccomodel.core import ir
from fccomodel.data.bound import Bound


class Memory(dict):
    """What is remembered of a bound problem by itself; ``common``: what it has in common with those of
    the same data."""

    def __init__(self, common: dict[Any, Any] | None = None):
        super().__init__()
        self.common: dict[Any, Any]
        if common is None:
            self.common = {}
        else:
            self.common = common


_memories: weakref.WeakKeyDictionary[Bound, Memory] = weakref.WeakKeyDictionary()


class Owned:
    """A record of a bound problem (``owner``) that may be remembered with it, and so must not keep it
    alive."""

    owner: weakref.ref[Bound]

    @property
    def bound(self) -> Bound:
        bound = self.owner()
        assert bound is not None, "who asks has the bound problem"
        return bound


def remember(bound: Bound, key: Any, make: Callable[[], Any]) -> Any:
    """What ``make()`` gave the first time, for one bound problem. Keys may hold records of the
    problem, which it keeps alive; what is made must not hold the bound problem itself, whose data
    would never be let go (see ``Owned``)."""
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
    """The same data with other params: what is made of neither is remembered for both."""
    _memories[bound] = Memory(_memory(other).common)
    return bound


def common(bound: Bound, key: Any, made_of: Iterable[ir.Expr], make: Callable[[], Any]) -> Any:
    """As ``remember``, for all bound problems of the same data: what is made of these and of some
    expressions, which no param with another value is in; of the values that were asked for, the
    last are kept. A record that has an owner gets the one who asks."""
    memory = _memory(bound)
    if key not in memory:
        values = [bound.params[name].tobytes() for name in _named(bound, tuple(made_of))]
        then, found = memory.common.get(key, (None, None))
        if then != values:
            found = make()
            memory.common[key] = values, found
        elif isinstance(found, Owned) and found.owner() is not bound:
            found = replace(found, owner=weakref.ref(bound))  # type: ignore[type-var]
        memory[key] = found
    return memory[key]


def _named(bound: Bound, exprs: tuple[ir.Expr, ...]) -> tuple[str, ...]:
    """The params that some expressions name, in the sets of their binders too."""
    memory = _memory(bound).common
    if ("params", exprs) not in memory:
        nodes = [node for expr in exprs for node in ir.walk(expr)]
        domains = [b.domain for node in nodes for b in _binders(node)]
        inner = tuple(dict.fromkeys(part for domain in domains for part in deciding(domain)))
        names = {node.name for node in nodes if isinstance(node, ir.Param)} | set(
            _named(bound, inner) if inner else ()
        )
        memory["params", exprs] = tuple(sorted(names & bound.params.keys()))
    return memory["params", exprs]


def _binders(node: ir.Expr) -> tuple[ir.Binder, ...]:
    if isinstance(node, ir.Reduce):
        return node.binders
    if isinstance(node, ir.Column | ir.Element | ir.Exists):
        return (node.binder,)
    return ()


def deciding(domain: ir.Set) -> tuple[ir.Expr, ...]:
    """The expressions that decide a set."""
    if isinstance(domain, ir.RowSet):
        if domain.where is None:
            return ()
        return (domain.where,)
    if isinstance(domain, ir.ValueSet):
        return tuple(
            e for e in (*(domain.items or ()), domain.low, domain.high, domain.step) if e is not None
        )
    return tuple(getattr(domain, "args", ()))
