"""``const`` and ``param``."""

from __future__ import annotations

from math import inf

from fccomodel.core import ir
from fccomodel.language import syntax
from fccomodel.language.check import (
    declarations,
    expressions,
    literals,
    shapes,
)
from fccomodel.language.check.context import (
    ConstSymbol,
    Context,
    NumberSymbol,
)
from fccomodel.language.check.shapes import describe, show


def const(ctx: Context, node: syntax.ConstDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    value = expressions.number(ctx, declarations.HERE, node.value, "a constant")
    if value is None:
        declarations.broken(ctx, node, node.name)
        return
    if not isinstance(value, ir.Const):
        ctx.error(
            "F0424",
            f"`{ctx.text(node.value.span)}` is not a constant",
            node.value.span,
            reason="A `const` is baked into the solver: numbers alone.",
            fix="Use `param` for a value that is given later, `let` for a quantity, or `def` for a function.",
        )
        declarations.broken(ctx, node, node.name)
        return
    ctx.declare(ConstSymbol(name=node.name, what="a constant", span=span, value=value.value))


#: lower and upper bound, and whether each is strict
Bounds = tuple[float, float, bool, bool]


def param(ctx: Context, node: syntax.ParamDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    shape = literals.declared_shape(ctx, declarations.HERE, node.shape)
    found = _bounds(ctx, node)
    default = (
        None if node.default is None else expressions.number(ctx, declarations.HERE, node.default, "a default", scalar=False)
    )
    if shape is None or found is None or (node.default is not None and default is None):
        declarations.broken(ctx, node, node.name)
        return
    low, high, strict_low, strict_high = found
    if default is not None and not _default_fits(ctx, node, default, shape, found):
        declarations.broken(ctx, node, node.name)
        return
    made = ir.Parameter(
        name=node.name,
        shape=shape,
        lower=low,
        upper=high,
        strict_lower=strict_low,
        strict_upper=strict_high,
        default=default,
        span=span,
    )
    if ctx.declare(
        NumberSymbol(name=node.name, what="a param", span=span, node=ir.Param(name=node.name, shape=shape, span=span))
    ):
        ctx.params[node.name] = made


def _default_fits(ctx: Context, node: syntax.ParamDecl, default: ir.Expr, shape: ir.Shape, bounds: Bounds) -> bool:
    """The default has the param's shape, is known before the data, and keeps the bounds."""
    low, high, strict_low, strict_high = bounds
    if default.shape and not shapes.same_shape(ctx, default.shape, shape):
        ctx.error(
            "F0301",
            f"the default is {describe(ctx, default)}, and `{node.name}` is a {show(shape)}",
            default.span,
            fix="Give a scalar: every entry has it.",
        )
        return False
    if not literals.data_free(default) or any(isinstance(n, ir.Param) and n.name in ctx.arrays for n in ir.walk(default)):
        ctx.error(
            "F0424",
            f"`{ctx.text(default.span)}` is not known before the data is",
            default.span,
            reason="A default is made of constants, params and dims.",
            fix="Use a number.",
        )
        return False
    value = default.value if isinstance(default, ir.Const) else None
    if value is not None and (value < low or value > high or (strict_low and value == low) or (strict_high and value == high)):
        ctx.error(
            "F0411",
            f"the default {value:g} breaks `{', '.join(ctx.text(b.span) for b in node.bounds)}`",
            default.span,
            reason="The bounds of a param are part of its type: every value keeps them.",
            fix="Change the default or the bounds.",
        )
        return False
    return True


def _bounds(ctx: Context, node: syntax.ParamDecl) -> Bounds | None:
    """Lower and upper bound of a param, and whether each is strict."""
    low, high, strict_low, strict_high = -inf, inf, False, False
    for bound in node.bounds:
        if bound.op == "in":
            ctx.error(
                "F0412",
                "a param has no set",
                bound.span,
                reason="Its bounds are comparisons with constants.",
                fix="Write `>= 0`, `> 0, <= 1`.",
            )
            return None
        value = expressions.number(ctx, declarations.HERE, bound.value, "a bound")
        if value is None:
            return None
        if not isinstance(value, ir.Const):
            ctx.error(
                "F0424",
                f"`{ctx.text(bound.value.span)}` is not a constant",
                bound.value.span,
                reason="The bounds of a param are part of its type.",
                fix="Use a number.",
            )
            return None
        x = value.value
        match bound.op:
            case ">=" | ">":
                if x >= low:
                    low, strict_low = x, bound.op == ">"
            case "<=" | "<":
                if x <= high:
                    high, strict_high = x, bound.op == "<"
            case _:
                ctx.error(
                    "F0404",
                    f"`{bound.op}` does not bound",
                    bound.span,
                    reason="Bounds are `>=`, `>`, `<=`, `<`.",
                    fix=f"For a fixed value write `const {node.name} = {x:g};`."
                    if bound.op in ("==", "=")
                    else "Use one of these.",
                )
                return None
    if low > high or (low == high and (strict_low or strict_high)):
        ctx.error(
            "F0410",
            f"no number keeps the bounds of `{node.name}`",
            node.bounds[0].span | node.bounds[-1].span,
            reason=f"They ask for at least {low:g} and at most {high:g}.",
            fix="Swap or correct them.",
        )
        return None
    return low, high, strict_low, strict_high
