"""Convex problems of moderate size by an interior-point method: what ends a run that its own finish
does not bring to the end.

It needs no step size and no smoothing, and kinks, degenerate and redundant constraints do not slow
it; it needs every row at once, and the functions must be known to be conic. The report judges its
answer as any other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from fccomodel.conic import rays, scaling, sides
from fccomodel.conic.affine import NotConic as NotConic
from fccomodel.conic.cones import MOST_NUMBERS
from fccomodel.conic.model import conic, relaxed
from fccomodel.conic.program import Conic as Conic
from fccomodel.conic.scaling import Found as Found
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.failure import Failure
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret.reductions import one_thread
from fccomodel.library.atoms import Interval
from fccomodel.numerics.cone_programs import ConeProgram, solved

#: Accuracy that is asked for, of gap and residuals, what is taken where no more is reached, and the
#: share of the way to the boundary that a step takes: at first, and where that ends without
#: progress.
FIRST, SECOND = (1e-11, 1e-7, 0.99), (1e-9, 1e-5, 0.9)
#: The same of the method for few variables and many rows; where it has less, the other one follows.
OWN = (1e-11, 1e-8)
SOLVED = ("Solved", "AlmostSolved")
#: In what units Clarabel tries a program, and with what accuracy: as it is (None), in units in
#: which its numbers are near 1, and with these around the exponentials' values; the same of a
#: program whose numbers are not near 1.
ATTEMPTS = ((None, FIRST), (None, SECOND), ("near 1", FIRST), ("exponentials", FIRST))
ODD_ATTEMPTS = (("near 1", FIRST), ("exponentials", FIRST), (None, FIRST), (None, SECOND))
#: Shares of the largest multiplier, from which constraints are named in a conflict: the first with
#: which they still conflict.
SHARES = (0.1, 1e-2, 1e-3)
#: The most constraints in a conflict that are left out one by one to see whether the others still conflict.
MOST_TRIED = 6
#: The most rows of a program for that.
MOST_THINNED = 1000
#: Time limit by the clock, in seconds, where hardly any is left.
LEAST_S = 0.1
#: What a problem without an optimum is, by the status of a method that claims it.
ENDED = {"PrimalInfeasible": "infeasible", "DualInfeasible": "unbounded"}
#: Weights of entropies below this size are taken from the duals, where these differ from them by no
#: more than this.
SMALL, ABSOLUTE = 1e-3, 1e-7


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """The optimum: variables by name, multipliers by label, the objective in the model's sense, the
    number of iterations, and the paper of the method."""

    variables: dict[str, np.ndarray]
    multipliers: dict[str, float]
    objective: float
    iterations: int
    paper: str


def of(bound: Bound, where: Callable[[ir.Expr], Interval]) -> Conic | None:
    """The problem as a conic program, None where it is none that is known, or a large one; ``where``:
    an interval that holds each entry of an expression's value."""
    try:
        with np.errstate(all="ignore"):
            built = conic(bound, where)
    except (NotConic, ArithmeticError, FccoError):  # what is not defined is said by those who evaluate it
        return None
    if built.finite and built.program.P.nnz + built.program.A.nnz <= MOST_NUMBERS:
        return built
    return None


def cost(built: Conic) -> float:
    """Seconds of one core that ``solve`` takes, foreseen by counts."""
    return built.seconds


def solve(built: Conic, *, seconds: float | None = None) -> Answer | str:
    """The optimum, or why there is none, by a ray that is checked (``infeasible``, ``unbounded``), or
    ``unknown``."""
    began = time.perf_counter()
    result: Found | str = "unknown"
    paper = "mehrotra-1992"

    def left() -> float | None:
        if seconds is None:
            return None
        return seconds - (time.perf_counter() - began)

    if built.parts is not None:
        from fccomodel.numerics.few_columns import barrier

        with one_thread():
            found = barrier.minimised(built.parts, OWN, seconds)
        if found.status in SOLVED:
            result = Found(*found)
        else:
            result = "unknown"
    if isinstance(result, str):
        result, paper = _tried(built, left), "clarabel-2024"
    if isinstance(result, str):
        return result
    z, duals = result.x, result.z
    z = sharpened(built.program, z, duals)
    variables = {
        name: z[first : first + int(np.prod(shape))].reshape(shape)
        for name, (first, shape) in built.layout.items()
    }
    multipliers = {label: float(sign * duals[row]) for label, (row, sign) in built.rows.items()}
    objective = built.sign * (float(result.obj_val) + built.program.constant)
    count = int(result.iterations)
    return Answer(
        variables=variables, multipliers=multipliers, objective=objective, iterations=count, paper=paper
    )


def _tried(built: Conic, left: Callable[[], float | None]) -> Found | str:
    """The first optimum or checked ray that Clarabel finds: of the program as it is, with shorter
    steps, in units in which its numbers are near 1, and there around the exponentials' values at
    the point reached. Where the numbers are not near 1, those units come first."""
    odd = scaling.odd(built.program)
    close: Found | None = None
    near: np.ndarray | None = None
    for scale, accuracy in ODD_ATTEMPTS if odd else ATTEMPTS:
        remaining = left()
        if (near is not None or close is not None) and remaining is not None and remaining <= 0:
            break
        if scale is None:
            units, found = None, minimised(built.program, accuracy, remaining)
        elif scale == "exponentials" and (near is None or not scaling.exponentials(built.program).size):
            continue
        else:
            units = scaling.scaled(built.program, near if scale == "exponentials" else None)
            found = minimised(units.program, accuracy, remaining)
        if found.status in ENDED:
            claims = [found.status]
        else:
            claims = []
        if (
            found.status not in SOLVED and len(built.program.b) <= MOST_THINNED
        ):  # rays are tried whatever the status
            claims = [*ENDED]
        for claim in claims:
            if _checked(built, found._replace(status=claim), units):
                return ENDED[claim]
        if found.status in ENDED:
            continue
        if units is None:
            whole = found
        else:
            whole = units.whole(sides.exact(units.program, found))
        if found.status == "Solved" or found.status in SOLVED and not odd:
            return whole
        if np.isfinite(whole.x).all():
            near = whole.x
        if found.status in SOLVED and close is None:
            close = whole
        if found.status == "MaxTime":
            break
    return close or "unknown"


def _checked(built: Conic, found: Found, units: scaling.Scaled | None) -> bool:
    """Whether a ray proves that there is no optimum; what it proves is kept."""
    program = built.program if units is None else units.program
    if found.status == "DualInfeasible":
        if not rays.falls(program, found.x):
            return False
        if units is None:
            built.proofs["unbounded"] = found.x
        else:
            built.proofs["unbounded"] = units.point(found.x)
        return True
    proof = rays.conflict(program, found.z, *_units(built, units))
    if proof is None:
        return False
    known = built.proofs.get("infeasible")
    if known is None or known.radius < proof.radius:
        if units is None:
            built.proofs["infeasible"] = proof
        else:
            built.proofs["infeasible"] = replace(proof, y=units.duals(proof.y))
    return math.isinf(proof.radius)


def _units(built: Conic, units: scaling.Scaled | None) -> tuple[np.ndarray, np.ndarray]:
    """Which columns are the model's variables, and what their entries are in the model's units."""
    own = np.zeros(len(built.program.q), dtype=bool)
    for first, shape in built.layout.values():
        own[first : first + int(np.prod(shape))] = True
    return own, np.ones(len(own)) if units is None else units.columns * units.size


def conflict(built: Conic, seconds: float | None = None) -> Failure | None:
    """Multipliers of constraints whose weighted sum no point meets (J. Farkas, 1902), or none within
    ``radius`` where that is finite; None where there is no such proof, or they cannot be told from
    others, those of constraints that are no rows of the program. Constraints without which the
    proof holds are left out."""
    if "infeasible" not in built.proofs:
        _tried(built, lambda: seconds)
    proof = built.proofs.get("infeasible")
    if proof is None:
        return None
    heights = abs(built.program.A).max(axis=1).toarray().ravel()
    sizes = np.abs(proof.y) * heights
    weights = {label: float(sizes[row]) for label, (row, _) in built.rows.items()}
    ordered = dict(sorted(weights.items(), key=lambda pair: -pair[1]))
    largest = max(weights.values(), default=0.0)
    kept = {label: weight for label, weight in ordered.items() if weight > SHARES[-1] * largest}
    for share in SHARES[:-1] if len(built.program.b) <= MOST_THINNED else ():
        fewer = {label: weight for label, weight in ordered.items() if weight > share * largest}
        if len(fewer) < len(kept) and _still(built, fewer, proof.radius, seconds):
            kept = fewer
            break
    for label in reversed(kept) if len(kept) <= MOST_TRIED and len(built.program.b) <= MOST_THINNED else ():
        fewer = {other: weight for other, weight in kept.items() if other != label}
        if fewer and _still(built, fewer, proof.radius, seconds):
            kept = fewer
    if kept:
        return Failure(kind="infeasible", conflict=kept, proved=True, nearest=math.inf, radius=proof.radius)
    return None


def _still(built: Conic, kept: Mapping[str, float], radius: float, seconds: float | None) -> bool:
    """Whether no point meets these constraints and the sets alone."""
    program = built.program
    held = np.ones(len(program.b))
    held[[row for label, (row, _) in built.rows.items() if label not in kept]] = 0.0
    fewer = replace(program, A=sparse.csc_matrix(sparse.diags_array(held) @ program.A), b=held * program.b)
    proofs: dict[str, Any] = {}
    _tried(replace(built, program=fewer, proofs=proofs), lambda: seconds)
    return "infeasible" in proofs and proofs["infeasible"].radius >= radius


def empty(built: Conic) -> Failure | None:
    """Multipliers of constraints that no point meets, whatever the objective; None where none are found."""
    program = replace(built.program, P=0.0 * built.program.P, q=0.0 * built.program.q)
    return conflict(replace(built, program=program, proofs={}))


def disproved(
    bound: Bound, where: Callable[[ir.Expr], Interval], sides: Mapping[str, float], seconds: float
) -> Failure | None:
    """Multipliers of constraints that no point meets, by those constraints alone that are conic (see
    ``walk.relaxed``); None where there is no such proof in this time."""
    try:
        with np.errstate(all="ignore"):
            built = relaxed(bound, where, sides)
    except (NotConic, ArithmeticError, FccoError):
        return None
    if not built.finite or built.program.A.nnz > MOST_NUMBERS or cost(built) > seconds:
        return None
    return conflict(built, seconds)


def endless(built: Conic) -> tuple[dict[str, np.ndarray], Failure] | None:
    """A feasible point, and that the objective falls for ever from there: along a ray of all the
    constraints' directions of recession on which it falls; None where either is not found."""
    if "unbounded" not in built.proofs:
        _tried(built, lambda: None)
    ray = built.proofs.get("unbounded")
    if ray is None:
        return None
    point = _feasible(built)
    if point is None:
        return None
    parts = {name: slice(first, first + int(np.prod(shape))) for name, (first, shape) in built.layout.items()}
    name, steepest = max(
        ((n, ray[part]) for n, part in parts.items()), key=lambda pair: np.abs(pair[1]).max(initial=0.0)
    )
    if not np.abs(steepest).max(initial=0.0) > 0:
        return None
    moved = point + (1 + np.linalg.norm(point)) / np.linalg.norm(ray) * ray
    k = int(np.abs(steepest).argmax())
    shape = built.layout[name][1]
    if shape:
        places = ", ".join(str(int(i) + 1) for i in np.unravel_index(k, shape))
    else:
        places = ""
    along = (f"{name}[{places}]" if places else name, bool(steepest[k] > 0))
    variables = {n: moved[part].reshape(built.layout[n][1]) for n, part in parts.items()}
    return variables, Failure(kind="unbounded", along=along, proved=True)


def _feasible(built: Conic) -> np.ndarray | None:
    """A point that meets all conditions of the program."""
    program = replace(built.program, P=0.0 * built.program.P, q=0.0 * built.program.q)
    inside = minimised(program)
    if inside.status in SOLVED:
        return inside.x
    units = scaling.scaled(program)
    inside = minimised(units.program)
    if inside.status in SOLVED:
        return units.point(inside.x)
    return None


def sharpened(program: ConeProgram, z: np.ndarray, duals: np.ndarray) -> np.ndarray:
    """Small weights of entropies to relative accuracy, by the duals, where the weights have absolute
    accuracy alone.

    With (u, v, w) dual to y exp(x / y) <= c at a point where both are tight, y = c exp(v / u - 1).
    The multiplier of a condition y >= 0, which the cone implies, is part of v.
    """
    sizes = np.array([size for _, size, _ in program.cones], dtype=int)
    starts = np.cumsum(sizes) - sizes
    kinds = np.array([kind for kind, *_ in program.cones])
    first = starts[kinds == "exponential"]
    rows = program.A.tocsr()
    counts = np.diff(rows.indptr)
    first = first[
        (counts[first + 1] == 1)
        & (counts[first + 2] == 0)
        & (program.b[first + 1] == 0)
        & (program.b[first + 2] > 0)
    ]
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


def minimised(
    program: ConeProgram, accuracy: tuple[float, float, float] = FIRST, seconds: float | None = None
) -> Found:
    """Clarabel's solution to an accuracy: what is asked for, what is accepted, and the share of the
    way that a step takes."""
    wanted, accepted, step = accuracy
    if seconds is None:
        limit = None
    else:
        limit = max(seconds, LEAST_S)
    turn = unrotated(program)
    if turn is None:
        stated = program
    else:
        stated = _with_norms(program, turn)
    found = solved(stated, accuracy=wanted, accepted=accepted, step=step, seconds=limit)
    if turn is None:
        z = np.asarray(found.z)
    else:
        z = turn.T @ np.asarray(found.z)
    return Found(str(found.status), np.asarray(found.x), z, float(found.obj_val), int(found.iterations))


def _with_norms(program: ConeProgram, turn: sparse.csr_matrix) -> ConeProgram:
    """The program with cones of norms in place of those of ``t y >= |u|^2``."""
    cones = [
        ("second_order" if kind == "rotated" else kind, size, power) for kind, size, power in program.cones
    ]
    return ConeProgram(
        P=program.P, q=program.q, A=sparse.csc_matrix(turn @ program.A), b=turn @ program.b, cones=cones
    )


def unrotated(program: ConeProgram) -> sparse.csr_matrix | None:
    """The matrix that makes (t + y, 2u, t - y) of the rows (t, y, u) of ``t y >= |u|^2``, other rows
    as they are; None where there are no such rows."""
    sizes = np.array([size for _, size, _ in program.cones], dtype=int)
    first = (np.cumsum(sizes) - sizes)[[kind == "rotated" for kind, *_ in program.cones]]
    if not len(first):
        return None
    last = first + sizes[[kind == "rotated" for kind, *_ in program.cones]] - 1
    count = int(sizes.sum())
    inside = np.repeat([kind == "rotated" for kind, *_ in program.cones], sizes)
    middle = inside.copy()
    middle[first] = middle[first + 1] = False
    whole, u = np.flatnonzero(~inside), np.flatnonzero(middle)
    one, two = np.ones(len(first)), np.full(len(u), 2.0)
    rows = np.concatenate([whole, first, first, last, last, u - 1])
    columns = np.concatenate([whole, first, first + 1, first, first + 1, u])
    return sparse.csr_matrix(
        (np.concatenate([np.ones(len(whole)), one, one, one, -one, two]), (rows, columns)), (count, count)
    )
