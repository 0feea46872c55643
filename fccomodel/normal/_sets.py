"""What steps treat exactly: regularisers by their prox, simple sets by their projection."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.library import sets
from fccomodel.library.sums import summands
from fccomodel.normal import errors
from fccomodel.normal._terms import total

if TYPE_CHECKING:
    from fccomodel.library import regularisers


@dataclass(frozen=True, eq=False, kw_only=True)
class Prox:
    """A regulariser split off the objective: applied by its prox."""

    variable: str
    text: str
    name: str
    coefficients: Mapping[str, float]


def split_regularisers(problem: ir.Problem, constant: Callable[[ir.Expr], float | None]) -> tuple[ir.Expr, list[Prox]]:
    """The objective without the terms that have no data and a known prox, together with the variable's set; those terms."""
    from fccomodel.library import regularisers

    kept: list[ir.Expr] = []
    recognised: list[tuple[ir.Expr, regularisers.Recognised]] = []
    for term in summands(problem.objective.expr):
        regulariser = None
        names = ir.variables_of(term)
        if len(names) == 1 and not any(isinstance(n, ir.Reduce) for n in ir.walk(term)):
            regulariser = regularisers.recognise(term, next(iter(names)), constant)
        if regulariser is not None and _proximal(
            problem.variables[regulariser.variable], regulariser, [f for _, f in recognised], constant
        ):
            recognised.append((term, regulariser))
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
    from fccomodel.library import regularisers

    domains = sets.intersection(variable.sets, constant)
    beside = [f for f in others if f.variable == term.variable]
    composed = all(term.regulariser.then_projected(s.family) for s in domains)
    return variable.net is None and composed and (not domains or len(regularisers.combine([*beside, term])) == 1)


def projections(problem: ir.Problem, constant: Callable[[ir.Expr], float | None]) -> dict[str, ir.Variable]:
    """The variables with one set each, bounds that meet being one box; F0611 where no projection on all at once is known."""
    result: dict[str, ir.Variable] = {}
    refused: list[Diagnostic] = []
    for name, variable in problem.variables.items():
        domains = sets.intersection(variable.sets, constant)
        if len(domains) > 1:
            refused.append(errors.no_projection(name, f"{domains[0].name} and {domains[1].name}", variable.span))
        result[name] = dataclasses.replace(variable, sets=domains)
    if refused:
        refuse(*refused, source=problem.source)
    return result
