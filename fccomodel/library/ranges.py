"""Intervals of values of expressions, by one walk of interval arithmetic from the leaves."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan

from fccomodel.core import ir
from fccomodel.library import atoms, reductions
from fccomodel.library.atoms import Interval

REALS = Interval()


def declared(numbers: ir.Parameter | ir.ColumnType) -> Interval:
    """The interval of a parameter, of an array or of a column from its declared bounds."""
    return Interval(numbers.lower, numbers.upper, numbers.strict_lower, numbers.strict_upper)


class Ranges:
    """The interval of each entry of an expression's value, wherever it is defined; children first, each
    node once.

    leaf  of a parameter, a variable, a column, an element: an interval that holds each of its entries
    """

    def __init__(self, leaf: Callable[[ir.Expr], Interval]):
        self.leaf = leaf
        self.intervals: dict[int, tuple[ir.Expr, Interval]] = {}

    def __call__(self, expr: ir.Expr) -> Interval:
        stack = [expr]
        while stack:
            node = stack[-1]
            if isinstance(node, ir.LetRef):
                inner = (*node.children, node.let.body)
            else:
                inner = node.children
            if id(node) in self.intervals:
                missing = []
            else:
                missing = [c for c in inner if id(c) not in self.intervals]
            stack.extend(missing)
            if not missing:
                if id(node) not in self.intervals:
                    self.intervals[id(node)] = (node, self._of(node))
                stack.pop()
        return self.intervals[id(expr)][1]

    def _of(self, node: ir.Expr) -> Interval:
        match node:
            case ir.Const(value=value):
                return Interval.point(value)
            case ir.Size():
                return Interval(1.0, inf)
            case ir.Item(base=base):
                return self(base)
            case ir.LetRef(let=let):
                return self(let.body)
            case ir.Apply(args=args):
                atom = atoms.of(node)
                if atom is None:
                    return REALS
                return applied(atom, tuple(self(a) for a in args))
            case ir.Reduce(body=body):
                return reductions.of(node).interval(self(body))
        return self.leaf(node)


def applied(atom: atoms.Atom, args: tuple[Interval, ...]) -> Interval:
    """The interval of an atom's value, for arguments in these intervals and inside its domain."""
    limits = atom.settled(*args)
    inside = [u if limit is None else u.meet(limit) for u, limit in zip(args, limits, strict=True)]
    try:
        interval = atom.range(*inside)
    except ArithmeticError:
        return REALS
    if isnan(interval.lo) or isnan(interval.hi):
        return REALS
    return interval
