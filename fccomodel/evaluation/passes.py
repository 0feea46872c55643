"""Passes over all rows: their values, their numbers of elements, and their cost.

The cost is counted (``core/work``), so that it is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.lazy import torch
from fccomodel.core.work import priced, to_the_end
from fccomodel.data.bound import Bound
from fccomodel.data.subsets import RandomParts
from fccomodel.evaluation import memory
from fccomodel.evaluation.sets import elements, members, realising, selections

Point = Mapping[str, np.ndarray]
#: Parts that are tried at most to find how many rows have a number of elements.
TRIED_PARTS = 8
#: The smallest share of the rows that is tried.
SMALLEST_SHARE = 1e-8
#: A part whose number of elements differs by at most this share from the wanted one is taken.
ERROR_OF_ELEMENTS = 0.1
#: After a part with another number, shares are tried as if this power of them counted.
POWER_OF_SHARE = 2.0


def values(bound: Bound, point: Point, seed: int = 0) -> tuple[np.ndarray, list[str], list[bool]]:
    """The objective and then the constraints, the constraints' labels, and which are equalities."""
    from fccomodel.evaluation.interpret import Evaluator
    from fccomodel.evaluation.values import functions

    with torch.no_grad():
        tensors = {name: torch.as_tensor(np.array(value, dtype=np.float64)) for name, value in point.items()}
        objective, constraints, labels, equal = functions(Evaluator(bound, tensors, seed=seed))
    return np.append(float(objective), constraints.numpy()), labels, equal


def seconds(bound: Bound, point: Point, seed: int = 0, most: float = math.inf) -> float:
    """The counted seconds of a pass at a point; a pass of more than ``most`` is left, and infinite."""
    return priced(lambda: values(bound, point, seed), most=most)[1]


def values_within(
    bound: Bound, point: Point, seed: int, most: float, late: Callable[[], bool]
) -> np.ndarray | None:
    """The objective and the constraints, as in ``values``; None if they take more than ``most`` counted
    seconds, or once ``late()`` says that time is over."""
    result_of_pass: list[np.ndarray | None] = [None]

    def once() -> None:
        """One pass."""
        result = priced(lambda: values(bound, point, seed), most=most)[0]
        result_of_pass[0] = None if result is None else result[0]

    to_the_end(once, late)
    return result_of_pass[0]


def seconds_at_origin(bound: Bound, seed: int, most: float) -> float:
    """The counted seconds of a pass at the origin.

    Infinite if the problem is not defined there, or has more than ``most`` elements. Other params
    are assumed to cost the same.
    """
    return memory.common(
        bound, ("seconds at the origin", seed, most), (), lambda: _at_origin(bound, seed, most)
    )


def _at_origin(bound: Bound, seed: int, most: float) -> float:
    if amount(bound) > most:
        return math.inf
    variables = bound.problem.variables.items()
    origin = {name: np.zeros(elements.shape(bound, variable.shape)) for name, variable in variables}
    try:
        return seconds(bound, origin, seed)
    except FccoError:
        return math.inf


def amount(bound: Bound) -> float:
    """The number of elements of the largest nest of reductions; a pair of rows is one element."""
    inside: dict[int, float] = {}

    def of(root: ir.Expr) -> float:
        """The numbers that one evaluation of a root makes."""
        stack = [root]
        while stack:
            node = stack[-1]
            if missing := [child for child in node.children if id(child) not in inside]:
                stack += missing
                continue
            if isinstance(node, ir.Reduce):
                own = _elements(node, bound)
            else:
                own = 1.0
            of_children = [inside[id(child)] for child in node.children]
            inside[id(stack.pop())] = own * max([1.0, *of_children])
        return inside[id(root)]

    families = [_elements(c, bound) * of(c.body) for c in bound.problem.constraints]
    return max([of(bound.problem.objective.expr), *families])


def _elements(node: ir.Reduce | ir.Constraint, bound: Bound) -> float:
    """The number of elements of a node's binders, for one element of each outer binder.

    If keys choose them, it is the mean number: over the groups for the first rows, and over the rows
    around for all others.
    """
    count, first = 1.0, True
    for part in selections.split(node.binders, node.condition):
        if not isinstance(part.binder.domain, ir.RowSet | ir.ValueSet | ir.LabelSet):
            continue
        index = realising.index(bound, part if part.keys else members.alone(part))
        mean = len(index.rows) / max(len(index.groups), 1)
        around = any(isinstance(parent.domain, ir.RowSet) for parent in part.parents)
        if part.keys and (around or not first) and len(index.rows):
            sizes = np.diff(index.bounds).astype(np.float64)
            mean = float((sizes**2).sum() / sizes.sum())
        count *= max(1.0, mean)
        first = False
    return count


def thinned(parts: RandomParts, kept: float) -> Bound:
    """The problem on a random part of its rows, with about ``kept`` elements."""
    share, low, high = kept / max(amount(parts.bound), 1.0), SMALLEST_SHARE, 1.0
    for _ in range(TRIED_PARTS):  # the model decides how elements grow with rows
        share = min(max(share, low), high)
        thin = parts.of_share(share)
        count = amount(thin)
        if abs(count - kept) <= ERROR_OF_ELEMENTS * kept:
            break
        if count > kept:
            high = share
        else:
            low = share
        share *= (kept / max(count, 1.0)) ** (1 / POWER_OF_SHARE)
        if not low < share < high:
            share = math.sqrt(low * high)
    return thin
