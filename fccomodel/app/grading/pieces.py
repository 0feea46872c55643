"""Constraints in pieces: ``abs(x) <= r`` is two constraints, ``max(a, b) <= r`` one for each argument."""

from __future__ import annotations

from dataclasses import replace

from fccomodel.app.grading.located import opened, signed
from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make


def in_pieces(problem: ir.Problem) -> ir.Problem:
    """The problem with such constraints written as several, under the same labels."""
    constraints = tuple(piece for c in problem.constraints for piece in _pieces(c))
    return replace(problem, constraints=constraints)


def _pieces(constraint: ir.Constraint) -> list[ir.Constraint]:
    """The constraints that say the same together; the constraint itself if it has no pieces."""
    if constraint.kind != "le" or constraint.of_matrices:
        return [constraint]
    terms = signed(constraint.body)
    for k, (sign, term) in enumerate(terms):
        arguments = _arguments(term) if sign > 0 else []
        if not arguments or term.shape:
            continue
        rest = terms[:k] + terms[k + 1 :]
        return [replace(constraint, body=_sum([(1, a), *rest])) for a in arguments]
    return [constraint]


def _arguments(term: ir.Expr) -> list[ir.Expr]:
    """The functions whose largest value the term is, if it is an absolute value or a maximum."""
    node = opened(term)
    if not isinstance(node, ir.Apply):
        return []
    if node.op == "abs":
        return [node.args[0], make("neg", node.args[0])]
    if node.op == "max" and len(node.args) > 1:
        return list(node.args)
    return []


def _sum(terms: list[tuple[int, ir.Expr]]) -> ir.Expr:
    """The sum of terms with signs."""
    total: ir.Expr | None = None
    for sign, term in terms:
        one = term if sign > 0 else make("neg", term)
        total = one if total is None else make("add", total, one)
    assert total is not None
    return total
