"""The record that describes an atom, which is a function of the modelling language.

It states everything that the compiler knows about the function: its meaning, its torch text, its
derivative in the modelling language, and its properties as functions of the intervals of its arguments.
Smoothness is derived from these; it is never declared.
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

    shapes    the axes of each argument, without batch axes
    numbers   the value of each argument that is a known number, None for other arguments
    python    True for each argument whose torch text is a Python number, not a tensor
    """

    shapes: tuple[Shape, ...]
    numbers: tuple[float | None, ...]
    python: tuple[bool, ...]


#: A property: one value for all intervals of the arguments, or a function of these intervals.
Rule = str | float | None | Interval | Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Properties:
    """Properties of an atom whose arguments (or their entries) lie in given intervals.

    A property is a value, or a function of one interval per argument. If several arguments may vary,
    the functions ``curvature``, ``gradient_lipschitz`` and ``weak_convexity`` take the tuple ``varying``
    first, which is True for each argument that depends on the variables. ``monotone`` and
    ``lipschitz`` may be a tuple with one property per argument.

    curvature           constant, affine, convex, concave or none, jointly in the varying arguments
    monotone            increasing (non-decreasing), decreasing, constant or none
    lipschitz           Lipschitz constant of the value in the Euclidean norm, inf if unknown; the
                        function of an array atom takes the size of the argument last
    gradient_lipschitz  Lipschitz constant of the gradient; inf if the gradient is continuous without
                        a bound; None if the atom is not differentiable everywhere in the intervals
    weak_convexity      a rho for which f + rho/2 |u|^2 is convex; inf if there is none
    range               the interval of the value
    """

    curvature: Rule = "none"
    monotone: Rule | tuple[Rule, ...] = "none"
    lipschitz: Rule | tuple[Rule, ...] = inf
    gradient_lipschitz: Rule = inf
    weak_convexity: Rule = inf
    range: Rule = REALS


def at(rule: Rule, *args: Any, beyond: Any = inf) -> Any:
    """The value of a rule at some intervals, or ``beyond`` if its arithmetic fails."""
    try:
        if callable(rule):
            return rule(*args)
        return rule
    except ArithmeticError:
        return beyond


@dataclass(frozen=True, kw_only=True, eq=False)
class Atom(Domain):
    """A function of the language; ``Domain`` describes the values that its arguments can have.

    name         the name in models
    aliases      further names in models
    meaning      the meaning with its formula, in one line
    arguments    names of the arguments, for ``derivative``; ``u...`` stands for any number of
                 arguments u1, u2, ...
    parameters   names of the arguments that must not depend on the variables; they come last
    torch        the torch expression, or a function that makes it for a ``Site``; ``{0}``, ``{1}``,
                 ... are the texts of the arguments, and ``{axes0}``, ... the axes of array arguments.
                 A text of an argument is a name, a number or in parentheses, and so is the result.
    derivative   for each argument that may vary, an expression of the modelling language, or a
                 function that makes them for a ``Site``. For entrywise atoms it is the factor of the
                 chain rule, for array atoms the adjoint in terms of ``dy``. It may use the names of
                 the arguments, ``y`` for the value, ``pi`` and atoms. At a kink it is a subgradient.
    symbol       the symbol in models, between two arguments or before one argument
    boolean      whether the value is a truth value
    squared      name of the atom that is the square of this one
    homogeneous  p for which f(c u) = c^p f(u) for all c >= 0, where u are all arguments that may vary;
                 None if there is none
    even         whether f(-u) = f(u), where u are all arguments that may vary
    complement   1 - f in the modelling language, if this is f of another argument
    logarithm    log f in the modelling language, if this cannot overflow or shows the curvature
    instead      advice what to write if a property is missing, by the property: ``smooth``,
                 ``convex``, ``concave``, ``unsmooth``; the last two are about arguments that are not
                 affine
    cone         (cones, arguments) -> the value as a conic program, if neither the ``graph`` nor the
                 ``ball`` defines it
    tex          the mathematical notation (``library.tex.written``), by default ``name(arguments)``
    internal     whether the atom occurs only in derivatives, not in models; an internal atom that is
                 never differentiated has the ``derivative`` ()
    cite         source of the definition
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
        """The least number of arguments."""
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
        """The value for NumPy float64 arguments, by definition."""
        raise NotImplementedError

    def site(
        self, texts: tuple[str, ...], shapes: tuple[Shape, ...] = (), numbers: tuple[float | None, ...] = ()
    ) -> Site:
        """The use of the atom with given texts of its arguments.

        Without ``shapes`` all arguments are scalars. Without ``numbers``, a text that is a number gives
        the value of its argument.
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
        """The derivative in each argument that may vary (see the field ``derivative``)."""
        if callable(self.derivative):
            return self.derivative(site)
        return self.derivative

    # ----------------------------------------------------------------------------------- properties
    def _varying(self, count: int, varying: tuple[bool, ...] | None) -> tuple[tuple[bool, ...], ...]:
        """The first argument ``varying`` of a rule as a tuple, which is empty if one argument may vary."""
        free = tuple(name not in self.parameters for name in self.names(count))
        if sum(free) == 1 and not self.variadic:
            return ()
        if varying is None:
            return (free,)
        return (tuple(varying),)

    def curvature(self, *intervals: Interval, varying: tuple[bool, ...] | None = None) -> str:
        """The curvature: constant, affine, convex, concave or none.

        It holds jointly in the varying arguments, by default in all that may vary.
        """
        rule = self.properties.curvature
        return at(rule, *self._varying(len(intervals), varying), *intervals, beyond="none")

    def monotone(self, *intervals: Interval, argument: int = 0) -> str:
        """The monotonicity in one argument: increasing, decreasing, constant or none."""
        rule = self.properties.monotone
        if isinstance(rule, tuple):
            rule = rule[argument]
        return at(rule, *intervals, beyond="none")

    def lipschitz(self, *intervals: Interval, argument: int = 0, size: float = inf) -> float:
        """The Lipschitz constant of the value in one argument, or inf.

        size  number of entries of the argument, inf if unknown
        """
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
        """The Lipschitz constant of the gradient on some intervals; inf if there is none.

        None if the atom is not differentiable everywhere in them.
        """
        if any(intervals[0].lo < kink.hi and kink.lo < intervals[0].hi for kink in self.kinks(*intervals)):
            return None
        return at(self.properties.gradient_lipschitz, *self._varying(len(intervals), varying), *intervals)

    def kinks(self, *intervals: Interval) -> tuple[Interval, ...]:
        """Intervals of the first argument that contain the kinks; they are points for known parameters."""
        return ()

    def weak_convexity(self, *intervals: Interval, varying: tuple[bool, ...] | None = None) -> float:
        """The least known rho >= 0 that makes f + rho/2 |u|^2 convex on some intervals, or inf."""
        if self.curvature(*intervals, varying=varying) in ("constant", "affine", "convex"):
            return 0.0
        rule = self.properties.weak_convexity
        declared = at(rule, *self._varying(len(intervals), varying), *intervals)
        smooth = self.gradient_lipschitz(*intervals, varying=varying)
        if smooth is None:
            return declared
        return min(smooth, declared)

    def range(self, *intervals: Interval) -> Interval:
        """The interval that contains the value, or each of its entries."""
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
        names = self.names(len(varying))
        if any(vary and name in self.parameters for vary, name in zip(varying, names, strict=True)):
            return False
        if not any(varying):
            return True
        everywhere = (REALS,) * len(varying)
        return self.curvature(*everywhere, varying=tuple(varying)) in ("constant", "affine")

    @cached_property
    def bilinear(self) -> bool:
        """Whether the atom is affine in each of two arguments but not in both together."""
        if self.min_count != 2:
            return False
        in_each = self.linear([True, False]) and self.linear([False, True])
        return in_each and not self.linear([True, True])

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
