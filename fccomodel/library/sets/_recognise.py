"""Which constraints keep a variable in a simple set, and which sets have a projection on all at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from math import inf

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter, const
from fccomodel.library.atoms import Interval
from fccomodel.library.sets import _registry
from fccomodel.library.sums import Constant, factored, is_variable, matched, summands


def recognise(
    constraint: ir.Constraint, variables: Mapping[str, ir.Variable], constant: Constant
) -> tuple[str, ir.VectorSet] | None:
    """The variable and the set that a constraint keeps it in, or None.

    ``norm1(w) <= 2``, ``sumsq(w) / 4 <= r``, ``low[i in d]: w[i] >= -1``: an atom of one whole variable, or of each of its
    entries alike, times and plus numbers; ``sum(w) == 1`` of entries that are nonnegative.
    """
    names = ir.variables_of(constraint.body)
    if constraint.condition is not None or constraint.options or len(names) != 1:
        return None
    variable = variables[next(iter(names))]
    each = bool(constraint.binders)
    body = _entry(constraint, variable) if each else constraint.body
    terms = summands(body) if body is not None and variable.net is None else []
    varying = [t for t in terms if ir.variables_of(t)]
    numbers = [constant(t) for t in terms if not ir.variables_of(t)]
    factors = factored(varying[0], variable.name, constant) if len(varying) == 1 and None not in numbers else None
    if factors is None or factors[0] == 0:
        return None
    factor, core = factors
    level = -sum(n for n in numbers if n is not None) / factor
    if constraint.kind == "eq":
        unit = level == 1 and matched(core, "sum", variable.name) == () and len(variable.shape) == 1
        return (variable.name, _made("simplex", (), variable)) if unit and _nonnegative(variable, constant) else None
    if is_variable(core, variable.name) and not core.shape:
        return variable.name, _made("box", (-inf, level) if factor > 0 else (level, inf), variable)
    for simple in _registry.all().values():
        for form, arguments in simple.levels.items():
            if factor > 0 and level >= 0 and matched(core, form, variable.name) == () and simple.entrywise >= each:
                return variable.name, _made(simple.name, arguments(level), variable)
    return None


def _nonnegative(variable: ir.Variable, constant: Constant) -> bool:
    """Its bounds are 0 from below."""
    bounds = (_entries(s, constant) for s in variable.sets if _registry.all()[s.family].entrywise)
    return any(where is not None and where.lo == 0 for where in bounds)


def _entries(domain: ir.VectorSet, constant: Constant) -> Interval | None:
    """Where the entries of its points lie; None where its arguments are not known."""
    args = [constant(a) for a in domain.args]
    return None if None in args else _registry.all()[domain.family].entries(*args)


def _made(family: str, values: tuple[float, ...], variable: ir.Variable) -> ir.VectorSet:
    name = f"{family}({', '.join(f'{value:g}' for value in values)})" if values else family
    return ir.VectorSet(name=name, family=family, args=tuple(map(const, values)), shape=variable.shape)


def _entry(constraint: ir.Constraint, variable: ir.Variable) -> ir.Expr | None:
    """The body with the variable for ``w[i]``, where the binders run over all entries and stand for nothing else."""
    binders = constraint.binders
    whole = tuple(b.domain.name for b in binders) == variable.shape and all(b.kind == "in" for b in binders)

    def rule(node: ir.Expr) -> ir.Expr | None:
        if isinstance(node, ir.Item) and is_variable(node.base, variable.name):
            in_order = [isinstance(i, ir.Element) and i.binder is b for i, b in zip(node.indices, binders, strict=True)]
            return None if False in in_order else ir.Var(name=variable.name, span=node.span)
        return None

    body = Rewriter(rule)(constraint.body) if whole else None
    return None if body is None or ir.free_binders(body) else body


def intersection(sets: tuple[ir.VectorSet, ...], constant: Constant) -> tuple[ir.VectorSet, ...]:
    """Bounds of every entry (``box``, ``nonneg``) as one box; other sets as they are, without bounds that these imply."""
    entrywise = [_registry.all()[s.family].entrywise for s in sets]
    others = tuple(s for s, each in zip(sets, entrywise, strict=True) if not each)
    within = [where for s in others if (where := _entries(s, constant)) is not None]
    bounds = [(s, _entries(s, constant)) for s, each in zip(sets, entrywise, strict=True) if each]
    bounds = [(s, where) for s, where in bounds if where is None or not any(u.inside(where) for u in within)]
    boxes, ends = [s for s, _ in bounds], [where for _, where in bounds]
    intervals = [where for where in ends if where is not None]
    if len(boxes) < 2 or len(intervals) < len(ends):
        return (*boxes, *others)
    low, high = max(u.lo for u in intervals), min(u.hi for u in intervals)
    joined = dataclasses.replace(
        boxes[0],
        name=", ".join(s.name for s in boxes),
        family="box",
        args=(const(low), const(high)),
    )
    return (joined, *others)
