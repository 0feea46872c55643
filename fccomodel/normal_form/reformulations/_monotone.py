"""Monotonicity of a problem in its parts: is a smaller value of a part never worse?"""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.library import atoms, reductions
from fccomodel.library.atoms import Interval
from fccomodel.library.ranges import Ranges, declared
from fccomodel.normal_form import errors

DIRECTIONS = {"increasing": 1, "constant": 1, "decreasing": -1, "none": 0}


def wanted_small(problem: ir.Problem) -> set[int]:
    """Identities of the nodes in which the objective and all constraints are non-decreasing.

    An equality is non-decreasing in none of its parts.
    """
    good: set[int] = set()
    blocked: set[int] = set()
    seen: set[tuple[int, int]] = set()
    ranges = _signs(problem)
    stack = [(problem.objective.expr, 1 if problem.objective.sense == "minimize" else -1)]
    stack += [(c.body, 1 if c.kind == "le" else 0) for c in problem.constraints]
    while stack:
        node, sign = stack.pop()
        if (id(node), sign) in seen:
            continue
        seen.add((id(node), sign))
        (good if sign > 0 else blocked).add(id(node))
        stack.extend((child, sign * direction) for child, direction in _directions(node, ranges))
    return good - blocked


def require_small(problem: ir.Problem, nodes: Sequence[ir.Expr], what: str) -> None:
    """Raise F0601 for each of the nodes whose smaller value may be worse; ``what`` names their kind."""
    small = wanted_small(problem)
    if wrong := [node for node in nodes if id(node) not in small]:
        refuse(*(errors.not_bounded_above(problem, node, what) for node in wrong), source=problem.source)


def _directions(node: ir.Expr, ranges: Ranges) -> list[tuple[ir.Expr, int]]:
    """Children with 1 (the node increases in it), -1 (decreases) or 0 (unknown)."""
    match node:
        case ir.Apply(args=args) if (atom := atoms.of(node)) is not None:
            where = [ranges(a) for a in args]
            directions = []
            for k, name in enumerate(atom.names(len(args))):
                if name in atom.parameters:
                    word = "none"
                else:
                    word = atom.monotone(*where, argument=k)
                directions.append((args[k], DIRECTIONS[word]))
            return directions
        case ir.Reduce() if reductions.of(node).increasing and not reductions.of(node).condition:
            return [(node.body, 1)]
        case ir.LetRef():
            return [(node.let.body, 1)]
    return [(child, 0) for child in node.children]


def _signs(problem: ir.Problem) -> Ranges:
    """The ranges of expressions, as far as the declared bounds of params and data give them."""

    def leaf(node: ir.Expr) -> Interval:
        """The declared range of a param, an array or a column, or the whole line."""
        numbers: ir.Parameter | ir.ColumnType | None = None
        if isinstance(node, ir.Param):
            numbers = problem.params.get(node.name)
            if node.name in problem.arrays:
                numbers = problem.arrays[node.name].type
        elif isinstance(node, ir.Column) and isinstance(node.binder.domain, ir.RowSet):
            numbers = problem.tables[node.binder.domain.table].columns.get(node.name or "")
        if numbers is None:
            return Interval()
        return declared(numbers)

    return Ranges(leaf)


def range_of(node: ir.Expr, problem: ir.Problem) -> Interval:
    """The interval of an expression without variables, from the declarations of params and data."""
    return _signs(problem)(node)


def sign_of(node: ir.Expr, problem: ir.Problem) -> int:
    """1 if a factor is nonnegative for all data and variables, -1 if it is nonpositive, 0 otherwise."""
    where = _signs(problem)(node)
    if where.lo >= 0:
        return 1
    if where.hi <= 0:
        return -1
    return 0
