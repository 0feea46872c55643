"""One point of a problem with derivatives: objective, constraints, the terms of their kinks, and the
requested gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.work import priced
from fccomodel.data.bound import Bound
from fccomodel.evaluation import errors as evaluation_errors
from fccomodel.evaluation import net_outputs
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.kernels.derivatives import by_row, jacobian, jacobian_of_rows, vector_products
from fccomodel.evaluation.sets.axes import ROOT, STEEPEST
from fccomodel.evaluation.values import functions
from fccomodel.library import sets
from fccomodel.report import errors
from fccomodel.report.kinks.kinks import find
from fccomodel.report.point.recording import KinkRecord, Recorder

Array = np.ndarray
#: Distance from a bound up to which an entry of a variable is at it, relative to 1 + |bound|.
AT_BOUND = 1e-7
#: Step of the finite differences, relative to 1 + the largest entry.
STEP = 1e-5
#: Constraints that may have multipliers, at most, if they are more than twice the entries of the variables.
MOST_KEPT = 1000
#: Constraints, and terms of a kink, beyond twice the entries of the variables that are kept too.
SPARE = 20
#: Size from which on the square of a number may be beyond double precision.
SQUARE_OVERFLOWS = 1e150
#: Numbers of derivatives along many directions at once.
TOGETHER = 2_000_000
#: Numbers of the gradients that are kept.
MOST_PULLED = 2_000_000
#: Rounds of projections if a variable is in several sets.
ALTERNATIONS = 200


def norm(x: Array) -> float:
    """The Euclidean norm, also of entries whose squares are beyond double precision; infinite if an
    entry is not finite."""
    largest = float(np.abs(x).max(initial=0.0))
    if not math.isfinite(largest):
        return math.inf
    if largest > SQUARE_OVERFLOWS:
        return largest * norm(x / largest)
    return float(np.linalg.norm(x))


def inward(bound: Bound, point: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """The point with every entry that is exactly at a bound of its set moved to the nearest normal
    number inside; None if no entry is at a bound."""
    moved_values, any_moved = {}, False
    for name, variable in bound.problem.variables.items():
        if name not in point:
            return None
        value = torch.as_tensor(np.array(point[name], dtype=np.float64))
        for declared in variable.sets:
            simple, args = Evaluator(bound, {}).simple_set(declared)
            normals = simple.normals(value, *args, tolerance=0.0)
            step = value.abs().mul(np.finfo(float).eps).clamp(min=np.finfo(float).tiny)
            fixed = normals.low & normals.high
            lowered = torch.where(normals.high & ~fixed, value - step, value)
            value = torch.where(normals.low & ~fixed, value + step, lowered)
            any_moved |= bool((normals.low ^ normals.high).any())
        moved_values[name] = value.numpy()
    if any_moved:
        return moved_values
    return None


class System:
    """A problem at a point, as ``minimise f s.t. c <= 0`` (or ``== 0``). Gradients are vectors over the
    entries of all variables.

    objective  value of the objective as the user wrote it
    values     of the constraints, family members one by one; ``labels``, and ``equal`` for equations
    rounding   a bound of the rounding in the objective; 0 until one is found
    unrounded  whether such a bound takes too much work
    forward_s  counted seconds of an evaluation
    records    kinks with their terms
    kept       numbers of the constraints that may have multipliers
    slopes     for f and each constraint kept, by record: the instances that it depends on, and its
               derivatives in their values
    slope      the gradient of f with kinks held fixed
    inside     by record with others inside: the instance, the term, the inner record, its instances,
               and the term's derivatives in their values
    """

    def __init__(
        self,
        bound: Bound,
        point: Mapping[str, np.ndarray],
        *,
        seed: int = 0,
        multipliers: Mapping[str, float] | None = None,
    ):
        self.bound, self.problem, self.seed = bound, bound.problem, seed
        self.names = [name for name in bound.problem.variables]
        for name in self.names:
            if name not in point:
                refuse(
                    evaluation_errors.no_variable(name, bound.problem.variables[name].span),
                    source=bound.problem.source,
                )
        self.point = {name: torch.as_tensor(np.array(point[name], dtype=np.float64)) for name in self.names}
        for name, value in self.point.items():
            if not bool(torch.isfinite(value).all()):
                refuse(errors.variable(name, bound.problem.variables[name].span), source=bound.problem.source)
        self.sign = 1.0 if bound.problem.objective.sense == "minimize" else -1.0
        self.kinks, self.left = find(bound, bound.problem.roots)
        leaves = {name: value.clone().requires_grad_(True) for name, value in self.point.items()}
        recorder = Recorder(self.kinks)
        with net_outputs.anew():  # the price is that of an evaluation that runs its nets
            values, self.forward_s = priced(lambda: self.evaluate(leaves, recorder))
        self.f, self.c, self.labels, self.equal, self.evaluator = values
        self.leaves = [self.evaluator.point[name] for name in self.names]
        self.records: tuple[KinkRecord, ...] = tuple(recorder.records)
        self.refused = recorder.refused
        self.objective = self.sign * float(self.f.detach())
        self.rounding = 0.0
        self.unrounded = False
        self.values: Array = self.c.detach().numpy()
        self.violations: list[float] = [
            abs(v) if e else v for v, e in zip(self.values.tolist(), self.equal, strict=True)
        ]
        self._finite()
        self.kept = self._kept(multipliers or {})
        self.slopes = self._slopes()
        self.inside = dict(self._inside())
        self.roots = any(
            isinstance(node, ir.Apply) and node.op == ROOT for node in self.problem.expressions()
        )
        self._gradients: dict[Any, tuple[Array, list[torch.Tensor]]] = {}
        self.slope = self.pull([(self.f, 1.0)])
        self._twice = True
        self._pulled: tuple[dict[int, torch.Tensor], Sequence[torch.Tensor | None]] | None = None

    # ----------------------------------------------------------------------------------- evaluation
    def evaluate(
        self, point: Mapping[str, torch.Tensor], recorder: Recorder, seed: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, list[str], list[bool], Evaluator]:
        """f, the values of all constraints, their labels, which of them are equalities, and the
        evaluator."""
        if seed is None:
            seed = self.seed
        evaluator = Evaluator(self.bound, point, seed=seed, cuts=recorder.cuts())
        objective, values, labels, equal = functions(evaluator)
        return self.sign * objective, values, labels, equal, evaluator

    def state(self, objective: float, values: Array) -> None:
        """Take these as the objective, as written, and the constraints' values: they come from more
        rows than the gradients."""
        self.objective, self.values = objective, values
        pairs = zip(values.tolist(), self.equal, strict=True)
        self.violations = [abs(value) if is_equal else value for value, is_equal in pairs]

    @property
    def level(self) -> float:
        """An upper bound of the minimised objective at the point: its value and its rounding, if known."""
        return self.sign * self.objective + self.rounding

    def _finite(self) -> None:
        """Raise F0701 if the objective or a constraint is not finite."""
        if not np.isfinite(self.objective):
            error = errors.value("the objective", self.objective, self.problem.objective.span)
            refuse(error, source=self.problem.source)
        for label, value in zip(self.labels, self.values, strict=True):
            if not np.isfinite(value):
                name = label.partition("[")[0]
                span = next(c.span for c in self.problem.constraints if c.label == name)
                refuse(errors.value(f"constraint `{label}`", value, span), source=self.problem.source)

    # ------------------------------------------------------------------------------------ gradients
    @property
    def used(self) -> set[int]:
        """The records that a function depends on, directly or through the terms of others."""
        inner = {inside for uses in self.inside.values() for _, _, inside, _, _ in uses}
        return inner.union(*(slopes.keys() for slopes in self.slopes))

    def concave(self) -> Iterator[tuple[int, int]]:
        """The kinks (record, instance) that bend a function downwards: maxima in which it falls, and
        minima in which it rises. At such a kink the function may fall although subgradients cancel."""
        concave_kinks: set[tuple[int, int]] = set()
        uses = [(k, *use) for slopes in self.slopes for k, use in slopes.items()]
        uses += [
            (inner, places, slopes)
            for within in self.inside.values()
            for _, _, inner, places, slopes in within
        ]
        for k, instances, slopes in uses:
            concave_kinks |= {(k, int(i)) for i in instances[self.records[k].kink.sign * slopes < 0]}
        yield from sorted(concave_kinks)

    def _kept(self, multipliers: Mapping[str, float]) -> Array:
        """The numbers of the constraints that may have multipliers: equalities, those with a given
        multiplier, and those with the largest values."""
        count, most = len(self.values), max(MOST_KEPT, 2 * self.d + SPARE)
        if count <= most:
            return np.arange(count)
        sure = np.array(self.equal, dtype=bool)
        sizes = np.array([abs(multipliers.get(label, 0.0)) for label in self.labels])
        largest = np.argsort(-sizes, kind="stable")[:most]
        sure[largest] |= sizes[largest] > 0
        spare = max(0, most - int(sure.sum()))
        nearest = np.argsort(-np.where(sure, -np.inf, self.values), kind="stable")[:spare]
        return np.union1d(np.flatnonzero(sure), nearest)

    def _slopes(self) -> list[dict[int, tuple[Array, Array]]]:
        """``slopes``, from the derivatives of f and of every c_k kept in the records' values."""
        values = [record.value for record in self.records]
        slopes: list[dict[int, tuple[Array, Array]]] = [{} for _ in range(1 + len(self.kept))]
        for first, output in ((0, self.f.reshape(1)), (1, self.c[torch.from_numpy(self.kept)])):
            for k, entries in enumerate(jacobian(output, values)):
                for row, instances, derivatives in by_row(entries):
                    slopes[first + row][k] = (instances, derivatives)
        return slopes

    def _inside(self) -> Iterator[tuple[int, list[tuple[int, int, int, Array, Array]]]]:
        """``inside``, from the derivatives of the records' terms in the records' values."""
        values = [record.value for record in self.records]
        for k, record in enumerate(self.records):
            nonzero = []
            for j, entries in enumerate(jacobian_of_rows(record.terms, values)):
                for place, instances, derivatives in by_row(entries):
                    nonzero.append((*divmod(place, record.terms.shape[1]), j, instances, derivatives))
            if nonzero:
                yield k, sorted(nonzero, key=lambda entry: entry[:3])

    def pull(self, weights: Sequence[tuple[torch.Tensor, Array | float]]) -> Array:
        """The gradient of a weighted sum of f, c and terms, with kinks held fixed. Raises F0701 if it is
        not finite.

        The last gradients are kept: the searches for multipliers begin with the same ones.
        """
        used = [(tensor, np.asarray(weight)) for tensor, weight in weights if np.any(weight)]
        key = tuple((id(tensor), blake2b(weight.tobytes()).digest()) for tensor, weight in used)
        if key not in self._gradients:
            while (len(self._gradients) + 1) * self.d > MOST_PULLED and self._gradients:
                del self._gradients[next(iter(self._gradients))]
            tensors = [tensor for tensor, _ in used]  # held, so that no other tensor gets its id
            self._gradients[key] = self._gradient(used), tensors
        return self._gradients[key][0].copy()

    def _gradient(self, weights: Sequence[tuple[torch.Tensor, Array]]) -> Array:
        """``pull`` by one backward pass."""
        total = torch.zeros((), dtype=torch.float64)
        for tensor, weight in weights:
            total = total + (tensor * torch.as_tensor(weight, dtype=torch.float64)).sum()
        if not total.requires_grad:
            return np.zeros(self.d)
        gradient = self._flat(torch.autograd.grad(total, self.leaves, retain_graph=True, allow_unused=True))
        if self.roots:  # of 0 among them, whose slope is infinite
            gradient = np.where(np.abs(gradient) > STEEPEST, np.copysign(np.inf, gradient), gradient)
        if np.isfinite(gradient).all():
            return gradient
        return self._held(gradient)

    def rows(self, part: torch.Tensor, numbers: Array) -> Array:
        """The gradients of some entries of c or of a record's terms, by row, with kinks held fixed; many
        at once if their operations allow it."""
        gradients = np.empty((len(numbers), self.d))
        first = 0
        size = min(len(numbers), max(1, TOGETHER // max(part.numel() + self.d, 1)))
        if self.roots or not part.requires_grad:
            size = 1
        while first < len(numbers) and size > 1:
            some = numbers[first : first + size]
            try:
                products = vector_products([part], self.leaves, [_units(part, some)])
            except RuntimeError:  # an operation that is not done for many at once
                break
            gradients[first : first + len(some)] = self._flat_rows(products, len(some))
            first += len(some)
        unread = np.flatnonzero(~np.isfinite(gradients[:first]).all(1))
        for k in [*unread, *range(first, len(numbers))]:
            gradients[k] = self.pull([(part, _units(part, numbers[k : k + 1])[0].numpy())])
        return gradients

    def _flat_rows(self, products: Sequence[torch.Tensor | None], count: int) -> Array:
        """Derivatives by variable as rows over all entries of the variables; None stands for 0."""
        parts = [
            leaf.new_zeros(count, leaf.numel()) if product is None else product.reshape(count, -1)
            for product, leaf in zip(products, self.leaves, strict=True)
        ]
        return torch.cat(parts, 1).numpy()

    def _held(self, gradient: Array) -> Array:
        """The gradient with 0 for infinite entries that a bound of the variable holds, as in sqrt(x) at
        0. Raises F0701 if others are not finite."""
        parts = []
        for name, part in self.split(gradient).items():
            mask = torch.zeros_like(part, dtype=torch.bool)
            for simple, args in self.sets_of(name):
                normals = simple.normals(self.point[name], *args, tolerance=0.0)
                mask |= normals.low & (part == math.inf) | normals.high & (part == -math.inf)
            parts.append(torch.where(mask, torch.zeros_like(part), part).reshape(-1))
        gradient = torch.cat(parts).numpy()
        if not np.isfinite(gradient).all():
            refuse(errors.gradient(self.problem.objective.span), source=self.problem.source)
        return gradient

    def _flat(self, gradients: Sequence[torch.Tensor | None]) -> Array:
        parts = [
            torch.zeros_like(leaf) if g is None else g for g, leaf in zip(gradients, self.leaves, strict=True)
        ]
        if parts:
            return torch.cat([part.reshape(-1) for part in parts]).numpy()
        return np.zeros(0)

    @property
    def flat(self) -> Array:
        """The point as one vector, variable after variable: (d,), a copy."""
        return torch.cat([value.reshape(-1) for value in self.point.values()]).numpy()

    @property
    def d(self) -> int:
        """The number of entries of all variables."""
        return sum(leaf.numel() for leaf in self.leaves)

    def push(self, direction: Array) -> tuple[Array, list[Array]]:
        """The derivatives of every c_k and of every record's terms along a direction, with kinks held
        fixed.

        The gradient of a weighted sum is linear in the weights. Its derivative in the weights is the
        transposed product, which is the one asked for.
        """
        if self._twice:
            try:
                rows = self._pushed(direction[None])
                return self._parts([None if row is None else row[0] for row in rows])
            except RuntimeError:  # an operation that can be differentiated only once
                self._twice = False
        return self._difference(direction)

    def columns(self, most: int = TOGETHER) -> Iterator[tuple[int, tuple[Array, list[Array]]]]:
        """The number of every entry of the variables, and the derivatives along it as in ``push``; up to
        ``most`` at once if their operations allow it."""
        numbers = self.c.numel() + sum(record.terms.numel() for record in self.records)
        first, size = 0, 1
        if self._twice:
            size = min(max(1, TOGETHER // max(numbers + self.d, 1)), most, self.d)
        while first < self.d and size > 1:
            try:
                products = self._pushed(np.eye(min(size, self.d - first), self.d, first))
            except RuntimeError:  # an operation that is not done for many at once
                break
            for k in range(min(size, self.d - first)):
                yield first + k, self._parts([None if part is None else part[k] for part in products])
            first += size
        for j in range(first, self.d):
            yield j, self.push(np.eye(1, self.d, j)[0])

    def _pushed(self, directions: Array) -> list[torch.Tensor | None]:
        """The derivatives of c and of every record's terms along each row of directions; None for those
        that are 0."""
        outer_of, by_leaf = self._pulled_back()
        sizes = [leaf.numel() for leaf in self.leaves]
        ways = dict(zip(self.names, torch.from_numpy(directions).split(sizes, 1), strict=True))
        used = [
            (g, ways[name])
            for name, g in zip(self.names, by_leaf, strict=False)
            if g is not None and g.requires_grad
        ]
        by_part: dict[int, torch.Tensor | None] = {}
        if used:
            values, along = zip(*((g, way.reshape(-1, *g.shape)) for g, way in used), strict=True)
            outputs = list(outer_of.values())
            slopes: tuple[torch.Tensor | None, ...]
            if len(directions) == 1:
                products = ((g * way[0]).sum() for g, way in zip(values, along, strict=True))
                total = sum(products, torch.zeros(()))
                slopes = torch.autograd.grad(total, outputs, retain_graph=True, allow_unused=True)
                slopes = tuple(None if slope is None else slope[None] for slope in slopes)
            else:
                slopes = vector_products(values, outputs, along)
            by_part = dict(zip(outer_of, slopes, strict=True))
        return [by_part.get(id(part)) for part in self._outputs()]

    def _outputs(self) -> list[torch.Tensor]:
        """c, and every record's terms."""
        return [self.c, *(record.terms for record in self.records)]

    def _pulled_back(self) -> tuple[dict[int, torch.Tensor], Sequence[torch.Tensor | None]]:
        """Weights of all outputs, by their id, and the gradient of the weighted sum by variable, with
        its graph."""
        if self._pulled is None:
            parts = [part for part in self._outputs() if part.requires_grad]
            outer = [torch.zeros_like(part, requires_grad=True) for part in parts]
            weighted = ((part * weight).sum() for part, weight in zip(parts, outer, strict=True))
            total = sum(weighted, torch.zeros(()))
            pulled: Sequence[torch.Tensor | None] = ()
            if parts:
                pulled = torch.autograd.grad(total, self.leaves, create_graph=True, allow_unused=True)
            self._pulled = {id(part): weight for part, weight in zip(parts, outer, strict=True)}, pulled
        return self._pulled

    def _parts(self, outputs: Sequence[torch.Tensor | None]) -> tuple[Array, list[Array]]:
        """Derivatives of c and of every record's terms as arrays; None stands for 0."""
        shapes = [tuple(output.shape) for output in self._outputs()]
        c, *terms = (
            np.zeros(shape) if t is None else t.numpy() for shape, t in zip(shapes, outputs, strict=True)
        )
        return c, terms

    def _difference(self, direction: Array) -> tuple[Array, list[Array]]:
        """The derivatives of ``push`` by central differences."""
        largest = float(np.abs(direction).max(initial=0.0))
        if not largest:
            return self._parts([None] * (1 + len(self.records)))
        size = 1 + max(float(value.abs().max()) for value in self.point.values() if value.numel())
        step = STEP * size / largest
        ends = []
        for way in (step, -step):
            along = self.split(way * direction)
            point_there = {name: value + along[name] for name, value in self.point.items()}
            recorder = Recorder(self.kinks, frozen=self.records)
            with torch.no_grad():
                c = self.evaluate(point_there, recorder)[1]
            ends.append([c, *(record.terms for record in recorder.records)])
        differences = [(up - down).detach() for up, down in zip(*ends, strict=True)]
        return self._parts([difference / (2 * step) for difference in differences])

    # ---------------------------------------------------------------------------------- simple sets
    @property
    def outside(self) -> float:
        """The distance of the variables from their simple sets."""
        worst = 0.0
        for name, value in self.point.items():
            for simple, args in self.sets_of(name):
                nearest = simple.nearest(value, *args)
                worst = max(worst, float((value - nearest).norm()))
        return worst

    @property
    def projected(self) -> bool:
        """Whether a variable is in a simple set."""
        return any(variable.sets for variable in self.problem.variables.values())

    def sets_of(self, name: str) -> list[tuple[sets.SimpleSet, tuple]]:
        """A variable's simple sets with the values of their arguments."""
        return [self.evaluator.simple_set(declared) for declared in self._declared_sets(name)]

    def into_sets(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """A variable's value, projected on each of its simple sets in turn."""
        return self.evaluator.into_sets(self._declared_sets(name), value)

    def _declared_sets(self, name: str) -> tuple[ir.VectorSet, ...]:
        """The sets that a variable's declaration names; none of another name."""
        variable = self.problem.variables.get(name)
        if variable is None:
            return ()
        return variable.sets

    @cached_property
    def normal_count(self) -> float:
        """The number of vectors that generate the normal cone of the variables' simple sets at the point;
        infinite if a set does not list all of them."""
        count = 0
        for name, value in self.point.items():
            for simple, args in self.sets_of(name):
                normals = simple.normals(value, *args, tolerance=_at_bound(simple, args))
                if not normals.whole:
                    return math.inf
                count += int((normals.low | normals.high).sum()) + len(normals.rows)
        return count

    def generators(self, most: int) -> tuple[Array, Array] | None:
        """Vectors that generate the normal cone of the variables' simple sets at the point, by column,
        and which of them stand for their negatives too. None if they are more than ``most``, or if a
        set does not list all of them."""
        if self.normal_count > most:
            return None
        columns = [np.zeros((self.d, 0))]
        free = [np.zeros(0, dtype=bool)]
        place = 0
        for name, value in self.point.items():
            for simple, args in self.sets_of(name):
                normals = simple.normals(value, *args, tolerance=_at_bound(simple, args))
                low, high = (mask.reshape(-1).numpy() for mask in (normals.low, normals.high))
                at_end = np.flatnonzero(low | high)
                normal_columns = np.zeros((self.d, len(at_end) + len(normals.rows)))
                normal_columns[place + at_end, np.arange(len(at_end))] = np.where(high[at_end], 1.0, -1.0)
                normal_columns[place : place + value.numel(), len(at_end) :] = normals.rows.numpy().T
                columns.append(normal_columns)
                equations = np.full(len(normals.rows), normals.equation)
                free.append(np.concatenate([(low & high)[at_end], equations]))
            place += value.numel()
        return np.concatenate(columns, 1), np.concatenate(free)

    def tangent(self, gradient: Array) -> Array:
        """The part of a gradient that no normal of the simple sets can cancel: along it a small step
        still descends."""
        if not self.projected:
            return gradient
        parts = [
            -(part - sum(normals, torch.zeros_like(part))).reshape(-1)
            for _, part, normals in self.normals(gradient)
        ]
        return torch.cat(parts).numpy()

    def normals(self, gradient: Array) -> Iterator[tuple[str, torch.Tensor, list[torch.Tensor]]]:
        """For every variable: its name, its part of the negative gradient, and for each of its sets the
        normal nearest to that part."""
        for name, part in self.split(-gradient).items():
            yield name, part, self._normals(part, self.point[name], self.sets_of(name))

    def split(self, flat: Array) -> dict[str, torch.Tensor]:
        """A vector over all variables, by variable."""
        ends = np.cumsum([value.numel() for value in self.point.values()])[:-1]
        parts = zip(self.point.items(), np.split(flat, ends), strict=True)
        return {
            name: torch.from_numpy(np.ascontiguousarray(part)).reshape(value.shape)
            for (name, value), part in parts
        }

    def _normals(
        self, s: torch.Tensor, w: torch.Tensor, simple_sets: list[tuple[sets.SimpleSet, tuple]]
    ) -> list[torch.Tensor]:
        """Normals at w, one of each set, whose sum is nearest to ``s``, by alternating projections."""
        normals = [torch.zeros_like(s) for _ in simple_sets]
        rounds = 1 if len(simple_sets) <= 1 else ALTERNATIONS
        for _ in range(rounds):
            for k, (simple, args) in enumerate(simple_sets):
                rest = s - sum((n for j, n in enumerate(normals) if j != k), torch.zeros_like(s))
                normals[k] = rest - simple.tangent(rest, w, *args, tolerance=_at_bound(simple, args))
        return normals


def _units(part: torch.Tensor, numbers: Array) -> torch.Tensor:
    """Unit vectors at some entries of a part, in its shape: (numbers, *shape)."""
    units = part.new_zeros(len(numbers), part.numel())
    units[torch.arange(len(numbers)), torch.from_numpy(numbers)] = 1.0
    return units.reshape(len(numbers), *part.shape)


def _at_bound(simple: sets.SimpleSet, args: tuple) -> float:
    """Distance from a set's bound up to which an entry is at it; less in a set that is small itself."""
    where = simple.entries(*args)
    return AT_BOUND * min(1.0, where.hi - where.lo)
