"""Curvature at a point that meets the conditions of first order: is it a saddle, and how far would
Newton's method still go?

At a minimum, d'Hd >= 0 for the Hessian H of the Lagrangian and every direction d along which the
active constraints with a multiplier stay as they are (J. Nocedal, S. Wright, Numerical
Optimization, 2006, section 12.5). H is known by its products with vectors, gradients of ``gradient
. d``: all of them where the variables are few, else those of Lanczos' method from a random
direction (C. Lanczos, 1950). Three kinds of steps are tried, each judged by the functions' values
at its end alone:

    Newton         -H^+ g, g the Lagrangian's gradient: what a badly scaled gradient does not show
    curvature      both ways along the eigenvectors of the most negative eigenvalues
    degenerate     both ways along random directions in which H vanishes, for saddles of third and
                   higher order

Constraints that bend are met again by steps along their gradients. What no step can find is a
saddle at which curvature vanishes and which only few directions leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import Meter
from fccomodel.evaluation.sets.axes import STEEPEST
from fccomodel.report.around.local_search import ALLOWED, SHARE, Better, arrays, entry, moved, violation
from fccomodel.report.kkt.active import HELD, conditions_of_sets
from fccomodel.report.kkt.lagrangian import Term, differentiable_sum, gradient, roots
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.point.recording import Recorder
from fccomodel.report.point.system import AT_BOUND, STEP, System, norm

Array = np.ndarray
#: Entries of the variables up to which the whole Hessian is made.
DENSE = 100
#: Products with a Hessian that Lanczos' method makes at most, and at least to tell anything.
MOST_PRODUCTS = 40
LEAST_PRODUCTS = 4
#: Numbers in the gradients of held constraints up to which directions are kept tangent to them.
MOST_NUMBERS = 10_000_000
#: The share of the largest eigenvalue below which another counts as 0, by rounding.
VANISHING = 1e-9
#: The shares of the largest eigenvalue from which on eigenvalues are used by Newton's method, one
#: step for each.
NEWTON_CUTS = (0.0, 1e-12, 1e-8)
#: The share of a gain that counts from which on Newton's step says that a point is not one of high accuracy.
ACCURATE = 1e-3
#: The shares of such a step that are tried, the whole first.
NEWTON_SHARES = (1.0, 0.5, 0.1)
#: Eigenvectors of negative eigenvalues, and random directions without curvature, that are tried.
NEGATIVE_DIRECTIONS = 4
RANDOM_DIRECTIONS = 6
#: Lengths of the first steps along them, relative to 1 + |w|.
LENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
#: How often a step that gains is doubled.
DOUBLINGS = 10
#: Steps that meet constraints again.
RESTORATIONS = 20
#: Entries of a direction that are named.
NAMED = 3

#: A number beyond all bounds of variables.
FAR = 1e300

TOO_MUCH_WORK = "its second derivatives take more work than a report has"
NOT_FINITE = "its second derivatives are not finite here"
MANY_CONSTRAINTS = "the gradients of its constraints are too many"


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What curvature says of a point.

    better  a feasible point that is better, or None
    why     why curvature was not examined; "" if it was
    """

    better: Better | None = None
    why: str = ""


def examined(
    system: System, optimal: Optimum, rows: Array | None, counts: float, meter: Meter, *, convex: bool
) -> Examined:
    """Search for a point that is better by ``counts`` at least along curvature, or by ``ACCURATE``
    of it by Newton's step if no expectation is sampled.

    rows    gradients of the constraints that may have multipliers, (constraints, entries); None if
            they are not known
    convex  no direction has negative curvature, so that only Newton's step is tried
    """
    if len(system.kept) and (rows is None or rows.size > MOST_NUMBERS):
        return Examined(why=MANY_CONSTRAINTS)
    try:
        return _Search(system, optimal, rows, counts, meter).run(convex=convex)
    except _Spent:
        return Examined(why=TOO_MUCH_WORK)
    except FccoError:
        return Examined(why=NOT_FINITE)


class _Spent(Exception):
    """The work allowed is used up before curvature is known."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Spectrum:
    """Eigenvalues in ascending order, their vectors by column, and the largest absolute value."""

    values: Array
    vectors: Array

    @property
    def size(self) -> float:
        return float(np.abs(self.values).max(initial=0.0))


class _Search:
    """The search from one point; ``slope`` is the Lagrangian's gradient on the tangent space."""

    def __init__(self, system: System, optimal: Optimum, rows: Array | None, counts: float, meter: Meter):
        self.system, self.counts, self.meter = system, counts, meter
        self.fine = ACCURATE * counts
        if system.evaluator.sampled:  # other draws have another optimum
            self.fine = counts
        if rows is None:
            self.rows = np.zeros((0, system.d))
        else:
            self.rows = rows
        self.multipliers = np.abs(optimal.multipliers)
        self.at = torch.cat([value.reshape(-1) for value in system.point.values()]).numpy()
        self.size = 1.0 + norm(self.at)
        self.tangent = _Tangent(system, optimal, self.rows)
        self.slope = self.tangent.project(optimal.lagrangian)
        self.random = np.random.default_rng(system.seed)
        terms = [(root, root.expr) for root in roots(system, optimal.multipliers)]
        self.product = _Product(system, terms, self.at, meter)

    def run(self, *, convex: bool) -> Examined:
        if self.tangent.empty:
            return Examined()
        whole = self.tangent.few and self.product.affordable(self.tangent.dimension)
        if whole:
            spectra = [self._whole()]
        elif self.product.affordable(LEAST_PRODUCTS):
            spectra = list(self._lanczos(convex=convex))
        else:
            return Examined(why=TOO_MUCH_WORK)
        if not all(np.isfinite(spectrum.values).all() for spectrum in spectra):
            return Examined(why=NOT_FINITE)
        found = [better for spectrum in spectra for better in self._newton(spectrum)]
        if not convex:
            down = next(self._down(spectra), None)
            if down is None:
                found += []
            else:
                found += [down]
        return Examined(better=max(found, key=lambda better: better.gain, default=None))

    def _down(self, spectra: list[_Spectrum]) -> Iterator[Better]:
        """Points that first-order conditions know nothing of."""
        for spectrum in spectra:
            yield from self._negative(spectrum)
        yield from self._degenerate(spectra)

    # ------------------------------------------------------------------------------------ curvature
    def _whole(self) -> _Spectrum:
        basis = self.tangent.basis()
        columns = np.stack([self.tangent.project(self.product(direction)) for direction in basis.T], axis=1)
        return _eigen(basis.T @ columns, basis)

    def _lanczos(self, *, convex: bool) -> Iterator[_Spectrum]:
        """From the gradient, whose Krylov space has the steps of conjugate gradients, and from a
        random direction."""
        if convex:
            starts = [self.slope]
        else:
            starts = [self.slope, self.random.standard_normal(self.system.d)]
        kept = [start for start in map(self.tangent.project, starts) if norm(start) > 0]
        for k, start in enumerate(kept):
            count = min(self.tangent.dimension, MOST_PRODUCTS, self.product.most(1 / (len(kept) - k)))
            if count >= 1:
                yield _krylov(lambda v: self.tangent.project(self.product(v)), start / norm(start), count)

    # ---------------------------------------------------------------------------------------- steps
    def _newton(self, spectrum: _Spectrum) -> Iterator[Better]:
        """The best of Newton's steps on the eigenvectors of positive eigenvalues, if they promise enough."""
        steps = [step for cut in NEWTON_CUTS for step in self._newton_steps(spectrum, cut)]
        best: Better | None = None
        for step, promised in steps:
            for share in NEWTON_SHARES:
                found = self._gain(share * step)
                if found is None or found[0] < max(self.fine, SHARE * promised * share * (2 - share)):
                    continue
                if best is None or found[0] > best.gain:
                    best = Better(gain=found[0], where="by Newton's step", point=found[1])
                break
        if best is not None:
            yield best

    def _newton_steps(self, spectrum: _Spectrum, cut: float) -> Iterator[tuple[Array, float]]:
        """Newton's step, and that of the quadratic model within the variables' bounds, each with
        the gain that it promises."""
        used = spectrum.values > max(cut, np.finfo(float).eps) * spectrum.size
        values, vectors = spectrum.values[used], spectrum.vectors[:, used]
        along = vectors.T @ self.slope
        promised = float((along**2 / (2 * values)).sum())
        if not promised >= self.fine:
            return
        step = -vectors @ (along / values)
        low, high = _bounds(self.system)
        if not self.tangent.bounds_alone or not self.tangent.few or not ((step < low) | (step > high)).any():
            yield step, promised
            return
        places = np.flatnonzero(self.tangent.free)
        roots = np.sqrt(values)
        matrix = roots[:, None] * vectors[places].T
        inside = bounded_least_squares(matrix, -along / roots, low[places], high[places])
        step = np.zeros(self.system.d)
        step[places] = inside
        curved = vectors.T @ step
        promised = -float(along @ curved + (values * curved**2).sum() / 2)
        if promised >= self.fine:
            yield step, promised

    def _negative(self, spectrum: _Spectrum) -> Iterator[Better]:
        """Steps along directions of negative curvature, the most negative first."""
        negative = np.flatnonzero(spectrum.values < -VANISHING * spectrum.size)[:NEGATIVE_DIRECTIONS]
        for k in negative:
            direction = spectrum.vectors[:, k]
            if norm(direction) > 0:
                yield from self._both_ways(direction, "along a direction of negative curvature")

    def _degenerate(self, spectra: list[_Spectrum]) -> Iterator[Better]:
        """Steps along random directions in which curvature vanishes, if all directions with
        curvature are known."""
        spectrum = spectra[-1]
        flat = np.abs(spectrum.values) <= VANISHING * max(spectrum.size, self.counts)
        known = len(spectrum.values) == self.tangent.dimension
        if not flat.any() or not (known or flat.all()):
            return
        for _ in range(RANDOM_DIRECTIONS):
            if known:
                direction = spectrum.vectors[:, flat] @ self.random.standard_normal(int(flat.sum()))
            else:
                direction = self.tangent.project(self.random.standard_normal(self.system.d))
            yield from self._both_ways(direction / norm(direction), "along a direction without curvature")

    def _both_ways(self, direction: Array, where: str) -> Iterator[Better]:
        """The first steps that gain, made longer for as long as they gain more."""
        for length in LENGTHS:
            steps = [way * length * self.size * direction for way in (1.0, -1.0)]
            gains = [self._gain(step) for step in steps]
            pairs = zip(gains, steps, strict=True)
            found = [(got, step) for got, step in pairs if got is not None and got[0] > 0]
            if not found:
                continue
            (gain, point), step = max(found, key=lambda pair: pair[0][0])
            for _ in range(DOUBLINGS):
                step = 2 * step
                more = self._gain(step)
                if more is None or more[0] <= gain:
                    break
                gain, point = more
            if gain >= self.counts:
                yield Better(gain=gain, where=f"{where} ({self._named(direction)})", point=point, saddle=True)
                return

    def _named(self, direction: Array) -> str:
        """The largest entries of a direction, its first positive: a saddle is left both ways."""
        largest = np.argsort(-np.abs(direction), kind="stable")[:NAMED]
        largest = largest[np.abs(direction[largest]) >= 0.1 * np.abs(direction).max()]
        sign = math.copysign(1.0, direction[largest[0]])
        shown = ", ".join(f"{entry(self.system, int(k))} {sign * direction[k]:+.2f}" for k in largest)
        if len(largest) == np.count_nonzero(np.abs(direction) >= 0.01):
            return shown
        return f"{shown}, ..."

    def _gain(self, step: Array) -> tuple[float, dict[str, Array]] | None:
        """What a step gains, less what violations at its end are worth, and the point there; None
        where it leads out of the constraints or the functions' domains, or no work is left."""
        system, place = self.system, self.at + step
        allowed = max([ALLOWED, *system.violations])
        for _ in range(RESTORATIONS):
            if self.meter.left < system.forward_s:
                return None
            self.meter.spend(system.forward_s)
            point = moved(system, place - self.at)
            try:
                with torch.no_grad():
                    f, c = system.evaluate(point, Recorder({}))[:2]
            except FccoError:
                return None
            values = c.numpy()
            if not math.isfinite(float(f)) or not np.isfinite(values).all():
                return None
            if violation(values, system.equal) <= allowed:
                violations = np.maximum(np.where(system.equal, np.abs(values), values), 0.0)
                worth = float((self.multipliers * violations).sum())
                return system.sign * system.objective - float(f) - worth, arrays(point)
            if not len(self.rows):
                return None
            flat = torch.cat([value.reshape(-1) for value in point.values()]).numpy()
            place = flat + self._towards(values)
        return None

    def _towards(self, values: Array) -> Array:
        """The shortest step that meets the violated constraints, by their gradients at the point
        that the search is from."""
        kept = values[self.system.kept]
        equal = np.array(self.system.equal, dtype=bool)[self.system.kept]
        violated = equal | (kept > 0)
        gradients = self.rows[violated] * self.tangent.free
        step: Array = np.linalg.lstsq(gradients, -kept[violated], rcond=1e-10)[0]
        return step


class _Tangent:
    """Directions along which the entries and the constraints that have multipliers stay at their bounds."""

    def __init__(self, system: System, optimal: Optimum, rows: Array):
        held = HELD * max(1.0, optimal.plain)
        self.free = _free(system, optimal.lagrangian, held)
        self.entrywise = all(simple.entrywise for name in system.names for simple, _ in system.sets_of(name))
        lengths = np.linalg.norm(rows, axis=1)
        equal = np.array(system.equal, dtype=bool)[system.kept]
        active = equal | (np.abs(optimal.multipliers[system.kept]) * lengths > held)
        normals = [rows[active] / np.maximum(lengths[active], 1e-300)[:, None] * self.free]
        for _, row, equation in conditions_of_sets(system, self.free):
            if equation or -row @ optimal.lagrangian > held:
                normals.append(row[None])
        self.normals = np.vstack(normals)
        if len(self.normals):
            _, singular, across = np.linalg.svd(self.normals, full_matrices=False)
            self.normals = across[singular > 1e-10 * singular.max(initial=1e-300)]
        self.dimension = int(self.free.sum()) - len(self.normals)

    @property
    def bounds_alone(self) -> bool:
        """Whether bounds of single entries are all that holds them."""
        return self.entrywise and not len(self.normals)

    @property
    def empty(self) -> bool:
        return self.dimension <= 0

    @property
    def few(self) -> bool:
        return self.free.sum() <= DENSE

    def project(self, direction: Array) -> Array:
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
    """1 for entries that no bound holds with a multiplier, 0 for the others; an infinite slope
    holds too, as of a root at 0."""
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


def _bounds(system: System) -> tuple[Array, Array]:
    """The least and the largest step of each entry within the sets of bounds; infinite where a
    variable has none."""
    low, high = [], []
    for name, value in system.point.items():
        ends = [torch.full_like(value, -FAR), torch.full_like(value, FAR)]
        for simple, args in system.sets_of(name):
            if simple.entrywise:
                ends = [simple.project(end, *simple.prepare(*args)) for end in ends]
        low.append(torch.where(ends[0] <= -FAR, -math.inf, ends[0] - value).reshape(-1))
        high.append(torch.where(ends[1] >= FAR, math.inf, ends[1] - value).reshape(-1))
    return torch.cat(low).numpy(), torch.cat(high).numpy()


def bounded_least_squares(matrix: Array, right: Array, low: Array, high: Array) -> Array:
    """The x with low <= x <= high for which |matrix x - right| is least (P. Stark, R. Parker,
    Bounded-variable least squares: an algorithm and applications, 1995)."""
    from scipy.optimize import lsq_linear  # loads much

    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    apart = high > low
    found = np.zeros(matrix.shape[1])
    if apart.any():
        scale = np.maximum(np.linalg.norm(matrix[:, apart], axis=0), 1e-300)
        bounds = (low[apart] * scale, high[apart] * scale)
        found[apart] = lsq_linear(matrix[:, apart] / scale, right, bounds, method="bvls", tol=1e-14).x / scale
    return np.clip(found, low, high)


class _Product:
    """Products of the Lagrangian's Hessian with vectors: by differentiating twice, else by
    differences of gradients."""

    def __init__(self, system: System, terms: list[Term], at: Array, meter: Meter):
        self.system, self.terms, self.at, self.meter = system, terms, at, meter
        if meter.left < 3 * system.forward_s:
            raise _Spent
        meter.spend(3 * system.forward_s)
        total, self.leaves = differentiable_sum(system, terms, at, ())
        self.slopes: torch.Tensor | None = None
        self.twice = True
        self.seconds = 0.0
        if not total.requires_grad:
            return
        try:
            parts = torch.autograd.grad(total, self.leaves, create_graph=True, materialize_grads=True)
        except RuntimeError:  # an operation that is differentiated once
            self.twice = False
        else:
            self.slopes = torch.cat([part.reshape(-1) for part in parts])
        first = np.ones(system.d) / max(math.sqrt(system.d), 1.0)
        self.seconds = meter.count(lambda: self(first))[1]

    def affordable(self, count: int) -> bool:
        return count * self.seconds <= self.meter.left

    def most(self, share: float) -> int:
        """How many products the share of the remaining work pays."""
        if self.seconds <= 0:
            return MOST_PRODUCTS
        return int(share * self.meter.left / self.seconds)

    def __call__(self, direction: Array) -> Array:
        self.meter.spend(self.seconds)
        if self.twice:
            if self.slopes is None or not self.slopes.requires_grad:
                return np.zeros(self.system.d)
            try:
                along = (self.slopes * torch.from_numpy(direction)).sum()
                parts = torch.autograd.grad(
                    along, self.leaves, retain_graph=True, allow_unused=True, materialize_grads=True
                )
                return torch.cat([part.reshape(-1) for part in parts]).numpy()
            except RuntimeError:
                self.twice = False
        length = STEP * (1 + norm(self.at))
        ends = [gradient(self.system, self.terms, self.at + way * length * direction) for way in (1.0, -1.0)]
        difference: Array = (ends[0] - ends[1]) / (2 * length)
        return difference


def _eigen(matrix: Array, basis: Array) -> _Spectrum:
    if not np.isfinite(matrix).all():
        return _Spectrum(values=np.full(1, math.nan), vectors=basis[:, :1])
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return _Spectrum(values=values, vectors=basis @ vectors)


def _krylov(multiply: Callable[[Array], Array], start: Array, count: int) -> _Spectrum:
    """Ritz values and vectors of a symmetric matrix on the space of ``start`` and its first
    products (Lanczos' method, with every direction made orthogonal to all those before)."""
    basis, products = [start], [multiply(start)]
    while len(basis) < count:
        known = np.stack(basis)
        following = products[-1]
        for _ in range(2):  # once leaves what rounding adds
            following = following - known.T @ (known @ following)
        length = norm(following)
        if not length > VANISHING * max(norm(products[0]), norm(products[-1])):
            break
        basis.append(following / length)
        products.append(multiply(basis[-1]))
    columns = np.stack(basis, axis=1)
    return _eigen(columns.T @ np.stack(products, axis=1), columns)
