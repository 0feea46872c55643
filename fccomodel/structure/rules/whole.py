"""Properties of whole expressions that composition misses: log-convexity, powers of p-norms, perspectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, log
from typing import Any

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.amounts import NONE, SOME, ZERO, Amount, amount, most, plus, root, rounded, times
from fccomodel.library.atoms import Interval
from fccomodel.structure.declarations import interval, opened
from fccomodel.structure.draft import FactsDraft
from fccomodel.structure.estimates.spectrum import DECLARED_DEFINITE, Spectrum
from fccomodel.structure.facts import KINDS, Fact, Facts, Standing, combine
from fccomodel.structure.rules.arithmetic import add, merged, renamed, scale
from fccomodel.structure.rules.compose import compose

#: products of exponents within this distance of 1 count as 1: a value changes by at most its own rounding
ROUNDING = 1e-15
NEAR_0 = 1e-6  # length of the interval from 0 whose slope is compared with its curvature


# --------------------------------------------------------------------------------------- logarithms
def logarithm(f: Facts) -> Facts | None:
    """The facts of log f for a positive f, known or by composition, or None."""
    if f.log is not None:
        return f.log
    atom = atoms.get("log")
    if atom is None or not f.interval.value.positive or f.expr.shape:
        return None
    return compose(f.expr, atom, (f,))


def leaning_on(facts: Facts, args: tuple[Facts, ...]) -> Facts:
    """The facts with the ranges of some arguments among the facts that they use."""
    if not args:
        return facts
    ranges = tuple(arg.interval for arg in args)
    standing = max(fact.standing for fact in ranges)
    changes = {}
    for kind in KINDS:
        fact = getattr(facts, kind)
        weaker = max(fact.standing, standing)
        changes[kind] = replace(fact, uses=(*fact.uses, *ranges), standing=weaker)
    return facts.with_facts(changes)


def log_sum(expr: ir.Expr, terms: tuple[Facts, ...], whole: Interval) -> Facts:
    """The facts of the logarithm of a nonnegative combination of e^h: a log-sum-exp of the terms h.

    Its gradient is an average of those of the terms. Its second derivative adds their variance, at
    most the largest |grad h|^2. For draws without bounds only convexity is known, because the
    weights follow the exponents. ``whole`` is the range of the combination.
    """
    draft = FactsDraft(expr=expr, args=terms)
    draft.propose("interval", _log_range(whole), "interval arithmetic")
    varying = [term for term in terms if not term.constant]
    if not varying:
        return draft.finish()
    draft.leaves = merged([(term.leaves, 1) for term in varying])
    parts = {}
    for name in draft.leaves:
        of_terms = [term.parts[name] for term in varying if name in term.parts]
        parts[name] = most(*of_terms)
    draft.parts = parts
    convexity = most(*(term.below.value for term in varying))
    concavity = most(*(term.above.value for term in varying))
    steep = most(*(term.lipschitz.value for term in varying))
    gradient = most(*(term.gradient.value for term in varying))
    if any(term.random for term in terms):
        draft.parts = {}
        steep = gradient = NONE
        if not convexity.zero:
            convexity = NONE
    slopes = [term.lipschitz for term in varying]
    reason = "its slope is an average of the exponents' slopes"
    draft.propose("lipschitz", steep, "log-convex", reason, slopes)
    reason = "every exponent is weakly convex"
    if convexity.zero:
        reason = "every exponent is convex"
    elif not convexity.finite:
        reason = "an exponent is of unknown curvature"
    draft.propose("below", convexity, "log-convex", reason, [term.below for term in varying])
    variance = times(steep, steep)
    is_one_term = len(terms) == 1 and not isinstance(expr, ir.Reduce)
    if is_one_term:
        variance = ZERO
    uses = [*(term.above for term in varying), *slopes]
    draft.propose("above", plus(concavity, variance), "log-convex", "", uses)
    smooth = all(term.smooth for term in varying)
    rule = "log-convex" if smooth else "kink"
    draft.propose("differentiable", smooth, rule, "", [term.differentiable for term in varying])
    uses = [*(term.gradient for term in varying), *slopes]
    reason = "L_h + C_h^2 over the exponents h"
    draft.propose("gradient", plus(gradient, variance), "log-convex", reason, uses)
    return draft.finish()


def _log_range(where: Interval) -> Interval:
    """The range of the logarithm of a nonnegative number in an interval."""
    low = -inf
    if where.lo > 0:
        low = log(where.lo)
    high = inf
    if 0 < where.hi < inf:
        high = log(where.hi)
    return interval(low, high, where.lo_open, where.hi_open)


def attach_log(facts: Facts, log_facts: Facts | None) -> Facts:
    """The facts with those of the expression's logarithm, and what follows from them."""
    if log_facts is None:
        return facts
    exp = atoms.get("exp")
    assert exp is not None
    through = compose(facts.expr, exp, (log_facts,))
    if log_facts.convex and not log_facts.constant:
        reason = f"its logarithm is {log_facts.curvature}"
        below = replace(through.below, rule="log-convex", reason=reason, uses=(log_facts.below,))
        through = replace(through, below=below)
    through = replace(through, leaves=dict(log_facts.leaves), interval=facts.interval, size=facts.size)
    return combine(replace(facts, log=log_facts), through)


def apply_log(expr: ir.Apply, args: tuple[Facts, ...], facts: Facts) -> Facts | None:
    """The facts of the logarithm of an operation, or None.

    The arguments are positive, or facts of their logarithms are known.
    """
    if expr.shape or facts.constant:
        return None
    log_facts = _applied(expr, args, facts)
    atom = atoms.of(expr)
    is_declared = atom is not None and bool(atom.logarithm)
    if log_facts is None or is_declared:
        return log_facts
    positive_args = tuple(arg for arg in args if arg.log is None)
    return leaning_on(log_facts, positive_args)


def _applied(expr: ir.Apply, args: tuple[Facts, ...], facts: Facts) -> Facts | None:
    """``apply_log`` by the first rule that fits.

    The rules are: constant weights, a declared logarithm, products and quotients, sums, powers, maxima.
    """
    structural = any(arg.log is not None for arg in args)
    positive = all(arg.interval.value.positive for arg in args)
    if expr.op == "mul" and structural and not positive:
        factor, varying = _constant_first(args)
        if factor.constant and factor.interval.value.lo >= 0 and varying.log is not None:
            return _weighted(expr, factor, varying.log)
    atom = atoms.of(expr)
    if atom is not None and atom.logarithm:
        return _direct(expr, atom, args)
    if expr.op in ("mul", "div") and positive:
        return _log_of_product(expr, args)
    if expr.op == "add" and structural and all(_has_logarithm(arg) or _null(arg) for arg in args):
        return _log_of_sum(expr, args, facts)
    if atom is None:
        return None
    if atom.exponent is not None:
        base = args[0]
        is_power = base.log is not None or atom.exponent != -1 and base.interval.value.positive
        if is_power:
            return _log_of_power(expr, atom.exponent, args)
    if atom.extreme > 0 and structural and positive:
        terms = _logarithms(args)
        if terms is not None:
            return compose(expr, atom, terms)
    return None


def _log_of_product(expr: ir.Apply, args: tuple[Facts, ...]) -> Facts | None:
    """The logarithm of a product or a quotient, from those of its factors."""
    factors = _logarithms(args)
    if factors is None:
        return None
    sign = 1 if expr.op == "mul" else -1
    return add(expr, factors, (1, sign), 1.0)


def _has_logarithm(facts: Facts) -> bool:
    """Whether the logarithm of an expression is known, or the expression is positive."""
    return facts.log is not None or facts.interval.value.positive


def _log_of_sum(expr: ir.Apply, args: tuple[Facts, ...], facts: Facts) -> Facts | None:
    """The logarithm of a sum, from those of its terms that are not 0."""
    nonzero = tuple(arg for arg in args if not _null(arg))
    terms = _logarithms(nonzero)
    if terms is None:
        return None
    return log_sum(expr, terms, facts.interval.value)


def _constant_first(args: tuple[Facts, ...]) -> tuple[Facts, Facts]:
    """The two factors of a product, the constant one first if there is one."""
    left, right = args
    if left.constant:
        return left, right
    return right, left


def _logarithms(args: tuple[Facts, ...]) -> tuple[Facts, ...] | None:
    """The facts of all logarithms, or None if one of them is unknown."""
    logs = []
    for arg in args:
        log_facts = logarithm(arg)
        if log_facts is None:
            return None
        logs.append(log_facts)
    return tuple(logs)


def _log_of_power(expr: ir.Apply, exponent: float | str, args: tuple[Facts, ...]) -> Facts | None:
    """The facts of log(u^p) = p log u for a constant p, or None; a named exponent is the second argument."""
    p = args[1] if isinstance(exponent, str) else number(expr, exponent)
    log_facts = logarithm(args[0])
    if log_facts is None or not p.constant:
        return None
    return scale(expr, p, log_facts, 1.0)


def _direct(expr: ir.Apply, atom: atoms.Atom, args: tuple[Facts, ...]) -> Facts | None:
    """The facts of an atom's declared logarithm: its argument or another atom of its arguments, or None."""
    by_name = dict(zip(atom.names(len(args)), expr.args, strict=True))
    formula = atoms.expression(atom.logarithm, by_name)
    if formula is expr.args[0]:
        return args[0]
    outer = atoms.of(formula)
    if outer is not None and formula.children == expr.args:
        return compose(expr, outer, args)
    return None


def _weighted(expr: ir.Expr, factor: Facts, h: Facts) -> Facts:
    """The facts of log(c e^h) = log c + h for a constant c >= 0; it is minus infinity if c is 0."""
    draft = FactsDraft(expr=expr, args=(factor, h), leaves=h.leaves, parts=h.parts)
    for kind in ("below", "above", "lipschitz", "gradient", "differentiable"):
        fact = getattr(h, kind)
        draft.propose(kind, fact.value, fact.rule, fact.reason, [fact])
    return draft.finish()


def _null(f: Facts) -> bool:
    """Whether the value is known to be 0."""
    return f.interval.value.is_point and f.interval.value.lo == 0


def number(expr: ir.Expr, value: float) -> Facts:
    """The facts of a number, as a part of the expression that a rule analyses."""
    draft = FactsDraft(expr=expr, compact=True)
    draft.propose("interval", Interval.point(value), "constant")
    return draft.finish()


def log_of(expr: ir.Apply, arg: Facts, facts: Facts) -> Facts:
    """The facts of ``log(arg)`` or ``log1p(arg)``, with those known of the argument's logarithm."""
    if arg.log is None:
        return facts
    log_facts = arg.log
    if expr.op == "log1p":
        one = number(expr, 0.0)  # the logarithm of 1
        whole = interval(1.0, 1 + arg.interval.value.hi)
        log_facts = log_sum(expr, (one, arg.log), whole)
    return combine(facts, credited(replace(log_facts, expr=expr), expr))


def credited(facts: Facts, expr: ir.Expr) -> Facts:
    """The facts of a rewritten expression as facts about ``expr``, which the user wrote."""
    changes = {}
    for kind in KINDS:
        fact = getattr(facts, kind)
        if fact.subject is expr:
            changes[kind] = fact
        else:
            changes[kind] = replace(fact, subject=expr)
    return facts.with_facts(changes)


# ------------------------------------------------------------------------------------------- powers
def powers_of(expr: ir.Expr, args: tuple[Facts, ...]) -> tuple[float, Interval] | None:
    """(p, c) if the expression is c + a sum of p-th powers, or None.

    The bases are convex and >= 0, or affine with an even p.
    """
    if not isinstance(expr, ir.Apply):
        return None
    zero = Interval(0.0, 0.0)
    base = args[0]
    p = 2.0
    if expr.op != "sumsq":
        p = exponent(expr, args)
    if base.powers is not None:
        inner_p, _ = base.powers
        if p * inner_p >= 1:
            return p * inner_p, zero
    is_even = p % 2 == 0
    if p >= 1 and (_convex_nonnegative(base) or is_even and _even_base(base)):
        return p, zero
    match expr.op:
        case "sqhinge" if base.convex:
            return 2.0, zero
        case "add":
            return _added(args)
        case "sum" | "mean" if base.powers is not None:
            _, constant = base.powers
            return _scaled(base.powers, constant.positive)
        case "mul" | "div":
            return _multiplied(expr, args)
    return None


def _multiplied(expr: ir.Apply, args: tuple[Facts, ...]) -> tuple[float, Interval] | None:
    """(p, c) of a product with, or a quotient by, a nonnegative constant, or None."""
    factor, varying = _constant_first(args)
    where = factor.interval.value
    if not factor.constant or where.lo < 0 or varying.powers is None:
        return None
    divides = expr.op == "div" and factor is not args[1]
    if divides:
        return None
    _, constant = varying.powers
    return _scaled(varying.powers, constant.positive and where.positive)


def _scaled(powers: tuple[float, Interval], positive: bool) -> tuple[float, Interval]:
    """(p, c) of a nonnegative multiple, whose c is only known to be 0, positive or nonnegative."""
    p, constant = powers
    if constant.hi == 0:
        return p, Interval(0.0, 0.0)
    return p, Interval(0.0, inf, positive)


def exponent(expr: ir.Apply, args: tuple[Facts, ...]) -> float:
    """The number p if the expression is ``u^p``; otherwise 0."""
    atom = atoms.of(expr)
    p = None if atom is None else atom.exponent
    if isinstance(p, str):
        where = args[1].interval.value
        if where.is_point:
            return where.lo
        return 0.0
    return p or 0.0


def _convex_nonnegative(f: Facts) -> bool:
    """Whether f is convex and nowhere negative."""
    return f.convex and f.interval.value.lo >= 0


def _even_base(f: Facts) -> bool:
    """Whether every even power of f is convex: f is affine, or concave and nonpositive."""
    return f.affine or _convex_nonnegative(f.negated())


def _added(args: tuple[Facts, ...]) -> tuple[float, Interval] | None:
    """(p, c) of a sum of sums of p-th powers with one p and nonnegative constants, or None."""
    powers = set()
    constants = []
    for arg in args:
        if arg.powers is not None:
            p, constant = arg.powers
            powers.add(p)
            constants.append(constant)
        elif arg.constant and arg.interval.value.lo >= 0:
            constants.append(arg.interval.value)
        else:
            return None
    if len(powers) != 1:
        return None
    low = sum(constant.lo for constant in constants)
    high = sum(constant.hi for constant in constants)
    low_open = any(constant.lo_open for constant in constants)
    return powers.pop(), opened(Interval(low, high, low_open))


def root_of_powers(expr: ir.Apply, args: tuple[Facts, ...], facts: Facts) -> Facts:
    """The facts of ``(c + sum g^p)^q`` with pq >= 1.

    Composition alone sees a concave function of a convex one.
    """
    base = args[0]
    if base.powers is None or facts.convex:
        return facts
    q = exponent(expr, args)
    p, rest = base.powers
    if p * q < 1 - ROUNDING:
        return facts
    draft = FactsDraft(expr=expr, args=args, leaves=facts.leaves, parts=facts.parts)
    reason = f"a power {p * q:g} of a {p:g}-norm"
    draft.propose("below", ZERO, "power sums", reason, (base.below, base.interval))
    is_norm = abs(p * q - 1) < ROUNDING and p == 2
    if is_norm and base.smooth and base.gradient.value.finite and not base.restricted:
        uses = (base.gradient,)
        steep = root(times(Amount(0.5), base.gradient.value))
        reason = "|grad g|^2 <= 2 L_g g for a smooth g >= 0"
        draft.propose("lipschitz", steep, "power sums", reason, uses)
        if rest.positive and rest.lo > 0:
            bent = times(base.gradient.value, amount(0.5 / rest.lo**0.5))
            draft.propose("gradient", bent, "power sums", f"the root of at least {rest.lo:g}", uses)
            reason = "the root of a positive number"
            draft.propose("differentiable", True, "smooth of smooth", reason, (base.differentiable,))
    return combine(facts, draft.finish())


# -------------------------------------------------------------------------------------- other forms
def perspective(expr: ir.Expr, a: Facts, b: Facts, facts: Facts) -> Facts:
    """The facts of ``a / b`` for a sum of squares (or higher powers) over a positive concave function."""
    if facts.convex or a.powers is None or a.powers[0] < 2 or not b.concave or b.interval.value.lo < 0:
        return facts
    draft = FactsDraft(expr=expr, args=(a, b), leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    reason = f"a sum of powers {a.powers[0]:g} over a positive {b.curvature} function"
    draft.propose("below", ZERO, "quadratic over linear", reason, (a.below, b.above, b.interval))
    return combine(facts, draft.finish())


def square_of(f: Facts) -> atoms.Atom | None:
    """The atom whose value at ``f.inner`` is the square of f, or None.

    For ``norm2(u)`` it is ``sumsq``, for ``max(0, u)`` it is ``sqhinge``.
    """
    if f.inner is None:
        atom = None
    else:
        atom = atoms.of(f.expr)
    if atom is None:
        return None
    return atoms.get("sqhinge" if atom.extreme else atom.squared)


def squared_part(
    expr: ir.Expr, arg: Facts, entries: Callable[[ir.Shape], float], facts: Facts, free: Any
) -> Facts:
    """The facts of a square through the atom that it is.

    ``norm2(u)^2`` is ``sumsq(u)``, ``pos(u)^2`` is ``sqhinge(u)``, ``abs(u)^2`` is ``square(u)``.
    """
    inner, atom = arg.inner, square_of(arg)
    if inner is None or atom is None:
        return facts
    if isinstance(atom, atoms.ArrayAtom):
        square = compose(expr, atom, (inner,), (entries(inner.expr.shape),), 1.0, None)
        return combine(renamed(square, "square of a norm"), facts)
    size = entries(expr.shape)
    square = compose(expr, atom, (inner,), (size,), size, free)
    return combine(renamed(square, "positive part"), facts)


def radial(expr: ir.Expr, atom: atoms.Atom, args: tuple[Facts, ...], facts: Facts) -> Facts:
    """The facts of ``f(|u|)``, ``f(norm2(u))`` or ``f(max(0, u))`` for a smooth f whose slope at 0 is 0.

    It has no kink at 0. If f' is Lipschitz with constant L, so is the gradient of f(|u|) in u: its
    curvatures are f''(r) and f'(r) / r <= L.
    """
    if not args or facts.smooth:
        return facts
    first, *others = args
    inner = first.inner
    if inner is None or not inner.smooth:
        return facts
    if not all(other.constant for other in others):
        return facts
    where = tuple(a.interval.value for a in args)
    varying = (True, *(False for _ in others))
    bend = atom.gradient_lipschitz(*where, varying=varying)
    if bend is None or not _flat_at_0(atom, expr, args, varying):
        return facts
    draft = FactsDraft(expr=expr, args=args, leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    reason = f"{atom.name} is smooth, and its slope at 0 is 0"
    draft.propose("differentiable", True, "radial", reason, [inner.differentiable, first.interval])
    slope = amount(atom.lipschitz(*where, argument=0))
    from_f = times(amount(bend), inner.lipschitz.value, inner.lipschitz.value)
    from_inner = times(slope, inner.gradient.value)
    uses = [inner.lipschitz, inner.gradient, first.interval]
    draft.propose("gradient", plus(from_f, from_inner), "radial", reason, uses)
    return combine(facts, draft.finish())


def _flat_at_0(atom: atoms.Atom, expr: ir.Expr, args: tuple[Facts, ...], varying: tuple[bool, ...]) -> bool:
    """Whether f'(0) = 0 from the right.

    f is a power above 1, or no steeper near 0 than its curvature there allows.
    """
    if isinstance(expr, ir.Apply) and exponent(expr, args) > 1:
        return True
    others = [a.interval.value for a in args[1:]]
    near = (Interval(0.0, NEAR_0), *others)
    bend = atom.gradient_lipschitz(*near, varying=varying)
    return bend is not None and atom.lipschitz(*near, argument=0) <= bend * NEAR_0 * (1 + 1e-6)


def _away_from_zero(x: Facts) -> tuple[Fact, str] | None:
    """The fact and the words for why |x| is convex: x has one sign and bends away from 0; or None."""
    if x.convex and x.interval.value.lo >= 0:
        return x.below, "convex and nonnegative"
    if x.concave and x.interval.value.hi <= 0:
        return x.above, "concave and nonpositive"
    return None


def quadratic_form(
    expr: ir.Expr, x: Facts, matrix: Facts, spectrum: Spectrum | None, facts: Facts, standing: Standing
) -> Facts:
    """The facts of ``x' A x``, with the spectrum of (A + A')/2 if it is known."""
    if spectrum is None:
        return facts
    draft = FactsDraft(expr=expr, args=(x,), leaves=facts.leaves, parts=facts.parts)
    if spectrum is DECLARED_DEFINITE:
        where, standing = "A is declared positive semidefinite", Standing.PROVED
    else:
        where = f"the eigenvalues of A lie in [{spectrum.least:.3g}, {spectrum.largest:.3g}]"
    low, high = spectrum.negative, spectrum.positive
    lies = interval(-inf if low.value else 0.0, inf if high.value else 0.0)
    forgiven = Standing.ESTIMATED if low.rounding or high.rounding else standing
    draft.propose("interval", lies, "quadratic form", where, standing=forgiven)
    steep = times(x.lipschitz.value, x.lipschitz.value)
    if x.affine:
        size = max(abs(spectrum.least), abs(spectrum.largest))
        top = amount(2 * size) if size < inf else SOME
        for kind, end in (("below", low), ("above", high)):
            curved = times(Amount(2.0), end, steep)
            draft.propose(kind, curved, "quadratic form", where, (x.lipschitz,), standing=standing)
        draft.propose("differentiable", True, "quadratic form", where, (x.differentiable,))
        draft.propose(
            "gradient", times(top, steep), "quadratic form", where, (x.lipschitz,), standing=standing
        )
    elif (why := _away_from_zero(x)) is not None:
        fact, words = why
        entries = matrix.interval.value
        reason = (
            f"{where}, its entries have one sign, and x is {words}, so that it grows with the entries of x"
        )
        uses = (fact, x.interval, matrix.interval)
        for kind, end, one_sign in (("below", low, entries.lo >= 0), ("above", high, entries.hi <= 0)):
            if end.zero and one_sign:
                curved = rounded(ZERO, inf if end.rounding else 0.0)
                draft.propose(kind, curved, "quadratic form", reason, uses, standing=standing)
    return combine(facts, draft.finish())
