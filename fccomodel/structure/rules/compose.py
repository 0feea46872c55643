"""The composition rules: the facts of an atom's value from the atom's properties and its arguments' facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, sqrt
from typing import Any

from fccomodel.core import ir
from fccomodel.library.amounts import NONE, SOME, Amount, amount, length, plus, times
from fccomodel.library.atoms import Atom
from fccomodel.structure.declarations import REALS, opened
from fccomodel.structure.draft import FactsDraft, settled
from fccomodel.structure.facts import NEITHER, Fact, Facts, make
from fccomodel.structure.rules.fixes import advice
from fccomodel.structure.rules.placed import Placed
from fccomodel.structure.rules.reasons import lacks, why
from fccomodel.structure.rules.selfbound import self_bounded


class Composition(Placed):
    """The facts of ``atom(args)`` by the composition rules."""

    def facts(self, free: Callable[[Facts], Facts] | None = None) -> Facts:
        """All facts that the composition rules give.

        ``free`` gives an argument's facts with its variables ranging over all reals.
        """
        draft = FactsDraft(expr=self.expr, args=self.args, domain=self._undefined(), entries=self.entries)
        self._range(draft)
        if not any(self.varying):
            self._constant_size(draft)
            return draft.finish()
        arguments = zip(self.atom.names(len(self.args)), self.varying, strict=True)
        wrong = [name for name, varies in arguments if varies and name in self.atom.parameters]
        if wrong:
            draft.leaves = {name: NEITHER for a in self.args for name in a.leaves}
            reason = f"{wrong[0]} of {self.atom.signature} must not depend on the variables"
            draft.both(NONE, "no rule", reason)
            return draft.finish()
        self._monotone(draft)
        self._curvature(draft, "below")
        self._curvature(draft, "above")
        self._smoothness(draft)
        self_bounded(self, draft, free)
        return draft.finish()

    def _undefined(self) -> tuple[Fact, ...]:
        """The unproved conditions of the atom's domain on varying arguments."""
        conditions = []
        poles = self.atom.poles(*self.intervals)
        for i, (arg, domain) in enumerate(zip(self.args, self.domains, strict=True)):
            lies = opened(arg.interval.value)
            needs = ""
            if i in self.atom.regular and not arg.constant and not self.is_regular(i):
                needed = self.atom.regular[i].needs
                text = f"{self.called} needs {needed}, and this one is not proved to be one"
                conditions.append(make("domain", False, arg.expr, "no rule", text, [arg.interval]))
            if domain is not None and not lies.inside(domain):
                needs = f"in {opened(domain)}"
            elif i in poles and lies.has(0.0):
                needs = "other than 0"
            if needs and not arg.constant:
                text = f"{self.called} needs an argument {needs}, and this one is only known to lie in {lies}"
                conditions.append(make("domain", False, arg.expr, "no rule", text, [arg.interval]))
        return tuple(conditions)

    def _range(self, draft: FactsDraft) -> None:
        """Propose the range of the value, which uses the arguments' ranges if it depends on them."""
        where = settled(self.atom.range(*self.intervals))
        if where == REALS:
            return
        largest_domains = [REALS if d is None else opened(d) for d in self.settled]
        everywhere = settled(self.atom.range(*largest_domains))
        uses = []
        if everywhere != where:
            uses = [a.interval for a in self.args if a.interval.holds]
        reason = f"the range of {self.called} over where its arguments lie"
        draft.propose("interval", where, "interval arithmetic", reason, uses)

    def _constant_size(self, draft: FactsDraft) -> None:
        """Propose that the value is bounded, if all arguments are constant and bounded."""
        if any(a.random for a in self.args) and not self.atom.moderate:
            return
        if all(a.size.value.finite for a in self.args):
            draft.propose("size", SOME, "finite data", uses=[a.size for a in self.args])

    def _monotone(self, draft: FactsDraft) -> None:
        """Set monotonicity and Lipschitz constants per variable, and propose the whole constant."""
        leaves: dict[str, int] = {}
        parts: dict[str, list[Amount]] = {}
        for i, arg in self.active:
            if self.slopes[i].zero:
                continue
            for name, sign in arg.leaves.items():
                new = sign * self.signs[i]
                leaves[name] = new if leaves.get(name, new) == new else NEITHER
                parts.setdefault(name, []).append(times(self.slopes[i], arg.parts[name]))
        draft.leaves = leaves
        draft.parts = {name: self.total(*amounts) for name, amounts in parts.items()}
        constants = [times(self.slopes[i], a.lipschitz.value) for i, a in self.active]
        whole = self.total(*constants)
        slopes = " and ".join(dict.fromkeys(str(self.slopes[i]) for i, _ in self.active))
        reason = f"{self.called} has slope {slopes} where its argument lies"
        uses = [a.lipschitz for _, a in self.active]
        draft.propose("lipschitz", whole, "chain of constants", reason, uses)

    def _curvature(self, draft: FactsDraft, kind: str) -> None:
        """Propose the curvature from one side: from the arguments' curvature and the atom's own curvature."""
        bend = self.weak if kind == "below" else self.weak_above
        terms, uses = [], list(self.ranges)
        for i, _ in self.active:
            value, facts = self.side(i, kind)
            terms.append(value)
            uses.extend(facts)
        steep = length(a.lipschitz.value for _, a in self.active)
        bent = times(bend, steep, steep)
        if not bend.zero:
            uses.extend(a.lipschitz for _, a in self.active)
        total = plus(self.total(*terms), bent)
        rule, reason = why(self, kind, bend, total)
        missing = fix = ""
        if not total.zero:
            missing = lacks(self, kind)
            fix = advice(self.atom, self.args, kind)
        draft.propose(kind, total, rule, reason, uses, lacks=missing, fix=fix)

    def _smoothness(self, draft: FactsDraft) -> None:
        """Propose differentiability and the constant of the gradient, C_f L_g + L_f C_g^2."""
        rough = [a.differentiable for _, a in self.active if not a.smooth]
        if self.bend is None:
            reason = f"{self.called} has a kink where its argument lies"
            fix = advice(self.atom, self.args, "smooth")
            draft.propose("differentiable", False, "kink", reason, self.ranges, fix=fix)
            return
        if rough:
            reason = f"{self.called} is differentiable, its argument is not"
            draft.propose("differentiable", False, "kink", reason, rough)
            return
        reason = f"{self.called} has no kink where its argument lies"
        uses = [*(a.differentiable for _, a in self.active), *self.ranges]
        draft.propose("differentiable", True, "smooth of smooth", reason, uses)
        steep = length(a.lipschitz.value for _, a in self.active)
        bent = times(self.bend, steep, steep)
        curvatures = [times(self.slopes[i], a.gradient.value) for i, a in self.active]
        total = plus(bent, self.total(*curvatures))
        curved = [(i, a) for i, a in self.active if not a.gradient.value.zero]
        uses = [a.gradient for _, a in curved]
        constants = [f"C_f = {self.slopes[i]}" for i, _ in curved]
        if not self.bend.zero:
            uses += [a.lipschitz for _, a in self.active]
            constants.append(f"L_f = {self.bend}")
        draft.propose("gradient", total, "smooth of smooth", ", ".join(dict.fromkeys(constants)), uses)


def spread(facts: Facts, entries: float) -> Facts:
    """The facts of a scalar that is repeated along an array of ``entries`` entries."""
    if entries < inf:
        factor = amount(sqrt(entries))
    else:
        factor = SOME

    def wider(fact: Fact) -> Fact:
        """The fact with its amount times the root of the number of entries."""
        return replace(fact, value=times(factor, fact.value))

    return replace(
        facts,
        size=wider(facts.size),
        lipschitz=wider(facts.lipschitz),
        gradient=wider(facts.gradient),
        parts={name: times(factor, value) for name, value in facts.parts.items()},
    )


def compose(
    expr: ir.Expr,
    atom: Atom,
    args: tuple[Facts, ...],
    sizes: tuple[float, ...] = (),
    entries: float = 1.0,
    free: Any = None,
) -> Facts:
    """The facts of ``atom(args)``.

    sizes    numbers of entries of the arguments
    entries  number of entries of the value
    free     gives an argument's facts with its variables ranging over all reals
    """
    sizes = sizes or (1.0,) * len(args)
    composition = Composition(expr=expr, atom=atom, args=args, sizes=sizes, entries=entries)
    return composition.facts(free)
