"""Parts that steps treat exactly: regularisers by their prox, simple sets by their projection."""

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
    """A regulariser that is split off the objective and applied by its prox.

    ``centre`` is the point around which it is, or None for 0.
    """

    variable: str
    text: str
    name: str
    coefficients: Mapping[str, float]
    centre: ir.Expr | None = None


def split_regularisers(
    problem: ir.Problem, constant: Callable[[ir.Expr], float | None]
) -> tuple[ir.Expr, list[Prox]]:
    """The objective without its regularisers, and the regularisers.

    They are the terms without data whose prox is known together with the variable's set. If the terms
    of one variable have no common prox, those with kinks come first, and those around 0 before others.
    """
    from fccomodel.library import regularisers

    terms = summands(problem.objective.expr)
    recognised = {
        k: r for k, term in enumerate(terms) if (r := _regulariser(term, problem, constant)) is not None
    }
    proximal: dict[int, regularisers.Recognised] = {}
    for k, regulariser in sorted(recognised.items(), key=lambda pair: (*_precedence(pair[1]), pair[0])):
        beside = [other for other in proximal.values() if other.variable == regulariser.variable]
        if _proximal(problem.variables[regulariser.variable], regulariser, beside, constant):
            proximal[k] = regulariser
    prox: list[Prox] = []
    for name in dict.fromkeys(proximal[k].variable for k in sorted(proximal)):
        places = [k for k in sorted(proximal) if proximal[k].variable == name]
        for regulariser in regularisers.in_turn([proximal[k] for k in places]) or ():
            names = (regulariser.name, *regulariser.regulariser.sum_of)
            prox.append(
                Prox(
                    variable=name,
                    text=" + ".join(problem.text(terms[k]) for k in places if proximal[k].name in names),
                    name=regulariser.name,
                    coefficients=regulariser.coefficients,
                    centre=regulariser.centre,
                )
            )
    return total([term for k, term in enumerate(terms) if k not in proximal]), prox


def _precedence(term: regularisers.Recognised) -> tuple[bool, bool, str, str]:
    """The sort key of regularisers, independent of their order in the text."""
    around = term.centre.name if isinstance(term.centre, ir.Param) else ""
    return term.regulariser.smooth, term.centre is not None, term.name, around


def _regulariser(
    term: ir.Expr, problem: ir.Problem, constant: Callable[[ir.Expr], float | None]
) -> regularisers.Recognised | None:
    """The regulariser that a term is, or None; it depends on one variable, not on weights of a net."""
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
    """Whether the prox of the term is known together with those ``beside`` it and the variable's sets."""
    from fccomodel.library import regularisers

    domains = sets.intersection(variable.sets, constant)
    together = regularisers.in_turn([*beside, term])
    if together is None or not all(term.then_projected(s) for s in domains):
        return False
    return not domains or len(together) == 1


def projections(problem: ir.Problem, constant: Callable[[ir.Expr], float | None]) -> dict[str, ir.Variable]:
    """The variables with at most one set each; bounds are merged into one box.

    F0611 is raised if no projection onto the intersection of a variable's sets is known.
    """
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
