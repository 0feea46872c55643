"""Functions that grow to both sides of a number: the largest of affine functions of one."""

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

#: How far two coefficients may be from multiples of two others, relative; what counts as zero of a
#: difference.
ALIKE = 1e-14


class Vee(NamedTuple):
    """``f >= least + slope |u - u_0|`` everywhere, u_0 and ``least`` without variables, u affine with
    this Lipschitz constant."""

    u: ir.Expr
    slope: float
    lipschitz: float
    least: ir.Expr


@dataclass
class _Line:
    """An affine function: coefficients, with what they are of by key, of what variables are in and of
    what they are not in."""

    varying: dict[int, tuple[ir.Expr, float]] = field(default_factory=dict)
    fixed: dict[int, tuple[ir.Expr, float]] = field(default_factory=dict)
    constant: float = 0.0


def vee(node: ir.Expr, see: Analyser) -> Vee | None:
    """A function of this kind; None where it is not seen to be one.

    Of lines l u + m, one rises and one falls: where they meet they are ``(l m' - l' m) / (l - l')``
    for slopes l > 0 > l', and away from there the larger of both is larger by the lesser of l and
    -l', times the distance.
    """
    if not node.shape:
        pieces = maxima.spread_out(node, lambda parameter: _number(parameter, see))
    else:
        pieces = []
    if not 2 <= len(pieces) <= maxima.MAX_TERMS:
        return None
    lines = [_line(piece, see) for piece in pieces]
    sloped = [line for line in lines if line is not None and line.varying]
    if not sloped:
        return None
    first = sloped[0].varying
    slopes = [(_ratio(line.varying, first), line) for line in sloped]
    rise, up = max(((ratio, line) for ratio, line in slopes if ratio is not None), key=lambda one: one[0])
    fall, down = min(((ratio, line) for ratio, line in slopes if ratio is not None), key=lambda one: one[0])
    if not rise > 0 > fall:
        return None
    u = _sum(first.values(), 0.0)
    lipschitz = slope_of(u, see)
    if not 0 < lipschitz < math.inf:
        return None
    least = _met(up, down, rise / (rise - fall))
    return Vee(u, min(rise, -fall), lipschitz, least)


def _number(node: ir.Expr, see: Analyser) -> float | None:
    if node.shape or ir.variables_of(node):
        return None
    known, (low, high, *_) = see(node).interval.standing <= Standing.BOUNDED, see(node).interval.value
    if known and low == high and math.isfinite(low):
        return float(low)
    return None


def _line(node: ir.Expr, see: Analyser) -> _Line | None:
    """As coefficients; None where it is not affine."""
    line = _Line()
    return line if _add(line, node, 1.0, see) else None


def _add(line: _Line, node: ir.Expr, factor: float, see: Analyser) -> bool:
    """``factor * node`` added to a line; False where it is not affine."""
    if isinstance(node, ir.LetRef):
        return _add(
            line, substitute(node.let.body, dict(zip(node.let.binders, node.args, strict=True))), factor, see
        )
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
    which, key = line.varying if ir.variables_of(node) else line.fixed, see.key(node)
    which[key] = node, which.get(key, (node, 0.0))[1] + factor
    return True


def _ratio(one: dict[int, tuple[ir.Expr, float]], other: dict[int, tuple[ir.Expr, float]]) -> float | None:
    """Of the coefficients, where it is the same for all."""
    if one.keys() != other.keys():
        return None
    ratios = [one[key][1] / other[key][1] for key in one if other[key][1]]
    if len(ratios) < len(one) or not all(math.isfinite(ratio) for ratio in ratios):
        return None
    if max(ratios) - min(ratios) <= ALIKE * abs(ratios[0]):
        return ratios[0]
    return None


def _met(up: _Line, down: _Line, share: float) -> ir.Expr:
    """What both lines are where they meet: ``share`` of the falling one's numbers, and the rest of the
    rising one's."""
    kept = []
    for key in {**up.fixed, **down.fixed}:
        (node, above), (_, below) = (line.fixed.get(key, (None, 0.0)) for line in (up, down))
        ends = share * below, (1 - share) * above
        if abs(sum(ends)) > ALIKE * max(map(abs, ends)):
            kept.append((node or down.fixed[key][0], sum(ends)))
    return _sum(kept, share * down.constant + (1 - share) * up.constant)


def _sum(terms: Iterable[tuple[ir.Expr, float]], constant: float) -> ir.Expr:
    scaled = [node if factor == 1 else apply("mul", const(factor), node) for node, factor in terms if factor]
    if constant or not scaled:
        scaled += [const(constant)]
    if len(scaled) == 1:
        return scaled[0]
    return apply("add", *scaled)
