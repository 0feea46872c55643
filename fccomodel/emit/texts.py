"""Small pieces of emitted text: numbers, parentheses, slopes."""

from __future__ import annotations

from collections.abc import Iterable

from fccomodel.graph import Axis, Val
from fccomodel.piecewise import PiecewiseLQ


def merged(val: Val, over: Iterable[Axis]) -> tuple[Axis, ...]:
    """The axes of a reduction's elements, in layout order."""
    return tuple(sorted((*val.axes, *over), key=lambda a: a.order))


def ball_text(ball: str, point: str, dims: int) -> str:
    """The nearest point of a unit ball."""
    axes = tuple(range(-dims, 0))
    match ball:
        case "linf":
            return f"({point}).clamp(-1, 1)"
        case "l2":
            return f"onto_ball({point}, {axes})"
    return f"onto_cross_polytope({point})"


def slope_text(graph: PiecewiseLQ, scale: str | None, lam: str, t: str) -> str:
    """The slope at ``t`` of the Moreau envelope of ``scale * graph``: an element of the dual domain, the multiplier."""
    if scale is None:
        return graph.gradient_text(lam, t)
    return f"h.{scale} * ({graph.gradient_text(f'(h.{scale} * {lam})', t)})"


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


def shorten(text: str, width: int = 72) -> str:
    """The text, cut where it is longer than ``width``."""
    return text if len(text) <= width else text[: width - 3] + "..."
