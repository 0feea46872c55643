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
    module.__dict__["MODULES"] = {
        name: copy.deepcopy(module_kept.module) for name, module_kept in program.modules.items()
    }
    with process.own_randomness():
        for part in _code(program.text):
            definition = _of_class(part, module.__dict__)
            if definition is None:
                exec(part, module.__dict__)  # noqa: S102 - what we emitted
            else:
                module.__dict__[definition.__name__] = definition
    return module


def _code(text: str) -> list[types.CodeType]:
    """The code of a program's parts, which are separated by two empty lines."""
    parts, line, codes = text.split(BETWEEN), 0, []
    try:
        for part in parts:
            codes.append(_compiled(part, line))
            line += part.count("\n") + len(BETWEEN)
    except SyntaxError:  # empty lines inside a part
        return [_compiled(text, 0)]
    return codes


@lru_cache(maxsize=4096)
def _compiled(part: str, line: int) -> types.CodeType:
    """The compiled code of a part, whose first line has the number ``line`` + 1 in the program."""
    return compile("\n" * line + part, "solver.py", "exec", dont_inherit=True)


# ------------------------------------------------------------------------------------------ classes
_classes: dict[tuple[Any, ...], type] = {}


def _of_class(part: types.CodeType, scope: dict[str, Any]) -> type | None:
    """The class that a part defines, taken from another program if all that it names is the same there.

    None if the part is not a class, or if it names something of this program alone.
    """
    needed = _needed(part)
    if needed is None or not all(name in scope and _lasting(scope[name]) for name in needed):
        return None
    key = (part, *(id(scope[name]) for name in needed))
    if key not in _classes:
        space = {name: scope[name] for name in needed} | {"__name__": scope["__name__"]}
        exec(part, space)  # noqa: S102 - what we emitted
        if len(_classes) >= LARGEST_CACHE:
            _classes.clear()
        _classes[key] = next(
            value for name, value in space.items() if name in part.co_names and name not in needed
        )
    return _classes[key]


@lru_cache(maxsize=4096)
def _needed(part: types.CodeType) -> tuple[str, ...] | None:
    """The names that a class and its functions take from the module; None if the part is not one class."""
    bodies = [code for code in part.co_consts if isinstance(code, types.CodeType)]
    if dis.opmap["LOAD_BUILD_CLASS"] not in part.co_code[::2]:
        return None
    instructions = list(dis.get_instructions(part))
    stored = [i.argval for i in instructions if i.opname == "STORE_NAME"]
    if len(bodies) != 1 or stored != [bodies[0].co_name]:
        return None
    own = {i.argval for i in dis.get_instructions(bodies[0]) if i.opname == "STORE_NAME"}
    read = dict.fromkeys(
        name for how, name in _read(part) if name not in stored and (how != "LOAD_NAME" or name not in own)
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
    return isinstance(value, type) and any(value is classes for classes in _classes.values())
