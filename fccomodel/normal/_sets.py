"""What steps treat exactly: regularisers by their prox, simple sets by their projection."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from fccomodel import diagnostics, ir
from fccomodel.normal._terms import summands, total
from fccomodel.rewrite import const

if TYPE_CHECKING:
    from fccomodel import regularisers


@dataclass(frozen=True, eq=False, kw_only=True)
class Prox:
    """A regulariser split off the objective: applied by its prox."""

    variable: str
    text: str
    name: str
    coefficients: Mapping[str, float]


def split_regularisers(problem: ir.Problem, constant: Callable[[ir.Expr], float | None]) -> tuple[ir.Expr, list[Prox]]:
    """The objective without the terms that have no data and a known prox, together with the variable's set; those terms."""
    from fccomodel import regularisers

    kept: list[ir.Expr] = []
    recognised: list[tuple[ir.Expr, regularisers.Recognised]] = []
    for term in summands(problem.objective.expr):
        found = None
        names = ir.variables_of(term)
        if len(names) == 1 and not any(isinstance(n, ir.Reduce) for n in ir.walk(term)):
            found = regularisers.recognise(term, next(iter(names)), constant)
        if found is not None and _proximal(problem.variables[found.variable], found, [f for _, f in recognised], constant):
            recognised.append((term, found))
        else:
            kept.append(term)
    prox = [
        Prox(
            variable=made.variable,
            text=" + ".join(problem.text(t) for t, f in recognised if f.variable == made.variable),
            name=made.name,
            coefficients=made.coefficients,
        )
        for made in regularisers.combine([f for _, f in recognised])
    ]
    return total(kept), prox


def _proximal(
    variable: ir.Variable,
    term: regularisers.Recognised,
    others: Sequence[regularisers.Recognised],
    constant: Callable[[ir.Expr], float | None],
) -> bool:
    """A step can take the prox of the term, of ``others`` and of the variable's sets at once."""
    from fccomodel import regularisers

    domains = intersection(variable.sets, constant)
    beside = [f for f in others if f.variable == term.variable]
    composed = all(term.regulariser.then_projected(s.family) for s in domains)
    return variable.net is None and composed and (not domains or len(regularisers.combine([*beside, term])) == 1)


def projections(problem: ir.Problem, constant: Callable[[ir.Expr], float | None]) -> dict[str, ir.Variable]:
    """The variables with one set each, bounds that meet being one box; F0611 where no projection on all at once is known."""
    result: dict[str, ir.Variable] = {}
    refused: list[diagnostics.Diagnostic] = []
    for name, variable in problem.variables.items():
        sets = intersection(variable.sets, constant)
        if len(sets) > 1:
            refused.append(_no_projection(name, variable, f"{sets[0].name} and {sets[1].name}"))
        result[name] = dataclasses.replace(variable, sets=sets)
    if refused:
        raise diagnostics.FccoError(refused, problem.source)
    return result


def intersection(sets: tuple[ir.VectorSet, ...], constant: Callable[[ir.Expr], float | None]) -> tuple[ir.VectorSet, ...]:
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


def _no_projection(name: str, variable: ir.Variable, what: str) -> diagnostics.Diagnostic:
    return diagnostics.error(
        "F0611",
        f"no projection on {what} at once is known for `{name}`",
        span=variable.span,
        reason="Two projections one after the other are not the projection on both.",
        fix="Keep the set that is hard to meet on the variable, and write the other as a labelled constraint.",
    )
