"""Replaces a maximum over weights by its dual, which has no weights.

    max over q in a simplex of sum_k q_k r_k - mu D(q)

If D is the KL divergence, the dual is a log-mean-exp. Other divergences give a minimum over a threshold.
Without D, the maximum is the largest r_k, or a tail mean if the weights have a cap. A condition
D(q, p) <= r has a dual of its own (``_balls``).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial

from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.core.rewrite import Rewriter, const, operands, rewrite_problem, substitute
from fccomodel.core.rewrite import apply as make
from fccomodel.library import atoms, reductions, sets
from fccomodel.library.coefficients import at_zero, coefficients
from fccomodel.library.identities.entries import by_entries, entry
from fccomodel.library.reductions import Reduction
from fccomodel.library.reductions.cvar import CVAR
from fccomodel.library.reductions.logmeanexp import LOGMEANEXP
from fccomodel.library.reductions.max import MAX
from fccomodel.library.reductions.mean import MEAN
from fccomodel.library.reductions.min import MIN
from fccomodel.library.reductions.sum import SUM
from fccomodel.normal_form import errors
from fccomodel.normal_form.reformulations import _balls
from fccomodel.normal_form.reformulations._balls import Ball
from fccomodel.normal_form.reformulations._base import Constant, Recover, Reformulation, same
from fccomodel.normal_form.reformulations._conjugate import Conjugate, conjugate
from fccomodel.normal_form.reformulations._features import is_inner_maximum, is_largest
from fccomodel.normal_form.reformulations._monotone import range_of, sign_of, wanted_small
from fccomodel.normal_form.reformulations._threshold import Thresholds


@dataclass(frozen=True, eq=False, kw_only=True)
class Divergence:
    """A divergence: the sum or mean (``kind``) over k of ``phi``.

    phi        a function of ``hole``, which stands for q[k], q[k] times the number of members, or
               q[k] / p[k]
    unit       the conjugate phi* is evaluated at (r - s) / (mu * unit)
    closed     whether the dual has no threshold, as that of KL
    reference  the weights p[k] if phi is a function of q[k] / p[k]; None: uniform, or none
    """

    phi: ir.Expr
    hole: ir.Hole
    kind: Reduction
    unit: ir.Expr
    closed: bool = False
    reference: ir.Expr | None = None


@dataclass(frozen=True, kw_only=True)
class RobustParts:
    """The parts of ``max over q of sum[k in K] q[k] r - mu * divergence(q)``.

    total       the sum
    risk        r
    domain      the set of q
    mu          the factor of the divergence, or None without a divergence
    divergence  the divergence, or None
    ball        the distributions that q is among, or None without a condition
    """

    total: ir.Reduce
    risk: ir.Expr
    domain: ir.VectorSet
    mu: ir.Expr | None = None
    divergence: Divergence | None = None
    ball: Ball | None = None


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    maxima = [node for node in problem.expressions(ir.Reduce) if is_inner_maximum(node)]
    if not maxima:
        return problem, same, []
    problem = _spelled(problem)
    maxima = [node for node in problem.expressions(ir.Reduce) if is_inner_maximum(node)]
    duals = _duals(problem, maxima, constant)
    thresholds = Thresholds(problem)
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The dual of a maximum over weights, or None for any other node."""
        if not (isinstance(node, ir.Reduce) and is_inner_maximum(node)):
            return None
        parts = tilted(node, problem)
        assert parts is not None
        common = dataclasses.replace(parts.total, body=parts.risk, options={}, span=node.span)
        if parts.ball is not None:
            words, dual = _balls.dual(parts.ball, node, common, thresholds)
        elif parts.divergence is None:
            words, dual = _plain_dual(parts, common)
        elif parts.divergence.closed:
            words, dual = _kl_dual(parts, common)
        else:
            phi_dual = duals[id(node.binders[0])]
            words, dual = _threshold_dual(parts, common, phi_dual, thresholds.new(node))
        sentences.append(f"{problem.text(node)} = {words}")
        return dual

    new = rewrite_problem(problem, rule)
    return (
        dataclasses.replace(new, variables=thresholds.variables, sets=thresholds.sets),
        thresholds.recover(),
        sentences,
    )


def _duals(problem: ir.Problem, maxima: list[ir.Reduce], constant: Constant) -> dict[int, Conjugate]:
    """The conjugates of the divergences whose dual has a threshold, by the identity of their binder.

    F0602 is raised for maxima without a known dual, F0601 if a larger value may be wanted.
    """
    small = wanted_small(problem)
    duals: dict[int, Conjugate] = {}
    refused: list[Diagnostic] = []
    for node in maxima:
        parts = tilted(node, problem)
        if parts is None:
            refused.append(errors.no_dual(problem, node))
            continue
        if parts.ball is not None and id(node) not in small:
            refused.append(errors.not_bounded_above(problem, node, "the dual of a divergence"))
        divergence = parts.divergence
        if divergence is None or divergence.closed:
            continue
        dual = conjugate(divergence.phi, divergence.hole, constant, lambda e: sign_of(e, problem))
        if dual is None:
            refused.append(errors.no_conjugate(problem, node, list(_unsigned(divergence, problem))))
        elif id(node) not in small:
            refused.append(errors.not_bounded_above(problem, node, "the dual of a divergence"))
        else:
            duals[id(node.binders[0])] = dual
    if refused:
        refuse(*refused, source=problem.source)
    return duals


def _plain_dual(parts: RobustParts, common: ir.Reduce) -> tuple[str, ir.Expr]:
    """The dual of a maximum without a divergence, and words for it: a tail mean or a maximum."""
    if parts.domain.args:
        words = "cvar(tail = alpha) r, the dual of the capped simplex"
        return words, CVAR.over(common, tail=parts.domain.args[-1])
    return "max r, the value at a vertex of the simplex", MAX.over(common)


def _kl_dual(parts: RobustParts, common: ir.Reduce) -> tuple[str, ir.Expr]:
    """The dual of a KL penalty, and words for it: a log-mean-exp, with weights p if it has a reference."""
    assert parts.mu is not None and parts.divergence is not None
    reference = parts.divergence.reference
    if reference is None:
        words = "mu log mean exp(r / mu), the dual of the KL penalty"
        return words, LOGMEANEXP.over(common, theta=parts.mu)
    share = make("mul", ir.Size(dim=parts.domain.shape[0]), reference)
    risk = make("add", parts.risk, make("mul", parts.mu, make("log", share)), span=parts.risk.span)
    words = "mu log sum p exp(r / mu), the dual of the KL penalty"
    return words, LOGMEANEXP.over(dataclasses.replace(common, body=risk), theta=parts.mu)


def _threshold_dual(
    parts: RobustParts, common: ir.Reduce, phi_dual: Conjugate, s: ir.Expr
) -> tuple[str, ir.Expr]:
    """The dual of any other divergence with the threshold s, and words for it."""
    assert parts.mu is not None and parts.divergence is not None
    kind, reference, span = parts.divergence.kind, parts.divergence.reference, common.span
    t = make("div", make("sub", parts.risk, s), make("mul", parts.mu, parts.divergence.unit))
    body = dataclasses.replace(phi_dual(t), span=parts.risk.span)
    name = kind.name
    if reference is not None:
        name = f"{name} p"
        body = make("mul", reference, body, span=parts.risk.span)
    penalty = make("mul", parts.mu, kind.over(common, body), span=span)
    words = f"min over s of s + mu {name} phi*((r - s) / mu), phi* the conjugate over q >= 0"
    return words, make("add", s, penalty, span=span)


def _unsigned(divergence: Divergence, problem: ir.Problem) -> dict[str, None]:
    """The texts of the factors in a divergence, without the weight, whose sign is not known."""
    parts: dict[str, None] = {}
    stack = [divergence.phi]
    while stack:
        node = stack.pop()
        if any(n is divergence.hole for n in ir.walk(node)):
            stack.extend(node.children)
        elif not isinstance(node, ir.Const) and sign_of(node, problem) == 0:
            parts[problem.text(node)] = None
    return parts


def _spelled(problem: ir.Problem) -> ir.Problem:
    """The problem with vector operations on weights written by entries.

    ``dot(q, r)`` becomes ``sum[k in K] q[k] * r[k]``.
    """

    def rule(node: ir.Expr) -> ir.Expr | None:
        """A maximum over weights with its body by entries, or None for any other node."""
        if not (isinstance(node, ir.Reduce) and is_inner_maximum(node)) or len(node.binders) > 1:
            return None
        (q,) = node.binders
        if not isinstance(q.domain, ir.VectorSet) or len(q.domain.shape) != 1:
            return None
        shape = q.domain.shape
        along = _places(problem, shape[0])

        def apart(part: ir.Expr) -> ir.Expr | None:
            """A part that depends on the weights by entries, or None."""
            alike = all(child.shape in ((), shape) for child in part.children)
            if alike and q in ir.free_binders(part):
                return by_entries(part, along)
            return None

        body = _less_a_cost(node.body, q, along, Rewriter(apart)) or _as_weighted_sum(node.body, q, along)
        spelled = dataclasses.replace(node, body=body or Rewriter(apart)(node.body))
        return _as_largest(spelled, q) or spelled

    return rewrite_problem(problem, rule)


def _as_largest(node: ir.Reduce, q: ir.Binder) -> ir.Expr | None:
    """``-max[q in Q] sum[k in K] q[k] * -r`` for ``min[q in Q] sum[k in K] q[k] * r``, or None."""
    body = node.body
    if node.kind != MIN.name or not isinstance(body, ir.Reduce) or body.kind != SUM.name:
        return None
    if len(body.binders) != 1 or body.condition is not None:
        return None
    (k,) = body.binders
    risk = _beside(body.body, q, k)
    if risk is None:
        return None
    weight = next(factor for factor in operands(body.body, "mul") if _entry(factor, q, k))
    term = make("mul", weight, make("neg", risk, span=risk.span), span=body.span)
    largest = dataclasses.replace(node, kind=MAX.name, body=dataclasses.replace(body, body=term))
    return make("neg", largest, span=node.span)


def _less_a_cost(body: ir.Expr, q: ir.Binder, along: ir.Set, by_entry: Rewriter) -> ir.Expr | None:
    """``sum[k in K] q[k] * c[k] - cost`` for a difference whose first part is linear in the weights.

    None for any other body.
    """
    if not isinstance(body, ir.Apply) or body.op != "sub":
        return None
    total = _as_weighted_sum(body.args[0], q, along)
    if total is None:
        return None
    return dataclasses.replace(body, args=(total, by_entry(body.args[1])))


def _as_weighted_sum(body: ir.Expr, q: ir.Binder, along: ir.Set) -> ir.Expr | None:
    """``sum[k in K] q[k] * c[k]`` for a body that is linear in the weights, as ``dot(x, M @ q)`` is.

    None if the body has another form, or is such a sum already.
    """
    if isinstance(body, ir.Reduce) and len(body.binders) == 1:
        return None
    if isinstance(body, ir.Reduce):
        return _of_several(body, q)
    factor = coefficients(body, q)
    base = at_zero(body, q)
    if factor is None or factor.array is None or not isinstance(base, ir.Const) or base.value != 0:
        return None
    k = ir.Binder(name="k", kind="in", domain=along)
    weight = ir.Item(base=ir.Element(binder=q, shape=factor.array.shape), indices=(ir.Element(binder=k),))
    term = make("mul", weight, entry(factor.array, k), span=body.span)
    if factor.number is not None:
        term = make("mul", factor.number, term, span=body.span)
    return ir.Reduce(kind=SUM.name, binders=(k,), body=term, span=body.span)


def _of_several(body: ir.Reduce, q: ir.Binder) -> ir.Expr | None:
    """``sum[k in K] q[k] * (sum[a in A] ..)`` for ``sum[a in A, k in K] ..`` with one factor ``q[k]``."""
    if body.kind != SUM.name or body.condition is not None:
        return None
    for k in body.binders:
        risk = None
        if isinstance(body.body, ir.Apply) and body.body.op == "mul":
            risk = _beside(body.body, q, k)
        if risk is None:
            continue
        others = tuple(binder for binder in body.binders if binder is not k)
        weight = next(f for f in operands(body.body, "mul") if _entry(f, q, k))
        inner = dataclasses.replace(body, binders=others, body=risk)
        term = make("mul", weight, inner, span=body.span)
        return dataclasses.replace(body, binders=(k,), body=term)
    return None


def _places(problem: ir.Problem, dim: ir.Dim) -> ir.Set:
    """The set of indices along a vector."""
    if isinstance(dim, str) and dim in problem.sets:
        return problem.sets[dim]
    last = ir.Const(value=float(dim)) if isinstance(dim, int) else ir.Size(dim=dim)
    return ir.ValueSet(name=str(dim), low=const(1), high=last)


def tilted(node: ir.Reduce, problem: ir.Problem) -> RobustParts | None:
    """The parts of a maximum over weights in a (capped) simplex, or None if it has another form."""
    domain = node.binders[0].domain
    if not is_largest(node) or len(node.binders) > 1 or not _is_simplex(domain):
        return None
    assert isinstance(domain, ir.VectorSet)
    body, q = node.body, node.binders[0]
    cost: ir.Expr | None = None
    if isinstance(body, ir.Apply) and body.op == "sub":
        body, cost = body.args
    if not isinstance(body, ir.Reduce) or body.kind != SUM.name:
        return None
    if len(body.binders) != 1 or body.condition is not None:
        return None
    risk = _beside(body.body, q, body.binders[0])
    if risk is None:
        return None
    parts = RobustParts(total=body, risk=risk, domain=domain)
    if node.condition is not None:
        return _in_ball(node, parts, cost, problem)
    if cost is None:
        return parts
    mu, of_q = _factored(cost, q)
    divergence = _divergence(of_q, q, body)
    has_dual = divergence is not None and not domain.args
    if not has_dual or sign_of(mu, problem) <= 0 or ir.variables_of(mu) or mu.shape:
        return None
    return dataclasses.replace(parts, mu=mu, divergence=divergence)


def _is_simplex(domain: ir.Set) -> bool:
    """Whether a set is a simplex, perhaps with a cap."""
    simple = sets.get(domain.family) if isinstance(domain, ir.VectorSet) else None
    return simple is not None and simple.cap is not None


def _in_ball(
    node: ir.Reduce, parts: RobustParts, cost: ir.Expr | None, problem: ir.Problem
) -> RobustParts | None:
    """The parts with the ball of distributions that a condition is, or None."""
    (k,) = parts.total.binders
    assert node.condition is not None
    ball = _balls.recognise(node.condition, node.binders[0], k, lambda e: range_of(e, problem))
    if ball is None or cost is not None or parts.domain.args:
        return None
    return dataclasses.replace(parts, ball=ball)


def _beside(product: ir.Expr, q: ir.Binder, k: ir.Binder) -> ir.Expr | None:
    """The product of the factors other than ``q[k]``, or None.

    It is None unless exactly one factor is ``q[k]`` and no other depends on q.
    """
    factors = operands(product, "mul")
    others = [f for f in factors if not _entry(f, q, k)]
    if len(others) != len(factors) - 1 or any(q in ir.free_binders(f) for f in others):
        return None
    if others:
        risk = others[0]
    else:
        risk = const(1)
    for factor in others[1:]:
        risk = make("mul", risk, factor, span=product.span)
    return risk


def _factored(cost: ir.Expr, q: ir.Binder) -> tuple[ir.Expr, ir.Expr]:
    """(mu, of_q) such that the cost is ``mu * of_q`` and mu does not depend on q."""
    if isinstance(cost, ir.Apply) and cost.op in ("mul", "div"):
        first, second = cost.args
        if q not in ir.free_binders(first) and cost.op == "mul":
            mu, rest = _factored(second, q)
            return make("mul", first, mu), rest
        if q not in ir.free_binders(second):
            mu, rest = _factored(first, q)
            return make(cost.op, mu, second), rest
    return const(1), cost


def _divergence(cost: ir.Expr, q: ir.Binder, total: ir.Reduce) -> Divergence | None:
    """The divergence that a cost is, with its index bound by ``total``, or None.

    It is ``kl`` or ``chi2`` from weights without variables, or a sum or mean of a function of each
    weight.
    """
    (k,) = total.binders
    t = ir.Hole(name="t")
    if generator := atoms.generator(cost):
        of, reference = cost.children
        if not _is(of, q) or q in ir.free_binders(reference) or ir.variables_of(reference):
            return None
        phi, closed = atoms.expression(generator, {"t": t}), generator == "t * log(t)"
        divergence = partial(Divergence, phi=phi, hole=t, unit=const(1), closed=closed)
        if _balls.is_uniform(reference):
            return divergence(kind=MEAN)
        return divergence(kind=SUM, reference=entry(reference, k))
    if not isinstance(cost, ir.Reduce) or cost.kind not in (SUM.name, MEAN.name):
        return None
    if len(cost.binders) != 1 or cost.condition is not None:
        return None
    if cost.binders[0].domain is not k.domain and cost.binders[0].domain.name != k.domain.name:
        return None
    at_k = substitute(cost.body, {cost.binders[0]: ir.Element(binder=k)})
    phi = Rewriter(lambda e: t if _entry(e, q, k) else None)(at_k)
    if q in ir.free_binders(phi) or ir.variables_of(phi):
        return None
    kind = reductions.of(cost)
    unit: ir.Expr = const(1)
    if not kind.total:
        unit = make("div", unit, ir.Size(dim=k.domain.name))
    return Divergence(phi=phi, hole=t, kind=kind, unit=unit)


def _is(expr: ir.Expr, binder: ir.Binder) -> bool:
    """Whether an expression is the element of a binder."""
    return isinstance(expr, ir.Element) and expr.binder is binder


def _entry(expr: ir.Expr, q: ir.Binder, k: ir.Binder) -> bool:
    """Whether an expression is ``q[k]``."""
    if not isinstance(expr, ir.Item) or len(expr.indices) != 1:
        return False
    return _is(expr.base, q) and _is(expr.indices[0], k)


reformulation = Reformulation(
    name="robust",
    order=25,
    title="robust dual",
    needs="a divergence that is convex in q, its conjugate; with a threshold: a value that the problem "
    "wants small",
    formula="max_{q in simplex} q.r - mu sum_k phi(q_k) = min_s s + mu sum_k phi*((r_k - s)/mu), phi* "
    "over q >= 0;  KL(q, 1/n): "
    "mu log mean exp(r/mu), s in closed form, KL(q, p): with p for weights;  over the capped "
    "simplex: cvar;  without phi: max;  D(q, p) <= r: the duals of balls",
    apply=_apply,
    removes=("inner maximum",),
    gives=(LOGMEANEXP.name, CVAR.name, "worst case"),
    cite="alexr-2025 section 1; chi2 is phi(t) = (t-1)^2, so phi*(s) = (s+2)_+^2/4 - 1, of which eq. (3) "
    "there prints half",
)
