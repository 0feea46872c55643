"""Averages, sums, extremes and the other reductions over an index."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Protocol

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.atoms import Interval
from fccomodel.structure import _whole
from fccomodel.structure._arithmetic import sign_of
from fccomodel.structure._context import Context, interval, opened
from fccomodel.structure._draft import Draft
from fccomodel.structure.amounts import NONE, ONE, SOME, ZERO, Amount, amount, most, plus, times
from fccomodel.structure.facts import NEITHER, Facts, combine


class See(Protocol):
    """Facts of other expressions; ``raised`` adds the least value that the data allow."""

    def __call__(self, expr: ir.Expr) -> Facts: ...

    def raised(self, facts: Facts) -> Facts: ...


def reduce(node: ir.Reduce, body: Facts, ctx: Context, see: See) -> Facts:
    """The facts of a reduction from those of its body, which hold for every element."""
    moving = [] if node.condition is None or see(node.condition).constant else [see(node.condition)]
    if moving:
        fix = "weigh the elements by a smooth function, such as sigmoid((a - b) / h), instead of a condition."
        return _unknown(node, (body, *moving), "which elements it takes depends on the variables", fix)
    options = {name: see(option) for name, option in node.options.items()}
    varying = [o for o in options.values() if not o.constant]
    if varying:
        return _unknown(node, (body, *varying), "its option depends on the variables", "make it a param.")
    if len(node.binders) == 1 and isinstance(node.binders[0].domain, ir.VectorSet) and node.kind in ("max", "min"):
        return _worst(node, body, see)
    match node.kind:
        case "E" | "mean":
            return _average(node, body)
        case "sum":
            return _sum(node, body, ctx)
        case "max" | "min" | "cvar" | "topk":
            return _extreme(node, body)
        case "logmeanexp":
            return _logmeanexp(node, body, options.get("theta"))
        case "pmean":
            return _power_mean(node, see.raised(body), options.get("p"))
        case "variance":
            return _variance(node, body)
        case "prod":
            return _prod(node, body, ctx)
    return _probability(node, body)


def _unknown(node: ir.Reduce, args: tuple[Facts, ...], reason: str, fix: str, rule: str = "no rule") -> Facts:
    draft = Draft(expr=node, args=args, leaves={name: NEITHER for f in args for name in f.leaves})
    draft.both(NONE, rule, reason, [f for a in args for f in (a.below,) if not f.holds], fix=fix)
    draft.propose("differentiable", False, rule, reason)
    return draft.finish()


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
        own = getattr(body, kind)
        value = times(factor, own.value)
        good = "is" if own.value.zero else "is weakly" if kind in ("below", "above") else "is"
        reason = f"every member {good} {words[kind]}" if value.finite else f"its members are not known to be {words[kind]}"
        if not value.finite and kind in ("below", "above"):
            reason = f"its members are not known to be weakly {words[kind]}"
        lacks = "" if value.zero or kind not in ("below", "above") else f"its members are not {words[kind]}"
        draft.propose(kind, value, rule if value.finite else "no rule", reason, [own], lacks=lacks)
    if "gradient" in kinds:
        draft.propose("differentiable", body.smooth, rule if body.smooth else "kink",
                      "every member is" if body.smooth else "its members are not known to be", [body.differentiable])  # fmt: skip


def _average(node: ir.Reduce, body: Facts) -> Facts:
    draft = Draft(
        expr=node, args=(body,), powers=body.powers, random=False, compact=body.compact or (body.random and _settled(body))
    )
    where = body.interval.value
    draft.propose("interval", where, "interval arithmetic", "an average lies where its members do", [body.interval])
    draft.propose("size", body.size.value, "expectation", "", [body.size])
    if body.constant:
        return draft.finish()
    _carry(draft, body, "expectation")
    facts = draft.finish()
    if body.log is not None and not node.shape:
        return _whole.attach_log(facts, _whole.log_sum(node, (body.log,), where))
    return facts


def _settled(body: Facts) -> bool:
    """A constant average of draws is a number."""
    return body.constant and body.size.value.finite


def _sum(node: ir.Reduce, body: Facts, ctx: Context) -> Facts:
    count = 1.0
    for binder in node.binders:
        count *= ctx.count(binder.domain)
    number = amount(count) if count < inf else SOME
    low, high = body.interval.value.lo, body.interval.value.hi
    filtered = any(isinstance(b.domain, ir.RowSet) and b.domain.where is not None for b in node.binders)
    full = node.condition is None and count < inf and not filtered
    lo = (low * count if full or low < 0 else 0.0) if low != 0 else 0.0
    hi = (high * count if full or high > 0 else 0.0) if high != 0 else 0.0
    powers = None if body.powers is None else (body.powers[0], Interval(0.0, inf if body.powers[1].hi > 0 else 0.0, False))
    draft = Draft(expr=node, args=(body,), powers=powers)
    where = opened(Interval(lo, hi, body.interval.value.positive and lo == 0, body.interval.value.negative and hi == 0))
    draft.propose("interval", where, "interval arithmetic", "", [body.interval])
    draft.propose("size", times(number, body.size.value), "total", "", [body.size])
    if body.constant:
        return draft.finish()
    _carry(draft, body, "total", number)
    facts = draft.finish()
    if body.log is not None and not node.shape:
        return _whole.attach_log(facts, _whole.log_sum(node, (body.log,), where))
    return facts


def _extreme(node: ir.Reduce, body: Facts) -> Facts:
    """``max``, ``min``, and means of the largest: an extreme of averages of the members, so no steeper and no more curved."""
    rule = {"max": "maximum", "min": "minimum"}.get(node.kind, "tail mean")
    draft = Draft(expr=node, args=(body,))
    draft.propose("interval", body.interval.value, "interval arithmetic", "", [body.interval])
    draft.propose("size", body.size.value, rule, "", [body.size])
    if body.constant:
        return draft.finish()
    kept, lost = ("above", "below") if node.kind == "min" else ("below", "above")
    _carry(draft, body, rule, kinds=(kept, "lipschitz"))
    word = "concave" if node.kind == "min" else "convex"
    fix = "bound each member by a constraint of its own." if node.kind == "min" else ""
    draft.propose(
        lost,
        NONE,
        "no rule",
        f"{node.kind} is {word}, and its members are more than one",
        fix=fix,
        lacks=f"{node.kind} is {word}",
    )
    draft.propose("differentiable", False, "kink", f"{node.kind} has kinks where its members change places")
    return draft.finish()


def _logmeanexp(node: ir.Reduce, body: Facts, theta: Facts | None) -> Facts:
    """``t log E e^(g/t)``: a log-sum-exp of g/t, times t."""
    draft = Draft(expr=node, args=(body,) if theta is None else (body, theta))
    draft.propose("interval", body.interval.value, "interval arithmetic", "", [body.interval])
    if body.constant:
        return draft.finish()
    t = Interval.point(1.0) if theta is None else theta.interval.value
    if t.lo < 0 or body.random and not body.convex:
        draft.leaves = {name: NEITHER for name in body.leaves}
        draft.both(NONE, "no rule", "theta is not known to be positive" if t.lo < 0 else "its draws have no bounds", [body.below])
        return draft.finish()
    _carry(draft, body, "log-mean-exp", NONE if body.random else ONE, kinds=("below", "lipschitz"))
    uses = [body.lipschitz] if theta is None else [body.lipschitz, theta.interval]
    inverse = amount(1 / t.lo) if t.lo > 0 else SOME
    variance = NONE if body.random else times(inverse, body.lipschitz.value, body.lipschitz.value)
    draft.propose("above", plus(body.above.value, variance), "log-mean-exp", "rho_g + C_g^2 / theta", [body.above, *uses])
    draft.propose(
        "differentiable",
        body.smooth,
        "log-mean-exp" if body.smooth else "kink",
        "as smooth as its members",
        [body.differentiable],
    )
    draft.propose("gradient", plus(body.gradient.value, variance), "log-mean-exp", "L_g + C_g^2 / theta", [body.gradient, *uses])
    return draft.finish()


def _power_mean(node: ir.Reduce, body: Facts, p: Facts | None) -> Facts:
    lies, power = body.interval.value, p.interval.value if p is not None else Interval.point(1.0)
    if lies.lo < 0 or not (power.lo >= 1 or 0 < power.lo and power.hi <= 1):
        why = (
            "its members are not known to be nonnegative" if lies.lo < 0 else "its p is not known to be at least 1, or in (0, 1]"
        )
        facts = _unknown(
            node,
            (body,),
            why,
            "make the members nonnegative: pos(..), abs(..)." if lies.lo < 0 else "give the param p bounds: p >= 1.",
        )
        return facts if not body.constant else replace(facts, leaves={})
    draft = Draft(expr=node, args=(body,))
    draft.propose("interval", lies, "interval arithmetic", "", [body.interval])
    if body.constant:
        return draft.finish()
    kept = "below" if power.lo >= 1 else "above"
    _carry(draft, body, "power mean", kinds=(kept, "lipschitz") if kept == "below" else (kept,))
    if lies.positive and body.smooth:
        draft.propose(
            "differentiable", True, "power mean", "its members are smooth and positive", [body.differentiable, body.interval]
        )
        draft.propose("gradient", SOME if body.compact else NONE, "compact domain", "", [body.gradient])
    else:
        draft.propose("differentiable", False, "kink", "a norm has a kink at 0", [body.differentiable, body.interval])
    return draft.finish()


def _variance(node: ir.Reduce, body: Facts) -> Facts:
    """Second derivative: 2 Cov(grad g) + 2 E (g - E g) grad^2 g; the first part is positive semidefinite."""
    draft = Draft(expr=node, args=(body,), random=False, compact=body.compact)
    lies = body.interval.value
    width = lies.hi - lies.lo
    draft.propose("interval", interval(0.0, width * width / 4), "interval arithmetic", "", [body.interval])
    if body.constant:
        if body.size.value.finite:
            draft.propose("size", SOME, "finite data", "", [body.size])
        return draft.finish()
    draft.leaves = {name: NEITHER for name in body.leaves}
    spread = amount(width) if width < inf else times(Amount(2.0), body.size.value)
    bent = times(Amount(2.0), spread, most(body.below.value, body.above.value))
    steep, curved = body.lipschitz.value, times(Amount(2.0), body.lipschitz.value, body.lipschitz.value)
    if body.affine:
        draft.propose("below", ZERO, "variance", "its body is affine in the variables", [body.below, body.above])
    else:
        lacks = f"the variance of a function that is {body.curvature}, not affine, need not be convex"
        fix = "take the variance of an affine function, or bound a convex one by E square(..)."
        rule = "variance" if bent.finite else "no rule"
        draft.propose("below", bent, rule, lacks, [body.below, body.above, body.size], lacks=lacks, fix=fix)
    draft.propose("above", plus(bent, curved), "variance", "", [body.below, body.above, body.lipschitz, body.size])
    draft.parts = {name: times(Amount(2.0), spread, value) for name, value in body.parts.items()}
    draft.propose("lipschitz", times(Amount(2.0), spread, steep), "variance", "", [body.lipschitz, body.size])
    draft.propose(
        "differentiable", body.smooth, "variance" if body.smooth else "kink", "as its members are", [body.differentiable]
    )
    gradient = plus(times(Amount(2.0), spread, body.gradient.value), curved)
    draft.propose(
        "gradient",
        gradient,
        "variance",
        "2 C_g^2, and where g is not affine its range times 2 L_g",
        [body.gradient, body.lipschitz, body.size],
    )
    facts = draft.finish()
    return replace(facts, powers=(2.0, Interval(0.0, 0.0))) if body.affine else facts


def _prod(node: ir.Reduce, body: Facts, ctx: Context) -> Facts:
    lies = body.interval.value
    where = interval(0.0, 1.0 if lies.hi <= 1 else inf, lies.positive) if lies.lo >= 0 else interval()
    if body.constant:
        draft = Draft(expr=node, args=(body,))
        draft.propose("interval", where, "interval arithmetic", "", [body.interval])
        draft.propose("size", SOME, "finite data", "", [body.size])
        return draft.finish()
    fix = "minimise its logarithm, the sum of the logarithms." if lies.lo >= 0 else ""
    facts = _unknown(node, (body,), "a product over a set has a known curvature only where its logarithm has", fix)
    if body.smooth:
        draft = Draft(expr=node, args=(body,), leaves=facts.leaves)
        draft.propose("interval", where, "interval arithmetic", "", [body.interval])
        draft.propose("differentiable", True, "smooth of smooth", "every factor is", [body.differentiable])
        draft.propose("gradient", SOME if body.compact else NONE, "compact domain", "", [body.gradient])
        facts = combine(draft.finish(), facts)
    found = _whole.logarithm(body) if lies.positive else None
    if found is None:
        return facts
    total = _sum(node, found, ctx)
    return _whole.attach_log(facts, total)


def _probability(node: ir.Reduce, body: Facts) -> Facts:
    if body.constant:
        draft = Draft(expr=node, args=(body,))
        draft.propose("interval", Interval(0.0, 1.0), "interval arithmetic")
        return draft.finish()
    fix = "replace prob[..] (a > b) by E[..] sigmoid((a - b) / h), a smooth surrogate, or by a convex one: E[..] hinge(..)."
    why = f"{node.kind} of an event that depends on the variables jumps or is flat"
    facts = _unknown(node, (body,), why, fix, "probability")
    return replace(facts, interval=replace(facts.interval, value=Interval(0.0, 1.0), rule="interval arithmetic"))


# ----------------------------------------------------------------------------------------------------- worst distribution
def _worst(node: ir.Reduce, body: Facts, see: See) -> Facts:
    """``max[q in Q] (sum[k] q[k] r[k] - mu * divergence(q, p))``, or any body: an extreme over q."""
    facts = _extreme(node, body)
    q = node.binders[0]
    average, cost, mu = _split(node.body)
    risk = _risk(average, q)
    if risk is None or node.kind != "max" or q.domain.family not in ("simplex", "capped_simplex"):  # type: ignore[attr-defined]
        return replace(facts, below=replace(facts.below, rule="worst distribution")) if facts.below.holds else facts
    r = see(risk)
    draft = Draft(expr=node, args=(r,))
    draft.propose("interval", r.interval.value, "interval arithmetic", "an average of the risks", [r.interval])
    if r.constant or cost is not None and not see(cost).constant:
        return draft.finish() if r.constant else facts
    _carry(draft, r, "worst distribution", kinds=("below", "lipschitz"))
    weight = Interval.point(1.0) if mu is None else see(mu).interval.value
    if cost is None or not weight.positive:
        why = "the worst weights jump from group to group" if cost is None else "the cost's factor is not known to be positive"
        draft.propose("differentiable", False, "kink", why, fix="add - mu * kl(q, uniform(K)) with mu > 0: then it is smooth.")
    else:
        draft.propose(
            "differentiable", r.smooth, "worst distribution" if r.smooth else "kink", "the best q is unique", [r.differentiable]
        )
        inverse = amount(1 / weight.lo) if weight.lo > 0 else SOME
        bent = plus(r.gradient.value, times(inverse, r.lipschitz.value, r.lipschitz.value))
        draft.propose("gradient", bent, "worst distribution", "L_r + C_r^2 / mu", [r.gradient, r.lipschitz])
    return draft.finish()


def _split(body: ir.Expr) -> tuple[ir.Expr, ir.Expr | None, ir.Expr | None]:
    """(average, divergence, mu) of ``average - mu * divergence``."""
    if not (isinstance(body, ir.Apply) and body.op == "sub"):
        return body, None, None
    average, cost = body.args
    mu: ir.Expr | None = None
    if isinstance(cost, ir.Apply) and cost.op == "mul":
        mu, cost = cost.args if atoms.generator(cost.args[1]) else cost.args[::-1]
    return (average, cost, mu) if atoms.generator(cost) else (body, None, None)


def _risk(average: ir.Expr, q: ir.Binder) -> ir.Expr | None:
    """r of ``sum[k] q[k] * r[k]``."""
    if not (
        isinstance(average, ir.Reduce)
        and average.kind == "sum"
        and isinstance(average.body, ir.Apply)
        and average.body.op == "mul"
    ):
        return None
    for weight, risk in (average.body.args, average.body.args[::-1]):
        own = isinstance(weight, ir.Item) and isinstance(weight.base, ir.Element) and weight.base.binder is q
        if own and all(b is not q for b in ir.free_binders(risk)):
            return risk
    return None


__all__ = ["reduce", "sign_of"]
