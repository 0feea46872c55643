"""Finds absolute values in an expression, however they are written, and how fast they grow.

``abs(r)``, a pinball loss and ``max(r, -2 r)`` grow on both sides of r = 0, linearly. Their growth bounds
the points that are no worse than a given one (see ``growth``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from fccomodel.core import ir
from fccomodel.core.rewrite import apply, const, substitute
from fccomodel.library import atoms, maxima
from fccomodel.report.quadratic_parts import slope_of
from fccomodel.structure import Analyser
from fccomodel.structure.facts import Standing

#: Relative difference up to which ratios of coefficients are equal, and a difference counts as 0.
ROUNDING = 1e-14


class Growth(NamedTuple):
    """``f >= least + slope |u - u_0|`` everywhere.

    u_0 and ``least`` have no variables. u is affine and has the constant ``lipschitz``.
    """

    u: ir.Expr
    slope: float
    lipschitz: float
    least: ir.Expr


@dataclass
class _Line:
    """An affine function.

    varying    by key, expressions with variables and their coefficients
    fixed      by key, expressions without variables and their coefficients
    """

    varying: dict[int, tuple[ir.Expr, float]] = field(default_factory=dict)
    fixed: dict[int, tuple[ir.Expr, float]] = field(default_factory=dict)
    constant: float = 0.0


def two_sided_growth(node: ir.Expr, see: Analyser) -> Growth | None:
    """The growth of a maximum of affine functions of one number, or None if it is not known to be one.

    Take two of the lines l u + m, with slopes l > 0 > l'. They meet at the value
    ``(l m' - l' m) / (l - l')``. At a distance t from there the larger of both is higher by at least
    min(l, -l') t.
    """
    if node.shape:
        return None
    pieces = maxima.spread_out(node, lambda parameter: _number(parameter, see))
    if not 2 <= len(pieces) <= maxima.MAX_TERMS:
        return None
    lines = [_line(piece, see) for piece in pieces]
    sloped = [line for line in lines if line is not None and line.varying]
    if not sloped:
        return None
    first = sloped[0].varying
    slopes = [(_ratio(line.varying, first), line) for line in sloped]
    known = [(ratio, line) for ratio, line in slopes if ratio is not None]
    rise, up = max(known, key=lambda one: one[0])
    fall, down = min(known, key=lambda one: one[0])
    if not rise > 0 > fall:
        return None
    u = _sum(first.values(), 0.0)
    lipschitz = slope_of(u, see)
    if not 0 < lipschitz < math.inf:
        return None
    least = _met(up, down, rise / (rise - fall))
    return Growth(u, min(rise, -fall), lipschitz, least)


def _number(node: ir.Expr, see: Analyser) -> float | None:
    """The value of an expression without variables, or None if it is not known."""
    if node.shape or ir.variables_of(node):
        return None
    interval = see(node).interval
    known = interval.standing <= Standing.BOUNDED
    low, high, *_ = interval.value
    if known and low == high and math.isfinite(low):
        return float(low)
    return None


def _line(node: ir.Expr, see: Analyser) -> _Line | None:
    """The coefficients of an affine expression, or None if it is not affine."""
    line = _Line()
    if _add(line, node, 1.0, see):
        return line
    return None


def _add(line: _Line, node: ir.Expr, factor: float, see: Analyser) -> bool:
    """Add ``factor * node`` to a line; False if the node is not affine."""
    if isinstance(node, ir.LetRef):
        body = substitute(node.let.body, dict(zip(node.let.binders, node.args, strict=True)))
        return _add(line, body, factor, see)
    if (terms := atoms.signed(node)) is not None:
        return all([_add(line, term, sign * factor, see) for sign, term in terms])
    if (known := _number(node, see)) is not None:
        line.constant += factor * known
        return True
    if isinstance(node, ir.Apply) and node.op == "mul":
        for number, other in (node.args, node.args[::-1]):
            if (known := _number(number, see)) is not None:
                return _add(line, other, factor * known, see)
    if isinstance(node, ir.Apply) and node.op == "div" and (known := _number(node.args[1], see)):
        return _add(line, node.args[0], factor / known, see)
    if node.shape or ir.variables_of(node) and not see(node).affine:
        return False
    coefficients = line.varying if ir.variables_of(node) else line.fixed
    key = see.key(node)
    coefficients[key] = node, coefficients.get(key, (node, 0.0))[1] + factor
    return True


def _ratio(one: dict[int, tuple[ir.Expr, float]], other: dict[int, tuple[ir.Expr, float]]) -> float | None:
    """The ratio of the coefficients, or None if it differs."""
    if one.keys() != other.keys():
        return None
    ratios = [one[key][1] / other[key][1] for key in one if other[key][1]]
    if len(ratios) < len(one) or not all(math.isfinite(ratio) for ratio in ratios):
        return None
    if max(ratios) - min(ratios) <= ROUNDING * abs(ratios[0]):
        return ratios[0]
    return None


def _met(up: _Line, down: _Line, share: float) -> ir.Expr:
    """The value of two lines where they meet: ``share`` of the falling line's numbers, and 1 - share of
    the rising line's."""
    terms = []
    for key in {**up.fixed, **down.fixed}:
        (node, above), (_, below) = (line.fixed.get(key, (None, 0.0)) for line in (up, down))
        ends = share * below, (1 - share) * above
        if abs(sum(ends)) > ROUNDING * max(map(abs, ends)):
            terms.append((node or down.fixed[key][0], sum(ends)))
    return _sum(terms, share * down.constant + (1 - share) * up.constant)


def _sum(terms: Iterable[tuple[ir.Expr, float]], constant: float) -> ir.Expr:
    """The sum of the terms, each times its factor, and of the constant."""
    scaled = [node if factor == 1 else apply("mul", const(factor), node) for node, factor in terms if factor]
    if constant or not scaled:
        scaled += [const(constant)]
    if len(scaled) == 1:
        return scaled[0]
    return apply("add", *scaled)
