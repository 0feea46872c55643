"""Multipliers of matrix inequalities.

An inequality A << B is the constraint lambda_max(A - B) <= 0. The chosen subgradient Q of the eigenvalue
has trace 1 and no negative eigenvalue. With the multiplier nu it gives Z = nu Q, and the Lagrangian has
the term sum(Z * (A - B)).
"""

from __future__ import annotations

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import members
from fccomodel.report.kinks.weights import WeightSet
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.point.pairs import Array
from fccomodel.report.point.system import System


def matrix_multipliers(system: System, optimal: Optimum) -> dict[str, list[list[float]]]:
    """The matrix Z of every matrix inequality, by label."""
    multipliers: dict[str, list[list[float]]] = {}
    start = 0
    for constraint in system.problem.constraints:
        count = len(members.of(system.bound, constraint))
        here = slice(start, start + count)
        start += count
        if not constraint.of_matrices or not count:
            continue
        matrices = _chosen(system, optimal, constraint, count)
        if matrices is None:
            matrices = _at_top(system, constraint) * optimal.multipliers[here, None, None]
        pairs = zip(system.labels[here], matrices, strict=True)
        multipliers |= {label: matrix.tolist() for label, matrix in pairs}
    return multipliers


def _chosen(system: System, optimal: Optimum, constraint: ir.Constraint, count: int) -> Array | None:
    """The weights that the report chose for the eigenvalues of a family, times multipliers; or None."""
    for number, weights in optimal.weights:
        record = system.records[number]
        if record.kink.node is constraint.body and record.near is None and len(weights) == count:
            size = record.weights.columns
            return np.asarray(weights).reshape(count, size, size)
    return None


def _at_top(system: System, constraint: ir.Constraint) -> Array:
    """v v' of the eigenvector v of each member's largest eigenvalue."""
    assert isinstance(constraint.body, ir.Apply)
    evaluator = Evaluator(system.bound, system.point, seed=system.seed)
    family = members.of(system.bound, constraint)
    with torch.no_grad():
        values = family.over(evaluator.value(constraint.body.args[0], family.env)).double().numpy()
    size = values.shape[-1]
    weights = WeightSet(kind="spectraplex", columns=size)
    return weights.top(values.reshape(-1, size * size)).reshape(-1, size, size)
