"""Values of expressions of constants, params and sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements
from fccomodel.library import atoms


def constant_values(problem: ir.Problem, bound: Bound | None) -> Callable[[ir.Expr], float | None]:
    """A function that gives the value of a scalar expression, or None.

    The expression may contain constants, params, sizes and numbers of elements, and nothing else.
    """
    return _Values(problem, bound)


class _Values:
    """Values of scalar expressions, each computed once."""

    def __init__(self, problem: ir.Problem, bound: Bound | None):
        self.problem, self.bound = problem, bound
        self.memo: dict[int, tuple[ir.Expr, float | None]] = {}

    def __call__(self, node: ir.Expr) -> float | None:
        """The value of an expression, or None if it is not known."""
        if id(node) not in self.memo:
            self.memo[id(node)] = (node, self._compute(node))
        return self.memo[id(node)][1]

    def _compute(self, node: ir.Expr) -> float | None:
        match node:
            case ir.Const(value=v):
                return v
            case ir.Param(name=name) if not node.shape:
                return self._param(name)
            case ir.Size(dim=dim) if self.bound is not None:
                return float(elements.size(self.bound, dim))
            case ir.Reduce(body=ir.Const()) if self.bound is not None and not ir.free_binders(node):
                # imported here: it needs torch, which the analysis of a text does not
                from fccomodel.evaluation.interpret import evaluate

                return float(evaluate(self.bound, node, {}))
            case ir.Apply() if not node.shape:
                return self._apply(node)
        return None

    def _param(self, name: str) -> float | None:
        """The value of a scalar param: the bound one, otherwise its default, or None."""
        if self.bound is not None and name in self.bound.params:
            return float(self.bound.params[name])
        if name in self.problem.params:
            default = self.problem.params[name].default
        else:
            default = None
        if default is None:
            return None
        return self(default)

    def _apply(self, node: ir.Apply) -> float | None:
        numbers = [self(a) for a in node.args]
        atom = atoms.get(node.op)
        if not isinstance(atom, atoms.ScalarAtom) or any(v is None for v in numbers):
            return None
        with np.errstate(all="ignore"):
            return float(atom.value(*(np.float64(v) for v in numbers)))


def known_sizes(problem: ir.Problem, bound: Bound | None) -> Callable[[ir.Dim], int | None]:
    """A function that gives the size of a dimension by the text or the data, or None if it is not known."""

    def size(dim: ir.Dim) -> int | None:
        """The size of a dimension, or None."""
        if isinstance(dim, int):
            return dim
        if bound is None:
            return problem.sizes.get(dim)
        return elements.size(bound, dim)

    return size
