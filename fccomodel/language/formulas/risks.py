"""Entropic risks whose ``theta`` is a variable or has an index."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.language.formulas import signs
from fccomodel.language.formulas.context import Context
from fccomodel.library.reductions.logmeanexp import LOGMEANEXP


def varies(option: ir.Expr) -> bool:
    """Whether an option depends on a variable or an index."""
    return bool(ir.variables_of(option) or ir.free_binders(option))


def with_theta_outside(ctx: Context, node: ir.Reduce) -> ir.Expr:
    """``theta * logmeanexp(theta = 1)[..] (u / theta)``, a perspective, where theta varies.

    Any other reduction stays as it is.
    """
    theta = node.options.get("theta")
    if theta is None or not varies(theta):
        return node
    if not ir.variables_of(theta):
        theta = signs.nonnegative(ctx, theta)
    scaled = make("div", node.body, theta, span=node.body.span)
    one = ir.Const(value=1.0, span=theta.span)
    return make("mul", theta, LOGMEANEXP.over(node, scaled, theta=one), span=node.span)
