"""Where a node stands: does the minimised problem only ever want it smaller?"""

from __future__ import annotations

from math import inf

from fccomodel.core import ir
from fccomodel.library import atoms, reductions


def wanted_small(problem: ir.Problem) -> set[int]:
    """Identities of the nodes that the objective and the constraints depend on non-decreasingly (equalities: on none)."""
    good: set[int] = set()
    blocked: set[int] = set()
    seen: set[tuple[int, int]] = set()
    stack = [(problem.objective.expr, 1 if problem.objective.sense == "minimize" else -1)]
    stack += [(c.body, 1 if c.kind == "le" else 0) for c in problem.constraints]
    while stack:
        node, sign = stack.pop()
        if (id(node), sign) in seen:
            continue
        seen.add((id(node), sign))
        (good if sign > 0 else blocked).add(id(node))
        stack.extend((child, sign * way) for child, way in _ways(node, problem))
    return good - blocked


def _ways(node: ir.Expr, problem: ir.Problem) -> list[tuple[ir.Expr, int]]:
    """Children with 1 (the node increases in it), -1 (decreases) or 0 (unknown)."""
    match node:
        case ir.Apply(op="add"):
            return [(a, 1) for a in node.args]
        case ir.Apply(op="sub", args=(a, b)):
            return [(a, 1), (b, -1)]
        case ir.Apply(op="neg", args=(a,)):
            return [(a, -1)]
        case ir.Apply(op="mul", args=(a, b)):
            return [(b, sign_of(a, problem)), (a, sign_of(b, problem))]
        case ir.Apply(op="div", args=(a, b)):
            return [(a, sign_of(b, problem)), (b, 0)]
        case ir.Apply(op="max" | "min", args=args):
            return [(a, 1) for a in args]
        case ir.Apply(op=op, args=(a,)):
            atom = atoms.get(str(op))
            direction = atom.monotone(atoms.Interval(-inf, inf)) if isinstance(atom, atoms.ScalarAtom) else None
            return [(a, {"increasing": 1, "decreasing": -1}.get(str(direction), 0))]
        case ir.Reduce() if reductions.of(node).increasing and not reductions.of(node).condition:
            return [(node.body, 1)]
        case ir.LetRef():
            return [(node.let.body, 1)]
    return [(child, 0) for child in node.children]


def sign_of(node: ir.Expr, problem: ir.Problem) -> int:
    """1 for a nonnegative constant factor, -1 for a nonpositive one, 0 for anything else."""
    match node:
        case ir.Const(value=value):
            return 1 if value >= 0 else -1
        case ir.Size():
            return 1
        case ir.Param(name=name) if name in problem.params:
            parameter = problem.params[name]
            return 1 if parameter.lower >= 0 else -1 if parameter.upper <= 0 else 0
        case ir.Apply(op="mul" | "div", args=(a, b)):
            return sign_of(a, problem) * sign_of(b, problem)
        case ir.Apply(op="neg", args=(a,)):
            return -sign_of(a, problem)
    return 0
