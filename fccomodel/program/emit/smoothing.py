"""The section with the Moreau envelopes: for each smoothed function its value and its slope."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from fccomodel.core.quoting import comment, docstring
from fccomodel.library.piecewise.text import number
from fccomodel.library.proximal.piecewise import Piecewise
from fccomodel.program.emit.page import function
from fccomodel.program.lower import LoweredSteps
from fccomodel.program.operations.base import MoreauEnvelope
from fccomodel.program.operations.envelopes import slope_lines, value_from_slope, value_lines

HEAD = """# ---- smoothing: a function f that is not smooth is replaced by its envelope, with the centre c,
#   envelope(t) = max over y of  <y, t> - f*(y) - lam / 2 |y - c|^2;
#   its gradient slope(t) is the y that attains the maximum"""
#: the first words of a function's name and of its docstring, by what is asked for
STEMS = {"slope": "slope", "value": "envelope"}
ABOUT = {"slope": "The y that attains the envelope", "value": "The envelope"}


class Smoothing:
    """The functions of envelopes that the other sections of a program call, by their statements.

    A function has the name ``slope_y1`` or ``envelope_y1``, where ``h.lam_y1`` is its smoothing parameter
    and ``c.y1`` its centre. Another function of the same parameter, along other dims say, has a number more.
    ``subject`` gives the words for the function that an envelope smooths.
    """

    def __init__(self, subject: Callable[[MoreauEnvelope], str]):
        self.subject = subject
        self.texts: dict[str, str] = {}
        self.known: dict[tuple[str, ...], str] = {}

    def name(self, kind: str, envelope: MoreauEnvelope) -> str:
        """The name of the function for ``slope`` or ``value``, defined when first asked for."""
        lines = self.lines(kind, envelope)
        stem = f"{STEMS[kind]}_{envelope.name}"
        key = (stem, *lines)
        if key not in self.known:
            count = sum(known[0] == stem for known in self.known) + 1
            if count == 1:
                name = stem
            else:
                name = f"{stem}_{count}"
            arguments = "t, c, h" if envelope.centred else "t, h"
            about = f"{ABOUT[kind]} of {self.subject(envelope)}{kinks(envelope)}."
            self.known[key] = name
            self.texts[name] = function(name, docstring(about), lines, arguments)
        return self.known[key]

    def lines(self, kind: str, envelope: MoreauEnvelope) -> list[str]:
        """The statements of the function for ``slope`` or ``value``; the value comes from the slope."""
        if kind == "slope":
            return slope_lines(envelope)
        if value_from_slope(envelope, "") is None:
            return value_lines(envelope)
        slope = self.call("slope", envelope, "t", "c")
        lines = value_from_slope(envelope, slope)
        assert lines is not None
        return lines

    def call(self, kind: str, envelope: MoreauEnvelope, argument: str, centre: str) -> str:
        """The call of that function."""
        if envelope.centred:
            arguments = [argument, centre]
        else:
            arguments = [argument]
        return f"{self.name(kind, envelope)}({', '.join([*arguments, 'h'])})"

    @property
    def text(self) -> str:
        """The section; empty if nothing is smoothed."""
        if not self.texts:
            return ""
        return "\n".join([HEAD, "\n\n\n".join(self.texts.values())])


def kinks(envelope: MoreauEnvelope) -> str:
    """The places of the function's kinks, in words, because its formulas contain these numbers. Empty if
    they are at 0, or if the function is not piecewise.
    """
    if not isinstance(envelope.function, Piecewise):
        return ""
    points = envelope.function.graph.points
    at = [x for (x, low), (other, high) in itertools.pairwise(points) if x == other and low != high]
    if not any(at):
        return ""
    return f" (kinks at {', '.join(map(number, at))})"


def smoothing_of(lowered: LoweredSteps) -> Smoothing:
    """The envelopes of a lowered plan, which says them in the model's own text."""

    def subject(envelope: MoreauEnvelope) -> str:
        """The expression of the model that the envelope smooths."""
        for smoothed in lowered.normal.smoothed:
            if smoothed.function is envelope.function and (smoothed.inner or smoothed.name == envelope.name):
                text = comment(lowered.problem.text(smoothed.original))
                if smoothed.penalty:
                    return f"the penalty for {text}"
                return text
        return "a function inside an expectation"

    return Smoothing(subject)
