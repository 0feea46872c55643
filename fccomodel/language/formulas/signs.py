"""Interval arithmetic on what the text says, to find a logarithm of a negative number before the data."""

from __future__ import annotations

from math import inf

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.source import Span
from fccomodel.language import errors
from fccomodel.language.formulas import shapes
from fccomodel.language.formulas.context import Context
from fccomodel.library import atoms, distributions, domains, sets
from fccomodel.library.atoms import NONZERO, Interval
from fccomodel.library.ranges import Ranges, declared

#: All real numbers.
REALS = Interval()


def interval(ctx: Context, expr: ir.Expr) -> Interval:
    """An interval that contains each entry of a value, as far as the text says."""
    if ctx.ranges is None:
        ctx.ranges = Ranges(lambda node: _leaf(ctx, node))
    return ctx.ranges(expr)


def nonnegative(ctx: Context, value: ir.Expr, span: Span | None = None) -> ir.Expr:
    """The value; one whose sign comes with the data is checked to be nonnegative when they are bound.

    span  the place of the value in errors; its own if None
    """
    if interval(ctx, value).lo >= 0:
        return value
    place = span or value.span
    return make("square", make("sqrt", value, span=place), span=place)


def _leaf(ctx: Context, node: ir.Expr) -> Interval:
    """The interval of a node without arguments."""
    match node:
        case ir.Param():
            return _param(ctx, node)
        case ir.Var():
            return _variable(ctx, node)
        case ir.Column(name=None):
            return _draw(ctx, node.binder.domain)
        case ir.Column():
            kind = shapes.column_type(ctx, node)
            if kind is None:
                return REALS
            return _numbers(kind)
        case ir.Element(binder=binder) if isinstance(binder.domain, ir.VectorSet):
            return _vector_set(ctx, binder.domain)
        case ir.Element(binder=binder):
            return _values(binder.domain)
    return REALS


def _param(ctx: Context, node: ir.Param) -> Interval:
    if node.name in ctx.arrays:
        return _numbers(ctx.arrays[node.name].type)
    parameter = ctx.params.get(node.name)
    if parameter is None:
        return REALS
    return declared(parameter)


def _variable(ctx: Context, node: ir.Var) -> Interval:
    low, high = -inf, inf
    variable = ctx.variables.get(node.name)
    if variable is not None:
        for vectors in variable.sets:
            entries = _vector_set(ctx, vectors)
            low, high = max(low, entries.lo), min(high, entries.hi)
    return Interval(low, high)


def _vector_set(ctx: Context, vectors: ir.VectorSet) -> Interval:
    """An interval that contains each entry of the vectors of a simple set."""
    return sets.all()[vectors.family].entries(*(interval(ctx, a) for a in vectors.args))


def _numbers(kind: ir.ColumnType) -> Interval:
    """An interval that contains the numbers of a column or of an array."""
    if kind.domain is None:
        return declared(kind)
    return _values(kind.domain)


def _values(domain: ir.Set | None) -> Interval:
    if not isinstance(domain, ir.ValueSet):
        return REALS
    numbers = shapes.members(domain)
    if numbers:
        return Interval(min(numbers), max(numbers))
    return REALS


def _draw(ctx: Context, domain: ir.Set) -> Interval:
    if not isinstance(domain, ir.Distribution):
        return REALS
    known = distributions.get(domain.family)
    if known is None:
        return REALS
    return known.range(*(interval(ctx, a) for a in domain.args))


# ------------------------------------------------------------------------------------------- checks
def operation_is_defined(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> bool:
    """Whether an operation may be defined.

    Reports a division by 0, a fractional power of a negative number, and an exponent that depends on
    a variable.
    """
    if op == "pow" and ir.variables_of(right):
        ctx.report(errors.values.exponent_on_variable(ctx.quote(right)))
        return False
    return in_domain(ctx, op, (left, right), span)


def in_domain(ctx: Context, name: str, args: tuple[ir.Expr, ...], span: Span) -> bool:
    """Whether the arguments of a function may lie in its domain. Reports an argument that cannot."""
    atom = atoms.get(name)
    if atom is None:
        return True
    return are_defined(ctx, domains.of_atom(atom, args), span)


def are_defined(ctx: Context, use: domains.Use | None, span: Span | None = None) -> bool:
    """Whether the arguments may have values that a function, a set or a reduction allows.

    Reports an argument none of whose possible values is allowed; ``span`` is the place of the whole.
    """
    if use is None or not use.asks.limited:
        return True
    where = [interval(ctx, a) for a in use.args]
    fault = use.asks.refuted(where, use.names)
    if fault is None:
        return True
    argument, title, lies = use.args[fault.argument], use.titles[fault.argument], where[fault.argument]
    if use.kind == "atom" and fault.needs == NONZERO and span is not None:
        ctx.report(errors.values.division_by_zero(ctx.quote(span), argument.span))
    elif use.kind == "atom":
        ctx.report(errors.values.out_of_domain(ctx.quote(argument), lies, title, fault.needs))
    elif use.kind == "set" and fault.ordered:
        ctx.report(errors.values.empty_set(use.owner, title, lies, fault.needs, span or argument.span))
    else:
        ctx.report(errors.values.not_allowed(title, lies, fault.needs, argument.span, ordered=fault.ordered))
    return False
