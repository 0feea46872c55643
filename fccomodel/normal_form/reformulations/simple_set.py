"""A constraint on one whole variable, or on each of its entries  ->  a simple set, which steps project on."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.library import regularisers, sets
from fccomodel.library.sums import summands
from fccomodel.normal_form.reformulations._base import Constant, Cost, Recover, Reformulation, same

FEATURE = "sets as constraints"


def kept(problem: ir.Problem, constant: Constant) -> tuple[dict[str, ir.Variable], dict[str, str]]:
    """The variables with the sets that constraints keep them in, and by label what became of those
    constraints.

    A set is taken where its projection is known together with the variable's other sets and the
    prox of its regularisers.
    """
    variables, sentences = dict(problem.variables), {}
    for constraint in sorted(
        problem.constraints, key=lambda c: c.kind == "eq"
    ):  # bounds first: with them a sum is a simplex
        recognised = sets.recognise(constraint, variables, constant)
        if recognised is None:
            continue
        name, domain = recognised
        domains = sets.intersection((*variables[name].sets, domain), constant)
        if (
            len(domains) == 1
            and _has_points(domains[0], constant)
            and _composes(problem, name, domains[0], constant)
        ):
            variables[name] = dataclasses.replace(variables[name], sets=domains)
            sentences[constraint.label] = f"{constraint.label} keeps {name} in {domain.name}"
    return variables, sentences


def _has_points(domain: ir.VectorSet, constant: Constant) -> bool:
    """As far as numbers say; of bounds that are arrays, whoever takes their values asks."""
    simple, numbers = sets.get(domain.family), [constant(a) for a in domain.args]
    if simple is None:
        return False
    if None in numbers:
        return simple.entrywise and all(
            n is not None or a.shape for a, n in zip(domain.args, numbers, strict=True)
        )
    return not simple.empty(domain.shape, *numbers)


def _composes(problem: ir.Problem, name: str, domain: ir.VectorSet, constant: Constant) -> bool:
    """The prox of the variable's regulariser is known with the set, where it is entry by entry for
    steps of any sizes still."""
    recognised = [regularisers.recognise(term, name, constant) for term in summands(problem.objective.expr)]
    combined = regularisers.in_turn([r for r in recognised if r is not None])
    entrywise = sets.all()[domain.family].entrywise
    if not combined:
        return combined is not None
    first = combined[0]
    return (
        len(combined) == 1
        and first.then_projected(domain)
        and (entrywise or not first.regulariser.step_per_entry)
    )


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
    cost=Cost(number=0.1),
)
