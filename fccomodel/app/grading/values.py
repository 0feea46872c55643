"""Values of key and answer at points of the key's variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from fccomodel.app.grading.pieces import in_pieces
from fccomodel.app.grading.trials import Trial, large_sizes
from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import elements
from fccomodel.evaluation.sets.elements import Pointwise
from fccomodel.evaluation.values import functions

#: A value for each of the key's variables.
Point = Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class ValuesAtPoint:
    """A model at a point.

    objective  the function to be minimised: of a maximum, minus the function
    rows       what must be at most 0; an equation has two rows, of either sign
    """

    objective: float
    rows: np.ndarray


@dataclass(eq=False)
class Side:
    """A model, the key or the answer, on the data of a trial.

    partner   its variables by the key's
    listed    domains of variables that count as constraints, by the key's variable
    labels    for each row, the label of its constraint
    left_out  labels of constraints that ``violated`` leaves out
    sizes     sizes of large numbers in the models: something may change at points of such sizes
    """

    bound: Bound
    partner: Mapping[str, str]
    seed: int = 0
    listed: Sequence[str] = ()
    labels: list[str] = field(default_factory=list)
    left_out: frozenset[str] = frozenset()
    sizes: Sequence[float] = ()

    @property
    def sign(self) -> int:
        """-1 if the model maximises."""
        if self.bound.problem.objective.sense.startswith("max"):
            return -1
        return 1

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of one of the key's variables in this model."""
        variable = self.bound.problem.variables[self.partner[name]]
        return elements.shape(self.bound, variable.shape)

    def at(self, point: Point) -> ValuesAtPoint:
        """The values at a point; ``labels`` then names the rows."""
        renamed = {self.partner[name]: value for name, value in point.items()}
        evaluator = self._evaluator(renamed)
        with torch.no_grad():
            objective, rows, labels, equal = functions(evaluator)
        numbers, self.labels = _rows(rows.double().numpy(), labels, equal)
        for name in self.listed:
            own = set_rows(self.bound, self.partner[name], renamed[self.partner[name]])
            numbers = np.concatenate([numbers, *own.values()])
            self.labels += [f"{kind} {name}" for kind, part in own.items() for _ in part]
        return ValuesAtPoint(objective=self.sign * float(objective), rows=numbers)

    def violated(self, point: Point, least: float) -> tuple[np.ndarray, np.ndarray]:
        """The rows that are violated by more than ``least``, without those of domains, and their Jacobian
        in the entries of all variables."""
        tensors = {n: torch.tensor(v, dtype=torch.float64, requires_grad=True) for n, v in point.items()}
        renamed = {self.partner[name]: tensor for name, tensor in tensors.items()}
        _, rows, labels, equal = functions(self._evaluator(renamed))
        leaves = list(tensors.values())
        values, jacobian = [], []
        sizes = rows.detach().double().numpy()
        for row, value, label, both_sides in zip(rows, sizes, labels, equal, strict=True):
            size = abs(value) if both_sides else value
            if size <= least or label.partition("[")[0] in self.left_out:
                continue
            parts = torch.autograd.grad(row, leaves, retain_graph=True, allow_unused=True)
            filled = [torch.zeros_like(t) if g is None else g for g, t in zip(parts, leaves, strict=True)]
            values.append(value)
            jacobian.append(torch.cat([part.reshape(-1) for part in filled]).numpy())
        entries = sum(leaf.numel() for leaf in leaves)
        return np.array(values), np.array(jacobian).reshape(len(values), entries)

    def _evaluator(self, renamed: Mapping[str, np.ndarray | torch.Tensor]) -> Evaluator:
        tensors = {n: torch.as_tensor(v, dtype=torch.float64) for n, v in renamed.items()}
        return Evaluator(self.bound, tensors, seed=self.seed)

    def projected(self, point: Point) -> dict[str, np.ndarray]:
        """The point with each variable projected on its sets, several times if there are several."""
        own = Pointwise(self.bound)
        moved = {}
        for name, value in point.items():
            domains = self.bound.problem.variables[self.partner[name]].sets
            tensor = torch.as_tensor(value, dtype=torch.float64)
            for _ in range(len(domains) if len(domains) < 2 else PROJECTIONS):
                tensor = own.into_sets(domains, tensor)
            moved[name] = tensor.numpy()
        return moved


#: Rounds of projections on the sets of one variable, if there are several.
PROJECTIONS = 30


def sides(trial: Trial, seed: int = 0) -> tuple[Side, Side]:
    """Key and answer on the data of a trial."""
    own = {name: name for name in trial.names.variables}
    key, answer = (replace(b, problem=in_pieces(b.problem)) for b in (trial.key, trial.answer))
    large = large_sizes(trial)
    return Side(key, own, seed, sizes=large), Side(answer, trial.names.variables, seed, sizes=large)


def _rows(values: np.ndarray, labels: list[str], equal: list[bool]) -> tuple[np.ndarray, list[str]]:
    """All rows as inequalities; the label of a member is that of its constraint."""
    numbers: list[float] = []
    names: list[str] = []
    for value, label, both_sides in zip(values, labels, equal, strict=True):
        name = label.partition("[")[0]
        numbers.append(value)
        names.append(name)
        if both_sides:
            numbers.append(-value)
            names.append(name)
    return np.array(numbers), names


def set_rows(bound: Bound, name: str, value: np.ndarray) -> dict[str, np.ndarray]:
    """The conditions of a variable's sets, by kind: at most 0 if they hold.

    Bounds have a row for each entry, a sum of 1 has two. A set without such conditions has one row: the
    distance to it.
    """
    own = Pointwise(bound)
    rows: dict[str, np.ndarray] = {}
    for domain in bound.problem.variables[name].sets:
        simple, arguments = own.simple_set(domain)
        numbers = [np.asarray(a, dtype=float) for a in arguments]
        rows |= _conditions(domain.family, numbers, value)
        if domain.family not in WRITTEN_OUT:
            tensor = torch.as_tensor(value, dtype=torch.float64)
            rows["the set of"] = np.array([float((tensor - simple.nearest(tensor, *arguments)).norm())])
    return rows


#: The sets whose conditions are written out.
WRITTEN_OUT = ("box", "nonneg", "simplex", "ball", "ball1", "affine")


def _conditions(family: str, arguments: list[np.ndarray], value: np.ndarray) -> dict[str, np.ndarray]:
    """The conditions of a set that are known, by kind."""
    flat = value.reshape(-1)
    rows: dict[str, np.ndarray] = {}
    if family == "box":
        low, high = (np.broadcast_to(a, value.shape) for a in arguments)
        rows["the lower bound of"] = _finite(low - value)
        rows["the upper bound of"] = _finite(value - high)
    if family in ("nonneg", "simplex"):
        rows["the lower bound of"] = -flat
    if family == "simplex":
        rows["the sum of"] = np.array([flat.sum() - 1, 1 - flat.sum()])
    if family == "ball":
        rows["the norm of"] = np.array([np.linalg.norm(flat) - float(arguments[0])])
    if family == "ball1":
        rows["the norm of"] = np.array([np.abs(flat).sum() - float(arguments[0])])
    if family == "affine":
        left = arguments[0] @ value - arguments[1]
        rows["the equations of"] = np.concatenate([left, -left])
    return rows


def _finite(rows: np.ndarray) -> np.ndarray:
    """The rows of bounds that are numbers."""
    return rows[np.isfinite(rows)].reshape(-1)


def variables_with_sets(problem: ir.Problem) -> set[str]:
    """The variables that have bounds or other sets."""
    return {name for name, variable in problem.variables.items() if variable.sets}
