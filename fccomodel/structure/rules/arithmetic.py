"""Sums, multiples, products, quotients and powers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import inf, sqrt

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.amounts import ONE, SOME, ZERO, Amount, amount, least, most, plus, times
from fccomodel.library.atoms import ArrayAtom, Interval, Properties, ScalarAtom
from fccomodel.structure.declarations import REALS, opened
from fccomodel.structure.draft import Draft, settled
from fccomodel.structure.facts import DECREASING, INCREASING, NEITHER, Fact, Facts, combine
from fccomodel.structure.rules.compose import compose

Free = Callable[[Facts], Facts] | None


def spread_to(entries: float) -> Amount:
    """How much longer a vector of ``entries`` copies is than one of them."""
    if entries < inf:
        return amount(sqrt(entries))
    return SOME


def add(expr: ir.Expr, args: tuple[Facts, ...], signs: tuple[int, ...], entries: float) -> Facts:
    """``+- a +- b ..``; every argument has the shape of the whole (see ``spread``)."""
    draft = Draft(expr=expr, args=args, entries=entries)
    ends = [
        a.interval.value if s > 0 else _turned(a.interval.value) for a, s in zip(args, signs, strict=True)
    ]
    total = opened(
        Interval(
            sum(u.lo for u in ends),
            sum(u.hi for u in ends),
            any(u.lo_open for u in ends),
            any(u.hi_open for u in ends),
        )
    )
    draft.propose(
        "interval", total, "interval arithmetic", "", [a.interval for a in args if a.interval.holds]
    )
    if all(a.size.value.finite for a in args):
        draft.propose("size", plus(*(a.size.value for a in args)), "sum", "", [a.size for a in args])
    varying = [(a, s) for a, s in zip(args, signs, strict=True) if not a.constant]
    if not varying:
        return draft.finish()
    draft.leaves = merged([(a.leaves, s) for a, s in varying])
    draft.parts = {n: plus(*(a.parts[n] for a, _ in varying if n in a.parts)) for n in draft.leaves}
    for kind, opposite in (("below", "above"), ("above", "below")):
        uses = [getattr(a, kind if s > 0 else opposite) for a, s in varying]
        value = plus(*(u.value for u in uses))
        worst = [u for u in uses if not u.value.zero]
        if kind == "below":
            curved, other_side = ("convex", "concave")
        else:
            curved, other_side = ("concave", "convex")
        if value.finite:
            reason = f"every term is {'' if value.zero else 'weakly '}{curved}"
        else:
            reason = "; ".join(
                dict.fromkeys(
                    _bad_term(curved, other_side, s)
                    for u, (_, s) in zip(uses, varying, strict=True)
                    if not u.value.finite
                )
            )
        if not worst:
            lacks = ""
        else:
            lacks = f"{len(worst)} of its {len(uses)} terms {'is' if len(worst) == 1 else 'are'} not {curved}"
        lacks += " as it stands" if lacks and any(s < 0 for _, s in varying) else ""
        if value.finite or all(s > 0 for _, s in varying):
            fix = ""
        else:
            fix = f"what is subtracted may be {other_side}, or smooth."
        draft.propose(
            kind,
            value,
            "sum" if value.finite else "no rule",
            reason,
            uses if value.finite else worst,
            lacks=lacks,
            fix=fix,
        )
    uses = [a.lipschitz for a, _ in varying]
    draft.propose("lipschitz", plus(*(u.value for u in uses)), "sum", "", uses)
    together(draft, tuple(a for a, _ in varying), "sum", plus)
    return draft.finish()


def _bad_term(curved: str, turned: str, sign: int) -> str:
    if sign > 0:
        return f"a term is not known to be weakly {curved}"
    return f"what is subtracted is not known to be weakly {turned}"


def together(
    draft: Draft, args: tuple[Facts, ...], rule: str, total: Callable[..., Amount], factor: Amount = ONE
) -> None:
    """Smoothness of what is built linearly: smooth where every part is."""
    rough = [a for a in args if not a.smooth]
    if rough:
        draft.propose(
            "differentiable",
            False,
            "kink",
            "not every part of it is differentiable",
            [a.differentiable for a in rough],
        )
        return
    draft.propose("differentiable", True, rule, "every part of it is", [a.differentiable for a in args])
    draft.propose(
        "gradient",
        times(factor, total(*(a.gradient.value for a in args))),
        rule,
        "",
        [a.gradient for a in args],
    )


def merged(signed: list[tuple]) -> dict[str, int]:
    """Signs of monotonicity of a sum: kept where they agree."""
    leaves: dict[str, int] = {}
    for names, sign in signed:
        for name, direction in names.items():
            new = direction * sign
            leaves[name] = new if leaves.get(name, new) == new else NEITHER
    return leaves


def _turned(u: Interval) -> Interval:
    return Interval(-u.hi, -u.lo, u.hi_open, u.lo_open)


def sign_of(u: Interval) -> int:
    """1 for a nonnegative value, -1 for a nonpositive one, 0 for neither known."""
    if u.lo >= 0:
        return INCREASING
    if u.hi <= 0:
        return DECREASING
    return NEITHER


def largest(f: Facts) -> Amount:
    """A bound of every entry's size."""
    mag = amount(f.interval.value.mag)
    return mag if mag.finite else f.size.value


def scale(
    expr: ir.Expr, factor: Facts, g: Facts, entries: float, op: str = "mul", spread: Amount = ONE
) -> Facts:
    """``factor * g`` entry by entry, or (``dot``, ``matmul``, ``outer``) a linear map of ``g`` with
    constant coefficients."""
    linear = isinstance(atoms.get(op), ArrayAtom)
    draft = Draft(expr=expr, args=(factor, g), entries=entries)
    where = _range(op, factor.interval.value, g.interval.value)
    draft.propose(
        "interval", where, "interval arithmetic", "", [f.interval for f in (factor, g) if f.interval.holds]
    )
    if factor.size.value.finite and g.size.value.finite:
        norm = times(factor.size.value, g.size.value)
        draft.propose("size", norm, "scaling", "", [factor.size, g.size])
    sign = sign_of(factor.interval.value)
    if linear:
        size = factor.size
    elif factor.interval.value.mag < inf:
        size = factor.interval
    else:
        size = factor.size
    if linear:
        by = factor.size.value
    else:
        by = largest(factor)
    if by.zero:
        return draft.finish()
    draft.leaves = {name: direction * sign for name, direction in g.leaves.items()}
    draft.parts = {name: times(by, value) for name, value in g.parts.items()}
    draft.propose(
        "lipschitz",
        times(by, g.lipschitz.value),
        "scaling",
        f"the factor is at most {by}" if by.known else "the factor is bounded",
        [g.lipschitz, size],
    )
    rule = "linear map" if linear else "scaling"
    word = {INCREASING: "nonnegative", DECREASING: "nonpositive", NEITHER: "of unknown sign"}[sign]
    for kind, opposite in (("below", "above"), ("above", "below")):
        sides = {INCREASING: (kind,), DECREASING: (opposite,), NEITHER: ("below", "above")}[sign]
        uses = tuple(getattr(g, s) for s in sides)
        bend = most(*(u.value for u in uses))
        if linear:
            value = times(by, spread, bend)
        else:
            value = times(by, bend)
        if linear and not value.zero:
            value = least(value, times(by, g.gradient.value))
        if sign != NEITHER and not g.affine:
            needed = (*uses, factor.interval)
        else:
            needed = uses
        if value.zero:
            needed = needed
        else:
            needed = (*needed, size)
        if not g.affine:
            reason = f"the factor is {word}"
        else:
            reason = "the other factor is affine"
        if value.zero:
            draft.propose(kind, value, rule, reason, needed)
            continue
        lacks, fix = _unscaled(expr, g, kind, sign, uses)
        draft.propose(
            kind,
            value,
            rule if value.finite else "no rule",
            reason if value.finite else lacks,
            needed,
            lacks=lacks,
            fix=fix,
        )
    together(draft, (g,), rule, plus, by)
    return draft.finish()


def _unscaled(expr: ir.Expr, g: Facts, kind: str, sign: int, uses: tuple[Fact, ...]) -> tuple[str, str]:
    """Why a multiple of g is not convex (concave), and what to write instead."""
    if g.expr is expr:  # a step inside the expression, such as 1/b in a/b: its own reason
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
    if sign == NEITHER and (g.convex or g.concave):
        fix = "declare the factor's sign, as in `param c >= 0`."
    else:
        fix = ""
    return f"with {word}, the other one would have to be {required}, and it is {actual}", fix


def _range(op: str, u: Interval, v: Interval) -> Interval:
    atom = atoms.get(op)
    if atom is None:
        return REALS
    return settled(atom.range(opened(u), opened(v)))


def product(
    expr: ir.Expr, a: Facts, b: Facts, entries: float, op: str = "mul", spread: Amount = ONE
) -> Facts:
    """``a b`` of two factors that both vary: entry by entry, or an inner product of as many terms as
    ``spread`` squared."""
    draft = Draft(expr=expr, args=(a, b), entries=entries)
    where = _range(op, a.interval.value, b.interval.value)
    draft.propose(
        "interval", where, "interval arithmetic", "", [f.interval for f in (a, b) if f.interval.holds]
    )
    size_a, size_b = (f.size.value if isinstance(atoms.get(op), ArrayAtom) else largest(f) for f in (a, b))
    if a.size.value.finite and b.size.value.finite:
        draft.propose("size", times(a.size.value, b.size.value), "product", "", [a.size, b.size])
    sign_a, sign_b = sign_of(a.interval.value), sign_of(b.interval.value)
    draft.leaves = merged([(a.leaves, sign_b), (b.leaves, sign_a)])
    draft.parts = {
        n: plus(times(size_b, a.parts.get(n, ZERO)), times(size_a, b.parts.get(n, ZERO)))
        for n in draft.leaves
    }
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
        value = plus(
            times(spread, size_a, _side(b, kind, sign_a)),
            times(spread, size_b, _side(a, kind, sign_b)),
            cross,
        )
        uses = [a.lipschitz, b.lipschitz, a.below, a.above, b.below, b.above, a.size, b.size]
        if value.finite:
            reason = ""
        else:
            reason = lacks + "; nor has each factor bounds for its value and slope"
        draft.propose(
            kind, value, "product" if value.finite else "no rule", reason, uses, lacks=lacks, fix=fix
        )
    if a.smooth and b.smooth:
        bent = plus(times(size_a, b.gradient.value), times(size_b, a.gradient.value), cross)
        draft.propose(
            "differentiable",
            True,
            "smooth of smooth",
            "both factors are",
            [a.differentiable, b.differentiable],
        )
        draft.propose(
            "gradient",
            bent,
            "product",
            "",
            [a.gradient, b.gradient, a.lipschitz, b.lipschitz, a.size, b.size],
        )
    else:
        rough = [f.differentiable for f in (a, b) if not f.smooth]
        draft.propose("differentiable", False, "kink", "a factor is not known to be differentiable", rough)
    return draft.finish()


def _side(f: Facts, kind: str, sign: int) -> Amount:
    if sign == NEITHER:
        return most(f.below.value, f.above.value)
    return f.below.value if (kind == "below") == (sign == INCREASING) else f.above.value


def quotient(expr: ir.Expr, a: Facts, b: Facts, entries: float, free: Free) -> Facts:
    """``a / b``."""
    inv = atoms.get("inv")
    assert inv is not None
    turned = compose(expr, inv, (b,), (entries,), entries, free)
    if b.constant:
        return scale(expr, turned, a, entries)
    if a.constant:
        return scale(expr, a, turned, entries)
    return product(expr, a, turned, entries)


# ------------------------------------------------------------------------------------------- powers
@cache
def positive_power(p: float) -> ScalarAtom:
    """``max(0, u)^p`` for p > 1."""
    power = atoms.get("pow")
    assert power is not None

    def part(u: Interval) -> Interval:
        return Interval(max(u.lo, 0.0), max(u.hi, 0.0))

    def steep(u: Interval, order: int) -> float:
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
            lipschitz=lambda u: steep(u, 1),
            gradient_lipschitz=lambda u: steep(u, 2),
            range=lambda u: power.range(part(u), Interval.point(p)),
        ),
    )


def power(expr: ir.Expr, base: Facts, exponent: Facts, entries: float, free: Free) -> Facts:
    """``base ^ exponent``: a constant exponent, or a positive base."""
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
    draft = Draft(expr=expr, args=(base, exponent), entries=entries)
    draft.leaves = {name: NEITHER for f in (base, exponent) for name in f.leaves}
    draft.both(
        amount(inf),
        "no rule",
        "its exponent depends on the variables and its base is not known to be positive",
    )
    return draft.finish()


def positive_part(f: Facts) -> Facts | None:
    """The argument u where ``f`` is ``max(0, u)``."""
    atom = atoms.of(f.expr)
    if atom is not None and (atom.extreme or atom.squared == "sqhinge"):
        return f.inner
    return None


def renamed(facts: Facts, rule: str) -> Facts:
    """The same facts, credited to the rule that made them possible."""
    changes = {}
    for kind in ("below", "above", "differentiable", "gradient"):
        fact = getattr(facts, kind)
        if fact.holds:
            changes[kind] = replace(fact, rule=rule)
    return facts.with_facts(changes)
