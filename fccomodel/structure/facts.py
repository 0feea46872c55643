"""What is known of an expression: facts with the rule that gave them, the facts they used, and how far
they can be trusted."""

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
    """How far a fact can be trusted; a fact is no better than those it uses."""

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
    reason    one sentence on why it holds here, or what is missing where it does not
    uses      the facts it follows from, or is blocked by
    standing  proved, bounded from data, estimated or assumed
    lacks     why nothing stronger holds: why not convex, why no number
    fix       what to write instead, where a rewrite would pass
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
        return self.subject.span

    @property
    def holds(self) -> bool:
        """It says something: a finite amount, True, an interval smaller than the line."""
        if isinstance(self.value, Amount):
            return self.value.finite
        if isinstance(self.value, Interval):
            return self.value != Interval()
        return bool(self.value)

    def better(self, rival: Fact) -> Fact:
        """The stronger of two facts of one kind about one expression; at a tie the better founded,
        then this one."""
        if isinstance(self.value, Interval):
            mine, theirs = self.value.inside(rival.value), rival.value.inside(self.value)
            if not mine and not theirs:  # each knows one end better
                worst, uses = max(self.standing, rival.standing), (*self.uses, *rival.uses)
                return replace(self, value=self.value.meet(rival.value), standing=worst, uses=uses)
            if not mine or not theirs:
                return self if mine else rival
        else:
            first, second = _strength(self), _strength(rival)
            if first != second:
                return self if first < second else rival
        return rival if rival.standing < self.standing else self

    def __str__(self) -> str:
        return describe(self.kind, self.value)


def _strength(fact: Fact) -> tuple:
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
    lacks: str = "",
    fix: str = "",
) -> Fact:
    """A fact with the standing that its uses leave it, or a weaker one that is given.

    A curvature that is found by that of parts which forgives rounding forgives rounding too: how
    much, its rule says, or nobody.
    """
    uses = tuple(uses)
    worst = max([standing, *(u.standing for u in uses)])
    if (
        kind in CURVATURES
        and not value.rounding
        and any(u.kind in CURVATURES and u.value.rounding for u in uses)
    ):
        value = rounded(value, inf)
    return Fact(
        kind=kind,
        value=value,
        subject=subject,
        rule=rule,
        reason=reason,
        uses=uses,
        standing=worst,
        lacks=lacks,
        fix=fix,
    )


def describe(kind: str, value: Any) -> str:
    """A fact's content in words."""
    if kind in ("below", "above"):
        if kind == "below":
            good, weak = ("convex", "weakly convex")
        else:
            good, weak = ("concave", "weakly concave")
        if value.zero:
            return good
        if not value.finite:
            return f"not known to be {weak}"
        if value.known:
            return f"{value.value:.4g}-{weak}"
        return weak
    if kind == "differentiable":
        return "continuously differentiable" if value else "not known to be differentiable"
    if kind == "gradient":
        return f"gradient {_constant(value)}"
    if kind == "lipschitz":
        return _constant(value)
    if kind == "size":
        if value.finite and not value.known:
            return "bounded"
        if value.finite:
            return f"of size at most {value}"
        return "not known to be bounded"
    if kind in ("value noise", "gradient noise"):
        return f"{kind.removesuffix(' noise')} of variance {value}"
    return f"in {value}"


def _constant(value: Amount) -> str:
    if not value.finite:
        return "not known to be Lipschitz"
    if value.known:
        return f"Lipschitz, constant {value.value:.4g}"
    return "Lipschitz"


INCREASING, DECREASING, NEITHER = 1, -1, 0
_DIRECTIONS = {INCREASING: "increasing", DECREASING: "decreasing", NEITHER: "none"}
CURVATURES = ("below", "above")
KINDS = ("interval", "size", "below", "above", "lipschitz", "gradient", "differentiable")


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """All that is known of one expression as a function of the variables (and holes) it depends on,
    where they lie in their sets.

    interval        where the value (each entry of an array) lies
    size            bound of its Euclidean norm
    below, above    the least known rho such that f + rho/2 |w|^2 (for ``above``: -f + rho/2 |w|^2)
                    is convex, entry by entry
    lipschitz       constant of the value, all variables packed in one vector; ``parts`` has it per variable
    gradient        constant of the gradient (for an array: of the Jacobian, in the operator norm)
    differentiable  its gradient exists and is continuous
    leaves          per variable or hole it depends on: 1 non-decreasing, -1 non-increasing, 0 neither known
    log             the facts of its logarithm, where these are better known than from its own
    inner           for max(0, u) and the Euclidean norm of u: the facts of u
    powers          (p, c) if it is c + a sum of p-th powers of nonnegative convex functions, c an
                    Interval in [0, inf)
    pieces          0 constant, 1 piecewise linear, 2 piecewise linear-quadratic (in all it depends
                    on), None for anything else
    degree          the same of a polynomial, on one piece
    random          it depends on a draw without bounds
    compact         every variable it depends on lies in a bounded closed set, and it is not random
    restricted      it depends on a variable or hole whose values are restricted to a set
    domain          what must hold for it to be defined, and is not proved
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
        """It depends on no variable."""
        return not self.leaves

    @property
    def convex(self) -> bool:
        return self.below.value.zero

    @property
    def concave(self) -> bool:
        return self.above.value.zero

    @property
    def affine(self) -> bool:
        return self.convex and self.concave

    @property
    def weakly_convex(self) -> bool:
        """Some finite rho makes f + rho/2 |w|^2 convex."""
        return self.below.value.finite

    @property
    def weakly_concave(self) -> bool:
        return self.above.value.finite

    @property
    def curvature(self) -> str:
        """constant, affine, convex, concave, weakly convex or unknown."""
        if self.constant:
            return "constant"
        if self.affine:
            return "affine"
        if self.convex or self.concave:
            return "convex" if self.convex else "concave"
        return "weakly convex" if self.weakly_convex else "unknown"

    @property
    def rho(self) -> float | None:
        """The weak convexity constant: 0 if convex, inf where one exists whose number is not known,
        None where none does."""
        return self.below.value.number if self.weakly_convex else None

    # ----------------------------------------------------------------------------------- smoothness
    @property
    def smooth(self) -> bool:
        """Continuously differentiable."""
        return bool(self.differentiable.value)

    @property
    def gradient_lipschitz(self) -> float | None:
        """A number where one is known, inf for a continuous gradient without one, None if not known to
        be differentiable."""
        return self.gradient.value.number if self.smooth else None

    @property
    def lipschitz_smooth(self) -> bool:
        """Differentiable with a Lipschitz gradient, its constant a number or a finite one that is not
        known."""
        return self.smooth and self.gradient.value.finite

    @property
    def is_lipschitz(self) -> bool:
        return self.lipschitz.value.finite

    @property
    def C(self) -> float:
        """The Lipschitz constant; inf where no number is known."""
        return self.lipschitz.value.number

    @property
    def L(self) -> float | None:
        """The same as ``gradient_lipschitz``."""
        return self.gradient_lipschitz

    # ------------------------------------------------------------------------------------- the rest
    def monotone(self, leaf: str) -> str:
        """increasing (non-decreasing), decreasing, constant or none, in one variable (each entry of
        it) or hole."""
        if leaf in self.leaves:
            return _DIRECTIONS[self.leaves[leaf]]
        return "constant"

    @property
    def non_decreasing(self) -> bool:
        """In every variable and hole."""
        return all(sign == INCREASING for sign in self.leaves.values())

    @property
    def non_increasing(self) -> bool:
        return all(sign == DECREASING for sign in self.leaves.values())

    def facts(self) -> tuple[Fact, ...]:
        """One fact per kind."""
        return tuple(getattr(self, kind) for kind in KINDS)

    def standing(self, *kinds: str) -> Standing:
        """The weakest standing among some kinds."""
        return max(getattr(self, kind).standing for kind in kinds)

    @property
    def curvature_fact(self) -> Fact:
        """The fact behind ``curvature``."""
        return self.above if self.concave and not self.convex else self.below

    def with_facts(self, changes: Mapping[str, Fact]) -> Facts:
        """The same with some facts replaced, by kind."""
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
    """The stronger fact of each kind from two ways to analyse one expression; what only helps others,
    from the second."""
    changes: dict[str, Any] = {kind: getattr(first, kind).better(getattr(second, kind)) for kind in KINDS}
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
