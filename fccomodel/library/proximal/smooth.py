"""All other convex or weakly convex functions of one number, by safeguarded Newton on f'(x - lam y)
= y.

f' and f'' come from the derivatives that the atoms declare. This covers every composition of scalar
atoms with proved curvature; a kink inside is bracketed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite, isinf, isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.atoms.base import REALS, Interval
from fccomodel.library.formulas import Algebra, atom_of
from fccomodel.library.proximal._base import FactsOf, Proximal, evaluated

if TYPE_CHECKING:
    import torch

NAME = "v"
#: Points at which a point of the domain is sought, small ones first.
CANDIDATES = sorted(
    (0.0, *(s * m * 10.0**k for k in range(-6, 7) for m in (1.0, 2.5) for s in (1.0, -1.0))), key=abs
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Smooth(Proximal):
    """A function of one number by the texts of its derivatives.

    formula, first, second  the texts of f, f' and f'' at a tensor ``v``
    low, high               the ends of the domain
    at                      a point inside it
    """

    formula: str
    first: str
    second: str
    low: float
    high: float
    at: float

    @classmethod
    def of(cls, expr: ir.Expr, hole: ir.Hole, facts_of: FactsOf, where: Interval = REALS) -> Smooth | str:
        """The function restricted to ``where``, or why it has no prox. ``expr``: scalar atoms,
        constants and the hole; ``facts_of`` tells its curvature."""
        if strange := next((n for n in ir.walk(expr) if not _scalar(n, hole)), None):
            return f"`{getattr(strange, 'op', type(strange).__name__)}` is not a function of one number"
        bounds = domain(expr, hole, where)
        if bounds is None:
            return "no point of its domain was found"
        low, high, at = bounds
        facts = facts_of(
            expr,
            holes={
                hole.name: Interval(low, high, not defined(expr, hole, low), not defined(expr, hole, high))
            },
        )
        if not facts.weakly_convex or facts.rho == inf:
            return "neither convex nor weakly convex: " + (
                facts.below.reason or facts.below.rule or "no rule applies"
            )
        weak = float(facts.rho or 0.0)
        value = FORMULAS.folded(expr)
        first = FORMULAS.slope(value, hole)
        second = FORMULAS.slope(first, hole)
        how = "safeguarded Newton on its derivative, which the atoms' own give"
        if weak:
            how += f"; weakly convex, so for lambda < 1/rho = {1 / weak:.4g}"
        function = cls(
            formula=FORMULAS.text(value),
            first=FORMULAS.text(first),
            second=FORMULAS.text(second),
            low=low,
            high=high,
            at=at,
            weak=weak,
            lipschitz=facts.C if facts.is_lipschitz else inf,
            tolerance=1e-10,
            how=how,
        )
        low, high = function.slopes
        return replace(function, diameter=high - low)

    @property
    def slopes(self) -> tuple[float, float]:
        """The interval of slopes: the limits of f' towards the ends of the domain.

        For weakly convex f it follows from the Lipschitz constant.
        """
        if self.weak:
            return -self.lipschitz, self.lipschitz
        return self._limit(self.low, -1.0), self._limit(self.high, 1.0)

    def _limit(self, end: float, side: float) -> float:
        """The limit of f' at one end of the domain, extrapolated from ever closer points; inf if it
        diverges."""
        import torch

        if isfinite(end) and bool(self.value(torch.tensor(end, dtype=torch.float64)).isfinite()):
            return side * inf
        k = torch.arange(1.0, 12.0, dtype=torch.float64)
        if not isfinite(end):
            v = self.at + side * 10.0**k
        else:
            v = end + (self.at - end) * 10.0**-k
        slopes = evaluated(self.first, {NAME: v}) + 0 * v
        slopes = slopes[~slopes.isnan()]
        if len(slopes):
            last = float(slopes[-1])
        else:
            last = nan
        if isnan(last):
            return side * inf
        if isinf(last):
            return last
        if len(slopes) < 3:
            return side * inf
        before, step = (float(d) for d in slopes.diff()[-2:])
        if abs(step) > 0.5 * abs(before) + 1e-12:
            return side * inf
        if not step:
            return last + 0.0
        rest = step * step / (before - step)  # of a geometric series
        return round(last + rest, 9) + 0.0

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of f, inf outside the domain."""
        text = self.formula
        if u != NAME:
            text = f"(lambda {NAME}: {text})({u})"
        outside = []
        if isfinite(self.low):
            outside.append(f"({u} < {self.low!r})")
        if isfinite(self.high):
            outside.append(f"({u} > {self.high!r})")
        if outside:
            return f"({text}).masked_fill({' | '.join(outside)}, math.inf)"
        return text

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the call of Newton's method."""
        return (
            f"newton_slope(lambda {NAME}: ({self.first}, {self.second}), {x}, {lam}, {self.weak!r}, "
            f"{self.at!r}, {_end_text(self.low)}, {_end_text(self.high)})"
        )

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """u y - f(u) with f'(u) = y, by bisection; None if f is not convex."""
        import torch

        if self.weak:
            return None
        low, high = self.slopes
        y = y.double()
        left, right = torch.full_like(y, self.low), torch.full_like(y, self.high)
        step = torch.ones_like(y)
        for _ in range(80):  # from a point inside outwards, until f' has passed y
            for end, side in ((left, -1.0), (right, 1.0)):
                trial = self.at + side * step
                beyond = side * (evaluated(self.first, {NAME: trial}) + 0 * trial - y)
                # where f' is constant, rounding puts it on either side of y
                passed = beyond >= -1e-14 * (1 + y.abs())
                end.copy_(torch.where(end.isinf() & passed, trial, end))
            step = 2 * step
        left, right = left.clamp(min=-1e24), right.clamp(max=1e24)
        for _ in range(200):
            middle = (left + right) / 2
            below = evaluated(self.first, {NAME: middle}) + 0 * middle < y
            left, right = torch.where(below, middle, left), torch.where(below, right, middle)
        u = (left + right) / 2
        return (u * y - self.value(u)).masked_fill((y < low - 1e-9) | (y > high + 1e-9), inf)

    @property
    def domain(self) -> str:
        """The interval of slopes, in words."""
        low, high = self.slopes
        if (low, high) == (-inf, inf):
            return "all reals"
        return f"{low:g} to {high:g}"


# --------------------------------------------------------------------------------------- the domain
def domain(expr: ir.Expr, hole: ir.Hole, where: Interval = REALS) -> tuple[float, float, float] | None:
    """The ends of an interval on which the expression is defined, and a point inside, or None."""
    inside = next((x for x in CANDIDATES if where.lo < x < where.hi and _interior(expr, hole, x)), None)
    if inside is None:
        return None
    low, high = (_end(expr, hole, inside, side) for side in (-1.0, 1.0))
    low, high = max(low, where.lo), min(high, where.hi)
    if isfinite(low) and isfinite(high):
        return low, high, (low + high) / 2
    if isfinite(low):
        inside = low + 1.0
    elif isfinite(high):
        inside = high - 1.0
    return low, high, inside


def _end_text(end: float) -> str:
    if isfinite(end):
        return repr(end)
    if end < 0:
        return "-math.inf"
    return "math.inf"


def _interior(expr: ir.Expr, hole: ir.Hole, x: float) -> bool:
    """Whether the expression is defined at x and close to it on both sides."""
    return all(defined(expr, hole, x + d * (1e-9 + 1e-9 * abs(x))) for d in (-1, 0, 1))


def _end(expr: ir.Expr, hole: ir.Hole, inside: float, side: float) -> float:
    """The end of the domain on one side of a point inside: doubled steps outwards, then
    bisection."""
    step, good = 1e-3, inside
    while defined(expr, hole, inside + side * step):
        good = inside + side * step
        step *= 2
        if step > 1e15:
            return side * inf
    bad = inside + side * step
    for _ in range(200):
        middle = (good + bad) / 2
        if defined(expr, hole, middle):
            good = middle
        else:
            bad = middle
    near = round(good, 10) + 0.0
    if abs(near - good) <= 1e-12 * max(1.0, abs(good)):
        return near
    return good


def defined(expr: ir.Expr, hole: ir.Hole, x: float) -> bool:
    """Whether every atom of the expression is inside its domain at this value of the hole."""
    values: dict[int, float] = {id(hole): x}
    with np.errstate(all="ignore"):
        for node in ir.walk(expr):
            if isinstance(node, ir.Const):
                values[id(node)] = node.value
            elif isinstance(node, ir.Apply):
                args = [values[id(a)] for a in node.args]
                atom = atom_of(node.op)
                limits = atom.domains(*(Interval.point(v) for v in args))
                if any(d is not None and not d.has(v) for d, v in zip(limits, args, strict=False)):
                    return False
                if any(args[k] == 0 for k in atom.poles(*(Interval.point(v) for v in args))):
                    return False
                values[id(node)] = float(atom.value(*(np.float64(v) for v in args)))
    return values[id(expr)] == values[id(expr)]


# --------------------------------------------------------------------------- values and their texts
def _scalar(node: ir.Expr, hole: ir.Hole) -> bool:
    if isinstance(node, ir.Apply):
        return isinstance(atoms.get(node.op), atoms.ScalarAtom)
    return node is hole or isinstance(node, ir.Const)


class ScalarAlgebra(Algebra[ir.Expr]):
    """The algebra of expressions of one number."""

    def const(self, value: float) -> ir.Expr:
        """A number in the text."""
        return ir.Const(value=float(value))

    def number(self, value: ir.Expr) -> float | None:
        """The value of a number in the text, or None."""
        if isinstance(value, ir.Const):
            return value.value
        return None

    def parts(self, value: ir.Expr) -> tuple[str, tuple[ir.Expr, ...]]:
        """The atom and arguments of an application."""
        if isinstance(value, ir.Apply):
            return (value.op, value.args)
        return ("", ())

    def entrywise(self, name: str, args: tuple[ir.Expr, ...]) -> ir.Expr:
        """An application of the atom."""
        return ir.Apply(op=name, args=args)

    def folded(self, expr: ir.Expr) -> ir.Expr:
        """The expression with its constants folded."""
        images: dict[int, ir.Expr] = {}
        for node in ir.walk(expr):
            if isinstance(node, ir.Apply):
                images[id(node)] = self.apply(node.op, *(images[id(a)] for a in node.args))
            else:
                images[id(node)] = node
        return images[id(expr)]

    def slope(self, root: ir.Expr, hole: ir.Hole) -> ir.Expr:
        """The derivative in the hole, by the chain rule in forward mode."""
        slopes: dict[int, ir.Expr] = {}
        for node in ir.walk(root):
            if isinstance(node, ir.Apply):
                slopes[id(node)] = self._chain(node, slopes)
            else:
                slopes[id(node)] = self.const(float(node is hole))
        return slopes[id(root)]

    def _chain(self, node: ir.Apply, slopes: Mapping[int, ir.Expr]) -> ir.Expr:
        """The derivative of an atom, from the derivatives of its arguments."""
        atom, total = atom_of(node.op), self.const(0.0)
        names = dict(zip(atom.names(len(node.args)), node.args, strict=True)) | {"y": node}
        texts = atom.derivatives(self.site(node)) or ("0",) * len(node.args)
        free = [arg for name, arg in names.items() if name not in (*atom.parameters, "y")]
        for arg, text in zip(free, texts, strict=False):
            if self.number(slopes[id(arg)]) != 0:
                total = self.apply(
                    "add", total, self.apply("mul", self.evaluate(text, names), slopes[id(arg)])
                )
        return total

    def site(self, node: ir.Apply) -> atoms.Site:
        """The use of an atom, whose constants are Python numbers."""
        numbers = tuple(self.number(a) for a in node.args)
        return atoms.Site(
            shapes=((),) * len(numbers), numbers=numbers, python=tuple(n is not None for n in numbers)
        )

    def text(self, node: ir.Expr) -> str:
        """The torch expression in the argument ``v``."""
        if isinstance(node, ir.Apply):
            return f"({atom_of(node.op).lower(tuple(self.text(a) for a in node.args), self.site(node))})"
        number = self.number(node)
        if number is None:
            return NAME
        if number >= 0 and isfinite(number):
            return repr(number)
        if isfinite(number):
            return f"({number!r})"
        return f"float('{number}')"


FORMULAS = ScalarAlgebra()
