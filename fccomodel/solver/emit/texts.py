"""Small pieces of emitted text: numbers, parentheses, slopes; and the functions whose source is copied."""

from __future__ import annotations

import ast
import dis
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any

from fccomodel.library.graph import Axis, Val
from fccomodel.library.proximal import Proximal


def with_called(functions: Iterable[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """Functions, each after those that it calls by name."""
    found: dict[Callable[..., Any], None] = {}
    seen: set[Callable[..., Any]] = set()

    def add(function: Callable[..., Any]) -> None:
        if function in seen:
            return
        seen.add(function)
        for name in _global_names(function.__code__):
            if inspect.isfunction(helper := function.__globals__.get(name)):
                add(helper)
        found[function] = None

    for function in functions:
        add(function)
    return list(found)


def called(text: str) -> tuple[set[str], set[str]]:
    """The names that a program's text calls, and those of the functions that it defines."""
    nodes = list(ast.walk(ast.parse(text)))
    used = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return used, {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def _global_names(code: CodeType) -> Iterator[str]:
    """The global names that a function's code reads, that of the functions inside it too."""
    yield from (step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL")
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            yield from _global_names(inside)


def merged(val: Val, over: Iterable[Axis]) -> tuple[Axis, ...]:
    """The axes of a reduction's elements, in layout order."""
    return tuple(sorted((*val.axes, *over), key=lambda a: a.order))


def lam_text(function: Proximal, lam: str) -> str:
    """The smoothing parameter, for a weakly convex function at most half of the smallest that is too large."""
    return f"min({lam}, {function.largest() / 2:.6g})" if function.weak else lam


def slope_text(function: Proximal, scale: str | None, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
    """argmax over y of y.t - f*(y) - lam/2 |y - c|^2 for f = scale * function: a point of the dual domain, the multiplier."""
    if scale is not None:
        return f"h.{scale} * ({function.slope_text(_moved(t, lam, c), f'(h.{scale} * {lam})', dims)})"
    text = function.slope_text("x", "lam", dims)
    if max(len(re.findall(rf"\b{name}\b", text)) for name in ("x", "lam")) < 3:
        return function.centred_text(t, lam, c, dims)
    return f"(lambda x, lam: {text})({bare(_moved(t, lam, c))}, {lam})"


def envelope_text(function: Proximal, scale: str | None, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
    """The maximum itself: the Moreau envelope, with a centre."""
    if scale is None:
        return f"({function.envelope_text(t, lam, c, dims)})"
    less = f" - {lam} / 2 * {c}.square()" + (f".sum({dims})" if dims else "") if c else ""
    return f"(h.{scale} * ({function.envelope_text(_moved(t, lam, c), f'(h.{scale} * {lam})', '', dims)}){less})"


def _moved(t: str, lam: str, c: str) -> str:
    return f"({t} + {lam} * {c})" if c else t


def number(value: float) -> str:
    """A number as Python text, integers without a decimal point."""
    if value != value or value in (float("inf"), float("-inf")):
        return f"float('{value}')"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value)}" if value >= 0 else f"({int(value)})"
    return repr(value) if value >= 0 else f"({value!r})"


def bare(text: str) -> str:
    """The text without parentheses around the whole of it."""
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for place, char in enumerate(text):
            depth += (char == "(") - (char == ")")
            if depth == 0 and place < len(text) - 1:
                return text
        text = text[1:-1]
    return text


def simple(text: str) -> bool:
    """A name, a call or an index that may stand anywhere without parentheses."""
    depth = 0
    for char in text:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0 and not (char.isalnum() or char in "._"):
            return False
    return True
