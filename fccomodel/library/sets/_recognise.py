"""Recognition of simple sets in constraints, and of intersections with one projection."""

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
from fccomodel.library.linear import Factor, Term, joined, terms
from fccomodel.library.sets import _registry
from fccomodel.library.sums import Constant, is_fixed, is_variable, matched, multiplier


def recognise(
    constraint: ir.Constraint, variables: Mapping[str, ir.Variable], constant: Constant
) -> tuple[str, ir.VectorSet] | None:
    """The variable and the set that a canonical constraint keeps it in, or None.

    ``norm1(w - c) <= 2``, ``sumsq(w) / 4 <= r``, ``low[i in d]: w[i] >= c[i]``: an atom of one
    whole variable, moved perhaps, or of each of its entries alike, times and plus numbers (of
    bounds, arrays too); ``sum(w) == 1`` of entries that are nonnegative.
    """
    names = ir.variables_of(constraint.body)
    if constraint.condition is not None or constraint.options or len(names) != 1:
        return None
    variable = variables[next(iter(names))]
    each = bool(constraint.binders)
    if each:
        body = whole(constraint.body, constraint.binders)
    else:
        body = constraint.body
    if body is None or variable.net is not None or body.shape != (variable.shape if each else ()):
        return None
    parts = terms(body)
    varying = [t for t in parts if ir.variables_of(t.core)]
    fixed = [t for t in parts if not ir.variables_of(t.core)]
    if len(varying) == 1:
        factor = multiplier(varying[0], constant)
    else:
        factor = None
    if not factor or not all(is_fixed(t.expr) for t in fixed):
        return None
    core = varying[0].core
    level = _level(fixed, factor, constant)
    if is_variable(core, variable.name) and constraint.kind == "le" and (each or not core.shape):
        bound = level if level is not None else _array(fixed, factor)
        return _bound(variable, bound, factor > 0)
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


def _level(fixed: list[Term], factor: float, constant: Constant) -> float | None:
    """The number that bounds the varying part, or None."""
    numbers = [constant(t.expr) for t in fixed]
    if None in numbers:
        return None
    return -sum(n for n in numbers if n is not None) / factor


def _array(fixed: list[Term], factor: float) -> ir.Expr | None:
    """The bound of the varying part as an array, or None if it is a number."""
    turned = [t.times(-1 if factor > 0 else 1, (Factor("div", const(abs(factor))),)) for t in fixed]
    if any(t.core.shape for t in fixed):
        return joined(turned, fixed[0].place)
    return None


def _bound(
    variable: ir.Variable, level: float | ir.Expr | None, above: bool
) -> tuple[str, ir.VectorSet] | None:
    """The set of arrays whose entries have this upper or lower bound."""
    if level is None:
        return None
    ends = (-inf, level) if above else (level, inf)
    return variable.name, _made("box", ends, variable)


def _level_set(
    variable: ir.Variable, core: ir.Expr, level: float, each: bool
) -> tuple[str, ir.VectorSet] | None:
    """The set on which an atom of the variable is at most a number, for all entries together or for
    each."""
    for simple in _registry.all().values():
        for form, arguments in simple.levels.items():
            if simple.entrywise < each or bool(core.shape) != each:
                continue
            match = matched(core, form, variable.name)
            if match is not None and not match.rest:
                return variable.name, _around(_made(simple.name, arguments(level), variable), match.centre)
    return None


def _around(domain: ir.VectorSet, centre: ir.Expr | None) -> ir.VectorSet:
    """The set moved by a vector; for bounds of each entry, the bounds are moved."""
    if centre is None:
        return domain
    name = f"{domain.name} around {centre.name if isinstance(centre, ir.Param) else 'a point'}"
    if not _registry.all()[domain.family].entrywise:
        return dataclasses.replace(domain, name=name, centre=centre)
    return dataclasses.replace(
        domain, name=name, args=tuple(make("add", centre, a, span=centre.span) for a in domain.args)
    )


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
    shown = ", ".join(_shown(value) for value in values)
    args = tuple(value if isinstance(value, ir.Expr) else const(value) for value in values)
    return ir.VectorSet(
        name=f"{family}({shown})" if values else family, family=family, args=args, shape=variable.shape
    )


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
    entrywise = [_registry.all()[s.family].entrywise for s in sets]
    others = tuple(s for s, each in zip(sets, entrywise, strict=True) if not each)
    within = [where for s in others if (where := _entries(s, constant)) is not None]
    bounds = [(s, _entries(s, constant)) for s, each in zip(sets, entrywise, strict=True) if each]
    bounds = [(s, where) for s, where in bounds if where is None or not any(u.inside(where) for u in within)]
    boxes = [s for s, _ in bounds]
    if len(boxes) < 2:
        return (*boxes, *others)
    ends = [(const(where.lo), const(where.hi)) if where is not None else _ends(s) for s, where in bounds]
    low, high = _extreme("max", [lo for lo, _ in ends]), _extreme("min", [hi for _, hi in ends])
    name = ", ".join(s.name for s in boxes)
    return (dataclasses.replace(boxes[0], name=name, family="box", args=(low, high)), *others)


def _ends(domain: ir.VectorSet) -> tuple[ir.Expr, ir.Expr]:
    """The bounds of each entry as they are written."""
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
    return reduce(lambda a, b: make(op, a, b), arrays if abs(tightest) == inf else [*arrays, const(tightest)])
