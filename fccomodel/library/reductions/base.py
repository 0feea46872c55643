"""The record that describes one kind of reduction: a way to make one value of many."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from fccomodel.core import ir
from fccomodel.library.amounts import NONE, ONE, ZERO, Amount
from fccomodel.library.atoms import Domain, Interval

if TYPE_CHECKING:
    import torch

#: Options by name: numbers, or of tails an array with a number for each entry of the result.
Options = Mapping[str, Any]
#: The option that every reduction has: what becomes of an outer element without rows.
EMPTY = "empty"
#: What a reduction keeps from its value for its derivative.
Kept = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Option(Domain):
    """A named option: ``cvar(tail = 0.1)``. ``Domain`` says where it lies; one that ``counts`` is a
    number of elements.

    example   a value that shows how it is written
    default   its value where a rewrite leaves it out; models always give it
    """

    name: str
    example: str
    default: float | None = None


# ------------------------------------------------------------------------------------------- values
@dataclass(frozen=True)
class BlockOfElements:
    """A block of the elements: ``at`` spreads a result over them, ``part`` takes theirs from an
    array of all."""

    at: Callable[[torch.Tensor], torch.Tensor]
    part: Callable[[torch.Tensor], torch.Tensor]


class Elements(Protocol):
    """The elements e of each entry of a result, held at once or visited in passes over blocks.

    count  their number, with a dimension of length 1 for each dimension of an element
    kept   what the value stores for the derivative
    """

    count: torch.Tensor
    kept: Kept

    def total(self, f: Callable[[torch.Tensor, BlockOfElements], torch.Tensor] | None = None) -> torch.Tensor:
        """The sums of f(e), or of the elements themselves without f."""
        ...

    def top(self, sign: float = 1.0) -> torch.Tensor:
        """The largest sign * e, without a derivative; -inf if there is none."""
        ...

    def listed(self) -> tuple[torch.Tensor, torch.Tensor]:
        """All elements in one array, without a derivative, and for each the entry of the result to
        which it belongs."""
        ...

    def gathered(self, values: torch.Tensor, entry: torch.Tensor) -> torch.Tensor:
        """The sums by entry of an array that is listed like the elements."""
        ...

    def share(self, here: BlockOfElements) -> torch.Tensor:
        """1 over the number of elements, for each element of the block."""
        ...


@dataclass(frozen=True)
class Slope:
    """The derivative of a result in its elements: weight(e, here) / over. None stands for 1 in
    either."""

    weight: Callable[[torch.Tensor, BlockOfElements], torch.Tensor] | None = None
    over: torch.Tensor | None = None


# -------------------------------------------------------------------------------------------- facts
@dataclass(frozen=True, kw_only=True)
class Site:
    """One use of a reduction, for the facts that hold there.

    where     an interval that holds every element
    size      a bound of an element's Euclidean norm
    count     at most so many elements (inf: unknown)  every   exactly so many
    options   where each option lies
    random    the elements are draws without bounds
    compact   the elements stay in a compact set
    """

    where: Interval = Interval()
    size: Amount = NONE
    count: float = inf
    every: bool = False
    options: Mapping[str, Interval] = field(default_factory=dict)
    random: bool = False
    compact: bool = False

    @property
    def spread(self) -> Amount:
        """An upper bound of the distance between two elements."""
        from fccomodel.library.amounts import amount, times

        width = self.where.hi - self.where.lo
        if width < inf:
            return amount(width)
        return times(Amount(2.0), self.size)


def everywhere(site: Site) -> Interval:
    """The range of a value that may be any number."""
    return Interval()


def among(site: Site) -> Interval:
    """The range between the smallest and the largest element."""
    return site.where


def always(value: Any) -> Callable[[Site], Any]:
    """A rule that returns the same value at every site."""
    return lambda site: value


def sound(site: Site) -> tuple[str, str]:
    """The empty message: nothing is missing."""
    return "", ""


@dataclass(frozen=True, kw_only=True)
class ByMeans:
    """The value of a reduction as a function of one or more expectations.

    number  how many
    of      (the reduction, mean) -> the expression, mean(body) being the expectation of a body over
            the same elements
    words   the equation, and what becomes of it
    """

    number: int
    of: Callable[[ir.Reduce, Callable[[ir.Expr], ir.Expr]], ir.Expr]
    words: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduction:
    """A kind of reduction R of elements e_1 .. e_n, which all have equal weight.

    name          as models write it
    meaning       its value, in one line
    written       whether models can write it; others are made by rewrites alone
    binders       ``in`` iterates over all elements, ``~`` draws them
    option        its named option
    twin          the kind that does the same for the other binder
    arrays        whether elements may be arrays
    condition     whether its body is a condition, with elements 0 and 1
    scalar        why elements may not be arrays

    value         (elements, options) -> R(e); by operations that torch can differentiate, unless ``kinked``
    slope         (elements, R(e), options) -> dR/de
    kinked        whether it is piecewise linear, with kinks where elements change places
    program       value(x, dim, *options, mask=None) in plain torch, whose source emitted programs carry;
                  None for a mean, a sum, and what is ``lowered`` to them or taken ``by_means``
    program_slope slope(x, value, dim, *options, mask=None), likewise
    lowered       (graph, mean, at, body) -> the value by means over the same elements: ``mean(body)`` is
                  one, and ``at(mean)`` gives it to each element

    linear        whether it is a sum of the elements or their mean
    total         whether it grows with their number; then it has a value if there is none
    logarithmic   log R(e^x) of a linear kind R
    degree        degree of the polynomial in the elements that it is, or None
    curvature     jointly in the elements: affine, convex, concave or none
    increasing    whether it is non-decreasing in every element
    homogeneous   whether R(c e) = c R(e) for c >= 0, so that |R(e)| <= lipschitz * max |e|
    comonotone    whether R(d + e) = R(d) + R(e) if d and e stand in one order, and it is homogeneous
    domain        set of the elements
    range         interval of R(e) at a site
    lipschitz     the largest sum of |dR/de| there, wherever R is convex
    bend          a bound of d^2R in direction v by max |v|^2; None if there are kinks
    settles       whether an average over draws no longer depends on a draw
    sampled       whether a few elements drawn at random have nearly its value
    worst         whether it measures the worst of a family
    opposite      the kind S with R(e) = -S(-e)
    cap           (n, options) -> c for R(e) = max of q.e (concave: min) over {0 <= q <= c, sum q = 1}; n is
                  a float64 tensor
    cone          (cones, e, cells, n, options) -> the value by cell as a conic program (see
                  ``library.cones``): ``cells`` is the entry of each element, n their numbers; None if
                  linearity or ``cap`` says it
    program_cap   c(x, level, dims) in plain torch, for entries along dims that are not -inf; None if c is 1
    through_log   the kind S with log R(e) = S(log e) for positive elements
    by_means      the same as a function of expectations, which algorithms take in its place
    stable        (the reduction, log) -> an expression of its value that forms no large exponential, or
                  None; log(e) is the logarithm of an expression, or None

    rule          name of its rule of facts
    law           the rule
    needs         (site) -> what prevents a known curvature there, and a fix; '' for nothing
    words         reasons of its facts, by kind of fact
    tex           how mathematics writes it: ``library.tex.written`` of ``<over>``, ``<body>`` and the
                  option by name
    tex_of_one    the same where the option is 1, if that is shorter
    cite          source of the formula
    """

    name: str
    meaning: str
    written: bool = True
    binders: tuple[str, ...] = ("in",)
    option: Option | None = None
    twin: str = ""
    arrays: bool = False
    condition: bool = False
    scalar: str = ""
    value: Callable[[Elements, Options], torch.Tensor]
    slope: Callable[[Elements, torch.Tensor, Options], Slope]
    kinked: bool = False
    program: Callable[..., Any] | None = None
    program_slope: Callable[..., Any] | None = None
    lowered: Callable[..., Any] | None = None
    linear: bool = False
    total: bool = False
    logarithmic: bool = False
    degree: int | None = None
    curvature: Callable[[Site], str] = always("none")
    increasing: bool = False
    homogeneous: bool = False
    comonotone: bool = False
    domain: Interval = Interval()
    range: Callable[[Site], Interval] = everywhere
    lipschitz: Callable[[Site], Amount] = always(NONE)
    bend: Callable[[Site], Amount | None] = always(None)
    settles: bool = False
    sampled: bool = False
    worst: bool = False
    opposite: str = ""
    cap: Callable[[torch.Tensor, Options], torch.Tensor] | None = None
    cone: Callable[..., Any] | None = None
    program_cap: Callable[..., Any] | None = None
    through_log: Reduction | None = None
    by_means: ByMeans | None = None
    stable: Callable[[ir.Reduce, Callable[[ir.Expr], ir.Expr | None]], ir.Expr | None] = lambda node, log: (
        None
    )
    rule: str = "no rule"
    law: str = ""
    needs: Callable[[Site], tuple[str, str]] = sound
    words: Mapping[str, str] = field(default_factory=dict)
    tex: str = ""
    tex_of_one: str = ""
    cite: str = ""

    # --------------------------------------------------------------------------------------- syntax
    @property
    def head(self) -> str:
        """The beginning of its text: ``cvar(tail = 0.1)``."""
        if self.option:
            return f"{self.name}({self.option.name} = {self.option.example})"
        return self.name

    @property
    def index(self) -> str:
        """An example of its index."""
        if "in" not in self.binders:
            return "z ~ D"
        if self.option:
            return "k in K"
        return "i in I"

    @property
    def form(self) -> str:
        """An example of its use."""
        return f"{self.head}[{self.index}] {'(z.x > 0)' if self.condition else '...'}"

    @property
    def drawn(self) -> bool:
        """Whether single elements can be drawn: it is an average over a distribution."""
        return self.binders == ("~",)

    # ----------------------------------------------------------------------------------- properties
    @cached_property
    def elements(self) -> Domain:
        """The conditions on the elements."""
        return Domain(domain=() if self.domain == Interval() or self.condition else (self.domain,))

    @property
    def additive(self) -> bool:
        """Whether the kind is linear and takes numbers."""
        return self.linear and not self.condition

    @property
    def average(self) -> bool:
        """Whether the kind is the mean of numbers."""
        return self.additive and not self.total

    @property
    def sign(self) -> float:
        """1 for a maximum of linear functions of the elements, -1 for a minimum of such."""
        if self.curvature(Site()) == "concave":
            return -1.0
        return 1.0

    @property
    def extreme(self) -> bool:
        """Whether the value is one element, the largest or the smallest."""
        return self.cap is not None and self.option is None

    @property
    def tail(self) -> bool:
        """Whether the value is the mean of the largest elements, as many as its option says."""
        return self.cap is not None and self.option is not None

    @property
    def coupling(self) -> bool:
        """Whether the value is the maximum of weighted sums of the elements over a polytope of
        weights."""
        return self.cap is not None and self.sign > 0

    @property
    def formula(self) -> str:
        """The meaning, under the name that formulas of other concepts have."""
        return self.meaning

    def interval(self, where: Interval) -> Interval:
        """The range of the value if only the range of the elements is known."""
        return self.range(Site(where=where))

    def over(self, node: ir.Reduce, body: ir.Expr | None = None, **options: ir.Expr) -> ir.Reduce:
        """A reduction of this kind over the same elements, possibly of another body.

        The treatment of empty groups stays the same.
        """
        options = {name: option for name, option in node.options.items() if name == EMPTY} | options
        return dataclasses.replace(
            node, kind=self.name, body=node.body if body is None else body, options=options
        )


__all__ = [
    "NONE",
    "ONE",
    "ZERO",
    "ByMeans",
    "Elements",
    "BlockOfElements",
    "Kept",
    "Option",
    "Options",
    "Reduction",
    "Site",
    "Slope",
    "always",
    "among",
    "everywhere",
    "sound",
]
