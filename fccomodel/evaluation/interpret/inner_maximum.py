"""Maxima and minima over simplexes, such as ``max[q in simplex(K)] (...)``.

The maximiser is computed exactly; the value and its derivative are the body's at it (Danskin's theorem).

With r the coefficients of the affine part, p the reference distribution and (t)_+ = max(0, t):

    r.q                   on the simplex: the largest r;  on the capped simplex: the mean of the worst ones
    r.q - mu kl(q, p)     q_k proportional to p_k exp(r_k / mu), cut at the cap
    r.q - mu chi2(q, p)   q_k = p_k (1 + (r_k - nu) / (2 mu))_+, cut at the cap; the number nu makes the sum 1

A condition that keeps q within a divergence of p has its own maximisers (``ball_maxima``).

A sum of concave functions of one entry each is maximised through its dual, which has one variable. Any
other concave body is maximised by accelerated projected ascent, or by ellipsoids if that does not
reach the accuracy, as for a body with kinks (``concave_maxima``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.evaluation import errors
from fccomodel.evaluation.sets import elements
from fccomodel.evaluation.sets.axes import Env, Named, spread
from fccomodel.library import atoms, reductions
from fccomodel.library.sets.capped_simplex import project_capped
from fccomodel.numerics import ball_maxima, concave_maxima

if TYPE_CHECKING:
    from fccomodel.evaluation.interpret.evaluator import Evaluator

#: Largest relative error of a maximum.
ACCURACY = 1e-10
#: Distance from 1 up to which the sum of a reference distribution counts as 1.
REFERENCE_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class InnerForm:
    """A body ``affine(q) - weight * divergence(q, reference)``.

    divergence  the divergence's generator; empty if the body is affine
    weight      1 if None
    """

    divergence: str = ""
    weight: ir.Expr | None = None
    reference: ir.Expr | None = None


def value(evaluator: Evaluator, node: ir.Reduce, env: Env) -> Named:
    """The largest value of the body over the set, or the least for ``min``.

    Its derivative is the body's at the maximiser, which is constant.
    """
    if len(node.binders) != 1 or not reductions.of(node).extreme:
        refuse(errors.over_vectors(node.kind, node.span), source=evaluator.bound.problem.source)
    (binder,) = node.binders
    at = maximiser(evaluator, node, env)
    return evaluator.value(node.body, {**env, binder: at})


def maximiser(evaluator: Evaluator, node: ir.Reduce, env: Env) -> Named:
    """The weights q at which the body is largest, for every combination of the axes that it depends on."""
    (binder,) = node.binders
    domain = binder.domain
    assert isinstance(domain, ir.VectorSet)
    bound, sign = evaluator.bound, reductions.of(node).sign
    shape = elements.shape(bound, domain.shape)
    lengths = evaluator.axes(node, env)
    if node.condition is not None:
        lengths = {**lengths, **evaluator.axes(node.condition, env)}
    axes = tuple(sorted(lengths))
    full_shape = (*(lengths[axis] for axis in axes), *shape)
    uniform = 1 / max(1, math.prod(shape))
    start = torch.full(full_shape, uniform, dtype=torch.float64)
    most = cap(evaluator, domain, shape[0])

    def slope(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Values and gradients of the body times the sign at q, for every combination of the axes."""
        q = q.detach().requires_grad_(True)
        with torch.enable_grad():
            values = evaluator.value(node.body, {**env, binder: Named(q, axes)})
            full = sign * spread(values, axes).expand(start.shape[: len(axes)])
            (gradient,) = torch.autograd.grad(full.sum(), q, allow_unused=True)
        if gradient is None:
            gradient = torch.zeros_like(q)
        return full.detach(), gradient

    if node.condition is not None:
        return Named(_in_ball(evaluator, node, env, slope, axes, start), axes)
    form = recognise(node.body, binder)
    if form is None or (form.divergence and sign < 0):
        return Named(_concave(evaluator, node, slope, start, most), axes)
    if not form.divergence:
        return Named(vertex(slope(start)[1], most), axes)
    assert form.reference is not None
    reference = evaluator.value(form.reference, env)
    p = spread(reference, axes).expand(start.shape).detach()
    mu = torch.ones((), dtype=torch.float64)
    if form.weight is not None:
        weight = evaluator.value(form.weight, env)
        mu = spread(weight, axes).detach().to(torch.float64)
    mu = mu.expand(start.shape[: len(axes)]).unsqueeze(-1)
    # At q = p the divergence's slope is equal in all entries, which does not matter on a simplex.
    _, r = slope(p)
    if not bool((mu > 0).all()):
        return Named(vertex(r, most), axes)
    weights = MAXIMISERS[form.divergence](r, p, mu, most)
    return Named(weights, axes)


def _in_ball(
    evaluator: Evaluator,
    node: ir.Reduce,
    env: Env,
    slope: concave_maxima.Slope,
    axes: tuple[int, ...],
    start: torch.Tensor,
) -> torch.Tensor:
    """The maximiser of an affine body over a ball of distributions."""
    problem = evaluator.bound.problem
    ball = recognise_ball(node)
    if ball is None:
        refuse(errors.not_a_ball(problem, node), source=problem.source)
    centre = centre_of(evaluator, ball, env)
    p = spread(centre, axes).expand(start.shape)
    radius = spread(evaluator.value(ball.radius, env), axes).expand(start.shape[: len(axes)]).detach()
    _, r = slope(start)
    return ball_maxima.MAXIMISERS[ball.divergence](r, p, radius.to(torch.float64).unsqueeze(-1) / ball.unit)


def centre_of(evaluator: Evaluator, ball: Ball, env: Env) -> Named:
    """The centre of a ball; an error if it is no distribution."""
    centre = evaluator.value(ball.reference, env)
    p = centre.data.detach().to(torch.float64)
    if p.dim() > len(centre.axes):
        total = p.sum(-1)
        if bool(((total - 1).abs() > REFERENCE_ROUNDING).any()) or bool((p < 0).any()):
            problem = evaluator.bound.problem
            worst = float(total.flatten()[(total - 1).abs().argmax()])
            refuse(errors.no_distribution(problem, ball.reference, worst), source=problem.source)
    return Named(p, centre.axes)


def cap(evaluator: Evaluator, domain: ir.VectorSet, n: int) -> float:
    """The largest weight that a simplex of n entries allows."""
    simple, args = evaluator.simple_set(domain)
    assert simple.cap is not None, domain.family
    return simple.cap(n, *args)


def _concave(
    evaluator: Evaluator, node: ir.Reduce, slope: concave_maxima.Slope, start: torch.Tensor, most: float
) -> torch.Tensor:
    """The maximiser of a body of no known form; an error if it is not proved to be a maximiser."""
    (binder,) = node.binders

    def project(q: torch.Tensor) -> torch.Tensor:
        """The projection on the capped simplex."""
        return project_capped(q, most)

    def furthest(s: torch.Tensor) -> torch.Tensor:
        """The vertex that maximises s.q."""
        return vertex(s, most)

    def certain(q: torch.Tensor) -> bool:
        """Whether the value at q is proved to be the largest, to the accuracy."""
        gap = concave_maxima.gap(slope, furthest, q)
        value, *_ = slope(q)
        return bool((gap <= ACCURACY * (1 + value.abs())).all())

    q = concave_maxima.ascent(slope, project, project(start), steps=300)
    if certain(q):
        return q
    if additive(node.body, binder):
        return concave_maxima.additive(slope, tuple(start.shape), most)
    if start.shape[-1] <= concave_maxima.ELLIPSOID_DIMENSION:
        return concave_maxima.ellipsoid(slope, project, q)
    q = concave_maxima.ascent(slope, project, q)
    if certain(q):
        return q
    problem = evaluator.bound.problem
    refuse(
        errors.maximum_not_found(problem, node, ACCURACY, concave_maxima.ELLIPSOID_DIMENSION),
        source=problem.source,
    )


# --------------------------------------------------------------------------------- known maximisers
def vertex(r: torch.Tensor, cap: float) -> torch.Tensor:
    """argmax r.q over 0 <= q <= cap, sum q = 1."""
    rank = torch.arange(r.shape[-1], dtype=torch.float64)
    order = r.argsort(dim=-1, descending=True, stable=True)
    weights = (1 - cap * rank).clamp(0, cap)
    return torch.zeros_like(r).scatter(-1, order, weights.expand(r.shape))


def tilted(r: torch.Tensor, p: torch.Tensor, mu: torch.Tensor, cap: float) -> torch.Tensor:
    """argmax r.q - mu kl(q, p) over the capped simplex: q = min(cap, p exp((r - nu) / mu)).

    Entries above the cap are set to it and the others scaled up, until no entry is above the cap.
    """
    q = torch.softmax(r / mu + p.log(), -1)
    for _ in range(r.shape[-1]):
        above = q > cap * (1 + 1e-15)
        if not bool(above.any()):
            break
        full = q >= cap
        rest = torch.where(full, torch.zeros_like(q), q)
        room = 1 - cap * full.sum(-1, keepdim=True)
        scaled = rest * room / rest.sum(-1, keepdim=True).clamp(min=1e-300)
        q = torch.where(full, torch.full_like(q, cap), scaled)
    return q


def shifted(r: torch.Tensor, p: torch.Tensor, mu: torch.Tensor, cap: float) -> torch.Tensor:
    """argmax r.q - mu chi2(q, p) over the capped simplex.

    By bisection on nu, and one exact step in the entries between 0 and the cap.
    """
    all_at_cap = r - 2 * mu * (cap / p - 1)
    all_at_0 = r + 2 * mu
    low = all_at_cap.amin(-1, keepdim=True) - 1
    high = all_at_0.amax(-1, keepdim=True) + 1

    def at(nu: torch.Tensor) -> torch.Tensor:
        """The entries for a multiplier nu of their sum."""
        change = (r - nu) / (2 * mu)
        return (p * (1 + change)).clamp(0, cap)

    for _ in range(200):
        middle = (low + high) / 2
        above = at(middle).sum(-1, keepdim=True) > 1
        low = torch.where(above, middle, low)
        high = torch.where(above, high, middle)
    q = at((low + high) / 2)
    inside = ((q > 0) & (q < cap)).to(torch.float64)
    missing = 1 - q.sum(-1, keepdim=True)
    mass_inside = (inside * p).sum(-1, keepdim=True).clamp(min=1e-300)
    return q + missing * inside * p / mass_inside


#: Formulas for the maximiser by the generator of the divergence.
MAXIMISERS = {"t * log(t)": tilted, "square(t - 1)": shifted}


# -------------------------------------------------------------------------------------- recognition
def recognise(body: ir.Expr, q: ir.Binder) -> InnerForm | None:
    """The form of a body that is affine in q, or affine minus a multiple of kl(q, p) or chi2(q, p);
    or None."""
    if affine(body, q):
        return InnerForm()
    if isinstance(body, ir.Apply) and body.op in ("sub", "add"):
        left, right = body.args
        if body.op == "sub" and affine(left, q):
            return _penalty(right, q)
        for part, other in ((left, right), (right, left)):
            inner = recognise(part, q)
            if affine(other, q) and inner is not None and (body.op == "add" or part is left):
                return inner
    return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Ball:
    """The condition ``unit * divergence(q, reference) <= radius``, by the divergence's generator."""

    divergence: str
    reference: ir.Expr
    radius: ir.Expr
    unit: float


def recognise_ball(node: ir.Reduce) -> Ball | None:
    """The ball of distributions that a maximum of an affine body ranges over, or None."""
    (q,) = node.binders
    match node.condition:
        case ir.Apply(op="le", args=(measure, radius)) | ir.Apply(op="ge", args=(radius, measure)):
            measured = atoms.divergence_of(measure)
        case _:
            return None
    if measured is None or not affine(node.body, q):
        return None
    of_q = isinstance(measured.q, ir.Element) and measured.q.binder is q
    if not of_q or not constant(measured.p, q) or not constant(radius, q) or radius.shape:
        return None
    return Ball(divergence=measured.generator, reference=measured.p, radius=radius, unit=measured.unit)


def _penalty(node: ir.Expr, q: ir.Binder) -> InnerForm | None:
    """The form of minus a multiple of a divergence, or None."""
    weight = None
    if isinstance(node, ir.Apply) and node.op == "mul":
        for factor, rest in (node.args, node.args[::-1]):
            if constant(factor, q):
                weight, node = factor, rest
                break
    generator = atoms.generator(node)
    if generator not in MAXIMISERS:
        return None
    first, second = node.children
    if not (isinstance(first, ir.Element) and first.binder is q and constant(second, q)):
        return None
    return InnerForm(divergence=generator, weight=weight, reference=second)


def constant(node: ir.Expr, q: ir.Binder) -> bool:
    """Whether a node does not depend on q."""
    return q not in ir.free_binders(node)


def affine(node: ir.Expr, q: ir.Binder) -> bool:
    """Whether a node is affine in q or constant, by the rules of the language's linear operations."""
    if constant(node, q):
        return True
    match node:
        case ir.Element():
            return True
        case ir.Item(base=base):
            return affine(base, q)
        case ir.Apply(args=args):
            atom = atoms.of(node)
            linear = atom is not None and atom.linear([not constant(arg, q) for arg in args])
            return linear and all(affine(arg, q) for arg in args)
        case ir.Reduce(body=body, condition=condition) if reductions.of(node).additive:
            return affine(body, q) and (condition is None or constant(condition, q))
    return False


def additive(node: ir.Expr, q: ir.Binder) -> bool:
    """Whether a node is a sum of functions of one entry of q each."""
    if affine(node, q):
        return True
    match node:
        case ir.Apply(args=args):
            atom = atoms.of(node)
            if isinstance(atom, atoms.ArrayAtom):
                separable = atom.separable(*(arg.shape for arg in args))
                return separable and all(_entrywise(arg, q) for arg in args)
            linear = atom is not None and atom.linear([not constant(arg, q) for arg in args])
            return linear and all(additive(arg, q) for arg in args)
        case ir.Reduce(body=body, binders=binders) if reductions.of(node).additive:
            return _of_one_entry(body, q, binders)
    return False


def _entrywise(node: ir.Expr, q: ir.Binder) -> bool:
    """Whether entry k of a vector depends on q[k] alone, for every k."""
    if constant(node, q) or (isinstance(node, ir.Element) and node.binder is q):
        return True
    if not isinstance(atoms.of(node), atoms.ScalarAtom):
        return False
    return all(_entrywise(child, q) for child in node.children)


def _of_one_entry(node: ir.Expr, q: ir.Binder, binders: tuple[ir.Binder, ...]) -> bool:
    """Whether q enters a node only as q[k], where k is the only one of some binders."""
    if constant(node, q):
        return True
    if isinstance(node, ir.Item):
        of_q = isinstance(node.base, ir.Element) and node.base.binder is q
        if not of_q or len(node.indices) != 1 or len(binders) != 1:
            return False
        (index,) = node.indices
        return isinstance(index, ir.Element) and index.binder is binders[0]
    return isinstance(node, ir.Apply) and all(_of_one_entry(child, q, binders) for child in node.children)
