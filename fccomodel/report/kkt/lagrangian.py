"""The Lagrangian of a point's multipliers, away from the point: its functions and their gradient anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.work import Meter
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.kernels.derivatives import vector_products
from fccomodel.evaluation.passes import amount
from fccomodel.evaluation.sets import members
from fccomodel.report.point.recording import Recorder
from fccomodel.report.point.system import System

Array = np.ndarray


class LagrangianTerm(NamedTuple):
    """``sign * expr``, or ``weights . expr`` over the members of a constraint."""

    expr: ir.Expr
    sign: float
    weights: Array | None = None
    constraint: ir.Constraint | None = None


def roots(system: System, multipliers: Array) -> list[LagrangianTerm]:
    """The functions whose sum is the Lagrangian."""
    constraints = [
        LagrangianTerm(constraint.body, 1.0, weights, constraint)
        for constraint, weights in of_members(system, multipliers)
    ]
    return [LagrangianTerm(system.problem.objective.expr, system.sign), *constraints]


def of_members(system: System, multipliers: Array) -> Iterator[tuple[ir.Constraint, Array]]:
    """The constraints with a nonzero multiplier, and the multipliers of their members."""
    start = 0
    for constraint in system.problem.constraints:
        weights = multipliers[start : start + len(members.of(system.bound, constraint))]
        start += len(weights)
        if weights.any():
            yield constraint, weights


Term = tuple[LagrangianTerm, ir.Expr]
Weights = Sequence[tuple[int, Array]]
Instead = Mapping[int, ir.Expr]

#: Relative error of a constant Hessian's product against a difference of gradients, at most.
CURVATURE_ERROR = 1e-6
#: The same for a Hessian at a point.
HESSIAN_ERROR = 1e-4
#: Length of the step of that difference.
HESSIAN_STEP = 1e-7
#: Rounding of the eigenvalues of a constant Hessian, as a share of the largest.
CONSTANT = 1e-10
#: Rounding of the eigenvalues of a Hessian at a point, or with terms that stand for others.
AT_A_POINT = 1e-9
#: Numbers of a Hessian's products that are held at once.
TOGETHER = 2_000_000


def gradient(system: System, terms: list[Term], at: Array, weights: Weights = ()) -> Array:
    """The gradient of a sum at any point, see ``differentiable_sum``."""
    total, leaves = differentiable_sum(system, terms, at, weights)
    return _slopes(total, leaves)


def curvature(system: System, terms: list[Term], weights: Weights = ()) -> Array:
    """The Hessian of a quadratic sum, see ``differentiable_sum``.

    The gradient is differentiated once more. If that is not possible, or disagrees with a difference
    of gradients, a difference is taken for each variable.
    """
    origin = gradient(system, terms, np.zeros(system.d), weights)
    columns = _twice(system, terms, weights)
    if columns is not None:
        along = gradient(system, terms, np.ones(system.d), weights) - origin
        size = max(np.abs(columns).max(), np.abs(along).max())
        if not np.abs(columns.sum(axis=0) - along).max() <= CURVATURE_ERROR * size:
            columns = None
    if columns is None:
        columns = np.stack([gradient(system, terms, unit, weights) - origin for unit in np.eye(system.d)])
    return (columns + columns.T) / 2


def hessian(
    system: System, terms: list[Term], weights: Weights, instead: Instead, meter: Meter
) -> Array | None:
    """The Hessian of a sum at the system's point, see ``differentiable_sum``.

    None if it is not known, disagrees with a difference of gradients, or takes more work than is
    left, as its first rows show.
    """
    at = np.concatenate([system.point[name].detach().numpy().ravel() for name in system.names])
    columns = _twice(system, terms, weights, at, instead, meter)
    if columns is None or not np.isfinite(columns).all():
        return None
    way = HESSIAN_STEP * np.where(np.arange(system.d) % 2, -1.0, 1.0)
    ends = [_slopes(*differentiable_sum(system, terms, at + step, weights, instead)) for step in (way, -way)]
    apart = np.abs(columns @ way - (ends[0] - ends[1]) / 2).max(initial=0.0)
    if apart <= HESSIAN_ERROR * HESSIAN_STEP * np.abs(columns).max(initial=0.0):
        return (columns + columns.T) / 2
    return None


def spectrum(matrix: Array, share: float) -> tuple[Array, Array]:
    """Eigenvalues in ascending order, less what rounding may have added (``share`` of the largest), and
    their vectors."""
    values, vectors = np.linalg.eigh(matrix)
    return values - share * max(values[-1], 0.0), vectors


def _twice(
    system: System,
    terms: list[Term],
    weights: Weights,
    at: Array | None = None,
    instead: Instead | None = None,
    meter: Meter | None = None,
) -> Array | None:
    """The Hessian by row: the gradient of each entry of the gradient. None if parts of the sum can be
    differentiated only once, or if all rows take more work than is left."""
    if at is None:
        at = 1.0 + np.arange(system.d) % 7 / 7  # no zero, where roots of squares have no second derivative
    total, leaves = differentiable_sum(system, terms, at, weights, instead)
    if not total.requires_grad:
        return np.zeros((system.d, system.d))
    try:
        slopes = torch.autograd.grad(total, leaves, create_graph=True, materialize_grads=True)
        if not any(slope.requires_grad for slope in slopes):
            return None
        most = max(1, int(TOGETHER / max(amount(system.bound), 1.0)))
        return np.concatenate(list(_rows(slopes, leaves, most, meter or Meter())))
    except (RuntimeError, _Dear):
        return None


class _Dear(Exception):
    """The rows take more work than is left."""


def _first_of(times: int, work: Callable[[], Any], meter: Meter) -> Any:
    """The result of the first of ``times`` equal pieces of work. The meter is charged for all."""
    result, seconds = meter.count(work)
    if (times - 1) * seconds > meter.left:
        raise _Dear
    meter.spend((times - 1) * seconds)
    return result


def _rows(
    slopes: Sequence[torch.Tensor], leaves: list[torch.Tensor], most: int, meter: Meter
) -> Iterator[Array]:
    """The derivatives of every entry of some gradients, ``most`` at once if their operations allow it."""
    flat = torch.cat([slope.reshape(-1) for slope in slopes])
    if most > 1:
        try:
            yield from _rows_together(flat, leaves, most, meter)
        except RuntimeError:
            pass  # an operation that is not done for many at once
        else:
            return
    # each entry by itself: from an entry of ``flat``, the way back leads through the graphs of all variables
    for k, entry in enumerate(entry for slope in slopes for entry in slope.reshape(-1)):
        alone = partial(_slopes, entry, leaves, again=True)
        if k:
            row = alone()
        else:
            row = _first_of(len(flat), alone, meter)
        yield row[None]


def _rows_together(
    flat: torch.Tensor, leaves: list[torch.Tensor], most: int, meter: Meter
) -> Iterator[Array]:
    """The derivatives of a vector's entries, ``most`` at once."""
    units = torch.eye(len(flat), dtype=flat.dtype).split(most)
    for k, some in enumerate(units):
        work = partial(vector_products, [flat], leaves, [some])
        if k:
            products = work()
        else:
            products = _first_of(len(units), work, meter)
        parts = []
        for product, leaf in zip(products, leaves, strict=True):
            if product is None:
                parts.append(torch.zeros(len(some), leaf.numel()))
            else:
                parts.append(product.reshape(len(some), -1))
        yield torch.cat([part.double() for part in parts], 1).numpy()


def _slopes(total: torch.Tensor, leaves: list[torch.Tensor], again: bool = False) -> Array:
    """The gradient as one vector; ``again`` keeps the graph for other numbers that share it."""
    sizes = [leaf.numel() for leaf in leaves]
    flat = np.zeros(sum(sizes))
    if total.requires_grad:
        slopes = torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=again)
        for end, size, slope in zip(np.cumsum(sizes).tolist(), sizes, slopes, strict=True):
            if slope is not None:
                flat[end - size : end] = slope.numpy().ravel()
    return flat


def differentiable_sum(
    system: System, terms: list[Term], at: Array, weights: Weights, instead: Instead | None = None
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """A sum of roots and of weighted terms of kinks at any point, and the variables there.

    terms     roots, each with the expression that is evaluated in its place
    weights   of the terms of kinks, by record
    instead   by node id, the nodes whose terms kinks have in place of their own
    """
    point = {name: part.clone().requires_grad_(True) for name, part in system.split(at).items()}
    evaluator = Evaluator(system.bound, point, seed=system.seed)
    total = torch.zeros((), dtype=torch.float64)
    for root, expr in terms:
        if root.constraint is None or root.weights is None:
            total = total + root.sign * evaluator.value(expr, {}).data
        else:
            family = members.of(system.bound, root.constraint)
            total = total + family.over(evaluator.value(expr, family.env)) @ torch.from_numpy(root.weights)
    leaves = [evaluator.point[name] for name in system.names]
    if weights:
        recorder = Recorder(system.kinks, frozen=system.records, instead=instead or {})
        system.evaluate(evaluator.point, recorder)
        total = total + sum(
            (recorder.records[k].terms * torch.from_numpy(factors)).sum() for k, factors in weights
        )
    return total, leaves
