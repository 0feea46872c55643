"""Chance constraints: ``prob[z ~ D] (loss(z) > c) <= 0.05``, and the surrogates that keep them.

A probability jumps or is flat in the variables, so no gradient sees it. An event ``e > 0`` is kept rare by
a function of its excess e:

    cvar      cvar(tail = level) e <= 0. Where it holds, e > 0 in at most that share of the draws. Convex
              where e is.
    sigmoid   E sigmoid(e / width) <= level: a smoothed step, near the probability for a small width, on
              either side of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, literals, signs
from fccomodel.language.formulas.context import Context, Scope
from fccomodel.library import domains as uses
from fccomodel.library.reductions.cvar import CVAR
from fccomodel.library.reductions.expectation import E
from fccomodel.library.reductions.prob import PROB

#: Decimal places of a level that is 1 minus a number of the text.
DECIMALS = 12
#: The option of a constraint that names a surrogate.
SURROGATE = "surrogate"
#: The option that says how wide a smoothed step is, in the units of the excess.
WIDTH = "width"
#: The local name of a quantile's bound, which no text can write.
BOUND = "the bound"

#: A relation of a constraint: left side, ``<=`` or ``>=``, right side.
Relation = tuple[ir.Expr, str, ir.Expr]


def find(left: ir.Expr, op: str, right: ir.Expr) -> tuple[ir.Reduce, ir.Expr, bool] | None:
    """The probability that a relation bounds, its bound, and whether it is bounded from above; or None."""
    for side, other, above in ((left, right, op == "<="), (right, left, op == ">=")):
        if isinstance(side, ir.Reduce) and side.kind == PROB.name and ir.variables_of(side.body):
            if op in ("<=", ">="):
                return side, other, above
    return None


def surrogate(
    ctx: Context, relation: Relation, options: Mapping[str, ir.Expr], span: Span
) -> tuple[Relation, ir.Chance] | None:
    """The relation that stands for a chance constraint, with the event that it keeps rare.

    None after an error.
    """
    found = find(*relation)
    assert found is not None
    node, bound, above = found
    level = _level(ctx, bound, above)
    excess = _excess(ctx, node.body, above)
    if level is None or excess is None:
        return None
    choice = options.get(SURROGATE)
    name = choice.text if isinstance(choice, ir.Label) else ""
    if choice is None:
        ctx.report(errors.reductions.chance_by_cvar(ctx.quote(span), ctx.text(level.span)))
        name = "cvar"
    if name not in _SURROGATES:
        ctx.report(errors.reductions.no_surrogate(ctx.quote(choice.span if choice else span), _SURROGATES))
        return None
    replacement = _SURROGATES[name](ctx, node, excess, level, options)
    if replacement is None:
        return None
    event = node.body if above else ir.Apply(op="not", args=(node.body,), span=node.body.span)
    rare = dataclasses.replace(node, body=event)
    return replacement, ir.Chance(event=rare, level=level, surrogate=name)


def of_quantile(ctx: Context, scope: Scope, relation: syntax.Compare) -> tuple[Scope, syntax.Compare] | None:
    """The bound of a probability that a bound of a quantile is, and its scope; both unchanged without one.

    The quantile at ``level`` is at least c where ``e < c`` has probability ``level`` at most, and at most c
    where ``e > c`` has probability ``1 - level`` at most. The bound c stands outside of the draws: it is a
    local name of the scope. None after an error.
    """
    quantiles = [side for side in relation.operands if _is_quantile(side)]
    if not quantiles:
        return scope, relation
    node, op = quantiles[0], relation.ops[0]
    assert isinstance(node, syntax.Reduce)
    level = next((one.value for one in node.keywords if one.name == "level"), None)
    if len(quantiles) > 1 or len(relation.ops) > 1 or op not in ("<=", ">=") or level is None:
        ctx.report(errors.reductions.quantile_bounded_once(ctx.quote(relation), has_level=level is not None))
        return None
    left, right = relation.operands
    bound = right if node is left else left
    value = expressions.number(ctx, scope, bound, "a bound of a quantile")
    if value is None:
        return None
    outside = syntax.Name(id=BOUND, span=bound.span)
    at_least = (op == ">=") == (node is left)
    event = syntax.Compare(operands=(node.body, outside), ops=("<" if at_least else ">",), span=relation.span)
    share: syntax.Expr = level
    if not at_least:
        one = syntax.Number(value=1.0, text="1", span=level.span)
        share = syntax.Binary(op="-", left=one, right=level, span=level.span)
    keywords = tuple(one for one in node.keywords if one.name != "level")
    rare = dataclasses.replace(node, kind=PROB.name, body=event, keywords=keywords)
    chance = syntax.Compare(operands=(rare, share), ops=("<=",), span=relation.span)
    return scope.with_local(BOUND, value), chance


def _is_quantile(node: syntax.Expr) -> bool:
    """Whether a side of a relation is a quantile."""
    return isinstance(node, syntax.Reduce) and node.kind == "quantile"


# ------------------------------------------------------------------------------------------ the parts
def _level(ctx: Context, bound: ir.Expr, above: bool) -> ir.Expr | None:
    """The share of the draws that the event may have; None after an error."""
    if not literals.is_fixed(ctx, bound):
        return None
    if above:
        level = bound
    elif isinstance(bound, ir.Const):
        level = ir.Const(value=round(1 - bound.value, DECIMALS), span=bound.span)
    else:
        level = make("sub", const(1), bound, span=bound.span)
    known = signs.interval(ctx, level)
    if known.hi <= 0 or known.lo >= 1:
        ctx.report(errors.reductions.no_chance(ctx.quote(bound.span), never=known.hi <= 0))
        return None
    return level


def _excess(ctx: Context, event: ir.Expr, holds: bool) -> ir.Expr | None:
    """A number that is positive where a condition holds (``holds``), or where it fails; None after an error.

    Of ``and`` it is the least of the parts, of ``or`` the largest.
    """
    if isinstance(event, ir.Apply) and event.op == "not":
        return _excess(ctx, event.args[0], not holds)
    if isinstance(event, ir.Apply) and event.op in ("and", "or"):
        parts = [_excess(ctx, part, holds) for part in event.args]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return make("max" if (event.op == "or") == holds else "min", *known, span=event.span)
    ordered = isinstance(event, ir.Apply) and event.op in ("le", "lt", "ge", "gt")
    if not ordered or not ir.variables_of(event):
        ctx.report(errors.reductions.event_without_excess(ctx.quote(event.span)))
        return None
    assert isinstance(event, ir.Apply)
    left, right = event.args
    if (event.op in ("ge", "gt")) != holds:
        left, right = right, left
    if isinstance(right, ir.Const) and right.value == 0:
        return left
    return make("sub", left, right, span=event.span)


# ------------------------------------------------------------------------------------- the surrogates
def _by_cvar(
    ctx: Context, node: ir.Reduce, excess: ir.Expr, level: ir.Expr, options: Mapping[str, ir.Expr]
) -> Relation | None:
    """``cvar(tail = level) e <= 0``"""
    if not all(signs.are_defined(ctx, demand) for demand in uses.of_options(CVAR, {"tail": level})):
        return None
    return CVAR.over(node, excess, tail=level), "<=", const(0)


def _by_sigmoid(
    ctx: Context, node: ir.Reduce, excess: ir.Expr, level: ir.Expr, options: Mapping[str, ir.Expr]
) -> Relation | None:
    """``E sigmoid(e / width) <= level``"""
    width = options.get(WIDTH)
    if width is None or signs.interval(ctx, width).lo < 0:
        ctx.report(errors.reductions.width_of_a_step(ctx.quote(node.span)))
        return None
    step = make("sigmoid", make("div", excess, width, span=excess.span), span=excess.span)
    return E.over(node, step), "<=", level


_Surrogate = Callable[[Context, ir.Reduce, ir.Expr, ir.Expr, Mapping[str, ir.Expr]], Relation | None]
_SURROGATES: dict[str, _Surrogate] = {"cvar": _by_cvar, "sigmoid": _by_sigmoid}
