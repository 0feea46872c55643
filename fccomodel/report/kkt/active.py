"""The active constraints at a point: whether their gradients are independent, and how the optimum
moves with them.

LICQ: the gradients of the active constraints are independent. Then the multipliers are unique.
MFCQ: some direction leads into every active inequality and along every equation. Then the
multipliers are bounded (J. Nocedal, S. Wright, Numerical Optimization, 2006, sections 12.2 and
12.6). Variables at their bounds do not move. Conditions of simple sets, such as the sum of a
simplex, count as constraints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from fccomodel.core.work import Meter
from fccomodel.numerics import min_norm
from fccomodel.numerics.singular_blocks import SingularBlock, singular_blocks
from fccomodel.report.kkt.lagrangian import gradient, roots
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.point.system import AT_BOUND, STEP, System

Array = np.ndarray
#: Distance to its boundary (in the variables) up to which an inequality is active.
ACTIVE_DISTANCE = 1e-4
#: Singular value of unit gradients below which they are dependent.
DEPENDENT = 1e-6
#: Share of the gradients' scale above which a multiplier holds its constraint at its bound.
HELD = 1e-6
#: Counted seconds that the search for a direction into all active constraints may take.
ENTERS_S = 1.0
#: Entries of the variables up to which the movement of the optimum is computed.
MOST_MOVING = 2000
#: Share of a unit vector in the null space from which on it counts as dependent on others.
IN_NULL_SPACE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Qualification:
    """Whether a constraint qualification holds at a point.

    active     labels of the active constraints
    least      the smallest singular value of their gradients, each of length 1; None where nothing is active
    dependent  labels of those whose gradients are dependent
    direction  MFCQ holds
    nonsmooth  some function has a kink: of its gradients one is taken
    held       labels of constraints with a multiplier, where none is near its bound
    """

    active: tuple[str, ...] = ()
    least: float | None = None
    dependent: tuple[str, ...] = ()
    direction: bool = True
    nonsmooth: bool = False
    held: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.held:
            are = "are" if len(self.held) > 1 else "is"
            return f"not told yet: {_listed(self.held)}, with a multiplier, {are} away from the bound"
        if self.least is None:
            return "regular: no constraint is active"
        if not self.dependent:
            return f"regular: the active gradients are independent (smallest singular value {self.least:.1e})"
        names = _listed(self.dependent)
        if len(self.dependent) == 1:
            event = f"gradient of {names} vanishes"
        else:
            event = f"gradients of {names} are dependent"
        words = f"degenerate (the {event}: multipliers are not unique)"
        if self.direction:
            return f"{words}; a direction leads into all of them, so multipliers exist and are bounded"
        why = "the kinks' stationarity" if self.nonsmooth else "stationarity"
        return (
            f"{words}; no direction leads into all of them: {why} need not hold at an optimum, nor "
            "tell one from other points"
        )


def _listed(names: tuple[str, ...]) -> str:
    shown = [f"`{name}`" for name in names[:4]]
    if len(names) > 4:
        more = f" and {len(names) - 4} more"
    else:
        more = ""
    if more or len(shown) == 1:
        return f"{', '.join(shown)}{more}"
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def qualification(system: System, rows: Array | None, optimal: Optimum) -> Qualification | None:
    """LICQ and MFCQ of the active constraints, over the entries of the variables that are not at a
    bound.

    rows   gradients of the constraints kept, (constraints, entries)

    None if the gradients are not held, or if constraints that are not kept may be active.
    """
    if rows is None:
        return None
    length = np.linalg.norm(rows, axis=1)
    equal = np.array(system.equal, dtype=bool)[system.kept]
    held = optimal.multipliers[system.kept] * length > HELD * max(1.0, optimal.plain)
    at = np.flatnonzero(equal | (system.values[system.kept] >= -ACTIVE_DISTANCE * np.maximum(length, 1e-12)))
    nonsmooth = bool(system.records or system.left or system.refused)
    if not len(at):
        return Qualification(nonsmooth=nonsmooth, held=tuple(system.labels[k] for k in system.kept[held]))
    moves = free(system)
    conditions = list(conditions_of_sets(system, moves))
    unit = np.vstack(
        [rows[at] / np.maximum(length[at], 1e-300)[:, None] * moves, *(row for _, row, _ in conditions)]
    )
    labels = tuple(system.labels[k] for k in system.kept[at])
    names = [*labels, *(name for name, _, _ in conditions)]
    blocks = singular_blocks(unit)
    least = min(_least(block) for block in blocks)
    dependent: tuple[str, ...] = ()
    if least < DEPENDENT:
        in_null_space = _in_null_space(blocks, len(unit))
        dependent = tuple(names[k] for k in np.flatnonzero(in_null_space > IN_NULL_SPACE))
    elif len(at) == len(system.kept) < len(system.values):
        return None
    equations = np.append(equal[at], [equation for _, _, equation in conditions]).astype(bool)
    direction = not dependent or _enters(unit, equations)
    return Qualification(
        active=labels, least=least, dependent=dependent, direction=direction, nonsmooth=nonsmooth
    )


def _least(block: SingularBlock) -> float:
    """The least singular value of a block's rows: 0 if they are more than its columns."""
    if len(block.values) < len(block.rows):
        return 0.0
    return float(block.values[-1])


def _in_null_space(blocks: Sequence[SingularBlock], count: int) -> Array:
    """For each of so many rows, the part of its unit vector that combines the rows to 0."""
    part = np.zeros(count)
    for block in blocks:
        independent = block.left[:, block.values >= DEPENDENT]
        part[block.rows] = 1 - (independent**2).sum(axis=1)
    return part


def _enters(rows: Array, equal: Array) -> bool:
    """Whether a direction leads into all inequalities and along all equations.

    That is so if the equations' gradients are independent, and 0 is no convex combination of the
    inequalities' gradients outside of their span.
    """
    equations, rest = rows[equal], rows[~equal]
    if len(equations):
        _, singular, basis = np.linalg.svd(equations, full_matrices=False)
        if len(singular) < len(equations) or singular[-1] < DEPENDENT:
            return False
        rest = rest - rest @ basis.T @ basis
    if not len(rest):
        return True

    def unit(k: int) -> Array:
        """The k-th unit vector."""
        one = np.zeros(len(rest))
        one[k] = 1.0
        return one

    generators = min_norm.Generators(
        vertex=lambda slope: unit(int(np.argmin(slope))), rays=lambda slope: iter(())
    )
    nearest, _ = min_norm.nearest(rest.T, np.zeros(rest.shape[1]), generators, unit(0), Meter(ENTERS_S))
    return float(np.linalg.norm(rest.T @ nearest)) > DEPENDENT


def conditions_of_sets(system: System, moves: Array) -> Iterator[tuple[str, Array, bool]]:
    """The active conditions of simple sets other than bounds: name, gradient of length 1 over the
    entries that move, and whether it is an equation."""
    place = 0
    for name, value in system.point.items():
        for simple, args in system.sets_of(name):
            normals = simple.normals(value, *args, tolerance=AT_BOUND)
            for row in normals.rows.numpy():
                full = np.zeros(system.d)
                full[place : place + value.numel()] = row
                full *= moves
                if (length := float(np.linalg.norm(full))) > 0:
                    yield f"{name} in {simple.name}", full / length, normals.equation
        place += value.numel()


def free(system: System) -> Array:
    """1 for entries of the variables that are not at a bound, 0 for the others."""
    parts = []
    for name, value in system.point.items():
        moves = torch.ones_like(value)
        for simple, args in system.sets_of(name):
            normals = simple.normals(value, *args, tolerance=AT_BOUND)
            moves = moves * ~(normals.low | normals.high)
        parts.append(moves.reshape(-1))
    if parts:
        return torch.cat(parts).numpy()
    return np.zeros(0)


# -------------------------------------------------------------------------------------- sensitivity
@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How the optimum moves when a constraint ``left - right <= 0`` (``== 0``) becomes ``<= t``, at
    t = 0.

    objective  by label, the derivative of the optimal objective, as the model states it: minus the
               multiplier for a ``minimize``
    variables  by label, the derivatives of the optimal variables by name; only for constraints that
               are held at their bound
    why        why the derivatives of the variables are not known; '' if they are
    """

    objective: Mapping[str, float]
    variables: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    why: str = ""


def sensitivity(system: System, rows: Array | None, optimal: Optimum, meter: Meter) -> Sensitivity:
    """The sensitivity of the objective, from the multipliers, and of the variables, from the KKT
    equations with the held constraints as equations.

    This is the implicit function theorem (A. Fiacco, Introduction to Sensitivity and Stability
    Analysis in Nonlinear Programming, 1983, Theorem 3.2.2).
    """
    objective = {
        label: float(-system.sign * nu) + 0.0
        for label, nu in zip(system.labels, optimal.multipliers, strict=True)
    }
    if rows is None:
        return Sensitivity(objective=objective, why="the constraints' gradients are too many to be held")
    strength = optimal.multipliers[system.kept] * np.linalg.norm(rows, axis=1)
    equal = np.array(system.equal, dtype=bool)[system.kept]
    strong = strength > HELD * max(1.0, optimal.plain)
    held = np.flatnonzero(equal | strong)
    moves = np.flatnonzero(free(system))
    if not len(held):
        return Sensitivity(objective=objective, why="no constraint is held at its bound")
    if why := _fixed(system, moves, meter):
        return Sensitivity(objective=objective, why=why)
    matrix = np.zeros((len(moves) + len(held),) * 2)
    matrix[: len(moves), : len(moves)] = _hessian(system, optimal, moves)
    matrix[len(moves) :, : len(moves)] = rows[np.ix_(held, moves)]
    matrix[: len(moves), len(moves) :] = rows[np.ix_(held, moves)].T
    right = np.vstack([np.zeros((len(moves), len(held))), np.eye(len(held))])
    solved, _, rank, _ = np.linalg.lstsq(matrix, right, rcond=1e-12)
    if rank < len(matrix):
        return Sensitivity(
            objective=objective, why="the optimum or its multipliers are not unique to second order"
        )
    flat = np.zeros((system.d, len(held)))
    flat[moves] = solved[: len(moves)]
    columns = [system.split(column) for column in flat.T]
    split = [{name: part.numpy() for name, part in column.items()} for column in columns]
    labels = [system.labels[k] for k in system.kept[held]]
    return Sensitivity(objective=objective, variables=dict(zip(labels, split, strict=True)))


def _fixed(system: System, moves: Array, meter: Meter) -> str:
    """Why the movement of the variables is not computed; '' if it is."""
    if system.records or system.left or system.refused:
        return "a function has a kink"
    if bent := [n for n in system.names for simple, _ in system.sets_of(n) if not simple.entrywise]:
        return f"`{bent[0]}` lies in a set other than bounds"
    if len(moves) > MOST_MOVING or 6 * system.forward_s * len(moves) > meter.left:
        return f"the Hessian in {len(moves):,} entries is too much work"
    return ""


def _hessian(system: System, optimal: Optimum, moves: Array) -> Array:
    """The Hessian of the Lagrangian by central differences of its gradient."""
    terms = [(root, root.expr) for root in roots(system, optimal.multipliers)]
    flat = system.flat
    columns = []
    for k in moves:
        step = STEP * (1 + abs(flat[k]))
        ends = [gradient(system, terms, flat + sign * step * (np.arange(system.d) == k)) for sign in (1, -1)]
        columns.append((ends[0] - ends[1])[moves] / (2 * step))
    hessian = np.stack(columns, axis=1)
    return (hessian + hessian.T) / 2
