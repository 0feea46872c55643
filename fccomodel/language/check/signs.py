"""Where values lie: enough interval arithmetic to see a logarithm of a negative number before any data is read."""

from __future__ import annotations

from math import inf

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors
from fccomodel.language.check import shapes
from fccomodel.language.check.context import Context
from fccomodel.library import atoms, sets
from fccomodel.library.atoms import Interval
from fccomodel.library.ranges import Ranges

REALS = Interval()


def interval(ctx: Context, expr: ir.Expr) -> Interval:
    """Where a value (each entry of it) lies, as far as the text says."""
    if ctx.ranges is None:
        ctx.ranges = Ranges(lambda node: _leaf(ctx, node))
    return ctx.ranges(expr)


def _leaf(ctx: Context, node: ir.Expr) -> Interval:
    match node:
        case ir.Param():
            return _param(ctx, node)
        case ir.Var():
            return _variable(ctx, node)
        case ir.Column(name=None):
            return _draw(ctx, node.binder.domain)
        case ir.Column():
            kind = shapes.column_type(ctx, node)
            return _values(None if kind is None else kind.domain)
        case ir.Element(binder=binder) if isinstance(binder.domain, ir.VectorSet):
            return _vector_set(ctx, binder.domain)
        case ir.Element(binder=binder):
            return _values(binder.domain)
    return REALS


def _param(ctx: Context, node: ir.Param) -> Interval:
    if node.name in ctx.arrays:
        return _values(ctx.arrays[node.name].type.domain)
    parameter = ctx.params.get(node.name)
    if parameter is None:
        return REALS
    return Interval(parameter.lower, parameter.upper, parameter.strict_lower, parameter.strict_upper)


def _variable(ctx: Context, node: ir.Var) -> Interval:
    variable = ctx.variables.get(node.name)
    low, high = -inf, inf
    for vectors in variable.sets if variable is not None else ():
        entries = _vector_set(ctx, vectors)
        low, high = max(low, entries.lo), min(high, entries.hi)
    return Interval(low, high)


def _vector_set(ctx: Context, vectors: ir.VectorSet) -> Interval:
    """Where each entry lies."""
    return sets.all()[vectors.family].entries(*(interval(ctx, a) for a in vectors.args))


def _values(domain: ir.Set | None) -> Interval:
    if not isinstance(domain, ir.ValueSet):
        return REALS
    numbers = shapes.members(domain)
    return Interval(min(numbers), max(numbers)) if numbers else REALS


def _draw(ctx: Context, domain: ir.Set) -> Interval:
    if not isinstance(domain, ir.Distribution):
        return REALS
    if domain.family == "uniform":
        low, high = (interval(ctx, a) for a in domain.args)
        return Interval(low.lo, high.hi)
    return {"bernoulli": Interval(0.0, 1.0), "exponential": Interval(0.0, inf)}.get(domain.family, REALS)


# ----------------------------------------------------------------------------------------------------------------- checks
def operation_is_defined(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> bool:
    """True, or an error: division by 0, a fractional power of what is negative, an exponent that depends on a variable."""
    if op == "pow" and ir.variables_of(right):
        ctx.report(errors.values.exponent_on_variable(ctx.quote(right)))
        return False
    return in_domain(ctx, op, (left, right), span)


def in_domain(ctx: Context, name: str, args: tuple[ir.Expr, ...], span: Span) -> bool:
    """True, or an error where an argument lies wholly outside of the function's domain."""
    atom = atoms.get(name)
    if atom is None or not atom.domain and not atom.nonzero:
        return True
    enclosures = [interval(ctx, a) for a in args]
    for k, (arg, wanted) in enumerate(zip(args, atom.domains(*enclosures), strict=False)):
        if wanted is not None and enclosures[k].disjoint(wanted):
            what = (
                "the base of a power"
                if name == "pow"
                else f"`{atom.name}`"
                if k == 0
                else f"`{atom.arguments[k]}` of `{atom.signature}`"
            )
            ctx.report(errors.values.out_of_domain(ctx.quote(arg), enclosures[k], what, wanted))
            return False
    for k in atom.poles(*enclosures):
        if enclosures[k].is_point and enclosures[k].lo == 0:
            ctx.report(errors.values.division_by_zero(ctx.quote(span), args[k].span))
            return False
    return True


def within(ctx: Context, value: ir.Expr, low: float, high: float, what: str, *, low_open: bool = False) -> bool:
    """True, or an error where a value lies wholly outside of an interval."""
    enclosure, wanted = interval(ctx, value), Interval(low, high, low_open, False)
    if enclosure.disjoint(wanted):
        ctx.report(errors.values.out_of_interval(what, enclosure, wanted, value.span))
        return False
    return True


def distribution_is_defined(ctx: Context, family: str, args: list[ir.Expr]) -> bool:
    """True, or an error: a negative spread, a probability beyond 1, an interval the wrong way round."""
    match family:
        case "normal" | "laplace":
            return within(ctx, args[1], 0, inf, f"the {'sd' if family == 'normal' else 'scale'} of `{family}`")
        case "bernoulli":
            return within(ctx, args[0], 0, 1, "the probability of `bernoulli`")
        case "exponential":
            return within(ctx, args[0], 0, inf, "the rate of `exponential`", low_open=True)
        case "uniform":
            low, high = args
            if isinstance(low, ir.Const) and isinstance(high, ir.Const) and low.value >= high.value:
                ctx.report(errors.values.uniform_turned_round(low.value, high.value, low.span | high.span))
                return False
    return True
