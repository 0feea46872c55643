"""Small pieces of emitted text: numbers, parentheses, slopes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fccomodel.library.graph import Axis, Val
from fccomodel.library.proximal import Proximal


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
