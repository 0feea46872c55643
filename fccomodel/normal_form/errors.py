"""F0601, F0602, F0610, F0611: problems without a normal form."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic
from fccomodel.core.source import Span
from fccomodel.library import reductions

TAIL = Code("F0601", "tail in the wrong place")
NO_DUAL = Code("F0602", "no dual")
STEP_FUNCTION = Code("F0610", "step function")
PROJECTION = Code("F0611", "projection")

#: Codes of problems that have no normal form.
FORMLESS = (TAIL.id, NO_DUAL.id, STEP_FUNCTION.id, PROJECTION.id)


def not_bounded_above(problem: ir.Problem, node: ir.Expr, what: str) -> Diagnostic:
    """A variational form, which is a minimum, stands where the problem may want a large value."""
    return TAIL.error(
        f"{problem.text(node)} stands where a smaller value is not always better",
        span=node.span,
        reason=f"{what} is the least of its variational form over a threshold s, so it can be minimised "
        "or bounded above alone.",
        fix="minimise it, bound it from above, or write the upper tail of the negated quantity. Where "
        "larger is better, let its "
        f"weights be variables: `var q[I] in {_weights(problem, node)};` (for rows, `set I = {{z in "
        f"D}};`), and in its place "
        "`(sum[i in I] q[i] * ..)`, which has its value at the best q.",
    )


def _weights(problem: ir.Problem, node: ir.Expr) -> str:
    """The set of weights over which the largest weighted sum equals the reduction."""
    if not isinstance(node, ir.Reduce) or (option := reductions.of(node).option) is None:
        return "simplex(I)"
    size = problem.text(node.options[option.name])
    if option.counts:
        return f"capped_simplex(I, {size} / n)"
    return f"capped_simplex(I, {size})"


def no_dual(problem: ir.Problem, node: ir.Expr) -> Diagnostic:
    """A maximum over weights whose dual is not known."""
    return NO_DUAL.error(
        f"no dual is known for {problem.text(node)}",
        span=node.span,
        reason="known are the maxima over q in simplex(K) or capped_simplex(K, a) of sum[k in K] q[k] * "
        "r, over the simplex also "
        "less mu * kl(q, p), mu * chi2(q, p) (p without variables) or mu * sum[k in K] phi(q[k]), "
        "where mu is known to be at least 0 (`param mu >= 0`), "
        "or under the condition kl(q, p) <= r, chi2(q, p) <= r or norm1(q - p) <= r, "
        "where r is known to be above 0 (`param r > 0`), for norm1 below 2 too.",
        fix="write the maximum in one of these forms, or its dual yourself.",
    )


def no_conjugate(problem: ir.Problem, node: ir.Expr, unsigned: Sequence[str] = ()) -> Diagnostic:
    """A divergence, in a maximum over weights, whose conjugate is not known.

    ``unsigned`` lists factors whose sign is not known, so that the divergence may not be convex.
    """
    if unsigned:
        return NO_DUAL.error(
            f"no conjugate is known for the divergence of {problem.text(node)}",
            span=node.span,
            reason=f"it must be convex in q >= 0, and {', '.join(unsigned)} may be negative.",
            fix=f"declare its sign: `> 0` behind the declaration of a param, `param {unsigned[0]} > 0;`, "
            "or behind the type of data, `real > 0`.",
        )
    return NO_DUAL.error(
        f"no conjugate is known for the divergence of {problem.text(node)}",
        span=node.span,
        reason="it must be convex in q >= 0: piecewise linear-quadratic, or with a derivative that rises "
        "without bound and that "
        "sympy can invert.",
        fix="write its dual yourself: min over s of s + mu * sum[k in K] phi*((r - s) / mu), with a "
        "variable s.",
    )


def step_function(problem: ir.Problem, node: ir.Expr) -> Diagnostic:
    """A condition on the variables, whose derivative is zero wherever it exists."""
    return STEP_FUNCTION.error(
        f"`{problem.text(node)}` is a step function of the decision variables",
        span=node.span,
        reason="Its derivative is zero wherever it exists, so no step of any algorithm here would see it.",
        fix="Replace it by a surrogate, sigmoid(t * u), hinge(1 - u) or log1pexp(-u); judge by the step. "
        "In a constraint, bound one probability by a number: `prob[z ~ D] (u > 0) <= 0.05`.",
    )


def no_projection(variable: str, sets: str, span: Span) -> Diagnostic:
    """A variable in several sets whose common projection is not known."""
    return PROJECTION.error(
        f"no projection on {sets} at once is known for `{variable}`",
        span=span,
        reason="Two projections one after the other are not the projection on both.",
        fix="Keep the set that is hard to meet on the variable, and write the other as a labelled "
        "constraint.",
    )
