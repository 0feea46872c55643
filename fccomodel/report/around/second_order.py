"""Curvature at a point that meets the conditions of first order: is it a saddle, and how far would
Newton's method still go?

At a minimum, d'Hd >= 0 for the Hessian H of the Lagrangian and every direction d along which the
active constraints with a multiplier stay as they are (J. Nocedal, S. Wright, Numerical
Optimization, 2006, section 12.5). H is known by its products with vectors, gradients of ``gradient
. d``: all of them where the variables are few, else those of Lanczos' method from a random
direction (C. Lanczos, 1950). Four kinds of steps are tried, each judged by the functions' values
at its end alone:

    Newton         -H^+ g, g the Lagrangian's gradient: what a badly scaled gradient does not show
    curvature      both ways along the eigenvectors of the most negative eigenvalues
    hidden         of convex problems, both ways along directions in which columns nearly cancel
    degenerate     both ways along random directions in which H vanishes, for saddles of third and
                   higher order

Constraints that bend are met again by steps along their gradients. What no step can find is a
saddle at which curvature vanishes and which only few directions leave. Curvature along directions in
which columns nearly cancel is lost in H by rounding, and Newton's step with it; there values decide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import Meter
from fccomodel.report.around.hessian_products import (
    MOST_PRODUCTS,
    VANISHING,
    Eigenpairs,
    HessianProduct,
    Spent,
    eigen,
    krylov,
)
from fccomodel.report.around.local_search import ALLOWED, SHARE, Better, arrays, entry, moved, violation
from fccomodel.report.around.tangent_space import TangentSpace, steps_to_bounds
from fccomodel.report.kkt.lagrangian import roots
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.point.recording import Recorder
from fccomodel.report.point.system import System, norm

Array = np.ndarray
#: Products with a Hessian from which on Lanczos' method can tell anything.
LEAST_PRODUCTS = 4
#: Numbers in the gradients of held constraints up to which directions are kept tangent to them.
MOST_NUMBERS = 10_000_000
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
#: The share of the largest eigenvalue of the Hessian with unit diagonal up to which rounding may hide an
#: eigenvalue from Newton's method.
HIDDEN = 1e-10
#: Directions of hidden eigenvalues that are tried.
HIDDEN_DIRECTIONS = 3
#: Powers of 10 of the lengths tried along them; length 1 would change the objective by its own size if
#: curvature were that of single variables.
HIDDEN_POWERS = range(-2, 10)
#: Shares of such a step that gain their share at least if the objective is convex and rounding is small.
CONFIRMING_SHARES = (0.5, 0.25, 0.125)
#: Steps that meet constraints again.
RESTORATIONS = 20
#: Entries of a direction that are named.
NAMED = 3

TOO_MUCH_WORK = "its second derivatives take more work than a report has"
NOT_FINITE = "its second derivatives are not finite here"
MANY_CONSTRAINTS = "the gradients of its constraints are too many"


@dataclass(frozen=True, kw_only=True)
class Examined:
    """The results of the second-order test of a point.

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
    except Spent:
        return Examined(why=TOO_MUCH_WORK)
    except FccoError:
        return Examined(why=NOT_FINITE)


class _Trial:
    """Trials of steps from the system's point.

    rows   gradients of the constraints kept, (constraints, entries)
    free   1 for entries that no bound holds
    """

    def __init__(self, system: System, optimal: Optimum, rows: Array, free: Array, meter: Meter):
        self.system, self.rows, self.free, self.meter = system, rows, free, meter
        self.multipliers = np.abs(optimal.multipliers)
        self.at = system.flat

    def gain(self, step: Array) -> tuple[float, dict[str, Array]] | None:
        """The gain of a step, less the worth of violations at its end, and the point there.

        None if it leads out of the constraints or the functions' domains, or if no work is left.
        """
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
        """The shortest step that meets the violated constraints, by their gradients at the start."""
        constraint_values = values[self.system.kept]
        equal = np.array(self.system.equal, dtype=bool)[self.system.kept]
        violated = equal | (constraint_values > 0)
        gradients = self.rows[violated] * self.free
        step: Array = np.linalg.lstsq(gradients, -constraint_values[violated], rcond=1e-10)[0]
        return step


class _Newton:
    """Newton's steps from the system's point.

    slope   the Lagrangian's gradient on the tangent space
    fine    the least gain that counts
    """

    def __init__(self, system: System, tangent: TangentSpace, slope: Array, trial: _Trial, fine: float):
        self.system, self.tangent, self.slope = system, tangent, slope
        self.trial, self.fine = trial, fine

    def steps(self, spectrum: Eigenpairs) -> Iterator[Better]:
        """The best of Newton's steps on eigenvectors of positive eigenvalues, if one promises enough and
        keeps its promise."""
        steps = [step for cut in NEWTON_CUTS for step in self._promising(spectrum, cut)]
        best: Better | None = None
        for step, promised in steps:
            for share in NEWTON_SHARES:
                tried = self.trial.gain(share * step)
                least = max(self.fine, SHARE * promised * share * (2 - share))
                if tried is None or tried[0] < least:
                    continue
                gain, point = tried
                if best is None or gain > best.gain:
                    best = Better(gain=gain, where="by Newton's step", point=point)
                break
        if best is not None:
            yield best

    def _promising(self, spectrum: Eigenpairs, cut: float) -> Iterator[tuple[Array, float]]:
        """Newton's step, or the step to the minimum of the quadratic model within the variables' bounds,
        with the gain that it promises; eigenvalues up to the share ``cut`` are left out."""
        used = spectrum.values > max(cut, np.finfo(float).eps) * spectrum.size
        values, vectors = spectrum.values[used], spectrum.vectors[:, used]
        along = vectors.T @ self.slope
        promised = float((along**2 / (2 * values)).sum())
        if not promised >= self.fine:
            return
        step = -vectors @ (along / values)
        low, high = steps_to_bounds(self.system)
        leaves_bounds = ((step < low) | (step > high)).any()
        if not (self.tangent.bounds_alone and self.tangent.few and leaves_bounds):
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


def bounded_least_squares(matrix: Array, right: Array, low: Array, high: Array) -> Array:
    """The x with low <= x <= high for which |matrix x - right| is least (P. Stark, R. Parker,
    Bounded-variable least squares: an algorithm and applications, 1995)."""
    from scipy.optimize import lsq_linear  # loads much

    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    apart = high > low
    solution_in_bounds = np.zeros(matrix.shape[1])
    if apart.any():
        scale = np.maximum(np.linalg.norm(matrix[:, apart], axis=0), 1e-300)
        bounds = (low[apart] * scale, high[apart] * scale)
        scaled = matrix[:, apart] / scale
        solution = lsq_linear(scaled, right, bounds, method="bvls", tol=1e-14)
        solution_in_bounds[apart] = solution.x / scale
    return np.clip(solution_in_bounds, low, high)


class _Search:
    """The search from one point.

    counts   the least gain that counts along curvature
    slope    the Lagrangian's gradient on the tangent space
    size     1 + |w|
    """

    def __init__(self, system: System, optimal: Optimum, rows: Array | None, counts: float, meter: Meter):
        self.system, self.counts = system, counts
        fine = ACCURATE * counts
        if system.evaluator.sampled:  # other draws have another optimum
            fine = counts
        if rows is None:
            rows = np.zeros((0, system.d))
        self.tangent = TangentSpace(system, optimal, rows)
        self.slope = self.tangent.project(optimal.lagrangian)
        self.trial = _Trial(system, optimal, rows, self.tangent.free, meter)
        self.newton = _Newton(system, self.tangent, self.slope, self.trial, fine)
        self.size = 1.0 + norm(self.trial.at)
        self.random = np.random.default_rng(system.seed)
        terms = [(root, root.expr) for root in roots(system, optimal.multipliers)]
        self.product = HessianProduct(system, terms, self.trial.at, meter)

    def run(self, *, convex: bool) -> Examined:
        """The best point of all searches; ``convex`` leaves out those along negative curvature."""
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
        points = [better for spectrum in spectra for better in self.newton.steps(spectrum)]
        if not convex:
            points += itertools.islice(self._down(spectra), 1)
        elif whole and not points:
            points += itertools.islice(self._hidden(spectra[0]), 1)
        return Examined(better=max(points, key=lambda better: better.gain, default=None))

    def _hidden(self, spectrum: Eigenpairs) -> Iterator[Better]:
        """Better points along directions whose curvature rounding hides: eigenvectors of the Hessian with
        unit diagonal, which does not depend on the variables' units."""
        hessian = (spectrum.vectors * spectrum.values) @ spectrum.vectors.T
        diagonal = np.diag(hessian)
        places = np.flatnonzero(diagonal > 0)
        if len(places) < 2:
            return
        roots = np.sqrt(diagonal[places])
        values, vectors = np.linalg.eigh(hessian[np.ix_(places, places)] / roots[:, None] / roots)
        unit = math.sqrt(abs(self.system.objective)) or 1.0
        for k in np.flatnonzero(values <= HIDDEN * values[-1])[:HIDDEN_DIRECTIONS]:
            direction = np.zeros(self.system.d)
            direction[places] = unit * vectors[:, k] / roots
            yield from self._along_hidden(self.tangent.project(direction))

    def _along_hidden(self, direction: Array) -> Iterator[Better]:
        """The best step along a direction both ways, if shorter ones confirm its gain."""
        steps = [way * 10.0**power * direction for way in (1.0, -1.0) for power in HIDDEN_POWERS]
        gains = [(got, step) for step in steps if (got := self.trial.gain(step)) is not None]
        if not gains:
            return
        longest, step = max(gains, key=lambda pair: pair[0][0])
        if longest[0] < self.counts:
            return
        decreases = [longest]
        for share in CONFIRMING_SHARES:
            shorter = self.trial.gain(share * step)
            if shorter is None or shorter[0] < share * longest[0]:
                return
            decreases.append(shorter)
        curvature = 2 * (2 * decreases[1][0] - longest[0])  # the first of the shorter steps is half of it
        if curvature > 0:
            vertex = self.trial.gain((longest[0] + curvature) / (2 * curvature) * step)
            decreases += [vertex] if vertex is not None else []
        gain, point = max(decreases, key=lambda pair: pair[0])
        yield Better(gain=gain, where="along a direction in which columns nearly cancel", point=point)

    def _down(self, spectra: list[Eigenpairs]) -> Iterator[Better]:
        """Better points along directions that first-order conditions do not see."""
        for spectrum in spectra:
            yield from self._negative(spectrum)
        yield from self._degenerate(spectra)

    # ------------------------------------------------------------------------------------ curvature
    def _whole(self) -> Eigenpairs:
        """The spectrum of the whole Hessian on the tangent space."""
        basis = self.tangent.basis()
        products = [self.product(direction) for direction in basis.T]
        columns = np.stack([self.tangent.project(product) for product in products], axis=1)
        return eigen(basis.T @ columns, basis)

    def _lanczos(self, *, convex: bool) -> Iterator[Eigenpairs]:
        """Lanczos's method from the gradient and from a random direction.

        The Krylov space of the gradient contains the steps of conjugate gradients.
        """
        starts = [self.slope]
        if not convex:
            starts.append(self.random.standard_normal(self.system.d))
        projected_starts = [start for start in map(self.tangent.project, starts) if norm(start) > 0]
        for k, start in enumerate(projected_starts):
            count = min(
                self.tangent.dimension, MOST_PRODUCTS, self.product.most(1 / (len(projected_starts) - k))
            )
            if count >= 1:
                yield krylov(lambda v: self.tangent.project(self.product(v)), start / norm(start), count)

    # ---------------------------------------------------------------------------------------- steps
    def _negative(self, spectrum: Eigenpairs) -> Iterator[Better]:
        """Steps along directions of negative curvature, the most negative first."""
        negative = np.flatnonzero(spectrum.values < -VANISHING * spectrum.size)[:NEGATIVE_DIRECTIONS]
        for k in negative:
            direction = spectrum.vectors[:, k]
            if norm(direction) > 0:
                yield from self._both_ways(direction, "along a direction of negative curvature")

    def _degenerate(self, spectra: list[Eigenpairs]) -> Iterator[Better]:
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
            gains = [self.trial.gain(step) for step in steps]
            pairs = zip(gains, steps, strict=True)
            descents = [(got, step) for got, step in pairs if got is not None and got[0] > 0]
            if not descents:
                continue
            (gain, point), step = max(descents, key=lambda pair: pair[0][0])
            for _ in range(DOUBLINGS):
                step = 2 * step
                more = self.trial.gain(step)
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
