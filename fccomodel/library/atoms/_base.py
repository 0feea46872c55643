"""What an atom is, and the registry of all atoms.

An atom is everything the compiler knows about one function: its meaning, its torch text, its derivative in the modelling
language itself, and its properties as functions of where its arguments lie. Smoothness is derived from these, never declared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from fccomodel.core.ir import Dim, Shape
from fccomodel.library.atoms._interval import REALS, Interval

__all__ = ["REALS", "ArrayAtom", "Atom", "Dim", "Interval", "Properties", "ScalarAtom", "Shape", "ShapeError", "Site", "show"]


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

    Each is a value, or a function of one interval per argument. ``curvature``, ``gradient_lipschitz`` and ``weak_convexity`` of
    an atom with several arguments that may vary take first the tuple ``varying`` (True where an argument depends on the
    variables). ``monotone`` and ``lipschitz`` may be a tuple, one per argument.

    curvature           constant, affine, convex, concave or none, jointly in the varying arguments
    monotone            increasing, decreasing, constant or none (increasing: non-decreasing)
    lipschitz           constant of the value in the Euclidean norm; an array atom's function takes the argument's size last
                        (inf: unknown)
    gradient_lipschitz  constant of the gradient; inf: continuous without a bound; None: not differentiable at some point there
    weak_convexity      rho such that f + rho/2 |u|^2 is convex; inf where there is none
    range               where the value lies
    """

    curvature: Rule = "none"
    monotone: Rule | tuple[Rule, ...] = "none"
    lipschitz: Rule | tuple[Rule, ...] = inf
    gradient_lipschitz: Rule = inf
    weak_convexity: Rule = inf
    range: Rule = REALS


def _at(rule: Rule, *args: Any) -> Any:
    return rule(*args) if callable(rule) else rule


@dataclass(frozen=True, kw_only=True, eq=False)
class Atom:
    """A function of the language.

    name         as models write it; ``aliases`` are further names for the same atom
    meaning      what it is, with its formula, in one line
    arguments    names of the arguments, used by ``derivative``; ``u...`` stands for any number of them: u1, u2, ...
    parameters   those that must not depend on the decision variables; they come last
    torch        the torch expression with ``{0}``, ``{1}``, ... for the arguments' texts (a name, a number or parenthesised,
                 used several times perhaps) and ``{axes0}``, ... for the own axes of an array argument; or a function of
                 a ``Site``. The result may stand where a name may stand.
    derivative   per argument that may vary, the factor that the chain rule multiplies by (entrywise atoms), or the adjoint in
                 terms of ``dy`` (array atoms), in the modelling language: argument names, ``y`` (the value), ``pi`` and atoms. At
                 a kink it is one subgradient. Or a function of a ``Site``.
    domain       per argument an Interval, None for all reals; or a function of the intervals
    nonzero      positions of arguments that must not be 0
    boolean      its value is a truth value
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
    domain: tuple[Interval | None, ...] | Callable[..., tuple[Interval | None, ...]] = ()
    nonzero: tuple[int, ...] = ()
    boolean: bool = False
    internal: bool = False
    cite: str = ""

    # ------------------------------------------------------------------------------------------------------ arguments
    @property
    def variadic(self) -> bool:
        """It takes any number of arguments (at least ``min_count``)."""
        return self.arguments[-1].endswith("...")

    @property
    def min_count(self) -> int:
        return 2 if self.variadic else len(self.arguments)

    def accepts(self, count: int) -> bool:
        """It can be called with ``count`` arguments."""
        return count >= self.min_count if self.variadic else count == len(self.arguments)

    def names(self, count: int) -> tuple[str, ...]:
        """The names that ``derivative`` uses for ``count`` arguments."""
        if not self.variadic:
            return self.arguments
        stem = self.arguments[-1].removesuffix("...")
        return tuple(f"{stem}{k}" for k in range(1, count + 1))

    @property
    def signature(self) -> str:
        """As error messages show it: ``huber(u, delta)``."""
        return f"{self.name}({', '.join(self.names(2)) + ', ...' if self.variadic else ', '.join(self.arguments)})"

    def shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """The shape of the value, or ShapeError."""
        raise NotImplementedError

    def value(self, *args: Any) -> Any:
        """The value by definition, of NumPy float64 arguments."""
        raise NotImplementedError

    def site(self, texts: tuple[str, ...], shapes: tuple[Shape, ...] = (), numbers: tuple[float | None, ...] = ()) -> Site:
        """A use with these texts; without ``shapes`` all are scalars, and a text that reads as a number is one."""
        known = numbers or tuple(_number(text) for text in texts)
        python = tuple(_number(text) is not None for text in texts)
        return Site(shapes=shapes or ((),) * len(texts), numbers=known, python=python)

    # ------------------------------------------------------------------------------------------------------ text
    def lower(self, texts: tuple[str, ...], site: Site | None = None) -> str:
        """The torch expression on arguments of the given texts. At least one argument must be a tensor."""
        site = site or self.site(texts)
        template = self.torch(site) if callable(self.torch) else self.torch
        axes = {f"axes{k}": _axes(shape) for k, shape in enumerate(site.shapes)}
        return template.format(*texts, **axes)

    def derivatives(self, site: Site) -> tuple[str, ...]:
        """One derivative per argument that may vary (see ``derivative``)."""
        return self.derivative(site) if callable(self.derivative) else self.derivative

    # ------------------------------------------------------------------------------------------------------ properties
    def _varying(self, count: int, varying: tuple[bool, ...] | None) -> tuple[tuple[bool, ...], ...]:
        names = self.names(count)
        free = [name not in self.parameters for name in names]
        if sum(free) == 1 and not self.variadic:
            return ()
        return (tuple(free) if varying is None else tuple(varying),)

    def domains(self, *intervals: Interval) -> tuple[Interval | None, ...]:
        """Per argument, where it must lie (None: anywhere)."""
        if callable(self.domain):
            return self.domain(*intervals)
        return self.domain or (None,) * len(intervals)

    def curvature(self, *intervals: Interval, varying: tuple[bool, ...] | None = None) -> str:
        """constant, affine, convex, concave or none, in the varying arguments jointly (all that may vary, unless told)."""
        return _at(self.properties.curvature, *self._varying(len(intervals), varying), *intervals)

    def monotone(self, *intervals: Interval, argument: int = 0) -> str:
        """increasing, decreasing, constant or none, in one argument."""
        rule = self.properties.monotone
        return _at(rule[argument] if isinstance(rule, tuple) else rule, *intervals)

    def lipschitz(self, *intervals: Interval, argument: int = 0, size: float = inf) -> float:
        """The value's Lipschitz constant in one argument, an array of ``size`` entries (inf: unknown); inf if there is none."""
        rule = self.properties.lipschitz
        rule = rule[argument] if isinstance(rule, tuple) else rule
        return float(_at(rule, *intervals, *([size] if isinstance(self, ArrayAtom) else [])))

    def gradient_lipschitz(self, *intervals: Interval, varying: tuple[bool, ...] | None = None) -> float | None:
        """The gradient's Lipschitz constant there; inf without a bound; None where some point has no gradient."""
        if any(intervals[0].lo < kink.hi and kink.lo < intervals[0].hi for kink in self.kinks(*intervals)):
            return None
        return _at(self.properties.gradient_lipschitz, *self._varying(len(intervals), varying), *intervals)

    def kinks(self, *intervals: Interval) -> tuple[Interval, ...]:
        """Where the first argument's points without a derivative lie (one interval each, a point where parameters are known)."""
        return ()

    def weak_convexity(self, *intervals: Interval, varying: tuple[bool, ...] | None = None) -> float:
        """The least known rho >= 0 that makes f + rho/2 |u|^2 convex there; inf if none is known."""
        if self.curvature(*intervals, varying=varying) in ("constant", "affine", "convex"):
            return 0.0
        smooth = self.gradient_lipschitz(*intervals, varying=varying)
        declared = _at(self.properties.weak_convexity, *self._varying(len(intervals), varying), *intervals)
        return min(inf if smooth is None else smooth, declared)

    def range(self, *intervals: Interval) -> Interval:
        """Where the value (each entry of it) lies."""
        return _at(self.properties.range, *intervals)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScalarAtom(Atom):
    """An atom applied entry by entry; arguments have one shape, or are scalars.

    formula     the definition, which sympy and NumPy both read: ``Piecewise((u, u > 0), (0, True))``; or a function of the
                number of arguments
    breaks      the first argument's points without a derivative: formulas in the parameters, monotone in each
    graph       for a piecewise linear-quadratic atom with upward kinks: its subdifferential as (points, first slope, last
                slope), a polyline through ``points`` (u, f'(u)) continued with these slopes (inf: vertical, the end of the
                domain); or a function of the parameters. Prox, Moreau envelope and conjugate follow from it.
    conjugate   f*(s) in the modelling language, in terms of ``s`` and the parameters, for s in ``slopes``; +inf elsewhere
    slopes      the domain of the conjugate, where no ``graph`` gives it
    """

    formula: str | Callable[[int], str]
    breaks: tuple[str, ...] = ()
    graph: tuple | Callable[..., tuple] | None = None
    conjugate: str = ""
    slopes: Interval = REALS

    def shape(self, shapes: tuple[Shape, ...]) -> Shape:
        arrays = [shape for shape in shapes if shape]
        for shape in arrays[1:]:
            if shape != arrays[0]:
                found = f"{show(arrays[0])} and {show(shape)}"
                raise ShapeError(f"{self.name} works entry by entry, so its arguments are scalars or have one shape, not {found}")
        return arrays[0] if arrays else ()

    def definition(self, count: int) -> str:
        """The formula for ``count`` arguments."""
        return self.formula(count) if callable(self.formula) else self.formula

    def value(self, *args: Any) -> Any:
        from fccomodel.library.atoms._formula import evaluate

        return evaluate(self.definition(len(args)), dict(zip(self.names(len(args)), args, strict=True)))

    def kinks(self, *intervals: Interval) -> tuple[Interval, ...]:
        from fccomodel.library.atoms._formula import evaluate

        at = [dict(zip(self.arguments, (u[end] for u in intervals), strict=False)) for end in (0, 1)]
        found = [[float(evaluate(text, env)) for env in at] for text in self.breaks]
        return tuple(Interval(min(ends), max(ends)) for ends in found)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayAtom(Atom):
    """An atom on whole arrays. ``reference`` is its definition in NumPy, ``rule`` the shape of its value (or ShapeError)."""

    reference: Callable[..., Any]
    rule: Callable[..., Shape]

    def shape(self, shapes: tuple[Shape, ...]) -> Shape:
        return self.rule(*shapes)

    def value(self, *args: Any) -> Any:
        return self.reference(*args)


def show(shape: Shape) -> str:
    """A shape as models write it: ``[d, 3]``, or ``a scalar``."""
    return f"[{', '.join(str(n) for n in shape)}]" if shape else "a scalar"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _axes(shape: Shape) -> str:
    """The own axes of an array as a torch ``dim``: ``-1``, ``(-2, -1)``."""
    return "-1" if len(shape) <= 1 else f"({', '.join(str(k) for k in range(-len(shape), 0))})"
