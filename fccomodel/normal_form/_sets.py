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
from fccomodel.normal_form import errors
from fccomodel.normal_form.terms import total

if TYPE_CHECKING:
    from fccomodel.library import regularisers


@dataclass(frozen=True, eq=False, kw_only=True)
class Prox:
    """A regulariser split off the objective: applied by its prox, around ``centre`` where it has one."""

    variable: str
    text: str
    name: str
    coefficients: Mapping[str, float]
    centre: ir.Expr | None = None


def split_regularisers(
    problem: ir.Problem, constant: Callable[[ir.Expr], float | None]
) -> tuple[ir.Expr, list[Prox]]:
    """The objective without the terms that have no data and a known prox, together with the variable's
    set; those terms.

    Of terms of one variable that have no prox together, those with kinks come first, and around 0
    before others.
    """
    from fccomodel.library import regularisers

    terms = summands(problem.objective.expr)
    found = {
        k: made for k, term in enumerate(terms) if (made := _regulariser(term, problem, constant)) is not None
    }
    taken: dict[int, regularisers.Recognised] = {}
    for k, made in sorted(found.items(), key=lambda pair: (*_precedence(pair[1]), pair[0])):
        beside = [f for f in taken.values() if f.variable == made.variable]
        if _proximal(problem.variables[made.variable], made, beside, constant):
            taken[k] = made
    prox: list[Prox] = []
    for name in dict.fromkeys(made.variable for _, made in sorted(taken.items())):
        places = [k for k, made in sorted(taken.items()) if made.variable == name]
        for made in regularisers.in_turn([taken[k] for k in places]) or ():
            own = [
                problem.text(terms[k])
                for k in places
                if taken[k].name in (made.name, *made.regulariser.sum_of)
            ]
            text, values = " + ".join(own), made.coefficients
            prox.append(
                Prox(variable=name, text=text, name=made.name, coefficients=values, centre=made.centre)
            )
    return total([term for k, term in enumerate(terms) if k not in taken]), prox


def _precedence(made: regularisers.Recognised) -> tuple[bool, bool, str, str]:
    """Which regularisers go first, whatever their order in the text."""
    around = made.centre.name if isinstance(made.centre, ir.Param) else ""
    return made.regulariser.smooth, made.centre is not None, made.name, around


def _regulariser(
    term: ir.Expr, problem: ir.Problem, constant: Callable[[ir.Expr], float | None]
) -> regularisers.Recognised | None:
    """A term of one variable that is no net's, if it is a regulariser."""
    from fccomodel.library import regularisers

    names = ir.variables_of(term)
    if len(names) != 1 or any(isinstance(n, ir.Reduce) for n in ir.walk(term)):
        return None
    name = next(iter(names))
    if problem.variables[name].net is None:
        return regularisers.recognise(term, name, constant)
    return None


def _proximal(
    variable: ir.Variable,
    term: regularisers.Recognised,
    beside: Sequence[regularisers.Recognised],
    constant: Callable[[ir.Expr], float | None],
) -> bool:
    """A step can take the prox of the term, of those ``beside`` it and of the variable's sets at once."""
    from fccomodel.library import regularisers

    domains = sets.intersection(variable.sets, constant)
    together = regularisers.in_turn([*beside, term])
    if together is None or not all(term.then_projected(s) for s in domains):
        return False
    return not domains or len(together) == 1


def projections(problem: ir.Problem, constant: Callable[[ir.Expr], float | None]) -> dict[str, ir.Variable]:
    """The variables with one set each, bounds that meet being one box; F0611 where no projection on
    all at once is known."""
    result: dict[str, ir.Variable] = {}
    refused: list[Diagnostic] = []
    for name, variable in problem.variables.items():
        domains = sets.intersection(variable.sets, constant)
        if len(domains) > 1:
            refused.append(
                errors.no_projection(name, f"{domains[0].name} and {domains[1].name}", variable.span)
            )
        result[name] = dataclasses.replace(variable, sets=domains)
    if refused:
        refuse(*refused, source=problem.source)
    return result
