"""The composition rules: what an atom's curvature, monotonicity and constants make of what is known of
its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, sqrt
from typing import Any

from fccomodel.core import ir
from fccomodel.library.amounts import NONE, SOME, Amount, amount, length, plus, times
from fccomodel.library.atoms import Atom
from fccomodel.structure.declarations import REALS, opened
from fccomodel.structure.draft import Draft, settled
from fccomodel.structure.facts import NEITHER, Fact, Facts, make
from fccomodel.structure.rules.fixes import advice
from fccomodel.structure.rules.placed import Placed
from fccomodel.structure.rules.reasons import lacks, why
from fccomodel.structure.rules.selfbound import self_bounded


class Composition(Placed):
    """What the composition rules give of ``atom(args)``."""

    def facts(self, free: Callable[[Facts], Facts] | None = None) -> Facts:
        """Everything that the composition rules give."""
        draft = Draft(expr=self.expr, args=self.args, domain=self._undefined(), entries=self.entries)
        self._range(draft)
        if not any(self.varying):
            self._constant_size(draft)
            return draft.finish()
        wrong = [
            n
            for n, v in zip(self.atom.names(len(self.args)), self.varying, strict=True)
            if v and n in self.atom.parameters
        ]
        if wrong:
            draft.leaves = {name: NEITHER for a in self.args for name in a.leaves}
            draft.both(
                NONE, "no rule", f"{wrong[0]} of {self.atom.signature} must not depend on the variables"
            )
            return draft.finish()
        self._monotone(draft)
        self._curvature(draft, "below")
        self._curvature(draft, "above")
        self._smoothness(draft)
        self_bounded(self, draft, free)
        return draft.finish()

    def _undefined(self) -> tuple[Fact, ...]:
        """Conditions of the atom's domain that are not proved, on arguments that vary: the variables
        stay where it is defined."""
        conditions = []
        poles = self.atom.poles(*self.intervals)
        for i, (arg, domain) in enumerate(zip(self.args, self.domains, strict=True)):
            lies = opened(arg.interval.value)
            if domain is None or lies.inside(domain):
                needs = ""
            else:
                needs = f"in {opened(domain)}"
            if not needs and i in poles and lies.has(0.0):
                needs = "other than 0"
            if needs and not arg.constant:
                text = f"{self.called} needs an argument {needs}, and this one is only known to lie in {lies}"
                conditions.append(make("domain", False, arg.expr, "no rule", text, [arg.interval]))
        return tuple(conditions)

    def _range(self, draft: Draft) -> None:
        where = settled(self.atom.range(*self.intervals))
        if where != REALS:
            everywhere = settled(self.atom.range(*(REALS if d is None else opened(d) for d in self.settled)))
            if everywhere != where:
                uses = [a.interval for a in self.args if a.interval.holds]
            else:
                uses = []
            draft.propose(
                "interval",
                where,
                "interval arithmetic",
                f"the range of {self.called} over where its arguments lie",
                uses,
            )

    def _constant_size(self, draft: Draft) -> None:
        if any(a.random for a in self.args) and not self.atom.moderate:
            return
        if all(a.size.value.finite for a in self.args):
            draft.propose("size", SOME, "finite data", uses=[a.size for a in self.args])

    def _monotone(self, draft: Draft) -> None:
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
        whole = self.total(*(times(self.slopes[i], a.lipschitz.value) for i, a in self.active))
        draft.propose(
            "lipschitz",
            whole,
            "chain of constants",
            self._constants_reason(),
            [a.lipschitz for _, a in self.active],
        )

    def _constants_reason(self) -> str:
        texts = [str(self.slopes[i]) for i, _ in self.active]
        return f"{self.called} has slope {' and '.join(dict.fromkeys(texts))} where its argument lies"

    def _curvature(self, draft: Draft, kind: str) -> None:
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
        if total.zero:
            missing = ""
        else:
            missing = lacks(self, kind)
        if total.zero:
            fix = ""
        else:
            fix = advice(self.atom, self.args, kind)
        draft.propose(kind, total, rule, reason, uses, lacks=missing, fix=fix)

    def _smoothness(self, draft: Draft) -> None:
        rough = [a for _, a in self.active if not a.smooth]
        if self.bend is None:
            draft.propose(
                "differentiable",
                False,
                "kink",
                f"{self.called} has a kink where its argument lies",
                self.ranges,
                fix=advice(self.atom, self.args, "smooth"),
            )
            return
        if rough:
            draft.propose(
                "differentiable",
                False,
                "kink",
                f"{self.called} is differentiable, its argument is not",
                [a.differentiable for a in rough],
            )
            return
        uses = [a.differentiable for _, a in self.active] + [r for r in self.ranges]
        draft.propose(
            "differentiable",
            True,
            "smooth of smooth",
            f"{self.called} has no kink where its argument lies",
            uses,
        )
        steep = length(a.lipschitz.value for _, a in self.active)
        bent = times(self.bend, steep, steep)
        total = plus(bent, self.total(*(times(self.slopes[i], a.gradient.value) for i, a in self.active)))
        curved = [(i, a) for i, a in self.active if not a.gradient.value.zero]
        needed = [a.gradient for _, a in curved] + (
            [] if self.bend.zero else [a.lipschitz for _, a in self.active]
        )
        constants = [f"C_f = {self.slopes[i]}" for i, _ in curved] + (
            [] if self.bend.zero else [f"L_f = {self.bend}"]
        )
        draft.propose("gradient", total, "smooth of smooth", ", ".join(dict.fromkeys(constants)), needed)


def spread(facts: Facts, entries: float) -> Facts:
    """A scalar repeated along ``entries`` entries, as an argument of an entrywise operation on arrays."""
    if entries < inf:
        factor = amount(sqrt(entries))
    else:
        factor = SOME

    def wider(fact: Fact) -> Fact:
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
    """The facts of ``atom(args)``; ``sizes`` and ``entries`` are the numbers of entries of the
    arguments and of the value."""
    return Composition(
        expr=expr, atom=atom, args=args, sizes=sizes or (1.0,) * len(args), entries=entries
    ).facts(free)
