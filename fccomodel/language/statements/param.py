"""``param lam >= 0 default 1e-4;``: numbers that may change from solve to solve."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import declarations, expressions, limits, literals, shapes
from fccomodel.language.formulas.context import Context, NumberSymbol
from fccomodel.language.formulas.limits import Bounds
from fccomodel.language.formulas.shapes import described, show
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import bounds_of, declared


@dataclass(frozen=True, kw_only=True)
class ParamDecl(syntax.Statement):
    """``param name[shape] >= low, <= high default value;``."""

    name: str
    shape: tuple[syntax.Expr, ...] = ()
    bounds: tuple[syntax.Bound, ...] = ()
    default: syntax.Expr | None = None


def _read(c: list, at: Span) -> ParamDecl:
    name = declared(c[0])
    bounds = bounds_of(name, c[2])
    return ParamDecl(name=name, shape=c[1] or (), bounds=bounds, default=c[3], span=at)


def _check(ctx: Context, node: ParamDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    shape = literals.declared_shape(ctx, declarations.HERE, node.shape)
    bounds = _bounds(ctx, node)
    default: ir.Expr | None = None
    if node.default is not None:
        default = expressions.number(ctx, declarations.HERE, node.default, "a default", scalar=False)
    if shape is None or bounds is None or (node.default is not None and default is None):
        declarations.broken(ctx, node, node.name)
        return
    if default is not None and not _default_fits(ctx, node, default, shape, bounds):
        declarations.broken(ctx, node, node.name)
        return
    low, high, strict_low, strict_high = bounds
    parameter = ir.Parameter(
        name=node.name,
        shape=shape,
        lower=low,
        upper=high,
        strict_lower=strict_low,
        strict_upper=strict_high,
        default=default,
        span=span,
    )
    use = ir.Param(name=node.name, shape=shape, span=span)
    if ctx.declare(NumberSymbol(name=node.name, what="a param", span=span, node=use)):
        ctx.params[node.name] = parameter


def _default_fits(ctx: Context, node: ParamDecl, default: ir.Expr, shape: ir.Shape, bounds: Bounds) -> bool:
    """Whether the default has the right shape, needs no data and keeps the bounds. Reports an error."""
    if default.shape and not shapes.same_shape(ctx, default.shape, shape):
        ctx.report(errors.shapes.default(described(ctx, default), node.name, show(shape)))
        return False
    if not literals.data_free(ctx, default):
        ctx.report(errors.values.default_not_known(ctx.quote(default)))
        return False
    if isinstance(default, ir.Const) and not bounds.holds(default.value):
        written = ", ".join(ctx.text(bound.span) for bound in node.bounds)
        ctx.report(errors.values.default_out_of_bounds(default.value, written, default.span))
        return False
    return True


def _bounds(ctx: Context, node: ParamDecl) -> Bounds | None:
    """The bounds of a param; None after an error."""
    for bound in node.bounds:
        if bound.op == "in":
            ctx.report(errors.sets.set_of_a_param(bound.span))
            return None
    return limits.of(ctx, node.name, node.bounds, "a param")


def _write(writer: TextWriter, node: ParamDecl) -> None:
    writer("param ", node.name)
    writer.bounded(node.shape, node.bounds)
    writer.after(" default ", node.default)


def _python(writer: PythonWriter, node: ParamDecl, doc: str) -> str:
    arguments = writer.bounded(node.shape, node.bounds)
    if node.default is not None:
        arguments.append(f"default={writer.formula(node.default)}")
    return writer.assigned(node.name, writer.fc("param"), arguments, doc)


param = StatementKind(
    name="param",
    order=70,
    node=ParamDecl,
    forms={"param": "param lam >= 0 default 1e-4;"},
    elsewhere={"parameter": "param", "parameters": "param"},
    token="PARAM",
    follows="NAME",
    clauses=("DEFAULT",),
    rules={"param": _read},
    check=_check,
    write=_write,
    python=_python,
)
