"""Functions of a self-bounded argument: a smooth g that stays above m has |grad g|^2 <= 2 L_g (g - m)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, sqrt

from fccomodel.library.amounts import ZERO, Amount, amount, plus, root, times
from fccomodel.library.atoms import ArrayAtom
from fccomodel.structure.declarations import interval, opened
from fccomodel.structure.draft import FactsDraft
from fccomodel.structure.facts import Facts
from fccomodel.structure.rules.fixes import advice
from fccomodel.structure.rules.placed import Placed
from fccomodel.structure.rules.reasons import lacks

RULE = "self-bounded argument"
TWO = Amount(2.0)
FAR_AWAY = 1e200  # distance from the anchor beyond which a tail must have stopped growing
GROWTH = 1e-6  # relative growth of a tail beyond ``FAR_AWAY`` that counts as growing


def self_bounded(f: Placed, draft: FactsDraft, free: Callable[[Facts], Facts] | None) -> None:
    """Propose constants of f(g) for a g without a Lipschitz constant.

    ``L_f C_g^2`` becomes ``sup |f''(u)| 2 L_g (u - m)``. The inequality needs g smooth and above m on
    the whole space, so the facts of g with unrestricted variables are used, which ``free`` gives.
    """
    if free is None or isinstance(f.atom, ArrayAtom) or len(f.active) != 1 or f.bend is None:
        return
    i, inner = f.active[0]
    bounded = draft.value("gradient").finite and draft.value("lipschitz").finite
    if f.expr.shape or not inner.smooth or bounded:
        return
    wide = free(inner)
    curved = wide.gradient.value
    if not wide.smooth or not curved.finite or curved.zero:
        return
    lies = opened(wide.interval.value)
    for anchor, sign in ((lies.lo, 1.0), (lies.hi, -1.0)):
        if abs(anchor) == inf:
            continue
        if _room(f, i, anchor, sign) < 0:  # f is not defined over the range of g
            continue
        slope, bent = _tails(f, i, anchor, sign)
        uses = (wide.gradient, wide.interval)
        side = "above" if sign > 0 else "below"
        reason = f"its argument is smooth and stays {side} {anchor:g}, so it is flat where {f.called} bends"
        quad = times(TWO, curved, bent)
        growth = root(times(TWO, curved))
        lipschitz = times(growth, slope)
        draft.propose("lipschitz", lipschitz, RULE, reason, uses)
        of_inner = times(f.slopes[i], inner.gradient.value)
        gradient = plus(of_inner, quad)
        draft.propose("gradient", gradient, RULE, reason, (*uses, inner.gradient))
        for kind in ("below", "above"):
            bend = f.weak if kind == "below" else f.weak_above
            value, facts = f.side(i, kind)
            total = plus(value, ZERO if bend.zero else quad)
            fix = advice(f.atom, f.args, kind)
            lacking = lacks(f, kind)
            draft.propose(kind, total, RULE, reason, (*facts, *uses), lacks=lacking, fix=fix)


def _room(f: Placed, i: int, anchor: float, sign: float) -> float:
    """The largest distance of the argument from the anchor."""
    lies = f.intervals[i]
    if sign > 0:
        return lies.hi - anchor
    return anchor - lies.lo


def _tails(f: Placed, i: int, anchor: float, sign: float) -> tuple[Amount, Amount]:
    """sup |f'(u)| sqrt|u - anchor| and sup |f''(u)| |u - anchor|, over geometric steps away from the anchor.

    A value that still grows in the last steps has no bound.
    """
    slope = bent = before = 0.0
    far_away: list[tuple[float, float]] = []
    lies, limit = f.intervals[i], _room(f, i, anchor, sign)
    for after in _steps():
        distance = min(after, limit)
        near, end = sorted((anchor + sign * before, anchor + sign * distance))
        piece = interval(near, end, before > 0 or lies.lo_open)
        pieces = tuple(piece if k == i else u for k, u in enumerate(f.intervals))
        second = f.atom.gradient_lipschitz(*pieces, varying=f.varying)
        slope_here = f.atom.lipschitz(*pieces, argument=i) * sqrt(distance)
        if second is None:
            bent_here = inf
        else:
            bent_here = second * distance
        slope, bent = max(slope, slope_here), max(bent, bent_here)
        if distance > FAR_AWAY:
            far_away.append((slope_here, bent_here))
        if slope == inf and bent == inf or after >= limit:
            break
        before = after
    if far_away and before > FAR_AWAY:
        first, last = far_away[0], far_away[-1]
        if last[0] > first[0] * (1 + GROWTH):
            slope = inf
        if last[1] > first[1] * (1 + GROWTH):
            bent = inf
    return amount(slope), amount(bent)


def _steps() -> Iterable[float]:
    """Distances from 1e-300 to 1e300: coarse near the anchor, where the factor is tiny, then fine."""
    yield from (10.0**k for k in range(-300, -6, 30))
    yield from (10.0 ** (k / 32) for k in range(-192, 193))
    yield from (10.0 ** (k / 8) for k in range(49, 2401))
