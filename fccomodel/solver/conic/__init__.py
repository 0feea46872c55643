"""Convex problems of moderate size by an interior-point method: what ends a run that its own finish does not bring to the end.

It needs no step size and no smoothing, and kinks, degenerate and redundant constraints do not slow it; it needs every row at
once, and the functions must be known to be conic. The report judges its answer as any other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.failure import Failure
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret.reductions import one_thread
from fccomodel.library.atoms import Interval
from fccomodel.numerics.cone_programs import ConeProgram, solved
from fccomodel.solver.conic.affine import NotConic as NotConic
from fccomodel.solver.conic.cones import MOST_NUMBERS
from fccomodel.solver.conic.program import Conic as Conic
from fccomodel.solver.conic.walk import conic

#: Accuracy that is asked for, of gap and residuals, what is taken where no more is reached, and the share of the way to the
#: boundary that a step takes: at first, and where that ends without progress.
FIRST, SECOND = (1e-11, 1e-7, 0.99), (1e-9, 1e-5, 0.9)
#: The same of the method for few variables and many rows; where it has less, the other one follows.
OWN = (1e-11, 1e-8)
SOLVED = ("Solved", "AlmostSolved")
#: Time limit by the clock, in seconds, where hardly any is left.
LEAST_S = 0.1
#: What a problem without an optimum is, by the status that proves it.
ENDED = {"PrimalInfeasible": "infeasible", "DualInfeasible": "unbounded"}
#: Weights of entropies below this size are taken from the duals, where these differ from them by no more than this.
SMALL, ABSOLUTE = 1e-3, 1e-7


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """The optimum: variables by name, multipliers by label, the objective in the model's sense, the number of iterations, and the
    paper of the method."""

    variables: dict[str, np.ndarray]
    multipliers: dict[str, float]
    objective: float
    iterations: int
    paper: str


def of(bound: Bound, where: Callable[[ir.Expr], Interval]) -> Conic | None:
    """The problem as a conic program, None where it is none that is known, or a large one; ``where``: an interval that holds each
    entry of an expression's value."""
    try:
        with np.errstate(all="ignore"):
            built = conic(bound, where)
    except (NotConic, ArithmeticError, FccoError):  # what is not defined is said by those who evaluate it
        return None
    return built if built.finite and built.program.P.nnz + built.program.A.nnz <= MOST_NUMBERS else None


def cost(built: Conic) -> float:
    """Seconds of one core that ``solve`` takes, foreseen by counts."""
    return built.seconds


def solve(built: Conic, *, seconds: float | None = None) -> Answer | str:
    """The optimum, or why there is none: ``infeasible`` or ``unbounded``, proved, or ``unknown``."""
    began = time.perf_counter()
    result: Any = None
    paper = "mehrotra-1992"
    if built.parts is not None:
        from fccomodel.solver.conic import barrier

        with one_thread():
            result = barrier.minimised(built.parts, OWN, seconds)
    if result is None or result.status not in SOLVED:
        left = None if seconds is None else seconds - (time.perf_counter() - began)
        result, paper = minimised(built.program, seconds=left), "clarabel-2024"
    if str(result.status) not in (*SOLVED, *ENDED, "MaxTime"):
        left = None if seconds is None else seconds - (time.perf_counter() - began)
        result = minimised(built.program, SECOND, left)
    if (status := str(result.status)) not in SOLVED:
        if status in ENDED:
            built.proofs[status] = result
        return ENDED.get(status, "unknown")
    z, duals = np.asarray(result.x), np.asarray(result.z)
    z = sharpened(built.program, z, duals)
    variables = {
        name: z[first : first + int(np.prod(shape))].reshape(shape) for name, (first, shape) in built.layout.items()
    }
    multipliers = {label: float(sign * duals[row]) for label, (row, sign) in built.rows.items()}
    objective = built.sign * (float(result.obj_val) + built.program.constant)
    count = int(result.iterations)
    return Answer(variables=variables, multipliers=multipliers, objective=objective, iterations=count, paper=paper)


def _proof(built: Conic, status: str) -> Any:
    """What a method ends with so, as ``solve`` found it or found now; None where it does not."""
    if status not in built.proofs:
        found = minimised(built.program)
        built.proofs[str(found.status)] = found
    return built.proofs.get(status)


def conflict(built: Conic) -> Failure | None:
    """Multipliers of constraints whose weighted sum no point meets (J. Farkas, 1902); None where they cannot be told from others,
    those of constraints that are no rows of the program."""
    if (result := _proof(built, "PrimalInfeasible")) is None:
        return None
    weights = {label: abs(float(sign * result.z[row])) for label, (row, sign) in built.rows.items()}
    largest = max(weights.values(), default=0.0)
    kept = {label: v for label, v in sorted(weights.items(), key=lambda pair: -pair[1]) if v > 1e-3 * largest}
    return Failure(kind="infeasible", conflict=kept, proved=True, nearest=math.inf) if kept else None


def endless(built: Conic) -> tuple[dict[str, np.ndarray], Failure] | None:
    """A feasible point, and that the objective falls for ever from there: along a ray of all the constraints' directions of
    recession on which it falls; None where either is not found."""
    if (result := _proof(built, "DualInfeasible")) is None:
        return None
    inside = minimised(replace(built.program, P=0.0 * built.program.P, q=0.0 * built.program.q))
    if str(inside.status) not in SOLVED:
        return None
    ray, point = np.asarray(result.x), np.asarray(inside.x)
    parts = {name: slice(first, first + int(np.prod(shape))) for name, (first, shape) in built.layout.items()}
    name, steepest = max(((n, ray[part]) for n, part in parts.items()), key=lambda pair: np.abs(pair[1]).max(initial=0.0))
    if not np.abs(steepest).max(initial=0.0) > 0:
        return None
    moved = point + (1 + np.linalg.norm(point)) / np.linalg.norm(ray) * ray
    k = int(np.abs(steepest).argmax())
    shape = built.layout[name][1]
    places = ", ".join(str(int(i) + 1) for i in np.unravel_index(k, shape)) if shape else ""
    along = (f"{name}[{places}]" if places else name, bool(steepest[k] > 0))
    variables = {n: moved[part].reshape(built.layout[n][1]) for n, part in parts.items()}
    return variables, Failure(kind="unbounded", along=along)


def sharpened(program: ConeProgram, z: np.ndarray, duals: np.ndarray) -> np.ndarray:
    """Small weights of entropies to relative accuracy, by the duals, where the weights have absolute accuracy alone.

    With (u, v, w) dual to y exp(x / y) <= c at a point where both are tight, y = c exp(v / u - 1). The multiplier of a condition
    y >= 0, which the cone implies, is part of v.
    """
    sizes = np.array([size for _, size, _ in program.cones], dtype=int)
    starts = np.cumsum(sizes) - sizes
    kinds = np.array([kind for kind, *_ in program.cones])
    first = starts[kinds == "exponential"]
    rows = program.A.tocsr()
    counts = np.diff(rows.indptr)
    first = first[(counts[first + 1] == 1) & (counts[first + 2] == 0) & (program.b[first + 1] == 0) & (program.b[first + 2] > 0)]
    at, factor = rows.indices[rows.indptr[first + 1]], -rows.data[rows.indptr[first + 1]]
    bounds = np.flatnonzero(np.repeat(kinds == "nonneg", sizes) & (counts == 1) & (program.b == 0))
    entries = rows.indptr[bounds]
    bounded = np.bincount(rows.indices[entries], -rows.data[entries] * duals[bounds], len(z))
    with np.errstate(all="ignore"):
        slope = (duals[first + 1] + bounded[at] / factor) / duals[first]
        known = program.b[first + 2] * np.exp(slope - 1) / factor
    kept = np.isfinite(known) & (np.abs(known - z[at]) <= ABSOLUTE) & (known < SMALL)
    z = z.copy()
    z[at[kept]] = known[kept]
    return z


def minimised(program: ConeProgram, accuracy: tuple[float, float, float] = FIRST, seconds: float | None = None) -> Any:
    """Clarabel's solution to an accuracy: what is asked for, what is accepted, and the share of the way that a step takes."""
    wanted, accepted, step = accuracy
    limit = None if seconds is None else max(seconds, LEAST_S)
    return solved(program, accuracy=wanted, accepted=accepted, step=step, seconds=limit)
