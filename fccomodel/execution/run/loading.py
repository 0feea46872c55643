"""A program's text as a module.

Parts that programs of the same model share are compiled once, and their classes are made once.
"""

from __future__ import annotations

import builtins
import copy
import dis
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from fccomodel.core import process
from fccomodel.program.emit import Program

#: The text between two parts of a program.
BETWEEN = "\n\n\n"
#: The largest number of classes that are kept for other programs.
LARGEST_CACHE = 512


def loaded(program: Program) -> types.ModuleType:
    """The program as a module, with copies of the nets that have no text."""
    module = types.ModuleType("solver")
    nets = {name: copy.deepcopy(net.module) for name, net in program.modules.items()}
    module.__dict__["MODULES"] = nets
    with process.own_randomness():
        for part, line in _parts(program.text):
            shared_class = _of_class(part, line, module.__dict__)
            if shared_class is None:
                exec(_compiled(part, line), module.__dict__)  # noqa: S102 - what we emitted
            else:
                module.__dict__[shared_class.__name__] = shared_class
    return module


def _parts(text: str) -> list[tuple[str, int]]:
    """A program's parts, which are separated by two empty lines, each with the number of lines before it."""
    line = 0
    parts: list[tuple[str, int]] = []
    try:
        for part in text.split(BETWEEN):
            _compiled_alone(part)
            parts.append((part, line))
            line += part.count("\n") + len(BETWEEN)
    except SyntaxError:  # empty lines inside a part
        return [(text, 0)]
    return parts


@lru_cache(maxsize=4096)
def _compiled(part: str, line: int) -> types.CodeType:
    """The code of a part that begins after so many lines."""
    return _moved(_compiled_alone(part), line)


@lru_cache(maxsize=4096)
def _compiled_alone(part: str) -> types.CodeType:
    """The code of a part whose first line is line 1: programs have it at other lines."""
    return compile(part, "solver.py", "exec", dont_inherit=True)


def _moved(code: types.CodeType, lines: int) -> types.CodeType:
    """The code, and that of its inner functions, so many lines further down.

    The lines of instructions are kept relative to the first line.
    """
    inside = (_moved(c, lines) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_firstlineno=code.co_firstlineno + lines, co_consts=tuple(inside))


# ------------------------------------------------------------------------------------------ classes
_classes: dict[tuple[Any, ...], type] = {}


def _of_class(part: str, line: int, scope: dict[str, Any]) -> type | None:
    """The class that a part defines, taken from another program if all that it names is the same there.

    None if the part is not a class, or if it names something of this program alone.
    """
    needed = _needed(part)
    if needed is None or not all(name in scope and _lasting(scope[name]) for name in needed):
        return None
    key = (part, line, *(id(scope[name]) for name in needed))
    if key not in _classes:
        code = _compiled(part, line)
        space = {name: scope[name] for name in needed} | {"__name__": scope["__name__"]}
        exec(code, space)  # noqa: S102 - what we emitted
        if len(_classes) >= LARGEST_CACHE:
            del _classes[next(iter(_classes))]  # the oldest
        _classes[key] = next(
            value for name, value in space.items() if name in code.co_names and name not in needed
        )
    return _classes[key]


@lru_cache(maxsize=4096)
def _needed(part: str) -> tuple[str, ...] | None:
    """The names that a class and its functions take from the module; None if the part is not one class."""
    code = _compiled_alone(part)
    bodies = [inside for inside in code.co_consts if isinstance(inside, types.CodeType)]
    if dis.opmap["LOAD_BUILD_CLASS"] not in code.co_code[::2]:
        return None
    instructions = list(dis.get_instructions(code))
    stored = [i.argval for i in instructions if i.opname == "STORE_NAME"]
    if len(bodies) != 1 or stored != [bodies[0].co_name]:
        return None
    own = {i.argval for i in dis.get_instructions(bodies[0]) if i.opname == "STORE_NAME"}
    read = dict.fromkeys(
        name for how, name in _read(code) if name not in stored and (how != "LOAD_NAME" or name not in own)
    )
    return tuple(name for name in read if not hasattr(builtins, name))


def _read(code: types.CodeType) -> Iterator[tuple[str, str]]:
    """The global names that code and its inner functions look up, each after the instruction's name."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"):
            yield instruction.opname, instruction.argval
    for inside in code.co_consts:
        if isinstance(inside, types.CodeType):
            yield from _read(inside)


def _lasting(value: Any) -> bool:
    """Whether a value outlives the program: a module, something from a module, or a kept class."""
    if isinstance(value, types.ModuleType) or getattr(value, "__module__", "solver") != "solver":
        return True
    return isinstance(value, type) and any(value is kept_class for kept_class in _classes.values())
