"""Walking and rewriting abstract syntax."""

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


@contextmanager
def deep() -> Iterator[None]:
    """Room for recursion down formulas that Python code built, without bounds of its own."""
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
            made: object = change(value)
        elif isinstance(value, tuple) and any(isinstance(part, syntax.Node) for part in value):
            made = tuple(change(part) if isinstance(part, syntax.Node) else part for part in value)
        else:
            continue
        if made is not value:
            new[entry.name] = made
    return dataclasses.replace(node, **new) if new else node  # type: ignore[type-var, arg-type, return-value]


def replaced(node: syntax.Expr, change: Callable[[syntax.Node], syntax.Node | None]) -> syntax.Expr:
    """The node with every node that ``change`` has another for replaced by that."""

    def go(part: syntax.Node) -> syntax.Node:
        new = change(part)
        if new is None:
            return rebuilt(part, go)
        return new

    with deep():
        result = go(node)
    assert isinstance(result, syntax.Expr)
    return result


def canonical(node: syntax.Node) -> syntax.Node:
    """The node with numbers spelt by their values, and arguments separated by commas alone: what
    counts of a model."""
    if isinstance(node, syntax.Number):
        whole = node.value == int(node.value) and node.value < 1e15
        return dataclasses.replace(node, text=str(int(node.value)) if whole else repr(node.value))
    node = rebuilt(node, canonical)
    if isinstance(node, syntax.Call):
        return dataclasses.replace(node, semicolon=None)
    return node
