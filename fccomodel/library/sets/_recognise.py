"""Recognition of simple sets in constraints, and of intersections that have one projection."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import reduce
from math import inf

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.library.atoms import Interval
from fccomodel.library.identities.entries import whole
from fccomodel.library.linear import Factor, LinearTerm, joined, terms
from fccomodel.library.sets import _registry
from fccomodel.library.sums import Constant, is_fixed, is_variable, matched, multiplier


def recognise(
    constraint: ir.Constraint, variables: Mapping[str, ir.Variable], constant: Constant
) -> tuple[str, ir.VectorSet] | None:
    """The variable of a canonical constraint and the set that the constraint keeps it in, or None.

    The constraint bounds an atom of the whole variable or of each of its entries, times and plus
    numbers; the variable may have a centre: ``norm1(w - c) <= 2``, ``sumsq(w) / 4 <= r``,
    ``low[i in d]: w[i] >= c[i]``. Or it is ``sum(w) == 1`` for nonnegative entries.
    """
    names = ir.variables_of(constraint.body)
    if constraint.condition is not None or constraint.options or len(names) != 1:
        return None
    variable = variables[next(iter(names))]
    each = bool(constraint.binders)
    shape: tuple[ir.Dim, ...] = ()
    body: ir.Expr | None = constraint.body
    if each:
        shape = variable.shape
        body = whole(constraint.body, constraint.binders)
    if body is None or variable.net is not None or body.shape != shape:
        return None
    parts = terms(body)
    varying = [t for t in parts if ir.variables_of(t.core)]
    fixed = [t for t in parts if not ir.variables_of(t.core)]
    if len(varying) != 1 or not all(is_fixed(t.expr) for t in fixed):
        return None
    factor = multiplier(varying[0], constant)
    if not factor:
        return None
    core = varying[0].core
    level = _level(fixed, factor, constant)
    if is_variable(core, variable.name) and constraint.kind == "le" and (each or not core.shape):
        if level is None:
            return _bound(variable, _array(fixed, factor), factor > 0)
        return _bound(variable, level, factor > 0)
    if level is None:
        return None
    if constraint.kind == "eq":
        total = matched(core, "sum", variable.name)
        unit = level == 1 and total is not None and total.centre is None and len(variable.shape) == 1
        if unit and _nonnegative(variable, constant):
            return (variable.name, _made("simplex", (), variable))
        return None
    if factor > 0 and level >= 0:
        return _level_set(variable, core, level, each)
    return None


def _level(fixed: list[LinearTerm], factor: float, constant: Constant) -> float | None:
    """The number that bounds the varying part, or None."""
    numbers = [constant(t.expr) for t in fixed]
    if None in numbers:
        return None
    return -sum(n for n in numbers if n is not None) / factor


def _array(fixed: list[LinearTerm], factor: float) -> ir.Expr | None:
    """The bound of the varying part as an array, or None if it is a number."""
    if not any(t.core.shape for t in fixed):
        return None
    sign = 1
    if factor > 0:
        sign = -1
    return joined([t.times(sign, (Factor("div", const(abs(factor))),)) for t in fixed], fixed[0].place)


def _bound(
    variable: ir.Variable, level: float | ir.Expr | None, above: bool
) -> tuple[str, ir.VectorSet] | None:
    """The set of arrays whose entries have this upper bound (``above``) or lower bound."""
    if level is None:
        return None
    if above:
        return variable.name, _made("box", (-inf, level), variable)
    return variable.name, _made("box", (level, inf), variable)


def _level_set(
    variable: ir.Variable, core: ir.Expr, level: float, each: bool
) -> tuple[str, ir.VectorSet] | None:
    """The set on which an atom of the variable, or (``each``) of every entry, is at most a number."""
    for simple in _registry.all().values():
        for form, arguments in simple.levels.items():
            if simple.entrywise < each or bool(core.shape) != each:
                continue
            match = matched(core, form, variable.name)
            if match is not None and not match.rest:
                return variable.name, _around(_made(simple.name, arguments(level), variable), match.centre)
    return None


def _around(domain: ir.VectorSet, centre: ir.Expr | None) -> ir.VectorSet:
    """The set translated by a vector; a set of bounds on each entry has its bounds translated."""
    if centre is None:
        return domain
    point = "a point"
    if isinstance(centre, ir.Param):
        point = centre.name
    name = f"{domain.name} around {point}"
    if not _registry.all()[domain.family].entrywise:
        return dataclasses.replace(domain, name=name, centre=centre)
    args = tuple(make("add", centre, bound, span=centre.span) for bound in domain.args)
    return dataclasses.replace(domain, name=name, args=args)


def _nonnegative(variable: ir.Variable, constant: Constant) -> bool:
    """Whether a set of the variable has the lower bound 0."""
    bounds = (_entries(s, constant) for s in variable.sets if _registry.all()[s.family].entrywise)
    return any(where is not None and where.lo == 0 for where in bounds)


def _entries(domain: ir.VectorSet, constant: Constant) -> Interval | None:
    """The interval that holds the entries of its points, or None if its arguments are not known."""
    args = [constant(a) for a in domain.args]
    if None in args or domain.centre is not None:
        return None
    return _registry.all()[domain.family].entries(*args)


def _made(family: str, values: tuple[float | ir.Expr, ...], variable: ir.Variable) -> ir.VectorSet:
    """The set of a family with the given arguments, for arrays of the variable's shape."""
    name = family
    if values:
        name = f"{family}({', '.join(_shown(value) for value in values)})"
    args = tuple(_expression(value) for value in values)
    return ir.VectorSet(name=name, family=family, args=args, shape=variable.shape)


def _expression(value: float | ir.Expr) -> ir.Expr:
    if isinstance(value, ir.Expr):
        return value
    return const(value)


def _shown(value: float | ir.Expr) -> str:
    if isinstance(value, ir.Expr):
        if isinstance(value, ir.Param):
            return value.name
        return "an array"
    return f"{value:g}"


def intersection(sets: tuple[ir.VectorSet, ...], constant: Constant) -> tuple[ir.VectorSet, ...]:
    """The sets, with all bounds of entries (``box``, ``nonneg``) joined into one box.

    Bounds that another set implies are dropped.
    """
    others = [s for s in sets if not _registry.all()[s.family].entrywise]
    implied = [interval for s in others if (interval := _entries(s, constant)) is not None]
    boxes: list[ir.VectorSet] = []
    lows: list[ir.Expr] = []
    highs: list[ir.Expr] = []
    for s in sets:
        if not _registry.all()[s.family].entrywise:
            continue
        interval = _entries(s, constant)
        if interval is None:
            low, high = _ends(s)
        elif any(other.inside(interval) for other in implied):
            continue
        else:
            low, high = const(interval.lo), const(interval.hi)
        boxes.append(s)
        lows.append(low)
        highs.append(high)
    if len(boxes) < 2:
        return (*boxes, *others)
    name = ", ".join(s.name for s in boxes)
    args = (_extreme("max", lows), _extreme("min", highs))
    return (dataclasses.replace(boxes[0], name=name, family="box", args=args), *others)


def _ends(domain: ir.VectorSet) -> tuple[ir.Expr, ir.Expr]:
    """The bounds of each entry, as written in the model."""
    low, high = domain.args or (const(0.0), const(inf))
    return low, high


def _extreme(op: str, values: Sequence[ir.Expr]) -> ir.Expr:
    """The tightest of several bounds."""
    numbers = [v.value for v in values if isinstance(v, ir.Const)]
    arrays = [v for v in values if not isinstance(v, ir.Const)]
    if op == "max":
        tightest = max(numbers, default=-inf)
    else:
        tightest = min(numbers, default=inf)
    if not arrays:
        return const(tightest)
    if abs(tightest) < inf:
        arrays.append(const(tightest))
    return reduce(lambda a, b: make(op, a, b), arrays)
