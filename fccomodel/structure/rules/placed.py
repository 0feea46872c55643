"""An atom where its arguments lie: its curvature, monotonicity and constants there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt

from fccomodel.core import ir
from fccomodel.library.amounts import NONE, SOME, ZERO, Amount, amount, least, most, plus, times
from fccomodel.library.atoms import ArrayAtom, Atom, Interval
from fccomodel.structure.declarations import REALS, interval, opened
from fccomodel.structure.facts import DECREASING, INCREASING, NEITHER, Fact, Facts

SIGNS = {"increasing": INCREASING, "decreasing": DECREASING, "none": NEITHER}
FAR = 30.0  # stands for an unknown finite bound where only finiteness is asked
NEAR = 1e-3


@dataclass(eq=False, kw_only=True)
class Placed:
    """``atom(args)``: the atom's properties where the arguments lie, as amounts.

    sizes, entries   numbers of entries of the arguments, and of the value
    """

    expr: ir.Expr
    atom: Atom
    args: tuple[Facts, ...]
    sizes: tuple[float, ...]
    entries: float = 1.0

    # ---------------------------------------------------------------------- the atom where they lie
    @cached_property
    def domains(self) -> tuple[Interval | None, ...]:
        return self.atom.domains(*(opened(a.interval.value) for a in self.args))

    @cached_property
    def settled(self) -> tuple[Interval | None, ...]:
        """The same, as far as values that arguments may still get have no say."""
        return self.atom.settled(*(opened(a.interval.value) for a in self.args))

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """Where the arguments lie, as far as the atom is defined."""
        places = (opened(a.interval.value) for a in self.args)
        return tuple(u if d is None else u.meet(opened(d)) for u, d in zip(places, self.settled, strict=True))

    @cached_property
    def varying(self) -> tuple[bool, ...]:
        return tuple(not a.constant for a in self.args)

    @cached_property
    def near(self) -> tuple[Interval, ...]:
        """The same with unknown finite bounds in place of missing ones, where an argument has such."""
        bounded = (_bounded(a) for a in self.args)
        return tuple(
            u if d is None else u.meet(opened(d)) for u, d in zip(bounded, self.settled, strict=True)
        )

    def at(self, rule: Callable[[tuple[Interval, ...]], float | None]) -> Amount:
        """A constant of the atom: a number, ``SOME`` where the arguments are bounded by numbers not
        known, else ``NONE``."""
        value = amount(rule(self.intervals))
        if value.finite or self.near == self.intervals:
            return value
        return SOME if amount(rule(self.near)).finite else NONE

    @cached_property
    def curvature(self) -> str:
        return self.atom.curvature(*self.intervals, varying=self.varying)

    @cached_property
    def signs(self) -> tuple[int, ...]:
        """Monotonicity per argument."""
        words = (
            self.atom.monotone(*self.intervals, argument=self._argument(i)) for i in range(len(self.args))
        )
        return tuple(SIGNS.get(way, INCREASING) for way in words)

    def _argument(self, i: int) -> int:
        if self.atom.variadic and not isinstance(self.atom.properties.monotone, tuple):
            return 0
        return i

    @cached_property
    def slopes(self) -> tuple[Amount, ...]:
        """The Lipschitz constant per argument."""
        return tuple(self._slope(i) for i in range(len(self.args)))

    def _slope(self, i: int) -> Amount:
        if not self.varying[i]:
            return ZERO
        size = self.sizes[i]
        value = self.at(lambda u: self.atom.lipschitz(*u, argument=self._argument(i), size=size))
        if not value.finite and size == inf:  # a dimension that the data will tell
            value = self.at(lambda u: self.atom.lipschitz(*u, argument=self._argument(i), size=4.0))
            return SOME if value.finite else NONE
        return value

    @cached_property
    def bend(self) -> Amount | None:
        """The Lipschitz constant of the gradient; None where the atom has a kink."""
        value = self.atom.gradient_lipschitz(*self.intervals, varying=self.varying)
        if value is None:
            return None
        return self.at(lambda u: self.atom.gradient_lipschitz(*u, varying=self.varying))

    @cached_property
    def weak(self) -> Amount:
        """The atom's own weak convexity constant."""
        if self.curvature in ("convex", "affine", "constant"):
            return ZERO
        bend = self.at(lambda u: self.atom.weak_convexity(*u, varying=self.varying))
        if self.bend is None:
            return bend
        return least(bend, self.bend)

    @cached_property
    def weak_above(self) -> Amount:
        """The same of its negative."""
        if self.curvature in ("concave", "affine", "constant"):
            return ZERO
        return NONE if self.bend is None else self.bend

    # --------------------------------------------------------------------------------- what is used
    @cached_property
    def ranges(self) -> tuple[Fact, ...]:
        """The arguments' ranges, where the atom's properties depend on them."""
        full = tuple(REALS if d is None else opened(d) for d in self.settled)
        used = []
        for i, arg in enumerate(self.args):
            if not arg.interval.holds:
                continue
            wide = tuple(full[i] if k == i else u for k, u in enumerate(self.intervals))
            same = self.atom.curvature(*wide, varying=self.varying) == self.curvature and all(
                self.atom.monotone(*wide, argument=self._argument(k))
                == self.atom.monotone(*self.intervals, argument=self._argument(k))
                for k in range(len(self.args))
                if self.varying[k]
            )
            if not same:
                used.append(arg.interval)
        return tuple(used)

    @cached_property
    def called(self) -> str:
        """The atom as models write it."""
        match self.atom.exponent:
            case str(name):
                p = self.args[self.atom.arguments.index(name)].interval.value
                if p.is_point:
                    return f"u^{p.lo:g}"
                return "u^p"
            case -1.0:
                return "1/u"
        return self.atom.symbol or self.atom.name

    @property
    def total(self) -> Callable[..., Amount]:
        """How the arguments' constants add up: the weights of a largest (least) argument sum to 1."""
        return most if self.atom.extreme else plus

    @property
    def active(self) -> tuple[tuple[int, Facts], ...]:
        return tuple((i, a) for i, a in enumerate(self.args) if self.varying[i])

    # ----------------------------------------------------------------------------- slopes and bends
    def rising_and_falling(self, i: int) -> tuple[Amount, Amount]:
        """The steepest the atom rises in argument i, and the steepest it falls."""
        slope, way = self.slopes[i], self.signs[i]
        if way == INCREASING:
            return slope, ZERO
        if way == DECREASING:
            return ZERO, slope
        lies = self.intervals[i]
        if (
            not isinstance(self.atom, ArrayAtom) and lies.lo < 0 < lies.hi
        ):  # a valley or a hill with its turn at 0
            steepness = {}
            for side in (interval(lies.lo, 0.0), interval(0.0, lies.hi)):
                part = tuple(side if k == i else u for k, u in enumerate(self.intervals))
                direction = SIGNS.get(self.atom.monotone(*part, argument=self._argument(i)), NEITHER)
                steepness[direction] = amount(self.atom.lipschitz(*part, argument=self._argument(i)))
            if set(steepness) == {INCREASING, DECREASING}:
                return tuple(v if v.finite else slope for v in (steepness[INCREASING], steepness[DECREASING]))  # type: ignore[return-value]
        return slope, slope

    def side(self, i: int, kind: str) -> tuple[Amount, tuple[Fact, ...]]:
        """How far argument i bends on the sides that matter for ``kind``, times the slope of the atom
        in it."""
        arg = self.args[i]
        if kind == "below":
            same, turned = (arg.below, arg.above)
        else:
            same, turned = (arg.above, arg.below)
        rising, falling = self.rising_and_falling(i)
        uses = tuple(fact for fact, slope in ((same, rising), (turned, falling)) if not slope.zero)
        bend = most(times(rising, same.value), times(falling, turned.value))
        if not isinstance(self.atom, ArrayAtom) or self.sizes[i] == 1 or bend.zero:
            return bend, uses
        spread = times(amount(sqrt(self.sizes[i])) if self.sizes[i] < inf else SOME, bend)
        whole = times(self.slopes[i], arg.gradient.value)
        if least(spread, whole) == spread:
            return (spread, uses)
        return (whole, (arg.gradient,))


def _bounded(arg: Facts) -> Interval:
    """Where an argument lies, with stand-ins for bounds that exist and are not known."""
    u = opened(arg.interval.value)
    if not arg.compact or not arg.size.value.finite:
        return u
    if u.lo == -inf:
        lo = max(-FAR, min(u.hi - 1, -FAR))
    elif u.lo_open:
        lo = u.lo + NEAR * min(1.0, u.hi - u.lo)
    else:
        lo = u.lo
    if u.hi == inf:
        hi = min(FAR, max(lo + 1, FAR))
    elif u.hi_open:
        hi = u.hi - NEAR * min(1.0, u.hi - u.lo)
    else:
        hi = u.hi
    return interval(lo, max(lo, hi))
