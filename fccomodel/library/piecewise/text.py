"""The Moreau envelope as torch text: its gradient is a sum of clamps, its value their integral."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fccomodel.library.piecewise.function import PiecewiseLQ


def gradient(f: PiecewiseLQ, lam: float | str, u: str) -> str:
    """The gradient of f's envelope of parameter ``lam`` (a number or the text of one) at the tensor ``u``."""
    terms = _terms(f, lam, u)
    return " + ".join(term.clamp for term in terms) or f"torch.full_like({u}, {number(f.points[0][1])})"


def envelope(f: PiecewiseLQ, lam: float | str, u: str) -> str:
    """The value of f's envelope."""
    terms = _terms(f, lam, u)
    if not terms:
        x, y = f.points[0]
        if y:
            drop = f" - {number(y * y / 2)} * {number(lam)}"
        else:
            drop = ""
        return f"{number(y)} * {u}" + _plus(f.start - y * x) + drop
    pieces = [f"{term.clamp} * ({term.distance} - {term.half} * {term.clamp})" for term in terms]
    return " + ".join(pieces) + _plus(terms[0].base)


def value(f: PiecewiseLQ, u: str) -> str:
    """The text of f itself: an affine part, a relu for each kink, half a square for each slanted
    stretch.

    It is inf outside the domain.
    """
    (first, slope), (last, _) = f.points[0], f.points[-1]
    if slope:
        terms = [f"{number(slope)} * {_from(u, first)}"]
    else:
        terms = []
    if f.left not in (0, inf):
        terms.append(f"{number(f.left / 2)} * {_from(u, first)}.clamp(max=0).square()")
    for (x0, y0), (x1, y1) in zip(f.points, f.points[1:], strict=False):
        part = _from(u, x0)
        if x0 == x1:
            terms.append(f"{number(y1 - y0)} * {part}.relu()")
        elif y0 != y1:
            bend = f"{part}.clamp(0, {number(x1 - x0)})"
            terms.append(f"{number((y1 - y0) / (x1 - x0))} * {bend} * ({part} - {bend} / 2)")
    if f.right not in (0, inf):
        terms.append(f"{number(f.right / 2)} * {_from(u, last)}.relu().square()")
    if terms:
        inside = " + ".join(terms) + _plus(f.start)
    else:
        inside = f"torch.full_like({u}, {number(f.start)})"
    out = [f"({u} < {number(first)})"] * (f.left == inf) + [f"({u} > {number(last)})"] * (f.right == inf)
    if out:
        return f"({inside}).masked_fill({' | '.join(out)}, math.inf)"
    return inside


def _from(u: str, x: float) -> str:
    if x:
        return f"({u}{_plus(-x)})"
    return u


@dataclass(frozen=True, kw_only=True)
class _Term:
    """One slanted stretch of the envelope's gradient: ``clamp`` rises along it and is constant elsewhere.

    Its integral is clamp * (distance - half * clamp) + base.
    """

    clamp: str
    distance: str
    half: str
    base: float


@dataclass(frozen=True, kw_only=True)
class _Stretch:
    """A slanted part of the subdifferential's graph, from ordinate ``low`` to ``high``: y = slope (x -
    root) there, and f = slope (x - root)^2/2 + base. The envelope of any parameter has the same
    low, high, root and base (slope inf: a kink)."""

    low: float
    high: float
    slope: float
    root: float
    base: float


def _stretches(f: PiecewiseLQ) -> list[_Stretch]:
    xs, ys = zip(*f.points, strict=True)
    values = f.value(np.array(xs))
    ends = [(inf if f.left < 0 else -inf, ys[0], f.left, 0)]
    for k in range(len(xs) - 1):
        ends.append(
            (ys[k], ys[k + 1], inf if xs[k + 1] == xs[k] else (ys[k + 1] - ys[k]) / (xs[k + 1] - xs[k]), k)
        )
    ends.append((ys[-1], -inf if f.right < 0 else inf, f.right, len(xs) - 1))
    stretches: list[_Stretch] = []
    for low, high, slope, k in ends:
        if slope == 0 or low == high:
            continue
        root, base = xs[k] - ys[k] / slope, float(values[k]) - ys[k] ** 2 / (2 * slope)
        if stretches:
            last = stretches[-1]
        else:
            last = None
        if last and last.high == low and last.slope == slope and last.root == root:
            low = stretches.pop().low
        stretches.append(_Stretch(low=low, high=high, slope=slope, root=root, base=base))
    return stretches


def _terms(f: PiecewiseLQ, lam: float | str, u: str) -> list[_Term]:
    """The terms of the stretches. The first keeps its ordinates, so that no constant remains; the
    others start from 0."""
    terms = []
    for k, part in enumerate(_stretches(f)):
        lift = part.low if k else 0.0
        if isinstance(lam, str):
            if _stands_alone(lam):
                name = lam
            else:
                name = f"({lam})"
            if part.slope == inf:
                rate = name
            else:
                rate = f"({number(1 / part.slope)} + {name})"
            half = f"{rate} / 2"
            move = _plus(-part.root)
            if lift:
                sign = "-" if lift > 0 else "+"
                move += f" {sign} {number(abs(lift))} * {rate}"
            if move:
                distance = f"({u}{move})"
            else:
                distance = u
        else:
            exact = lam + 1 / part.slope
            rate, half = number(exact), number(exact / 2)
            move = _plus(-part.root - lift * exact)
            if move:
                distance = f"({u}{move})"
            else:
                distance = u
        low, high = sorted((part.low, part.high))
        ends = {name: number(end - lift) for name, end in (("min", low), ("max", high)) if abs(end) < inf}
        if rate != "1":
            line = f"({distance} / {rate})"
        else:
            line = distance
        if len(ends) == 2:
            line += f".clamp({ends['min']}, {ends['max']})"
        elif ends:
            line += "".join(f".clamp({name}={end})" for name, end in ends.items())
        terms.append(_Term(clamp=line, distance=distance, half=half, base=part.base))
    return terms


def _stands_alone(text: str) -> bool:
    """Whether an operator may follow the text: a name with dots, or one pair of parentheses around
    all of it."""
    if all(part.isidentifier() for part in text.split(".")):
        return True
    depth = [text[:k].count("(") - text[:k].count(")") for k in range(1, len(text))]
    return text[:1] == "(" and text[-1:] == ")" and min(depth, default=0) > 0


def number(x: float | str) -> str:
    """A number to 15 digits; a text stays as it is."""
    if isinstance(x, str):
        return x
    return f"{x + 0.0:.15g}"


def _plus(x: float) -> str:
    if x == 0:
        return ""
    if x > 0:
        return f" + {number(x)}"
    return f" - {number(-x)}"
