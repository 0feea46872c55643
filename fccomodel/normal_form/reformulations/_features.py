"""Features of a problem that an algorithm may not be able to take; reformulations remove and give them."""

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
#: features that no algorithm here takes
STRUCTURE = frozenset(
    {"maximize", "inner maximum", "sums of expectations", FEATURE, largest_of_many.FEATURE, *REDUCTIONS}
)
KINKS = frozenset({"kinks outside", "kinks inside"})
#: kinds of the worst of a family; they couple its blocks by a polytope of weights
COUPLING = frozenset({"inner maximum", *reductions.named(lambda kind: kind.worst and not kind.extreme)})


def features(
    problem: ir.Problem, constant: Constant = unknown, *, kinks_too: bool = True, curves_too: bool = False
) -> frozenset[str]:
    """The features of a problem.

    ``maximize``              the objective is maximised
    ``inner maximum``         a maximum over q in a set of vectors
    ``worst case``            a maximum over a family
    ``largest of many``       a maximum over more elements than a step sees together
    a reduction's name        such as ``cvar``
    ``sums of expectations``  as arguments of functions that are not affine
    ``constraints``           constraints with a variable
    ``sets as constraints``   constraints that keep a variable in a simple set
    ``kinks outside``         functions without a gradient somewhere, outside sampled expectations
    ``kinks inside``          the same inside sampled expectations; both only with ``kinks_too``
    ``curves outside``        smooth functions outside that are not affine; only with ``curves_too``
    """
    names: set[str] = set()
    if problem.objective.sense == "maximize":
        names.add("maximize")
    for node in problem.expressions():
        if isinstance(node, ir.Reduce):
            names |= _of_reduction(node, constant)
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
            names.add("curves outside")
    return frozenset(names)


def _of_reduction(node: ir.Reduce, constant: Constant) -> set[str]:
    """The features that a reduction shows."""
    names: set[str] = set()
    if is_inner_maximum(node):
        names.add("inner maximum")
    elif is_largest(node):
        names.add("worst case")
    elif node.kind in REDUCTIONS:
        names.add(node.kind)
    if largest_of_many.is_of_many(node, constant):
        names.add(largest_of_many.FEATURE)
    return names


def kinks(roots: Iterable[ir.Expr], constant: Constant) -> list[tuple[ir.Expr, bool]]:
    """Non-smooth nodes, each with whether it is inside a sampled expectation."""
    finder = Smoother(constant=constant, outer=False, inside=False)
    for root in roots:
        finder(root)
    return finder.kept


def is_inner_maximum(node: ir.Expr) -> bool:
    """Whether the node reduces over a set of vectors, as ``max[q in simplex(K)] ..`` does."""
    return isinstance(node, ir.Reduce) and any(isinstance(b.domain, ir.VectorSet) for b in node.binders)


def is_largest(node: ir.Expr) -> bool:
    """Whether the node is a maximum over a set, as ``max[k in K] ..``, or over vectors."""
    return isinstance(node, ir.Reduce) and reductions.of(node).extreme and reductions.of(node).worst
