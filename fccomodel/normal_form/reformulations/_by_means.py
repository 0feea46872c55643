"""Reductions that are functions of expectations  ->  these functions."""

from __future__ import annotations

from collections.abc import Callable

from fccomodel.core import ir
from fccomodel.core.rewrite import rewrite_problem
from fccomodel.library import reductions
from fccomodel.library.reductions import Reduction
from fccomodel.library.reductions.expectation import E
from fccomodel.normal_form.reformulations._base import Constant, Recover, same


def of_one(kind: Reduction) -> bool:
    """Whether a kind of reduction is an outer function of one mean."""
    return kind.by_means is not None and kind.by_means.number == 1


def of_several(kind: Reduction) -> bool:
    """Whether a kind of reduction is a function of several means over the same draws."""
    return kind.by_means is not None and kind.by_means.number > 1


def rewriting(
    which: Callable[[Reduction], bool],
) -> Callable[[ir.Problem, Constant], tuple[ir.Problem, Recover, list[str]]]:
    """The ``apply`` of a reformulation that replaces reductions of some kinds by functions of means."""

    def apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
        """Replace the reductions."""
        sentences: list[str] = []

        def rule(node: ir.Expr) -> ir.Expr | None:
            """The function of means for a reduction, or None for any other node."""
            if not (isinstance(node, ir.Reduce) and which(kind := reductions.of(node))):
                return None
            assert kind.by_means is not None
            sentences.append(f"{problem.text(node)} = {kind.by_means.words}")
            return kind.by_means.of(node, lambda body: E.over(node, body))

        return rewrite_problem(problem, rule), same, sentences

    return apply
