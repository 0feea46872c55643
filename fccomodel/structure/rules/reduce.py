"""Reductions: averages, sums, extremes and the others over an index, each by what its kind declares."""

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
from fccomodel.structure.draft import Draft
from fccomodel.structure.facts import NEITHER, Fact, Facts
from fccomodel.structure.rules import whole
from fccomodel.structure.rules.arithmetic import sign_of

#: a convex function keeps convexity of its members, and loses what they have from above; a concave
#: one the other way round
SIDES = {"convex": ("below", "above"), "concave": ("above", "below")}


class See(Protocol):
    """Facts of other expressions; ``raised`` adds the least value that the data allow."""

    def __call__(self, expr: ir.Expr) -> Facts: ...

    def raised(self, facts: Facts) -> Facts: ...


def reduce(node: ir.Reduce, body: Facts, declared: Declarations, see: See) -> Facts:
    """The facts of a reduction from those of its body, which hold for every element."""
    if node.condition is None or see(node.condition).constant:
        moving = []
    else:
        moving = [see(node.condition)]
    if moving:
        fix = "weigh the elements by a smooth function, such as sigmoid((a - b) / h), instead of a condition."
        return _unknown(node, (body, *moving), "which elements it takes depends on the variables", fix)
    options = {name: see(option) for name, option in node.options.items()}
    varying = [o for o in options.values() if not o.constant]
    if varying:
        return _unknown(node, (body, *varying), "its option depends on the variables", "make it a param.")
    kind = reductions.of(node)
    if len(node.binders) == 1 and isinstance(node.binders[0].domain, ir.VectorSet) and kind.extreme:
        return _worst(node, body, declared, see)
    if kind.domain.lo > -inf and not kind.condition:
        body = see.raised(body)
    site = _site(node, body, declared, options)
    facts = _composed(node, kind, body, site, [o.interval for o in options.values()])
    return _with_logarithm(node, kind, body, site, facts)


def _site(node: ir.Reduce, body: Facts, declared: Declarations, options: dict[str, Facts]) -> Site:
    count = 1.0
    for binder in node.binders:
        count *= declared.count(binder.domain)
    filtered = any(isinstance(b.domain, ir.RowSet) and b.domain.where is not None for b in node.binders)
    return Site(
        where=body.interval.value,
        size=body.size.value,
        count=count,
        every=node.condition is None and count < inf and not filtered,
        options={name: option.interval.value for name, option in options.items()},
        random=body.random,
        compact=body.compact,
    )


def _unknown(node: ir.Reduce, args: tuple[Facts, ...], reason: str, fix: str, rule: str = "no rule") -> Facts:
    draft = Draft(expr=node, args=args, leaves={name: NEITHER for f in args for name in f.leaves})
    draft.both(NONE, rule, reason, [f for a in args for f in (a.below,) if not f.holds], fix=fix)
    draft.propose("differentiable", False, rule, reason)
    return draft.finish()


# ------------------------------------------------------------------------------ by what is declared
def _composed(node: ir.Reduce, kind: Reduction, body: Facts, site: Site, options: list[Fact]) -> Facts:
    """The facts of a kind of reduction of its members."""
    slope, (amiss, fix) = kind.lipschitz(site), kind.needs(site)
    draft = Draft(expr=node, args=(body,), powers=_powers(kind, body), **_settled(kind, body))
    where = opened(kind.range(site))
    draft.propose("interval", where, "interval arithmetic", kind.words.get("interval", ""), [body.interval])
    if kind.homogeneous and not amiss:
        draft.propose("size", times(slope, body.size.value), kind.rule, "", [body.size])
    if body.constant:
        if not kind.homogeneous and body.size.value.finite:
            draft.propose("size", SOME, "finite data", "", [body.size])
        return draft.finish()
    if not amiss and kind.curvature(site) == "none":
        amiss = f"{kind.name} is neither convex nor concave"
        draft.propose("lipschitz", times(slope, body.lipschitz.value), kind.rule, "", [body.lipschitz])
    if amiss:
        _amiss(draft, kind, body, site, amiss, fix)
    elif kind.curvature(site) == "affine":
        _carry(draft, body, kind.rule, slope)
    elif kind.bend(site) is None:
        _kinked(draft, kind, body, site)
    else:
        _smooth(draft, kind, body, site, options)
    return draft.finish()


def _amiss(draft: Draft, kind: Reduction, body: Facts, site: Site, why: str, fix: str) -> None:
    """No curvature is known; what is smooth of smooth members is so all the same."""
    rule = kind.words.get("unknown", "no rule")
    draft.leaves = {name: NEITHER for name in body.leaves}
    draft.both(NONE, rule, why, [] if body.below.holds else [body.below], fix=fix)
    if not kind.condition and kind.bend(site) is not None and body.smooth:
        draft.propose("differentiable", True, "smooth of smooth", "every factor is", [body.differentiable])
        draft.propose("gradient", SOME if body.compact else NONE, "compact domain", "", [body.gradient])
    else:
        draft.propose("differentiable", False, rule, why)


def _powers(kind: Reduction, body: Facts) -> tuple[float, Interval] | None:
    """An average or a sum of powers is one; so is a polynomial of an affine function, without a
    constant term."""
    if kind.degree is not None and kind.degree > 1:
        if body.affine and not body.constant:
            return (float(kind.degree), Interval(0.0, 0.0))
        return None
    if not kind.additive or body.powers is None or not kind.total:
        return body.powers if kind.additive else None
    return body.powers[0], Interval(0.0, inf if body.powers[1].hi > 0 else 0.0, False)


def _settled(kind: Reduction, body: Facts) -> dict[str, Any]:
    """An average of draws is no draw, and one that is constant is a number."""
    if not kind.settles:
        return {}
    number = kind.linear and body.random and body.constant and body.size.value.finite
    return {"random": False, "compact": body.compact or number}


def _carry(
    draft: Draft,
    body: Facts,
    rule: str,
    factor: Amount = ONE,
    kinds: tuple[str, ...] = ("below", "above", "lipschitz", "gradient"),
) -> None:
    """What a nonnegative combination of members keeps, times the sum of its weights."""
    draft.leaves = body.leaves
    draft.parts = {name: times(factor, value) for name, value in body.parts.items()}
    words = {"below": "convex", "above": "concave", "lipschitz": "Lipschitz", "gradient": "smooth"}
    for kind in kinds:
        fact = getattr(body, kind)
        value = times(factor, fact.value)
        if fact.value.zero:
            good = "is"
        elif kind in ("below", "above"):
            good = "is weakly"
        else:
            good = "is"
        if value.finite:
            reason = f"every member {good} {words[kind]}"
        else:
            reason = f"its members are not known to be {words[kind]}"
        if not value.finite and kind in ("below", "above"):
            reason = f"its members are not known to be weakly {words[kind]}"
        if value.zero or kind not in ("below", "above"):
            lacks = ""
        else:
            lacks = f"its members are not {words[kind]}"
        draft.propose(kind, value, rule if value.finite else "no rule", reason, [fact], lacks=lacks)
    if "gradient" in kinds:
        draft.propose(
            "differentiable",
            body.smooth,
            rule if body.smooth else "kink",
            "every member is" if body.smooth else "its members are not known to be",
            [body.differentiable],
        )


def _kinked(draft: Draft, kind: Reduction, body: Facts, site: Site) -> None:
    """An increasing function with kinks: no steeper than the sum of its weights, and no more curved."""
    word = kind.curvature(site)
    kept, lost = SIDES[word]
    _carry(draft, body, kind.rule, kind.lipschitz(site), kinds=(kept, "lipschitz"))
    lacks, fix = f"{kind.name} is {word}", kind.words.get("fix", "")
    draft.propose(lost, NONE, "no rule", f"{lacks}, and its members are more than one", fix=fix, lacks=lacks)
    if "kink" in kind.words:
        draft.propose(
            "differentiable", False, "kink", kind.words["kink"], [body.differentiable, body.interval]
        )
    else:
        draft.propose(
            "differentiable", False, "kink", f"{kind.name} has kinks where its members change places"
        )


def _smooth(draft: Draft, kind: Reduction, body: Facts, site: Site, options: list[Fact]) -> None:
    """A smooth function R: with the weights dR, the second derivative is dR . grad^2 g + d^2R[grad g,
    grad g]."""
    slope, bend, words = kind.lipschitz(site), kind.bend(site), kind.words
    assert bend is not None
    kept, lost = SIDES[kind.curvature(site)]
    bent = times(bend, body.lipschitz.value, body.lipschitz.value)
    ends = [getattr(body, kept), getattr(body, lost)]
    if kind.increasing:
        _carry(draft, body, kind.rule, slope, kinds=(kept, "lipschitz"))
        uses, curved = [body.lipschitz, *options], times(slope, ends[1].value)
        draft.propose(lost, plus(curved, bent), kind.rule, words.get("bent", ""), [ends[1], *uses])
    else:
        draft.leaves = {name: NEITHER for name in body.leaves}
        draft.parts = {name: times(slope, value) for name, value in body.parts.items()}
        uses, curved = [body.lipschitz, body.size], times(slope, most(ends[0].value, ends[1].value))
        _of_any_sign(draft, kind, body, kept, curved, ends)
        draft.propose(lost, plus(curved, bent), kind.rule, "", [*ends, *uses])
        draft.propose("lipschitz", times(slope, body.lipschitz.value), kind.rule, "", uses)
    reason = words.get("differentiable", "as its members are")
    if body.smooth:
        reason = reason
    else:
        reason = words.get("kink", reason)
    draft.propose(
        "differentiable", body.smooth, kind.rule if body.smooth else "kink", reason, [body.differentiable]
    )
    gradient = plus(times(slope, body.gradient.value), bent)
    draft.propose("gradient", gradient, kind.rule, words.get("gradient", ""), [body.gradient, *uses])


def _of_any_sign(
    draft: Draft, kind: Reduction, body: Facts, kept: str, curved: Amount, ends: list[Fact]
) -> None:
    """What is kept where weights have either sign: everything of an affine function, of any other what
    its curvature leaves."""
    if body.affine:
        draft.propose(
            kept, ZERO, kind.rule, kind.words.get("affine", "its body is affine in the variables"), ends
        )
        return
    if "lacks" in kind.words:
        lacks = kind.words["lacks"].format(curvature=body.curvature)
    else:
        lacks = f"{kind.name} is not increasing"
    rule = kind.rule if curved.finite else "no rule"
    draft.propose(kept, curved, rule, lacks, [*ends, body.size], lacks=lacks, fix=kind.words.get("fix", ""))


def _with_logarithm(node: ir.Reduce, kind: Reduction, body: Facts, site: Site, facts: Facts) -> Facts:
    """What follows from the logarithm: of a sum or average of e^h, a log-sum-exp; of a product, a sum
    of logarithms."""
    if body.constant or node.shape:
        return facts
    if kind.additive and body.log is not None:
        return whole.attach_log(facts, whole.log_sum(node, (body.log,), opened(kind.range(site))))
    if kind.through_log is None or not body.interval.value.positive:
        return facts
    log = whole.logarithm(body)
    if log is None:
        return facts
    site = replace(
        site, where=log.interval.value, size=log.size.value, random=log.random, compact=log.compact
    )
    return whole.attach_log(facts, _composed(node, kind.through_log, log, site, []))


# ------------------------------------------------------------------------------- worst distribution
def _worst(node: ir.Reduce, body: Facts, declared: Declarations, see: See) -> Facts:
    """``max[q in Q] (sum[k] q[k] r[k] - mu * divergence(q, p))``, or any body: an extreme over q."""
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
    draft = Draft(expr=node, args=(r,))
    draft.propose(
        "interval", r.interval.value, "interval arithmetic", "an average of the risks", [r.interval]
    )
    if r.constant or cost is not None and not see(cost).constant:
        if r.constant:
            return draft.finish()
        return facts
    _carry(draft, r, "worst distribution", kinds=("below", "lipschitz"))
    if mu is None:
        weight = Interval.point(1.0)
    else:
        weight = see(mu).interval.value
    if cost is None or not weight.positive:
        if cost is None:
            why = "the worst weights jump from group to group"
        else:
            why = "the cost's factor is not known to be positive"
        draft.propose(
            "differentiable",
            False,
            "kink",
            why,
            fix="add - mu * kl(q, uniform(K)) with mu > 0: then it is smooth.",
        )
    else:
        draft.propose(
            "differentiable",
            r.smooth,
            "worst distribution" if r.smooth else "kink",
            "the best q is unique",
            [r.differentiable],
        )
        if weight.lo > 0:
            inverse = amount(1 / weight.lo)
        else:
            inverse = SOME
        bent = plus(r.gradient.value, times(inverse, r.lipschitz.value, r.lipschitz.value))
        draft.propose("gradient", bent, "worst distribution", "L_r + C_r^2 / mu", [r.gradient, r.lipschitz])
    return draft.finish()


def _weights(domain: ir.Set) -> bool:
    """Its members are nonnegative with sum 1."""
    if isinstance(domain, ir.VectorSet):
        simple = sets.get(domain.family)
    else:
        simple = None
    return simple is not None and simple.cap is not None


def _split(body: ir.Expr) -> tuple[ir.Expr, ir.Expr | None, ir.Expr | None]:
    """(average, divergence, mu) of ``average - mu * divergence``."""
    if not (isinstance(body, ir.Apply) and body.op == "sub"):
        return body, None, None
    average, cost = body.args
    mu: ir.Expr | None = None
    if isinstance(cost, ir.Apply) and cost.op == "mul":
        if atoms.generator(cost.args[1]):
            mu, cost = cost.args
        else:
            mu, cost = cost.args[::-1]
    if atoms.generator(cost):
        return (average, cost, mu)
    return (body, None, None)


def _risk(average: ir.Expr, q: ir.Binder) -> ir.Expr | None:
    """r of ``sum[k] q[k] * r[k]``."""
    if not (
        isinstance(average, ir.Reduce)
        and average.kind == SUM.name
        and isinstance(average.body, ir.Apply)
        and average.body.op == "mul"
    ):
        return None
    for weight, risk in (average.body.args, average.body.args[::-1]):
        weighted = (
            isinstance(weight, ir.Item) and isinstance(weight.base, ir.Element) and weight.base.binder is q
        )
        if weighted and all(b is not q for b in ir.free_binders(risk)):
            return risk
    return None


__all__ = ["reduce", "sign_of"]
