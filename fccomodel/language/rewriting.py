"""Walks over abstract syntax and rewritings of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from fccomodel.core import process
from fccomodel.language import syntax

Tree = TypeVar("Tree")
#: Python frames that the deepest formula needs.
_FRAMES = 200_000
#: Whole numbers below this are written without a decimal point.
EXACT_WHOLE_NUMBERS = 1e15


@contextmanager
def deep() -> Iterator[None]:
    """Room for recursion down formulas that Python code built, whose depth nothing limits."""
    with process.frames(_FRAMES):
        yield


def children(node: syntax.Node) -> Iterator[syntax.Node]:
    """The nodes directly inside a node."""
    for entry in dataclasses.fields(node):
        value = getattr(node, entry.name)
        if isinstance(value, syntax.Node):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, syntax.Node))


def walk(node: syntax.Node) -> Iterator[syntax.Node]:
    """A node and all nodes inside it, in no particular order."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        waiting.extend(children(node))
        yield node


def rebuilt(node: Tree, change: Callable[[syntax.Node], syntax.Node]) -> Tree:
    """The node with ``change`` applied to the nodes directly inside it."""
    assert isinstance(node, syntax.Node)
    new: dict[str, object] = {}
    for entry in dataclasses.fields(node):
        value = getattr(node, entry.name)
        if isinstance(value, syntax.Node):
            changed: object = change(value)
        elif isinstance(value, tuple) and any(isinstance(part, syntax.Node) for part in value):
            changed = tuple(change(part) if isinstance(part, syntax.Node) else part for part in value)
        else:
            continue
        if changed is not value:
            new[entry.name] = changed
    if not new:
        return node
    return dataclasses.replace(node, **new)  # type: ignore[type-var, arg-type, return-value]


def replaced(node: syntax.Expr, change: Callable[[syntax.Node], syntax.Node | None]) -> syntax.Expr:
    """The node with each node replaced for which ``change`` gives another one."""

    def go(part: syntax.Node) -> syntax.Node:
        """The part, replaced or rebuilt."""
        new = change(part)
        if new is None:
            return rebuilt(part, go)
        return new

    with deep():
        result = go(node)
    assert isinstance(result, syntax.Expr)
    return result


def canonical(node: syntax.Node) -> syntax.Node:
    """The node without the spelling of numbers and the ``;`` between arguments, which mean nothing."""
    if isinstance(node, syntax.Number):
        is_whole = node.value == int(node.value) and node.value < EXACT_WHOLE_NUMBERS
        return dataclasses.replace(node, text=str(int(node.value)) if is_whole else repr(node.value))
    node = rebuilt(node, canonical)
    if isinstance(node, syntax.Call):
        return dataclasses.replace(node, semicolon=None)
    return node
