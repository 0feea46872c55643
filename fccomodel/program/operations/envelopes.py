"""Envelopes and their slopes as text."""

from __future__ import annotations

import re

from fccomodel.library.proximal import Proximal
from fccomodel.program.operations.base import bare


def lam_text(function: Proximal, lam: str) -> str:
    """The smoothing parameter, for a weakly convex function at most half of the smallest that is too
    large."""
    if function.weak:
        return f"min({lam}, {function.largest() / 2:.6g})"
    return lam


def slope_text(function: Proximal, scale: str | None, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
    """argmax over y of y.t - f*(y) - lam/2 |y - c|^2 for f = scale * function: a point of the dual
    domain, the multiplier."""
    if scale is not None:
        return f"h.{scale} * ({function.slope_text(_moved(t, lam, c), f'(h.{scale} * {lam})', dims)})"
    text = function.slope_text("x", "lam", dims)
    if max(len(re.findall(rf"\b{name}\b", text)) for name in ("x", "lam")) < 3:
        return function.centred_text(t, lam, c, dims)
    return f"(lambda x, lam: {text})({bare(_moved(t, lam, c))}, {lam})"


def envelope_text(
    function: Proximal, scale: str | None, t: str, lam: str, c: str, dims: tuple[int, ...]
) -> str:
    """The maximum itself: the Moreau envelope, with a centre."""
    if scale is None:
        return f"({function.envelope_text(t, lam, c, dims)})"
    if c:
        less = f" - {lam} / 2 * {c}.square()" + (f".sum({dims})" if dims else "")
    else:
        less = ""
    return (
        f"(h.{scale} * ({function.envelope_text(_moved(t, lam, c), f'(h.{scale} * {lam})', '', dims)}){less})"
    )


def _moved(t: str, lam: str, c: str) -> str:
    if c:
        return f"({t} + {lam} * {c})"
    return t
