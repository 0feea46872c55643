"""The composition rules: what an atom's curvature, monotonicity and constants make of what is known of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt
from typing import Any

from fccomodel import ir
from fccomodel.atoms import ArrayAtom, Atom, Interval
from fccomodel.facts import (
    DECREASING,
    INCREASING,
    NEITHER,
    NONE,
    SOME,
    ZERO,
    Amount,
    Fact,
    Facts,
    amount,
    least,
    length,
    make,
    most,
    plus,
    times,
)
from fccomodel.structure._context import REALS, interval, opened
from fccomodel.structure._draft import Draft, settled
from fccomodel.structure._fixes import advice
from fccomodel.structure._selfbound import self_bounded

SIGNS = {"increasing": INCREASING, "decreasing": DECREASING, "none": NEITHER}
WORDS = {INCREASING: "non-decreasing", DECREASING: "non-increasing", NEITHER: "neither non-decreasing nor non-increasing"}
SYMBOLS = {
    "inv": "1/u",
    "mul": "*",
    "div": "/",
    "matmul": "@",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
}
FAR = 30.0  # stands for an unknown finite bound where only finiteness is asked
NEAR = 1e-3
#: atoms whose value at a random draw has all the moments that the draw has
POLYNOMIAL = frozenset(
    "abs add concat dot huber matmul max mean min mul neg norm1 norm2 norminf outer pos sqhinge square sub sum sumsq"
    " transpose".split()
)


def positive(u: Interval, op: str, args: tuple[Interval, ...]) -> Interval:
    """A range with the strict sign that ends computed as closed have lost."""
    if u.lo == 0 and not u.lo_open:
        keeps = op in ("pow", "square", "sqrt", "inv", "abs") and (
            args[0].positive or (args[0].negative and op in ("square", "abs"))
        )
        keeps = keeps or op in ("mul", "div") and (all(a.positive for a in args) or all(a.negative for a in args))
        keeps = keeps or op == "max" and any(a.positive for a in args) or op == "min" and all(a.positive for a in args)
        keeps = keeps or op in ("sum", "mean", "dot") and all(a.positive for a in args)
        if keeps:
            return Interval(0.0, u.hi, True, u.hi_open)
    return u


@dataclass(eq=False, kw_only=True)
class Composition:
    """``atom(args)``: the atom's properties where the arguments lie, as amounts."""

    expr: ir.Expr
    atom: Atom
    args: tuple[Facts, ...]
    sizes: tuple[float, ...]
    entries: float = 1.0

    # ------------------------------------------------------------------------------------------ the atom where they lie
    @cached_property
    def domains(self) -> tuple[Interval | None, ...]:
        return self.atom.domains(*(opened(a.interval.value) for a in self.args))

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """Where the arguments lie, as far as the atom is defined."""
        found = []
        for arg, domain in zip(self.args, self.domains, strict=True):
            lies = opened(arg.interval.value)
            found.append(lies if domain is None else lies.meet(opened(domain)))
        return tuple(found)

    @cached_property
    def varying(self) -> tuple[bool, ...]:
        return tuple(not a.constant for a in self.args)

    @cached_property
    def near(self) -> tuple[Interval, ...]:
        """The same with unknown finite bounds in place of missing ones, where an argument has such."""
        bounded = (_bounded(a) for a in self.args)
        return tuple(u if d is None else u.meet(opened(d)) for u, d in zip(bounded, self.domains, strict=True))

    def at(self, rule: Callable[[tuple[Interval, ...]], float | None]) -> Amount:
        """A constant of the atom: a number, ``SOME`` where the arguments are bounded by numbers not known, else ``NONE``."""
        value = amount(rule(self.intervals))
        if value.finite or self.near == self.intervals:
            return value
        return SOME if amount(rule(self.near)).finite else NONE

    @cached_property
    def curvature(self) -> str:
        return self.atom.curvature(*self.intervals, varying=self.varying)

    @cached_property
    def ways(self) -> tuple[int, ...]:
        """Monotonicity per argument."""
        found = (self.atom.monotone(*self.intervals, argument=self._argument(i)) for i in range(len(self.args)))
        return tuple(SIGNS.get(way, INCREASING) for way in found)

    def _argument(self, i: int) -> int:
        return 0 if self.atom.variadic and not isinstance(self.atom.properties.monotone, tuple) else i

    @cached_property
    def slopes(self) -> tuple[Amount, ...]:
        """The Lipschitz constant per argument."""
        return tuple(self._slope(i) for i in range(len(self.args)))

    def _slope(self, i: int) -> Amount:
        if not self.varying[i]:
            return ZERO
        size = self.sizes[i]
        value = self.at(lambda u: self.atom.lipschitz(*u, argument=self._argument(i), size=size))
        if not value.finite and size == inf:  # a dimension that the data will tell
            value = self.at(lambda u: self.atom.lipschitz(*u, argument=self._argument(i), size=4.0))
            return SOME if value.finite else NONE
        return value

    @cached_property
    def bend(self) -> Amount | None:
        """The Lipschitz constant of the gradient; None where the atom has a kink."""
        value = self.atom.gradient_lipschitz(*self.intervals, varying=self.varying)
        if value is None:
            return None
        return self.at(lambda u: self.atom.gradient_lipschitz(*u, varying=self.varying))

    @cached_property
    def weak(self) -> Amount:
        """The atom's own weak convexity constant."""
        if self.curvature in ("convex", "affine", "constant"):
            return ZERO
        own = self.at(lambda u: self.atom.weak_convexity(*u, varying=self.varying))
        return own if self.bend is None else least(own, self.bend)

    @cached_property
    def weak_above(self) -> Amount:
        """The same of its negative."""
        if self.curvature in ("concave", "affine", "constant"):
            return ZERO
        return NONE if self.bend is None else self.bend

    # ----------------------------------------------------------------------------------------------------- what is used
    @cached_property
    def ranges(self) -> tuple[Fact, ...]:
        """The arguments' ranges, where the atom's properties depend on them."""
        full = tuple(REALS if d is None else opened(d) for d in self.domains)
        used = []
        for i, arg in enumerate(self.args):
            if not arg.interval.holds:
                continue
            wide = tuple(full[i] if k == i else u for k, u in enumerate(self.intervals))
            same = self.atom.curvature(*wide, varying=self.varying) == self.curvature and all(
                self.atom.monotone(*wide, argument=self._argument(k))
                == self.atom.monotone(*self.intervals, argument=self._argument(k))
                for k in range(len(self.args))
                if self.varying[k]
            )
            if not same:
                used.append(arg.interval)
        return tuple(used)

    @cached_property
    def called(self) -> str:
        """The atom as models write it."""
        if self.atom.name == "pow":
            p = self.args[1].interval.value
            return f"u^{p.lo:g}" if p.is_point else "u^p"
        return SYMBOLS.get(self.atom.name, self.atom.name)

    @property
    def total(self) -> Callable[..., Amount]:
        """How the arguments' constants add up: the weights of ``max`` and ``min`` sum to 1."""
        return most if self.atom.name in ("max", "min") else plus

    @property
    def active(self) -> tuple[tuple[int, Facts], ...]:
        return tuple((i, a) for i, a in enumerate(self.args) if self.varying[i])

    # ------------------------------------------------------------------------------------------------------------ facts
    def facts(self, free: Callable[[Facts], Facts] | None = None) -> Facts:
        """Everything that the composition rules give."""
        draft = Draft(expr=self.expr, args=self.args, domain=self._undefined(), entries=self.entries)
        self._range(draft)
        if not any(self.varying):
            self._constant_size(draft)
            return draft.finish()
        wrong = [n for n, v in zip(self.atom.names(len(self.args)), self.varying, strict=True) if v and n in self.atom.parameters]
        if wrong:
            draft.leaves = {name: NEITHER for a in self.args for name in a.leaves}
            draft.both(NONE, "no rule", f"{wrong[0]} of {self.atom.signature} must not depend on the variables")
            return draft.finish()
        self._monotone(draft)
        self._curvature(draft, "below")
        self._curvature(draft, "above")
        self._smoothness(draft)
        self_bounded(self, draft, free)
        return draft.finish()

    def _undefined(self) -> tuple[Fact, ...]:
        """Conditions of the atom's domain that are not proved."""
        found = []
        for i, (arg, domain) in enumerate(zip(self.args, self.domains, strict=True)):
            lies = opened(arg.interval.value)
            needs = "" if domain is None or lies.inside(domain) else f"in {opened(domain)}"
            pole = i in self.atom.nonzero or self.atom.name == "pow" and i == 0 and self.args[1].interval.value.lo < 0
            if not needs and pole and lies.has(0.0):
                needs = "other than 0"
            if needs:
                text = f"{self.called} needs an argument {needs}, and this one is only known to lie in {lies}"
                found.append(make("domain", False, arg.expr, "no rule", text, [arg.interval]))
        return tuple(found)

    def _range(self, draft: Draft) -> None:
        where = settled(self.atom.range(*self.intervals))
        where = positive(where, self.atom.name, self.intervals)
        if where != REALS:
            everywhere = settled(self.atom.range(*(REALS if d is None else opened(d) for d in self.domains)))
            uses = [a.interval for a in self.args if a.interval.holds] if everywhere != where else []
            draft.propose(
                "interval", where, "interval arithmetic", f"the range of {self.called} over where its arguments lie", uses
            )

    def _constant_size(self, draft: Draft) -> None:
        if any(a.random for a in self.args) and self.atom.name not in POLYNOMIAL:
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
                new = sign * self.ways[i]
                leaves[name] = new if leaves.get(name, new) == new else NEITHER
                parts.setdefault(name, []).append(times(self.slopes[i], arg.parts[name]))
        draft.leaves = leaves
        draft.parts = {name: self.total(*amounts) for name, amounts in parts.items()}
        whole = self.total(*(times(self.slopes[i], a.lipschitz.value) for i, a in self.active))
        draft.propose("lipschitz", whole, "chain of constants", self._constants_reason(), [a.lipschitz for _, a in self.active])

    def _constants_reason(self) -> str:
        texts = [str(self.slopes[i]) for i, _ in self.active]
        return f"{self.called} has slope {' and '.join(dict.fromkeys(texts))} where its argument lies"

    def rising_and_falling(self, i: int) -> tuple[Amount, Amount]:
        """The steepest the atom rises in argument i, and the steepest it falls."""
        slope, way = self.slopes[i], self.ways[i]
        if way == INCREASING:
            return slope, ZERO
        if way == DECREASING:
            return ZERO, slope
        lies = self.intervals[i]
        if not isinstance(self.atom, ArrayAtom) and lies.lo < 0 < lies.hi:  # a valley or a hill with its turn at 0
            found = {}
            for side in (interval(lies.lo, 0.0), interval(0.0, lies.hi)):
                part = tuple(side if k == i else u for k, u in enumerate(self.intervals))
                direction = SIGNS.get(self.atom.monotone(*part, argument=self._argument(i)), NEITHER)
                found[direction] = amount(self.atom.lipschitz(*part, argument=self._argument(i)))
            if set(found) == {INCREASING, DECREASING}:
                return tuple(v if v.finite else slope for v in (found[INCREASING], found[DECREASING]))  # type: ignore[return-value]
        return slope, slope

    def side(self, i: int, kind: str) -> tuple[Amount, tuple[Fact, ...]]:
        """How far argument i bends on the sides that matter for ``kind``, times the slope of the atom in it."""
        arg = self.args[i]
        same, turned = (arg.below, arg.above) if kind == "below" else (arg.above, arg.below)
        rising, falling = self.rising_and_falling(i)
        uses = tuple(fact for fact, slope in ((same, rising), (turned, falling)) if not slope.zero)
        bend = most(times(rising, same.value), times(falling, turned.value))
        if not isinstance(self.atom, ArrayAtom) or self.sizes[i] == 1 or bend.zero:
            return bend, uses
        spread = times(amount(sqrt(self.sizes[i])) if self.sizes[i] < inf else SOME, bend)
        whole = times(self.slopes[i], arg.gradient.value)
        return (spread, uses) if least(spread, whole) == spread else (whole, (arg.gradient,))

    def _curvature(self, draft: Draft, kind: str) -> None:
        own = self.weak if kind == "below" else self.weak_above
        terms, uses = [], list(self.ranges)
        for i, _ in self.active:
            value, facts = self.side(i, kind)
            terms.append(value)
            uses.extend(facts)
        steep = length(a.lipschitz.value for _, a in self.active)
        bent = times(own, steep, steep)
        if not own.zero:
            uses.extend(a.lipschitz for _, a in self.active)
        total = plus(self.total(*terms), bent)
        rule, reason = self._why(kind, own, total)
        lacks = "" if total.zero else self.lacks(kind)
        fix = "" if total.zero else advice(self.atom, self.args, kind)
        draft.propose(kind, total, rule, reason, uses, lacks=lacks, fix=fix)

    def _why(self, kind: str, own: Amount, total: Amount) -> tuple[str, str]:
        """The rule's name, and what it says here."""
        name, curved = self.called, {"below": "convex", "above": "concave"}[kind]
        affine = all(a.affine for _, a in self.active)
        if total.zero:
            if affine:
                shape = curved if self.curvature not in ("affine", "constant") else self.curvature
                return "affine argument", f"{name} is {shape} where its argument lies, and {_arguments(self.active)} affine"
            parts = [f"{WORDS[self.ways[i]]} in its {_curved(a)} argument" for i, a in self.active]
            return "composition", f"{name} is {curved}, and {' and '.join(dict.fromkeys(parts))}"
        if not total.finite:
            return "no rule", self.lacks(kind) + self._lacks_constants(kind, own)
        if own.zero and all(self.ways[i] != NEITHER for i, _ in self.active):
            return (
                "monotone over weakly convex",
                f"{name} is {curved}, monotone and Lipschitz, and {_arguments(self.active)} weakly {curved}",
            )
        slope = " and ".join(dict.fromkeys(str(self.slopes[i]) for i, _ in self.active))
        return "weak composition", f"{name} has slope {slope} and bends by {own} where its argument lies"

    def lacks(self, kind: str) -> str:
        """Why the rule of convex (or concave) composition does not apply."""
        name, curved = self.called, {"below": "convex", "above": "concave"}[kind]
        own = self.curvature
        if own not in (curved, "affine", "constant"):
            where = "" if self.intervals[0] == REALS else f" over {self.intervals[0]}"
            return f"{name} is {own}{where}, not {curved}" if own != "none" else f"{name} is neither convex nor concave{where}"
        for i, arg in self.active:
            value, _ = self.side(i, kind)
            if not value.zero:
                needs = {INCREASING: curved, DECREASING: "concave" if kind == "below" else "convex", NEITHER: "affine"}[
                    self.ways[i]
                ]
                which = "its argument" if len(self.args) == 1 else f"argument {i + 1}"
                return f"{name} is {curved} and {WORDS[self.ways[i]]}, so {which} must be {needs}, and it is {_known(arg)}"
        return ""

    def _lacks_constants(self, kind: str, own: Amount) -> str:
        """What the rule of weak composition misses."""
        missing = []
        for i, arg in self.active:
            if not self.side(i, kind)[0].finite:
                if not self.slopes[i].finite:
                    missing.append(f"{self.called} has no bounded slope where its argument lies")
                elif not arg.gradient.value.finite:
                    missing.append(
                        "the argument is not known to be smooth"
                        if not arg.smooth
                        else "the argument's gradient has no Lipschitz constant"
                    )
        if not own.finite:
            missing.append(f"{self.called} bends without bound where its argument lies")
        elif not own.zero and any(not a.lipschitz.value.finite for _, a in self.active):
            missing.append("the argument has no Lipschitz constant")
        return "; nor is it weakly convex by composition: " + ", ".join(dict.fromkeys(missing)) if missing else ""

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
        draft.propose("differentiable", True, "smooth of smooth", f"{self.called} has no kink where its argument lies", uses)
        steep = length(a.lipschitz.value for _, a in self.active)
        bent = times(self.bend, steep, steep)
        total = plus(bent, self.total(*(times(self.slopes[i], a.gradient.value) for i, a in self.active)))
        curved = [(i, a) for i, a in self.active if not a.gradient.value.zero]
        needed = [a.gradient for _, a in curved] + ([] if self.bend.zero else [a.lipschitz for _, a in self.active])
        said = [f"C_f = {self.slopes[i]}" for i, _ in curved] + ([] if self.bend.zero else [f"L_f = {self.bend}"])
        draft.propose("gradient", total, "smooth of smooth", ", ".join(dict.fromkeys(said)), needed)


def _bounded(arg: Facts) -> Interval:
    """Where an argument lies, with stand-ins for bounds that exist and are not known."""
    u = opened(arg.interval.value)
    if not arg.compact or not arg.size.value.finite:
        return u
    lo = max(-FAR, min(u.hi - 1, -FAR)) if u.lo == -inf else u.lo + NEAR * min(1.0, u.hi - u.lo) if u.lo_open else u.lo
    hi = min(FAR, max(lo + 1, FAR)) if u.hi == inf else u.hi - NEAR * min(1.0, u.hi - u.lo) if u.hi_open else u.hi
    return interval(lo, max(lo, hi))


def _arguments(active: tuple[tuple[int, Facts], ...]) -> str:
    return "its argument is" if len(active) == 1 else "its arguments are"


def _curved(a: Facts) -> str:
    return a.curvature if a.curvature != "unknown" else "argument's"


def _known(a: Facts) -> str:
    return {"unknown": "of unknown curvature", "constant": "constant"}.get(a.curvature, a.curvature)


def spread(facts: Facts, entries: float) -> Facts:
    """A scalar repeated along ``entries`` entries, as an argument of an entrywise operation on arrays."""
    factor = amount(sqrt(entries)) if entries < inf else SOME

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
    expr: ir.Expr, atom: Atom, args: tuple[Facts, ...], sizes: tuple[float, ...] = (), entries: float = 1.0, free: Any = None
) -> Facts:
    """The facts of ``atom(args)``; ``sizes`` and ``entries`` are the numbers of entries of the arguments and of the value."""
    return Composition(expr=expr, atom=atom, args=args, sizes=sizes or (1.0,) * len(args), entries=entries).facts(free)
