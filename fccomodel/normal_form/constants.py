"""Numbers of a problem: what constants, params and sizes come to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements
from fccomodel.library import atoms


def constant_values(problem: ir.Problem, bound: Bound | None) -> Callable[[ir.Expr], float | None]:
    """The value of a scalar expression of constants, params, sizes and numbers of elements; None where
    anything else enters."""
    memo: dict[int, tuple[ir.Expr, float | None]] = {}

    def value(node: ir.Expr) -> float | None:
        if id(node) not in memo:
            memo[id(node)] = (node, compute(node))
        return memo[id(node)][1]

    def compute(node: ir.Expr) -> float | None:
        match node:
            case ir.Const(value=v):
                return v
            case ir.Param(name=name) if not node.shape:
                if bound is not None and name in bound.params:
                    return float(bound.params[name])
                if name in problem.params:
                    default = problem.params[name].default
                else:
                    default = None
                if default is None:
                    return None
                return value(default)
            case ir.Size(dim=dim) if bound is not None:
                return float(elements.size(bound, dim))
            case ir.Reduce(body=ir.Const()) if bound is not None and not ir.free_binders(node):
                from fccomodel.evaluation.interpret import (
                    evaluate,
                )  # needs torch, which what is known of a text does not

                return float(evaluate(bound, node, {}))
            case ir.Apply(op=op, args=args) if not node.shape:
                numbers = [value(a) for a in args]
                atom = atoms.get(op)
                if isinstance(atom, atoms.ScalarAtom) and all(v is not None for v in numbers):
                    with np.errstate(all="ignore"):
                        return float(atom.value(*(np.float64(v) for v in numbers)))
        return None

    return value


def known_sizes(problem: ir.Problem, bound: Bound | None) -> Callable[[ir.Dim], int | None]:
    """The number that a dimension is, by the text or by the data; None where that is not known."""

    def size(dim: ir.Dim) -> int | None:
        if isinstance(dim, int):
            return dim
        if bound is None:
            return problem.sizes.get(dim)
        return elements.size(bound, dim)

    return size
