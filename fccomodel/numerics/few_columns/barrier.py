"""An interior-point method for programs with few variables and many rows (``arrow``).

Its steps are those of S. Mehrotra, On the implementation of a primal-dual interior point method, 1992.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
import torch

from fccomodel.numerics.few_columns.arrow import Arrow

#: Iterations at most.
ITERATIONS = 60
#: Times that a step is refined.
REFINEMENTS = 2
#: Residual of a step below which it is not refined.
STEP_RESIDUAL = 1e-12
#: Share of a pivot that is added to it.
REGULARISATION = 1e-13
#: Share of the way to the boundary that a step goes.
STEP_SHARE = 0.995
#: Iterations without progress after which the method ends, if the accepted accuracy is reached.
IDLE_IF_ACCEPTED = 2
#: Iterations without progress after which the method ends, if the accepted accuracy is not reached.
IDLE = 4


class BarrierResult(NamedTuple):
    """A solution in the form of Clarabel's: ``z`` has the duals of all rows of the program, in order."""

    status: str
    x: np.ndarray
    z: np.ndarray
    obj_val: float
    iterations: int


class NewtonSystem:
    """The linear equations of one iteration for weights d of the rows, factored for any right sides."""

    def __init__(self, parts: Arrow, d: np.ndarray) -> None:
        self.parts = parts
        self.d = d
        self.p = len(parts.shared)
        K = self._matrix()
        above = np.arange(len(K)) < self.p
        sizes = np.abs(K.diagonal())
        smallest = np.where(above, REGULARISATION, 1.0)
        self.scale = 1 / np.sqrt(np.where(sizes > REGULARISATION, sizes, smallest))
        K *= self.scale[:, None] * self.scale
        diagonal = np.diag_indices(len(K))
        K[diagonal] += np.where(above, REGULARISATION, -REGULARISATION)
        self.factor = torch.linalg.lu_factor_ex(torch.from_numpy(K))[:2]

    def _matrix(self) -> np.ndarray:
        """The matrix of the equations of x and y, after each t_c is eliminated, (p + equations, ..)."""
        parts, p = self.parts, self.p
        S = self._of_x()
        of_x, self.ET = parts.equal
        coupling = of_x
        if self.ET is not None:
            along_vectors = np.einsum("aic,ijc->ajc", self.ET, self.v)
            coupling = of_x + parts.pulled(self._by_vector(along_vectors))
        size = p + len(of_x)
        K = np.zeros((size, size))
        K[:p, :p] = S
        K[p:, :p] = coupling
        K[:p, p:] = coupling.T
        if self.ET is not None:
            solved = np.einsum("ijc,ajc->aic", self.inverse, self.ET)
            K[p:, p:] = -np.tensordot(self.ET, solved, ((1, 2), (1, 2)))
        return K

    def _of_x(self) -> np.ndarray:
        """The matrix of the equations of x, after each t_c is eliminated.

        It sets ``v``, the change of t_c for a unit of x along each of t_c's vectors u, (k, j, c).
        """
        parts = self.parts
        which, of, a, g = parts.local
        size, count = parts.own.shape
        turns = len(parts.place)
        d = self.d[which]
        B = parts.held.copy()
        C = np.zeros((size, turns, count))
        for i in range(size):
            weighted = d * a[i]
            for j in range(turns):
                C[i, j] = np.bincount(of, weighted * g[j], count)
            for j in range(i + 1):
                B[i, j] += np.bincount(of, weighted * a[j], count)
                B[j, i] = B[i, j]
        diagonal = np.arange(size)
        B[diagonal, diagonal] *= 1 + REGULARISATION
        self.inverse = _inverse(B)
        self.v = -np.einsum("ijc,jkc->ikc", self.inverse, C)
        change = np.einsum("im,ijm->jm", a, self.v[..., of])
        return self._summed(d, g + change)

    def _summed(self, d: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """P's block of x plus sum_c U_c'W_c U_c, where ``ahead`` (j, rows) has the vectors g_i + V'a_i."""
        parts = self.parts
        group = parts.local.of
        turns = len(parts.place)
        count = parts.own.shape[1]
        bent = None
        if parts.curved is not None:
            bent = np.einsum("kic,klc,ljc->ijc", self.v, parts.curved, self.v)
        rows, vector = parts.free
        count_of_vectors = parts.U.shape[1]
        w = np.bincount(vector, self.d[rows], count_of_vectors).astype(float)
        S = torch.from_numpy(parts.quadratic.copy())
        for i in range(turns):
            for j in range(i + 1):
                W = np.bincount(group, d * ahead[i] * ahead[j], count)
                if bent is not None:
                    W = W + bent[i, j]
                if i == j:
                    groups, vectors = parts.ties[i]
                    w[vectors] += W[groups]
                    continue
                in_both = (parts.place[i] >= 0) & (parts.place[j] >= 0)
                both = np.flatnonzero(in_both)
                if both.size:
                    product = self._between(i, j, both, W[both])
                    S += product + product.T
        V = parts.U * torch.from_numpy(np.sqrt(w))
        return (S + V @ V.T).numpy()

    def _between(self, i: int, j: int, groups: np.ndarray, weights: np.ndarray) -> torch.Tensor:
        """The sum of u_ci w_c u_cj' over some groups c."""
        places = self.parts.place
        left = self.parts.U[:, torch.from_numpy(places[i, groups])]
        right = self.parts.U[:, torch.from_numpy(places[j, groups])]
        return left * torch.from_numpy(weights) @ right.T

    def _by_vector(self, r: np.ndarray) -> np.ndarray:
        """Numbers (.., j, c) of the vectors u of each t_c, as weights of all rows of U."""
        count_of_vectors = self.parts.U.shape[1]
        weights = np.zeros((*r.shape[:-2], count_of_vectors))
        for j, (groups, vectors) in enumerate(self.parts.ties):
            weights[..., vectors] = r[..., j, groups]
        return weights

    def __call__(self, f: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The dz and dy with (P + A'dA) dz + E'dy = f and E dz = r, and A dz."""
        parts, p = self.parts, self.p
        ft = f[p:].reshape(parts.own.shape)
        products = np.einsum("ic,ijc->jc", ft, self.v)
        pulled = parts.pulled(self._by_vector(products))
        inner = np.einsum("ijc,jc->ic", self.inverse, ft)
        top = f[:p] + pulled
        bottom = r
        if self.ET is not None:
            bottom = r - np.tensordot(self.ET, inner)
        scaled = self.scale * np.concatenate([top, bottom])
        right = torch.from_numpy(scaled)
        column = torch.linalg.lu_solve(*self.factor, right[:, None])
        solution = self.scale * column[:, 0].numpy()
        dx = solution[:p]
        dy = solution[p:]
        along = parts.along(dx)
        dt = inner + np.einsum("ijc,jc->ic", self.v, along[parts.place])
        if self.ET is not None:
            of_equations = np.tensordot(dy, self.ET, 1)
            dt = dt - np.einsum("ijc,jc->ic", self.inverse, of_equations)
        flat = dt.ravel()
        dz = np.concatenate([dx, flat])
        arguments = np.concatenate([along, flat])
        Adz = parts.T @ arguments
        return dz, dy, Adz

    def refined(
        self, f: np.ndarray, r: np.ndarray, times: int = REFINEMENTS
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The solution with iterative refinement, at most ``times`` times."""
        parts = self.parts
        dz, dy, Adz = self(f, r)
        before = math.inf
        for _ in range(times):
            rest_f = f - parts.P @ dz - parts.back(self.d * Adz) - parts.E.T @ dy
            rest_r = r - parts.E @ dz
            residual = _largest(rest_f, rest_r)
            if not STEP_RESIDUAL < residual < 0.5 * before:
                break
            before = residual
            more_dz, more_dy, more_Adz = self(rest_f, rest_r)
            dz = dz + more_dz
            dy = dy + more_dy
            Adz = Adz + more_Adz
        return dz, dy, Adz


def _inverse(B: np.ndarray) -> np.ndarray:
    """The inverses of many small positive definite matrices (k, k, c), swept all at once."""
    swept = B.copy()
    for k in range(len(swept)):
        pivot = 1 / swept[k, k]
        column = swept[:, k].copy()
        row = swept[k] * pivot
        row[k] = pivot
        column[k] = 0.0
        swept[:, k] = 0.0
        swept -= column[:, None] * row[None]
        swept[k] = row
    return swept


class Iterate(NamedTuple):
    """An iterate with its residuals.

    z        the variables
    s, u     slacks and duals of the inequalities
    y        duals of the equations
    primal   residual of the inequalities, A z + s - b
    equal    residual of the equations, E z - e
    dual     residual of the dual equations
    off      relative errors: primal, dual, gap
    """

    z: np.ndarray
    s: np.ndarray
    u: np.ndarray
    y: np.ndarray
    primal: np.ndarray
    equal: np.ndarray
    dual: np.ndarray
    off: tuple[float, float, float]


def minimised(parts: Arrow, accuracy: tuple[float, float], seconds: float | None = None) -> BarrierResult:
    """The optimum: ``Solved`` to the first accuracy, ``AlmostSolved`` to the second, or ``Unknown``."""
    began = time.perf_counter()
    wanted, accepted = accuracy
    now = best = _begin(parts)
    progress = Stalling(wanted, now)
    iterations = 0
    with np.errstate(all="ignore"):
        while max(best.off) > wanted and iterations < ITERATIONS:
            patience = IDLE_IF_ACCEPTED
            if max(best.off) > accepted:
                patience = IDLE
            if progress.idle >= patience:
                break
            if seconds is not None and time.perf_counter() - began > seconds:
                break
            try:
                now = _next(parts, now)
            except (RuntimeError, ValueError):  # equations that cannot be solved
                break
            iterations += 1
            if not np.isfinite(now.off).all():
                break
            progress.see(now)
            if max(now.off) < max(best.off):
                best = now
    return _result(parts, best, _status(max(best.off), wanted, accepted), iterations)


class Stalling:
    """Counts the iterations without progress.

    An iteration makes progress if an error above the wanted accuracy falls by a tenth, or, while the gap
    is above it, the product s.u.

    wanted   the relative error that is wanted
    least    the least errors so far: primal, dual, gap
    product  the least product s.u so far
    idle     iterations since the last progress
    """

    def __init__(self, wanted: float, start: Iterate) -> None:
        self.wanted = wanted
        self.least = start.off
        self.product = math.inf
        self.idle = 0

    def see(self, now: Iterate) -> None:
        """Count one iteration."""
        product = float(now.s @ now.u)
        _, _, gap = now.off
        gains = gap > self.wanted and product < 0.9 * self.product
        for error, before in zip(now.off, self.least, strict=True):
            gains = gains or self.wanted < error < 0.9 * before
        self.idle += 1
        if gains:
            self.idle = 0
        self.product = min(self.product, product)
        primal, dual, least_gap = (min(pair) for pair in zip(now.off, self.least, strict=True))
        self.least = (primal, dual, least_gap)


def _status(error: float, wanted: float, accepted: float) -> str:
    """Clarabel's word for a point with this relative error."""
    if error <= wanted:
        return "Solved"
    if error <= accepted:
        return "AlmostSolved"
    return "Unknown"


def _begin(parts: Arrow) -> Iterate:
    """The first iterate: the equations hold and the slacks are least.

    L. Vandenberghe, The CVXOPT linear and quadratic cone program solvers, 2010.
    """
    unit_weights = NewtonSystem(parts, np.ones(len(parts.b)))
    right = parts.back(parts.b) - parts.q
    z, y, Az = unit_weights.refined(right, parts.e)
    u = Az - parts.b
    return _point(parts, z, _inside(-u), _inside(u), y)


def _inside(s: np.ndarray) -> np.ndarray:
    """The entries, all increased by one number if some of them are not positive."""
    minus_least = -s.min(initial=0.0)
    largest = np.abs(s).max(initial=0.0)
    if minus_least < -1e-8 * (1 + largest):
        return s
    return s + 1 + minus_least


def _next(parts: Arrow, now: Iterate) -> Iterate:
    """One predictor-corrector step; the further the predictor can go, the less it is centred."""
    z, s, u, y, primal, equal, dual, _ = now
    step = NewtonSystem(parts, u / s)

    def towards(product: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The Newton step whose linearised complementarity removes ``product``, refined ``times`` times."""
        over = product / s
        of_slacks = step.d * primal - over
        right = -dual - parts.back(of_slacks)
        dz, dy, Adz = step.refined(right, -equal, times)
        shift = primal + Adz
        return dz, -shift, step.d * shift - over, dy

    m = max(len(s), 1)
    mean = float(s @ u) / m
    _, ds, du, _ = towards(s * u, 0)
    reach = min(_reach(s, ds), _reach(u, du))
    predicted_s = s + reach * ds
    predicted_u = u + reach * du
    predicted_mean = float(predicted_s @ predicted_u) / m
    share_left = min(max(predicted_mean / mean, 0.0), 1.0)
    centring = share_left**3
    complementarity = s * u + ds * du - centring * mean
    dz, ds, du, dy = towards(complementarity, REFINEMENTS)
    slack_length = STEP_SHARE * _reach(s, ds)
    dual_length = STEP_SHARE * _reach(u, du)
    length = min(1.0, slack_length, dual_length)
    next_z = z + length * dz
    next_s = s + length * ds
    next_u = u + length * du
    next_y = y + length * dy
    return _point(parts, next_z, next_s, next_u, next_y)


def _reach(s: np.ndarray, ds: np.ndarray) -> float:
    """The largest a, up to 1 / STEP_SHARE, with s + a ds >= 0."""
    fastest_decrease = float((-ds / s).max(initial=0.0))
    return 1 / max(STEP_SHARE, fastest_decrease)


def _point(parts: Arrow, z: np.ndarray, s: np.ndarray, u: np.ndarray, y: np.ndarray) -> Iterate:
    """An iterate with its residuals and its relative errors."""
    Pz = parts.P @ z
    Az = parts.times(z)
    Ez = parts.E @ z
    pulled = parts.back(u) + parts.E.T @ y
    primal = Az + s - parts.b
    equal = Ez - parts.e
    dual = Pz + parts.q + pulled
    primal_size = max(_largest(Az, s, Ez, parts.b, parts.e), 1.0)
    dual_size = max(_largest(Pz, pulled, parts.q), 1e-12)
    value = float(0.5 * z @ Pz + parts.q @ z)
    bound = float(-0.5 * z @ Pz - parts.b @ u - parts.e @ y)
    gap_size = max(min(abs(value), abs(bound)), parts.unit)
    primal_error = _largest(primal, equal) / primal_size
    dual_error = _largest(dual) / dual_size
    gap = abs(value - bound) / gap_size
    errors = (primal_error, dual_error, gap)
    return Iterate(z, s, u, y, primal, equal, dual, errors)


def _largest(*vectors: np.ndarray) -> float:
    """The largest size of an entry."""
    return max(float(np.abs(vector).max(initial=0.0)) for vector in vectors)


def _result(parts: Arrow, best: Iterate, status: str, iterations: int) -> BarrierResult:
    """A point in the units and the order of the original program."""
    scaled_duals = np.concatenate([best.u, best.y])
    duals = scaled_duals * parts.sides / parts.unit
    original = parts.order >= 0
    z = np.zeros(np.count_nonzero(original))
    z[parts.order[original]] = duals[original]
    square = 0.5 * best.z @ (parts.P @ best.z)
    value = (square + parts.q @ best.z) / parts.unit
    return BarrierResult(status, parts.unscaled(best.z), z, float(value), iterations)
