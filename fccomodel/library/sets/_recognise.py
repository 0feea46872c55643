"""Which constraints keep a variable in a simple set, and which sets have a projection on all at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from math import inf

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter, const
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
    found = factored(varying[0], variable.name, constant) if len(varying) == 1 and None not in numbers else None
    if found is None or found[0] == 0:
        return None
    factor, core = found
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
    return any(s.family == "nonneg" or s.family == "box" and constant(s.args[0]) == 0 for s in variable.sets)


def _made(family: str, values: tuple[float, ...], variable: ir.Variable) -> ir.VectorSet:
    name = f"{family}({', '.join(f'{value:g}' for value in values)})" if values else family
    return ir.VectorSet(name=name, family=family, args=tuple(map(const, values)), shape=variable.shape)


def _entry(constraint: ir.Constraint, variable: ir.Variable) -> ir.Expr | None:
    """The body with the variable for ``w[i]``, where the binders run over all entries and stand for nothing else."""
    binders = constraint.binders
    whole = tuple(b.domain.name for b in binders) == variable.shape and all(b.kind == "in" for b in binders)

    def rule(node: ir.Expr) -> ir.Expr | None:
        if isinstance(node, ir.Item) and is_variable(node.base, variable.name):
            own = [isinstance(i, ir.Element) and i.binder is b for i, b in zip(node.indices, binders, strict=True)]
            return None if False in own else ir.Var(name=variable.name, span=node.span)
        return None

    body = Rewriter(rule)(constraint.body) if whole else None
    return None if body is None or ir.free_binders(body) else body


def intersection(sets: tuple[ir.VectorSet, ...], constant: Constant) -> tuple[ir.VectorSet, ...]:
    """Boxes (bounds, ``nonneg``) as one box; other sets as they are, without repetitions of what a simplex implies."""
    boxes = [s for s in sets if s.family in ("box", "nonneg")]
    others = tuple(s for s in sets if s.family not in ("box", "nonneg"))
    ends = [(0.0, inf) if s.family == "nonneg" else tuple(constant(a) for a in s.args) for s in boxes]
    if others and all(s.family in ("simplex", "capped_simplex") for s in others):
        implied = [e[0] is not None and e[0] <= 0 and e[1] is not None and e[1] >= 1 for e in ends]
        boxes = [s for s, known in zip(boxes, implied, strict=True) if not known]
    if len(boxes) < 2 or any(end is None for pair in ends for end in pair):
        return (*boxes, *others)
    low, high = max(e[0] for e in ends), min(e[1] for e in ends)  # type: ignore[type-var]
    joined = dataclasses.replace(
        boxes[0],
        name=", ".join(s.name for s in boxes),
        family="box",
        args=(const(low), const(high)),  # type: ignore[arg-type]
    )
    return (joined, *others)
