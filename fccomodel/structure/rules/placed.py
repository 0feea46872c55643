"""An atom over the ranges of its arguments: its curvature, monotonicity and constants there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf, sqrt

from fccomodel.core import ir
from fccomodel.library.amounts import NONE, SOME, ZERO, Amount, amount, least, most, plus, times
from fccomodel.library.atoms import ArrayAtom, Atom, Interval
from fccomodel.structure.declarations import REALS, interval, opened
from fccomodel.structure.facts import DECREASING, INCREASING, INSIDE_DOMAIN, NEITHER, Fact, Facts

SIGNS = {"increasing": INCREASING, "decreasing": DECREASING, "none": NEITHER}
UNKNOWN_END = 30.0  # stands for an unknown finite end when only finiteness of a constant is asked
OPEN_END_SHARE = 1e-3  # share of an interval's length (at most 1) by which an open end is moved inwards
UNKNOWN_ENTRIES = 4.0  # stands for an unknown number of entries when only finiteness is asked


@dataclass(eq=False, kw_only=True)
class Placed:
    """``atom(args)``: the atom's properties over the ranges of its arguments, as amounts.

    sizes    numbers of entries of the arguments
    entries  number of entries of the value
    """

    expr: ir.Expr
    atom: Atom
    args: tuple[Facts, ...]
    sizes: tuple[float, ...]
    entries: float = 1.0

    # ---------------------------------------------------------------------- the atom where they lie
    @cached_property
    def domains(self) -> tuple[Interval | None, ...]:
        """The interval where each argument must lie, or None if it may be any number."""
        return self.atom.domains(*(opened(a.interval.value) for a in self.args))

    @cached_property
    def settled(self) -> tuple[Interval | None, ...]:
        """The parts of ``domains`` that do not depend on values that arguments may still get."""
        return self.atom.settled(*(opened(a.interval.value) for a in self.args))

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """The arguments' ranges within the atom's domain."""
        places = (opened(a.interval.value) for a in self.args)
        pairs = zip(places, self.settled, strict=True)
        return tuple(u if d is None else u.meet(opened(d)) for u, d in pairs)

    @cached_property
    def varying(self) -> tuple[bool, ...]:
        """Per argument, whether it depends on variables."""
        return tuple(not a.constant for a in self.args)

    @cached_property
    def bounded_intervals(self) -> tuple[Interval, ...]:
        """``intervals`` with stand-ins for ends that are finite and not known."""
        bounded = (_bounded(a) for a in self.args)
        pairs = zip(bounded, self.settled, strict=True)
        return tuple(u if d is None else u.meet(opened(d)) for u, d in pairs)

    def at(self, rule: Callable[[tuple[Interval, ...]], float | None]) -> Amount:
        """A constant of the atom over the arguments' ranges.

        It is a number, ``SOME`` if it is finite but the ends of a range are not known, or ``NONE``.
        """
        value = amount(rule(self.intervals))
        if value.finite or self.bounded_intervals == self.intervals:
            return value
        if amount(rule(self.bounded_intervals)).finite:
            return SOME
        return NONE

    @cached_property
    def curvature(self) -> str:
        """The atom's curvature over the arguments' ranges."""
        return self.atom.curvature(*self.intervals, varying=self.varying)

    @cached_property
    def signs(self) -> tuple[int, ...]:
        """Monotonicity per argument."""
        words = (
            self.atom.monotone(*self.intervals, argument=self._argument(i)) for i in range(len(self.args))
        )
        return tuple(SIGNS.get(way, INCREASING) for way in words)

    def _argument(self, i: int) -> int:
        """The number of argument i in the atom's declaration; all arguments of a variadic atom share one."""
        if self.atom.variadic and not isinstance(self.atom.properties.monotone, tuple):
            return 0
        return i

    @cached_property
    def slopes(self) -> tuple[Amount, ...]:
        """The Lipschitz constant per argument."""
        return tuple(self._slope(i) for i in range(len(self.args)))

    def is_regular(self, i: int) -> bool:
        """Whether argument i itself is assumed to be a matrix away from singular ones.

        Positive entries say nothing of that, whatever they follow from.
        """
        return self.args[i].interval.rule == INSIDE_DOMAIN

    @cached_property
    def tame_inverse(self) -> bool:
        """Whether matrices to invert are assumed to be away from singular ones, and all is bounded."""
        if not self.atom.regular or not all(self.is_regular(i) for i in self.atom.regular):
            return False
        return all(a.interval.value.mag < inf for a in self.args)

    def _slope(self, i: int) -> Amount:
        if not self.varying[i]:
            return ZERO
        if self.tame_inverse:
            return SOME
        size = self.sizes[i]
        value = self.at(lambda u: self.atom.lipschitz(*u, argument=self._argument(i), size=size))
        if not value.finite and size == inf:  # the dimension is known only with data
            value = self.at(
                lambda u: self.atom.lipschitz(*u, argument=self._argument(i), size=UNKNOWN_ENTRIES)
            )
            if value.finite:
                return SOME
            return NONE
        return value

    @cached_property
    def bend(self) -> Amount | None:
        """The Lipschitz constant of the gradient, or None if the atom has a kink."""
        if self.tame_inverse:
            return SOME
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
        """The weak convexity constant of the atom's negative."""
        if self.curvature in ("concave", "affine", "constant"):
            return ZERO
        if self.bend is None:
            return NONE
        return self.bend

    # --------------------------------------------------------------------------------- what is used
    @cached_property
    def ranges(self) -> tuple[Fact, ...]:
        """The arguments' ranges on which the atom's curvature or monotonicity depends."""
        full = tuple(REALS if d is None else opened(d) for d in self.settled)
        used = []
        for i, arg in enumerate(self.args):
            if arg.interval.holds and not self._same_properties(self._with_interval(i, full[i])):
                used.append(arg.interval)
            elif self.tame_inverse:
                used.append(arg.interval)
        return tuple(used)

    def _with_interval(self, i: int, interval: Interval) -> tuple[Interval, ...]:
        """``intervals`` with another one for argument i."""
        return tuple(interval if k == i else u for k, u in enumerate(self.intervals))

    def _same_properties(self, intervals: tuple[Interval, ...]) -> bool:
        """Whether the atom has the same curvature and monotonicity over other intervals."""
        if self.atom.curvature(*intervals, varying=self.varying) != self.curvature:
            return False
        varying = [self._argument(k) for k in range(len(self.args)) if self.varying[k]]
        return all(
            self.atom.monotone(*intervals, argument=k) == self.atom.monotone(*self.intervals, argument=k)
            for k in varying
        )

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
        """How the arguments' constants add up.

        It is their maximum for ``max`` and ``min``, whose weights sum to 1, otherwise their sum.
        """
        if self.atom.extreme:
            return most
        return plus

    @property
    def active(self) -> tuple[tuple[int, Facts], ...]:
        """The arguments that vary, with their numbers."""
        return tuple((i, a) for i, a in enumerate(self.args) if self.varying[i])

    # ----------------------------------------------------------------------------- slopes and bends
    def rising_and_falling(self, i: int) -> tuple[Amount, Amount]:
        """The steepest the atom rises in argument i, and the steepest it falls."""
        slope, sign = self.slopes[i], self.signs[i]
        if sign == INCREASING:
            return slope, ZERO
        if sign == DECREASING:
            return ZERO, slope
        lies = self.intervals[i]
        if isinstance(self.atom, ArrayAtom) or not lies.lo < 0 < lies.hi:
            return slope, slope
        # a valley or a hill that turns at 0
        steepness = {}
        for side in (interval(lies.lo, 0.0), interval(0.0, lies.hi)):
            half = self._with_interval(i, side)
            word = self.atom.monotone(*half, argument=self._argument(i))
            direction = SIGNS.get(word, NEITHER)
            steepness[direction] = amount(self.atom.lipschitz(*half, argument=self._argument(i)))
        if set(steepness) != {INCREASING, DECREASING}:
            return slope, slope
        rising, falling = steepness[INCREASING], steepness[DECREASING]
        return rising if rising.finite else slope, falling if falling.finite else slope

    def side(self, i: int, kind: str) -> tuple[Amount, tuple[Fact, ...]]:
        """The contribution of argument i to the curvature ``kind`` of the value, and the facts it uses.

        It is the argument's curvature times the atom's slope, on the sides that matter.
        """
        arg = self.args[i]
        if kind == "below":
            same, opposite = arg.below, arg.above
        else:
            same, opposite = arg.above, arg.below
        rising, falling = self.rising_and_falling(i)
        directions = ((same, rising), (opposite, falling))
        uses = tuple(fact for fact, slope in directions if not slope.zero)
        curvature = most(times(rising, same.value), times(falling, opposite.value))
        if not isinstance(self.atom, ArrayAtom) or self.sizes[i] == 1 or curvature.zero:
            return curvature, uses
        if self.sizes[i] < inf:
            root = amount(sqrt(self.sizes[i]))
        else:
            root = SOME
        spread = times(root, curvature)
        by_gradient = times(self.slopes[i], arg.gradient.value)
        if least(spread, by_gradient) == spread:
            return spread, uses
        return by_gradient, (arg.gradient,)


def _bounded(arg: Facts) -> Interval:
    """The range of an argument, with stand-ins for ends that exist and are not known."""
    u = opened(arg.interval.value)
    if not arg.compact or not arg.size.value.finite:
        return u
    lo, hi = u.lo, u.hi
    inset = OPEN_END_SHARE * min(1.0, u.hi - u.lo)
    if u.lo == -inf:
        lo = max(-UNKNOWN_END, min(u.hi - 1, -UNKNOWN_END))
    elif u.lo_open:
        lo = u.lo + inset
    if u.hi == inf:
        hi = min(UNKNOWN_END, max(lo + 1, UNKNOWN_END))
    elif u.hi_open:
        hi = u.hi - inset
    return interval(lo, max(lo, hi))
