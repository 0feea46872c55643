"""Where values lie: enough interval arithmetic to see a logarithm of a negative number before any data is read."""

from __future__ import annotations

from math import inf, isnan

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors
from fccomodel.language.check import shapes
from fccomodel.language.check.context import Context
from fccomodel.library import atoms, reductions
from fccomodel.library.atoms import Interval

REALS = Interval()


def interval(ctx: Context, expr: ir.Expr) -> Interval:
    """Where a value (each entry of it) lies, as far as the text says; not recursive."""
    stack = [expr]
    while stack:
        node = stack[-1]
        if id(node) in ctx.intervals:
            stack.pop()
            continue
        inner = [*node.children, node.let.body] if isinstance(node, ir.LetRef) else list(node.children)
        missing = [c for c in inner if id(c) not in ctx.intervals]
        if missing:
            stack.extend(missing)
            continue
        ctx.kept.append(node)
        ctx.intervals[id(node)] = _own(ctx, node)
        stack.pop()
    return ctx.intervals[id(expr)]


def _own(ctx: Context, node: ir.Expr) -> Interval:
    match node:
        case ir.Const():
            return Interval.point(node.value)
        case ir.Size():
            return Interval(1.0, inf)
        case ir.Param():
            return _param(ctx, node)
        case ir.Var():
            return _variable(ctx, node)
        case ir.Column():
            if node.name is None:
                return _draw(ctx, node.binder.domain)
            kind = shapes.column_type(ctx, node)
            return _values(None if kind is None else kind.domain)
        case ir.Element():
            if isinstance(node.binder.domain, ir.VectorSet):
                return _vector_set(ctx, node.binder.domain)
            return _values(node.binder.domain)
        case ir.Item():
            return ctx.intervals[id(node.base)]
        case ir.LetRef():
            return ctx.intervals[id(node.let.body)]
        case ir.Apply():
            return _applied(ctx, node)
        case ir.Reduce():
            return reductions.of(node).interval(ctx.intervals[id(node.body)])
    return REALS


def _applied(ctx: Context, node: ir.Apply) -> Interval:
    atom = atoms.get(node.op)
    if atom is None or shapes.sort(ctx, node) == "truth":
        return REALS
    args = [ctx.intervals[id(a)] for a in node.args]
    for own, wanted in zip(args, atom.domains(*args), strict=False):
        if wanted is not None and not own.inside(wanted):
            return REALS
    try:
        found = atom.range(*args)
    except (ArithmeticError, ValueError, TypeError):
        return REALS
    return REALS if isnan(found.lo) or isnan(found.hi) else found


def _param(ctx: Context, node: ir.Param) -> Interval:
    if node.name in ctx.arrays:
        return _values(ctx.arrays[node.name].type.domain)
    known = ctx.params.get(node.name)
    return REALS if known is None else Interval(known.lower, known.upper, known.strict_lower, known.strict_upper)


def _variable(ctx: Context, node: ir.Var) -> Interval:
    variable = ctx.variables.get(node.name)
    low, high = -inf, inf
    for vectors in variable.sets if variable is not None else ():
        inner = _vector_set(ctx, vectors)
        low, high = max(low, inner.lo), min(high, inner.hi)
    return Interval(low, high)


def _vector_set(ctx: Context, vectors: ir.VectorSet) -> Interval:
    """Where each entry lies."""
    if vectors.family in ("simplex", "capped_simplex"):
        return Interval(0.0, 1.0)
    if vectors.family == "nonneg":
        return Interval(0.0, inf)
    if vectors.family in ("ball", "ball1"):
        radius = interval(ctx, vectors.args[0])
        return Interval(-radius.hi, radius.hi)
    if vectors.family == "box":
        low, high = (interval(ctx, a) for a in vectors.args)
        return Interval(low.lo, high.hi)
    return REALS


def _values(domain: ir.Set | None) -> Interval:
    if not isinstance(domain, ir.ValueSet):
        return REALS
    known = shapes.members(domain)
    return Interval(min(known), max(known)) if known else REALS


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
    if atom is None or name in ("add", "sub", "mul", "neg", "max", "min"):
        return True
    own = [interval(ctx, a) for a in args]
    for k, (arg, wanted) in enumerate(zip(args, atom.domains(*own), strict=False)):
        if wanted is not None and own[k].disjoint(wanted):
            what = (
                "the base of a power"
                if name == "pow"
                else f"`{atom.name}`"
                if k == 0
                else f"`{atom.arguments[k]}` of `{atom.signature}`"
            )
            ctx.report(errors.values.out_of_domain(ctx.quote(arg), own[k], what, wanted))
            return False
    for k in atom.poles(*own):
        if own[k].is_point and own[k].lo == 0:
            ctx.report(errors.values.division_by_zero(ctx.quote(span), args[k].span))
            return False
    return True


def within(ctx: Context, value: ir.Expr, low: float, high: float, what: str, *, low_open: bool = False) -> bool:
    """True, or an error where a value lies wholly outside of an interval."""
    own, wanted = interval(ctx, value), Interval(low, high, low_open, False)
    if own.disjoint(wanted):
        ctx.report(errors.values.out_of_interval(what, own, wanted, value.span))
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
