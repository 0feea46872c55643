"""Linear maps of sums of rows, term by term: each row is mapped once, and pairs use the mapped rows.

    A (x_i - x_j)   = A x_i - A x_j            dot(w, x_i + x_j) = dot(w, x_i) + dot(w, x_j)
    |u_i - v_j|^2   = |u_i|^2 + |v_j|^2 - 2 dot(u_i, v_j)                  by ``library.distances``

The values are the same up to rounding. The work grows with the number of rows, not of pairs. Code that
evaluates an expression asks for its ``form``, and for the ``sides`` of its squared distances.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import with_children
from fccomodel.data.bound import Bound
from fccomodel.evaluation import memory
from fccomodel.evaluation.sets import elements
from fccomodel.library import atoms
from fccomodel.library.linear import LinearTerm, joined, terms

#: gives the number of elements at which an expression is evaluated
Count = Callable[[ir.Expr], float]


def of(bound: Bound) -> Distributed:
    """The distributed forms of a bound problem, remembered with it."""
    return memory.remember(bound, "distributed", lambda: Distributed(bound))


class Distributed(memory.Owned):
    """The distributed forms of one bound problem's expressions; a node's form is made once."""

    def __init__(self, bound: Bound):
        self.owner = weakref.ref(bound)
        self.opened: dict[int, tuple[ir.Expr, tuple[tuple[LinearTerm, ...], ir.Expr] | None]] = {}
        self.apart: dict[int, tuple[ir.Expr, tuple[ir.Expr, ir.Expr] | None]] = {}
        self.binders: dict[int, tuple[ir.Expr, tuple[ir.Binder, ...]]] = {}

    def form(self, node: ir.Expr, count: Count | None = None) -> ir.Expr | None:
        """The sum of a linear map's values at the terms of its argument, or None if it is not less work.

        ``count`` gives the elements at which a node is evaluated; by default those of a full pass.
        """
        if not isinstance(node, ir.Apply):
            return None
        if id(node) not in self.opened:
            self.opened[id(node)] = (node, _opened(node))
        _, opened = self.opened[id(node)]
        if opened is None:
            return None
        mapped, form = opened
        if count is None:
            count = self.count
        work = sum(count(part.core) for part in mapped)
        if work < count(node):
            return form
        return None

    def sides(self, node: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
        """Vectors (u, v) with different binders such that the node is |u - v|^2, or None."""
        if not isinstance(node, ir.Apply) or node.op != "sumsq" or len(node.args[0].shape) != 1:
            return None
        if id(node) not in self.apart:
            self.apart[id(node)] = (node, self._sides(node.args[0]))
        _, sides = self.apart[id(node)]
        return sides

    def _sides(self, difference: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
        """The two sides of a difference: its terms grouped by the binders that they share."""
        parts = terms(self.form(difference) or difference)
        if any(part.core.shape != difference.shape for part in parts):
            return None
        fixed: list[LinearTerm] = []
        groups: list[tuple[set[ir.Binder], list[LinearTerm]]] = []
        for part in parts:
            binders = set(self.free(part.expr))
            if not binders:
                fixed.append(part)
                continue
            group = [part]
            for other in [g for g in groups if not g[0].isdisjoint(binders)]:
                groups.remove(other)
                other_binders, members = other
                binders |= other_binders
                group = members + group
            groups.append((binders, group))
        if len(groups) != 2:
            return None
        (_, u), (_, v) = groups
        left = joined([*u, *fixed], difference.span)
        right = joined([replace(term, sign=-term.sign) for term in v], difference.span)
        return left, right

    # ---------------------------------------------------------------------------------------- sizes
    def free(self, node: ir.Expr) -> tuple[ir.Binder, ...]:
        """The binders that a node's value depends on."""
        if id(node) not in self.binders:
            self.binders[id(node)] = (node, ir.free_binders(node))
        _, binders = self.binders[id(node)]
        return binders

    def count(self, node: ir.Expr) -> float:
        """The number of elements at which a full pass evaluates a node."""
        return math.prod(self.extent(binder.domain) for binder in self.free(node))

    def extent(self, domain: ir.Set) -> int:
        """The number of elements of a set: 1 for vectors, the number of draws for a distribution."""
        if isinstance(domain, ir.VectorSet):
            return 1
        if isinstance(domain, ir.Distribution):
            return self.bound.draws
        return elements.extent(self.bound, domain)


def _opened(node: ir.Apply) -> tuple[tuple[LinearTerm, ...], ir.Expr] | None:
    """The values of a linear map at the terms of one of its arguments, and their sum; or None."""
    atom = atoms.of(node)
    if atom is None or isinstance(atom, atoms.ScalarAtom) or atom.variadic:
        return None
    for place, arg in enumerate(node.args):
        if not arg.shape:
            continue
        parts = terms(arg)
        only_this = [k == place for k in range(len(node.args))]
        if len(parts) < 2 or not atom.linear(only_this):
            continue
        if all(part.core.shape == arg.shape for part in parts):
            mapped = tuple(replace(part, core=_at(node, place, part.core)) for part in parts)
            return mapped, joined(mapped, node.span)
    return None


def _at(node: ir.Apply, place: int, arg: ir.Expr) -> ir.Expr:
    """The node with another argument at this place."""
    args = list(node.args)
    args[place] = arg
    return with_children(node, tuple(args))
