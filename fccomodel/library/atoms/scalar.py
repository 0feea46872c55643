"""Atoms of numbers, applied entry by entry, and what follows from their formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from fccomodel.library.atoms import syntax
from fccomodel.library.atoms.base import Atom, Shape, ShapeError, show
from fccomodel.library.atoms.interval import REALS, Interval


@dataclass(frozen=True, kw_only=True, eq=False)
class ScalarAtom(Atom):
    """An atom applied entry by entry; arguments have one shape, or are scalars.

    formula     the definition, which sympy and NumPy both read: ``Piecewise((u, u > 0), (0,
                True))``; or a function of the
                number of arguments
    breaks      the first argument's points without a derivative, where no ``graph`` has them:
                formulas in the parameters,
                monotone in each
    graph       for a piecewise linear-quadratic atom with upward kinks: its subdifferential as
                (points, first slope, last
                slope), a polyline through ``points`` (u, f'(u)) continued with these slopes (inf:
                vertical, the end of the domain); or a function of the parameters. Prox, Moreau
                envelope and conjugate follow from it.
    conjugate   f*(s) in the modelling language, in terms of ``s`` and the parameters, for s in
                ``slopes``; +inf elsewhere
    slopes      the domain of the conjugate, where no ``graph`` gives it
    steady      c with |f'''| <= c |f''|: curvature changes by no more than the factor exp(c r)
                within r (generalised
                self-concordance: F. Bach, Self-concordant analysis for logistic regression, 2010);
                inf where none is known
    near        where ``steady`` is inf, a function of u with no more curvature (where this one is
                concave: no less) than this one
                has at any point within ``r`` of u, in the modelling language; empty where none is known
    """

    formula: str | Callable[[int], str]
    breaks: tuple[str, ...] = ()
    graph: tuple | Callable[..., tuple] | None = None
    conjugate: str = ""
    slopes: Interval = REALS
    steady: float = inf
    near: str = ""

    def shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """The common shape of the array arguments (scalars broadcast), or ShapeError."""
        arrays = [shape for shape in shapes if shape]
        for shape in arrays[1:]:
            if shape != arrays[0]:
                both = f"{show(arrays[0])} and {show(shape)}"
                raise ShapeError(
                    f"{self.name} works entry by entry, so its arguments are scalars or have one shape, "
                    f"not {both}"
                )
        if arrays:
            return arrays[0]
        return ()

    def definition(self, count: int) -> str:
        """The formula for ``count`` arguments."""
        if callable(self.formula):
            return self.formula(count)
        return self.formula

    def value(self, *args: Any) -> Any:
        """The formula, evaluated in NumPy."""
        from fccomodel.library.atoms._formula import evaluate

        return evaluate(self.definition(len(args)), dict(zip(self.names(len(args)), args, strict=True)))

    def symbolic(self, args: Sequence[Any]) -> Any:
        """The formula with sympy expressions as arguments."""
        from fccomodel.library.atoms._formula import symbolic

        formula = symbolic(self.definition(len(args)))
        symbols = {symbol.name: symbol for symbol in formula.free_symbols}
        substitutions = {
            symbols[name]: arg
            for name, arg in zip(self.names(len(args)), args, strict=True)
            if name in symbols
        }
        return formula.subs(substitutions, simultaneous=True)

    def kinks(self, *intervals: Interval) -> tuple[Interval, ...]:
        """The intervals that hold the ``breaks``, from those at both ends of the parameters."""
        ends = [self._breaks(tuple(u[end] for u in intervals[1:])) for end in (0, 1)]
        return tuple(Interval(min(pair), max(pair)) for pair in zip(*ends, strict=True))

    def _breaks(self, parameters: tuple[float, ...]) -> list[float]:
        from fccomodel.library.atoms._formula import evaluate

        if self.graph is not None:
            return [float(self.subdifferential(*parameters)[0][k][0]) for k in self._jumps]
        values = dict(zip(self.parameters, parameters, strict=False))
        return [float(evaluate(text, values)) for text in self.breaks]

    @cached_property
    def _jumps(self) -> tuple[int, ...]:
        """The kinks: the points where the graph of the subdifferential is vertical."""
        points, _, _ = self.subdifferential(*self.typical)
        return tuple(
            k
            for k, (a, b) in enumerate(zip(points, points[1:], strict=False))
            if a[0] == b[0] and a[1] != b[1]
        )

    @cached_property
    def typical(self) -> tuple[float, ...]:
        """Parameters inside their domains."""
        if self.parameters:
            limits = self.domains(*self.everywhere)[len(self.arguments) - len(self.parameters) :]
        else:
            limits = ()
        return tuple(_inner(limit or REALS) for limit in limits)

    def affine_pieces(self, *parameters: float) -> tuple[tuple[float, float], ...]:
        """The affine functions a u + b as (a, b), from left to right, whose maximum is the atom;
        else empty."""
        if self.graph is None:
            return ()
        points, *ends = self.subdifferential(*parameters)
        rises = all(
            p[0] == q[0] and p[1] <= q[1] or p[1] == q[1] for p, q in zip(points, points[1:], strict=False)
        )
        if not rises or any(ends):
            return ()
        at = {y: x for x, y in points}
        return tuple((y, float(self.value(x, *parameters)) - y * x) for y, x in at.items())

    def subdifferential(self, *parameters: float) -> tuple:
        """The ``graph`` at these parameters."""
        if callable(self.graph):
            return self.graph(*parameters)
        return self.graph or ()

    # ---------------------------------------------------------------- what follows from the formula
    @cached_property
    def extreme(self) -> int:
        """1, -1 or 0, read from the formula."""
        if self.variadic:
            return syntax.extreme(self.definition(2), self.names(2))
        return 0

    @cached_property
    def exponent(self) -> float | str | None:
        """The exponent p of ``u^p``, read from the formula."""
        if self.variadic:
            return None
        return syntax.exponent(self.definition(len(self.arguments)), self.arguments[0])

    @cached_property
    def signs(self) -> tuple[int, ...] | None:
        """The arguments' signs, if the derivatives are all the constants 1 or -1."""
        texts = () if callable(self.derivative) or self.boolean else self.derivative
        if texts and all(text in ("1", "-1") for text in texts):
            return tuple(map(int, texts))
        return None

    def degree(
        self,
        degrees: Sequence[int],
        numbers: Sequence[float | None],
        *,
        scalar: bool = True,
        whole: bool = False,
    ) -> int | None:
        """The degree of the polynomial pieces, read from the formula."""
        names = self.names(len(degrees))
        values = {name: number for name, number in zip(names, numbers, strict=True) if number is not None}
        if self.boolean or any(d for d, name in zip(degrees, names, strict=True) if name in self.parameters):
            return None
        top = syntax.degree(
            self.definition(len(degrees)),
            dict(zip(names, degrees, strict=True)),
            values,
            scalar=scalar,
            whole=whole,
        )
        if top is None or not any(degrees):
            return top
        return max(1, top)

    @cached_property
    def bent(self) -> bool:
        """Whether the formula has several polynomial pieces of degree at most 2 and is not a step
        function."""
        degrees = [int(k in self.free) for k in range(self.min_count)]
        pieced = self.degree(degrees, [None] * self.min_count) is not None
        return pieced and not self.flat and syntax.pieced(self.definition(self.min_count))

    @cached_property
    def moderate(self) -> bool:
        """Whether the atom grows at most polynomially; every piecewise polynomial does."""
        return super().moderate or self.bent

    def steep_at_0(self, *intervals: Interval) -> tuple[int, ...]:
        """Positions of the varying arguments whose slope is unbounded or undefined near 0."""
        return tuple(k for k in self.free if self._steep(k, intervals or self.everywhere))

    def _steep(self, k: int, intervals: tuple[Interval, ...]) -> bool:
        near = (*intervals[:k], Interval(0.0, 1.0, lo_open=True), *intervals[k + 1 :])
        limit = self.domains(*near)[k]
        ends = k in self.poles(*near) or limit is not None and limit.lo == 0
        return ends and self.lipschitz(*near, argument=k) == inf


def _inner(u: Interval) -> float:
    """A number inside an interval."""
    if u.lo == -inf:
        if u.hi == inf:
            return 1.0
        return u.hi - 1
    if u.hi == inf:
        return u.lo + 1
    return (u.lo + u.hi) / 2
