"""Facts about an expression: each with its rule, the facts that it uses, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from math import inf
from typing import Any

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.library.amounts import NONE, Amount, least, rank, rounded
from fccomodel.library.atoms import Interval


class Standing(IntEnum):
    """The degree to which a fact can be trusted. A fact is never more certain than the facts that it uses."""

    PROVED = 0
    BOUNDED = 1
    ESTIMATED = 2
    ASSUMED = 3

    def __str__(self) -> str:
        return ("proved", "bounded from data", "estimated", "assumed")[self]


@dataclass(frozen=True, eq=False, kw_only=True)
class Fact:
    """One property of one expression.

    kind      see ``Facts``
    value     an Interval, an Amount or a bool
    subject   the expression; ``span`` is its place
    rule      the name of the rule in ``rules.RULES``
    reason    one sentence: why it holds here, or what is missing if it does not
    uses      the facts that it follows from, or that block it
    standing  proved, bounded from data, estimated or assumed
    lacks     why nothing stronger holds: why not convex, why no number
    fix       what to write instead, if a rewrite would pass
    """

    kind: str
    value: Any
    subject: ir.Expr
    rule: str
    reason: str = ""
    uses: tuple[Fact, ...] = ()
    standing: Standing = Standing.PROVED
    lacks: str = ""
    fix: str = ""

    @property
    def span(self) -> Span:
        """The place of the expression in the source."""
        return self.subject.span

    @property
    def holds(self) -> bool:
        """Whether the fact says something: a finite amount, True, or an interval smaller than the line."""
        if isinstance(self.value, Amount):
            return self.value.finite
        if isinstance(self.value, Interval):
            return self.value != Interval()
        return bool(self.value)

    def better(self, rival: Fact) -> Fact:
        """The stronger of two facts of one kind about one expression.

        At a tie it is the one with the better standing, then this one.
        """
        if isinstance(self.value, Interval):
            mine, theirs = self.value.inside(rival.value), rival.value.inside(self.value)
            if not mine and not theirs:  # each knows one end better
                worst, uses = max(self.standing, rival.standing), (*self.uses, *rival.uses)
                return replace(self, value=self.value.meet(rival.value), standing=worst, uses=uses)
            if not mine or not theirs:
                if mine:
                    return self
                return rival
        else:
            first, second = _strength(self), _strength(rival)
            if first != second:
                if first < second:
                    return self
                return rival
        if rival.standing < self.standing:
            return rival
        return self

    def __str__(self) -> str:
        return describe(self.kind, self.value)


def _strength(fact: Fact) -> tuple:
    """A key that is smaller for a stronger fact."""
    if isinstance(fact.value, Amount):
        return rank(fact.value)
    return (not fact.value,)


def make(
    kind: str,
    value: Any,
    subject: ir.Expr,
    rule: str,
    reason: str = "",
    uses: Iterable[Fact] = (),
    *,
    standing: Standing = Standing.PROVED,
) -> Fact:
    """A fact whose standing is the weakest of ``standing`` and those of its ``uses``.

    If a curvature that it uses forgives rounding, so does this one. Its rule may say how much;
    otherwise the amount is unknown (inf).
    """
    uses = tuple(uses)
    worst = max([standing, *(fact.standing for fact in uses)])
    if kind in CURVATURES and not value.rounding:
        uses_rounding = any(fact.kind in CURVATURES and fact.value.rounding for fact in uses)
        if uses_rounding:
            value = rounded(value, inf)
    return Fact(
        kind=kind,
        value=value,
        subject=subject,
        rule=rule,
        reason=reason,
        uses=uses,
        standing=worst,
    )


def describe(kind: str, value: Any) -> str:
    """A fact's content in words."""
    match kind:
        case "below":
            return _curvature(value, "convex")
        case "above":
            return _curvature(value, "concave")
        case "differentiable":
            if value:
                return "continuously differentiable"
            return "not known to be differentiable"
        case "gradient":
            return f"gradient {_constant(value)}"
        case "lipschitz":
            return _constant(value)
        case "size":
            if not value.finite:
                return "not known to be bounded"
            if value.known:
                return f"of size at most {value}"
            return "bounded"
        case "value noise" | "gradient noise":
            return f"{kind.removesuffix(' noise')} of variance {value}"
    return f"in {value}"


def _curvature(value: Amount, word: str) -> str:
    """The curvature from one side in words; ``word`` is convex or concave."""
    if value.zero:
        return word
    if not value.finite:
        return f"not known to be weakly {word}"
    if value.known:
        return f"{value.value:.4g}-weakly {word}"
    return f"weakly {word}"


def _constant(value: Amount) -> str:
    """A Lipschitz constant in words."""
    if not value.finite:
        return "not known to be Lipschitz"
    if value.known:
        return f"Lipschitz, constant {value.value:.4g}"
    return "Lipschitz"


INCREASING = 1  # non-decreasing
DECREASING = -1  # non-increasing
NEITHER = 0  # neither is known
INSIDE_DOMAIN = "inside the domain"  # the rule of ranges that are assumed of arguments of a function
_DIRECTIONS = {INCREASING: "increasing", DECREASING: "decreasing", NEITHER: "none"}
CURVATURES = ("below", "above")
KINDS = ("interval", "size", "below", "above", "lipschitz", "gradient", "differentiable")


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """All facts of one expression as a function of its variables and holes, which lie in their sets.

    interval        range of the value (of each entry of an array)
    size            bound of the Euclidean norm
    below, above    the least known rho such that f + rho/2 |w|^2 (for ``above``: -f + rho/2 |w|^2)
                    is convex, entry by entry
    lipschitz       Lipschitz constant in all variables packed in one vector
    parts           Lipschitz constant per variable
    gradient        constant of the gradient (for an array: of the Jacobian, in the operator norm)
    differentiable  whether the gradient exists and is continuous
    leaves          per variable or hole: 1 non-decreasing, -1 non-increasing, 0 neither is known
    log             the facts of its logarithm, if they say more than composition does
    inner           for max(0, u) and the Euclidean norm of u: the facts of u
    powers          (p, c) if it is c + a sum of p-th powers of nonnegative convex functions, c an
                    Interval in [0, inf)
    pieces          0 constant, 1 piecewise linear, 2 piecewise linear-quadratic (jointly in all
                    variables), None for anything else
    degree          degree as a polynomial: 0, 1 or 2, or None
    random          whether it depends on a draw without bounds
    compact         whether every variable lies in a bounded closed set, and it is not random
    restricted      whether it depends on a variable or hole that is restricted to a set
    domain          conditions for it to be defined that are not proved
    """

    expr: ir.Expr
    interval: Fact
    size: Fact
    below: Fact
    above: Fact
    lipschitz: Fact
    gradient: Fact
    differentiable: Fact
    leaves: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, Amount] = field(default_factory=dict)
    log: Facts | None = None
    inner: Facts | None = None
    powers: tuple[float, Interval] | None = None
    pieces: int | None = None
    degree: int | None = None
    random: bool = False
    compact: bool = False
    restricted: bool = False
    domain: tuple[Fact, ...] = ()

    # ------------------------------------------------------------------------------------ curvature
    @property
    def constant(self) -> bool:
        """Whether it depends on no variable."""
        return not self.leaves

    @property
    def convex(self) -> bool:
        """Whether it is known to be convex."""
        return self.below.value.zero

    @property
    def concave(self) -> bool:
        """Whether it is known to be concave."""
        return self.above.value.zero

    @property
    def affine(self) -> bool:
        """Whether it is known to be affine: convex and concave."""
        return self.convex and self.concave

    @property
    def weakly_convex(self) -> bool:
        """Whether some finite rho is known to make f + rho/2 |w|^2 convex."""
        return self.below.value.finite

    @property
    def weakly_concave(self) -> bool:
        """Whether some finite rho is known to make -f + rho/2 |w|^2 convex."""
        return self.above.value.finite

    @property
    def curvature(self) -> str:
        """constant, affine, convex, concave, weakly convex or unknown."""
        if self.constant:
            return "constant"
        if self.affine:
            return "affine"
        if self.convex or self.concave:
            if self.convex:
                return "convex"
            return "concave"
        if self.weakly_convex:
            return "weakly convex"
        return "unknown"

    @property
    def rho(self) -> float | None:
        """The weak convexity constant: 0 if convex, inf if its number is not known, None if none exists."""
        if self.weakly_convex:
            return self.below.value.number
        return None

    # ----------------------------------------------------------------------------------- smoothness
    @property
    def smooth(self) -> bool:
        """Whether it is known to be continuously differentiable."""
        return bool(self.differentiable.value)

    @property
    def gradient_lipschitz(self) -> float | None:
        """The Lipschitz constant of the gradient.

        It is inf if the gradient is continuous and no number is known, and None if the function is not
        known to be differentiable.
        """
        if self.smooth:
            return self.gradient.value.number
        return None

    @property
    def lipschitz_smooth(self) -> bool:
        """Whether it is differentiable with a Lipschitz gradient, even if the number is not known."""
        return self.smooth and self.gradient.value.finite

    @property
    def is_lipschitz(self) -> bool:
        """Whether it has a Lipschitz constant, even if the number is not known."""
        return self.lipschitz.value.finite

    @property
    def C(self) -> float:
        """The Lipschitz constant, or inf if no number is known."""
        return self.lipschitz.value.number

    @property
    def L(self) -> float | None:
        """The Lipschitz constant of the gradient (``gradient_lipschitz``)."""
        return self.gradient_lipschitz

    # ------------------------------------------------------------------------------------- the rest
    def monotone(self, leaf: str) -> str:
        """Monotonicity in each entry of one variable or hole.

        "increasing" (non-decreasing), "decreasing" (non-increasing), "constant" or "none".
        """
        if leaf in self.leaves:
            return _DIRECTIONS[self.leaves[leaf]]
        return "constant"

    @property
    def non_decreasing(self) -> bool:
        """Whether it is non-decreasing in every variable and hole."""
        return all(sign == INCREASING for sign in self.leaves.values())

    @property
    def non_increasing(self) -> bool:
        """Whether it is non-increasing in every variable and hole."""
        return all(sign == DECREASING for sign in self.leaves.values())

    def facts(self) -> tuple[Fact, ...]:
        """One fact per kind."""
        return tuple(getattr(self, kind) for kind in KINDS)

    def standing(self, *kinds: str) -> Standing:
        """The weakest standing among the facts of the given kinds."""
        return max(getattr(self, kind).standing for kind in kinds)

    @property
    def curvature_fact(self) -> Fact:
        """The fact behind ``curvature``."""
        if self.concave and not self.convex:
            return self.above
        return self.below

    def with_facts(self, changes: Mapping[str, Fact]) -> Facts:
        """The properties with some facts replaced, by kind."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def negated(self) -> Facts:
        """Facts of -f, about the same expression."""
        low, high, low_open, high_open = self.interval.value
        return replace(
            self,
            interval=replace(self.interval, value=Interval(-high, -low, high_open, low_open)),
            below=replace(self.above, kind="below"),
            above=replace(self.below, kind="above"),
            leaves={name: -sign for name, sign in self.leaves.items()},
            log=None,
            inner=None,
            powers=None,
        )


def combine(first: Facts, second: Facts) -> Facts:
    """The stronger fact of each kind from two ways to analyse one expression.

    ``log``, ``inner`` and ``powers`` come from the second way if it has them.
    """
    changes: dict[str, Any] = {}
    for kind in KINDS:
        changes[kind] = getattr(first, kind).better(getattr(second, kind))
    changes["leaves"] = {
        name: sign or second.leaves.get(name, 0)
        for name, sign in first.leaves.items()
        if name in second.leaves
    }
    changes["parts"] = {
        name: least(first.parts.get(name, NONE), second.parts.get(name, NONE)) for name in changes["leaves"]
    }
    changes["log"] = second.log or first.log
    changes["inner"] = second.inner or first.inner
    changes["powers"] = second.powers or first.powers
    return replace(first, **changes)
