"""An interior-point method for convex problems of moderate size. It finishes runs that their own
method cannot.

It needs no step size and no smoothing; kinks, degenerate and redundant constraints do not slow it.
It does need every row at once and functions that are known to be conic. The report judges its
answer like any other.
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
from fccomodel.conic.cones import MAX_NUMBERS, Assembled
from fccomodel.conic.model import conic, relaxed
from fccomodel.conic.program import Conic as Conic
from fccomodel.conic.scaling import MethodOutcome as MethodOutcome
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.failure import Failure
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret.reductions import one_thread
from fccomodel.library.atoms import Interval
from fccomodel.numerics.cone_programs import ConeProgram, solved

# Accuracies of gap and residuals: what is asked for, what is accepted if no more is reached, and
# the share of the way to the boundary that a step takes.
#: For the first attempts.
FIRST = (1e-11, 1e-7, 0.99)
#: After an attempt that ended without progress.
SECOND = (1e-9, 1e-5, 0.9)
#: For the method for few variables and many rows (no share). Clarabel follows if it reaches less.
FEW_COLUMNS = (1e-11, 1e-8)
SOLVED = ("Solved", "AlmostSolved")
#: Clarabel's attempts as (units, accuracy). The units are those of the program (None), those in
#: which its numbers are near 1, or these around the exponentials' values at the point reached.
ATTEMPTS = ((None, FIRST), (None, SECOND), ("near 1", FIRST), ("exponentials", FIRST))
#: The attempts for a program whose numbers are far from 1.
ODD_ATTEMPTS = (("near 1", FIRST), ("exponentials", FIRST), (None, FIRST), (None, SECOND))
#: An optimum below this may be smaller than the accuracy, which is absolute there ...
SMALL_OPTIMUM = 1e-4
#: ... and it is if the products of slacks and multipliers are not below this share of it. Other units
#: are tried then.
SMALL_GAP = 1e-6
#: Shares of the largest multiplier above which a conflict names constraints. The first share is
#: used whose constraints are still infeasible.
CONFLICT_SHARES = (0.1, 1e-2, 1e-3)
#: The largest conflict from which constraints are removed one by one.
MAX_REMOVED = 6
#: The largest number of rows of a program whose conflicts are reduced.
MAX_REDUCED_ROWS = 1000
#: The shortest time limit, in seconds by the clock.
MIN_LIMIT_S = 0.1
#: A search that is foreseen to take so many times the time that is left is not begun. (Forecasts are
#: within a factor of three.)
HOPELESS = 3.0
#: The kind of a problem without an optimum, by the status that claims it.
ENDED = {"PrimalInfeasible": "infeasible", "DualInfeasible": "unbounded"}
#: Entropy weights below this are computed from the duals.
SMALL_WEIGHT = 1e-3
#: The largest difference between such a weight and the one that Clarabel found.
WEIGHT_ACCURACY = 1e-7


@dataclass(frozen=True, eq=False, kw_only=True)
class ConicAnswer:
    """The optimum.

    Variables are given by name, multipliers by label, the objective in the model's sense; ``paper``
    is the key of the method's paper.
    """

    variables: dict[str, np.ndarray]
    multipliers: dict[str, float]
    objective: float
    iterations: int
    paper: str


def of(bound: Bound, where: Callable[[ir.Expr], Interval]) -> Conic | None:
    """The problem as a conic program, or None if no conic form is known or it is too large.

    ``where``: an interval that holds each entry of an expression's value.
    """
    try:
        with np.errstate(all="ignore"):
            cone_model = conic(bound, where)
    except (NotConic, ArithmeticError, FccoError):  # what is not defined is said by those who evaluate it
        return None
    if cone_model.finite and cone_model.program.P.nnz + cone_model.program.A.nnz <= MAX_NUMBERS:
        return cone_model
    return None


def cost(built: Conic) -> float:
    """Predicted seconds of one core that ``solve`` takes, from counts."""
    return built.seconds


def solve(built: Conic, *, seconds: float | None = None) -> ConicAnswer | str:
    """The optimum, or the reason why there is none.

    The reason is ``infeasible`` or ``unbounded`` if a checked ray proves it, else ``unknown``.
    """
    began = time.perf_counter()

    def left() -> float | None:
        """The seconds that are left, or None without a limit."""
        if seconds is None:
            return None
        return seconds - (time.perf_counter() - began)

    if built.parts is not None:
        from fccomodel.numerics.few_columns import barrier

        with one_thread():
            outcome = barrier.minimised(built.parts, FEW_COLUMNS, seconds)
        if outcome.status in SOLVED:
            return _answer(built, MethodOutcome(*outcome), "mehrotra-1992")
    result = _tried(built, left)
    if isinstance(result, str):
        return result
    return _answer(built, result, "clarabel-2024")


def _answer(built: Conic, outcome: MethodOutcome, paper: str) -> ConicAnswer:
    """An optimum of the program in the model's words; ``paper`` is the key of the method's paper."""
    z = sharpened(built.program, outcome.x, outcome.z)
    variables = {}
    for name, (first, shape) in built.layout.items():
        entries = z[first : first + int(np.prod(shape))]
        variables[name] = entries.reshape(shape)
    multipliers = {}
    for label, (row, sign) in built.rows.items():
        multiplier = float(sign * outcome.z[row])
        # At the end of a domain a slope may not be finite: the report finds its own multiplier.
        if math.isfinite(multiplier):
            multipliers[label] = multiplier
    return ConicAnswer(
        variables=variables,
        multipliers=multipliers,
        objective=built.sign * (float(outcome.obj_val) + built.program.constant),
        iterations=int(outcome.iterations),
        paper=paper,
    )


def _tried(built: Conic, left: Callable[[], float | None]) -> MethodOutcome | str:
    """The first optimum or checked ray that Clarabel finds; ``unknown`` at once if the time is too short."""
    allowed = left()
    if allowed is not None and built.whole > HOPELESS * max(allowed, MIN_LIMIT_S):
        return "unknown"
    built.proofs["tried"] = max(built.proofs.get("tried", 0.0), math.inf if allowed is None else allowed)
    return _by_attempts(built, left)


def _by_attempts(built: Conic, left: Callable[[], float | None]) -> MethodOutcome | str:
    """``_tried``: one attempt after the other.

    The attempts are ATTEMPTS, or ODD_ATTEMPTS if the program's numbers are far from 1.
    """
    odd = scaling.odd(built.program)
    # solved, but only to an accuracy that is absolute, or not to the accuracy that was asked for
    coarse: MethodOutcome | None = None
    almost: MethodOutcome | None = None
    near: np.ndarray | None = None  # the last point reached
    for scale, accuracy in ODD_ATTEMPTS if odd else ATTEMPTS:
        remaining = left()
        if near is not None and remaining is not None and remaining <= 0:
            break
        if scale is None and coarse is not None:
            continue
        if scale == "exponentials" and (near is None or not scaling.exponentials(built.program).size):
            continue
        outcome, units = _attempt(built, scale, accuracy, remaining, near)
        reason = _proved(built, outcome, units)
        if reason is not None:
            return reason
        if outcome.status in ENDED:
            continue
        whole = outcome if units is None else units.whole(sides.exact(units.program, outcome))
        if np.isfinite(whole.x).all():
            near = whole.x
        if outcome.status == "Solved" or (outcome.status in SOLVED and not odd):
            if units is not None or not _coarse(built.program, outcome):
                return whole
            coarse = whole
        elif outcome.status in SOLVED and almost is None:
            almost = whole
        if outcome.status == "MaxTime":
            break
    return coarse or almost or "unknown"


def _attempt(
    built: Conic,
    scale: str | None,
    accuracy: tuple[float, float, float],
    seconds: float | None,
    near: np.ndarray | None,
) -> tuple[MethodOutcome, scaling.ScaledProgram | None]:
    """The outcome of one of ATTEMPTS, and the units that it is in."""
    if scale is None:
        return minimised(built.program, accuracy, seconds), None
    units = scaling.scaled(built.program, near if scale == "exponentials" else None)
    return minimised(units.program, accuracy, seconds), units


def _coarse(program: Assembled, outcome: MethodOutcome) -> bool:
    """Whether the optimum is so small that an absolute accuracy says little about it."""
    size = abs(outcome.obj_val)
    if not 0 < size < SMALL_OPTIMUM:
        return False
    slacks = program.b - program.A @ outcome.x
    return float(np.abs(slacks * outcome.z).sum()) > SMALL_GAP * size


def _proved(built: Conic, outcome: MethodOutcome, units: scaling.ScaledProgram | None) -> str | None:
    """The proved reason why there is no optimum, or None.

    A small program's rays are tried whatever the status is.
    """
    claims: list[str] = []
    if outcome.status not in SOLVED and len(built.program.b) <= MAX_REDUCED_ROWS:
        claims = [*ENDED]
    elif outcome.status in ENDED:
        claims = [outcome.status]
    for claim in claims:
        if _checked(built, outcome._replace(status=claim), units):
            return ENDED[claim]
    return None


def _checked(built: Conic, outcome: MethodOutcome, units: scaling.ScaledProgram | None) -> bool:
    """Whether a ray proves that there is no optimum; the proof is stored."""
    program = built.program if units is None else units.program
    if outcome.status == "DualInfeasible":
        if not rays.falls(program, outcome.x):
            return False
        if units is None:
            built.proofs["unbounded"] = outcome.x
        else:
            built.proofs["unbounded"] = units.point(outcome.x)
        return True
    proof = rays.conflict(program, outcome.z, *_units(built, units))
    if proof is None:
        return False
    known = built.proofs.get("infeasible")
    if known is None or known.radius < proof.radius:
        if units is not None:
            proof = replace(proof, y=units.duals(proof.y))
        built.proofs["infeasible"] = proof
    return math.isinf(proof.radius)


def _units(built: Conic, units: scaling.ScaledProgram | None) -> tuple[np.ndarray, np.ndarray]:
    """A mask of the columns that are the model's variables, and the factors from their entries to the
    model's units.
    """
    own = np.zeros(len(built.program.q), dtype=bool)
    for first, shape in built.layout.values():
        own[first : first + int(np.prod(shape))] = True
    if units is None:
        return own, np.ones(len(own))
    return own, units.columns * units.size


def conflict(built: Conic, seconds: float | None = None) -> Failure | None:
    """Multipliers that prove that no point satisfies the constraints (J. Farkas, 1902), or None.

    If ``radius`` is finite, the proof holds for points within that radius. None is also returned if
    the proof uses constraints that are no rows of the program. Constraints that the proof does not
    need are left out.
    """
    allowed = math.inf if seconds is None else seconds
    if "infeasible" not in built.proofs and allowed > built.proofs.get("tried", 0.0):
        _tried(built, lambda: seconds)
    proof = built.proofs.get("infeasible")
    if proof is None:
        return None
    heights = abs(built.program.A).max(axis=1).toarray().ravel()
    sizes = np.abs(proof.y) * heights
    weights = {label: float(sizes[row]) for label, (row, _) in built.rows.items()}
    ordered = dict(sorted(weights.items(), key=lambda pair: -pair[1]))
    largest = max(weights.values(), default=0.0)
    members = {label: weight for label, weight in ordered.items() if weight > CONFLICT_SHARES[-1] * largest}
    if len(built.program.b) <= MAX_REDUCED_ROWS:
        members = _reduced(built, ordered, members, proof.radius, seconds)
    if members:
        return Failure(
            kind="infeasible", conflict=members, proved=True, nearest=math.inf, radius=proof.radius
        )
    return None


def _reduced(
    built: Conic,
    ordered: Mapping[str, float],
    kept: dict[str, float],
    radius: float,
    seconds: float | None,
) -> dict[str, float]:
    """The constraints of a conflict without those that the proof does not need."""
    largest = max(ordered.values(), default=0.0)
    for share in CONFLICT_SHARES[:-1]:
        fewer = {label: weight for label, weight in ordered.items() if weight > share * largest}
        if len(fewer) < len(kept) and _still(built, fewer, radius, seconds):
            kept = fewer
            break
    if len(kept) > MAX_REMOVED:
        return kept
    for label in reversed(kept):
        fewer = {other: weight for other, weight in kept.items() if other != label}
        if fewer and _still(built, fewer, radius, seconds):
            kept = fewer
    return kept


def _still(built: Conic, kept: Mapping[str, float], radius: float, seconds: float | None) -> bool:
    """Whether these constraints and the sets alone can still be proved infeasible."""
    program = built.program
    is_kept = np.ones(len(program.b))
    for label, (row, _) in built.rows.items():
        if label not in kept:
            is_kept[row] = 0.0
    A = sparse.csc_matrix(sparse.diags_array(is_kept) @ program.A)
    fewer = replace(program, A=A, b=is_kept * program.b)
    proofs: dict[str, Any] = {}
    _tried(replace(built, program=fewer, proofs=proofs), lambda: seconds)
    return "infeasible" in proofs and proofs["infeasible"].radius >= radius


def empty(built: Conic) -> Failure | None:
    """Multipliers that prove infeasibility, whatever the objective, or None if there is no such
    proof."""
    program = replace(built.program, P=0.0 * built.program.P, q=0.0 * built.program.q)
    return conflict(replace(built, program=program, proofs={}))


def disproved(
    bound: Bound, where: Callable[[ir.Expr], Interval], sides: Mapping[str, float], seconds: float
) -> Failure | None:
    """Multipliers that prove infeasibility from the conic constraints alone (see
    ``model.relaxed``), or None.

    None is also returned if the proof is expected to take longer than ``seconds``.
    """
    try:
        with np.errstate(all="ignore"):
            relaxed_model = relaxed(bound, where, sides)
    except (NotConic, ArithmeticError, FccoError):
        return None
    if not relaxed_model.finite or relaxed_model.program.A.nnz > MAX_NUMBERS or cost(relaxed_model) > seconds:
        return None
    return conflict(relaxed_model, seconds)


def endless(built: Conic) -> tuple[dict[str, np.ndarray], Failure] | None:
    """A feasible point and a direction along which the objective falls for ever, or None if either
    is missing.

    The direction is a ray of all constraints' recession directions.
    """
    if "unbounded" not in built.proofs:
        _tried(built, lambda: None)
    ray = built.proofs.get("unbounded")
    if ray is None:
        return None
    point = _feasible(built)
    if point is None:
        return None
    along = _steepest(built, ray)
    if along is None:
        return None
    step = (1 + np.linalg.norm(point)) / np.linalg.norm(ray)
    farther = point + step * ray
    variables = {}
    for name, (first, shape) in built.layout.items():
        variables[name] = farther[first : first + int(np.prod(shape))].reshape(shape)
    return variables, Failure(kind="unbounded", along=along, proved=True)


def _steepest(built: Conic, ray: np.ndarray) -> tuple[str, bool] | None:
    """The entry of a variable that changes most along a ray, and whether it grows; None if none changes."""
    largest = 0.0
    steepest = None
    for name, (first, shape) in built.layout.items():
        part = ray[first : first + int(np.prod(shape))]
        sizes = np.abs(part)
        if sizes.max(initial=0.0) > largest:
            largest = sizes.max()
            k = int(sizes.argmax())
            steepest = (_entry_name(name, shape, k), bool(part[k] > 0))
    return steepest


def _entry_name(name: str, shape: tuple[int, ...], k: int) -> str:
    """The name of entry k of a flattened variable, with places counted from 1."""
    if not shape:
        return name
    indices = np.unravel_index(k, shape)
    places = ", ".join(str(int(i) + 1) for i in indices)
    return f"{name}[{places}]"


def _feasible(built: Conic) -> np.ndarray | None:
    """A point that satisfies all conditions of the program, or None."""
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
    """The point with small entropy weights computed from the duals, to relative accuracy.

    Clarabel gives the weights only to absolute accuracy. With (u, v, w) dual to y exp(x / y) <= c
    at a point where both are tight, y = c exp(v / u - 1). The multiplier of a condition y >= 0,
    which the cone implies, is part of v.
    """
    sizes = np.array([size for _, size, _ in program.cones], dtype=int)
    starts = np.cumsum(sizes) - sizes
    kinds = np.array([kind for kind, *_ in program.cones])
    first = starts[kinds == "exponential"]
    rows = program.A.tocsr()
    counts = np.diff(rows.indptr)
    weight_is_variable = (counts[first + 1] == 1) & (program.b[first + 1] == 0)
    level_is_positive = (counts[first + 2] == 0) & (program.b[first + 2] > 0)
    first = first[weight_is_variable & level_is_positive]
    second_entry = rows.indptr[first + 1]
    at = rows.indices[second_entry]
    factor = -rows.data[second_entry]
    nonnegative = np.repeat(kinds == "nonneg", sizes)
    bounds = np.flatnonzero(nonnegative & (counts == 1) & (program.b == 0))
    entries = rows.indptr[bounds]
    pull = -rows.data[entries] * duals[bounds]
    bounded = np.bincount(rows.indices[entries], pull, len(z))
    with np.errstate(all="ignore"):
        of_bounds = bounded[at] / factor
        slope = (duals[first + 1] + of_bounds) / duals[first]
        level = program.b[first + 2]
        known = level * np.exp(slope - 1) / factor
    agrees = np.abs(known - z[at]) <= WEIGHT_ACCURACY
    is_small = np.isfinite(known) & agrees & (known < SMALL_WEIGHT)
    z = z.copy()
    z[at[is_small]] = known[is_small]
    return z


def minimised(
    program: ConeProgram, accuracy: tuple[float, float, float] = FIRST, seconds: float | None = None
) -> MethodOutcome:
    """Clarabel's solution.

    ``accuracy`` is what is asked for, what is accepted, and the share of the way to the boundary
    that a step takes.
    """
    accuracy_wanted, accepted, step = accuracy
    if seconds is None:
        limit = None
    else:
        limit = max(seconds, MIN_LIMIT_S)
    turn = unrotated(program)
    if turn is None:
        with_norms = program
    else:
        with_norms = _with_norms(program, turn)
    solution = solved(with_norms, accuracy=accuracy_wanted, accepted=accepted, step=step, seconds=limit)
    z = np.asarray(solution.z)
    if turn is not None:
        z = turn.T @ z
    return MethodOutcome(
        status=str(solution.status),
        x=np.asarray(solution.x),
        z=z,
        obj_val=float(solution.obj_val),
        iterations=int(solution.iterations),
    )


def _with_norms(program: ConeProgram, turn: sparse.csr_matrix) -> ConeProgram:
    """The program with second-order cones in place of those of ``t y >= |u|^2``."""
    cones = [
        ("second_order" if kind == "rotated" else kind, size, power) for kind, size, power in program.cones
    ]
    turned_rows = sparse.csc_matrix(turn @ program.A)
    return ConeProgram(P=program.P, q=program.q, A=turned_rows, b=turn @ program.b, cones=cones)


def unrotated(program: ConeProgram) -> sparse.csr_matrix | None:
    """The matrix that turns the rows (t, y, u) of ``t y >= |u|^2`` into (t + y, 2u, t - y), or
    None.

    Other rows stay as they are. None means that there are no such rows.
    """
    sizes = np.array([size for _, size, _ in program.cones], dtype=int)
    rotated = [kind == "rotated" for kind, *_ in program.cones]
    first = (np.cumsum(sizes) - sizes)[rotated]
    if not len(first):
        return None
    last = first + sizes[rotated] - 1
    count = int(sizes.sum())
    inside = np.repeat(rotated, sizes)
    middle = inside.copy()
    middle[first] = middle[first + 1] = False
    whole = np.flatnonzero(~inside)
    t = first
    y = first + 1
    u = np.flatnonzero(middle)
    same = np.ones(len(whole))
    one = np.ones(len(first))
    two = np.full(len(u), 2.0)
    # The rows that stay, t + y, t - y, and 2u.
    rows = np.concatenate([whole, first, first, last, last, u - 1])
    columns = np.concatenate([whole, t, y, t, y, u])
    values = np.concatenate([same, one, one, one, -one, two])
    return sparse.csr_matrix((values, (rows, columns)), (count, count))
