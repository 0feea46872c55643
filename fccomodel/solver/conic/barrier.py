"""An interior-point method for programs of few variables and many rows (``arrow``), by the steps of S. Mehrotra, On the
implementation of a primal-dual interior point method, 1992."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from fccomodel.solver.conic.arrow import Arrow

#: Iterations at most; times that a step is refined, and what may be off; what is added to the pivots, of theirs; the share of the
#: way to the boundary.
MOST, REFINED, ENOUGH, ADDED, SHARE = 60, 2, 1e-12, 1e-13, 0.995
#: Iterations that gain nothing, after which it ends: where less would do, where not.
IDLE = (2, 4)


class Result(NamedTuple):
    """As of Clarabel: ``z`` has the duals of all rows of the program, in order."""

    status: str
    x: np.ndarray
    z: np.ndarray
    obj_val: float
    iterations: int


class Step:
    """The linear equations of one iteration, for weights d of the rows, solved for any right sides."""

    def __init__(self, parts: Arrow, d: np.ndarray) -> None:
        self.parts, self.d = parts, d
        (count, size), turns = parts.own.shape, parts.place.shape[1]
        (local, of, a, g, turn), has = parts.rows, parts.row >= 0
        weighted = d[local, None] * a
        B, C, diagonal = parts.curved.copy(), np.zeros((count, size, turns)), np.arange(size)
        for i in range(size):
            C[:, i] = np.bincount(of * turns + turn, weighted[:, i] * g, count * turns).reshape(count, turns)
            for j in range(i + 1):
                B[:, i, j] += np.bincount(of, weighted[:, i] * a[:, j], count)
                B[:, j, i] = B[:, i, j]
        B[:, diagonal, diagonal] *= 1 + ADDED
        self.inverse = _inverse(B)
        self.v = -(self.inverse @ C)
        ahead = np.einsum("mk,mkj->mj", a, self.v[of])
        ahead[np.arange(len(of)), turn] += g
        self.tied = parts.place >= 0
        bent = self.v.transpose(0, 2, 1) @ parts.curved @ self.v
        free = has & ~local
        w = np.bincount(parts.row[free], d[free] * parts.g[free] ** 2, len(parts.U)).astype(float)
        S = np.zeros((parts.U.shape[1],) * 2)
        for i in range(turns):
            for j in range(i + 1):
                both = self.tied[:, i] & self.tied[:, j]
                W = (np.bincount(of, d[local] * ahead[:, i] * ahead[:, j], count) + bent[:, i, j])[both]
                if i == j:
                    w[parts.place[both, i]] += W
                elif both.any():
                    X = (parts.U[parts.place[both, i]] * W[:, None]).T @ parts.U[parts.place[both, j]]
                    S += X + X.T
        V = parts.U * np.sqrt(w)[:, None]
        S += V.T @ V
        shared = parts.shared
        if parts.P.nnz:
            S += parts.quadratic
        ne, p = len(parts.e), len(shared)
        K = np.zeros((p + ne, p + ne))
        K[:p, :p] = S
        if ne:
            EX = parts.E[:, shared].toarray() + self._through(parts.E)
            ET = self.own_part(parts.E)
            inner = (self.inverse[None] @ ET[..., None])[..., 0]
            low = np.einsum("aci,bci->ab", ET, inner)
            K[p:, :p], K[:p, p:], K[p:, p:] = EX, EX.T, -low
            self.ET = ET
        sizes = np.concatenate([S.diagonal(), -K.diagonal()[p:]])
        self.scale = 1 / np.sqrt(np.where(sizes > ADDED, sizes, np.where(np.arange(p + ne) < p, ADDED, 1.0)))
        K *= self.scale[:, None] * self.scale
        K[np.arange(p + ne), np.arange(p + ne)] += np.where(np.arange(p + ne) < p, ADDED, -ADDED)
        self.factor = linalg.lu_factor(K, check_finite=False)

    def own_part(self, E: sparse.csr_matrix) -> np.ndarray:
        """(rows, c, k): the coefficients of every t_c."""
        own = self.parts.own
        dense = E[:, np.maximum(own, 0).ravel()].toarray().reshape(E.shape[0], *own.shape)
        return np.where(own >= 0, dense, 0.0)

    def _through(self, E: sparse.csr_matrix) -> np.ndarray:
        """What x moves by the t_c that follow it."""
        return self.pulled(np.einsum("aci,cij->acj", self.own_part(E), self.v))

    def pulled(self, r: np.ndarray) -> np.ndarray:
        """sum_cj r_cj u_cj."""
        weights = np.zeros((*r.shape[:-2], len(self.parts.U)))
        weights[..., self.parts.place[self.tied]] = r[..., self.tied]
        return weights @ self.parts.U

    def __call__(self, f: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """dz and dy of (P + A'dA) dz + E'dy = f, E dz = r."""
        parts, own = self.parts, self.parts.own
        p = len(parts.shared)
        ft = np.where(own >= 0, f[np.maximum(own, 0)], 0.0)
        top = f[parts.shared] + self.pulled((ft[:, None] @ self.v)[:, 0])
        inner = (self.inverse @ ft[:, :, None])[:, :, 0]
        low = r - np.einsum("aci,ci->a", self.ET, inner) if len(r) else r
        found = self.scale * linalg.lu_solve(self.factor, self.scale * np.concatenate([top, low]), check_finite=False)
        dx, dy = found[:p], found[p:]
        along = np.where(self.tied, (parts.U @ dx)[parts.place], 0.0)
        dt = inner + (self.v @ along[:, :, None])[:, :, 0]
        if len(r):
            dt = dt - (self.inverse @ np.einsum("aci,a->ci", self.ET, dy)[:, :, None])[:, :, 0]
        dz = np.zeros(len(f))
        dz[parts.shared] = dx
        dz[own[own >= 0]] = dt[own >= 0]
        return dz, dy

    def refined(self, f: np.ndarray, r: np.ndarray, times: int = REFINED) -> tuple[np.ndarray, np.ndarray]:
        """The same to the accuracy that the equations themselves have."""
        parts = self.parts
        dz, dy = self(f, r)
        off = math.inf
        for _ in range(times):
            left = f - parts.P @ dz - parts.transposed @ (self.d * (parts.A @ dz)) - parts.E.T @ dy
            under = r - parts.E @ dz
            now = max(np.abs(left).max(initial=0.0), np.abs(under).max(initial=0.0))
            if not ENOUGH < now < 0.5 * off:
                break
            off = now
            more, beside = self(left, under)
            dz, dy = dz + more, dy + beside
        return dz, dy


def _inverse(B: np.ndarray) -> np.ndarray:
    """The inverses of many small positive definite matrices, by sweeps of all of them at once."""
    swept = np.array(np.moveaxis(B, 0, -1))
    for k in range(len(swept)):
        column, pivot = swept[:, k].copy(), 1 / swept[k, k]
        row = swept[k] * pivot
        row[k], column[k] = pivot, 0.0
        swept[:, k] = 0.0
        swept -= column[:, None] * row[None]
        swept[k] = row
    return np.ascontiguousarray(np.moveaxis(swept, -1, 0))


class Point(NamedTuple):
    """z, the slacks s, the duals u of the rows and y of the equations, and what is off at it, relative: of the primal, the dual,
    and the gap between them."""

    z: np.ndarray
    s: np.ndarray
    u: np.ndarray
    y: np.ndarray
    off: tuple[float, float, float] = (math.inf, math.inf, math.inf)


def minimised(parts: Arrow, accuracy: tuple[float, float], seconds: float | None = None) -> Result:
    """The optimum: ``Solved`` at the first accuracy, ``AlmostSolved`` at the second where no more is reached, or ``Unknown``."""
    began, (wanted, taken) = time.perf_counter(), accuracy
    now = best = _measured(parts, _begin(parts))
    done, stalled, least, product = 0, 0, now.off, math.inf
    with np.errstate(all="ignore"):
        while max(best.off) > wanted and done < MOST and stalled < IDLE[int(max(best.off) > taken)]:
            if seconds is not None and time.perf_counter() - began > seconds:
                break
            try:
                now = _measured(parts, _next(parts, now))
            except (linalg.LinAlgError, np.linalg.LinAlgError, ValueError):
                break
            done += 1
            if not np.isfinite(now.off).all():
                break
            nearer = now.off[2] > wanted and float(now.s @ now.u) < 0.9 * product
            gains = nearer or any(wanted < one < 0.9 * low for one, low in zip(now.off, least, strict=True))
            stalled, product = 0 if gains else stalled + 1, min(product, float(now.s @ now.u))
            least = (min(now.off[0], least[0]), min(now.off[1], least[1]), min(now.off[2], least[2]))
            best = now if max(now.off) < max(best.off) else best
    status = "Solved" if max(best.off) <= wanted else "AlmostSolved" if max(best.off) <= taken else "Unknown"
    return _result(parts, best, status, done)


def _begin(parts: Arrow) -> Point:
    """Where the equations hold and the slacks are least (L. Vandenberghe, CVXOPT's linear and quadratic cone program solvers)."""
    m = len(parts.b)
    z, y = Step(parts, np.ones(m)).refined(parts.transposed @ parts.b - parts.q, parts.e)
    u = parts.A @ z - parts.b
    return Point(z, _inside(-u), _inside(u), y)


def _inside(s: np.ndarray) -> np.ndarray:
    """Moved by one number, if need be, so far that all are positive."""
    least = -s.min(initial=0.0)
    return s if least < -1e-8 * (1 + np.abs(s).max(initial=0.0)) else s + 1 + least


def _next(parts: Arrow, now: Point) -> Point:
    """One step: how far the plain one gets says how much to centre."""
    z, s, u, y, _ = now
    m, step = max(len(s), 1), Step(parts, u / s)
    dual = parts.P @ z + parts.q + parts.transposed @ u + parts.E.T @ y
    primal, equal = parts.A @ z + s - parts.b, parts.E @ z - parts.e

    def towards(product: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        dz, dy = step.refined(-dual - parts.transposed @ (step.d * primal - product / s), -equal, times)
        moved = primal + parts.A @ dz
        return dz, -moved, step.d * moved - product / s, dy

    _, ds, du, _ = towards(s * u, 0)
    mean, reach = float(s @ u) / m, min(_reach(s, ds), _reach(u, du))
    after = float((s + reach * ds) @ (u + reach * du)) / m
    centred = min(max(after / mean, 0.0), 1.0) ** 3 * mean
    dz, ds, du, dy = towards(s * u + ds * du - centred, REFINED)
    length = min(1.0, SHARE * _reach(s, ds), SHARE * _reach(u, du))
    return Point(z + length * dz, s + length * ds, u + length * du, y + length * dy)


def _reach(s: np.ndarray, ds: np.ndarray) -> float:
    """How far s + a ds is positive, at most 1 / SHARE."""
    return 1 / max(SHARE, float((-ds / s).max(initial=0.0)))


def _measured(parts: Arrow, point: Point) -> Point:
    z, s, u, y, _ = point
    Pz, Au = parts.P @ z, parts.transposed @ u + parts.E.T @ y
    Az, Ez = parts.A @ z, parts.E @ z
    size = max(*(float(np.abs(v).max(initial=0.0)) for v in (Az, s, Ez, parts.b, parts.e)), 1.0)
    primal = max(float(np.abs(Az + s - parts.b).max(initial=0.0)), float(np.abs(Ez - parts.e).max(initial=0.0))) / size
    size = max(*(float(np.abs(v).max(initial=0.0)) for v in (Pz, Au, parts.q)), 1e-12)
    dual = float(np.abs(Pz + parts.q + Au).max(initial=0.0)) / size
    value, bound = 0.5 * z @ Pz + parts.q @ z, -0.5 * z @ Pz - parts.b @ u - parts.e @ y
    gap = abs(float(value - bound)) / max(min(abs(float(value)), abs(float(bound))), parts.unit)
    return point._replace(off=(primal, dual, gap))


def _result(parts: Arrow, best: Point, status: str, done: int) -> Result:
    duals = np.concatenate([best.u, best.y]) * parts.sides / parts.unit
    kept, z = parts.order >= 0, np.zeros(np.count_nonzero(parts.order >= 0))
    z[parts.order[kept]] = duals[kept]
    value = (0.5 * best.z @ (parts.P @ best.z) + parts.q @ best.z) / parts.unit
    return Result(status, (best.z * parts.columns)[: parts.width], z, float(value), done)
