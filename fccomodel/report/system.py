"""One point of a problem, differentiated: objective, constraints and the terms of their kinks, with the gradients asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bound import Bound
from fccomodel.evaluation import errors as evaluation_errors
from fccomodel.evaluation import members
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.library import sets
from fccomodel.report import errors
from fccomodel.report.kinks import find
from fccomodel.report.recording import Record, Recorder

Array = np.ndarray
#: How near a bound an entry of a variable counts as being at it, relative to 1 + |bound|; a step of the finite differences.
AT_BOUND, STEP = 1e-7, 1e-5
#: Entries of the matrix of gradients that are held at once.
MOST_ENTRIES = 50_000_000


def functions(evaluator: Evaluator) -> tuple[torch.Tensor, torch.Tensor, list[str], list[bool]]:
    """The objective as written, all constraints' values one after the other, their labels, and which of them are equalities."""
    bound, parts, labels, equal = evaluator.bound, [torch.zeros(0, dtype=torch.float64)], [], []
    objective = evaluator.value(bound.problem.objective.expr, {}).data
    for constraint in bound.problem.constraints:
        family = members.of(bound, constraint)
        parts.append(family.over(evaluator.value(constraint.body, family.env)))
        labels += family.labels(constraint.label)
        equal += [constraint.kind == "eq"] * len(family)
    return objective, torch.cat(parts), labels, equal


class System:
    """A problem at a point, as ``minimise f s.t. c <= 0`` (or ``== 0``); gradients are over all variables, one after the other.

    objective  as the user wrote it         values, labels, equal   of the constraints, family members one by one
    records    kinks with their terms       slopes                  of f and each c_k, their derivatives in the kinks' values
    slope      the gradient of f where kinks are held fixed
    inside     by record with others inside: the instance and the term, the other record, its instances, the term's slopes in them
    """

    def __init__(self, bound: Bound, point: Mapping[str, np.ndarray], *, seed: int = 0):
        self.bound, self.problem, self.seed = bound, bound.problem, seed
        self.names = [name for name in bound.problem.variables]
        for name in self.names:
            if name not in point:
                refuse(evaluation_errors.no_variable(name, bound.problem.variables[name].span), source=bound.problem.source)
        self.point = {name: torch.as_tensor(np.array(point[name], dtype=np.float64)) for name in self.names}
        for name, value in self.point.items():
            if not bool(torch.isfinite(value).all()):
                refuse(errors.variable(name, bound.problem.variables[name].span), source=bound.problem.source)
        self.sign = 1.0 if bound.problem.objective.sense == "minimize" else -1.0
        self.kinks, self.left = find(bound, bound.problem.roots)
        leaves = {name: value.clone().requires_grad_(True) for name, value in self.point.items()}
        began = time.perf_counter()
        recorder = Recorder(self.kinks)
        self.f, self.c, self.labels, self.equal, self.evaluator = self.evaluate(leaves, recorder)
        self.forward_s = time.perf_counter() - began
        self.leaves = [self.evaluator.point[name] for name in self.names]
        self.records: tuple[Record, ...] = tuple(recorder.records)
        self.refused = recorder.refused
        self.objective = self.sign * float(self.f.detach())
        self.values: Array = self.c.detach().numpy()
        self.violations: list[float] = [abs(v) if e else v for v, e in zip(self.values.tolist(), self.equal, strict=True)]
        self._finite()
        self.slopes = self._slopes()
        self.inside = dict(self._inside())
        self.slope = self.pull([(self.f, 1.0)])

    # --------------------------------------------------------------------------------------------------------- evaluation
    def evaluate(
        self, point: Mapping[str, torch.Tensor], recorder: Recorder, seed: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, list[str], list[bool], Evaluator]:
        """f, all c_k one after the other, their labels, which of them are equalities, and what evaluated them."""
        evaluator = Evaluator(self.bound, point, seed=self.seed if seed is None else seed, cuts=recorder.cuts())
        objective, values, labels, equal = functions(evaluator)
        return self.sign * objective, values, labels, equal, evaluator

    def _finite(self) -> None:
        wrong = [label for label, value in zip(self.labels, self.values, strict=True) if not np.isfinite(value)]
        if np.isfinite(self.objective) and not wrong:
            return
        quantity = "the objective" if not np.isfinite(self.objective) else f"constraint `{wrong[0]}`"
        value = self.objective if not np.isfinite(self.objective) else self.values[self.labels.index(wrong[0])]
        span = self.problem.objective.span
        if np.isfinite(self.objective):
            span = next(c.span for c in self.problem.constraints if c.label == wrong[0].partition("[")[0])
        refuse(errors.value(quantity, value, span), source=self.problem.source)

    # ---------------------------------------------------------------------------------------------------------- gradients
    def _slopes(self) -> list[list[Array | None]]:
        """For f and every c_k, its derivative in each record's values (None where it does not depend on them)."""
        values = [record.value for record in self.records]
        if not values:
            return [[] for _ in range(1 + len(self.values))]
        slopes = []
        for root in (self.f, *self.c):
            grads: Sequence[torch.Tensor | None] = [None] * len(values)
            if root.requires_grad:
                grads = torch.autograd.grad(root, values, retain_graph=True, allow_unused=True)
            slopes.append([None if g is None or not bool((g != 0).any()) else g.numpy() for g in grads])
        return slopes

    def _inside(self) -> Iterator[tuple[int, list[tuple[int, int, int, Array, Array]]]]:
        values = [record.value for record in self.records]
        for k, record in enumerate(self.records):
            terms = record.terms
            if not terms.requires_grad:
                continue
            whole = torch.autograd.grad(terms.sum(), values, retain_graph=True, allow_unused=True)
            depending = [j for j, g in enumerate(whole) if g is not None]
            nonzero = []
            for place in np.ndindex(*terms.shape) if depending else ():
                grads = torch.autograd.grad(terms[place], [values[j] for j in depending], retain_graph=True, allow_unused=True)
                for j, g in zip(depending, grads, strict=True):
                    if g is not None and bool((g != 0).any()):
                        instances = np.flatnonzero(g.numpy())
                        nonzero.append((*place, j, instances, g.numpy().reshape(-1)[instances]))
            if nonzero:
                yield k, nonzero

    def pull(self, weights: Sequence[tuple[torch.Tensor, Array | float]]) -> Array:
        """The gradient of a weighted sum of f, c and terms (kinks held fixed), flat; F0701 where it is not finite."""
        total = torch.zeros((), dtype=torch.float64)
        for tensor, weight in weights:
            total = total + (tensor * torch.as_tensor(weight, dtype=torch.float64)).sum()
        if not total.requires_grad:
            return np.zeros(self.d)
        gradient = self._flat(torch.autograd.grad(total, self.leaves, retain_graph=True, allow_unused=True))
        if not np.isfinite(gradient).all():
            refuse(errors.gradient(self.problem.objective.span), source=self.problem.source)
        return gradient

    def _flat(self, gradients: Sequence[torch.Tensor | None]) -> Array:
        parts = [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(gradients, self.leaves, strict=True)]
        return torch.cat([part.reshape(-1) for part in parts]).numpy() if parts else np.zeros(0)

    @property
    def d(self) -> int:
        return sum(leaf.numel() for leaf in self.leaves)

    def rows(self, *, terms: bool, end: float) -> Array | None:
        """Gradients of every c_k (kinks held fixed) and, with ``terms``, of every term, by row; None where time is too short.

        By one backward pass for each, or by two evaluations for every entry of the variables where those are fewer (central
        differences).
        """
        parts = [self.c, *(record.terms for record in self.records if terms)]
        entries = [(part, k) for part in parts for k in range(part.numel())]
        if not entries:
            return np.zeros((0, self.d))
        if len(entries) * self.d > MOST_ENTRIES:
            return None
        began = time.perf_counter()
        first = self._row(*entries[0])
        by_row = (time.perf_counter() - began) * len(entries)
        by_column = 2 * self.forward_s * self.d
        if len(entries) > 16 and min(by_row, by_column) > end - time.perf_counter():
            return None
        if by_row <= by_column or len(entries) <= 16:
            return np.stack([first, *(self._row(part, k) for part, k in entries[1:])])
        return self._differences(terms=terms)

    def _row(self, part: torch.Tensor, k: int) -> Array:
        one = np.zeros(part.numel())
        one[k] = 1.0
        return self.pull([(part, one.reshape(tuple(part.shape)))])

    def _differences(self, *, terms: bool) -> Array:
        """The same by central differences in every entry of the variables."""
        columns = []
        for name, value in self.point.items():
            for k in range(value.numel()):
                step = STEP * (1 + abs(float(value.reshape(-1)[k])))
                ends = []
                for direction in (step, -step):
                    moved = value.clone()
                    moved.reshape(-1)[k] += direction
                    ends.append(self._moved({**self.point, name: moved}, terms=terms))
                columns.append((ends[0] - ends[1]) / (2 * step))
        return np.stack(columns, axis=1)

    def _moved(self, point: Mapping[str, torch.Tensor], *, terms: bool) -> Array:
        """c_k and terms at another point, the values of kinks held fixed."""
        recorder = Recorder(self.kinks, frozen=self.records)
        with torch.no_grad():
            parts = [self.evaluate(point, recorder)[1]]
        if terms:
            parts += [record.terms.reshape(-1) for record in recorder.records]
        return torch.cat(parts).detach().numpy()

    # -------------------------------------------------------------------------------------------------------- simple sets
    @property
    def outside(self) -> float:
        """How far the variables are from their simple sets."""
        worst = 0.0
        for name, value in self.point.items():
            for simple, args in self.sets_of(name):
                worst = max(worst, float((value - simple.project(value, *simple.prepare(*args))).norm()))
        return worst

    @property
    def projected(self) -> bool:
        return any(variable.sets for variable in self.problem.variables.values())

    def sets_of(self, name: str) -> list[tuple[sets.SimpleSet, tuple]]:
        """A variable's simple sets with the values of their arguments."""
        variable = self.problem.variables.get(name)
        return [self.evaluator.simple_set(declared) for declared in (variable.sets if variable is not None else ())]

    def generators(self, most: int) -> tuple[Array, Array] | None:
        """Vectors that generate the normal cone of the variables' simple sets at the point, by column, and which of them stand
        for their negatives too. None where they are more than ``most``, or not all listed."""
        columns, free, place = [np.zeros((self.d, 0))], [np.zeros(0, dtype=bool)], 0
        for name, value in self.point.items():
            for simple, args in self.sets_of(name):
                normals = simple.normals(value, *args, tolerance=AT_BOUND)
                if not normals.whole:
                    return None
                low, high = (mask.reshape(-1).numpy() for mask in (normals.low, normals.high))
                at_end = np.flatnonzero(low | high)
                normal_columns = np.zeros((self.d, len(at_end) + len(normals.rows)))
                normal_columns[place + at_end, np.arange(len(at_end))] = np.where(high[at_end], 1.0, -1.0)
                normal_columns[place : place + value.numel(), len(at_end) :] = normals.rows.numpy().T
                columns.append(normal_columns)
                free.append(np.concatenate([(low & high)[at_end], np.full(len(normals.rows), normals.equation)]))
                if sum(part.shape[1] for part in columns) > most:
                    return None
            place += value.numel()
        return np.concatenate(columns, 1), np.concatenate(free)

    def tangent(self, gradient: Array) -> Array:
        """What no normal of the simple sets can cancel of a gradient: the part by which a small step would still descend."""
        if not self.projected:
            return gradient
        parts = [-(part - sum(normals, torch.zeros_like(part))).reshape(-1) for _, part, normals in self.normals(gradient)]
        return torch.cat(parts).numpy()

    def normals(self, gradient: Array) -> Iterator[tuple[str, torch.Tensor, list[torch.Tensor]]]:
        """For every variable: its name, its part of the negative gradient, and the normal of each of its sets nearest to it."""
        for name, part in self.split(-gradient).items():
            yield name, part, self._normals(part, self.point[name], self.sets_of(name))

    def split(self, flat: Array) -> dict[str, torch.Tensor]:
        """A vector over all variables, by variable."""
        ends = np.cumsum([value.numel() for value in self.point.values()])[:-1]
        parts = zip(self.point.items(), np.split(flat, ends), strict=True)
        return {name: torch.from_numpy(np.ascontiguousarray(part)).reshape(value.shape) for (name, value), part in parts}

    def _normals(self, s: torch.Tensor, w: torch.Tensor, simple_sets: list[tuple[sets.SimpleSet, tuple]]) -> list[torch.Tensor]:
        """Normals at w, one of each set, whose sum is nearest to ``s``."""
        normals = [torch.zeros_like(s) for _ in simple_sets]
        for _ in range(1 if len(simple_sets) <= 1 else 200):
            for k, (simple, args) in enumerate(simple_sets):
                rest = s - sum((n for j, n in enumerate(normals) if j != k), torch.zeros_like(s))
                normals[k] = rest - simple.tangent(rest, w, *args, tolerance=AT_BOUND)
        return normals
