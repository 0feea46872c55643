"""Reductions over an index (averages, sums, extremes and others), each by what its kind declares."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, Protocol

from fccomodel.core import ir
from fccomodel.library import atoms, reductions, sets
from fccomodel.library.amounts import NONE, ONE, SOME, ZERO, Amount, amount, most, plus, times
from fccomodel.library.atoms import Interval
from fccomodel.library.reductions import Reduction, Site
from fccomodel.library.reductions.sum import SUM
from fccomodel.structure.declarations import Declarations, opened
from fccomodel.structure.draft import FactsDraft
from fccomodel.structure.facts import NEITHER, Fact, Facts
from fccomodel.structure.rules import whole
from fccomodel.structure.rules.arithmetic import sign_of

#: (the curvature of its members that a reduction keeps, the one that it loses), by its own curvature
SIDES = {"convex": ("below", "above"), "concave": ("above", "below")}
#: A fix for a condition that depends on the variables.
SMOOTH_CONDITION = (
    "weigh the elements by a smooth function, such as sigmoid((a - b) / h), instead of a condition."
)
#: What an expression is with a finite value of each kind of fact.
WORDS = {"below": "convex", "above": "concave", "lipschitz": "Lipschitz", "gradient": "smooth"}


class See(Protocol):
    """The analyser, as far as this module uses it."""

    def __call__(self, expr: ir.Expr) -> Facts:
        """The facts of an expression."""

    def raised(self, facts: Facts) -> Facts:
        """The facts with a positive lower bound from the data, if there is one."""


def reduce(node: ir.Reduce, body: Facts, declared: Declarations, see: See) -> Facts:
    """The facts of a reduction from those of its body, which hold for every element."""
    if node.condition is not None:
        condition = see(node.condition)
        if not condition.constant:
            reason = "which elements it takes depends on the variables"
            return _unknown(node, (body, condition), reason, SMOOTH_CONDITION)
    options = {name: see(option) for name, option in node.options.items()}
    varying = [option for option in options.values() if not option.constant]
    if varying:
        return _unknown(node, (body, *varying), "its option depends on the variables", "make it a param.")
    kind = reductions.of(node)
    over_vectors = len(node.binders) == 1 and isinstance(node.binders[0].domain, ir.VectorSet)
    if over_vectors and kind.extreme:
        return _worst(node, body, declared, see)
    if kind.domain.lo > -inf and not kind.condition:
        body = see.raised(body)
    site = _site(node, body, declared, options)
    facts = _composed(node, kind, body, site, [option.interval for option in options.values()])
    return _with_logarithm(node, kind, body, site, facts)


def _site(node: ir.Reduce, body: Facts, declared: Declarations, options: dict[str, Facts]) -> Site:
    """The conditions under which a kind of reduction is used here."""
    count = 1.0
    filtered = node.condition is not None
    for binder in node.binders:
        domain = binder.domain
        count *= declared.count(domain)
        filtered = filtered or isinstance(domain, ir.RowSet) and domain.where is not None
    return Site(
        where=body.interval.value,
        size=body.size.value,
        count=count,
        every=not filtered and count < inf,
        options={name: option.interval.value for name, option in options.items()},
        random=body.random,
        compact=body.compact,
    )


def _unknown(node: ir.Reduce, args: tuple[Facts, ...], reason: str, fix: str, rule: str = "no rule") -> Facts:
    """Facts of a reduction about which nothing is known, with the reason and a fix."""
    leaves = {name: NEITHER for facts in args for name in facts.leaves}
    draft = FactsDraft(expr=node, args=args, leaves=leaves)
    not_convex = [facts.below for facts in args if not facts.below.holds]
    draft.both(NONE, rule, reason, not_convex, fix=fix)
    draft.propose("differentiable", False, rule, reason)
    return draft.finish()


# ------------------------------------------------------------------------------ by what is declared
def _composed(node: ir.Reduce, kind: Reduction, body: Facts, site: Site, options: list[Fact]) -> Facts:
    """The facts of a reduction of this kind from those of its members."""
    slope = kind.lipschitz(site)
    amiss, fix = kind.needs(site)
    draft = FactsDraft(expr=node, args=(body,), powers=_powers(kind, body), **_settled(kind, body))
    where = opened(kind.range(site))
    draft.propose("interval", where, "interval arithmetic", kind.words.get("interval", ""), [body.interval])
    if kind.homogeneous and not amiss:
        size = times(slope, body.size.value)
        draft.propose("size", size, kind.rule, "", [body.size])
    if body.constant:
        if not kind.homogeneous and body.size.value.finite:
            draft.propose("size", SOME, "finite data", "", [body.size])
        return draft.finish()
    if not amiss and kind.curvature(site) == "none":
        amiss = f"{kind.name} is neither convex nor concave"
        lipschitz = times(slope, body.lipschitz.value)
        draft.propose("lipschitz", lipschitz, kind.rule, "", [body.lipschitz])
    if amiss:
        _amiss(draft, kind, body, site, amiss, fix)
    elif kind.curvature(site) == "affine":
        _carry(draft, body, kind.rule, slope)
    elif kind.bend(site) is None:
        _kinked(draft, kind, body, site)
    else:
        _smooth(draft, kind, body, site, options)
    return draft.finish()


def _amiss(draft: FactsDraft, kind: Reduction, body: Facts, site: Site, why: str, fix: str) -> None:
    """Propose that no curvature is known; a smooth function of smooth members is still smooth."""
    rule = kind.words.get("unknown", "no rule")
    draft.leaves = {name: NEITHER for name in body.leaves}
    not_convex = [] if body.below.holds else [body.below]
    draft.both(NONE, rule, why, not_convex, fix=fix)
    if kind.condition or kind.bend(site) is None or not body.smooth:
        draft.propose("differentiable", False, rule, why)
        return
    draft.propose("differentiable", True, "smooth of smooth", "every factor is", [body.differentiable])
    gradient = SOME if body.compact else NONE
    draft.propose("gradient", gradient, "compact domain", "", [body.gradient])


def _powers(kind: Reduction, body: Facts) -> tuple[float, Interval] | None:
    """``Facts.powers`` of a reduction, or None.

    An average or a sum of sums of powers is one again, and so is a homogeneous polynomial of an
    affine function.
    """
    if kind.degree is not None and kind.degree > 1:
        if body.affine and not body.constant:
            return (float(kind.degree), Interval(0.0, 0.0))
        return None
    if not kind.additive:
        return None
    if body.powers is None or not kind.total:
        return body.powers
    p, constant = body.powers
    return p, Interval(0.0, inf if constant.hi > 0 else 0.0, False)


def _settled(kind: Reduction, body: Facts) -> dict[str, Any]:
    """The facts ``random`` and ``compact`` of a draft: an average over draws is not random, and an average
    of constants is a number.
    """
    if not kind.settles:
        return {}
    number = kind.linear and body.random and body.constant and body.size.value.finite
    return {"random": False, "compact": body.compact or number}


def _carry(
    draft: FactsDraft,
    body: Facts,
    rule: str,
    factor: Amount = ONE,
    kinds: tuple[str, ...] = ("below", "above", "lipschitz", "gradient"),
) -> None:
    """Propose what a nonnegative combination of members keeps; ``factor`` is the sum of its weights."""
    draft.leaves = body.leaves
    draft.parts = {name: times(factor, value) for name, value in body.parts.items()}
    for kind in kinds:
        fact = getattr(body, kind)
        value = times(factor, fact.value)
        word = WORDS[kind]
        is_curvature = kind in ("below", "above")
        lacks = ""
        if is_curvature and not value.zero:
            lacks = f"its members are not {word}"
        weakly = f"weakly {word}" if is_curvature else word
        if not value.finite:
            reason = f"its members are not known to be {weakly}"
            draft.propose(kind, value, "no rule", reason, [fact], lacks=lacks)
            continue
        if fact.value.zero:
            weakly = word
        draft.propose(kind, value, rule, f"every member is {weakly}", [fact], lacks=lacks)
    if "gradient" in kinds:
        if body.smooth:
            draft.propose("differentiable", True, rule, "every member is", [body.differentiable])
        else:
            reason = "its members are not known to be"
            draft.propose("differentiable", False, "kink", reason, [body.differentiable])


def _kinked(draft: FactsDraft, kind: Reduction, body: Facts, site: Site) -> None:
    """Propose the facts of an increasing function with kinks.

    It is no steeper and no more curved than its members times the sum of its weights.
    """
    curvature = kind.curvature(site)
    kept, lost = SIDES[curvature]
    _carry(draft, body, kind.rule, kind.lipschitz(site), kinds=(kept, "lipschitz"))
    lacks = f"{kind.name} is {curvature}"
    reason = f"{lacks}, and its members are more than one"
    draft.propose(lost, NONE, "no rule", reason, fix=kind.words.get("fix", ""), lacks=lacks)
    if "kink" in kind.words:
        uses = [body.differentiable, body.interval]
        draft.propose("differentiable", False, "kink", kind.words["kink"], uses)
    else:
        reason = f"{kind.name} has kinks where its members change places"
        draft.propose("differentiable", False, "kink", reason)


def _smooth(draft: FactsDraft, kind: Reduction, body: Facts, site: Site, options: list[Fact]) -> None:
    """Propose the facts of a smooth function R of members g.

    With the weights dR, its second derivative is dR . grad^2 g + d^2R[grad g, grad g].
    """
    slope = kind.lipschitz(site)
    bend = kind.bend(site)
    words = kind.words
    assert bend is not None
    kept, lost = SIDES[kind.curvature(site)]
    kept_end = getattr(body, kept)
    lost_end = getattr(body, lost)
    bent = times(bend, body.lipschitz.value, body.lipschitz.value)
    if kind.increasing:
        _carry(draft, body, kind.rule, slope, kinds=(kept, "lipschitz"))
        uses = [body.lipschitz, *options]
        curved = times(slope, lost_end.value)
        reason = words.get("bent", "")
        draft.propose(lost, plus(curved, bent), kind.rule, reason, [lost_end, *uses])
    else:
        draft.leaves = {name: NEITHER for name in body.leaves}
        draft.parts = {name: times(slope, value) for name, value in body.parts.items()}
        ends = [kept_end, lost_end]
        uses = [body.lipschitz, body.size]
        curved = times(slope, most(kept_end.value, lost_end.value))
        _of_any_sign(draft, kind, body, kept, curved, ends)
        draft.propose(lost, plus(curved, bent), kind.rule, "", [*ends, *uses])
        steep = times(slope, body.lipschitz.value)
        draft.propose("lipschitz", steep, kind.rule, "", uses)
    rule = kind.rule
    reason = words.get("differentiable", "as its members are")
    if not body.smooth:
        rule = "kink"
        reason = words.get("kink", reason)
    draft.propose("differentiable", body.smooth, rule, reason, [body.differentiable])
    of_members = times(slope, body.gradient.value)
    gradient = plus(of_members, bent)
    reason = words.get("gradient", "")
    draft.propose("gradient", gradient, kind.rule, reason, [body.gradient, *uses])


def _of_any_sign(
    draft: FactsDraft, kind: Reduction, body: Facts, kept: str, curved: Amount, ends: list[Fact]
) -> None:
    """Propose the curvature ``kept`` of a reduction whose weights have either sign.

    An affine body keeps it; for any other body the curvature from both sides counts.
    """
    if body.affine:
        reason = kind.words.get("affine", "its body is affine in the variables")
        draft.propose(kept, ZERO, kind.rule, reason, ends)
        return
    lacks = f"{kind.name} is not increasing"
    if "lacks" in kind.words:
        lacks = kind.words["lacks"].format(curvature=body.curvature)
    rule = kind.rule if curved.finite else "no rule"
    fix = kind.words.get("fix", "")
    draft.propose(kept, curved, rule, lacks, [*ends, body.size], lacks=lacks, fix=fix)


def _with_logarithm(node: ir.Reduce, kind: Reduction, body: Facts, site: Site, facts: Facts) -> Facts:
    """The facts with what follows from the logarithm.

    That of a sum or an average of e^h is a log-sum-exp, that of a product is a sum of logarithms.
    """
    if body.constant or node.shape:
        return facts
    if kind.additive and body.log is not None:
        log_of_sum = whole.log_sum(node, (body.log,), opened(kind.range(site)))
        return whole.attach_log(facts, log_of_sum)
    if kind.through_log is None or not body.interval.value.positive:
        return facts
    log = whole.logarithm(body)
    if log is None:
        return facts
    site_of_log = replace(
        site,
        where=log.interval.value,
        size=log.size.value,
        random=log.random,
        compact=log.compact,
    )
    return whole.attach_log(facts, _composed(node, kind.through_log, log, site_of_log, []))


# ------------------------------------------------------------------------------- worst distribution
def _worst(node: ir.Reduce, body: Facts, declared: Declarations, see: See) -> Facts:
    """The facts of an extreme over a vector q, such as ``max[q in Q] (sum[k] q[k] r[k] - mu * cost(q, p))``.

    If the weights q sum to 1 and the cost is a divergence of q alone, it is an increasing function of
    the risks r; any other body is analysed by the rules of the kind of reduction.
    """
    kind = reductions.of(node)
    facts = _composed(node, kind, body, _site(node, body, declared, {}), [])
    q = node.binders[0]
    average, cost, mu = _split(node.body)
    risk = _risk(average, q)
    if risk is None or kind.sign < 0 or not _weights(q.domain):
        if facts.below.holds:
            return replace(facts, below=replace(facts.below, rule="worst distribution"))
        return facts
    r = see(risk)
    draft = FactsDraft(expr=node, args=(r,))
    reason = "an average of the risks"
    draft.propose("interval", r.interval.value, "interval arithmetic", reason, [r.interval])
    if r.constant:
        return draft.finish()
    if cost is not None and not see(cost).constant:
        return facts
    _carry(draft, r, "worst distribution", kinds=("below", "lipschitz"))
    weight = Interval.point(1.0)
    if mu is not None:
        weight = see(mu).interval.value
    if cost is None:
        _unique_weights_lacking(draft, "the worst weights jump from group to group")
    elif not weight.positive:
        _unique_weights_lacking(draft, "the cost's factor is not known to be positive")
    else:
        _with_unique_weights(draft, r, weight)
    return draft.finish()


def _unique_weights_lacking(draft: FactsDraft, reason: str) -> None:
    """Propose that the extreme has kinks, since several weights may be the worst."""
    fix = "add - mu * kl(q, uniform(K)) with mu > 0: then it is smooth."
    draft.propose("differentiable", False, "kink", reason, fix=fix)


def _with_unique_weights(draft: FactsDraft, r: Facts, weight: Interval) -> None:
    """Propose what follows from unique worst weights; the gradient's constant is L_r + C_r^2 / mu."""
    rule = "worst distribution" if r.smooth else "kink"
    draft.propose("differentiable", r.smooth, rule, "the best q is unique", [r.differentiable])
    inverse = SOME
    if weight.lo > 0:
        inverse = amount(1 / weight.lo)
    slope_squared = times(inverse, r.lipschitz.value, r.lipschitz.value)
    bent = plus(r.gradient.value, slope_squared)
    draft.propose("gradient", bent, "worst distribution", "L_r + C_r^2 / mu", [r.gradient, r.lipschitz])


def _weights(domain: ir.Set) -> bool:
    """Whether the members of a set are nonnegative with sum 1."""
    if not isinstance(domain, ir.VectorSet):
        return False
    simple = sets.get(domain.family)
    return simple is not None and simple.cap is not None


def _split(body: ir.Expr) -> tuple[ir.Expr, ir.Expr | None, ir.Expr | None]:
    """(average, divergence, mu) if the body is ``average - mu * divergence``, else (body, None, None)."""
    if not isinstance(body, ir.Apply) or body.op != "sub":
        return body, None, None
    average, cost = body.args
    mu: ir.Expr | None = None
    if isinstance(cost, ir.Apply) and cost.op == "mul":
        left, right = cost.args
        if atoms.generator(right):
            mu, cost = left, right
        else:
            mu, cost = right, left
    if atoms.generator(cost):
        return average, cost, mu
    return body, None, None


def _risk(average: ir.Expr, q: ir.Binder) -> ir.Expr | None:
    """The expression r[k] if the average is ``sum[k] q[k] * r[k]``, or None."""
    if not isinstance(average, ir.Reduce) or average.kind != SUM.name:
        return None
    product = average.body
    if not isinstance(product, ir.Apply) or product.op != "mul":
        return None
    for weight, risk in (product.args, product.args[::-1]):
        if not isinstance(weight, ir.Item) or not isinstance(weight.base, ir.Element):
            continue
        if weight.base.binder is q and all(binder is not q for binder in ir.free_binders(risk)):
            return risk
    return None


__all__ = ["reduce", "sign_of"]
