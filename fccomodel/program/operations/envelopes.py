"""Moreau envelopes and their slopes, as the statements of functions of the emitted program."""

from __future__ import annotations

import re

from fccomodel.program.operations.base import MoreauEnvelope, bare

#: the slope of an envelope along one of its stretches, as the proximal calculus writes it
SLOPE_OF_STRETCH = re.compile(r"\((?:\([^()]*\)|\w+) / (?:\([^()]*\)|\w+)\)\.clamp\([^()]*\)")
#: the argument moved by the centre, as the proximal calculus writes it
MOVED = "(t + lam * c)"


def slope_lines(envelope: MoreauEnvelope) -> list[str]:
    """argmax over y of y.t - f*(y) - lam/2 |y - c|^2: a point of the dual domain, the multiplier.

    The statements of a function of the argument t, the centre c (if there is one) and the settings h.
    """
    function, dims = envelope.function, envelope.dims
    if envelope.scale is None:
        return with_lam(envelope, function.centred_text("t", "lam", _centre(envelope), dims))
    slope = function.slope_text(_moved(envelope), "width", dims)
    return with_lam(envelope, f"h.{envelope.scale} * ({bare(slope)})")


def value_from_slope(envelope: MoreauEnvelope, slope: str) -> list[str] | None:
    """max over y of y.t - f*(y) - lam/2 |y - c|^2, the envelope itself: the statements of such a function.

    ``slope`` is the call of the function of ``slope_lines``. None if the envelope has a formula without it.
    """
    if envelope.scale is None:
        factor = ""
    else:
        factor = f"h.{envelope.scale}"
    value = envelope.function.envelope_from("y", "t", "lam", _centre(envelope), envelope.dims, factor)
    if value is None:
        return None
    return [f"lam = {lam_text(envelope)}", f"y = {slope}", f"return {value}"]


def value_lines(envelope: MoreauEnvelope) -> list[str]:
    """The envelope without its slope: the statements of such a function."""
    function, dims = envelope.function, envelope.dims
    if envelope.scale is None:
        return with_lam(envelope, function.envelope_text("t", "lam", _centre(envelope), dims))
    value = f"h.{envelope.scale} * ({bare(function.envelope_text(_moved(envelope), 'width', '', dims))})"
    if not envelope.centred:
        return with_lam(envelope, value)
    if dims:
        total = f".sum({dims})"
    else:
        total = ""
    return with_lam(envelope, f"{value} - lam / 2 * c.square(){total}")


def with_lam(envelope: MoreauEnvelope, result: str) -> list[str]:
    """The statements that return a result, after statements that define its names.

    The names are the smoothing parameter ``lam``, the shifted argument ``x``, and ``width``, which is lam
    times the scale of f.
    """
    lines = [f"lam = {lam_text(envelope)}"]
    if MOVED in result:
        lines.append(f"x = {bare(MOVED)}")
    if envelope.scale is not None:
        lines.append(f"width = h.{envelope.scale} * lam")
    slopes, result = repeated_slopes(result.replace(MOVED, "x"))
    return [*lines, *slopes, f"return {bare(result)}"]


def repeated_slopes(text: str) -> tuple[list[str], str]:
    """Statements that name each part of the slope that a formula repeats, and the formula with the names.

    The envelope of a piecewise function is a sum over the stretches of its slope, such as
    ``((x - 1) / width).clamp(0, 1)``, each of which the formula needs twice.
    """
    stretches = dict.fromkeys(SLOPE_OF_STRETCH.findall(text))
    repeated = [stretch for stretch in stretches if text.count(stretch) > 1]
    lines = []
    for number, stretch in enumerate(repeated, 1):
        name = "slope" if len(repeated) == 1 else f"slope_{number}"
        lines.append(f"{name} = {stretch}")
        text = text.replace(stretch, name)
    return lines, text


def lam_text(envelope: MoreauEnvelope) -> str:
    """The smoothing parameter; for a weakly convex function at most half of the smallest that is too
    large."""
    lam = f"h.lam_{envelope.name}"
    if envelope.damped:
        lam = f"h.tau * {lam}"
    if envelope.function.weak:
        return f"min({lam}, {envelope.function.largest() / 2:.6g})"
    return lam


def _centre(envelope: MoreauEnvelope) -> str:
    if envelope.centred:
        return "c"
    return ""


def _moved(envelope: MoreauEnvelope) -> str:
    if envelope.centred:
        return MOVED
    return "t"
