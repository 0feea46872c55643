"""The tangent space at a point: directions along which active constraints with multipliers stay as they
are."""

from __future__ import annotations

import math

import numpy as np
import torch

from fccomodel.evaluation.sets.axes import STEEPEST
from fccomodel.numerics.singular_blocks import row_space
from fccomodel.report.kkt.active import HELD, conditions_of_sets
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.point.system import AT_BOUND, System

Array = np.ndarray
#: Entries of the variables up to which a whole Hessian is made.
DENSE = 100
#: Singular value of unit gradients, relative to the largest, up to which it counts as 0.
DEPENDENT = 1e-10
#: A number beyond all bounds of variables.
BEYOND_BOUNDS = 1e300


class TangentSpace:
    """Directions along which entries and constraints with multipliers stay at their bounds.

    free       1 for entries that no bound holds, (entries,)
    normals    orthonormal gradients of the constraints with multipliers, by row
    dimension  of the space of these directions
    """

    def __init__(self, system: System, optimal: Optimum, rows: Array):
        threshold = HELD * max(1.0, optimal.plain)
        self.free = _free(system, optimal.lagrangian, threshold)
        self.entrywise = all(simple.entrywise for name in system.names for simple, _ in system.sets_of(name))
        lengths = np.linalg.norm(rows, axis=1)
        equal = np.array(system.equal, dtype=bool)[system.kept]
        active = equal | (np.abs(optimal.multipliers[system.kept]) * lengths > threshold)
        normals = [rows[active] / np.maximum(lengths[active], 1e-300)[:, None] * self.free]
        for _, row, equation in conditions_of_sets(system, self.free):
            if equation or -row @ optimal.lagrangian > threshold:
                normals.append(row[None])
        self.normals = np.vstack(normals)
        if len(self.normals):
            self.normals = row_space(self.normals, DEPENDENT)
        self.dimension = int(self.free.sum()) - len(self.normals)

    @property
    def bounds_alone(self) -> bool:
        """Whether only bounds of single entries hold entries at their places."""
        return self.entrywise and not len(self.normals)

    @property
    def empty(self) -> bool:
        """Whether there is no such direction."""
        return self.dimension <= 0

    @property
    def few(self) -> bool:
        """Whether the free entries are few enough for a whole Hessian."""
        return self.free.sum() <= DENSE

    def project(self, direction: Array) -> Array:
        """The nearest such direction."""
        inside = np.where(self.free > 0, direction, 0.0)
        return inside - self.normals.T @ (self.normals @ inside)

    def basis(self) -> Array:
        """Orthonormal directions by column, (entries, dimension)."""
        places = np.flatnonzero(self.free)
        across = np.eye(len(places))
        if len(self.normals):
            across = np.linalg.svd(self.normals[:, places], full_matrices=True)[2]
        columns = np.zeros((len(self.free), self.dimension))
        columns[places] = across[len(self.normals) :].T
        return columns


def _free(system: System, slope: Array, held: float) -> Array:
    """1 for entries that no bound holds with a multiplier, 0 for the others. An infinite slope, as of a
    root at 0, holds an entry too."""
    parts, steep = [], {}
    if system.roots and system.f.requires_grad:
        own = torch.autograd.grad(
            system.f, system.leaves, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        steep = {name: part.abs() > STEEPEST for name, part in zip(system.names, own, strict=True)}
    for name, part in system.split(slope).items():
        free = torch.ones_like(part)
        for simple, args in system.sets_of(name):
            normals = simple.normals(system.point[name], *args, tolerance=AT_BOUND)
            free = free * ~(normals.low & normals.high)
            if name in steep:
                free = free * ~(steep[name] & (normals.low | normals.high))
            free = free * ~(normals.low & (part > held)) * ~(normals.high & (part < -held))
        parts.append(free.reshape(-1))
    if parts:
        return torch.cat(parts).numpy()
    return np.zeros(0)


def steps_to_bounds(system: System) -> tuple[Array, Array]:
    """The least and the largest step of each entry within the sets of bounds; infinite where a
    variable has none."""
    low, high = [], []
    for name, value in system.point.items():
        ends = [torch.full_like(value, -BEYOND_BOUNDS), torch.full_like(value, BEYOND_BOUNDS)]
        for simple, args in system.sets_of(name):
            if simple.entrywise:
                ends = [simple.nearest(end, *args) for end in ends]
        least, most = ends
        room_below = torch.where(least <= -BEYOND_BOUNDS, -math.inf, least - value)
        room_above = torch.where(most >= BEYOND_BOUNDS, math.inf, most - value)
        low.append(room_below.reshape(-1))
        high.append(room_above.reshape(-1))
    return torch.cat(low).numpy(), torch.cat(high).numpy()
