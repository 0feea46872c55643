"""The maximum over a set of vectors q of an affine function minus a convex function, by its conic dual:

      max over q of r.q + g.z + v   s.t. R z + k in K, z = (q, ...)
    = min over y in K* of k.y + v   s.t. R'y + g + (r, 0) = 0

r and v are functions of the model's variables; the convex function depends on q alone
(P. Schiele, E. Luxenberg, S. Boyd, Disciplined saddle programming, 2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from fccomodel.conic.affine import NEITHER, UNDER, Affine, NotConic, widened
from fccomodel.conic.affine import constant as constants
from fccomodel.conic.cones import Cones
from fccomodel.core import ir
from fccomodel.evaluation.interpret.inner_maximum import affine
from fccomodel.evaluation.sets import elements
from fccomodel.evaluation.sets.axes import Env, Named, new_axis, spread
from fccomodel.library import reductions

if TYPE_CHECKING:
    from fccomodel.conic.model import Walk


def value(walk: Walk, node: ir.Reduce, env: Env) -> Named:
    """An upper estimate of a maximum, or for ``min`` a lower estimate of a minimum, over a set of vectors."""
    (binder,) = node.binders
    assert isinstance(binder.domain, ir.VectorSet)
    sign = float(reductions.of(node).sign)
    affine_terms = []
    other_terms = []
    for factor, term in parts(node.body, binder, sign):
        if affine(term, binder):
            affine_terms.append((factor, term))
        else:
            other_terms.append((factor, term))
    lengths = walk.axes(node, env)
    axes = tuple(sorted(lengths))
    outer = tuple(lengths[axis] for axis in axes)
    shape = elements.shape(walk.bound, binder.domain.shape)
    full_shape = (*outer, math.prod(shape))
    v, r = linear(walk, affine_terms, binder, env, axes, full_shape)
    inner_cones, g = concave(walk, other_terms, binder, shape, node.condition)
    if not r.exact:
        larger = walk.cones.variable(tuple(r.shape))
        walk.cones.nonneg(larger - r)
        r = larger
    largest = dual(walk.cones, inner_cones, g, r) + v
    return Named(largest.upper() * sign, axes)


def parts(node: ir.Expr, q: ir.Binder, factor: float) -> Iterator[tuple[float, ir.Expr]]:
    """The terms of a sum or difference, each with its factor; a term may be affine in q as a whole."""
    if affine(node, q) or not isinstance(node, ir.Apply):
        yield factor, node
    elif node.op == "add":
        yield from parts(node.args[0], q, factor)
        yield from parts(node.args[1], q, factor)
    elif node.op == "sub":
        yield from parts(node.args[0], q, factor)
        yield from parts(node.args[1], q, -factor)
    elif node.op == "neg":
        yield from parts(node.args[0], q, -factor)
    else:
        yield factor, node


def linear(
    walk: Walk,
    terms: list[tuple[float, ir.Expr]],
    q: ir.Binder,
    env: Env,
    axes: tuple[int, ...],
    shape: tuple[int, ...],
) -> tuple[Any, Any]:
    """The value at q = 0 and the coefficients of q's entries, from the values at all unit vectors."""
    assert isinstance(q.domain, ir.VectorSet)
    n = shape[-1]
    axis = new_axis()
    origin, units = torch.zeros(1, n), torch.eye(n)
    origin_and_units = torch.cat([origin, units]).to(torch.float64)
    q_shape = elements.shape(walk.bound, q.domain.shape)
    at = Named(origin_and_units.reshape(n + 1, *q_shape), (axis,))
    total: Any = constants(np.zeros((*shape[:-1], n + 1)))
    for factor, term in terms:
        values = walk.value(term, {**env, q: at})
        total = total + spread(values, (*axes, axis), 0) * factor
    at_origin = total.select(-1, 0)
    at_units = total.narrow(-1, 1, n)
    return at_origin, at_units - at_origin.unsqueeze(-1)


def concave(
    walk: Walk,
    terms: list[tuple[float, ir.Expr]],
    q: ir.Binder,
    shape: tuple[int, ...],
    condition: ir.Expr | None = None,
) -> tuple[Cones, Affine]:
    """The set, with its condition, and the terms without variables of the model, as a conic program.

    Its first variable is q.
    """
    assert isinstance(q.domain, ir.VectorSet)
    inner = walk.beside()
    variable = inner.cones.variable(shape)
    simple, args = walk.simple_set(q.domain)
    if simple.cone is None or simple.cap is None:
        raise NotConic(f"a maximum over the set {simple.name}")
    simple.cone(inner.cones, variable, *args)
    _within(inner, condition, q, variable)
    total: Any = constants(np.zeros(()))
    for factor, term in terms:
        if ir.variables_of(term):
            raise NotConic("a maximum of products of the variables with functions of its own")
        own = inner.value(term, {q: Named(variable, ())})  # type: ignore[arg-type]
        if own.axes:
            raise NotConic("a maximum whose own part differs from member to member")
        total = total + own.data * factor
    kinds = total.kind[total.index]
    if (kinds * -1 == UNDER).any() or (kinds == NEITHER).any():
        raise NotConic("a maximum of what is not concave")
    _state_powers(inner.cones, total)
    return inner.cones, total


def _within(inner: Walk, condition: ir.Expr | None, q: ir.Binder, variable: Affine) -> None:
    """Add the condition ``divergence(q, p) <= radius`` on the vectors, if there is one."""
    if condition is None:
        return
    if not isinstance(condition, ir.Apply) or condition.op not in ("le", "ge") or ir.variables_of(condition):
        raise NotConic("a maximum under a condition of another form")
    if any(binder is not q for binder in ir.free_binders(condition)):
        raise NotConic("a maximum whose set differs from member to member")
    measure, radius = condition.args if condition.op == "le" else condition.args[::-1]
    at = {q: Named(variable, ())}  # type: ignore[arg-type]
    left: Any = inner.value(measure, at)
    right: Any = inner.value(radius, at)
    inner.cones.nonneg(-left.data + right.data)


def _state_powers(cones: Cones, total: Affine) -> None:
    """State the powers that a condition of the program, or its objective ``total``, uses."""
    used = cones.used()
    rows, _, _ = total.entries()
    used[widened(rows, cones.columns).indices] = True
    for powers in (*cones.squares_, *cones.powers_):
        if used[powers.columns].any():
            cones.stated(powers)


def dual(cones: Cones, inner: Cones, g: Affine, r: Affine) -> Affine:
    """The minimum of k.y plus the constant of g, by new variables y of the model's program."""
    *outer, n = r.shape
    count = math.prod(outer)
    blocks = [widened(block.rows, inner.columns) for block in inner.blocks]
    rows = sparse.vstack(blocks, format="csr")
    k = np.concatenate([block.const for block in inner.blocks])
    g_rows, g_const, _ = g.entries()
    slope = widened(g_rows, inner.columns).toarray()[0]
    y = cones.variable((count, len(k)))
    pulled = y.transformed(rows.T)
    of_q = pulled.narrow(-1, 0, n)
    cones.zero(of_q + slope[:n] + r.reshape(count, n))
    if inner.columns > n:
        of_others = pulled.narrow(-1, n, inner.columns - n)
        cones.zero(of_others + slope[n:])
    first = 0
    for block in inner.blocks:
        entries = len(block.const)
        part = y.narrow(-1, first, entries)
        members = part.reshape(-1, block.size)
        cones.dual(block.kind, members, block.power)
        first += entries
    level = (y * k).sum(-1) + float(g_const[0])
    return level.reshape(tuple(outer))
