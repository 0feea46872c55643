"""Penalties of constraints in the minimised function, and multipliers from their slopes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.library import atoms
from fccomodel.library.piecewise import PiecewiseLQ
from fccomodel.library.piecewise.expression import of_atom


@dataclass(frozen=True, eq=False, kw_only=True)
class Penalty(ir.Expr):
    """``scale * factor * op(c)`` for a constraint on c.

    label   the constraint's label
    kind    ``le`` for c <= 0, ``eq`` for c == 0
    op      an atom that is zero where the constraint holds: ``pos abs sqhinge square``
    args    (c,)
    scale   name of the hyper-parameter in front; None: it is infinite, so that the whole is the
            indicator of the constraint
    """

    label: str
    kind: str
    op: str
    args: tuple[ir.Expr, ...]
    factor: float = 1.0
    scale: str | None = "rho"

    @property
    def children(self) -> tuple[ir.Expr, ...]:
        """The constraint's value."""
        return self.args

    @property
    def function(self) -> ir.Expr:
        """``factor * op(c)``."""
        (value,) = self.args
        function = make(self.op, value, span=self.span)
        if self.factor == 1:
            return function
        return make("mul", const(self.factor), function, span=self.span)

    def graph(self, function: PiecewiseLQ) -> PiecewiseLQ:
        """The smoothed function without its scale: ``function``, or the indicator of its zeros."""
        if self.scale is not None:
            return function
        return indicator(*zeros(function))

    def units(self, function: PiecewiseLQ) -> tuple[float, float]:
        """Slopes of ``function`` where the constraint begins to be violated: below and above.

        They turn slopes of the smoothed function into multipliers of the constraint.
        """
        low, high = zeros(function)
        if low == -inf:
            below = -1.0
        else:
            below = function.subdifferential(low)[0]
        if high == inf:
            above = 1.0
        else:
            above = function.subdifferential(high)[1]
        if self.kind == "eq":
            return -below, above
        return below, above

    def multiplier(self, value: np.ndarray, scale: float) -> np.ndarray:
        """``scale * factor * op'(c)`` at values of the constraint."""
        atom = atoms.get(self.op)
        assert isinstance(atom, atoms.ScalarAtom)
        graph = of_atom(atom)
        assert graph is not None
        return scale * self.factor * graph.gradient(value)


def zeros(function: PiecewiseLQ) -> tuple[float, float]:
    """The interval where a nonnegative function is zero."""
    low, high = function.conjugate().subdifferential(0.0)
    return low, high


def indicator(low: float, high: float) -> PiecewiseLQ:
    """0 on [low, high], infinite elsewhere."""
    ends = [(end, 0.0) for end in dict.fromkeys((low, high)) if abs(end) < inf] or [(0.0, 0.0)]
    left = 0.0 if low == -inf else inf
    right = 0.0 if high == inf else inf
    return PiecewiseLQ(points=tuple(ends), left=left, right=right)
