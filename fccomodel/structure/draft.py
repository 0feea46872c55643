"""Drafts of facts: rules propose candidates, the strongest of each kind is kept, consequences are added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isnan, sqrt
from typing import Any

from fccomodel.core import ir
from fccomodel.library.amounts import NONE, SOME, ZERO, Amount, amount, length
from fccomodel.library.atoms import Interval
from fccomodel.structure.declarations import REALS, opened
from fccomodel.structure.facts import Fact, Facts, Standing, make

DEFAULTS: dict[str, Any] = {
    "interval": REALS,
    "size": NONE,
    "below": NONE,
    "above": NONE,
    "lipschitz": NONE,
    "gradient": NONE,
    "differentiable": False,
}


@dataclass(eq=False, kw_only=True)
class FactsDraft:
    """The facts of ``expr`` while rules propose them.

    args      facts of the expressions that it is made of
    entries   its number of entries
    leaves    by variable, the sign of monotonicity
    parts     by variable, the Lipschitz constant

    The other fields are as in ``Facts``; None means that they follow from ``args``.
    """

    expr: ir.Expr
    args: tuple[Facts, ...] = ()
    entries: float = 1.0
    leaves: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, Amount] = field(default_factory=dict)
    log: Facts | None = None
    inner: Facts | None = None
    powers: tuple[float, Interval] | None = None
    domain: tuple[Fact, ...] = ()
    random: bool | None = None
    compact: bool | None = None
    restricted: bool | None = None
    facts: dict[str, Fact] = field(default_factory=dict)

    def propose(
        self,
        kind: str,
        value: Any,
        rule: str,
        reason: str = "",
        uses: Iterable[Fact] = (),
        *,
        standing: Standing = Standing.PROVED,
        lacks: str = "",
        fix: str = "",
    ) -> None:
        """Propose a fact. It replaces a weaker fact of the same kind."""
        fact = make(kind, value, self.expr, rule, reason, uses, standing=standing)
        if lacks or fix:
            fact = replace(fact, lacks=lacks, fix=fix)
        if kind in self.facts:
            self.facts[kind] = self.facts[kind].better(fact)
        else:
            self.facts[kind] = fact

    def both(
        self,
        value: Amount,
        rule: str,
        reason: str = "",
        uses: Iterable[Fact] = (),
        *,
        lacks: str = "",
        fix: str = "",
    ) -> None:
        """Propose the same curvature from below and from above."""
        uses = tuple(uses)
        self.propose("below", value, rule, reason, uses, lacks=lacks, fix=fix)
        self.propose("above", value, rule, reason, uses, lacks=lacks, fix=fix)

    def value(self, kind: str) -> Any:
        """The strongest value proposed so far."""
        if kind in self.facts:
            return self.facts[kind].value
        return DEFAULTS[kind]

    @property
    def where(self) -> Interval:
        """The range as proposed so far."""
        return self.value("interval")

    # --------------------------------------------------------------------------------------- finish
    def finish(self) -> Facts:
        """The facts, completed by what follows from the proposed ones."""
        random, compact, restricted = self.random, self.compact, self.restricted
        if random is None:
            random = any(a.random for a in self.args)
        if compact is None:
            compact = all(a.compact for a in self.args) and not random
        if restricted is None:
            restricted = any(a.restricted for a in self.args)
        self._complete_size(compact)
        if not self.leaves:
            self._constant()
        else:
            self._complete_curvature()
        for kind, default in DEFAULTS.items():
            if kind not in self.facts:
                self.propose(kind, default, "no rule")
        of_arguments = {id(f): f for a in self.args for f in a.domain}
        domain = of_arguments | {id(f): f for f in self.domain}
        return Facts(
            expr=self.expr,
            leaves=dict(self.leaves),
            parts={name: self.parts.get(name, NONE) for name in self.leaves},
            log=self.log,
            inner=self.inner,
            powers=self.powers,
            random=random,
            compact=compact,
            restricted=restricted,
            domain=tuple(domain.values()),
            interval=self.facts["interval"],
            size=self.facts["size"],
            below=self.facts["below"],
            above=self.facts["above"],
            lipschitz=self.facts["lipschitz"],
            gradient=self.facts["gradient"],
            differentiable=self.facts["differentiable"],
        )

    def _complete_size(self, compact: bool) -> None:
        """Bound the norm by the range, and the range by the norm."""
        ends = self.where
        if ends.mag < float("inf") and self.entries < float("inf"):
            if "interval" in self.facts:
                uses = [self.facts["interval"]]
            else:
                uses = []
            self.propose("size", amount(ends.mag * sqrt(self.entries)), "bounded value", uses=uses)
        elif ends.mag < float("inf"):
            self.propose("size", SOME, "bounded value", uses=[self.facts["interval"]])
        if compact and not self.value("size").finite and not self.domain:
            self.propose("size", SOME, "compact domain", uses=[a.size for a in self.args])
        size = self.value("size")
        if size.known and size.finite and size.value < ends.mag:
            tighter = Interval(max(-size.value, ends.lo), min(size.value, ends.hi))
            self.propose("interval", tighter, "bounded value", uses=[self.facts["size"]])

    def _constant(self) -> None:
        """Set the curvature and the constants of an expression without variables."""
        for kind in ("below", "above", "lipschitz", "gradient"):
            self.facts[kind] = make(kind, ZERO, self.expr, "constant", "it depends on no variable")
        self.facts["differentiable"] = make(
            "differentiable", True, self.expr, "constant", "it depends on no variable"
        )

    def _complete_curvature(self) -> None:
        """Add what follows: affine functions are smooth, smooth ones are weakly convex and concave.

        The Lipschitz constant is at most the norm of the constants per variable.
        """
        below, above = self.value("below"), self.value("above")
        if below.zero and above.zero:
            uses = [self.facts["below"], self.facts["above"]]
            self.propose("gradient", ZERO, "affine", "it is affine", uses)
            self.propose("differentiable", True, "affine", "it is affine", uses)
        total = length(self.parts.get(name, NONE) for name in self.leaves)
        if total.finite and "lipschitz" in self.facts:
            lipschitz = self.facts["lipschitz"]
            self.propose(
                "lipschitz",
                total,
                lipschitz.rule,
                lipschitz.reason,
                lipschitz.uses,
                standing=lipschitz.standing,
            )
        if not self.value("differentiable"):
            self.facts.pop("gradient", None)
        elif self.value("gradient").finite and not (below.zero and above.zero):
            for kind, side in (("below", "convex"), ("above", "concave")):
                if self._weaker(self.value(kind), self.value("gradient")):
                    self._bounded_by_gradient(kind, side)

    def _bounded_by_gradient(self, kind: str, side: str) -> None:
        """Propose the gradient's constant as curvature; the reason why nothing stronger holds is kept."""
        lacks = fix = ""
        if kind in self.facts:
            old = self.facts[kind]
            lacks, fix = old.lacks or old.reason, old.fix
        reason = f"its gradient is Lipschitz, so it is weakly {side}"
        gradient = self.facts["gradient"]
        self.propose(kind, self.value("gradient"), "smooth", reason, [gradient], lacks=lacks, fix=fix)

    @staticmethod
    def _weaker(a: Amount, b: Amount) -> bool:
        return (not a.finite, not a.known, a.value) > (not b.finite, not b.known, b.value)


def settled(interval: Interval) -> Interval:
    """The range of an atom made consistent: infinite ends are open, and nan becomes an infinite end."""
    lo, hi = interval.lo, interval.hi
    if isnan(lo):
        lo = float("-inf")
    if isnan(hi):
        hi = float("inf")
    return opened(Interval(lo, hi, interval.lo_open, interval.hi_open))
