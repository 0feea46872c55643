"""Functions and classes whose source a program carries: what is tested here is the text that runs there."""

from __future__ import annotations

import dis
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, lru_cache
from types import CodeType, FunctionType
from typing import Any

#: what reads a global name, and how many bits of its argument are flags
READS = {dis.opmap["LOAD_GLOBAL"]: 1, dis.opmap["LOAD_NAME"]: 0}

#: packages whose functions and classes a program imports
FOREIGN = sys.stdlib_module_names | {"torch"}

#: a function or a class
Carried = Callable[..., Any]


def carried(roots: Iterable[Carried], elsewhere: Collection[Carried] = ()) -> list[Carried]:
    """Functions and classes, each after those that it names; without those that stand ``elsewhere`` in
    the program."""
    ordered: dict[Carried, None] = {}
    seen = set(elsewhere)

    def add(thing: Carried) -> None:
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
    """Its text: the lines of its file from its decorators up to the next that begins something else."""
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
    """The global names that a piece of a program reads, and those of the functions that it defines;
    many pieces are in all programs."""
    code = compile(text, "solver.py", "exec", annotations.compiler_flag, dont_inherit=True)
    return frozenset(global_names(code)), frozenset(_defined(code))


def _defined(code: CodeType) -> Iterator[str]:
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            yield inside.co_name
            yield from _defined(inside)


@cache
def _named(thing: Carried) -> tuple[Carried, ...]:
    """Those functions and classes that it names: calls, makes, builds upon, or has in an annotation."""
    if isinstance(thing, FunctionType):
        names = [*global_names(thing.__code__), *_in_annotations(thing)]
        return tuple(_own(thing.__globals__.get(name) for name in names))
    assert isinstance(thing, type)
    scope = vars(sys.modules[thing.__module__])
    methods = [
        method.__func__ if isinstance(method, staticmethod) else method for method in vars(thing).values()
    ]
    parts = [
        _named(method) for method in methods if isinstance(method, FunctionType) and _written(method, thing)
    ]
    named = [
        *thing.__bases__,
        *(scope.get(name) for name in _in_annotations(thing)),
        *(x for part in parts for x in part),
    ]
    return tuple(x for x in _own(named) if x is not thing)


def _written(method: FunctionType, owner: type) -> bool:
    """It stands in the class's text, not made by a decorator."""
    return method.__code__.co_filename == sys.modules[owner.__module__].__file__


def _own(values: Iterable[Any]) -> Iterator[Carried]:
    """Those that are neither of Python nor of torch."""
    for value in values:
        if inspect.isfunction(value) or inspect.isclass(value):
            if value.__module__.partition(".")[0] not in FOREIGN:
                yield value


def _in_annotations(thing: Carried) -> Iterator[str]:
    """The names in annotations, of a function's parameters or a class's fields."""
    for annotation in inspect.get_annotations(thing).values():
        if isinstance(annotation, str):
            yield from re.findall(r"\b[A-Za-z_]\w*", annotation)


def global_names(code: CodeType) -> Iterator[str]:
    """The global names that code reads, and that of the functions inside it; some bits of an argument
    are flags."""
    high = 0
    for operation, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        if operation in READS:
            yield code.co_names[(high | low) >> READS[operation]]
        if operation == dis.EXTENDED_ARG:
            high = (high | low) << 8
        else:
            high = 0
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            yield from global_names(inside)
