"""Which settings an algorithm's functions read, found in their source: an option that none of them
reads changes nothing."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

#: package whose functions and classes are followed
PACKAGE = __name__.rpartition(".")[0]


def attributes(roots: Iterable[Callable[..., Any]]) -> frozenset[str]:
    """The names of the attributes that some functions and classes read, those that they call included."""
    found: set[str] = set()
    seen: set[Callable[..., Any]] = set()
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        read, called = _own(one)
        found |= read
        waiting += called
    return frozenset(found)


@cache
def _own(one: Callable[..., Any]) -> tuple[frozenset[str], tuple[Callable[..., Any], ...]]:
    """The attributes that a function or a class reads itself, and the functions and classes that it names."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    taken = [
        node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    ]
    read = {node.attr for node in taken if id(node) not in called}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(read), tuple(_followed(one, names))


def _followed(one: Callable[..., Any], names: Iterable[str]) -> Iterator[Callable[..., Any]]:
    """The functions and classes of this package by these names, and those that a class is built upon."""
    module = inspect.getmodule(one)
    if module is None:
        known = {}
    else:
        known = vars(module)
    if inspect.isclass(one):
        bases = one.__bases__
    else:
        bases = ()
    for other in (*(known.get(name) for name in names), *bases):
        if inspect.isfunction(other) or inspect.isclass(other):
            if other.__module__.startswith(PACKAGE):
                yield other
