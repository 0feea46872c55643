"""Sums, multiples, products, quotients and powers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, sqrt

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.amounts import ONE, SOME, ZERO, Amount, amount, least, most, plus, times
from fccomodel.library.atoms import ArrayAtom, Interval, Properties, ScalarAtom
from fccomodel.structure.declarations import REALS, opened
from fccomodel.structure.draft import FactsDraft, settled
from fccomodel.structure.facts import DECREASING, INCREASING, NEITHER, Fact, Facts, combine
from fccomodel.structure.rules.compose import compose

Free = Callable[[Facts], Facts] | None


def spread_to(entries: float) -> Amount:
    """The norm of a vector of ``entries`` ones: how much longer a vector of equal entries is than one."""
    if entries < inf:
        return amount(sqrt(entries))
    return SOME


def add(expr: ir.Expr, args: tuple[Facts, ...], signs: tuple[int, ...], entries: float) -> Facts:
    """The facts of ``+- a +- b ..``; every argument has the shape of the whole (see ``spread``)."""
    draft = FactsDraft(expr=expr, args=args, entries=entries)
    total = _interval_of_sum([a.interval.value for a in args], signs)
    known = [a.interval for a in args if a.interval.holds]
    draft.propose("interval", opened(total), "interval arithmetic", "", known)
    sizes = [a.size for a in args]
    if all(size.value.finite for size in sizes):
        _propose_sum(draft, "size", sizes)
    varying = [(a, s) for a, s in zip(args, signs, strict=True) if not a.constant]
    if not varying:
        return draft.finish()
    terms = tuple(a for a, _ in varying)
    draft.leaves = merged([(a.leaves, s) for a, s in varying])
    parts = {}
    for name in draft.leaves:
        of_terms = [a.parts[name] for a in terms if name in a.parts]
        parts[name] = plus(*of_terms)
    draft.parts = parts
    for kind in ("below", "above"):
        _add_curvature(draft, kind, varying)
    _propose_sum(draft, "lipschitz", [a.lipschitz for a in terms])
    together(draft, terms, "sum", plus)
    return draft.finish()


def _interval_of_sum(ranges: Sequence[Interval], signs: Sequence[int]) -> Interval:
    """The interval of a sum whose terms are in these intervals, and are added or subtracted."""
    terms = []
    for interval, sign in zip(ranges, signs, strict=True):
        terms.append(interval if sign > 0 else _negated(interval))
    return Interval(
        sum(term.lo for term in terms),
        sum(term.hi for term in terms),
        any(term.lo_open for term in terms),
        any(term.hi_open for term in terms),
    )


def _propose_sum(draft: FactsDraft, kind: str, terms: Sequence[Fact]) -> None:
    """Propose that a constant of a sum is at most the sum of the terms' constants."""
    total = plus(*(term.value for term in terms))
    draft.propose(kind, total, "sum", "", terms)


def _add_curvature(draft: FactsDraft, kind: str, terms: list[tuple[Facts, int]]) -> None:
    """Propose the curvature of a sum from one side; ``terms`` are the varying ones with their signs."""
    if kind == "below":
        opposite, curved, other_side = "above", "convex", "concave"
    else:
        opposite, curved, other_side = "below", "concave", "convex"
    subtracted = any(s < 0 for _, s in terms)
    uses = [getattr(a, kind if s > 0 else opposite) for a, s in terms]
    value = plus(*(u.value for u in uses))
    curved_wrongly = [u for u in uses if not u.value.zero]
    lacks = fix = ""
    if curved_wrongly:
        count = len(curved_wrongly)
        lacks = f"{count} of its {len(uses)} terms {'is' if count == 1 else 'are'} not {curved}"
        if subtracted:
            lacks += " as it stands"
    if value.finite:
        reason = f"every term is {'' if value.zero else 'weakly '}{curved}"
        draft.propose(kind, value, "sum", reason, uses, lacks=lacks)
        return
    pairs = zip(uses, terms, strict=True)
    unbounded = [s for u, (_, s) in pairs if not u.value.finite]
    reason = "; ".join(dict.fromkeys(_bad_term(curved, other_side, s) for s in unbounded))
    if subtracted:
        fix = f"what is subtracted may be {other_side}, or smooth."
    draft.propose(kind, value, "no rule", reason, curved_wrongly, lacks=lacks, fix=fix)


def _bad_term(curved: str, turned: str, sign: int) -> str:
    """Why a term of a sum, added or subtracted, has no finite curvature."""
    if sign > 0:
        return f"a term is not known to be weakly {curved}"
    return f"what is subtracted is not known to be weakly {turned}"


def together(
    draft: FactsDraft, args: tuple[Facts, ...], rule: str, total: Callable[..., Amount], factor: Amount = ONE
) -> None:
    """Propose smoothness of a linear combination: it is smooth if every part is.

    total   how the constants of the gradients add up
    factor  the constant factor of the combination
    """
    rough = [a for a in args if not a.smooth]
    if rough:
        reason = "not every part of it is differentiable"
        draft.propose("differentiable", False, "kink", reason, [a.differentiable for a in rough])
        return
    draft.propose("differentiable", True, rule, "every part of it is", [a.differentiable for a in args])
    constant = times(factor, total(*(a.gradient.value for a in args)))
    draft.propose("gradient", constant, rule, "", [a.gradient for a in args])


def merged(signed: list[tuple]) -> dict[str, int]:
    """Signs of monotonicity of a sum, from (signs by variable, sign of the term); NEITHER if they differ."""
    leaves: dict[str, int] = {}
    for names, sign in signed:
        for name, direction in names.items():
            new = direction * sign
            leaves[name] = new if leaves.get(name, new) == new else NEITHER
    return leaves


def _negated(u: Interval) -> Interval:
    """The interval of -x for x in u."""
    return Interval(-u.hi, -u.lo, u.hi_open, u.lo_open)


def sign_of(u: Interval) -> int:
    """1 for a nonnegative value, -1 for a nonpositive one, 0 if neither is known."""
    if u.lo >= 0:
        return INCREASING
    if u.hi <= 0:
        return DECREASING
    return NEITHER


def largest(f: Facts) -> Amount:
    """A bound of the size of every entry."""
    mag = amount(f.interval.value.mag)
    if mag.finite:
        return mag
    return f.size.value


def scale(
    expr: ir.Expr, factor: Facts, g: Facts, entries: float, op: str = "mul", spread: Amount = ONE
) -> Facts:
    """The facts of ``factor * g`` for a constant factor.

    It is a product entry by entry, or (``dot``, ``matmul``, ``outer``) a linear map of ``g`` with
    constant coefficients, whose curvature grows by ``spread`` (see ``spread_to``).
    """
    draft = FactsDraft(expr=expr, args=(factor, g), entries=entries)
    where = _range(op, factor.interval.value, g.interval.value)
    known = [f.interval for f in (factor, g) if f.interval.holds]
    draft.propose("interval", where, "interval arithmetic", "", known)
    if factor.size.value.finite and g.size.value.finite:
        norm = times(factor.size.value, g.size.value)
        draft.propose("size", norm, "scaling", "", [factor.size, g.size])
    multiple = _Multiple.of(expr, factor, g, op, spread)
    if multiple.by.zero:
        return draft.finish()
    draft.leaves = {name: direction * multiple.sign for name, direction in g.leaves.items()}
    draft.parts = {name: times(multiple.by, value) for name, value in g.parts.items()}
    draft.propose(
        "lipschitz",
        times(multiple.by, g.lipschitz.value),
        "scaling",
        f"the factor is at most {multiple.by}" if multiple.by.known else "the factor is bounded",
        [g.lipschitz, multiple.size],
    )
    for kind in ("below", "above"):
        multiple.curvature(draft, kind)
    together(draft, (g,), multiple.rule, plus, multiple.by)
    return draft.finish()


@dataclass(frozen=True, eq=False, kw_only=True)
class _Multiple:
    """A constant factor, and the facts about its product with g.

    linear  whether it is a linear map of an array, not a product entry by entry
    spread  growth of curvature under a linear map
    sign    sign of the factor
    by      bound of the factor's size (of its norm for a linear map)
    size    the fact behind ``by``
    """

    expr: ir.Expr
    factor: Facts
    g: Facts
    linear: bool
    spread: Amount
    sign: int
    by: Amount
    size: Fact

    @classmethod
    def of(cls, expr: ir.Expr, factor: Facts, g: Facts, op: str, spread: Amount) -> _Multiple:
        """The multiple of g by an operation."""
        linear = isinstance(atoms.get(op), ArrayAtom)
        return cls(
            expr=expr,
            factor=factor,
            g=g,
            linear=linear,
            spread=spread,
            sign=sign_of(factor.interval.value),
            by=factor.size.value if linear else largest(factor),
            size=factor.size if linear or factor.interval.value.mag == inf else factor.interval,
        )

    @property
    def rule(self) -> str:
        """The rule's name."""
        if self.linear:
            return "linear map"
        return "scaling"

    def curvature(self, draft: FactsDraft, kind: str) -> None:
        """Propose the curvature of the multiple from one side."""
        opposite = "above" if kind == "below" else "below"
        sides = {INCREASING: (kind,), DECREASING: (opposite,), NEITHER: ("below", "above")}[self.sign]
        uses = tuple(getattr(self.g, side) for side in sides)
        value = self._value(most(*(u.value for u in uses)))
        needed = uses
        if self.g.affine:
            reason = "the other factor is affine"
        else:
            word = {INCREASING: "nonnegative", DECREASING: "nonpositive", NEITHER: "of unknown sign"}
            reason = f"the factor is {word[self.sign]}"
            if self.sign != NEITHER:
                needed = (*needed, self.factor.interval)
        if value.zero:
            draft.propose(kind, value, self.rule, reason, needed)
            return
        needed = (*needed, self.size)
        lacks, fix = _unscaled(self.expr, self.g, kind, self.sign, uses)
        if value.finite:
            draft.propose(kind, value, self.rule, reason, needed, lacks=lacks, fix=fix)
        else:
            draft.propose(kind, value, "no rule", lacks, needed, lacks=lacks, fix=fix)

    def _value(self, curvature: Amount) -> Amount:
        """The curvature constant of the multiple, from the curvature constant of g."""
        if not self.linear:
            return times(self.by, curvature)
        value = times(self.by, self.spread, curvature)
        if value.zero:
            return value
        return least(value, times(self.by, self.g.gradient.value))


def _unscaled(expr: ir.Expr, g: Facts, kind: str, sign: int, uses: tuple[Fact, ...]) -> tuple[str, str]:
    """Why a multiple of g is not convex (concave), and what to write instead."""
    if g.expr is expr:  # a step inside the expression, such as 1/b in a/b: the reason of g itself
        return next(((u.lacks, u.fix) for u in uses if u.lacks), ("", ""))
    convex = (kind == "below") == (sign == INCREASING)
    if sign == NEITHER:
        required = "affine"
    elif convex:
        required = "convex"
    else:
        required = "concave"
    word = {
        INCREASING: "a nonnegative factor",
        DECREASING: "a nonpositive factor",
        NEITHER: "a factor of unknown sign",
    }[sign]
    actual = "of unknown curvature" if g.curvature == "unknown" else g.curvature
    fix = ""
    if sign == NEITHER and (g.convex or g.concave):
        fix = "declare the factor's sign, as in `param c >= 0`."
    return f"with {word}, the other one would have to be {required}, and it is {actual}", fix


def _range(op: str, u: Interval, v: Interval) -> Interval:
    """The range of an operation over two intervals."""
    atom = atoms.get(op)
    if atom is None:
        return REALS
    return settled(atom.range(opened(u), opened(v)))


def product(
    expr: ir.Expr, a: Facts, b: Facts, entries: float, op: str = "mul", spread: Amount = ONE
) -> Facts:
    """The facts of ``a b`` for two factors that both vary.

    It is a product entry by entry, or an inner product; ``spread`` is the root of its number of terms.
    """
    draft = FactsDraft(expr=expr, args=(a, b), entries=entries)
    where = _range(op, a.interval.value, b.interval.value)
    known = [f.interval for f in (a, b) if f.interval.holds]
    draft.propose("interval", where, "interval arithmetic", "", known)
    if isinstance(atoms.get(op), ArrayAtom):
        size_a, size_b = a.size.value, b.size.value
    else:
        size_a, size_b = largest(a), largest(b)
    if a.size.value.finite and b.size.value.finite:
        size = times(a.size.value, b.size.value)
        draft.propose("size", size, "product", "", [a.size, b.size])
    sign_a, sign_b = sign_of(a.interval.value), sign_of(b.interval.value)
    draft.leaves = merged([(a.leaves, sign_b), (b.leaves, sign_a)])
    parts = {}
    for name in draft.leaves:
        through_a = times(size_b, a.parts.get(name, ZERO))
        through_b = times(size_a, b.parts.get(name, ZERO))
        parts[name] = plus(through_a, through_b)
    draft.parts = parts
    steep = plus(times(size_b, a.lipschitz.value), times(size_a, b.lipschitz.value))
    draft.propose(
        "lipschitz",
        steep,
        "product",
        f"|a| <= {size_a} and |b| <= {size_b}",
        [a.lipschitz, b.lipschitz, a.size, b.size],
    )
    cross = times(Amount(2.0), a.lipschitz.value, b.lipschitz.value)
    if isinstance(expr, ir.Apply) and expr.op == "div":
        lacks = "both parts of the quotient depend on the variables"
        fix = "with b > 0, a / b <= k is a - k * b <= 0; and minimising log(a) - log(b) minimises a / b."
    else:
        lacks = "both factors depend on the variables"
        fix = (
            "a bilinear form is not convex: fix one factor (a param), or bound the product by "
            "(square(a) + square(b)) / 2."
        )
    for kind in ("below", "above"):
        from_b = times(spread, size_a, _side(b, kind, sign_a))
        from_a = times(spread, size_b, _side(a, kind, sign_b))
        value = plus(from_b, from_a, cross)
        uses = [a.lipschitz, b.lipschitz, a.below, a.above, b.below, b.above, a.size, b.size]
        if value.finite:
            draft.propose(kind, value, "product", "", uses, lacks=lacks, fix=fix)
        else:
            reason = lacks + "; nor has each factor bounds for its value and slope"
            draft.propose(kind, value, "no rule", reason, uses, lacks=lacks, fix=fix)
    if a.smooth and b.smooth:
        from_b = times(size_a, b.gradient.value)
        from_a = times(size_b, a.gradient.value)
        bent = plus(from_b, from_a, cross)
        both = [a.differentiable, b.differentiable]
        draft.propose("differentiable", True, "smooth of smooth", "both factors are", both)
        uses = [a.gradient, b.gradient, a.lipschitz, b.lipschitz, a.size, b.size]
        draft.propose("gradient", bent, "product", "", uses)
    else:
        rough = [f.differentiable for f in (a, b) if not f.smooth]
        draft.propose("differentiable", False, "kink", "a factor is not known to be differentiable", rough)
    return draft.finish()


def _side(f: Facts, kind: str, sign: int) -> Amount:
    """The curvature of f that matters for ``kind`` when f is multiplied by a number of this sign."""
    if sign == NEITHER:
        return most(f.below.value, f.above.value)
    if (kind == "below") == (sign == INCREASING):
        return f.below.value
    return f.above.value


def quotient(expr: ir.Expr, a: Facts, b: Facts, entries: float, free: Free) -> Facts:
    """The facts of ``a / b``, as those of ``a * (1 / b)``."""
    inv = atoms.get("inv")
    assert inv is not None
    inverse = compose(expr, inv, (b,), (entries,), entries, free)
    if b.constant:
        return scale(expr, inverse, a, entries)
    if a.constant:
        return scale(expr, a, inverse, entries)
    return product(expr, a, inverse, entries)


# ------------------------------------------------------------------------------------------- powers
@cache
def positive_power(p: float) -> ScalarAtom:
    """The atom ``max(0, u)^p`` for p > 1."""
    power = atoms.get("pow")
    assert power is not None

    def positive(u: Interval) -> Interval:
        """The interval of max(0, x) for x in u."""
        return Interval(max(u.lo, 0.0), max(u.hi, 0.0))

    def steepest(u: Interval, order: int) -> float:
        """The largest size of the first or second derivative over u."""
        top = max(u.hi, 0.0)
        if order == 2 and p < 2:
            if u.lo <= 0 < u.hi:
                return inf
            if u.lo > 0:
                return abs(p * (p - 1)) * max(u.lo, 1e-300) ** (p - 2)
            return 0.0
        if order == 1:
            factor = p
        else:
            factor = p * (p - 1)
        if top == 0:
            return 0.0
        if top == inf and p > order:
            return inf
        return factor * top ** (p - order)

    return ScalarAtom(
        name="pos^p",
        meaning=f"max(0, u)^{p:g}",
        arguments=("u",),
        formula=f"Max(0, u) ** {p!r}",
        torch="",
        derivative=("",),
        properties=Properties(
            curvature="convex",
            monotone="increasing",
            lipschitz=lambda u: steepest(u, 1),
            gradient_lipschitz=lambda u: steepest(u, 2),
            range=lambda u: power.range(positive(u), Interval.point(p)),
        ),
    )


def power(expr: ir.Expr, base: Facts, exponent: Facts, entries: float, free: Free) -> Facts:
    """The facts of ``base ^ exponent`` for a constant exponent or a positive base; else nothing is known."""
    pow_, log, exp = (atoms.get(n) for n in ("pow", "log", "exp"))
    assert pow_ and log and exp
    if exponent.constant:
        result = compose(expr, pow_, (base, exponent), (entries, 1.0), entries, free)
        p = exponent.interval.value
        inside = positive_part(base)
        if inside is not None and p.is_point and p.lo > 1:
            if p.lo == 2:
                atom = atoms.get("sqhinge")
            else:
                atom = positive_power(p.lo)
            assert atom is not None
            better = compose(expr, atom, (inside,), (entries,), entries, free)
            result = combine(renamed(better, "positive part"), result)
        return result
    if base.interval.value.positive:
        logarithm = compose(expr, log, (base,), (entries,), entries, free)
        if base.constant:
            inner = scale(expr, logarithm, exponent, entries)
        else:
            inner = product(expr, logarithm, exponent, entries)
        return compose(expr, exp, (inner,), (entries,), entries, free)
    draft = FactsDraft(expr=expr, args=(base, exponent), entries=entries)
    draft.leaves = {name: NEITHER for f in (base, exponent) for name in f.leaves}
    reason = "its exponent depends on the variables and its base is not known to be positive"
    draft.both(amount(inf), "no rule", reason)
    return draft.finish()


def positive_part(f: Facts) -> Facts | None:
    """The facts of u if ``f`` is ``max(0, u)``, or None."""
    atom = atoms.of(f.expr)
    if atom is not None and (atom.extreme or atom.squared == "sqhinge"):
        return f.inner
    return None


def renamed(facts: Facts, rule: str) -> Facts:
    """The facts with another rule as their reason: the rule that made them possible."""
    changes = {}
    for kind in ("below", "above", "differentiable", "gradient"):
        fact = getattr(facts, kind)
        if fact.holds:
            changes[kind] = replace(fact, rule=rule)
    return facts.with_facts(changes)
