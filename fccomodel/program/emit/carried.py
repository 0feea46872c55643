"""Functions and classes whose source is copied into programs, so that the tested code is the code that
runs.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, lru_cache
from symtable import SymbolTable, symtable
from types import FunctionType
from typing import Any

#: annotations are texts: the names in them are read by nothing that runs
UNEVALUATED = "from __future__ import annotations\n"

#: packages whose functions and classes a program imports
FOREIGN = sys.stdlib_module_names | {"torch"}

#: a function or a class
Carried = Callable[..., Any]


def carried(roots: Iterable[Carried], elsewhere: Collection[Carried] = ()) -> list[Carried]:
    """Functions and classes and everything that they name, each after the names that it uses.

    Names that are ``elsewhere`` in the program are left out.
    """
    ordered: dict[Carried, None] = {}
    seen = set(elsewhere)

    def add(thing: Carried) -> None:
        """Add a definition after those that it uses."""
        if thing not in seen:
            seen.add(thing)
            for other in _named(thing):
                add(other)
            ordered[thing] = None

    for root in roots:
        add(root)
    return list(ordered)


@cache
def source(thing: Carried) -> str:
    """The text of a function or class: the lines of its file from its decorators to its end."""
    file, word = inspect.getsourcefile(thing), "class" if inspect.isclass(thing) else "def"
    assert file is not None and thing.__qualname__ == thing.__name__, (
        f"{thing.__qualname__} stands in no file by itself"
    )
    lines = linecache.getlines(file)
    head = f"{word} {thing.__name__}"
    first = next(
        k
        for k, line in enumerate(lines)
        if line.startswith(head) and not f"x{line[len(head)]}".isidentifier()
    )
    last = next((k for k in range(first + 1, len(lines)) if lines[k][0] not in ") \t\r\n\f\v"), len(lines))
    while lines[first - 1].startswith("@"):
        first -= 1
    return "".join(lines[first:last]).rstrip()


@lru_cache(maxsize=256)
def read(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that a piece of a program reads, and those of all functions and classes in it.

    Many pieces are the same in all programs: what was read is kept.
    """
    top = _scope(text)
    names = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    names |= {name for inside in top.get_children() for name in _globals_of(inside)}
    return frozenset(names), frozenset(scope.get_name() for scope in _scopes_in(top))


def global_names(text: str) -> Iterator[str]:
    """The global names that the functions and classes of a text read, in the order of the text."""
    for inside in _scope(text).get_children():
        yield from _globals_of(inside)


def _scope(text: str) -> SymbolTable:
    return symtable(UNEVALUATED + text, "solver.py", "exec")


def _scopes_in(scope: SymbolTable) -> Iterator[SymbolTable]:
    for inside in scope.get_children():
        yield inside
        yield from _scopes_in(inside)


def _globals_of(scope: SymbolTable) -> Iterator[str]:
    """The global names that a scope reads, then those that the scopes inside it read."""
    for symbol in scope.get_symbols():
        if symbol.is_global() and symbol.is_referenced():
            yield symbol.get_name()
    for inside in scope.get_children():
        yield from _globals_of(inside)


@cache
def _named(thing: Carried) -> tuple[Carried, ...]:
    """The functions and classes that a function or class names: calls, makes, builds upon, or has in an
    annotation."""
    inside = _scope(source(thing)).get_children()
    scope = next(child for child in inside if child.get_name() == thing.__name__)
    names = [*_globals_of(scope), *_in_annotations(thing)]
    if isinstance(thing, FunctionType):
        return tuple(_own(thing.__globals__.get(name) for name in names))
    assert isinstance(thing, type)
    names = [*_in_annotations(thing)]
    for method in scope.get_children():
        names += [*_globals_of(method), *_in_annotations(vars(thing).get(method.get_name()))]
    around = vars(sys.modules[thing.__module__])
    return tuple(x for x in _own([*thing.__bases__, *map(around.get, names)]) if x is not thing)


def _own(values: Iterable[Any]) -> Iterator[Carried]:
    """The functions and classes among some values that are neither of Python nor of torch."""
    for value in values:
        if inspect.isfunction(value) or inspect.isclass(value):
            if value.__module__.partition(".")[0] not in FOREIGN:
                yield value


def _in_annotations(thing: Any) -> Iterator[str]:
    """The names in annotations, of a function's parameters or a class's fields."""
    function = getattr(thing, "__func__", None) or getattr(thing, "fget", None) or thing
    for annotation in getattr(function, "__annotations__", {}).values():
        if isinstance(annotation, str):
            yield from re.findall(r"\b[A-Za-z_]\w*", annotation)
