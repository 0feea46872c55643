"""A constraint on a whole variable or on each of its entries  ->  a simple set, which steps project on."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.library import regularisers, sets
from fccomodel.library.sums import summands
from fccomodel.normal_form.reformulations._base import Additions, Constant, Recover, Reformulation, same

FEATURE = "sets as constraints"


def kept(problem: ir.Problem, constant: Constant) -> tuple[dict[str, ir.Variable], dict[str, str]]:
    """The variables with the sets that constraints keep them in, and sentences by label of those constraints.

    A constraint becomes a set only if the projection is known together with the variable's other sets
    and the prox of its regularisers.
    """
    variables, sentences = dict(problem.variables), {}
    # bounds come first: with them a fixed sum is a simplex
    for constraint in sorted(problem.constraints, key=lambda c: c.kind == "eq"):
        recognised = sets.recognise(constraint, variables, constant)
        if recognised is None:
            continue
        name, domain = recognised
        domains = sets.intersection((*variables[name].sets, domain), constant)
        if len(domains) != 1 or not _has_points(domains[0], constant):
            continue
        if _composes(problem, name, domains[0], constant):
            variables[name] = dataclasses.replace(variables[name], sets=domains)
            sentences[constraint.label] = f"{constraint.label} keeps {name} in {domain.name}"
    return variables, sentences


def _has_points(domain: ir.VectorSet, constant: Constant) -> bool:
    """Whether the set is not empty, as far as numbers are known.

    Bounds that are arrays are checked where their values are used.
    """
    simple = sets.get(domain.family)
    numbers = [constant(a) for a in domain.args]
    if simple is None:
        return False
    if None not in numbers:
        return not simple.empty(domain.shape, *numbers)
    unknown = [a for a, n in zip(domain.args, numbers, strict=True) if n is None]
    return simple.entrywise and all(a.shape for a in unknown)


def _composes(problem: ir.Problem, name: str, domain: ir.VectorSet, constant: Constant) -> bool:
    """Whether the prox of the variable's regulariser is known together with the set.

    A prox that allows a step size per entry needs a set that is a product over entries.
    """
    recognised = [regularisers.recognise(term, name, constant) for term in summands(problem.objective.expr)]
    combined = regularisers.in_turn([r for r in recognised if r is not None])
    if not combined:
        return combined is not None
    first = combined[0]
    if len(combined) > 1 or not first.then_projected(domain):
        return False
    return sets.all()[domain.family].entrywise or not first.regulariser.step_per_entry


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    variables, sentences = kept(problem, constant)
    rest = tuple(c for c in problem.constraints if c.label not in sentences)
    return dataclasses.replace(problem, variables=variables, constraints=rest), same, list(sentences.values())


reformulation = Reformulation(
    name="simple_set",
    title="simple set",
    order=95,
    needs="a projection known together with the variable's other sets and the prox of its regularisers",
    formula="norm1(w) <= r  ->  w in ball1(r);  norm2(w) <= r, sumsq(w) <= r^2  ->  w in ball(r);  "
    "norminf(w) <= r, l <= w_i <= u"
    "  ->  w in box(l, u);  w >= 0, sum(w) == 1  ->  w in simplex",
    apply=_apply,
    removes=(FEATURE,),
    cost=Additions(number=0.1),
)
