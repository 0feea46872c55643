"""Finds the settings that an algorithm's functions read, in the source of the functions.

An option that none of them reads has no effect.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

#: The package whose functions and classes are followed.
PACKAGE = __name__.rpartition(".")[0]


def attributes(roots: Iterable[Callable[..., Any]]) -> frozenset[str]:
    """The names of the attributes that functions and classes read, directly or in those that they call."""
    names: set[str] = set()
    seen: set[Callable[..., Any]] = set()
    waiting = list(roots)
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        read, called = _own_attributes(function)
        names |= read
        waiting += called
    return frozenset(names)


@cache
def _own_attributes(
    function: Callable[..., Any],
) -> tuple[frozenset[str], tuple[Callable[..., Any], ...]]:
    """The attributes that a function or a class reads itself, and the functions and classes that it names.

    An attribute that is called is a method, and not counted.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    called: set[int] = set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called.add(id(node.func))
        elif isinstance(node, ast.Name):
            names.add(node.id)
    read = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) not in called:
            read.add(node.attr)
    return frozenset(read), tuple(_followed(function, names))


def _followed(function: Callable[..., Any], names: Iterable[str]) -> Iterator[Callable[..., Any]]:
    """The functions and classes of this package with these names, and the bases of a class."""
    module = inspect.getmodule(function)
    known = {} if module is None else vars(module)
    others = [known.get(name) for name in names]
    if inspect.isclass(function):
        others += function.__bases__
    for other in others:
        if inspect.isfunction(other) or inspect.isclass(other):
            if other.__module__.startswith(PACKAGE):
                yield other
