"""Properties that only the whole has: log-convexity, powers of p-norms, perspectives, squares of norms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, log
from typing import Any

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.amounts import NONE, ZERO, Amount, amount, most, plus, root, rounded, times
from fccomodel.library.atoms import Interval
from fccomodel.structure.declarations import interval, opened
from fccomodel.structure.draft import Draft
from fccomodel.structure.estimates.spectrum import Spectrum
from fccomodel.structure.facts import KINDS, Fact, Facts, Standing, combine
from fccomodel.structure.rules.arithmetic import add, merged, renamed, scale
from fccomodel.structure.rules.compose import compose

#: products of exponents this near to 1 are 1: a value changes by no more than its own rounding
ROUNDING = 1e-15
#: an interval from 0 in which a slope at 0 shows
NEAR_0 = 1e-6


# --------------------------------------------------------------------------------------- logarithms
def logarithm(f: Facts) -> Facts | None:
    """The facts of log f for a positive f: its own, or by composition."""
    if f.log is not None:
        return f.log
    atom = atoms.get("log")
    if atom is None or not f.interval.value.positive or f.expr.shape:
        return None
    return compose(f.expr, atom, (f,))


def leaning_on(facts: Facts, args: tuple[Facts, ...]) -> Facts:
    """The same facts, which hold because of where some arguments lie."""
    ranges = tuple(a.interval for a in args)
    if not ranges:
        return facts
    standing = max(r.standing for r in ranges)
    changes = {}
    for kind in KINDS:
        fact = getattr(facts, kind)
        changes[kind] = replace(fact, uses=(*fact.uses, *ranges), standing=max(fact.standing, standing))
    return facts.with_facts(changes)


def log_sum(expr: ir.Expr, terms: tuple[Facts, ...], whole: Interval) -> Facts:
    """The facts of log of a nonnegative combination of e^h, over the terms h: a log-sum-exp.

    Its gradient is an average of theirs, and its second derivative adds their variance, at most the
    largest |grad h|^2. For draws without bounds the weights follow the exponents, and only
    curvature is left.
    """
    draft = Draft(expr=expr, args=terms)
    if whole.lo > 0:
        lo = log(whole.lo)
    else:
        lo = float("-inf")
    if 0 < whole.hi < float("inf"):
        hi = log(whole.hi)
    else:
        hi = float("inf")
    draft.propose("interval", interval(lo, hi, whole.lo_open, whole.hi_open), "interval arithmetic")
    varying = [t for t in terms if not t.constant]
    if not varying:
        return draft.finish()
    draft.leaves = merged([(t.leaves, 1) for t in varying])
    draft.parts = {n: most(*(t.parts[n] for t in varying if n in t.parts)) for n in draft.leaves}
    random = any(t.random for t in terms)
    if random:
        steep = NONE
    else:
        steep = most(*(t.lipschitz.value for t in varying))
    if random:
        draft.parts = {}
    slopes = [t.lipschitz for t in varying]
    draft.propose(
        "lipschitz", steep, "log-convex", "its slope is an average of the exponents' slopes", slopes
    )
    lower, upper = [t.below for t in varying], [t.above for t in varying]
    bent = most(*(f.value for f in lower))
    bent = NONE if random and not bent.zero else bent
    good = "every exponent is convex" if bent.zero else "every exponent is weakly convex"
    draft.propose(
        "below", bent, "log-convex", good if bent.finite else "an exponent is of unknown curvature", lower
    )
    alone = len(terms) == 1 and not isinstance(expr, ir.Reduce)
    if alone:
        var = ZERO
    else:
        var = times(steep, steep)
    draft.propose("above", plus(most(*(f.value for f in upper)), var), "log-convex", "", [*upper, *slopes])
    smooth = all(t.smooth for t in varying)
    draft.propose(
        "differentiable", smooth, "log-convex" if smooth else "kink", "", [t.differentiable for t in varying]
    )
    if random:
        gradient = NONE
    else:
        gradient = plus(most(*(t.gradient.value for t in varying)), var)
    draft.propose(
        "gradient",
        gradient,
        "log-convex",
        "L_h + C_h^2 over the exponents h",
        [*(t.gradient for t in varying), *slopes],
    )
    return draft.finish()


def attach_log(facts: Facts, log_facts: Facts | None) -> Facts:
    """Give an expression the facts of its logarithm, and itself what follows from them."""
    if log_facts is None:
        return facts
    exp = atoms.get("exp")
    assert exp is not None
    through = compose(facts.expr, exp, (log_facts,))
    if log_facts.convex and not log_facts.constant:
        through = replace(
            through,
            below=_restated(
                through.below, "log-convex", f"its logarithm is {log_facts.curvature}", (log_facts.below,)
            ),
        )
    logged = replace(facts, log=log_facts)
    return combine(
        logged, replace(through, leaves=dict(log_facts.leaves), interval=facts.interval, size=facts.size)
    )


def _restated(fact: Fact, rule: str, reason: str, uses: tuple[Fact, ...]) -> Fact:
    return replace(fact, rule=rule, reason=reason, uses=uses)


def apply_log(expr: ir.Apply, args: tuple[Facts, ...], facts: Facts) -> Facts | None:
    """The logarithm's facts of an operation on functions that have them, or are positive."""
    if expr.shape or facts.constant:
        return None
    log_facts = _applied(expr, args, facts)
    atom = atoms.of(expr)
    direct = atom is not None and bool(atom.logarithm)
    if log_facts is None or direct:
        return log_facts
    return leaning_on(log_facts, tuple(a for a in args if a.log is None))


def _applied(expr: ir.Apply, args: tuple[Facts, ...], facts: Facts) -> Facts | None:
    structural = any(a.log is not None for a in args)
    if expr.op == "mul" and structural and not all(a.interval.value.positive for a in args):
        if args[0].constant:
            factor, varying = (args[0], args[1])
        else:
            factor, varying = (args[1], args[0])
        if factor.constant and factor.interval.value.lo >= 0 and varying.log is not None:
            return _weighted(expr, factor, varying.log)
    atom = atoms.of(expr)
    if atom is not None and atom.logarithm:
        return _direct(expr, atom, args)
    if atom is None or atom.exponent is None or args[0].log is None and atom.exponent == -1:
        power = None
    else:
        power = atom.exponent
    match expr.op:
        case "mul" | "div" if all(a.interval.value.positive for a in args):
            a, b = (logarithm(x) for x in args)
            if a is None or b is None:
                return None
            return add(expr, (a, b), (1, 1 if expr.op == "mul" else -1), 1.0)
        case "add" if structural and all(
            a.log is not None or a.interval.value.positive or _null(a) for a in args
        ):
            logs = [logarithm(a) for a in args if not _null(a)]
            terms = tuple(x for x in logs if x is not None)
            if len(terms) == len(logs):
                return log_sum(expr, terms, facts.interval.value)
            return None
    if power is not None and (args[0].log is not None or args[0].interval.value.positive):
        if isinstance(power, str):
            factor = args[1]
        else:
            factor = number(expr, power)
        log_facts = logarithm(args[0])
        if log_facts is not None and factor.constant:
            return scale(expr, factor, log_facts, 1.0)
        return None
    if atom is not None and atom.extreme > 0 and structural and all(a.interval.value.positive for a in args):
        logs = [logarithm(a) for a in args]
        terms = tuple(x for x in logs if x is not None)
        if len(terms) == len(logs):
            return compose(expr, atom, terms)
        return None
    return None


def _direct(expr: ir.Apply, atom: atoms.Atom, args: tuple[Facts, ...]) -> Facts | None:
    """The facts of an atom's declared logarithm: its argument, or another atom of its arguments."""
    formula = atoms.expression(atom.logarithm, dict(zip(atom.names(len(args)), expr.args, strict=True)))
    if formula is expr.args[0]:
        return args[0]
    outer = atoms.of(formula)
    if outer is not None and formula.children == expr.args:
        return compose(expr, outer, args)
    return None


def _weighted(expr: ir.Expr, factor: Facts, h: Facts) -> Facts:
    """log(c e^h) = log c + h for a constant c >= 0, minus infinity where c is 0."""
    draft = Draft(expr=expr, args=(factor, h), leaves=h.leaves, parts=h.parts)
    for kind in ("below", "above", "lipschitz", "gradient", "differentiable"):
        fact = getattr(h, kind)
        draft.propose(kind, fact.value, fact.rule, fact.reason, [fact])
    return draft.finish()


def _null(f: Facts) -> bool:
    return f.interval.value.is_point and f.interval.value.lo == 0


def number(expr: ir.Expr, value: float) -> Facts:
    """The facts of a number that a rule brings in."""
    draft = Draft(expr=expr, compact=True)
    draft.propose("interval", Interval.point(value), "constant")
    return draft.finish()


def log_of(expr: ir.Apply, arg: Facts, facts: Facts) -> Facts:
    """``log(arg)`` or ``log1p(arg)`` where the argument's logarithm is known better than by composition."""
    if arg.log is None:
        return facts
    log_facts = arg.log
    if expr.op == "log1p":
        log_facts = log_sum(expr, (number(expr, 0.0), arg.log), interval(1.0, 1 + arg.interval.value.hi))
    return combine(facts, credited(replace(log_facts, expr=expr), expr))


def credited(facts: Facts, expr: ir.Expr) -> Facts:
    """Facts of a rewritten expression, told of the one that was written."""

    def of_expression(fact: Fact) -> Fact:
        if fact.subject is expr:
            return fact
        return replace(fact, subject=expr)

    return facts.with_facts({kind: of_expression(getattr(facts, kind)) for kind in KINDS})


# ------------------------------------------------------------------------------------------- powers
def powers_of(expr: ir.Expr, args: tuple[Facts, ...]) -> tuple[float, Interval] | None:
    """(p, c) where it is c + a sum of p-th powers of functions that are convex and >= 0, or affine
    under an even power."""
    if not isinstance(expr, ir.Apply):
        return None
    nothing = Interval(0.0, 0.0)
    base, p = args[0], 2.0 if expr.op == "sumsq" else exponent(expr, args)
    if base.powers is not None and p * base.powers[0] >= 1:
        return p * base.powers[0], nothing
    if p >= 1 and (_cone(base) or (p % 2 == 0 and (base.affine or _cone(base.negated())))):
        return p, nothing
    match expr.op:
        case "sqhinge" if args[0].convex:
            return 2.0, nothing
        case "add":
            return _added(args)
        case "sum" | "mean" if base.powers is not None:
            p, c = base.powers
            return p, nothing if c.hi == 0 else Interval(0.0, float("inf"), c.positive)
        case "mul" | "div":
            if args[0].constant:
                factor, varying = (args[0], args[1])
            else:
                factor, varying = (args[1], args[0])
            if (
                factor.constant
                and factor.interval.value.lo >= 0
                and varying.powers is not None
                and (expr.op == "mul" or factor is args[1])
            ):
                p, c = varying.powers
                return p, nothing if c.hi == 0 else Interval(
                    0.0, float("inf"), c.positive and factor.interval.value.positive
                )
    return None


def exponent(expr: ir.Apply, args: tuple[Facts, ...]) -> float:
    """p of ``u^p``, where it is a number; 0 of anything else."""
    atom = atoms.of(expr)
    p = None if atom is None else atom.exponent
    if isinstance(p, str):
        where = args[1].interval.value
        return where.lo if where.is_point else 0.0
    return p or 0.0


def _cone(f: Facts) -> bool:
    return f.convex and f.interval.value.lo >= 0


def _added(args: tuple[Facts, ...]) -> tuple[float, Interval] | None:
    """Sums of powers of one p, and nonnegative constants."""
    powers = {a.powers[0] for a in args if a.powers is not None}
    if len(powers) != 1 or any(
        a.powers is None and not (a.constant and a.interval.value.lo >= 0) for a in args
    ):
        return None
    rest = [a.powers[1] if a.powers is not None else a.interval.value for a in args]
    total = opened(Interval(sum(c.lo for c in rest), sum(c.hi for c in rest), any(c.lo_open for c in rest)))
    return powers.pop(), total


def root_of_powers(expr: ir.Apply, args: tuple[Facts, ...], facts: Facts) -> Facts:
    """``(c + sum g^p)^q`` with pq >= 1, where composition alone sees a concave function of a convex one."""
    base = args[0]
    if base.powers is None or facts.convex:
        return facts
    q = exponent(expr, args)
    p, rest = base.powers
    if p * q < 1 - ROUNDING:
        return facts
    draft = Draft(expr=expr, args=args, leaves=facts.leaves, parts=facts.parts)
    draft.propose(
        "below", ZERO, "power sums", f"a power {p * q:g} of a {p:g}-norm", (base.below, base.interval)
    )
    if (
        abs(p * q - 1) < ROUNDING
        and p == 2
        and base.smooth
        and base.gradient.value.finite
        and not base.restricted
    ):
        steep = root(times(Amount(0.5), base.gradient.value))
        draft.propose(
            "lipschitz", steep, "power sums", "|grad g|^2 <= 2 L_g g for a smooth g >= 0", (base.gradient,)
        )
        if rest.positive and rest.lo > 0:
            bent = times(base.gradient.value, amount(0.5 / rest.lo**0.5))
            draft.propose(
                "gradient", bent, "power sums", f"the root of at least {rest.lo:g}", (base.gradient,)
            )
            draft.propose(
                "differentiable",
                True,
                "smooth of smooth",
                "the root of a positive number",
                (base.differentiable,),
            )
    return combine(facts, draft.finish())


# -------------------------------------------------------------------------------------- other forms
def perspective(expr: ir.Expr, a: Facts, b: Facts, facts: Facts) -> Facts:
    """``a / b`` for a sum of squares (or higher powers) over a positive concave function."""
    if facts.convex or a.powers is None or a.powers[0] < 2 or not b.concave or b.interval.value.lo < 0:
        return facts
    draft = Draft(expr=expr, args=(a, b), leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    draft.propose(
        "below",
        ZERO,
        "quadratic over linear",
        f"a sum of powers {a.powers[0]:g} over a positive {b.curvature} function",
        (a.below, b.above, b.interval),
    )
    return combine(facts, draft.finish())


def square_of(f: Facts) -> atoms.Atom | None:
    """The atom that is the square of f, of its ``inner``: of ``norm2(u)``, ``sumsq``; of ``max(0,
    u)``, ``sqhinge``."""
    if f.inner is not None:
        atom = atoms.of(f.expr)
    else:
        atom = None
    if atom is None:
        return None
    return atoms.get("sqhinge" if atom.extreme else atom.squared)


def squared_part(
    expr: ir.Expr, arg: Facts, entries: Callable[[ir.Shape], float], facts: Facts, free: Any
) -> Facts:
    """``norm2(u)^2`` is ``sumsq(u)``, ``pos(u)^2`` is ``sqhinge(u)``, ``abs(u)^2`` is ``square(u)``."""
    inner, atom = arg.inner, square_of(arg)
    if inner is None or atom is None:
        return facts
    norm = isinstance(atom, atoms.ArrayAtom)
    size = entries(inner.expr.shape if norm else expr.shape)
    square = compose(expr, atom, (inner,), (size,), 1.0 if norm else size, None if norm else free)
    return combine(renamed(square, "square of a norm" if norm else "positive part"), facts)


def radial(expr: ir.Expr, atom: atoms.Atom, args: tuple[Facts, ...], facts: Facts) -> Facts:
    """``f(|u|)``, ``f(norm2(u))``, ``f(max(0, u))`` for a smooth f whose slope at 0 is 0: it passes
    over the kink at 0.

    Where f' is Lipschitz with constant L, so is the gradient of f(|u|) in u: its curvatures are
    f''(r) and f'(r) / r <= L.
    """
    if args:
        inner = args[0].inner
    else:
        inner = None
    if facts.smooth or inner is None or not inner.smooth or any(not a.constant for a in args[1:]):
        return facts
    where, varying = tuple(a.interval.value for a in args), (True, *(False for _ in args[1:]))
    bend = atom.gradient_lipschitz(*where, varying=varying)
    if bend is None or not _flat_at_0(atom, expr, args, varying):
        return facts
    draft = Draft(expr=expr, args=args, leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    reason = f"{atom.name} is smooth, and its slope at 0 is 0"
    draft.propose("differentiable", True, "radial", reason, [inner.differentiable, args[0].interval])
    slope = amount(atom.lipschitz(*where, argument=0))
    curved = plus(
        times(amount(bend), inner.lipschitz.value, inner.lipschitz.value), times(slope, inner.gradient.value)
    )
    draft.propose("gradient", curved, "radial", reason, [inner.lipschitz, inner.gradient, args[0].interval])
    return combine(facts, draft.finish())


def _flat_at_0(atom: atoms.Atom, expr: ir.Expr, args: tuple[Facts, ...], varying: tuple[bool, ...]) -> bool:
    """f'(0) = 0 from the right: a power above 1, or no steeper near 0 than its curvature there allows."""
    if isinstance(expr, ir.Apply) and exponent(expr, args) > 1:
        return True
    near = (Interval(0.0, NEAR_0), *(a.interval.value for a in args[1:]))
    bend = atom.gradient_lipschitz(*near, varying=varying)
    return bend is not None and atom.lipschitz(*near, argument=0) <= bend * NEAR_0 * (1 + 1e-6)


def _away_from_zero(x: Facts) -> tuple[Fact, str] | None:
    """Why the size of x is convex: x has one sign, and bends away from 0."""
    if x.convex and x.interval.value.lo >= 0:
        return x.below, "convex and nonnegative"
    if x.concave and x.interval.value.hi <= 0:
        return x.above, "concave and nonpositive"
    return None


def quadratic_form(
    expr: ir.Expr, x: Facts, matrix: Facts, spectrum: Spectrum | None, facts: Facts, standing: Standing
) -> Facts:
    """``x' A x``, with the spectrum of (A + A')/2 where it is known."""
    if spectrum is None:
        return facts
    draft = Draft(expr=expr, args=(x,), leaves=facts.leaves, parts=facts.parts)
    where = f"the eigenvalues of A lie in [{spectrum.least:.3g}, {spectrum.largest:.3g}]"
    low, high = spectrum.negative, spectrum.positive
    lies = interval(-inf if low.value else 0.0, inf if high.value else 0.0)
    forgiven = Standing.ESTIMATED if low.rounding or high.rounding else standing
    draft.propose("interval", lies, "quadratic form", where, standing=forgiven)
    steep = times(x.lipschitz.value, x.lipschitz.value)
    if x.affine:
        top = amount(2 * max(abs(spectrum.least), abs(spectrum.largest)))
        for kind, end in (("below", low), ("above", high)):
            curved = times(Amount(2.0), end, steep)
            draft.propose(kind, curved, "quadratic form", where, (x.lipschitz,), standing=standing)
        draft.propose("differentiable", True, "quadratic form", where, (x.differentiable,))
        draft.propose(
            "gradient", times(top, steep), "quadratic form", where, (x.lipschitz,), standing=standing
        )
    elif (size := _away_from_zero(x)) is not None:
        fact, said = size
        entries = matrix.interval.value
        for kind, end, signed in (("below", low, entries.lo >= 0), ("above", high, entries.hi <= 0)):
            if end.zero and signed:
                reason = (
                    f"{where}, its entries have one sign, and x is {said}, so that it grows with "
                    "the entries of x"
                )
                curved = rounded(ZERO, inf if end.rounding else 0.0)
                draft.propose(
                    kind,
                    curved,
                    "quadratic form",
                    reason,
                    (fact, x.interval, matrix.interval),
                    standing=standing,
                )
    return combine(facts, draft.finish())
