"""An affine function of expectations  ->  the expectation of an affine function."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.rewrite import rewrite_problem
from fccomodel.normal_form.reformulations._affine import merged
from fccomodel.normal_form.reformulations._base import Additions, Constant, Recover, Reformulation, same


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The merged node, or None if nothing changes."""
        new = merged(node)
        if new is not None:
            parts = [a for a, b in zip(node.children, new.children, strict=True) if a is not b]
            sentences.extend(
                f"{problem.text(part)} is the expectation of an affine function: one estimate"
                for part in parts
            )
        return new

    return rewrite_problem(problem, rule), same, sentences


reformulation = Reformulation(
    name="affine_merge",
    title="affine merge",
    order=90,
    needs="expectations over one draw, or one inside the other with a draw of its own",
    formula="a E[z] X + b E[z] Y = E[z] (a X + b Y);  E[z] (a E[j] X + b) = E[z, j] (a X + b)",
    apply=_apply,
    removes=("sums of expectations",),
    cost=Additions(number=0.1),
    cite="linearity; alexr-2025 section 1 (an affine outer function needs no estimate)",
)
