"""What an atom is, and the registry of all atoms.

An atom is everything the compiler knows about one function: its meaning, its torch text, its
derivative in the modelling language itself, and its properties as functions of where its arguments
lie. Smoothness is derived from these, never declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

from fccomodel.core.ir import Dim, Shape
from fccomodel.library.atoms._domain import Domain
from fccomodel.library.atoms.interval import REALS, Interval
from fccomodel.library.cones import Cone

__all__ = ["REALS", "Atom", "Dim", "Interval", "Properties", "Shape", "ShapeError", "Site", "show"]


class ShapeError(Exception):
    """The shapes of an atom's arguments do not fit; the message is the reason, in the user's words."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """One use of an atom.

    shapes    each argument's own axes, without batch axes
    numbers   each argument's value where it is a number known now, else None
    python    True where the argument's torch text is a Python number, not a tensor
    """

    shapes: tuple[Shape, ...]
    numbers: tuple[float | None, ...]
    python: tuple[bool, ...]


#: A property: one value for every place, or a function of the arguments' intervals.
Rule = str | float | None | Interval | Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Properties:
    """What holds where the arguments (for arrays: their entries) lie in given intervals.

    Each is a value, or a function of one interval per argument. ``curvature``,
    ``gradient_lipschitz`` and ``weak_convexity`` of an atom with several arguments that may vary
    take first the tuple ``varying`` (True where an argument depends on the variables). ``monotone``
    and ``lipschitz`` may be a tuple, one per argument.

    curvature           constant, affine, convex, concave or none, jointly in the varying arguments
    monotone            increasing, decreasing, constant or none (increasing: non-decreasing)
    lipschitz           constant of the value in the Euclidean norm; an array atom's function takes
                        the argument's size last
                        (inf: unknown)
    gradient_lipschitz  constant of the gradient; inf: continuous without a bound; None: not
                        differentiable at some point there
    weak_convexity      rho such that f + rho/2 |u|^2 is convex; inf where there is none
    range               where the value lies
    """

    curvature: Rule = "none"
    monotone: Rule | tuple[Rule, ...] = "none"
    lipschitz: Rule | tuple[Rule, ...] = inf
    gradient_lipschitz: Rule = inf
    weak_convexity: Rule = inf
    range: Rule = REALS


def at(rule: Rule, *args: Any, beyond: Any = inf) -> Any:
    """The value of a rule at these intervals, or ``beyond`` if its arithmetic overflows or has no
    value."""
    try:
        if callable(rule):
            return rule(*args)
        return rule
    except ArithmeticError:
        return beyond


@dataclass(frozen=True, kw_only=True, eq=False)
class Atom(Domain):
    """A function of the language; ``Domain`` says where its arguments lie.

    name         as models write it; ``aliases`` are further names for the same atom
    meaning      what it is, with its formula, in one line
    arguments    names of the arguments, used by ``derivative``; ``u...`` stands for any number of
                 them: u1, u2, ...
    parameters   those that must not depend on the decision variables; they come last
    torch        the torch expression with ``{0}``, ``{1}``, ... for the arguments' texts (a name, a
                 number or parenthesised,
                 used several times perhaps) and ``{axes0}``, ... for the own axes of an array
                 argument; or a function of a ``Site``. The result may stand where a name may stand.
    derivative   per argument that may vary, the factor that the chain rule multiplies by (entrywise
                 atoms), or the adjoint in
                 terms of ``dy`` (array atoms), in the modelling language: argument names, ``y``
                 (the value), ``pi`` and atoms. At a kink it is one subgradient. Or a function of a
                 ``Site``.
    symbol       how models write it: between its two arguments, or before its one
    boolean      its value is a truth value
    squared      the atom that is its square
    homogeneous  p with f(c u) = c^p f(u) for c >= 0, u all arguments that may vary together; None
                 where there is none
    even         f(-u) = f(u), u likewise
    complement   1 - f in the modelling language, where that says more: it is f of something else
    logarithm    log f in the modelling language, where it is better known than from f: it cannot
                 overflow, its curvature shows
    instead      what to write where it lacks a property: ``smooth``, ``convex``, ``concave``;
                 ``unsmooth``, the last two of an
                 argument that is not affine
    cone         (cones, arguments) -> the value as a conic program, where neither its ``graph`` nor
                 its ``ball`` says it
    tex          how mathematics writes it (``library.tex.written``); else ``name(arguments)``
    internal     for derivatives, not for models; its ``derivative`` may be () (never differentiated)
    cite         where the definition comes from
    """

    name: str
    meaning: str
    arguments: tuple[str, ...]
    torch: str | Callable[[Site], str]
    derivative: tuple[str, ...] | Callable[[Site], tuple[str, ...]]
    properties: Properties = field(default_factory=Properties)
    parameters: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    symbol: str = ""
    boolean: bool = False
    squared: str = ""
    homogeneous: int | None = None
    even: bool = False
    logarithm: str = ""
    complement: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)
    cone: Cone | None = None
    tex: str = ""
    internal: bool = False
    cite: str = ""

    # ------------------------------------------------------------------------------------ arguments
    @property
    def variadic(self) -> bool:
        """Whether the atom takes any number of arguments (at least ``min_count``)."""
        return self.arguments[-1].endswith("...")

    @property
    def min_count(self) -> int:
        """The smallest number of arguments."""
        if self.variadic:
            return 2
        return len(self.arguments)

    def accepts(self, count: int) -> bool:
        """Whether the atom can be called with ``count`` arguments."""
        if self.variadic:
            return count >= self.min_count
        return count == len(self.arguments)

    def names(self, count: int) -> tuple[str, ...]:
        """The names that ``derivative`` uses for ``count`` arguments."""
        if not self.variadic:
            return self.arguments
        stem = self.arguments[-1].removesuffix("...")
        return tuple(f"{stem}{k}" for k in range(1, count + 1))

    @property
    def signature(self) -> str:
        """The call as error messages show it: ``huber(u, delta)``."""
        if self.variadic:
            return f"{self.name}({', '.join(self.names(2))}, ...)"
        return f"{self.name}({', '.join(self.arguments)})"

    def shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """The shape of the value, or ShapeError."""
        raise NotImplementedError

    def value(self, *args: Any) -> Any:
        """The value by definition, of NumPy float64 arguments."""
        raise NotImplementedError

    def site(
        self, texts: tuple[str, ...], shapes: tuple[Shape, ...] = (), numbers: tuple[float | None, ...] = ()
    ) -> Site:
        """The use of the atom with these texts.

        Without ``shapes`` all arguments are scalars. A text that reads as a number counts as
        one.
        """
        values = numbers or tuple(_number(text) for text in texts)
        python = tuple(_number(text) is not None for text in texts)
        return Site(shapes=shapes or ((),) * len(texts), numbers=values, python=python)

    # ----------------------------------------------------------------------------------------- text
    def lower(self, texts: tuple[str, ...], site: Site | None = None) -> str:
        """The torch expression on arguments of the given texts. At least one argument must be a tensor."""
        site = site or self.site(texts)
        if callable(self.torch):
            template = self.torch(site)
        else:
            template = self.torch
        axes = {f"axes{k}": _axes(shape) for k, shape in enumerate(site.shapes)}
        return template.format(*texts, **axes)

    def derivatives(self, site: Site) -> tuple[str, ...]:
        """One derivative per argument that may vary (see ``derivative``)."""
        if callable(self.derivative):
            return self.derivative(site)
        return self.derivative

    # ----------------------------------------------------------------------------------- properties
    def _varying(self, count: int, varying: tuple[bool, ...] | None) -> tuple[tuple[bool, ...], ...]:
        names = self.names(count)
        free = [name not in self.parameters for name in names]
        if sum(free) == 1 and not self.variadic:
            return ()
        return (tuple(free) if varying is None else tuple(varying),)

    def curvature(self, *intervals: Interval, varying: tuple[bool, ...] | None = None) -> str:
        """The curvature: constant, affine, convex, concave or none.

        It holds jointly in the varying arguments (all that may vary, unless given).
        """
        return at(
            self.properties.curvature, *self._varying(len(intervals), varying), *intervals, beyond="none"
        )

    def monotone(self, *intervals: Interval, argument: int = 0) -> str:
        """The monotonicity in one argument: increasing, decreasing, constant or none."""
        rule = self.properties.monotone
        return at(rule[argument] if isinstance(rule, tuple) else rule, *intervals, beyond="none")

    def lipschitz(self, *intervals: Interval, argument: int = 0, size: float = inf) -> float:
        """The value's Lipschitz constant in one argument of ``size`` entries (inf: unknown), or
        inf."""
        rule = self._slope(argument)
        return float(at(rule, *intervals))

    def _slope(self, argument: int) -> Rule:
        rule = self.properties.lipschitz
        if isinstance(rule, tuple):
            return rule[argument]
        return rule

    def gradient_lipschitz(
        self, *intervals: Interval, varying: tuple[bool, ...] | None = None
    ) -> float | None:
        """The gradient's Lipschitz constant there; inf if unbounded; None if a gradient is missing
        somewhere."""
        if any(intervals[0].lo < kink.hi and kink.lo < intervals[0].hi for kink in self.kinks(*intervals)):
            return None
        return at(self.properties.gradient_lipschitz, *self._varying(len(intervals), varying), *intervals)

    def kinks(self, *intervals: Interval) -> tuple[Interval, ...]:
        """Intervals of the first argument that hold its kinks: points if the parameters are
        known."""
        return ()

    def weak_convexity(self, *intervals: Interval, varying: tuple[bool, ...] | None = None) -> float:
        """The least known rho >= 0 that makes f + rho/2 |u|^2 convex there; inf if none is known."""
        if self.curvature(*intervals, varying=varying) in ("constant", "affine", "convex"):
            return 0.0
        smooth = self.gradient_lipschitz(*intervals, varying=varying)
        declared = at(self.properties.weak_convexity, *self._varying(len(intervals), varying), *intervals)
        return min(inf if smooth is None else smooth, declared)

    def range(self, *intervals: Interval) -> Interval:
        """The interval in which (each entry of) the value lies."""
        return at(self.properties.range, *intervals, beyond=REALS)

    # --------------------------------------------------------------- what follows from all of these
    @cached_property
    def everywhere(self) -> tuple[Interval, ...]:
        """All reals, once for each required argument."""
        return (REALS,) * self.min_count

    @cached_property
    def inside(self) -> tuple[Interval, ...]:
        """The interior of the domain."""
        domains = (domain or REALS for domain in self.domains(*self.everywhere))
        return tuple(Interval(domain.lo, domain.hi, True, True) for domain in domains)

    @cached_property
    def free(self) -> tuple[int, ...]:
        """Positions of the arguments that may vary."""
        return tuple(k for k, name in enumerate(self.names(self.min_count)) if name not in self.parameters)

    @cached_property
    def flat(self) -> bool:
        """Whether the derivative is 0 wherever it exists."""
        texts = self.derivative
        return isinstance(texts, tuple) and bool(texts) and all(text == "0" for text in texts)

    @cached_property
    def kinked(self) -> bool:
        """Whether there is a point inside the domain without a gradient."""
        return not self.boolean and self.gradient_lipschitz(*self.inside) is None

    def linear(self, varying: Sequence[bool]) -> bool:
        """Whether the atom is affine in the varying arguments, for all values of the others."""
        if any(
            vary
            for vary, name in zip(varying, self.names(len(varying)), strict=True)
            if name in self.parameters
        ):
            return False
        return not any(varying) or self.curvature(*(REALS,) * len(varying), varying=tuple(varying)) in (
            "constant",
            "affine",
        )

    @cached_property
    def bilinear(self) -> bool:
        """Whether the atom is affine in each of two arguments but not in both together."""
        if self.min_count == 2:
            alone = all(self.linear([j == k for j in range(2)]) for k in range(2))
        else:
            alone = False
        return alone and not self.linear([True, True])

    @cached_property
    def moderate(self) -> bool:
        """Whether the atom grows at most polynomially.

        Then its value at a random draw has every moment that the draw has.
        """
        slopes = [self.lipschitz(*self.everywhere, argument=k, size=4.0) for k in self.free]
        bend = self.gradient_lipschitz(*self.everywhere)
        return self.flat or inf not in slopes or bend is not None and bend < inf

    @cached_property
    def safe(self) -> bool:
        """Whether value and derivative are finite at every number."""
        limits = self.domains(*self.everywhere)
        return (
            self.moderate and not self.poles(*self.everywhere) and all(limits[k] is None for k in self.free)
        )

    def steep_at_0(self, *intervals: Interval) -> tuple[int, ...]:
        """Positions of the arguments in which the slope is unbounded or undefined near 0, an end of
        the domain."""
        return ()

    def degree(
        self,
        degrees: Sequence[int],
        numbers: Sequence[float | None],
        *,
        scalar: bool = True,
        whole: bool = False,
    ) -> int | None:
        """The degree, at most 2, of its polynomial pieces in what its arguments' pieces, of these
        degrees, depend on; else None.

        numbers  values of arguments, where they are known
        scalar   that is one number, so that pieces are intervals; else they are polyhedra: only
                 affine functions part them
        whole    there may be one piece alone: a polynomial
        """
        raise NotImplementedError

    @cached_property
    def extreme(self) -> int:
        """1 if the atom is the maximum of its arguments, -1 if the minimum, else 0."""
        return 0

    @cached_property
    def exponent(self) -> float | str | None:
        """The exponent p of a power u^p of the first argument, a number or an argument's name, or
        None."""
        return None

    @cached_property
    def signs(self) -> tuple[int, ...] | None:
        """The signs of the arguments if the atom is their signed sum, else None."""
        return None

    @cached_property
    def bent(self) -> bool:
        """Whether the atom is continuous and piecewise polynomial of degree at most 2, with several
        pieces."""
        return False


def show(shape: Shape) -> str:
    """A shape as models write it: ``[d, 3]``, or ``a scalar``."""
    if shape:
        return f"[{', '.join(str(n) for n in shape)}]"
    return "a scalar"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _axes(shape: Shape) -> str:
    """The own axes of an array as a torch ``dim``: ``-1``, ``(-2, -1)``."""
    if len(shape) <= 1:
        return "-1"
    return f"({', '.join(str(k) for k in range(-len(shape), 0))})"
