"""What a problem has that an algorithm may not be able to take: the features that reformulations
remove and give."""

from __future__ import annotations

from collections.abc import Iterable

from fccomodel.core import ir
from fccomodel.library import reductions
from fccomodel.normal_form.reformulations import largest_of_many
from fccomodel.normal_form.reformulations._affine import merged
from fccomodel.normal_form.reformulations._base import Constant, unknown
from fccomodel.normal_form.reformulations.simple_set import FEATURE, kept
from fccomodel.normal_form.smoothing import Smoother

#: reductions that no algorithm samples: tail means, and functions of expectations
REDUCTIONS = reductions.named(lambda kind: kind.tail or kind.by_means is not None)
#: what no algorithm here takes as it is
STRUCTURE = frozenset(
    {"maximize", "inner maximum", "sums of expectations", FEATURE, largest_of_many.FEATURE, *REDUCTIONS}
)
KINKS = frozenset({"kinks outside", "kinks inside"})
#: the worst of a family, by their kinds: what couples the blocks of a family by a polytope of weights
COUPLING = frozenset({"inner maximum", *reductions.named(lambda kind: kind.worst and not kind.extreme)})


def features(
    problem: ir.Problem, constant: Constant = unknown, *, kinks_too: bool = True, curves_too: bool = False
) -> frozenset[str]:
    """The features of a problem; without ``kinks_too``, those that its reductions show.

    ``maximize``; ``inner maximum``: over q in a set of vectors; ``worst case``: a maximum over a
    family; ``largest of many``: of more elements than a step sees together; a reduction's own name;
    ``sums of expectations`` as arguments of functions that are not affine;
    ``constraints``: with a variable; ``sets as constraints``: those that keep a variable in a
    simple set; ``kinks outside`` and ``kinks inside`` sampled expectations: functions without a
    gradient somewhere; with ``curves_too`` those outside that are smooth and not affine, ``curves
    outside``.
    """
    names: set[str]
    if problem.objective.sense == "maximize":
        names = {"maximize"}
    else:
        names = set()
    for node in problem.expressions():
        if isinstance(node, ir.Reduce):
            if is_inner_maximum(node):
                name = "inner maximum"
            elif is_largest(node):
                name = "worst case"
            else:
                name = node.kind
            names |= {name} & {"inner maximum", "worst case", *REDUCTIONS}
            if largest_of_many.is_of_many(node, constant):
                names |= {largest_of_many.FEATURE}
            else:
                names |= set()
        if merged(node) is not None:
            names.add("sums of expectations")
    if any(ir.variables_of(c.body) for c in problem.constraints):
        names.add("constraints")
    if kept(problem, constant)[1]:
        names.add(FEATURE)
    if kinks_too:
        names |= {"kinks inside" if inner else "kinks outside" for _, inner in kinks(problem.roots, constant)}
    if curves_too:
        finder = Smoother(constant=constant, outer=False, inside=False, curves=True)
        for root in problem.roots:
            finder(root)
        if finder.made:
            names |= {"curves outside"}
        else:
            names |= set()
    return frozenset(names)


def kinks(roots: Iterable[ir.Expr], constant: Constant) -> list[tuple[ir.Expr, bool]]:
    """Non-smooth nodes, each with whether it is inside a sampled expectation."""
    finder = Smoother(constant=constant, outer=False, inside=False)
    for root in roots:
        finder(root)
    return finder.kept


def is_inner_maximum(node: ir.Expr) -> bool:
    """``max[q in simplex(K)] ..``."""
    return isinstance(node, ir.Reduce) and any(isinstance(b.domain, ir.VectorSet) for b in node.binders)


def is_largest(node: ir.Expr) -> bool:
    """``max[k in K] ..``, over vectors too."""
    return isinstance(node, ir.Reduce) and reductions.of(node).extreme and reductions.of(node).worst
