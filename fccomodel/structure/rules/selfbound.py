"""Functions of a self-bounded argument: a smooth g that stays above m has |grad g|^2 <= 2 L_g (g - m)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, sqrt

from fccomodel.library.amounts import ZERO, Amount, amount, plus, root, times
from fccomodel.library.atoms import ArrayAtom
from fccomodel.structure.declarations import interval, opened
from fccomodel.structure.draft import Draft
from fccomodel.structure.facts import Facts
from fccomodel.structure.rules.fixes import advice
from fccomodel.structure.rules.placed import Placed
from fccomodel.structure.rules.reasons import lacks

RULE = "self-bounded argument"
TWO = Amount(2.0)
FAR_OFF = 1e200


def self_bounded(f: Placed, draft: Draft, free: Callable[[Facts], Facts] | None) -> None:
    """Bound f(g) where g has no Lipschitz constant of its own: ``L_f C_g^2`` becomes ``sup |f''(u)| 2
    L_g (u - m)``.

    The inequality needs g smooth and above m on the whole space, so the facts of g under
    unrestricted variables are used.
    """
    if free is None or isinstance(f.atom, ArrayAtom) or len(f.active) != 1 or f.bend is None:
        return
    i, inner = f.active[0]
    if f.expr.shape or not inner.smooth or draft.value("gradient").finite and draft.value("lipschitz").finite:
        return
    wide = free(inner)
    curved = wide.gradient.value
    if not wide.smooth or not curved.finite or curved.zero:
        return
    lies = opened(wide.interval.value)
    for anchor, sign in ((lies.lo, 1.0), (lies.hi, -1.0)):
        if abs(anchor) == inf or _room(f, i, anchor, sign) < 0:  # where it lies f is not defined
            continue
        slope, bent = _tails(f, i, anchor, sign)
        uses = (wide.gradient, wide.interval)
        side = "above" if sign > 0 else "below"
        reason = f"its argument is smooth and stays {side} {anchor:g}, so it is flat where {f.called} bends"
        quad = times(TWO, curved, bent)
        draft.propose("lipschitz", times(root(times(TWO, curved)), slope), RULE, reason, uses)
        gradient = plus(times(f.slopes[i], inner.gradient.value), quad)
        draft.propose("gradient", gradient, RULE, reason, (*uses, inner.gradient))
        for kind in ("below", "above"):
            bend = f.weak if kind == "below" else f.weak_above
            value, facts = f.side(i, kind)
            total = plus(value, ZERO if bend.zero else quad)
            fix = advice(f.atom, f.args, kind)
            draft.propose(kind, total, RULE, reason, (*facts, *uses), lacks=lacks(f, kind), fix=fix)


def _room(f: Placed, i: int, anchor: float, sign: float) -> float:
    """How far from the anchor the argument may lie."""
    lies = f.intervals[i]
    if sign > 0:
        return lies.hi - anchor
    return anchor - lies.lo


def _tails(f: Placed, i: int, anchor: float, sign: float) -> tuple[Amount, Amount]:
    """sup |f'(u)| sqrt|u - anchor| and sup |f''(u)| |u - anchor|, over geometric steps away from the anchor.

    What still grows in the last steps has no bound.
    """
    slope = bent = before = 0.0
    far_off: list[tuple[float, float]] = []
    lies, limit = f.intervals[i], _room(f, i, anchor, sign)
    for after in _steps():
        far = min(after, limit)
        near, end = sorted((anchor + sign * before, anchor + sign * far))
        piece = interval(near, end, before > 0 or lies.lo_open)
        pieces = tuple(piece if k == i else u for k, u in enumerate(f.intervals))
        second = f.atom.gradient_lipschitz(*pieces, varying=f.varying)
        tail = f.atom.lipschitz(*pieces, argument=i) * sqrt(far), inf if second is None else second * far
        slope, bent = max(slope, tail[0]), max(bent, tail[1])
        if far > FAR_OFF:
            far_off.append(tail)
        if slope == inf and bent == inf or after >= limit:
            break
        before = after
    if far_off and before > FAR_OFF:
        first, last = far_off[0], far_off[-1]
        slope, bent = (
            inf if b > a * (1 + 1e-6) else top for a, b, top in zip(first, last, (slope, bent), strict=True)
        )
    return amount(slope), amount(bent)


def _steps() -> Iterable[float]:
    """From 1e-300 to 1e300: coarse near the anchor, where the factor is tiny, and fine in between."""
    yield from (10.0**k for k in range(-300, -6, 30))
    yield from (10.0 ** (k / 32) for k in range(-192, 193))
    yield from (10.0 ** (k / 8) for k in range(49, 2401))
